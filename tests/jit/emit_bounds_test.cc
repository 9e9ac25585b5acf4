// Texts that lengths up to their greatest cannot ask for are not among a kernel's; what any of them does ask for is.
#include "tests/jit/emit_run.h"
#include "tests/split_mix.h"

#include <doctest/doctest.h>

using namespace ng;
using namespace ng::emitted;

REGISTER_EXCEPTION_TRANSLATOR(const Error& error) { return error.text.c_str(); }

namespace {

using Lengths = std::vector<int64_t>;

struct Bounded {
    const char* words;
    Dtype       type;
    Lengths     most;
    size_t      classes;         // of all that lengths without bounds may need, at most so many are left
    int         rank = 2;        // of one axis, strides are known beforehand
};

std::unique_ptr<Case> case_of(const Bounded& b)
{
    auto c = std::make_unique<Case>(b.words, "");
    c->in.lengths = {3, 5};
    for (const char* name : {"x", "y"}) c->input(name, b.type, b.rank == 1 ? Extents{Extent::variable(0)} : Extents{Extent::variable(0), Extent::variable(1)});
    c->out(b.words);
    c->compile();
    return c;
}

// Often near the bound, or a power of two, where choices change.
int64_t drawn(SplitMix& dice, int64_t most)
{
    const uint64_t word = dice.word();
    if (word % 4 == 0) return most - int64_t(word >> 8) % std::min<int64_t>(most + 1, 3);
    const int64_t power = int64_t(1) << (word >> 8) % 32;
    return std::min(most, word % 4 == 1 ? power : power + int64_t(word >> 16) % (power + 1));
}

// The same launch as without bounds, whatever lengths and addresses.
void agree(const Bounded& b, const KernelFamily& bounded, const KernelFamily& free, size_t buffers, int32_t hidden)
{
    SplitMix dice(11);
    for (int turn = 0; turn < 2000; turn++) {
        Lengths lengths = {drawn(dice, b.most[0]), drawn(dice, b.most[1])};
        for (int k = 0; k < hidden; k++) lengths.push_back(k % 2 ? 1 : dice.word() % 8 ? lengths[1] : int64_t(1) << 31);      // strides of rows
        const std::vector<uint64_t> addresses(buffers, dice.word() % 2 ? 4096 : 4100);
        const Geometry g = bounded.choose(lengths, addresses), want = free.choose(lengths, addresses);
        const std::string caption = text(b.words, " of ", lengths[0], " x ", lengths[1]);
        INFO(caption);
        REQUIRE(g.launches == want.launches);
        if (!g.launches) continue;
        REQUIRE(g.which >= 0);
        CHECK(bounded.classes()[size_t(g.which)] == free.classes()[size_t(want.which)]);
        CHECK(g.scratch_bytes <= bounded.scratch_bytes(b.most));
    }
}

}  // namespace

TEST_CASE("bounds: what greatest lengths rule out is not compiled, and no launch within them asks for it")
{
    const std::vector<Bounded> all = {
        {"x * 1.5 + y", Dtype::f32, {1200, 1}, 2, 1},
        {"x * 1.5 + y", Dtype::f32, {int64_t(1) << 31, 1}, 4, 1},
        {"x * 1.5 + y", Dtype::f32, {1200, 8}, 4},
        {"softmax(x, 1) + y", Dtype::f16, {1 << 20, 1024}, 2},
        {"softmax(x, 1) + y", Dtype::f16, {4, 1 << 20}, 8},
        {"sum(x * y, 0)", Dtype::f32, {1000, 1 << 16}, 4},
        {"sum(x * y, 0)", Dtype::f32, {300, 1 << 16}, 4},
        {"sum(x * y, 0)", Dtype::f32, {100, 1 << 16}, 2},
        {"sum(x * y)", Dtype::f32, {1200, 1}, 4, 1},
    };
    for (const Bounded& b : all) {
        const auto c = case_of(b);
        REQUIRE(c->plan.steps.size() == 1);
        const Kernel& kernel = *c->plan.steps[0].kernel;
        const KernelFamily bounded(kernel, cuda_dialect(), {90, 132}, b.most), free(kernel, cuda_dialect(), {90, 132});
        const std::string caption = text(b.words, " up to ", b.most[0], " x ", b.most[1]);
        INFO(caption);
        CHECK(bounded.classes().size() <= b.classes);
        CHECK(free.classes().size() >= bounded.classes().size());
        agree(b, bounded, free, c->plan.steps[0].buffers.size(), c->plan.hidden);
    }
}

TEST_CASE("bounds: of lengths that have no greatest value nothing is ruled out")
{
    const Bounded b{"softmax(x, 1) + y", Dtype::f32, {64}, 0};
    const auto c = case_of(b);
    const Kernel& kernel = *c->plan.steps[0].kernel;
    const KernelFamily half(kernel, cuda_dialect(), {90, 132}, b.most), free(kernel, cuda_dialect(), {90, 132});
    CHECK(half.classes().size() == free.classes().size());
}

// Fewer rows, or columns, go in more parts.
TEST_CASE("bounds: no lengths take more scratch memory than is planned for the greatest")
{
    int taken = 0;
    for (const char* words : {"sum(x, 0)", "max(x, 0)", "x - mean(x, 0)", "softmax(x, 0)", "softmax(x, 1)", "(x - mean(x, 1)) * rsqrt(var(x, 1) + 1e-5)", "var(x, 1)", "sum(x, 1)", "argmax(x, 1)", "x + std(x, 0)"})
        for (const Dtype t : {Dtype::f16, Dtype::f32})
            for (const bool is_first_known : {true, false})
                for (const int64_t known : {7, 4096, 1 << 20})
                    for (const int64_t most : {500, 16384}) {
                        Case c(words, "");
                        c.in.lengths = {3};
                        c.input("x", t, is_first_known ? Extents{known, Extent::variable(0)} : Extents{Extent::variable(0), known});
                        c.out(words);
                        c.compile();
                        const Lengths greatest = {most};
                        const std::string caption = text(words, " of ", name_of(t), is_first_known ? text(" [", known, ", -1]") : text(" [-1, ", known, "]"), ", ", most, " at most");
                        INFO(caption);
                        for (const Step& s : c.plan.steps)
                            for (const DeviceTraits& device : {DeviceTraits{90, 132, 227 << 10}, {80, 108, 163 << 10}, {80, 4, 99 << 10}}) {
                                const KernelFamily family(*s.kernel, cuda_dialect(), device, greatest);
                                const uint64_t planned = family.scratch_bytes(greatest);
                                for (const uint64_t address : {4096, 4098}) {
                                    const std::vector<uint64_t> addresses(s.buffers.size(), address);
                                    for (int64_t n = 1; n <= most; n += 1 + n / 64) {
                                        const Lengths lengths = {n};
                                        const uint64_t wanted = family.choose(lengths, addresses).scratch_bytes;
                                        if (wanted > planned) CHECK(wanted <= planned);
                                        taken += wanted > 0;
                                    }
                                }
                            }
                    }
    CHECK(taken > 1000);
}

TEST_CASE("bounds: without a greatest length the scratch memory is more than there is, or all that is taken")
{
    for (const char* words : {"(x - mean(x, 1)) * rsqrt(var(x, 1) + 1e-5)", "x / max(abs(x), 1)", "sum(x, 0)", "sum(x, 1)"})
        for (const bool is_first_known : {true, false})
            for (const int64_t most : {INT64_MAX, (int64_t(1) << 56) + 12345, int64_t(1) << 40}) {
                Case c(words, "");
                c.in.lengths = {3};
                c.input("x", Dtype::f16, is_first_known ? Extents{64, Extent::variable(0)} : Extents{Extent::variable(0), 64});
                c.out(words);
                c.compile();
                const Lengths greatest = {most};
                for (const Step& s : c.plan.steps) {
                    const KernelFamily family(*s.kernel, cuda_dialect(), {90, 132, 227 << 10}, greatest);
                    for (const int64_t n : {1000, 1 << 21, 1 << 24}) {
                        const Lengths lengths = {n};
                        CHECK(family.choose(lengths, {}).scratch_bytes <= family.scratch_bytes(greatest));
                    }
                }
            }
}

// The threads that a text is made for.
static uint32_t threads_in(const std::string& source)
{
    const std::string before = "THREADS = ";
    return uint32_t(std::stoul(source.substr(source.find(before) + before.size())));
}
// How many launches there were, for as many lengths as are drawn.
template <class Draw>
static size_t check_blocks(const KernelFamily& family, const std::string& what, int draws, const Draw& draw)
{
    size_t seen = 0;
    std::map<int32_t, uint32_t> most;                // threads, by class
    for (int k = 0; k < draws; k++) {
        const Geometry g = draw();
        if (g.which < 0) continue;
        if (!most.contains(g.which)) most[g.which] = threads_in(family.source(size_t(g.which)).text);
        const std::string caption = text(what, ": ", text_of(family.classes()[size_t(g.which)]));
        INFO(caption);
        for (int l = 0; l < g.launches; l++, seen++) {
            CHECK(g.launch[size_t(l)].blocks > 0);
            CHECK(g.launch[size_t(l)].threads > 0);
            CHECK(g.launch[size_t(l)].threads <= most[g.which]);
        }
    }
    return seen;
}

// Rows and columns of every length and number, beside few inputs and many.
TEST_CASE("bounds: no block has more threads than its text is made for, and no launch is of nothing")
{
    SplitMix dice(5);
    std::string many = "x";
    for (int i = 0; i < 9; i++) many += text(" + p", i);
    const auto length = [&] { return int64_t(1 + dice.word() % (uint64_t(1) << dice.word() % 15)) + 2; };
    const auto launches = [&](const std::string& words, Dtype t, int known) {
        const int64_t rows = length(), points = length();
        Case c(words.c_str(), "");
        c.in.lengths = known == 2 ? Lengths{} : known ? Lengths{3} : Lengths{3, 5};
        const Extents d = {known == 2 ? Extent(rows) : Extent::variable(0), known ? Extent(points) : Extent::variable(1)};
        for (const std::string name : {"x", "y"}) c.input(name.c_str(), t, d);
        for (int i = 0; words.find("p8") != words.npos && i < 9; i++) c.input(text("p", i).c_str(), t, d);
        c.out(words.c_str());
        c.compile();
        const std::string what = text(words, " of ", name_of(t), ", ", known, " known, [", rows, ", ", points, "]");
        size_t seen = 0;
        for (const Step& s : c.plan.steps)
            for (const DeviceTraits& device : {DeviceTraits{90, 132, 227 << 10}, {80, 108, 163 << 10}}) {
                const KernelFamily family(*s.kernel, cuda_dialect(), device);
                seen += check_blocks(family, what, known == 2 ? 1 : 60, [&] {
                    Lengths lengths = known == 2 ? Lengths{} : known ? Lengths{length()} : Lengths{length(), length()};
                    for (int h = 0; h < c.plan.hidden; h++) lengths.push_back(h % 2 ? 1 : known ? points : lengths[1]);
                    return family.choose(lengths, std::vector<uint64_t>(s.buffers.size(), dice.word() % 2 ? 4096 : 4104));
                });
            }
        return seen;
    };
    size_t seen = 0;
    for (const std::string& words : {std::string("softmax(x, 1)"), std::string("f16(softmax(x[:, 2:] + y[:, :-2], 1))"), std::string("sum(x * y, 1)"), std::string("sum(x, 0)"), std::string("x - mean(x, 0)"), "sum(" + many + ", 0)", many + " - mean(" + many + ", 0)"})
        for (const Dtype t : {Dtype::f64, Dtype::f32, Dtype::f16})
            for (const int known : {0, 1, 2})
                for (int turn = 0; turn < (known == 2 ? 8 : 1); turn++) seen += launches(words, t, known);
    CHECK(seen > 1000);
}

TEST_CASE("bounds: rows beyond what one axis of a grid holds each have their block")
{
    for (const char* words : {"softmax(x, 1)", "sum(x, 1)", "x - mean(x, 1)"}) {
        Case c(words, "");
        c.in.lengths = {3};
        c.input("x", Dtype::f16, {Extent::variable(0), 3});
        c.out(words);
        c.compile();
        REQUIRE(c.plan.steps.size() == 1);
        const KernelFamily family(*c.plan.steps[0].kernel, cuda_dialect(), {90, 132, 227 << 10});
        for (const int64_t rows : {(int64_t(1) << 31) - 1, int64_t(1) << 31, (int64_t(1) << 33) + 3}) {
            Lengths lengths = {rows};
            for (int k = 0; k < c.plan.hidden; k++) lengths.push_back(k % 2 ? 1 : 3);
            const Geometry g = family.choose(lengths, std::vector<uint64_t>(c.plan.steps[0].buffers.size(), 4096));
            REQUIRE(g.launches == 1);
            const bool is_beyond = g.launch[0].blocks > Geometry::MOST_BLOCKS;
            CHECK((rows > int64_t(Geometry::MOST_BLOCKS)) == is_beyond);
            if (!is_beyond) continue;
            const std::string source = family.source(size_t(g.which)).text;
            CHECK(g.launch[0].blocks == uint64_t(rows));
            CHECK(source.find("row = ((u64)blockIdx.y * gridDim.x + blockIdx.x)") != source.npos);
            CHECK(source.find("if (row >= n.rows) return;") != source.npos);
        }
    }
}

// A point of the first has more between passes than a thread holds.
TEST_CASE("bounds: rows without points are chosen for, known and not")
{
    for (const char* words : {"sum(softmax(x + y + x * y + x / 3 + y * 5 + exp(x), 1))", "softmax(x, 1)", "sum((x - mean(x + y * y, 1)) * y, 1)"})
        for (const bool is_known : {false, true}) {
            Case c(words, "");
            c.in.lengths = is_known ? Lengths{} : Lengths{2, 0};
            for (const char* name : {"x", "y"}) c.input(name, Dtype::f64, is_known ? Extents{2, 0} : Extents{Extent::variable(0), Extent::variable(1)});
            c.out(words);
            c.compile();
            for (const Step& s : c.plan.steps) {
                const KernelFamily family(*s.kernel, cuda_dialect(), {90, 132, 227 << 10});
                for (const int64_t n : {0, 1, 2}) {
                    Lengths lengths = is_known ? Lengths{} : Lengths{2, n};
                    for (int k = 0; k < c.plan.hidden; k++) lengths.push_back(1);
                    const Geometry g = family.choose(lengths, std::vector<uint64_t>(s.buffers.size(), 4096));
                    CHECK((g.launches == 0 || g.which >= 0));
                }
            }
        }
}
