// A small reader of JSON texts: the whole text becomes one value, numbers are doubles.
#pragma once
#include <string>
#include <vector>

namespace ngtool {

struct Json {
    enum class Kind { Null, Bool, Number, String, Array, Object };
    Kind                     kind = Kind::Null;
    double                   number = 0;          // also of Bool: 0 or 1
    std::string              string;
    std::vector<Json>        items;               // of Array and Object, in the order of the text
    std::vector<std::string> names;               // of Object: what items are called

    const Json* find(const std::string& name) const;               // NULL if there is none
    const std::vector<Json>& list(const std::string& name) const;  // empty if there is none
    std::string text_of(const std::string& name) const;            // a member as text, "" if there is none
    std::string text() const;                                      // strings without quotes, arrays as [a, b]
};

// Throws std::runtime_error with the place of the fault.
Json read_json(const std::string& text);

}
