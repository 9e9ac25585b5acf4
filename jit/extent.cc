// Arithmetic on polynomials of lengths, kept in one canonical form so that equal means equal.
#include "jit/extent.h"

#include "jit/error.h"

#include <algorithm>

namespace ng {
namespace {

[[noreturn]] void overflow() { throw Error(NG_E_LIMIT, "an extent exceeds 63 bits"); }

[[noreturn]] void too_many_terms() { throw Error(NG_E_LIMIT, text("a shape's polynomial of lengths has more than ", Extent::MAX_TERMS, " terms")); }

int64_t added(int64_t a, int64_t b)
{
    int64_t r;
    if (__builtin_add_overflow(a, b, &r)) overflow();
    return r;
}
int64_t multiplied(int64_t a, int64_t b)
{
    int64_t r;
    if (__builtin_mul_overflow(a, b, &r)) overflow();
    return r;
}
// The exact quotient; of the least number by -1, which the processor traps on, an error.
std::optional<int64_t> divided(int64_t a, int64_t d)
{
    if (d == -1) return multiplied(a, -1);
    if (d == 0 || a % d) return std::nullopt;
    return a / d;
}
bool precedes(const Term& a, const Term& b)
{
    if (a.variables.size() != b.variables.size()) return a.variables.size() > b.variables.size();
    return a.variables < b.variables;
}
std::vector<int32_t> merged(const std::vector<int32_t>& a, const std::vector<int32_t>& b)
{
    std::vector<int32_t> r(a.size() + b.size());
    std::merge(a.begin(), a.end(), b.begin(), b.end(), r.begin());
    return r;
}
int64_t value_of(const Term& t, std::span<const int64_t> variables)
{
    int64_t p = t.coefficient;
    for (const int32_t v : t.variables) p = multiplied(p, variables[size_t(v)]);
    return p;
}
uint64_t mixed(uint64_t h, uint64_t v) { return (h ^ v) * 0x9E3779B97F4A7C15u + (h >> 29); }

}  // namespace

Extent Extent::variable(int32_t v) { return of_terms({{1, {v}}}); }

Extent Extent::of_terms(std::vector<Term> terms)
{
    for (Term& t : terms) std::sort(t.variables.begin(), t.variables.end());
    std::sort(terms.begin(), terms.end(), precedes);
    std::vector<Term> kept;
    for (Term& t : terms) {
        if (!kept.empty() && kept.back().variables == t.variables)
            kept.back().coefficient = added(kept.back().coefficient, t.coefficient);
        else
            kept.push_back(std::move(t));
    }
    std::erase_if(kept, [](const Term& t) { return t.coefficient == 0; });
    if (kept.size() > MAX_TERMS) too_many_terms();
    if (!kept.empty() && kept[0].variables.size() > MAX_DEGREE)
        throw Error(NG_E_LIMIT, ng::text("a shape's polynomial of lengths multiplies more than ", MAX_DEGREE, " lengths"));
    if (kept.empty()) return Extent(0);
    if (kept.size() == 1 && kept[0].variables.empty()) return Extent(kept[0].coefficient);
    auto* list = new Terms;
    Extent e;
    e.terms_ = Ref<const Terms>(list);
    list->list = std::move(kept);
    return e;
}

std::vector<Term> Extent::terms() const
{
    if (terms_) return terms_->list;
    return constant_ ? std::vector<Term>{{constant_, {}}} : std::vector<Term>{};
}

int64_t Extent::as_dim() const
{
    if (!terms_) return constant_;
    const auto& list = terms_->list;
    if (list.size() == 1 && list[0].coefficient == 1 && list[0].variables.size() == 1 && list[0].variables[0] < HIDDEN)
        return -1 - int64_t(list[0].variables[0]);
    return NG_REST;
}

int32_t Extent::highest_variable() const
{
    int32_t highest = -1;
    if (terms_)
        for (const Term& t : terms_->list)
            for (const int32_t v : t.variables)
                if (v < HIDDEN) highest = std::max(highest, v);
    return highest;
}

void Extent::mark_variables(std::vector<bool>& mentioned) const
{
    if (!terms_) return;
    for (const Term& t : terms_->list)
        for (const int32_t v : t.variables) {
            if (v >= HIDDEN) continue;
            if (size_t(v) >= mentioned.size()) mentioned.resize(size_t(v) + 1);
            mentioned[size_t(v)] = true;
        }
}

int64_t Extent::value(std::span<const int64_t> variables) const
{
    if (!terms_) return constant_;
    int64_t sum = 0;
    for (const Term& t : terms_->list) sum = added(sum, value_of(t, variables));
    return sum;
}

int64_t Extent::wrapped(std::span<const int64_t> variables) const noexcept
{
    if (!terms_) return constant_;
    uint64_t sum = 0;
    for (const Term& t : terms_->list) {
        uint64_t p = uint64_t(t.coefficient);
        for (const int32_t v : t.variables) p *= uint64_t(variables[size_t(v)]);
        sum += p;
    }
    return int64_t(sum);
}

int64_t Extent::most(std::span<const int64_t> largest) const
{
    if (!terms_) return constant_;
    int64_t sum = 0;
    for (const Term& t : terms_->list)
        if (t.coefficient > 0 || t.variables.empty()) sum = added(sum, value_of(t, largest));
    return sum;
}

bool Extent::may_be_negative() const
{
    return !terms_ ? constant_ < 0 : std::ranges::any_of(terms_->list, [](const Term& t) { return t.coefficient < 0; });
}

std::optional<Extent> Extent::floor_by(int64_t divisor) const
{
    int64_t rest = 0;
    for (const Term& t : terms())
        if (t.variables.empty()) rest = t.coefficient % divisor;
    return (*this - Extent(rest < 0 ? rest + divisor : rest)).divided_by(divisor);
}

// Long division by the leading term; exact or nothing.
std::optional<Extent> Extent::divided_by(const Extent& divisor) const
{
    if (divisor.is_constant()) {
        if (divisor.is(0)) return std::nullopt;
        std::vector<Term> list = terms();
        for (Term& t : list) {
            const std::optional<int64_t> q = divided(t.coefficient, divisor.constant_);
            if (!q) return std::nullopt;
            t.coefficient = *q;
        }
        return of_terms(std::move(list));
    }
    const Term& lead = divisor.terms_->list.front();
    Extent rest = *this, quotient = 0;
    for (int guard = 0; guard < 64; guard++) {
        const std::vector<Term> list = rest.terms();
        if (list.empty()) return quotient;
        const std::optional<int64_t> q = divided(list[0].coefficient, lead.coefficient);
        if (!q) return std::nullopt;
        if (!std::includes(list[0].variables.begin(), list[0].variables.end(), lead.variables.begin(), lead.variables.end()))
            return std::nullopt;
        Term t{*q, {}};
        std::set_difference(list[0].variables.begin(), list[0].variables.end(), lead.variables.begin(), lead.variables.end(),
                            std::back_inserter(t.variables));
        const Extent part = of_terms({t});
        quotient = quotient + part;
        rest = rest - part * divisor;
    }
    return std::nullopt;
}

uint64_t Extent::hash() const
{
    if (!terms_) return mixed(0x51ed27, uint64_t(constant_));
    uint64_t h = 0xa076;
    for (const Term& t : terms_->list) {
        h = mixed(h, uint64_t(t.coefficient));
        for (const int32_t v : t.variables) h = mixed(h, uint64_t(v) + 17);
    }
    return h;
}

std::string Extent::text() const
{
    if (!terms_) return std::to_string(constant_);
    std::string s;
    for (const Term& t : terms_->list) {
        std::string part;
        for (const int32_t v : t.variables) part += (part.empty() ? "" : "*") + (terms_->list.size() == 1 && t.coefficient == 1 ? std::to_string(-1 - v) : "(" + std::to_string(-1 - v) + ")");
        if (t.coefficient != 1 || part.empty()) part = std::to_string(t.coefficient) + (part.empty() ? "" : "*" + part);
        s += (s.empty() || part[0] == '-' ? "" : "+") + part;
    }
    return s;
}

bool operator==(const Extent& a, const Extent& b)
{
    if (a.is_constant() != b.is_constant()) return false;
    if (a.is_constant()) return a.constant_ == b.constant_;
    return a.terms_ == b.terms_ || a.terms_->list == b.terms_->list;
}

Extent operator+(const Extent& a, const Extent& b)
{
    if (a.is_constant() && b.is_constant()) return added(a.constant_, b.constant_);
    std::vector<Term> list = a.terms(), more = b.terms();
    list.insert(list.end(), more.begin(), more.end());
    return Extent::of_terms(std::move(list));
}

Extent operator-(const Extent& a, const Extent& b) { return a + b * Extent(-1); }

Extent operator*(const Extent& a, const Extent& b)
{
    if (a.is_constant() && b.is_constant()) return multiplied(a.constant_, b.constant_);
    if (a.is(1)) return b;
    if (b.is(1)) return a;
    const std::vector<Term> left = a.terms(), right = b.terms();
    if (left.size() * right.size() > Extent::MAX_TERMS) too_many_terms();
    std::vector<Term> list;
    for (const Term& x : left)
        for (const Term& y : right)
            list.push_back({multiplied(x.coefficient, y.coefficient), merged(x.variables, y.variables)});
    return Extent::of_terms(std::move(list));
}

// In a clause that catches: the fault again, with the shape that led to it.
[[noreturn]] static void rethrow(const Error& e, std::span<const Extent> dims) { throw Error(e.status, text(text_of(dims), " is too large: ", e.text)); }

Extent product(std::span<const Extent> extents)
try {
    Extent p = 1;
    for (const Extent& e : extents) p = p * e;
    return p;
} catch (const Error& e) {
    rethrow(e, extents);
}

std::string text_of(std::span<const Extent> extents)
{
    std::string s = "[";
    for (const Extent& e : extents) s += (s.size() > 1 ? ", " : "") + e.text();
    return s + "]";
}

Extents dense_strides(std::span<const Extent> dims)
try {
    Extents strides(dims.size());
    Extent next = 1;
    for (size_t i = dims.size(); i-- > 0;) {
        strides[i] = next;
        next = next * dims[i];
    }
    return strides;
} catch (const Error& e) {
    rethrow(e, dims);
}

Shape::Shape(Extents dims_) : dims(std::move(dims_))
{
    hash = dims.size() + 1;
    for (const Extent& e : dims) hash = mixed(hash, e.hash());
}

}  // namespace ng
