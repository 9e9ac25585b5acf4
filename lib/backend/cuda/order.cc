// Submissions numbered, touched addresses remembered, and streams held by each other's events.
#include "lib/backend/cuda/order.h"

#include <algorithm>

namespace ng::cuda {
namespace {

const auto PER_THREAD_STREAM = reinterpret_cast<CUstream>(uintptr_t(2));     // CU_STREAM_PER_THREAD

}  // namespace

StreamOrder::StreamOrder(const DeviceContext& home, CUstream own, bool orders, uint64_t before)
    : home_(home), own_(own), orders_(orders), slots_(std::make_unique<Slot[]>(MOST)), number_(before)
{
    (void)slot_of(own, "ng_ctx_create");
}

size_t StreamOrder::slot_of(CUstream s, const char* who)
{
    const CUstream native = native_of(s);
    size_t at = used_;
    for (size_t i = used_; i-- > 0;) {
        if (slots_[i].id && slots_[i].native == native) return i;
        if (!slots_[i].id) at = i;
    }
    if (at == MOST) throw Error(NG_E_LIMIT, text(who, ": the context remembers ", MOST, " streams already; ng_ctx_sync forgets one"));
    if (native == PER_THREAD_STREAM) throw Error(NG_E_INVALID, text(who, ": s is CU_STREAM_PER_THREAD, another stream for each thread; make one and pass that"));
    if (at != 0) {
        CUcontext of = nullptr;
        const CurrentContext now(home_);
        home_.driver().cuStreamGetCtx(native, &of);
        if (of != home_.native()) throw Error(NG_E_INVALID, text(who, ": s is a stream of another CUcontext"));
    }
    Slot& slot = slots_[at];
    slot.native = native, slot.id = slot.last = ++number_;
    slot.over = slot.id, slot.waited.fill(0), slot.waited_id.fill(0);
    slot.capture = slot.first_captured = slot.last_captured = 0;
    used_ = std::max(used_, at + 1), alive_++;
    return at;
}

StreamOrder::Slot* StreamOrder::find(uint64_t id) noexcept
{
    Slot* const slot = std::find_if(slots_.get(), slots_.get() + used_, [&](const Slot& s) { return s.id == id; });
    return slot == slots_.get() + used_ ? nullptr : slot;
}

void StreamOrder::need(CUstream s, const char* who)
{
    if (!s) return;
    const std::lock_guard hold(lock_);
    (void)slot_of(s, who);
}

void StreamOrder::lend() noexcept
{
    const std::lock_guard hold(lock_);
    if (!slots_ || is_lent_.exchange(true)) return;
    const CurrentContext now(home_, std::nothrow);
    const RelaxedCapture relaxed(home_.driver());
    if (now && slots_[0].last != slots_[0].id) try_record(slots_[0]);
}

bool StreamOrder::is_own_captured() const noexcept
{
    if (!is_lent_.load(std::memory_order_relaxed)) return false;
    const CurrentContext now(home_, std::nothrow);
    return now && !may_record(own_);
}

// What another thread has queued on it since that number was not waited for. The context's own stays. So does what was marked in
// a capture that goes on, for others may still join that, or may ask to where it was spoilt.
void StreamOrder::forget(uint64_t id, uint64_t number)
{
    Slot* const slot = find(id);
    const uint64_t capture = slot && slot->capture ? capture_of(slot->native) : 0;
    const bool is_marked = slot && slot->capture && (capture ? capture == slot->capture : !may_record(slot->native));
    if (slot && slot != &slots_[0] && slot->last == number && !is_marked) slot->id = 0, slot->native = nullptr, alive_--;
}

void StreamOrder::forget_all() noexcept
{
    const std::lock_guard hold(lock_);
    slots_ = nullptr, used_ = alive_ = 0, is_lent_ = false;
}

// ---- what is queued ---------------------------------------------------------------------------------------------------

void StreamOrder::open(CUstream s)
{
    lock_.lock();
    try {
        if (!slots_) throw Error(NG_E_LOST, "the context is closed");
        now_.emplace(home_);
        current_ = slot_of(s, "a stream");
        is_capturing_ = is_captured(slots_[current_].native);
        if (!is_capturing_) slots_[current_].last = ++number_;
    } catch (...) {
        now_.reset();
        lock_.unlock();
        throw;
    }
}

// What a capture gathers runs when its graph is launched, in an order that is the host's.
void StreamOrder::touch(CudaTrack& track, const char* begin, const char* end, bool writes, bool is_ours)
{
    if (is_capturing_) return;
    Slot& mine = slots_[current_];
    // A loop's next turn: no other stream was here, and this one came before.
    CudaTrack::Entry* before = nullptr;
    bool is_alone = true;
    for (size_t i = 0; i < track.count_; i++) {
        CudaTrack::Entry& e = track.entries_[i];
        is_alone &= e.stream == mine.id;
        if (e.begin == begin && e.end == end && e.writes == writes && e.is_ours == is_ours) before = &e;
    }
    if (is_alone && before) {
        before->number = mine.last;
        return;
    }
    const auto conflicts = [&](const CudaTrack::Entry& e) { return e.begin < end && begin < e.end && (e.writes || writes); };
    // Who waited for all that conflicts stands for it. Where nobody waits a stream's latest work stands for its earlier, wherever that was.
    const bool waits = orders_ || is_ours;
    const auto is_covered = [&](const CudaTrack::Entry& e) {
        if (!waits) return e.stream == mine.id && !e.is_ours;
        return begin <= e.begin && e.end <= end && (writes || (!e.writes && e.stream == mine.id));
    };
    const bool is_full = track.count_ == CudaTrack::ROOM;
    // All waits first: one that fails leaves what is remembered as it was.
    for (size_t i = 0; i < track.count_; i++) {
        const CudaTrack::Entry& e = track.entries_[i];
        Slot* const slot = find(e.stream);
        if (slot && (is_full || (conflicts(e) && (waits || e.is_ours)))) wait(*slot, e.number);
    }
    size_t kept = 0;
    for (size_t i = 0; i < track.count_; i++) {
        const CudaTrack::Entry e = track.entries_[i];
        Slot* const slot = find(e.stream);
        if (!slot) continue;                                    // forgotten, and done before that
        const bool is_over = is_full || is_covered(e);
        if (!is_over) track.entries_[kept++] = e;
        else if (is_full || !waits) begin = std::min(begin, e.begin), end = std::max(end, e.end), writes |= is_full || e.writes, is_ours |= e.is_ours;
    }
    track.entries_[kept] = {begin, end, mine.id, mine.last, writes, is_ours};
    track.count_ = kept + 1;
}

void StreamOrder::done(CudaTrack& track, const char* begin, const char* end)
{
    if (is_capturing_) return;
    const Slot& mine = slots_[current_];
    bool is_known = false;
    for (size_t i = 0; i < track.count_; i++) {
        CudaTrack::Entry& e = track.entries_[i];
        if (e.stream == mine.id && e.begin < end && begin < e.end) e.number = mine.last, is_known = true;
    }
    if (!is_known) touch(track, begin, end, true, false);
}

// By an event of its own: those that are kept end submissions, and both of these go on. Where that fails the host waits: what
// is queued there already goes on whoever is told of a fault.
void StreamOrder::follow(const StreamOrder& other)
{
    if (is_capturing_ || other.is_capturing_) return;
    try {
        const Event now(home_);
        now.record(other.stream());
        now.hold(stream());
    } catch (const Error& error) {
        if (error.status == NG_E_LOST) throw;
        const RelaxedCapture relaxed(home_.driver());
        home_.driver().cuStreamSynchronize(other.stream());
    }
}

void StreamOrder::note(std::string_view tag) noexcept
{
    if (is_capturing_) return;
    Flight& f = flights_[next_flight_++ % FLIGHTS];
    f.stream = slots_[current_].id, f.number = slots_[current_].last;
    const size_t length = std::min(tag.size(), f.tag.size() - 1);
    tag.copy(f.tag.data(), length);
    f.tag[length] = 0;
}

void StreamOrder::close() noexcept
{
    if ((alive_ > 1 || is_lent_) && !is_capturing_) try_record(slots_[current_]);
    now_.reset();
    lock_.unlock();
}

}  // namespace ng::cuda
