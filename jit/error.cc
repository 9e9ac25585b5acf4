// Numbers and strings put together to sentences, whatever locale the host has set.
#include "jit/error.h"

#include <charconv>

namespace ng {
namespace {

template <class T, class... How>
void append_number(std::string& out, T value, How... how)
{
    char digits[40];
    const std::to_chars_result end = std::to_chars(digits, digits + sizeof digits, value, how...);
    out.append(digits, end.ptr);
}

}  // namespace

void TextPart::append_to(std::string& out) const
{
    switch (kind_) {
    case Kind::String: out += string_; break;
    case Kind::Character: out += char(integer_); break;
    case Kind::Signed: append_number(out, integer_); break;
    case Kind::Unsigned: append_number(out, uint64_t(integer_)); break;
    case Kind::Real: append_number(out, real_); break;
    case Kind::Pointer:
        out += "0x";
        append_number(out, reinterpret_cast<uintptr_t>(pointer_), 16);
        break;
    }
}

std::string joined(std::initializer_list<TextPart> parts)
{
    std::string out;
    for (const TextPart& p : parts) p.append_to(out);
    return out;
}

std::string_view front_of(std::string_view s, size_t most)
{
    if (s.size() <= most) return s;
    size_t length = most;
    while (length > 0 && most - length < 3 && (s[length] & 0xC0) == 0x80) length--;
    return s.substr(0, length);
}

std::string quoted(std::string_view tag)
{
    constexpr size_t MOST = 48;
    const std::string_view front = front_of(tag, MOST);
    return text('"', front, front.size() < tag.size() ? ".." : "", '"');
}

}  // namespace ng
