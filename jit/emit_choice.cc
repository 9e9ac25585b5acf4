// Which of a kernel's texts a launch of given lengths and addresses takes, and how it is launched.
#include "jit/emit_choice.h"

#include "jit/saturated.h"

#include <algorithm>
#include <bit>
#include <cstdlib>

namespace ng::emitting {
namespace {

// Parts a processor, so that it does not matter when some of them come late. Tuned on an H200: with 2, sums of 64 Mi f16 took
// 55 us, kernels starting early; with 16, 33.
constexpr int64_t WAVES = 16;
// Where one walk finds what several would, threads have their next loads on their way. So rows are whole that fill blocks for a few rounds, else parts
// need be no shorter than this, in bytes, if there are enough. Tuned on an H200: variances of 1024 x 65536 took 38 us in three parts, 34 in
// one (f32 64 and 63), of 64 x 1 Mi 37 in 32, 36 in 16; f32 of 256 x 262144 66 in 4, 64 in 9, of 512 x 65536 40 in one, 35 in two.
constexpr int64_t PART_AHEAD = 128 << 10, FILLED = 4;
constexpr int64_t LARGE_THREADS = 1024;
constexpr int64_t SHARED_POINTS = 4096;                                  // of each block of a cluster, where rows are fewer than processors
constexpr int64_t OWN_THREADS = 256, FEW_POINTS = 32;                    // of blocks where few threads share a column, or none; of a column
// By which rows' second walk follows the first. Tuned on an H200: 64 norms of 1 Mi f16 at 8 MB took 82 us, at 16 84, at 24 94, in two
// launches 102.
constexpr int64_t LAG_BYTES = 10 << 20;
constexpr int64_t PARTIAL_BYTES = 32;                                    // of what a part has of a fold

// Whether 32 bits say every distance that a thread computes.
bool is_narrow(const Arranged& a, std::span<const int64_t> variables, int64_t rows, int64_t points)
{
    bool narrow = rows < NARROW && points < NARROW;
    each_moved(a, [&](int32_t access, Dtype, int32_t) {
        __extension__ __int128 reach = 0;
        for (const int32_t x : a.walked()) {
            const int64_t stride = a.kernel.accesses[size_t(access)].strides[size_t(x)].value(variables);
            reach += __int128(std::abs(stride)) * std::max<int64_t>(a.kernel.axes[size_t(x)].extent.value(variables) - 1, 0);
        }
        narrow &= reach < NARROW;
    });
    return narrow;
}

int32_t log_of(int64_t n) { return n <= 1 ? 0 : 64 - std::countl_zero(uint64_t(n - 1)); }       // of the next power of two

// Blocks of columns: as many vectors side by side as a warp takes, fewer where there are not as many.
int32_t log_columns(int64_t vectors) { return std::min(log_of(vectors), 5); }

}  // namespace

int32_t threads_of(const LaunchClass& c)
{
    const bool is_small = c.form == Form::Points || c.form == Form::Columns || c.form == Form::Walked || (c.form == Form::Held && !c.is_split && c.width * c.held <= 8);
    return c.is_staying ? STAYING_THREADS : c.is_large ? int32_t(LARGE_THREADS) : is_small ? 256 : 512;
}

static bool are_aligned(const Arranged& a, std::span<const int64_t> variables, std::span<const uint64_t> addresses)
{
    if (a.width == 1 || (!a.is_flat && a.kernel.axes[size_t(a.axis)].extent.value(variables) % a.width)) return false;
    bool fits = true;
    each_moved(a, [&](int32_t access, Dtype t, int32_t buffer) {
        if (pace_of(a, access, true) != Pace::Unit) return;
        const Access& at = a.kernel.accesses[size_t(access)];
        const int64_t step = std::min(a.width, 16 / bytes_of(t));
        if (size_t(buffer) < addresses.size()) fits &= addresses[size_t(buffer)] % uint64_t(step * bytes_of(t)) == 0;
        if (a.is_flat) return;
        fits &= at.strides[size_t(a.axis)].value(variables) == 1 && at.offset.value(variables) % step == 0;
        for (size_t x = 0; x < at.strides.size(); x++) fits &= int32_t(x) == a.axis || at.strides[x].value(variables) % step == 0;
    });
    return fits;
}

Lie lie_of(const Arranged& a, std::span<const int64_t> variables, std::span<const uint64_t> addresses)
{
    if (!a.is_peeled && are_aligned(a, variables, addresses)) return Lie::Aligned;
    return (a.is_peeled || a.may_peel) && fits_peeled(a, variables, addresses) ? Lie::Level : Lie::Anyhow;
}

LaunchClass points_class(const Arranged& a, int32_t width, bool is_wide)
{
    LaunchClass c{Form::Points, uint8_t(width), 1, is_wide, false};
    c.held = uint8_t(is_tiled(a, c) ? TILE_POINTS / TILE_THREADS / width : held_points(a, width));
    return c;
}
// Each of the threads that share a column computes what it has once, so they have few columns and many points.
int32_t held_columns_width(int32_t width) { return std::min(width, 4); }

bool may_split(const Arranged& a) { return 2 * a.passes.count < MAX_LAUNCHES && a.axis >= 0 && a.passes.last_fold() >= 0; }

// Rows of several passes that are longer than a block holds: a cluster of blocks, at most as many as every GPU that has them.
bool may_cluster(const Arranged& a, const DeviceTraits& device) { return device.compute >= 90 && a.passes.count > 1; }

// One walk finds what passes over held rows would: it reads and computes at once.
bool is_walked_once(const Arranged& a, const Arranged& running) { return running.passes.count == 1 && a.passes.count > 1; }

// Vectors that rows need not fill, and which begin anywhere if that may be: on an H100, texts for rows that fill all took as long. Single elements are for what is short or lies
// as vectors do not, of unrolled ones each thread goes through all. By 32 a thread softmaxes of 33 f16 took 350 us, by eight 126, and NVRTC 200 ms and 84.
LaunchClass open_class(const Arranged& a, int32_t width)
{
    constexpr int32_t FEW_HELD = 8;
    LaunchClass c{Form::Held, uint8_t(width), uint8_t(held_row(a, width)), false, false};
    if (width == 1 && c.held > FEW_HELD) c.held = FEW_HELD, c.is_large = true;
    c.is_peeled = a.may_peel && width > 1;
    return c;
}

namespace {

int64_t folds_of(const Arranged& a) { return std::ranges::count(a.kernel.values, ValueKind::Fold, &Value::kind); }
int64_t wanted_parts(const Arranged& running, const DeviceTraits& device) { return int64_t(device.units) * WAVES / std::min(2, running.passes.count); }
bool    is_long_row(int64_t points, int64_t turn) { return points >= std::max(4 * turn, 2 * PART_LEAST); }
int64_t chase_parts(int64_t points, int64_t turn) { return divided_up(points, 2 * turn); }
uint64_t counts_bytes(int64_t rows) { return uint64_t(rows + 1) * 4; }

class Chooser {
  public:
    Chooser(const Arrangements& all, int64_t rows, std::span<const int64_t> variables, const DeviceTraits& device)
        : all_(all), a_(all.kernel), running_(all.running), variables_(variables), device_(device), rows_(rows), points_(a_.points.value(variables)), is_narrow_(emitting::is_narrow(a_, variables, rows_, points_)) {}

    Geometry choose(Lie lie, LaunchClass& c)
    {
        const int32_t width = (lie == Lie::Aligned || a_.is_peeled) && lie != Lie::Anyhow && (is_narrow_ || !a_.has_rows()) ? a_.width : 1;
        if (a_.has_rows() ? rows_ == 0 : points_ == 0) return g_;
        is_level_ = lie == Lie::Level;
        if (is_level_ && a_.may_peel && points_ >= least_peeled(a_, a_.width) && choose_held(a_.width, c)) return g_;
        if (!a_.has_rows()) choose_points(width, c);
        else if (choose_staying(width, c)) return g_;
        else if (a_.is_across) choose_held_columns(held_columns_width(width), c) ? void() : choose_columns(std::min(width, running_.width), c);
        else if (!choose_held(width, c)) choose_walked(width, c);
        return g_;
    }

  private:
    void launch(int64_t blocks, int64_t threads)
    {
        g_.launch[size_t(g_.launches)].blocks = uint64_t(blocks), g_.launch[size_t(g_.launches)].threads = uint32_t(threads);
        g_.launches++;
    }
    int64_t extent_of(int32_t axis) const { return a_.kernel.axes[size_t(axis)].extent.value(variables_); }
    int64_t& cut(Cut c) { return g_.cuts[size_t(c)]; }

    void choose_points(int32_t width, LaunchClass& c)
    {
        c = points_class(a_, width, !is_narrow_);
        if (is_tiled(a_, c)) {
            const int64_t along = extent_of(a_.axis), across = extent_of(a_.tile_axis);
            cut(Cut::TilesAlong) = divided_up(along, TILE_POINTS / a_.tile_side), cut(Cut::TilesAcross) = divided_up(across, a_.tile_side);
            return launch(points_ / along / across * cut(Cut::TilesAlong) * cut(Cut::TilesAcross), TILE_THREADS);
        }
        launch(divided_up(points_, int64_t(threads_of(c)) * c.width * c.held), threads_of(c));
    }

    // The most threads that a held row may have.
    int64_t team_most(int32_t width, int32_t held) const { return threads_of(has_known_rows(a_) ? LaunchClass{Form::Held, uint8_t(width), uint8_t(held), false, false} : open_class(a_, width)); }

    // Known rows by single elements where only addresses keep them from vectors: that is seldom, so what counts is how soon the text is there, and a thread has half of what it might.
    // Softmaxes of 1000 f16 took NVRTC 200 ms by 32 elements, by 16 118.
    bool is_elsewhere(int32_t width) const { return width == 1 && a_.width > 1 && has_known_rows(a_); }
    int64_t seldom_lanes(int64_t least, int32_t most) const { return std::max(least, std::min<int64_t>(int64_t(1) << log_of(divided_up(points_, std::max(8, most / 2))), points_ > 4096 ? 512 : 256)); }

    // Known rows so few that several blocks may share each: where it is not known how many there are as many blocks as may be, so that few rows take one text.
    bool shares_rows(int32_t width) const { return has_known_rows(a_) && points_ >= 2 * SHARED_POINTS && 4 * rows_ <= device_.units && (is_constant(a_) || !is_elsewhere(width)); }
    bool may_share_by(int32_t log, int32_t width) const { return points_ >> log >= SHARED_POINTS && (is_constant(a_) ? rows_ << log <= device_.units : shares_rows(width)); }

    bool is_peeled(int32_t width) const { return is_level_ && width > 1; }
    int64_t vectors_of(int32_t width) const { return is_peeled(width) ? points_ / width : divided_up(points_, width); }      // of a row, at most
    bool choose_held(int32_t width, LaunchClass& c)
    {
        const bool is_known = has_known_rows(a_);
        const int32_t held = is_known ? held_row(a_, width) : open_class(a_, width).held;
        if (!is_narrow_) return false;
        const int32_t most = is_known && points_ > team_most(width, held) * held * width ? held_most(a_, width) : held;
        if (most == 0 && points_ == 0) return false;                // rows of which a thread cannot hold a point, and there is none
        const bool may_share = !is_walked_once(a_, running_);
        if (may_share && shares_rows(width) && choose_cluster(width, most, c)) return true;
        if (vectors_of(width) > team_most(width, most) * most) return may_share && (choose_large(width, most, c) || choose_cluster(width, held_most(a_, width), c));
        // As few threads a row as hold it, but neighbours that read 64 bytes side by side, where each has two vectors. Tuned on
        // an H200: with 32 bytes, norms of 64 f16 took 79 % of a copy's rate, those of 256, by 128 bytes, 93 %.
        // Of single elements instructions decide, so few threads have several each, fewer where one walk folds all. Tuned on an H100: sums of 33 f16 took 184 us with 32
        // threads, 32 with four, softmaxes 277, and 110 with eight. Where lengths are not known as few as may be, for each goes through as many elements: with one
        // softmaxes of 7 f32 took 337 us, with two 171.
        const int64_t by_elements = !is_known ? std::min<int64_t>(2, divided_up(points_, 5)) : std::min<int64_t>(divided_up(points_ * 5, a_.passes.count == 1 ? 42 : 21), points_ > 224 ? 32 : 16);
        const int64_t by_vectors = std::min<int64_t>(divided_up(points_, width * 2), divided_up(64, std::max(1, loaded_bytes(a_)) * width));
        const int64_t least = is_elsewhere(width) ? seldom_lanes(by_elements, held) : width == 1 ? by_elements : is_peeled(width) ? peeled_lanes(a_, width, points_, by_vectors) : by_vectors;
        int64_t lanes = int64_t(1) << log_of(std::max(least, divided_up(vectors_of(width), most)));
        while (lanes > threads_of(held_class(width, lanes))) lanes /= 2;
        int64_t threads = std::max<int64_t>(lanes, 256);
        while (threads > 32 && threads > lanes && rows_ * lanes < threads * device_.units * 2) threads /= 2;
        cut(Cut::LogLanes) = log_of(lanes);
        c = held_class(width, lanes);
        launch(divided_up(rows_, threads / lanes), threads);
        return true;
    }

    // One block a processor: while it computes, others have the memory.
    bool choose_large(int32_t width, int32_t most, LaunchClass& c)
    {
        c = held_class(width, LARGE_THREADS);
        if (!has_known_rows(a_) || vectors_of(width) > LARGE_THREADS * most) return false;
        c.is_large = true, c.log_lanes = -1;
        cut(Cut::LogLanes) = log_of(LARGE_THREADS);
        launch(rows_, LARGE_THREADS);
        return true;
    }

    // Where lengths are known before, a thread has as many vectors as it needs.
    LaunchClass held_class(int32_t width, int64_t lanes) const
    {
        if (!has_known_rows(a_)) return open_class(a_, width);
        const int64_t vectors = std::max<int64_t>(1, divided_up(vectors_of(width), lanes));
        LaunchClass c{Form::Held, uint8_t(width), uint8_t(vectors), false, false};
        c.is_peeled = is_peeled(width);
        c.is_full = !c.is_peeled && points_ == lanes * vectors * width;
        if (c.is_full) c.log_lanes = int8_t(log_of(lanes));
        return c;
    }

    // Columns enough for few threads to share one; where they have it alone, nobody meets.
    bool are_many(int64_t vectors, int32_t log_sharers) const { return vectors << log_sharers >= int64_t(device_.units) * (points_ < FEW_POINTS ? 4 : 8) * OWN_THREADS; }
    void choose_own_columns(int64_t vectors, int32_t log_sharers)
    {
        cut(Cut::LogLanes) = log_of(OWN_THREADS) - log_sharers;
        launch(divided_up(vectors, OWN_THREADS >> log_sharers), OWN_THREADS);
    }

    // Few points of many rows: as many vectors side by side as there may be for threads to hold all.
    bool choose_held_columns(int32_t width, LaunchClass& c)
    {
        const int32_t held = held_column(a_, width);
        const int64_t vectors = divided_up(rows_, width);
        if (!is_narrow_ || held == 0) return false;
        c = {Form::Held, uint8_t(width), uint8_t(held), false, false};
        if (const int32_t log_sharers = log_of(divided_up(points_, held)); log_sharers < 3 && are_many(vectors, log_sharers)) {
            if (is_constant(a_)) c.held = uint8_t(std::max<int64_t>(1, divided_up(points_, int64_t(1) << log_sharers))), c.is_full = points_ == int64_t(c.held) << log_sharers;
            choose_own_columns(vectors, log_sharers);
            return true;
        }
        for (const int64_t threads : {256, 512})
            for (int32_t log = 5; log >= 3; log--) {
                // Half a line costs less than to read twice, where threads have their share. Tuned on an H100: softmaxes of 256 f16 took 99 us, so 86, of 129 92 and 129.
                const int64_t lanes = threads >> log, line = width * loaded_bytes(a_) << log;
                const bool is_line = log == 5 || line >= 128 || (line >= 64 && threads == 512 && points_ * 4 > lanes * held * 3);
                if (points_ > lanes * held || threads > threads_of(c) || !is_line) continue;
                cut(Cut::LogLanes) = std::min(log, log_columns(vectors));
                // No fewer than make a text for so many threads.
                if (is_constant(a_)) c.held = uint8_t(std::max<int64_t>(threads > 256 ? 8 / width + 1 : 1, divided_up(points_, threads >> cut(Cut::LogLanes))));
                c.is_full = is_constant(a_) && points_ == (threads >> cut(Cut::LogLanes)) * c.held;
                launch(divided_up(vectors, int64_t(1) << cut(Cut::LogLanes)), threads);
                return true;
            }
        return false;
    }

    bool choose_cluster(int32_t width, int32_t most, LaunchClass& c)
    {
        const bool is_large = has_known_rows(a_) && loaded_bytes(a_) >= 4 && points_ > (team_most(width, most) * most * width) << LOG_CLUSTER;
        const int64_t team = is_large ? LARGE_THREADS : threads_of({Form::Held, uint8_t(width), uint8_t(most), false, true});
        int32_t log = std::max(1, log_of(divided_up(points_, std::max<int64_t>(1, team * most * width))));
        while (log < LOG_CLUSTER && may_share_by(log + 1, width)) log++;
        if (most == 0 || !may_cluster(a_, device_) || log > LOG_CLUSTER) return false;
        const int64_t held = has_known_rows(a_) ? divided_up(vectors_of(width), team << log) : most;
        c = {Form::Held, uint8_t(width), uint8_t(held), false, true};
        c.is_peeled = is_peeled(width) || (a_.may_peel && width > 1), c.is_large = is_large;
        c.is_full = has_known_rows(a_) && !c.is_peeled && points_ == (team << log) * held * width;
        cut(Cut::Parts) = int64_t(1) << log;
        launch(rows_ << log, team);
        g_.launch[0].cluster = uint32_t(1) << log;
        return true;
    }

    bool choose_staying(int32_t width, LaunchClass& c)
    {
        if (is_walked_once(a_, running_) || !is_narrow_ || (a_.is_peeled && !is_level_)) return false;
        for (const std::optional<Arranged>* const a : all_.stayed()) {
            const std::optional<Staying> s = *a && width == (*a)->width ? stay(**a, rows_, points_, device_) : std::nullopt;
            if (!s) continue;
            c = s->text, g_.launch[0] = s->launch, g_.launches = 1;
            return true;
        }
        return false;
    }

    void choose_walked(int32_t width, LaunchClass& c)
    {
        c = {Form::Walked, uint8_t(width), uint8_t(held_walk(running_, width)), width == 1, false};
        c.is_peeled = is_peeled(width);
        const int64_t threads = threads_of(c), wanted = wanted_parts(running_, device_), turn = threads * c.width * c.held;
        int64_t parts = 2 * rows_ >= wanted || !may_split(running_) ? 1 : std::min(divided_up(wanted, rows_), points_ / PART_LEAST);
        const int64_t filled = device_.units * FILLED, rounds = divided_up(rows_, filled);
        if (is_walked_once(a_, running_) && width > 1) parts = rounds > 1 && rows_ * 5 >= rounds * filled * 4 ? 1 : std::min(parts, std::max(filled / rows_, points_ * loaded_bytes(running_) / PART_AHEAD));
        const bool is_long = may_split(running_) && is_long_row(points_, turn);
        if (chases(running_) && (parts > 1 || is_long)) return choose_chase(c, threads, turn);
        if (parts <= 1) return launch(rows_, threads);
        split(c, parts, turn);
        launch_stages(rows_ * cut(Cut::Parts), threads, rows_, std::clamp<int64_t>(int64_t(1) << log_of(cut(Cut::Parts)), 32, threads));
    }

    // Parts as short as may be, so that few bytes are between the first and the last of those that are under way.
    void choose_chase(LaunchClass& c, int64_t threads, int64_t turn)
    {
        split(c, chase_parts(points_, turn), turn);
        cut(Cut::Lag) = divided_up(LAG_BYTES, std::max<int64_t>(1, loaded_bytes(running_)) * points_) * cut(Cut::Parts);
        g_.scratch_bytes += counts_bytes(rows_);
        launch(divided_up(rows_ + 1, threads), threads);
        launch(2 * (rows_ * cut(Cut::Parts) + cut(Cut::Lag)), threads);
    }

    void choose_columns(int32_t width, LaunchClass& c)
    {
        c = {Form::Columns, uint8_t(width), uint8_t(held_walk(running_, width)), width == 1, false};
        const int64_t vectors = divided_up(rows_, width), threads = threads_of(c);
        if (running_.passes.count == 1 && (width == 1 || points_ < FEW_POINTS) && are_many(vectors, 0)) return choose_own_columns(vectors, 0);
        int32_t log = log_columns(vectors);
        // What all blocks read again shall still be in the cache. Less than a line of it side by side takes as long as all of it.
        const int64_t line_bytes = width * loaded_bytes(running_);
        while (log > 0 && running_.passes.count > 1 && (line_bytes << log) > 128 && divided_up(vectors, int64_t(1) << log) >= device_.units * 2 && (points_ * line_bytes) << log > 65536) log--;
        // Where there are parts, as few as may be, unless columns are read again: then as wide as may be.
        const bool is_again = running_.passes.folded.empty() || running_.passes.last_fold() + 1 < running_.passes.count;
        while (log > 0 && may_split(running_) && !is_again && (line_bytes << log) > 128 && vectors % (1 << log) == 0 && 2 * divided_up(vectors, int64_t(1) << log) < device_.units * column_blocks(running_, width)) log--;
        const int64_t blocks = divided_up(vectors, int64_t(1) << log), lanes = threads >> log;
        cut(Cut::LogLanes) = log;
        // All at once, since their meeting is what costs. Tuned on an H200: with twice as many, sums of 32 columns of f16 took 31 us, so 25.
        const int64_t turn = lanes * c.held * (is_again ? LAST_TURNS : 1);
        const int64_t wanted = int64_t(device_.units) * column_blocks(running_, width), most = points_ / (turn * PART_STEPS);
        const int64_t parts = 2 * blocks >= wanted || !may_split(running_) ? 1 : std::min(wanted / blocks, most);
        if (parts <= 1) return launch(blocks, threads);
        split(c, parts, turn);
        // Of single columns: eight parts a thread are on their way at once, and neighbours read 32 bytes at least.
        cut(Cut::LogJoin) = std::clamp(log_of(8 * threads / cut(Cut::Parts)), 2, 5);
        int32_t wide = std::min(log_of(vectors), log_of(threads));
        while (wide > log && divided_up(vectors, int64_t(1) << wide) << wide > vectors + vectors / 8) wide--;
        cut(Cut::LogLast) = wide, cut(Cut::Turns) = int64_t(LAST_TURNS) << (wide - log);
        launch_stages(blocks * cut(Cut::Parts), threads, divided_up(rows_, int64_t(1) << cut(Cut::LogJoin)), threads, (divided_up(vectors, int64_t(1) << wide) * cut(Cut::Parts)) * cut(Cut::Turns));
    }

    void launch_stages(int64_t blocks, int64_t threads, int64_t blocks_that_join, int64_t threads_that_join, int64_t last = 0)
    {
        for (int32_t s = 0; s < running_.passes.count; s++) {
            const bool has_folds = std::ranges::find(running_.passes.folded, s) != running_.passes.folded.end();
            launch(running_.is_across && !has_folds ? last : blocks, threads);
            if (running_.is_across && has_folds) launch(blocks_that_join, threads_that_join);
        }
        if (ends_with_rows(running_)) launch(blocks_that_join, threads_that_join);
    }

    // Of whole turns of a block: what is left after those costs as much as one.
    void split(LaunchClass& c, int64_t parts, int64_t turn)
    {
        c.is_split = true;
        cut(Cut::Chunk) = divided_up(divided_up(points_, parts), turn) * turn;
        cut(Cut::Parts) = std::min(parts, divided_up(points_, cut(Cut::Chunk)));
        take_scratch();
    }
    void take_scratch()
    {
        cut(Cut::Region) = rows_ * (cut(Cut::Parts) + 1) * PARTIAL_BYTES;
        g_.scratch_bytes = uint64_t(folds_of(a_) * cut(Cut::Region));
    }

    const Arrangements& all_;
    const Arranged      &a_, &running_;
    std::span<const int64_t> variables_;
    const DeviceTraits& device_;
    int64_t  rows_, points_;
    bool     is_narrow_, is_level_ = false;
    Geometry g_;
};

}  // namespace

// Rows by one more than their parts.
uint64_t most_scratch(const Arrangements& all, std::span<const int64_t> most, const DeviceTraits& device)
{
    const Arranged& running = all.running;
    if (!running.has_rows() || !may_split(running)) return 0;
    // What no memory holds is as much as this, so that nothing overflows.
    constexpr int64_t MOST = int64_t(1) << 50;
    const int64_t rows = std::min(running.rows.most(most), MOST), points = std::min(running.points.most(most), MOST);
    int64_t  cells = 0;
    uint64_t counts = 0;
    for (const int32_t width : {all.kernel.width, running.width, 1}) {
        const LaunchClass c{running.is_across ? Form::Columns : Form::Walked, uint8_t(width), uint8_t(held_walk(running, width)), false, true};
        if (running.is_across) {
            // At most half as many blocks side by side as are wanted, each of up to 32 vectors.
            const int64_t wanted = int64_t(device.units) * column_blocks(running, width), parts = std::min(wanted, points / ((threads_of(c) >> 5) * c.held * PART_STEPS));
            cells = std::max(cells, std::min((wanted + wanted / 2) * (int64_t(width) << 5), times(rows, parts + 1)));
            continue;
        }
        const int64_t wanted = wanted_parts(running, device), few = std::min(rows, divided_up(wanted, 2)), turn = int64_t(threads_of(c)) * c.width * c.held;
        if (!chases(running)) cells = std::max(cells, std::min(wanted + 2 * few, times(few, points / PART_LEAST + 1)));
        else cells = std::max(cells, times(is_long_row(points, turn) ? rows : few, chase_parts(points, turn) + 1)), counts = counts_bytes(rows);
    }
    return uint64_t(std::min(times(cells, folds_of(all.kernel) * PARTIAL_BYTES), MOST)) + counts;
}

Geometry choose(const Arrangements& all, int64_t rows, std::span<const int64_t> variables, const DeviceTraits& device, Lie lie, LaunchClass& c) { return Chooser(all, rows, variables, device).choose(lie, c); }

}  // namespace ng::emitting
