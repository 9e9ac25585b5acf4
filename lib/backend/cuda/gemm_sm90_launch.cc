// Launches of Hopper's products: copies of operands, tensor maps, the instance's numbers, sums of parts.
#include "lib/backend/cuda/driver.h"
#include "lib/backend/cuda/gemm_sm90_place.h"
#include "lib/backend/cuda/rounding.h"

#include <algorithm>
#include <atomic>

namespace ng::cuda::gemm::sm90 {
namespace {

// As cuda.h numbers them.
enum MapType : int { MAP_BYTES = 0, MAP_WORDS = 3, MAP_F16 = 6, MAP_F32 = 7, MAP_F64 = 8, MAP_BF16 = 9, MAP_TF32 = 11 };
constexpr int NO_INTERLEAVING = 0, FILL_ZEROS = 0;
// What the second cache asks memory for where a box's lines are not there.
enum MapPromotion : int { PROMOTE_128_BYTES = 2, PROMOTE_256_BYTES = 3 };

// Lines of elements side by side, and batches of them.
struct Lines {
    const void* data;
    MapType     type;
    int64_t     bytes, length, lines, batches, line_stride, batch_stride;
};

// Boxes of `across` elements by `down` lines, swizzled by their width.
void encode(const Driver& driver, kernels::TensorMap& to, const Lines& l, uint32_t across, uint32_t down, MapPromotion promotion = PROMOTE_256_BYTES)
{
    const uint64_t extents[] = {uint64_t(l.length), uint64_t(l.lines), uint64_t(l.batches)};
    const uint64_t strides[] = {uint64_t(l.line_stride * l.bytes), l.batches > 1 ? uint64_t(l.batch_stride * l.bytes) : 16};
    const uint32_t box[] = {across, down, 1}, steps[] = {1, 1, 1};
    const int      swizzle = across * l.bytes == 128 ? 3 : across * l.bytes == 64 ? 2 : 1;
    CUtensorMap    map;
    static_assert(sizeof map == sizeof to, "the driver's map and ours");
    (void)driver.cuTensorMapEncodeTiled.quiet(&map, l.type, 3, const_cast<void*>(l.data), extents, strides, box, steps, NO_INTERLEAVING, swizzle, promotion, FILL_ZEROS);
    std::copy_n(map.opaque, 16, to.opaque);
}

MapType map_type(Dtype t)
{
    switch (t) {
    case Dtype::f16: return MAP_F16;
    case Dtype::bf16: return MAP_BF16;
    case Dtype::f32: return MAP_F32;
    case Dtype::f64: return MAP_F64;
    case Dtype::i32: return MAP_WORDS;
    default: return MAP_BYTES;
    }
}

// ---- operands -------------------------------------------------------------------------------------------------------------

struct Runner {
    const Form&   form;
    const Device& device;
    const Place&  place;
    const Finisher* finisher;            // null: no kernel has the epilogue in it
    char*         next;                  // of the workspace

    template <class Numbers>
    void launch(Launch l, const Numbers& numbers) const
    {
        static_assert(sizeof(Numbers) <= 4096, "parameters of a kernel have 4 KiB");
        l.is_early = true, l.numbers = &numbers, l.numbers_bytes = sizeof numbers;
        place.launch(l);
    }
    bool has_box() const { return std::ranges::find(finisher->kinds, kernels::BY_ENGINE) != std::end(finisher->kinds); }
    // One of the instance's kernels, that of form_of's variant, or what was compiled in place of it.
    Launch launch_of(const Instance& i, uint32_t variant) const
    {
        Launch l = {};
        if (!finisher) l.image = i.image, l.kernel = kernel_of(i, variant);
        else if (!finisher->is_listed) l.image = Image::Text, l.kernel = 0;
        else if (has_box()) l.image = Image::Sm90Boxed, l.kernel = i.first_boxed + variant;
        else l.image = Image::Sm90Listed, l.kernel = i.first_listed + variant;
        return l;
    }
    // The image's ASIDE rows are its last.
    enum Aside : uint32_t { LAST = 1, BUT_ONE, BUT_TWO };
    template <class Numbers>
    void launch_aside(Aside aside, int64_t threads, const Numbers& numbers) const
    {
        launch_beside(form.image, uint32_t(sm90::kernels_of(form.image).size()) - aside, threads, numbers);
    }
    void launch_sum(int64_t threads, const kernels::GemmSumNumbers& numbers) const
    {
        if (finisher) launch_beside(Image::Text, 1, threads, numbers);
        else launch_aside(form.image == Image::Sm90Half ? BUT_ONE : BUT_TWO, threads, numbers);
    }
    template <class Numbers>
    void launch_beside(Image image, uint32_t kernel, int64_t threads, const Numbers& numbers) const
    {
        Launch l = {};
        l.image = image, l.kernel = kernel, l.block = kernels::THREADS, l.cluster = 1;
        l.grid[0] = uint32_t(std::clamp<int64_t>(divided_up(threads, kernels::THREADS), 1, int64_t(device.units) * 16)), l.grid[1] = l.grid[2] = 1;
        launch(l, numbers);
    }

    static Lines lines_in_place(const Source& s, Dtype type) { return {s.data, map_type(type), bytes_of(type), s.length, s.lines, s.batches, s.line_stride, s.batch_stride}; }
    // The lines as the kernel reads them, copied where that is needed.
    Lines lines_of(const Source& s, Dtype type)
    {
        Lines l = lines_in_place(s, type);
        if (form.group == Group::Round) l.type = MAP_TF32;
        if (s.copying == Copying::None) return l;
        char* const copy = next;
        next += aligned(s.copy_bytes);
        l.data = copy, l.line_stride = s.pitch, l.batch_stride = s.lines * s.pitch;
        if (s.copying == Copying::Planes) {
            const kernels::GemmPlanesNumbers n = {static_cast<const float*>(s.data), copy, s.lines, s.length, s.line_stride, s.element_stride, s.batch_stride, s.pitch, s.batches};
            launch_aside(BUT_ONE, s.batches * s.lines * (s.pitch / 4), n);
            l.type = MAP_BF16, l.bytes = 2, l.batches = 3 * s.batches;
        } else if (s.copying == Copying::Pitch) {
            const char* const from = static_cast<const char*>(s.data);
            const void* const end = from + ((s.batches - 1) * s.batch_stride + (s.lines - 1) * s.line_stride + s.length) * l.bytes;
            const kernels::GemmPitchNumbers n = {from, copy, end, s.lines, s.length, s.line_stride, s.batch_stride, s.pitch, s.batches};
            launch_aside(LAST, divided_up(s.batches * s.lines * (s.pitch / 8), 4), n);
        } else if (is_turned_by_blocks(s, form)) {
            const kernels::GemmTurnNumbers n = {s.data, copy, s.lines, s.length, s.element_stride, s.batch_stride, s.pitch, s.batches};
            const int64_t rows = l.bytes == 1 ? 128 : 64, columns = l.bytes == 1 ? 128 : 32;       // of a block
            launch_aside(LAST, divided_up(s.lines, rows) * divided_up(s.length, columns) * s.batches * kernels::THREADS, n);
        } else {
            const int64_t dims[] = {s.batches, s.lines, s.length}, from[] = {s.batch_stride, s.line_stride, s.element_stride}, to[] = {l.batch_stride, s.pitch, 1};
            const Dtype   plain = bits_of_size(size_t(l.bytes));
            basic::copy({const_cast<void*>(s.data), plain, dims, from}, {copy, plain, dims, to}, 3, {nullptr, place.launch_basic});
        }
        return l;
    }
    // What is read once and nearly alone streams faster by the lines that a box has: 470 MB in 105 us, by 256 bytes in 114 where rows are turned (H200, 2026-11-29). What several
    // tiles read gains by what comes for the next step.
    MapPromotion promotion() const
    {
        constexpr int64_t FEW_LINES = 128;
        return std::min(form.problem.m, form.problem.n) <= FEW_LINES ? PROMOTE_128_BYTES : PROMOTE_256_BYTES;
    }
    // parts: what the tile's rows or columns come in.
    void encode_operand(kernels::TensorMap& map, const Lines& l, const Source& s, int32_t tile, int32_t parts) const
    {
        const int32_t across = s.is_turned ? std::min(tile, form.step) : form.step, down = s.is_turned ? form.step : tile;
        encode(*place.driver, map, l, uint32_t(across), uint32_t(down / parts), promotion());
    }

    // Eight lines as one, whatever lies between them: whole eights, and what is left of the last.
    void encode_odd(kernels::TensorMap& map, kernels::OddLines& odd, const Source& s, Dtype type) const
    {
        const Lines    l = lines_in_place(s, type);
        const uint64_t before = reinterpret_cast<uintptr_t>(s.data) % 16;    // bytes
        const int64_t  more = l.lines % 8;
        odd.first = int32_t(int64_t(before) / l.bytes), odd.distance = int32_t(l.line_stride), odd.more = int32_t(more);
        const auto encode_eights = [&](kernels::TensorMap& to, int64_t eights, int64_t in_last) {
            const Lines e = {static_cast<const char*>(s.data) - before, l.type, l.bytes, odd.first + (in_last - 1) * l.line_stride + l.length, eights, l.batches, 8 * l.line_stride, l.batch_stride};
            encode(*place.driver, to, e, kernels::ODD_WIDTH, 8, promotion());
        };
        encode_eights(map, l.lines / 8, 8);
        if (more > 0) encode_eights(odd.rest, l.lines / 8 + 1, more);
    }

    // f32 as it lies, for who cuts it.
    void encode_floats(kernels::TensorMap& map, const Source& s, int32_t tile) const
    {
        encode(*place.driver, map, lines_in_place(s, Dtype::f32), kernels::CUT_STEP, s.is_turned ? kernels::CUT_STEP : uint32_t(tile));
    }

    // own: the form as the instance has it. Tiles of c's transpose, and of one column, say of c as it lies, whose folds would be others.
    kernels::GemmOutput output(const Form& own, bool may_use_engine) const
    {
        Problem p = own.problem;
        kernels::GemmOutput o = {};
        const bool is_column = bytes_of(p.a_type) <= 2 && !may_use_engine && p.n == 1;         // tiles are not for columns that are apart
        if ((is_apart(own) || is_column) && !has_folds(p)) turn(p), o.is_turned = true;
        o.c = p.c, o.c_row = p.c_row, o.c_column = p.c_column, o.c_batch = p.c_batch, o.m = int32_t(p.m), o.n = int32_t(p.n), o.c_type = int32_t(p.c_type), o.epilogue = settled(p);
        const int64_t  bytes = bytes_of(p.c_type);
        const uint64_t address = reinterpret_cast<uintptr_t>(p.c);
        const auto     lies_on = [&](int64_t unit) {
            return address % uint64_t(unit) == 0 && (p.m == 1 || p.c_row * bytes % unit == 0) && (p.batches == 1 || p.c_batch * bytes % unit == 0);
        };
        const bool is_half = p.c_type == Dtype::f16 || p.c_type == Dtype::bf16, is_word = p.c_type == Dtype::f32 || p.c_type == Dtype::i32;
        // Sums of integers that become floats do so where threads store them; real ones are rounded on any way.
        const bool is_converted = form.group == Group::Whole && p.epilogue.is_cast && !finisher;
        const bool is_plain = !is_converted && (p.m == 1 || p.c_row > 0) && (p.batches == 1 || p.c_batch > 0);
        o.store = lies_on(4 * bytes) && p.c_column == 1 ? kernels::STORE_FOURS : o.is_turned || p.c_column != 1 ? kernels::STORE_APART : kernels::STORE_SINGLES;
        // The copy engine writes whole units of 16 bytes.
        if (may_use_engine && is_plain && !p.is_unstored && lies_on(16) && p.n * bytes % 16 == 0 && (is_half || is_word)) o.store = is_half ? kernels::STORE_HALVES : kernels::STORE_WORDS;
        int vectors = 0;
        for (int i = 0; finisher && i < p.epilogue.loads; i++) {
            int32_t& kind = o.epilogue.tensor[i].kind;
            kind = finisher->kinds[i];
            if (!finisher->is_listed || (kind != kernels::OF_COLUMNS && kind != kernels::OF_ROWS)) continue;
            o.epilogue.numbers[0] |= kernels::list_vector_bits(vectors, i), kind |= vectors++ << 8;
        }
        return o;
    }
};

// ---- instances ------------------------------------------------------------------------------------------------------------

// Steps between moves of the sums: fp8's products have few bits, sums of planes more.
constexpr int32_t PROMOTE_BYTES = 4, PROMOTE_PLANES = 4;

kernels::PlainOperands plain_of(const Problem& p)
{
    return {static_cast<const float*>(p.a), static_cast<const float*>(p.b), p.a_row, p.a_depth, p.a_batch, p.b_depth, p.b_column, p.b_batch, p.k};
}

// Of a tensor whose batches are one axis of the two, where c's are.
kernels::BoxMoves box_moves(const Problem& p, int tensor)
{
    const int64_t inner = p.epilogue.inner, near = p.epilogue.tensor[tensor].batch, far = p.epilogue.outer[tensor];
    if (inner == 0 || far == near * inner) return p.batches > 1 && near != 0 ? kernels::BOX_MOVES : kernels::BOX_STAYS;
    return far == 0 ? kernels::BOX_OF_INNER : kernels::BOX_OF_OUTER;
}

// Of an epilogue's tensor that the copy engine brings: boxes as results leave.
void encode_box(const Runner& r, kernels::GemmTilesNumbers& n)
{
    const Problem& p = r.form.problem;
    for (int i = 0; r.finisher && i < p.epilogue.loads; i++) {
        const kernels::EpilogueTensor& t = p.epilogue.tensor[i];
        if (r.finisher->kinds[i] != kernels::BY_ENGINE) continue;
        n.box_moves = box_moves(p, i);
        const bool    is_outer = n.box_moves == kernels::BOX_OF_OUTER;
        const int64_t inner = std::max<int64_t>(p.epilogue.inner, 1), counts[] = {1, p.batches, inner, p.batches / inner};
        encode(*r.place.driver, n.box, {t.data, MAP_F16, 2, p.n, p.m, counts[n.box_moves], p.m > 1 ? t.row : 16, is_outer ? p.epilogue.outer[i] : t.batch}, 64, 64);
    }
}

// Of a tile's columns beyond a multiple of 64, which a box of that width would take from the next tile.
void encode_rest(const Runner& r, const Instance& i, kernels::GemmTilesNumbers& n)
{
    const Problem& p = r.form.problem;
    if (i.n % 64 == 0 || n.output.store != kernels::STORE_HALVES) return;
    encode(*r.place.driver, n.box, {p.c, map_type(p.c_type), bytes_of(p.c_type), p.n, p.m, p.batches, p.m > 1 ? p.c_row : 16, p.c_batch}, i.n % 32 == 0 ? 32 : 16, 64);
}

// Where form_of may be that of c's transpose.
kernels::GemmOutput turned_output(const Runner& r, const Form& form)
{
    const Problem& p = form.problem;
    kernels::GemmOutput o = r.output(r.form, p.c_column == 1);
    if (o.store == kernels::STORE_HALVES) o.store = kernels::STORE_FOURS;
    o.m = int32_t(p.m), o.n = int32_t(p.n), o.c_row = p.c_row, o.c_column = p.c_column;
    return o;
}

// All lines come, whether they are there or not: of planes, where sums that are no numbers are looked for among all and what was in shared memory before would be
// found; and of doubles, whose steps are long.
bool takes_all_lines(const Form& form) { return form.planes == 3 || is_double(form); }
int32_t lines_that_come(const Form& form, int64_t extent) { return takes_all_lines(form) ? INT32_MAX : int32_t(extent); }

// What a step of a tile's operand comes in, of blocks that share it (load_operand).
int32_t parts_of(const Source& s, int32_t tile, int32_t sharers) { return s.is_turned ? sharers : kernels::tile_parts(tile, sharers); }

// The boxes of an operand's last tile: shorter than the others' where not all its lines are there.
struct Edge {
    int32_t tile, parts;
    int64_t extent;
};
kernels::TensorMap edge_map(const Runner& r, const kernels::TensorMap& others, const Lines& l, const Source& s, const Edge& e)
{
    const int32_t rest = int32_t(e.extent % e.tile);
    if (rest == 0 || s.is_turned || takes_all_lines(r.form)) return others;
    kernels::TensorMap map = {};
    r.encode_operand(map, l, s, kernels::tile_lines(e.tile, e.parts, rest), e.parts);
    return map;
}

// No other launch's, and nothing that memory would hold by chance: numbers in turn, from one of this library's own on, each bit of which depends on all (splitmix64).
uint64_t next_ticket()
{
    static std::atomic<uint64_t> launches{0};
    uint64_t x = launches.fetch_add(0x9e3779b97f4a7c15, std::memory_order_relaxed) + reinterpret_cast<uintptr_t>(&launches);
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9, x = (x ^ x >> 27) * 0x94d049bb133111eb, x ^= x >> 31;
    return x != 0 ? x : 1;               // 0: was taken away
}
kernels::StreamK stream_k(const Runner& r, const Form& own, const Instance& i, const Dealing& d)
{
    const int64_t steps = d.tiles * steps_of(own);
    float* const  partial = reinterpret_cast<float*>(r.next);
    return {partial, reinterpret_cast<kernels::u64*>(partial + d.clusters * i.cluster * i.m * i.n), next_ticket(), int32_t(d.tiles), int32_t(steps / d.clusters), int32_t(steps % d.clusters)};
}

void run_tiles(Runner& r, const Instance& i, const Choice& c)
{
    const Problem& p = r.form.problem;
    const bool     turns = is_swapped(r.form, i), is_turned = takes_turned(i);
    const Form     form = form_of(r.form, i);
    const Lines    a = r.lines_of(form.a, p.a_type), b = r.lines_of(form.b, p.b_type);
    kernels::GemmTilesNumbers n = {};
    const int32_t a_parts = parts_of(form.a, i.m, i.across), b_parts = parts_of(form.b, i.n, i.down);
    r.encode_operand(n.a, a, form.a, i.m, a_parts);
    r.encode_operand(n.b, b, form.b, i.n, b_parts);
    n.a_lines = lines_that_come(r.form, form.problem.m), n.b_lines = lines_that_come(r.form, form.problem.n);
    n.a_edge = edge_map(r, n.a, a, form.a, {i.m, a_parts, form.problem.m});
    n.b_edge = edge_map(r, n.b, b, form.b, {i.n, b_parts, form.problem.n});
    n.output = is_turned ? turned_output(r, form) : r.output(r.form, true);
    // Words leave by boxes of 32 columns.
    if (n.output.store == kernels::STORE_WORDS && i.n % 32 != 0) n.output.store = kernels::STORE_FOURS;
    if (n.output.store <= kernels::STORE_WORDS)
        encode(*r.place.driver, n.c, {p.c, map_type(p.c_type), bytes_of(p.c_type), p.n, p.m, p.batches, p.m > 1 ? p.c_row : 16, p.c_batch}, n.output.store == kernels::STORE_HALVES ? 64 : 32, turns ? kernels::turned_box(i.n) : 64);
    n.k_steps = int32_t(steps_of(r.form)), n.batches = int32_t(p.batches), n.group = c.group;
    n.row_clusters = int32_t(divided_up(form.problem.m, i.m * i.down)), n.column_clusters = int32_t(divided_up(form.problem.n, i.n * i.across));
    n.a_moves = form.a.batches > 1, n.b_moves = form.b.batches > 1;
    n.planes = r.form.planes, n.promote = n.planes == 3 ? PROMOTE_PLANES : PROMOTE_BYTES;
    n.plain = plain_of(p);
    encode_box(r, n);
    if (!turns) encode_rest(r, i, n);
    Launch l = r.launch_of(i, form.variant);
    const Tiling  t = tiling_of(form, r.device, i);
    const Dealing d = i.is_stream_k ? dealing_of(form, r.device, i) : Dealing{std::min(t.tiles, t.together), 0};
    if (i.is_stream_k) n.stream_k = stream_k(r, form, i, d);
    const int64_t blocks = d.clusters * i.cluster;
    l.block = uint32_t(kernels::tiles_threads(uint32_t(i.m), i.turns)), l.cluster = uint32_t(may_stand_together(i) ? placement_of(r.device, 1, i.cluster, double(blocks)).together : i.cluster);
    l.grid[0] = uint32_t(rounded_up(blocks, l.cluster)), l.grid[1] = l.grid[2] = 1;
    l.shared_bytes = r.finisher ? r.finisher->shared_bytes : layout_of(form, i).bytes;
    r.launch(l, n);
}

// What a split is told beside its operands, and the launch of its tiles: of so many rows and columns, of each of so many products so many steps of depth.
struct SplitTiles {
    SplitTile each;
    int64_t steps;
    int32_t products, cluster, splits, together;     // together: blocks of a launch's cluster, a multiple of those that share a tile
};
void cut_tiles(const Runner& r, const Form& form, const SplitTiles& t, kernels::GemmSplitNumbers& n, Launch& l)
{
    const Problem& p = form.problem;
    n.output = r.output(form, false);
    n.planes = r.form.planes, n.tile_rows = t.each.rows, n.tile_columns = t.each.columns, n.row_tiles = int32_t(divided_up(p.m, t.each.rows)), n.column_tiles = int32_t(divided_up(p.n, t.each.columns));
    n.batches = int32_t(p.batches), n.a_moves = form.a.batches > 1, n.b_moves = form.b.batches > 1;
    const int64_t parts = int64_t(t.cluster) * t.splits, all = t.steps * t.products;
    n.k_steps = int32_t(t.steps), n.splits = t.splits, n.part_steps = int32_t(all / parts), n.longer_parts = int32_t(all % parts);
    n.blocks = uint32_t(t.cluster), n.unit_share = kernels::UNIT_SHARES / n.blocks + 1;
    n.tiles = int32_t(n.row_tiles * int64_t(n.column_tiles) * n.batches * t.splits), n.together = t.together / t.cluster;
    l.grid[0] = uint32_t(rounded_up(int64_t(n.tiles) * t.cluster, t.together)), l.grid[1] = l.grid[2] = 1, l.cluster = uint32_t(t.together);
}

void run_split(Runner& r, const Instance& i, const Choice& c)
{
    const Form     form = form_of(r.form, i);
    const Problem& p = form.problem;
    const SplitTile tile = split_tile(form, r.device, i, c);
    kernels::GemmOddNumbers odd = {};    // others read what they share alone
    kernels::GemmSplitNumbers& n = odd.split;
    if (i.is_cut) {
        r.encode_floats(n.a, r.form.a, i.m);
        r.encode_floats(n.b, r.form.b, i.n);
    } else if (i.is_odd) {
        r.encode_operand(n.a, r.lines_of(form.a, p.a_type), form.a, tile.rows, 1);
        r.encode_odd(n.b, odd.b, form.b, p.b_type);
    } else {
        const Lines a = r.lines_of(form.a, p.a_type), b = r.lines_of(form.b, p.b_type);
        r.encode_operand(n.a, a, form.a, tile.rows, 1);
        r.encode_operand(n.b, b, form.b, form.b.is_turned ? kernels::split_width(i.n, form.step) : tile.columns, 1);
    }
    Launch l = r.launch_of(i, form.variant);
    cut_tiles(r, form, {tile, i.is_cut ? steps_of(r.form, i) : steps_of(r.form), i.is_cut ? 1 : kernels::products_of(r.form.planes), c.cluster, c.splits, launched_together(c)}, n, l);
    n.plain = plain_of(r.form.problem), n.partial = c.splits > 1 ? reinterpret_cast<float*>(r.next) : nullptr;
    l.block = uint32_t(i.is_cut ? kernels::CUT_THREADS : kernels::split_threads(i.m)), l.shared_bytes = shared_of(i);
    if (i.is_odd) r.launch(l, odd);
    else r.launch(l, n);
    if (c.splits == 1) return;
    const kernels::GemmSumNumbers sum = {n.partial, c.splits, n.batches, n.output};
    r.launch_sum(int64_t(n.batches) * n.output.m * divided_up(n.output.n, 4), sum);
}

}  // namespace

void run_as(const Form& form, const Device& device, const Choice& choice, const Finisher* finisher, const Place& place)
{
    const Instance& i = instances()[choice.instance];
    Runner r = {form, device, place, finisher, static_cast<char*>(place.workspace)};
    if (i.is_split) run_split(r, i, choice);
    else run_tiles(r, i, choice);
}

void run_made(const Form& form, const Device& device, int32_t cluster, const Finisher& finisher, const Place& place)
{
    constexpr int32_t ROWS = kernels::MADE_ROWS, STEP = kernels::MADE_STEP;
    const Problem& p = form.problem;
    const int32_t  tile = int32_t(finisher.instance), columns = has_folds(p) ? tile : even_lines(p.n, tile);
    const Runner   r = {form, device, place, &finisher, static_cast<char*>(place.workspace)};
    kernels::GemmMadeNumbers all = {};
    kernels::GemmSplitNumbers& n = all.split;
    const Lines a = Runner::lines_in_place(form.a, p.a_type);
    encode(*place.driver, n.a, a, form.a.is_turned ? ROWS : STEP, form.a.is_turned ? STEP : ROWS, r.promotion());
    r.encode_operand(n.b, Runner::lines_in_place(form.b, p.b_type), form.b, columns, 1);
    Launch l = {};
    const int64_t blocks = divided_up(p.m, int64_t(ROWS)) * divided_up(p.n, columns) * p.batches * cluster;
    cut_tiles(r, form, {{ROWS, columns}, steps_of(form), 1, cluster, 1, placement_of(device, 1, cluster, double(blocks)).together}, n, l);
    all.lines = int32_t(p.m), all.depth = int32_t(p.k), all.text = p.prologue.text;
    l.image = Image::Text, l.block = uint32_t(kernels::split_threads(ROWS)), l.shared_bytes = finisher.shared_bytes;
    r.launch(l, all);
}

bool can_run(const Problem& problem, const Device& device, uint64_t workspace_bytes)
{
    Form form;
    return device.compute == 90 && make_form(problem, true, form) && device.has[size_t(form.image)] && copies_workspace(form) <= workspace_bytes;
}

void run(const Problem& problem, const Device& device, const Place& place)
{
    Form form;
    if (!make_form(problem, true, form)) return;
    if (place.memory && place.memory->is_known) return run_as(form, device, choice_of(place.memory->way), nullptr, place);
    const Choice choice = choose(form, device, place.workspace_bytes - copies_workspace(form));
    remember(place.memory, way_of(choice), false);
    run_as(form, device, choice, nullptr, place);
}

}  // namespace ng::cuda::gemm::sm90
