// Memory that runs work in: planned once, claimed for each run without a lock.
#pragma once
#include "lib/context.h"

#include <atomic>
#include <memory>

namespace ng {

// One stretch of workspace, given back after the device's work on it; NG_MEM_NODE: of the host, for tables.
class WorkPiece {
  public:
    WorkPiece(Context& context, uint64_t bytes, const char* who, ng_purpose purpose = NG_MEM_WORK);
    ~WorkPiece() { context_.free(memory_, bytes_, purpose_, track_.get()); }
    WorkPiece(const WorkPiece&) = delete;
    uint64_t bytes() const noexcept { return bytes_; }
    char* memory() const noexcept { return memory_; }
    Track* track() const noexcept { return track_.get(); }
    // What is queued until the order is closed waits for what others queued on it.
    void touch(Ordered& order) const { order.touch(track_.get(), memory_, memory_ + bytes_, true, true); }
    // Of what it takes the place of all that graphs hold: that itself, or what that kept.
    void keep(std::unique_ptr<WorkPiece>& before, bool is_held) noexcept { kept_ = std::move(is_held ? before : before->kept_); }

  private:
    Context&               context_;
    const uint64_t         bytes_;
    const ng_purpose       purpose_;
    const std::unique_ptr<Track> track_;
    char* const            memory_;
    std::unique_ptr<WorkPiece> kept_;
};

// As many pieces of equal size as runs may be under way; programs may share them, their runs are then ordered.
class Workspaces final : public Belonging {
  public:
    static Ref<Workspaces> create(Context& context, uint64_t bytes, uint32_t count, const char* who);
    // At least so many bytes a piece from now on. Waits for runs under way; what graphs hold stays beside it.
    void grow(uint64_t bytes, const char* who);

    // A piece that nobody else has until vacate, the one that this stream had last if it may be; null when all are taken. No lock, no allocation.
    const WorkPiece* claim(ng_stream s, uint32_t& index) noexcept;
    void  vacate(uint32_t index) noexcept { pieces_[index].busy.store(false, std::memory_order_release); }
    // A graph holds the address of a piece that was claimed: it stays until all ends.
    void  hold(uint32_t index) noexcept { pieces_[index].is_held = true; }
    uint64_t bytes() const noexcept { return bytes_.load(std::memory_order_acquire); }

  private:
    struct Piece {
        std::atomic<bool>          busy{false};
        std::atomic<ng_stream>     last{nullptr};
        bool                       is_held = false;
        std::unique_ptr<WorkPiece> work;
    };
    Workspaces(Context& context, uint32_t count);
    friend void destroy(const Workspaces*) noexcept;
    bool take(uint32_t index) noexcept;
    void replace(Piece& p, std::unique_ptr<WorkPiece>& larger) noexcept;
    void give_back() noexcept;
    static void end(Belonging& thing, Context& context) noexcept;
    static void remove(Belonging* thing, Context& context) noexcept;
    static const Fate FATE;

    std::unique_ptr<Piece[]> pieces_;
    const uint32_t           count_;
    std::atomic<uint64_t>    bytes_{0};
    std::atomic<uint32_t>    turn_{0};
};
void destroy(const Workspaces* workspaces) noexcept;

}  // namespace ng
