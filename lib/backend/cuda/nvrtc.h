// NVIDIA's run-time compiler, where the machine has one: CUDA C in, code for a device out.
#pragma once
#include "jit/error.h"

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ng::cuda {

struct CompileRequest {
    std::string_view prelude = {}, text = {};   // one after the other they are the source
    std::string_view options = {};              // between blanks: Dialect::options
    std::string_view arch = {};                 // "sm_90a": a cubin; "compute_80": PTX
    const char*      name = "fused.cu";         // of the source, in the compiler's messages
};

class Compiler {
  public:
    // The compiler of this process, from the first call that asks on. Null: there is none.
    static const Compiler* find() noexcept;
    // Of the first of these that is there and complete; null: of none. Names without a folder are the loader's to find.
    static std::unique_ptr<const Compiler> load(std::span<const char* const> libraries);

    Compiler(const Compiler&) = delete;
    Compiler& operator=(const Compiler&) = delete;

    int version() const noexcept { return version_; }           // 13000: 13.0
    // The devices it makes code for, ascending: 75, 80, 90 ...
    const std::vector<int>& computes() const noexcept { return computes_; }
    // NG_E_COMPILE with all that the compiler said. From any thread, at the same time too.
    std::string compile(const CompileRequest& request) const;

  private:
    Compiler() = default;
#define NVRTC(name, parameters) int (*name) parameters = nullptr;
#include "lib/backend/cuda/nvrtc.def"
#undef NVRTC
    int version_ = 0;
    std::vector<int> computes_;
};

}  // namespace ng::cuda
