// Moves what is less than a bundle of a chain.
#pragma once
#include "lib/backend/cpu/row_loops.h"

#if defined(__AVX2__)
#include <immintrin.h>

namespace ng::cpu {
namespace {

// Not by a call: links would wait for vectors that several stores have filled.
INLINE void move_tail(char* to, const char* from, int64_t bytes)
{
    typedef char Bytes __attribute__((vector_size(VECTOR_BYTES), aligned(1), may_alias));      // of `using` clang does not take the alignment
    int64_t at = 0;
    for (; at + VECTOR_BYTES <= bytes; at += VECTOR_BYTES) *(Bytes*)(to + at) = *(const Bytes*)(from + at);
#if defined(__AVX512F__)
    const __mmask64 rest = (uint64_t(1) << (bytes - at)) - 1;
    if (rest) _mm512_mask_storeu_epi8(to + at, rest, _mm512_maskz_loadu_epi8(rest, from + at));
#else
    __builtin_memcpy(to + at, from + at, size_t(bytes - at));
#endif
}

}  // namespace
}  // namespace ng::cpu
#endif
