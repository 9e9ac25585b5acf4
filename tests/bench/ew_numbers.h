// Random tensors for measurements as bytes, and single numbers of what comes back.
#pragma once
#include "jit/dtype.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

namespace ng {

// Numbers of modest size as any float format, by bits: sign, an exponent near 1, a random mantissa.
inline std::vector<char> random_bytes(Dtype t, size_t bytes)
{
    std::vector<char> out(bytes + 8);
    uint64_t state = 0x9E3779B97F4A7C15;
    const auto next = [&] {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        return state;
    };
    for (size_t i = 0; i < bytes; i += 8) {
        uint64_t r = next();
        if (t == Dtype::f32) r = (r & 0x80FFFFFF80FFFFFF) | 0x3F0000003F000000;          // +-[0.5, 2)
        if (t == Dtype::f16) r = (r & 0x87FF87FF87FF87FF) | 0x3800380038003800;
        if (t == Dtype::bf16) r = (r & 0x80FF80FF80FF80FF) | 0x3F003F003F003F00;
        if (t == Dtype::f64) r = (r & 0x801FFFFFFFFFFFFF) | 0x3FE0000000000000;
        std::memcpy(out.data() + i, &r, 8);
    }
    return out;
}

inline double number_at(const std::vector<char>& bytes, Dtype t, int64_t i)
{
    const char* at = bytes.data() + i * bytes_of(t);
    const auto read = [&](auto x) { std::memcpy(&x, at, sizeof x); return x; };
    switch (t) {
    case Dtype::f32: return double(read(0.0f));
    case Dtype::f64: return read(0.0);
    case Dtype::i64: return double(read(int64_t(0)));
    case Dtype::i32: return double(read(int32_t(0)));
    case Dtype::i8: return double(read(int8_t(0)));
    case Dtype::f16: {
        const unsigned code = read(uint16_t(0)), exponent = code >> 10 & 31;
        const double fraction = code & 1023, size = exponent == 31 ? (fraction ? NAN : INFINITY) : exponent ? std::ldexp(1024 + fraction, int(exponent) - 25) : std::ldexp(fraction, -24);
        return code >> 15 ? -size : size;
    }
    default: return double(read(uint8_t(0)));
    }
}

}  // namespace ng
