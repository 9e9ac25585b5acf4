// CUDA texts that find how far the functions of the prelude are off, over every f32 that there is.
#pragma once
#include "jit/error.h"

#include <string>
#include <vector>

namespace ng {

struct RowSweep { const char* name; const char* got; const char* want; };       // expressions of f32 x, of f64 d = x

inline const std::vector<RowSweep>& sweeps()
{
    static const std::vector<RowSweep> all = {
        {"exp, bound 2", "exp_f32(x)", "exp(d)"},
        {"tanh, bound 3", "tanh_f32(x)", "tanh(d)"},
        {"sigmoid, bound 4", "sigmoid_f32(x)", "d < 0 ? exp(d) / (1 + exp(d)) : 1 / (1 + exp(-d))"},
        {"normal_cdf, bound 7", "normcdf_f32(x)", "normcdf(d)"},
        {"gelu, bound 24", "gelu_f32(x)", "d * normcdf(d)"},
        {"silu, bound 8", "silu_f32(x)", "d < 0 ? d * exp(d) / (1 + exp(d)) : d / (1 + exp(-d))"},
        {"sqrt by a tame root, bound 0.5", "root(x)", "sqrt(d)"},
        {"1 / x by a tame quotient, bound 0.5", "reciprocal(x)", "1 / d"},
        {"x / 3 by an inverse, bound 0.5", "divided(x, 3.0f)", "d / 3"},
        {"x / 1.9999999 by an inverse, bound 0.5", "divided(x, 0x1.fffffep0f)", "d / 0x1.fffffep0"},
    };
    return all;
}

// Writes the worst: thousandths of a unit in the last place, and below them the code of where.
inline std::string text_of(const RowSweep& s)
{
    return text("DEVICE f32 divided(f32 x, f32 y)\n{\n    bool is_tame = true;\n    const f32 q = quotient_of(x, inverse_of(y), is_tame);\n    return is_tame ? q : x / y;\n}\n",
                "DEVICE f32 root(f32 x)\n{\n    bool is_tame = true;\n    const f32 r = root_of(x, is_tame);\n    return is_tame ? r : sqrtf(x);\n}\n",
                "DEVICE f32 reciprocal(f32 x)\n{\n    bool is_tame = true;\n    const f32 q = quotient_of(1.0f, x, is_tame);\n    return is_tame ? q : 1.0f / x;\n}\n",
                "extern \"C\" __global__ void fused(u64* worst)\n{\n    u64 here = 0;\n    for (u64 code = (u64)blockIdx.x * blockDim.x + threadIdx.x; code >> 32 == 0; code += (u64)gridDim.x * blockDim.x) {\n",
                "        const f32 x = f32_bits((u32)code), got = ", s.got, ";\n        const f64 d = x, want = ", s.want, ", size = fabs(want);\n",
                "        if (x != x || size > 3.4e38 || (f64)got == want || (got != got && want != want)) continue;\n",
                "        const f64 unit = size < 0x1p-126 ? 0x1p-149 : ldexp(1.0, ilogb(size) - 23), off = fabs((f64)got - want) / unit * 1000;\n",
                "        const u64 now = (u64)(off < 4e9 ? off : 4e9) << 32 | code;\n        here = now > here ? now : here;\n    }\n    atomicMax(worst, here);\n}\n");
}

}  // namespace ng
