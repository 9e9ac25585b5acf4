// Recursive descent over RFC 8259, with a limit on depth, for the JSON that libng writes.
#include "json_reader.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

namespace ngtool {
namespace {

class Reader {
public:
    explicit Reader(const std::string& text) : at_(text.c_str()), begin_(at_), end_(at_ + text.size()) {}

    Json document()
    {
        Json value = read_value(0);
        skip();
        if (at_ != end_) fail("text after the end");
        return value;
    }

private:
    static constexpr int DEPTH_MAX = 200;
    const char *at_, *begin_, *end_;

    [[noreturn]] void fail(const char* what) const
    {
        throw std::runtime_error("JSON: " + std::string(what) + " at byte " + std::to_string(at_ - begin_));
    }
    void skip() { while (at_ != end_ && strchr(" \t\r\n", *at_) && *at_) at_++; }
    bool take(char c)
    {
        skip();
        if (at_ == end_ || *at_ != c) return false;
        at_++;
        return true;
    }
    void expect(char c) { if (!take(c)) fail(("no " + std::string(1, c)).c_str()); }

    Json read_value(int depth)
    {
        if (depth > DEPTH_MAX) fail("too deep");
        skip();
        if (at_ == end_) fail("an end where a value should be");
        Json value;
        switch (*at_) {
        case '{': return read_object(depth);
        case '[': return read_array(depth);
        case '"': value.kind = Json::Kind::String; value.string = read_string(); return value;
        case 't': return read_word("true", Json::Kind::Bool, 1);
        case 'f': return read_word("false", Json::Kind::Bool, 0);
        case 'n': return read_word("null", Json::Kind::Null, 0);
        default: return read_number();
        }
    }

    Json read_word(const char* word, Json::Kind kind, double number)
    {
        const size_t length = strlen(word);
        if (size_t(end_ - at_) < length || strncmp(at_, word, length) != 0) fail("an unknown word");
        at_ += length;
        Json value;
        value.kind = kind;
        value.number = number;
        return value;
    }

    Json read_number()
    {
        char* stop = nullptr;
        Json value;
        value.kind = Json::Kind::Number;
        if (!strchr("-0123456789", *at_)) fail("no value");
        value.number = strtod(at_, &stop);
        if (stop == at_ || stop > end_) fail("no number");
        at_ = stop;
        return value;
    }

    Json read_array(int depth)
    {
        Json value;
        value.kind = Json::Kind::Array;
        expect('[');
        if (take(']')) return value;
        do value.items.push_back(read_value(depth + 1)); while (take(','));
        expect(']');
        return value;
    }

    Json read_object(int depth)
    {
        Json value;
        value.kind = Json::Kind::Object;
        expect('{');
        if (take('}')) return value;
        do {
            skip();
            value.names.push_back(read_string());
            expect(':');
            value.items.push_back(read_value(depth + 1));
        } while (take(','));
        expect('}');
        return value;
    }

    std::string read_string()
    {
        std::string result;
        expect('"');
        for (; at_ != end_ && *at_ != '"'; at_++) {
            if (*at_ != '\\') { result += *at_; continue; }
            if (++at_ == end_) fail("a string without end");
            static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
            const char* found = *at_ ? strchr(from, *at_) : nullptr;
            if (found) result += to[found - from];
            else if (*at_ == 'u') append_code(result);
            else fail("an unknown escape");
        }
        if (at_ == end_) fail("a string without end");
        at_++;
        return result;
    }

    // \uXXXX as UTF-8; halves of a pair become U+FFFD each.
    void append_code(std::string& result)
    {
        if (end_ - at_ < 5) fail("a short \\u");
        const std::string digits(at_ + 1, at_ + 5);
        if (digits.find_first_not_of("0123456789abcdefABCDEF") != std::string::npos) fail("a wrong \\u");
        unsigned code = unsigned(strtoul(digits.c_str(), nullptr, 16));
        at_ += 4;
        if (code >= 0xd800 && code < 0xe000) code = 0xfffd;
        if (code < 0x80) { result += char(code); return; }
        if (code < 0x800) result += char(0xc0 | code >> 6);
        else { result += char(0xe0 | code >> 12); result += char(0x80 | (code >> 6 & 0x3f)); }
        result += char(0x80 | (code & 0x3f));
    }
};

}

const Json* Json::find(const std::string& name) const
{
    for (size_t i = 0; i < names.size(); i++)
        if (names[i] == name) return &items[i];
    return nullptr;
}

const std::vector<Json>& Json::list(const std::string& name) const
{
    static const std::vector<Json> empty;
    const Json* found = find(name);
    return found ? found->items : empty;
}

std::string Json::text_of(const std::string& name) const
{
    const Json* found = find(name);
    return found ? found->text() : "";
}

std::string Json::text() const
{
    std::string result;
    char buffer[40];
    switch (kind) {
    case Kind::Null:   return "-";
    case Kind::Bool:   return number != 0 ? "yes" : "no";
    case Kind::String: return string;
    case Kind::Number:
        snprintf(buffer, sizeof buffer, number == std::floor(number) && std::fabs(number) < 1e15 ? "%.0f" : "%.9g", number);
        return buffer;
    case Kind::Array:
        for (const Json& item : items) result += (result.empty() ? "" : ", ") + item.text();
        return "[" + result + "]";
    case Kind::Object:
        for (size_t i = 0; i < names.size(); i++) result += (i ? ", " : "") + names[i] + " " + items[i].text();
        return "{" + result + "}";
    }
    return result;
}

Json read_json(const std::string& text) { return Reader(text).document(); }

}
