// A list of plain values that grows by realloc: a long one is moved by its pages, not copied.
#pragma once
#include <cstddef>
#include <cstdlib>
#include <new>
#include <type_traits>
#include <utility>

namespace ng {

template <class T>
class Growing {
    static_assert(std::is_trivially_copyable_v<T>, "realloc moves bytes");

  public:
    Growing() = default;
    Growing(Growing&& other) noexcept { *this = std::move(other); }
    Growing& operator=(Growing&& other) noexcept
    {
        std::swap(data_, other.data_), std::swap(count_, other.count_), std::swap(room_, other.room_);
        return *this;
    }
    ~Growing() { std::free(data_); }

    // Makes sure that the next push_back allocates nothing.
    void make_room()
    {
        if (count_ < room_) return;
        const std::size_t room = 2 * room_ + 8;
        void* const data = std::realloc(data_, room * sizeof(T));
        if (!data) throw std::bad_alloc();
        data_ = static_cast<T*>(data), room_ = room;
    }
    void push_back(T value)
    {
        make_room();
        data_[count_++] = value;
    }
    std::size_t size() const { return count_; }
    const T& operator[](std::size_t i) const { return data_[i]; }
    const T* begin() const { return data_; }
    const T* end() const { return data_ + count_; }

  private:
    T*          data_ = nullptr;
    std::size_t count_ = 0, room_ = 0;
};

}  // namespace ng
