// A hash table of 64-bit keys to small numbers: open addressing, and keys that follow each other lie beside each other,
// since look-ups are most of a big graph's cost and come in the order of the keys.
#pragma once
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace ng {

class FlatMap {
  public:
    FlatMap() : slots_(64, Slot{NONE, 0}) {}

    // The key's number, or null. No key is ~0.
    int32_t* find(uint64_t key)
    {
        Slot& s = slots_[place(key)];
        return s.key == key ? &s.value : nullptr;
    }
    const int32_t* find(uint64_t key) const { return const_cast<FlatMap*>(this)->find(key); }
    // The key's number; `fresh`, and true, where it had none.
    std::pair<int32_t*, bool> try_emplace(uint64_t key, int32_t fresh)
    {
        if (2 * (count_ + 1) > slots_.size()) grow();
        Slot& s = slots_[place(key)];
        if (s.key == key) return {&s.value, false};
        s = {key, fresh};
        count_++;
        return {&s.value, true};
    }
    // Only of the key that was added last, of those that are there: probing needs no tombstones then.
    void erase_last(uint64_t key)
    {
        Slot& s = slots_[place(key)];
        if (s.key == key) s.key = NONE, count_--;
    }

  private:
    struct Slot { uint64_t key; int32_t value; };
    static constexpr uint64_t NONE = ~uint64_t(0);

    std::size_t place(uint64_t key) const
    {
        const std::size_t mask = slots_.size() - 1;
        std::size_t at = (key + (key >> 32) * 0x9E3779B1u) & mask;
        while (slots_[at].key != key && slots_[at].key != NONE) at = (at + 1) & mask;
        return at;
    }
    void grow()
    {
        std::vector<Slot> old(slots_.size() * 2, Slot{NONE, 0});
        old.swap(slots_);
        for (const Slot& s : old)
            if (s.key != NONE) slots_[place(s.key)] = s;
    }
    std::vector<Slot> slots_;
    std::size_t            count_ = 0;
};

inline uint64_t key_of(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer) >> 4; }

}  // namespace ng
