// Every text that a kernel may need for CUDA, whatever its lengths and addresses: all listed, all right, each chosen where it fits.
#include "tests/jit/emit_run.h"

#include <set>

using namespace ng;
using namespace ng::emitted;

REGISTER_EXCEPTION_TRANSLATOR(const Error& error) { return error.text.c_str(); }

namespace {

using Lengths = std::vector<int64_t>;

// An expression of x and y, and the lengths it is run for.
struct Family {
    const char* words;
    std::vector<const char*> more;                       // further outputs
    Dtype       type = Dtype::f32;
    std::vector<Lengths> lengths;
    double      tolerance = 1e-5;
    bool        row_beside = false;                      // y is a row, else of x's shape
    int64_t     least_classes = 2;
};

std::unique_ptr<Case> case_of(const Family& f, const Lengths& lengths)
{
    auto c = std::make_unique<Case>(f.words, "");
    c->in.lengths = lengths;
    c->tolerance = f.tolerance;
    const Extent a = Extent::variable(0), b = Extent::variable(1);
    c->input("x", f.type, {a, b}, -2, 2);
    c->input("y", f.type, f.row_beside ? Extents{b} : Extents{a, b}, -2, 2);
    c->out(f.words);
    for (const char* w : f.more) c->out(w);
    c->compile();
    return c;
}

void compare(Case& c, Run& run, const naive::Value& want, size_t j)
{
    const Memory& got = run.output(j);
    const std::vector<int64_t> strides = values(c.targets[j].layout.strides, c.in.lengths);
    const double tolerance = is_float(got.type) ? c.tolerance : 0;
    int64_t wrong = 0;
    std::string first;
    naive::each(want.dims, [&](const naive::Index& i, int64_t k) {
        const double g = got.get(place(i, strides)), w = want.v[size_t(k)];
        if (is_near(g, w, tolerance)) return;
        if (!wrong++) first = text("element ", k, ": ", g, ", not ", w);
    });
    INFO(first);
    CHECK(wrong == 0);
}

struct Prepared {
    std::vector<std::unique_ptr<Case>> cases;            // by lengths
    std::vector<KernelFamily> families;                  // by step
    std::vector<std::vector<size_t>> classes;            // by step and class: the kernel's number
};

Prepared prepare(const Family& f, Emulation& code, const DeviceTraits& device)
{
    Prepared p;
    for (const Lengths& lengths : f.lengths) p.cases.push_back(case_of(f, lengths));
    for (const Step& s : p.cases[0]->plan.steps) {
        REQUIRE(s.kernel);
        p.families.emplace_back(*s.kernel, cuda_dialect(), device);
        p.classes.emplace_back();
        for (size_t c = 0; c < p.families.back().classes().size(); c++) {
            const KernelSource source = p.families.back().source(c);
            p.classes.back().push_back(code.add(source.text, source.functions));
        }
    }
    return p;
}

void check(const Family& f, Prepared& p, const Emulation& code)
{
    std::vector<std::set<int32_t>> taken(p.families.size());
    for (auto& c : p.cases) {
        naive::Evaluation meaning(c->in);
        for (const int64_t shift : {0, 1}) {
            Run run(*c, shift);
            const std::vector<int32_t> chosen = run.launch(code, p.families, p.classes);
            std::string which;
            for (size_t k = 0; k < chosen.size(); k++) {
                taken[k].insert(chosen[k]);
                which += chosen[k] < 0 ? " nothing" : " " + text_of(p.families[k].classes()[size_t(chosen[k])]);
            }
            const std::string caption = text(f.words, " of ", name_of(f.type), ", ", c->in.lengths[0], " x ", c->in.lengths[1], ", shift ", shift, ":", which);
            INFO(caption);
            for (size_t j = 0; j < c->roots.size(); j++) compare(*c, run, meaning.of(c->meant[j]), j);
        }
    }
    for (size_t k = 0; k < taken.size(); k++) {
        std::string missing;
        for (size_t c = 0; c < p.families[k].classes().size(); c++)
            if (!taken[k].contains(int32_t(c))) missing += "; " + text_of(p.families[k].classes()[c]);
        const std::string caption = text(f.words, " of ", name_of(f.type), ", step ", k, ": never taken", missing);
        INFO(caption);
        CHECK(int64_t(taken[k].size()) >= f.least_classes);
    }
}

void check_all(const std::vector<Family>& all, const DeviceTraits& device)
{
    Emulation code;
    std::vector<Prepared> prepared;
    for (const Family& f : all) prepared.push_back(prepare(f, code, device));
    if (!code.load()) return;
    for (size_t k = 0; k < all.size(); k++) check(all[k], prepared[k], code);
}

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

TEST_CASE("rows: few threads a row, many, walked in blocks and in parts")
{
    const std::vector<Lengths> lengths = {{3, 8}, {5, 7}, {1, 1}, {40, 128}, {37, 129}, {9, 1000}, {2, 8192}, {5, 8200}, {6, 8300}, {1, 20000}, {4, 0}, {0, 4}};
    check_all({
                  {"softmax(x, 1)", {}, Dtype::f32, lengths, 1e-5, false, 5},
                  {"(x - mean(x, 1)) * rsqrt(var(x, 1) + 1e-5) * y", {}, Dtype::f32, lengths, 1e-4, true, 5},
                  {"f16(x * rsqrt(mean(x * x, 1) + 1e-5))", {"max(abs(x), 1)"}, Dtype::f16, {{3, 8}, {5, 7}, {40, 128}, {37, 257}, {9, 1000}, {2, 8192}, {5, 16500}, {1, 20000}}, 0x1p-9, false, 4},
                  {"argmax(x, 1)", {"sum(x, 1)", "any(x > 1.99, 1)"}, Dtype::f32, {{3, 8}, {5, 7}, {40, 128}, {37, 129}, {2, 8192}, {5, 8200}, {6, 8300}, {1, 20000}}, 1e-4, false, 4},
                  {"sum(i64(x), 1)", {"min(x, 1)"}, Dtype::i8, {{3, 8}, {5, 7}, {40, 128}, {37, 129}, {1, 20000}}, 0, false, 3},
                  {"logsumexp(x)", {"x * 2"}, Dtype::f64, {{3, 8}, {5, 7}, {40, 300}, {3, 9000}}, 1e-11, false, 2},
              },
              {90, 4});
}

TEST_CASE("columns: folds across the fastest axis, whole and in parts")
{
    const std::vector<Lengths> lengths = {{8, 3}, {5, 8}, {1, 1}, {128, 40}, {129, 37}, {3000, 4}, {3001, 5}, {70, 300}, {4, 0}, {0, 4}};
    check_all({
                  {"sum(x, 0)", {"max(x, 0)"}, Dtype::f32, {{8, 3}, {5, 8}, {1, 1}, {128, 40}, {129, 37}, {3000, 4}, {3001, 5}, {70, 300}}, 1e-4, false, 3},
                  {"(x - mean(x, 0)) * rsqrt(var(x, 0) + 1e-5) * y", {}, Dtype::f32, lengths, 1e-4, true, 3},
                  {"f16(softmax(x, 0))", {}, Dtype::f16, lengths, 0x1p-9, false, 3},
                  {"argmin(x, 0)", {"sum(x * y, 0)"}, Dtype::f32, {{8, 3}, {5, 8}, {128, 40}, {129, 37}, {3000, 4}, {3001, 5}}, 1e-4, false, 3},
              },
              {90, 4});
}
