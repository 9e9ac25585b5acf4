// What the parts of the model of Hopper's products share: those of splits, and of few rows or columns.
#pragma once
#include "lib/backend/cuda/gemm_sm90_place.h"

#include <algorithm>

namespace ng::cuda::gemm::sm90 {

inline double element_bytes(const Form& form) { return form.planes == 3 ? 6 : double(bytes_of(form.problem.a_type)); }

// How many matrices an epilogue reads, and how many vectors.
inline int matrices_of(const Problem& p)
{
    return int(std::count_if(p.epilogue.tensor, p.epilogue.tensor + p.epilogue.loads, [](const kernels::EpilogueTensor& t) { return t.row != 0 && t.column != 0; }));
}
inline int vectors_of(const Problem& p) { return p.epilogue.loads - matrices_of(p); }

// A split's blocks on a card. together: how many share a multiprocessor, of which the slowest decides: two, as soon as not all clusters find ones of their own.
struct SplitBlocks {
    SplitTile tile;
    double    blocks, together, rounds, steps;       // steps: of depth, of each block
};
SplitBlocks blocks_of(const Form& form, const Device& device, const Instance& instance, const Choice& choice);
// What an epilogue makes of a split's store, in microseconds, as all times here.
double finish_us(const Problem& problem, const Instance& instance, int32_t cluster);

// Few columns by much of the other operand; or about as many rows or columns as one text has.
bool has_few_columns(const Problem& problem);
bool has_some_lines(const Problem& problem);
// Splits that few_lines_us knows.
bool   takes_few_lines(const Form& form, const Instance& instance);
double few_lines_us(const Form& form, const Device& device, const Instance& instance, const Choice& choice);
// What few rows of halves take of tiles at least, a block of which has a multiprocessor for itself, as much else comes from memory; 0 of other products.
double least_streamed_us(const Form& form, const Form& own, const Device& device, const Instance& instance);

// Few columns of halves of which there is little else, which all comes from the second cache: splits, and odd instances of any few columns; what these take at least of more.
bool   has_small_columns(const Problem& problem);
bool   takes_small_columns(const Form& form, const Instance& instance);
bool   takes_odd_columns(const Form& form, const Instance& instance);
double small_columns_us(const Form& form, const Device& device, const Instance& instance, const Choice& choice);
double odd_columns_us(const Form& form, const Device& device, const Instance& instance, const Choice& choice);
double least_odd_us(const Form& form, const Device& device, const Instance& instance, const Choice& choice);

}  // namespace ng::cuda::gemm::sm90
