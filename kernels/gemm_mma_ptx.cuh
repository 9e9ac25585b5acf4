// Instructions of sm_80 that C++ has no words for: products of a warp, copies into shared memory, and what goes with them.
//
// Shared memory is addressed by 32 bits from shared_begin() on. Tests put plain C++ in this file's place.
//
// Products c += a b of a warp; lane is 4 g + t. Words of a: rows g and g + 8 of its first 16 bytes of depth, then of the
// next 16; of b: column g, the same two parts; t is the word's place in a part. c: row g, columns 2 t and 2 t + 1; row g + 8.
#pragma once
#include "kernels/elements.cuh"

namespace ng::kernels {
namespace {

#define PRODUCT_OF_HALVES(name, type)                                                                                   \
    DEVICE void name(float (&c)[4], const u32 (&a)[4], const u32 (&b)[2])                                               \
    {                                                                                                                   \
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." type "." type ".f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" \
                     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1])); \
    }
PRODUCT_OF_HALVES(product_f16, "f16")
PRODUCT_OF_HALVES(product_bf16, "bf16")
#undef PRODUCT_OF_HALVES

// Of f32 whose last 13 bits are not looked at.
DEVICE void product_tf32(float (&c)[4], const u32 (&a)[4], const u32 (&b)[2])
{
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

#define PRODUCT_OF_BYTES(name, a_type, b_type)                                                                          \
    DEVICE void name(i32 (&c)[4], const u32 (&a)[4], const u32 (&b)[2])                                                 \
    {                                                                                                                   \
        asm volatile("mma.sync.aligned.m16n8k32.row.col.s32." a_type "." b_type ".s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" \
                     : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1])); \
    }
PRODUCT_OF_BYTES(product_s8_s8, "s8", "s8")
PRODUCT_OF_BYTES(product_s8_u8, "s8", "u8")
PRODUCT_OF_BYTES(product_u8_s8, "u8", "s8")
PRODUCT_OF_BYTES(product_u8_u8, "u8", "u8")
#undef PRODUCT_OF_BYTES

// Of doubles, two steps of a depth of 4: a has rows g and g + 8 of the first, then of the second, b one of each. sm_90 does all
// at once, twice as fast.
DEVICE void product_f64(double (&c)[4], const double (&a)[4], const double (&b)[2])
{
#if __CUDA_ARCH__ >= 900
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3]) : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[0]), "d"(b[1]));
#else
    UNROLLED for (int i = 0; i < 4; i++)
        asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};" : "+d"(c[i % 2 * 2]), "+d"(c[i % 2 * 2 + 1]) : "d"(a[i]), "d"(b[i / 2]));
#endif
}

// ---- shared memory -----------------------------------------------------------------------------------------------------

extern __shared__ __align__(128) char mma_room[];
DEVICE u32 shared_begin() { return u32(__cvta_generic_to_shared(mma_room)); }

// Four blocks of 8 rows of 16 bytes, row r of block i at lane 8 i + r's address; word i of lane 4 g + t is row g's word t of
// block i. Turned, elements of 16 bits: the lane's are of column g and rows 2 t and 2 t + 1.
DEVICE void load_blocks(u32 (&x)[4], u32 at)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "r"(at));
}
DEVICE void load_turned_blocks(u32 (&x)[4], u32 at)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "r"(at));
}

DEVICE u32 load_word(u32 at)
{
    u32 x;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(x) : "r"(at));
    return x;
}
DEVICE double load_double(u32 at)
{
    double x;
    asm volatile("ld.shared.f64 %0, [%1];" : "=d"(x) : "r"(at));
    return x;
}
DEVICE void load_four(u32 at, u32 (&x)[4])
{
    asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "r"(at));
}
DEVICE void store_two(u32 at, u32 x, u32 y) { asm volatile("st.shared.v2.u32 [%0], {%1,%2};" ::"r"(at), "r"(x), "r"(y) : "memory"); }
DEVICE void store_four(u32 at, const u32 (&x)[4])
{
    asm volatile("st.shared.v4.u32 [%0], {%1,%2,%3,%4};" ::"r"(at), "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]) : "memory");
}

// BYTES from global memory, or as many zeros; done when its group is. It could bring some of them and zeros behind, but compute-sanitizer
// reports what has no memory whether it is read or not.
template <int BYTES>
DEVICE void copy_async(u32 to, const void* from, bool is_there)
{
    const i32 bytes = is_there ? BYTES : 0;
    if constexpr (BYTES == 16) asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
    else asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(from), "n"(BYTES), "r"(bytes) : "memory");
}
DEVICE void close_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Until at most so many of the thread's groups are on their way.
template <int GROUPS>
DEVICE void wait_groups()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(GROUPS) : "memory");
}

// Until all lanes of the warp are here: what they have stored is there for each of them.
DEVICE void meet_warp() { __syncwarp(); }

// x, of which compilers do not know that it was there before: what is computed of it takes no registers meanwhile.
DEVICE i64 unknown(i64 x)
{
    asm volatile("" : "+l"(x));
    return x;
}

// ---- conversions -------------------------------------------------------------------------------------------------------

// Half a unit of tf32's last place more, for products that do not look at the rest: rounded to nearest. Infinities and NaN stay.
DEVICE u32 near_tf32(u32 x)
{
    asm("{.reg .pred finite; .reg .f32 size; abs.f32 size, %1; setp.lt.f32 finite, size, 0f7f800000; @finite add.u32 %0, %0, 0x1000;}" : "+r"(x) : "f"(__uint_as_float(x)));
    return x;
}
// Every second byte of x and y, from the first or the next on.
DEVICE u32 second_bytes(u32 x, u32 y, int first) { return __byte_perm(x, y, first ? 0x7531 : 0x6420); }
// Two codes of e4m3, x's lowest bits, as halves; those of NaN too.
DEVICE u32 halves_of_e4m3(u32 x)
{
    u32 r;
#if __CUDA_ARCH__ >= 890
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(r) : "h"(u16(x)));
    return r;
#else
    // As halves they are 256 times less.
    asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(r) : "r"((x & 0x7f) << 7 | (x & 0x7f00) << 15), "r"(0x5c005c00u));
    const u32 nan = ((x & 0x7f) == 0x7f ? 0x7e00u : 0) | ((x & 0x7f00) == 0x7f00 ? 0x7e000000u : 0);
    return r | nan | (x & 0x80) << 8 | (x & 0x8000) << 16;
#endif
}

}  // namespace
}  // namespace ng::kernels
