// Runs of a random program: its memory laid in several ways, outputs compared, what lies beside them looked at.
#include "tests/jit/text_trial.h"

#include "tests/jit/text_case.h"

#include <unordered_set>

namespace ng::emitted {
namespace {

struct Trait {
    const char* name;
    bool (*is_so)(const LaunchClass& c, const Geometry& g);
};
#define TRAIT(name, condition) {name, []([[maybe_unused]] const LaunchClass& c, [[maybe_unused]] const Geometry& g) { return condition; }},
constexpr Trait TRAITS[] = {
    TRAIT("points by vectors", c.form == Form::Points && c.width > 1)
    TRAIT("points one by one", c.form == Form::Points && c.width == 1)
    TRAIT("rows held", c.form == Form::Held)
    TRAIT("rows walked", c.form == Form::Walked)
    TRAIT("columns", c.form == Form::Columns)
    TRAIT("rows in parts", c.is_split)
    TRAIT("full rows", c.is_full)
    TRAIT("large rows", c.is_large)
    TRAIT("blocks that stay", c.is_staying && !c.is_ring && !c.is_keeping)
    TRAIT("blocks that keep what is dear", c.is_keeping)
    TRAIT("rings", c.is_ring)
    TRAIT("lines of columns", c.log_line > 0)
    TRAIT("peeled rows", c.is_peeled)
    TRAIT("clusters", g.launch[0].cluster > 1)
    TRAIT("several functions", g.launches > 1)
    TRAIT("scratch memory", g.scratch_bytes > 0)
};
#undef TRAIT

// What roundings leave of |value| + 1: sums in f32 and f64 whose terms cancel, a few units of what narrower ones are; the meaning rounds nothing.
double tolerance_of(const Node& n, std::unordered_set<const Node*>& seen)
{
    if (!seen.insert(&n).second) return 0;
    double most = 0x1p-41;
    if (n.op == Op::prod) most = 0x1p-7;
    if (is_float(n.dtype) && (n.op == Op::cast || ((is_map(n.op) || is_fold(n.op)) && n.dtype == Dtype::f32))) {
        const int mantissa = info(n.dtype).mantissa;
        most = std::max(most, std::ldexp(mantissa > 20 ? 0x1p11 : mantissa > 5 ? 4 : 2, -mantissa));
    }
    for (size_t i = 0; i < n.args().size(); i++) most = std::max(most, tolerance_of(*n.arg(i), seen));
    return most;
}
// A sum's terms may cancel until nothing is left.
bool is_sum(const Node& n) { return n.op == Op::sum || (n.op == Op::cast && is_sum(*n.arg(0))); }

template <class T> std::string listed(const T& numbers)
{
    std::string all;
    for (const auto& x : numbers) all += text(all.empty() ? "" : " ", x);
    return all;
}

}  // namespace

TextTrial::TextTrial(uint64_t seed, uint64_t number) : number_(number)
{
    Dice dice(seed + number * 0x9e3779b97f4a7c15u);
    for (;;) {
        program_ = TextDrawing(dice.word()).program();
        try {
            if (prepare()) return;
        } catch (const Error& e) {
            if (e.status == NG_E_BUG) throw Error(NG_E_BUG, text(e.text, "\n", words()));
        }
        variants_.clear(), classes_.clear(), families_.clear(), cases_.clear();
    }
}

bool TextTrial::prepare()
{
    for (size_t r = 0; r < program_.runs.size(); r++) cases_.push_back(case_of(program_, r));
    const Plan& plan = cases_[0]->plan;
    if (!std::ranges::all_of(plan.steps, [](const Step& s) { return bool(s.kernel); })) return false;
    for (const Step& s : plan.steps) {
        families_.emplace_back(*s.kernel, cuda_dialect(), program_.device, program_.is_bounded ? program_.most : Lengths());
        classes_.emplace_back(families_.back().classes().size());
    }
    Dice dice(program_.seed + 1);
    for (size_t r = 0; r < program_.runs.size(); r++)
        for (int i = program_.runs.size() == 1 ? 3 : 2; i > 0; i--) lay(r, dice);
    return !variants_.empty();
}

// Aligned, all or some moved by an element, or each by another number of them; one output is not wanted now and then.
void TextTrial::lay(size_t lengths, Dice& dice)
{
    Case& c = *cases_[lengths];
    const bool is_first = variants_.empty() || variants_.back().lengths != lengths;
    Lying lies;
    lies.shift = is_first ? 0 : dice.of({1, 1, -1, 0}), lies.scattered = !is_first && dice.chance(30) ? dice.word() : 0, lies.is_at_end = dice.chance(60);
    const auto output = size_t(dice.below(c.roots.size()));
    if (c.roots.size() > 1 && !is_first && dice.chance(50) && may_miss(c, output)) lies.unwanted = int64_t(output);
    Variant v{lengths, lies, Run(c, lies), {}};
    for (const Check& k : c.plan.checks)
        if (const int64_t value = k.value.value(v.run.variables()); value < k.low.value(v.run.variables()) || value > k.high.value(v.run.variables())) return;
    v.chosen = v.run.choose(families_);
    variants_.push_back(std::move(v));
}

void TextTrial::add_to(Emulation& code)
{
    for (const Variant& v : variants_)
        for (size_t k = 0; k < families_.size(); k++) {
            if (!v.chosen[k].launches) continue;
            const KernelSource source = families_[k].source(size_t(v.chosen[k].which));
            classes_[k][size_t(v.chosen[k].which)] = code.add(source.text, source.functions);
        }
}

std::string TextTrial::fault(const Emulation& code, std::atomic<size_t>& now)
{
    for (now = 0; now < variants_.size(); now++) {
        std::string wrong;
        try {
            wrong = fault(variants_[now], code);
        } catch (const Error& e) {
            wrong = e.text;
        }
        if (!wrong.empty()) return wrong;
    }
    return {};
}

std::string TextTrial::fault(Variant& v, const Emulation& code)
{
    Case& c = *cases_[v.lengths];
    v.run.launch(code, families_, classes_);
    naive::Evaluation meaning(c.in);
    double count = 1;
    for (const int64_t l : program_.runs[v.lengths]) count *= double(std::max<int64_t>(1, l));
    for (size_t j = 0; j < c.roots.size(); j++) {
        if (int64_t(j) == v.lies.unwanted) continue;
        std::unordered_set<const Node*> seen;
        const std::string wrong = difference(c, v.run, meaning.of(c.meant[j]), j, tolerance_of(*c.meant[j], seen), is_sum(*c.meant[j]) ? 1e-6 * count : 0);
        if (!wrong.empty()) return wrong;
    }
    return v.run.spoilt();
}

std::string TextTrial::words() const
{
    const DeviceTraits& d = program_.device;
    std::string all = text("on ", d.units, " units of ", d.compute, " with ", d.shared_bytes, " shared bytes", program_.turned_bytes == NEVER_TURNED ? "" : ", turned", program_.fusion == Fusion::Usual ? "" : program_.fusion == Fusion::Lean ? ", lean" : ", unfused",
                           program_.is_bounded ? text(", lengths up to ", listed(program_.most)) : "", "\n");
    const auto strides = [&](const Layout& l) { return text(l.any ? " of any strides: " : " with strides ", text_of(l.strides), "\n"); };
    for (size_t k = 0; k < program_.inputs.size(); k++) {
        const DrawnInput& in = program_.inputs[k];
        all += text("    ", in.name, ": ", name_of(in.type), " ", text_of(in.dims), cases_.empty() || k >= cases_[0]->layouts.size() ? "\n" : strides(cases_[0]->layouts[k]));
    }
    for (size_t j = 0; j < program_.outputs.size(); j++) {
        const bool is_built = !cases_.empty() && j < cases_[0]->targets.size();
        all += text("    ", program_.outputs[j].words, is_built && cases_[0]->targets[j].alias_param == 0 ? ", over the first," : "", is_built ? strides(cases_[0]->targets[j].layout) : "\n");
    }
    return all;
}

std::string TextTrial::words_of_run(size_t run) const
{
    if (run >= variants_.size()) return {};
    const Variant& v = variants_[run];
    std::string all = text("    in a space of ", listed(program_.runs[v.lengths]), ", ", v.lies.scattered ? text("scattered by ", v.lies.scattered) : text("shifted by ", v.lies.shift), v.lies.is_at_end ? "" : ", guarded in front",
                           v.lies.unwanted < 0 ? "" : text(", without output ", v.lies.unwanted), "\n");
    for (size_t k = 0; k < v.chosen.size(); k++) {
        const Geometry& g = v.chosen[k];
        if (!g.launches) continue;
        all += text("    ", text_of(families_[k].classes()[size_t(g.which)]), ":");
        for (int32_t f = 0; f < g.launches; f++) all += text(f ? ", " : " ", g.launch[size_t(f)].blocks, " blocks of ", g.launch[size_t(f)].threads, g.launch[size_t(f)].cluster > 1 ? text(" in clusters of ", g.launch[size_t(f)].cluster) : "");
        all += "\n";
    }
    return all;
}

void TextTrial::count(std::set<std::string>& met) const
{
    for (const Variant& v : variants_)
        for (size_t k = 0; k < families_.size(); k++)
            for (const Trait& t : TRAITS)
                if (v.chosen[k].launches && t.is_so(families_[k].classes()[size_t(v.chosen[k].which)], v.chosen[k])) met.insert(t.name);
}

std::vector<std::string> missing_texts(const std::set<std::string>& met)
{
    std::vector<std::string> all;
    for (const Trait& t : TRAITS)
        if (!met.contains(t.name)) all.push_back(t.name);
    return all;
}

}  // namespace ng::emitted
