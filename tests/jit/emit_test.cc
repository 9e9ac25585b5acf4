// Generated texts against their golden files, and what may and may not change a text.
#define DOCTEST_CONFIG_IMPLEMENT
#include "tests/jit/emit_cases.h"

#include <doctest/doctest.h>

#include <cstdio>
#include <fstream>
#include <string_view>

using namespace ng;
using namespace ng::emitted;

REGISTER_EXCEPTION_TRANSLATOR(const Error& error) { return error.text.c_str(); }

namespace {

bool is_updating = false;

std::string read(const std::string& path)
{
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::string> texts(const Case& c, const Dialect& dialect)
{
    std::vector<std::string> all;
    for (const Step& s : c.plan.steps) all.push_back(emit(*s.kernel, dialect).text);
    return all;
}

// What is compiled for a device: of CUDA's texts the one that well aligned buffers take.
KernelSource compiled(const Kernel& kernel, const Dialect& dialect)
{
    if (&dialect != &cuda_dialect()) return emit(kernel, dialect);
    const KernelFamily family(kernel, dialect, {90, 132});
    return family.source(size_t(family.choose({}, {}).which));
}

// The text of one expression of x and y, each of these layouts.
std::vector<std::string> texts_of(std::string_view words, const Extents& dims, const Extents& x_strides, const Extents& y_strides, int32_t lengths = 0)
{
    Case c("a", "b");
    c.in.lengths.assign(size_t(lengths), 3);
    c.input("x", Dtype::f32, dims, 0, 1, x_strides);
    c.input("y", Dtype::f32, dims, 0, 1, y_strides);
    c.out(words);
    c.compile();
    return texts(c, cuda_dialect());
}

}  // namespace

TEST_CASE("golden: kernels of the scheduler are printed as they were")
{
    for (const Dialect* d : {&cuda_dialect(), &opencl_dialect()})
        for (const auto& c : golden_cases())
            for (size_t k = 0; k < c->plan.steps.size(); k++) {
                REQUIRE(c->plan.steps[k].kernel);
                const std::string path = golden_name(*c, *d, k), now = golden_text(*c, compiled(*c->plan.steps[k].kernel, *d), *d, k);
                if (is_updating) std::ofstream(path, std::ios::binary) << now;
                INFO(path << " differs; emit_test --update rewrites it");
                CHECK(read(path) == now);
            }
}

TEST_CASE("key: extents, strides and offsets are not in the text")
{
    const auto dense = texts_of("softmax(x, 1) + y", {6, 50}, {}, {});
    CHECK(dense == texts_of("softmax(x, 1) + y", {100, 3}, {}, {}));
    CHECK(dense == texts_of("softmax(x, 1) + y", {6, 50}, {1, 6}, {60, 1}));
    CHECK(dense == texts_of("softmax(x, 1) + y", {Extent::variable(0), Extent::variable(1)}, {}, {}, 2));
    CHECK(dense != texts_of("softmax(x, 0) + y", {6, 50}, {}, {}));
    CHECK(texts_of("x[1:5] - y[2:6]", {6, 50}, {}, {}) == texts_of("x[0:4] - y[0:4]", {6, 50}, {1, 6}, {}));
    CHECK(texts_of("x[::2] - y[::-2]", {6, 50}, {}, {}) == texts_of("x[3:] - y[:3]", {6, 50}, {}, {}));
}

TEST_CASE("key: constants, scalars and keys are not in the text")
{
    const auto first = texts_of("x * 1.5 + y", {6, 50}, {}, {});
    CHECK(first == texts_of("x * -7.25 + y", {6, 50}, {}, {}));
    CHECK(first != texts_of("x * 1.5 - y", {6, 50}, {}, {}));
    const auto scaled = [](double by) {
        Case c("a", "b");
        c.input("x", Dtype::f32, {5});
        c.scalar("s", Dtype::f32, by);
        c.out("x * s");
        c.compile();
        return texts(c, opencl_dialect());
    };
    CHECK(scaled(1) == scaled(2));
    const auto drawn = [](uint64_t key, uint64_t step) {
        Case c("a", "b");
        c.draw("u", NG_NORMAL, Dtype::f32, {3, 3}, key, step);
        c.out("u * 2.0");
        c.compile();
        return texts(c, cuda_dialect());
    };
    CHECK(drawn(1, 2) == drawn(3, 1ull << 40));
}

TEST_CASE("numbers: fields lie where C puts them, each filled with its own")
{
    Case c("a", "b");
    c.in.lengths = {5};
    c.input("x", Dtype::f32, {Extent::variable(0), 8});
    c.scalar("h", Dtype::f16, 1.5);
    c.scalar("b", Dtype::bool_, 1);
    c.out("where(b, x * h + 0.25, 0)");
    c.compile();
    const KernelSource s = emit(*c.plan.steps[0].kernel, cuda_dialect());
    std::vector<char> out(s.number_bytes);
    fill_numbers(s, c.in.lengths, c.scalars.data(), 1, out.data());
    uint32_t next = 0;
    int constants = 0, scalars = 0;
    for (const NumberField& f : s.numbers) {
        CHECK(f.offset == next);
        CHECK(f.offset % uint32_t(bytes_of(f.type)) == 0);
        next += uint32_t(bytes_of(f.type));
        uint64_t got = 0;
        std::memcpy(&got, out.data() + f.offset, size_t(bytes_of(f.type)));
        constants += f.kind == NumberKind::Constant;
        scalars += f.kind == NumberKind::Scalar;
        const uint64_t want = f.kind == NumberKind::Length ? uint64_t(f.extent.value(c.in.lengths)) : f.type == Dtype::f16 ? 0x3e00 : 1;
        if (f.kind == NumberKind::Length || f.kind == NumberKind::Scalar) CHECK(got == want);
    }
    CHECK(constants == 2);
    CHECK(scalars == 2);
    CHECK(s.number_bytes == (next + 7) / 8 * 8);
}

int main(int count, char** words)
{
    for (int i = 1; i < count; i++) is_updating |= std::string_view(words[i]) == "--update";
    return doctest::Context(count, words).run();
}
