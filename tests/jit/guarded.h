// Memory of one tensor between pages that nobody may touch, with the bytes around it as they were.
#pragma once
#include "tests/jit/emit_cases.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

namespace ng::emitted {

class Guarded {
  public:
    static constexpr char BLANK = char(0xa5);
    static constexpr int64_t VECTOR = 16, ALLOCATED = 256;       // what vectors and allocations are aligned to, in bytes

    Guarded() = default;
    // below, above: elements before the first and from it on. off: bytes by which the first misses a vector's alignment. At its pages' end
    // what is read behind the last is a fault, up to a vector; at their beginning what is read before the first.
    Guarded(Dtype type, int64_t below, int64_t above, int64_t off = 0, bool is_at_end = true) : type_(type)
    {
        const int64_t page = sysconf(_SC_PAGESIZE), bytes = (below + above) * bytes_of(type), body = (bytes + 2 * ALLOCATED + page - 1) / page * page;
        const auto mapped = size_t(body + 2 * page);
        void* const at = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (at == MAP_FAILED) throw Error(NG_E_NOMEM, text("no memory of ", mapped, " bytes"));
        map_ = {static_cast<char*>(at), Unmap{mapped}};
        inside_ = {map_.get() + page, size_t(body)};
        mprotect(map_.get(), size_t(page), PROT_NONE), mprotect(map_.get() + page + body, size_t(page), PROT_NONE);
        std::ranges::fill(inside_, BLANK);
        char* const begin = is_at_end ? inside_.data() + body - bytes : inside_.data();
        first_ = begin + below * bytes_of(type);
        const int64_t to = (off - int64_t(reinterpret_cast<uintptr_t>(first_))) % ALLOCATED;
        first_ += is_at_end ? -((-to % VECTOR + VECTOR) % VECTOR) : (to + ALLOCATED) % ALLOCATED;
        own_ = {first_ - below * bytes_of(type), size_t(bytes)};
    }
    Dtype type() const { return type_; }
    char* data() const { return first_; }
    // The tensor's, from its lowest element.
    std::vector<char> bytes() const { return {own_.begin(), own_.end()}; }
    void set(int64_t i, double value) { put_number(type_, data() + i * bytes_of(type_), value); }
    double get(int64_t i) const { return number_at(type_, data() + i * bytes_of(type_)); }

    void keep() { kept_.assign(inside_.begin(), inside_.end()); }
    // Whether all but these elements is as it was when it was kept.
    bool is_kept(const std::vector<int64_t>& elements) const
    {
        std::vector<char> now(inside_.begin(), inside_.end());
        for (const int64_t i : elements) {
            const int64_t at = first_ - inside_.data() + i * bytes_of(type_);
            std::copy_n(kept_.begin() + at, bytes_of(type_), now.begin() + at);
        }
        return now == kept_;
    }

  private:
    struct Unmap {
        size_t bytes;
        void operator()(char* at) const { munmap(at, bytes); }
    };
    Dtype type_ = Dtype::f32;
    std::unique_ptr<char, Unmap> map_;
    std::span<char> inside_, own_;           // between the pages; the tensor's
    char* first_ = nullptr;
    std::vector<char> kept_;
};

}  // namespace ng::emitted
