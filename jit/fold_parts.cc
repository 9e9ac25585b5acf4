// Takes a kernel apart at its folds: values move to one side or the other, and parts of the folds lie between.
#include "jit/fold_parts.h"

#include <algorithm>
#include <bit>

namespace ng {
namespace {

bool is_fold_of_parts(const Value& v)
{
    const bool is_plain = v.op == Op::sum || v.op == Op::prod || v.op == Op::min || v.op == Op::max;
    return is_plain && (v.type == Dtype::f32 || (v.type == Dtype::i32 && v.op != Op::sum && v.op != Op::prod));
}

class Cutter {
  public:
    Cutter(const Kernel& kernel, int32_t buffers, const Extent& parts) : kernel_(kernel), buffers_(buffers), parts_(parts) {}

    std::optional<FoldParts> in_parts();         // folds begin at the points
    std::optional<FoldParts> by_stores(int32_t product);     // all of them come behind

  private:
    bool is_reduced(size_t axis) const { return kernel_.axes[axis].reduced; }
    bool is_row(const Access& a) const
    {
        for (size_t i = 0; i < kernel_.axes.size(); i++)
            if (is_reduced(i) && !a.strides[i].is(0)) return false;
        return true;
    }
    bool is_row(const StoreTo& s) const { return is_row(kernel_.accesses[size_t(s.access)]); }
    bool find_axis();
    void lay_parts();
    bool cut_points(const std::vector<int32_t>& stores);
    void add_folds();
    void cut_after();
    // The values that these are made of, up to those where the way ends.
    template <class Ends>
    std::vector<bool> needed(std::vector<bool> seeds, const Ends& ends) const;
    Value   moved(size_t v) const;
    int32_t after_buffer(int32_t buffer);
    int32_t after_access(const Access& access);
    Access  without_folded(const Access& from) const;
    void    store_after(StoreTo s, const Access& access);
    bool    find_squares(int32_t fold);
    void    add_part(int32_t value, Op op, FoldTerm term);
    int32_t add_after(Value value);
    int32_t load_part(size_t fold, Dtype type, int32_t access);
    int32_t squares_after(int32_t access);

    // Folds of squared distances: `fold` sums (x - from)^2, from a row's value.
    struct Squares {
        int32_t fold = -1, x = -1, from = -1;
    };

    const Kernel&        kernel_;
    const int32_t        buffers_;
    const Extent         parts_;
    Access               part_;          // of the kernel's axes
    std::vector<size_t>  others_;        // axes that a part has
    std::vector<int32_t> folds_;         // values; without squares_
    Squares              squares_;       // one at most
    std::vector<int32_t> place_;         // by value: of the kernel in the making
    FoldParts            out_;
};

// ---- both -------------------------------------------------------------------------------------------------------------

template <class Ends>
std::vector<bool> Cutter::needed(std::vector<bool> seeds, const Ends& ends) const
{
    for (size_t v = kernel_.values.size(); v-- > 0;) {
        if (!seeds[v] || ends(v)) continue;
        for (const int32_t arg : kernel_.values[v].args)
            if (arg >= 0) seeds[size_t(arg)] = true;
    }
    return seeds;
}

Value Cutter::moved(size_t v) const
{
    Value value = kernel_.values[v];
    for (int32_t& arg : value.args) arg = arg < 0 ? -1 : place_[size_t(arg)];
    return value;
}

// stores: which of the kernel's. False: a value waits for a fold.
bool Cutter::cut_points(const std::vector<int32_t>& stores)
{
    Kernel& k = out_.points;
    k.name = kernel_.name, k.axes = kernel_.axes, k.accesses = kernel_.accesses;
    for (KernelAxis& axis : k.axes) axis.reduced = false;
    std::vector<bool> seeds(kernel_.values.size());
    for (const int32_t s : stores) seeds[size_t(kernel_.stores[size_t(s)].value)] = true;
    for (const int32_t f : folds_) seeds[size_t(kernel_.values[size_t(f)].args[0])] = true;
    if (squares_.fold >= 0) seeds[size_t(squares_.x)] = true;
    const std::vector<bool> is_needed = needed(std::move(seeds), [](size_t) { return false; });
    place_.assign(kernel_.values.size(), -1);
    for (size_t v = 0; v < kernel_.values.size(); v++) {
        if (!is_needed[v]) continue;
        if (kernel_.values[v].kind == ValueKind::Fold) return false;
        Value value = moved(v);
        value.row = false;
        place_[v] = int32_t(k.values.size());
        k.values.push_back(std::move(value));
    }
    for (const int32_t s : stores) {
        k.stores.push_back(kernel_.stores[size_t(s)]);
        k.stores.back().value = place_[size_t(k.stores.back().value)];
    }
    return true;
}

int32_t Cutter::after_buffer(int32_t buffer)
{
    std::vector<int32_t>& all = out_.after_buffers;
    const auto at = std::ranges::find(all, buffer);
    const auto number = int32_t(at - all.begin());
    if (at == all.end()) all.push_back(buffer);
    return number;
}
int32_t Cutter::after_access(const Access& access)
{
    out_.after.accesses.push_back(access);
    return int32_t(out_.after.accesses.size()) - 1;
}
void Cutter::store_after(StoreTo s, const Access& access)
{
    s.value = place_[size_t(s.value)], s.buffer = after_buffer(s.buffer), s.access = after_access(access);
    out_.after.stores.push_back(s);
}

// ---- folds in parts ---------------------------------------------------------------------------------------------------

bool Cutter::find_axis()
{
    const size_t rank = kernel_.axes.size();
    if (rank < 2 || (!is_reduced(rank - 1) && !is_reduced(rank - 2))) return false;
    out_.axis = is_reduced(rank - 1) ? rank - 1 : rank - 2;
    for (size_t v = 0; v < kernel_.values.size(); v++) {
        if (kernel_.values[v].kind != ValueKind::Fold) continue;
        if (!is_fold_of_parts(kernel_.values[v])) return false;
        if (!find_squares(int32_t(v))) folds_.push_back(int32_t(v));
    }
    return !folds_.empty();
}

// Of (x - from)^2 with an x that waits for no fold, and a row's number that does.
bool Cutter::find_squares(int32_t fold)
{
    const auto of = [&](int32_t v) -> const Value& { return kernel_.values[size_t(v)]; };
    const auto is_map = [&](int32_t v, Op op) { return of(v).kind == ValueKind::Map && of(v).op == op; };
    // Parts of columns are many: four numbers of each would be more than what is not read again.
    if (out_.axis + 1 != kernel_.axes.size()) return false;
    const int32_t square = of(fold).args[0];
    const bool is_square = is_map(square, Op::square) || (is_map(square, Op::mul) && of(square).args[0] == of(square).args[1]);
    if (squares_.fold >= 0 || of(fold).op != Op::sum || of(fold).type != Dtype::f32 || !is_square) return false;
    const int32_t off = of(square).args[0];
    if (!is_map(off, Op::sub) || !of(of(off).args[1]).row || of(of(off).args[0]).row) return false;
    std::vector<bool> seeds(kernel_.values.size());
    seeds[size_t(of(off).args[1])] = true;
    const std::vector<bool> is_from = needed(std::move(seeds), [](size_t) { return false; });
    if (std::ranges::none_of(folds_, [&](int32_t f) { return is_from[size_t(f)]; })) return false;
    squares_ = {fold, of(off).args[0], of(off).args[1]};
    return true;
}

// Of a fold over columns a part has all else, reduced or not; one over rows goes on through what else is reduced.
void Cutter::lay_parts()
{
    const size_t rank = kernel_.axes.size();
    part_ = {0, Extents(rank, Extent(0))};
    for (size_t i = rank; i-- > 0;) {
        if (i == out_.axis || (out_.axis != rank - 1 && is_reduced(i))) continue;
        part_.strides[i] = out_.count;
        out_.count = out_.count * kernel_.axes[i].extent;
        others_.insert(others_.begin(), i);
    }
}

// Terms are stored as elements are; each store is a fold's.
void Cutter::add_folds()
{
    Kernel& k = out_.points;
    k.accesses.push_back(part_);
    for (const int32_t f : folds_) add_part(place_[size_t(kernel_.values[size_t(f)].args[0])], kernel_.values[size_t(f)].op, FoldTerm::Itself);
    if (squares_.fold < 0) return;
    Value one{ValueKind::Constant};
    one.type = Dtype::f32, one.bits = std::bit_cast<int64_t>(1.0);
    k.values.push_back(one);
    const int32_t x = place_[size_t(squares_.x)];
    add_part(x, Op::sum, FoldTerm::Pivot), add_part(x, Op::sum, FoldTerm::Off), add_part(x, Op::sum, FoldTerm::OffSquared);
    add_part(int32_t(k.values.size()) - 1, Op::sum, FoldTerm::Count);
}
void Cutter::add_part(int32_t value, Op op, FoldTerm term)
{
    Kernel& k = out_.points;
    out_.folds.push_back({int32_t(k.stores.size()), op, term});
    k.stores.push_back({value, buffers_ + int32_t(out_.folds.size()) - 1, int32_t(k.accesses.size()) - 1});
}

Access Cutter::without_folded(const Access& from) const
{
    Access a{from.offset, {Extent(0)}};
    for (const size_t i : others_) a.strides.push_back(from.strides[i]);
    return a;
}

void Cutter::cut_after()
{
    Kernel& k = out_.after;
    k.name = kernel_.name;
    k.axes.push_back({parts_, true});
    for (const size_t i : others_) k.axes.push_back(kernel_.axes[i]);
    Access of_parts = without_folded(part_);
    of_parts.strides[0] = out_.count;
    std::vector<bool> seeds(kernel_.values.size());
    for (const StoreTo& s : kernel_.stores)
        if (is_row(s)) seeds[size_t(s.value)] = true;
    if (squares_.fold >= 0) seeds[size_t(squares_.from)] = true;
    const std::vector<bool> is_needed = needed(std::move(seeds), [&](size_t v) { return kernel_.values[v].kind == ValueKind::Fold; });
    place_.assign(kernel_.values.size(), -1);
    for (size_t v = 0; v < kernel_.values.size(); v++) {
        if (!is_needed[v]) continue;
        Value value = moved(v);
        if (value.kind == ValueKind::Fold) {
            const int32_t access = after_access(of_parts);
            value.args[0] = int32_t(v) == squares_.fold ? squares_after(access) : load_part(size_t(std::ranges::find(folds_, int32_t(v)) - folds_.begin()), value.type, access);
        } else {
            if (value.buffer >= 0) value.buffer = after_buffer(value.buffer);
            if (value.access >= 0) value.access = after_access(without_folded(kernel_.accesses[size_t(value.access)]));
        }
        place_[v] = int32_t(k.values.size());
        k.values.push_back(std::move(value));
    }
    for (const StoreTo& s : kernel_.stores)
        if (is_row(s)) store_after(s, without_folded(kernel_.accesses[size_t(s.access)]));
}

int32_t Cutter::add_after(Value value)
{
    out_.after.values.push_back(std::move(value));
    return int32_t(out_.after.values.size()) - 1;
}
int32_t Cutter::load_part(size_t fold, Dtype type, int32_t access)
{
    Value part{ValueKind::Load};
    part.type = type, part.access = access, part.buffer = after_buffer(-1 - int32_t(fold));
    return add_after(std::move(part));
}
// A part of a sum of (x - from)^2, by what is known of its x - pivot: with d = pivot - from it is the sum of (x - pivot + d)^2.
int32_t Cutter::squares_after(int32_t access)
{
    const auto part = [&](size_t i) { return load_part(folds_.size() + i, Dtype::f32, access); };
    const auto map = [&](Op op, int32_t x, int32_t y) {
        Value v{ValueKind::Map, op, Dtype::f32};
        v.args = {x, y, -1};
        return add_after(std::move(v));
    };
    const int32_t pivot = part(0), off = part(1), squared = part(2), count = part(3);
    const int32_t d = map(Op::sub, pivot, place_[size_t(squares_.from)]);
    return map(Op::add, squared, map(Op::mul, d, map(Op::add, map(Op::add, off, off), map(Op::mul, count, d))));
}

std::optional<FoldParts> Cutter::in_parts()
{
    if (!find_axis()) return std::nullopt;
    lay_parts();
    std::vector<int32_t> stores;
    for (size_t s = 0; s < kernel_.stores.size(); s++)
        if (!is_row(kernel_.stores[s])) stores.push_back(int32_t(s));
    for (const int32_t f : folds_)
        if (compute_of(kernel_.values[size_t(kernel_.values[size_t(f)].args[0])].type) != kernel_.values[size_t(f)].type) return std::nullopt;
    if (squares_.fold >= 0 && compute_of(kernel_.values[size_t(squares_.x)].type) != Dtype::f32) return std::nullopt;
    if (!cut_points(stores)) return std::nullopt;
    add_folds();
    cut_after();
    return std::move(out_);
}

// ---- by what is stored ------------------------------------------------------------------------------------------------

std::optional<FoldParts> Cutter::by_stores(int32_t product)
{
    std::vector<bool> waits(kernel_.values.size());          // for a fold
    for (size_t v = 0; v < kernel_.values.size(); v++) {
        waits[v] = kernel_.values[v].kind == ValueKind::Fold;
        for (const int32_t arg : kernel_.values[v].args) waits[v] = waits[v] || (arg >= 0 && waits[size_t(arg)]);
    }
    std::vector<int32_t> stores, store_of(kernel_.values.size(), -1);
    std::vector<bool> seeds(kernel_.values.size());
    for (size_t s = 0; s < kernel_.stores.size(); s++) {
        const StoreTo& store = kernel_.stores[s];
        if (store.late) return std::nullopt;                 // over what may be read behind
        if (is_row(store) || waits[size_t(store.value)]) seeds[size_t(store.value)] = true;
        else stores.push_back(int32_t(s)), store_of[size_t(store.value)] = int32_t(s);
    }
    const std::vector<bool> is_needed = needed(std::move(seeds), [&](size_t v) { return store_of[v] >= 0; });
    if (stores.empty() || !cut_points(stores)) return std::nullopt;
    Kernel& k = out_.after;
    k.name = kernel_.name, k.axes = kernel_.axes;
    place_.assign(kernel_.values.size(), -1);
    for (size_t v = 0; v < kernel_.values.size(); v++) {
        if (!is_needed[v]) continue;
        Value value = moved(v);
        if (store_of[v] >= 0) {
            const StoreTo& s = kernel_.stores[size_t(store_of[v])];
            const Dtype type = value.type;
            value = Value{ValueKind::Load};
            value.type = type, value.buffer = s.buffer, value.access = s.access;
        }
        if (value.buffer == product) return std::nullopt;
        if (value.buffer >= 0) value.buffer = after_buffer(value.buffer);
        if (value.access >= 0) value.access = after_access(kernel_.accesses[size_t(value.access)]);
        place_[v] = int32_t(k.values.size());
        k.values.push_back(std::move(value));
    }
    for (const StoreTo& s : kernel_.stores)
        if (is_row(s) || waits[size_t(s.value)]) store_after(s, kernel_.accesses[size_t(s.access)]);
    if (k.stores.empty()) return std::nullopt;
    return std::move(out_);
}

}  // namespace

std::optional<FoldParts> fold_parts(const Kernel& kernel, int32_t buffers, int32_t product, const Extent& parts)
{
    std::optional<FoldParts> r = Cutter(kernel, buffers, parts).in_parts();
    return r ? std::move(r) : Cutter(kernel, buffers, parts).by_stores(product);
}

}  // namespace ng
