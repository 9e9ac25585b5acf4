// The loops of every instruction set that this machine has, for tests that go through all.
#pragma once
#include "lib/backend/cpu/isa.h"

#include <vector>

namespace ng::cpu {

inline std::vector<const IsaTable*> tables()
{
    std::vector<const IsaTable*> found;
    for (const char* level : {"x86-64-v2", "x86-64-v3", "x86-64-v4", "generic"})
        if (const IsaTable* table = isa_table(level)) found.push_back(table);
    return found;
}

// What loops call the type that a value is held in.
template <class T> constexpr Dtype DTYPE_OF = Dtype::f64;
template <> inline constexpr Dtype DTYPE_OF<bool> = Dtype::bool_;
template <> inline constexpr Dtype DTYPE_OF<int8_t> = Dtype::i8;
template <> inline constexpr Dtype DTYPE_OF<int16_t> = Dtype::i16;
template <> inline constexpr Dtype DTYPE_OF<int32_t> = Dtype::i32;
template <> inline constexpr Dtype DTYPE_OF<int64_t> = Dtype::i64;
template <> inline constexpr Dtype DTYPE_OF<uint8_t> = Dtype::u8;
template <> inline constexpr Dtype DTYPE_OF<uint16_t> = Dtype::u16;
template <> inline constexpr Dtype DTYPE_OF<uint32_t> = Dtype::u32;
template <> inline constexpr Dtype DTYPE_OF<uint64_t> = Dtype::u64;
template <> inline constexpr Dtype DTYPE_OF<float> = Dtype::f32;

}  // namespace ng::cpu
