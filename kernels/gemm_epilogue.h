// What a matrix product does to its sums before they are stored: nothing or a cast, or what a text says that is compiled with it.
#pragma once
#include "kernels/basic.h"

namespace ng::kernels {

// How a tensor comes to the threads of a tile: each takes it from memory; one element a column, or a row, that wait in shared
// memory; all by the copy engine. Or what is written of a fold over columns, or rows: one element for each part of these, and
// the stride along them goes from part to part. A text has this of each tensor as well.
enum EpilogueKind : i32 { ANYHOW, OF_COLUMNS, OF_ROWS, BY_ENGINE, OVER_COLUMNS, OVER_ROWS };

// What an epilogue reads or writes beside c. together: 4, 2 or 1 neighbours of a row that one access may move, where the first
// one's column is a multiple of that; 0: one element is that of all columns.
struct EpilogueTensor {
    const void* data;
    i64         batch, row, column;      // strides in elements; 0: the same all along
    i32         bytes, together, kind;   // bytes: of an element
};
constexpr int EPILOGUE_TENSORS = 8, EPILOGUE_NUMBERS = 23;
constexpr int EPILOGUE_MOST = 4;         // sums of a row that it works on at once

// For sums that are f32 or i32. Shipped kernels look at is_cast alone.
struct Epilogue {
    i32            count, loads;         // tensors, and how many of them are read: the first ones; parts of folds are the last
    i64            is_cast;              // i32 sums become a float
    EpilogueTensor tensor[EPILOGUE_TENSORS];
    u64            numbers[EPILOGUE_NUMBERS];    // as the text's struct has them
    // Where tensors have batches in two axes: how many the inner one has, and each tensor's stride along the outer one.
    i64            inner, outer[EPILOGUE_TENSORS];
};

}  // namespace ng::kernels
