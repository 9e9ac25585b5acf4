// What the processor and the operating system can do, asked once a process: in a virtual machine each question is slow.
#pragma once

namespace ng::cpu {

struct Processor {
    int  level;   // of the x86-64 psABI: 4, 3, 2, 1 for less; 0 on other processors
    bool vnni;    // AVX-512's sums of products of bytes
    bool bf16;    // AVX-512's sums of products of bfloat16
};
Processor processor() noexcept;

}  // namespace ng::cpu
