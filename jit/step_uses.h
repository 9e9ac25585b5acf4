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

// The steps that read each buffer, and those that write it, ascending.
struct BufferUses {
    std::vector<std::vector<int32_t>> readers, writers;

    explicit BufferUses(const Plan& plan) : readers(plan.buffers.size()), writers(plan.buffers.size())
    {
        for (size_t i = 0; i < plan.steps.size(); i++) {
            const auto once = [&](std::vector<int32_t>& users) {
                if (users.empty() || users.back() != int32_t(i)) users.push_back(int32_t(i));
            };
            each_read(plan.steps[i], [&](int32_t b) { once(readers[size_t(b)]); });
            each_write(plan.steps[i], [&](int32_t b) { once(writers[size_t(b)]); });
        }
    }
};

}  // namespace ng
