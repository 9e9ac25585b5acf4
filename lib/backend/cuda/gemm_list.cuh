// Carries out an epilogue's list of instructions on neighbouring sums: what stands in a product's kernel where others have a text of their own.
//
// Its includer says HAS_BOX, and how many LISTED_VECTORS wait in shared memory. The functions of f32 are those of every other fused kernel, so that a
// result does not depend on what was fused (contract N1).
#pragma once
#include "lib/backend/cuda/prelude.cuh"
#include "lib/backend/cuda/prelude_functions.cuh"
#include "jit/prelude_common.h"
#undef DEVICE

#define HAS_EPILOGUE true
#define HAS_LIST true
#define HAS_OUTER true
#define KIND_0 (LISTED_VECTORS > 0 ? OF_COLUMNS : ANYHOW)
#define KIND_1 (LISTED_VECTORS > 1 ? OF_COLUMNS : ANYHOW)
#define KIND_2 (LISTED_VECTORS > 2 ? OF_COLUMNS : ANYHOW)
#define KIND_3 ANYHOW
#define KIND_4 ANYHOW
#define KIND_5 ANYHOW
#define KIND_6 ANYHOW
#define KIND_7 ANYHOW
#include "kernels/gemm_folds.cuh"
#include "kernels/listed_maps.h"

namespace ng::kernels {
namespace {

enum : u32 {
#define NODE(name, ...) OP_##name,
#define MAP(name, ...) OP_##name,
#define FOLD(name, ...) OP_##name,
#define STAT(name, ...) OP_##name,
#define NORM(name, ...) OP_##name,
#include "jit/ops.def"
    OPS
};
static_assert(OPS <= LIST_KEEP_0, "codes that are no maps stand behind those that are");
enum : u32 {
#define MAP(name, ...) IS_LISTED_##name = is_listed_map(#name),
#include "jit/ops.def"
};

// Quotients and roots without rare cases; in the language's words where those do not do.
template <int COUNT, class Tame, class Plain>
DEVICE void map_tame(float (&v)[COUNT], const Tame& tame, const Plain& plain)
{
    float r[COUNT];
    bool  is_tame = true;
    UNROLLED for (int j = 0; j < COUNT; j++) r[j] = tame(j, is_tame);
    if (!is_tame) UNROLLED for (int j = 0; j < COUNT; j++) r[j] = plain(j);
    UNROLLED for (int j = 0; j < COUNT; j++) v[j] = r[j];
}

// One map of each of v, with `second` and `third` as its other operands: one branch for all of them, but for add and mul, which run_list has.
template <int COUNT>
DEVICE void map_listed(u32 code, float (&v)[COUNT], const float (&second)[COUNT], const float (&third)[COUNT])
{
    switch (code) {
    case OP_div: return map_tame(v, [&](int j, bool& is_tame) { return quotient_of(v[j], second[j], is_tame); }, [&](int j) { return v[j] / second[j]; });
    case OP_reciprocal: return map_tame(v, [&](int j, bool& is_tame) { return quotient_of(1.0f, v[j], is_tame); }, [&](int j) { return 1.0f / v[j]; });
    case OP_sqrt: return map_tame(v, [&](int j, bool& is_tame) { return root_of(v[j], is_tame); }, [&](int j) { return sqrtf(v[j]); });
#define T f32
#define K(v) (f32)(v)
#define F(f) f##_f32
#define MAP(name, arity, domain, result, expression, ...) MAP_##domain(name, expression)
#define MAP_Any ROW
#define MAP_Keep ROW
#define MAP_Real ROW
#define MAP_Bits(...)
#define MAP_Logic(...)
#define IS_APART(name) (OP_##name == OP_add || OP_##name == OP_mul || OP_##name == OP_div || OP_##name == OP_reciprocal || OP_##name == OP_sqrt)
#define ROW(name, expression)                                                           \
    case OP_##name + (IS_APART(name) ? OPS : 0):                                        \
        if constexpr (IS_LISTED_##name && !IS_APART(name))                              \
            UNROLLED for (int j = 0; j < COUNT; j++) {                                  \
                const f32 x = v[j], y = second[j], z = third[j];                        \
                (void)y, (void)z;                                                       \
                v[j] = (f32)(expression);                                               \
            }                                                                           \
        return;
#include "jit/ops.def"
#undef T
#undef K
#undef F
#undef MAP_Any
#undef MAP_Keep
#undef MAP_Real
#undef MAP_Bits
#undef MAP_Logic
#undef IS_APART
#undef ROW
    default: return;
    }
}

template <int COUNT>
DEVICE void swap_listed(float (&v)[COUNT], float (&o)[COUNT])
{
    UNROLLED for (int j = 0; j < COUNT; j++) {
        const float x = v[j];
        v[j] = o[j], o[j] = x;
    }
}

// ---- folds ----------------------------------------------------------------------------------------------------------------

// Two terms, one more of many, and what many come to, of folds of one kind. Of sums what roundings lose is kept.
struct SumTwo {
    DEVICE u32 operator()(u32 x, u32 y) const { return __float_as_uint(__uint_as_float(x) + __uint_as_float(y)); }
    DEVICE static u32 start() { return 0; }
    DEVICE static pair_f32 pair_of(const FoldTotal& total) { return {__uint_as_float(total.bits), __uint_as_float(total.rest)}; }
    DEVICE FoldTotal more(const FoldTotal& total, u32 x) const
    {
        const pair_f32 sum = sum_f32(pair_of(total), pair_of_f32(__uint_as_float(x)));
        return {__float_as_uint(sum.hi), __float_as_uint(sum.lo)};
    }
    DEVICE u32 all(const FoldTotal& total) const { return __float_as_uint(total_f32(pair_of(total))); }
};
struct OtherTwo {
    u32 how;

    DEVICE u32 operator()(u32 x, u32 y) const
    {
        const float a = __uint_as_float(x), b = __uint_as_float(y);
        return __float_as_uint(how == LIST_PROD ? a * b : how == LIST_MIN ? least_f32(a, b) : greatest_f32(a, b));
    }
    DEVICE u32 start() const { return how == LIST_PROD ? 0x3f800000 : how == LIST_MIN ? 0x7f800000 : 0xff800000; }
    DEVICE FoldTotal more(const FoldTotal& total, u32 x) const { return {(*this)(total.bits, x), 0}; }
    DEVICE u32 all(const FoldTotal& total) const { return total.bits; }
};
DEVICE bool has_list_folds(const Epilogue& e) { return e.count > e.loads; }
DEVICE bool is_over_columns(const Epilogue& e) { return e.tensor[e.loads].kind == OVER_COLUMNS; }
DEVICE void put_listed(const Epilogue& e, u32 number, i32 more, i64 batch, i64 row, i64 column, u32 x) { put_part(e, e.loads + i32(list_fold(number)) + more, batch, row, column, x); }
// Of one row's part: its pivot, and sums of how far its columns are off and of the squares of that.
struct RowSquares {
    u32 pivot, off, squared;
};
DEVICE void put_squares(const Epilogue& e, u32 number, i64 batch, i64 row, i64 part, const RowSquares& s, i32 count)
{
    const u32 all[4] = {s.pivot, s.off, s.squared, __float_as_uint(float(count))};
    UNROLLED for (i32 i = 0; i < 4; i++) put_listed(e, number, i, batch, row, part, all[i]);
}
// Terms as how far they are off the pivot, and the squares of that.
template <int COUNT>
DEVICE void take_off(u32 pivot, u32 (&x)[COUNT], u32 (&squared)[COUNT])
{
    UNROLLED for (int j = 0; j < COUNT; j++) {
        const float d = __uint_as_float(x[j]) - __uint_as_float(pivot);
        x[j] = __float_as_uint(d), squared[j] = __float_as_uint(d * d);
    }
}
// Where nothing is folded.
struct NoFolds {
    template <class Two, int COUNT>
    DEVICE void fold(u32, const Two&, const float (&)[COUNT])
    {
    }
    template <int COUNT>
    DEVICE void fold_squares(u32, const float (&)[COUNT])
    {
    }
};
template <class Folds, int COUNT>
DEVICE void fold_listed(Folds& folds, u32 number, const float (&v)[COUNT])
{
    const u32 how = list_fold_how(number);
    if (how == LIST_SQUARES) folds.fold_squares(number, v);
    else if (how == LIST_SUM) folds.fold(number, SumTwo(), v);
    else folds.fold(number, OtherTwo{how}, v);
}

// ---- the list --------------------------------------------------------------------------------------------------------------

// v: sums, and what comes of them. fetch(tensor, numbers) gives a tensor's; folds takes what an instruction folds.
template <int COUNT, class Fetch, class Folds>
DEVICE void run_list(const Epilogue& e, float (&v)[COUNT], const Fetch& fetch, Folds& folds)
{
    float     kept[2][COUNT];
    const i32 length = list_length(e.numbers[0]);
    UNROLLED for (int j = 0; j < COUNT; j++) kept[0][j] = kept[1][j] = 0;
    ROLLED for (i32 i = 1; i <= length; i++) {
        const u64 word = e.numbers[i];
        const u32 code = list_code(word), source = list_source(word);
        float     o[COUNT];
        switch (source) {
        case FROM_NUMBER: UNROLLED for (int j = 0; j < COUNT; j++) o[j] = __uint_as_float(list_number(word)); break;
        case FROM_KEPT_0: UNROLLED for (int j = 0; j < COUNT; j++) o[j] = kept[0][j]; break;
        case FROM_KEPT_1: UNROLLED for (int j = 0; j < COUNT; j++) o[j] = kept[1][j]; break;
        default: fetch(i32(source - FROM_TENSOR), o);
        }
        // What lists have most of, whichever comes first.
        if (code == OP_add) {
            UNROLLED for (int j = 0; j < COUNT; j++) v[j] = v[j] + o[j];
            continue;
        }
        if (code == OP_mul) {
            UNROLLED for (int j = 0; j < COUNT; j++) v[j] = v[j] * o[j];
            continue;
        }
        if (list_is_turned(word)) swap_listed(v, o);
        switch (code) {
        case LIST_KEEP_0: UNROLLED for (int j = 0; j < COUNT; j++) kept[0][j] = v[j]; break;
        case LIST_KEEP_1: UNROLLED for (int j = 0; j < COUNT; j++) kept[1][j] = v[j]; break;
        case LIST_SWAP_0: swap_listed(v, kept[0]); break;
        case LIST_SWAP_1: swap_listed(v, kept[1]); break;
        case LIST_BESIDE: UNROLLED for (int j = 0; j < COUNT; j++) kept[1][j] = o[j]; break;
        case LIST_TAKE: UNROLLED for (int j = 0; j < COUNT; j++) v[j] = o[j]; break;
        case LIST_ROUND_F16: UNROLLED for (int j = 0; j < COUNT; j++) v[j] = round_f16(v[j]); break;
        case LIST_ROUND_BF16: UNROLLED for (int j = 0; j < COUNT; j++) v[j] = round_bf16(v[j]); break;
        case LIST_FOLD: fold_listed(folds, list_number(word), v); break;
        default: map_listed(code, v, o, kept[1]);
        }
    }
}

// ---- operands -------------------------------------------------------------------------------------------------------------

// Elements as they come, whole words or two halves in one; where `together` is 0, one for all.
template <int COUNT>
DEVICE void fetch_words(const Epilogue& e, i32 tensor, const EpilogueSpot& at, u32 (&w)[COUNT])
{
    const EpilogueTensor& t = e.tensor[tensor];
    if (at.valid <= 0) return;
    const char* const row = static_cast<const char*>(t.data) + (to_batch(e, tensor, at.batch) + at.row * t.row) * t.bytes;
    const auto        place = [&](int j) { return (at.column + (j < at.valid ? j : 0)) * t.column; };
    const bool        is_one = t.together >= COUNT && at.valid == COUNT;
    if (t.bytes == 4) {
        const u32* const from = reinterpret_cast<const u32*>(row);
        if (t.together == 0) {
            w[0] = *from;
        } else if (is_one) {
            const Neighbours<u32, COUNT> all = *reinterpret_cast<const Neighbours<u32, COUNT>*>(from + at.column);
            UNROLLED for (int j = 0; j < COUNT; j++) w[j] = all.e[j];
        } else {
            UNROLLED for (int j = 0; j < COUNT; j++) w[j] = from[place(j)];
        }
    } else {
        const u16* const from = reinterpret_cast<const u16*>(row);
        if (t.together == 0) {
            w[0] = *from;
        } else if (is_one) {
            const Neighbours<u32, COUNT / 2> all = *reinterpret_cast<const Neighbours<u32, COUNT / 2>*>(from + at.column);
            UNROLLED for (int j = 0; j < COUNT / 2; j++) w[j] = all.e[j];
        } else {
            UNROLLED for (int j = 0; j < COUNT; j += 2) w[j / 2] = from[place(j)] | u32(from[place(j + 1)]) << 16;
        }
    }
}
DEVICE float listed_number(i32 type, u32 code) { return type == F16 ? narrow_number(F16, code & 0xffff) : __uint_as_float(code << 16); }
// The numbers that words are, to `o` from `first` on.
template <int COUNT, int ALL>
DEVICE void numbers_of_words(i32 type, bool is_same, const u32 (&w)[COUNT], float (&o)[ALL], int first)
{
    if (type == F32) UNROLLED for (int j = 0; j < COUNT; j++) o[first + j] = __uint_as_float(is_same ? w[0] : w[j]);
    else
        UNROLLED for (int j = 0; j < COUNT; j++) o[first + j] = listed_number(type, is_same ? w[0] : w[j / 2] >> 16 * (j % 2));
}

// What neighbours read, on its way; it is waited for when an instruction wants it.
template <int COUNT>
struct EpilogueOperands {
    u32 words[LIST_TENSORS][COUNT];
};
template <int COUNT, class Source>
DEVICE void fetch_operands(const Source& source, EpilogueOperands<COUNT>& o)
{
    UNROLLED for (int t = 0; t < LIST_TENSORS; t++) {
        UNROLLED for (int j = 0; j < COUNT; j++) o.words[t][j] = 0;
        if (t < source.epilogue.loads) fetch_words(source.epilogue, t, source.at, o.words[t]);
    }
}
// As many fours of a row, side by side, as their operands are.
template <int COUNT, int FOURS, class Folds>
DEVICE void finish_list(const Epilogue& e, const EpilogueOperands<COUNT> (&operands)[FOURS], float (&v)[COUNT * FOURS], Folds& folds)
{
    const auto fetch = [&](i32 tensor, float (&o)[COUNT * FOURS]) {
        UNROLLED for (int t = 0; t < LIST_TENSORS; t++) {
            if (t != tensor) continue;
            UNROLLED for (int i = 0; i < FOURS; i++) numbers_of_words(list_type(e.numbers[0], t), e.tensor[t].together == 0, operands[i].words[t], o, i * COUNT);
        }
    };
    run_list(e, v, fetch, folds);
}
template <int COUNT>
DEVICE void finish_sums(const Epilogue& e, const EpilogueSpot&, const EpilogueOperands<COUNT>& operands, u32 (&sums)[COUNT], EpilogueTerms<COUNT>&)
{
    float v[COUNT];
    UNROLLED for (int j = 0; j < COUNT; j++) v[j] = __uint_as_float(sums[j]);
    const EpilogueOperands<COUNT> all[1] = {operands};
    NoFolds none;
    finish_list(e, all, v, none);
    UNROLLED for (int j = 0; j < COUNT; j++) sums[j] = __float_as_uint(v[j]);
}

}  // namespace
}  // namespace ng::kernels
