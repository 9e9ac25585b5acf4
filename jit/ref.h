// Intrusive reference counting: an object that counts its owners, and the owner.
#pragma once
#include <atomic>
#include <cstdint>
#include <utility>

namespace ng {

// The last owner to go calls destroy(const T*), found by argument-dependent lookup; the default deletes.
class RefCounted {
  public:
    RefCounted() = default;
    RefCounted(const RefCounted&) : count_(0) {}
    RefCounted& operator=(const RefCounted&) { return *this; }

    void retain() const noexcept { count_.fetch_add(1, std::memory_order_relaxed); }
    bool release() const noexcept { return count_.fetch_sub(1, std::memory_order_acq_rel) == 1; }
    uint32_t owners() const noexcept { return count_.load(std::memory_order_acquire); }

  private:
    mutable std::atomic<uint32_t> count_{0};
};

template <class T>
void destroy(const T* object) noexcept { delete object; }

template <class T>
class Ref {
  public:
    Ref() = default;
    Ref(T* object) : object_(object) { if (object_) object_->retain(); }
    Ref(const Ref& other) : Ref(other.object_) {}
    Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
    template <class U> Ref(const Ref<U>& other) : Ref(other.get()) {}
    ~Ref() { drop(); }
    Ref& operator=(Ref other) noexcept { std::swap(object_, other.object_); return *this; }

    T* get() const noexcept { return object_; }
    T& operator*() const noexcept { return *object_; }
    T* operator->() const noexcept { return object_; }
    explicit operator bool() const noexcept { return object_ != nullptr; }
    bool operator==(const Ref& other) const noexcept { return object_ == other.object_; }

    // Gives the reference away: whoever takes the pointer owes a release.
    T* detach() noexcept { return std::exchange(object_, nullptr); }
    // Takes over a reference that detach gave away.
    static Ref adopt(T* object) { Ref r; r.object_ = object; return r; }

  private:
    void drop() noexcept
    {
        if (object_ && object_->release()) destroy(object_);
        object_ = nullptr;
    }
    T* object_ = nullptr;
};

}  // namespace ng
