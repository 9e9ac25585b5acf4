// Claims and growth of the pieces that runs work in.
#include "lib/workspace.h"

#include <thread>

namespace ng {
namespace {
constexpr size_t ALIGNMENT = 64;
}

const Fate Workspaces::FATE = {Workspaces::end, Workspaces::remove};

Workspaces::Workspaces(Context& context, uint32_t count) : Belonging(context, FATE), pieces_(new Piece[count]), count_(count) {}

void destroy(const Workspaces* w) noexcept { const_cast<Workspaces*>(w)->expire(); }

Ref<Workspaces> Workspaces::create(Context& context, uint64_t bytes, uint32_t count, const char* who)
{
    Ref<Workspaces> w = new Workspaces(context, count);
    w->enlist();
    w->grow(bytes, who);
    return w;
}

void Workspaces::grow(uint64_t bytes, const char* who)
{
    if (bytes <= bytes_.load(std::memory_order_acquire)) return;
    for (uint32_t i = 0; i < count_; i++) {
        Piece& p = pieces_[i];
        while (p.busy.exchange(true, std::memory_order_acquire)) std::this_thread::yield();
        char* memory = nullptr;
        try {
            memory = static_cast<char*>(context().allocate(bytes, ALIGNMENT, NG_MEM_WORK, who));
        } catch (...) {
            p.busy.store(false, std::memory_order_release);
            throw;
        }
        if (p.memory) context().free(p.memory, p.bytes, NG_MEM_WORK);
        p.memory = memory, p.bytes = bytes;
        p.busy.store(false, std::memory_order_release);
    }
    bytes_.store(bytes, std::memory_order_release);
}

char* Workspaces::claim(uint32_t& index) noexcept
{
    for (index = 0; index < count_; index++)
        if (!pieces_[index].busy.load(std::memory_order_relaxed) && !pieces_[index].busy.exchange(true, std::memory_order_acquire)) return pieces_[index].memory;
    return nullptr;
}

void Workspaces::give_back(Context& context) noexcept
{
    for (uint32_t i = 0; i < count_; i++) {
        if (pieces_[i].memory) context.free(pieces_[i].memory, pieces_[i].bytes, NG_MEM_WORK);
        pieces_[i].memory = nullptr;
    }
}

void Workspaces::end(Belonging& thing, Context& context) noexcept { static_cast<Workspaces&>(thing).give_back(context); }

void Workspaces::remove(Belonging* thing, Context& context) noexcept
{
    auto* w = static_cast<Workspaces*>(thing);
    w->delist(context);
    w->give_back(context);
    delete w;
}

}  // namespace ng
