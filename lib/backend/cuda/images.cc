// What the build made of the shipped kernels, as texts that modules are loaded from.
#include "lib/backend/cuda/images.h"

#include "kernels/shipped.h"

namespace ng::cuda {

std::string_view basic_image() { return {reinterpret_cast<const char*>(ng_basic_image), ng_basic_image_bytes}; }
std::string_view interpreter_image() { return {reinterpret_cast<const char*>(ng_interpreter_image), ng_interpreter_image_bytes}; }

namespace {

bool has_code(const int* archs, int compute)
{
    // Code for 8.0 runs on 8.6, not on 9.0.
    for (const int* arch = archs; *arch; arch++)
        if (*arch / 10 == compute / 10 && *arch <= compute) return true;
    return false;
}

}  // namespace

bool has_basic_code(int compute) { return has_code(ng_basic_image_archs, compute); }
bool has_interpreter_code(int compute) { return has_code(ng_interpreter_image_archs, compute); }

}  // namespace ng::cuda
