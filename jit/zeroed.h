// An array of zeros in which memory is used only where something was written: for tables that are sparse or grow by much.
#pragma once
#include <cstddef>
#include <cstdlib>
#include <new>
#include <type_traits>
#include <utility>

namespace ng {

template <class T>
class Zeroed {
    static_assert(std::is_trivial_v<T>, "all bits zero is a value");

  public:
    Zeroed() = default;
    explicit Zeroed(std::size_t count) : data_(static_cast<T*>(std::calloc(count, sizeof(T)))), count_(count)
    {
        if (!data_) throw std::bad_alloc();
    }
    Zeroed(Zeroed&& other) noexcept : data_(std::exchange(other.data_, nullptr)), count_(std::exchange(other.count_, 0)) {}
    Zeroed& operator=(Zeroed&& other) noexcept
    {
        std::swap(data_, other.data_), std::swap(count_, other.count_);
        return *this;
    }
    ~Zeroed() { std::free(data_); }

    std::size_t size() const { return count_; }
    T&       operator[](std::size_t i) { return data_[i]; }
    const T& operator[](std::size_t i) const { return data_[i]; }
    const T* begin() const { return data_; }
    const T* end() const { return data_ + count_; }

  private:
    T*          data_ = nullptr;
    std::size_t count_ = 0;
};

}  // namespace ng
