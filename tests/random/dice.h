// Draws that are the same on every machine: a generator of 64-bit words and what a test asks of it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <vector>

namespace programs {

// SplitMix64 (Steele, Lea & Flood 2014).
class Dice {
  public:
    explicit Dice(uint64_t seed) : state_(seed) {}
    uint64_t word()
    {
        uint64_t z = state_ += 0x9e3779b97f4a7c15u;
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
        z = (z ^ z >> 27) * 0x94d049bb133111ebu;
        return z ^ z >> 31;
    }
    // low .. high, both included
    int64_t within(int64_t low, int64_t high) { return low + int64_t(word() % uint64_t(high - low + 1)); }
    int     below(size_t count) { return int(word() % count); }
    bool    chance(int percent) { return within(0, 99) < percent; }
    double  unit() { return double(word() >> 11) * 0x1p-53; }
    double  within_real(double low, double high) { return low + (high - low) * unit(); }
    template <class T> const T& of(const std::vector<T>& list) { return list[size_t(below(list.size()))]; }
    template <class T> T of(std::initializer_list<T> list) { return list.begin()[size_t(below(list.size()))]; }

  private:
    uint64_t state_;
};

}  // namespace programs
