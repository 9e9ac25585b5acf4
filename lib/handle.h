// Handles: numbers below 2^47 that stand for objects, and the look-up that is safe whatever number it is given.
#pragma once
#include "jit/ref.h"

#include <atomic>
#include <cstdint>
#include <utility>

namespace ng {

// handle  kind 3 bits | generation 18 | slot 26. Addresses of programs, heaps and stacks have 0, 5 or 7 where kind is.
enum class HandleKind : uint8_t { None = 0, Context = 1, Tensor = 2, Scope = 3, Expression = 4, Program = 6 };

// Every type that handles stand for says which: template <> inline constexpr HandleKind KIND_OF<Tensor> = ...
template <class T> inline constexpr HandleKind KIND_OF = HandleKind::None;

// What stands for an expression or scope where there was no memory even for a fault: a null would pass for an operand, or for a
// scope, that is left out. No handle has generation 0.
template <class T> inline constexpr uint64_t UNMADE = uint64_t(KIND_OF<T>) << 44 | ((uint64_t(1) << 26) - 1);

// Goes up in the child of every fork: what was made under another epoch is lost there. 0 in the first process.
uint32_t fork_epoch() noexcept;
// From here on forks are seen; called by whatever outlives one badly. NG_E_MEMORY when the system has no room to remember it.
void watch_forks();

// The table: slots live in chunks that are never freed, so that any number may be looked up. Nothing here locks.
namespace table {

struct Slot {
    std::atomic<uint64_t> word{0};      // kind 3 | generation 18 | references 22 | pins 21
    std::atomic<void*>    object{nullptr};
    std::atomic<uint64_t> owner{0};     // an expression's: the handle of its scope; 0: the caller's
    std::atomic<uint32_t> next{0};      // while it is free: 1 + the next free one
    std::atomic<uint32_t> epoch{0};
};

uint64_t make(HandleKind kind, void* object, uint64_t owner);           // std::bad_alloc; one reference
Slot*    pin(uint64_t handle, HandleKind kind) noexcept;                // null: no such object
bool     retain(uint64_t handle, HandleKind kind) noexcept;
uint32_t references(uint64_t handle, HandleKind kind) noexcept;         // that it has now; 0: no such object
// Both return the object whose reference the caller now owes a release, when the last user went; null otherwise.
void*    unpin(Slot& slot) noexcept;
void*    release(uint64_t handle, HandleKind kind) noexcept;

}  // namespace table

inline uint64_t handle_of(const void* handle) { return reinterpret_cast<uintptr_t>(handle); }
template <class H> H* to_handle(uint64_t handle) { return reinterpret_cast<H*>(uintptr_t(handle)); }

// A new handle with one reference: the caller's. Several handles may stand for one object.
template <class T>
uint64_t make_handle(Ref<T> object, uint64_t owner_scope = 0)
{
    const uint64_t handle = table::make(KIND_OF<T>, const_cast<std::remove_const_t<T>*>(object.get()), owner_scope);
    (void)object.detach();
    return handle;
}

template <class T>
bool retain_handle(uint64_t handle) noexcept { return table::retain(handle, KIND_OF<T>); }

// Does nothing for what is stale or never was. NG_RT, as far as the object's destroy() is.
template <class T>
void release_handle(uint64_t handle) noexcept
{
    if (void* last = table::release(handle, KIND_OF<T>)) Ref<T>::adopt(static_cast<T*>(last));
}

// Keeps an object, and its slot, for as long as a call uses it. False when the handle stands for no T.
template <class T>
class Pin {
  public:
    Pin() = default;
    explicit Pin(uint64_t handle) noexcept : slot_(table::pin(handle, KIND_OF<T>)), handle_(handle) {}
    explicit Pin(const void* handle) noexcept : Pin(handle_of(handle)) {}
    Pin(Pin&& other) noexcept : slot_(std::exchange(other.slot_, nullptr)), handle_(other.handle_) {}
    Pin& operator=(Pin&& other) noexcept
    {
        std::swap(slot_, other.slot_);
        std::swap(handle_, other.handle_);
        return *this;
    }
    ~Pin()
    {
        if (!slot_) return;
        if (void* last = table::unpin(*slot_)) Ref<T>::adopt(static_cast<T*>(last));
    }

    explicit operator bool() const noexcept { return slot_ != nullptr; }
    T* get() const noexcept { return slot_ ? static_cast<T*>(slot_->object.load(std::memory_order_relaxed)) : nullptr; }
    T& operator*() const noexcept { return *get(); }
    T* operator->() const noexcept { return get(); }
    Ref<T> ref() const { return Ref<T>(get()); }

    uint64_t handle() const noexcept { return handle_; }
    // Made before a fork that this process came from: NG_E_LOST.
    bool is_forked() const noexcept { return slot_->epoch.load(std::memory_order_relaxed) != fork_epoch(); }
    uint64_t owner() const noexcept { return slot_->owner.load(std::memory_order_acquire); }
    void set_owner(uint64_t scope) const noexcept { slot_->owner.store(scope, std::memory_order_release); }

  private:
    table::Slot* slot_ = nullptr;
    uint64_t     handle_ = 0;
};

}  // namespace ng
