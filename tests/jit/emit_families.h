// Expressions whose texts for CUDA are all compiled as C++, and run as the launches of given lengths and addresses choose them.
#pragma once
#include "tests/jit/emit_run.h"

#include <doctest/doctest.h>

#include <set>

namespace ng::emitted {

using Lengths = std::vector<int64_t>;

// Beforehand: no length, the last one, all.
enum class Known : uint8_t { Nothing, Last, All };

// An expression of x and y, and the lengths it is run for.
struct Family {
    const char* words;
    std::vector<const char*> more;                       // further outputs
    Dtype       type = Dtype::f32;
    std::vector<Lengths> lengths;
    double      tolerance = 1e-5;
    bool        row_beside = false;                      // y is a row, else of x's shape
    int64_t     least_classes = 2;
    Known       known = Known::Nothing;
    bool        is_turned = false;                       // so is what lies across rows
    Lengths     most = {};                               // the greatest lengths
};

inline std::unique_ptr<Case> case_of(const Family& f, const Lengths& lengths)
{
    auto c = std::make_unique<Case>(f.words, "");
    Extents dims;
    for (size_t a = 0; a < lengths.size(); a++) {
        const bool is_known = f.known == Known::All || (f.known == Known::Last && a + 1 == lengths.size());
        if (!is_known) c->in.lengths.push_back(lengths[a]);
        dims.push_back(is_known ? Extent(lengths[a]) : Extent::variable(int32_t(a)));
    }
    c->tolerance = f.tolerance;
    c->input("x", f.type, dims, -2, 2);
    c->input("y", f.type, f.row_beside ? Extents{dims.back()} : dims, -2, 2);
    c->out(f.words);
    for (const char* w : f.more) c->out(w);
    c->compile(f.is_turned ? 1 : NEVER_TURNED);
    return c;
}

struct Prepared {
    std::vector<std::unique_ptr<Case>> cases;            // by lengths
    std::vector<KernelFamily> families;                  // by step
    std::vector<std::vector<size_t>> classes;            // by step and class: the kernel's number
};

inline Prepared prepare(const Family& f, Emulation& code, const DeviceTraits& device)
{
    Prepared p;
    for (const Lengths& lengths : f.lengths) p.cases.push_back(case_of(f, lengths));
    for (const Step& s : p.cases[0]->plan.steps) {
        REQUIRE(s.kernel);
        p.families.emplace_back(*s.kernel, cuda_dialect(), device, f.most);
        p.classes.emplace_back();
        for (size_t c = 0; c < p.families.back().classes().size(); c++) {
            const KernelSource source = p.families.back().source(c);
            p.classes.back().push_back(code.add(source.text, source.functions));
        }
    }
    return p;
}

inline void check(const Family& f, Prepared& p, const Emulation& code)
{
    std::vector<std::set<int32_t>> taken(p.families.size());
    for (size_t n = 0; n < p.cases.size(); n++) {
        const auto& c = p.cases[n];
        const Extents dims(f.lengths[n].begin(), f.lengths[n].end());
        naive::Evaluation meaning(c->in);
        for (const int64_t shift : {0, 1, -1}) {
            Run run(*c, {.shift = shift});
            const std::vector<int32_t> chosen = run.launch(code, p.families, p.classes);
            std::string which;
            for (size_t k = 0; k < chosen.size(); k++) {
                taken[k].insert(chosen[k]);
                which += chosen[k] < 0 ? " nothing" : " " + text_of(p.families[k].classes()[size_t(chosen[k])]);
            }
            const std::string caption = text(f.words, " of ", name_of(f.type), ", ", text_of(dims), ", shift ", shift, ":", which);
            INFO(caption);
            for (size_t j = 0; j < c->roots.size(); j++) CHECK(difference(*c, run, meaning.of(c->meant[j]), j, c->tolerance) == "");
            CHECK(run.spoilt() == "");
            // Where a store alone keeps vectors from being aligned, others may be of other threads without it.
            for (size_t missing = 0; shift >= 0 && missing < c->roots.size(); missing++) {
                if (!may_miss(*c, missing)) continue;
                Run other(*c, {.shift = shift, .unwanted = int64_t(missing)});
                (void)other.launch(code, p.families, p.classes);
                for (size_t j = 0; j < c->roots.size(); j++)
                    if (j != missing) CHECK(other.output(j).bytes() == run.output(j).bytes());
            }
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

inline void check_all(const std::vector<Family>& all, const DeviceTraits& device)
{
    Emulation code;
    std::vector<Prepared> prepared;
    for (const Family& f : all) prepared.push_back(prepare(f, code, device));
    if (!code.load()) return;
    for (size_t k = 0; k < all.size(); k++) check(all[k], prepared[k], code);
}

}  // namespace ng::emitted
