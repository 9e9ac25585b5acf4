// Single values of a kernel as expressions: loads, conversions, random numbers, and the calls of helper functions.
#include "jit/emit_parts.h"

#include "jit/error.h"
#include "jit/number.h"

#include <algorithm>
#include <bit>

namespace ng::emitting {
namespace {

bool is_narrow(Dtype t) { return compute_of(t) != t; }
std::string bits_name(Dtype t) { return "u" + number(8 * bytes_of(t)); }

// What a number of the launch is as the field that holds it.
int64_t constant_bits(const Value& v)
{
    return compute_of(v.type) == Dtype::f32 ? int64_t(std::bit_cast<uint32_t>(float(std::bit_cast<double>(v.bits)))) : v.bits;
}

// A format as the arguments of stochastic_*: its least exponent, its largest number, whether it ends there.
std::string format(Dtype to, Dtype in)
{
    if (to == Dtype::f64) return "-200, " + literal(0x1.fffffffffffffp1023, in) + ", false";   // of an f32: they end at 2^-149
    const DtypeInfo& f = info(to);
    const int bias = (1 << (f.exponent - 1)) - 1;
    return text(1 - bias, ", ", literal(largest_of(to), in), f.bytes == 1 ? ", true" : ", false");
}

// A number of a float type of fewer bits, from one that is rounded once: wider ones come as f32 whose last bit says that
// something was cut off.
std::string narrowed(const std::string& x, Dtype from, Dtype to)
{
    const std::string round = text("round_", name_of(to));
    if (from == Dtype::f32) return round + "(" + x + ")";
    if (from == Dtype::f64) return round + "(odd_of_f64(" + x + "))";
    if (is_bool(from) || bytes_of(from) <= 2) return round + "((f32)" + x + ")";
    return round + (is_signed(from) ? "(odd_of_i64(" : "(odd_of_u64(") + x + "))";
}

}  // namespace

std::string converted(const std::string& x, Dtype from, Dtype to)
{
    if (is_narrow(to)) return narrowed(x, from, to);
    if (from == to) return x;
    if (is_bool(to)) return x + " != 0";
    if (is_float(from) && is_integer(to)) return text(name_of(to), "_of_", name_of(from), "(", x, ")");
    return text("(", name_of(to), ")", x);
}

std::string decoded(const std::string& code, Dtype t)
{
    if (is_bool(t)) return code + " != 0";
    return is_narrow(t) ? text("f32_of_", name_of(t), "(", code, ")") : code;
}
std::string encoded(const std::string& x, Dtype t) { return is_narrow(t) ? text(name_of(t), "_of_f32(", x, ")") : x; }

Words::Words(const Kernel& kernel, const Dialect& dialect, Helpers& helpers, Numbers& numbers)
    : kernel_(kernel), dialect_(dialect), helpers_(helpers), numbers_(numbers)
{
    const auto use = [&](int32_t buffer, Dtype t, bool is_written) {
        if (size_t(buffer) >= buffers_.size()) buffers_.resize(size_t(buffer) + 1);
        Buffer& b = buffers_[size_t(buffer)];
        if (!b.is_used) b.type = t;
        b.is_used = true, b.is_written |= is_written, b.is_read |= !is_written;
    };
    for (const Value& v : kernel.values)
        if (v.buffer >= 0) use(v.buffer, v.type, false);
    for (const StoreTo& s : kernel.stores) use(s.buffer, value(s.value).type, true);
}

std::string Words::parameters(bool may_restrict) const
{
    std::string out;
    for (size_t b = 0; b < buffers_.size(); b++)
        out += text(dialect_.global, buffers_[b].is_written ? "" : "const ", memory_name(buffers_[b].type), "* ", may_restrict ? dialect_.restrict_ : "", "b", b, ", ");
    return out;
}

std::string Words::guard(int32_t buffer) const { return buffers_[size_t(buffer)].is_read ? "" : text("if (b", buffer, ") "); }

bool Words::is_inline(int32_t v) const
{
    const ValueKind kind = value(v).kind;
    return kind == ValueKind::Constant || kind == ValueKind::Scalar || kind == ValueKind::Length;
}

std::string Words::inline_number(int32_t v)
{
    const Value& a = value(v);
    if (a.kind == ValueKind::Length) return numbers_.length("length_v" + number(v), a.extent);
    // Constants are fields of their compute type, so that one which a float type of fewer bits has needs no decoding.
    const bool is_constant = a.kind == ValueKind::Constant;
    const Dtype t = is_constant ? compute_of(a.type) : a.type;
    const std::string field = numbers_.add("scalar_v" + number(v), {is_constant ? NumberKind::Constant : NumberKind::Scalar, t, 0, 0, is_constant ? constant_bits(a) : a.bits});
    return is_bool(t) ? "(" + field + " != 0)" : decoded(field, t);
}

std::string Words::name(int32_t v)
{
    if (!is_inline(v)) return "v" + number(v);
    const auto [at, fresh] = inlined_.try_emplace(v);
    if (fresh) at->second = inline_number(v);
    return at->second;
}

// n.offset_v3 + i0 * n.stride_v3_0 + ..
std::string Words::place(const std::string& of, const Access& access)
{
    numbers_.end_line();
    std::string out = numbers_.length("offset_" + of, access.offset);
    for (size_t a = 0; a < access.strides.size(); a++)
        if (!access.strides[a].is(0)) out += text(" + ", index(a), " * ", numbers_.length(text("stride_", of, "_", a), access.strides[a]));
    return out;
}

std::string Words::element(int32_t buffer, Dtype t, const std::string& at, bool is_written) const
{
    return pointer(buffer, t, is_written) + "[" + at + "]";
}

std::string Words::pointer(int32_t buffer, Dtype t, bool is_written) const
{
    const std::string b = "b" + number(buffer);
    if (memory_name(buffers_[size_t(buffer)].type) == memory_name(t)) return b;
    return text("((", dialect_.global, is_written ? "" : "const ", memory_name(t), "*)", b, ")");
}

std::string Words::gathered(int32_t v)
{
    const Value& a = value(v);
    const std::string of = "v" + number(v), index = name(a.args[0]), at = place(of, kernel_.accesses[size_t(a.access)]);
    const std::string extent = numbers_.length("extent_" + of, a.extent), step = numbers_.length("step_" + of, a.stride);
    const std::string x = decoded(element(a.buffer, a.type, text(at, " + ", index, " * ", step), false), a.type);
    return text("(u64)", index, " < (u64)", extent, " ? ", x, " : ", resolved("K(0)", compute_of(a.type)));
}

std::string Words::random(const Value& v)
{
    const std::string index = name(v.args[0]), key = name(v.args[1]), step = name(v.args[2]);
    const std::string call = text("(", index, ", ", key, ", ", step, ")");
    switch (RandomWord(v.bits)) {
    case RandomWord::Bits: return "random_bits" + call;
    case RandomWord::Word3: return "random_word3" + call;
    case RandomWord::Uniform: return text("uniform_", name_of(v.type)) + call;
    case RandomWord::Normal: break;
    }
    return text("normal_", name_of(v.type)) + call;
}

std::string Words::stochastic(int32_t v)
{
    const Value& a = value(v);
    const int64_t most = info(a.type).mantissa, kept = a.bits <= 0 || a.bits > most ? most : a.bits;
    const std::string bits = numbers_.add("bits_v" + number(v), {NumberKind::Constant, Dtype::i32, 0, 0, kept});
    const std::string x = name(a.args[0]), word = name(a.args[1]);
    const Dtype from = compute_of(value(a.args[0]).type);
    if (a.type == Dtype::f64 && from == Dtype::f64) return text("stochastic_bits_f64(", x, ", ", word, ", ", bits, ")");
    const Dtype in = a.type == Dtype::f64 ? Dtype::f64 : from;
    const std::string call = text("stochastic_", name_of(in), "(", x, ", ", word, ", ", bits, ", ", format(a.type, in), ")");
    return in == Dtype::f64 && a.type != Dtype::f64 ? "(f32)" + call : call;
}

bool Words::has_tame_form(int32_t v) const
{
    const Value& a = value(v);
    const bool is_one = a.op == Op::div || a.op == Op::reciprocal || a.op == Op::sqrt || a.op == Op::rsqrt || a.op == Op::sin || a.op == Op::cos;
    return a.kind == ValueKind::Map && is_one && compute_of(a.type) == Dtype::f32;
}

std::string Words::tame_form(const Value& v)
{
    const std::string x = name(v.args[0]);
    if (v.op == Op::div) return text("quotient_of(", x, ", ", name(v.args[1]), ", is_tame)");
    if (v.op == Op::reciprocal) return text("quotient_of(1.0f, ", x, ", is_tame)");
    if (v.op == Op::sin || v.op == Op::cos) return text("wave_of(", x, v.op == Op::sin ? ", 0" : ", 1", ", is_tame)");
    const std::string root = text("root_of(", x, ", is_tame)");
    return v.op == Op::sqrt ? root : text("quotient_of(1.0f, ", root, ", is_tame)");
}

std::string Words::expression(int32_t v)
{
    const Value& a = value(v);
    const std::string of = "v" + number(v);
    switch (a.kind) {
    case ValueKind::Load: return decoded(element(a.buffer, a.type, place(of, kernel_.accesses[size_t(a.access)]), false), a.type);
    case ValueKind::Gather: return gathered(v);
    case ValueKind::Index: return place(of, kernel_.accesses[size_t(a.access)]);
    case ValueKind::Random: return random(a);
    case ValueKind::Stochastic: return stochastic(v);
    case ValueKind::Convert: return converted(name(a.args[0]), compute_of(value(a.args[0]).type), a.type);
    case ValueKind::Bitcast: {
        const Dtype from = value(a.args[0]).type;
        const std::string x = name(a.args[0]), code = is_narrow(from) ? encoded(x, from) : is_float(from) ? text("bits_", name_of(from), "(", x, ")") : text("(", bits_name(from), ")", x);
        if (is_narrow(a.type) || is_bool(a.type)) return decoded(code, a.type);
        return is_float(a.type) ? text(name_of(a.type), "_bits(", code, ")") : text("(", name_of(a.type), ")", code);
    }
    case ValueKind::Map: {
        if (takes_tame_forms_ && has_tame_form(v)) return tame_form(a);
        const int32_t arity = info(a.op).arity;
        std::string call;
        for (int32_t k = 0; k < arity; k++) call += (k ? ", " : "(") + name(a.args[size_t(k)]);
        return helpers_.map(a.op, compute_of(value(a.args[size_t(arity) - 1]).type)) + call + ")";
    }
    default: throw Error(NG_E_BUG, text(kernel_.name, ": value ", v, " has no expression"));
    }
}

std::string Words::store(size_t s)
{
    const StoreTo& t = kernel_.stores[s];
    const Dtype type = value(t.value).type;
    const std::string x = encoded(name(t.value), type), at = place("s" + number(int64_t(s)), kernel_.accesses[size_t(t.access)]);
    return text(guard(t.buffer), element(t.buffer, type, at, true), " = ", x, ";");
}

}  // namespace ng::emitting
