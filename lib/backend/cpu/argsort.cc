// The stable order of lines: keys whose bits sort as their values do, then a radix sort from the lowest byte.
#include "lib/backend/cpu/saturated.h"
#include "lib/backend/cpu/walk.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

namespace ng::cpu {
namespace {

constexpr int64_t SHORT = 48;            // insertion is faster below

// Unsigned bits that ascend as the values do; NaN is the greatest, both ways; -0 is 0.
template <class T>
uint64_t key_of(T v, bool descending)
{
    constexpr int BITS = 8 * sizeof(T);
    constexpr uint64_t ALL = BITS == 64 ? ~uint64_t(0) : (uint64_t(1) << BITS % 64) - 1;
    uint64_t key;
    if constexpr (std::is_floating_point_v<T>) {
        if (v != v) return ALL;
        using U = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
        const uint64_t bits = std::bit_cast<U>(T(v + 0));          // -0 + 0 is 0
        key = bits >> (BITS - 1) ? ~bits & ALL : bits | uint64_t(1) << (BITS - 1);
    } else {
        key = uint64_t(v) & ALL;
        if constexpr (std::is_signed_v<T>) key ^= uint64_t(1) << (BITS - 1);
    }
    return descending ? ~key & ALL : key;                          // of numbers it never is ALL
}

struct Entry { uint64_t key; int64_t index; };

void insertion_sort(Entry* e, int64_t n)
{
    for (int64_t i = 1; i < n; i++) {
        const Entry x = e[i];
        int64_t k = i;
        for (; k > 0 && e[k - 1].key > x.key; k--) e[k] = e[k - 1];
        e[k] = x;
    }
}

// Sorted entries are in the array that comes back.
Entry* radix_sort(Entry* from, Entry* to, int64_t n, int bytes)
{
    int64_t count[8][256];
    std::memset(count, 0, sizeof count);
    for (int64_t i = 0; i < n; i++)
        for (int d = 0; d < bytes; d++) count[d][from[i].key >> 8 * d & 255]++;
    for (int d = 0; d < bytes; d++) {
        int64_t at = 0;
        bool trivial = false;
        for (int64_t& c : count[d]) {
            trivial = trivial || c == n;
            at += std::exchange(c, at);
        }
        if (trivial) continue;
        for (int64_t i = 0; i < n; i++) to[count[d][from[i].key >> 8 * d & 255]++] = from[i];
        std::swap(from, to);
    }
    return from;
}

uint64_t line_bytes(int64_t n) { return (2 * uint64_t(n) * sizeof(Entry) + 63) / 64 * 64; }

}  // namespace

uint64_t argsort_workspace(const int64_t* dims, int axis, uint32_t workers) { return room_of_workers(line_bytes(std::min(dims[axis], MOST_ROOM)), workers); }

void argsort(const Operand& x, const Operand& y, int rank, int axis, uint32_t flags, const IndexPlace& place)
{
    const int64_t n = x.dims[axis];
    if (n == 0) return;                                            // the strides of no elements may be any
    Walk lines;
    for (int a = 0; a < rank; a++)
        if (a != axis) lines.add(x.dims[a], x.strides[a], y.strides[a]);
    const auto tasks = uint32_t(std::clamp<int64_t>(std::min<int64_t>(lines.count, lines.count * n / 4096), 1, 64));
    const bool descending = flags & NG_REVERSE;
    auto* const order = static_cast<int64_t*>(y.data);
    with_compute_type(x.type, [&]<class T>(T) {
        const Elements<T> e(place.isa, x.type);
        place.parallel.for_each(tasks, [&](uint32_t task, uint32_t worker) {
            auto* const entries = reinterpret_cast<Entry*>(static_cast<char*>(place.workspace) + worker * line_bytes(n));
            Walk w = lines;
            const int64_t first = lines.count * task / tasks, end = lines.count * (task + 1) / tasks;
            w.seek(first);
            for (int64_t l = first; l < end; l++, w.next()) {
                for (int64_t i = 0; i < n; i++) entries[i] = {key_of(e.get(x.data, w.a + i * x.strides[axis]), descending), i};
                Entry* sorted = entries;
                if (n < SHORT) insertion_sort(entries, n);
                else sorted = radix_sort(entries, entries + n, n, int(sizeof(T)));
                for (int64_t i = 0; i < n; i++) order[w.b + i * y.strides[axis]] = sorted[i].index;
            }
        });
    });
}

}  // namespace ng::cpu
