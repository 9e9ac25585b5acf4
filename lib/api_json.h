// The header described for binding generators: a text that bindings/api.py writes when the library is built.
#pragma once

namespace ng {

extern const char api_json_text[];  // JSON, UTF-8, ends in 0

}  // namespace ng
