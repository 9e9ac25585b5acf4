// What a product is told of the operand that a text makes while it is loaded: tensors that each line of it has an element of, and numbers.
#pragma once
#include "kernels/basic.h"

namespace ng::kernels {

struct OperandTensor {
    const void* data;
    i64         line;                    // stride in elements; 0: the same for all
};
constexpr int OPERAND_TENSORS = 4, OPERAND_NUMBERS = 16;

struct OperandText {
    OperandTensor tensor[OPERAND_TENSORS];
    u64           numbers[OPERAND_NUMBERS];      // as the text's struct has them
};

// Steps of depth in a tile, by the bytes of an element as it lies.
ANYWHERE constexpr int operand_depth(int bytes) { return bytes == 4 ? 32 : 64; }
constexpr int OPERAND_COLUMNS = 128, OPERAND_WARPS = 4;
constexpr int MOST_MET = 8;              // parts of depth that meet in a cluster, a power of two

}  // namespace ng::kernels
