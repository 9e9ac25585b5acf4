// Asks the processor by CPUID which instruction sets it has, and by XGETBV which registers the system saves.
#include "lib/backend/cpu/processor.h"

#if defined(__x86_64__)
#include <cpuid.h>

#include <atomic>
#endif

namespace ng::cpu {

#if defined(__x86_64__)
namespace {

struct Registers { unsigned a = 0, b = 0, c = 0, d = 0; };

Registers cpuid(unsigned leaf, unsigned part = 0)
{
    Registers r;
    __get_cpuid_count(leaf, part, &r.a, &r.b, &r.c, &r.d);
    return r;
}
bool has(unsigned word, unsigned bits) { return (word & bits) == bits; }

// The registers that the system saves: bits 1, 2 for ymm, 5 to 7 for zmm.
unsigned saved_registers()
{
    unsigned low = 0, high = 0;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

Processor asked_for_sets()
{
    const Registers one = cpuid(1), seven = cpuid(7), extended = cpuid(0x80000001);
    const unsigned  v2 = bit_SSE3 | bit_SSSE3 | bit_SSE4_1 | bit_SSE4_2 | bit_POPCNT | bit_CMPXCHG16B;
    if (!has(one.c, v2) || !has(extended.c, bit_LAHF_LM)) return {1};
    const unsigned v3 = bit_AVX | bit_FMA | bit_F16C | bit_MOVBE | bit_OSXSAVE;
    if (!has(one.c, v3) || !has(seven.b, bit_AVX2 | bit_BMI | bit_BMI2) || !has(extended.c, bit_ABM)) return {2};
    const unsigned saved = saved_registers();
    if (!has(saved, 0x06)) return {2};
    const unsigned v4 = bit_AVX512F | bit_AVX512BW | bit_AVX512CD | bit_AVX512DQ | bit_AVX512VL;
    if (!has(seven.b, v4) || !has(saved, 0xe6)) return {3};
    return {4, has(seven.c, bit_AVX512VNNI), has(cpuid(7, 1).a, bit_AVX512BF16)};
}
Processor asked()
{
    Processor p = asked_for_sets();
    const unsigned maker = cpuid(0).b, model = cpuid(1).a, family = (model >> 8 & 15) + (model >> 20 & 255);
    p.is_full_wide = p.level == 4 && maker == signature_AMD_ebx && family >= 26;
    p.stops_at_pages = maker == signature_INTEL_ebx;
    return p;
}

}  // namespace

Processor processor() noexcept
{
    static constinit std::atomic<int> known{0};         // level * 16 + a bit for each other; every thread that asks finds the same
    int word = known.load(std::memory_order_relaxed);
    if (!word) {
        const Processor found = asked();
        known.store(word = found.level * 16 + found.is_full_wide * 8 + found.stops_at_pages * 4 + found.bf16 * 2 + found.vnni, std::memory_order_relaxed);
    }
    return {word / 16, (word & 1) != 0, (word & 2) != 0, (word & 8) != 0, (word & 4) != 0};
}
#else
Processor processor() noexcept { return {}; }
#endif

}  // namespace ng::cpu
