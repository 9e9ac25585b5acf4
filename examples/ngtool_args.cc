// Reads ngtool's command line: options, NAME=VALUE, types and shapes; and turns expressions and their faults into text.
#include "ngtool.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace ngtool {
namespace {

struct Name { ng_dtype dtype; const char* name; };
const Name DTYPES[] = {
    { NG_BOOL, "bool" },
    { NG_I8, "i8" },   { NG_I16, "i16" },   { NG_I32, "i32" }, { NG_I64, "i64" },
    { NG_U8, "u8" },   { NG_U16, "u16" },   { NG_U32, "u32" }, { NG_U64, "u64" },
    { NG_F16, "f16" }, { NG_BF16, "bf16" }, { NG_F32, "f32" }, { NG_F64, "f64" },
    { NG_E4M3, "e4m3" }, { NG_E5M2, "e5m2" },
};

const char* const VALUED[] = { "-o", "--csv", "--only", "--backend", "--threads", "--length" };
const char* const FLAGS[]  = { "--json", "--source", "--quick", "--all", "--interim", "--help" };

bool is_listed(const std::string& word, const char* const* first, const char* const* last)
{
    return std::any_of(first, last, [&](const char* listed) { return word == listed; });
}

bool is_name(const std::string& word)
{
    if (word.empty() || !(isalpha(uint8_t(word[0])) || word[0] == '_')) return false;
    return std::all_of(word.begin(), word.end(), [](char c) { return isalnum(uint8_t(c)) || c == '_'; });
}

// "f32", "f32[]", "f32[64, 128]", "f32[-1,3]". False: it is none of these.
bool parse_shape(const std::string& word, ng_shape& shape)
{
    const size_t bracket = std::min(word.find('['), word.size());
    const std::string type = word.substr(0, bracket);
    const auto found = std::find_if(std::begin(DTYPES), std::end(DTYPES), [&](const Name& row) { return type == row.name; });
    if (found == std::end(DTYPES)) return false;
    shape = make_shape(found->dtype, {});
    if (bracket == word.size()) return true;

    const char* at = word.c_str() + bracket + 1;
    const auto skip = [&] { while (*at == ' ') at++; };
    for (skip(); *at != ']'; skip()) {
        char* end = nullptr;
        const long long length = strtoll(at, &end, 10);
        if (end == at || shape.ndim == NG_MAX_NDIM) throw Failure("\"" + word + "\" is no type and shape such as f32[64,128]", 2);
        shape.dims[shape.ndim++] = length;
        at = end;
        skip();
        if (*at == ',') at++;
        else if (*at != ']') throw Failure("\"" + word + "\" has no ] at its end", 2);
    }
    if (at[1]) throw Failure("\"" + word + "\" goes on after ]", 2);
    return true;
}

Binding read_binding(const std::string& word)
{
    const size_t equals = word.find('=');
    Binding binding{};
    if (equals != std::string::npos) binding.name = word.substr(0, equals);
    if (!is_name(binding.name)) throw Failure("\"" + word + "\" is not NAME=VALUE, such as x=data.npy or n=3", 2);
    const std::string& value = binding.value = word.substr(equals + 1);
    if (value.empty()) throw Failure("\"" + word + "\" has no value behind its =", 2);

    char* end = nullptr;
    errno = 0;
    binding.integer = strtoll(value.c_str(), &end, 10);
    if (!*end && errno == 0) return binding.kind = Binding::Kind::Integer, binding;
    if (!*end) throw Failure("\"" + word + "\" exceeds 64 bits with a sign; with a point it is a float, and EXPR may say u64(18446744073709551615)", 2);
    binding.real = strtod(value.c_str(), &end);
    if (!*end) return binding.kind = Binding::Kind::Real, binding;
    if (value == "true" || value == "false") {
        binding.integer = value == "true";
        return binding.kind = Binding::Kind::Truth, binding;
    }
    if (parse_shape(value, binding.shape)) return binding.kind = Binding::Kind::Shape, binding;
    return binding.kind = Binding::Kind::File, binding;
}

}

std::string text(const char* format, ...)
{
    va_list list, again;
    va_start(list, format);
    va_copy(again, list);
    std::string result(size_t(std::max(0, vsnprintf(nullptr, 0, format, list))), 0);
    vsnprintf(result.data(), result.size() + 1, format, again);
    va_end(again);
    va_end(list);
    return result;
}

ng_status check(ng_status status, const ng_error& fault)
{
    if (status < 0) throw Failure(text("%s: %s", ng_status_name(status), fault.status < 0 ? fault.text : "no details"));
    return status;
}

ng_shape make_shape(ng_dtype dtype, const std::vector<int64_t>& dims)
{
    ng_shape shape = sized<ng_shape>();
    if (dims.size() > NG_MAX_NDIM) throw Failure(text("%zu axes are more than %d", dims.size(), int(NG_MAX_NDIM)));
    shape.dtype = dtype;
    shape.ndim = int32_t(dims.size());
    std::copy(dims.begin(), dims.end(), shape.dims);
    return shape;
}

int64_t element_count(const ng_shape& shape)
{
    int64_t count = 1;
    for (int32_t axis = 0; axis < shape.ndim; axis++) count *= shape.dims[axis];
    return count;
}

uint64_t dense_bytes(const ng_shape& shape) { return uint64_t(element_count(shape)) * ((shape.dtype >> 8 & 0xff) / 8); }

const char* dtype_name(ng_dtype dtype)
{
    for (const Name& row : DTYPES)
        if (row.dtype == dtype) return row.name;
    return "?";
}

std::string shape_text(const ng_shape& shape)
{
    std::string result = dtype_name(shape.dtype);
    for (int32_t axis = 0; axis < shape.ndim; axis++)
        result += text("%s%lld", axis ? ", " : "[", static_cast<long long>(shape.dims[axis]));
    return shape.ndim ? result + "]" : result;
}

std::string Arguments::get(const std::string& option, const std::string& otherwise) const
{
    const auto found = options.find(option);
    return found == options.end() ? otherwise : found->second;
}

int64_t Arguments::number(const std::string& option, int64_t otherwise, int64_t most) const
{
    if (!has(option)) return otherwise;
    const std::string word = get(option, "");
    char* end = nullptr;
    errno = 0;
    const long long value = strtoll(word.c_str(), &end, 10);
    if (word.empty() || *end || errno || value < 0 || value > most)
        throw Failure(text("%s wants a whole number from 0 to %lld, not \"%s\"", option.c_str(), static_cast<long long>(most), word.c_str()), 2);
    return value;
}

Arguments read_arguments(int argc, char** argv)
{
    Arguments arguments;
    for (int i = 0; i < argc; i++) {
        const std::string word = argv[i];
        if (is_listed(word, std::begin(FLAGS), std::end(FLAGS))) arguments.options[word] = "";
        else if (is_listed(word, std::begin(VALUED), std::end(VALUED))) {
            if (i + 1 == argc) throw Failure(word + " wants a value", 2);
            arguments.options[word] = argv[++i];
        }
        else if (word.size() > 2 && word[0] == '-' && word[1] == '-' && isalpha(uint8_t(word[2])))
            throw Failure("there is no option " + word + "; ngtool help lists them", 2);
        else arguments.words.push_back(word);
    }
    return arguments;
}

Context open_context(const Arguments& arguments)
{
    const std::string backend = arguments.get("--backend", "");
    ng_ctx_desc desc = sized<ng_ctx_desc>();
    desc.version = NG_VERSION;
    desc.backend = backend.empty() ? nullptr : backend.c_str();
    if (arguments.has("--interim")) desc.flags = NG_CTX_NO_JIT;
    desc.threads = uint32_t(arguments.number("--threads", 0, UINT32_MAX));
    ng_ctx* context = nullptr;
    ng_error fault{};
    check(ng_ctx_create(&desc, &context, &fault), fault);
    return Context(context);
}

std::vector<Binding> read_bindings(const std::vector<std::string>& words, size_t first)
{
    std::vector<Binding> bindings;
    for (size_t i = first; i < words.size(); i++) {
        bindings.push_back(read_binding(words[i]));
        for (size_t k = 0; k + 1 < bindings.size(); k++)
            if (bindings[k].name == bindings.back().name) throw Failure(bindings[k].name + " is given twice", 2);
    }
    return bindings;
}

ng_expr* constant_of(ng_scope* scope, const Binding& binding)
{
    switch (binding.kind) {
    case Binding::Kind::Integer: return ng_const_int(scope, 0, binding.integer);
    case Binding::Kind::Real:    return ng_const(scope, 0, binding.real);
    case Binding::Kind::Truth:   return ng_const_int(scope, NG_BOOL, binding.integer);
    case Binding::Kind::File:
    case Binding::Kind::Shape:   break;
    }
    return nullptr;
}

ng_expr* parse_expression(ng_scope* scope, const std::string& source, const std::vector<Binding>& bindings,
                          const std::vector<ng_expr*>& values)
{
    std::string names;
    for (const Binding& binding : bindings) names += (names.empty() ? "" : ",") + binding.name;
    ng_expr* root = ng_parse(scope, source.c_str(), names.c_str(), values.data(), uint32_t(values.size()));
    ng_shape shape = sized<ng_shape>();
    ng_error fault{};
    const ng_status status = ng_expr_shape(root, &shape, &fault);
    if (status >= 0) return root;
    std::string message = text("%s: %s", ng_status_name(status), fault.text);
    if (fault.at >= 0 && size_t(fault.at) <= source.size() && source.find('\n') == std::string::npos)
        message += "\n  " + source + "\n  " + std::string(size_t(fault.at), ' ') + "^";
    throw Failure(message);
}

}
