// How a context ends: contexts that are left behind are cleaned up by calls of others, those that nobody holds are taken apart, and one may be closed.
#include "lib/context.h"

#include "lib/deadline.h"
#include "lib/released.h"

namespace ng {
namespace {

// Contexts that nobody holds any more, to be taken apart by a call that may call hooks.
constinit std::atomic<Context*> dead_contexts{nullptr};
// Contexts with something that expired, each held by this list: calls of their own may come no more.
constinit std::atomic<Context*> littered_contexts{nullptr};

template <class T>
void push(std::atomic<T*>& first, T* one, T*& next) noexcept
{
    next = first.load(std::memory_order_relaxed);
    while (!first.compare_exchange_weak(next, one, std::memory_order_acq_rel, std::memory_order_relaxed)) {}
}

}  // namespace

void destroy(const Context* context) noexcept { push(dead_contexts, const_cast<Context*>(context), context->next_listed_); }

void Context::expire(Belonging& thing) noexcept
{
    push(expired_, &thing, thing.next_);
    litter();
}

void Context::litter() noexcept
{
    if (!is_littered_.exchange(true, std::memory_order_acq_rel)) push(littered_contexts, Ref<Context>(this).detach(), next_listed_);
}

// The first holder brings the reference, the last takes it away: of references there are fewer than there may be holders.
bool Context::hold_handle() noexcept
{
    for (uint32_t holders = holders_.load(std::memory_order_relaxed);;) {
        const bool is_first = holders == 0;
        if (is_first && !retain_handle<Context>(handle_)) return false;
        if (holders_.compare_exchange_weak(holders, holders + 1, std::memory_order_acq_rel, std::memory_order_relaxed)) return true;
        if (is_first) release_handle<Context>(handle_);
    }
}

void Context::let_handle_go() noexcept
{
    if (holders_.fetch_sub(1, std::memory_order_acq_rel) == 1) release_handle<Context>(handle_);
}

// It is closed, or nobody has its handle but what belongs to it. A look: who lets go meanwhile makes it true for the next one.
bool Context::is_left() const noexcept
{
    if (inside_.load(std::memory_order_acquire) & CLOSED) return true;
    const bool is_held = holders_.load(std::memory_order_acquire) != 0;
    return table::references(handle_, HandleKind::Context) <= uint32_t(is_held);
}

// What expired may be all that keeps its own context: a tensor that was lent and taken back holds what it was lent from.
bool Context::clean_up(bool may_poll) noexcept
{
    bool is_any = false;
    for (Context* next = littered_contexts.exchange(nullptr, std::memory_order_acq_rel); next;) {
        Context* const listed = std::exchange(next, next->next_listed_);
        if (listed->epoch_ != fork_epoch()) continue;       // the parent's: its threads and locks are not here
        const Ref<Context> context = Ref<Context>::adopt(listed);
        (void)context->is_littered_.exchange(false, std::memory_order_acq_rel);
        is_any |= context->clean(may_poll);
        if (context->owners() > 1 && context->has_expired()) context->litter();
    }
    return is_any;
}

// A close that goes on does it itself, and waits for who is inside. Each tells the other first and looks then.
bool Context::clean(bool may_poll) noexcept
{
    inside_.fetch_add(1, std::memory_order_seq_cst);
    Remover me = remover(may_poll);
    if (!is_being_closed_.load(std::memory_order_seq_cst) && is_left()) remove_expired(me);
    leave();
    return me.number != 0;
}

// Nobody holds it, so all that belonged to it has expired. What is freed is behind work on it in a stream, and may be that of others.
bool Context::wind_up(const Deadline& end) noexcept
{
    try {
        do {
            if (sync_device(end.left_ns()) == NG_NOT_READY) return false;
            Remover me;
            remove_expired(me);
        } while (has_expired() && end.left_ns());
    } catch (...) {
        return false;                       // a device that cannot be asked now may be later
    }
    return !has_expired();
}

void Context::bury(bool may_poll, uint64_t patience_ns) noexcept
{
    free_released_expressions();
    while (clean_up(may_poll)) {}           // what one holds may be another's
    const Deadline end(patience_ns);
    for (Context* dead = dead_contexts.exchange(nullptr, std::memory_order_acq_rel); dead;) {
        Context* context = std::exchange(dead, dead->next_listed_);
        if (context->epoch_ != fork_epoch()) continue;
        if ((!may_poll && (context->plan_.flags & NG_CTX_POLL)) || !context->wind_up(end)) destroy(context);
        else delete context;
    }
}

Belonging* Context::next_alive() noexcept
{
    const std::lock_guard hold(lock_);
    return alive_;
}

void Context::end_all() noexcept
{
    while (Belonging* thing = next_alive()) {
        delist(*thing);
        thing->fate_.end(*thing, *this);
    }
}

// A device that is lost has nothing more to wait for; one that could not be asked may have.
ng_status Context::sync_device(uint64_t timeout_ns)
{
    try {
        return backend_->sync(nullptr, timeout_ns);
    } catch (const Error& fault) {
        if (fault.status != NG_E_LOST) throw;
        return NG_OK;
    }
}

ng_status Context::close(uint64_t timeout_ns)
{
    const Deadline end(timeout_ns);
    const auto refuse_closed = [&] {
        if (epoch_ != fork_epoch()) throw Error(NG_E_LOST, "ng_ctx_close: the context is the parent process's; a child can only release it");
        if (inside_.load(std::memory_order_acquire) & CLOSED) throw Error(NG_E_LOST, "ng_ctx_close: the context is closed already");
    };
    refuse_closed();
    inside_.fetch_or(CLOSING, std::memory_order_acq_rel);
    for (int turn = 0; is_being_closed_.exchange(true, std::memory_order_seq_cst); turn++)
        if (!end.wait(turn)) return NG_NOT_READY;
    struct Closer {
        std::atomic<bool>& flag;
        ~Closer() { flag.store(false, std::memory_order_release); }
    } closer{is_being_closed_};
    refuse_closed();
    for (int turn = 0; inside_.load(std::memory_order_seq_cst) & ~(CLOSING | CLOSED); turn++)
        if (!end.wait(turn)) return NG_NOT_READY;
    if (sync_device(end.left_ns()) == NG_NOT_READY) return NG_NOT_READY;
    if (!settle(Where::Poll, end.left_ns())) return NG_NOT_READY;
    end_all();
    (void)settle(Where::Poll, end.left_ns());
    backend_->stop();
    if (workers_) workers_->stop();
    inside_.fetch_or(CLOSED, std::memory_order_acq_rel);
    return NG_OK;
}

}  // namespace ng
