// A finisher's text as the run-time compiler makes it code, for programs that launch finishers themselves.
#pragma once
#include "jit/dialect.h"
#include "jit/error.h"
#include "lib/backend/cuda/gemm.h"
#include "lib/backend/cuda/nvrtc.h"

namespace ng::cuda {

// NG_E_COMPILE with what the compiler said, or where there is none. arch: CompileRequest's. From any thread.
inline std::string finisher_image(const gemm::Finisher& finisher, const std::string& epilogue, const std::string& operand, std::string_view arch)
{
    const Compiler* const compiler = Compiler::find();
    if (!compiler) throw Error(NG_E_COMPILE, "there is no run-time compiler (NVRTC) here");
    const Dialect&    d = cuda_dialect();
    const std::string source = gemm::finisher_text(finisher, epilogue, operand);
    return compiler->compile({.prelude = d.prelude, .text = source, .options = d.options, .arch = arch});
}

}  // namespace ng::cuda
