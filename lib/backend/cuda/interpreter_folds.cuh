// The interpreter's folds: how a thread gathers its items, and how a block's threads, or several blocks', come together.
#pragma once
#include "lib/backend/cuda/interpreter_slots.cuh"

namespace ng::interpreter {

#define FOLD(name, domain, start, combine, ...) \
    template <class T> DEVICE T joined_##name(T x, T y) { return combine; }
#include "jit/ops.def"

// What a fold's threads hold: plain values, pairs of sums and products of floats, and the best with where it is; the same
// functions and order as emitted kernels have, so that the bits are theirs.
#define PLAIN(name, word)                                                                                       \
    template <class T> struct Folder_##name {                                                                   \
        using State = T;                                                                                        \
        static __device__ __forceinline__ State lift(T x, i64) { return x; }                                    \
        static __device__ __forceinline__ State join(State x, State y) { return joined_##name(x, y); }          \
        static __device__ __forceinline__ T finish(State x) { return x; }                                       \
    };
#define PAIR(name, T)                                                                                           \
    template <> struct Folder_##name<T> {                                                                       \
        using State = pair_##T;                                                                                 \
        static __device__ __forceinline__ State lift(T x, i64) { return pair_of_##T(x); }                       \
        static __device__ __forceinline__ State join(State x, State y) { return name##_##T(x, y); }             \
        static __device__ __forceinline__ T finish(State x) { return total_##T(x); }                            \
    };
// The first of equals; one NaN equals another. at -1: nowhere yet.
template <class T> struct Best {
    T   value;
    i64 at;
};
#define BEST(name)                                                                                              \
    template <class T> struct Folder_##name {                                                                   \
        using State = Best<T>;                                                                                  \
        static __device__ __forceinline__ State lift(T x, i64 at) { return {x, at}; }                           \
        static __device__ __forceinline__ State join(State x, State y)                                          \
        {                                                                                                       \
            const T chosen = joined_##name(y.value, x.value);                                                   \
            const bool is_tie = x.value == y.value || (x.value != x.value && y.value != y.value);               \
            const bool is_y = is_tie ? y.at < x.at : chosen == y.value || (chosen != chosen && y.value != y.value); \
            return x.at < 0 || (y.at >= 0 && is_y) ? y : x;                                                     \
        }                                                                                                       \
        static __device__ __forceinline__ i64 finish(State x) { return x.at; }                                  \
    };
PLAIN(sum, FOLD_SUM)
PLAIN(prod, FOLD_PROD)
PLAIN(min, FOLD_MIN)
PLAIN(max, FOLD_MAX)
PLAIN(any, FOLD_ANY)
PLAIN(all, FOLD_ALL)
PAIR(sum, f32)
PAIR(sum, f64)
PAIR(prod, f32)
PAIR(prod, f64)
BEST(argmin)
BEST(argmax)
#undef PLAIN
#undef PAIR
#undef BEST

#define FOLDS_OF_ALL(name, word)                                                                                \
    CASE(name, word, F32, f32) CASE(name, word, F64, f64) CASE(name, word, I32, i32)                            \
    CASE(name, word, U32, u32) CASE(name, word, I64, i64) CASE(name, word, U64, u64)
// Sums and products of integers wrap: both signs are one.
#define FOLDS                                                                                                   \
    CASE(sum, SUM, F32, f32) CASE(sum, SUM, F64, f64) CASE(sum, SUM, U32, u32) CASE(sum, SUM, U64, u64)         \
    CASE(prod, PROD, F32, f32) CASE(prod, PROD, F64, f64) CASE(prod, PROD, U32, u32) CASE(prod, PROD, U64, u64) \
    FOLDS_OF_ALL(min, MIN) FOLDS_OF_ALL(max, MAX) FOLDS_OF_ALL(argmin, ARGMIN) FOLDS_OF_ALL(argmax, ARGMAX)     \
    CASE(any, ANY, U32, u32) CASE(all, ALL, U32, u32)

template <class Folder, class T>
DEVICE void gather_fold(Operand x, u32 state_at, u32 count, i64 first, i64 step)
{
    auto& held = *reinterpret_cast<typename Folder::State*>(shared_at(state_at));
    auto state = held;
    if (count == ITEMS) {
        UNROLLED for (u32 e = 0; e < ITEMS; e++) state = Folder::join(state, Folder::lift(read<T>(x, e), first + e * step));
    } else {
        ROLLED for (u32 e = 0; e < count; e++) state = Folder::join(state, Folder::lift(read<T>(x, e), first + e * step));
    }
    held = state;
}
// `count` of this thread's items into its state.
SLOW_CALL void fold_items(u32 kind, u32 x_at, u32 x_step, u32 state_at, u32 count, i64 first, i64 step)
{
    switch (kind) {
#define CASE(name, word, lane, T) case FOLD_##word * LANES + LANE_##lane: gather_fold<Folder_##name<T>, T>({x_at, x_step}, state_at, count, first, step); break;
    FOLDS
#undef CASE
    default: break;
    }
}

// The same of f32 that are in registers.
DEVICE f32 with_item(f32 (&join)(f32, f32), f32 state, f32 x) { return join(state, x); }
// A sum's rest is never -0, as it begins with 0: the 0 of what is lifted would change nothing.
DEVICE pair_f32 with_item(pair_f32 (&)(pair_f32, pair_f32), pair_f32 a, f32 x)
{
    const f32 hi = a.hi + x, t = hi - a.hi;
    return {hi, (a.hi - (hi - t)) + (x - t) + a.lo};
}
template <class Folder>
DEVICE void fold_held(const u32 (&a)[ITEMS], u32 state_at, u32 count)
{
    auto& held = *reinterpret_cast<typename Folder::State*>(shared_at(state_at));
    auto state = held;
    if (count == ITEMS) {
        UNROLLED for (u32 e = 0; e < ITEMS; e++) state = with_item(Folder::join, state, f32_bits(a[e]));
    } else {
        UNROLLED for (u32 e = 0; e < ITEMS; e++)
            if (e < count) state = with_item(Folder::join, state, f32_bits(a[e]));
    }
    held = state;
}

enum class Meeting : u32 { Whole, Given, Taken };    // of one launch; what a piece has goes to the scratch; it comes from there

// Who meets: a thread, its lane among those of its row, and where a row's pieces lie.
struct Circle {
    u32   thread, lane, lanes, lane_shift;
    u64   partials;                      // [pieces][16]
    u32   pieces, piece;
    bool  is_row;                        // false: beyond the last row
    Meeting meeting;
};

template <class Folder>
DEVICE void meet(const Circle& c, u32 states_at, Operand out)
{
    using State = typename Folder::State;
    const u32 mine = states_at + c.thread * UNIT_BYTES;
    const auto state_at = [](u32 at) -> State& { return *reinterpret_cast<State*>(shared_at(at)); };
    if (c.meeting == Meeting::Taken) {
        State state = state_at(mine);
        ROLLED for (u32 k = c.lane; k < c.pieces; k += c.lanes) state = Folder::join(state, *global_at<const State>(c.partials + (u64)k * UNIT_BYTES));
        state_at(mine) = state;
    }
    // Lanes side by side meet in their warp from the last 32 on.
    const u32 near = c.lane_shift == 0 ? 32 : 0;
    const auto gather = [&](u32 lanes) {
        if (lanes <= near) SYNC_WARP;
        else __syncthreads();
    };
    gather(c.lanes);
    ROLLED for (u32 reach = c.lanes / 2; reach > 0; reach /= 2) {
        if (c.lane < reach) state_at(mine) = Folder::join(state_at(mine), state_at(mine + (reach << c.lane_shift) * UNIT_BYTES));
        gather(reach);
    }
    if (c.lanes > near) __syncthreads();
    const State all = state_at(states_at + (c.thread - (c.lane << c.lane_shift)) * UNIT_BYTES);
    if (c.meeting == Meeting::Given && c.lane == 0 && c.is_row) *global_at<State>(c.partials + (u64)c.piece * UNIT_BYTES) = all;
    const auto result = Folder::finish(all);
    UNROLLED for (u32 e = 0; e < ITEMS; e++) write(out, e, result);
    gather(c.lanes);
}

// The same of f32, in the same order: in a warp from register to register. A block's lanes are at most 128.
DEVICE f32 crossed(f32 x, u32 reach) { return __shfl_xor_sync(~0u, x, (int)reach); }
DEVICE pair_f32 crossed(pair_f32 x, u32 reach) { return {crossed(x.hi, reach), crossed(x.lo, reach)}; }
DEVICE f32 of_first(f32 x, u32 lanes) { return __shfl_sync(~0u, x, 0, (int)lanes); }
DEVICE pair_f32 of_first(pair_f32 x, u32 lanes) { return {of_first(x.hi, lanes), of_first(x.lo, lanes)}; }

template <class Folder>
DEVICE f32 met_held(const Circle& c, u32 states_at)
{
    using State = typename Folder::State;
    const auto state_of = [=](u32 thread) -> State& { return *reinterpret_cast<State*>(shared_at(states_at + thread * UNIT_BYTES)); };
    State state = state_of(c.thread);
    if (c.meeting == Meeting::Taken)
        ROLLED for (u32 k = c.lane; k < c.pieces; k += c.lanes) state = Folder::join(state, *global_at<const State>(c.partials + (u64)k * UNIT_BYTES));
    const bool are_near = c.lane_shift == 0;         // lanes side by side
    const u32  near = !are_near ? 1 : c.lanes < 32 ? c.lanes : 32;
    if (c.lanes > near) {
        state_of(c.thread) = state;
        __syncthreads();
        // Four that are `reach` apart come together at once; there are more than four only where rows are few.
        u32 reach = c.lanes;
        ROLLED for (; reach > 4 * near; reach /= 2) {
            if (c.lane < reach / 2) state_of(c.thread) = Folder::join(state_of(c.thread), state_of(c.thread + (reach / 2 << c.lane_shift)));
            __syncthreads();
        }
        const u32 first = c.thread - ((c.lane & ~(near - 1)) << c.lane_shift), quarter = near << c.lane_shift;
        if (reach == 4 * near) state = Folder::join(Folder::join(state_of(first), state_of(first + 2 * quarter)), Folder::join(state_of(first + quarter), state_of(first + 3 * quarter)));
        else state = Folder::join(state_of(first), state_of(first + quarter));
        __syncthreads();                             // before the next fold writes there
    }
    ROLLED for (u32 reach = near / 2; reach > 0; reach /= 2) state = Folder::join(state, crossed(state, reach));
    if (near > 1) state = of_first(state, near);
    if (c.meeting == Meeting::Given && c.lane == 0 && c.is_row) *global_at<State>(c.partials + (u64)c.piece * UNIT_BYTES) = state;
    return Folder::finish(state);
}
SLOW_CALL void finish_fold(u32 kind, Circle c, u32 states_at, u32 out_at, u32 out_step)
{
    switch (kind) {
#define CASE(name, word, lane, T) case FOLD_##word * LANES + LANE_##lane: meet<Folder_##name<T>>(c, states_at, {out_at, out_step}); break;
    FOLDS
#undef CASE
    default: break;
    }
}
#undef FOLDS
#undef FOLDS_OF_ALL

}  // namespace ng::interpreter
