// Which buffers a step reads, and which it writes, one by one.
#pragma once
#include "jit/plan.h"

namespace ng {

template <class Visit>
void each_read(const Step& s, Visit&& visit)
{
    if (s.kernel) {
        for (const Value& v : s.kernel->values)
            if (v.buffer >= 0) visit(s.buffers[size_t(v.buffer)]);
    } else {
        for (const View& v : s.in) visit(v.buffer);
    }
}

template <class Visit>
void each_write(const Step& s, Visit&& visit)
{
    if (!s.kernel) return visit(s.out.buffer);
    for (const StoreTo& t : s.kernel->stores) visit(s.buffers[size_t(t.buffer)]);
}

}  // namespace ng
