// Every text that a kernel may need for CUDA, whatever its lengths and addresses: all listed, all right, each chosen where it fits.
#include "tests/jit/emit_families.h"

using namespace ng;
using namespace ng::emitted;

REGISTER_EXCEPTION_TRANSLATOR(const Error& error) { return error.text.c_str(); }

namespace {

const std::vector<Lengths> SMALL = {{3, 8}, {5, 7}, {1, 1}, {17, 40}, {0, 5}, {4, 0}};

}  // namespace

TEST_CASE("points: vectors where memory allows, elements where not, with rows beside a matrix")
{
    check_all({
                  {"x * 1.5 + y", {}, Dtype::f32, SMALL, 1e-6, true},
                  {"f16(relu(x * y + 0.5))", {}, Dtype::f16, {{3, 8}, {5, 7}, {33, 64}, {2, 3000}}, 0x1p-10, true},
                  {"gelu(x) + tanh(y)", {"x * y"}, Dtype::f32, SMALL},
                  {"x + 1", {}, Dtype::i8, SMALL},
                  {"x[:, ::-1] + permute(permute(y, [1, 0]), [1, 0])", {}, Dtype::f64, SMALL},
              },
              {90, 4});
}

TEST_CASE("points: rows of odd lengths, whose vectors go over their ends")
{
    std::vector<Family> all;
    for (const Lengths& lengths : {Lengths{37, 41}, Lengths{4, 3}, Lengths{3, 1}, Lengths{2, 1025}})
        for (const char* words : {"f16(x + y)", "f16(relu(x * y + 0.5))"}) all.push_back({words, {}, Dtype::f16, {lengths}, 0x1p-10, true, 2, Known::All});
    all.push_back({"f16(x[1:, 1:] + y[:-1, :-1])", {}, Dtype::f16, {{21, 64}}, 0x1p-10, false, 2, Known::All});
    all.push_back({"x[:, ::-1] + y", {"x[::-1, :]"}, Dtype::i8, {{13, 7}}, 0, false, 2, Known::All});
    check_all(all, {90, 4});
}

TEST_CASE("tiles: loads along another axis than stores")
{
    const std::vector<Lengths> lengths = {{64, 64}, {3, 8}, {67, 72}, {130, 65}, {5, 200}, {0, 5}};
    std::vector<Family> all;
    for (const Lengths& l : lengths)
        for (const Known known : {Known::Nothing, Known::All}) {
            if (known == Known::All && l[0] < 60) continue;
            all.push_back({"permute(x, [1, 0]) * 2 + 1", {}, Dtype::f16, {l}, 1e-6, false, 1, known});
            all.push_back({"permute(x[:60, :60], [1, 0]) + y[:60, :60]", {}, Dtype::f32, {l}, 1e-6, false, 1, known});
            all.push_back({"f16(permute(x, [1, 0]))", {"permute(y, [1, 0])"}, Dtype::f32, {l}, 0x1p-10, false, 1, known});
        }
    std::erase_if(all, [](const Family& f) { return f.lengths[0][0] < 60 || f.lengths[0][1] < 60 ? f.words[9] == '[' || f.lengths[0][0] == 0 : false; });
    all.push_back({"permute(x, [1, 0]) - 0.5", {}, Dtype::f64, lengths, 1e-12, false, 3});
    all.push_back({"permute(x[::-1, :], [1, 0]) + 1", {}, Dtype::i8, lengths, 0, false, 3});
    for (const Lengths& l : {Lengths{1050002, 2}, Lengths{700001, 3}, Lengths{300004, 7}, Lengths{175000, 12}, Lengths{1003, 20}, Lengths{260, 33}, Lengths{20, 3000}})
        for (const Dtype t : {Dtype::f16, Dtype::i8}) all.push_back({"permute(x, [1, 0]) + 1", {}, t, {l}, 1e-6, false, 1, Known::All});
    for (const char* words : {"permute(reshape(x, [2, 66, 80]), [0, 2, 1]) * 2", "permute(reshape(x, [2, 80, 66]), [0, 2, 1]) * 2", "permute(reshape(x, [66, 2, 80])[1:, :, ::-1], [2, 1, 0]) + 1"})
        for (const Dtype t : {Dtype::f32, Dtype::i16}) all.push_back({words, {}, t, {{132, 80}}, 1e-6, false, 1, Known::All});
    check_all(all, {90, 4});
}

TEST_CASE("tiles: short axes of no known length, but for their greatest")
{
    std::vector<Family> all;
    for (const auto& [most, side] : {std::pair(Lengths{4 << 20, 12}, "SIDE = 16,"), std::pair(Lengths{4 << 20, 3}, "SIDE = 4,"), std::pair(Lengths{4096, 1000}, "SIDE = 64,"), std::pair(Lengths{12, 4096}, "WIDTH = 8,")}) {
        const bool is_first = most[0] < most[1];
        const int64_t few = std::min(most[0], most[1]), some = std::max<int64_t>(few / 2, 1);
        const std::vector<Lengths> lengths = {is_first ? Lengths{few, 3000} : Lengths{3000, few}, is_first ? Lengths{some, 4096} : Lengths{4096, some}, {2, 3}, {1, 1}, {0, 3}};
        all.push_back({"f16(permute(x, [1, 0]) * 2 + 1)", {}, Dtype::f16, lengths, 0x1p-10, false, 1, Known::Nothing, false, most});
        const KernelFamily family(*case_of(all.back(), lengths[0])->plan.steps[0].kernel, cuda_dialect(), {90, 4}, most);
        INFO(family.source(0).text);
        CHECK((family.source(0).text.find(side) != std::string::npos));
        CHECK((family.source(0).text.find("SIDE") == std::string::npos) == is_first);
    }
    check_all(all, {90, 4});
}

TEST_CASE("divisors: of rows, columns and all points, tame or not")
{
    const std::vector<Lengths> lengths = {{3, 8}, {5, 7}, {40, 128}, {9, 1000}, {3001, 5}};
    check_all({
                  {"x / sum(abs(x), 1)", {}, Dtype::f32, lengths, 1e-6, false, 2},
                  {"x / max(x * 1e-30, 1)", {"max(x, 1)"}, Dtype::f32, lengths, 1e-5, false, 2},
                  {"(x / sum(x > 5, 1)) * 0 + exp(x * 60) / sum(exp(x * 60), 1)", {}, Dtype::f32, {{3, 8}, {5, 7}, {9, 1000}}, 1e-5, false, 2},
                  {"x / max(abs(x), 0)", {}, Dtype::f32, lengths, 1e-6, false, 2},
                  {"f16(exp(f32(x) * 30) / sum(exp(f32(x) * 30), 1))", {}, Dtype::f16, {{5, 7}, {40, 128}}, 0x1p-9, false, 1},
                  {"f16(exp(x * 40) / (max(x, 1) * 0))", {"f16(exp(x * -40) / (1 / (max(abs(x), 1) * 0)))"}, Dtype::f32, {{5, 7}, {40, 128}}, 0x1p-9, false, 1},
                  {"x / 3 + y / 1e30", {}, Dtype::f32, lengths, 1e-6, false, 2},
              },
              {90, 4});
}

TEST_CASE("rows: few threads a row, many, walked in blocks and in parts")
{
    const std::vector<Lengths> lengths = {{3, 8}, {5, 7}, {1, 1}, {40, 128}, {37, 129}, {9, 1000}, {2, 8192}, {5, 8200}, {6, 8301}, {1, 20000}, {1, 66000}, {4, 0}, {0, 4}};
    const std::vector<Family> all = {
                  {"softmax(x, 1)", {}, Dtype::f32, lengths, 1e-5, false, 5},
                  {"(x - mean(x, 1)) * rsqrt(var(x, 1) + 1e-5) * y", {}, Dtype::f32, lengths, 1e-4, true, 5},
                  {"f16(x * rsqrt(mean(x * x, 1) + 1e-5))", {"max(abs(x), 1)"}, Dtype::f16, {{3, 8}, {5, 7}, {40, 128}, {37, 257}, {9, 1000}, {2, 8192}, {5, 16500}, {1, 20000}}, 0x1p-9, false, 4},
                  {"argmax(x, 1)", {"sum(x, 1)", "any(x > 1.99, 1)"}, Dtype::f32, {{3, 8}, {5, 7}, {40, 128}, {37, 129}, {2, 8192}, {5, 8200}, {6, 8300}, {1, 20000}}, 1e-4, false, 4},
                  {"sum(i64(x), 1)", {"min(x, 1)"}, Dtype::i8, {{3, 8}, {5, 7}, {40, 128}, {37, 129}, {1, 20000}}, 0, false, 3},
                  {"logsumexp(x)", {"x * 2"}, Dtype::f64, {{3, 8}, {5, 7}, {40, 300}, {3, 9000}}, 1e-11, false, 2},
    };
    check_all(all, {90, 4});
    check_all({all[0], all[1]}, {80, 4});                // without clusters
}

TEST_CASE("rows: as many threads and vectors as lengths that are known ask for, in one block and in clusters")
{
    std::vector<Family> all;
    for (const int64_t length : {32, 64, 100, 1024, 16384, 32768})
        for (const char* words : {"softmax(x, 1)", "(x - mean(x, 1)) * rsqrt(var(x, 1) + 1e-5)"}) all.push_back({words, {"max(x, 1)"}, Dtype::f32, {{3, length}}, 1e-4, false, 1, Known::All});
    for (const int64_t length : {32, 256, 32768, 65536}) all.push_back({"f16(x * rsqrt(var(x, 1) + 1e-5))", {}, Dtype::f16, {{5, length}}, 0x1p-9, false, 1, Known::All});
    for (const char* words : {"f16(softmax(x, 1))", "argmax(x, 1)", "f16(x * rsqrt(var(x, 1) + 1e-5))"}) all.push_back({words, {"max(x, 1)"}, Dtype::f16, {{3, 50257}}, 0x1p-9, false, 1, Known::All});
    check_all(all, {90, 4});
}

TEST_CASE("rows: peeled where vectors do not divide them, held by teams, blocks and clusters, and walked")
{
    std::vector<Family> all;
    for (const int64_t length : {9, 17, 33, 97, 193, 255, 1001, 2049, 8193, 30003, 32769, 50257})
        for (const char* words : {"f16(softmax(x, 1))", "f16((x - mean(x, 1)) * rsqrt(var(x, 1) + 1e-5) * y)"}) all.push_back({words, {"max(x, 1)"}, Dtype::f16, {{9, length}}, 0x1p-9, true, 2, Known::All});
    for (const int64_t length : {9, 25, 97, 1001, 8193, 50257, 150001}) all.push_back({"(x - mean(x, 1)) * rsqrt(var(x, 1) + 1e-5)", {"prod(x / 2, 1)", length < 192 ? "min(x, 1)" : "argmax(x, 1)"}, Dtype::f32, {{5, length}}, 1e-4, false, 2, Known::All});
    for (const int64_t length : {199, 1001, 40001, 150001}) {
        all.push_back({"var(x, 1)", {"sum(x * y, 1)"}, Dtype::f16, {{5, length}}, 0x1p-9, true, 1, Known::All});
        all.push_back({"argmin(x, 1)", {"x + max(x, 1)"}, Dtype::f16, {{5, length}}, 0x1p-9, true, 2, Known::All});
        all.push_back({"sum(i64(x), 1)", {"any(x > 1, 1)"}, Dtype::i8, {{5, length}}, 0, false, 1, Known::All});
    }
    int peeled = 0;
    for (const Family& f : all) {
        const auto c = case_of(f, f.lengths[0]);
        const KernelFamily family(*c->plan.steps[0].kernel, cuda_dialect(), {90, 4});
        const bool is_peeled = std::ranges::count(family.classes(), true, &LaunchClass::is_peeled) > 0;
        peeled += is_peeled;
    }
    CHECK(peeled == int(all.size()));
    check_all(all, {90, 4});
}

TEST_CASE("rows: of no known length, peeled where they begin anywhere but at the same points, by single elements where they do not")
{
    const std::vector<Lengths> lengths = {{9, 33}, {9, 201}, {5, 256}, {5, 1001}, {3, 1024}, {2, 8192}, {2, 8193}, {2, 16384}, {2, 16391}, {1, 16400}};
    const std::vector<Family> all = {
        {"f16(softmax(x, 1))", {"max(x, 1)"}, Dtype::f16, lengths, 0x1p-9, false, 3},
        {"(x - mean(x, 1)) * rsqrt(var(x, 1) + 1e-5)", {"argmax(x, 1)"}, Dtype::f32, lengths, 1e-4, false, 3},
        {"f16(softmax(x[:, 1:], 1) + y[:, :-1])", {}, Dtype::f16, {{9, 33}, {5, 202}, {5, 257}, {2, 8194}}, 0x1p-9, false, 1},
        {"softmax(x, 1)", {}, Dtype::f64, {{9, 9}, {5, 40}, {5, 201}, {2, 3001}}, 1e-12, false, 2},
        {"softmax(x[:, ::-1], 1)", {}, Dtype::f32, {{9, 33}, {5, 256}, {3, 1001}}, 1e-5, false, 1},
    };
    const auto texts_up_to = [&](const Family& f, int64_t most) {
        const auto c = case_of(f, f.lengths[0]);
        const KernelFamily family(*c->plan.steps[0].kernel, cuda_dialect(), {90, 4}, Lengths{1 << 20, most, 1 << 20, 1, 1 << 20, 1, 1 << 20, 1});
        return family.classes().size();
    };
    for (const Family& f : {all[0], all[1], all[3]}) CHECK(texts_up_to(f, 2048) == 2);
    CHECK(texts_up_to(all[0], 16384) > 2);
    check_all(all, {90, 4});
    check_all({all[0]}, {80, 4});                        // without clusters
}

TEST_CASE("rows: what lies across them, turned by kernels before")
{
    std::vector<Family> all;
    for (const bool is_turned : {true, false})
        for (const Dtype t : {Dtype::f16, Dtype::f32}) {
            all.push_back({t == Dtype::f16 ? "f16(softmax(x + permute(y, [1, 0]), 1))" : "softmax(x + permute(y, [1, 0]), 1)", {}, t, {{96, 96}}, t == Dtype::f16 ? 0x1p-9 : 1e-5, false, 1, Known::All, is_turned});
            all.push_back({"sum(x * permute(y, [1, 0]), 0)", {"max(x, 0)"}, t, {{80, 80}}, 1e-4, false, 1, Known::All, is_turned});
        }
    for (const Family& f : all) CHECK(case_of(f, f.lengths[0])->plan.steps.size() == (f.is_turned ? 2 : 1));
    check_all(all, {90, 4});
}

TEST_CASE("rows: so few that several blocks of a cluster share one that a block would hold")
{
    std::vector<Family> all;
    for (const int64_t length : {8192, 12289, 16384, 32768, 50257})
        for (const Dtype t : {Dtype::f16, Dtype::f32}) all.push_back({t == Dtype::f16 ? "f16(softmax(x, 1))" : "(x - mean(x, 1)) * rsqrt(var(x, 1) + 1e-5)", {"max(x, 1)"}, t, {{2, length}}, t == Dtype::f16 ? 0x1p-9 : 1e-4, false, 1, Known::All});
    int shared = 0;
    for (const Family& f : all) {
        const auto c = case_of(f, f.lengths[0]);
        shared += KernelFamily(*c->plan.steps[0].kernel, cuda_dialect(), {90, 132}).choose({}, {}).launch[0].cluster > 1;
    }
    CHECK(shared == int(all.size()));
    check_all(all, {90, 132});
}

TEST_CASE("folds beside others: far from zero, without bounds, and of nothing but what is left out")
{
    const std::vector<Lengths> lengths = {{2, 16384}, {3, 20000}, {1, 66000}, {3001, 5}, {5, 9000}};
    check_all({
                  {"var(x + 300, 1)", {"var(x + 300, 0)"}, Dtype::f32, lengths, 1e-4, false, 1},
                  {"softmax(where(x > 1, x, log(x * 0)), 1)", {"softmax(where(x > 1.5, x, log(x * 0)), 0)"}, Dtype::f32, lengths, 1e-5, false, 1},
                  {"softmax(where(x > 1.9, 1 / (x * 0), x * 30), 1)", {"softmax(log(x * 0), 0)"}, Dtype::f32, lengths, 1e-5, false, 1},
                  {"(x - mean(x, 1)) / std(x * 1e18, 1)", {"var(x * 1e-18, 0)"}, Dtype::f32, lengths, 1e-5, false, 1},
                  {"softmax(x * 1e3, 1)", {"var(x, 1)"}, Dtype::f64, {{2, 9000}, {1, 66000}, {3001, 5}}, 1e-11, false, 1},
                  {"var(x + 300, 1)", {"mean(x + 300, 1)", "sum(x + 300, 1)"}, Dtype::f32, lengths, 1e-4, false, 1},
                  {"mean(where(x > 1.9, 1 / abs(x * 0), x), 1)", {"var(where(x > 1.9, 1 / abs(x * 0), x), 1)"}, Dtype::f32, lengths, 1e-4, false, 1},
                  {"mean(where(x > 1.9, 1 / (x * 0), x), 0)", {"var(where(x > 1.9, 1 / (x * 0), x), 0)"}, Dtype::f32, lengths, 1e-4, false, 1},
              },
              {90, 4});
}

TEST_CASE("places of the greatest and least: the first of equals, of numbers that are none, and where nothing is beyond where it began")
{
    const std::vector<Lengths> lengths = {{5, 7}, {40, 128}, {3, 9000}, {3001, 5}, {1, 20000}};
    check_all({
                  {"argmax(where(x > 1.5, log(x * 0 - 1), x), 1)", {"argmin(where(x > 1.5, log(x * 0 - 1), x), 1)"}, Dtype::f32, lengths, 0, false, 2},
                  {"argmax(where(x > 1.5, log(x * 0 - 1), x), 0)", {"argmin(where(x > 1.5, log(x * 0 - 1), x), 0)"}, Dtype::f32, lengths, 0, false, 2},
                  {"argmax(log(x * 0), 1)", {"argmin(1 / abs(x * 0), 1)", "argmax(rint(x), 1)"}, Dtype::f32, lengths, 0, false, 2},
                  {"argmax(log(x * 0), 0)", {"argmin(1 / abs(x * 0), 0)", "argmin(rint(x), 0)"}, Dtype::f32, lengths, 0, false, 2},
                  {"argmax(x - x, 1)", {"argmin(x, 1)"}, Dtype::i32, lengths, 0, false, 2},
              },
              {90, 4});
}

TEST_CASE("columns: of known lengths, held by few threads, many, and a block that fills a processor")
{
    std::vector<Family> all;
    for (const int64_t length : {60, 250, 500, 700, 1024})
        for (const int64_t width : {8, 72}) all.push_back({"f16((x - mean(x, 0)) * rsqrt(var(x, 0) + 1e-5))", {"max(x, 0)"}, Dtype::f16, {{length, width}}, 0x1p-9, false, 1, Known::All});
    all.push_back({"softmax(x, 0)", {}, Dtype::f32, {{1000, 36}}, 1e-5, false, 1, Known::All});
    for (const int64_t length : {33, 65, 97, 129, 200, 256})
        for (const Dtype t : {Dtype::f16, Dtype::f32}) all.push_back({t == Dtype::f16 ? "f16(softmax(x, 0))" : "softmax(x, 0)", {}, t, {{length, 264}}, t == Dtype::f16 ? 0x1p-9 : 1e-5, false, 1, Known::All});
    check_all(all, {90, 4});
}

TEST_CASE("rows and columns: what whole tensors lie along counts, not what few numbers beside them do")
{
    for (const auto& [words, are_columns] : {std::pair("sum(x * y[:, :1], 0)", true), std::pair("sum(y[:, :1] * x, 0)", true), std::pair("max(y[:, :1] - x, 0)", true), std::pair("sum(x * y[:1, :], 1)", false)}) {
        const Family f{words, {}, Dtype::f32, {{3000, 72}}, 1e-4, false, 1, Known::All};
        const auto c = case_of(f, f.lengths[0]);
        const KernelFamily family(*c->plan.steps[0].kernel, cuda_dialect(), {90, 4});
        INFO(words << ": " << text_of(family.classes()[0]));
        CHECK((family.classes()[0].form == Form::Columns) == are_columns);
        check_all({f}, {90, 4});
    }
}

TEST_CASE("columns: so many that each thread has some of its own")
{
    std::vector<Family> all;
    for (const Lengths& l : {Lengths{3, 4101}, Lengths{2, 16500}, Lengths{16, 16400}, Lengths{40, 16600}, Lengths{13, 2051}})
        for (const Known known : {Known::Nothing, Known::All}) {
            all.push_back({"softmax(x, 0)", {"sum(x, 0)"}, Dtype::f32, {l}, 1e-5, false, 1, known});
            all.push_back({"f16((x - mean(x, 0)) * rsqrt(var(x, 0) + 1e-5) + y)", {}, Dtype::f16, {l}, 0x1p-9, true, 1, known});
            all.push_back({"sum(x, 0)", {"argmax(x, 0)"}, Dtype::f16, {l}, 1e-5, false, 1, known});
            all.push_back({"max(x, 0)", {"var(x, 0)"}, Dtype::f32, {l}, 1e-5, false, 1, known});
        }
    all.push_back({"(x - mean(x, 0)) * rsqrt(var(x, 0) + 1e-5) + y", {"sum(x, 0)"}, Dtype::f32, {{0, 16500}}, 1e-5, true, 0, Known::All});
    check_all(all, {90, 4});
}

TEST_CASE("columns: folds across the fastest axis, whole and in parts")
{
    const std::vector<Lengths> lengths = {{8, 3}, {5, 8}, {1, 1}, {128, 40}, {129, 37}, {3000, 4}, {3001, 5}, {70, 300}, {2100, 248}, {4, 0}, {0, 4}};
    check_all({
                  {"sum(x, 0)", {"max(x, 0)"}, Dtype::f32, {{8, 3}, {5, 8}, {1, 1}, {128, 40}, {129, 37}, {3000, 4}, {3001, 5}, {70, 300}}, 1e-4, false, 3},
                  {"(x - mean(x, 0)) * rsqrt(var(x, 0) + 1e-5) * y", {}, Dtype::f32, lengths, 1e-4, true, 3},
                  {"f16(softmax(x, 0))", {}, Dtype::f16, lengths, 0x1p-9, false, 3},
                  {"argmin(x, 0)", {"sum(x * y, 0)"}, Dtype::f32, {{8, 3}, {5, 8}, {128, 40}, {129, 37}, {3000, 4}, {3001, 5}}, 1e-4, false, 3},
              },
              {90, 4});
    // So many parts that a thread has more of them than it asks for at once.
    check_all({{"sum(x, 0)", {"max(x, 0)"}, Dtype::f32, {{20500, 32}}, 1e-4, false, 1, Known::All}, {"var(x, 0)", {}, Dtype::f16, {{20500, 32}}, 1e-4, false, 1, Known::All}}, {90, 16});
}
