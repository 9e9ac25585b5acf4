// Shows an array as numpy's str() does: eight digits, columns of one width, the middle of long axes left out.
#include "ngtool.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <functional>

namespace ngtool {
namespace {

constexpr int64_t THRESHOLD = 1000, EDGE = 3;         // numpy.set_printoptions' defaults
constexpr size_t  LINE_WIDTH = 75;
constexpr int     PRECISION = 8;

// A number's text with at most PRECISION digits after the point, without zeros at the end, but with the point: "1.", "0.25".
template <class Real> std::string real_text(Real value, bool scientific)
{
    if (std::isnan(value)) return "nan";
    if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
    char buffer[512];
    const auto format = scientific ? std::chars_format::scientific : std::chars_format::fixed;
    auto end = std::to_chars(buffer, buffer + sizeof buffer, value, format).ptr;
    std::string mantissa(buffer, end), exponent;
    const auto split = [&] {
        const size_t e = scientific ? mantissa.find('e') : std::string::npos;
        if (e == std::string::npos) return;
        exponent = mantissa.substr(e);
        mantissa.resize(e);
    };
    split();
    const size_t point = mantissa.find('.');
    if (point != std::string::npos && mantissa.size() - point - 1 > size_t(PRECISION)) {
        end = std::to_chars(buffer, buffer + sizeof buffer, value, format, PRECISION).ptr;
        mantissa.assign(buffer, end);
        split();
        while (mantissa.back() == '0') mantissa.pop_back();
    }
    if (mantissa.find('.') == std::string::npos) mantissa += '.';
    return mantissa + exponent;
}

// Pads so that the points are below each other.
void align_points(std::vector<std::string>& words)
{
    size_t left = 0, right = 0;
    const auto parts = [](const std::string& word) {
        const size_t point = std::min(word.find('.'), word.size());
        return std::pair(point, word.size() - point);
    };
    for (const std::string& word : words) {
        const auto [before, after] = parts(word);
        if (after) left = std::max(left, before), right = std::max(right, after);
    }
    for (const std::string& word : words)                       // nan and inf end where the others end
        if (!parts(word).second) left = std::max(left, word.size() > right ? word.size() - right : 0);
    for (std::string& word : words) {
        const auto [before, after] = parts(word);
        if (!after) word.insert(0, left + right - word.size(), ' ');
        else word = std::string(left - before, ' ') + word + std::string(right - after, ' ');
    }
}

std::vector<std::string> padded(std::vector<std::string> words)
{
    size_t width = 0;
    for (const std::string& word : words) width = std::max(width, word.size());
    for (std::string& word : words) word.insert(0, width - word.size(), ' ');
    return words;
}

template <class Real> std::vector<std::string> real_words(const std::vector<Real>& values)
{
    double largest = 0, smallest = INFINITY;
    for (const Real value : values) {
        const double magnitude = std::fabs(double(value));
        if (!std::isfinite(magnitude) || magnitude == 0) continue;
        largest = std::max(largest, magnitude);
        smallest = std::min(smallest, magnitude);
    }
    const bool scientific = largest >= 1e8 || (largest > 0 && (smallest < 1e-4 || largest / smallest > 1000));
    std::vector<std::string> words;
    for (const Real value : values) words.push_back(real_text(value, scientific));
    if (!scientific) return align_points(words), words;
    // Mantissas of one length: as many true digits as the longest of the shortest needs, as numpy has it.
    size_t digits = 0;
    for (const std::string& word : words)
        if (const size_t e = word.find('e'); e != std::string::npos) digits = std::max(digits, e - word.find('.') - 1);
    for (size_t i = 0; i < words.size(); i++) {
        if (!std::isfinite(values[i])) continue;
        char buffer[64];
        words[i].assign(buffer, std::to_chars(buffer, buffer + sizeof buffer, values[i], std::chars_format::scientific, int(digits)).ptr);
        if (digits == 0) words[i].insert(words[i].find('e'), ".");
    }
    return padded(std::move(words));
}

// The positions on an axis that are shown.
std::vector<int64_t> shown_places(int64_t length, bool summarise)
{
    std::vector<int64_t> places;
    for (int64_t i = 0; i < length; i++)
        if (!summarise || length <= 2 * EDGE || i < EDGE || i >= length - EDGE) places.push_back(i);
    return places;
}

class Layout {
public:
    Layout(const ng_shape& shape, bool summarise) : shape_(shape), summarise_(summarise) {}

    // Row-major indices of the elements that are shown, in their order.
    std::vector<int64_t> shown() const
    {
        std::vector<int64_t> places{ 0 };
        for (int32_t axis = 0; axis < shape_.ndim; axis++) {
            std::vector<int64_t> next;
            for (const int64_t base : places)
                for (const int64_t i : shown_places(shape_.dims[axis], summarise_)) next.push_back(base * shape_.dims[axis] + i);
            places = std::move(next);
        }
        return places;
    }
    // words: of the shown elements, in their order.
    std::string text(const std::vector<std::string>& words) const
    {
        size_t next = 0;
        return shape_.ndim ? axis_text(words, next, 0, " ", LINE_WIDTH) : words[0];
    }

private:
    ng_shape shape_;
    bool     summarise_;

    std::string axis_text(const std::vector<std::string>& words, size_t& next, int32_t axis, const std::string& indent,
                          size_t width) const
    {
        const int64_t length = shape_.dims[axis];
        const int32_t axes_left = shape_.ndim - axis;
        const std::vector<int64_t> places = shown_places(length, summarise_);
        const bool gap = int64_t(places.size()) < length;
        std::string result, line = indent;
        for (size_t i = 0; i < places.size(); i++) {
            const bool last = i + 1 == places.size();
            if (axes_left == 1) {
                if (gap && i == size_t(EDGE)) extend(result, line, "...", width, indent), line += ' ';
                extend(result, line, words[next++], width, indent);
                if (!last) line += ' ';
                continue;
            }
            const std::string between(size_t(axes_left - 1), '\n');
            if (gap && i == size_t(EDGE)) result += indent + "..." + between;
            result += indent + axis_text(words, next, axis + 1, indent + ' ', width - 1) + (last ? "" : between);
        }
        if (axes_left == 1) result += line;
        return "[" + (result.size() > indent.size() ? result.substr(indent.size()) : "") + "]";
    }

    static void extend(std::string& result, std::string& line, const std::string& word, size_t width, const std::string& indent)
    {
        if (line.size() + word.size() > width - 1 && line.size() > indent.size()) {
            line.erase(line.find_last_not_of(' ') + 1);
            result += line + "\n";
            line = indent;
        }
        line += word;
    }
};

template <class Element>
std::vector<Element> fetch(ng_ctx* context, ng_tensor* tensor, const ng_shape& shape, ng_dtype as, const Layout& layout)
{
    const Scope scope(ng_scope_create(context, 0));
    ng_expr* value = ng_cast(ng_leaf(scope.get(), tensor), as);
    ng_tensor* converted = nullptr;
    ng_error fault{};
    check(ng_eval(context, nullptr, &value, &converted, 1, &fault), fault);
    const Tensor owner(converted);
    std::vector<Element> all(size_t(element_count(shape))), shown;
    check(ng_tensor_get(converted, all.data(), all.size() * sizeof(Element), &fault), fault);
    for (const int64_t place : layout.shown()) shown.push_back(all[size_t(place)]);
    return shown;
}

template <class Integer> std::vector<std::string> integer_words(const std::vector<Integer>& values)
{
    std::vector<std::string> words;
    for (const Integer value : values) words.push_back(std::to_string(value));
    return padded(std::move(words));
}

}

std::string array_text(ng_ctx* context, ng_tensor* tensor)
{
    ng_shape shape = sized<ng_shape>();
    check(ng_tensor_shape(tensor, &shape), ng_error{});
    const int64_t count = element_count(shape);
    if (count == 0) return "[]  " + shape_text(shape);
    const Layout layout(shape, count > THRESHOLD);
    const uint32_t code = shape.dtype & 0xff, bits = shape.dtype >> 8 & 0xff;
    std::vector<std::string> words;
    if (shape.dtype == NG_BOOL)
        for (const uint8_t value : fetch<uint8_t>(context, tensor, shape, NG_U8, layout)) words.push_back(value ? "True" : "False");
    else if (code == (NG_U8 & 0xff)) words = integer_words(fetch<uint64_t>(context, tensor, shape, NG_U64, layout));
    else if (code == (NG_I8 & 0xff)) words = integer_words(fetch<int64_t>(context, tensor, shape, NG_I64, layout));
    else if (bits == 64) words = real_words(fetch<double>(context, tensor, shape, NG_F64, layout));
    else words = real_words(fetch<float>(context, tensor, shape, NG_F32, layout));
    if (shape.dtype == NG_BOOL) words = padded(std::move(words));
    std::string result = layout.text(words);
    if (shape.ndim == 0) result.erase(0, result.find_first_not_of(' '));
    return result;
}

}
