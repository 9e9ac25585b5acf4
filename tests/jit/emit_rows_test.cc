// Rows that are known beforehand while neither their number is nor how they lie to each other: few texts, those of lengths that all are known.
#include "tests/jit/emit_families.h"

using namespace ng;
using namespace ng::emitted;

REGISTER_EXCEPTION_TRANSLATOR(const Error& error) { return error.text.c_str(); }

namespace {

constexpr const char* SOFTMAX = "f16(softmax(x, 1))";
constexpr const char* NORM = "f16((x - mean(x, 1)) * rsqrt(var(x, 1) + 1e-5) * y)";

KernelFamily family_of(const Case& c, const DeviceTraits& device) { return KernelFamily(*c.plan.steps.at(0).kernel, cuda_dialect(), device); }

}  // namespace

TEST_CASE("known rows of any number: held, peeled, in clusters and walked")
{
    std::vector<Family> all;
    for (const int64_t length : {8, 33, 256, 1001, 50257})
        for (const char* words : {SOFTMAX, NORM}) all.push_back({words, {"max(x, 1)"}, Dtype::f16, {{length > 8192 ? 2 : 9, length}, {1, length}, {0, length}}, 0x1p-9, true, 1, Known::Last});
    for (const int64_t length : {7, 250, 50257, 150001}) all.push_back({"(x - mean(x, 1)) * rsqrt(var(x, 1) + 1e-5)", {"sum(x * y, 1)", "argmax(x, 1)"}, Dtype::f32, {{2, length}, {length > 8192 ? 3 : 70, length}}, 1e-4, true, 1, Known::Last});
    for (const int64_t length : {33, 4096}) all.push_back({"sum(i64(x), 1)", {"any(x > 1, 1)"}, Dtype::i8, {{5, length}, {300, length}}, 0, false, 1, Known::Last});
    check_all(all, {90, 4});
    std::erase_if(all, [](const Family& f) { return f.lengths[0].back() != 50257; });
    check_all(all, {80, 4});                             // without clusters
}

TEST_CASE("known rows over two axes, whose strides are known when run")
{
    std::vector<Family> all;
    for (const int64_t length : {33, 256, 50257})
        for (const char* words : {"f16(softmax(x, 2))", "f16((x - mean(x, 2)) * rsqrt(var(x, 2) + 1e-5) * y)"}) all.push_back({words, {"max(x, 2)"}, Dtype::f16, {{3, 2, length}, {1, 5, length}}, 0x1p-9, true, 1, Known::Last});
    for (const Family& f : all) {
        const KernelFamily family = family_of(*case_of(f, f.lengths[0]), {90, 4});
        CHECK((std::ranges::count(family.classes(), true, &LaunchClass::is_peeled) > 0) == (f.lengths[0].back() % 2 > 0));
    }
    check_all(all, {90, 4});
}

TEST_CASE("known rows: a slice's rows, which begin elsewhere than what is stored")
{
    std::vector<Family> all;
    for (const char* words : {"f16(softmax(x[:, 1:], 1))", "f16(softmax(x[:, :-1], 1))", "f16(softmax(x[:, 8:], 1))", "f16(softmax(x[1:, :], 1) + y[:-1, :])"})
        for (const int64_t length : {97, 104}) all.push_back({words, {}, Dtype::f16, {{9, length}, {2, length}}, 0x1p-9, false, 1, Known::Last});
    check_all(all, {90, 4});
}

TEST_CASE("points of known rows that vectors do not divide: results are vectors over the ends of rows")
{
    std::vector<Family> all;
    for (const int64_t length : {1, 3, 41, 1025})
        for (const char* words : {"f16(x + y)", "f16(relu(x * y + 0.5))"}) all.push_back({words, {}, Dtype::f16, {{37, length}, {4, length}, {1, length}, {0, length}}, 0x1p-10, true, 2, Known::Last});
    all.push_back({"x[:, ::-1] + y", {"x + 1"}, Dtype::i8, {{13, 7}, {40, 7}}, 0, false, 2, Known::Last});
    for (const Family& f : all) CHECK(family_of(*case_of(f, f.lengths[0]), {90, 4}).classes()[0].width > 1);
    check_all(all, {90, 4});
}

TEST_CASE("known rows: as few texts as where all is known, and the same of many rows")
{
    const DeviceTraits device{90, 4, 227 << 10};
    for (const int64_t length : {64, 100, 256, 1000, 1001, 4096, 50257})
        for (const char* words : {SOFTMAX, NORM, "sum(x, 1)", "argmax(x, 1)"}) {
            const Family known{words, {}, Dtype::f32, {{40, length}}, 0, true, 1, Known::All}, open{words, {}, Dtype::f32, {{40, length}}, 0, true, 1, Known::Last};
            const auto all = case_of(known, known.lengths[0]), rows = case_of(open, open.lengths[0]);
            const KernelFamily want = family_of(*all, device), family = family_of(*rows, device);
            const int64_t many[] = {40};
            INFO(words << " of rows of " << length);
            for (const uint64_t shift : {0, 4}) {
                const std::vector<uint64_t> addresses(rows->plan.buffers.size(), 4096 + shift), one = {4096, 4096 + shift, 4096};
                for (const auto& where : {addresses, one}) {
                    const Geometry g = family.choose(many, where), w = want.choose({}, where);
                    REQUIRE(g.which >= 0);
                    CHECK(family.source(size_t(g.which)).text == want.source(size_t(w.which)).text);
                    CHECK(g.launch[0].blocks == w.launch[0].blocks);
                    CHECK(g.launch[0].threads == w.launch[0].threads);
                }
            }
            const bool is_walked = std::ranges::count(family.classes(), Form::Walked, &LaunchClass::form) > 0;
            const bool stay = std::ranges::count(family.classes(), true, &LaunchClass::is_staying) > 0;
            const size_t most = is_walked ? 4 : length < 8192 ? 2 : 3;      // long rows have one more where they are few, and one where they are many for blocks that stay
            CHECK(family.classes().size() <= most + stay);
        }
}
