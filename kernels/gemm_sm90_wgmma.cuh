// The tensor cores' one instruction in all its widths and types: d += a b, 64 rows, both from shared memory.
#pragma once
#include "kernels/gemm_sm90_ptx.cuh"

namespace ng::kernels {
namespace {

// What operands are. STEP: elements in a row of 128 bytes; WORD: of a sum.
template <class SUM, int STEP_, bool IS_TURNABLE_>
struct OperandKind {
    using Word = SUM;
    static constexpr int  STEP = STEP_, BYTES = 128 / STEP_;
    static constexpr bool IS_TURNABLE = IS_TURNABLE_;        // rows or columns may be what lies side by side, too
};
struct OfF16 : OperandKind<float, 64, true> {};
struct OfBf16 : OperandKind<float, 64, true> {};
struct OfTf32 : OperandKind<float, 32, false> {};
struct OfE4m3E4m3 : OperandKind<float, 128, false> {};
struct OfE4m3E5m2 : OperandKind<float, 128, false> {};
struct OfE5m2E4m3 : OperandKind<float, 128, false> {};
struct OfE5m2E5m2 : OperandKind<float, 128, false> {};
struct OfI8I8 : OperandKind<i32, 128, false> {};
struct OfI8U8 : OperandKind<i32, 128, false> {};
struct OfU8I8 : OperandKind<i32, 128, false> {};
struct OfU8U8 : OperandKind<i32, 128, false> {};

// The numbers of operands in the text: the first 2, 4, 6, 8 and 10 of a decade.
#define TWO(t) "%" #t "0,%" #t "1"
#define FOUR(t) TWO(t) ",%" #t "2,%" #t "3"
#define SIX(t) FOUR(t) ",%" #t "4,%" #t "5"
#define EIGHT(t) SIX(t) ",%" #t "6,%" #t "7"
#define TEN(t) EIGHT(t) ",%" #t "8,%" #t "9,"
#define ONES "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,"
#define LIST_8 "%0,%1,%2,%3,%4,%5,%6,%7"
#define LIST_16 ONES SIX(1)
#define LIST_32 ONES TEN(1) TEN(2) TWO(3)
#define LIST_36 ONES TEN(1) TEN(2) SIX(3)
#define LIST_40 ONES TEN(1) TEN(2) "%30,%31,%32,%33,%34,%35,%36,%37,%38,%39"
#define LIST_44 ONES TEN(1) TEN(2) TEN(3) FOUR(4)
#define LIST_48 ONES TEN(1) TEN(2) TEN(3) EIGHT(4)
#define LIST_52 ONES TEN(1) TEN(2) TEN(3) TEN(4) TWO(5)
#define LIST_56 ONES TEN(1) TEN(2) TEN(3) TEN(4) SIX(5)
#define LIST_60 ONES TEN(1) TEN(2) TEN(3) TEN(4) "%50,%51,%52,%53,%54,%55,%56,%57,%58,%59"
#define LIST_64 ONES TEN(1) TEN(2) TEN(3) TEN(4) TEN(5) FOUR(6)
#define LIST_68 ONES TEN(1) TEN(2) TEN(3) TEN(4) TEN(5) EIGHT(6)
#define LIST_72 ONES TEN(1) TEN(2) TEN(3) TEN(4) TEN(5) TEN(6) TWO(7)
#define LIST_76 ONES TEN(1) TEN(2) TEN(3) TEN(4) TEN(5) TEN(6) SIX(7)
#define LIST_80 ONES TEN(1) TEN(2) TEN(3) TEN(4) TEN(5) TEN(6) "%70,%71,%72,%73,%74,%75,%76,%77,%78,%79"
#define LIST_88 ONES TEN(1) TEN(2) TEN(3) TEN(4) TEN(5) TEN(6) TEN(7) EIGHT(8)
#define LIST_96 ONES TEN(1) TEN(2) TEN(3) TEN(4) TEN(5) TEN(6) TEN(7) TEN(8) SIX(9)
#define LIST_100 ONES TEN(1) TEN(2) TEN(3) TEN(4) TEN(5) TEN(6) TEN(7) TEN(8) "%90,%91,%92,%93,%94,%95,%96,%97,%98,%99"
#define LIST_104 ONES TEN(1) TEN(2) TEN(3) TEN(4) TEN(5) TEN(6) TEN(7) TEN(8) TEN(9) FOUR(10)
#define LIST_116 ONES TEN(1) TEN(2) TEN(3) TEN(4) TEN(5) TEN(6) TEN(7) TEN(8) TEN(9) TEN(10) SIX(11)
#define LIST_128 ONES TEN(1) TEN(2) TEN(3) TEN(4) TEN(5) TEN(6) TEN(7) TEN(8) TEN(9) TEN(10) TEN(11) EIGHT(12)
#define REGISTERS_4(C, i) C(d[i]), C(d[i + 1]), C(d[i + 2]), C(d[i + 3])
#define REGISTERS_8(C, i) C(d[i]), C(d[i + 1]), C(d[i + 2]), C(d[i + 3]), C(d[i + 4]), C(d[i + 5]), C(d[i + 6]), C(d[i + 7])
#define REGISTERS_16(C, i) REGISTERS_8(C, i), REGISTERS_8(C, i + 8)
#define REGISTERS_32(C, i) REGISTERS_16(C, i), REGISTERS_16(C, i + 16)
#define REGISTERS_36(C, i) REGISTERS_32(C, i), REGISTERS_4(C, i + 32)
#define REGISTERS_40(C, i) REGISTERS_32(C, i), REGISTERS_8(C, i + 32)
#define REGISTERS_44(C, i) REGISTERS_40(C, i), REGISTERS_4(C, i + 40)
#define REGISTERS_48(C, i) REGISTERS_32(C, i), REGISTERS_16(C, i + 32)
#define REGISTERS_52(C, i) REGISTERS_48(C, i), REGISTERS_4(C, i + 48)
#define REGISTERS_56(C, i) REGISTERS_48(C, i), REGISTERS_8(C, i + 48)
#define REGISTERS_60(C, i) REGISTERS_56(C, i), REGISTERS_4(C, i + 56)
#define REGISTERS_64(C, i) REGISTERS_32(C, i), REGISTERS_32(C, i + 32)
#define REGISTERS_68(C, i) REGISTERS_64(C, i), REGISTERS_4(C, i + 64)
#define REGISTERS_72(C, i) REGISTERS_64(C, i), REGISTERS_8(C, i + 64)
#define REGISTERS_76(C, i) REGISTERS_72(C, i), REGISTERS_4(C, i + 72)
#define REGISTERS_80(C, i) REGISTERS_64(C, i), REGISTERS_16(C, i + 64)
#define REGISTERS_88(C, i) REGISTERS_80(C, i), REGISTERS_8(C, i + 80)
#define REGISTERS_96(C, i) REGISTERS_64(C, i), REGISTERS_32(C, i + 64)
#define REGISTERS_100(C, i) REGISTERS_96(C, i), REGISTERS_4(C, i + 96)
#define REGISTERS_104(C, i) REGISTERS_96(C, i), REGISTERS_8(C, i + 96)
#define REGISTERS_116(C, i) REGISTERS_100(C, i), REGISTERS_16(C, i + 100)
#define REGISTERS_128(C, i) REGISTERS_64(C, i), REGISTERS_64(C, i + 64)
#define REAL(x) "+f"(x)
#define WHOLE(x) "+r"(x)
// Operands by 128 bytes of K: a, b and whether d counts are numbers A, B and P of the text.
#define TURNABLE(Kind, words, COUNT, n, text, A, B, P, TURN_A, TURN_B)                                                              \
    template <int A_TURNED, int B_TURNED>                                                                                          \
    DEVICE void multiply(float (&d)[COUNT], u64 a, u64 b, i32 is_sum, Kind)                                                        \
    {                                                                                                                              \
        asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #P ", 0;\nwgmma.mma_async.sync.aligned.m64n" #n text " {" LIST_##COUNT   \
                     "}, %" #A ", %" #B ", p, 1, 1, %" #TURN_A ", %" #TURN_B ";\n}"                                                \
                     : REGISTERS_##COUNT(words, 0)                                                                                 \
                     : "l"(a), "l"(b), "r"(is_sum), "n"(A_TURNED), "n"(B_TURNED));                                                 \
    }
#define FIXED(Kind, Word_, words, scales, COUNT, n, text, A, B, P)                                                                  \
    template <int A_TURNED, int B_TURNED>                                                                                          \
    DEVICE void multiply(Word_ (&d)[COUNT], u64 a, u64 b, i32 is_sum, Kind)                                                        \
    {                                                                                                                              \
        static_assert(!A_TURNED && !B_TURNED, "only elements of 16 bits may be turned");                                           \
        asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #P ", 0;\nwgmma.mma_async.sync.aligned.m64n" #n text " {" LIST_##COUNT   \
                     "}, %" #A ", %" #B ", p" scales ";\n}"                                                                        \
                     : REGISTERS_##COUNT(words, 0)                                                                                 \
                     : "l"(a), "l"(b), "r"(is_sum));                                                                               \
    }
#define TURNABLE_KIND(Kind, text)                                                                                                  \
    TURNABLE(Kind, REAL, 8, 16, text, 8, 9, 10, 11, 12)                                                                            \
    TURNABLE(Kind, REAL, 16, 32, text, 16, 17, 18, 19, 20)                                                                         \
    TURNABLE(Kind, REAL, 32, 64, text, 32, 33, 34, 35, 36)                                                                         \
    TURNABLE(Kind, REAL, 36, 72, text, 36, 37, 38, 39, 40)                                                                         \
    TURNABLE(Kind, REAL, 40, 80, text, 40, 41, 42, 43, 44)                                                                         \
    TURNABLE(Kind, REAL, 44, 88, text, 44, 45, 46, 47, 48)                                                                         \
    TURNABLE(Kind, REAL, 48, 96, text, 48, 49, 50, 51, 52)                                                                         \
    TURNABLE(Kind, REAL, 52, 104, text, 52, 53, 54, 55, 56)                                                                        \
    TURNABLE(Kind, REAL, 56, 112, text, 56, 57, 58, 59, 60)                                                                        \
    TURNABLE(Kind, REAL, 60, 120, text, 60, 61, 62, 63, 64)                                                                        \
    TURNABLE(Kind, REAL, 64, 128, text, 64, 65, 66, 67, 68)                                                                        \
    TURNABLE(Kind, REAL, 68, 136, text, 68, 69, 70, 71, 72)                                                                        \
    TURNABLE(Kind, REAL, 72, 144, text, 72, 73, 74, 75, 76)                                                                        \
    TURNABLE(Kind, REAL, 76, 152, text, 76, 77, 78, 79, 80)                                                                        \
    TURNABLE(Kind, REAL, 80, 160, text, 80, 81, 82, 83, 84)                                                                        \
    TURNABLE(Kind, REAL, 88, 176, text, 88, 89, 90, 91, 92)                                                                        \
    TURNABLE(Kind, REAL, 96, 192, text, 96, 97, 98, 99, 100)                                                                       \
    TURNABLE(Kind, REAL, 100, 200, text, 100, 101, 102, 103, 104)                                                                  \
    TURNABLE(Kind, REAL, 104, 208, text, 104, 105, 106, 107, 108)                                                                  \
    TURNABLE(Kind, REAL, 116, 232, text, 116, 117, 118, 119, 120)                                                                  \
    TURNABLE(Kind, REAL, 128, 256, text, 128, 129, 130, 131, 132)
#define FIXED_KIND(Kind, Word_, words, scales, text)                                                                               \
    FIXED(Kind, Word_, words, scales, 8, 16, text, 8, 9, 10)                                                                       \
    FIXED(Kind, Word_, words, scales, 16, 32, text, 16, 17, 18)                                                                    \
    FIXED(Kind, Word_, words, scales, 32, 64, text, 32, 33, 34)                                                                    \
    FIXED(Kind, Word_, words, scales, 48, 96, text, 48, 49, 50)                                                                    \
    FIXED(Kind, Word_, words, scales, 56, 112, text, 56, 57, 58)                                                                   \
    FIXED(Kind, Word_, words, scales, 64, 128, text, 64, 65, 66)                                                                   \
    FIXED(Kind, Word_, words, scales, 72, 144, text, 72, 73, 74)                                                                   \
    FIXED(Kind, Word_, words, scales, 96, 192, text, 96, 97, 98)                                                                   \
    FIXED(Kind, Word_, words, scales, 128, 256, text, 128, 129, 130)

// Of sums of f32 there are these columns, too.
#define FIXED_REAL_KIND(Kind, text)                                                                                                \
    FIXED_KIND(Kind, float, REAL, ", 1, 1", text)                                                                                  \
    FIXED(Kind, float, REAL, ", 1, 1", 36, 72, text, 36, 37, 38)                                                                   \
    FIXED(Kind, float, REAL, ", 1, 1", 40, 80, text, 40, 41, 42)                                                                   \
    FIXED(Kind, float, REAL, ", 1, 1", 44, 88, text, 44, 45, 46)                                                                   \
    FIXED(Kind, float, REAL, ", 1, 1", 52, 104, text, 52, 53, 54)                                                                  \
    FIXED(Kind, float, REAL, ", 1, 1", 60, 120, text, 60, 61, 62)                                                                  \
    FIXED(Kind, float, REAL, ", 1, 1", 68, 136, text, 68, 69, 70)                                                                  \
    FIXED(Kind, float, REAL, ", 1, 1", 76, 152, text, 76, 77, 78)

// The same with a in registers, as mma has its fragments.
#define FRAGMENT(Kind, COUNT, n, text, A0, A1, A2, A3, B, P, TURN_B)                                                               \
    template <int B_TURNED>                                                                                                        \
    DEVICE void multiply_fragment(float (&d)[COUNT], const u32 (&a)[4], u64 b, i32 is_sum, Kind)                                   \
    {                                                                                                                              \
        asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #P ", 0;\nwgmma.mma_async.sync.aligned.m64n" #n text " {" LIST_##COUNT   \
                     "}, {%" #A0 ", %" #A1 ", %" #A2 ", %" #A3 "}, %" #B ", p, 1, 1, %" #TURN_B ";\n}"                             \
                     : REGISTERS_##COUNT(REAL, 0)                                                                                  \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(is_sum), "n"(B_TURNED));                            \
    }
#define FIXED_FRAGMENT(Kind, COUNT, n, text, A0, A1, A2, A3, B, P)                                                                  \
    DEVICE void multiply_fragment(float (&d)[COUNT], const u32 (&a)[4], u64 b, i32 is_sum, Kind)                                   \
    {                                                                                                                              \
        asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #P ", 0;\nwgmma.mma_async.sync.aligned.m64n" #n text " {" LIST_##COUNT   \
                     "}, {%" #A0 ", %" #A1 ", %" #A2 ", %" #A3 "}, %" #B ", p, 1, 1;\n}"                                           \
                     : REGISTERS_##COUNT(REAL, 0)                                                                                  \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(is_sum));                                           \
    }
#define FRAGMENT_KIND(Kind, text)                                                                                                  \
    FRAGMENT(Kind, 8, 16, text, 8, 9, 10, 11, 12, 13, 14)                                                                          \
    FRAGMENT(Kind, 16, 32, text, 16, 17, 18, 19, 20, 21, 22)                                                                       \
    FRAGMENT(Kind, 32, 64, text, 32, 33, 34, 35, 36, 37, 38)                                                                       \
    FRAGMENT(Kind, 64, 128, text, 64, 65, 66, 67, 68, 69, 70)

TURNABLE_KIND(OfF16, "k16.f32.f16.f16")
TURNABLE_KIND(OfBf16, "k16.f32.bf16.bf16")
FIXED_REAL_KIND(OfTf32, "k8.f32.tf32.tf32")
FIXED_REAL_KIND(OfE4m3E4m3, "k32.f32.e4m3.e4m3")
FIXED_REAL_KIND(OfE4m3E5m2, "k32.f32.e4m3.e5m2")
FIXED_REAL_KIND(OfE5m2E4m3, "k32.f32.e5m2.e4m3")
FIXED_REAL_KIND(OfE5m2E5m2, "k32.f32.e5m2.e5m2")
FIXED_KIND(OfI8I8, i32, WHOLE, "", "k32.s32.s8.s8")
FIXED_KIND(OfI8U8, i32, WHOLE, "", "k32.s32.s8.u8")
FIXED_KIND(OfU8I8, i32, WHOLE, "", "k32.s32.u8.s8")
FIXED_KIND(OfU8U8, i32, WHOLE, "", "k32.s32.u8.u8")
FRAGMENT_KIND(OfF16, "k16.f32.f16.f16")
FRAGMENT_KIND(OfBf16, "k16.f32.bf16.bf16")
FIXED_FRAGMENT(OfTf32, 8, 16, "k8.f32.tf32.tf32", 8, 9, 10, 11, 12, 13)
FIXED_FRAGMENT(OfTf32, 16, 32, "k8.f32.tf32.tf32", 16, 17, 18, 19, 20, 21)
FIXED_FRAGMENT(OfTf32, 32, 64, "k8.f32.tf32.tf32", 32, 33, 34, 35, 36, 37)
FIXED_FRAGMENT(OfTf32, 64, 128, "k8.f32.tf32.tf32", 64, 65, 66, 67, 68, 69)
FIXED_FRAGMENT(OfTf32, 96, 192, "k8.f32.tf32.tf32", 96, 97, 98, 99, 100, 101)
FIXED_FRAGMENT(OfTf32, 128, 256, "k8.f32.tf32.tf32", 128, 129, 130, 131, 132, 133)

#undef TWO
#undef FOUR
#undef SIX
#undef EIGHT
#undef TEN
#undef ONES
#undef LIST_8
#undef LIST_16
#undef LIST_32
#undef LIST_36
#undef LIST_40
#undef LIST_44
#undef LIST_48
#undef LIST_52
#undef LIST_56
#undef LIST_60
#undef LIST_64
#undef LIST_68
#undef LIST_72
#undef LIST_76
#undef LIST_80
#undef LIST_88
#undef LIST_96
#undef LIST_100
#undef LIST_104
#undef LIST_116
#undef LIST_128
#undef REGISTERS_4
#undef REGISTERS_8
#undef REGISTERS_16
#undef REGISTERS_32
#undef REGISTERS_36
#undef REGISTERS_40
#undef REGISTERS_44
#undef REGISTERS_48
#undef REGISTERS_52
#undef REGISTERS_56
#undef REGISTERS_60
#undef REGISTERS_64
#undef REGISTERS_68
#undef REGISTERS_72
#undef REGISTERS_76
#undef REGISTERS_80
#undef REGISTERS_88
#undef REGISTERS_96
#undef REGISTERS_100
#undef REGISTERS_104
#undef REGISTERS_116
#undef REGISTERS_128
#undef REAL
#undef WHOLE
#undef TURNABLE
#undef FIXED
#undef FRAGMENT
#undef FRAGMENT_KIND
#undef FIXED_FRAGMENT
#undef TURNABLE_KIND
#undef FIXED_KIND
#undef FIXED_REAL_KIND

}  // namespace
}  // namespace ng::kernels
