// Polynomials of lengths at their greatest, in doubles: what leaves 63 bits is merely large.
#include "jit/emit_bounds.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ng::emitting {
namespace {

// Of what the extent may be, the greatest magnitude.
double magnitude(const Extent& e, std::span<const int64_t> most)
{
    double sum = 0;
    for (const Term& t : e.terms()) {
        double product = std::abs(double(t.coefficient));
        for (const int32_t v : t.variables) {
            if (size_t(v) >= most.size()) return std::numeric_limits<double>::infinity();
            product *= double(std::max<int64_t>(most[size_t(v)], 1));
        }
        sum += product;
    }
    return sum;
}

}  // namespace

Bounds bounds_of(const Arranged& a, std::span<const int64_t> most)
{
    Bounds b{a.has_rows() ? magnitude(a.rows, most) : 1, magnitude(a.points, most), 0};
    for (const Access& access : a.kernel.accesses) {
        double reach = 0;
        for (const int32_t axis : a.walked()) {
            const auto x = size_t(axis);
            if (!access.strides[x].is(0)) reach += magnitude(access.strides[x], most) * magnitude(a.kernel.axes[x].extent, most);
        }
        b.reach = std::max(b.reach, reach);
    }
    return b;
}

}  // namespace ng::emitting
