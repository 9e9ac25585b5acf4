// Hostile texts for ng_parse: grammar turned inside out, tokens shuffled, nesting without end; what is built is run and read back.
#include "tests/harm/fuzz.h"

#include <algorithm>

namespace {

using harm::Dice;
using harm::sound;

constexpr size_t MAX_TEXT = 1 << 16;
constexpr const char* NAMES = "x,y,k,b,n,i";

// Every word that ng_parse knows: those of the library's own table, then those that the table leaves to the parser.
const std::vector<std::string>& words()
{
    static const std::vector<std::string> all = [] {
        std::vector<std::string> found = {"take", "put", "scan", "segment", "argsort", "concat", "reshape", "broadcast", "permute", "view",
                                          "window", "iota", "random", "length", "cast_stochastic", "bitcast", "stop", "surrogate", "custom_grad",
                                          "keep", "matmul", "conv", "conv_dx", "conv_dw", "pool", "pool_dx", "f16", "bf16", "f32", "f64", "e4m3",
                                          "e5m2", "i8", "i64", "u8", "u64", "bool"};
        const std::string json = ng_api_json(), key = "{\"name\":\"";
        for (size_t at = json.find("\"words\""); (at = json.find(key, at)) != std::string::npos;) {
            const size_t begin = at + key.size(), end = json.find('"', begin);
            if (json.compare(end, 10, "\",\"class\":") == 0) found.push_back(json.substr(begin, end - begin));
            at = end;
        }
        return found;
    }();
    return all;
}

const std::vector<std::string> TOKENS = {
    "+", "-", "*", "/", "//", "%", "**", "<", "<=", "==", "!=", ">=", ">", "|", "^", "&", "<<", ">>", "~", "and", "or", "not", "(", ")", "[", "]", ",", ":",
    "::", ";", "=", "None", "...", "true", "false", "inf", "nan", "lowest", "0", "1", "-1", "2", "3", "0.5", "1e-5", "1e400", "1e-400", "1e", "0x", "1.", ".5",
    "9223372036854775807", "9223372036854775808", "18446744073709551616", "-9223372036854775808", "2147483648", "1099511627776", "x", "y", "k", "b", "n", "i", "z", "_",
    "[0, 1]", "[-1]", "[0, 0]", "[64]", "[::-1]", "[1:-1, ::2]", "[..., None]", "m = x;", "\n", "\t", " ", "'", "\"", "#", "\\", "\xff", "\xc3\xa9", "@", "$"};

std::string number(Dice& d)
{
    static const std::vector<std::string> odd = {"1e308", "1e400", "0", "1", "2", "0.1", "9007199254740993", "4294967296", "9223372036854775808", "123456789012345678901234567890", "1e-320", "0.0"};
    return d.one_in(3) ? d.of(odd) : std::to_string(d.below(9));
}
std::string expression(Dice& d, int depth);
std::string call(Dice& d, int depth)
{
    std::string text = d.of(words()) + "(";
    for (size_t n = d.below(5), j = 0; j < n; j++)
        text += (j ? ", " : "") + (d.one_in(4) ? d.of(std::vector<std::string>{"0", "1", "[0, 1]", "-1", "[1]", "f32", "sum", "last", "exclusive", "[2, 3]", "[4]", "16"})
                                               : expression(d, depth - 1));
    return text + (d.one_in(20) ? "" : ")");
}
// Mostly right, so that what is hostile meets what is whole.
std::string expression(Dice& d, int depth)
{
    static const std::vector<std::string> names = {"x", "y", "k", "b", "n", "i", "m", "z"};
    static const std::vector<std::string> between = {" + ", " - ", " * ", " / ", " // ", " % ", " ** ", " < ", " == ", " and ", " or ", " | ", " & ", " ^ ", " << ", " >> "};
    static const std::vector<std::string> cuts = {"[0]", "[1:]", "[:-1]", "[::2]", "[::-1]", "[None]", "[..., 0]", "[1:-1, ::2]", "[5]", "[0:0]", "[::0]", "[9223372036854775807:]"};
    if (depth <= 0) return d.one_in(3) ? number(d) : d.of(names);
    switch (d.below(8)) {
    case 0:
    case 1: return expression(d, depth - 1) + d.of(between) + expression(d, depth - 1);
    case 2: return "(" + expression(d, depth - 1) + ")";
    case 3: return (d.one_in(2) ? "-" : d.one_in(2) ? "~" : "not ") + expression(d, depth - 1);
    case 4: return expression(d, depth - 1) + d.of(cuts);
    case 5: return d.of(names) + " = " + expression(d, depth - 1) + "; " + expression(d, depth - 1);
    default: return call(d, depth);
    }
}
std::string nested(Dice& d)
{
    static const std::vector<std::string> openers = {"(", "-", "~", "not ", "sqrt(", "[", "x[", "x + (", "1 if ", "where(b, ", "x ** ", "m = "};
    const std::string open = d.of(openers);
    const size_t depth = size_t(1) << d.below(14);
    std::string text;
    for (size_t i = 0; i < depth && text.size() < MAX_TEXT; i++) text += open;
    text += "x";
    if (open.back() == '(' && !d.one_in(4)) text += std::string(std::min(depth, MAX_TEXT), ')');
    return text;
}

// Texts whose definitions double: m = m + m, again and again.
std::string doubled(Dice& d)
{
    std::string text = "m = x; ";
    for (size_t i = 1 + d.below(200); i-- > 0;) text += d.one_in(2) ? "m = m + m; " : "m = m * y + m; ";
    return text + "m";
}

// Runs what costs little. Whatever was built has a text, which builds it again.
void use(ng_ctx* c, ng_scope* s, ng_expr* e, ng_expr* const* values, uint32_t n)
{
    ng_error error{};
    ng_prog* p = nullptr;
    const bool compiled = sound("ng_compile", ng_compile(c, nullptr, &e, 1, &p, &error), &error) == NG_OK;
    if (compiled && harm::cost_of(p) < harm::AFFORDABLE) {
        ng_tensor* out = nullptr;
        sound("ng_eval", ng_eval(c, nullptr, &e, &out, 1, &error), &error);
        ng_tensor_release(out);
    }
    ng_prog_release(p);
    size_t bytes = 0;
    if (sound("ng_expr_text", ng_expr_text(e, nullptr, &bytes, &error), &error) != NG_OK) return;
    std::string text(bytes, '#');
    if (sound("ng_expr_text", ng_expr_text(e, text.data(), &bytes, &error), &error) != NG_OK) harm::fault("ng_expr_text found no room in what it asked for: %s", error.text);
    if (text.size() != bytes || text.back() != 0) harm::fault("ng_expr_text said %zu bytes and gave others", bytes);
    sound("ng_parse of a text of ours", ng_expr_shape(ng_parse(s, text.c_str(), NAMES, values, n), nullptr, nullptr), nullptr);
}

}  // namespace

std::vector<std::string> harm::seeds()
{
    std::vector<std::string> all = {"", "x", "((((", "x[", "m = mean(x, 1); rsqrt(mean((x - m)**2, 1) + 1e-5) * (x - m)"};
    for (const std::string& word : words()) all.push_back(word + "(x, y, 0)");
    return all;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed)
{
    Dice d(seed);
    std::string text(reinterpret_cast<const char*>(data), size);
    const size_t at = d.below(text.size() + 1), count = std::min(text.size() - at, 1 + d.below(12));
    switch (d.below(9)) {
    case 0: text = expression(d, 1 + int(d.below(5))); break;
    case 1: text = d.one_in(2) ? nested(d) : doubled(d); break;
    case 2: text.insert(at, " " + expression(d, 2) + " "); break;
    case 3: text.insert(at, d.of(TOKENS)); break;
    case 4: text.replace(at, count, d.of(TOKENS)); break;
    case 5: text.erase(at, count); break;
    case 6: text.insert(at, text.substr(d.below(text.size() + 1), 40)); break;
    case 7: text.insert(at, call(d, 2)); break;
    default: return LLVMFuzzerMutate(data, size, max_size);
    }
    text.resize(std::min(text.size(), max_size));
    std::memcpy(data, text.data(), text.size());
    return text.size();
}

// The input is the text; behind a zero, the names.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size)
{
    const std::string all(reinterpret_cast<const char*>(data), size);
    const size_t zero = all.find('\0');
    const std::string text = all.substr(0, zero), names = zero == std::string::npos ? NAMES : all.substr(zero + 1);
    ng_ctx* c = harm::small_context();
    ng_scope* s = ng_scope_create(c, 1 << 16);
    ng_error error{};
    ng_shape d{};
    d.size = sizeof d, d.dtype = NG_F32, d.ndim = 2, d.dims[0] = 3, d.dims[1] = 4;
    ng_shape whole = d;
    whole.dtype = NG_I32;
    ng_tensor *t = nullptr, *w = nullptr;
    if (ng_tensor_create(c, &d, &t, &error) != NG_OK || ng_tensor_create(c, &whole, &w, &error) != NG_OK) harm::fault("%s", error.text);
    sound("ng_tensor_fill", ng_tensor_fill(t, nullptr, 1.5, &error), &error);
    sound("ng_tensor_fill", ng_tensor_fill(w, nullptr, 2, &error), &error);
    ng_expr* x = ng_leaf(s, t);
    ng_expr* const values[] = {x, ng_sum(x, NG_AXIS_1, NG_KEEP), ng_const_int(s, NG_U64, 7), ng_less(x, ng_const(s, NG_F32, 1)), ng_const_int(s, NG_I64, 3), ng_leaf(s, w)};
    const uint32_t n = sizeof values / sizeof *values;
    ng_expr* e = ng_parse(s, text.c_str(), names.c_str(), values, n);
    if (!e) harm::fault("ng_parse gave NULL");
    d.size = sizeof d;
    error.at = -2;
    if (sound("ng_expr_shape", ng_expr_shape(e, &d, &error), &error) == NG_OK) use(c, s, e, values, n);
    else if (error.at < -1 || int64_t(error.at) > int64_t(size) + 1) harm::fault("a text of %zu bytes has its fault at %d", size, error.at);
    ng_scope_release(s);
    ng_tensor_release(t);
    ng_tensor_release(w);
    harm::end_context(c);
    return 0;
}
