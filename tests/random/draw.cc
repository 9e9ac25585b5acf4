// From a seed to a whole program: its size, its lengths, its nodes, its outputs and where they lie.
#include "tests/random/draw.h"

#include <algorithm>

namespace programs {
namespace {

constexpr int64_t MOST_SLACK = 9;      // of lengths, beyond those of all runs
constexpr int TRIES = 12;              // for one node
constexpr Real HUGE_VALUE = 1e6L;      // beyond it values are not tame
constexpr int SHARE = 5;               // at most one in so many may say nothing

struct Weight { Form form; int weight; };
constexpr Weight WEIGHTS[] = {
    {Form::Map, 90}, {Form::Reduce, 16}, {Form::Norm, 5}, {Form::Cast, 12}, {Form::Stochastic, 3}, {Form::Bitcast, 3}, {Form::Reshape, 8},
    {Form::Broadcast, 5}, {Form::Permute, 8}, {Form::Slice, 12}, {Form::Window, 4}, {Form::Concat, 8}, {Form::View, 4}, {Form::Take, 6},
    {Form::Put, 7}, {Form::Scan, 6}, {Form::Segment, 4}, {Form::Argsort, 4}, {Form::Matmul, 8}, {Form::Conv, 3}, {Form::ConvDx, 2},
    {Form::ConvDw, 2}, {Form::Pool, 4}, {Form::PoolDx, 2}, {Form::Random, 4}, {Form::Iota, 3}, {Form::Constant, 2}, {Form::Length, 1},
    {Form::Mark, 5}, {Form::Input, 8},
};

Form weighted(Dice& dice)
{
    int64_t sum = 0;
    for (const Weight& w : WEIGHTS) sum += w.weight;
    int64_t at = dice.within(0, sum - 1);
    for (const Weight& w : WEIGHTS)
        if ((at -= w.weight) < 0) return w.form;
    return Form::Map;
}

}  // namespace

Drawing::Drawing(const Table& table, uint64_t seed) : table_(table), dice_(seed)
{
    p_.seed = seed;
    p_.wild = dice_.chance(15);
    p_.adopt = dice_.chance(50);
    p_.twice = dice_.chance(20);
    p_.world = World(dice_.chance(70) ? 0 : dice_.below(size_t(World::count_)));
}

void Drawing::choose_size()
{
    const int64_t size = dice_.within(0, 999);
    most_ = size < 800 ? 150 : size < 970 ? 3000 : 40000;
    for (int i = 0; i < 3; i++) extents_.push_back(dice_.within(1, 7));
    extents_.push_back(1);
    if (most_ > 150) extents_.push_back(dice_.of<int64_t>({15, 16, 17, 33, 64, 65, 127, 257, 1023, 1024, 1025, 2049}));
    if (most_ > 3000) extents_.push_back(dice_.of<int64_t>({4096, 4097, 8193, 16385, 33000}));
    if (dice_.chance(4)) extents_.push_back(0);
}

void Drawing::choose_runs()
{
    const int lengths = dice_.chance(60) ? 0 : dice_.chance(70) ? 1 : 2;
    const int runs = lengths ? int(dice_.within(1, 3)) : 1;
    p_.compiled = lengths || dice_.chance(60);
    const bool may_be_none = dice_.chance(15);
    for (int r = 0; r < runs; r++) {
        Dims l;
        for (int k = 0; k < lengths; k++) {
            const bool is_long = most_ > 150 && dice_.chance(40);
            l.push_back(is_long ? dice_.of<int64_t>({17, 64, 129, 1000, 1025}) : may_be_none && dice_.chance(30) ? 0 : dice_.within(1, 8));
        }
        p_.runs.push_back(l);
    }
    for (int k = 0; k < lengths; k++) extents_.insert(extents_.end(), 2, -1 - k);
    p_.heads = lengths && dice_.chance(25);
    p_.slack = dice_.chance(50) ? dice_.within(0, MOST_SLACK) : 0;
    values_.resize(p_.runs.size());
}

bool Drawing::tame(const Value& value) const
{
    size_t useless = 0, odd = 0;
    for (const Cell& c : value.cells) {
        if (c.v != c.v || std::isinf(c.v)) odd++;
        else if (is_float(value.type) && std::abs(c.v) > HUGE_VALUE) return false;
        useless += is_bool(value.type) ? c.off > 0.5 : c.off > 0.02 * (1 + double(std::abs(c.v)));
    }
    return useless * SHARE <= value.cells.size() && odd * SHARE <= value.cells.size();
}

// In each run, and where lengths are as great as bounds allow and as tensors are that lend their heads.
bool Drawing::fits(const Extents& dims) const
{
    constexpr int64_t MOST = int64_t(1) << 24;
    Dims greatest;
    for (const Dims& lengths : p_.runs) {
        if (count_of(values_of(dims, lengths)) > most_) return false;
        greatest.resize(lengths.size());
        for (size_t k = 0; k < lengths.size(); k++) greatest[k] = std::max(greatest[k], lengths[k] + MOST_SLACK);
    }
    return count_of(values_of(dims, greatest)) <= MOST;
}

bool Drawing::accept(Node node)
{
    if (!infer(table_, p_, node) || !fits(node.dims)) return false;
    std::vector<Value> all;
    for (size_t r = 0; r < p_.runs.size(); r++) {
        if (p_.wild) continue;
        std::vector<const Value*> args;
        for (const int a : node.args) args.push_back(&values_[r][size_t(a)]);
        all.push_back(Meaning{table_, p_, node, r, args}.value());
        if (!node.weak && node.form != Form::Input && !tame(all.back())) return false;
    }
    for (size_t r = 0; r < all.size(); r++) values_[r].push_back(std::move(all[r]));
    p_.nodes.push_back(std::move(node));
    return true;
}

bool Drawing::grow()
{
    const Form form = weighted(dice_);
    for (int i = 0; i < TRIES; i++) {
        if (form == Form::Input && input(type(), dice_.chance(50) ? beside(at(any()).dims) : some_dims(0, 4), random_fill(dice_)) >= 0) return true;
        Node n = drawn(form);
        if (n.form != Form::Input && std::ranges::none_of(n.args, [](int a) { return a < 0; }) && accept(std::move(n))) return true;
    }
    return false;
}

// ---- outputs

void Drawing::lay(Output& o)
{
    const Node& n = at(o.node);
    const bool plain_only = (p_.compiled && !has_dims(n)) || n.dims.empty();
    for (size_t i = 0; i < p_.inputs.size() && dice_.chance(60); i++) {
        const Input& in = p_.inputs[i];
        const bool taken = std::ranges::any_of(p_.outputs, [&](const Output& other) { return other.over == int(i); });
        const bool fits = in.type == n.type && in.dims == n.dims && !n.dims.empty() && in.lie == Lie::Dense && in.source == (p_.compiled ? Input::Param : Input::Leaf);
        if (!fits || taken || p_.heads || !dice_.chance(60)) continue;
        o.over = int(i), o.shift = dice_.chance(50) ? 0 : int(dice_.within(0, 4));
        if (!plain_only && dice_.chance(20)) o.lie = Lie::Flipped;
        return;
    }
    if (plain_only || !dice_.chance(40)) return;
    o.lie = Lie(dice_.within(0, 4));
    o.any_strides = p_.compiled && dice_.chance(30);
    if (n.dims.size() < 5 && dice_.chance(15)) o.repeat = int(dice_.within(1, 3));
}

bool Drawing::has_dims(const Node& n)
{
    return std::ranges::all_of(n.dims, [](const Polynomial& d) { return d.dim().has_value(); });
}

void Drawing::choose_outputs()
{
    const auto add = [&](int node) {
        Output o{node};
        lay(o);
        p_.outputs.push_back(o);
    };
    const auto can = [&](int i) { return !at(i).weak; };
    int last = int(p_.nodes.size()) - 1;
    while (!can(last)) last--;
    add(last);
    for (int i = 0; i < last; i++)
        if (can(i) && p_.outputs.size() < 5 && dice_.chance(at(i).form == Form::Input ? 3 : 15)) add(i);
    if (dice_.chance(4)) add(last);
    if (!p_.adopt) return;
    std::vector<bool> out(p_.nodes.size(), false), used(p_.nodes.size(), false);
    for (const Output& o : p_.outputs) out[size_t(o.node)] = used[size_t(o.node)] = true;
    for (int i = last; i >= 0; i--)
        if (used[size_t(i)])
            for (const int a : at(i).args) used[size_t(a)] = true;
    for (int i = 0; i <= last; i++)
        if (used[size_t(i)] && !out[size_t(i)] && rounds_by_order(table_, at(i))) add(i);
}

Program Drawing::program()
{
    choose_size();
    choose_runs();
    for (int64_t i = dice_.within(1, 2); i > 0; i--)
        while (input(type(), some_dims(0, 4), random_fill(dice_)) < 0) {}
    const size_t wanted = size_t(dice_.chance(70) ? dice_.within(2, 9) : dice_.within(8, 24));
    for (int failed = 0; p_.nodes.size() < wanted && failed < 8;) failed += !grow();
    choose_outputs();
    return pruned(p_);
}

}  // namespace programs
