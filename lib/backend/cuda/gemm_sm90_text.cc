// One of Hopper's instances as source for the run-time compiler, with an epilogue's text in it.
#include "jit/error.h"
#include "lib/backend/cuda/gemm_sm90.h"

#include <algorithm>

namespace ng {

extern const char gemm_epilogue_source[], gemm_sm90_source[];   // embedded by the build: headers in a row, what they include before them

}  // namespace ng

namespace ng::cuda::gemm::sm90 {

bool is_vector(kernels::EpilogueKind kind) { return kind == kernels::OF_COLUMNS || kind == kernels::OF_ROWS; }

std::string finisher_text(const Finisher& finisher, const std::string& epilogue)
{
    const Instance&   i = instances()[finisher.instance];
    const std::string shape = shape_of(i, finisher.variant), bounds = i.is_split ? text("split_threads(", i.m, "), ", i.units) : "TILES_THREADS, 1";
    std::string head = "#undef DEVICE\n#define HAS_EPILOGUE true\n";
    if (std::ranges::find(finisher.kinds, kernels::BY_ENGINE) != std::end(finisher.kinds)) head += "#define HAS_BOX true\n";
    int vectors = 0;
    for (size_t k = 0; k < std::size(finisher.kinds); k++)
        head += text("#define KIND_", k, " ", int(finisher.kinds[k]), "\n#define VECTOR_", k, " ", is_vector(finisher.kinds[k]) ? vectors++ : 0, "\n");
    return text(head, gemm_epilogue_source, epilogue, gemm_sm90_source, "namespace ng::kernels {\nextern \"C\" __global__ void __launch_bounds__(", bounds, ") fused(const __grid_constant__ ",
                i.is_split ? "GemmSplitNumbers" : "GemmTilesNumbers", " numbers) { ", i.is_split ? "run_split<" : "run_tiles<", shape, ">(numbers); }\n",
                "extern \"C\" __global__ void __launch_bounds__(THREADS) fused_1(const __grid_constant__ GemmSumNumbers numbers) { run_sum(numbers); }\n}\n");
}

}  // namespace ng::cuda::gemm::sm90
