// Memory's beginning and its several ends: the last release, its own close, its context's close.
#include "lib/memory.h"

#include "lib/deadline.h"

namespace ng {
namespace {

constexpr size_t ALIGNMENT = 64;    // a cache line, and the widest vector

}  // namespace

const Fate Memory::FATE = {Memory::end, Memory::remove, Memory::is_ready};

Memory::Memory(Context& context, void* data, uint64_t bytes)
    : Belonging(context, FATE), data_(static_cast<char*>(data)), bytes_(bytes), track_(context.backend().make_track()) {}

void destroy(const Memory* memory) noexcept { const_cast<Memory*>(memory)->expire(); }

Ref<Memory> Memory::allocate(Context& context, uint64_t bytes, ng_purpose purpose, const char* who, Context::Hooks hooks)
{
    Ref<Memory> memory = new Memory(context, nullptr, bytes);
    if (bytes) {
        memory->data_ = static_cast<char*>(context.allocate(bytes, ALIGNMENT, purpose, who, hooks));
        memory->is_ours_ = true;
        memory->purpose_ = purpose;
        memory->calls_done_ = purpose == NG_MEM_STAGING;   // freed when the device is done
        context.track_ours(memory->track(), memory->data_, bytes, nullptr);
    } else {
        memory->data_ = reinterpret_cast<char*>(memory.get());   // an address that nobody reads
    }
    memory->enlist();
    return memory;
}

Ref<Memory> Memory::wrap(Context& context, void* data, uint64_t bytes)
{
    Ref<Memory> memory = new Memory(context, data, bytes);
    memory->enlist();
    return memory;
}

void Memory::set_done(ng_done_fn done, void* user, Lives lives) noexcept
{
    done_ = done, user_ = user, lives_ = lives;
    calls_done_ = done != nullptr;
}

bool Memory::enter() noexcept
{
    if (!(uses_.fetch_add(1, std::memory_order_acquire) & CLOSED)) return true;
    leave();
    return false;
}

void Memory::close(const char* who)
{
    if (uses_.fetch_or(CLOSED, std::memory_order_acq_rel) & CLOSED)
        throw Error(NG_E_INVALID, text(who, ": the tensor's memory is closed already"));
    const Deadline never(UINT64_MAX);
    for (int turn = 0; uses_.load(std::memory_order_acquire) & ~CLOSED; turn++) (void)never.wait(turn);
    if (track_) context().backend().wait_until_idle(*track_);
    const Context::Calling calling(context());
    give_back(context());
}

void Memory::give_back(Context& context) noexcept
{
    const bool is_lent = borrowers_.load(std::memory_order_acquire);
    if (is_lent && lives_ == Lives::WhileLent) return;                          // remove will
    if (const ng_done_fn done = std::exchange(done_, nullptr)) done(user_);
    if (!is_ours_) return;
    if (is_lent && !context.heap().is_hosted(purpose_)) return;                 // likewise
    is_ours_ = false;
    context.free(data_, bytes_, purpose_, track());
}

void Memory::end(Belonging& thing, Context& context) noexcept
{
    Memory& memory = static_cast<Memory&>(thing);
    if (!(memory.uses_.fetch_or(CLOSED, std::memory_order_acq_rel) & CLOSED)) memory.give_back(context);
}

bool Memory::is_ready(Belonging& thing, Context& context) noexcept
{
    Memory& memory = static_cast<Memory&>(thing);
    return !memory.track_ || context.backend().is_idle(*memory.track_);
}

void Memory::remove(Belonging* thing, Context& context) noexcept
{
    Memory* memory = static_cast<Memory*>(thing);
    memory->delist(context);
    memory->give_back(context);             // what close and end have left
    delete memory;
}

}  // namespace ng
