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

}  // namespace ng::cuda
