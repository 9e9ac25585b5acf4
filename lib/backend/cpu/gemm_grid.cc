// Pieces of a product that keep all workers busy to the end, and no more: each packs its own rows and columns.
#include "lib/backend/cpu/gemm_grid.h"

#include "lib/backend/cpu/gemm.h"

#include <algorithm>

namespace ng::cpu {
namespace {

// Of a piece, in multiply-adds for each step of depth: its tiles, whole ones, and packing, which takes as long as 13 to 24 of them an element
// (f32, int8, bf16; Zen 5, 2026-11-25).
double effort(const Grid& g)
{
    constexpr double PACKING = 16;
    return double(g.rows) * double(g.columns) + PACKING * (double(g.rows) + double(g.columns));
}

// The half of one side that leaves less to do: a side of few tiles has no even halves. What cannot be halved stays.
Grid halved(const TileKind& t, const Shape& s, const Grid& whole)
{
    Grid by_rows = whole, by_columns = whole;
    const bool rows = whole.rows >= 4 * t.rows, columns = whole.columns >= 2 * t.columns;
    if (rows) by_rows.rows = rounded((whole.rows + 1) / 2, t.rows);
    if (columns) by_columns.columns = rounded((whole.columns + 1) / 2, t.columns);
    Grid g = rows && (!columns || effort(by_rows) < effort(by_columns)) ? by_rows : by_columns;
    g.row_pieces = (s.m + g.rows - 1) / g.rows, g.column_pieces = (s.n + g.columns - 1) / g.columns;
    return g;
}

}  // namespace

Grid grid_of(const TileKind& t, const Shape& s, int64_t batches, uint32_t workers)
{
    const int64_t want = tasks_for(double(s.m) * double(s.n) * double(std::max<int64_t>(s.k, 1)) * double(batches), workers);
    Grid          g = {1, 1, rounded(s.m, t.rows), rounded(s.n, t.columns), 1};
    if (want <= batches) {
        g.batches = (batches + want - 1) / want;
        return g;
    }
    // Each piece packs its own rows and columns: more pieces than keep all workers busy to the end would pack too much twice.
    // Where even halves of a worker's share are short, packing once more costs more than the last piece's wait.
    constexpr double SHORT = 48e6;
    const bool       is_short = double(s.m) * double(s.n) * double(s.k) * double(batches) < SHORT * 2 * workers;
    const int64_t    most = std::min<int64_t>(want, is_short ? workers : 2 * workers);
    const auto    pieces = [&](const Grid& of) { return of.row_pieces * of.column_pieces * batches; };
    const auto    longest = [&](const Grid& of) { return double((pieces(of) + workers - 1) / workers) * double(of.rows) * double(of.columns); };
    while (pieces(g) < most) {
        const Grid next = halved(t, s, g);
        if (pieces(next) == pieces(g)) break;
        // A last piece that is much smaller than the others leaves somebody without work.
        if (pieces(g) >= workers && longest(next) > 1.05 * longest(g)) break;
        g = next;
    }
    return g;
}

int64_t tasks_for(double multiply_adds, uint32_t workers)
{
    constexpr double PER_TASK = 50e-6 * 20e9;   // 50 us at a modest rate
    if (workers <= 1) return 1;
    return int64_t(std::clamp(multiply_adds / PER_TASK, 1.0, 4.0 * workers));
}

}  // namespace ng::cpu
