// Turns the rows of ops.def into loops over blocks and a type's table of them, once for each instruction set.
#pragma once
#include "lib/backend/cpu/isa.h"
#include "lib/backend/cpu/isa_name.h"
#include "lib/backend/cpu/math_angle.h"
#include "lib/backend/cpu/math_integer.h"
#include "lib/backend/cpu/math_normal.h"

namespace ng::cpu {
namespace {

// What memory holds and what is computed in, by type: bool is a byte that is 0 or 1.
template <Dtype D> struct TypeOf;
#define DTYPE(name, code, type, kind, bytes, compute, exponent, mantissa) \
    template <> struct TypeOf<Dtype::name> { using Memory = type; };
#include "jit/dtypes.def"
#undef DTYPE
template <Dtype D> using Memory = typename TypeOf<D>::Memory;
template <Dtype D> using Value = std::conditional_t<D == Dtype::bool_, bool, Memory<D>>;

constexpr bool is_float_type(Dtype d) { return d == Dtype::f32 || d == Dtype::f64; }

constexpr bool takes(Domain domain, Dtype d)
{
    switch (domain) {
    case Domain::Any: return d != Dtype::bool_;
    case Domain::Keep: return true;
    case Domain::Real: return is_float_type(d);
    case Domain::Bits: return !is_float_type(d);
    case Domain::Logic: return d == Dtype::bool_;
    }
    return false;
}

// Rows that do the same to the bits of signed and unsigned integers share the unsigned loops.
constexpr bool is_sign_blind(Op op)
{
    switch (op) {
    case Op::add: case Op::sub: case Op::mul: case Op::square: case Op::neg: case Op::equal: case Op::not_equal:
    case Op::isfinite: case Op::isnan: case Op::isinf: case Op::bitwise_and: case Op::bitwise_or: case Op::bitwise_xor:
    case Op::bitwise_not: case Op::shift_left: case Op::popcount: case Op::floor: case Op::ceil: case Op::trunc: case Op::rint:
    case Op::where: return true;
    default: return false;
    }
}
constexpr Dtype unsigned_of(Dtype d)
{
    switch (d) {
    case Dtype::i8: return Dtype::u8;
    case Dtype::i16: return Dtype::u16;
    case Dtype::i32: return Dtype::u32;
    case Dtype::i64: return Dtype::u64;
    default: return d;
    }
}

// Rows that f32 computes in f64 and rounds: their functions are written for doubles only.
constexpr bool computes_in_f64(Op op)
{
    switch (op) {
    case Op::floor_div: case Op::rem: case Op::fmod: case Op::atan2: case Op::hypot: case Op::logaddexp: case Op::cbrt:
    case Op::log2: case Op::log10: case Op::sin: case Op::cos: case Op::tan: case Op::asin: case Op::acos: case Op::atan:
    case Op::sinpi: case Op::cospi: case Op::sinc: case Op::sinh: case Op::cosh: case Op::asinh: case Op::acosh: case Op::atanh:
    case Op::erfc: return true;
    default: return false;
    }
}

// A row is for every type: some of what it asks is always so for bools and unsigned integers.
#pragma GCC diagnostic push
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wbool-compare"
#pragma GCC diagnostic ignored "-Wbool-operation"
#endif
#pragma GCC diagnostic ignored "-Wtype-limits"
#pragma GCC diagnostic ignored "-Wparentheses"
#define K(v) (T(v))
#define F(name) m_##name
#define MAP(name, arity_, domain_, result_, expression, ...)                                                       \
    struct Row_##name {                                                                                            \
        static constexpr Op     op = Op::name;                                                                     \
        static constexpr int    arity = arity_;                                                                    \
        static constexpr Domain domain = Domain::domain_;                                                          \
        static constexpr bool   is_truth = Result::result_ == Result::Bool;                                        \
        template <class X, class T>                                                                                \
        static INLINE auto value([[maybe_unused]] X x, [[maybe_unused]] T y, [[maybe_unused]] T z)                 \
        {                                                                                                          \
            return std::conditional_t<is_truth, bool, T>(expression);                                              \
        }                                                                                                          \
    };
#include "jit/ops.def"
#undef F
#undef K
#pragma GCC diagnostic pop

// Elements whose fast expression does not hold, and what they are instead: found a chunk at a time.
template <class Row> struct Rare {
    static constexpr bool exists = false;
};
#define RARE_ANGLE(row, library)                                                          \
    template <> struct Rare<row> {                                                        \
        static constexpr bool exists = true;                                              \
        static INLINE bool   holds(double x, double) { return !(m_abs(x) > ANGLE_LIMIT); } \
        static INLINE double value(double x, double) { return library(x); }               \
    };
RARE_ANGLE(Row_sin, __builtin_sin)
RARE_ANGLE(Row_cos, __builtin_cos)
RARE_ANGLE(Row_tan, __builtin_tan)
#undef RARE_ANGLE
#define RARE_QUOTIENT(row, expression)                                                         \
    template <> struct Rare<row> {                                                             \
        static constexpr bool exists = true;                                                   \
        static INLINE bool   holds(double x, double y) { return is_plain_quotient(x, y); }     \
        static INLINE double value(double x, double y)                                         \
        {                                                                                      \
            const double r = __builtin_fmod(x, y);                                             \
            return expression;                                                                 \
        }                                                                                      \
    };
RARE_QUOTIENT(Row_fmod, r)
RARE_QUOTIENT(Row_rem, rem_of(r, y))
RARE_QUOTIENT(Row_floor_div, floor_div_of(r, x, y))
#undef RARE_QUOTIENT

constexpr int64_t CHUNK = 128;  // elements of the arrays that loops in several steps keep on the stack

// One operand of a loop: a block, or the same number everywhere.
template <class Memory, class Value, bool ONE> struct Operand;
template <class Memory, class Value> struct Operand<Memory, Value, false> {
    const Memory* memory;
    explicit INLINE Operand(const void* p) : memory(static_cast<const Memory*>(p)) {}
    INLINE Value   operator[](int64_t i) const { return Value(memory[i]); }
    INLINE Operand from(int64_t i) const { return Operand(memory + i); }
};
template <class Memory, class Value> struct Operand<Memory, Value, true> {
    Value value;
    explicit INLINE Operand(const void* p) : value(Value(*static_cast<const Memory*>(p))) {}
    INLINE Value   operator[](int64_t) const { return value; }
    INLINE Operand from(int64_t) const { return *this; }
};
// An operand that the row has not.
struct Nothing {
    explicit INLINE Nothing(const void*) {}
    INLINE bool    operator[](int64_t) const { return false; }
    INLINE Nothing from(int64_t) const { return *this; }
};

template <class Row, Dtype D, int MODE>
struct Loop {
    using T = Value<D>;
    using Result = std::conditional_t<Row::is_truth, uint8_t, Memory<D>>;
    static constexpr bool IS_WHERE = Row::op == Op::where;
    using XMemory = std::conditional_t<IS_WHERE, uint8_t, Memory<D>>;
    using XValue = std::conditional_t<IS_WHERE, bool, T>;
    using X = Operand<XMemory, XValue, (MODE & MODE_X) != 0>;
    using Y = std::conditional_t<Row::arity >= 2, Operand<Memory<D>, T, (MODE & MODE_Y) != 0>, Nothing>;
    using Z = std::conditional_t<Row::arity == 3, Operand<Memory<D>, T, (MODE & MODE_Z) != 0>, Nothing>;

    static void plain(void* out_, const void* x_, const void* y_, const void* z_, int64_t count)
    {
        Result* out = static_cast<Result*>(out_);
        const X x(x_);
        const Y y(y_);
        const Z z(z_);
        ELEMENTWISE
        for (int64_t i = 0; i < count; i++) out[i] = Result(Row::value(x[i], T(y[i]), T(z[i])));
    }

    // A chunk by the fast expression, then the elements for which it does not hold one by one.
    static void mended(void* out_, const void* x_, const void* y_, const void* z_, int64_t count)
    {
        Result* out = static_cast<Result*>(out_);
        const X all_x(x_);
        const Y all_y(y_);
        for (int64_t done = 0; done < count; done += CHUNK) {
            const int64_t n = count - done < CHUNK ? count - done : CHUNK;
            const X       x = all_x.from(done);
            const Y       y = all_y.from(done);
            alignas(64) T fast[CHUNK];
            uint64_t      rare = 0;
            ELEMENTWISE
            for (int64_t i = 0; i < n; i++) {
                fast[i] = Row::value(x[i], T(y[i]), T(0));
                rare |= Rare<Row>::holds(x[i], T(y[i])) ? uint64_t(0) : uint64_t(1);
            }
            for (int64_t i = 0; rare && i < n; i++)
                if (!Rare<Row>::holds(x[i], T(y[i]))) fast[i] = Rare<Row>::value(x[i], T(y[i]));
            __builtin_memcpy(out + done, fast, size_t(n) * sizeof(T));
        }
        (void)z_;
    }

    static constexpr MapLoop get()
    {
        if constexpr (Rare<Row>::exists && D == Dtype::f64) return mended;
        else return plain;
    }
};

// f32 by the loop for f64: what it reads, by operand, and which of them are one number.
struct Widening {
    MapLoop      loop;
    int          arity, mode;
    const float* from[3];
};
[[gnu::noinline, maybe_unused]] void widen(float* out, const Widening& w, int64_t count)
{
    alignas(64) double wide[3][CHUNK];
    for (int64_t done = 0; done < count; done += CHUNK) {
        const int64_t n = count - done < CHUNK ? count - done : CHUNK;
        for (int k = 0; k < w.arity; k++) {
            const bool one = w.mode >> k & 1;
            if (one && done) continue;
            const float*  source = w.from[k] + done;
            const int64_t many = one ? 1 : n;
            for (int64_t i = 0; i < many; i++) wide[k][i] = double(source[i]);
        }
        alignas(64) double result[CHUNK];
        w.loop(result, wide[0], wide[1], wide[2], n);
        for (int64_t i = 0; i < n; i++) out[done + i] = float(result[i]);
    }
}
template <class Row, int MODE>
void through_f64(void* out, const void* x, const void* y, const void* z, int64_t count)
{
    const Widening w = {ISA_NAME(maps_f64)[int(Row::op)][MODE],
                        Row::arity,
                        MODE,
                        {static_cast<const float*>(x), static_cast<const float*>(y), static_cast<const float*>(z)}};
    widen(static_cast<float*>(out), w, count);
}

// Which loop a row has for a type and mode.
template <class Row, Dtype D, int MODE>
constexpr MapLoop loop_of()
{
    if constexpr (D == Dtype::f32 && computes_in_f64(Row::op)) return through_f64<Row, MODE>;
    else return Loop<Row, D, MODE>::get();
}

// Of one type, before it is packed. modes: that may be asked for, all of three operands.
struct AllMaps {
    MapLoop loop[OPS][MODES];
    int     modes[OPS];
};

template <class Row, Dtype D>
constexpr void put_row(AllMaps& all)
{
    if constexpr (takes(Row::domain, D)) {
        constexpr Dtype E = is_sign_blind(Row::op) ? unsigned_of(D) : D;
        MapLoop*        loop = all.loop[int(Row::op)];
        all.modes[int(Row::op)] = Row::arity == 1 ? 1 : Row::arity == 2 ? MODE_Y + 1 : MODES;
        loop[MODE_ALL] = loop_of<Row, E, MODE_ALL>();
        if constexpr (Row::arity == 2 || Row::op == Op::where) {
            loop[MODE_X] = loop_of<Row, E, MODE_X>();
            loop[MODE_Y] = loop_of<Row, E, MODE_Y>();
        }
        if constexpr (Row::op == Op::where) {
            loop[MODE_Z] = loop_of<Row, E, MODE_Z>();
            loop[MODE_X | MODE_Y] = loop_of<Row, E, MODE_X | MODE_Y>();
            loop[MODE_X | MODE_Z] = loop_of<Row, E, MODE_X | MODE_Z>();
            loop[MODE_Y | MODE_Z] = loop_of<Row, E, MODE_Y | MODE_Z>();
        }
    }
}

template <Dtype D>
constexpr AllMaps all_maps()
{
    AllMaps all{};
#define MAP(name, ...) put_row<Row_##name, D>(all);
#include "jit/ops.def"
    return all;
}

constexpr int count_of(const AllMaps& all)
{
    int count = 0;
    for (const int modes : all.modes) count += modes;
    return count;
}
template <int COUNT> struct PackedMaps { MapLoop loop[COUNT]; };
template <const AllMaps& ALL>
constexpr auto packed()
{
    PackedMaps<count_of(ALL)> p{};
    for (int op = 0, at = 0; op < OPS; op++)
        for (int mode = 0; mode < ALL.modes[op]; mode++) p.loop[at++] = ALL.loop[op][mode];
    return p;
}
template <Dtype D> constexpr AllMaps ALL_MAPS = all_maps<D>();
template <Dtype D> constexpr auto    PACKED_MAPS = packed<ALL_MAPS<D>>();

template <Dtype D>
constexpr MapTable map_table()
{
    MapTable table = {PACKED_MAPS<D>.loop, {}};
    for (int op = 0; op < OPS; op++) table.first[op + 1] = uint16_t(table.first[op] + ALL_MAPS<D>.modes[op]);
    return table;
}

}  // namespace
}  // namespace ng::cpu
