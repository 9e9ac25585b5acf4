// A plan as JSON that people and tools read: nodes, buffers, steps with their costs.
#pragma once
#include "jit/plan.h"

#include <string>

namespace ng {

// What a backend knows of a step's code.
struct CodeText {
    std::string name;                // of the launches it is for: "points by 4 of 2"
    std::string state;               // "compiled", "being compiled", or why it is not
    std::string key, source;         // key: of caches, in hexadecimal
    uint64_t    code_bytes = 0;      // of what a compiler made of it
    int32_t     registers = 0, local_bytes = 0, shared_bytes = 0, threads = 0;     // of its first function; threads: of a block at most
};
struct StepCode {
    std::string tier;                // "compiled", "interpreted", "shipped" ..; empty: nothing is known
    double      bytes_per_us = 0, instructions_per_us = 0;     // of the device: what takes longer is the bound; 0: not known
    uint64_t    list_bytes = 0;      // of an interpreter's list
    std::vector<CodeText> texts;
};

// variables: the lengths at their greatest, and hidden strides. codes: by step, or none.
std::string explain(const Plan& plan, std::span<const NodeRef> roots, std::span<const int64_t> variables, std::span<const StepCode> codes = {});

}  // namespace ng
