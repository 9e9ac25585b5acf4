// What the processor and the operating system can do, asked once a process: in a virtual machine each question is slow.
#pragma once

namespace ng::cpu {

struct Processor {
    int  level = 0;              // of the x86-64 psABI: 4, 3, 2, 1 for less; 0 on other processors
    bool vnni = false;           // AVX-512's sums of products of bytes
    bool bf16 = false;           // AVX-512's sums of products of bfloat16
    bool is_full_wide = false;   // its units are as wide as AVX-512's vectors (AMD's from Zen 5 on), and L2 is read fastest in order
    bool stops_at_pages = false; // reads ahead within 4 KB alone: what is beyond is worth asking for (Intel's)
};
Processor processor() noexcept;

}  // namespace ng::cpu
