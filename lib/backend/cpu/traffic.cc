// Spreads what waits for memory over what computes: a core that has many lines to write keeps all stores behind them waiting.
#include "lib/backend/cpu/traffic.h"

namespace ng::cpu {
namespace {

constexpr int64_t PIECE = 4 * Stream::TURN;            // elements of a map between which other things are done

}  // namespace

void fetch_ahead(Frame& frame) noexcept
{
    for (; frame.aheads > 0; frame.aheads--) fetch(frame.ahead[frame.aheads - 1].from, frame.ahead[frame.aheads - 1].bytes);
}

void pass_on(Frame& frame, int64_t bytes) noexcept
{
    if (frame.aheads) {
        Ahead&        ahead = frame.ahead[frame.aheads - 1];
        const int64_t part = std::min(bytes, ahead.bytes);
        fetch(ahead.from, part);
        ahead.from += part;
        ahead.bytes -= part;
        frame.aheads -= ahead.bytes == 0;
    }
    Behind&       behind = frame.behind;
    const int64_t part = std::min(bytes, behind.bytes);
    if (part == 0) return;
    frame.job->program.isa->stream[int(Dtype::u8)](behind.to, behind.from, part);
    behind.to += part;
    behind.from += part;
    behind.bytes -= part;
}

void empty_outbox(Frame& frame) noexcept
{
    pass_on(frame, frame.behind.bytes);
}

Stream::Stream(const Block& b, const Instruction& store) : b_(b), store_(store)
{
    if (!b.plan().is_streaming || b.plan().step[store.extra] != 1 || !b.buffer(store.buffer) || b.count % TURN != 0) return;
    char* const out = b.memory(store, store.extra);
    if (reinterpret_cast<uintptr_t>(out) % 64 == 0) out_ = out, loop_ = b.isa().stream[int(store.type)];
}

void Stream::write(const char* in, int64_t first, int64_t count) const
{
    const int64_t step = TURN * bytes_of(store_.operand);
    for (int64_t at = first; at < first + count; at += TURN, in += step) {
        for (int k = 0; k < b_.frame.aheads; k++) {
            const Ahead&  a = b_.frame.ahead[k];
            const int64_t from = at * a.element_bytes;
            fetch(a.from + from, std::min(TURN * a.element_bytes, a.bytes - from));
        }
        loop_(out_ + at * store_.memory_bytes, in, TURN);
    }
    if (first + count == b_.count) b_.frame.aheads = 0;
}

void map_slowly(const Block& b, const PlainMap& map, char* out) noexcept
{
    for (int64_t first = 0; first < b.count; first += PIECE) {
        map.run(out + first * map.i.bytes, first, std::min(PIECE, b.count - first));
        pass_on(b.frame, PIECE * map.i.bytes / 2);
    }
}

// A piece of the block after the other: memory has something to do while the next piece is computed. In turns with one behind the other,
// 256 MB by two threads on a Xeon (2026-11-22): softmax 47 to 60 ms instead of 53 to 64, x + y 37 to 42 instead of 38 to 44. Where another
// map is slow, results wait in the outbox until the next block's is at work.
void map_past_caches(const Block& b, const PlainMap& map, const Stream& stream) noexcept
{
    if (stream.has_outbox()) {
        empty_outbox(b.frame);
        map.run(b.frame.outbox, 0, b.count);
        fetch_ahead(b.frame);
        return stream.post();
    }
    char* const piece = b.frame.homes[map.i.out];
    for (int64_t first = 0, count; first < b.count; first += count) {
        count = std::min(PIECE, b.count - first);
        map.run(piece, first, count);
        stream.write(piece, first, count);
    }
}

}  // namespace ng::cpu
