// Compiled code where the host's memory ends: nobody waits for ever, and whoever asks next is answered.
#include "lib/backend/cuda/code.h"
#include "lib/context.h"
#include "tests/backend/stand_in.h"
#include "tests/harm/watched_heap.h"

#include <new>

using namespace ng;
using namespace ng::cuda;
namespace heap = harm::heap;

REGISTER_EXCEPTION_TRANSLATOR(const Error& error) { return error.text.c_str(); }

TEST_CASE("code: whichever allocation is refused while a text is asked for, it has an answer when it is asked for again")
{
    const DeviceContext home = DeviceContext::primary(fresh_driver(), 0);
    const std::string source = "a text, longer than strings have room for";
    CodeOptions options;
    options.may_compile = false;                 // what is made is a fault, by which a text is known as by its code
    for (const heap::Refusal refusal : {heap::Refusal::One, heap::Refusal::AllFrom}) {
        bool     is_refused = true;
        uint64_t n = 0;
        while (is_refused) {
            Counters counters;
            CodeStore store(home, options, counters);
            std::atomic<bool> is_counted{false};
            ng_status said = NG_OK;
            heap::arm(refusal, ++n);
            try {
                (void)store.need(source, 1, is_counted);
            } catch (const Error& error) {
                said = error.status;
            } catch (const std::bad_alloc&) {
                said = NG_E_NOMEM;
            }
            (void)heap::disarm();
            is_refused = heap::has_refused();
            INFO("allocation ", n, refusal == heap::Refusal::One ? " alone" : " and all behind it");
            CHECK((said == NG_E_UNSUPPORTED || (is_refused && said == NG_E_NOMEM)));
            CHECK(store.find(source) == nullptr);
            CHECK(thrown_by([&] { (void)store.need(source, 1, is_counted); }).status == NG_E_UNSUPPORTED);
        }
        CHECK(n > 3);
    }
}

TEST_CASE("code: short jobs come before those that compile")
{
    const DeviceContext home = DeviceContext::primary(fresh_driver(), 0);
    CodeOptions options;
    options.may_compile = options.has_threads = false;
    Counters counters;
    CodeStore store(home, options, counters);
    std::string order;
    for (const char name : {'a', 'b', 'c'}) store.later([&order, name] { order += name; }, name == 'c');
    CHECK(store.poll(UINT64_MAX));
    CHECK(order == "cab");
}
