// A fault on its way to the caller: a status and one sentence that says what is wrong and what would be right.
#pragma once
#include <ng.h>

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace ng {

struct Error {
    ng_status   status = NG_OK;
    std::string text;
    int32_t     at = -1;      // column of a text, index of an argument; -1: none
    int32_t     native = 0;   // errno, CUresult

    Error(ng_status status_, std::string text_, int32_t at_ = -1, int32_t native_ = 0)
        : status(status_), text(std::move(text_)), at(at_), native(native_) {}
};

// One argument of text(): what is written is decided once, in error.cc, not in every caller.
class TextPart {
  public:
    TextPart(std::string_view s) : kind_(Kind::String), string_(s) {}
    TextPart(const std::string& s) : TextPart(std::string_view(s)) {}
    TextPart(const char* s) : TextPart(std::string_view(s ? s : "NULL")) {}
    TextPart(char c) : kind_(Kind::Character), integer_(c) {}
    TextPart(bool b) : TextPart(int(b)) {}
    TextPart(double v) : kind_(Kind::Real), real_(v) {}
    TextPart(const void* p) : kind_(Kind::Pointer), pointer_(p) {}
    template <std::integral T>
    TextPart(T v) : kind_(std::signed_integral<T> ? Kind::Signed : Kind::Unsigned), integer_(int64_t(v)) {}

    void append_to(std::string& out) const;

  private:
    enum class Kind : uint8_t { String, Character, Signed, Unsigned, Real, Pointer } kind_;
    std::string_view string_;
    union {
        int64_t     integer_ = 0;
        double      real_;
        const void* pointer_;
    };
};
std::string joined(std::initializer_list<TextPart> parts);

// text("axis ", 1, " is ", 128): its arguments as one string.
template <class... T>
std::string text(const T&... parts)
{
    return joined({TextPart(parts)...});
}

// What s begins with: so many bytes at most, no part of a character of UTF-8.
std::string_view front_of(std::string_view s, size_t most);
// A tag as sentences have it, in quotes. Of a long one its front: ng_error.text has 244 bytes, and shapes are to be read there, too.
std::string quoted(std::string_view tag);

}  // namespace ng
