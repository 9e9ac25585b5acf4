// Peels rows that begin anywhere in memory: vectors from the first aligned element on, and before and behind those elements of a thread each.
#include "jit/emit_printer.h"

namespace ng::emitting {
namespace {

// Of a vector, and a row's points (least_peeled): where there are fewer, those before and behind its vectors are too many. Tuned on an H100, each width with 2 to 32 threads a row: softmaxes of 33
// f16 took 113 us by elements, by pairs 93, by fours 105, of 49 115, 86 and 87, of 65 112, 80 and 73, of 129 93, 77 and 65, by eights 79, of 201 84, 75, 63 and 68, norms of 201 72, 63, 59 and 58.
constexpr int32_t LEAST_BYTES = 4;
constexpr int64_t LEAST_NUMBERED = 192;  // of rows whose places are folded: shorter ones nobody measured

int64_t modulo(int64_t n, int64_t by) { return (n % by + by) % by; }

// Whether vectors of both are aligned at the same points of each row; of distances that are known when run, whether they may be.
bool are_level(const Arranged& a, const Access& x, const Access& y, int32_t width)
{
    const auto same = [width](const Extent& p, const Extent& q) { return p.is_constant() == q.is_constant() && (!p.is_constant() || modulo(p.constant() - q.constant(), width) == 0); };
    return same(x.offset, y.offset) && std::ranges::all_of(a.kept, [&](int32_t k) { return same(x.strides[size_t(k)], y.strides[size_t(k)]); });
}

// By access, what moves by elements since its vectors are aligned elsewhere; nothing where that is as large as all points are.
std::optional<std::vector<bool>> moved_singly(const Arranged& a, int32_t lead, int32_t width)
{
    const auto of = [&](int32_t access) -> const Access& { return a.kernel.accesses[size_t(access)]; };
    const auto is_along = [&](int32_t access) { return pace_of(a, access, true) == Pace::Unit; };
    bool may = true;
    std::vector<bool> singly(a.kernel.accesses.size(), false);
    each_moved(a, [&](int32_t access, Dtype, int32_t) {
        if (!is_along(access) || are_level(a, of(access), of(lead), width)) return;
        singly[size_t(access)] = true, may &= !is_whole(a.kernel, of(access));
    });
    return may ? std::optional(singly) : std::nullopt;
}

}  // namespace

int32_t lead_of(const Arranged& a)
{
    for (size_t v = 0; v < a.kernel.values.size(); v++) {
        const Value& value = a.kernel.values[v];
        if (value.kind == ValueKind::Load && a.is_full(int32_t(v)) && a.passes.wanted[v] && pace_of(a, value.access, true) == Pace::Unit && is_whole(a.kernel, a.kernel.accesses[size_t(value.access)])) return int32_t(v);
    }
    return -1;
}

int64_t least_peeled(const Arranged& a, int32_t width) { return std::max<int64_t>(width > 2 ? 3 * width * width : 8, is_numbered(a.kernel) ? LEAST_NUMBERED : 0); }

// Where what divides rows is a quarter of what an access may move, or less. Of rows that are not known each may be: their text is that of rows that do not fill all vectors,
// unless some operand moved by single elements made it slow for those.
void choose_peeled(Arranged& a, int32_t most)
{
    if (!a.has_rows() || a.is_across || a.axis < 0 || a.reduced.size() != 1) return;
    const int32_t lead = lead_of(a), bytes = lead < 0 ? 0 : bytes_of(a.kernel.values[size_t(lead)].type);
    if (lead < 0) return;
    const auto singly_by = [&](int32_t width) { return moved_singly(a, a.kernel.values[size_t(lead)].access, width); };
    if (!has_known_rows(a)) {
        const std::optional<std::vector<bool>> singly = singly_by(a.width);
        a.may_peel = a.width > 1 && a.width * bytes >= LEAST_BYTES && singly && std::ranges::count(*singly, true) == 0;
        if (a.may_peel) a.moved_singly = *singly;
        return;
    }
    for (int32_t width = a.width * 4 > most ? 0 : most; width > a.width && width * bytes >= LEAST_BYTES; width /= 2) {
        if (a.points.constant() < least_peeled(a, width)) continue;
        const std::optional<std::vector<bool>> singly = singly_by(width);
        if (!singly) continue;
        a.is_peeled = true, a.width = width, a.moved_singly = *singly;
        return;
    }
}

bool fits_peeled(const Arranged& a, std::span<const int64_t> variables, std::span<const uint64_t> addresses)
{
    bool fits = true;
    const Access* first = nullptr;
    int64_t before = 0;
    each_moved(a, [&](int32_t access, Dtype t, int32_t buffer) {
        const uint64_t address = size_t(buffer) < addresses.size() ? addresses[size_t(buffer)] : 0;
        if (pace_of(a, access, true) != Pace::Unit || a.moved_singly[size_t(access)] || address == 0) return;       // 0: not known, or not wanted
        const uint64_t bytes = uint64_t(bytes_of(t));
        const Access& here = a.kernel.accesses[size_t(access)];
        const int64_t at = modulo(int64_t(address / bytes % uint64_t(a.width)) + modulo(here.offset.value(variables), a.width), a.width);
        if (!first) first = &here, before = at;
        fits &= address % bytes == 0 && at == before && here.strides[size_t(a.axis)].value(variables) == 1;
        for (const int32_t k : a.kept) fits &= modulo(here.strides[size_t(k)].value(variables) - first->strides[size_t(k)].value(variables), a.width) == 0;
    });
    return fits;
}

// One for each element before and behind vectors. Of pairs a thread has some seven elements, eight of f16, twelve where one walk folds all. Tuned on an H100: softmaxes of 17 f16
// took 121 us with 2 threads a row, with 4 93, with 8 151, of 33 156, 93 and 101, of 33 f32 131 with 4 and 119 with 8; sums of 17 f16 33 with 2 and 48 with 4.
int64_t peeled_lanes(const Arranged& a, int32_t width, int64_t points, int64_t by_vectors)
{
    const int64_t tenths = a.passes.count == 1 ? 126 : loaded_bytes(a) <= 2 ? 83 : 65;
    return std::max<int64_t>(2 * (width - 1), width > 2 ? by_vectors : (points * 10 + tenths - 1) / tenths);
}

// Points are counted from the first aligned one on.
std::string FormPrinter::place() const { return c_.is_peeled ? "(point + before)" : "point"; }

// How many elements a row has before its first vector and in all vectors,
void FormPrinter::peel_vectors()
{
    const int32_t lead = lead_of(a_);
    line(text("const ", at_, " before = (", at_, ")(0 - (u64)p_v", lead, " / ", bytes_of(kernel_.values[size_t(lead)].type), ") & (WIDTH - 1), inner = (n.points - before) & -WIDTH;"));
    if (c_.is_staying) line(text("const ", at_, " end = inner;"));
}

// and which a thread has by itself.
void FormPrinter::peel_single()
{
    line(text("const ", at_, " single = lane < before ? lane - before : inner + lane - before;"));
    line("const bool has_single = is_row && single + before < n.points;");
}

// What a batch does, of a thread's single element.
void FormPrinter::open_single()
{
    open("if (has_single)");
    line("enum { WIDTH = 1, HELD = 1 };");
    line(text("const ", at_, " start = single, step = 1;"));
    std::swap(c_, single_class_), words_.enter_single();
}
void FormPrinter::close_single() { std::swap(c_, single_class_), words_.leave_single(), close(); }

// Of the next row, before this one's walks: nothing else is as long on its way.
void FormPrinter::ask_for_single(const std::vector<size_t>& loads)
{
    peel_single();
    open_single(), open_item({0, "1", false});
    for (const size_t v : loads) line(text("alone", v, "[k] = *(const Vector<", memory_name(kernel_.values[v].type), ", 1>*)(", words_.address(int32_t(v)), ");"));
    close(), close_single();
}

// Its registers outlive where it is fetched; blocks that stay have it.
void FormPrinter::hold_single(const std::vector<size_t>& loads)
{
    const Batch b{0, "1", false};
    words_.enter_single();
    declare(b, loads);
    for (size_t v = 0; v < kernel_.values.size(); v++)
        if (is_kept(v)) line(text(held_name(kernel_.values[v].type), " ", words_.kept(int32_t(v)), "[1][1];"));
    words_.leave_single();
    if (loads.empty()) return;
    if (c_.is_staying)
        for (const size_t v : loads) line(text("em", v, "[0] = came", v, ";"));
    else open_single(), fetch(b, loads), close_single();
}

void FormPrinter::walk_single(int32_t pass)
{
    if (!c_.is_peeled) return;
    open_single(), batch({pass, "1", false}), close_single();
}

}  // namespace ng::emitting
