// Kernels that both tests of the interpreter run, on the emulated kernel and on a device, beside the CPU backend's results.
#pragma once
#include "lib/backend/cpu/fused.h"
#include "lib/backend/cuda/interpreter.h"
#include "tests/backend/kernel_builder.h"

#include <array>
#include <cmath>
#include <string>

namespace ng::test {

struct TapeCase {
    std::string          name;
    Kernel               kernel;
    std::vector<Buffer>  buffers;
    std::vector<int64_t> variables;
    double               tolerance = 0;      // of |value|; 0: the same numbers
    int64_t              shift = 0;          // elements by which each buffer misses a vector's alignment
    double               least = 1e-45;      // of smaller values the tolerance is this one's
    uint32_t             shared_bytes = interpreter::MAX_SHARED_BYTES;
};
using TapeCases = std::vector<TapeCase>;

// What kernels find among the run's scalars.
struct CaseScalars {
    float    f[4] = {0.5f, -1.25f, 3, 0.125f};
    uint64_t key = 0x123456789abcdef, step = 77;
    uint16_t half = 0x4248, brain = 0x4049;      // 3.14, near it
    int8_t   small = -7;
    uint8_t  truth = 1, f8 = 0x4a;
    double   d = 0.7071;
};
inline constexpr CaseScalars CASE_SCALARS;

// What registers hold.
inline constexpr Dtype HELD_TYPES[] = {Dtype::bool_, Dtype::i8, Dtype::i16, Dtype::i32, Dtype::i64, Dtype::u8, Dtype::u16, Dtype::u32, Dtype::u64, Dtype::f32, Dtype::f64};

inline std::vector<Buffer> filled(std::initializer_list<int64_t> counts)
{
    std::vector<Buffer> buffers;
    for (const int64_t count : counts) {
        buffers.emplace_back(Dtype::f32, count);
        fill(buffers.back(), buffers.size());
    }
    return buffers;
}

// Element-wise kernels of all kinds of strides; every type's memory; conversions, maps and folds of every type; the rest.
TapeCases stride_cases();
TapeCases type_cases();
TapeCases map_cases();
TapeCases fold_cases();
TapeCases chance_cases();

// More values are live at once than slots have room for.
TapeCases spilling_cases();

// One run by any machine: buffers are read and written in place.
struct TapeMachine {
    virtual ~TapeMachine() = default;
    virtual void run(const cuda::Tape& tape, const TapeCase& c, std::vector<Buffer>& buffers) = 0;
};
// The first difference between the machine's results and the CPU backend's, in words; empty where there is none.
std::string difference(const TapeCase& c, TapeMachine& machine);

}  // namespace ng::test
