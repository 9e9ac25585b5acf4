// What generated kernels compute: their CUDA text run on the CPU, against the naive evaluation of the graph.
#include "tests/jit/emit_run.h"

#include <doctest/doctest.h>

using namespace ng;
using namespace ng::emitted;

REGISTER_EXCEPTION_TRANSLATOR(const Error& error) { return error.text.c_str(); }

namespace {

constexpr PlainCut CUTS[] = {{1, 1, 1}, {3, 64, 1}, {2, 64, 8}, {1, 128, 128}};

void check(Case& c, const Emulation& code, const std::vector<size_t>& kernels)
{
    naive::Evaluation meaning(c.in);
    std::vector<std::vector<char>> first;
    for (const PlainCut& cut : CUTS) {
        Run run(c);
        run.launch(code, kernels, cut);
        for (size_t j = 0; j < c.roots.size(); j++) {
            INFO(c.name << ": " << cut.blocks << " blocks of " << cut.threads << ", " << cut.per_block << " rows each");
            CHECK(difference(c, run, meaning.of(c.meant[j]), j, c.tolerance) == "");
            const std::vector<char> got = run.output(j).bytes();
            if (&cut == CUTS) first.push_back(got);
            else if (c.plan.steps.size() == 1 && !emit(*c.plan.steps[0].kernel, cuda_dialect()).has_rows) CHECK(first[j] == got);
        }
        CHECK(run.spoilt() == "");
    }
}

// Each output missing once: the others are what they were. Gives how often that was.
int check_missing(Case& c, const Emulation& code, const std::vector<size_t>& kernels)
{
    int count = 0;
    for (size_t missing = 0; missing < c.roots.size(); missing++) {
        if (!may_miss(c, missing)) continue;
        Run whole(c), run(c, {.unwanted = int64_t(missing)});
        whole.launch(code, kernels, CUTS[0]), run.launch(code, kernels, CUTS[0]);
        for (size_t j = 0; j < c.roots.size(); j++) {
            INFO(c.name << ", output " << j << " where " << missing << " is not wanted");
            if (j != missing) CHECK(run.output(j).bytes() == whole.output(j).bytes());
        }
        count++;
    }
    return count;
}

}  // namespace

TEST_CASE("cases: every kernel gives what its graph means, however its launch is cut")
{
    Cases all = golden_cases();
    for (auto& c : other_cases()) all.push_back(std::move(c));
    Emulation code;
    std::vector<std::vector<size_t>> kernels;
    for (const auto& c : all) {
        kernels.emplace_back();
        for (const Step& s : c->plan.steps) {
            REQUIRE(s.kernel);
            kernels.back().push_back(code.add(emit(*s.kernel, cuda_dialect()).text));
        }
    }
    if (!code.load()) return;
    int missing = 0;
    for (size_t k = 0; k < all.size(); k++) check(*all[k], code, kernels[k]), missing += check_missing(*all[k], code, kernels[k]);
    CHECK(missing > 20);
}

TEST_CASE("prelude: gelu and silu keep their bounds from end to end")
{
    Emulation code;
    code.add_code("extern \"C\" float gelu(float x) { return gelu_f32(x); }\nextern \"C\" float silu(float x) { return silu_f32(x); }\n");
    if (!code.load()) return;
    const auto check = [&](const char* name, double most, double (*means)(double)) {
        const auto got = reinterpret_cast<float (*)(float)>(code.find(name));
        double worst = 0;
        float  at = 0;
        const auto look = [&](float x) {
            const double want = means(x), unit = std::ldexp(1.0, std::max(std::ilogb(std::max(std::abs(want), 0x1p-149)), -126) - 23);
            const double off = std::abs(double(got(x)) - want) / unit;
            if (!(off <= worst)) worst = off, at = x;
        };
        for (uint32_t code = 0x30000000; code < 0x42d00000; code += 331) look(std::bit_cast<float>(code)), look(-std::bit_cast<float>(code));
        for (const float x : {0x1p-149f, 0x1p-126f, 3e38f, -3e38f}) look(x);
        INFO(name, " ", at);
        CHECK(worst < most);
        CHECK(got(0) == 0);
        CHECK(got(INFINITY) == INFINITY);
        CHECK(std::isnan(got(-INFINITY)));
        CHECK(std::isnan(got(NAN)));
    };
    check("gelu", 7, [](double x) { return 0.5 * x * std::erfc(-x * M_SQRT1_2); });      // a GPU's 2^x and 1 / x may be 5 more
    check("silu", 6, [](double x) { return x < 0 ? x * std::exp(x) / (1 + std::exp(x)) : x / (1 + std::exp(-x)); });
}

TEST_CASE("prelude: sine and cosine keep their bounds from end to end, and are tame as far as quarters of a turn are counted")
{
    Emulation code;
    code.add_code("extern \"C\" float sine(float x) { return sin_f32(x); }\nextern \"C\" float cosine(float x) { return cos_f32(x); }\n"
                  "extern \"C\" float wave(float x, unsigned quarters, bool* is_tame) { return wave_of(x, quarters, *is_tame); }\n");
    if (!code.load()) return;
    const auto wave = reinterpret_cast<float (*)(float, unsigned, bool*)>(code.find("wave"));
    for (const unsigned quarters : {0u, 1u}) {
        const auto got = reinterpret_cast<float (*)(float)>(code.find(quarters ? "cosine" : "sine"));
        double worst = 0;
        float  at = 0;
        int    apart = 0;
        const auto look = [&](float x) {
            const double want = quarters ? std::cos(double(x)) : std::sin(double(x)), unit = std::ldexp(1.0, std::max(std::ilogb(std::max(std::abs(want), 0x1p-149)), -126) - 23);
            const double off = std::abs(double(got(x)) - want) / unit;
            if (!(off <= worst)) worst = off, at = x;
            bool is_tame = true;
            const float tame = wave(x, quarters, &is_tame);
            apart += is_tame != (std::abs(x) < 105615) || (is_tame && std::bit_cast<uint32_t>(tame) != std::bit_cast<uint32_t>(got(x)));
        };
        for (uint32_t code = 0; code < 0x7f800000; code += 1237) look(std::bit_cast<float>(code)), look(-std::bit_cast<float>(code));
        INFO((quarters ? "cosine " : "sine "), at);
        CHECK(worst < 1.6);
        CHECK(apart == 0);
        for (const float x : {INFINITY, -INFINITY, NAN}) CHECK(std::isnan(got(x)));
        CHECK(std::isnan(wave(NAN, quarters, std::array{true}.data())));
        CHECK(got(0) == float(quarters));
        CHECK(std::signbit(got(-0.0f)) == !quarters);
    }
}

// By inverse_of too, of which a little less is tame.
static void check_quotients(Emulation& code, const char* name, const std::vector<float>& numerators, const std::vector<float>& denominators)
{
    const auto divided = reinterpret_cast<float (*)(float, float, bool*)>(code.find(name));
    std::mt19937 random{5};
    int tame = 0, wrong = 0;
    const auto look = [&](float x, float y) {
        bool is_tame = true;
        const float q = divided(x, y, &is_tame);
        tame += is_tame;
        wrong += is_tame && std::bit_cast<uint32_t>(q) != std::bit_cast<uint32_t>(x / y);
        return is_tame;
    };
    for (int i = 0; i < 4000000; i++) {
        const uint32_t mantissa = i % 3 == 0 ? random() & 15 : i % 3 == 1 ? 0x7fffff - (random() & 15) : random() & 0x7fffff;     // hard ones lie at the ends
        const float y = std::bit_cast<float>(uint32_t(mantissa | (127 - 19 + random() % 38) << 23 | (random() & 0x80000000)));
        look(std::bit_cast<float>(uint32_t((random() & 0x807fffff) | (127 - 99 + random() % 198) << 23)), y);
        const float whole = float(random() & 0xffffff);                         // quotients that are nearly halfway
        look(whole * y, y), look((whole + 0.5f) * y, y);
    }
    for (const float x : {0.0f, -0.0f})
        for (const float y : {3.0f, -3.0f}) CHECK(look(x, y));
    CHECK(tame > 10000000);
    CHECK(wrong == 0);
    for (const float x : numerators) CHECK(!look(x, 3));
    for (const float y : denominators) CHECK(!look(1, y));
    for (const float y : {0.0f, -0.0f, INFINITY, -INFINITY, NAN}) CHECK(!look(0, y));
}

TEST_CASE("prelude: quotients and roots are what the language gives, or are not tame")
{
    Emulation code;
    code.add_code("extern \"C\" float by_inverse(float x, float y, bool* is_tame) { return quotient_of(x, inverse_of(y), *is_tame); }\n"
                  "extern \"C\" float divided(float x, float y, bool* is_tame) { return quotient_of(x, y, *is_tame); }\n"
                  "extern \"C\" float root(float x, bool* is_tame) { return root_of(x, *is_tame); }\n");
    if (!code.load()) return;
    check_quotients(code, "by_inverse", {0x1p-101f, 0x1p-149f, 0x1p101f, INFINITY, -INFINITY, NAN}, {0.0f, -0.0f, 0x1p-30f, 0x1p-149f, 0x1p30f, INFINITY, -INFINITY, NAN});
    check_quotients(code, "divided", {0x1p-61f, 0x1p-149f, INFINITY, -INFINITY, NAN}, {0.0f, -0.0f, 0x1p-149f, 0x1p61f, INFINITY, -INFINITY, NAN});
    const auto root = reinterpret_cast<float (*)(float, bool*)>(code.find("root"));
    int tame = 0, wrong = 0;
    for (uint64_t u = 0; u >> 32 == 0; u += 997) {
        const float x = std::bit_cast<float>(uint32_t(u));
        bool is_tame = true;
        const float r = root(x, &is_tame);
        tame += is_tame, wrong += is_tame && std::bit_cast<uint32_t>(r) != std::bit_cast<uint32_t>(std::sqrt(x));
    }
    CHECK(tame > 1900000);
    CHECK(wrong == 0);
    for (const float x : {-0.0f, -1.0f, -INFINITY, INFINITY, NAN, 0x1p-149f}) {
        bool is_tame = true;
        root(x, &is_tame);
        CHECK(!is_tame);
    }
}

TEST_CASE("maps: every row gives what it means in f32, f64 and i32")
{
    Cases all;
    Emulation code;
    std::vector<std::vector<size_t>> kernels;
    for (const Dtype t : {Dtype::f32, Dtype::f64, Dtype::i32})
        for (int o = 0; o < OPS; o++) {
            const Op op = Op(o);
            if (!is_map(op) || (info(op).domain == Domain::Bits && is_float(t))) continue;
            auto c = std::make_unique<Case>(name_of(op), "");
            const bool is_int = is_integer(t);
            c->input("x", op == Op::where ? Dtype::bool_ : t, {29}, op == Op::where ? 0 : is_int ? 1 : op == Op::acosh ? 1.1 : op == Op::atanh || op == Op::asin || op == Op::acos ? -0.9 : -3, op == Op::where ? 2 : is_int ? 9 : op == Op::atanh || op == Op::asin || op == Op::acos ? 0.9 : 4);
            c->input("y", t, {29}, is_int ? 1 : -3, is_int ? 9 : 4);
            c->input("z", t, {29}, is_int ? 1 : -1, is_int ? 9 : 2);
            const std::array<NodeRef, 3> given = {c->real[0], c->real[1], c->real[2]};
            const NodeRef y = build::map(*c->g, op, std::span(given.data(), info(op).arity));
            c->add_out(y, y);
            // The row's bound and a few roundings of its expression, which the naive evaluation does in f64.
            c->tolerance = (2 * std::min(info(op).ulp, 100.f) + 8) * (y->dtype == Dtype::f32 ? 0x1p-24 : 0x1p-53) * (op == Op::pow || op == Op::logaddexp ? 8 : 2);
            c->compile();
            kernels.push_back({code.add(emit(*c->plan.steps[0].kernel, cuda_dialect()).text)});
            all.push_back(std::move(c));
        }
    if (!code.load()) return;
    for (size_t k = 0; k < all.size(); k++) check(*all[k], code, kernels[k]);
}

TEST_CASE("prelude: conversions round to the nearest number of a format, ties to even")
{
    Emulation code;
    for (const Dtype t : {Dtype::f16, Dtype::bf16, Dtype::e4m3, Dtype::e5m2}) {
        const std::string n = name_of(t);
        code.add_code(text("extern \"C\" float number_", n, "(unsigned code) { return f32_of_", n, "(code); }\n"));
        code.add_code(text("extern \"C\" unsigned code_", n, "(float x) { return ", n, "_of_f32(round_", n, "(x)); }\n"));
        code.add_code(text("extern \"C\" unsigned wide_", n, "(double x) { return ", n, "_of_f32(round_", n, "(odd_of_f64(x))); }\n"));
        code.add_code(text("extern \"C\" unsigned whole_", n, "(long long x) { return ", n, "_of_f32(round_", n, "(odd_of_i64(x))); }\n"));
    }
    if (!code.load()) return;
    for (const Dtype t : {Dtype::f16, Dtype::bf16, Dtype::e4m3, Dtype::e5m2}) {
        const std::string n = name_of(t);
        const auto number = reinterpret_cast<float (*)(unsigned)>(code.find("number_" + n));
        const auto narrow = reinterpret_cast<unsigned (*)(float)>(code.find("code_" + n));
        const auto wide = reinterpret_cast<unsigned (*)(double)>(code.find("wide_" + n));
        const auto whole = reinterpret_cast<unsigned (*)(long long)>(code.find("whole_" + n));
        const unsigned half = 1u << (8 * bytes_of(t) - 1);
        int wrong = 0;
        for (unsigned c = 0; c < 2 * half; c++) {
            const double x = number_of(t, c);
            if (std::isnan(x)) {
                wrong += !std::isnan(number(c)) || !std::isnan(number_of(t, narrow(float(x))));
                continue;
            }
            wrong += number(c) != x || std::signbit(number(c)) != std::signbit(x) || (std::isfinite(x) && narrow(float(x)) != c);
            // The next number away from zero, and what lies between.
            const double next = number_of(t, c + 1);
            if ((c & (half - 1)) == half - 1 || !std::isfinite(next) || !std::isfinite(x)) continue;
            const double middle = (x + next) / 2, low = std::nextafter(middle, x), high = std::nextafter(middle, next);
            const unsigned even = c & 1 ? c + 1 : c;
            wrong += narrow(float(middle)) != even || wide(middle) != even || wide(low) != c || wide(high) != c + 1;
            if (std::abs(middle) < 0x1p62 && std::abs(x) > 0x1p20) wrong += whole(int64_t(middle)) != even || whole(int64_t(middle) + (x > 0 ? 1 : -1)) != c + 1;
        }
        INFO(n);
        CHECK(wrong == 0);
        const bool saturates = t == Dtype::e4m3 || t == Dtype::e5m2;
        CHECK(number(narrow(INFINITY)) == (t == Dtype::e4m3 ? 448 : t == Dtype::e5m2 ? 57344 : INFINITY));
        CHECK((wide(1e300) == narrow(INFINITY)) == true);
        CHECK(std::isinf(number(narrow(-3e38f * 2))) == !saturates);
    }
}

TEST_CASE("prelude: random numbers are Philox's, roundings by chance lie beside what was rounded")
{
    Emulation code;
    code.add_code("extern \"C\" void words(long long i, unsigned long long key, unsigned long long step, unsigned* w)\n"
                  "{ const Words r = philox(i, key, step); w[0] = r.w0, w[1] = r.w1, w[2] = r.w2, w[3] = r.w3; }\n"
                  "extern \"C\" double uniform(long long i) { return uniform_f64(i, 3, 4); }\n"
                  "extern \"C\" double normal(long long i) { return normal_f64(i, 3, 4); }\n"
                  "extern \"C\" float chance(float x, unsigned word, int bits) { return stochastic_f32(x, word, bits, -6, 448.0f, true); }\n"
                  "extern \"C\" double chance64(double x, unsigned word, int bits) { return stochastic_bits_f64(x, word, bits); }\n");
    if (!code.load()) return;
    const auto words = reinterpret_cast<void (*)(int64_t, uint64_t, uint64_t, uint32_t*)>(code.find("words"));
    const auto uniform = reinterpret_cast<double (*)(int64_t)>(code.find("uniform"));
    const auto normal = reinterpret_cast<double (*)(int64_t)>(code.find("normal"));
    const auto chance = reinterpret_cast<float (*)(float, uint32_t, int32_t)>(code.find("chance"));
    const auto chance64 = reinterpret_cast<double (*)(double, uint32_t, int32_t)>(code.find("chance64"));
    for (int64_t i = 0; i < 200; i++) {
        const int64_t index = i < 100 ? i : i << 40;
        std::array<uint32_t, 4> w;
        words(index, 0x123456789abcdef, 77, w.data());
        CHECK(w == philox(uint64_t(index), 0x123456789abcdef, 77));
        CHECK(uniform(index) == drawn(NG_UNIFORM, Dtype::f64, philox(uint64_t(index), 3, 4)));
        CHECK(normal(index) == doctest::Approx(drawn(NG_NORMAL, Dtype::f64, philox(uint64_t(index), 3, 4))).epsilon(1e-14));
    }
    // 1 + 3/32 lies 3/4 of the way from 1 to 1 + 1/8, the next of three bits.
    CHECK(chance(1 + 3.f / 32, 0xc0000000, 3) == 1);
    CHECK(chance(1 + 3.f / 32, 0xbfffffff, 3) == 1.125f);
    CHECK(chance(-(1 + 3.f / 32), 0, 3) == -1.125f);
    CHECK(chance(1, 0, 3) == 1);
    CHECK(chance(0x1p-10f, 0x7fffffff, 3) == 0x1p-9f);       // half of the least
    CHECK(chance(0x1p-10f, 0x80000000, 3) == 0);
    CHECK(chance(1000, 0, 3) == 448);
    CHECK(std::isnan(chance(NAN, 0, 3)));
    CHECK(chance64(1 + 0x1p-51 + 0x1p-52, 0xbfffffff, 50) == 1 + 0x1p-50);
    CHECK(chance64(1 + 0x1p-51 + 0x1p-52, 0xc0000000, 50) == 1);
}
