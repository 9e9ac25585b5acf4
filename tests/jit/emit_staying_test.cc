// Rows and columns that blocks hold which stay, in clusters and rings, of every length: listed where they fit, and right.
#include "tests/jit/emit_families.h"

using namespace ng;
using namespace ng::emitted;

REGISTER_EXCEPTION_TRANSLATOR(const Error& error) { return error.text.c_str(); }

TEST_CASE("rows and columns: held by blocks that stay, alone and in clusters")
{
    std::vector<Family> all;
    all.push_back({"softmax(x, 1)", {"argmax(x, 1)"}, Dtype::f32, {{7, 32768}}, 1e-5, false, 2, Known::All});
    all.push_back({"exp(x / max(abs(x), 1))", {}, Dtype::f32, {{7, 32768}}, 1e-6, false, 2, Known::All});                     // one meeting
    all.push_back({"f16((x - mean(x, 1)) * rsqrt(var(x, 1) + 1e-5) * y)", {}, Dtype::f16, {{2, 262144}}, 0x1p-9, true, 2, Known::All});
    all.push_back({"tanh(x - mean(x, 1)) * rsqrt(var(x, 1) + 1e-5)", {"min(x, 1)"}, Dtype::f32, {{4, 65536}}, 1e-4, false, 2, Known::All});
    all.push_back({"softmax(x, 1)", {"argmin(x, 1)"}, Dtype::f32, {{2, 131072}}, 1e-5, false, 2, Known::All});
    all.push_back({"f16(softmax(x, 0))", {"max(x, 0)"}, Dtype::f16, {{2048, 128}}, 0x1p-9, false, 2, Known::All});
    all.push_back({"(x - mean(x, 0)) * rsqrt(var(x, 0) + 1e-5)", {"max(x, 0)"}, Dtype::f32, {{2048, 64}}, 1e-4, false, 2, Known::All});
    all.push_back({"f16((x - mean(x, 0)) * rsqrt(var(x, 0) + 1e-5))", {}, Dtype::f16, {{4096, 64}}, 0x1p-9, false, 2, Known::All});
    all.push_back({"exp(x) / sum(exp(x), 1)", {}, Dtype::f64, {{4, 32768}}, 1e-11, false, 2, Known::All});
    int staying = 0;
    for (const Family& f : all) {
        const auto c = case_of(f, f.lengths[0]);
        const KernelFamily family(*c->plan.steps[0].kernel, cuda_dialect(), {90, 4, 227 << 10});
        staying += std::ranges::count(family.classes(), true, &LaunchClass::is_staying) > 0;
    }
    CHECK(staying == int(all.size()));
    check_all(all, {90, 4, 227 << 10});
}

// An exponential is computed where it is summed, and not again where it is divided.
TEST_CASE("rows and columns: blocks that stay keep what is dear in registers")
{
    struct Kept { Family family; int parts; const char* once; };
    std::vector<Kept> kept;
    const auto add = [&](const char* words, std::vector<const char*> more, Dtype type, Lengths lengths, double tolerance, int parts, bool row_beside = false, const char* once = " = op_exp_f32(") {
        kept.push_back({{words, std::move(more), type, {std::move(lengths)}, tolerance, row_beside, 2, Known::All}, parts, once});
    };
    add("f16(softmax(x, 1))", {}, Dtype::f16, {7, 32768}, 0x1p-9, 1);
    add("f16(softmax(x, 1))", {"argmax(x, 1)"}, Dtype::f16, {7, 20000}, 0x1p-9, 1);
    add("f16(softmax(x, 1))", {"max(x, 1)"}, Dtype::f16, {5, 50304}, 0x1p-9, 2);
    add("f16(softmax(x * 0.125 + y, 1))", {}, Dtype::f16, {2, 100352}, 0x1p-9, 8, true);
    add("softmax(x, 1)", {"prod(where(x > 1.99, 1.001, 1), 1)"}, Dtype::f32, {2, 100012}, 1e-4, 8);
    add("softmax(x, 1)", {}, Dtype::f32, {7, 24576}, 1e-5, 1);
    add("softmax(x, 0)", {}, Dtype::f32, {1024, 128}, 1e-5, 2);
    add("softmax(x, 0)", {"min(x, 0)"}, Dtype::f32, {1000, 100}, 1e-5, 2);
    add("f16(softmax(x, 1))", {}, Dtype::f16, {7, 20001}, 0x1p-9, 1);           // by vectors from the first aligned element of each row on
    add("f16(softmax(x * 0.125 + y, 1))", {"argmax(x, 1)"}, Dtype::f16, {5, 50257}, 0x1p-9, 4);
    add("softmax(x, 1)", {"sum(x, 1)"}, Dtype::f32, {5, 40003}, 1e-5, 2);
    add("x * sum(tanh(x - mean(x, 1)), 1) + tanh(x - mean(x, 1))", {}, Dtype::f32, {5, 40000}, 1e-4, 2, false, " = op_tanh_f32(");
    add("softmax(x, 1)", {"max(x, 1)"}, Dtype::f64, {4, 20480}, 1e-11, 2, false, " = op_exp_f64(");
    std::vector<Family> all;
    for (const Kept& k : kept) {
        const auto c = case_of(k.family, k.family.lengths[0]);
        const KernelFamily family(*c->plan.steps[0].kernel, cuda_dialect(), {90, 4, 227 << 10});
        const auto at = std::ranges::find(family.classes(), true, &LaunchClass::is_keeping);
        const std::string caption = text(k.family.words, " of ", text_of(Extents(k.family.lengths[0].begin(), k.family.lengths[0].end())), ": ", text_of(family.classes()[0]));
        INFO(caption);
        REQUIRE(at != family.classes().end());
        CHECK((1 << at->log_parts) == k.parts);
        const std::string source = family.source(size_t(at - family.classes().begin())).text;
        size_t times = 0;
        for (size_t i = source.find(k.once); i != std::string::npos; i = source.find(k.once, i + 1)) times++;
        CHECK(times == (at->is_peeled ? 2 : 1));             // of vectors, and of the elements beside them
        all.push_back(k.family);
    }
    check_all(all, {90, 4, 227 << 10});
}

TEST_CASE("rows: what would keep more than threads have room for is held by others")
{
    std::string words = "sum(x, 1)";
    for (int i = 1; i < 20; i++) words = text(words, " + exp(x * ", i, ") * sum(exp(x * ", i, "), 1)");
    const Family f = {words.c_str(), {}, Dtype::f32, {{9, 32768}}, 1e-4, false, 2, Known::All};
    const auto c = case_of(f, f.lengths[0]);
    REQUIRE(c->plan.steps.size() == 1);
    CHECK(std::ranges::count(KernelFamily(*c->plan.steps[0].kernel, cuda_dialect(), {90, 4, 227 << 10}).classes(), true, &LaunchClass::is_keeping) == 0);
}

TEST_CASE("rows and columns: held by clusters of sixteen blocks, on whole cards alone")
{
    std::vector<Family> all;
    all.push_back({"softmax(x, 1)", {"argmax(x, 1)"}, Dtype::f32, {{6, 300000}}, 1e-5, false, 2, Known::All});
    all.push_back({"(x - mean(x, 0)) * rsqrt(var(x, 0) + 1e-5)", {"max(x, 0)"}, Dtype::f32, {{9000, 176}}, 1e-4, false, 2, Known::All});
    for (const Family& f : all) {
        const auto c = case_of(f, f.lengths[0]);
        const auto has = [&](const DeviceTraits& device) {
            const KernelFamily family(*c->plan.steps[0].kernel, cuda_dialect(), device);
            return std::ranges::any_of(family.classes(), [](const LaunchClass& l) { return l.is_staying && l.log_parts == 4; });
        };
        INFO(f.words);
        CHECK(has({90, 132, 227 << 10}));
        CHECK_FALSE(has({90, 114, 227 << 10}));
        CHECK_FALSE(has({100, 148, 227 << 10}));
    }
    check_all(all, {90, 132, 227 << 10});
}

// The ring's own ways: parts with means and greatest numbers of their own, parts of nothing but what is left out, rows of one number.
TEST_CASE("rows and columns: held in rings, where blocks fold on before they know what others found")
{
    std::vector<Family> all;
    all.push_back({"(x - mean(x, 1)) * rsqrt(var(x, 1) + 1e-5)", {"sum(x, 1)"}, Dtype::f32, {{5, 65536}}, 1e-4, false, 2, Known::All});
    all.push_back({"x * rsqrt(mean(x * x, 1) + 1e-5)", {}, Dtype::f32, {{5, 65536}}, 1e-5, false, 2, Known::All});                 // one meeting
    all.push_back({"(x - y) * std(x + 300, 1)", {}, Dtype::f32, {{5, 65536}}, 1e-4, true, 2, Known::All});
    all.push_back({"x + std(x * 0 + 7, 0)", {}, Dtype::f32, {{2048, 96}}, 1e-5, false, 2, Known::All});
    all.push_back({"f16((x - mean(x, 0)) * rsqrt(var(x, 0) + 1e-5))", {"var(x, 0)"}, Dtype::f16, {{1024, 256}}, 0x1p-9, false, 2, Known::All});
    all.push_back({"x / max(abs(x), 0)", {}, Dtype::f32, {{4096, 32}}, 1e-6, false, 2, Known::All});
    all.push_back({"f16(softmax(x * 30, 0))", {}, Dtype::f16, {{2048, 128}}, 0x1p-9, false, 2, Known::All});
    all.push_back({"softmax(where(x > 1.9, x, log(x * 0)), 0)", {}, Dtype::f32, {{2048, 64}}, 1e-5, false, 2, Known::All});
    all.push_back({"x * sum(exp(x - max(x, 0)), 0)", {}, Dtype::f32, {{2048, 64}}, 1e-5, false, 2, Known::All});
    for (const Family& f : all) {
        const auto c = case_of(f, f.lengths[0]);
        const KernelFamily family(*c->plan.steps[0].kernel, cuda_dialect(), {90, 4, 227 << 10});
        INFO(f.words << ": " << text_of(family.classes()[0]));
        CHECK(std::ranges::count(family.classes(), true, &LaunchClass::is_ring) == 1);
    }
    check_all(all, {90, 4, 227 << 10});
}

// Parts of several lengths, the last turn of some threads alone, half a line of columns.
TEST_CASE("rows and columns: held by blocks that stay, where they fill no whole number of turns")
{
    struct Held { Family family; bool is_ring; };
    const char* const norm = "(x - mean(x, 1)) * rsqrt(var(x, 1) + 1e-5)", *const of_columns = "(x - mean(x, 0)) * rsqrt(var(x, 0) + 1e-5)";
    std::vector<Held> held;
    const auto add = [&](bool is_ring, const char* words, std::vector<const char*> more, Dtype type, Lengths lengths, double tolerance, bool row_beside = false) {
        held.push_back({{words, std::move(more), type, {std::move(lengths)}, tolerance, row_beside, 2, Known::All}, is_ring});
    };
    add(false, "softmax(x, 1)", {"argmax(x, 1)"}, Dtype::f32, {7, 40004}, 1e-5);
    add(false, "softmax(x, 1)", {"prod(where(x > 1.99, 1.001, 1), 1)"}, Dtype::f32, {2, 100012}, 1e-4);
    add(true, "f16((x - mean(x, 1)) * rsqrt(var(x, 1) + 1e-5) * y)", {}, Dtype::f16, {2, 100008}, 0x1p-9, true);
    add(false, "exp(x) / sum(exp(x), 1)", {}, Dtype::f64, {4, 25002}, 1e-11);
    add(true, norm, {"sum(x, 1)"}, Dtype::f32, {5, 65540}, 1e-4);
    add(true, norm, {"var(x + 300, 1)"}, Dtype::f32, {5, 50304}, 1e-4);
    add(true, "(x - y) * std(x + 300, 1)", {}, Dtype::f32, {5, 100004}, 1e-4, true);
    add(true, of_columns, {"max(x, 0)"}, Dtype::f32, {1100, 64}, 1e-4);
    add(true, of_columns, {"var(x + 300, 0)", "mean(x, 0)"}, Dtype::f32, {1536, 44}, 1e-4);
    add(true, of_columns, {"prod(1 + x * 1e-5, 0)"}, Dtype::f32, {3001, 100}, 1e-4);
    add(true, "f16((x - mean(x, 0)) * rsqrt(var(x, 0) + 1e-5))", {"var(x, 0)"}, Dtype::f16, {1025, 136}, 0x1p-9);
    add(true, "x * y + std(x * 0 + 7, 0)", {"sum(x, 0)"}, Dtype::f32, {2049, 36}, 1e-5, true);
    add(true, "f16(softmax(x * 30, 0))", {}, Dtype::f16, {1500, 72}, 0x1p-9);
    add(true, "softmax(where(x > 1.9, x, log(x * 0)), 0)", {}, Dtype::f32, {3000, 40}, 1e-5);
    add(false, "f16(softmax(x, 0))", {"argmin(x, 0)"}, Dtype::f16, {3003, 72}, 0x1p-9);
    add(false, "x * std(x * var(x, 0), 0)", {}, Dtype::f32, {2100, 52}, 1e-4);
    std::vector<Family> all;
    for (const Held& h : held) {
        const auto c = case_of(h.family, h.family.lengths[0]);
        const KernelFamily family(*c->plan.steps[0].kernel, cuda_dialect(), {90, 4, 227 << 10});
        const auto is_wanted = [&](const LaunchClass& l) { return l.is_staying && l.is_ring == h.is_ring && !l.is_full; };
        const std::string caption = text(h.family.words, " of ", text_of(Extents(h.family.lengths[0].begin(), h.family.lengths[0].end())), ": ", text_of(family.classes()[0]));
        INFO(caption);
        CHECK(std::ranges::count_if(family.classes(), is_wanted) == 1);
        all.push_back(h.family);
    }
    check_all(all, {90, 4, 227 << 10});
}

// Of each of sixteen warps an accumulator of each column of a line: of 64 f16 or 32 f32, a number, or one and its place.
TEST_CASE("columns: warps of blocks that stay have the room that they meet in")
{
    struct Met { const char *words, *more; Dtype type; int bytes; };
    for (const Met& m : {Met{"f16(softmax(x, 0))", "argmin(x, 0)", Dtype::f16, 16 * 64 * 16}, {"f16(softmax(x, 0))", "max(x, 0)", Dtype::f16, 16 * 64 * 4},
                         {"softmax(x, 0)", "argmin(x, 0)", Dtype::f32, 16 * 32 * 16}, {"softmax(x, 0)", "max(x, 0)", Dtype::f32, 16 * 32 * 4}}) {
        const Family f = {m.words, {m.more}, m.type, {{m.type == Dtype::f16 ? 3003 : 3000, 72}}, 1, false, 2, Known::All};
        const auto c = case_of(f, f.lengths[0]);
        const KernelFamily family(*c->plan.steps[0].kernel, cuda_dialect(), {90, 4, 227 << 10});
        const auto at = std::ranges::find_if(family.classes(), [](const LaunchClass& l) { return l.is_staying; });
        const std::string caption = text(m.words, ", ", m.more);
        INFO(caption);
        REQUIRE(at != family.classes().end());
        CHECK(family.source(size_t(at - family.classes().begin())).text.find(text("__shared__ u64 shared[", m.bytes / 8, "];")) != std::string::npos);
    }
}

TEST_CASE("rows: held by blocks that stay where it is not known how many there are, and by others where they are too few")
{
    std::vector<Family> all;
    const std::vector<std::pair<const char*, int64_t>> rows = {{"softmax(x, 1)", 40004}, {"(x - mean(x, 1)) * rsqrt(var(x, 1) + 1e-5) * y", 65536}, {"f16(softmax(x, 1))", 100008}, {"f16((x - mean(x, 1)) * rsqrt(var(x, 1) + 1e-5))", 100008}};
    for (const auto& [words, length] : rows) {
        const Dtype t = words[0] == 'f' ? Dtype::f16 : Dtype::f32;
        all.push_back({words, {"max(x, 1)"}, t, {{1, length}, {9, length}}, t == Dtype::f16 ? 0x1p-9 : 1e-4, true, 2, Known::Last});
    }
    for (const Family& f : all) {
        const auto c = case_of(f, f.lengths[0]);
        const KernelFamily family(*c->plan.steps[0].kernel, cuda_dialect(), {90, 4, 227 << 10}), small(*c->plan.steps[0].kernel, cuda_dialect(), {90, 132, 227 << 10}, std::vector<int64_t>{8});
        INFO(f.words);
        CHECK(std::ranges::count(family.classes(), true, &LaunchClass::is_staying) == 1);
        CHECK(std::ranges::count(small.classes(), true, &LaunchClass::is_staying) == 0);
    }
    check_all(all, {90, 4, 227 << 10});
}

TEST_CASE("rings: none where what a block found of its part cannot be said anew for the row")
{
    // A third pass, a sum of squares about what is no fold of x, and a result of the second pass.
    for (const char* words : {"x * std(x * var(x, 0), 0)", "x * sum(square(x - max(x, 0)), 0)", "x + sum(abs(x - mean(x, 0)), 0)"}) {
        const Family f{words, {}, Dtype::f32, {{2048, 64}}, 1e-4, false, 2, Known::All};
        const auto c = case_of(f, f.lengths[0]);
        const KernelFamily family(*c->plan.steps[0].kernel, cuda_dialect(), {90, 4, 227 << 10});
        INFO(words << ": " << text_of(family.classes()[0]));
        CHECK(std::ranges::count(family.classes(), true, &LaunchClass::is_ring) == 0);
    }
}
