// Products that packing would not repay: small ones, and those of a matrix with one or a few vectors.
#include "lib/backend/cpu/gemm.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace ng::cpu {
namespace {

constexpr int64_t SMALL = 8192;        // multiply-adds below which packing takes longer than the product
constexpr int64_t FEW_ROWS = 4;
// What is in flight at once, on the stack: a patch of the result, and lines of b in its type.
constexpr int64_t ROWS = 4, COLUMNS = 128, LINES = 16, DOT = 256;
constexpr int64_t PIECE = 4096;        // of the depth, summed by itself: of more, f32 would lose what one element adds

struct Steps {
    int64_t a_row, a_depth, b_depth, b_column, c_row, c_column;
};

struct Job {
    const Product&      product;
    const ProductTable& table;
    Packed              packed;
    int                 bytes;       // of an element of the arithmetic
    int64_t             m, n, k;
    Steps               step;
    const char *        a, *b;
    char*               c;
};

using Wide = double;                   // the widest type of arithmetic, for room and alignment

const void* a_line(const Job& job, int64_t row, int64_t depth, int64_t count, void* buffer)
{
    const char* at = job.a + (row * job.step.a_row + depth * job.step.a_depth) * bytes_of(job.product.a.type);
    return line_of(job.table, job.packed, job.product.a.type, at, job.step.a_depth, count, buffer);
}

// Sums down a piece of the depth: lines of b lie along c's rows.
void piece_by_lines(const Job& job, const Part& part, Wide (*sums)[COLUMNS], int64_t first, int64_t last)
{
    Wide        lines[LINES][COLUMNS], factors[LINES];
    const void* starts[LINES];
    const int   b_bytes = bytes_of(job.product.b.type);
    for (int64_t p = first; p < last; p += LINES) {
        const int64_t count = std::min(LINES, last - p);
        for (int64_t l = 0; l < count; l++) {
            const char* at = job.b + ((p + l) * job.step.b_depth + part.first_column * job.step.b_column) * b_bytes;
            starts[l] = line_of(job.table, job.packed, job.product.b.type, at, job.step.b_column, part.columns, lines[l]);
        }
        for (int64_t i = 0; i < part.rows; i++)
            job.table.direct[job.packed].combine(sums[i], starts, a_line(job, part.first_row + i, p, count, factors), count, part.columns);
    }
}

// Dot products: b's columns are consecutive along the depth.
void piece_by_dots(const Job& job, const Part& part, Wide (*sums)[COLUMNS], int64_t first, int64_t last)
{
    Wide        a_buffer[ROWS][DOT], b_buffer[DOT];
    const void* a[ROWS];
    const int   b_bytes = bytes_of(job.product.b.type);
    for (int64_t p = first; p < last; p += DOT) {
        const int64_t count = std::min(DOT, last - p);
        for (int64_t i = 0; i < part.rows; i++) a[i] = a_line(job, part.first_row + i, p, count, a_buffer[i]);
        for (int64_t j = 0; j < part.columns; j++) {
            const char* at = job.b + (p * job.step.b_depth + (part.first_column + j) * job.step.b_column) * b_bytes;
            const void* b = line_of(job.table, job.packed, job.product.b.type, at, job.step.b_depth, count, b_buffer);
            for (int64_t i = 0; i < part.rows; i++)
                job.table.direct[job.packed].dot(reinterpret_cast<char*>(sums[i]) + j * job.bytes, a[i], b, count);
        }
    }
}

void patch(const Job& job, const Part& part, Wide (*sums)[COLUMNS], bool by_dots)
{
    const auto sum = by_dots ? piece_by_dots : piece_by_lines;
    if (job.k <= PIECE) return sum(job, part, sums, 0, job.k);
    Wide           piece[ROWS][COLUMNS];
    const uint64_t one = job.packed == PACKED_F64 ? std::bit_cast<uint64_t>(1.0) : job.packed == PACKED_F32 ? std::bit_cast<uint32_t>(1.0f) : 1;   // the lower half first
    for (int64_t p = 0; p < job.k; p += PIECE) {
        for (int64_t i = 0; i < part.rows; i++) std::memset(piece[i], 0, size_t(part.columns * job.bytes));
        sum(job, part, piece, p, std::min(p + PIECE, job.k));
        for (int64_t i = 0; i < part.rows; i++) {
            const void* const line = piece[i];
            job.table.direct[job.packed].combine(sums[i], &line, &one, 1, part.columns);
        }
    }
}

// From how deep on dot products pay, by times of all these (docs/experiments.md, "Shallow products of few rows"). Each ends with lanes that
// meet one by one, and where a line is widened with elements that fill no vector; lines of b are gathered, many columns at once.
int64_t least_depth_of_dots(const Job& job)
{
    const int64_t rows = std::min(ROWS, job.m), columns = std::min(COLUMNS, job.n);
    const bool    widens = job.table.widen[job.packed][int(job.product.b.type)];
    if (columns < (widens ? 8 : 4)) return 8;
    return widens ? 20 + columns * 11 / 32 : 8 + 4 * rows + std::min<int64_t>(columns, 64) * (rows + 1) / 10;
}

void columns_of_result(const Job& job, int64_t first, int64_t last)
{
    static constexpr int64_t NEAR[COLUMNS] = {};
    const bool               by_dots = job.step.b_depth == 1 && job.step.b_column != 1 && job.k >= least_depth_of_dots(job);
    int64_t                  offsets[COLUMNS];
    Wide                     sums[ROWS][COLUMNS];
    for (int64_t column = first; column < last; column += COLUMNS) {
        const int64_t columns = std::min(COLUMNS, last - column);
        for (int64_t j = 0; j < columns; j++) offsets[j] = j * job.step.c_column;
        for (int64_t row = 0; row < job.m; row += ROWS) {
            const int64_t rows = std::min(ROWS, job.m - row);
            for (int64_t i = 0; i < rows; i++) std::memset(sums[i], 0, size_t(columns * job.bytes));
            patch(job, {row, rows, column, columns}, sums, by_dots);
            char* to = job.c + (row * job.step.c_row + column * job.step.c_column) * bytes_of(job.product.c.type);
            for (int64_t i = 0; i < rows; i++, to += job.step.c_row * bytes_of(job.product.c.type))
                job.table.store[job.packed][int(job.product.c.type)](sums[i], COLUMNS, {to, NEAR, offsets, 1, columns, false});
        }
    }
}

bool affine_steps(const Product& p, Steps& s)
{
    return p.a.bounds == 0 && p.b.bounds == 0 && is_affine(p.a.lines, s.a_row) && is_affine(p.a.depth, s.a_depth) &&
           is_affine(p.b.lines, s.b_column) && is_affine(p.b.depth, s.b_depth) && is_affine(p.c.rows, s.c_row) &&
           is_affine(p.c.columns, s.c_column);
}

template <class Raw>
void gather_raw(void* out, const char* in, int64_t step, int64_t count)
{
    Raw*       to = static_cast<Raw*>(out);
    const Raw* from = reinterpret_cast<const Raw*>(in);
    for (int64_t i = 0; i < count; i++) to[i] = from[i * step];
}

void gather(int bytes, void* out, const char* in, int64_t step, int64_t count)
{
    if (bytes == 1) return gather_raw<uint8_t>(out, in, step, count);
    if (bytes == 2) return gather_raw<uint16_t>(out, in, step, count);
    if (bytes == 4) return gather_raw<uint32_t>(out, in, step, count);
    gather_raw<uint64_t>(out, in, step, count);
}

}  // namespace

const void* line_of(const ProductTable& table, Packed packed, Dtype type, const char* data, int64_t step, int64_t count, void* buffer)
{
    const PanelWiden widen = table.widen[packed][int(type)];
    if (step == 1 || count == 1) {
        if (!widen) return data;
        widen(buffer, data, count);
        return buffer;
    }
    const int bytes = bytes_of(type);
    if (!widen) {
        gather(bytes, buffer, data, step, count);
        return buffer;
    }
    constexpr int64_t PIECE = 256;
    Wide              raw[PIECE];
    for (int64_t done = 0; done < count; done += PIECE) {
        const int64_t n = std::min(PIECE, count - done);
        gather(bytes, raw, data + done * step * bytes, step, n);
        widen(static_cast<char*>(buffer) + done * table.tile[packed].accumulator_bytes, raw, n);
    }
    return buffer;
}

bool run_direct(const Product& product, const Workplace& place)
{
    Steps s;
    if (!affine_steps(product, s)) return false;
    int64_t    m = product.c.rows.count(), n = product.c.columns.count();
    const auto k = product.a.depth.count();
    if (double(m) * double(n) * double(k) > SMALL && std::min(m, n) > FEW_ROWS) return false;
    const Packed packed = packed_for(product.a.type, product.b.type, product.c.type);
    Product p = product;
    if (n < m) {
        std::swap(p.a, p.b), std::swap(p.c.rows, p.c.columns), std::swap(m, n);
        for (int i = 0; i < p.batch_rank; i++) std::swap(p.batch[i].a, p.batch[i].b);
        s = {s.b_column, s.b_depth, s.a_depth, s.a_row, s.c_column, s.c_row};
    }
    const int64_t batches = p.batches(), patches = (n + COLUMNS - 1) / COLUMNS;
    const int64_t tasks = std::min(batches * patches, tasks_for(double(m) * double(n) * double(k) * double(batches), place.parallel.workers()));
    place.parallel.for_each(uint32_t(tasks), [&](uint32_t task, uint32_t worker) {
        const int64_t first = batches * patches * task / tasks, last = batches * patches * (task + 1) / tasks;
        Finished      finished(p.epilogue, p.c.rank, worker);
        for (int64_t patch = first, next; patch < last; patch = next) {
            const int64_t batch = patch / patches, column = patch % patches * COLUMNS;
            next = std::min(last, (batch + 1) * patches);
            const BatchOffsets at = batch_offsets(p, batch);
            const Job job = {p, place.table, packed, place.table.tile[packed].accumulator_bytes, m, n, k, s, p.a.data + at.a * bytes_of(p.a.type),
                             p.b.data + at.b * bytes_of(p.b.type), p.c.data + at.c * bytes_of(p.c.type)};
            const int64_t end = std::min(n, column + (next - patch) * COLUMNS);
            columns_of_result(job, column, end);
            if (finished.is_wanted()) finish(p, batch, {0, m, column, end - column}, finished);
        }
    });
    return true;
}

}  // namespace ng::cpu
