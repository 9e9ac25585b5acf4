// A stretch of memory that tensors share: made by us or lent by the host, in use or ended.
#pragma once
#include "lib/context.h"

namespace ng {

class Memory final : public Belonging {
  public:
    // NG_E_DEVMEM. Not initialised; pages are first touched by who fills them (S7).
    // purpose: NG_MEM_TENSOR, or NG_MEM_STAGING for page-locked memory of the host.
    static Ref<Memory> allocate(Context& context, uint64_t bytes, ng_purpose purpose, const char* who, Context::Hooks hooks);
    static Ref<Memory> wrap(Context& context, void* data, uint64_t bytes);
    // Of wrapped memory, once nothing can fail any more: done comes once, when nobody uses data (S5). UntilClose: borrowers or not.
    enum class Lives : uint8_t { UntilClose, WhileLent };
    void set_done(ng_done_fn done, void* user, Lives lives) noexcept;

    char*    data() const noexcept { return data_; }     // never null for what we made, even of 0 bytes
    uint64_t bytes() const noexcept { return bytes_; }

    // Between enter and leave the memory stays (Use does both). False: it was closed.
    bool enter() noexcept;
    void leave() noexcept { uses_.fetch_sub(1, std::memory_order_release); }
    Track* track() const noexcept { return track_.get(); }   // of the device's work on it; null: there is none to track
    bool is_closed() const noexcept { return uses_.load(std::memory_order_acquire) & CLOSED; }
    // Waits for those inside, then gives the memory back or calls done. NG_E_INVALID when it was closed before.
    void close(const char* who);

    // DLPack's consumers know no end but their own: plain memory of ours, and what came by DLPack, stays for them beyond its close.
    void lend() noexcept { borrowers_.fetch_add(1, std::memory_order_relaxed); }
    void take_back() noexcept { borrowers_.fetch_sub(1, std::memory_order_release); }

  private:
    Memory(Context& context, void* data, uint64_t bytes);
    friend void destroy(const Memory*) noexcept;
    void give_back(Context& context) noexcept;
    static void end(Belonging& thing, Context& context) noexcept;
    static void remove(Belonging* thing, Context& context) noexcept;
    static bool is_ready(Belonging& thing, Context& context) noexcept;
    static const Fate FATE;

    static constexpr uint64_t CLOSED = uint64_t(1) << 63;
    char*                 data_;
    const uint64_t        bytes_;
    bool                  is_ours_ = false;         // to be freed
    ng_purpose            purpose_ = NG_MEM_TENSOR;
    std::unique_ptr<Track> track_;
    ng_done_fn            done_ = nullptr;
    void*                 user_ = nullptr;
    Lives                 lives_ = Lives::UntilClose;
    std::atomic<uint64_t> uses_{0};                 // and CLOSED
    std::atomic<uint32_t> borrowers_{0};
};
void destroy(const Memory* memory) noexcept;

// Keeps memory from being closed while a call works on it. No lock, no allocation.
class Use {
  public:
    Use() = default;
    explicit Use(Memory& memory) noexcept : memory_(memory.enter() ? &memory : nullptr) {}
    Use(Use&& other) noexcept : memory_(std::exchange(other.memory_, nullptr)) {}
    Use& operator=(Use&& other) noexcept
    {
        std::swap(memory_, other.memory_);
        return *this;
    }
    ~Use()
    {
        if (memory_) memory_->leave();
    }
    explicit operator bool() const noexcept { return memory_ != nullptr; }

  private:
    Memory* memory_ = nullptr;
};

}  // namespace ng
