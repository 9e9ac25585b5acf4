// A context: a device, its memory and threads, the host's hooks, and the end of all that belongs to it.
#pragma once
#include "lib/device.h"
#include "lib/guard.h"
#include "lib/heap.h"
#include "lib/workers.h"

#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace ng {

class Deadline;
class Belonging;
class Context;
// x_release gets here: nothing is freed, no hook is called. The next call that may does it (S5).
void destroy(const Context* context) noexcept;

// What a caller's ng_ctx_desc says, checked.
struct ContextPlan {
    const BackendRow* backend = nullptr;
    uint32_t     flags = 0, threads = 0, jit_threads = 0;
    int32_t      device = 0;                 // among the backend's
    void*        native = nullptr;
    ng_allocator host{}, dev{};
    ng_hooks     hooks{};
    uint64_t     limit = 0;
    std::string  target, cache_dir;
    bool         has_target = false, has_cache_dir = false;
};

struct Counters {
    std::atomic<uint64_t> tensors{0}, launches{0}, interim_runs{0}, jit_compiles{0}, jit_usec{0}, cache_hits{0};
};

class Context : public RefCounted {
  public:
    explicit Context(ContextPlan plan);
    ~Context();
    Context(const Context&) = delete;

    // The context with its handle, which is the caller's.
    static uint64_t create(ContextPlan plan);
    uint64_t handle() const noexcept { return handle_; }

    uint32_t           flags() const noexcept { return plan_.flags; }
    const ng_hooks&    hooks() const noexcept { return plan_.hooks; }
    const std::string& arch() const noexcept { return backend_->arch(); }
    Backend&           backend() const noexcept { return *backend_; }
    const ContextPlan& plan() const noexcept { return plan_; }
    // The host's hook, our threads, or the caller alone. Good as long as a call is inside. Threads are made when a job wants them.
    const Parallel&    parallel() const noexcept { return parallel_; }
    // The same for who may not make threads: ng_prog_run.
    const Parallel&    parallel_as_is() const noexcept { return parallel_as_is_; }
    // Makes the threads that parallel_as_is wakes, where there are to be any.
    void               start_threads() noexcept
    {
        if (workers_) workers_->start();
    }
    Heap&              heap() noexcept { return heap_; }
    Counters           counters;

    // Every call is inside from enter to leave (Entry does both); ng_ctx_close waits for them. False: lost.
    bool enter() noexcept;
    void leave() noexcept { inside_.fetch_sub(1, std::memory_order_release); }
    bool is_lost() const noexcept;

    // Memory of the device, after settle() and the pressure hook if need be: NG_E_DEVMEM. Hooks::None: after what calls none.
    enum class Hooks { All, None };
    void* allocate(uint64_t bytes, size_t align, ng_purpose purpose, const char* who, Hooks hooks = Hooks::All);
    // For jobs of ours, which can do without: nobody is asked to free anything.
    void* allocate_or_leave(uint64_t bytes, size_t align, ng_purpose purpose, const char* who);
    // After all work that its track knows of, on the device; nothing waits.
    void  free(void* memory, uint64_t bytes, ng_purpose purpose, Track* track) noexcept;
    // Memory comes or goes on this stream, in the order of what uses it on others.
    void  track_ours(Track* track, const void* memory, uint64_t bytes, ng_stream s);

    // level 0 error .. 3 debug. Calls the hook, or keeps the text for ng_ctx_poll.
    void log(int32_t level, const std::string& sentence) noexcept;
    // Frees what was released and calls the done of it, where this call may: in poll, sync and close always, elsewhere
    // unless NG_CTX_POLL. Call it where hooks may be called: before memory is taken, after work. Inside a done it calls no
    // other done, which is left to the settle() around it. Poll waits so long for what other threads are about to end, a
    // second at most, for a done may wait for this very thread; false: another one's done is not through, and there was an end to the waiting.
    // Either waits so long for the devices of contexts that nobody holds any more; 0: those that are done with are taken apart.
    enum class Where { Call, Poll };
    bool settle(Where where, uint64_t patience_ns = 0) noexcept;
    // What expired and calls no hook but free: for calls that may call no other.
    void remove_quiet() noexcept;
    // Around a done that a call itself owes, not a removal: what settles inside calls no other one.
    class Calling;
    // Something released waits for the device's work on it.
    bool is_waiting() noexcept;
    // NG_OK, NG_NOT_READY when calls are still inside after timeout_ns; NG_E_LOST is thrown for what is closed.
    ng_status close(uint64_t timeout_ns);

  private:
    friend class Belonging;
    friend void destroy(const Context*) noexcept;
    struct Message { int32_t level; std::string text; };
    struct Queue { Belonging* first = nullptr; Belonging* last = nullptr; };
    // A thread that removes what expired, one thing after the other; on its stack, and listed while it has one.
    struct Remover {
        bool            may_call_done = true;
        std::thread::id thread = std::this_thread::get_id();
        bool            is_listed = false, is_nested = false;    // nested: inside a hook that another one of this thread calls
        bool            is_quiet = true;                         // what it has calls no done
        uint32_t        looks = UINT32_MAX;                      // at what may not be ready
        uint64_t        round = 0;                               // in which it looks once at each
        uint64_t        number = 0;                              // of what it has, in the order of their removals
        Remover*        next = nullptr;
    };
    static constexpr uint32_t FEW_LOOKS = 16;            // in a call that wants something else
    // A poll's, or that of another call: a device is asked a few times what it has done; what is the host's is done.
    Remover remover(bool is_poll) const noexcept { return {.may_call_done = is_poll || !(plan_.flags & NG_CTX_POLL), .looks = is_poll || backend_->is_host() ? UINT32_MAX : FEW_LOOKS}; }

    [[noreturn]] void refuse(uint64_t bytes, const char* who);       // that there is no memory
    void expire(Belonging& thing) noexcept;
    void enlist(Belonging& thing) noexcept;
    void delist(Belonging& thing) noexcept;
    void sort_expired() noexcept;
    void list(Remover& me) noexcept;
    void unlist(Remover& me) noexcept;
    bool may_remove(Remover& me) const noexcept;
    bool is_ready(Belonging& thing, Remover& me) noexcept;
    Belonging* take_ready(Queue& queue, Remover& me) noexcept;
    Belonging* next_expired(Remover& me) noexcept;
    void remove_expired(Remover& me) noexcept;
    bool is_removing(const Remover& me, uint64_t last, bool with_done) noexcept;     // another thread one of the things up to the last
    enum class Others { None, Ended, Busy };
    Others wait_for_others(const Remover& me, const Deadline& patience) noexcept;
    Belonging* next_alive() noexcept;
    void say_all() noexcept;
    ng_status sync_device(uint64_t timeout_ns);
    void end_all() noexcept;
    bool has_expired() noexcept;
    void litter() noexcept;
    bool is_left() const noexcept;
    bool hold_handle() noexcept;
    void let_handle_go() noexcept;
    bool wind_up(const Deadline& end) noexcept;
    // may_poll: those with NG_CTX_POLL too
    static bool clean_up(bool may_poll) noexcept;               // whether anything was removed
    bool clean(bool may_poll) noexcept;                         // likewise, of one
    static void bury(bool may_poll, uint64_t patience_ns) noexcept;

    static constexpr uint64_t CLOSING = uint64_t(1) << 63, CLOSED = uint64_t(1) << 62;
    const ContextPlan        plan_;
    const uint32_t           epoch_;
    std::unique_ptr<Workers> workers_;
    Parallel                 parallel_, parallel_as_is_;
    std::unique_ptr<Backend> backend_;
    Heap                     heap_;
    uint64_t                 handle_ = 0;
    std::atomic<uint64_t>    inside_{0};              // calls, and the bits above
    std::atomic<bool>        is_being_closed_{false};  // one closer at a time
    std::atomic<Belonging*>  expired_{nullptr};       // released, newest first; pushed without a lock
    std::atomic<bool>        is_littered_{false};     // it is among contexts with something that expired
    std::atomic<uint32_t>    holders_{0};             // of what belongs to it, those that keep its handle alive: all by one reference
    mutable Context*         next_listed_ = nullptr;  // among those, or among contexts that nobody holds
    std::mutex               lock_;                   // of what follows; never held while a hook runs
    Queue                    quiet_, with_done_;      // expired, oldest first
    Remover*                 removers_ = nullptr;     // newest first
    uint64_t                 removals_ = 0, rounds_ = 0;   // begun so far
    Belonging*               alive_ = nullptr;        // what has something to end
    std::vector<Message>     messages_;
};

class Context::Calling {
  public:
    explicit Calling(Context& context) noexcept;
    ~Calling();
    Calling(const Calling&) = delete;

  private:
    Context& context_;
    Remover  me_;
};

// A call that is inside a context. NG_E_LOST when it is closed, or older than the fork that made this process.
class Entry {
  public:
    Entry(Context& context, const char* who) : context_(context)
    {
        if (!context.enter()) throw Error(NG_E_LOST, text(who, ": the context is closed; only release still works"));
    }
    ~Entry() { context_.leave(); }
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;

  private:
    Context& context_;
};

// What keeps a context alive and ends with it: memory, tensors, programs. When the last reference goes, nothing happens
// but that it queues: its Fate's remove runs in the next settle(), and deletes it.
struct Fate {
    // The context is being closed and no call is inside: give everything back. Null: there is nothing to end. At most once
    // from the context; remove comes later, or never before.
    void (*end)(Belonging& thing, Context& context) noexcept;
    void (*remove)(Belonging* thing, Context& context) noexcept;
    // Whether remove may come already, of what waits for the device. Null: always.
    bool (*is_ready)(Belonging& thing, Context& context) noexcept = nullptr;
};

class Belonging : public RefCounted {
  public:
    // A handle of the context too is kept alive, so that ng_tensor_ctx has one to lend.
    Belonging(Context& context, const Fate& fate);
    Belonging(const Belonging&) = delete;
    Context& context() const noexcept { return *context_; }
    // For destroy(const T*) alone: hands the object over to its context, which may delete it at once.
    void expire() noexcept;

  protected:
    // What never expired is what could not be made: a derived constructor threw.
    ~Belonging()
    {
        if (holds_handle_) context_->let_handle_go();
    }
    // In a derived constructor's last line, when fate.end may come; in its remove's first.
    void enlist() { context_->enlist(*this); }
    void delist(Context& context) noexcept { context.delist(*this); }
    bool calls_done_ = false;               // remove calls the host's done

  private:
    friend class Context;
    Ref<Context> context_;                  // until it expires: else the context would keep itself alive
    const Fate&  fate_;
    Belonging*   next_ = nullptr;           // among the expired
    uint64_t     seen_ = 0;                 // the round in which it was not ready
    Belonging   *before_ = nullptr, *after_ = nullptr;   // among the alive
    bool         is_listed_ = false;
    bool         holds_handle_;
};

template <> inline constexpr HandleKind  KIND_OF<Context> = HandleKind::Context;
template <> inline constexpr const char* NOUN_OF<Context> = "context";

// A context that a call names. What was released is freed before, for it may be all that keeps this one.
Pin<Context> need_context(const ng_ctx* c, const char* who);

}  // namespace ng
