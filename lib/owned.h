// A resource of a C library, closed by the function that the library has for it.
#pragma once
#include <utility>

namespace ng {

// Owned<FILE*, std::fclose>. `None` is the value that means nothing: NULL, or -1 for a file descriptor.
template <class T, auto Close, T None = T{}>
class Owned {
  public:
    Owned() = default;
    explicit Owned(T value) noexcept : value_(value) {}
    Owned(Owned&& other) noexcept : value_(other.release()) {}
    Owned& operator=(Owned&& other) noexcept
    {
        std::swap(value_, other.value_);
        return *this;
    }
    ~Owned() { reset(); }

    explicit operator bool() const noexcept { return value_ != None; }
    T get() const noexcept { return value_; }
    T release() noexcept { return std::exchange(value_, None); }
    void reset(T value = None) noexcept
    {
        const T old = std::exchange(value_, value);
        if (old != None) (void)Close(old);
    }
    // For functions that give a resource through a pointer.
    T* out() noexcept
    {
        reset();
        return &value_;
    }

  private:
    T value_ = None;
};

}  // namespace ng
