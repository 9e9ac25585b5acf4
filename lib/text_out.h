// Bytes to a caller's buffer by the rule of ng.h: no buffer asks for the size, too little room is NG_E_LIMIT.
#pragma once
#include "lib/guard.h"

#include <string>

namespace ng {

// *bytes: in, the room; out, what is needed.
inline ng_status copy_out(const std::string& bytes_to_give, char* buffer, size_t* bytes, const char* who)
{
    if (!bytes) throw Error(NG_E_INVALID, text(who, ": bytes is NULL, should point to the room in buf"));
    const size_t room = *bytes;
    *bytes = bytes_to_give.size();
    if (!buffer) return NG_OK;
    if (room < bytes_to_give.size()) throw Error(NG_E_LIMIT, text(who, ": there is room for ", room, " bytes, ", bytes_to_give.size(), " are needed"));
    std::memcpy(buffer, bytes_to_give.data(), bytes_to_give.size());
    return NG_OK;
}

}  // namespace ng
