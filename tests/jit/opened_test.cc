// Kernels made general: one text for all lengths and distances, and the values that were meant.
#include "jit/opened.h"
#include "tests/jit/emit_families.h"
#include "tests/jit/planned.h"

#include <doctest/doctest.h>

using namespace ng;
using namespace ng::emitted;

REGISTER_EXCEPTION_TRANSLATOR(const Error& error) { return error.text.c_str(); }

namespace {

constexpr DeviceTraits HOPPER = {90, 132, 227 << 10};

std::shared_ptr<Kernel> only_kernel(const Plan& plan)
{
    demand(plan.steps.size() == 1 && plan.steps[0].kernel, "the plan is not one kernel");
    return plan.steps[0].kernel;
}

std::vector<std::string> texts_of(const Kernel& kernel)
{
    const std::optional<Opened> opened = open(kernel);
    demand(opened.has_value(), "the kernel is not opened");
    const KernelFamily family(opened->kernel, cuda_dialect(), HOPPER);
    std::vector<std::string> texts;
    for (size_t i = 0; i < family.classes().size(); i++) texts.push_back(family.source(i).text);
    return texts;
}
std::vector<std::string> texts_of(const char* words, const Extents& dims, Dtype type, int32_t lengths = 0)
{
    return texts_of(*only_kernel(planned({{"x", dims, type}, {"y", dims, type}, {"v", {dims.back()}, type}}, words, {}, NEVER_TURNED, lengths)));
}

const char* const WORDS[] = {"x * 3 + y", "relu(x + v)", "sum(x, 1)", "var(x, 0)", "softmax(x, 1)", "(x - mean(x, 1)) * rsqrt(var(x, 1) + 0.001) * v", "sum(x * y)", "max(x, 0)"};

// One case, whose kernel is the opened one and whose lengths are the values of its variables.
struct Generalised {
    std::unique_ptr<Case> made;
    std::vector<KernelFamily> families;
    std::vector<std::vector<size_t>> classes;
};
Generalised generalised(const Family& f, const Lengths& lengths, Emulation& code)
{
    Generalised g{case_of(f, lengths), {}, {}};
    const std::shared_ptr<Kernel> kernel = only_kernel(g.made->plan);
    const std::optional<Opened> opened = open(*kernel);
    demand(opened.has_value(), "the kernel is not opened");
    std::vector<int64_t> values;
    for (const Extent& e : opened->variables) values.push_back(e.value(g.made->in.lengths));
    *kernel = opened->kernel;
    g.made->in.lengths = values;
    const KernelFamily& family = g.families.emplace_back(opened->kernel, cuda_dialect(), HOPPER);
    g.classes.emplace_back();
    for (size_t c = 0; c < family.classes().size(); c++) {
        const KernelSource source = family.source(c);
        g.classes.back().push_back(code.add(source.text, source.functions));
    }
    return g;
}

void check(const Family& f, Generalised& g, const Emulation& code)
{
    for (const int64_t shift : {0, 1}) {
        // What is meant knows nothing of the new variables.
        naive::Evaluation meaning(g.made->in);
        Run run(*g.made, {.shift = shift});
        const std::vector<int32_t> chosen = run.launch(code, g.families, g.classes);
        const std::string caption = text(f.words, " of ", name_of(f.type), ", shift ", shift, ": ", chosen[0] < 0 ? "nothing" : text_of(g.families[0].classes()[size_t(chosen[0])]));
        INFO(caption);
        for (size_t j = 0; j < g.made->roots.size(); j++) CHECK(difference(*g.made, run, meaning.of(g.made->meant[j]), j, g.made->tolerance) == "");
        CHECK(run.spoilt() == "");
    }
}

}  // namespace

TEST_CASE("opened: lengths do not matter for texts, nor whether they are known")
{
    for (const Dtype type : {Dtype::f32, Dtype::f16})
        for (const char* words : WORDS) {
            CAPTURE(words);
            const std::vector<std::string> first = texts_of(words, {Extent(1031), Extent(1033)}, type);
            CHECK(texts_of(words, {Extent(64), Extent(64)}, type) == first);
            CHECK(texts_of(words, {Extent(3), Extent(70000)}, type) == first);
        }
    CHECK(texts_of("softmax(x, 1)", {Extent::variable(0), Extent::variable(1)}, Dtype::f16, 2) == texts_of("softmax(x, 1)", {Extent(5), Extent(7)}, Dtype::f16));
    CHECK(texts_of("sum(x, 0)", {Extent::variable(0), Extent(12)}, Dtype::f32, 1) == texts_of("sum(x, 0)", {Extent(5), Extent(7)}, Dtype::f32));
}

TEST_CASE("opened: axes that are one are one, and rows that lie apart have the same text")
{
    CHECK(texts_of("softmax(x, 2)", {Extent(4), Extent(6), Extent(40)}, Dtype::f32) == texts_of("softmax(x, 1)", {Extent(5), Extent(7)}, Dtype::f32));
    CHECK(texts_of("exp(x[:, :100])", {Extent(5), Extent(700)}, Dtype::f32) != texts_of("exp(x)", {Extent(5), Extent(700)}, Dtype::f32));
    CHECK(texts_of("sum(x[:, 8:100], 1)", {Extent(5), Extent(700)}, Dtype::f32) == texts_of("sum(x, 1)", {Extent(5), Extent(7)}, Dtype::f32));
    CHECK(texts_of("x * 3", {Extent(5), Extent(700)}, Dtype::f32) == texts_of("x * 0.25", {Extent(7)}, Dtype::f32));
}

TEST_CASE("opened: what looks elements up, numbers them or lies side by side nowhere is left")
{
    const Extents dims = {Extent(12), Extent(40)};
    for (const char* words : {"argmax(x, 1)", "take(x, y, 0)", "x[::2, ::2] * 2"}) {
        CAPTURE(words);
        const Dtype types[] = {Dtype::f32, words[0] == 't' ? Dtype::i32 : Dtype::f32};
        const Plan plan = planned({{"x", dims, types[0]}, {"y", {Extent(3)}, types[1]}}, words);
        for (const Step& step : plan.steps)
            if (step.kernel) CHECK(!open(*step.kernel));
    }
}

TEST_CASE("opened: texts for any lengths compute what is meant")
{
    const std::vector<Lengths> lengths = {{3, 8}, {5, 7}, {40, 64}, {17, 129}, {4, 5000}, {3000, 4}, {2, 1}, {4, 0}};
    std::vector<Family> all;
    for (const char* words : {"x * 3 + y", "sum(x, 1)", "var(x, 0)", "softmax(x, 1)", "rsqrt(var(x, 1) + 0.001) * (x - mean(x, 1)) * y", "sum(x * y)", "max(x[:, 1:], 1)", "softmax(x[::2, :], 1)"}) all.push_back({words, {}, Dtype::f32, lengths, 1e-5, false, 1, Known::All});
    all.push_back({"f16(softmax(x, 1))", {}, Dtype::f16, lengths, 0x1p-9, false, 1, Known::All});
    Emulation code;
    std::vector<std::pair<const Family*, Generalised>> made;
    for (const Family& f : all)
        for (const Lengths& l : lengths) {
            const bool has_one_kernel = std::ranges::count(l, 1) == 0 && std::ranges::count(l, 0) == 0;
            if (has_one_kernel) made.emplace_back(&f, generalised(f, l, code));
        }
    if (!code.load()) return;
    for (auto& [f, g] : made) check(*f, g, code);
}
