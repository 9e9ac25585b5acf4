// Single values as the interpreter's instructions: loads with their decoding, maps, conversions, random numbers, folds.
#include "jit/error.h"
#include "jit/number.h"
#include "lib/backend/cuda/interpreter_parts.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace ng::cuda {

using namespace interpreter;

namespace {

bool is_wide(Dtype t) { return bytes_of(compute_of(t)) == 8; }
bool is_narrow_float(Dtype t) { return compute_of(t) != t; }

Lane lane_of(Dtype t)
{
    const Dtype held = compute_of(t);
    if (is_float(held)) return held == Dtype::f32 ? LANE_F32 : LANE_F64;
    if (bytes_of(held) == 8) return info(held).kind == Kind::Int ? LANE_I64 : LANE_U64;
    return info(held).kind == Kind::Int ? LANE_I32 : LANE_U32;
}
Lane unsigned_of(Lane l) { return l == LANE_I32 ? LANE_U32 : l == LANE_I64 ? LANE_U64 : l; }
SlowCode map_of(Lane l)
{
    constexpr SlowCode BY_LANE[] = {MAP_F32, MAP_F64, MAP_I32, MAP_U32, MAP_I64, MAP_U64};
    return BY_LANE[l];
}

// Signed integers wrap: these rows are computed on unsigned ones (contract N3).
bool wraps(Op op)
{
    return op == Op::add || op == Op::sub || op == Op::mul || op == Op::square || op == Op::neg || op == Op::sum || op == Op::prod;
}
bool is_shift(Op op) { return op == Op::shift_left || op == Op::shift_right; }

// A number as a slot of its type holds it; 32 bits stand twice.
int64_t twice(uint32_t bits) { return int64_t(uint64_t(bits) << 32 | bits); }
int64_t held_float(Dtype t, double x) { return is_wide(t) ? std::bit_cast<int64_t>(x) : twice(std::bit_cast<uint32_t>(float(x))); }
int64_t held_integer(Dtype t, int64_t x) { return is_wide(t) ? x : twice(uint32_t(x)); }
TapeNumber bits_number(int64_t bits)
{
    TapeNumber n{TapeNumber::Kind::Bits};
    n.bits = bits;
    return n;
}

// The ends of a type that registers hold, as a slot's element: 32 bits in the low half.
uint64_t end_of(Dtype t, bool highest)
{
    if (t == Dtype::f32) return highest ? 0x7f800000 : 0xff800000;
    if (t == Dtype::f64) return highest ? 0x7ff0000000000000 : 0xfff0000000000000;
    if (is_bool(t)) return highest;
    const int bits = 8 * bytes_of(t);
    const bool is_int = info(t).kind == Kind::Int;
    const uint64_t all = ~uint64_t(0) >> (64 - bits), top = is_int ? all >> 1 : all, low = is_int ? ~top : 0, end = highest ? top : low;
    return bits == 64 ? end : end & 0xffffffff;
}

}  // namespace

int32_t TapeWriter::fresh(bool wide)
{
    Register r;
    r.is_wide = wide, r.is_kept = keeps_;
    registers_.push_back(r);
    return int32_t(registers_.size()) - 1;
}

int32_t TapeWriter::add(uint16_t code, bool wide, std::initializer_list<int32_t> args, uint32_t more, uint16_t place)
{
    Draft d{code};
    std::ranges::copy(args, d.args);
    d.more = more, d.place = place;
    d.out = fresh(wide);
    drafts_.push_back(d);
    return d.out;
}

int32_t TapeWriter::number(TapeNumber n)
{
    for (size_t k = 0; k < tape_.numbers.size(); k++) {
        const TapeNumber& old = tape_.numbers[k];
        if (old.kind == n.kind && old.type == n.type && old.bits == n.bits && old.length == n.length) return ~int32_t(k);
    }
    return numbers({n});
}
int32_t TapeWriter::numbers(std::initializer_list<TapeNumber> together)
{
    const auto first = int32_t(tape_.numbers.size());
    tape_.numbers.insert(tape_.numbers.end(), together);
    return ~first;
}

uint16_t TapeWriter::access(int32_t a, int32_t buffer, int32_t bytes, bool is_plain, bool decides)
{
    const ng::Access& wanted = kernel_.accesses[size_t(a)];
    for (size_t k = 0; k < tape_.accesses.size(); k++) {
        TapeAccess& old = tape_.accesses[k];
        if (old.buffer != buffer || old.bytes != bytes || old.is_plain != is_plain || !(old.access == wanted)) continue;
        old.decides |= decides;
        return uint16_t(k);
    }
    tape_.accesses.push_back({wanted, buffer, bytes, is_plain, decides});
    return uint16_t(tape_.accesses.size() - 1);
}

int32_t TapeWriter::operand(int32_t v)
{
    compute(size_t(v));
    return now_[size_t(v)];
}

// Integers of fewer than 32 bits after what may have left their range.
int32_t TapeWriter::wrapped(int32_t x, Dtype t)
{
    return is_integer(t) && bytes_of(t) < 4 ? add(slow(DECODE), false, {x}, uint32_t(t)) : x;
}

int32_t TapeWriter::loaded(size_t at)
{
    const Value& v = value(at);
    const int bytes = bytes_of(v.type);
    const auto code = uint16_t(bytes == 1 ? LOAD_8 : bytes == 2 ? LOAD_16 : bytes == 4 ? LOAD_32 : LOAD_64);
    const int32_t x = add(code, bytes == 8, {}, 0, access(v.access, v.buffer, bytes, true));
    if (bytes < 8 && tape_.has_rows && is_full(at) && std::popcount(uint32_t(passes_.wanted[at])) > 1) {
        const bool is_first = kept_[at] == NOTHING;
        if (is_first) kept_[at] = fresh(false);
        drafts_.back().kept = kept_[at];
        drafts_.back().more = is_first ? KEEPS : KEPT;
    }
    const bool converts = (v.type == Dtype::f16 || v.type == Dtype::bf16) && !moves_[at];
    if (converts) return drafts_.back().more |= v.type == Dtype::f16 ? AS_F16 : AS_BF16, x;
    return coded(at, x);
}

// The number of a value of which memory's bits are there. A narrow float whose bits move on keeps them: as a number it would lose those of NaN.
int32_t TapeWriter::coded(size_t at, int32_t x)
{
    const Dtype t = value(at).type;
    if (is_narrow_float(t) && moves_[at]) {
        code_[at] = x;
        if (!computes_[at]) return x;
    }
    return bytes_of(t) >= 4 || t == Dtype::u8 || t == Dtype::u16 ? x : add(slow(DECODE), false, {x}, uint32_t(t));
}

int32_t TapeWriter::gathered(size_t v_at)
{
    const Value& v = value(v_at);
    const int bytes = bytes_of(v.type);
    TapeNumber extent{TapeNumber::Kind::Length}, stride{TapeNumber::Kind::Length};
    extent.length = v.extent, stride.length = v.stride;
    const int32_t index = operand(v.args[0]), at = numbers({extent, stride});
    const uint16_t code = slow(bytes == 1 ? GATHER_8 : bytes == 2 ? GATHER_16 : bytes == 4 ? GATHER_32 : GATHER_64);
    const int32_t x = add(code, bytes == 8, {index}, 0, access(v.access, v.buffer, bytes, false));
    drafts_.back().y = uint16_t(~at);
    return coded(v_at, x);
}

int32_t TapeWriter::mapped(const Value& v)
{
    const int arity = info(v.op).arity;
    int32_t x[3] = {NOTHING, NOTHING, NOTHING};
    for (int k = 0; k < arity; k++) x[k] = operand(v.args[size_t(k)]);
    const Dtype t = compute_of(value(size_t(v.args[size_t(arity) - 1])).type);
    if (v.op == Op::where) return add(is_wide(t) ? slow(WHERE_64) : uint16_t(WHERE), is_wide(t), {x[0], x[1], x[2]});
    Lane lane = lane_of(t);
    Op   op = v.op;
    const bool wide = info(op).result == Result::Same && is_wide(t);
    if (lane == LANE_F32 && is_fast(name_of(op), info(op).ulp)) return add(uint16_t(FAST + int(op) - int(Op::add)), false, {x[0], x[1], x[2]});
    if (wraps(op)) lane = unsigned_of(lane);
    if (is_bool(t) && op == Op::bitwise_not) op = Op::logical_not;
    if (is_bool(t) && is_shift(op)) op = Op::greater;  // by nothing, else all is shifted out
    if (op == Op::popcount && is_integer(t) && bytes_of(t) < 4) x[0] = add(slow(DECODE), false, {x[0]}, uint32_t(bytes_of(t) == 1 ? Dtype::u8 : Dtype::u16));
    const int32_t out = add(slow(map_of(lane)), wide, {x[0], x[1], x[2]}, uint32_t(op));
    const bool may_leave = info(op).result == Result::Same && info(op).domain != Domain::Keep;
    return may_leave ? wrapped(out, t) : out;
}

int32_t TapeWriter::converted(int32_t x, Dtype from, Dtype to)
{
    from = compute_of(from);
    if (from == Dtype::f32 && (to == Dtype::f16 || to == Dtype::bf16)) return add(to == Dtype::f16 ? ROUND_F16 : ROUND_BF16, false, {x});
    if (from == to) return x;
    // 32 bits already hold it.
    const bool is_held = !is_float(from) && is_integer(to) && bytes_of(to) <= 4 && bytes_of(from) < bytes_of(to) && (is_signed(to) || !is_signed(from));
    if (is_held || (is_bool(from) && is_integer(to) && bytes_of(to) < 8)) return x;
    const int32_t out = add(slow(CONVERT), is_wide(to), {x}, uint32_t(to));
    drafts_.back().y = lane_of(from);
    return out;
}

// What memory would hold of a number, in the low bits; and the number that memory of another type then holds.
int32_t TapeWriter::encoded(int32_t x, Dtype t) { return is_narrow_float(t) ? add(slow(ENCODE), false, {x}, uint32_t(t)) : x; }
int32_t TapeWriter::recoded(size_t v)
{
    const auto  arg = size_t(value(v).args[0]);
    const Dtype from = value(arg).type, to = value(v).type;
    int32_t     x = operand(int32_t(arg));
    x = code_[arg] == NOTHING ? encoded(x, from) : code_[arg];
    if (is_narrow_float(to)) return coded(v, x);
    const bool is_held = bytes_of(to) >= 4 || is_bool(from) || from == to;
    return is_held ? x : add(slow(DECODE), false, {x}, uint32_t(to));
}

int32_t TapeWriter::drawn(const Value& v)
{
    const bool wide = v.type == Dtype::f64;
    Draw draw = wide ? DRAW_NORMAL_F64 : DRAW_NORMAL_F32;
    switch (RandomWord(v.bits)) {
    case RandomWord::Bits: draw = DRAW_BITS; break;
    case RandomWord::Word3: draw = DRAW_WORD3; break;
    case RandomWord::Uniform: draw = wide ? DRAW_UNIFORM_F64 : DRAW_UNIFORM_F32; break;
    case RandomWord::Normal: break;
    }
    const int32_t index = operand(v.args[0]), key = operand(v.args[1]), step = operand(v.args[2]);
    return add(slow(RANDOM), wide, {index, key, step}, draw);
}

int32_t TapeWriter::by_chance(const Value& v)
{
    const int64_t most = info(v.type).mantissa, kept = v.bits <= 0 || v.bits > most ? most : v.bits;
    const Dtype from = compute_of(value(size_t(v.args[0])).type), in = v.type == Dtype::f64 ? Dtype::f64 : from;
    const int32_t word = operand(v.args[1]), x = converted(operand(v.args[0]), from, in);
    const TapeNumber bits = bits_number(twice(uint32_t(kept)));
    if (v.type == Dtype::f64 && from == Dtype::f64) {
        const int32_t out = add(slow(CHANCE_BITS), true, {x, word});
        drafts_.back().z = uint16_t(~numbers({bits}));
        return out;
    }
    const DtypeInfo& f = info(v.type);
    // Of an f32 that is an f64: it ends at 2^-149.
    const int32_t least = v.type == Dtype::f64 ? -200 : 2 - (1 << (f.exponent - 1));
    const double largest = v.type == Dtype::f64 ? std::numeric_limits<double>::max() : largest_of(v.type);
    const int32_t at = numbers({bits, bits_number(twice(uint32_t(least))), bits_number(twice(f.bytes == 1)), bits_number(held_float(in, largest))});
    const int32_t out = add(slow(in == Dtype::f64 ? CHANCE_F64 : CHANCE_F32), is_wide(in), {x, word});
    drafts_.back().z = uint16_t(~at);
    return v.type == Dtype::f64 ? out : converted(out, in, Dtype::f32);
}

int32_t TapeWriter::scalar(size_t at)
{
    const Value& v = value(at);
    TapeNumber n{TapeNumber::Kind::Scalar, v.type};
    n.bits = v.bits;
    const int32_t x = number(n);
    const bool    is_small = bytes_of(v.type) < 4 && !is_narrow_float(v.type);
    return is_small ? add(slow(DECODE), false, {x}, uint32_t(v.type)) : coded(at, x);
}

// A rounding whose result only goes to memory of the type is the store's business.
bool TapeWriter::is_rounded_by_stores(size_t v) const
{
    const Value& a = value(v);
    return (a.type == Dtype::f16 || a.type == Dtype::bf16) && compute_of(value(size_t(a.args[0])).type) == Dtype::f32 && users_[v] == 0;
}

int32_t TapeWriter::instruct(size_t v)
{
    const Value& a = value(v);
    switch (a.kind) {
    case ValueKind::Load: return loaded(v);
    case ValueKind::Gather: return gathered(v);
    case ValueKind::Index: return add(slow(INDEX), true, {}, 0, access(a.access, -1, 0, false));
    case ValueKind::Constant: return number(bits_number(is_float(a.type) ? held_float(a.type, std::bit_cast<double>(a.bits)) : held_integer(a.type, a.bits)));
    case ValueKind::Scalar: return scalar(v);
    case ValueKind::Length: {
        TapeNumber n{TapeNumber::Kind::Length};
        n.length = a.extent;
        return number(n);
    }
    case ValueKind::Map: return mapped(a);
    case ValueKind::Convert:
        if (is_rounded_by_stores(v)) return operand(a.args[0]);
        return converted(operand(a.args[0]), value(size_t(a.args[0])).type, a.type);
    case ValueKind::Bitcast: return recoded(v);
    case ValueKind::Random: return drawn(a);
    case ValueKind::Stochastic: return by_chance(a);
    case ValueKind::Fold: break;
    }
    throw Error(NG_E_BUG, text(kernel_.name, ": value ", v, " is a fold that is not finished"));
}

uint32_t TapeWriter::fold_kind(const Value& v) const
{
    const Lane lane = lane_of(value(size_t(v.args[0])).type), used = wraps(v.op) ? unsigned_of(lane) : lane;
    const uint32_t word = v.op == Op::sum ? FOLD_SUM : v.op == Op::prod ? FOLD_PROD : v.op == Op::min ? FOLD_MIN : v.op == Op::max ? FOLD_MAX
                        : v.op == Op::argmin ? FOLD_ARGMIN : v.op == Op::argmax ? FOLD_ARGMAX : v.op == Op::any ? FOLD_ANY : FOLD_ALL;
    return word * LANES + used;
}

// What a thread's state begins with, 16 bytes as the device has them.
int32_t TapeWriter::start_numbers(const Value& v)
{
    const Dtype t = compute_of(value(size_t(v.args[0])).type);
    uint64_t low = 0, high = 0;
    switch (v.op) {
    case Op::prod:
    case Op::all: low = t == Dtype::f32 ? 0x3f800000 : t == Dtype::f64 ? 0x3ff0000000000000 : 1; break;
    case Op::min: low = end_of(t, true); break;
    case Op::max: low = end_of(t, false); break;
    case Op::argmin:
    case Op::argmax:
        low = end_of(t, v.op == Op::argmin);
        high = ~uint64_t(0);                           // nowhere
        break;
    default: break;
    }
    return numbers({bits_number(int64_t(low)), bits_number(int64_t(high))});
}

int32_t TapeWriter::folded(const Value& v, int32_t x)
{
    const bool is_arg = v.op == Op::argmin || v.op == Op::argmax;
    const Dtype t = is_arg ? Dtype::i64 : compute_of(value(size_t(v.args[0])).type);
    if (wraps(v.op)) x = wrapped(x, t);
    return converted(x, t, v.type);
}

}  // namespace ng::cuda
