// Chooses the CPU's table of loops by what the processor and the operating system can do.
#include "lib/backend/cpu/isa.h"

#include <cstring>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace ng::cpu {

#if defined(__x86_64__)
extern const IsaTable isa_v2, isa_v3, isa_v4;

namespace {

struct Registers { unsigned a = 0, b = 0, c = 0, d = 0; };

Registers cpuid(unsigned leaf)
{
    Registers r;
    __get_cpuid_count(leaf, 0, &r.a, &r.b, &r.c, &r.d);
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

// The levels of the x86-64 psABI: 4, 3, 2, or 1 for less.
int level()
{
    const Registers one = cpuid(1), seven = cpuid(7), extended = cpuid(0x80000001);
    const unsigned  v2 = bit_SSE3 | bit_SSSE3 | bit_SSE4_1 | bit_SSE4_2 | bit_POPCNT | bit_CMPXCHG16B;
    if (!has(one.c, v2) || !has(extended.c, bit_LAHF_LM)) return 1;
    const unsigned v3 = bit_AVX | bit_FMA | bit_F16C | bit_MOVBE | bit_OSXSAVE;
    if (!has(one.c, v3) || !has(seven.b, bit_AVX2 | bit_BMI | bit_BMI2) || !has(extended.c, bit_ABM)) return 2;
    const unsigned saved = saved_registers();
    if (!has(saved, 0x06)) return 2;
    const unsigned v4 = bit_AVX512F | bit_AVX512BW | bit_AVX512CD | bit_AVX512DQ | bit_AVX512VL;
    return has(seven.b, v4) && has(saved, 0xe6) ? 4 : 3;
}

}  // namespace

const IsaTable* isa_table(const char* wanted)
{
    const int       best = level();
    const IsaTable* tables[] = {&isa_v4, &isa_v3, &isa_v2};
    for (int i = 0; i < 3; i++)
        if (best >= 4 - i && (!wanted || !strcmp(wanted, tables[i]->name))) return tables[i];
    return nullptr;
}
#else
extern const IsaTable isa_generic;

const IsaTable* isa_table(const char* wanted) { return !wanted || !strcmp(wanted, isa_generic.name) ? &isa_generic : nullptr; }
#endif

}  // namespace ng::cpu
