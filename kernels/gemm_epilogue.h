// What a matrix product does to its sums before they are stored: a list of steps that shipped kernels carry out in registers.
#pragma once
#include "kernels/basic.h"

namespace ng::kernels {

// Maps of jit/ops.def, on f32, that a step can be.
constexpr const char* EPILOGUE_MAPS[] = {"add", "sub", "mul", "div", "maximum", "minimum", "neg", "abs", "tanh", "sigmoid", "relu", "relu6", "silu", "gelu", "gelu_tanh",
                                         "hard_swish", "clip"};
constexpr bool is_epilogue_map(const char* name)
{
    for (const char* map : EPILOGUE_MAPS) {
        int i = 0;
        while (map[i] && map[i] == name[i]) i++;
        if (map[i] == name[i]) return true;
    }
    return false;
}

// A step's op: the map's number among all rows of ops.def, or one of these.
enum EpilogueCode : i32 {
    EPILOGUE_KEEP = 10000,               // the value is put aside, to be an operand later
    EPILOGUE_ROUND,                      // to `type`, and back to f32
};
enum EpilogueSource : i32 { FROM_NUMBER, FROM_KEPT, FROM_TENSOR };

// Maps of two take the operand second, or first where is_turned; clip takes `number` and `high`.
struct EpilogueStep {
    i32         op, source, type, is_turned;   // type: of the tensor's elements, or what is rounded to
    float       number, high;
    const void* tensor;
    i64         row, column, batch;      // strides of it in elements; 0: the same all along
};
constexpr int EPILOGUE_STEPS = 10;

// For f32 sums, and for i32 sums that are cast to f32 first; other sums are stored as they are.
struct Epilogue {
    i32          count, is_cast;         // is_cast: i32 sums become f32
    EpilogueStep step[EPILOGUE_STEPS];
};

}  // namespace ng::kernels
