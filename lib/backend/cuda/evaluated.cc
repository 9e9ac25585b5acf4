// How kernels are told apart, with their numbers and without, and which of them are kept.
#include "lib/backend/cuda/evaluated.h"

#include <algorithm>

namespace ng::cuda {
namespace {

class Hash {
  public:
    explicit Hash(bool has_numbers) : has_numbers_(has_numbers) {}
    void add(uint64_t word)
    {
        state_ = (state_ ^ word) * 0x9e3779b97f4a7c15u;
        state_ ^= state_ >> 29;
    }
    // Whether an extent or stride is 0 or 1 is structure.
    void add(const Extent& e) { add(has_numbers_ || e.is(0) || e.is(1) || !e.is_constant() ? e.hash() : 2); }
    void add(const Kernel& k)
    {
        add(k.axes.size()), add(k.values.size()), add(k.stores.size());
        for (const KernelAxis& a : k.axes) add(a.extent), add(uint64_t(a.reduced));
        for (const Access& a : k.accesses) {
            add(a.offset);
            for (const Extent& s : a.strides) add(s);
        }
        for (const Value& v : k.values) add(v);
        for (const StoreTo& s : k.stores) add(uint64_t(s.value) << 40 ^ uint64_t(s.buffer) << 20 ^ uint64_t(s.access) << 1 ^ uint64_t(s.late));
    }
    uint64_t value() const { return state_; }

  private:
    void add(const Value& v)
    {
        add(uint64_t(v.kind) << 48 | uint64_t(v.op) << 32 | uint64_t(v.type) << 8 | uint64_t(v.row));
        for (const int32_t arg : v.args) add(uint64_t(int64_t(arg)));
        add(uint64_t(int64_t(v.buffer)) << 32 ^ uint32_t(v.access));
        if (has_numbers_ || v.kind != ValueKind::Constant) add(uint64_t(v.bits));
        add(v.extent), add(v.stride);
    }
    uint64_t   state_ = 0x243f6a8885a308d3u;
    const bool has_numbers_;
};

uint64_t hash_of(const Kernel& kernel, bool has_numbers)
{
    Hash hash(has_numbers);
    hash.add(kernel);
    return hash.value();
}

bool are_equal(const Kernel& a, const Kernel& b)
{
    return a.axes == b.axes && a.accesses == b.accesses && a.values == b.values && a.stores == b.stores;
}

// Of a kernel whose lengths are known, as an evaluation's are.
double points_of(const Kernel& kernel)
{
    double points = 1;
    for (const KernelAxis& a : kernel.axes) points *= a.extent.is_constant() ? double(a.extent.constant()) : 1;
    return points;
}

}  // namespace

template <class Map>
void Evaluated::make_room(Map& map)
{
    if (map.size() >= ROOM) map.erase(std::ranges::min_element(map, {}, [](const auto& entry) { return entry.second.last; }));
}

Evaluated::Kept* Evaluated::find(const Met& met, const Kernel& kernel)
{
    const auto [first, last] = kept_.equal_range(met.exact);
    const auto at = std::find_if(first, last, [&](const auto& entry) { return are_equal(entry.second.kernel, kernel); });
    if (at == last) return nullptr;
    at->second.last = now_;
    return &at->second;
}

Evaluated::Met Evaluated::meet(const Kernel& kernel)
{
    Met met;
    met.exact = hash_of(kernel, true), met.structure = hash_of(kernel, false);
    const std::lock_guard hold(lock_);
    now_++;
    if (const Kept* const known = find(met, kernel)) {
        met.fused = known->fused, met.is_often = true;
        return met;
    }
    if (!structures_.contains(met.structure)) make_room(structures_);
    Structure& s = structures_[met.structure];
    s.last = now_;
    const bool is_large = points_of(kernel) >= LARGE;
    s.count += is_large ? WEIGHT : 1;
    if (s.count < OFTEN) return met;
    met.is_often = is_large;
    make_room(kept_);
    kept_.insert({met.exact, {kernel, nullptr, now_}});
    return met;
}

bool Evaluated::may_compile(const Met& met)
{
    const std::lock_guard hold(lock_);
    const auto at = structures_.find(met.structure);
    return at != structures_.end() && at->second.sizes < MOST_SIZES && ++at->second.sizes;
}

void Evaluated::keep(const Met& met, const Kernel& kernel, const std::shared_ptr<Fused>& fused)
{
    const std::lock_guard hold(lock_);
    if (Kept* const known = find(met, kernel)) known->fused = fused;
}

void Evaluated::clear() noexcept
{
    const std::lock_guard hold(lock_);
    structures_.clear(), kept_.clear();
}

}  // namespace ng::cuda
