// Words of random programs for kernels' texts: rows of words, filled with others down to leaves and their views.
#include "tests/jit/text_draw.h"

#include <algorithm>
#include <numeric>

namespace ng::emitted {
namespace {

constexpr Words REAL[] = {
    {6, "(X + Y)"}, {6, "(X - Y)"}, {6, "(X * 0.5 * Y)"}, {6, "(X * 1.5 + 0.25)"}, {3, "(X / (1 + abs(Y)))"}, {3, "where(C, X, Y)"}, {2, "maximum(X, Y)"},
    {1, "tanh(X)"}, {1, "sigmoid(X)"}, {1, "relu(X)"}, {1, "abs(X)"}, {1, "gelu(X)"}, {1, "sin(X)"}, {1, "cos(X)"},
    {1, "f16(X)"}, {1, "bf16(X)"}, {1, "f32(X)"}, {1, "f64(X)"},
    {8, "softmax(X, A)"}, {11, "((X - mean(X, A)) * rsqrt(var(X, A) + 1e-3))"}, {5, "(X / (max(abs(X), A) + 0.1))"}, {3, "(X - logsumexp(X, A))"},
    {3, "(X * rsqrt(mean(square(X), A) + 1e-3))"}, {7, "(X + mean(Y, A))"}, {4, "(X - max(Y, A))"}, {3, "(X * std(Y, A))"}, {3, "(X * f32(any(C, A)))"},
    {3, "(X / (1 + sum(abs(X), A)))"}, {2, "(X * 0.5 + f32(argmax(L, I)) * 1e-4)"}, {2, "(X + min(X, B))"}, {2, "(X + exp(mean(tanh(X), B)))"},
    {3, "(X + mean(max(X, A), B))"},
};
constexpr Words WHOLE[] = {
    {15, "(i32(X) + i32(Y))"}, {15, "(i32(X) - i32(Y))"}, {15, "(i64(X) * 2)"}, {15, "maximum(i32(X), i32(Y))"}, {10, "where(L > 1, i32(X), i32(Y))"},
    {10, "(i64(X) - max(i64(Y), A))"}, {10, "(i64(X) + min(i64(X), A))"}, {10, "(i64(X) + sum(i32(X), A) % 7)"},
};
constexpr Words REAL_OUT[] = {
    {40, "X"}, {10, "sum(X, A)"}, {6, "mean(X, A)"}, {8, "var(X, A)"}, {8, "max(X, A)"}, {3, "logsumexp(X, A)"}, {2, "prod(1 + X * 1e-6, A)"},
    {1, "mean(max(X, A), B)"}, {1, "mean(var(X, A), B)"}, {1, "mean(logsumexp(X, A), B)"}, {1, "sum(X)"}, {1, "max(X)"}, {1, "var(X)"},
    {4, "argmax(L, I)", false}, {4, "argmin(L, I)", false}, {3, "any(C, A)", false}, {3, "all(C, A)", false}, {2, "sum(i64(C), A)", false},
};
constexpr Words WHOLE_OUT[] = {
    {30, "X"}, {20, "sum(X, A)"}, {10, "max(X, A)"}, {10, "argmin(X, I)"}, {10, "any(X > 2, A)"}, {10, "argmax(L, I)"}, {10, "sum(max(X, A), B)"},
};
constexpr Words LONG_OUT[] = {
    {1, "softmax(Z, M)"}, {1, "softmax(P * 30, M)"}, {2, "(Z - mean(Z, M)) * rsqrt(var(Z, M) + 1e-5)"}, {1, "Z * rsqrt(mean(Z * Z, M) + 1e-5)"},
    {1, "Z / (max(abs(Z), M) + 0.1)"}, {1, "tanh(Z - mean(Z, M)) * rsqrt(var(Z, M) + 1e-5)"}, {1, "exp(P / 10) / sum(exp(P / 10), M)"},
    {1, "Z - logsumexp(Z, M)"}, {1, "Z * std(Z * var(Z, M), M)"}, {2, "X"}, {1, "(Z - Q) * std(Z, M)"},
};
constexpr Words BESIDE_LONG[] = {
    {5, "argmax(P, N)"}, {5, "argmin(P, N)"}, {3, "max(P, M)"}, {3, "sum(Z, M)"}, {3, "var(Z, M)"}, {3, "min(P, M)"}, {3, "mean(Z, M)"}, {3, "prod(1 + P * 1e-6, M)"},
    {2, "any(P > 1.99, M)"}, {2, "sum(i64(P > 0), M)"},
};
constexpr Words POINTS[] = {
    {8, "T"}, {4, "(T + U)"}, {4, "(T + L)"}, {3, "maximum(T, L)"}, {9, "(L + K)"}, {4, "where(L > 1, (L + K), J)"}, {3, "(L + K + T)"},
};

}  // namespace

std::string TextDrawing::filled(const char* words, int depth)
{
    std::map<char, std::string> drawn;
    std::string all;
    for (const char* c = words; *c; c++) {
        if (!std::isupper(*c)) { all += *c; continue; }
        if (!drawn.contains(*c)) drawn[*c] = letter(*c, depth);
        all += drawn[*c];
    }
    return all;
}

std::string TextDrawing::letter(char c, int depth)
{
    switch (c) {
    case 'X': case 'Y': return expression(depth - 1);
    case 'L': case 'K': case 'J': return leaf();
    case 'T': case 'U': return across();
    case 'C': return filled(dice_.of({"(L > 0.5)", "(L < 1)", "(L >= K)", "(L >= K)"}), 0);
    case 'P': return whole_.front();
    case 'Q': return whole_.back();
    case 'Z': return about();
    case 'R': return row();
    case 'M': return text_of_axes(main_axes_);
    case 'N': return std::to_string(main_axes_[0]);
    case 'I': return std::to_string(axis());
    default: return axes();
    }
}

std::string TextDrawing::one_of(std::span<const Words> rows, int depth, int percent_narrow)
{
    int64_t sum = 0;
    for (const Words& w : rows) sum += w.weight;
    int64_t at = dice_.within(0, sum - 1);
    const Words* w = rows.data();
    for (; at >= w->weight; w++) at -= w->weight;
    const std::string words = filled(w->words, depth);
    return w->is_real && dice_.chance(percent_narrow) ? narrow(words) : words;
}

std::string TextDrawing::expression(int depth) { return depth <= 0 ? leaf() : is_whole_ ? one_of(WHOLE, depth) : one_of(REAL, depth); }
std::string TextDrawing::output(int depth) { return is_whole_ ? one_of(WHOLE_OUT, depth) : one_of(REAL_OUT, depth, 35); }
std::string TextDrawing::beside_long() { return one_of(BESIDE_LONG, 0); }

std::string TextDrawing::long_output()
{
    std::string words = one_of(LONG_OUT, int(dice_.within(2, 3)));
    if (dice_.chance(25)) words = "(" + words + ") * " + row();
    if (dice_.chance(25)) words = "(" + words + ") + " + row();
    if (main_ == Dtype::bf16) return "bf16(" + words + ")";
    return main_ == Dtype::f16 || dice_.chance(15) ? "f16(" + words + ")" : words;
}

std::string TextDrawing::points()
{
    const std::string words = one_of(POINTS, 0);
    if (dice_.chance(40)) return words;
    return text(name_of(is_whole_ ? dice_.of({Dtype::i8, Dtype::u8, Dtype::i16, Dtype::i32}) : dice_.of({Dtype::f16, Dtype::bf16, Dtype::e4m3, Dtype::f32})), "(", words, ")");
}

// ---- leaves

Dtype TextDrawing::leaf_type()
{
    if (is_whole_) return dice_.of({main_, main_, Dtype::i32, Dtype::i8});
    if (dice_.chance(60)) return main_;
    return dice_.of({Dtype::f32, Dtype::f32, Dtype::f16, Dtype::bf16, Dtype::f64, Dtype::e4m3, Dtype::e5m2, Dtype::i8, Dtype::u8, Dtype::bool_, Dtype::i16});
}

// The first input half of the time, so that passes and folds meet in it.
std::string TextDrawing::leaf()
{
    const int64_t k = dice_.within(0, 99);
    if (k < 35) return whole_[size_t(dice_.below(whole_.size()))];
    if (k < 50) return whole_.front();
    const Dtype t = leaf_type();
    if (k < 62 && whole_.size() < 4) return whole_.emplace_back(operand(input(t, space()), t));
    if (k < 62) return whole_.front();
    if (k < 74) return row();
    if (k < 98 || is_whole_) return operand(view(t), t);
    std::string dims;
    int64_t open = 0;
    for (size_t a = 0; a < rank(); a++) dims += text(a ? ", " : "", p_.is_open[a] ? -1 - open++ : p_.runs[0][a]);
    return text("(f32(iota(i32, [", dims, "], ", axis(), ")) * 1e-5)");
}

// Of an input of its own: turned round, a part of it, its axes permuted, or gathered from it.
std::string TextDrawing::view(Dtype t)
{
    const size_t a = axis();
    const int64_t k = dice_.within(0, 23);
    if (k < 6) return input(t, space()) + slice(a, "::-1");
    if (k < 14) return window(t, a);
    if (k < 21 && rank() > 1) return permuted(t, false);
    return p_.is_open[a] ? input(t, space()) : gathered(t, a);
}

std::string TextDrawing::window(Dtype t, size_t axis)
{
    Extents dims = space();
    if (!p_.is_open[axis] && dice_.chance(30)) {
        const int64_t step = dice_.within(2, 3);
        dims[axis] = dims[axis].constant() * step;
        return input(t, dims) + slice(axis, text("::", step));
    }
    const int64_t before = dice_.within(0, 3), behind = dice_.within(0, 3);
    dims[axis] = dims[axis] + Extent(before + behind);
    return input(t, dims) + slice(axis, text(before, ":", behind ? text(-behind) : ""));
}

// A place before the first and behind the last give 0.
std::string TextDrawing::gathered(Dtype t, size_t axis)
{
    Extents dims = space();
    const Extent places = dims[axis];
    const int64_t count = dice_.within(1, 9);
    dims[axis] = count;
    const std::string from = input(t, dims), at = input(dice_.of({Dtype::i32, Dtype::i64}), {places});
    p_.inputs.back().low = -1, p_.inputs.back().high = double(count + 1);
    return text("take(", from, ", ", at, ", ", axis, ")");
}

std::string TextDrawing::permuted(Dtype t, bool is_cut)
{
    std::vector<size_t> order(rank());
    std::iota(order.begin(), order.end(), 0);
    if (is_cut && dice_.chance(60)) std::swap(order.back(), order[size_t(dice_.below(rank() - 1))]);
    else for (size_t i = rank(); i > 1; i--) std::swap(order[i - 1], order[size_t(dice_.below(i))]);
    Extents dims = space();
    for (size_t a = 0; a < rank(); a++) dims[order[a]] = space()[a];
    std::string cut;
    const size_t a = axis();
    if (is_cut && dice_.chance(30)) {
        const int64_t before = dice_.within(0, 5), behind = dice_.within(0, 5);
        dims[a] = dims[a] + Extent(before + behind);
        cut = slice(a, text(before, ":", behind ? text(-behind) : ""));
    } else if (is_cut && dice_.chance(12)) cut = slice(a, "::-1");
    return text("permute(", input(t, dims), cut, ", ", text_of_axes(order), ")");
}

std::string TextDrawing::across()
{
    const Dtype t = dice_.chance(70) ? main_ : dice_.of({Dtype::f32, Dtype::f16, Dtype::u8});
    return operand(permuted(t, true), t);
}

std::string TextDrawing::about()
{
    if (!about_.empty()) return about_;
    about_ = whole_.front();
    if (dice_.chance(20)) about_ = "(" + about_ + " + " + row() + ")";
    if (dice_.chance(15) && !p_.is_wild) about_ = "(" + about_ + " + 300)";          // exp(300) is no f32
    return about_;
}

std::string TextDrawing::row()
{
    Extents dims = space();
    bool lacks = false;
    for (Extent& d : dims)
        if (dice_.chance(45)) d = 1, lacks = true;
    if (!lacks) dims[axis()] = 1;
    while (dims[0].is(1) && dims.size() > 1 && dice_.chance(30)) dims.erase(dims.begin());
    const Dtype t = leaf_type();
    return operand(input(t, dims), t);
}

std::string TextDrawing::input(Dtype t, const Extents& dims)
{
    DrawnInput in{text("p", p_.inputs.size()), t, dims, -2, 2};
    if (is_bool(t)) in.low = 0;
    else if (is_integer(t)) in.low = is_signed(t) ? -3 : 0, in.high = 5;
    p_.inputs.push_back(in);
    return in.name;
}

// ---- axes

std::string TextDrawing::text_of_axes(const std::vector<size_t>& axes)
{
    std::string all;
    for (const size_t a : axes) all += text(all.empty() ? "" : ", ", a);
    return "[" + all + "]";
}

std::string TextDrawing::axes()
{
    if (dice_.chance(75)) return text_of_axes(main_axes_);
    std::vector<size_t> some;
    for (size_t a = 0; a < rank(); a++)
        if (dice_.chance(50)) some.push_back(a);
    if (some.empty()) some.push_back(axis());
    return text_of_axes(some);
}

std::string TextDrawing::slice(size_t axis, const std::string& range) const
{
    std::string all;
    for (size_t a = 0; a < rank(); a++) all += (a ? ", " : "") + (a == axis ? range : std::string(":"));
    return "[" + all + "]";
}

Extents TextDrawing::space() const
{
    Extents dims;
    int32_t open = 0;
    for (size_t a = 0; a < rank(); a++) dims.push_back(p_.is_open[a] ? Extent::variable(open++) : Extent(p_.runs[0][a]));
    return dims;
}

}  // namespace ng::emitted
