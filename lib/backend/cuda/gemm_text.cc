// An instance of a product's kernels as source for the run-time compiler, with an epilogue's text in it.
#include "jit/error.h"
#include "lib/backend/cuda/gemm_mma.h"
#include "lib/backend/cuda/gemm_prologue.h"
#include "lib/backend/cuda/gemm_sm90.h"

#include <algorithm>

namespace ng {

extern const char gemm_epilogue_source[], gemm_sm90_source[], gemm_mma_source[], gemm_operand_source[], gemm_sm90_operand_source[];   // embedded by the build: headers in a row

}  // namespace ng

namespace ng::cuda::gemm {
namespace {

bool is_vector(kernels::EpilogueKind kind) { return kind == kernels::OF_COLUMNS || kind == kernels::OF_ROWS; }

std::string function_text(const char* name, const FunctionWords& f)
{
    return text("extern \"C\" __global__ void __launch_bounds__(", f.bounds, ") ", name, "(const __grid_constant__ ", f.numbers, " numbers) { ", f.call, "(numbers); }\n");
}

}  // namespace

std::string finisher_text(const Finisher& finisher, const std::string& epilogue, const std::string& operand)
{
    std::string head = "#undef DEVICE\n";
    if (!epilogue.empty()) head += "#define HAS_EPILOGUE true\n";
    if (std::ranges::find(finisher.kinds, kernels::BY_ENGINE) != std::end(finisher.kinds)) head += "#define HAS_BOX true\n";
    if (finisher.has_outer) head += "#define HAS_OUTER true\n";
    int vectors = 0;
    for (size_t k = 0; k < std::size(finisher.kinds); k++)
        head += text("#define KIND_", k, " ", int(finisher.kinds[k]), "\n#define VECTOR_", k, " ", is_vector(finisher.kinds[k]) ? vectors++ : 0, "\n");
    const FunctionWords product = finisher.makes_operand ? made::product_of(finisher) : finisher.is_portable ? mma::product_of(finisher) : sm90::product_of(finisher);
    const FunctionWords sum = finisher.makes_operand ? made::sum_of(finisher) : finisher.is_portable ? mma::sum_of(finisher) : sm90::sum_of();
    return text(head, gemm_epilogue_source, epilogue, finisher.is_portable ? gemm_mma_source : gemm_sm90_source, operand, !finisher.makes_operand ? "" : finisher.is_portable ? gemm_operand_source : gemm_sm90_operand_source,
                "namespace ng::kernels {\n", function_text("fused", product), function_text("fused_1", sum), "}\n");
}

}  // namespace ng::cuda::gemm
