// The maps of jit/ops.def, on f32, that an instruction of an epilogue's list can be.
#pragma once

namespace ng::kernels {

constexpr const char* LISTED_MAPS[] = {"add",  "sub",     "mul",  "div",     "maximum", "minimum",       "less",       "less_equal", "greater",   "greater_equal", "equal", "not_equal", "neg",   "abs", "square",
                                       "sqrt", "reciprocal", "exp", "tanh",  "erf",     "relu",          "relu6",      "sigmoid",    "hard_sigmoid", "hard_swish", "silu",  "gelu",      "gelu_tanh", "elu", "where",
                                       "clip", "fma"};
constexpr bool is_listed_map(const char* name)
{
    for (const char* map : LISTED_MAPS) {
        int i = 0;
        while (map[i] && map[i] == name[i]) i++;
        if (map[i] == name[i]) return true;
    }
    return false;
}

}  // namespace ng::kernels
