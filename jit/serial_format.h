// The layout of a saved program's bytes, as the writer and the reader agree on it.
#pragma once
#include <cstdint>
#include <string_view>

namespace ng::serial {

// magic, version, checksum of all that follows (8 bytes, low first), then numbers of 7 bits a byte, low first, the
// top bit set on all but the last; signed ones zigzag (0 -1 1 -2 ..). Texts are a count and their bytes.
//
//   options   runs, flags, workspace_max, lengths: count, greatest values
//   tables    names of operations; codes of types (ng_dtype); shapes: rank, extents
//   nodes     operands first: places of operation, type and shape in the tables, Part bits, operands: count, each as
//             the distance back to it; then the parts
//   roots     count, places; aliases: count, each + 1; layouts of outputs: 0 or 1, each: LayoutBit, type, dims, strides
//   extent    count of terms; 0: a signed constant, else each: signed coefficient, degree, lengths
inline constexpr std::string_view MAGIC = "NGPROG\n";
inline constexpr uint8_t VERSION = 1;
inline constexpr size_t HEAD_BYTES = MAGIC.size() + 1 + 8;

enum Part : uint8_t { HAS_VALUE = 1, HAS_INTS = 2, HAS_EXTENTS = 4, HAS_NAME = 8, ALL_PARTS = 15 };
enum LayoutBit : uint8_t { DECLARED = 1, STRIDED = 2, ANY = 4, READONLY = 8, HOST = 16, ALL_LAYOUT_BITS = 31 };

inline constexpr size_t   MAX_NODES = size_t(1) << 20;
inline constexpr uint64_t MAX_PARAM = 65535, MAX_RUNS = 4096, MAX_LENGTHS = 65536, MAX_NAME = 255;

// Every step is one to one, so that a change within any eight bytes changes the sum.
inline uint64_t checksum(std::string_view bytes)
{
    uint64_t h = 0x9E3779B97F4A7C15u ^ bytes.size();
    for (size_t at = 0; at < bytes.size(); at += 8) {
        uint64_t word = 0;
        for (size_t i = 0; i < 8 && at + i < bytes.size(); i++) word |= uint64_t(uint8_t(bytes[at + i])) << 8 * i;
        h = (h ^ word) * 0xff51afd7ed558ccdu;
        h ^= h >> 32;
    }
    return h;
}

}  // namespace ng::serial
