// The events that tell what of a stream is over, and what was under way when a fault came.
#include "lib/backend/cuda/order.h"

#include <algorithm>

namespace ng::cuda {

// ---- events -----------------------------------------------------------------------------------------------------------

// Whether an event recorded there is of work that runs: neither in a capture nor, on the legacy stream, beside one.
bool StreamOrder::may_record(CUstream native) const noexcept
{
    int state = CU_STREAM_CAPTURE_STATUS_NONE;
    const CUresult result = home_.driver().cuStreamIsCapturing.quiet(native, &state);
    return result != CUDA_ERROR_STREAM_CAPTURE_IMPLICIT && state == CU_STREAM_CAPTURE_STATUS_NONE;
}

// Whether it is in a capture, spoilt or not: then nothing that it gets runs. The legacy stream beside one takes nothing, and
// what is tried there spoils that one: this says so instead.
bool StreamOrder::is_captured(CUstream native) const
{
    int state = CU_STREAM_CAPTURE_STATUS_NONE;
    const auto& ask = home_.driver().cuStreamIsCapturing;
    if (const CUresult result = ask.quiet(native, &state); result == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT) ask.fail(result);
    return state != CU_STREAM_CAPTURE_STATUS_NONE;
}

// Which capture gathers what it gets; 0: none, or it was spoilt.
uint64_t StreamOrder::capture_of(CUstream native) const noexcept
{
    int state = CU_STREAM_CAPTURE_STATUS_NONE;
    uint64_t id = 0;
    const CUresult result = home_.driver().cuStreamGetCaptureInfo.quiet(native, &state, &id, nullptr, nullptr, nullptr);
    return result == CUDA_SUCCESS && state == CU_STREAM_CAPTURE_STATUS_ACTIVE ? id : 0;
}

void StreamOrder::refuse_spoilt(const char* who) const
{
    throw Error(NG_E_INVALID, text(who, ": the capture was spoilt, so there will be no graph: ", home_.driver().describe(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED)));
}

StreamOrder::Recorded& StreamOrder::free_event(Slot& slot)
{
    const auto look = [&]() -> Recorded* {
        for (size_t i = 0; i < EVENTS; i++)
            if (Recorded& r = slot.events[(slot.next + i) % EVENTS]; r.number <= slot.over) return slot.next = (slot.next + i) % EVENTS, &r;
        return nullptr;
    };
    if (Recorded* const r = look()) return *r;
    make_room(slot);
    return *look();
}

// One look for many submissions: where half or a quarter of what is kept is over, that goes. Else the host is far ahead: those go that
// stand closest to the next, marks last, until a quarter went. Who waited for one of them waits for the next, which is never far.
void StreamOrder::make_room(Slot& slot)
{
    constexpr size_t QUARTER = EVENTS / 4;
    std::array<Recorded*, EVENTS> all;
    for (size_t i = 0; i < EVENTS; i++) all[i] = &slot.events[i];
    std::sort(all.begin(), all.end(), [](const Recorded* a, const Recorded* b) { return a->number < b->number; });
    const RelaxedCapture relaxed(home_.driver());
    for (const size_t count : {2 * QUARTER, QUARTER}) {
        if (home_.driver().cuEventQuery.quiet(all[count - 1]->event->native()) != CUDA_SUCCESS) continue;
        slot.over = all[count - 1]->number;
        return;
    }
    for (size_t count = EVENTS; count > EVENTS - QUARTER; count--) {
        const auto cost = [&](size_t i) { return std::pair(all[i]->is_mark, all[i + 1]->number - (i ? all[i - 1]->number : slot.over)); };
        size_t least = 0;
        for (size_t i = 1; i + 1 < count; i++)
            if (cost(i) < cost(least)) least = i;
        all[least]->number = 0;
        std::copy(all.begin() + least + 1, all.begin() + count, all.begin() + least);
    }
}

// After what the stream has so far, which is up to that number.
const StreamOrder::Recorded& StreamOrder::record(Slot& slot, uint64_t number, bool is_mark)
{
    Recorded& r = free_event(slot);
    if (!r.event) r.event.emplace(home_);
    r.event->record(slot.native);
    r.number = slot.last = number, r.is_mark = is_mark;
    return r;
}

// Without one, who waits records one, or is told what the driver says.
void StreamOrder::try_record(Slot& slot) noexcept
{
    try {
        record(slot, slot.last);
    } catch (...) {
    }
}

// The earliest event that comes after this submission; null: there is none, and none can be recorded in a capture.
const StreamOrder::Recorded* StreamOrder::event_after(Slot& slot, uint64_t number)
{
    const Recorded* best = nullptr;
    for (const Recorded& r : slot.events)
        if (r.number >= number && (!best || r.number < best->number)) best = &r;
    if (best) return best;
    return may_record(slot.native) ? &record(slot, slot.last) : nullptr;
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
    if (number <= slot.over || has_waited(slot, number)) return;
    const Recorded* const after = event_after(slot, number);
    if (!after) throw Error(NG_E_UNSUPPORTED, UNMARKED);
    Slot& mine = slots_[current_];
    const size_t other = size_t(&slot - slots_.get());
    after->event->hold(mine.native);
    mine.waited_id[other] = slot.id, mine.waited[other] = number;
}

// ---- faults that come late ----------------------------------------------------------------------------------------------

// All that the stream got up to there is done.
void StreamOrder::landed(uint64_t stream, uint64_t number)
{
    if (Slot* const slot = find(stream)) slot->over = std::max(slot->over, number);
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

}  // namespace ng::cuda
