// Explanations as text: JSON's escapes, and kernels written a value a line.
#include "jit/explain_parts.h"

#include <bit>
#include <charconv>
#include <cmath>

namespace ng {

// ---- JSON ----------------------------------------------------------------------------------------------

Json& Json::raw(const std::string& text)
{
    if (comma_) out_ += ", ";
    out_ += text, comma_ = true;
    return *this;
}

Json& Json::open(char bracket)
{
    raw(std::string(1, bracket)), comma_ = false;
    return *this;
}

Json& Json::close(char bracket)
{
    out_ += bracket, comma_ = true;
    return *this;
}

Json& Json::key(const std::string& name)
{
    if (comma_) out_ += ", ";
    quote(name), out_ += ": ", comma_ = false;
    return *this;
}
Json& Json::key(const char* name) { return key(std::string(name)); }

Json& Json::value(const std::string& text)
{
    if (comma_) out_ += ", ";
    quote(text), comma_ = true;
    return *this;
}

Json& Json::value(double number)
{
    if (!std::isfinite(number)) return value(std::isnan(number) ? "nan" : number > 0 ? "inf" : "-inf");
    char text[40];
    return raw(std::string(text, std::to_chars(text, text + sizeof text, number).ptr));
}

Json& Json::value(const Extent& extent) { return extent.is_constant() ? value(extent.constant()) : value(extent.text()); }

Json& Json::values(std::span<const Extent> extents)
{
    open('[');
    for (const Extent& e : extents) value(e);
    return close(']');
}

namespace {

// Bytes of the well-formed UTF-8 character at the front; 0: there is none. Unicode 15, table 3-7.
size_t character_bytes(std::string_view s)
{
    const auto at = [&](size_t i) { return i < s.size() ? uint8_t(s[i]) : uint8_t(0); };
    const auto follows = [&](size_t i, uint8_t low, uint8_t high) { return at(i) >= low && at(i) <= high; };
    const uint8_t c = at(0);
    if (c < 0x80) return 1;
    if (c < 0xc2 || c > 0xf4) return 0;
    if (c < 0xe0) return follows(1, 0x80, 0xbf) ? 2 : 0;
    if (c < 0xf0) return follows(1, c == 0xe0 ? 0xa0 : 0x80, c == 0xed ? 0x9f : 0xbf) && follows(2, 0x80, 0xbf) ? 3 : 0;
    return follows(1, c == 0xf0 ? 0x90 : 0x80, c == 0xf4 ? 0x8f : 0xbf) && follows(2, 0x80, 0xbf) && follows(3, 0x80, 0xbf) ? 4 : 0;
}

}  // namespace

void Json::quote(const std::string& text)
{
    static constexpr char HEX[] = "0123456789abcdef";
    out_ += '"';
    for (size_t i = 0; i < text.size();) {
        const size_t bytes = character_bytes(std::string_view(text).substr(i));
        const char c = text[i];
        if (bytes == 0) out_ += "\\ufffd";
        else if (c == '"' || c == '\\') out_ += '\\', out_ += c;
        else if (uint8_t(c) < 0x20 || c == 0x7f) out_ += "\\u00", out_ += HEX[c >> 4], out_ += HEX[c & 15];
        else out_.append(text, i, bytes);
        i += bytes ? bytes : 1;
    }
    out_ += '"';
}

// ---- kernels -------------------------------------------------------------------------------------------

namespace {

// "[128*i0 + i1 + 3]"; axes by their places in the kernel.
std::string place_text(const Access& access)
{
    std::string s;
    const auto add = [&](const std::string& part) { s += (s.empty() ? "" : " + ") + part; };
    for (size_t a = 0; a < access.strides.size(); a++) {
        const Extent& stride = access.strides[a];
        if (stride.is(0)) continue;
        const std::string index = "i" + std::to_string(a), factor = stride.text();
        add(stride.is(1) ? index : (stride.is_constant() ? factor : "(" + factor + ")") + "*" + index);
    }
    if (!access.offset.is(0) || s.empty()) add(access.offset.text());
    return "[" + s + "]";
}

std::string number_text(Dtype t, int64_t bits)
{
    if (is_bool(t)) return bits ? "true" : "false";
    if (!is_float(t)) return info(t).kind == Kind::Uint ? std::to_string(uint64_t(bits)) : std::to_string(bits);
    char text[40];
    return std::string(text, std::to_chars(text, text + sizeof text, std::bit_cast<double>(bits)).ptr);
}

const char* word_text(int64_t word)
{
    switch (RandomWord(word)) {
    case RandomWord::Bits: return "bits";
    case RandomWord::Word3: return "word3";
    case RandomWord::Uniform: return "uniform";
    default: return "normal";
    }
}

}  // namespace

double number_of_bits(Dtype t, int64_t bits)
{
    if (is_float(t)) return std::bit_cast<double>(bits);
    return info(t).kind == Kind::Uint ? double(uint64_t(bits)) : double(bits);
}

std::string line_of_value(const Kernel& k, size_t value, std::span<const int32_t> buffers)
{
    const Value& v = k.values[value];
    const auto memory = [&] { return "b" + std::to_string(buffers[size_t(v.buffer)]) + place_text(k.accesses[size_t(v.access)]); };
    std::string args;
    for (const int32_t a : v.args)
        if (a >= 0) args += " v" + std::to_string(a);
    const std::string head = text("v", value, " ", name_of(v.type), " = ");
    switch (v.kind) {
    case ValueKind::Load: return head + "load " + memory();
    case ValueKind::Gather: return head + "gather " + memory() + " +" + (v.stride.is(1) ? "" : " " + v.stride.text() + " *") + args + " below " + v.extent.text();
    case ValueKind::Index: return head + "index " + place_text(k.accesses[size_t(v.access)]);
    case ValueKind::Constant: return head + number_text(v.type, v.bits);
    case ValueKind::Scalar: return head + "scalar at byte " + std::to_string(v.bits);
    case ValueKind::Length: return head + "length " + v.extent.text();
    case ValueKind::Map: return head + name_of(v.op) + args;
    case ValueKind::Convert: return head + "cast" + args;
    case ValueKind::Bitcast: return head + "bitcast" + args;
    case ValueKind::Random: return head + "random " + word_text(v.bits) + args;
    case ValueKind::Stochastic: return head + "cast_stochastic" + args + (v.bits ? " to " + std::to_string(v.bits) + " bits" : "");
    case ValueKind::Fold: return head + "fold " + name_of(v.op) + args;
    }
    return head;
}

std::string line_of_store(const Kernel& k, size_t store, std::span<const int32_t> buffers)
{
    const StoreTo& s = k.stores[store];
    return text("b", buffers[size_t(s.buffer)], place_text(k.accesses[size_t(s.access)]), " = v", s.value, s.late ? " once all is read" : "");
}

}  // namespace ng
