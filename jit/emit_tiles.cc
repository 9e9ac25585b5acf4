// Prints points whose loads lie along another axis than their stores: square tiles are turned in shared memory.
#include "jit/emit_printer.h"

namespace ng::emitting {

// Which tile the block has, of the axis that loads lie along and the axis that stores lie along.
void FormPrinter::place_tile()
{
    const std::string along = cut("tiles_along", Cut::TilesAlong), across = cut("tiles_across", Cut::TilesAcross), block = text("(i32)", dialect_.block);
    line(text("const i32 from_across = ", block, " / ", along, " % ", across, " * TILE, from_along = ", block, " % ", along, " * TILE;"));
    std::vector<int32_t> outer;
    for (const int32_t x : a_.kept)
        if (x != a_.axis && x != a_.tile_axis) outer.push_back(x);
    if (outer.empty()) return;
    line(text("const i32 outer = ", block, " / ", along, " / ", across, ";"));
    indices(outer, "outer");
}

std::string FormPrinter::in_space()
{
    const auto below = [&](int32_t x) { return text("i", x, " < ", words_.count(text("extent", x), kernel_.axes[size_t(x)].extent)); };
    return text("if (", below(a_.tile_axis), " && ", below(a_.axis), ")");
}

// Neighbouring threads read along the loads' axis; a row of the tile is what stores lie along, and one element longer, so
// that a column's elements are in different banks.
void FormPrinter::turn(size_t v)
{
    const Value& load = kernel_.values[v];
    const std::string type = memory_name(load.type);
    line(text(type, " t", v, "[TILE * TILE / THREADS];"));
    unroll();
    open("for (i32 k = 0; k < TILE * TILE / THREADS; k++)");
    line(text("const i32 at = ", dialect_.thread, " + k * THREADS, i", a_.tile_axis, " = from_across + at % TILE, i", a_.axis, " = from_along + at / TILE;"));
    line(text(in_space(), " t", v, "[k] = p_v", v, "[", words_.distance(text("v", v), kernel_.accesses[size_t(load.access)]), "];"));
    close();
    unroll();
    open("for (i32 k = 0; k < TILE * TILE / THREADS; k++)");
    line(text("const i32 at = ", dialect_.thread, " + k * THREADS;"));
    line(text("tile", v, "[at % TILE * (TILE + 1) + at / TILE] = t", v, "[k];"));
    close();
}

void FormPrinter::tiles()
{
    for (size_t v = 0; v < kernel_.values.size(); v++)
        if (a_.is_tiled(int32_t(v))) line(text(dialect_.shared, memory_name(kernel_.values[v].type), " tile", v, "[TILE * (TILE + 1)];"));
    define_uniform();
    place_tile();
    pointers();
    for (size_t v = 0; v < kernel_.values.size(); v++)
        if (a_.is_tiled(int32_t(v))) turn(v);
    line(std::string(dialect_.barrier) + ";");
    // One after the other: what is on its way is in shared memory or other warps', and registers of all would leave room for few.
    body_ += "#pragma unroll 1\n";
    open("for (i32 turn = 0; turn < HELD; turn++)");
    batch({0, "1", true});
    close();
}

// Of a tile, neighbouring threads have vectors along the stores' axis.
void FormPrinter::open_tile_item()
{
    line(text("const i32 vector = ", dialect_.thread, " + (turn + k) * THREADS, i", a_.tile_axis, " = from_across + vector / (TILE / WIDTH), i", a_.axis, " = from_along + vector % (TILE / WIDTH) * WIDTH;"));
    open(in_space());
}

}  // namespace ng::emitting
