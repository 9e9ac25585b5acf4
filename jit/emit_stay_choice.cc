// Chooses which rows, or lines of columns, blocks hold that stay: how many blocks share one, and how many of those are there at once.
#include "jit/emit_forms.h"

#include "jit/saturated.h"

#include <algorithm>
#include <bit>

namespace ng::emitting {
namespace {

constexpr int32_t STAYING_BYTES = 200 << 10;     // of shared memory, that blocks which stay and what they meet in fit
constexpr int64_t ALONE_BYTES = 116 << 10;        // of which no processor has two: of clusters whose blocks fit by twos some would stand on half of the processors
constexpr int64_t PLACE_BYTES = 64 << 10;        // of a ring; with half of it rows of 65536 f16 took 116 us on an H200, so 76

int32_t log_of(int64_t n) { return n <= 1 ? 0 : 64 - std::countl_zero(uint64_t(n - 1)); }       // of the next power of two

// Clusters that are there at once: of 132 processors an H200 lets 7 of 16 blocks run and 15 of 8, for they come in groups.
int64_t teams_of(int32_t log_parts, const DeviceTraits& device)
{
    return std::max<int64_t>(1, (log_parts <= 1 ? device.units : device.units - device.units / 11) >> log_parts);
}

// Of sixteen blocks: what has fewer processors may be a part of a card, which may have room for none.
bool has_large_clusters(const DeviceTraits& device) { return device.compute == 90 && device.units >= 132; }

// What a thread keeps of its points, and has on its way of the next row's: 96 registers.
constexpr int64_t REGISTER_BYTES = 384;
constexpr int64_t HELD_POINTS = 1 << 14;            // that blocks hold by two of a processor, and keep what is dear

// Of a row or a line of columns, that a block has at most; where it keeps what is dear, as much as registers have room for.
int64_t most_bytes(const Stayed& s)
{
    if (s.kept_bytes) return STAYING_THREADS * (REGISTER_BYTES / (s.point_bytes + s.kept_bytes)) * s.point_bytes;
    return s.is_ring ? PLACE_BYTES : LARGE_BYTES;
}

// Whether it is faster than rows held at once, or than columns read again. Tuned on an H200, 128 MB: norms of 262144 f16 took 78 us, so
// 85, in a ring 75; of 65536 73 held at once, so 76, in a ring 76; of 65536 f32 77, in a ring 73; softmaxes of 65536 f16 98 so, in a ring 102,
// of f32 78 and 83; columns of 1024 f16 106 read again, so 110, in a ring 85, of 4096 99 so, in a ring 97, of f32
// 89 and 83; softmaxes of columns of 1024 f16 120 read again, in a ring 124, of 4096 170 so, in a ring 145. Where threads' last vectors have no points,
// on an H100, 80 MB of f16 and 160 of f32: softmaxes of columns of 3000 f16 102 read again, so 114, of 1500 in fewer parts 111 and 102; of 30000 f32 115 held at once, so 129, of 50304 f16 80 and 74. By sixteen blocks softmaxes of 400000
// f32 176 read again, so 122, norms of columns of 12000 f32 176 and 136, softmaxes of those of f16 102 and 128. With what is dear in registers softmaxes of
// 65536 f16 took 77 us on an H200, computed twice 100, of 32768, held at once, 75 and 102, of 524288 by sixteen blocks 94 and by eight 114, of 131072 f32 73 and 88;
// of columns of 1024 f32 84, read again 113, but of 1024 f16 138 and 121, of 8192 f32 105 and 102.
bool pays(const Arranged& a, bool is_whole, int32_t log_parts, const DeviceTraits& device)
{
    const bool is_ring = a.stayed.is_ring, is_dear = a.weight > CHEAP, is_small = a.stayed.point_bytes <= 2;
    if (a.stayed.kept_bytes) return a.is_across ? log_parts == 1 && !is_small : log_parts <= LOG_CLUSTER || (log_parts == LOG_LARGE_CLUSTER && has_large_clusters(device));
    if (log_parts > LOG_CLUSTER) return !is_ring && log_parts == LOG_LARGE_CLUSTER && has_large_clusters(device) && (a.is_across ? !(is_dear && is_small) : is_dear);
    if (!is_whole && is_dear && (a.is_across ? log_parts == LOG_CLUSTER && is_small : log_parts == 0 && !is_small)) return false;
    if (a.is_across) return log_parts > (is_ring && is_dear ? 1 : 0);
    return is_ring ? !is_dear && log_parts > 1 : is_dear || (log_parts > 1 && is_small);
}

}  // namespace

std::optional<Staying> stay(const Arranged& a, int64_t rows, int64_t points, const DeviceTraits& device)
{
    const bool is_ring = a.stayed.is_ring;
    const int64_t most = most_bytes(a.stayed);
    // Of what keeps much a thread would have less than two vectors. Peeled rows are faster so where something is kept: softmaxes of 50257 f16 92 us on an H200, held at once 119.
    if ((a.is_peeled && !a.stayed.kept_bytes) || device.shared_bytes < STAYING_BYTES || most < STAYING_THREADS * 2 * a.width * a.stayed.point_bytes) return std::nullopt;
    const int32_t log = a.is_across ? log_line(a.width, a.stayed.point_bytes) : 0;
    const int64_t line = a.is_across ? int64_t(a.width) << log : 1, items = divided_up(rows, line), bytes = points * line * a.stayed.point_bytes;
    const int32_t log_parts = log_of(divided_up(bytes, most)), places = is_ring ? RING : 1;
    const int64_t team = int64_t(STAYING_THREADS) << log_parts, turn = a.is_across ? team >> log : team * a.width, held = divided_up(a.is_peeled ? points / a.width * a.width : points, turn);
    const bool is_whole = !a.is_peeled && held * turn == points && rows % line == 0 && held % staying_at_once(held) == 0;
    // Shorter ones are held by several blocks of a processor. No part of a ring is empty, for of nothing there is no mean.
    if ((a.stayed.kept_bytes ? points * line <= HELD_POINTS : bytes <= LARGE_BYTES / 2) || (held == 1 && !is_whole) || !pays(a, is_whole, log_parts, device)) return std::nullopt;
    const int64_t teams = std::min<int64_t>(items, teams_of(log_parts, device)), shared = std::max(places * held * STAYING_THREADS * a.width * a.stayed.point_bytes, ALONE_BYTES);
    // Nobody waits long for the last.
    if (items * 5 < divided_up(items, teams) * teams_of(log_parts, device) * 4 || a.stayed.shared_bytes(log_parts) > MOST_DECLARED || shared + a.stayed.shared_bytes(log_parts) > device.shared_bytes) return std::nullopt;
    Staying s{{Form::Held, uint8_t(a.width), uint8_t(held), false, log_parts > 0}, {}};
    s.text.is_full = is_whole, s.text.is_large = s.text.is_staying = true;
    s.text.is_peeled = a.is_peeled, s.text.is_ring = is_ring, s.text.is_keeping = a.stayed.kept_bytes > 0, s.text.log_parts = int8_t(log_parts), s.text.log_line = int8_t(log);
    s.launch = {uint32_t(teams << log_parts), uint32_t(STAYING_THREADS), uint32_t(1) << log_parts, uint32_t(shared)};
    return s;
}

}  // namespace ng::emitting
