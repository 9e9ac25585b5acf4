// The launches of scans, segments and sorts: how lines are cut, and what their parts need of a workspace.
#include "lib/backend/cuda/basic_parts.h"

#include <cstdlib>

namespace ng::cuda::basic {
namespace {

using kernels::THREADS;

// ---- scans -------------------------------------------------------------------------------------------------------------

constexpr int64_t SCAN_TILE = 16 * THREADS, ITEMS = 16;
constexpr int64_t MANY_CHUNKS = 1 << 16, SHORTEST_CHUNK = 64;   // of one thread each: enough to fill a device
constexpr int64_t SHORT_LINE = 32, BESIDE = 32;

int64_t lines_beside(const int64_t* dims, int rank, int axis)
{
    int64_t n = 1;
    for (int i = 0; i < rank; i++)
        if (i != axis) n *= dims[i];
    return n;
}

struct ScanCut {
    bool     by_thread;
    int64_t  chunk, chunks;
    uint32_t block;
};
ScanCut cut_of(int64_t count, int64_t lines, bool lines_are_nearer)
{
    if (count <= SHORT_LINE || (lines >= BESIDE && lines_are_nearer)) {
        const int64_t wanted = std::clamp<int64_t>(MANY_CHUNKS / lines, 1, std::max<int64_t>(count / SHORTEST_CHUNK, 1));
        const int64_t chunk = divided_up(count, wanted);
        return {true, chunk, divided_up(count, chunk), THREADS};
    }
    const auto block = uint32_t(std::clamp<int64_t>(power_up(divided_up(count, ITEMS)), 32, THREADS));
    const int64_t chunk = std::min(count, SCAN_TILE);
    return {false, chunk, divided_up(count, chunk), block};
}

// Enough for either cut.
uint64_t totals_bytes(int64_t count, int64_t lines)
{
    if (count <= SHORT_LINE) return 0;
    const int64_t by_block = lines * divided_up(count, SCAN_TILE), by_thread = std::min(lines * divided_up(count, SHORTEST_CHUNK), 2 * MANY_CHUNKS);
    return aligned(8 * uint64_t(by_block + by_thread));
}

}  // namespace

uint64_t scan_workspace(const int64_t* dims, int rank, int axis)
{
    return totals_bytes(dims[axis], lines_beside(dims, rank, axis));
}

void scan(const Operand& x, const Operand& y, const ScanAlong& along, const Place& place)
{
    const int axis = along.axis;
    AxisList  lines;
    for (int i = 0; i < along.rank; i++)
        if (i != axis) lines.add(x.dims[i], x.strides[i], y.strides[i]);
    lines.nest_as_b(), lines.merge();
    kernels::ScanNumbers n = {};
    n.count = x.dims[axis], n.lines = lines.count();
    if (n.count == 0 || n.lines == 0) return;
    const Dtype type = folded_as(x.type, along.how);
    n.type = code_of(type), n.how = along.how, n.is_exclusive = (along.flags & NG_EXCLUSIVE) != 0;
    n.x = x.data, n.y = y.data, n.x_step = x.strides[axis], n.y_step = y.strides[axis];
    n.line = lines.axes();
    if (along.flags & NG_REVERSE) {
        const int64_t last = (n.count - 1) * bytes_of(x.type);
        n.x = static_cast<const char*>(x.data) + last * n.x_step, n.y = static_cast<char*>(y.data) + last * n.y_step;
        n.x_step = -n.x_step, n.y_step = -n.y_step;
    }
    const bool    nearer = lines.rank() > 0 && std::abs(lines[lines.rank() - 1].b) < std::abs(n.y_step);
    const ScanCut cut = cut_of(n.count, n.lines, nearer);
    n.chunk = cut.chunk, n.chunks = cut.chunks;
    if (n.chunks > 1) n.totals = place.workspace;
    const bool    real = is_real(type);
    const int64_t all = n.lines * n.chunks;
    const auto    either = [&](BasicKernel f64, BasicKernel i64) { return real ? f64 : i64; };
    if (cut.by_thread) {
        if (n.totals) launch_threads(place, either(BasicKernel::line_totals_f64, BasicKernel::line_totals_i64), all, n);
    } else if (n.totals) {
        launch(place, either(BasicKernel::chunk_totals_f64, BasicKernel::chunk_totals_i64), all, cut.block, n);
    }
    if (n.totals) launch(place, either(BasicKernel::scan_totals_f64, BasicKernel::scan_totals_i64), n.lines, THREADS, n);
    if (cut.by_thread) return launch_threads(place, either(BasicKernel::scan_lines_f64, BasicKernel::scan_lines_i64), all, n);
    launch(place, either(BasicKernel::scan_chunks_f64, BasicKernel::scan_chunks_i64), all, cut.block, n);
}

// ---- segments ----------------------------------------------------------------------------------------------------------

namespace {

constexpr int64_t ROWS_A_CHUNK = 1024, MOST_ACROSS = 32, MARKERS = 32;
int64_t chunks_of(int64_t rows) { return rows < 4 * ROWS_A_CHUNK ? 0 : divided_up(rows, ROWS_A_CHUNK); }

}  // namespace

uint64_t segment_workspace(const int64_t* x_dims, int rank)
{
    const auto chunks = uint64_t(chunks_of(x_dims[0]));
    return aligned(chunks) + aligned(8 * chunks * uint64_t(lines_beside(x_dims, rank, 0)));
}

void segment(const Operand& x, const Operand& offsets, const Operand& y, int rank, Folding how, const Place& place)
{
    AxisList inner;
    for (int i = 1; i < rank; i++) inner.add(x.dims[i], x.strides[i], y.strides[i]);
    inner.nest_as_b(), inner.merge();
    kernels::SegmentNumbers n = {};
    n.x = x.data, n.offsets = static_cast<const kernels::i64*>(offsets.data), n.y = y.data;
    const Dtype type = folded_as(x.type, how);
    n.type = code_of(type), n.how = how;
    n.rows = x.dims[0], n.segments = y.dims[0], n.offset_step = offsets.strides[0];
    n.x_step = x.strides[0], n.y_step = y.strides[0];
    n.inner = inner.axes(), n.inner_count = inner.count(), n.chunk = ROWS_A_CHUNK;
    if (n.segments == 0 || n.inner_count == 0) return;
    const bool    real = is_real(type);
    const int64_t across = std::min(power_up(n.inner_count), MOST_ACROSS), tiles = divided_up(n.inner_count, across);
    n.across = int32_t(across);
    if (how != kernels::LAST && chunks_of(n.rows) > 0) {
        Pieces pieces(place.workspace);
        n.chunks = chunks_of(n.rows);
        n.wanted = static_cast<unsigned char*>(pieces.take(uint64_t(n.chunks)));
        n.totals = pieces.take(8 * uint64_t(n.chunks) * uint64_t(n.inner_count));
        const int64_t size = n.chunks, step = 1;
        fill({n.wanted, Dtype::u8, &size, &step}, 1, 0, place);
        launch_threads(place, BasicKernel::segment_mark, n.segments * MARKERS, n);
        n.down = int32_t(THREADS / across);
        launch(place, real ? BasicKernel::segment_totals_f64 : BasicKernel::segment_totals_i64, n.chunks * tiles, THREADS, n);
    }
    // As many threads for a segment as it has rows on average.
    n.down = how == kernels::LAST ? 1 : int32_t(std::clamp<int64_t>(power_up(n.rows / n.segments), 1, THREADS / across));
    const int64_t together = THREADS / (across * n.down);
    launch(place, real ? BasicKernel::segment_fold_f64 : BasicKernel::segment_fold_i64, divided_up(n.segments, together) * tiles, THREADS, n);
}

// ---- sorts -------------------------------------------------------------------------------------------------------------

namespace {

constexpr int64_t SORT_TILE = 2048, DIGITS = 256;
constexpr int64_t TOGETHER = int64_t(1) << 26;   // entries of several lines that are sorted at once
constexpr int64_t NARROW = int64_t(UINT32_MAX);

// What is sorted: lines of `count` entries with keys of some bytes.
struct Sort {
    int64_t count, lines;
    int     key_bytes;

    bool    keys_are_wide() const { return key_bytes > 4 || indices_are_wide(); }
    bool    indices_are_wide() const { return count >= NARROW; }
    int     buffers() const { return std::min(key_bytes - 1, 2); }
    int64_t lines_together() const { return std::min(lines, std::max<int64_t>(TOGETHER / count, 1)); }
    int64_t tiles() const { return divided_up(count, SORT_TILE); }
    bool    is_small() const { return count <= SORT_TILE; }
    // Each grows with count and lines; of long lines only.
    int64_t most_entries() const { return count > TOGETHER / lines ? std::max(count, TOGETHER) : count * lines; }
    int64_t most_tiles() const { return 2 * divided_up(most_entries(), SORT_TILE); }
    uint64_t counts_bytes() const { return aligned(uint64_t(DIGITS * most_tiles()) * (indices_are_wide() ? 8 : 4)); }
    uint64_t keys_bytes() const { return aligned(uint64_t(most_entries()) * (keys_are_wide() ? 8 : 4)); }
    uint64_t index_bytes() const { return aligned(uint64_t(most_entries()) * (indices_are_wide() ? 8 : 4)); }
    uint64_t scan_bytes() const
    {
        return aligned(8 * uint64_t(most_tiles() + divided_up(DIGITS * most_tiles(), SCAN_TILE) + 2 * MANY_CHUNKS));
    }
    uint64_t passes_bytes(int kept) const { return uint64_t(kept) * (keys_bytes() + index_bytes()) + counts_bytes() + scan_bytes(); }
};

struct Entries {
    void *keys, *index;
};
// Where entries are between passes, counts, and what the scan of counts needs.
struct SortRoom {
    Entries entries[2] = {};
    void*   counts = nullptr;
};

template <class Pick>
BasicKernel kernel_for(const Sort& s, const Pick& kernels)
{
    return kernels[s.indices_are_wide() ? 2 : s.keys_are_wide() ? 1 : 0];
}

// All passes over n.lines lines. The first reads n.source; the last writes n.y, if that is there.
Entries run_passes(kernels::SortNumbers n, const Sort& s, const SortRoom& room, const Place& scan_place, const Place& place)
{
    static constexpr BasicKernel counting[] = {BasicKernel::sort_count_32_32, BasicKernel::sort_count_64_32, BasicKernel::sort_count_64_64};
    static constexpr BasicKernel scattering[] = {BasicKernel::sort_scatter_32_32, BasicKernel::sort_scatter_64_32, BasicKernel::sort_scatter_64_64};
    kernels::i64* const y = n.y;
    const int64_t       blocks = n.lines * n.tiles, dims[] = {n.lines, DIGITS * n.tiles}, strides[] = {DIGITS * n.tiles, 1};
    const Operand       counts = {room.counts, s.indices_are_wide() ? Dtype::u64 : Dtype::u32, dims, strides};
    n.counts = room.counts;
    Entries out = {};
    for (int pass = 0; pass < s.key_bytes; pass++) {
        n.shift = 8 * pass;
        n.keys_in = out.keys, n.index_in = out.index;
        if (pass > 0) n.source = kernels::SORT_BUFFERS;
        out = room.entries[pass % 2];
        n.keys_out = out.keys, n.index_out = out.index;
        n.y = pass + 1 == s.key_bytes ? y : nullptr;
        launch(place, kernel_for(s, counting), blocks, THREADS, n);
        scan(counts, counts, {2, 1, kernels::SUM, NG_EXCLUSIVE}, scan_place);
        launch(place, kernel_for(s, scattering), blocks, THREADS, n);
    }
    return out;
}

}  // namespace

uint64_t argsort_workspace(const int64_t* dims, int rank, int axis, Dtype type)
{
    const Sort s = {dims[axis], lines_beside(dims, rank, axis), bytes_of(type)};
    return s.lines == 0 || s.is_small() ? 0 : s.passes_bytes(s.buffers());
}

void argsort(const Operand& x, const Operand& y, int rank, int axis, uint32_t flags, const Place& place)
{
    AxisList lines;
    for (int i = 0; i < rank; i++)
        if (i != axis) lines.add(x.dims[i], x.strides[i], y.strides[i]);
    lines.nest_as_b(), lines.merge();
    const Sort           s = {x.dims[axis], lines.count(), bytes_of(x.type)};
    kernels::SortNumbers n = {};
    n.x = x.data, n.y = static_cast<kernels::i64*>(y.data);
    n.source = kernels::SORT_VALUES, n.type = code_of(x.type), n.descending = (flags & NG_REVERSE) != 0;
    n.count = s.count, n.lines = s.lines, n.x_step = x.strides[axis], n.y_step = y.strides[axis];
    n.axes = lines.axes();
    if (s.count == 0 || s.lines == 0) return;
    if (s.is_small()) {
        n.segment = int32_t(std::max<int64_t>(power_up(s.count), 2));
        return launch(place, BasicKernel::sort_small, divided_up(s.lines, SORT_TILE / n.segment), THREADS, n);
    }
    Pieces   pieces(place.workspace);
    SortRoom room;
    for (int i = 0; i < s.buffers(); i++) room.entries[i] = {pieces.take(s.keys_bytes()), pieces.take(s.index_bytes())};
    room.counts = pieces.take(s.counts_bytes());
    n.tiles = s.tiles();
    const int64_t together = s.lines_together();
    for (n.first_line = 0; n.first_line < s.lines; n.first_line += together) {
        n.lines = std::min<int64_t>(together, s.lines - n.first_line);
        run_passes(n, s, room, pieces.rest(place), place);
    }
}

namespace {

// Keys 0 .. size.
Sort sort_of(int64_t size, int64_t count)
{
    int bytes = 1;
    while (bytes < 8 && size >> 8 * bytes) bytes++;
    return {count, 1, bytes};
}

}  // namespace

uint64_t sort_indices_workspace(int64_t size, int64_t count)
{
    const Sort s = sort_of(size, count);
    const uint64_t entries = s.keys_bytes() + s.index_bytes();
    return s.is_small() ? entries : s.passes_bytes(2);
}

SortedIndices sort_indices(const void* indices, const kernels::Axes& at, int64_t size, int64_t count, const Place& place)
{
    const Sort           s = sort_of(size, count);
    Pieces               pieces(place.workspace);
    SortRoom             room;
    kernels::SortNumbers n = {};
    n.x = indices, n.source = kernels::SORT_INDICES, n.axes = at;
    n.size = size, n.count = count, n.lines = 1;
    n.keys_are_wide = s.keys_are_wide(), n.positions_are_wide = s.indices_are_wide();
    for (int i = 0; i < (s.is_small() ? 1 : 2); i++) room.entries[i] = {pieces.take(s.keys_bytes()), pieces.take(s.index_bytes())};
    Entries sorted = room.entries[0];
    if (s.is_small()) {
        n.keys_out = sorted.keys, n.index_out = sorted.index;
        n.segment = int32_t(std::max<int64_t>(power_up(count), 2));
        launch(place, BasicKernel::sort_small, 1, THREADS, n);
    } else {
        room.counts = pieces.take(s.counts_bytes());
        n.tiles = s.tiles();
        sorted = run_passes(n, s, room, pieces.rest(place), place);
    }
    return {sorted.keys, sorted.index, s.keys_are_wide(), s.indices_are_wide()};
}

}  // namespace ng::cuda::basic
