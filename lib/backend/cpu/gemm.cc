// The packed GEMM: divides a product among workers, packs blocks of its operands, and runs tiles over them.
#include "lib/backend/cpu/gemm.h"

#include "lib/backend/cpu/gemm_grid.h"
#include "lib/backend/cpu/processor.h"

#include <algorithm>
#include <cstring>

namespace ng::cpu {
namespace {

constexpr int64_t PLAIN_STRIP = 128;        // columns at a time where there is no epilogue
constexpr int64_t STRIP_BYTES = 64 << 10;   // of the result between two calls of an epilogue: it should still be in L2

constexpr int64_t LINE_END = 4;              // bytes for each line of a panel, past its units, of kinds that finish panels

uint64_t aligned(int64_t bytes) { return uint64_t(rounded(bytes, 64)); }

// Where things are in one worker's part of the workspace.
struct Layout {
    uint64_t a, b, raw, lines, a_depth, b_depth, rows, columns, tile, bytes;
};

// Every size grows with m, n and k.
Layout layout_of(const TileKind& t, int64_t m, int64_t n, int64_t k)
{
    const int64_t up_m = rounded(m, t.rows), up_n = rounded(n, t.columns), up_k = rounded(k, t.unit);
    const int64_t rows = std::min(up_m, t.block_rows), columns = std::min(up_n, t.block_columns), depth = std::min(up_k, t.depth);
    uint64_t      at = 0;
    const auto    take = [&](int64_t bytes) { return at += aligned(bytes), at - aligned(bytes); };
    Layout        l;
    // Where panels end with a line, so does each block of depth; what is kept of a is block_rows x depth, in blocks of half the
    // depth at least unless it is one.
    const int64_t end = t.finish ? LINE_END : 0, ends = int64_t(std::min(double(up_m) * double(k / t.depth + 1), 2.0 * double(t.block_rows)));
    l.a = take(t.packed_bytes * int64_t(std::min(double(up_m) * double(up_k), double(t.block_rows * t.depth))) + end * ends);
    l.b = take((t.packed_bytes * depth + end) * columns);
    l.raw = take((t.unit > 1 ? 3 : 8) * std::max(t.rows, t.columns) * depth);
    l.lines = take(int64_t(sizeof(Point)) * std::max(rows, columns));
    l.a_depth = take(int64_t(sizeof(Point)) * depth), l.b_depth = take(std::max(int64_t(sizeof(Point)) * depth, 8 * (depth + STEPS_AHEAD)));
    l.rows = take(8 * rows), l.columns = take(8 * columns);
    l.tile = take(t.accumulator_bytes * t.rows * t.columns);
    l.bytes = at;
    return l;
}

// One product on its way: what all tasks share.
struct Plan {
    const Product&      product;
    const ProductTable& table;
    Packed              packed;
    Matrix              a, b;
    Shape               shape;
    int                 result_bytes;
    bool                is_direct;    // tiles may be written where the result is
    bool                is_in_place;  // b is not packed

    const TileKind& tile() const { return table.tile[packed]; }
};

struct Where {
    int64_t   batch;
    Part      part;
    uint32_t  worker;
    Finished& finished;
};

// One worker's packing and multiplying of one rectangle of one batch.
class Rectangle {
  public:
    Rectangle(const Plan& plan, const Layout& layout, void* workspace, const Where& where)
        : plan_(plan), t_(plan.tile()), at_(layout), scratch_(static_cast<char*>(workspace) + where.worker * layout.bytes),
          where_(where), part_(where.part)
    {
        const BatchOffsets offsets = batch_offsets(plan.product, where.batch);
        a_ = plan.a, b_ = plan.b;
        a_.data += offsets.a * bytes_of(a_.type), b_.data += offsets.b * bytes_of(b_.type);
        c_ = plan.product.c.data + offsets.c * plan.result_bytes;
    }
    void run();

  private:
    struct Depth {
        int64_t first, count, units;
        bool    is_first, is_last;
    };
    struct Panels {
        char*   data;
        int64_t first, count;
        int     width;
    };
    struct Spot {
        int64_t row, column;
        int     rows, columns;
        bool    is_direct;
    };
    void block(int64_t column, int64_t columns, const Depth& depth);
    void pack(const Matrix& m, uint64_t depth_points, const Depth& depth, const Panels& panels);
    void copy(const Matrix& m, PanelSource& source, const Depth& depth, const Panels& panels);
    void weave(const Matrix& m, PanelSource& source, const Depth& depth, const Panels& panels);
    // Bytes for each line of a panel.
    int64_t line_bytes(const Depth& depth) const { return t_.packed_bytes * depth.units * t_.unit + (t_.finish ? LINE_END : 0); }
    Strand  lines_of(const Matrix& m, const Panels& panels, int64_t first, int64_t count) const;
    // Whether panels are woven from memory as it is: one point says where everything is.
    bool is_straight(const Matrix& m) const
    {
        const auto step = [](const Side& side) { return side.rank ? side.axis[0].stride : 1; };
        return t_.unit > 1 && m.bounds == 0 && m.lines.rank <= 1 && m.depth.rank <= 1 && (step(m.lines) == 1 || step(m.depth) == 1) &&
               !plan_.table.widen[plan_.packed][int(m.type)];
    }
    void load_rows(int64_t row, int64_t rows);
    void load_steps(const Depth& depth);
    void load_columns(int64_t first, int64_t count);
    void tiles(const Panels& a, const Panels& b, const Depth& depth);
    void one_tile(const char* a, const char* b, const Spot& spot, const Depth& depth);
    void multiply(const char* a, const char* b, const Depth& depth, bool is_last, char* to, int64_t row_stride, bool accumulate) const;

    template <class T> T* at(uint64_t offset) const { return reinterpret_cast<T*>(scratch_ + offset); }

    const Plan&     plan_;
    const TileKind& t_;
    const Layout&   at_;
    char*           scratch_;
    const Where&    where_;
    const Part&     part_;
    Matrix          a_, b_;
    char*           c_;
    bool            resident_ = false;      // all of a's rows and depth are packed at once and kept
    bool            rows_affine_ = false;
    int64_t         row_step_ = 0, strip_ = 0;
    int64_t         loaded_ = -1;           // the first of the steps of depth that are loaded
};

Strand strand(const Side& side, const Point* points, int64_t first, int64_t count)
{
    const Axis  alone = {1, 0, 0, -1, 0};
    const Axis& fast = side.rank ? side.axis[side.rank - 1] : alone;
    return {points, count, first % fast.extent, fast.extent, fast.stride, fast.advance, fast.bound};
}

// Rows are signed bytes and columns unsigned ones; others are made so by turning their top bits.
bool is_turned(const Matrix& m, bool is_rows) { return is_rows ? m.type == Dtype::u8 : m.type == Dtype::i8; }

Strand Rectangle::lines_of(const Matrix& m, const Panels& panels, int64_t first, int64_t count) const
{
    return strand(m.lines, at<Point>(at_.lines) + first, panels.first + first, count);
}

void Rectangle::pack(const Matrix& m, uint64_t depth_points, const Depth& depth, const Panels& panels)
{
    if (depth.count) {
        PanelSource source = {m.data, {}, strand(m.depth, at<Point>(depth_points), depth.first, depth.count),
                              {m.limit[0], m.limit[1], m.limit[2]}, m.bounds, panels.width, m.fill, 0};
        fill_points(m.lines, m.start, panels.first, is_straight(m) ? 1 : panels.count, at<Point>(at_.lines));
        if (t_.unit > 1) weave(m, source, depth, panels);
        else copy(m, source, depth, panels);
    }
    if (!t_.finish) return;
    const bool is_rows = &m == &a_, turns_a = is_turned(a_, true), turns_b = is_turned(b_, false);
    for (int64_t j = 0; j < panels.count; j += panels.width)
        t_.finish(panels.data + j * line_bytes(depth), depth.units, panels.width, is_rows, is_rows ? turns_a : turns_b, is_rows ? turns_b : turns_a);
}

void Rectangle::copy(const Matrix& m, PanelSource& source, const Depth& depth, const Panels& panels)
{
    const int        bytes = bytes_of(m.type), width = panels.width;
    const int64_t    elements = depth.units * width;
    const PanelWiden widen = plan_.table.widen[plan_.packed][int(m.type)];
    const PanelPack  pack = plan_.table.pack[log2_of(bytes)];
    char*            out = panels.data;
    if (!widen && bytes >= 4 && m.bounds == 0 && panels.count > width) {
        source.lines = lines_of(m, panels, 0, panels.count), source.panel_step = elements;
        if (source.lines.step == 1 && source.lines.position + panels.count <= source.lines.extent) return pack(out, source);
        source.panel_step = 0;
    }
    for (int64_t j = 0; j < panels.count; j += width, out += t_.packed_bytes * elements) {
        source.lines = lines_of(m, panels, j, std::min<int64_t>(width, panels.count - j));
        pack(widen ? at<char>(at_.raw) : out, source);
        if (widen) widen(out, at<char>(at_.raw), elements);
    }
}

// Units of several steps of depth: straight from memory where lines or depth are consecutive there, else from a copy.
void Rectangle::weave(const Matrix& m, PanelSource& source, const Depth& depth, const Panels& panels)
{
    const int        bytes = bytes_of(m.type), width = panels.width;
    const int64_t    panel_bytes = line_bytes(depth) * width;
    const uint32_t   flip = plan_.packed == PACKED_BYTES && is_turned(m, &m == &a_) ? 0x80808080 : 0;
    const PanelWiden widen = plan_.table.widen[plan_.packed][int(m.type)];
    const PanelWeave weave = plan_.table.weave[t_.packed_bytes - 1];
    source.lines = lines_of(m, panels, 0, panels.count);
    const Strand &along = source.lines, &down = source.depth;
    if (is_straight(m)) {
        const char* data = m.data + (along.points[0].offset + down.points[0].offset) * bytes;
        return weave(panels.data, {data, along.count, down.count, along.step, down.step, panel_bytes, width, flip});
    }
    char *copy = at<char>(at_.raw), *wide = copy + width * depth.count;
    for (int64_t j = 0; j < panels.count; j += width) {
        const int64_t count = std::min<int64_t>(width, panels.count - j);
        source.lines = lines_of(m, panels, j, count);
        plan_.table.pack[log2_of(bytes)](copy, source);
        if (widen) widen(wide, copy, depth.count * width);
        weave(panels.data + j / width * panel_bytes, {widen ? wide : copy, count, depth.count, 1, width, panel_bytes, width, flip});
    }
}

void Rectangle::load_rows(int64_t row, int64_t rows)
{
    int64_t* offsets = at<int64_t>(at_.rows);
    fill_offsets(plan_.product.c.rows, row, rows, offsets);
    row_step_ = rows > 1 ? offsets[1] - offsets[0] : 0;
    rows_affine_ = true;
    for (int64_t i = 2; i < rows; i++) rows_affine_ &= offsets[i] - offsets[i - 1] == row_step_;
    const int64_t bytes = std::max<int64_t>(rows, t_.rows) * plan_.result_bytes;
    strip_ = plan_.product.epilogue ? std::max<int64_t>(1, STRIP_BYTES / bytes / t_.columns) * t_.columns : PLAIN_STRIP;
}

// Where b's steps of depth are, for tiles that read it in place.
void Rectangle::load_steps(const Depth& depth)
{
    if (loaded_ == depth.first) return;
    loaded_ = depth.first;
    int64_t* steps = at<int64_t>(at_.b_depth);
    fill_offsets(b_.depth, depth.first, depth.count, steps);
    std::fill_n(steps + depth.count, STEPS_AHEAD, steps[depth.count - 1]);
}

constexpr int64_t NOWHERE = INT64_MIN;     // in the result: columns that are dropped

void Rectangle::load_columns(int64_t first, int64_t count)
{
    const Target& c = plan_.product.c;
    int64_t*      columns = at<int64_t>(at_.columns);
    fill_offsets(c.columns, first, count, columns);
    if (c.kept == 0) return;
    const int64_t extent = c.columns.axis[c.columns.rank - 1].extent;
    for (int64_t j = 0, place = first % extent; j < count; j++, place = place + 1 == extent ? 0 : place + 1)
        if (place >= c.kept) columns[j] = NOWHERE;
}

void Rectangle::multiply(const char* a, const char* b, const Depth& depth, bool is_last, char* to, int64_t row_stride, bool accumulate) const
{
    if (plan_.is_in_place) (is_last ? t_.last_in_place : t_.in_place)(depth.units, a, b, at<int64_t>(at_.b_depth), to, row_stride, accumulate);
    else (is_last ? t_.last : t_.tile)(depth.units, a, b, to, row_stride, accumulate);
}

void Rectangle::one_tile(const char* a, const char* b, const Spot& spot, const Depth& depth)
{
    const int64_t *row = at<int64_t>(at_.rows) + spot.row, *column = at<int64_t>(at_.columns) + spot.column;
    const bool     is_last = spot.rows <= t_.last_rows;
    if (spot.is_direct && spot.rows == (is_last ? t_.last_rows : t_.rows))
        return multiply(a, b, depth, is_last, c_ + (row[0] + column[0]) * plan_.result_bytes, row_step_, !depth.is_first);
    char* tile = at<char>(at_.tile);
    multiply(a, b, depth, is_last, tile, t_.columns, false);
    const TileStore store = plan_.table.store[plan_.packed][int(plan_.product.c.type)];
    const auto      is_kept = [&](int64_t j) { return column[j] != NOWHERE; };
    for (int64_t j = 0, count; j < spot.columns; j += std::max<int64_t>(count, 1)) {
        for (count = 0; j + count < spot.columns && is_kept(j + count);) count++;
        if (count) store(tile + j * t_.accumulator_bytes, t_.columns, {c_, row, column + j, spot.rows, count, !depth.is_first});
    }
}

// Packed rows times packed columns: a panel of columns stays in L1 while all rows pass.
void Rectangle::tiles(const Panels& a, const Panels& b, const Depth& depth)
{
    const int64_t  panel = line_bytes(depth);
    const int64_t* column = at<int64_t>(at_.columns);
    for (int64_t j = 0; j < b.count; j += t_.columns) {
        const int columns = int(std::min<int64_t>(t_.columns, b.count - j));
        bool      is_direct = plan_.is_direct && rows_affine_ && columns == t_.columns;
        for (int64_t i = 1; i < columns && is_direct; i++) is_direct = column[j + i] == column[j] + i;
        const char* b_panel = b.data + j * panel;
        if (plan_.is_in_place) {
            int64_t line;
            fill_offsets(b_.lines, b.first + j, 1, &line);
            b_panel = b_.data + line * bytes_of(b_.type);
        }
        for (int64_t i = 0; i < a.count; i += t_.rows) {
            const int rows = int(std::min<int64_t>(t_.rows, a.count - i));
            one_tile(a.data + i * panel, b_panel, {i, j, rows, columns, is_direct}, depth);
        }
    }
}

void Rectangle::block(int64_t column, int64_t columns, const Depth& depth)
{
    const int64_t zeros[WINDOW_AXES] = {};
    const bool    packs_a = !resident_ || column == 0;
    const auto    points = [&](const Matrix& m, uint64_t to) {
        fill_points(m.depth, zeros, depth.first, is_straight(m) ? std::min<int64_t>(1, depth.count) : depth.count, at<Point>(to));
    };
    const Panels b = {at<char>(at_.b), part_.first_column + column, columns, t_.columns};
    if (plan_.is_in_place) load_steps(depth);
    else points(b_, at_.b_depth), pack(b_, at_.b_depth, depth, b);
    if (packs_a) points(a_, at_.a_depth);
    const int64_t block_rows = resident_ ? part_.rows : std::min(t_.block_rows, part_.rows);
    for (int64_t row = 0; row < part_.rows; row += block_rows) {
        const int64_t rows = std::min(block_rows, part_.rows - row);
        const int64_t ends = t_.finish && depth.first ? LINE_END * (depth.first / plan_.shape.depth) : 0;
        const int64_t before = resident_ ? (t_.packed_bytes * depth.first + ends) * rounded(rows, t_.rows) : 0;
        const Panels  a = {at<char>(at_.a) + before, part_.first_row + row, rows, t_.rows};
        if (packs_a) pack(a_, at_.a_depth, depth, a);
        if (!resident_) load_rows(a.first, rows);
        for (int64_t j = 0; j < columns; j += strip_) {
            const int64_t width = std::min(strip_, columns - j);
            load_columns(b.first + j, width);
            tiles(a, {b.data + j * line_bytes(depth), b.first + j, width, t_.columns}, depth);
            if (depth.is_last && where_.finished.is_wanted()) finish(plan_.product, where_.batch, {a.first, rows, b.first + j, width}, where_.finished);
        }
    }
}

void Rectangle::run()
{
    const Shape& s = plan_.shape;
    const double up_k = double(rounded(s.k, t_.unit));
    resident_ = part_.rows <= t_.block_rows && double(rounded(part_.rows, t_.rows)) * up_k <= double(t_.block_rows * t_.depth);
    if (resident_) load_rows(part_.first_row, part_.rows);
    const int64_t block_columns = resident_ ? std::min(t_.block_columns, strip_) : t_.block_columns;
    for (int64_t column = 0; column < part_.columns; column += block_columns) {
        const int64_t columns = std::min(block_columns, part_.columns - column);
        for (int64_t p = 0;; p += s.depth) {       // at least once: no depth gives zeros
            const int64_t count = std::min(s.depth, s.k - p);
            block(column, columns, {p, count, (count + t_.unit - 1) / t_.unit, p == 0, p + count >= s.k});
            if (p + count >= s.k) break;
        }
    }
}

Product transposed(const Product& p)
{
    Product t = p;
    std::swap(t.a, t.b), std::swap(t.c.rows, t.c.columns);
    for (int i = 0; i < t.batch_rank; i++) std::swap(t.batch[i].a, t.batch[i].b);
    return t;
}

// Rows that tiles compute for so many of a product.
int64_t tiled_rows(const TileKind& t, int64_t rows)
{
    const int64_t left = rows % t.rows;
    return left && left <= t.last_rows ? rows - left + t.last_rows : rounded(rows, t.rows);
}

// Both orientations give the same bits; less waste at the tiles' edges wins, and columns that are consecutive in memory.
bool is_better_transposed(const TileKind& t, const Product& p)
{
    const auto cost = [&](const Side& rows, const Side& columns) {
        int64_t step;
        const bool unit = is_affine(columns, step) ? step == 1 : columns.rank && columns.axis[columns.rank - 1].stride == 1;
        return double(tiled_rows(t, rows.count())) * double(rounded(columns.count(), t.columns)) * (unit ? 1 : 1.15);
    };
    return cost(p.c.columns, p.c.rows) < cost(p.c.rows, p.c.columns);
}

// Whether the columns of each tile lie side by side in memory, at every step of depth.
bool is_in_place(const TileKind& t, const Matrix& b)
{
    if (!b.is_near || !t.in_place || b.bounds || b.lines.rank == 0) return false;
    const Axis& fast = b.lines.axis[b.lines.rank - 1];
    return fast.stride == 1 && (fast.extent % t.columns == 0 || (b.lines.rank == 1 && b.beyond >= t.columns));
}

void run_packed(const Product& product, Packed packed, const Workplace& place)
{
    const TileKind& t = place.table.tile[packed];
    const int       bytes = bytes_of(product.c.type);
    Plan   plan = {product, place.table, packed, simplified(product.a), simplified(product.b), {}, bytes, bytes == t.accumulator_bytes, false};
    Shape& s = plan.shape;
    s = {product.c.rows.count(), product.c.columns.count(), product.a.depth.count(), 0};
    const int64_t blocks = std::max<int64_t>(1, (s.k + t.depth - 1) / t.depth);
    s.depth = rounded((s.k + blocks - 1) / blocks, t.unit);
    plan.is_in_place = s.k > 0 && !place.table.widen[packed][int(plan.b.type)] && is_in_place(t, plan.b);
    const int64_t batches = product.batches();
    const Layout  layout = layout_of(t, s.m, s.n, s.k);
    const Grid    grid = grid_of(t, s, batches, place.parallel.workers());
    const int64_t pieces = grid.row_pieces * grid.column_pieces;
    place.parallel.for_each(uint32_t(grid.tasks(batches)), [&](uint32_t task, uint32_t worker) {
        const int64_t piece = task % pieces, first = task / pieces * grid.batches;
        const int64_t row = piece % grid.row_pieces * grid.rows, column = piece / grid.row_pieces * grid.columns;
        const Part    part = {row, std::min(grid.rows, s.m - row), column, std::min(grid.columns, s.n - column)};
        Finished      finished(product.epilogue, product.c.rank, worker);
        for (int64_t batch = first; batch < std::min(first + grid.batches, batches); batch++)
            Rectangle(plan, layout, place.workspace, {batch, part, worker, finished}).run();
    });
}

}  // namespace

Packed packed_for(Dtype, Dtype, Dtype c)
{
    if (c == Dtype::f32) return PACKED_F32;
    if (c == Dtype::f64) return PACKED_F64;
    if (bytes_of(c) == 8) return PACKED_U64;
    return PACKED_U32;
}

Packed panels_for(const ProductTable& table, Dtype a, Dtype b, Dtype c)
{
    const Packed    plain = packed_for(a, b, c);
    const Processor has = processor();
    const auto      is_byte = [](Dtype t) { return t == Dtype::i8 || t == Dtype::u8; };
    if (c == Dtype::f32 && a == Dtype::bf16 && b == Dtype::bf16 && has.bf16 && table.tile[PACKED_BRAINS].tile) return PACKED_BRAINS;
    if (plain != PACKED_U32 || bytes_of(c) != 4 || bytes_of(a) != 1 || bytes_of(b) != 1) return plain;
    return is_byte(a) && is_byte(b) && has.vnni && table.tile[PACKED_BYTES].tile ? PACKED_BYTES : PACKED_I16;
}

uint64_t product_workspace(const ProductTable& table, Packed packed, int64_t m, int64_t n, int64_t k, uint32_t workers)
{
    constexpr int64_t MOST = int64_t(1) << 40;   // blocks are smaller: what is longer needs no more
    const TileKind& t = table.tile[packed];
    m = std::min(m, MOST), n = std::min(n, MOST), k = std::min(k, MOST);
    return std::max(layout_of(t, m, n, k).bytes, layout_of(t, n, m, k).bytes) * std::max(1u, workers);
}

void run_product(const Product& product, const Workplace& place)
{
    if (product.c.rows.count() == 0 || product.c.columns.count() == 0 || product.batches() == 0) return;
    if (run_direct(product, place)) return;
    const Packed packed = panels_for(place.table, product.a.type, product.b.type, product.c.type);
    const bool   turned = product.c.kept == 0 && is_better_transposed(place.table.tile[packed], product);
    run_packed(turned ? transposed(product) : product, packed, place);
}

}  // namespace ng::cpu
