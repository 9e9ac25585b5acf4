// What random programs draw: numbers in ranges, chances, one of a list.
#pragma once
#include "tests/split_mix.h"

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <vector>

namespace programs {

class Dice : public SplitMix {
  public:
    using SplitMix::SplitMix;
    // low .. high, both included
    int64_t within(int64_t low, int64_t high) { return low + int64_t(word() % uint64_t(high - low + 1)); }
    int     below(size_t count) { return int(word() % count); }
    bool    chance(int percent) { return within(0, 99) < percent; }
    double  unit() { return double(word() >> 11) * 0x1p-53; }
    double  within_real(double low, double high) { return low + (high - low) * unit(); }
    template <class T> const T& of(const std::vector<T>& list) { return list[size_t(below(list.size()))]; }
    template <class T> T of(std::initializer_list<T> list) { return list.begin()[size_t(below(list.size()))]; }
};

}  // namespace programs
