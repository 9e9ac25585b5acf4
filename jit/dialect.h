// A dialect: how one device language spells what every generated kernel needs.
#pragma once

namespace ng {

struct Dialect {
    const char* name;             // "cuda"
    const char* suffix;           // of files in it, ".cu"
    const char* prelude;          // stands before a kernel's text: types, the functions of ops.def, conversions, random numbers
    const char* options;          // that its compiler needs for our arithmetic, between blanks
    const char* kernel;           // opens a kernel's signature
    const char* helper;           // opens a helper function's signature
    const char* global;           // qualifies what lies in device memory, with its blank
    const char* shared;           // declares what a block shares, with its blank
    const char* shared_pointer;   // qualifies what a pointer to that points to, with its blank
    const char* restrict_;        // follows the star of a pointer that aliases nothing, with its blank
    const char* thread;           // index of this thread in its block
    const char* threads;          // in a block
    const char* block;            // index of this block, where the grid has one axis
    const char* any_block;        // 64 bits, of however many axes
    const char* blocks;           // in the grid
    const char* barrier;          // all threads of a block meet
};

// Each is defined by its backend.
const Dialect& cuda_dialect();
const Dialect& opencl_dialect();

}  // namespace ng
