// What decides which text a launch takes: asked once for each launch, and before of all that may be asked.
#pragma once
#include "jit/emit_forms.h"

#include <array>
#include <optional>
#include <span>

namespace ng::emitting {

// A kernel's arrangements, by how its rows are read.
struct Arrangements {
    Arranged kernel, running;                    // running: for rows that are not held by one block
    std::optional<Arranged> ring, keeping, staying;      // for blocks that stay, the first that is worth it; none where none can
    std::array<std::optional<Arranged>*, 3> stayed() { return {&ring, &keeping, &staying}; }
    std::array<const std::optional<Arranged>*, 3> stayed() const { return {&ring, &keeping, &staying}; }
};

inline constexpr int64_t NARROW = (int64_t(1) << 31) - (int64_t(1) << 22);     // below it sums of an index and a step fit an i32
inline constexpr int64_t PART_STEPS = 2;         // of a block through its part of columns, at least
inline constexpr int64_t PART_LEAST = 4096;      // points of a part of a row

// How what points move lies to vectors of the full width: all aligned; of rows, at the same points of each, so that they may be peeled; neither.
enum class Lie : uint8_t { Aligned, Level, Anyhow };
// No addresses: as far as lengths say.
Lie lie_of(const Arranged& a, std::span<const int64_t> variables, std::span<const uint64_t> addresses);

LaunchClass points_class(const Arranged& a, int32_t width, bool is_wide);
int32_t held_columns_width(int32_t width);
bool may_split(const Arranged& a);
bool may_cluster(const Arranged& a, const DeviceTraits& device);
bool is_walked_once(const Arranged& a, const Arranged& running);
// Of rows that are not known, each held by one block: the one text for all of them by vectors or single elements. `held` 0: none.
LaunchClass open_class(const Arranged& a, int32_t width);

// The launch of so many rows, 1 of what has none, and its text. Of rows that are known (has_known_rows) no variable is asked for.
Geometry choose(const Arrangements& all, int64_t rows, std::span<const int64_t> variables, const DeviceTraits& device, Lie lie, LaunchClass& c);

// No launch takes more scratch memory, of lengths up to these: fewer rows go in more parts.
uint64_t most_scratch(const Arrangements& all, std::span<const int64_t> most, const DeviceTraits& device);

}  // namespace ng::emitting
