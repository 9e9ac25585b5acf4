// How a kernel walks a space whose extents and strides are known: loops, the vector axis, blocks, chunks and pieces.
#pragma once
#include "lib/backend/cpu/tape.h"

#include <cstdint>

namespace ng::cpu {

inline constexpr double PARALLEL_NS = 50e3;            // what takes less is one task

// How a block of several rows lies in memory: as a whole, as one row that is read again for each, or as one number for each.
enum class Lie : uint8_t { None, Whole, Again, Each };

// Rows: blocks along a reduced axis, each fold one number. Columns: blocks along a kept axis, each fold a block; kernels
// that reduce nothing are columns of one point. Depends on extents and strides alone, so results do, too.
struct Plan {
    const Tape* tape = nullptr;
    bool    is_columns = true;
    bool    is_streaming = false;     // more memory than caches hold: stores go past them
    bool    is_prefetching = false;   // the next block's memory is asked for while this one is computed
    int32_t kept = 0, reduced = 0;    // loops, outermost first, kept ones before reduced ones; one counts blocks
    int32_t block_loop = 0;
    int64_t units = 1, steps = 1;     // points of the kept and of the reduced loops; 0 where a space is empty
    int64_t block = MIN_BLOCK, tail = 1;               // elements of a block, and of the last along its axis
    int64_t row_count = 0;            // elements of a row value in its register; 0: as many as the block at hand has
    // Short columns: a block is several reduced points of `group` kept ones each. Row values lie in their registers again
    // and again, and folds are brought together after each pass. 0: no such thing.
    int64_t group = 0;
    // Short rows where nothing is reduced: a block is several of `row` elements each. 0: no such thing.
    int64_t row = 0;
    int64_t banks = 1;                // sets of full registers, one a step, which a resident tape in columns keeps
    int64_t full_stride = 0, sent_stride = 0, light_stride = 0, row_stride = 0, temp_stride = 0;   // bytes from one register to the next
    uint32_t sums_memory = 0;         // bits of the passes whose steps sum_memory does, several at a time
    // Of these, passes of one fold down one loop of a unit: all of the sum is done where it is rounded.
    uint32_t sums_whole = 0;
    uint32_t chunks = 1, pieces = 1;  // tasks over units; tasks over the steps of one unit, whose folds are merged
    int32_t accesses = 0;
    // In the memory that the plan was given:
    int64_t* extents = nullptr;       // [kept + reduced]
    int64_t* strides = nullptr;       // [kept + reduced, accesses]
    int64_t* step = nullptr;          // [accesses], along the vector axis
    int64_t* offset = nullptr;        // [accesses]
    Lie*     lies = nullptr;          // [accesses of the program], of blocks of several rows; the step of Each is from one to the next
    // Stores that do not decide may not follow joined axes. Then a loop has an access that counts along its axis, from `positions` on,
    // and such a store finds its place by the parts that axes were joined from.
    static constexpr int64_t BY_PARTS = INT64_MIN;     // step of such a store
    bool*    strays = nullptr;        // [accesses of the program]; null: there are none
    int32_t  positions = 0;
    int64_t* parts_end = nullptr;     // [kept + reduced], of a loop's parts
    int64_t* parts = nullptr;         // an extent and the program's accesses' strides each, a loop's outermost first

    int64_t count_at(const int64_t* index) const { return index[block_loop] + 1 == extents[block_loop] ? tail : block; }
    int64_t row_count_at(const int64_t* index) const { return row_count ? row_count : count_at(index); }
    const int64_t* stride(int32_t loop) const { return strides + int64_t(loop) * accesses; }
    // Where a store that strays is, from its other axes, at this position along the loop's.
    int64_t place_by_parts(int32_t loop, int64_t position, int32_t access) const;
    // Elements that are left of the row of its innermost part; and the store's stride there.
    struct Row { int64_t count, stride; };
    Row row_by_parts(int32_t loop, int64_t position, int32_t access) const;
};

// Part of a space, by axis.
struct Box { const int64_t* first; const int64_t* count; };

// Numbers of memory that make_plan uses.
inline int64_t plan_numbers(const Program& p) { return int64_t(3 * p.axes + 4) * (p.accesses + p.axes + 1); }

// values: of the program's lengths. box: null for the whole space. memory: plan_numbers.
Plan make_plan(const Program& program, const int64_t* values, const Box* box, int64_t* memory) noexcept;

// Bytes for the partial folds of a plan's pieces.
inline uint64_t piece_bytes(const Program& program, const Plan& plan)
{
    return plan.pieces > 1 ? uint64_t(plan.pieces) * uint64_t(program.fold_slots) * uint64_t(plan.row_stride) : 0;
}

// The most that piece_bytes is, whatever the lengths.
uint64_t most_piece_bytes(const Program& program);

}  // namespace ng::cpu
