// Pulls nodes into a kernel: each (node, index forms) becomes one value, its operands first.
#include "jit/lower.h"

#include "jit/number.h"

#include <algorithm>

namespace ng {
namespace {

constexpr size_t MAX_WORDS = 400;        // of one kernel's parameters, of which a GPU takes 4 KB: the rest is its stores'
constexpr size_t MAX_TASKS = 64;
constexpr uint32_t DEEP = 32;            // operations below an operand that is computed before its neighbours
constexpr size_t MAX_VALUES = 2048;      // before another task joins: compilers take more than linear time

uint64_t mixed(uint64_t h, uint64_t v) { return (h ^ v) * 0xff51afd7ed558ccdu ^ (h >> 31); }
uint64_t hash_of(const IndexForms& forms)
{
    uint64_t h = forms.size();
    for (const IndexForm& f : forms) {
        h = mixed(h, f.offset.hash());
        for (const auto& [axis, c] : f.terms) h = mixed(mixed(h, uint64_t(axis)), c.hash());
    }
    return h;
}
size_t numbers_of(ValueKind k) { return k == ValueKind::Gather ? 2 : k == ValueKind::Constant || k == ValueKind::Scalar || k == ValueKind::Length; }
uint64_t key_of(uint32_t node, uint32_t forms) { return uint64_t(forms) << 32 | node; }

}  // namespace

uint32_t KernelBuilder::intern(const IndexForms& forms)
{
    const uint64_t h = hash_of(forms);
    for (auto [i, end] = forms_index_.equal_range(h); i != end; ++i)
        if (forms_[i->second] == forms) return i->second;
    forms_.push_back(forms);
    forms_index_.emplace(h, uint32_t(forms_.size() - 1));
    return uint32_t(forms_.size() - 1);
}

int32_t KernelBuilder::found(uint32_t node, uint32_t forms) const
{
    const int32_t* const at = memo_.find(key_of(node, forms));
    return at ? *at : -1;
}

void KernelBuilder::remember(uint32_t node, uint32_t forms, int32_t value)
{
    if (memo_.try_emplace(key_of(node, forms), value).second) added_.push_back(key_of(node, forms));
}

int32_t KernelBuilder::add_value(Value v)
{
    numbers_ += numbers_of(v.kind);
    kernel_.values.push_back(std::move(v));
    return int32_t(kernel_.values.size()) - 1;
}

// A value whose encoding counts: f32(x) of a narrow x is x itself, where only its number does.
int32_t KernelBuilder::as_type(int32_t value, Dtype t)
{
    if (kernel_.values[size_t(value)].type == t) return value;
    Value v{ValueKind::Convert};
    v.type = t, v.args[0] = value;
    return add_value(std::move(v));
}

// Casts between types that registers hold alike are no instruction; where the encoding counts, they become one.
int32_t KernelBuilder::typed(int32_t value, Dtype t)
{
    if (kernel_.values[size_t(value)].type == t) return value;
    Value v{ValueKind::Convert};
    v.type = t, v.args[0] = value;
    return add_value(std::move(v));
}

int32_t KernelBuilder::add_access(Access a)
{
    for (size_t i = 0; i < kernel_.accesses.size(); i++)
        if (kernel_.accesses[i] == a) return int32_t(i);
    kernel_.accesses.push_back(std::move(a));
    return int32_t(kernel_.accesses.size()) - 1;
}

void KernelBuilder::note_read(int32_t buffer)
{
    if (std::ranges::find(read_, buffer) == read_.end()) read_.push_back(buffer);
}

int32_t KernelBuilder::load(const View& view, uint32_t forms, uint32_t stored)
{
    Value v{ValueKind::Load};
    v.type = view.dtype, v.buffer = view.buffer, v.access = add_access(access_of(view, forms_[forms], kernel_.axes.size()));
    loaded_.push_back(stored), note_read(v.buffer);
    const uint64_t key = key_of(uint32_t(v.buffer), uint32_t(v.access)) * 31 + uint64_t(v.type);
    for (auto [i, end] = loads_.equal_range(key); i != end; ++i) {
        const auto at = size_t(i->second);
        if (at >= kernel_.values.size()) continue;               // from before a rollback
        const Value& o = kernel_.values[at];
        if (o.kind == ValueKind::Load && o.buffer == v.buffer && o.access == v.access && o.type == v.type) return i->second;
    }
    const int32_t at = add_value(std::move(v));
    loads_.emplace(key, at);
    return at;
}

int32_t KernelBuilder::index_value(const Extents& dims, const IndexForms& forms)
{
    View numbering{-1, Dtype::i64, 0, dims, dense_strides(dims)};
    Value v{ValueKind::Index};
    v.type = Dtype::i64, v.access = add_access(access_of(numbering, forms, kernel_.axes.size()));
    return add_value(std::move(v));
}

// ---- one node ----------------------------------------------------------------------------------

bool KernelBuilder::expand_movement(Pending& p, std::vector<Pending>& stack, Refusal& why)
{
    const Node& n = (*graph_)[p.node];
    const uint32_t bottom = stores_->bottom(p.node), operand = graph_->arg(p.node, 0);
    const bool own = owns(bottom) || !may_read(bottom) || (p.node == placing_ && bottom == p.node);
    if (!own)
        if (const View* v = stores_->viewed(p.node)) return remember(p.node, p.forms, load(*v, p.forms, stores_->bottom(p.node))), true;
    if (n.op == Op::reshape) {
        const auto below = through_reshape(n.dims(), n.arg(0)->dims(), forms_[p.forms], kernel_.axes, why.split);
        if (!below) {
            why.store = why.split.axis >= 0 || own ? -1 : int32_t(p.node);
            return false;
        }
        p.below = intern(*below);
    } else if (n.op == Op::view) {
        why.store = own ? -1 : int32_t(operand);
        return false;
    } else {
        p.below = intern(through(n, IndexForms(forms_[p.forms])));
    }
    const uint32_t below = p.below;          // p lies in the stack, which may move
    stack.push_back({operand, below});
    return true;
}

bool KernelBuilder::expand_take(Pending& p, std::vector<Pending>& stack, Refusal& why)
{
    const Node& n = (*graph_)[p.node];
    const uint32_t x = graph_->arg(p.node, 0);
    if (const uint32_t bottom = stores_->bottom(x); owns(bottom) || !may_read(bottom)) return false;
    if (!stores_->viewed(x)) return why.store = int32_t(x), false;
    const IndexForms& all = forms_[p.forms];
    const auto first = all.begin() + n.value;
    p.below = intern(IndexForms(first, first + n.arg(1)->rank()));
    const uint32_t below = p.below;
    stack.push_back({graph_->arg(p.node, 1), below});
    return true;
}

// A kernel is told its constants; a compiler that finds one out works out functions of it to other last digits than the device does (contract N1).
std::optional<int64_t> KernelBuilder::always(uint32_t node) const
{
    const auto args = graph_->args(node);
    if (!is_map((*graph_)[node].op) || args.empty()) return std::nullopt;
    return ng::always((*graph_)[node].op, (*graph_)[args[0]].dtype, args.size() == 2 && args[0] == args[1]);
}

// Pushes what the node needs; leaves of the graph and what lies in memory become values at once.
bool KernelBuilder::expand(Pending& p, std::vector<Pending>& stack, Refusal& why)
{
    const Node& n = (*graph_)[p.node];
    if (owns(p.node)) return false;                              // ours, but at another index
    if (p.node != placing_ && may_read(p.node))
        if (const View* v = stores_->stored(p.node)) return remember(p.node, p.forms, load(*v, p.forms, p.node)), true;
    if (is_movement(n.op)) return expand_movement(p, stack, why);
    if (always(p.node)) return true;
    if (is_map(n.op) || n.op == Op::cast) {
        // The last on the stack is the first computed. A long chain comes before what is added to it: else all of that would wait in
        // registers for the chain's other end.
        const uint32_t forms = p.forms;
        const auto args = graph_->args(p.node);
        const auto deepest = std::ranges::max_element(args, {}, [&](uint32_t a) { return stores_->operations(a); });
        const bool is_chain = deepest != args.end() && stores_->operations(*deepest) > DEEP;
        for (const uint32_t a : args)
            if (found(a, forms) < 0) stack.push_back({a, forms});
        if (is_chain && found(*deepest, forms) < 0) stack.push_back({*deepest, forms});
        return true;
    }
    switch (n.op) {
    case Op::take: return expand_take(p, stack, why);
    case Op::random: case Op::cast_stochastic: {
        const uint32_t none = intern({}), forms = p.forms, first = n.op == Op::random ? 0 : 1, node = p.node;
        if (first) stack.push_back({graph_->arg(node, 0), forms});
        for (uint32_t k = first; k < first + 2; k++) stack.push_back({graph_->arg(node, k), none});
        return true;
    }
    case Op::param: case Op::leaf: remember(p.node, p.forms, load(stores_->source(p.node), p.forms, p.node)); return true;
    case Op::constant: case Op::scalar: case Op::length: case Op::iota: return true;
    default: why.store = int32_t(p.node); return false;
    }
}

int32_t KernelBuilder::combine_random(const Pending& p)
{
    const Node& n = (*graph_)[p.node];
    const uint32_t none = intern({}), first = n.op == Op::random ? 0 : 1;
    Value v{ValueKind::Random};
    const bool rounding = n.op == Op::cast_stochastic;
    v.type = rounding ? Dtype::u32 : n.dtype;
    v.bits = int64_t(rounding ? RandomWord::Word3 : n.value == NG_BITS ? RandomWord::Bits : n.value == NG_UNIFORM ? RandomWord::Uniform : RandomWord::Normal);
    v.args = {index_value(n.dims(), forms_[p.forms]), found(graph_->arg(p.node, first), none), found(graph_->arg(p.node, first + 1), none)};
    const int32_t word = add_value(std::move(v));
    if (!rounding) return word;
    Value s{ValueKind::Stochastic};
    s.type = n.dtype, s.bits = n.value, s.args = {found(graph_->arg(p.node, 0), p.forms), word, -1};
    return add_value(std::move(s));
}

int32_t KernelBuilder::combine_take(const Pending& p)
{
    const Node& n = (*graph_)[p.node];
    const uint32_t x = graph_->arg(p.node, 0);
    View view = *stores_->viewed(x);
    const auto axis = size_t(n.value);
    const int indices = n.arg(1)->rank();
    Value v{ValueKind::Gather};
    v.extent = view.dims[axis], v.stride = view.strides[axis], v.type = view.dtype, v.buffer = view.buffer;
    IndexForms forms = forms_[p.forms];
    forms.erase(forms.begin() + n.value, forms.begin() + n.value + indices);
    view.dims.erase(view.dims.begin() + n.value), view.strides.erase(view.strides.begin() + n.value);
    v.access = add_access(access_of(view, forms, kernel_.axes.size()));
    v.args = {found(graph_->arg(p.node, 1), p.below), -1, -1};
    loaded_.push_back(stores_->bottom(x)), note_read(v.buffer);
    return add_value(std::move(v));
}

// The node's value, its operands being there.
int32_t KernelBuilder::combine(const Pending& p)
{
    const Node& n = (*graph_)[p.node];
    Value v{ValueKind::Map};
    v.op = n.op, v.type = n.dtype;
    if (const auto same = always(p.node)) {
        v.kind = ValueKind::Constant, v.bits = *same;
        return add_value(std::move(v));
    }
    switch (n.op) {
    case Op::take: return combine_take(p);
    case Op::random: case Op::cast_stochastic: return combine_random(p);
    case Op::constant: v.kind = ValueKind::Constant, v.bits = n.value; return add_value(std::move(v));
    case Op::scalar: v.kind = ValueKind::Scalar, v.bits = n.value; return add_value(std::move(v));
    case Op::length: v.kind = ValueKind::Length, v.extent = Extent::variable(int32_t(n.value)); return add_value(std::move(v));
    case Op::iota: {
        const IndexForms one = {forms_[p.forms][size_t(n.value)]};
        const int32_t index = index_value({n.dims()[size_t(n.value)]}, one);
        if (n.dtype == Dtype::i64) return index;
        v.kind = ValueKind::Convert, v.args[0] = index;
        return add_value(std::move(v));
    }
    case Op::cast: {
        const int32_t x = found(graph_->arg(p.node, 0), p.forms);
        if (compute_of(kernel_.values[size_t(x)].type) == n.dtype) return x;      // a narrow float already lives in f32
        v.kind = ValueKind::Convert, v.args[0] = x;
        return add_value(std::move(v));
    }
    case Op::bitcast: {
        const uint32_t arg = graph_->arg(p.node, 0);
        v.kind = ValueKind::Bitcast, v.args[0] = as_type(found(arg, p.below), (*graph_)[arg].dtype);
        return add_value(std::move(v));
    }
    default: break;
    }
    if (is_movement(n.op)) return found(graph_->arg(p.node, 0), p.below);
    const auto args = graph_->args(p.node);
    for (size_t k = 0; k < args.size(); k++) v.args[k] = found(args[k], p.forms);
    return add_value(std::move(v));
}

// Without recursion: the stack holds nodes whose operands are on their way.
bool KernelBuilder::pull(uint32_t node, const IndexForms& forms, int32_t& value, Refusal& why)
{
    const uint32_t top = intern(forms);
    std::vector<Pending> stack = {{node, top}};
    uint32_t biggest = node, biggest_words = 0;
    while (!stack.empty()) {
        if (found(stack.back().node, stack.back().forms) >= 0) {
            stack.pop_back();
            continue;
        }
        if (!stack.back().expanded) {
            stack.back().expanded = true, stack.back().words_before = uint32_t(words());
            if (!expand(stack.back(), stack, why)) return false;
        } else {
            const Pending p = stack.back();
            stack.pop_back();
            remember(p.node, p.forms, combine(p));
            const uint32_t more = uint32_t(words()) - p.words_before;
            if (is_map((*graph_)[p.node].op) && p.node != node && more >= biggest_words) biggest = p.node, biggest_words = more;
        }
        if (words() > MAX_WORDS) {
            if (biggest_words < MAX_WORDS / 4)          // a chain, of which nothing is done: it is cut in the middle
                for (const Pending& p : stack)
                    if (p.expanded && p.node != node && p.words_before <= MAX_WORDS / 2 && is_map((*graph_)[p.node].op)) biggest = p.node;
            if (tasks_.empty() && biggest != node) why.store = int32_t(biggest);
            return false;
        }
    }
    value = found(node, top);
    return true;
}

// ---- tasks ---------------------------------------------------------------------------------------

KernelBuilder::Mark KernelBuilder::mark() const { return {kernel_.values.size(), kernel_.accesses.size(), loaded_.size(), added_.size(), numbers_, read_.size(), kernel_.axes, folds_}; }

void KernelBuilder::rollback(const Mark& m)
{
    kernel_.values.resize(m.values, Value{ValueKind::Map});
    kernel_.accesses.resize(m.accesses);
    loaded_.resize(m.loaded), read_.resize(m.read);
    for (; added_.size() > m.added; added_.pop_back()) memo_.erase(added_.back());
    kernel_.axes = m.axes, folds_ = m.folds, numbers_ = m.numbers;
}

// Lays the task's dims over the kernel's axes, or makes the axes of an empty kernel from them.
bool KernelBuilder::lay(Task& task, Refusal& why)
{
    const Node& n = (*graph_)[task.node];
    const bool fold = is_fold(n.op) && !task.copy;
    const Extents& dims = fold ? n.arg(0)->dims() : n.dims();
    if (kernel_.axes.empty() && tasks_.empty())
        for (size_t d = 0; d < dims.size(); d++)
            if (!dims[d].is(1)) kernel_.axes.push_back({dims[d], fold && (n.value >> d & 1)});
    std::vector<int32_t> every, kept;
    for (size_t a = 0; a < kernel_.axes.size(); a++) {
        every.push_back(int32_t(a));
        if (!kernel_.axes[a].reduced) kept.push_back(int32_t(a));
    }
    std::optional<IndexForms> forms = laid_over(dims, kernel_.axes, every, why.split);
    if (!forms && !fold && kept.size() < every.size()) {
        AxisSplit other;
        forms = laid_over(dims, kernel_.axes, kept, other);
        if (!forms && why.split.axis < 0) why.split = other;
    }
    if (!forms) return false;
    why.split = {};
    task.forms = task.operand_forms = *forms;
    if (!fold) return true;
    for (size_t d = 0; d < dims.size(); d++) {
        const bool reduced = n.value >> d & 1;
        if (reduced) task.forms[d] = IndexForm();
        for (const auto& [axis, c] : task.operand_forms[d].terms) {
            bool& flag = kernel_.axes[size_t(axis)].reduced;
            if (folds_ && flag != reduced) return false;
            flag = reduced;
        }
    }
    folds_++;
    return true;
}

bool KernelBuilder::place(Task& task, Refusal& why)
{
    const Node& n = (*graph_)[task.node];
    if (!lay(task, why)) return false;
    placing_ = task.copy ? ~0u : task.node;
    if (!is_fold(n.op) || task.copy) return pull(task.node, task.forms, task.value, why);
    Value v{ValueKind::Fold};
    v.op = n.op, v.type = n.dtype;
    if (!pull(graph_->arg(task.node, 0), task.operand_forms, v.args[0], why)) return false;
    task.value = add_value(std::move(v));
    remember(task.node, intern(task.forms), task.value);
    return true;
}

int32_t KernelBuilder::add(uint32_t node, bool copy, Refusal& why, const Allowed& allowed)
{
    const bool full = words() > MAX_WORDS / 2 || kernel_.values.size() > MAX_VALUES;
    if (tasks_.size() >= MAX_TASKS || (tasks_.size() && full)) return -1;
    for (int tries = 0; tries < 8; tries++) {
        Task task{node, {}, {}, -1, copy};
        const Mark before = mark();
        why = {};
        const bool placed = place(task, why) && (tasks_.empty() || is_fit());
        if (placed && !allowed(std::span(loaded_).subspan(before.loaded))) {
            rollback(before);
            return why = {}, -1;
        }
        if (placed) {
            tasks_.push_back(std::move(task));
            if (!copy) owned_.emplace(node, int32_t(tasks_.size()) - 1);
            return int32_t(tasks_.size()) - 1;
        }
        const std::vector<KernelAxis> axes = kernel_.axes;
        rollback(before);
        if (tasks_.empty()) kernel_.axes = axes;
        if (why.split.axis < 0 || !rebuild(why.split, why)) break;
    }
    if (tasks_.empty()) kernel_.axes.clear(), folds_ = 0;
    why.split = {};
    return -1;
}

void KernelBuilder::close()
{
    memo_ = {}, added_ = {}, forms_ = {};
    forms_index_.clear(), loads_.clear();
}

// All tasks anew over an axis in two parts. On refusal the kernel is as it was.
bool KernelBuilder::rebuild(const AxisSplit& split, Refusal& why)
{
    if (kernel_.axes.size() >= NG_MAX_NDIM) return false;
    KernelBuilder next(*graph_, *stores_);
    next.kernel_.axes = kernel_.axes;
    apply(split, next.kernel_.axes);
    next.destinations_ = destinations_, next.folds_ = folds_;
    next.loaded_ = loaded_;                  // the first of them are known to the scheduler by their number
    const std::unordered_set<uint32_t> reads(loaded_.begin(), loaded_.end());
    next.reads_ = &reads;
    for (Task t : tasks_) {
        apply(split, t.forms), apply(split, t.operand_forms);
        const Node& n = (*graph_)[t.node];
        next.placing_ = t.copy ? ~0u : t.node;
        const bool fold = is_fold(n.op) && !t.copy;
        Value v{ValueKind::Fold};
        v.op = n.op, v.type = n.dtype;
        if (!next.pull(fold ? graph_->arg(t.node, 0) : t.node, fold ? t.operand_forms : t.forms, fold ? v.args[0] : t.value, why)) return false;
        if (fold) t.value = next.add_value(std::move(v)), next.remember(t.node, next.intern(t.forms), t.value);
        if (!t.copy) next.owned_.emplace(t.node, int32_t(next.tasks_.size()));
        next.tasks_.push_back(std::move(t));
    }
    next.reads_ = nullptr;
    *this = std::move(next);
    return true;
}

}  // namespace ng
