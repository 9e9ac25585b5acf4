// A fault on its way to the caller: a status and one sentence that says what is wrong and what would be right.
#pragma once
#include <ng.h>

#include <cstdint>
#include <sstream>
#include <string>

namespace ng {

struct Error {
    ng_status   status = NG_OK;
    std::string text;
    int32_t     at = -1;      // column of a text, index of an argument; -1: none
    int32_t     native = 0;   // errno, CUresult

    Error(ng_status status_, std::string text_, int32_t at_ = -1, int32_t native_ = 0)
        : status(status_), text(std::move(text_)), at(at_), native(native_) {}
};

// text("axis ", 1, " is ", 128): its arguments as one string.
template <class... T>
std::string text(const T&... parts)
{
    std::ostringstream out;
    (out << ... << parts);
    return out.str();
}

}  // namespace ng
