// Convolution by steps of one over large pictures, image by image: of a copy with margins whole rows are columns of a product, read in place.
#include "lib/backend/cpu/conv.h"
#include "lib/backend/cpu/gemm.h"
#include "lib/backend/cpu/saturated.h"

#include <algorithm>
#include <cstring>

namespace ng::cpu {
namespace {

constexpr int SPATIAL = 2;                        // axes before
// Positions of a row of the copy beyond the result's are computed and dropped; an image packs w anew, which takes as long as so many positions.
constexpr double MOST_DROPPED = 0.06, PACKING = 40;
constexpr double MOST_COPIED = 1.35;              // times the result's positions
constexpr int64_t LEAST_TAPS = 4, LEAST_ROWS = 16;
// Elements of w. Zen 5, one thread, by panels' time (2026-11-25): 16 x 16 x 224 x 224 1.26, 32 x 32 x 112 x 112 1.15, 64 x 64 x 56 x 56 1.05, 128 x 64 and 64 x 128
// channels 1.05 and 0.98, 128 x 128 1.00, 256 x 256 0.96: copies of many channels leave the caches before all rows have passed.
constexpr int64_t MOST_WEIGHTS = 96 << 10;
constexpr int64_t MOST_BYTES = 8 << 20;           // of a copy, for each worker has one
constexpr int64_t BEYOND = 64;                    // elements behind the copy that the last tile reads

struct Axes {
    Axis    rows, depth;                          // of w: channels of the result, and of what is summed
    int64_t low[2], extent[2];                    // of the copy: the first coordinate, and how many
    int64_t taps;
    int64_t plane() const { return times(extent[0], extent[1]); }
};

Axes axes_of(const FlatConv& f)
{
    Axes       a = {{f.w.dims[0] / f.groups, f.w.strides[0], 0, -1, 0}, {f.w.dims[1], f.w.strides[1], 0, -1, 0}, {}, {}, 1};
    if (f.is_turned) std::swap(a.rows, a.depth);
    for (int d = 0; d < 2; d++) {
        const int64_t span = f.step[d] * (f.w.dims[SPATIAL + d] - 1);
        a.low[d] = f.start[d] + std::min<int64_t>(span, 0);
        a.extent[d] = plus(f.out.dims[SPATIAL + d], std::max(span, -span));
        a.taps = times(a.taps, f.w.dims[SPATIAL + d]);
    }
    return a;
}

int64_t positions_of(const Operand& out) { return times(out.dims[SPATIAL], out.dims[SPATIAL + 1]); }
int64_t aligned(int64_t bytes) { return (bytes + 63) / 64 * 64; }

bool is_possible(const FlatConv& f) { return f.in.type == f.out.type && (f.in.type == Dtype::f32 || f.in.type == Dtype::f64); }
// Elements of a copy, and columns of an image; neither is more for what is smaller along any axis.
int64_t most_copied(const FlatConv& f, const Axes& a)
{
    return int64_t(std::min(double(f.in.dims[1]) * std::min(double(a.plane()), MOST_COPIED * double(positions_of(f.out))), double(MOST_ROOM))) + 1;
}
int64_t most_columns(const FlatConv& f, const Axes& a)
{
    return int64_t(std::min(double(f.out.dims[SPATIAL]) * std::min(double(a.extent[1]), (1 + MOST_DROPPED) * double(f.out.dims[SPATIAL + 1])), double(MOST_ROOM))) + 1;
}

// Bytes of a worker, and of the copy in them.
struct Room {
    int64_t copy, all;
};
Room room_of(const FlatConv& f, const Axes& a, const ProductTable& table)
{
    const int64_t copy = std::min(aligned((most_copied(f, a) + BEYOND) * bytes_of(f.in.type)), MOST_BYTES);
    return {copy, copy + aligned(int64_t(product_workspace(table, packed_for(f.w.type, f.in.type, f.out.type), a.rows.extent, most_columns(f, a), times(a.depth.extent, a.taps), 1)))};
}

bool is_worth(const FlatConv& f, const Axes& a, uint32_t workers)
{
    const double  positions = double(positions_of(f.out));
    const int64_t images = f.out.dims[0];
    if (!is_possible(f) || f.in.strides[3] != 1 || a.taps < LEAST_TAPS || a.rows.extent < LEAST_ROWS || a.depth.extent == 0 || positions == 0) return false;
    if (a.rows.extent * a.depth.extent * a.taps > MOST_WEIGHTS) return false;
    if ((double(f.in.dims[1]) * double(a.plane()) + BEYOND + 16) * bytes_of(f.in.type) > double(MOST_BYTES)) return false;
    if (images < workers || (images % workers && images < 4 * int64_t(workers))) return false;
    const double dropped = double(a.extent[1]) / double(f.out.dims[SPATIAL + 1]) - 1;
    return dropped + PACKING / positions <= MOST_DROPPED && double(a.plane()) <= MOST_COPIED * positions;
}

template <class T>
void copy_image(const FlatConv& f, const Axes& a, int64_t image, T* to)
{
    const Operand& in = f.in;
    T              fill;
    std::memcpy(&fill, &f.fill, sizeof fill);
    const int64_t  width = in.dims[SPATIAL + 1], left = std::clamp<int64_t>(-a.low[1], 0, a.extent[1]);
    const int64_t  skipped = std::max<int64_t>(a.low[1], 0), inside = std::clamp<int64_t>(width - skipped, 0, a.extent[1] - left);
    for (int64_t c = 0; c < in.dims[1]; c++)
        for (int64_t h = a.low[0]; h < a.low[0] + a.extent[0]; h++, to += a.extent[1]) {
            const bool is_in = h >= 0 && h < in.dims[SPATIAL];
            if (!is_in) {
                std::fill_n(to, a.extent[1], fill);
                continue;
            }
            const T* from = static_cast<const T*>(in.data) + image * in.strides[0] + c * in.strides[1] + h * in.strides[SPATIAL] + skipped;
            std::fill_n(to, left, fill);
            std::memcpy(to + left, from, size_t(inside) * sizeof(T));
            std::fill_n(to + left + inside, a.extent[1] - left - inside, fill);
        }
    std::fill_n(to, BEYOND, fill);
}

// What hears of an image's boxes, as of those of all.
struct ImageEpilogue {
    const Epilogue* of_all;
    int64_t         image;
    uint32_t        worker;

    static void box(void* self, const int64_t* first, const int64_t* count, uint32_t)
    {
        const ImageEpilogue& e = *static_cast<ImageEpilogue*>(self);
        const int64_t        at[] = {first[0] + e.image, first[1], first[2], first[3]};
        e.of_all->box(e.of_all->self, at, count, e.worker);
    }
};

Product product_of(const FlatConv& f, const Axes& a, char* copy, int64_t image)
{
    const int bytes = bytes_of(f.out.type);
    Product   p = {};
    p.a.data = static_cast<const char*>(f.w.data), p.a.type = f.w.type;
    p.b.data = copy, p.b.type = f.in.type, p.b.is_near = true, p.b.beyond = BEYOND;
    p.c = {static_cast<char*>(f.out.data) + image * f.out.strides[0] * bytes, f.out.type, SPATIAL + 2, {}, {}, f.out.dims[3]};
    const int64_t step[] = {a.extent[1], 1};
    for (int d = 0; d < 2; d++) {
        const int64_t taps = f.w.dims[SPATIAL + d];
        p.a.depth.add({taps, f.w.strides[SPATIAL + d], 0, -1, 0}), p.b.depth.add({taps, f.step[d] * step[d], 0, -1, 0});
        p.b.data += (f.start[d] - a.low[d]) * step[d] * bytes_of(f.in.type);
    }
    p.a.lines.add(a.rows), p.a.depth.add(a.depth);
    p.b.depth.add({a.depth.extent, a.plane(), 0, -1, 0});
    p.b.lines.add({f.out.dims[2] * a.extent[1], 1, 0, -1, 0});
    p.c.rows.add({a.rows.extent, f.out.strides[1], 0, -1, 1});
    p.c.columns.add({f.out.dims[2], f.out.strides[2], 0, -1, 2}), p.c.columns.add({a.extent[1], f.out.strides[3], 0, -1, 3});
    p.batch_rank = 1;
    p.batch[0] = {f.groups, f.w.dims[0] / f.groups * f.w.strides[0], a.depth.extent * a.plane(), a.rows.extent * f.out.strides[1], 1, a.rows.extent};
    return p;
}

void of_image(const FlatConv& f, const Axes& a, int64_t image, uint32_t worker, const Workplace& place, const Room& room)
{
    char* const copy = static_cast<char*>(place.workspace) + worker * room.all;
    if (f.in.type == Dtype::f32) copy_image(f, a, image, reinterpret_cast<float*>(copy));
    else copy_image(f, a, image, reinterpret_cast<double*>(copy));
    Product        p = product_of(f, a, copy, image);
    ImageEpilogue  told = {f.epilogue, image, worker};
    const Epilogue epilogue = {ImageEpilogue::box, &told};
    p.epilogue = f.epilogue ? &epilogue : nullptr;
    const Parallel alone;
    run_product(p, {place.table, copy + room.copy, alone});
}

}  // namespace

uint64_t flat_workspace(const FlatConv& f, const ProductTable& table, uint32_t workers)
{
    // No more workers than images have one each.
    const auto most = uint64_t(std::clamp<int64_t>(f.out.dims[0], 1, std::max(1u, workers)));
    return is_possible(f) ? uint64_t(room_of(f, axes_of(f), table).all) * most : 0;
}

bool run_flat(const FlatConv& f, const Workplace& place)
{
    const Axes a = axes_of(f);
    if (!is_worth(f, a, place.parallel.workers())) return false;
    const Room    room = room_of(f, a, place.table);
    const int64_t images = f.out.dims[0];
    const double  multiply_adds = double(f.w.dims[0]) * double(f.w.dims[1] * a.taps) * double(positions_of(f.out)) * double(images);
    const int64_t tasks = std::min(images, tasks_for(multiply_adds, place.parallel.workers()));
    place.parallel.for_each(uint32_t(tasks), [&](uint32_t task, uint32_t worker) {
        for (int64_t image = images * task / tasks; image < images * (task + 1) / tasks; image++) of_image(f, a, image, worker, place, room);
    });
    return true;
}

}  // namespace ng::cpu
