// Extents with lengths in them: sums of products of whole numbers and lengths, equal when they are equal for all lengths.
#pragma once
#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace programs {

using Dims = std::vector<int64_t>;

class Polynomial {
  public:
    Polynomial(int64_t constant = 0) { if (constant) terms_[{}] = constant; }
    static Polynomial length(int k)                      // k: 0 is the length that ng.h calls -1
    {
        Polynomial p;
        p.terms_[{k}] = 1;
        return p;
    }
    // A dim as ng.h writes it.
    static Polynomial of_dim(int64_t dim) { return dim < 0 ? length(int(-1 - dim)) : Polynomial(dim); }

    bool operator==(const Polynomial&) const = default;
    bool is_constant() const { return terms_.empty() || (terms_.size() == 1 && terms_.begin()->first.empty()); }
    bool is(int64_t v) const { return is_constant() && constant() == v; }
    int64_t constant() const { return terms_.empty() ? 0 : terms_.begin()->second; }
    // The dim of ng.h, where it has one.
    std::optional<int64_t> dim() const
    {
        if (is_constant()) return constant();
        if (terms_.size() == 1 && terms_.begin()->second == 1 && terms_.begin()->first.size() == 1) return -1 - int64_t(terms_.begin()->first[0]);
        return std::nullopt;
    }
    int64_t value(const Dims& lengths) const
    {
        int64_t sum = 0;
        for (const auto& [lengths_of, coefficient] : terms_) {
            int64_t product = coefficient;
            for (const int k : lengths_of) product *= lengths[size_t(k)];
            sum += product;
        }
        return sum;
    }
    Polynomial operator+(const Polynomial& other) const
    {
        Polynomial r = *this;
        for (const auto& [k, v] : other.terms_) r.add(k, v);
        return r;
    }
    Polynomial operator-(const Polynomial& other) const { return *this + other * Polynomial(-1); }
    Polynomial operator*(const Polynomial& other) const
    {
        Polynomial r;
        for (const auto& [k, v] : terms_)
            for (const auto& [l, w] : other.terms_) {
                std::vector<int> both = k;
                both.insert(both.end(), l.begin(), l.end());
                std::sort(both.begin(), both.end());
                r.add(both, v * w);
            }
        return r;
    }
    // By one term; nothing where it leaves a rest.
    std::optional<Polynomial> divided_by(const Polynomial& other) const
    {
        if (other.terms_.size() != 1) return std::nullopt;
        const auto& [lengths_of, by] = *other.terms_.begin();
        Polynomial r;
        for (const auto& term : terms_) {
            std::vector<int> k = term.first;
            for (const int one : lengths_of) {
                const auto at = std::find(k.begin(), k.end(), one);
                if (at == k.end()) return std::nullopt;
                k.erase(at);
            }
            if (term.second % by) return std::nullopt;
            r.add(k, term.second / by);
        }
        return r;
    }

  private:
    void add(const std::vector<int>& k, int64_t v)
    {
        if ((terms_[k] += v) == 0) terms_.erase(k);
    }
    std::map<std::vector<int>, int64_t> terms_;
};

using Extents = std::vector<Polynomial>;
inline Polynomial product_of(const Extents& dims)
{
    Polynomial p = 1;
    for (const Polynomial& d : dims) p = p * d;
    return p;
}
inline Dims values_of(const Extents& dims, const Dims& lengths)
{
    Dims v;
    for (const Polynomial& d : dims) v.push_back(d.value(lengths));
    return v;
}
inline int64_t count_of(const Dims& dims)
{
    int64_t n = 1;
    for (const int64_t d : dims) n *= d;
    return n;
}

}  // namespace programs
