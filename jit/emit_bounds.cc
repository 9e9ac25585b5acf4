// Polynomials of lengths at their greatest, in doubles: what leaves 63 bits is merely large.
#include "jit/emit_bounds.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ng::emitting {

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

namespace {

constexpr double MOST_BYTES = double(int64_t(1) << 38);      // what is larger is interpreted

// Bytes from one row to the next of what lies furthest apart, as far as known; 0: not known.
double bytes_apart(const Arranged& a)
{
    double most = 0;
    if (a.kept.size() != 1) return most;
    each_moved(a, [&](int32_t access, Dtype t, int32_t) {
        const Extent& stride = a.kernel.accesses[size_t(access)].strides[size_t(a.kept[0])];
        if (stride.is_constant()) most = std::max(most, std::abs(double(stride.constant())) * bytes_of(t));
    });
    return most;
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
    if (const double bytes = a.has_rows() ? bytes_apart(a) : 0; bytes > 0) b.rows = std::min(b.rows, MOST_BYTES / bytes);
    return b;
}

}  // namespace ng::emitting
