// How many work, whether the process ends, and the one function of ours that runs when it does.
#include "lib/backend/cuda/ending.h"

#include "jit/error.h"
#include "lib/deadline.h"
#include "lib/handle.h"

#include <atomic>
#include <bit>
#include <cstdlib>

namespace ng::cuda {
namespace {

constexpr uint64_t MOST_NS = uint64_t(10) * 1000 * 1000 * 1000;    // that exit() waits: what hangs so long does not end

constinit std::atomic<uint32_t> working{0}, epoch{0}, ended{0};
constinit std::atomic<bool>     is_watched{false}, is_ending{false};

void wait_for_workers()
{
    if (epoch.load() != fork_epoch()) return;       // the child of a fork has none of the threads that it counted
    is_ending.store(true);
    const Deadline end(MOST_NS);
    for (int turn = 0; working.load(); turn++)
        if (!end.wait(turn)) return;
}

}  // namespace

bool UntilExit::is_awaited() noexcept { return is_ending.load(); }

UntilExit::UntilExit()
{
    if (!is_watched.exchange(true)) {
        epoch.store(fork_epoch());
        (void)std::atexit(wait_for_workers);
    }
    working.fetch_add(1);
    if (!is_ending.load()) return;
    working.fetch_sub(1);
    throw Error(NG_E_LOST, "the process is ending: nothing is compiled any more");
}

// What a compiler makes while it works, it takes apart before what was there before it: so we ask again to come first, after
// the first piece of work, the second, the fourth ..
UntilExit::~UntilExit()
{
    if (std::has_single_bit(ended.fetch_add(1) + 1) && !is_ending.load()) (void)std::atexit(wait_for_workers);
    working.fetch_sub(1);
}

}  // namespace ng::cuda
