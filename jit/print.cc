// Writes expressions as texts: operands first, what is used twice under a name, parentheses only where they count.
#include "jit/lex.h"
#include "jit/parse.h"
#include "jit/parser.h"
#include "jit/print_forms.h"

#include <algorithm>
#include <array>
#include <bit>
#include <unordered_map>
#include <unordered_set>

namespace ng {
namespace {

// A part longer than this is named: texts stay legible, and far from the reader's limit of nesting.
constexpr size_t MAX_INLINE = 160;

struct Piece {
    std::string text;
    Level       level = Level::Atom;
    int         cut_axis = -1;       // it ends with a slice, and this is the last axis there
};

struct Item {
    const Node* node;
    Wording     wording;
    uint32_t    uses = 0;
    Piece       piece;
};

const Operator* binary_of(Op op)
{
    const auto* o = std::ranges::find(BINARY, op, &Operator::op);
    return o == std::end(BINARY) ? nullptr : o;
}
const Operator* prefix_of(Op op)
{
    const auto* o = std::ranges::find(PREFIX, op, &Operator::op);
    return o == std::end(PREFIX) ? nullptr : o;
}

std::string list_text(std::span<const int64_t> list)
{
    std::string s = "[";
    for (const int64_t i : list) s += (s.size() > 1 ? ", " : "") + std::to_string(i);
    return s + "]";
}

std::string axes_text(ng_axes axes)
{
    std::vector<int64_t> list;
    for (int a = 0; a < 64; a++)
        if (axes >> a & 1) list.push_back(a);
    return list.size() == 1 ? std::to_string(list[0]) : list_text(list);
}

std::string flags_text(std::span<const char* const> names, uint64_t bits)
{
    std::string s;
    for (size_t i = 0; i < names.size(); i++)
        if (bits >> i & 1) s += std::string(", ") + names[i];
    return s;
}

// ", key = [1, 2]" unless all are what leaving it out means.
std::string keyword_text(const char* key, const int32_t* values, const int32_t* defaults, int count)
{
    if (std::equal(values, values + count, defaults)) return "";
    const std::vector<int64_t> list(values, values + count);
    const bool one = std::ranges::adjacent_find(list, std::not_equal_to<>()) == list.end();
    return std::string(", ") + key + " = " + (one ? std::to_string(list[0]) : list_text(list));
}

std::string pads_text(const int32_t* low, const int32_t* high, int axes)
{
    const int32_t none[3] = {};
    if (std::equal(low, low + axes, high)) return keyword_text("pad", low, none, axes);
    return keyword_text("pad_lo", low, none, axes) + keyword_text("pad_hi", high, none, axes);
}

std::string conv_text(const Node& n, int axes)
{
    const ng_conv_desc d = build::conv_desc(n);
    const int32_t ones[3] = {1, 1, 1};
    std::string s = keyword_text("stride", d.stride, ones, axes) + keyword_text("dilate", d.dilate, ones, axes) +
                    pads_text(d.pad_lo, d.pad_hi, axes) + keyword_text("groups", &d.groups, ones, 1);
    if (const auto bits = std::bit_cast<int64_t>(d.pad_value)) {             // -0.0 too
        Node value;
        value.op = Op::constant, value.dtype = Dtype::f64, value.value = bits;
        s += ", pad_value = " + literal_text(value, Style::Pretty);
    }
    return s + flags_text(PRODUCT_FLAGS, d.flags);
}

std::string pool_text(const Node& n, int axes)
{
    const ng_pool_desc d = build::pool_desc(n);
    const int32_t ones[3] = {1, 1, 1}, none = 0;
    return std::string(", ") + POOLS[d.kind] + keyword_text("window", d.window, ones, axes) + keyword_text("stride", d.stride, d.window, axes) +
           keyword_text("dilate", d.dilate, ones, axes) + pads_text(d.pad_lo, d.pad_hi, axes) +
           keyword_text("channel_window", &d.channel_window, ones, 1) + keyword_text("channel_stride", &d.channel_stride, &d.channel_window, 1) +
           keyword_text("channel_pad", &d.channel_pad, &none, 1) + flags_text(POOL_FLAGS, d.flags);
}

class Printer {
  public:
    std::string run(const Node* root);

  private:
    void   collect(const Node* root);
    Item&  item(const Node* n) { return items_[place_.at(n)]; }
    void   name_leaf(Item& leaf);
    Piece  operand(const Written& w);
    std::string operand(const Written& w, Level least);
    Piece  write(const Item& i);
    Piece  write_operator(const Item& i);
    Piece  write_slice(const Item& i);
    std::string operands(const Wording& wording, size_t first = 0, size_t count = ~size_t(0));
    std::string parameters(const Item& i);
    Piece  call(const std::string& word, const std::string& inside) { return {word + "(" + inside + ")"}; }

    Wordings wordings_;
    std::vector<Item>   items_;
    std::vector<size_t> order_;                              // operands first
    std::unordered_map<const Node*, size_t> place_;
    std::unordered_set<std::string> taken_;
    std::string note_, text_;
    size_t leaves_ = 0, named_ = 0;
};

void Printer::name_leaf(Item& leaf)
{
    const Node& n = *leaf.node;
    std::string name;
    switch (n.op) {
    case Op::param: name = "p" + std::to_string(n.value); break;
    case Op::scalar: name = "s" + std::to_string(n.value); break;
    case Op::length: name = "n" + std::to_string(n.value + 1); break;
    default: name = "t" + std::to_string(leaves_++); break;
    }
    while (!taken_.insert(name).second) name += "_";         // one param declared twice, differently
    note_ += (note_.empty() ? "# " : ", ") + name;
    if (n.op == Op::length) note_ += " the length " + std::to_string(-1 - n.value);
    else note_ += std::string(" ") + name_of(n.dtype) + (n.op == Op::scalar ? "" : " " + shape_text(n.dims()));
    leaf.piece.text = name;
}

void Printer::collect(const Node* root)
{
    std::vector<std::pair<size_t, size_t>> stack;            // item, its next operand
    const auto meet = [&](const Node* n) {
        const auto [at, fresh] = place_.emplace(n, items_.size());
        if (fresh) {
            items_.push_back({n, wordings_.wording_of(*n), 0, {}});
            stack.emplace_back(at->second, 0);
        }
        items_[at->second].uses++;
    };
    meet(root);
    while (!stack.empty()) {
        auto& [i, next] = stack.back();
        if (next == items_[i].wording.operands.size()) {
            order_.push_back(i);
            stack.pop_back();
            continue;
        }
        Written& w = items_[i].wording.operands[next++];
        w.node = below_tags(w.node);
        if (w.node->op != Op::constant) meet(w.node);
    }
}

std::string Printer::run(const Node* root)
{
    root = below_tags(root);
    if (root->op == Op::constant) return constant_text(*root);
    collect(root);
    for (const size_t i : order_) {
        Item& it = items_[i];
        const Op op = it.node->op;
        if (op == Op::param || op == Op::scalar || op == Op::length || op == Op::leaf) {
            name_leaf(it);
            continue;
        }
        it.piece = write(it);
        if (it.node == root || (it.uses == 1 && it.piece.text.size() <= MAX_INLINE)) continue;
        const std::string name = "v" + std::to_string(++named_);
        text_ += name + " = " + it.piece.text + ";\n";
        it.piece = {name};
        it.uses = 2;                                         // its name is not to be taken away
    }
    if (!note_.empty()) note_ += "\n";
    return note_ + text_ + item(root).piece.text;
}

Piece Printer::operand(const Written& w)
{
    if (w.node->op == Op::constant) {
        std::string s = w.style == Style::Typed ? constant_text(*w.node) : literal_text(*w.node, w.style);
        const Level level = s[0] == '-' ? Level::Sign : Level::Atom;
        return {std::move(s), level};
    }
    Item& it = item(w.node);
    if (it.uses > 1 || it.wording.operands.empty()) return it.piece;
    return std::move(it.piece);
}

std::string Printer::operand(const Written& w, Level least)
{
    Piece p = operand(w);
    return p.level < least ? "(" + p.text + ")" : std::move(p.text);
}

std::string Printer::operands(const Wording& wording, size_t first, size_t count)
{
    std::string s;
    const size_t last = std::min(wording.operands.size(), count == ~size_t(0) ? count : first + count);
    for (size_t i = first; i < last; i++) s += (i > first ? ", " : "") + operand(wording.operands[i], Level::Any);
    return s;
}

Piece Printer::write_operator(const Item& i)
{
    const auto& x = i.wording.operands;
    if (const Operator* o = prefix_of(i.wording.word)) return {o->symbol + operand(x[0], o->level), o->level};
    const Operator* o = binary_of(i.wording.word);
    const bool power = o->level == Level::Power, compare = o->level == Level::Compare;
    const Level left = power || compare ? above(o->level) : o->level, right = power ? Level::Sign : above(o->level);
    std::string s = operand(x[0], left);
    s += ' ', s += o->symbol, s += ' ';
    return {s + operand(x[1], right), o->level};
}

Piece Printer::write_slice(const Item& i)
{
    const Node& n = *i.node;
    const auto axis = int(n.value);
    const int64_t step = n.int_at(0);
    int64_t start, stop;
    if (!wordings_.range_of(n, start, stop)) {
        const std::string place = shape_text(std::array{n.extra->extents[0], n.dims()[size_t(axis)]});
        return call("slice_at", operands(i.wording) + ", " + std::to_string(axis) + ", " + place + ", " + std::to_string(step));
    }
    std::string range = start == NG_END || (start == 0 && step > 0) ? ":" : std::to_string(start) + ":";
    if (stop != NG_END) range += std::to_string(stop);
    if (step != 1) range += ":" + std::to_string(step);
    Piece x = operand(i.wording.operands[0]);
    const bool joins = x.cut_axis >= 0 && x.cut_axis < axis;
    std::string s = x.level < Level::Atom ? "(" + x.text + ")" : std::move(x.text);
    if (joins) s.pop_back(), s += ", ";
    else s += "[";
    for (int a = joins ? x.cut_axis + 1 : 0; a < axis; a++) s += ":, ";
    return {s + range + "]", Level::Atom, axis};
}

// What follows the operands of a call.
std::string Printer::parameters(const Item& i)
{
    const Node& n = *i.node;
    const int axes = std::clamp(n.rank() - 2, 0, 3);
    switch (n.op) {
    case Op::reshape: case Op::broadcast: return ", " + shape_text(n.dims());
    case Op::permute: return ", " + list_text(n.extra->ints);
    case Op::take: case Op::concat: return ", " + std::to_string(n.value);
    case Op::put: return ", " + std::to_string(n.value) + ", " + FOLDS[n.int_at(0)];
    case Op::scan: return ", " + std::to_string(n.value) + ", " + FOLDS[n.int_at(0)] + flags_text(SCAN_FLAGS, uint64_t(n.int_at(1)));
    case Op::segment: return std::string(", ") + FOLDS[n.int_at(0)];
    case Op::argsort: return ", " + std::to_string(n.value) + flags_text(SCAN_FLAGS, uint64_t(n.int_at(0)));
    case Op::bitcast: return std::string(", ") + name_of(n.dtype);
    case Op::matmul: return flags_text(PRODUCT_FLAGS, uint64_t(n.value));
    case Op::view: {
        const Extents& e = n.extra->extents;
        return ", " + shape_text(n.dims()) + ", " + shape_text({e.data(), e.size() - 1}) + ", " + e.back().text();
    }
    case Op::conv: return conv_text(n, axes);
    case Op::conv_dx: case Op::conv_dw: return ", " + shape_text(n.dims()) + conv_text(n, axes);
    case Op::pool: case Op::pool_dx: return pool_text(n, axes);
    default: return "";
    }
}

Piece Printer::write(const Item& i)
{
    const Node& n = *i.node;
    const Wording& f = i.wording;
    const std::string word = name_of(f.word);
    if (is_map(f.word)) return prefix_of(f.word) || binary_of(f.word) ? write_operator(i) : call(word, operands(f));
    if (f.total) return call(word, operands(f));
    if (info(f.word).kind != Class::Node) return call(word, operands(f) + ", " + axes_text(f.axes) + flags_text(MAX_FLAGS, has_lowest(n)));
    const bool zero_step = !f.operands.empty() && f.operands.back().node->op == Op::constant && f.operands.back().node->value == 0;
    switch (n.op) {
    case Op::matmul: return n.value == 0 ? write_operator(i) : call(word, operands(f) + parameters(i));
    case Op::slice: return write_slice(i);
    case Op::cast: return call(name_of(n.dtype), operands(f));
    case Op::iota: return call(word, std::string(name_of(n.dtype)) + ", " + shape_text(n.dims()) + ", " + std::to_string(n.value));
    case Op::random:
        return call(word, std::string(KINDS[n.value]) + ", " + name_of(n.dtype) + ", " + shape_text(n.dims()) + ", " + operands(f, 0, zero_step ? 1 : 2));
    case Op::cast_stochastic:
        return call(word, operands(f, 0, 1) + ", " + name_of(n.dtype) + ", " + std::to_string(n.value) + ", " + operands(f, 1, zero_step ? 1 : 2));
    case Op::concat: return call(word, "[" + operands(f) + "]" + parameters(i));
    case Op::surrogate: return call(f.operands.size() == 1 ? "stop" : word, operands(f));
    case Op::custom_grad: {
        const auto count = size_t(n.int_at(0));
        const std::string head = operands(f, 0, 2);
        return call(word, head + ", [" + operands(f, 2, count) + "], [" + operands(f, 2 + count, count) + "]");
    }
    default: return call(word, operands(f) + parameters(i));
    }
}

}  // namespace

std::string to_text(const NodeRef& e)
{
    if (!e) return "";
    return Printer().run(e.get());
}

}  // namespace ng
