// What every function of the face is made of: exceptions end here, handles become objects, structs of any age are read.
#pragma once
#include "jit/error.h"
#include "lib/handle.h"
#include "lib/plain_floats.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <string_view>

namespace ng {

// Bytes of the character of UTF-8 that begins here, of `left`; 0: none does.
inline size_t bytes_of_character(const char* text, size_t left)
{
    const auto byte = [&](size_t i) { return uint8_t(text[i]); };
    const uint8_t first = byte(0);
    if (first < 0x80) return 1;
    const size_t bytes = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    if (first < 0xC2 || first > 0xF4 || bytes > left) return 0;
    for (size_t i = 1; i < bytes; i++)
        if ((byte(i) & 0xC0) != 0x80) return 0;
    // In more bytes than it needs, half of a pair of UTF-16, beyond the last.
    const bool is_none = (first == 0xE0 && byte(1) < 0xA0) || (first == 0xED && byte(1) > 0x9F) || (first == 0xF0 && byte(1) < 0x90) || (first == 0xF4 && byte(1) > 0x8F);
    return is_none ? 0 : bytes;
}

// Fills *error, where there is one; the sentence is cut between characters, and what is no character in what it names is '?'.
// Allocates nothing: NG_RT functions refuse with it instead of throwing.
inline ng_status refuse(ng_error* error, ng_status status, std::string_view sentence, int32_t at = -1, int32_t native = 0) noexcept
{
    if (!error) return status;
    size_t bytes = std::min(sentence.size(), sizeof error->text - 1);
    while (bytes < sentence.size() && bytes > 0 && (sentence[bytes] & 0xC0) == 0x80) bytes--;
    *error = ng_error{status, native, at, {}};
    for (size_t i = 0, length; i < bytes; i += length) {
        length = bytes_of_character(sentence.data() + i, bytes - i);
        if (length) std::memcpy(error->text + i, sentence.data() + i, length);
        else error->text[i] = '?', length = 1;
    }
    return status;
}

// Inside a catch clause: the exception as a status.
inline ng_status refuse_caught(ng_error* error) noexcept
{
    try {
        throw;
    } catch (const Error& fault) {
        return refuse(error, fault.status, fault.text, fault.at, fault.native);
    } catch (const std::bad_alloc&) {
        return refuse(error, NG_E_NOMEM, "there is no host memory left for this call");
    } catch (const std::exception& fault) {
        return refuse(error, NG_E_BUG, std::string_view(fault.what()));
    } catch (...) {
        return refuse(error, NG_E_BUG, "an exception of no known kind");
    }
}

// guard(error, [&] { ...; return NG_OK; }): what was thrown becomes a status and *error. On success *error stays as it was.
template <class Body>
ng_status guard(ng_error* error, Body&& body) noexcept
{
    const PlainFloats plain;
    try {
        return body();
    } catch (...) {
        return refuse_caught(error);
    }
}

template <class T> inline constexpr const char* NOUN_OF = "object";   // "tensor": for sentences

inline const char* article_of(std::string_view noun) { return std::string_view("aeiou").find(noun[0]) < 5 ? "an " : "a "; }

// The object of an argument: need<Tensor>(t, "ng_tensor_put", "t"). NG_E_INVALID when it is no such handle, NG_E_LOST
// when it comes from before a fork.
template <class T>
Pin<T> need(const void* handle, const char* who, const char* argument, int32_t at = -1)
{
    Pin<T> pin(handle);
    if (!pin && !handle) throw Error(NG_E_INVALID, text(who, ": ", argument, " is NULL, should be ", article_of(NOUN_OF<T>), NOUN_OF<T>), at);
    if (!pin && handle_of(handle) == UNMADE<T>)
        throw Error(NG_E_NOMEM, text(who, ": ", argument, " was not made: there was no memory for it"), at);
    if (!pin)
        throw Error(NG_E_INVALID, text(who, ": ", argument, " = ", handle, " is no ", NOUN_OF<T>, " that lives: released, of another kind, or never ours"), at);
    if (pin.is_forked())
        throw Error(NG_E_LOST, text(who, ": ", argument, " was made before this process was forked; only its release works here"), at);
    return pin;
}

template <class T>
T& need_out(T* out, const char* who, const char* argument = "out")
{
    if (!out) throw Error(NG_E_INVALID, text(who, ": ", argument, " is NULL, and there is nowhere to put the result"));
    return *out;
}

// Structs begin with `size`. Members that an older caller does not know read as zero; what a newer one adds is not read.
// A size that ends within a member, which no compiler makes, leaves that member out.
template <class T>
T read_struct(const T* given, const char* who, const char* name, const char* parameter = "d")
{
    T full{};
    if (!given) throw Error(NG_E_INVALID, text(who, ": ", parameter, " is NULL, should be an ", name));
    if (given->size < 8) throw Error(NG_E_INVALID, text(who, ": ", name, ".size is ", given->size, ", should be sizeof(", name, ") = ", sizeof(T)));
    std::memcpy(&full, given, std::min<size_t>(given->size / alignof(T) * alignof(T), sizeof(T)));
    return full;
}

// As much of `full` as the caller's size has room for; his size stays.
template <class T>
void write_struct(T* out, T full, const char* who, const char* name)
{
    if (!out) throw Error(NG_E_INVALID, text(who, ": out is NULL, should be an ", name));
    if (out->size < 8) throw Error(NG_E_INVALID, text(who, ": ", name, ".size is ", out->size, ", should be sizeof(", name, ") = ", sizeof(T)));
    full.size = out->size;
    std::memcpy(out, &full, std::min<size_t>(out->size, sizeof(T)));
}

}  // namespace ng
