// How large a kernel may turn out when each length has a greatest value.
#pragma once
#include "jit/emit_forms.h"

#include <span>

namespace ng::emitting {

// No launch has more, but of rows that lie so far apart that they take a tensor beyond 256 GiB; infinite where some length has
// no greatest value. reach: elements between the first and the last that one access meets on its walk over points.
struct Bounds {
    double rows, points, reach;
    bool within(double most) const { return rows < most && points < most && reach < most; }
};
// most: the greatest lengths, by variable; what lies beyond them is not known.
double magnitude(const Extent& e, std::span<const int64_t> most);      // the greatest that the extent may have
Bounds bounds_of(const Arranged& a, std::span<const int64_t> most);

}  // namespace ng::emitting
