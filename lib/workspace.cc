// Claims and growth of the pieces that runs work in.
#include "lib/workspace.h"

#include <thread>
#include <utility>

namespace ng {
namespace {
constexpr size_t ALIGNMENT = 64;
}

WorkPiece::WorkPiece(Context& context, uint64_t bytes, const char* who, ng_purpose purpose)
    : context_(context), bytes_(bytes), purpose_(purpose), track_(purpose == NG_MEM_NODE ? nullptr : context.backend().make_track()),
      memory_(static_cast<char*>(context.allocate(bytes, ALIGNMENT, purpose, who)))
{
    try {
        context.track_ours(track_.get(), memory_, bytes, nullptr);
    } catch (...) {
        context_.free(memory_, bytes_, purpose_, track_.get());
        throw;
    }
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
        auto larger = std::make_unique<WorkPiece>(context(), bytes, who);
        const Ordered held(context().backend(), nullptr);       // as every run of a device does: none finds the piece taken
        replace(pieces_[i], larger);
    }
    uint64_t before = bytes_.load(std::memory_order_relaxed);
    while (before < bytes && !bytes_.compare_exchange_weak(before, bytes, std::memory_order_release, std::memory_order_relaxed)) continue;
}

// Memory is taken before the piece is, since hooks may be called for it, which may want this very piece.
void Workspaces::replace(Piece& p, std::unique_ptr<WorkPiece>& larger) noexcept
{
    while (p.busy.exchange(true, std::memory_order_acquire)) std::this_thread::yield();
    if (!p.work) {
        p.work = std::move(larger);
    } else if (p.work->bytes() < larger->bytes()) {         // else another thread wanted more
        p.work.swap(larger);
        p.work->keep(larger, std::exchange(p.is_held, false));
    }
    p.busy.store(false, std::memory_order_release);
}

bool Workspaces::take(uint32_t index) noexcept
{
    return !pieces_[index].busy.load(std::memory_order_relaxed) && !pieces_[index].busy.exchange(true, std::memory_order_acquire);
}

const WorkPiece* Workspaces::claim(ng_stream s, uint32_t& index) noexcept
{
    for (index = 0; index < count_; index++)
        if (pieces_[index].last.load(std::memory_order_relaxed) == s && take(index)) return pieces_[index].work.get();
    const uint32_t first = turn_.fetch_add(1, std::memory_order_relaxed);
    for (uint32_t i = 0; i < count_; i++) {
        index = (first + i) % count_;
        if (!take(index)) continue;
        pieces_[index].last.store(s, std::memory_order_relaxed);
        return pieces_[index].work.get();
    }
    return nullptr;
}

void Workspaces::give_back() noexcept
{
    for (uint32_t i = 0; i < count_; i++) pieces_[i].work = nullptr;
}

void Workspaces::end(Belonging& thing, Context&) noexcept { static_cast<Workspaces&>(thing).give_back(); }

void Workspaces::remove(Belonging* thing, Context& context) noexcept
{
    auto* w = static_cast<Workspaces*>(thing);
    w->delist(context);
    w->give_back();
    delete w;
}

}  // namespace ng
