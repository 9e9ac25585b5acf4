// What goes between memory and the caches while a block is computed: lines that the next one reads, and results of the last one.
#pragma once
#include "lib/backend/cpu/block.h"

#include <algorithm>

namespace ng::cpu {

// Asks for memory that will be read. Inlined, for GCC drops calls of a function that does nothing else.
__attribute__((always_inline)) inline void fetch(const char* from, int64_t bytes)
{
    for (int64_t done = 0; done < bytes; done += 64) __builtin_prefetch(from + done);
}
// All that the next block reads.
void fetch_ahead(Frame& frame) noexcept;
// So many bytes of what the next block reads, and of what the outbox holds: a core waits where more lines are asked for at once than it
// can have under way.
void pass_on(Frame& frame, int64_t bytes) noexcept;

// What a block writes past the caches, while what the next one reads is asked for: each waits for memory, so they take turns.
class Stream {
  public:
    static constexpr int64_t TURN = 64;                // elements

    Stream(const Block& b, const Instruction& store);
    bool is_open() const { return loop_; }
    // Whether the frame's outbox takes the results instead, as they are in registers.
    bool has_outbox() const { return b_.frame.outbox && bytes_of(store_.operand) == store_.memory_bytes; }
    void post() const { b_.frame.behind = {out_, b_.frame.outbox, b_.count * store_.memory_bytes}; }
    // Elements first .. first + count - 1 of the block, both multiples of TURN.
    void write(const char* in, int64_t first, int64_t count) const;

  private:
    const Block&       b_;
    const Instruction& store_;
    StreamLoop         loop_ = nullptr;
    char*              out_ = nullptr;
};

// A map of one or two operands, by its loop for `mode`.
struct PlainMap {
    const Instruction& i;
    MapLoop            loop;
    const char* const* in;
    int                mode;
    void run(char* out, int64_t first, int64_t count) const
    {
        const int64_t bytes = bytes_of(i.operand);
        const auto    from = [&](int k) { return i.arity <= k ? nullptr : mode >> k & 1 ? in[k] : in[k] + first * bytes; };
        loop(out, from(0), from(1), nullptr, count);
    }
};
// A function of many instructions, in pieces with what waits for memory between them.
void map_slowly(const Block& b, const PlainMap& map, char* out) noexcept;
// A map and the store behind it.
void map_past_caches(const Block& b, const PlainMap& map, const Stream& stream) noexcept;

}  // namespace ng::cpu
