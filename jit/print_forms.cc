// Finds the shortest way to write a node that builds the same node again.
#include "jit/print_forms.h"

#include "jit/number.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace ng {
namespace {

constexpr double MAX_WHOLE = 1 << 24;      // whole numbers up to here are written without a point
constexpr size_t MAX_SCRATCH = 1024;

// Equal as the table of nodes has it, some levels deep.
bool same(const Node* a, const Node* b, int depth)
{
    if (a == b) return true;
    if (depth == 0 || a->op != b->op || a->dtype != b->dtype || a->weak != b->weak || a->value != b->value) return false;
    if (!same(a->shape, b->shape) || a->args().size() != b->args().size()) return false;
    if (!a->extra != !b->extra || (a->extra && !a->extra->equals(*b->extra))) return false;
    for (size_t i = 0; i < a->args().size(); i++)
        if (!same(a->arg(i).get(), b->arg(i).get(), depth - 1)) return false;
    return true;
}

// Whose operands the builder casts and broadcasts.
bool infers(Op op)
{
    switch (op) {
    case Op::take: case Op::put: case Op::segment: case Op::concat: case Op::matmul: case Op::conv: return true;
    default: return is_map(op) || is_fold(op);
    }
}

bool has_literal(const Node& c) { return c.op == Op::constant && !is_bool(c.dtype) && !(c.dtype == Dtype::u64 && c.value < 0); }

bool is_whole(double v) { return std::fabs(v) < MAX_WHOLE && v == std::floor(v) && !(v == 0 && std::signbit(v)); }

// Level 0 leaves out most, level 3 nothing.
Written written(const Node* n, int level)
{
    if (level == 3) return {n};
    if (n->op == Op::broadcast) n = n->arg(0).get();
    if (has_literal(*n) && level < 2) return {n, level == 0 ? Style::Pretty : Style::Plain};
    if (n->op == Op::cast && level == 0) n = n->arg(0).get();
    return {n};
}

constexpr std::array<int8_t, 3> LEVELS[] = {{0, 0, 0}, {1, 0, 0}, {0, 1, 0}, {0, 0, 1}, {1, 1, 1}, {2, 0, 0}, {0, 2, 0}, {0, 0, 2}, {2, 1, 1},
                                            {1, 2, 1}, {1, 1, 2}, {2, 2, 2}, {3, 0, 0}, {0, 3, 0}, {3, 2, 2}, {2, 3, 2}, {2, 2, 3}};

// The fewest digits that are this value of its type again.
std::string shortest(Dtype t, double v)
{
    char buf[40];
    const auto in_type = [&](std::to_chars_result r) {
        double back = 0;
        std::from_chars(buf, r.ptr, back);
        return round_to(t, back) == v;
    };
    std::to_chars_result r = t == Dtype::f64 ? std::to_chars(buf, buf + sizeof buf, v) : std::to_chars(buf, buf + sizeof buf, float(v));
    if (t != Dtype::f64 && !in_type(r)) r = std::to_chars(buf, buf + sizeof buf, v);
    if (compute_of(t) != t)
        for (int digits = 1; digits < 9; digits++) {
            r = std::to_chars(buf, buf + sizeof buf, v, std::chars_format::general, digits);
            if (in_type(r)) break;
        }
    std::string s(buf, r.ptr);
    return s.find_first_of(".e") == std::string::npos ? s + ".0" : s;
}

}  // namespace

const Node* below_tags(const Node* n)
{
    while (n->op == Op::tag) n = n->arg(0).get();
    return n;
}

std::string literal_text(const Node& c, Style style)
{
    const Number n = Number::of_bits(c.dtype, c.value);
    if (!is_float(c.dtype)) return std::to_string(n.integer());
    const double v = n.real();
    if (std::isnan(v)) return std::signbit(v) ? "-nan" : "nan";
    if (std::isinf(v)) return v < 0 ? "-inf" : "inf";
    return style == Style::Pretty && is_whole(v) ? std::to_string(int64_t(v)) : shortest(c.dtype, v);
}

std::string constant_text(const Node& c)
{
    if (c.weak) return literal_text(c, Style::Plain);
    if (is_bool(c.dtype)) return c.value ? "true" : "false";
    const std::string number = c.dtype == Dtype::u64 ? std::to_string(uint64_t(c.value)) : literal_text(c, Style::Pretty);
    return std::string(name_of(c.dtype)) + "(" + number + ")";
}

std::string shape_text(std::span<const Extent> dims)
{
    std::string s = "[";
    for (const Extent& d : dims) {
        if (s.size() > 1) s += ", ";
        if (d.is_constant() || d.as_dim() != NG_REST) {
            s += std::to_string(d.as_dim());
            continue;
        }
        bool first = true;
        for (const Term& t : d.terms()) {
            if (!first && t.coefficient >= 0) s += '+';
            std::string product = t.coefficient == 1 && !t.variables.empty() ? "" : std::to_string(t.coefficient);
            for (const int32_t v : t.variables) product += (product.empty() ? "(" : "*(") + std::to_string(-1 - int64_t(v)) + ")";
            s += product;
            first = false;
        }
    }
    return s + "]";
}

Graph& Wordings::scratch()
{
    if (scratch_.size() > MAX_SCRATCH) scratch_ = Graph();
    return scratch_;
}

NodeRef Wordings::read(const Written& w)
{
    if (w.style == Style::Typed) return NodeRef(w.node);
    const Number n = Number::of_bits(w.node->dtype, w.node->value);
    if (!is_float(w.node->dtype)) return build::weak_int(scratch_, n.integer());
    if (w.style == Style::Pretty && is_whole(n.real())) return build::weak_int(scratch_, int64_t(n.real()));
    return build::weak(scratch_, n.real());
}

bool Wordings::reads_back(const Node& n, std::span<const Written> operands)
{
    std::vector<NodeRef> args;
    scratch();
    for (const Written& w : operands) args.push_back(read(w));
    const auto axes = ng_axes(n.value);
    try {
        const NodeRef again = has_lowest(n) ? build::greatest(scratch_, build::strong(scratch_, args[0]), axes)
                            : is_fold(n.op) ? build::reduce(scratch_, n.op, args[0], axes, NG_KEEP) : build::rebuild(scratch_, n, args);
        return same(again.get(), &n, 3);
    } catch (const Error&) {
        return false;
    }
}

void Wordings::choose(Wording& wording)
{
    const Node& n = *wording.core;
    const auto args = n.args();
    bool plain = true;
    for (const NodeRef& a : args) plain = plain && a->op != Op::broadcast && a->op != Op::cast && a->op != Op::constant;
    wording.operands.clear();
    for (const NodeRef& a : args) wording.operands.push_back({a.get()});
    if (plain) return;
    std::vector<Written> attempt(args.size());
    for (const auto& levels : LEVELS) {
        for (size_t i = 0; i < args.size(); i++) attempt[i] = written(args[i].get(), levels[std::min(i, levels.size() - 1)]);
        if (!reads_back(n, attempt)) continue;
        wording.operands = attempt;
        return;
    }
}

// Whether a custom_grad is what one of the composed words with a rule of its own builds.
bool Wordings::is_norm(const Node& n, Wording& wording)
{
    if (n.op != Op::custom_grad || n.args().size() != 4) return false;
    const NodeRef& x = n.arg(2);
    ng_axes axes = 0;
    std::vector<const Node*> look = {n.arg(0).get()};
    for (size_t i = 0; i < look.size() && i < 8 && !axes; i++) {
        if (look[i]->op == Op::sum) axes = ng_axes(look[i]->value);
        for (const NodeRef& a : look[i]->args())
            if (a != x) look.push_back(a.get());
    }
    const Node* const bare = x->op == Op::cast ? x->arg(0).get() : x.get();
    for (const Op word : {Op::softmax, Op::log_softmax, Op::logsumexp})
        for (const Node* from : {bare, x.get()}) {
            const NodeRef operand(from);
            try {
                const NodeRef again = word == Op::logsumexp ? build::reduce(scratch(), word, operand, axes, NG_KEEP) : build::norm(scratch(), word, operand, axes);
                if (!same(again.get(), &n, 24)) continue;
            } catch (const Error&) {
                continue;
            }
            wording.word = word, wording.axes = axes, wording.operands = {{from}};
            return true;
        }
    return false;
}

Wording Wordings::wording_of(const Node& n)
{
    Wording wording{n.op, &n, false, 0, {}};
    if (is_norm(n, wording)) return wording;
    if (n.op == Op::reshape && n.rank() == 0) {
        const Node* fold = n.arg(0).get();
        if (is_fold(fold->op) && fold->rank() > 0 && !has_lowest(*fold)) wording.word = fold->op, wording.core = fold, wording.total = true;
    }
    wording.axes = ng_axes(wording.core->value);
    if (infers(wording.word)) {
        choose(wording);
        return wording;
    }
    for (const NodeRef& a : n.args()) wording.operands.push_back({a.get()});
    return wording;
}

bool Wordings::range_of(const Node& n, int64_t& start, int64_t& stop)
{
    const auto axis = size_t(n.value);
    const Extent &d = n.arg(0)->dims()[axis], &first = n.extra->extents[0], &count = n.dims()[axis];
    const int64_t step = n.int_at(0);
    const auto number = [&](const Extent& e, int64_t& out) {      // counted from either end
        if (e.is_constant() && e.constant() >= 0) return out = e.constant(), true;
        const Extent back = e - d;
        return back.is_constant() && back.constant() < 0 && (out = back.constant(), true);
    };
    const auto holds = [&](int64_t from, int64_t to) {
        try {
            const NodeRef again = build::slice(scratch(), n.arg(0), int32_t(axis), from, to, step);
            if (!same(again.get(), &n, 1)) return false;
        } catch (const Error&) {
            return false;
        }
        return start = from, stop = to, true;
    };
    const int64_t omitted = step > 0 ? 0 : NG_END;
    if (holds(omitted, NG_END)) return true;
    int64_t from = 0, to = 0;
    const bool from_known = number(first, from);
    if (from_known && holds(from, NG_END)) return true;
    const Extent end = step > 0 ? first + (count - Extent(1)) * Extent(step) + Extent(1) : first + (count - Extent(1)) * Extent(step) - Extent(1);
    if (!number(end, to)) return count.is(0) && holds(0, 0);
    return holds(omitted, to) || (from_known && holds(from, to)) || (count.is(0) && holds(0, 0));
}

}  // namespace ng
