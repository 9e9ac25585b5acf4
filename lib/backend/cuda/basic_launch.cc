// The shipped kernels' names, and the launches of copies, fills and stores by index.
#include "lib/backend/cuda/basic_launch.h"

#include "lib/backend/cuda/basic_parts.h"

#include <cstdlib>

namespace ng::cuda::basic {
namespace {

constexpr bool same_types()
{
    int i = 0;
    bool same = true;
#define DTYPE(name, ...) same = same && int(Dtype::name) == i++;
#include "jit/dtypes.def"
#undef DTYPE
    return same && i == kernels::TYPES;
}
static_assert(same_types() && int(Dtype::u64) == kernels::U64 && int(Dtype::f64) == kernels::F64 && int(Dtype::e5m2) == kernels::E5M2, "kernels know the types by number");
static_assert(NG_FOLD_LAST == int(kernels::LAST) && NG_FOLD_SUM == int(kernels::SUM) && NG_FOLD_MAX == int(kernels::MAX), "kernels know folds by number");
static_assert(int(NG_MAX_NDIM) <= kernels::MAX_AXES, "every tensor's axes fit");

}  // namespace

const char* name_of(BasicKernel kernel)
{
    static constexpr const char* names[] = {
#define ROW(name, ...) "basic_" #name,
#include "kernels/basic.def"
    };
    return names[uint32_t(kernel)];
}

// ---- axes --------------------------------------------------------------------------------------------------------------

void AxisList::nest_as_b()
{
    // By insertion: at most 32, and equal ones stay.
    for (int i = 1; i < rank_; i++) {
        const AxisPair moved = axis_[i];
        const auto     before = [&](const AxisPair& x) {
            return std::abs(x.b) != std::abs(moved.b) ? std::abs(x.b) < std::abs(moved.b) : std::abs(x.a) < std::abs(moved.a);
        };
        int k = i;
        for (; k > 0 && before(axis_[k - 1]); k--) axis_[k] = axis_[k - 1];
        axis_[k] = moved;
    }
}

void AxisList::merge()
{
    int kept = 0;
    for (int i = 1; i < rank_; i++) {
        AxisPair&      outer = axis_[kept];
        const AxisPair inner = axis_[i];
        if (outer.a == inner.a * inner.size && outer.b == inner.b * inner.size) outer = {outer.size * inner.size, inner.a, inner.b};
        else axis_[++kept] = inner;
    }
    rank_ = rank_ ? kept + 1 : 0;
}

int64_t AxisList::count() const
{
    int64_t n = 1;
    for (int i = 0; i < rank_; i++) n *= axis_[i].size;
    return n;
}

kernels::Axes AxisList::axes() const
{
    kernels::Axes r = {};
    r.rank = rank_, r.is_small = count() <= int64_t(UINT32_MAX);
    for (int i = 0; i < rank_; i++) r.size[i] = axis_[i].size, r.a[i] = axis_[i].a, r.b[i] = axis_[i].b;
    return r;
}

// ---- copies and fills --------------------------------------------------------------------------------------------------

namespace {

constexpr int64_t LEAST_TILE = 8;

// Elements twice as long while every place in both arrays allows it.
void widen(AxisList& axes, int64_t& bytes, int64_t widest, const void* from, const void* to)
{
    const auto is_aligned = [](const void* p, int64_t unit) { return reinterpret_cast<uintptr_t>(p) % uintptr_t(unit) == 0; };
    const auto is_even = [&] {
        for (int i = 0; i + 1 < axes.rank(); i++)
            if (axes[i].a % 2 || axes[i].b % 2) return false;
        return true;
    };
    while (bytes < widest && axes.rank() > 0 && is_aligned(from, 2 * bytes) && is_aligned(to, 2 * bytes) && is_even()) {
        AxisPair& last = axes[axes.rank() - 1];
        if (last.a != 1 || last.b != 1 || last.size % 2) return;
        last.size /= 2, bytes *= 2;
        for (int i = 0; i + 1 < axes.rank(); i++) axes[i].a /= 2, axes[i].b /= 2;
    }
}

int nearest_in_a(const AxisList& axes)
{
    int best = -1;
    for (int i = 0; i < axes.rank(); i++)
        if (axes[i].a != 0 && (best < 0 || std::abs(axes[i].a) < std::abs(axes[best].a))) best = i;
    return best;
}

}  // namespace

void copy(const Operand& from, const Operand& to, int rank, const Place& place)
{
    AxisList axes;
    for (int i = 0; i < rank; i++) axes.add(to.dims[i], from.strides[i], to.strides[i]);
    const int64_t count = axes.count();
    if (count == 0) return;
    axes.nest_as_b(), axes.merge();
    int64_t   bytes = bytes_of(to.type);
    const int row = nearest_in_a(axes), column = axes.rank() - 1;
    // Where the two are consecutive along different axes, through tiles.
    if (row >= 0 && row != column && axes[row].size >= LEAST_TILE && axes[column].size >= LEAST_TILE && std::abs(axes[row].a) < std::abs(axes[column].a)) {
        kernels::TransposeNumbers n = {};
        n.from = from.data, n.to = to.data, n.bytes = int32_t(bytes);
        n.rows = axes[row].size, n.from_row = axes[row].a, n.to_row = axes[row].b;
        n.columns = axes[column].size, n.from_column = axes[column].a, n.to_column = axes[column].b;
        axes.remove(column), axes.remove(row);
        n.outer = axes.axes(), n.outer_count = axes.count();
        return launch(place, BasicKernel::transpose, divided_up(n.rows, 32) * divided_up(n.columns, 32) * n.outer_count, kernels::THREADS, n);
    }
    widen(axes, bytes, 16, from.data, to.data);
    kernels::CopyNumbers n = {from.data, to.data, axes.count(), int32_t(bytes), axes.axes()};
    launch_threads(place, BasicKernel::copy, n.count, n);
}

void fill(const Operand& to, int rank, uint64_t bits, const Place& place)
{
    AxisList axes;
    for (int i = 0; i < rank; i++) axes.add(to.dims[i], to.strides[i], to.strides[i]);
    axes.nest_as_b(), axes.merge();
    const int64_t bytes = bytes_of(to.type);
    int64_t       wide = bytes;
    // The same bits twice are one element of twice the length.
    widen(axes, wide, 8, to.data, to.data);
    for (int64_t b = bytes; b < wide; b *= 2) bits = (bits & ((uint64_t(1) << 8 * b) - 1)) | bits << 8 * b;
    kernels::FillNumbers n = {to.data, bits, axes.count(), int32_t(wide), axes.axes()};
    launch_threads(place, BasicKernel::fill, n.count, n);
}

// ---- put ---------------------------------------------------------------------------------------------------------------

namespace {

// A table of winners is cleared as a whole: not worth it for few positions among many places.
constexpr int64_t PLACES_A_POSITION = 16, FEW_PLACES = 1 << 16;
// As few positions look at each other instead.
constexpr int64_t FEW_POSITIONS = 128;
int64_t most_winners(int64_t count) { return FEW_PLACES + PLACES_A_POSITION * count; }

bool is_added_in_any_order(Dtype t, const PutExtents& e, Folding how)
{
    if (how != kernels::SUM) return false;
    const bool whole = t == Dtype::i32 || t == Dtype::u32 || t == Dtype::i64 || t == Dtype::u64;
    return whole || (!e.is_ordered && (t == Dtype::f32 || t == Dtype::f64));
}

int64_t count_of(const Operand& x, int rank)
{
    int64_t n = 1;
    for (int i = 0; i < rank; i++) n *= x.dims[i];
    return n;
}

struct FoldKernels {
    BasicKernel totals, fold;
};
FoldKernels fold_kernels(Dtype t)
{
    if (!is_real(t)) return {BasicKernel::put_totals_i64, BasicKernel::put_fold_i64};
    if (t == Dtype::f64) return {BasicKernel::put_totals_f64, BasicKernel::put_fold_f64};
    return {BasicKernel::put_totals_f32, BasicKernel::put_fold_f32};
}

// Bytes of chunks' totals: of many positions, whose folds may be of parts, as sums and products of floats may not: each is rounded (contract N10).
constexpr int64_t FEW_CHUNKS = 4;
constexpr double  MOST_TOTALS = 64 << 20;        // more elements behind each position are threads enough
double totals_bytes(Dtype t, int64_t count, double inner, Folding how)
{
    const bool is_rounded = is_float(t) && (how == kernels::SUM || how == kernels::PROD);
    return is_rounded || count < FEW_CHUNKS * kernels::PUT_CHUNK ? 0 : 8 * double(count / kernels::PUT_CHUNK) * inner;
}

}  // namespace

uint64_t put_workspace(const Operand& x, const Operand& indices, const PutExtents& e, Folding how)
{
    if (is_added_in_any_order(x.type, e, how)) return 0;
    const int64_t size = x.dims[e.axis], count = count_of(indices, e.index_rank);
    if (how == kernels::LAST && count <= FEW_POSITIONS) return 0;
    const uint64_t winners = how == kernels::LAST ? 8 * uint64_t(std::min(size, most_winners(count))) : 0;
    double         inner = 1;
    for (int i = 0; i < e.rank; i++) inner *= i == e.axis ? 1 : double(x.dims[i]);
    const auto totals = uint64_t(std::min(totals_bytes(x.type, count, inner, how), MOST_TOTALS));
    return std::max(aligned(winners), aligned(totals) + sort_indices_workspace(size, count));
}

void put(const Operand& x, const Operand& indices, const Operand& y, const PutExtents& e, Folding how, const Place& place)
{
    AxisList at, inner;
    for (int i = 0; i < e.index_rank; i++) at.add(indices.dims[i], indices.strides[i], y.strides[e.axis + i]);
    at.merge();
    const int shift = e.index_rank - 1;
    for (int i = 0; i < e.rank; i++)
        if (i != e.axis) inner.add(x.dims[i], x.strides[i], y.strides[i < e.axis ? i : i + shift]);
    inner.nest_as_b(), inner.merge();
    kernels::PutNumbers n = {};
    n.x = x.data, n.indices = static_cast<const kernels::i64*>(indices.data), n.y = y.data;
    n.type = code_of(x.type), n.how = how, n.bytes = bytes_of(x.type);
    n.size = x.dims[e.axis], n.stride = x.strides[e.axis];
    n.at = at.axes(), n.inner = inner.axes();
    n.count = at.count(), n.inner_count = inner.count();
    if (n.count == 0 || n.inner_count == 0 || n.size == 0) return;
    const int64_t threads = n.count * n.inner_count;
    if (is_added_in_any_order(x.type, e, how)) return launch_threads(place, BasicKernel::put_sum, threads, n);
    if (how == kernels::LAST && n.count <= FEW_POSITIONS) return launch_threads(place, BasicKernel::put_last, threads, n);
    if (how == kernels::LAST && n.size <= most_winners(n.count)) {
        n.winners = static_cast<kernels::u64*>(place.workspace);
        const int64_t size = n.size, step = 1;
        fill({place.workspace, Dtype::u64, &size, &step}, 1, 0, place);
        launch_threads(place, BasicKernel::put_winners, n.count, n);
        return launch_threads(place, BasicKernel::put_last, threads, n);
    }
    Pieces       pieces(place.workspace);
    const double totals = totals_bytes(x.type, n.count, double(n.inner_count), how);
    if (totals > 0 && totals <= MOST_TOTALS) n.totals = pieces.take(uint64_t(totals));
    const SortedIndices sorted = sort_indices(indices.data, n.at, n.size, n.count, pieces.rest(place));
    n.keys = sorted.keys, n.positions = sorted.positions;
    n.keys_are_wide = sorted.keys_are_wide, n.positions_are_wide = sorted.positions_are_wide;
    const Dtype       type = folded_as(x.type, how);
    const FoldKernels kernels = fold_kernels(type);
    n.type = code_of(type);
    if (n.totals) launch_threads(place, kernels.totals, n.count / kernels::PUT_CHUNK * n.inner_count, n);
    launch_threads(place, kernels.fold, threads, n);
}

}  // namespace ng::cuda::basic
