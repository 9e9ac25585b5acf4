// A hash table to small numbers in which keys that follow each other lie beside each other, since look-ups are most of a
// big graph's cost and come in the order of the keys.
#pragma once
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace ng {

// The slots where a key may stand: one after the other for the first `near`, from there by leaps of the key's own.
struct Probe {
    std::size_t at, mask, leap;
    int         near;
    Probe(uint64_t order, int near_, uint64_t hash, std::size_t mask_) : at(order & mask_), mask(mask_), leap((hash * 0x9E3779B97F4A7C15u >> 32) | 1), near(near_) {}
    void next() { at = (at + (--near > 0 ? 1 : leap)) & mask; }
};

// Open addressing. Order::of(key): 32 bits, near each other for keys that are asked for one after the other. NONE: no key.
template <class Key, class Order, Key NONE>
class FlatMap {
  public:
    FlatMap() : slots_(64, Slot{NONE, 0, 0}) {}

    // The key's number, or null.
    int32_t* find(Key key)
    {
        Slot& s = slots_[place(key, Order::of(key))];
        return s.key == key && s.value != GONE ? &s.value : nullptr;
    }
    const int32_t* find(Key key) const { return const_cast<FlatMap*>(this)->find(key); }
    // The key's number; `fresh`, and true, where it had none.
    std::pair<int32_t*, bool> try_emplace(Key key, int32_t fresh)
    {
        if (2 * (count_ + 1) > slots_.size()) grow();
        Slot& s = slots_[place(key, Order::of(key))];
        if (s.key == key && s.value != GONE) return {&s.value, false};
        count_ += s.key != key;
        s = {key, fresh, Order::of(key)};
        return {&s.value, true};
    }
    // The slot stays taken until the table grows: others may lie behind it.
    void erase(Key key)
    {
        if (int32_t* value = find(key)) *value = GONE;
    }

  private:
    struct Slot {
        Key      key;
        int32_t  value;
        uint32_t order;
    };

    static constexpr int32_t GONE = INT32_MIN;       // no number is this one

    static uint64_t hash_of(uint64_t key) { return key; }
    static uint64_t hash_of(const void* key) { return reinterpret_cast<uintptr_t>(key); }
    std::size_t place(Key key, uint32_t order) const
    {
        Probe probe(order, 1, hash_of(key), slots_.size() - 1);
        while (slots_[probe.at].key != key && slots_[probe.at].key != NONE) probe.next();
        return probe.at;
    }
    void grow()
    {
        std::vector<Slot> old(slots_.size() * 2, Slot{NONE, 0, 0});
        old.swap(slots_);
        count_ = 0;
        for (const Slot& s : old)
            if (s.key != NONE && s.value != GONE) slots_[place(s.key, s.order)] = s, count_++;
    }
    std::vector<Slot> slots_;
    std::size_t       count_ = 0;
};

}  // namespace ng
