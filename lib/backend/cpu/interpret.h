// The loop over a tape's instructions, and the registers that it works on.
#pragma once
#include "lib/backend/cpu/fused.h"
#include "lib/backend/cpu/plan.h"

#include <cstdint>

namespace ng::cpu {

// What all tasks of one run share.
struct Job {
    const Program&  program;
    const Plan&     plan;
    const FusedRun& run;
    const int64_t*  lengths;
};

// A task's registers. A slot's pointer is its home in the scratch memory, or a tensor's own memory.
inline constexpr int MAX_AHEAD = 4;

// What is left of the last block's results, and where it goes.
struct Behind {
    char*       to;
    const char* from;
    int64_t     bytes = 0;
};

struct Frame {
    const Job* job;
    char*      slots[MAX_SLOTS];
    char*      homes[MAX_SLOTS];
    Form       form[MAX_SLOTS];       // One: the slot holds one number for the whole block; codes are for chains alone
    char*      temps[TEMPS];
    int64_t    uniform[MAX_UNIFORM];
    Ahead      ahead[MAX_AHEAD];      // what the next block will read of one access each, not yet on its way
    int        aheads = 0;
    // Results of a block on their way past the caches, while the next one is computed: full_stride bytes; null: they go at once.
    char*      outbox = nullptr;
    Behind     behind;
};

// Gives each slot its home in SCRATCH_BYTES, 64-byte aligned.
void set_up(Frame& frame, const Job& job, char* scratch) noexcept;

// Computes a list for the block of `count` elements whose accesses begin at `at`. group: of row lists, the plan's.
void execute_list(Frame& frame, List list, const int64_t* at, int64_t count, int64_t group) noexcept;
inline void execute(Frame& frame, List list, const int64_t* at, int64_t count, int64_t group = 0) noexcept
{
    if (list.begin != list.end) execute_list(frame, list, at, count, group);
}

// All lists of a unit that has one block, of `count` elements. row_count: those of a row value.
void execute_unit(Frame& frame, const int64_t* at, int64_t row_count, int64_t count) noexcept;

// Writes what is left of the last block's results. By each task, at its end.
void empty_outbox(Frame& frame) noexcept;

// As execute does one after the other for `rows` steps of a list that folds memory, `stride` from one to the next.
void sum_memory(Frame& frame, List list, const int64_t* at, const int64_t* stride, int64_t rows, int64_t count) noexcept;

// What was written past the caches is seen by other cores from here on. By each thread, at the end of its task.
void fence_streams() noexcept;

// Brings together what the groups of a block have folded, and lays it in each of them.
void join_groups(Frame& frame, int32_t pass) noexcept;

}  // namespace ng::cpu
