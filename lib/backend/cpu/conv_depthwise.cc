// Depthwise convolution by direct loops: along rows, or along channels or images where those are consecutive.
#include "lib/backend/cpu/conv.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <utility>

namespace ng::cpu {
namespace {

// Rows and lanes of the result that are in flight at once. Rows in scratch end in zeros up to a whole vector of any kind.
constexpr int64_t ROWS = 8, COLUMNS = 256, LANES = 64, VECTOR = 16, NUMBER = 8;
constexpr int64_t PIECE = 512;         // additions of a derivative's lane, summed by themselves: of more, f32 would lose what one element adds

int64_t rounded(int64_t n) { return (n + VECTOR - 1) / VECTOR * VECTOR; }
int64_t least_tap(const SpatialAxis& a) { return std::min<int64_t>(0, (a.taps - 1) * a.advance); }
int64_t reach(const SpatialAxis& a) { return std::abs((a.taps - 1) * a.advance); }
int64_t rows_read(int64_t step, int64_t reach) { return (ROWS - 1) * step + reach + 1; }
// Of one phase of a row: every step-th element, as many as `columns` results and all taps read.
int64_t phase_length(int64_t columns, int64_t step, int64_t reach) { return rounded(columns) + rounded(reach / step + 1); }
int64_t phase_of(const SpatialAxis& a, int64_t tap) { return (tap * a.advance - least_tap(a)) % a.step; }
// Phases that taps read: one each, until a tap reads the first's again.
int64_t phases_read(const SpatialAxis& a) { return std::min(a.taps, a.step / std::gcd(a.step, a.advance)); }
int64_t taps_of(const Depthwise& d) { return d.axis[0].taps * d.axis[1].taps * d.axis[2].taps; }

enum class Along { Rows, Channels, Images };

Along along(const Depthwise& d)
{
    if (d.in.strides[1] == 1 && d.groups > 1 && d.fan_out == 1 && d.depth == 1) return Along::Channels;
    return d.in.strides[0] == 1 && d.images >= VECTOR && d.depth == 1 ? Along::Images : Along::Rows;
}

// One worker's scratch and its view of the problem. Numbers are of the accumulator's type throughout.
class Worker {
  public:
    Worker(const Depthwise& d, const ProductTable& table, char* scratch, uint32_t worker)
        : finished_(d.epilogue, 2 + d.spatial, worker), d_(d), table_(table), packed_(packed(d)), loops_(table.direct[packed_]),
          bytes_(table.tile[packed_].accumulator_bytes), taps_(taps_of(d)),
          row_phases_(phases_read(d.axis[1])), column_phases_(phases_read(d.axis[2]))
    {
        const auto take = [&](int64_t numbers) { return scratch += numbers * NUMBER, scratch - numbers * NUMBER; };
        sums_ = take(ROWS * COLUMNS), line_ = take(COLUMNS), blank_ = take(LANES);
        tap_sums_ = take(taps_ * LANES), tap_totals_ = take(taps_ * LANES), taken_ = take(taps_ * LANES);
        starts_ = reinterpret_cast<const void**>(take(taps_)), factor_starts_ = reinterpret_cast<const void**>(take(taps_));
        rows_ = scratch;
        uint64_t fill = 0;
        std::memcpy(&fill_, line_of(table, packed_, d.in.type, reinterpret_cast<const char*>(&d.fill), 1, 1, &fill), size_t(bytes_));
        repeat(blank_, 0, LANES);
        one_ = packed_ == PACKED_F32 ? 0x3f800000 : packed_ == PACKED_F64 ? 0x3ff0000000000000 : 1;
    }
    static int64_t numbers(int64_t taps) { return ROWS * COLUMNS + COLUMNS + LANES + 3 * taps * LANES + 2 * taps; }
    static Packed  packed(const Depthwise& d) { return packed_for(d.in.type, d.w.type, d.sum_type); }
    void plane(int64_t image, int64_t channel);
    void plane_dw(int64_t channel);
    void lanes(Along lane, int64_t other, int64_t first, int64_t count);
    void lanes_dw(Along lane, int64_t first, int64_t count);

  private:
    struct Patch {
        int64_t image, channel, depth, row, columns_first, columns;   // row: the first of a block, of the last two axes but one
        int64_t outer;                                               // position on the first axis
    };
    void        repeat(void* out, int64_t first, int64_t last) const;
    void        fill_rows(const Patch& p, int64_t rows);
    void        fill_row(const char* in, bool inside, const Patch& p, char* out);
    void        point_at_rows(const Patch& p);
    void        next_row(const Patch& p);
    void        point_at_lanes(Along lane, int64_t other, int64_t first, int64_t count, const int64_t* position);
    void        load_factors(int64_t channel, int64_t depth, int64_t lanes, char* out);
    char*       out_at(int64_t image, int64_t channel, const int64_t* position) const;
    void        store(const Operand& to, char* at, int64_t step, const void* numbers, int64_t count) const;
    void        begin_sums();
    void        add_piece();
    void        end_sums();
    void        reduce(int64_t channel, int64_t lanes) const;
    void        finish(const int64_t* first, const int64_t* count);

    // body(flat tap, taps of the three axes)
    template <class Body>
    void each_tap(Body&& body) const
    {
        int64_t tap[3], flat = 0;
        for (tap[0] = 0; tap[0] < d_.axis[0].taps; tap[0]++)
            for (tap[1] = 0; tap[1] < d_.axis[1].taps; tap[1]++)
                for (tap[2] = 0; tap[2] < d_.axis[2].taps; tap[2]++) body(flat++, tap);
    }
    template <class Body>
    void each_position(Body&& body) const
    {
        int64_t at[3];
        for (at[0] = 0; at[0] < d_.axis[0].positions; at[0]++)
            for (at[1] = 0; at[1] < d_.axis[1].positions; at[1]++)
                for (at[2] = 0; at[2] < d_.axis[2].positions; at[2]++) body(at);
    }
    // body(patch, rows) for each block of rows and columns of one plane.
    template <class Body>
    void each_patch(Patch p, int64_t columns, Body&& body) const
    {
        for (p.outer = 0; p.outer < d_.axis[0].positions; p.outer++)
            for (p.row = 0; p.row < d_.axis[1].positions; p.row += ROWS)
                for (p.columns_first = 0; p.columns_first < d_.axis[2].positions; p.columns_first += columns) {
                    p.columns = std::min(columns, d_.axis[2].positions - p.columns_first);
                    body(p, std::min(ROWS, d_.axis[1].positions - p.row));
                }
    }

    Finished            finished_;
    const Depthwise&    d_;
    const ProductTable& table_;
    const Packed        packed_;
    const DirectLoops&  loops_;
    const int64_t       bytes_, taps_, row_phases_, column_phases_;
    char *              sums_, *line_, *blank_, *tap_sums_, *tap_totals_, *taken_, *rows_;
    const void **       starts_, **factor_starts_;
    uint64_t            fill_ = 0, one_;
    int64_t             additions_ = 0;      // to each lane of tap_sums_
    bool                has_totals_ = false;
};

void Worker::repeat(void* out, int64_t first, int64_t last) const
{
    for (int64_t i = first; i < last; i++) std::memcpy(static_cast<char*>(out) + i * bytes_, &fill_, size_t(bytes_));
}

// Elements that the columns read, phase by phase of the step: [phase][phase_length]; phases that no tap reads stay as they are.
void Worker::fill_row(const char* in, bool inside, const Patch& p, char* out)
{
    const SpatialAxis& a = d_.axis[2];
    const int64_t      length = phase_length(p.columns, a.step, reach(a)), used = std::min(length, p.columns + reach(a) / a.step + 1);
    const int64_t      low = a.start + p.columns_first * a.step + least_tap(a);
    for (int64_t tap = 0; tap < column_phases_; tap++) {
        const int64_t phase = phase_of(a, tap), at = low + phase;
        char* const   line = out + phase * length * bytes_;
        int64_t       first = at < 0 ? std::min(used, (a.step - 1 - at) / a.step) : 0;
        int64_t       last = at < a.limit ? std::min(used, (a.limit - 1 - at) / a.step + 1) : 0;
        if (!inside || last < first) first = last = 0;
        repeat(line, 0, first), repeat(line, last, used);
        std::memset(line + used * bytes_, 0, size_t((length - used) * bytes_));
        if (first == last) continue;
        char*       to = line + first * bytes_;
        const char* from = in + (at + first * a.step) * a.in_stride * bytes_of(d_.in.type);
        const void* wide = line_of(table_, packed_, d_.in.type, from, a.step * a.in_stride, last - first, to);
        if (wide != to) std::memcpy(to, wide, size_t((last - first) * bytes_));
    }
}

// All rows that so many rows of results read: [taps of axis 0][rows of axis 1][row]
void Worker::fill_rows(const Patch& p, int64_t rows)
{
    const SpatialAxis &a = d_.axis[0], &b = d_.axis[1], &c = d_.axis[2];
    const int64_t      channel = p.channel / d_.fan_out * d_.depth + p.depth, count = rows_read(b.step, reach(b));
    const int64_t      bytes = phase_length(p.columns, c.step, reach(c)) * c.step * bytes_, used = (rows - 1) * b.step + reach(b) + 1;
    for (int64_t t = 0; t < a.taps; t++)
        for (int64_t tap = 0; tap < row_phases_; tap++)
            for (int64_t r = phase_of(b, tap); r < used; r += b.step) {
                const int64_t y = a.start + p.outer * a.step + t * a.advance, z = b.start + p.row * b.step + least_tap(b) + r;
                const bool    inside = uint64_t(y) < uint64_t(a.limit) && uint64_t(z) < uint64_t(b.limit);
                const int64_t at = p.image * d_.in.strides[0] + channel * d_.in.strides[1] + y * a.in_stride + z * b.in_stride;
                fill_row(static_cast<const char*>(d_.in.data) + at * bytes_of(d_.in.type), inside, p, rows_ + (t * count + r) * bytes);
            }
}

// starts_: what each tap of a block's first row reads.
void Worker::point_at_rows(const Patch& p)
{
    const SpatialAxis &b = d_.axis[1], &c = d_.axis[2];
    const int64_t      length = phase_length(p.columns, c.step, reach(c)), count = rows_read(b.step, reach(b));
    each_tap([&](int64_t flat, const int64_t* tap) {
        const int64_t row = tap[0] * count + tap[1] * b.advance - least_tap(b), column = tap[2] * c.advance - least_tap(c);
        starts_[flat] = rows_ + ((row * c.step + column % c.step) * length + column / c.step) * bytes_;
    });
}

void Worker::next_row(const Patch& p)
{
    const SpatialAxis &b = d_.axis[1], &c = d_.axis[2];
    const int64_t      bytes = b.step * c.step * phase_length(p.columns, c.step, reach(c)) * bytes_;
    for (int64_t tap = 0; tap < taps_; tap++) starts_[tap] = static_cast<const char*>(starts_[tap]) + bytes;
}

char* Worker::out_at(int64_t image, int64_t channel, const int64_t* position) const
{
    int64_t at = image * d_.out.strides[0] + channel * d_.out.strides[1];
    for (int i = 0; i < 3; i++) at += position[i] * d_.axis[i].out_stride;
    return static_cast<char*>(d_.out.data) + at * bytes_of(d_.out.type);
}

void Worker::store(const Operand& to, char* at, int64_t step, const void* numbers, int64_t count) const
{
    if (step == 1 && bytes_of(to.type) == bytes_) {
        std::memcpy(at, numbers, size_t(count * bytes_));
        return;
    }
    const int64_t row = 0;
    int64_t       columns[COLUMNS];
    for (int64_t j = 0; j < count; j++) columns[j] = j * step;
    table_.store[packed_][int(to.type)](numbers, 0, {at, &row, columns, 1, count, false});
}

// [tap][lanes]: of consecutive channels, or of one.
void Worker::load_factors(int64_t channel, int64_t depth, int64_t lanes, char* out)
{
    each_tap([&](int64_t flat, const int64_t* tap) {
        int64_t at = (channel * d_.depth + depth) * d_.w.strides[0];
        for (int i = 0; i < 3; i++) at += tap[i] * d_.axis[i].w_stride;
        char*       to = out + flat * lanes * bytes_;
        const char* from = static_cast<const char*>(d_.w.data) + at * bytes_of(d_.w.type);
        const void* wide = line_of(table_, packed_, d_.w.type, from, d_.w.strides[0], lanes, to);
        if (wide != to) std::memcpy(to, wide, size_t(lanes * bytes_));
        factor_starts_[flat] = to;
    });
}

void Worker::plane(int64_t image, int64_t channel)
{
    each_patch({image, channel, 0, 0, 0, 0, 0}, COLUMNS, [&](Patch& p, int64_t rows) {
        std::memset(sums_, 0, size_t(rows * COLUMNS * bytes_));
        for (p.depth = 0; p.depth < d_.depth; p.depth++) {
            load_factors(channel, p.depth, 1, taken_);
            fill_rows(p, rows);
            point_at_rows(p);
            for (int64_t h = 0; h < rows; h++, next_row(p))
                loops_.combine(sums_ + h * COLUMNS * bytes_, starts_, taken_, taps_, rounded(p.columns));
        }
        for (int64_t h = 0; h < rows; h++) {
            const int64_t position[3] = {p.outer, p.row + h, p.columns_first};
            store(d_.out, out_at(image, channel, position), d_.axis[2].out_stride, sums_ + h * COLUMNS * bytes_, p.columns);
        }
        const int64_t first[5] = {image, channel, p.outer, p.row, p.columns_first}, count[5] = {1, 1, 1, rows, p.columns};
        finish(first, count);
    });
}

// Of image, channel and three positions.
void Worker::finish(const int64_t* first, const int64_t* count)
{
    if (!finished_.is_wanted()) return;
    int64_t       box_first[5] = {first[0], first[1]}, box_count[5] = {count[0], count[1]};
    const int64_t skipped = WINDOW_AXES - d_.spatial;
    for (int i = 0; i < d_.spatial; i++) box_first[2 + i] = first[2 + skipped + i], box_count[2 + i] = count[2 + skipped + i];
    finished_.add(box_first, box_count);
}

void Worker::begin_sums()
{
    std::memset(tap_sums_, 0, size_t(taps_ * LANES * bytes_));
    additions_ = 0, has_totals_ = false;
}

void Worker::add_piece()
{
    if (!has_totals_) std::memset(tap_totals_, 0, size_t(taps_ * LANES * bytes_));
    const void* sums = tap_sums_;
    loops_.combine(tap_totals_, &sums, &one_, 1, taps_ * LANES);
    std::memset(tap_sums_, 0, size_t(taps_ * LANES * bytes_));
    additions_ = 0, has_totals_ = true;
}

// All sums are in tap_sums_.
void Worker::end_sums()
{
    if (!has_totals_) return;
    add_piece();
    std::swap(tap_sums_, tap_totals_);
}

// Sums of lanes become the channel's filter.
void Worker::reduce(int64_t channel, int64_t lanes) const
{
    each_tap([&](int64_t flat, const int64_t* tap) {
        char* const sums = tap_sums_ + flat * LANES * bytes_;
        for (int64_t n = lanes; n > 1; n = (n + 1) / 2) {
            const void* upper = sums + (n + 1) / 2 * bytes_;
            loops_.combine(sums, &upper, &one_, 1, n / 2);
        }
        int64_t at = channel * d_.w.strides[0];
        for (int i = 0; i < 3; i++) at += tap[i] * d_.axis[i].w_stride;
        store(d_.w, static_cast<char*>(d_.w.data) + at * bytes_of(d_.w.type), 1, sums, 1);
    });
}

void Worker::plane_dw(int64_t channel)
{
    begin_sums();
    for (int64_t image = 0; image < d_.images; image++)
        each_patch({image, channel, 0, 0, 0, 0, 0}, LANES, [&](const Patch& p, int64_t rows) {
            fill_rows(p, rows), point_at_rows(p);
            if ((additions_ += rows) > PIECE) add_piece();
            for (int64_t h = 0; h < rows; h++, next_row(p)) {
                const int64_t position[3] = {p.outer, p.row + h, p.columns_first};
                const void*   wide = line_of(table_, packed_, d_.out.type, out_at(image, channel, position), d_.axis[2].out_stride, p.columns, line_);
                for (int64_t tap = 0; tap < taps_; tap++) loops_.multiply(tap_sums_ + tap * LANES * bytes_, starts_ + tap, &wide, 1, p.columns);
            }
        });
    end_sums();
    reduce(channel, LANES);
}

// starts_: what each tap of one position reads, of `count` channels of an image, or of images of a channel.
void Worker::point_at_lanes(Along lane, int64_t other, int64_t first, int64_t count, const int64_t* position)
{
    const int64_t image = lane == Along::Channels ? other : first, channel = lane == Along::Channels ? first : other / d_.fan_out;
    const int64_t base = image * d_.in.strides[0] + channel * d_.in.strides[1];
    each_tap([&](int64_t flat, const int64_t* tap) {
        int64_t at = base;
        bool    inside = true;
        for (int i = 0; i < 3; i++) {
            const SpatialAxis& a = d_.axis[i];
            const int64_t      coordinate = a.start + position[i] * a.step + tap[i] * a.advance;
            at += coordinate * a.in_stride;
            inside &= uint64_t(coordinate) < uint64_t(a.limit);
        }
        const char* from = static_cast<const char*>(d_.in.data) + at * bytes_of(d_.in.type);
        starts_[flat] = inside ? line_of(table_, packed_, d_.in.type, from, 1, count, taken_ + flat * LANES * bytes_) : blank_;
    });
}

void Worker::lanes(Along lane, int64_t other, int64_t first, int64_t count)
{
    const bool channels = lane == Along::Channels;
    if (channels) load_factors(first, 0, count, tap_sums_);
    else load_factors(other, 0, 1, tap_sums_);
    each_position([&](const int64_t* position) {
        point_at_lanes(lane, other, first, count, position);
        std::memset(sums_, 0, size_t(count * bytes_));
        if (channels) loops_.multiply(sums_, starts_, factor_starts_, taps_, count);
        else loops_.combine(sums_, starts_, tap_sums_, taps_, count);
        store(d_.out, channels ? out_at(other, first, position) : out_at(first, other, position), d_.out.strides[channels ? 1 : 0], sums_, count);
    });
    const int64_t from[5] = {channels ? other : first, channels ? first : other};
    const int64_t size[5] = {channels ? 1 : count, channels ? count : 1, d_.axis[0].positions, d_.axis[1].positions, d_.axis[2].positions};
    finish(from, size);
}

// `first`: channels of all images, or one channel, of which images come LANES at a time.
void Worker::lanes_dw(Along lane, int64_t first, int64_t count)
{
    const bool channels = lane == Along::Channels;
    begin_sums();
    for (int64_t image = 0; image < d_.images; image += channels ? 1 : LANES) {
        const int64_t n = channels ? count : std::min(LANES, d_.images - image);
        each_position([&](const int64_t* position) {
            if (additions_++ == PIECE) add_piece();
            point_at_lanes(lane, channels ? image : first, channels ? first : image, n, position);
            const void* dy = line_of(table_, packed_, d_.out.type, out_at(image, first, position), d_.out.strides[channels ? 1 : 0], n, line_);
            for (int64_t tap = 0; tap < taps_; tap++) loops_.multiply(tap_sums_ + tap * LANES * bytes_, starts_ + tap, &dy, 1, n);
        });
    }
    end_sums();
    if (!channels) return reduce(first, LANES);
    each_tap([&](int64_t flat, const int64_t* tap) {
        int64_t at = first * d_.w.strides[0];
        for (int i = 0; i < 3; i++) at += tap[i] * d_.axis[i].w_stride;
        store(d_.w, static_cast<char*>(d_.w.data) + at * bytes_of(d_.w.type), d_.w.strides[0], tap_sums_ + flat * LANES * bytes_, count);
    });
}

uint64_t scratch_bytes(const Depthwise& d)
{
    const SpatialAxis &a = d.axis[0], &b = d.axis[1], &c = d.axis[2];
    const int64_t rows = a.taps * rows_read(b.step, reach(b)) * phase_length(COLUMNS, c.step, reach(c)) * c.step;
    return uint64_t(Worker::numbers(taps_of(d)) + rows + 7) / 8 * 8 * NUMBER;
}

double work(const Depthwise& d)
{
    double n = 4.0 * double(taps_of(d)) * double(d.images) * double(d.groups * d.fan_out * d.depth);
    for (const SpatialAxis& a : d.axis) n *= double(a.positions);
    return n;
}

template <class Body>
void each_unit(int64_t units, const Depthwise& d, const Workplace& place, Body&& body)
{
    const int64_t tasks = std::min(units, tasks_for(work(d), place.parallel.workers()));
    const uint64_t scratch = scratch_bytes(d);
    place.parallel.for_each(uint32_t(tasks), [&](uint32_t task, uint32_t worker) {
        Worker w(d, place.table, static_cast<char*>(place.workspace) + worker * scratch, worker);
        for (int64_t unit = units * task / tasks; unit < units * (task + 1) / tasks; unit++) body(w, unit);
    });
}

}  // namespace

bool is_modest(const Depthwise& d)
{
    constexpr double MOST_BYTES = 4 << 20;
    const auto   reached = [](const SpatialAxis& a) { return double(a.taps - 1) * std::abs(double(a.advance)) + 1; };
    const double step = double(d.axis[2].step), taps = double(d.axis[0].taps) * double(d.axis[1].taps) * double(d.axis[2].taps);
    const double rows = double(d.axis[0].taps) * (double(ROWS) * double(d.axis[1].step) + reached(d.axis[1]));
    return rows * ((COLUMNS + 2 * VECTOR) * step + reached(d.axis[2])) + (3 * LANES + 2) * taps <= MOST_BYTES / NUMBER;
}

uint64_t depthwise_workspace(const Depthwise& largest, uint32_t workers) { return scratch_bytes(largest) * workers; }

void run_depthwise(const Depthwise& d, const Workplace& place)
{
    const Along   lane = along(d);
    const int64_t channels = d.groups * d.fan_out;
    if (lane == Along::Rows)
        return each_unit(d.images * channels, d, place, [&](Worker& w, int64_t unit) { w.plane(unit / channels, unit % channels); });
    const int64_t count = lane == Along::Channels ? channels : d.images, pieces = (count + LANES - 1) / LANES;
    each_unit(pieces * (lane == Along::Channels ? d.images : channels), d, place, [&](Worker& w, int64_t unit) {
        const int64_t first = unit % pieces * LANES;
        w.lanes(lane, unit / pieces, first, std::min(LANES, count - first));
    });
}

void run_depthwise_dw(const Depthwise& d, const Workplace& place)
{
    const Along   lane = along(d);
    const int64_t channels = d.groups * d.fan_out;
    if (lane == Along::Channels)
        return each_unit((channels + LANES - 1) / LANES, d, place, [&](Worker& w, int64_t unit) {
            w.lanes_dw(lane, unit * LANES, std::min(LANES, channels - unit * LANES));
        });
    each_unit(channels, d, place, [&](Worker& w, int64_t unit) { lane == Along::Rows ? w.plane_dw(unit) : w.lanes_dw(lane, unit, 1); });
}

}  // namespace ng::cpu
