// Which stream waits for which: who touched which addresses last, and the events that others wait for.
#pragma once
#include "lib/backend.h"
#include "lib/backend/cuda/runtime.h"

#include <array>
#include <atomic>
#include <mutex>
#include <optional>
#include <string_view>

namespace ng {
class Deadline;
}

namespace ng::cuda {

// What of one memory may still be under way: by address, the last work that read or wrote there. Fixed in size: when it is
// full, the stream that comes next waits for all of it and stands for it.
class CudaTrack final : public Track {
  private:
    friend class StreamOrder;
    struct Entry {
        const char *begin, *end;
        uint64_t    stream, number;          // the stream's id, and which of its submissions
        bool        writes, is_ours;
    };
    static constexpr size_t ROOM = 12;
    std::array<Entry, ROOM> entries_;
    size_t count_ = 0;
};

// Submissions are numbered. While there is one stream, which nobody else has, nothing is recorded and nobody waits; from then on each
// submission ends with an event. Of those that may be under way some are kept, more than a few for those that were marked: who waits for
// another waits for the next that is there, which is not far and stays. What a capture gathers has no number and its streams
// no new event, also where it was spoilt and has not ended: who waits for them waits for what came before it.
// Everything but what says otherwise is under one lock, which open() takes and close() leaves.
class StreamOrder {
  public:
    static constexpr size_t MOST = 64;       // streams that a context remembers at once

    // own: what NULL means. orders: false under NG_CTX_CALLER_ORDERS, where nobody waits but for what is_ours: memory that
    // came or goes, and what is worked in. before: the number before the first.
    StreamOrder(const DeviceContext& home, CUstream own, bool orders, uint64_t before = 0);

    // Remembers s; NG_E_INVALID for another context's, NG_E_LIMIT. Takes the lock by itself.
    void need(CUstream s, const char* who);
    void lend() noexcept;                    // the host has the context's own stream from now on, and may capture it. Likewise
    bool is_own_captured() const noexcept;   // or was, and has not ended since that was spoilt
    void forget_all() noexcept;              // all events are destroyed

    void open(CUstream s);                   // the driver's context is current until close()
    void touch(CudaTrack& track, const char* begin, const char* end, bool writes, bool is_ours);
    void done(CudaTrack& track, const char* begin, const char* end);
    // The open stream waits for what another order's open stream has so far.
    void follow(const StreamOrder& other);
    // The open submission is of something with this tag: what a fault that comes later is told with.
    void note(std::string_view tag) noexcept;
    void close() noexcept;
    CUstream stream() const noexcept { return slots_[current_].native; }     // that is open
    bool     is_capturing() const noexcept { return is_capturing_; }         // it
    // Whether a kernel may start on it before the one ahead has ended: not on the default ones, whose handles are 0 to 2.
    bool     may_overlap() const noexcept { return reinterpret_cast<uintptr_t>(stream()) > 2; }

    // These take the lock for moments, and wait without it. What a stream got before it captures, and no event tells of, is not idle.
    bool      is_idle(CudaTrack& track) noexcept;
    void      wait_until_idle(CudaTrack& track) noexcept;
    uint64_t  mark(CUstream s);
    ng_status wait_for(uint64_t mark, uint64_t timeout_ns, const char* who);
    void      hold(CUstream s, uint64_t mark, const char* who);
    // All: every stream, and the first fault is thrown when the others were waited for. Else s is forgotten, but where
    // something was queued on it meanwhile.
    ng_status sync(CUstream s, bool all, uint64_t timeout_ns);
    // The tags that were noted last and not waited for since: "; under way were "a", "b"", or "". is_open: by who has opened.
    std::string under_way(bool is_open) const;

  private:
    static constexpr const char* UNMARKED = "a stream captures, and no event tells of what it got before; call ng_mark before its capture begins, or end that first";
    static constexpr size_t EVENTS = 64;
    struct Recorded {
        std::optional<Event> event;
        uint64_t number = 0;                 // of the submission that it was recorded after; where that is over nobody needs it
        bool     is_mark = false;
    };
    struct Slot {
        CUstream native = nullptr;
        uint64_t id = 0;                     // the number when it was taken; 0: free
        uint64_t last = 0;                   // number of the latest submission; id: there was none
        uint64_t over = 0;                   // its submissions up to here are known to be done
        std::array<Recorded, EVENTS> events; // in no order
        size_t next = 0;                     // where one may be free
        std::array<uint64_t, MOST> waited{}, waited_id{};    // by slot: of its submissions, those up to here come before
        // The latest capture that was marked: its id, its marks' numbers, and the latest of them.
        uint64_t capture = 0, first_captured = 0, last_captured = 0;
        std::optional<Event> captured;
    };
    // One submission with a tag, of the last few.
    struct Flight {
        uint64_t stream = 0, number = 0;     // stream 0: it is over, or none
        std::array<char, 48> tag{};
    };
    static constexpr size_t FLIGHTS = 8;
    void     landed(uint64_t stream, uint64_t number);
    CUstream native_of(CUstream s) const noexcept { return s ? s : own_; }
    size_t   slot_of(CUstream s, const char* who);
    Slot*    find(uint64_t id) noexcept;
    bool     may_record(CUstream native) const noexcept;
    bool     is_captured(CUstream native) const;
    uint64_t capture_of(CUstream native) const noexcept;
    [[noreturn]] void refuse_spoilt(const char* who) const;
    Recorded& free_event(Slot& slot);
    void     make_room(Slot& slot);
    const Recorded& record(Slot& slot, uint64_t number, bool is_mark = false);
    void     try_record(Slot& slot) noexcept;
    const Recorded* event_after(Slot& slot, uint64_t number);
    bool     has_waited(const Slot& slot, uint64_t number) const noexcept;
    void     wait(Slot& slot, uint64_t number);
    Slot*    slot_of_mark(uint64_t mark, uint64_t& number, const char* who);
    // What sync() waits for: a stream, and up to where. Without an event the stream itself is asked where it may be, else another look tells.
    struct Awaited {
        uint64_t id, number;
        bool     is_over, has_event;
        CUstream native;                     // to be asked
    };
    Awaited  latest(Slot& slot, uint64_t timeout_ns);
    bool     is_over(Slot& slot, uint64_t number);
    bool     is_surely_over(Slot& slot, uint64_t number) noexcept;
    bool     wait_until_over(uint64_t id, uint64_t number, const Deadline& deadline, const char* who);
    bool     wait_until_over(const Awaited& a, const Deadline& deadline);
    void     forget(uint64_t id, uint64_t number);

    const DeviceContext& home_;
    const CUstream own_;
    const bool orders_;
    mutable std::mutex lock_;
    std::array<Flight, FLIGHTS> flights_;
    size_t     next_flight_ = 0;
    std::optional<CurrentContext> now_;
    std::unique_ptr<Slot[]> slots_;
    size_t   used_ = 0, alive_ = 0, current_ = 0;    // used_: slots ever taken
    uint64_t number_;                        // the latest of all, 0: none
    bool     is_capturing_ = false;
    std::atomic<bool> is_lent_{false};
};

}  // namespace ng::cuda
