// What a device does for one context: memory, the order of its work between streams, moves of elements, and running plans.
#pragma once
#include <ng.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace ng {

class Context;
class Executor;
struct ContextPlan;
struct Plan;
struct StridedCopy;

// The work that touches one stretch of memory and may still be under way. Only its backend knows what it is.
class Track {
  public:
    virtual ~Track() = default;
};

// Calls whose work goes on after they return hold the order of the device from open to close: what they touch waits for
// what others queued on it. On a device whose calls are done on return none of this does anything.
class Backend {
  public:
    virtual ~Backend() = default;

    virtual const char*        name() const noexcept = 0;    // "cpu"
    virtual const std::string& arch() const noexcept = 0;    // what code is made for: "x86-64-v4", "sm_90"
    virtual ng_device_info     info() const = 0;
    // The device's memory is the host's, and calls are done on return.
    virtual bool is_host() const noexcept = 0;

    // ---- memory: null when there is none left; purpose NG_MEM_STAGING: page-locked memory of the host ----
    // What it comes and goes on: what is there before it may be what used it last. Never one that captures: it would be a graph's.
    virtual ng_stream first_stream(ng_purpose) noexcept { return nullptr; }
    virtual ng_stream last_stream() noexcept { return nullptr; }
    // first: first_stream's. settle: what came on it, from here or from the host, may be used on all.
    virtual void* allocate(uint64_t bytes, size_t align, ng_purpose purpose, ng_stream first) noexcept = 0;
    virtual void  settle(ng_stream) noexcept {}
    virtual void  free(void* memory, uint64_t bytes, ng_purpose purpose, ng_stream last) noexcept = 0;
    virtual void  trim(uint64_t) {}                          // gives back what is unused, but for so many bytes
    virtual void  need_alive() {}                            // throws where a fault ended the device: memory is not what lacks
    // What the host lends: NG_E_INVALID for memory that the device does not see.
    virtual void  need_reachable(const void*, uint64_t, uint32_t, const char*) {}
    virtual int32_t dlpack_type() const noexcept = 0;        // DLDeviceType
    virtual int32_t ordinal() const noexcept { return 0; }

    // ---- streams ----
    virtual ng_stream stream(uint32_t i) = 0;                // the i-th of its own; 0 is what NULL means
    virtual void      need_stream(ng_stream s, const char* who) = 0;    // NG_E_INVALID for one it cannot have
    // NULL: all. Another is forgotten then, but where something was queued on it meanwhile. NG_NOT_READY when the time is over first.
    virtual ng_status sync(ng_stream s, uint64_t timeout_ns) = 0;
    virtual uint64_t  mark(ng_stream s) = 0;
    virtual ng_status wait_for(uint64_t mark, uint64_t timeout_ns, const char* who) = 0;    // NG_E_INVALID: no mark of ours
    virtual void      hold(ng_stream s, uint64_t mark, const char* who) = 0;

    // ---- order ----
    virtual std::unique_ptr<Track> make_track() { return nullptr; }    // null: there is nothing to track
    virtual std::unique_ptr<Track> copy_of(const Track&) { return nullptr; }
    virtual void open(ng_stream) {}
    // Of an address range; writes it. is_ours: it comes, goes or is worked in by us, so it is ordered under NG_CTX_CALLER_ORDERS as well.
    virtual void touch(Track&, const char*, const char*, bool, bool) {}
    virtual void done(Track&, const char*, const char*) {}             // foreign work on it, up to here
    virtual void close() noexcept {}
    virtual bool is_capturing() const noexcept { return false; }       // what is open: memory that it works in shall stay
    virtual bool is_idle(Track&) noexcept { return true; }
    virtual void wait_until_idle(Track&) noexcept {}

    // ---- two contexts of one device ----
    virtual bool      is_beside(const Backend&) const noexcept { return false; }     // streams of one can wait for the other's
    // One of its own that runs nothing: what it waits for others have done, what waits for it begins after those.
    virtual ng_stream meeting_stream() { return nullptr; }
    // Between open and close of both: the open stream goes on when the other's is done with what it has so far.
    virtual void      follow(Backend&) {}

    // ---- elements; between open and close ----
    // One side may be the host's memory where both layouts are the same dense one.
    virtual void move(const StridedCopy& copy, ng_stream s) = 0;
    virtual void fill(const StridedCopy& to, uint64_t bits, ng_stream s) = 0;     // bits: of one element

    // ---- plans ----
    enum class Use { Once, Often };
    virtual int64_t turned_bytes() const noexcept { return INT64_MAX; }      // as schedule() takes them; the greatest: never
    // is_measured: what could run it is measured, and the fastest remembered (NG_PROG_TUNE).
    virtual std::unique_ptr<Executor> make_executor(const Plan& plan, Use use, bool is_measured) = 0;
    // Work that waits for a call under NG_CTX_NO_THREADS. False: the budget ended first.
    virtual bool poll(uint64_t) { return true; }
    // The context is being closed: no thread of ours runs from here on.
    virtual void stop() noexcept {}
};

// The order of a device held for one call.
class Ordered {
  public:
    Ordered(Backend& backend, ng_stream s) : backend_(backend.is_host() ? nullptr : &backend)
    {
        if (backend_) backend_->open(s);
    }
    ~Ordered() { close(); }
    Ordered(const Ordered&) = delete;
    void touch(Track* track, const char* begin, const char* end, bool writes, bool is_ours = false)
    {
        if (backend_ && track && begin != end) backend_->touch(*track, begin, end, writes, is_ours);
    }
    void close() noexcept
    {
        if (backend_) backend_->close();
        backend_ = nullptr;
    }

  private:
    Backend* backend_;
};

}  // namespace ng
