// How tensors of random programs lie: dense, as heads of longer ones, by strides that are known or are said when run.
#include "tests/jit/text_case.h"

#include <algorithm>
#include <numeric>

namespace ng::emitted {
namespace {

enum class Lay : uint8_t { Dense, Head, Known, Any };

Extents constants(const Lengths& l) { return {l.begin(), l.end()}; }

class Laid {
  public:
    Laid(const DrawnProgram& p, size_t run) : p_(p), c_(std::make_unique<Case>("random", "")), plan_dice_(~p.seed), run_dice_(~p.seed + run + 1)
    {
        for (size_t a = 0; a < p.is_open.size(); a++)
            if (p.is_open[a]) c_->in.lengths.push_back(p.runs[run][a]);
        c_->random.seed(unsigned(run_dice_.word()));
    }
    std::unique_ptr<Case> made()
    {
        for (const DrawnInput& in : p_.inputs) input(in);
        for (const DrawnOutput& out : p_.outputs) output(out);
        c_->plan = schedule(c_->roots, c_->targets, int32_t(c_->in.lengths.size()), p_.fusion, nullptr, p_.turned_bytes);
        // As declared no more, but as they lie.
        for (size_t k = 0; k < c_->layouts.size(); k++) c_->layouts[k].strides = constants(in_[k]);
        for (size_t j = 0; j < c_->targets.size(); j++) c_->targets[j].layout.strides = constants(out_[j]);
        return std::move(c_);
    }

  private:
    Lengths sizes(const Extents& dims) const
    {
        Lengths l;
        for (const Extent& e : dims) l.push_back(e.value(c_->in.lengths));
        return l;
    }
    static bool is_known(const Extents& dims) { return std::ranges::all_of(dims, [](const Extent& e) { return e.is_constant(); }); }
    Lay lay(const Extents& dims, bool is_input)
    {
        const int64_t k = plan_dice_.within(0, 99);
        if (p_.is_dense || dims.empty()) return Lay::Dense;
        if (k >= 77) return Lay::Any;
        if (is_known(dims)) return k >= 57 ? Lay::Known : Lay::Dense;
        return k >= 50 && is_input ? Lay::Head : Lay::Dense;
    }
    // Axes in any order, apart or not, backwards or not; of an input one element may stand for all of an axis.
    static Lengths drawn(const Lengths& size, bool is_any, bool is_input, Dice& dice)
    {
        Lengths strides(size.size(), 1);
        std::vector<size_t> order(size.size());
        std::iota(order.begin(), order.end(), 0);
        for (size_t i = dice.chance(50) ? order.size() : 0; i > 1; i--) std::swap(order[i - 1], order[size_t(dice.below(i))]);
        int64_t stride = dice.chance(20) ? dice.within(2, 3) : 1;
        for (const size_t a : order) {
            if (is_input && dice.chance(8)) { strides[a] = 0; continue; }
            strides[a] = dice.chance(15) ? -stride : stride;
            if (size[a] <= 1 && is_any && dice.chance(30)) strides[a] = dice.of<int64_t>({0, 3, -7, 1 << 20});
            stride = stride * std::max<int64_t>(1, size[a]) + (dice.chance(20) ? dice.within(1, 5) : 0);
        }
        return strides;
    }
    // Where it lies in this run; the layout says what is known of that.
    Lengths laid(Layout& l, Lay how, bool is_input)
    {
        Dice plan_dice(plan_dice_.word());               // as many words whatever is drawn
        Lengths size = sizes(l.dims);
        l.strides = dense_strides(l.dims), l.any = how == Lay::Any;
        if (how == Lay::Any && !run_dice_.chance(25)) return drawn(size, true, is_input, run_dice_);
        if (how == Lay::Known) {
            const Lengths strides = drawn(size, false, is_input, plan_dice);
            l.strides = constants(strides);
            return strides;
        }
        if (how != Lay::Head) return sizes(l.strides);
        for (size_t a = 0; a < size.size(); a++)
            if (!l.dims[a].is_constant()) size[a] += run_dice_.within(0, 3);
        Lengths strides(size.size(), 1);
        for (size_t a = size.size(); a-- > 1;) strides[a - 1] = strides[a] * size[a];
        return strides;
    }
    void input(const DrawnInput& in)
    {
        Layout l;
        l.dtype = in.type, l.dims = in.dims;
        in_.push_back(laid(l, lay(in.dims, true), true));
        naive::Value v = c_->numbers(in.dims, in.low, in.high);
        for (double& x : v.v) x = is_float(in.type) ? round_to(in.type, x) : std::floor(x);
        if (p_.is_wild && is_float(in.type) && bytes_of(in.type) > 1 && !v.v.empty())
            for (int64_t i = run_dice_.within(0, 5); i > 0; i--) v.v[size_t(run_dice_.below(v.v.size()))] = run_dice_.of({double(NAN), double(INFINITY), -double(INFINITY), 0.0});
        share(v, in_.back());
        const auto index = int64_t(c_->layouts.size());
        c_->layouts.push_back(l);
        c_->in.params[index] = std::move(v);
        const NodeRef n = build::param(*c_->g, uint32_t(index), l);
        c_->call(in.name.c_str(), n, n);
    }
    // What lies in one place is one number.
    static void share(naive::Value& v, const Lengths& strides)
    {
        if (std::ranges::find(strides, 0) == strides.end()) return;
        std::map<int64_t, double> there;
        const auto place = [&](const naive::Index& i) { return std::inner_product(i.begin(), i.end(), strides.begin(), int64_t(0)); };
        naive::each(v.dims, [&](const naive::Index& i, int64_t k) { v.v[size_t(k)] = there.try_emplace(place(i), v.v[size_t(k)]).first->second; });
    }
    void output(const DrawnOutput& out)
    {
        const std::vector<std::string_view> names(c_->names.begin(), c_->names.end());
        const NodeRef y = parse(*c_->g, out.words, names, c_->real);
        Target t;
        t.layout.dtype = y->dtype, t.layout.dims = y->dims();
        const Lay how = lay(t.layout.dims, false);
        out_.push_back(laid(t.layout, how, false));
        t.declared = how != Lay::Dense;
        const Layout& first = c_->layouts[0];
        const bool is_taken = std::ranges::any_of(c_->targets, [](const Target& other) { return other.alias_param == 0; });
        const bool may_be_over = first.dtype == y->dtype && first.dims == y->dims() && first.strides == dense_strides(y->dims()) && !first.any && !is_taken;
        if (out.is_over_first && may_be_over) {
            t.layout.strides = dense_strides(y->dims()), t.layout.any = t.declared = false, t.alias_param = 0;
            out_.back() = in_[0];
        }
        c_->roots.push_back(y), c_->meant.push_back(y), c_->targets.push_back(t);
    }

    const DrawnProgram&   p_;
    std::unique_ptr<Case> c_;
    Dice                  plan_dice_, run_dice_;         // the same for all runs; of this one
    std::vector<Lengths>  in_, out_;                     // strides
};

}  // namespace

std::unique_ptr<Case> case_of(const DrawnProgram& p, size_t run) { return Laid(p, run).made(); }

}  // namespace ng::emitted
