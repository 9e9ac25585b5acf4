// What the files of basic launches share: axes made few, grids, and parts of a workspace.
#pragma once
#include "lib/backend/cuda/basic_launch.h"
#include "lib/backend/cuda/rounding.h"

#include <algorithm>

namespace ng::cuda::basic {

inline constexpr int64_t MOST_BLOCKS = int64_t(1) << 20;   // of one grid; more is strided over

inline int64_t power_up(int64_t n)
{
    int64_t p = 1;
    while (p < n) p *= 2;
    return p;
}

// An axis of two arrays.
struct AxisPair {
    int64_t size, a, b;
};
// Up to MAX_AXES of them, as kernels walk them: those of one element dropped, neighbours that are one axis merged.
class AxisList {
  public:
    void add(int64_t size, int64_t a, int64_t b)
    {
        if (size != 1) axis_[rank_++] = {size, a, b};
    }
    // In the order of |b|, then |a|, greatest first: for operations in which elements do not care who is their neighbour.
    void nest_as_b();
    void merge();
    int64_t count() const;
    int     rank() const { return rank_; }
    AxisPair&       operator[](int i) { return axis_[i]; }
    const AxisPair& operator[](int i) const { return axis_[i]; }
    void            remove(int i) { std::copy(axis_ + i + 1, axis_ + rank_, axis_ + i), rank_--; }
    kernels::Axes   axes() const;

  private:
    int      rank_ = 0;
    AxisPair axis_[kernels::MAX_AXES];
};

// Launches with one thread an item, or one block.
template <class Numbers>
void launch(const Place& place, BasicKernel kernel, int64_t blocks, uint32_t block, const Numbers& numbers)
{
    static_assert(sizeof(Numbers) <= 4096, "parameters of a kernel have 4 KiB");
    if (blocks > 0) place.launch({kernel, uint32_t(std::min(blocks, MOST_BLOCKS)), block, 0, &numbers, uint32_t(sizeof numbers)});
}
template <class Numbers>
void launch_threads(const Place& place, BasicKernel kernel, int64_t threads, const Numbers& numbers)
{
    launch(place, kernel, divided_up(threads, kernels::THREADS), kernels::THREADS, numbers);
}

// Pieces of a workspace, one after the other.
class Pieces {
  public:
    explicit Pieces(void* workspace) : at_(static_cast<char*>(workspace)) {}
    void* take(uint64_t bytes)
    {
        char* const piece = at_;
        at_ += aligned(bytes);
        return piece;
    }
    Place rest(const Place& place) const { return {at_, place.launch}; }

  private:
    char* at_;
};

inline kernels::i32 code_of(Dtype t) { return kernels::i32(t); }
// Sums and folds run in f64, integers modulo 2^64.
inline bool is_real(Dtype t) { return is_float(t); }

// What a fold runs on: the last of several is moved, bits and all, whatever number they are (contract N2).
inline Dtype folded_as(Dtype t, Folding how)
{
    return how == kernels::LAST && is_float(t) ? bits_of_size(size_t(bytes_of(t))) : t;
}

// A stable sort of indices (i64, of any axes) by value, those outside 0 .. size - 1 last: their keys and places, sorted.
struct SortedIndices {
    const void *keys, *positions;
    bool        keys_are_wide, positions_are_wide;
};
uint64_t      sort_indices_workspace(int64_t size, int64_t count);
SortedIndices sort_indices(const void* indices, const kernels::Axes& at, int64_t size, int64_t count, const Place& place);

}  // namespace ng::cuda::basic
