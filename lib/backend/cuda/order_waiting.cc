// The host waits: for memory, for marks, for streams; and streams for marks.
#include "lib/backend/cuda/order.h"

#include "lib/deadline.h"

#include <algorithm>
#include <span>

namespace ng::cuda {
namespace {

// A mark is a submission's number and its stream's slot: at a thousand million a second good for nine years.
constexpr uint64_t MOST_NUMBER = UINT64_MAX / StreamOrder::MOST - 1;

}  // namespace

bool StreamOrder::is_over(Slot& slot, uint64_t number)
{
    if (number <= slot.over) return true;
    const Recorded* const after = event_after(slot, number);
    if (!after || !after->event->is_done()) return false;
    slot.over = std::max(slot.over, after->number);
    return true;
}

// Where no event can be had the stream itself is asked. A device that answers no more has nothing under way.
bool StreamOrder::is_surely_over(Slot& slot, uint64_t number) noexcept
{
    try {
        return is_over(slot, number);
    } catch (const Error& error) {
        if (error.status == NG_E_LOST) return true;
    } catch (const std::bad_alloc&) {
    }
    return may_record(slot.native) && home_.driver().cuStreamQuery.quiet(slot.native) != CUDA_ERROR_NOT_READY;
}

// Asking and waiting would spoil what another thread captures, were it not relaxed.
bool StreamOrder::is_idle(CudaTrack& track) noexcept
{
    const std::lock_guard hold(lock_);
    const CurrentContext now(home_, std::nothrow);
    if (!now || !slots_) return true;
    const RelaxedCapture relaxed(home_.driver());
    size_t kept = 0;
    for (size_t i = 0; i < track.count_; i++) {
        Slot* const slot = find(track.entries_[i].stream);
        if (slot && !is_surely_over(*slot, track.entries_[i].number)) track.entries_[kept++] = track.entries_[i];
    }
    track.count_ = kept;
    return kept == 0;
}

void StreamOrder::wait_until_idle(CudaTrack& track) noexcept
{
    const Deadline never(UINT64_MAX);
    for (int turn = 0; !is_idle(track); turn++) (void)never.wait(turn);
}

// In a capture the mark is for those that join it, and kept apart.
uint64_t StreamOrder::mark(CUstream s)
{
    const std::lock_guard hold(lock_);
    const CurrentContext now(home_);
    const size_t at = slot_of(s, "ng_mark");
    Slot& slot = slots_[at];
    if (number_ >= MOST_NUMBER) throw Error(NG_E_LIMIT, text("ng_mark: the context has seen ", number_, " submissions, and marks tell no more apart; make another"));
    const uint64_t number = ++number_;
    if (is_captured(slot.native)) {
        const uint64_t capture = capture_of(slot.native);
        if (!capture) refuse_spoilt("ng_mark");
        if (!slot.captured) slot.captured.emplace(home_);
        slot.captured->record(slot.native);
        if (slot.capture != capture) slot.capture = capture, slot.first_captured = number;
        slot.last_captured = number;
    } else {
        record(slot, number, true);
    }
    return number * MOST + at;
}

// Null: the stream was forgotten, all that it had is done.
StreamOrder::Slot* StreamOrder::slot_of_mark(uint64_t mark, uint64_t& number, const char* who)
{
    const size_t at = mark % MOST;
    number = mark / MOST;
    Slot* const slot = at < used_ && slots_[at].id && slots_[at].id < number ? &slots_[at] : nullptr;
    if (!number || number > number_ || at >= used_ || (slot && number > std::max(slot->last, slot->last_captured)))
        throw Error(NG_E_INVALID, text(who, ": ", mark, " is no mark that ng_mark gave for this context"));
    return slot;
}

// Asked for at each turn: what was kept when a long wait began may be of later work by now. False: the time was over first.
bool StreamOrder::wait_until_over(uint64_t id, uint64_t number, const Deadline& deadline, const char* who)
{
    for (int turn = 0;; turn++) {
        const Event* event = nullptr;
        {
            const std::lock_guard hold(lock_);
            Slot* const slot = find(id);
            if (!slot || number <= slot->over) break;
            const Recorded* const after = event_after(*slot, number);
            if (!after) throw Error(NG_E_UNSUPPORTED, text(who, ": ", UNMARKED));
            event = &*after->event;
        }
        if (deadline.is_never()) event->wait();
        if (deadline.is_never() || event->is_done()) break;
        if (!deadline.wait(turn)) return false;
    }
    const std::lock_guard hold(lock_);
    landed(id, number);
    return true;
}

ng_status StreamOrder::wait_for(uint64_t mark, uint64_t timeout_ns, const char* who)
{
    uint64_t stream, number;
    {
        const std::lock_guard hold(lock_);
        Slot* const slot = slot_of_mark(mark, number, who);
        if (!slot) return NG_OK;
        stream = slot->id, number = std::min(number, slot->last);        // marked in a capture: what came before that
    }
    const CurrentContext now(home_);
    const RelaxedCapture relaxed(home_.driver());
    return wait_until_over(stream, number, Deadline(timeout_ns), who) ? NG_OK : NG_NOT_READY;
}

// A mark of a capture that goes on takes s into it; where that was spoilt, what is meant for its graph must not run. Of one that
// has ended, it stands for what came before it.
void StreamOrder::hold(CUstream s, uint64_t mark, const char* who)
{
    open(s);
    struct Close {
        StreamOrder& order;
        ~Close() { order.close(); }
    } close{*this};
    uint64_t number;
    Slot* const slot = slot_of_mark(mark, number, who);
    Slot& mine = slots_[current_];
    if (!slot || slot == &mine) return;
    if (number >= slot->first_captured && number <= slot->last_captured && is_captured(slot->native)) {
        const uint64_t capture = capture_of(slot->native);
        if (!capture) refuse_spoilt(who);
        if (capture == slot->capture) {
            if (!is_capturing_) record(mine, mine.last);     // it cannot later
            slot->captured->hold(mine.native);
            is_capturing_ = true;
            return;
        }
    }
    number = std::min(number, slot->last);
    if (number == slot->id || has_waited(*slot, number)) return;
    if (is_capturing_) throw Error(NG_E_INVALID, text(who, ": s captures, and the mark is of work outside its capture; let s wait before that begins"));
    wait(*slot, number);
}

// All that the stream holds so far, the host's own work as well. A look records nothing: who looks often would fill the stream.
StreamOrder::Awaited StreamOrder::latest(Slot& slot, uint64_t timeout_ns)
{
    Awaited a = {slot.id, slot.last, slot.last <= slot.over, false, nullptr};
    if (!may_record(slot.native)) {
        a.has_event = a.is_over || event_after(slot, slot.last);
        return a;
    }
    a.is_over = !Deadline(timeout_ns).is_never() && cuda::is_idle(home_, slot.native);
    if (a.is_over || !timeout_ns) return a;
    try {
        a.number = record(slot, ++number_).number, a.has_event = true;
    } catch (const Error& error) {
        if (error.status == NG_E_LOST) throw;
        a.native = slot.native;
    }
    return a;
}

bool StreamOrder::wait_until_over(const Awaited& a, const Deadline& deadline)
{
    if (a.is_over || a.has_event) return a.is_over || wait_until_over(a.id, a.number, deadline, "ng_ctx_sync");
    for (int turn = 0; a.native && may_record(a.native) && !cuda::is_idle(home_, a.native); turn++)
        if (!deadline.wait(turn)) return false;
    return a.native && may_record(a.native);
}

ng_status StreamOrder::sync(CUstream s, bool all, uint64_t timeout_ns)
{
    const Deadline deadline(timeout_ns);
    std::array<Awaited, MOST> awaited;
    size_t count = 0;
    std::optional<Error> fault;
    const auto attempt = [&](auto&& call) {
        try {
            call();
        } catch (const Error& error) {
            if (!fault) fault = error;
        }
    };
    std::unique_lock hold(lock_);
    if (!slots_) return NG_OK;               // after forget_all() there is no context to be current
    const CurrentContext now(home_);
    const RelaxedCapture relaxed(home_.driver());
    for (size_t i = 0; i < used_; i++)
        if (slots_[i].id && (all || slots_[i].native == native_of(s))) attempt([&] { awaited[count] = latest(slots_[i], timeout_ns), count++; });
    hold.unlock();
    bool is_ready = true;
    for (const Awaited& a : std::span(awaited.data(), count))
        attempt([&] {
            if (!wait_until_over(a, deadline)) return void(is_ready = false);
            const std::lock_guard again(lock_);
            landed(a.id, a.number);
            if (!all) forget(a.id, a.number);
        });
    if (fault) throw *fault;
    return is_ready ? NG_OK : NG_NOT_READY;
}

}  // namespace ng::cuda
