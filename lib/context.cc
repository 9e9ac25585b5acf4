// The life of a context: calls inside it, its memory and hooks, and what was released and is to be freed.
#include "lib/context.h"

#include "lib/deadline.h"
#include "lib/released.h"

#include <algorithm>

namespace ng {
namespace {

constexpr size_t   MAX_MESSAGES = 256; // kept for ng_ctx_poll; later ones are dropped
constexpr int      MAX_PRESSURE = 16;  // times that one allocation asks the host to free something

// The host's hook as a Parallel: a task's worker is its own number. More tasks than numbers run in turns.
struct HostJob {
    Parallel::Task task;
    void*          arg;
    uint32_t       count;
    static void run(void* arg, uint32_t worker)
    {
        const HostJob& job = *static_cast<const HostJob*>(arg);
        const PlainFloats plain;
        for (uint32_t i = worker; i < job.count; i += MAX_TASKS) job.task(job.arg, i, worker);
    }
};

void run_by_host(void* self, uint32_t count, Parallel::Task task, void* arg)
{
    const ng_hooks& hooks = *static_cast<const ng_hooks*>(self);
    HostJob job{task, arg, count};
    hooks.parallel(hooks.user, std::min(count, MAX_TASKS), HostJob::run, &job);
}

}  // namespace

Context::Context(ContextPlan plan)
    : plan_(std::move(plan)), epoch_(fork_epoch()), backend_(plan_.backend->open(*this)), heap_(plan_.host, plan_.dev, plan_.limit, *backend_)
{
    if (plan_.hooks.parallel) {
        parallel_ = parallel_as_is_ = Parallel(run_by_host, const_cast<ng_hooks*>(&plan_.hooks), MAX_TASKS);
    } else if (!(plan_.flags & NG_CTX_NO_THREADS) && plan_.threads != 1) {
        workers_ = std::make_unique<Workers>(plan_.threads);
        parallel_ = workers_->parallel(), parallel_as_is_ = workers_->parallel_as_is();
    }
}

Context::~Context()
{
    backend_->stop();                       // its jobs take memory of the heap, which goes before it
    say_all();
}

Pin<Context> need_context(const ng_ctx* c, const char* who)
{
    free_released_expressions();
    return need<Context>(c, who, "c");
}

uint64_t Context::create(ContextPlan plan)
{
    const Ref<Context> context = new Context(std::move(plan));     // who fails from here on leaves it to bury()
    const uint64_t handle = make_handle(context);
    context->handle_ = handle;
    bury(false, UINT64_MAX);
    return handle;
}

bool Context::enter() noexcept
{
    if (!(inside_.fetch_add(1, std::memory_order_acq_rel) & (CLOSING | CLOSED)) && epoch_ == fork_epoch()) return true;
    leave();
    return false;
}

bool Context::is_lost() const noexcept
{
    return (inside_.load(std::memory_order_acquire) & (CLOSING | CLOSED)) || epoch_ != fork_epoch();
}

void* Context::allocate(uint64_t bytes, size_t align, ng_purpose purpose, const char* who, Hooks hooks)
{
    if (void* memory = heap_.allocate(bytes, align, purpose)) return memory;
    const bool calls = hooks == Hooks::All;
    for (int i = 0; calls && i <= MAX_PRESSURE; i++) {
        settle(Where::Call);
        if (void* memory = heap_.allocate(bytes, align, purpose)) return memory;
        if (!plan_.hooks.pressure || !plan_.hooks.pressure(plan_.hooks.user, bytes)) break;
    }
    if (calls) settle(Where::Call, UINT64_MAX);     // what contexts that nobody holds have of it is worth waiting for
    Remover all{.may_call_done = calls && !(plan_.flags & NG_CTX_POLL)};
    remove_expired(all);
    if (void* memory = heap_.allocate(bytes, align, purpose)) return memory;
    refuse(bytes, who);
}

void* Context::allocate_or_leave(uint64_t bytes, size_t align, ng_purpose purpose, const char* who)
{
    if (void* memory = heap_.allocate(bytes, align, purpose)) return memory;
    refuse(bytes, who);
}

void Context::refuse(uint64_t bytes, const char* who)
{
    backend_->need_alive();
    if (const uint64_t limit = heap_.limit(); limit && heap_.held() + bytes > limit)
        throw Error(NG_E_DEVMEM, text(who, ": ", bytes, " bytes are too many: ", heap_.held(), " are in use and dev_limit is ", limit));
    throw Error(NG_E_DEVMEM, text(who, ": no memory for ", bytes, " bytes; ", heap_.held(), " are in use"));
}

void Context::free(void* memory, uint64_t bytes, ng_purpose purpose, Track* track) noexcept
{
    const ng_stream last = backend_->last_stream();
    heap_.free_kept();
    bool is_told = true;
    try {
        track_ours(track, memory, bytes, last);
    } catch (const Error& error) {
        is_told = error.status == NG_E_LOST;        // and its memory with it
    } catch (...) {
        is_told = false;
    }
    // Work on it may go on that nobody could be made to wait for.
    if (!is_told && track) return heap_.free_later(memory, bytes, purpose, *track);
    heap_.free(memory, bytes, purpose, last);
}

void Context::track_ours(Track* track, const void* memory, uint64_t bytes, ng_stream s)
{
    const auto* first = static_cast<const char*>(memory);
    Ordered(*backend_, s).touch(track, first, first + bytes, true, true);
}

void Context::log(int32_t level, const std::string& sentence) noexcept
{
    if (!plan_.hooks.log) return;
    if (!(plan_.flags & NG_CTX_POLL)) return plan_.hooks.log(plan_.hooks.user, level, sentence.c_str());
    try {
        const std::lock_guard hold(lock_);
        if (messages_.size() < MAX_MESSAGES) messages_.push_back({level, sentence});
    } catch (const std::bad_alloc&) {
        // A message for which there is no memory is dropped.
    }
}

void Context::say_all() noexcept
{
    std::vector<Message> now;
    {
        const std::lock_guard hold(lock_);
        now.swap(messages_);
    }
    for (const Message& message : now) plan_.hooks.log(plan_.hooks.user, message.level, message.text.c_str());
}

void Context::enlist(Belonging& thing) noexcept
{
    const std::lock_guard hold(lock_);
    thing.after_ = alive_;
    if (alive_) alive_->before_ = &thing;
    alive_ = &thing;
    thing.is_listed_ = true;
}

void Context::delist(Belonging& thing) noexcept
{
    const std::lock_guard hold(lock_);
    if (!thing.is_listed_) return;
    if (thing.before_) thing.before_->after_ = thing.after_;
    else alive_ = thing.after_;
    if (thing.after_) thing.after_->before_ = thing.before_;
    thing.before_ = thing.after_ = nullptr;
    thing.is_listed_ = false;
}

// Into the queues, oldest first.
void Context::sort_expired() noexcept
{
    Belonging* oldest = nullptr;
    for (Belonging* newest = expired_.exchange(nullptr, std::memory_order_acq_rel); newest;) {
        Belonging* next = std::exchange(newest->next_, oldest);
        oldest = std::exchange(newest, next);
    }
    while (oldest) {
        Belonging* thing = std::exchange(oldest, std::exchange(oldest->next_, nullptr));
        Queue& queue = thing->calls_done_ ? with_done_ : quiet_;
        (queue.last ? queue.last->next_ : queue.first) = thing;
        queue.last = thing;
    }
}

// A done may release thousands of things with a done each, and call what settles: it would recurse once for each of them.
// What is quiet is removed there too, as its memory may be wanted.
bool Context::may_remove(Remover& me) const noexcept
{
    bool is_within_quiet = false;
    for (const Remover* r = removers_; r; r = r->next)
        if (r->thread == me.thread) me.is_nested = true, is_within_quiet |= r->is_quiet;
    if (me.is_nested) me.may_call_done = false;
    return !is_within_quiet;
}

bool Context::is_ready(Belonging& thing, Remover& me) noexcept
{
    if (!thing.calls_done_ || !thing.fate_.is_ready) return true;       // nobody is told: what frees it is behind the work on it
    if (thing.seen_ == me.round || !me.looks) return false;
    me.looks--;
    if (thing.fate_.is_ready(thing, *this)) return true;
    thing.seen_ = me.round;
    return false;
}

// The oldest that is: what waits for the device on one stream keeps nothing back that waited on another.
Belonging* Context::take_ready(Queue& queue, Remover& me) noexcept
{
    Belonging *before = nullptr, *thing = queue.first;
    while (thing && !is_ready(*thing, me)) before = std::exchange(thing, thing->next_);
    if (!thing) return nullptr;
    (before ? before->next_ : queue.first) = std::exchange(thing->next_, nullptr);
    if (queue.last == thing) queue.last = before;
    return thing;
}

// Both under the lock.
void Context::list(Remover& me) noexcept
{
    if (!std::exchange(me.is_listed, true)) me.next = std::exchange(removers_, &me);
}

void Context::unlist(Remover& me) noexcept
{
    if (!std::exchange(me.is_listed, false)) return;
    Remover** link = &removers_;
    while (*link != &me) link = &(*link)->next;
    *link = me.next;
}

Context::Calling::Calling(Context& context) noexcept : context_(context)
{
    me_.is_quiet = false;
    const std::lock_guard hold(context.lock_);
    me_.number = ++context.removals_;
    context.list(me_);
}

Context::Calling::~Calling()
{
    const std::lock_guard hold(context_.lock_);
    context_.unlist(me_);
}

Belonging* Context::next_expired(Remover& me) noexcept
{
    const std::lock_guard hold(lock_);
    if (!me.round) me.round = ++rounds_;
    sort_expired();
    Belonging* thing = nullptr;
    if (me.is_listed || may_remove(me)) {
        Queue& queue = quiet_.first || !me.may_call_done ? quiet_ : with_done_;
        thing = take_ready(queue, me);
        me.is_quiet = &queue == &quiet_;
    }
    if (thing) me.number = ++removals_, list(me);
    else unlist(me);
    return thing;
}

void Context::remove_expired(Remover& me) noexcept
{
    me.round = 0;
    free_released_expressions();            // their leaves' tensors expire
    while (Belonging* thing = next_expired(me)) thing->fate_.remove(thing, *this);
}

bool Context::is_removing(const Remover& me, uint64_t last, bool with_done) noexcept
{
    const std::lock_guard hold(lock_);
    for (const Remover* r = removers_; r; r = r->next)
        if (r->thread != me.thread && r->number <= last && !(with_done && r->is_quiet)) return true;
    return false;
}

Context::Others Context::wait_for_others(const Remover& me, const Deadline& patience) noexcept
{
    const uint64_t last = [&] {
        const std::lock_guard hold(lock_);
        return removers_ ? removals_ : 0;
    }();
    if (!last || !is_removing(me, last, false)) return Others::None;
    for (int turn = 0; is_removing(me, last, false); turn++)
        if (!patience.wait(turn)) return is_removing(me, last, true) ? Others::Busy : Others::None;
    return Others::Ended;
}

bool Context::settle(Where where, uint64_t patience_ns) noexcept
{
    constexpr uint64_t MOST_NS = 1'000'000'000;
    constexpr int LINKS = 3;                // what a removal sets free comes after it: a program's tensor, its memory
    const bool is_poll = where != Where::Call;
    Remover me = remover(is_poll);
    remove_expired(me);
    if (me.is_nested) return true;
    const Deadline patience(std::min(patience_ns, MOST_NS));
    Others others = is_poll ? Others::Ended : Others::None;
    for (int i = 0; i < LINKS && others == Others::Ended; i++)
        if ((others = wait_for_others(me, patience)) == Others::Ended) remove_expired(me);
    if (is_poll) say_all();
    bury(is_poll, patience_ns);
    return others != Others::Busy || patience_ns == UINT64_MAX;
}

void Context::remove_quiet() noexcept
{
    Remover quiet{.may_call_done = false};
    remove_expired(quiet);
}

bool Context::is_waiting() noexcept
{
    const std::lock_guard hold(lock_);
    for (Belonging* thing = with_done_.first; thing; thing = thing->next_)
        if (thing->fate_.is_ready && !thing->fate_.is_ready(*thing, *this)) return true;
    return false;
}

bool Context::has_expired() noexcept
{
    const std::lock_guard hold(lock_);
    return expired_.load(std::memory_order_acquire) || quiet_.first || with_done_.first;
}

Belonging::Belonging(Context& context, const Fate& fate)
    : context_(&context), fate_(fate), holds_handle_(context.hold_handle())
{}

void Belonging::expire() noexcept
{
    const Ref<Context> context = std::move(context_);
    const bool held = std::exchange(holds_handle_, false);
    context->expire(*this);                 // from here on another thread may delete *this
    if (held) context->let_handle_go();
}

}  // namespace ng
