// The table of product loops of one instruction set: the compiler's -march decides which of the tables this file defines.
#if defined(__AVX512F__)
#include "lib/backend/cpu/gemm_narrow.h"
#endif
#include "lib/backend/cpu/gemm_pack.h"
#include "lib/backend/cpu/gemm_table.h"
#include "lib/backend/cpu/gemm_tile.h"
#include "lib/backend/cpu/gemm_weave.h"
#include "lib/backend/cpu/gemm_widen.h"
#include "lib/backend/cpu/isa_name.h"

namespace ng::cpu {
namespace {

// depth x columns of b stay in L1 or near it while tiles of a, block_rows x depth, come from L2; block_columns x depth of b
// are shared by all rows.
template <class Arithmetic>
constexpr TileKind tile_kind(int unit, int packed_bytes, int64_t depth)
{
    using T = Tile<Arithmetic>;
    TileKind t = {T::run, TILE_ROWS, T::COLUMNS, unit, packed_bytes, int(sizeof(typename T::Element)), depth, TILE_ROWS * (224 / TILE_ROWS), 1024,
                  nullptr, 0, nullptr, nullptr, nullptr};
    // Those that convolution and wide products are made of.
    if constexpr (__is_same(Arithmetic, Multiply<float>) || __is_same(Arithmetic, Multiply<double>)) {
        t.in_place = T::run_in_place;
        if constexpr (LAST_ROWS)
            t.last = Tile<Arithmetic, LAST_ROWS>::run, t.last_in_place = Tile<Arithmetic, LAST_ROWS>::run_in_place, t.last_rows = LAST_ROWS;
    }
    return t;
}

template <class T>
constexpr DirectLoops direct_loops()
{
    return {Direct<T>::combine, Direct<T>::multiply, Direct<T>::dot};
}

constexpr void fill_stores(ProductTable& t)
{
    t.store[PACKED_F32][int(Dtype::f32)] = t.store[PACKED_BRAINS][int(Dtype::f32)] = store_tile<float, float>;
    t.store[PACKED_F64][int(Dtype::f64)] = store_tile<double, double>;
    for (const Dtype d : {Dtype::i32, Dtype::u32})
        t.store[PACKED_U32][int(d)] = t.store[PACKED_I16][int(d)] = t.store[PACKED_BYTES][int(d)] = store_tile<uint32_t, uint32_t>;
    for (const Dtype d : {Dtype::i16, Dtype::u16}) t.store[PACKED_U32][int(d)] = store_tile<uint32_t, uint16_t>;
    for (const Dtype d : {Dtype::i8, Dtype::u8}) t.store[PACKED_U32][int(d)] = store_tile<uint32_t, uint8_t>;
    for (const Dtype d : {Dtype::i64, Dtype::u64}) t.store[PACKED_U64][int(d)] = store_tile<uint64_t, uint64_t>;
}

constexpr void fill_most(ProductTable& t)
{
    for (const Dtype d : {Dtype::bool_, Dtype::i8, Dtype::i16, Dtype::i32, Dtype::u8, Dtype::u16}) t.most[int(d)] = most_of<int32_t, int32_t>;
    for (const Dtype d : {Dtype::f32, Dtype::f16, Dtype::bf16, Dtype::e4m3, Dtype::e5m2}) t.most[int(d)] = most_of<float, int32_t>;
    t.most[int(Dtype::u32)] = most_of<uint32_t, int32_t>;
    t.most[int(Dtype::i64)] = most_of<int64_t, int64_t>;
    t.most[int(Dtype::u64)] = most_of<uint64_t, int64_t>;
    t.most[int(Dtype::f64)] = most_of<double, int64_t>;
}

#if defined(__AVX512F__)
constexpr void fill_narrow(ProductTable& t)
{
    TileKind &bytes = t.tile[PACKED_BYTES], &brains = t.tile[PACKED_BRAINS];
    t.weave[0] = Weave<uint8_t>::run;
    bytes = tile_kind<MultiplyBytes>(4, 1, 1536);
    bytes.last = Tile<MultiplyBytes, LAST_ROWS>::run, bytes.last_rows = LAST_ROWS, bytes.finish = finish_bytes;
    brains = tile_kind<MultiplyBrains>(2, 2, 768);
    brains.tile = tile_of_brains<TILE_ROWS>;
    brains.last = tile_of_brains<LAST_ROWS>, brains.last_rows = LAST_ROWS, brains.finish = finish_brains;
}
#endif

// Of blocks of f32 and f64. With AVX-512, whose processors have a second cache of 1 MB and more, deeper ones pass the result less often:
// of 1021 x 1019 x 1031 f64 on a Xeon 5 to 8 % less in blocks of 384 than of 256 (2026-11-22); of f32 on Zen 4 1 % less in blocks of 640 than
// of 512, of 2048 x 2048 x 576 3 % (2026-11-23).
constexpr int64_t F32_DEPTH = VECTOR_BYTES == 64 ? 640 : 384, F64_DEPTH = VECTOR_BYTES == 64 ? 384 : 256;

constexpr ProductTable product_loops(const char* name)
{
    ProductTable t = {};
    t.name = name;
    t.tile[PACKED_F32] = tile_kind<Multiply<float>>(1, 4, F32_DEPTH);
    t.tile[PACKED_F64] = tile_kind<Multiply<double>>(1, 8, F64_DEPTH);
    t.tile[PACKED_U32] = tile_kind<Multiply<uint32_t>>(1, 4, 256);
    t.tile[PACKED_U64] = tile_kind<Multiply<uint64_t>>(1, 8, 128);
    t.tile[PACKED_I16] = tile_kind<MultiplyPairs>(2, 2, 512);
#if defined(__AVX512F__)
    fill_narrow(t);
#endif
    t.pack[0] = Packer<uint8_t>::run, t.pack[1] = Packer<uint16_t>::run;
    t.pack[2] = Packer<uint32_t>::run, t.pack[3] = Packer<uint64_t>::run;
    t.weave[1] = Weave<uint16_t>::run;
    widen_row<float>(t.widen[PACKED_F32]), widen_row<double>(t.widen[PACKED_F64]);
    widen_row<uint32_t>(t.widen[PACKED_U32]), widen_row<uint64_t>(t.widen[PACKED_U64]);
    widen_row<int16_t>(t.widen[PACKED_I16]);
    fill_stores(t), fill_most(t);
    t.direct[PACKED_F32] = direct_loops<float>(), t.direct[PACKED_F64] = direct_loops<double>();
    t.direct[PACKED_U32] = direct_loops<uint32_t>(), t.direct[PACKED_U64] = direct_loops<uint64_t>();
    return t;
}

}  // namespace

#define NG_TEXT_(name) #name
#define NG_TEXT(name) NG_TEXT_(name)
#if defined(__x86_64__)
#define NG_LEVEL "x86-64-" NG_TEXT(NG_ISA)
#else
#define NG_LEVEL NG_TEXT(NG_ISA)
#endif

extern constinit const ProductTable ISA_NAME(products) = product_loops(NG_LEVEL);

}  // namespace ng::cpu
