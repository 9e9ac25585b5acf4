// Whether two tensors touch a common byte, decided exactly where their strides agree.
#include "lib/tensor.h"

#include <algorithm>
#include <cstdlib>

namespace ng {
namespace {

constexpr int MAX_TURNS = 4096;   // of the search; layouts that nest need one or two an axis. Past it: they overlap

// low <= coefficient <= high of a stride, in elements.
struct AxisTerm { int64_t stride, low, high; };

struct AxisTerms {
    std::array<AxisTerm, NG_MAX_NDIM> term;
    int count = 0, turns = 0;
};

void widest_first(AxisTerms& terms) noexcept
{
    std::sort(terms.term.begin(), terms.term.begin() + terms.count, [](const AxisTerm& x, const AxisTerm& y) { return x.stride > y.stride; });
}

// The differences of positions of a and b, a term an axis with its stride positive, the widest first. False: the strides
// differ where it matters.
bool common_terms(const Tensor& a, const Tensor& b, AxisTerms& terms) noexcept
{
    if (a.rank != b.rank) return false;
    for (size_t i = 0; i < size_t(a.rank); i++) {
        if (a.dims[i] > 1 && b.dims[i] > 1 && a.strides[i] != b.strides[i]) return false;
        const int64_t stride = a.dims[i] > 1 ? a.strides[i] : b.strides[i];
        if ((a.dims[i] == 1 && b.dims[i] == 1) || stride == 0) continue;
        AxisTerm term{stride, -(b.dims[i] - 1), a.dims[i] - 1};
        if (stride < 0) term = {-stride, -term.high, -term.low};
        terms.term[size_t(terms.count++)] = term;
    }
    widest_first(terms);
    return true;
}

int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b < 0); }

// Is `rest` the sum of stride * coefficient of the terms from `first` on? Layouts that nest leave one or two choices an axis.
bool reaches(AxisTerms& terms, int first, int64_t rest) noexcept
{
    if (first == terms.count) return rest == 0;
    if (++terms.turns > MAX_TURNS) return true;
    int64_t low = 0, high = 0;                       // what the inner terms can give
    for (int i = first + 1; i < terms.count; i++) {
        const AxisTerm& inner = terms.term[size_t(i)];
        low += inner.stride * inner.low, high += inner.stride * inner.high;
    }
    const AxisTerm& term = terms.term[size_t(first)];
    const int64_t from = std::max(term.low, -floor_div(high - rest, term.stride));      // ceil((rest - high) / stride)
    const int64_t to = std::min(term.high, floor_div(rest - low, term.stride));
    for (int64_t k = from; k <= to; k++)
        if (reaches(terms, first + 1, rest - k * term.stride)) return true;
    return false;
}

}  // namespace

bool is_injective(const TensorForm& form) noexcept
{
    AxisTerms terms;
    if (form.count() == 0) return true;
    for (size_t i = 0; i < size_t(form.rank); i++) {
        if (form.dims[i] == 1) continue;
        if (form.strides[i] == 0) return false;
        terms.term[size_t(terms.count++)] = {std::abs(form.strides[i]), 1 - form.dims[i], form.dims[i] - 1};
    }
    widest_first(terms);
    bool nests = true;                               // each stride passes over all that lies within it
    int64_t inner = 0;
    for (int i = terms.count; i-- > 0;) {
        const AxisTerm& term = terms.term[size_t(i)];
        nests = nests && term.stride > inner;
        inner += term.stride * term.high;
    }
    if (nests) return true;
    // Two elements in one place differ first, from the widest axis on, by k > 0 steps of some axis, which the others undo.
    for (int i = 0; i < terms.count; i++) {
        const AxisTerm& term = terms.term[size_t(i)];
        inner -= term.stride * term.high;
        for (int64_t k = 1; k <= term.high && k * term.stride <= inner; k++)
            if (reaches(terms, i + 1, -k * term.stride)) return terms.turns > MAX_TURNS;       // past it nothing is known
    }
    return true;
}

bool same_elements(const Tensor& a, const Tensor& b) noexcept
{
    if (a.data != b.data || a.dtype != b.dtype || a.rank != b.rank) return false;
    for (size_t i = 0; i < size_t(a.rank); i++)
        if (a.dims[i] != b.dims[i] || (a.dims[i] > 1 && a.strides[i] != b.strides[i])) return false;
    return true;
}

bool overlaps(const Tensor& a, const Tensor& b) noexcept
{
    if (a.begin == a.end || b.begin == b.end) return false;
    if (a.end <= b.begin || b.end <= a.begin) return false;
    AxisTerms terms;
    const int64_t size = bytes_of(a.dtype), apart = b.data - a.data;
    if (size != bytes_of(b.dtype) || apart % size != 0 || !common_terms(a, b, terms)) return true;
    return reaches(terms, 0, apart / size);
}

}  // namespace ng
