// Elements of an operand that a text makes while a product loads it: codes as they lie, and halves that are multiplied in their place.
//
// A text defines in namespace operand, before this: Raw (an element as it computes with it), RAW_TYPE, IS_CAST (nothing but a cast
// to halves), IS_BF16 (of those), Line (what all elements of a line share) and fetch_line; made(numbers, line, x) is a float
// that is rounded here.
#pragma once
#include "kernels/elements.cuh"
#include "kernels/gemm_operand.h"

namespace ng::kernels {
namespace {

constexpr int  RAW_BYTES = operand::RAW_TYPE == F32 ? 4 : operand::RAW_TYPE == F16 || operand::RAW_TYPE == BF16 ? 2 : 1;
constexpr bool IS_BYTE = operand::RAW_TYPE == I8 || operand::RAW_TYPE == U8, IS_CODE = operand::RAW_TYPE == E4M3 || operand::RAW_TYPE == E5M2;

// Neighbours along depth, the first one's bits in the lower half of the first word; of f32 each has a word.
struct CodePair {
    u32 word[2];
};

DEVICE u32 pair_of_floats(float low, float high) { return operand::IS_BF16 ? pair_bf16(low, high) : pair_f16(low, high); }

// The word's first or last two bytes, each in the lower half of a half.
DEVICE u32 two_apart(u32 word, u32 which)
{
#ifdef __CUDA_ARCH__
    return __byte_perm(word, 0, which ? 0x4342 : 0x4140);
#else
    return (word >> 16 * which & 0xff) | (word >> 16 * which & 0xff00) << 8;
#endif
}

// Bytes as halves: 1024 more, or 1152 where they are signed, are in the last bits of one, and those are taken off.
DEVICE u32 halves_of_bytes(u32 spread)
{
    const u32 magic = operand::RAW_TYPE == I8 ? 0x64806480u : 0x64006400u;
#ifdef __CUDA_ARCH__
    u32 r;
    asm("sub.rn.f16x2 %0, %1, %2;" : "=r"(r) : "r"(spread ^ magic), "r"(magic));
    return r;
#else
    const auto number = [&](u32 shift) { return narrow_number(F16, (spread ^ magic) >> shift & 0xffff) - narrow_number(F16, magic & 0xffff); };
    return pair_f16(number(0), number(16));
#endif
}
DEVICE u32 halves_of_spread(u32 spread)
{
#if __CUDA_ARCH__ >= 890
    const u16 codes = u16((spread & 0xff) | (spread >> 8 & 0xff00));
    u32       r;
    if constexpr (operand::RAW_TYPE == E4M3) asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(r) : "h"(codes));
    else r = spread << 8;
    return r;
#else
    return halves_of_codes(operand::RAW_TYPE, spread & 0xff, spread >> 16 & 0xff);
#endif
}

// One of those bytes as a float: 2^23 more, or 128 more yet where it is signed, is in the last bits of one. A conversion takes as long as eight instructions.
DEVICE float float_of_byte(u32 spread, int which)
{
    const u32 magic = 0x4b000000, flipped = operand::RAW_TYPE == I8 ? spread ^ 0x800080 : spread;
#ifdef __CUDA_ARCH__
    const u32 bits = __byte_perm(flipped, magic, which ? 0x7542 : 0x7540);
#else
    const u32 bits = (flipped >> 16 * which & 0xff) | magic;
#endif
    return __uint_as_float(bits) - (operand::RAW_TYPE == I8 ? 8388736.0f : 8388608.0f);
}

DEVICE operand::Raw raw_of(const CodePair& c, int which)
{
    const u32 word = c.word[0] >> 16 * which;
    if constexpr (IS_BYTE && IS_REAL<operand::Raw>) return float_of_byte(c.word[0], which);
    else if constexpr (IS_BYTE) return operand::Raw(word & 0xff);
    else if constexpr (operand::RAW_TYPE == F32) return __uint_as_float(c.word[which]);
    else if constexpr (operand::RAW_TYPE == BF16) return __uint_as_float(word << 16);
    else return narrow_number(F16, word & 0xffff);
}

DEVICE u32 made_pair(const operand::Numbers& n, const operand::Line& line, CodePair c)
{
    if constexpr (operand::IS_CAST && IS_BYTE && !operand::IS_BF16) return halves_of_bytes(c.word[0]);
    if constexpr (IS_CODE) c.word[0] = halves_of_spread(c.word[0]);
    if constexpr (operand::IS_CAST && IS_CODE && !operand::IS_BF16) return c.word[0];
    return pair_of_floats(operand::made(n, line, raw_of(c, 0)), operand::made(n, line, raw_of(c, 1)));
}

}  // namespace
}  // namespace ng::kernels
