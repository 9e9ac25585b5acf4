// Prints points whose loads lie along another axis than their stores: tiles are turned in shared memory.
#include "jit/emit_printer.h"

namespace ng::emitting {

// Which tile the block has, of the axis that loads lie along and the axis that stores lie along.
void FormPrinter::place_tile()
{
    const std::string along = cut("tiles_along", Cut::TilesAlong), across = cut("tiles_across", Cut::TilesAcross);
    std::vector<int32_t> outer;
    for (const int32_t x : a_.kept)
        if (x != a_.axis && x != a_.tile_axis) outer.push_back(x);
    line(text("const u32 tiles = ", dialect_.block, " / (u32)", along, ";"));
    line(text("const i32 from_along = (i32)(", dialect_.block, " - tiles * ", along, ") * ALONG, from_across = (i32)(tiles", outer.empty() ? "" : " % (u32)" + across, ") * SIDE;"));
    if (outer.empty()) return;
    line(text("const i32 outer = (i32)(tiles / (u32)", across, ");"));
    indices(outer, "outer");
}

std::string FormPrinter::extent_of(int32_t axis) { return words_.count(text("extent", axis), kernel_.axes[size_t(axis)].extent); }

std::string FormPrinter::in_space()
{
    return text("if (i", a_.tile_axis, " < ", extent_of(a_.tile_axis), " && i", a_.axis, " < ", extent_of(a_.axis), ")");
}

// A load's lines lie along the tile's other axis, one behind the other along the stores'.
void FormPrinter::read_lines(size_t v)
{
    const Value& load = kernel_.values[v];
    const Access& access = kernel_.accesses[size_t(load.access)];
    const std::string of = text("v", v);
    const auto stride = [&](int32_t x) { return access.strides[size_t(x)].is(1) ? std::string("1") : words_.count(text("stride_", of, "_", x), access.strides[size_t(x)]); };
    line(text("Lines<", memory_name(load.type), "> t", v, ";"));
    line("{"), depth_++;
    line(text("const i32 i", a_.tile_axis, " = from_across, i", a_.axis, " = from_along;"));
    line(text("read_lines<SIDE>(t", v, ", p_", of, " + (", words_.distance(of, access), "), ", stride(a_.tile_axis), ", ", stride(a_.axis), ", from_across, ", extent_of(a_.tile_axis), " - from_across, ", extent_of(a_.axis), " - from_along);"));
    close();
}

// Of loads that are read vector by vector behind that, those that every point has an element of its own from. f32 took 10 to 30 % longer so, f16 up to 12 % less.
void FormPrinter::ask_ahead()
{
    std::map<int32_t, std::vector<size_t>> by_bytes;
    for (size_t v = 0; v < kernel_.values.size(); v++) {
        const Value& load = kernel_.values[v];
        if (!is_full_load(v) || words_.is_turned(int32_t(v)) || words_.pace(load.access) != Pace::Unit || kernel_.accesses[size_t(load.access)].strides[size_t(a_.tile_axis)].is(0)) continue;
        by_bytes[bytes_of(load.type)].push_back(v);
    }
    for (const auto& [bytes, loads] : by_bytes) {
        unroll();
        open(text("for (u32 sector = ", dialect_.thread, "; sector < SIDE * ALONG * ", bytes, " / ASKED_BYTES; sector += THREADS)"));
        line(text("const i32 i", a_.tile_axis, " = from_across + (i32)(sector / (ALONG * ", bytes, " / ASKED_BYTES)), i", a_.axis, " = from_along + (i32)(sector % (ALONG * ", bytes, " / ASKED_BYTES) * (ASKED_BYTES / ", bytes, "));"));
        open(in_space());
        for (const size_t v : loads) line(text("ask_for(", words_.address(int32_t(v)), ");"));
        close(), close();
    }
}

void FormPrinter::tiles()
{
    std::vector<size_t> turned;
    for (size_t v = 0; v < kernel_.values.size(); v++)
        if (words_.is_turned(int32_t(v))) turned.push_back(v);
    for (const size_t v : turned) line(text(dialect_.shared, "Vector<", memory_name(kernel_.values[v].type), ", 4> tile", v, "[SIDE * ALONG / 4];"));
    define_uniform();
    place_tile();
    pointers();
    for (const size_t v : turned) read_lines(v);
    if (has_small_points(a_)) ask_ahead();
    for (const size_t v : turned) line(text("turn_lines<SIDE>(t", v, ", tile", v, ");"));
    line(std::string(dialect_.barrier) + ";");
    // Four points at once and no more: what is on its way is in shared memory or other warps', and registers of all would leave room for few.
    const int32_t at_once = std::max(1, 4 / c_.width);
    body_ += "#pragma unroll 1\n";
    open(text("for (i32 turn = 0; turn < HELD; turn += ", at_once, ")"));
    batch({0, number(at_once), true});
    close();
}

// Of a tile, neighbouring threads have vectors along the stores' axis.
void FormPrinter::open_tile_item()
{
    line(text("const u32 vector = ", dialect_.thread, " + (turn + k) * THREADS, row = vector / (ALONG / WIDTH), column = vector % (ALONG / WIDTH) * WIDTH;"));
    line(text("const i32 i", a_.tile_axis, " = from_across + (i32)row, i", a_.axis, " = from_along + (i32)column;"));
    open(in_space());
}

}  // namespace ng::emitting
