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

// A state with one more f32. A sum's rest begins as 0, so it is never -0, and the 0 that is a number's rest needs no addition.
template <class Folder>
DEVICE f32 with(Folder, f32 state, f32 x) { return Folder::join(state, x); }
DEVICE pair_f32 with(Folder_sum<f32>, pair_f32 state, f32 x)
{
    const f32 hi = state.hi + x, t = hi - state.hi;
    return {hi, (state.hi - (hi - t)) + (x - t) + state.lo};
}
// The same of f32 that are in registers.
template <class Folder>
DEVICE void fold_held(const u32 (&a)[ITEMS], u32 state_at, u32 count)
{
    auto& held = *reinterpret_cast<typename Folder::State*>(shared_at(state_at));
    auto state = held;
    if (count == ITEMS) {
        UNROLLED for (u32 e = 0; e < ITEMS; e++) state = with(Folder(), state, f32_bits(a[e]));
    } else {
        UNROLLED for (u32 e = 0; e < ITEMS; e++)
            if (e < count) state = with(Folder(), state, f32_bits(a[e]));
    }
    held = state;
}

constexpr u32 WARP = 32;
static_assert(MAX_THREADS <= 4 * WARP && MIN_THREADS >= WARP, "a row's lanes are at most four warps', and warps are whole");
template <bool IS_WIDE> struct Parts { using Type = u32; };
template <> struct Parts<true> { using Type = u64; };

enum class Meeting : u32 { Whole, Given, Taken };    // of one launch; what a piece has goes to the scratch; it comes from there

// Who meets: a thread, its lane among those of its row, and where a row's pieces lie.
struct Circle {
    u32   thread, lane, lanes, lane_shift;
    char* partials;                      // [pieces][16]
    u32   pieces, piece;
    bool  is_row;                        // false: beyond the last row
    Meeting meeting;
};

// A state from another thread of the warp.
template <class State, class Exchange>
DEVICE State exchanged_state(State x, Exchange exchange)
{
    using Part = Parts<sizeof(State) % 8 == 0>::Type;
    constexpr int PARTS = sizeof(State) / sizeof(Part);
    Part part[PARTS];
    __builtin_memcpy(part, &x, sizeof x);
    UNROLLED for (int k = 0; k < PARTS; k++) part[k] = exchange(part[k]);
    __builtin_memcpy(&x, part, sizeof x);
    return x;
}
// Lanes join those half of their number away, then a quarter, and so on: those of other warps' lanes by shared memory, at
// once, the rest by shuffles. Every lane ends with the first one's.
template <class State, class Join>
DEVICE State joined_lanes(const Circle& c, u32 states_at, State state, Join join)
{
    const u32 apart = 1u << c.lane_shift, span = c.lanes << c.lane_shift;      // of neighbouring lanes; of all, in threads
    const u32 near = apart > WARP ? apart : WARP;
    if (span > near) {
        const u32 first = states_at + (c.thread - c.thread % span + c.thread % near) * UNIT_BYTES;
        const auto state_at = [&](u32 k) -> State& { return *reinterpret_cast<State*>(shared_at(first + k * near * UNIT_BYTES)); };
        *reinterpret_cast<State*>(shared_at(states_at + c.thread * UNIT_BYTES)) = state;
        __syncthreads();
        state = span == 2 * near ? join(state_at(0), state_at(1)) : join(join(state_at(0), state_at(2)), join(state_at(1), state_at(3)));
        __syncthreads();
    }
    u32 reach = (span < WARP ? span : WARP) / 2;
    if (reach < apart) return state;
    ROLLED for (; reach >= apart; reach /= 2) state = join(state, exchanged_state(state, [&](auto x) { return __shfl_down_sync(~0u, x, reach); }));
    const u32 first = c.thread % WARP - c.thread % (span < WARP ? span : WARP) + c.thread % apart;
    return exchanged_state(state, [&](auto x) { return __shfl_sync(~0u, x, (int)first, (int)WARP); });
}

// One number in all of a thread's items.
template <class T>
DEVICE void write_all(Operand out, T x)
{
    u32 word[2];
    __builtin_memcpy(word, &x, sizeof x);
    if (sizeof x == 4) word[1] = word[0];
    constexpr u32 UNITS = sizeof x == 4 ? UNITS_32 : UNITS_64;
    UNROLLED for (u32 k = 0; k < UNITS; k++) unit_at(out.at + k * out.step) = {{word[0], word[1], word[0], word[1]}};
}

template <class Folder>
DEVICE void meet(const Circle& c, u32 states_at, Operand out)
{
    using State = typename Folder::State;
    State state = *reinterpret_cast<State*>(shared_at(states_at + c.thread * UNIT_BYTES));
    if (c.meeting == Meeting::Taken) {
        ROLLED for (u32 k = c.lane; k < c.pieces; k += c.lanes) state = Folder::join(state, *reinterpret_cast<const State*>(c.partials + (u64)k * UNIT_BYTES));
    }
    state = joined_lanes(c, states_at, state, [](State x, State y) { return Folder::join(x, y); });
    if (c.meeting == Meeting::Given && c.lane == 0 && c.is_row) *reinterpret_cast<State*>(c.partials + (u64)c.piece * UNIT_BYTES) = state;
    write_all(out, Folder::finish(state));
}
SLOW_CALL void finish_fold(u32 kind, const Circle& c, u32 states_at, u32 out_at, u32 out_step)
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
