// Submissions numbered, touched addresses remembered, and streams held by each other's events.
#include "lib/backend/cuda/order.h"

#include "lib/deadline.h"

#include <algorithm>
#include <span>

namespace ng::cuda {
namespace {

// A mark is a submission's number and its stream's slot: at a thousand million a second good for nine years.
constexpr uint64_t MOST_NUMBER = UINT64_MAX / StreamOrder::MOST - 1;

constexpr const char* UNMARKED = "a stream captures, and no event tells of what it got before; call ng_mark before its capture begins, or end that first";

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
    slot.recorded.fill(0), slot.waited.fill(0), slot.waited_id.fill(0);
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

// What another thread has queued on it since that number was not waited for. The context's own stays.
void StreamOrder::forget(uint64_t id, uint64_t number)
{
    Slot* const slot = find(id);
    const bool is_marked = slot && slot->capture && capture_of(slot->native) == slot->capture;         // others may still join that capture
    if (slot && slot != &slots_[0] && slot->last == number && !is_marked) slot->id = 0, slot->native = nullptr, alive_--;
}

void StreamOrder::forget_all() noexcept
{
    const std::lock_guard hold(lock_);
    slots_ = nullptr, used_ = alive_ = 0, is_lent_ = false;
}

// ---- events -----------------------------------------------------------------------------------------------------------

// Whether an event recorded there is of work that runs: neither in a capture nor, on the legacy stream, beside one.
bool StreamOrder::may_record(CUstream native) const noexcept
{
    int state = CU_STREAM_CAPTURE_STATUS_NONE;
    const CUresult result = home_.driver().cuStreamIsCapturing.quiet(native, &state);
    return result != CUDA_ERROR_STREAM_CAPTURE_IMPLICIT && state == CU_STREAM_CAPTURE_STATUS_NONE;
}

// Which capture gathers what it gets; 0: none.
uint64_t StreamOrder::capture_of(CUstream native) const noexcept
{
    int state = CU_STREAM_CAPTURE_STATUS_NONE;
    uint64_t id = 0;
    const CUresult result = home_.driver().cuStreamGetCaptureInfo.quiet(native, &state, &id, nullptr, nullptr, nullptr);
    return result == CUDA_SUCCESS && state == CU_STREAM_CAPTURE_STATUS_ACTIVE ? id : 0;
}

const Event& StreamOrder::record(Slot& slot)
{
    const size_t at = slot.next;
    if (!slot.events[at]) slot.events[at].emplace(home_);
    slot.events[at]->record(slot.native);
    slot.recorded[at] = slot.last;
    slot.next = (at + 1) % EVENTS;
    return *slot.events[at];
}

// Without one, who waits records one, or is told what the driver says.
void StreamOrder::try_record(Slot& slot) noexcept
{
    try {
        record(slot);
    } catch (...) {
    }
}

// The earliest event that comes after this submission; null: there is none, and none can be recorded in a capture.
const Event* StreamOrder::event_after(Slot& slot, uint64_t number)
{
    size_t best = EVENTS;
    for (size_t i = 0; i < EVENTS; i++)
        if (slot.recorded[i] >= number && (best == EVENTS || slot.recorded[i] < slot.recorded[best])) best = i;
    if (best != EVENTS) return &*slot.events[best];
    return may_record(slot.native) ? &record(slot) : nullptr;
}

bool StreamOrder::has_waited(const Slot& slot, uint64_t number) const noexcept
{
    const Slot& mine = slots_[current_];
    const size_t other = size_t(&slot - slots_.get());
    return &slot == &mine || (mine.waited_id[other] == slot.id && mine.waited[other] >= number);
}

// What the open stream, which does not capture, gets from now on comes after that submission of another.
void StreamOrder::wait(Slot& slot, uint64_t number)
{
    if (has_waited(slot, number)) return;
    const Event* const event = event_after(slot, number);
    if (!event) throw Error(NG_E_UNSUPPORTED, UNMARKED);
    Slot& mine = slots_[current_];
    const size_t other = size_t(&slot - slots_.get());
    event->hold(mine.native);
    mine.waited_id[other] = slot.id, mine.waited[other] = number;
}

// ---- what is queued ---------------------------------------------------------------------------------------------------

void StreamOrder::open(CUstream s)
{
    lock_.lock();
    try {
        if (!slots_) throw Error(NG_E_LOST, "the context is closed");
        now_.emplace(home_);
        current_ = slot_of(s, "a stream");
        int state = CU_STREAM_CAPTURE_STATUS_NONE;
        is_capturing_ = home_.driver().cuStreamIsCapturing.quiet(slots_[current_].native, &state) == CUDA_SUCCESS && state == CU_STREAM_CAPTURE_STATUS_ACTIVE;
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

// By an event of its own: those that are kept end submissions, and both of these go on.
void StreamOrder::follow(const StreamOrder& other)
{
    if (is_capturing_ || other.is_capturing_) return;
    const Event now(home_);
    now.record(other.stream());
    now.hold(stream());
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

// ---- faults that come late ----------------------------------------------------------------------------------------------

// All that the stream got up to there is done.
void StreamOrder::landed(uint64_t stream, uint64_t number)
{
    for (Flight& f : flights_)
        if (f.stream == stream && f.number <= number) f.stream = 0;
}

std::string StreamOrder::under_way(bool is_open) const
{
    std::unique_lock hold(lock_, std::defer_lock);
    if (!is_open) hold.lock();
    std::string all;
    for (size_t i = 0; i < FLIGHTS; i++) {
        const Flight& f = flights_[(next_flight_ - 1 - i) % FLIGHTS];        // the latest first
        const std::string tag = text('"', f.tag.data(), '"');
        if (f.stream && all.find(tag) == all.npos) all += text(all.empty() ? "; under way were " : ", ", tag);
    }
    return all;
}

// ---- waiting ----------------------------------------------------------------------------------------------------------

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
        bool is_done = true;
        try {
            const Event* const event = slot ? event_after(*slot, track.entries_[i].number) : nullptr;
            is_done = !slot || (event && event->is_done());
        } catch (...) {
            // A device that answers no more has nothing under way.
        }
        if (!is_done) track.entries_[kept++] = track.entries_[i];
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
    const uint64_t capture = capture_of(slot.native), number = ++number_;
    if (capture) {
        if (!slot.captured) slot.captured.emplace(home_);
        slot.captured->record(slot.native);
        if (slot.capture != capture) slot.capture = capture, slot.first_captured = number;
        slot.last_captured = number;
    } else {
        slot.last = number;
        record(slot);
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

ng_status StreamOrder::wait_for(uint64_t mark, uint64_t timeout_ns, const char* who)
{
    const Event* event = nullptr;
    uint64_t stream, number;
    {
        const std::lock_guard hold(lock_);
        Slot* const slot = slot_of_mark(mark, number, who);
        if (!slot) return NG_OK;
        stream = slot->id, number = std::min(number, slot->last);
        if (number == stream) return NG_OK;              // marked in a capture, and nothing came before that
        const CurrentContext now(home_);
        event = event_after(*slot, number);
        if (!event) throw Error(NG_E_UNSUPPORTED, text(who, ": ", UNMARKED));
    }
    const CurrentContext now(home_);
    const RelaxedCapture relaxed(home_.driver());
    const Deadline deadline(timeout_ns);
    if (deadline.is_never()) event->wait();
    for (int turn = 0; !deadline.is_never() && !event->is_done(); turn++)
        if (!deadline.wait(turn)) return NG_NOT_READY;
    const std::lock_guard hold(lock_);
    landed(stream, number);
    return NG_OK;
}

// A mark of a capture that goes on takes s into it. Of one that has ended, it stands for what came before it.
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
    if (number >= slot->first_captured && number <= slot->last_captured && capture_of(slot->native) == slot->capture) {
        if (!is_capturing_) record(mine);                // it cannot later
        slot->captured->hold(mine.native);
        is_capturing_ = true;
        return;
    }
    number = std::min(number, slot->last);
    if (number == slot->id || has_waited(*slot, number)) return;
    if (is_capturing_) throw Error(NG_E_INVALID, text(who, ": s captures, and the mark is of work outside its capture; let s wait before that begins"));
    wait(*slot, number);
}

// All that the stream holds so far, the host's own work as well. A look records nothing: who looks often would fill the stream.
StreamOrder::Awaited StreamOrder::latest(Slot& slot, uint64_t timeout_ns)
{
    Awaited a = {nullptr, slot.id, slot.last, false};
    if (!may_record(slot.native)) {
        a.is_over = slot.last == slot.id;
        if (!a.is_over) a.event = event_after(slot, slot.last);
        return a;
    }
    a.is_over = !Deadline(timeout_ns).is_never() && cuda::is_idle(home_, slot.native);
    if (!a.is_over && timeout_ns) a.event = &record(slot);
    return a;
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
    const auto is_over = [&](const Awaited& a) {
        if (a.is_over || !a.event) return a.is_over;
        if (deadline.is_never()) return a.event->wait(), true;
        for (int turn = 0; !a.event->is_done(); turn++)
            if (!deadline.wait(turn)) return false;
        return true;
    };
    bool is_ready = true;
    for (const Awaited& a : std::span(awaited.data(), count))
        attempt([&] {
            if (!is_over(a)) return void(is_ready = false);
            hold.lock();
            landed(a.id, a.number);
            if (!all) forget(a.id, a.number);
            hold.unlock();
        });
    if (fault) throw *fault;
    return is_ready ? NG_OK : NG_NOT_READY;
}

}  // namespace ng::cuda
