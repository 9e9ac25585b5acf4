// The table of an instruction set: the maps' tables and all loops that are no maps.
#include "lib/backend/cpu/convert_loops.h"
#include "lib/backend/cpu/fold_loops.h"
#include "lib/backend/cpu/isa_name.h"
#include "lib/backend/cpu/random_loops.h"
#include "lib/backend/cpu/sum_rows.h"

namespace ng::cpu {
namespace {

template <Dtype FROM>
constexpr void put_converts(IsaTable& t)
{
#define DTYPE(name, ...) t.convert[int(FROM)][int(Dtype::name)] = convert_loop<FROM, Dtype::name>();
#include "jit/dtypes.def"
#undef DTYPE
}
template <Dtype D>
constexpr void put_dtype(IsaTable& t)
{
    t.load[int(D)] = load<Codec<D>>;
    t.store[int(D)] = store<Codec<D>>;
    t.stream[int(D)] = stream<Codec<D>>;
    t.gather[int(D)] = gather<Codec<D>>;
    if constexpr (is_narrow(D) || D == Dtype::f32 || D == Dtype::f64) {
        t.stochastic[0][int(D)] = stochastic_loop<D, float>;
        t.stochastic[1][int(D)] = stochastic_loop<D, double>;
    }
    if constexpr (int(D) < COMPUTE_TYPES) put_converts<D>(t);
}
template <class Fold, Dtype D>
constexpr void put_fold(IsaTable& t)
{
    constexpr bool is_logic = Fold::domain == Domain::Logic, is_bool = D == Dtype::bool_;
    if constexpr (is_logic ? is_bool : !is_bool || Fold::domain == Domain::Keep)
        t.fold.loops[int(Fold::op) - FIRST_FOLD][int(D)] = fold_loops<Fold, Held<D>>();
}
template <class Fold>
constexpr void put_folds(IsaTable& t)
{
    put_fold<Fold, Dtype::bool_>(t);
    put_fold<Fold, Dtype::i8>(t), put_fold<Fold, Dtype::i16>(t), put_fold<Fold, Dtype::i32>(t), put_fold<Fold, Dtype::i64>(t);
    put_fold<Fold, Dtype::u8>(t), put_fold<Fold, Dtype::u16>(t), put_fold<Fold, Dtype::u32>(t), put_fold<Fold, Dtype::u64>(t);
    put_fold<Fold, Dtype::f32>(t), put_fold<Fold, Dtype::f64>(t);
}

#define NG_QUOTE_(name) #name
#define NG_QUOTE(name) NG_QUOTE_(name)
constexpr IsaTable table()
{
    IsaTable t{};
#if defined(__x86_64__)
    t.name = "x86-64-" NG_QUOTE(NG_ISA);
#else
    t.name = NG_QUOTE(NG_ISA);
#endif
    t.map = {{&ISA_NAME(maps_bool), &ISA_NAME(maps_i8), &ISA_NAME(maps_i16), &ISA_NAME(maps_i32), &ISA_NAME(maps_i64), &ISA_NAME(maps_u8),
              &ISA_NAME(maps_u16), &ISA_NAME(maps_u32), &ISA_NAME(maps_u64), &ISA_NAME(maps_f32), &ISA_NAME(maps_f64)}};
#define DTYPE(name, ...) put_dtype<Dtype::name>(t);
#include "jit/dtypes.def"
#undef DTYPE
#define FOLD(name, ...) put_folds<Fold_##name>(t);
#include "jit/ops.def"
    t.vector_bytes = VECTOR_BYTES;
#if defined(__AVX2__)
    t.chain = ISA_NAME(chain);                         // sixteen registers of 16 bytes would be too few to be worth it
#endif
#if defined(__AVX2__) || !defined(__x86_64__)
    t.sum_rows[int(Dtype::f32)] = sum_rows<Dtype::f32>;
    t.sum_rows[int(Dtype::f16)] = sum_rows<Dtype::f16>, t.sum_rows[int(Dtype::bf16)] = sum_rows<Dtype::bf16>;
#endif
    t.ramp = ramp;
    t.random[RANDOM_BITS] = random_loop<RANDOM_BITS>;
    t.random[RANDOM_WORD3] = random_loop<RANDOM_WORD3>;
    t.random[RANDOM_UNIFORM32] = random_loop<RANDOM_UNIFORM32>;
    t.random[RANDOM_UNIFORM64] = random_loop<RANDOM_UNIFORM64>;
    t.random[RANDOM_NORMAL32] = random_loop<RANDOM_NORMAL32>;
    t.random[RANDOM_NORMAL64] = random_loop<RANDOM_NORMAL64>;
    return t;
}

}  // namespace

#define FOLD(...) +1
static_assert(FOLDS == 0
#include "jit/ops.def"
              , "folds lie together, from sum to all");
static_assert(int(Dtype::bool_) == 0 && int(Dtype::i64) == 4 && int(Dtype::u64) == 8 && int(Dtype::f64) == 10, "the order of map's tables");
constexpr IsaTable ISA_NAME(isa) = table();

}  // namespace ng::cpu
