// The instances of the portable products by their rows in gemm_mma.def: what each is, and its kernels in the images.
#pragma once
#include "kernels/gemm_mma.h"
#include "lib/backend/cuda/gemm_mma.h"

#include <algorithm>

namespace ng::cuda::gemm::mma {

using namespace kernels;

enum Kind { HalvesF16, HalvesBf16, WordsTf32, PlainF32, Doubles, BytesSS, BytesSU, BytesUS, BytesUU, CodesE4E4, CodesE4E5, CodesE5E4, CodesE5E5, None };
constexpr bool is_of_bytes(Kind k) { return k >= BytesSS && k <= BytesUU; }
constexpr bool is_of_codes(Kind k) { return k >= CodesE4E4 && k <= CodesE5E5; }      // of 8 bits, that become halves on their way to be multiplied
constexpr bool is_of_halves(Kind k) { return k <= HalvesBf16; }
constexpr bool copies_elements(Kind k) { return k >= WordsTf32 && k <= Doubles; }     // of any strides, by the hardware
constexpr int  element_bytes(Kind k) { return is_of_bytes(k) || is_of_codes(k) ? 1 : is_of_halves(k) ? 2 : k == Doubles ? 8 : 4; }
constexpr int  sum_bytes(Kind k) { return k == Doubles ? 8 : 4; }

constexpr bool is_byte(Dtype t) { return t == Dtype::i8 || t == Dtype::u8; }
constexpr bool is_half_or_less(Dtype t) { return t == Dtype::f16 || t == Dtype::e4m3 || t == Dtype::e5m2; }
// What products of these types are; and what their elements are as they are multiplied, where `own` is what they are.
constexpr Kind kind_of(Dtype a, Dtype b, bool allows_tf32)
{
    if (is_byte(a) && is_byte(b)) return a == Dtype::i8 ? (b == Dtype::i8 ? BytesSS : BytesSU) : b == Dtype::i8 ? BytesUS : BytesUU;
    if (is_half_or_less(a) && is_half_or_less(b)) return HalvesF16;
    if (!is_float(a) || !is_float(b)) return None;
    if (a == Dtype::f64 || b == Dtype::f64) return Doubles;
    if (a == Dtype::f32 || b == Dtype::f32) return allows_tf32 ? WordsTf32 : PlainF32;
    // tf32 has the bits of f16 and the powers of bf16: their mixes are exact in it.
    return a == b ? HalvesBf16 : WordsTf32;
}
// The same of two operands of codes, as they are.
constexpr Kind codes_of(Dtype a, Dtype b)
{
    const auto is_code = [](Dtype t) { return t == Dtype::e4m3 || t == Dtype::e5m2; };
    if (!is_code(a) || !is_code(b)) return None;
    return a == Dtype::e4m3 ? (b == Dtype::e4m3 ? CodesE4E4 : CodesE4E5) : b == Dtype::e4m3 ? CodesE5E4 : CodesE5E5;
}
constexpr Dtype type_of(Kind kind, Dtype own)
{
    if (is_of_bytes(kind)) return own;
    return kind == HalvesF16 ? Dtype::f16 : kind == HalvesBf16 ? Dtype::bf16 : kind == Doubles ? Dtype::f64 : Dtype::f32;
}

struct Instance {
    Kind  kind;
    int   tile_m, tile_n, threads, blocks;
    Loads loads;
    Near  a, b;
    int   pieces = 0;                    // of 16 bytes, on their way to a thread: for one row, whose near axis a may have any
    int   piece = 0;                     // bytes of depth that a lane reads at once, where tiles are warps' which read operands where they lie; 0: of others
    constexpr bool is_small() const { return piece > 0; }
    constexpr bool is_little() const { return pieces == 0 && tile_n <= 32; }      // pays where tiles are many
    // Of these, neighbouring lines of an operand that a lane has.
    constexpr int lines_of_lane_a() const { return tile_m / (kind == PlainF32 ? 4 : 8); }
    constexpr int lines_of_lane_b() const { return tile_n / 8; }
};
constexpr Instance INSTANCES[] = {
#define PRODUCT_TILES(name, kind, m, n, warps_m, warps_n, stages, a, b, loads, blocks) {kind, m, n, 32 * warps_m * warps_n, blocks, loads, a, b},
#define SIMT(name, m, n, warps_m, warps_n, depth, stages, a, blocks) {PlainF32, m, n, 32 * warps_m * warps_n, blocks, IN_FLIGHT, a, NEAR_LINE},
#define ROW(name, sum, near, warps, columns, pieces, blocks) {sizeof(sum) == 8 ? Doubles : PlainF32, 1, columns, 32 * warps, blocks, IN_FLIGHT, NEAR_DEPTH, near, pieces},
#define SMALL(name, kind, row_blocks, column_blocks, blocks) {kind, 16 * row_blocks, 8 * column_blocks, 32 * SMALL_WARPS, blocks, IN_REGISTERS, NEAR_DEPTH, NEAR_DEPTH, 0, kind == Doubles ? 16 : 8},
#define SMALL_SIMT(name, rows, columns, words, blocks) {PlainF32, 4 * rows, 8 * columns, 32 * SMALL_WARPS, blocks, IN_REGISTERS, NEAR_DEPTH, NEAR_DEPTH, 0, 4 * words},
#define LAY(name, bytes) {None, 0, 0, THREADS, 8, IN_REGISTERS, NEAR_DEPTH, NEAR_DEPTH},
#define PARTS(name, sum) {None, 0, 0, THREADS, 8, IN_REGISTERS, NEAR_DEPTH, NEAR_DEPTH},
#include "kernels/gemm_mma.def"
};
enum Number : uint32_t {
#define PRODUCT_TILES(name, ...) NUMBER_##name,
#define SIMT PRODUCT_TILES
#define ROW PRODUCT_TILES
#define SMALL PRODUCT_TILES
#define SMALL_SIMT PRODUCT_TILES
#define LAY PRODUCT_TILES
#define PARTS PRODUCT_TILES
#include "kernels/gemm_mma.def"
    COUNT
};
constexpr uint32_t room(int stages_bytes, int m, int n, Kind kind) { return uint32_t(std::max(stages_bytes, m * n * sum_bytes(kind))); }
constexpr KernelFacts FACTS[] = {
#define PRODUCT_TILES(name, kind, m, n, warps_m, warps_n, stages, a, b, loads, blocks) {"mma_" #name, room(stages * (m + n) * mma_depth_bytes(element_bytes(kind)), m, n, kind)},
#define SIMT(name, m, n, warps_m, warps_n, depth, stages, a, blocks) {"mma_" #name, room(stages * (m + n + 8) * depth * 4, m, n, PlainF32)},
#define ROW(name, ...) {"mma_" #name, 0},
#define SMALL(name, kind, row_blocks, column_blocks, blocks) {"mma_" #name, uint32_t(SMALL_WARPS * 16 * 8 * column_blocks * sum_bytes(kind))},
#define SMALL_SIMT(name, rows, columns, words, blocks) {"mma_" #name, uint32_t(SMALL_WARPS * 4 * 8 * columns * sum_bytes(PlainF32))},
#define LAY(name, bytes) {"mma_" #name, 0},
#define PARTS(name, sum) {"mma_" #name, 0},
#include "kernels/gemm_mma.def"
};

// What each calls, and its bounds.
#define STRING(...) #__VA_ARGS__
constexpr struct { const char *bounds, *call; } WORDS[] = {
#define PRODUCT_TILES(name, kind, m, n, warps_m, warps_n, stages, a, b, loads, blocks) {STRING(32 * warps_m * warps_n, blocks), STRING(mma_tile<MmaShape<kind, m, n, warps_m, warps_n, stages, a, b>, loads>)},
#define SIMT(name, m, n, warps_m, warps_n, depth, stages, a, blocks) {STRING(32 * warps_m * warps_n, blocks), STRING(simt_tile<SimtShape<m, n, warps_m, warps_n, depth, stages, a>>)},
#define ROW(name, sum, near, warps, columns, pieces, blocks) {STRING(32 * warps, blocks), STRING(mma_row<RowShape<sum, near, warps, columns, pieces>>)},
#define SMALL(name, kind, row_blocks, column_blocks, blocks) {STRING(32 * SMALL_WARPS, blocks), STRING(mma_small<SmallShape<kind, row_blocks, column_blocks>>)},
#define SMALL_SIMT(name, rows, columns, words, blocks) {STRING(32 * SMALL_WARPS, blocks), STRING(simt_small<SmallSimtShape<rows, columns, words>>)},
#define LAY(name, bytes) {"THREADS", STRING(mma_lay<bytes>)},
#define PARTS(name, sum) {"THREADS", STRING(mma_sum<sum>)},
#include "kernels/gemm_mma.def"
};
#undef STRING

// Those that carry out lists as well: the image's kernels in turn, and the number of each instance among them.
constexpr uint32_t LISTED[] = {
#define PRODUCT_TILES(name, ...) NUMBER_##name,
#define LISTED_SIMT PRODUCT_TILES
#define LISTED_PARTS PRODUCT_TILES
#include "kernels/gemm_mma_listed.def"
};
constexpr uint32_t NO_KERNEL = UINT32_MAX;
constexpr uint32_t listed_number(uint32_t instance)
{
    for (uint32_t i = 0; i < std::size(LISTED); i++)
        if (LISTED[i] == instance) return i;
    return NO_KERNEL;
}
constexpr KernelFacts LISTED_FACTS[] = {
#define PRODUCT_TILES(name, ...) {"mma_listed_" #name, FACTS[NUMBER_##name].shared_bytes},
#define LISTED_SIMT PRODUCT_TILES
#define LISTED_PARTS PRODUCT_TILES
#include "kernels/gemm_mma_listed.def"
};

}  // namespace ng::cuda::gemm::mma
