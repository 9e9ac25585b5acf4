// Which problems Hopper's kernels take, and how operands must lie for them: in place, or copied to a workspace first.
#include "lib/backend/cuda/gemm_sm90.h"

#include "lib/backend/cuda/rounding.h"

#include <algorithm>

namespace ng::cuda::gemm::sm90 {
namespace {

constexpr int64_t MOST_EXTENT = int64_t(1) << 31, MOST_STRIDE_BYTES = int64_t(1) << 40;
constexpr int64_t FEW_ROWS = 32;         // which are columns of one narrow tile, or two
constexpr int64_t UNIT_BYTES = 16;       // what the copy engine wants addresses and strides to be multiples of
constexpr int64_t LINE_BYTES = 128;      // of the second cache: copies begin each line there, so that no box crosses one more

bool is_byte_float(Dtype t) { return t == Dtype::e4m3 || t == Dtype::e5m2; }
bool is_byte_integer(Dtype t) { return t == Dtype::i8 || t == Dtype::u8; }

// The kernels for types of a and b: group, variant of those types, step, planes of `form`.
bool find_kernels(Form& form)
{
    const Problem& p = form.problem;
    form.planes = 1;
    if (p.a_type == p.b_type && (p.a_type == Dtype::f16 || p.a_type == Dtype::bf16)) {
        form.group = Group::Half, form.variant = p.a_type == Dtype::f16 ? 0 : 4, form.step = 64;
        return true;
    }
    if (is_byte_float(p.a_type) && is_byte_float(p.b_type)) {
        form.group = Group::Byte, form.step = 128;
        form.variant = (p.a_type == Dtype::e5m2 ? 2 : 0) + (p.b_type == Dtype::e5m2 ? 1 : 0);
        return true;
    }
    if (is_byte_integer(p.a_type) && is_byte_integer(p.b_type)) {
        form.group = Group::Whole, form.step = 128;
        form.variant = (p.a_type == Dtype::u8 ? 2 : 0) + (p.b_type == Dtype::u8 ? 1 : 0);
        return true;
    }
    if (p.a_type == Dtype::f64 && p.b_type == Dtype::f64) {
        form.group = Group::Double, form.step = 16, form.variant = 0;
        return p.c_type == Dtype::f64 && p.epilogue_weight == 0;
    }
    if (p.a_type != Dtype::f32 || p.b_type != Dtype::f32) return false;
    form.group = p.allows_tf32 ? Group::Round : Group::Wide, form.variant = 0, form.step = p.allows_tf32 ? 32 : 64, form.planes = p.allows_tf32 ? 1 : 3;
    return true;
}

bool is_even(int64_t stride, int64_t bytes) { return stride > 0 && stride * bytes % UNIT_BYTES == 0 && stride * bytes < MOST_STRIDE_BYTES; }

// As copies have lines: each begins on one of the second cache.
void settle_copy(Source& s, Copying copying, const Form& form, Dtype type)
{
    const int64_t bytes = form.planes == 3 ? 2 : bytes_of(type);
    s.copying = copying, s.pitch = rounded_up(s.length, LINE_BYTES / bytes);
    s.copy_bytes = uint64_t(s.batches) * uint64_t(form.planes) * uint64_t(s.lines) * uint64_t(s.pitch) * uint64_t(bytes);
}

// lines, length and strides are given; how kernels of this form read it is found.
void settle(Source& s, const Form& form, Dtype type, bool has_addresses)
{
    const int64_t bytes = bytes_of(type);
    if (s.batch_stride == 0) s.batches = 1;
    if (s.lines == 1) s.line_stride = rounded_up(std::max<int64_t>(s.length, 1), UNIT_BYTES);
    const bool is_placed = !has_addresses || reinterpret_cast<uintptr_t>(s.data) % UNIT_BYTES == 0;
    const auto lies = [&](int64_t near, int64_t far) { return near == 1 && is_placed && is_even(far, bytes) && (s.batches == 1 || is_even(s.batch_stride, bytes)); };
    s.lies_even = lies(s.element_stride, s.line_stride), s.turns_even = lies(s.line_stride, s.element_stride);
    if (form.planes != 3 && s.lies_even) s.copying = Copying::None, s.pitch = s.line_stride, s.copy_bytes = 0;
    else settle_copy(s, form.planes == 3 ? Copying::Planes : s.element_stride == 1 && bytes == 2 && s.line_stride >= 0 && s.batch_stride >= 0 ? Copying::Pitch : Copying::Strided, form, type);
}

bool has_extents(const Problem& p)
{
    return std::min({p.m, p.n, p.k, p.batches}) >= 1 && std::max({p.m, p.n, p.k}) < MOST_EXTENT - 1024 && p.batches < 1 << 16;
}

// Where elements have 16 bits, or are not multiplied where they lie, either of the two axes may lie side by side.
bool takes_lines(const Form& form) { return form.group == Group::Half || form.group == Group::Wide || form.group == Group::Double; }

// rows: of a, or columns of b.
Source source_of(const void* data, int64_t rows, int64_t row_stride, int64_t depth_stride, int64_t batch_stride, const Form& form)
{
    const Problem& p = form.problem;
    Source         s = {};
    const bool can_turn = takes_lines(form);
    const bool is_depth_beside = depth_stride == 1 || p.k == 1, are_rows_beside = row_stride == 1 || rows == 1;
    s.is_turned = can_turn && are_rows_beside && (!is_depth_beside || (p.k == 1 && rows > 1));
    s.data = data, s.batches = p.batches, s.batch_stride = p.batches > 1 ? batch_stride : 0;
    s.lines = s.is_turned ? p.k : rows, s.length = s.is_turned ? rows : p.k;
    s.line_stride = s.is_turned ? depth_stride : row_stride, s.element_stride = s.is_turned ? (rows == 1 ? 1 : row_stride) : p.k == 1 ? 1 : depth_stride;
    return s;
}

}  // namespace

bool make_form(const Problem& problem, bool has_addresses, Form& form, bool takes_few_rows)
{
    form.problem = problem;
    Problem& p = form.problem;
    if (!has_extents(p)) return false;
    // c is written along its columns; where rows lie side by side instead, that is its transpose. Few rows become columns, too: tiles of few columns
    // read the other operand, where it lies well, faster than those of few rows.
    const bool is_narrow = bytes_of(p.a_type) <= 2;
    form.has_few_rows = takes_few_rows && p.m < p.n && (p.m == 1 || (p.m <= FEW_ROWS && is_narrow && !has_folds(p)));
    if (form.has_few_rows || (p.n > 1 && p.c_column != 1)) turn(p);
    if (p.n == 1) p.c_column = 1;
    if (p.c_column != 1 && !form.has_few_rows) return false;
    if (!find_kernels(form)) return false;
    form.image = image_of(form.group);
    const bool is_whole = form.group == Group::Whole && !p.epilogue.is_cast;
    if (is_whole ? p.c_type != Dtype::i32 : !is_float(p.c_type) || (p.c_type == Dtype::f64) != is_double(form)) return false;
    form.a = source_of(p.a, p.m, p.a_row, p.a_depth, p.a_batch, form);
    form.b = source_of(p.b, p.n, p.b_column, p.b_depth, p.b_batch, form);
    settle(form.a, form, p.a_type, has_addresses);
    settle(form.b, form, p.b_type, has_addresses);
    if (form.has_few_rows && form.a.copying != Copying::None) return make_form(problem, has_addresses, form, false);
    if (is_double(form) && (form.a.copying != Copying::None || form.b.copying != Copying::None)) return false;
    if (takes_lines(form)) form.variant += (form.a.is_turned ? 2u : 0u) + (form.b.is_turned ? 0u : 1u);
    return true;
}

bool make_made_form(const Problem& problem, bool has_addresses, Form& form)
{
    form = {};
    form.problem = problem;
    Problem& p = form.problem;
    const Dtype t = p.prologue.type;
    if (p.prologue.side == Prologue::B) turn(p);
    if (!has_extents(p) || p.prologue.side != Prologue::A || bytes_of(p.a_type) != 1 || p.b_type != t || (t != Dtype::f16 && t != Dtype::bf16)) return false;
    if (!is_float(p.c_type) || p.c_type == Dtype::f64) return false;
    if (p.n == 1) p.c_column = 1;
    form.group = Group::Half, form.image = image_of(form.group), form.step = int32_t(kernels::MADE_STEP), form.planes = 1;
    form.a = source_of(p.a, p.m, p.a_row, p.a_depth, p.a_batch, form);
    form.b = source_of(p.b, p.n, p.b_column, p.b_depth, p.b_batch, form);
    settle(form.a, form, p.a_type, has_addresses);
    settle(form.b, form, p.b_type, has_addresses);
    return form.a.copying == Copying::None && form.b.copying == Copying::None && !form.b.is_turned;
}

bool takes_odd(const Form& form)
{
    // A turned a is copied with its depth side by side, element by element: that is nothing to b only where it has few rows.
    constexpr int64_t LINES = 8, MOST = (int64_t(1) << 31) - 1024, MOST_TURNED_ROWS = 256;
    const Source& b = form.b;
    if ((form.a.is_turned && form.problem.m > MOST_TURNED_ROWS) || !b.is_turned || b.copying != Copying::Pitch || has_folds(form.problem)) return false;
    return b.lines >= LINES && b.line_stride > 0 && LINES * b.line_stride + b.length < MOST && (b.batches == 1 || b.batch_stride % LINES == 0);
}

namespace {

// What the copy engine could take as it lies, were it not for its depth.
bool can_turn(const Source& s) { return s.copying == Copying::Strided && s.turns_even; }

}  // namespace

bool takes_group(const Form& form, const Instance& i)
{
    if (!takes_turned(i)) return i.group == form.group;
    const bool is_one = can_turn(form.a) || can_turn(form.b), are_both = can_turn(form.a) && can_turn(form.b);
    if (moves_bytes(i)) {
        const auto is_there = [](const Source& s) { return s.copying == Copying::None; };
        return form.group == (i.group == Group::MovedByte ? Group::Byte : Group::Whole) && is_one && (is_there(form.a) || is_there(form.b));
    }
    return form.group == Group::Round && (i.group == Group::Moved ? are_both : is_one);
}

Form swapped(const Form& form)
{
    Form r = form;
    turn(r.problem), std::swap(r.a, r.b);
    if (r.problem.a_type != r.problem.b_type) r.variant ^= 3;    // bytes of either order
    return r;
}

namespace {

void take_turned(Source& s)
{
    std::swap(s.lines, s.length), std::swap(s.line_stride, s.element_stride);
    s.is_turned = true, s.copying = Copying::None, s.pitch = s.line_stride, s.copy_bytes = 0;
}
// As instances of Turned take words, and those of MovedByte and MovedWhole bytes: the operand that needs no copy for it is a; where both could be, the
// other is copied.
Form turned(const Form& form)
{
    const auto spared = [](const Source& s) { return can_turn(s) ? s.copy_bytes : 0; };
    Form r = spared(form.b) > spared(form.a) ? swapped(form) : form;
    take_turned(r.a);
    return r;
}
// As those of Moved do: few rows are columns.
Form moved(const Form& form)
{
    const Problem& p = form.problem;
    Form r = p.m <= FEW_ROWS && p.m < p.n ? swapped(form) : form;
    take_turned(r.a), take_turned(r.b);
    return r;
}
// As odd instances take a turned a: copied, with its depth side by side.
Form straightened(const Form& form)
{
    constexpr uint32_t A_TURNED = 2;     // of a variant
    Form    r = form;
    Source& a = r.a;
    std::swap(a.lines, a.length), std::swap(a.line_stride, a.element_stride);
    a.is_turned = false;
    settle_copy(a, Copying::Strided, form, form.problem.a_type);
    r.variant -= A_TURNED;
    return r;
}

}  // namespace

Form form_of(const Form& form, const Instance& i)
{
    if (takes_turned(i)) return i.group == Group::Moved ? moved(form) : turned(form);
    if (i.is_odd && form.a.is_turned) return straightened(form);
    return is_swapped(form, i) ? swapped(form) : form;
}

uint64_t copies_workspace(const Form& form)
{
    const uint64_t straight = takes_odd(form) && form.a.is_turned ? straightened(form).a.copy_bytes : 0;
    return aligned(std::max(form.a.copy_bytes, straight)) + aligned(form.b.copy_bytes);
}
int64_t  steps_of(const Form& form) { return divided_up(form.problem.k, form.step); }
int64_t  steps_of(const Form& form, const Instance& i) { return i.is_cut ? divided_up(form.problem.k, kernels::CUT_STEP) : steps_of(form) * (form.planes == 3 ? 6 : 1); }

namespace {

uint64_t dense_parts(const Problem& p, int32_t splits) { return uint64_t(splits) * uint64_t(p.batches) * uint64_t(p.m) * uint64_t(p.n) * 4; }

// A tile of each block, and the words of its warpgroups.
uint64_t stream_k_bytes(const Device& device, const Instance& i) { return device.units * (uint64_t(i.m) * uint64_t(i.n) * 4 + 2 * sizeof(uint64_t)); }
// Of any instance that may be chosen, for no more rows, columns and batches than these.
uint64_t most_stream_k_bytes(const Form& form, const Device& device)
{
    uint64_t most = 0;
    for (const Instance& i : instances())
        if (i.is_stream_k && i.group == form.group && tiling_of(form_of(form, i), device, i).waves() >= LEAST_DEALT) most = std::max(most, stream_k_bytes(device, i));
    return most;
}

}  // namespace

uint64_t partial_bytes(const Form& form, const Device& device, const Choice& c)
{
    const Instance& i = instances()[c.instance];
    if (i.is_stream_k) return stream_k_bytes(device, i);
    return c.splits < 2 ? 0 : dense_parts(form.problem, c.splits);
}

Tiling tiling_of(const Form& own, const Device& device, const Instance& i)
{
    const Problem& p = own.problem;
    return {divided_up(p.m, i.m * i.down) * divided_up(p.n, i.n * i.across) * p.batches, std::max<int64_t>(device.units / uint32_t(i.cluster), 1)};
}

Dealing dealing_of(const Form& own, const Device& device, const Instance& i)
{
    constexpr int64_t LEAST_STEPS = 4;   // of a cluster
    const Tiling  t = tiling_of(own, device, i);
    const int64_t tiles = t.tiles, together = t.together;
    if (tiles >= together) return {together, t.is_full() ? 0 : tiles % together + together};
    return {std::clamp<int64_t>(tiles * steps_of(own) / LEAST_STEPS, 1, together), tiles};
}

uint64_t workspace(const Problem& largest, const Device& device, bool is_fixed)
{
    Form form;
    Problem p = largest;
    // Strides decide who is copied; not known, everybody is. Nothing of the kind depends on m, n and k being 0.
    p.m = std::max<int64_t>(p.m, 1), p.n = std::max<int64_t>(p.n, 1), p.k = std::max<int64_t>(p.k, 1), p.batches = std::max<int64_t>(p.batches, 1);
    if (!is_fixed) p.c_column = 1, p.c_row = p.n;
    if (!make_form(p, false, form)) return 0;
    if (is_fixed) return copies_workspace(form) + partial_bytes(form, device, choose(form, device, MOST_PARTIAL_BYTES));
    if (is_double(form)) return 0;
    const bool     is_cut = may_meet_in_memory(form) && steps_of(form) >= DEEP;
    const uint64_t parts = std::max(is_cut ? std::min(dense_parts(p, MOST_SPLITS), MOST_PARTIAL_BYTES) : 0, most_stream_k_bytes(form, device));
    const uint64_t element = form.planes == 3 ? 6 : uint64_t(bytes_of(p.a_type)), depth = uint64_t(p.k) + LINE_BYTES;
    const auto     copy = [&](int64_t rows) { return uint64_t(p.batches) * (uint64_t(rows) + LINE_BYTES) * depth * element + 256; };
    return copy(p.m) + copy(p.n) + parts;
}

bool copies(const Problem& problem)
{
    Form form;
    return make_form(problem, true, form) && (form.a.copying != Copying::None || form.b.copying != Copying::None);
}

}  // namespace ng::cuda::gemm::sm90
