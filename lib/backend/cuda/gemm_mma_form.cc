// How a portable product's operands lie: what is near in them, what is copied before, and how lanes that read them where they lie do so.
#include "lib/backend/cuda/gemm_mma_form.h"

#include "lib/backend/cuda/rounding.h"

#include <algorithm>
#include <cstdlib>

namespace ng::cuda::gemm::mma {

using namespace kernels;

namespace {

// Batches that share b are rows of one product, where rows go on from one batch to the next.
void join_rows(Problem& p)
{
    const int count = p.epilogue.count;
    if (has_folds(p) || p.epilogue.inner > 0) return;        // these go from row to row of one batch, or are two axes
    if (p.m == 1) {
        p.a_row = p.a_batch, p.c_row = p.c_batch;
        for (int i = 0; i < count; i++) p.epilogue.tensor[i].row = p.epilogue.tensor[i].batch;
    }
    if (p.batches <= 1 || p.b_batch != 0 || p.a_batch != p.a_row * p.m || p.c_batch != p.c_row * p.m) return;
    for (int i = 0; i < count; i++)
        if (p.epilogue.tensor[i].batch != p.epilogue.tensor[i].row * p.m) return;
    p.m *= p.batches, p.batches = 1;
}

Lying lying_of(const MmaOperand& o, int64_t lines, int64_t steps, int64_t batches, Kind kind)
{
    // What is repeated, or has nothing beside it, is not near.
    const auto distance = [](int64_t extent, int64_t stride) { return extent > 1 && stride != 0 ? std::abs(stride) : INT64_MAX; };
    const bool is_deep = distance(steps, o.depth) <= distance(lines, o.line);
    Lying      r{o, lines, steps, o.batch == 0 ? 1 : batches, is_deep ? NEAR_DEPTH : NEAR_LINE, false, false, false, false};
    const int64_t bytes = bytes_of(Dtype(o.type));
    // Nor does it matter where the next would be; but addresses of what is not read are aligned as well.
    i64 &near = is_deep ? r.operand.depth : r.operand.line, &far = is_deep ? r.operand.line : r.operand.depth;
    if ((is_deep ? steps : lines) <= 1) near = 1;
    if ((is_deep ? lines : steps) <= 1) far = 0;
    if (batches <= 1) r.operand.batch = 0;
    const bool is_aligned = reinterpret_cast<uintptr_t>(o.data) % 16 == 0, is_own = bytes == element_bytes(kind);
    const auto is_even = [&](int64_t unit) { return near == 1 && is_aligned && far * bytes % unit == 0 && r.operand.batch * bytes % unit == 0; };
    r.is_even = is_even(16), r.is_steady = r.is_even && is_own;
    r.is_by_fours = is_of_halves(kind) && is_own && is_even(MMA_FOUR * bytes) && (is_deep ? steps : lines) % MMA_FOUR == 0;
    r.operand.is_wide = r.is_steady, r.operand.is_turned = !is_deep;
    // Bytes are multiplied along depth.
    if (is_of_bytes(kind)) r.is_steady &= is_deep, r.operand.is_wide = r.is_steady, r.near = NEAR_DEPTH;
    r.is_copied = copies_elements(kind) ? Dtype(o.type) != type_of(kind, Dtype(o.type)) : !r.is_steady;
    return r;
}

}  // namespace

Problem arranged(Problem p)
{
    const int64_t row = p.m > 1 ? std::abs(p.c_row) : INT64_MAX, column = p.n > 1 ? std::abs(p.c_column) : INT64_MAX;
    const bool    is_thin = p.m <= THIN || p.n <= THIN;
    if (is_thin ? p.n < p.m : row < column) turn(p);
    join_rows(p);
    return p;
}

Form form_of(const Problem& problem)
{
    Form f{arranged(problem), None, {}, {}};
    const Problem& p = f.p;
    f.kind = kind_of(p.a_type, p.b_type, p.allows_tf32);
    f.a = lying_of({p.a, p.a_row, p.a_depth, p.a_batch, i32(p.a_type), 0, 0, 0, 0}, p.m, p.k, p.batches, f.kind);
    f.b = lying_of({p.b, p.b_column, p.b_depth, p.b_batch, i32(p.b_type), 0, 0, 0, 0}, p.n, p.k, p.batches, f.kind);
    return f;
}

// ---- copies before it --------------------------------------------------------------------------------------------------

MmaLayNumbers copy_of(const Lying& x, Kind kind)
{
    const bool    is_deep = x.near == NEAR_DEPTH;
    MmaLayNumbers n{};
    n.from = x.operand, n.rows = is_deep ? x.lines : x.steps, n.length = is_deep ? x.steps : x.lines, n.batches = x.batches;
    n.pitch = rounded_up(n.length, 16 / element_bytes(kind)), n.is_deep = is_deep;
    return n;
}
uint64_t copy_bytes(const Lying& x, Kind kind)
{
    const MmaLayNumbers n = copy_of(x, kind);
    return !x.is_copied ? 0 : aligned(uint64_t(n.rows * n.pitch * n.batches) * uint64_t(element_bytes(kind)));
}
uint64_t copies_bytes(const Form& f) { return copy_bytes(f.a, f.kind) + copy_bytes(f.b, f.kind); }

// ---- what reads them where they lie ------------------------------------------------------------------------------------

SmallReads reads_of(const MmaOperand& o, int64_t lines, int64_t steps, int64_t batches, int64_t of_lane, const Instance& i)
{
    const int64_t bytes = element_bytes(i.kind), piece = i.piece;
    const auto    lies = [&](int64_t unit, int64_t far, int64_t count) {
        const auto is_even = [&](int64_t stride) { return stride * bytes % unit == 0; };
        return reinterpret_cast<uintptr_t>(o.data) % uintptr_t(unit) == 0 && (count <= 1 || is_even(far)) && (batches <= 1 || is_even(o.batch));
    };
    if (o.depth == 1 && steps * bytes % piece == 0 && lies(piece, o.line, lines)) return READ_DEPTH;
    if (o.line == 1 && lines % of_lane == 0 && lies(std::min<int64_t>(of_lane * bytes, 16), o.depth, steps)) return READ_LINES;
    return bytes < 4 && o.depth == 1 && steps * bytes % 4 == 0 && lies(4, o.line, lines) ? READ_WORDS : READ_ELEMENTS;
}

bool has_fours(const Problem& p, Kind kind, const void* c)
{
    const bool is_common = kind == Doubles ? p.c_type == Dtype::f64 : p.c_type == Dtype::f32 || p.c_type == Dtype::f16 || p.c_type == Dtype::bf16 || (is_of_bytes(kind) && p.c_type == Dtype::i32);
    if (!is_common) return false;
    const int64_t bytes = bytes_of(p.c_type), unit = std::min<int64_t>(MMA_FOUR * bytes, 16);
    const auto    fits = [&](int64_t stride, int64_t count) { return count <= 1 || stride * bytes % unit == 0; };
    return p.c_column == 1 && p.n % MMA_FOUR == 0 && reinterpret_cast<uintptr_t>(c) % uintptr_t(unit) == 0 && fits(p.c_row, p.m) && fits(p.c_batch, p.batches);
}

}  // namespace ng::cuda::gemm::mma
