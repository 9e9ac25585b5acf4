// The process's heap under watch: blocks counted, and the n-th allocation of a stretch refused. Link watched_heap.cc.
#pragma once
#include <cstdint>

namespace harm::heap {

enum class Refusal { None, One, AllFrom };
// From now on allocations of every thread are counted; the n-th, counted from 1, fails: alone, or with all behind it.
void arm(Refusal refusal = Refusal::None, uint64_t n = 0);
// The end of that; how many allocations were asked for since.
uint64_t disarm();
bool     has_refused();          // since the last arm
int64_t  live_blocks();          // allocated and not freed, by whomever, since the process began
int64_t  mapped_bytes();         // mapped and not unmapped, but by the C library for itself
// The host's own work in between is not counted: a callback's.
class Uncounted {
  public:
    Uncounted();
    ~Uncounted();

  private:
    bool was_armed_;
};

}  // namespace harm::heap
