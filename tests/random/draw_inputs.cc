// Inputs and what is in them: tame ranges for judged programs, everything that hurts for the others.
#include "tests/random/draw.h"

#include <algorithm>
#include <cmath>

namespace programs {

ng_dtype Drawing::type()
{
    const int64_t k = dice_.within(0, 99);
    if (k < 55) return k < 35 ? ng_dtype(NG_F32) : real_type();
    if (k < 62) return dice_.of({ng_dtype(NG_E4M3), ng_dtype(NG_E5M2), ng_dtype(NG_F16), ng_dtype(NG_BF16)});
    if (k < 68) return NG_BOOL;
    return whole_type();
}

Extents Drawing::some_dims(int least, int most)
{
    Extents dims;
    for (int64_t rank = dice_.within(least, most); rank > 0; rank--) dims.push_back(Polynomial::of_dim(extent()));
    return dims;
}

Extents Drawing::beside(const Extents& dims)
{
    Extents d = dims;
    while (!d.empty() && dice_.chance(30)) d.erase(d.begin());
    for (Polynomial& e : d)
        if (dice_.chance(25) || !e.dim()) e = 1;
    return d;
}

int Drawing::literal()
{
    Node n{Form::Constant};
    n.weak = true;
    const bool whole = dice_.chance(50);
    n.ints = {whole, dice_.of<int64_t>({0, 1, 2, 3, 5, -1, -2, 7, 100})};
    n.number = dice_.of({0.5, 1.5, -1.0, 2.0, 0.0, 0.1, 3.25, 1.0, -0.75});
    accept(n);
    return int(p_.nodes.size()) - 1;
}

Real Drawing::wild_value(ng_dtype t)
{
    if (is_bool(t)) return dice_.chance(50);
    if (!is_float(t)) {
        switch (dice_.below(4)) {
        case 0: return wrapped(t, Wide(dice_.word()));
        case 1: return wrapped(t, Wide(1) << dice_.below(64));
        case 2: return wrapped(t, (Wide(1) << dice_.below(64)) - 1);
        default: return wrapped(t, dice_.within(-9, 9));
        }
    }
    const Real largest = largest_of(t), unit = unit_of(t, 0);
    const auto sign = Real(dice_.chance(50) ? -1 : 1);
    switch (dice_.below(9)) {
    case 0: return NAN;
    case 1: return t == NG_E4M3 ? sign * largest : sign * Real(INFINITY);
    case 2: return sign * Real(0);
    case 3: return sign * largest;
    case 4: return sign * unit * Real(dice_.within(1, 5));
    case 5: return sign * Real(dice_.within(0, 3)) / 2;
    case 6: return converted(t, sign * std::ldexp(Real(dice_.within_real(1, 2)), int(dice_.within(-130, 127))), NG_F64);
    default: return converted(t, Real(dice_.within_real(-3, 3)), NG_F64);
    }
}

Real Drawing::value(ng_dtype t, Fill fill, int64_t range, int style)
{
    if (fill == Fill::Index) return wrapped(t, dice_.chance(8) ? dice_.of<int64_t>({-1, range, range + 3}) : range > 0 ? dice_.within(0, range - 1) : 0);
    if (fill == Fill::Key) return wrapped(t, Wide(dice_.word()));
    if (p_.wild && fill != Fill::Offsets) return wild_value(t);
    if (is_bool(t)) return dice_.chance(50);
    if (!is_float(t)) {
        const bool full = style == 0;
        const int64_t high = fill == Fill::Whole ? 3 : 20;
        if (full) return wrapped(t, Wide(dice_.word()));
        const bool above = fill == Fill::Positive || fill == Fill::AboveOne;
        return wrapped(t, dice_.within(above || element(t).kind == Kind::Uint ? 1 : -high, high));
    }
    const auto between = [&](double low, double high) { return converted(t, Real(dice_.within_real(low, high)), NG_F64); };
    switch (fill) {
    case Fill::Positive: return between(0.1, 3);
    case Fill::AboveOne: return between(1.1, 4);
    case Fill::WithinOne: return between(-0.9, 0.9);
    case Fill::Whole: return Real(dice_.within(-3, 3));
    default: return between(-2.5, 2.5);
    }
}

Bytes Drawing::values(ng_dtype t, int64_t count, Fill fill, int64_t range)
{
    const auto size = size_t(element(t).bytes);
    Bytes bytes(size_t(count) * size);
    std::vector<int64_t> cuts;
    for (int64_t i = 0; fill == Fill::Offsets && i < count; i++) cuts.push_back(dice_.within(0, range));
    std::sort(cuts.begin(), cuts.end());
    const int style = dice_.below(5);
    for (size_t i = 0; i < size_t(count); i++) store(t, fill == Fill::Offsets ? Real(cuts[i]) : value(t, fill, range, style), &bytes[i * size]);
    return bytes;
}

int Drawing::input(ng_dtype t, const Extents& dims, Fill fill, int64_t range)
{
    if (!std::ranges::all_of(dims, [](const Polynomial& d) { return d.dim().has_value(); })) return -1;
    if (!fits(dims)) return -1;
    const bool is_static = std::ranges::all_of(dims, [](const Polynomial& d) { return d.is_constant(); });
    Input in;
    in.type = t, in.dims = dims;
    if (!p_.compiled) in.source = Input::Leaf;
    else if (dims.empty() && dice_.chance(40)) in.source = Input::Scalar;
    else if (is_static && dice_.chance(10)) in.source = Input::Leaf;
    if (!dims.empty() && dice_.chance(40)) in.lie = Lie(dice_.within(0, 4));
    if (in.source == Input::Scalar) in.slot = next_byte_, next_byte_ += 8;
    if (in.source == Input::Param) {
        in.slot = next_slot_, next_slot_ += dice_.chance(10) ? 2 : 1;
        in.any_strides = dice_.chance(20) || (!is_static && in.lie != Lie::Dense && in.lie != Lie::Shifted);
    }
    const auto shared = [&](size_t r) { return std::make_shared<const Bytes>(values(t, count_of(values_of(dims, p_.runs[r])), fill, range)); };
    for (size_t r = 0; r < p_.runs.size(); r++) in.values.push_back(shared(r));
    p_.inputs.push_back(std::move(in));
    Node n{Form::Input};
    n.ints = {int64_t(p_.inputs.size()) - 1};
    return accept(n) ? int(p_.nodes.size()) - 1 : -1;
}

}  // namespace programs
