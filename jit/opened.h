// A kernel made general: its lengths and distances become variables, so that kernels of all lengths have the texts that one has.
#pragma once
#include "jit/kernel.h"

#include <optional>

namespace ng {

// variables: the extent that variable i of the kernel stands for, of those of the kernel it was made of.
struct Opened {
    Kernel  kernel;
    Extents variables;
};

// Axes are in the order of memory and joined where they are one, as texts for CUDA have them. What lies densely still does: strides are products of
// lengths wherever they are. Nothing for kernels that look elements up, number points or draw random numbers, or whose elements lie side by side nowhere.
std::optional<Opened> open(const Kernel& kernel);

}  // namespace ng
