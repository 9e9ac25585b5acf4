// An epilogue as a list of instructions that shipped kernels carry out, in the words of its numbers: no text is compiled for it.
//
//   word 0       instructions, types of tensors, which tensor each vector in shared memory is
//   from 1 on    an instruction each: code, where a second operand is from, whether it goes first, and a number
// The list works on a value, which begins as the sum, and has two places to keep others. A map of three operands has the one in the second place as
// its third. What is true is 1, else 0. A value may be folded, over columns or over rows, as the parts' tensors say: these stand behind those that are read.
#pragma once
#include "kernels/gemm_epilogue.h"

namespace ng::kernels {

// A code is a map's number among all rows of ops.def, or one of these: the value is kept, or takes the place of what is, the second operand is kept in
// the second place or becomes the value, or the value is rounded, or it is folded.
enum ListCode : u32 { LIST_KEEP_0 = 240, LIST_KEEP_1, LIST_SWAP_0, LIST_SWAP_1, LIST_BESIDE, LIST_TAKE, LIST_ROUND_F16, LIST_ROUND_BF16, LIST_FOLD };
enum ListSource : u32 { FROM_NUMBER, FROM_KEPT_0, FROM_KEPT_1, FROM_TENSOR };    // FROM_TENSOR + i: the i-th
constexpr int LIST_TENSORS = 3;
constexpr int LIST_MOST = EPILOGUE_NUMBERS - 1;          // instructions

// What an instruction folds, in parts of so many rows or columns, of which Hopper's tiles have as many as they are wide. LIST_SQUARES is four folds, over
// columns alone: the pivot, distances from it, their squares, and how many there are (gemm_epilogue.cuh).
enum ListFold : u32 { LIST_SUM, LIST_PROD, LIST_MIN, LIST_MAX, LIST_SQUARES };
constexpr int LIST_FOLDS = 2;            // instructions that fold, beside one of LIST_SQUARES
constexpr i32 LIST_PART_ROWS = 16, LIST_PART_COLUMNS = 64, LIST_TILE_COLUMNS = 128;
constexpr i32 LIST_FOLD_THREADS = 128, LIST_FOLD_ROWS = 128;     // threads of a portable block that folds, at most, and rows of one that does over rows
// The number of such an instruction. fold: the first one's number among all; index: its own among the LIST_FOLDS.
ANYWHERE constexpr u32 list_fold_number(u32 fold, u32 how, u32 index) { return fold | how << 8 | index << 16; }
ANYWHERE constexpr u32 list_fold(u32 number) { return number & 255; }
ANYWHERE constexpr u32 list_fold_how(u32 number) { return number >> 8 & 255; }
ANYWHERE constexpr u32 list_fold_index(u32 number) { return number >> 16; }

ANYWHERE constexpr u64 list_word(u32 code, u32 source, bool is_turned, u32 number) { return code | source << 8 | u32(is_turned) << 12 | u64(number) << 32; }
ANYWHERE constexpr u32 list_code(u64 word) { return u32(word) & 255; }
ANYWHERE constexpr u32 list_source(u64 word) { return u32(word) >> 8 & 15; }
ANYWHERE constexpr bool list_is_turned(u64 word) { return u32(word) >> 12 & 1; }
ANYWHERE constexpr u32 list_number(u64 word) { return u32(word >> 32); }

// Of word 0. A tensor's kind has the number of its vector in bits 8 and up.
ANYWHERE constexpr u64 list_type_bits(int tensor, i32 type) { return u64(type) << (8 + 4 * tensor); }
ANYWHERE constexpr i32 list_type(u64 head, int tensor) { return i32(head >> (8 + 4 * tensor)) & 15; }
ANYWHERE constexpr u64 list_vector_bits(int vector, int tensor) { return u64(tensor + 1) << (24 + 4 * vector); }
ANYWHERE constexpr i32 list_vector(u64 head, int vector) { return (i32(head >> (24 + 4 * vector)) & 15) - 1; }   // -1: none
ANYWHERE constexpr i32 list_length(u64 head) { return i32(head) & 255; }

}  // namespace ng::kernels
