// Kernels as CUDA's forms see them: axes put in order and joined, vectors along one of them, what a point costs.
#pragma once
#include "jit/cost.h"
#include "jit/emit_parts.h"
#include "jit/error.h"

#include <algorithm>
#include <optional>

namespace ng::emitting {

// Which entry of Geometry::cuts is what.
enum class Cut : int64_t {
    LogLanes,    // of the threads that share a row, or of those that share a vector of rows
    Parts,       // of a row, each a block's
    Chunk,       // points of a part
    Region,      // bytes of one fold's partial results
    TilesAlong,  // tiles side by side along the vectors' axis
    TilesAcross, // and along the tiles' other axis
    LogJoin,     // of the columns side by side where their parts meet
    LogLast,     // LogLanes of the last walk of columns, which asks for no meeting: as wide as may be
    Turns,       // in which that goes through each part
    Lag,         // parts by which a row's second walk follows the first where they are one launch
};

// What blocks keep which stay and take one row or column after the other: bytes of a point, 0: they cannot, and in registers of what is
// dear to compute; of shared memory, what folds meet in, and what each part tells of them.
struct Stayed {
    int32_t point_bytes = 0, kept_bytes = 0, meeting_bytes = 0, told_bytes = 0;
    bool    is_ring = false;
    int32_t shared_bytes(int32_t log_parts) const { return meeting_bytes + (told_bytes << log_parts); }
};

struct Arranged {
    Kernel  kernel;
    Passes  passes;
    std::vector<int32_t> kept, reduced;
    int32_t axis = -1;           // that vectors lie along; -1: none can
    bool    is_across = false;   // that axis is kept: a vector is of rows
    int32_t width = 1;           // of the widest vector worth its registers
    int32_t tile_axis = -1;      // that some loads lie along, not the vectors' axis: tiles are turned in shared memory; -1: none
    int32_t tile_side = 0;       // points along that
    bool    is_flat = false;     // vectors of points in row-major order, over the ends of rows: what lies otherwise moves by elements
    bool    is_peeled = false;   // vectors begin with the first aligned element of a row, wherever that is
    bool    may_peel = false;    // so do those of some rows that are not known
    std::vector<bool> moved_singly;      // peeled, by access: its vectors are aligned elsewhere
    int32_t weight = 1;          // of a point: about its instructions
    int32_t held_bytes = 0;      // of a point, of what a held row keeps between passes
    std::vector<uint32_t> held_wanted;   // Passes::wanted where a row is held
    std::vector<int32_t> kept_from;      // by value: the pass whose result a held row keeps for later ones, -1: none
    std::vector<Passes::Running> parts;  // by value: in a ring, folds of what other folds give, of which each block takes its own
    Stayed  stayed;
    std::vector<int32_t> unit;   // by access: the axis along which elements lie side by side, -1: none
    Extent  rows = 1, points = 1;

    bool has_rows() const { return passes.has_rows; }
    // What threads walk along: the reduced axes; without rows all.
    const std::vector<int32_t>& walked() const { return has_rows() ? reduced : kept; }
    bool is_full(int32_t v) const { return passes.level[size_t(v)] == Level::Full; }
    bool is_held(int32_t v) const;       // a load that several passes read
    bool is_tiled(int32_t v) const;      // a load along tile_axis
};
// may_run: folds may run beside those whose results they are of. most: the greatest lengths, by variable, as far as known.
Arranged arrange(const Kernel& kernel, bool may_run, std::span<const int64_t> most);
inline constexpr int32_t TILE_POINTS = 4096, TILE_SIDE = 64;     // of a tile (prelude_turned.cuh), and along its loads' axis at most: 128 bytes of f16, a line of the cache
inline constexpr int32_t LOG_CLUSTER = 3;   // of the most blocks that share a held row: as many as every GPU that has clusters lets meet
inline constexpr int32_t LOG_LARGE_CLUSTER = 4;      // and whole cards of Hopper
inline constexpr int32_t CHEAP = 20;         // instructions of a point up to which it is the memory that counts
inline constexpr int64_t LARGE_BYTES = 128 << 10;   // of a held row's loads, that a block has which fills a processor
// Of blocks that stay. With 1024, norms of columns of 16384 f16 took 194 us on an H200, so 174; rows the same.
inline constexpr int32_t STAYING_THREADS = 512;
// Vectors that a thread of them takes at once, and adds up as pairs of pairs: four, if that leaves no more than one without points.
inline int32_t staying_at_once(int64_t held) { return held % 4 == 1 || held % 4 == 2 ? int32_t(std::min<int64_t>(held, 2)) : 4; }
inline constexpr int32_t TILE_THREADS = 256;
inline constexpr int32_t AHEAD_BYTES = 40 << 10;   // of what a block's threads have on their way
inline constexpr int32_t LAST_TURNS = 4;    // of the last walk of columns' parts, for as many of them at once as the others have
bool is_tiled(const Arranged& a, const LaunchClass& c);
void hold(Arranged& a);
void hold_loads(Arranged& a);        // nothing dear is kept
void hold_dear(Arranged& a);         // all that is

// Whether every point has an element of its own. What others have is in caches, however it lies.
bool is_whole(const Kernel& kernel, const Access& access);

// From one element of a vector to the next.
enum class Pace : uint8_t { Same, Unit, Strided };
// A stride that is known when run, and most likely 1, is taken for that in classes of vectors.
Pace pace_of(const Arranged& a, int32_t access, bool is_vector);

// Peels rows that vectors of `most` elements do not divide, if that pays; whether lengths and addresses allow it, those as far as known.
void choose_peeled(Arranged& a, int32_t most);
// The load of a whole tensor by whose address all vectors are aligned, -1: there is none.
int32_t lead_of(const Arranged& a);
bool fits_peeled(const Arranged& a, std::span<const int64_t> variables, std::span<const uint64_t> addresses);
// Points of a row from which on that pays; width: of the vectors.
int64_t least_peeled(const Arranged& a, int32_t width);
// The least threads that share a held row which is peeled; by_vectors: of one that vectors divide.
int64_t peeled_lanes(const Arranged& a, int32_t width, int64_t points, int64_t by_vectors);

// Everything that a launch asks of lengths is known before; all but how many rows there are and how they lie to each other.
bool is_constant(const Arranged& a);
bool has_known_rows(const Arranged& a);

// Calls f(access, type, buffer) for what threads move point by point.
template <class F>
void each_moved(const Arranged& a, const F& f)
{
    for (size_t v = 0; v < a.kernel.values.size(); v++) {
        const Value& value = a.kernel.values[v];
        if (value.kind == ValueKind::Load && a.is_full(int32_t(v)) && a.passes.wanted[v]) f(value.access, value.type, value.buffer);
    }
    for (size_t s = 0; s < a.kernel.stores.size(); s++) {
        const StoreTo& store = a.kernel.stores[s];
        if (!a.passes.stores[s].row) f(store.access, a.kernel.values[size_t(store.value)].type, store.buffer);
    }
}

// Whether nothing that points move has more than two bytes: of an H100, what instructions and bytes on their way do for these they do not for words (2026-11-27).
bool has_small_points(const Arranged& a);

// Whether places are folded, which numbers of points are.
bool is_numbered(const Kernel& kernel);

// Bytes of a point that come from memory; vectors that a thread has at once, of points, of what it walks, of a held row or column.
int32_t loaded_bytes(const Arranged& a);
int32_t held_points(const Arranged& a, int32_t width);
int32_t held_walk(const Arranged& a, int32_t width);
int32_t held_row(const Arranged& a, int32_t width);
int32_t held_most(const Arranged& a, int32_t width);
int32_t held_column(const Arranged& a, int32_t width);

// Of columns, that a processor has at once.
int32_t column_blocks(const Arranged& a, int32_t width);

// The most threads of a block.
int32_t threads_of(const LaunchClass& c);

// Whether the parts of rows or columns take a launch after the last pass for what each has once.
bool ends_with_rows(const Arranged& a);

Stayed stayed_of(const Arranged& a, bool is_ring);
inline constexpr int32_t MOST_DECLARED = 48 << 10;      // bytes of shared memory that a text may declare
inline constexpr int32_t STAYED_LINE = 64;     // columns side by side that they have, at most
// Vectors of those: as many as a line of memory takes.
constexpr int32_t log_line(int32_t width, int32_t point_bytes)
{
    int32_t log = 0;
    while (width * point_bytes << log < 128 && width << log < STAYED_LINE) log++;
    return log;
}
// Bytes that their warps meet in: of each an accumulator of each column.
constexpr int32_t across_bytes(int32_t columns, int32_t accumulator) { return STAYING_THREADS / 32 * columns * accumulator; }
inline constexpr int32_t RING = 3;             // places of a ring
inline constexpr int32_t RING_TURNS = 4;       // rows of which it is told at once what parts have made of them
// In a ring blocks fold on before they know what others have made of a row, so each takes folds of what another fold gives (`parts`,
// which this finds) with its own; false: that cannot be said anew for all of the row.
bool may_ring(Arranged& a);
// The text and launch of rows that are held so, nothing where another form is faster.
struct Staying { LaunchClass text; Geometry::Launch launch; };
std::optional<Staying> stay(const Arranged& a, int64_t rows, int64_t points, const DeviceTraits& device);

// Whether two walks over rows in parts are one launch.
bool chases(const Arranged& a);

KernelSource print_form(const Arranged& a, const Dialect& dialect, const LaunchClass& c);

}  // namespace ng::emitting
