// A problem as the portable products see it: arranged, its operands and how they lie, what of them is copied before, and what an instance takes for it.
#pragma once
#include "lib/backend/cuda/gemm_mma_instances.h"

namespace ng::cuda::gemm::mma {

inline constexpr int64_t THIN = 16;      // rows of the lowest tiles
inline constexpr double  LAUNCH = 2500;  // nanoseconds, with the work's begin and end

// As kernels take it: few rows rather than few columns, else c's columns are the nearer ones.
Problem arranged(Problem p);

// An operand as kernels see it, and how it wants to lie in shared memory.
struct Lying {
    MmaOperand operand;
    int64_t    lines, steps, batches;    // batches: 1 where all read the same
    Near       near;                     // of bytes depth, however they lie
    bool       is_even;                  // 16 bytes are read at once
    bool       is_steady;                // and are the very bits that are multiplied
    bool       is_by_fours;              // halves: four neighbours are
    bool       is_copied;                // first, where that can be; of another type, it has to be
};

// The problem and its operands.
struct Form {
    Problem p;
    Kind    kind;
    Lying   a, b;
    bool    needs_copies() const { return copies_elements(kind) && (a.is_copied || b.is_copied); }
};
Form form_of(const Problem& problem);

// What copies it as kernels want it to lie; and what both operands' take, where they are copied.
MmaLayNumbers copy_of(const Lying& x, Kind kind);
uint64_t copy_bytes(const Lying& x, Kind kind);
uint64_t copies_bytes(const Form& f);

// How lanes of an instance of small tiles read an operand, of which they have so many neighbouring lines each.
SmallReads reads_of(const MmaOperand& o, int64_t lines, int64_t steps, int64_t batches, int64_t of_lane, const Instance& i);
bool has_fours(const Problem& p, Kind kind, const void* c);     // as MmaNumbers has it, of sums as that kind has them, where c begins there

// Nanoseconds of one instance with the depth in so many parts.
double nanoseconds_of(const Form& f, const Instance& i, int64_t tiles, int64_t splits, const Device& device);
// Whether that is of so many tiles of a batch that blocks are all that a multiprocessor has room for.
bool are_many(const Form& f, const Instance& i, int64_t tiles, const Device& device);

}  // namespace ng::cuda::gemm::mma
