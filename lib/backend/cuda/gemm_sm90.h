// Hopper's products as launches: the form in which its kernels take a problem, the instances, and what runs one of them.
#pragma once
#include "kernels/gemm_sm90.h"
#include "lib/backend/cuda/gemm.h"
#include "lib/backend/cuda/rounding.h"

namespace ng::cuda::gemm::sm90 {

// Rows of gemm_sm90.def are of these: fp8 and 8-bit integers share an image, also where blocks turn one operand; f32 as planes, rounded to tf32, the same
// with one operand or both as no copy has to turn them, and f64.
enum class Group : uint32_t { Half, Byte, Whole, MovedByte, MovedWhole, Wide, Round, Turned, Moved, Double };
constexpr Image image_of(Group g) { return g == Group::Half ? Image::Sm90Half : g <= Group::MovedWhole ? Image::Sm90Byte : Image::Sm90Wide; }

// A row of gemm_sm90.def.
struct Instance {
    const char* tile;
    Group       group;
    Image       image;
    bool        is_split, is_cut, is_odd;    // split ones that take f32 as it lies; a turned b at any distance
    bool        turns;                   // tiles are of c's transpose
    bool        is_stream_k;             // steps of tiles that are left over are dealt to all clusters
    int32_t     m, n;
    int32_t     cluster, down, across, schedule;     // of tiles; of splits a launch says how large clusters are
    int32_t     stages, kept, units;     // kept: stages in clusters; units: blocks of it that share a multiprocessor
    int32_t     slots;                   // is_cut: of planes
    uint32_t    first_kernel;            // of its variants
    uint32_t    first_listed, first_boxed;       // the same of those that carry out lists; NO_KERNEL: it has none
};
inline constexpr uint32_t NO_KERNEL = UINT32_MAX;
// What tensors come as to these kernels' tiles.
inline constexpr kernels::TilesFinish LISTED_FINISH = {true, false, 3}, BOXED_FINISH = {true, true, 1};
std::span<const Instance> instances();
std::span<const KernelFacts> kernels_of(Image image);
std::span<const KernelFacts> listed_kernels_of(Image image);
// A kernel's shape in the words of kernels/gemm_sm90_tiles.cuh, gemm_sm90_split.cuh, gemm_sm90_odd.cuh or gemm_sm90_cut.cuh.
const char* shape_of(const Instance& instance, uint32_t variant);
inline uint32_t shared_of(const Instance& i) { return sm90::kernels_of(i.image)[i.first_kernel].shared_bytes; }     // of a split one
// Odd ones have kernels for b alone turned, as form_of has it.
inline uint32_t kernel_of(const Instance& i, uint32_t variant) { return i.first_kernel + (i.is_odd ? variant / 4 : variant); }

// How an operand comes to have rows that the copy engine takes.
enum class Copying : uint8_t { None, Pitch, Strided, Planes };

// a as [batches, rows, depth], b as [batches, columns, depth]: `lines` of `length` elements side by side, the depth in them or,
// turned, as many as the depth.
struct Source {
    const void* data;
    bool        is_turned;
    Copying     copying;
    bool        lies_even, turns_even;   // the copy engine could take it as it is; or what lies side by side were not its depth
    int64_t     lines, length;
    int64_t     batches;                 // 1 where all read the same
    int64_t     line_stride, element_stride, batch_stride;   // as it comes
    int64_t     pitch;                   // elements of a line, as the kernel reads it
    uint64_t    copy_bytes;              // of the workspace
};

inline bool is_copied(const Instance& i, const Source& s) { return s.copying != Copying::None && !i.is_cut && !(i.is_odd && s.is_turned); }

// A problem as kernels take it: c's columns side by side, a and b swapped where that was not so.
struct Form {
    Problem  problem;
    Group    group;
    Image    image;
    uint32_t variant;                    // among an instance's kernels
    int32_t  step, planes;               // step: elements of depth in 128 bytes
    Source   a, b;
    bool     has_few_rows;               // they became columns
};
// False: no kernel here takes it. has_addresses: where operands lie counts, too. takes_few_rows: these may become columns.
bool make_form(const Problem& problem, bool has_addresses, Form& form, bool takes_few_rows = true);
inline bool is_apart(const Form& form) { return form.problem.c_column != 1; }    // c's columns do not lie side by side
// The same of a problem with a prologue, of bytes that become halves: a's, in tiles of kernels/gemm_sm90_made.cuh, without copies.
bool make_made_form(const Problem& problem, bool has_addresses, Form& form);
uint64_t copies_workspace(const Form& form);     // at most: some instances copy nothing
// Nothing but whole products are for these kernels; others take what they do not, and compare.
inline bool is_double(const Form& form) { return form.group == Group::Double; }
// As TilesShape and SplitShape have it: tiles are of c's transpose, which swaps a and b.
inline bool is_swapped(const Form& form, const Instance& i) { return i.is_split ? i.turns : kernels::tiles_are_swapped(uint32_t(i.n), form.a.is_turned, form.b.is_turned, i.turns); }
Form swapped(const Form& form);
inline bool moves_bytes(const Instance& i) { return i.group == Group::MovedByte || i.group == Group::MovedWhole; }
inline bool takes_turned(const Instance& i) { return i.group == Group::Turned || i.group == Group::Moved || moves_bytes(i); }
Form form_of(const Form& form, const Instance& instance);        // as its tiles have it: swapped where they are so, or with operands that it takes as they lie
// Whether the instance is of the form's group; those of Turned are for words of Round one of whose operands has its lines side by side, of Moved
// both, of MovedByte and MovedWhole for bytes of which one has, and the other its depth.
bool takes_group(const Form& form, const Instance& instance);
// Whether odd instances take the form, whose a is straight or has few rows. Their tiles are no multiple of what folds have parts of.
bool takes_odd(const Form& form);
inline kernels::TilesRow row_of(const Instance& i) { return {uint32_t(i.m), uint32_t(i.n), uint32_t(i.stages), i.schedule < 0, i.turns}; }
// Of one that is not split and has no epilogue, for a form that is swapped where that is so.
inline kernels::TilesLayout layout_of(const Form& form, const Instance& i)
{
    return kernels::tiles_layout(row_of(i), form.b.is_turned, {});
}
// Of a Strided copy: words or bytes whose lines lie side by side instead.
inline bool is_turned_by_blocks(const Source& s, const Form& form)
{
    return (form.group == Group::Round || form.group == Group::Byte || form.group == Group::Whole) && s.copying == Copying::Strided && s.line_stride == 1;
}

inline constexpr int32_t MOST_CLUSTER = 8;
struct Choice {
    uint32_t instance;
    int32_t  cluster, splits, group;     // group: rows of clusters that go before the next column; of splits, blocks of a launch's cluster (launched_together)
};
// Several tiles' blocks are launched as one cluster where that puts them where they read faster.
inline int32_t launched_together(const Choice& c) { return c.group <= MOST_CLUSTER && c.group % c.cluster == 0 ? c.group : c.cluster; }
inline Way    way_of(const Choice& c) { return {false, false, c.instance, c.cluster, c.splits, c.group}; }
inline Choice choice_of(const Way& w) { return {w.instance, w.cluster, w.splits, w.group}; }
int64_t steps_of(const Form& form);
int64_t steps_of(const Form& form, const Instance& instance);
uint64_t partial_bytes(const Form& form, const Device& device, const Choice& choice);
inline bool may_meet_in_memory(const Form& form) { return form.group == Group::Half || form.group == Group::Round; }     // sums of parts
inline constexpr int32_t  MOST_SPLITS = 16;
inline constexpr int64_t  DEEP = 128;    // steps of depth, from which parts may go to memory
inline constexpr uint64_t MOST_PARTIAL_BYTES = uint64_t(64) << 20;

bool   is_possible(const Form& form, const Choice& choice);
// Tiles of a product that is not split, and how many a device runs at once, both in clusters. own: form_of the instance.
struct Tiling {
    int64_t tiles, together;
    double  waves() const { return double(tiles) / double(together); }
    bool    is_full() const { return tiles % together == 0; }    // no place is ever empty
};
Tiling tiling_of(const Form& own, const Device& device, const Instance& instance);
// Of stream-K: clusters, and how many tiles' steps are dealt to them, which is none where they have as many whole ones.
struct Dealing {
    int64_t clusters, tiles;
};
Dealing dealing_of(const Form& own, const Device& device, const Instance& instance);
inline constexpr double LEAST_DEALT = 0.5, MOST_DEALT = 4;       // waves that its time is known of
double resident_blocks(const Device& device, int32_t units, int32_t cluster);    // in clusters that a device holds at once, so many to a multiprocessor
// Of each of as many tiles as it takes, all alike: whole eights, as threads store them and boxes are swizzled.
inline int32_t even_lines(int64_t extent, int32_t tile)
{
    constexpr int64_t LINES = kernels::EIGHT_LINES;
    const int64_t each = divided_up(extent, divided_up(extent, tile));
    return int32_t(rounded_up(each, LINES));
}
// What counts of a split's tiles, the form as the instance has it: with all they have tiles may be fewer than find room at once, which leaves multiprocessors idle.
struct SplitTile {
    int32_t rows, columns;
};
SplitTile split_tile(const Form& form, const Device& device, const Instance& instance, const Choice& choice);
double cost_us(const Form& form, const Device& device, const Choice& choice);    // with its copies
double cost_us(const Form& form, const Form& own, const Device& device, const Choice& choice);   // own: form_of the choice's instance
Choice choose(const Form& form, const Device& device, uint64_t partial_bytes);
// Of one instance; nothing where it cannot run this.
std::optional<Choice> choose_among(const Form& form, const Device& device, uint64_t partial_bytes, uint32_t instance);
// finisher: the instance as it was compiled with the problem's epilogue; null: as it is shipped.
void   run_as(const Form& form, const Device& device, const Choice& choice, const Finisher* finisher, const Place& place);
// The finisher of an instance for a problem of this form, as it comes best to what it reads; addresses do not matter.
Finisher finisher_of(const Form& form, uint32_t instance);
FunctionWords product_of(const Finisher& finisher);
inline FunctionWords sum_of() { return {"THREADS", "GemmSumNumbers", "run_sum"}; }

// Products with a prologue: by tiles of so many columns, the number of which is their finisher's instance, each by a cluster's blocks.
struct MadeChoice {
    int32_t cluster;
    double  us;
};
inline constexpr int32_t MADE_COLUMNS[] = {16, 32, 64, 128};
std::optional<Finisher> made_finisher_of(const Problem& problem, const Device& device, int32_t columns);
bool          make_made_form(const Problem& problem, const Finisher& finisher, Form& form);      // false: it is no finisher for this problem, where it lies
MadeChoice    choose_made(const Form& form, const Device& device, int32_t columns);
FunctionWords made_product_of(const Finisher& finisher);
void          run_made(const Form& form, const Device& device, int32_t cluster, const Finisher& finisher, const Place& place);

uint64_t workspace(const Problem& largest, const Device& device, bool is_fixed);
bool     can_run(const Problem& problem, const Device& device, uint64_t workspace_bytes);
// Where can_run says so: whether operands are copied first, and what copies and product may take.
bool     copies(const Problem& problem);
double   cost_us(const Problem& problem, const Device& device, uint64_t workspace_bytes);
// As gemm.h has them, of this family.
void     add_ways(const Problem& problem, const Device& device, uint64_t workspace_bytes, std::vector<CostedWay>& ways);
bool     can_run_so(const Problem& problem, const Device& device, uint64_t workspace_bytes, const Way& way);
void     run(const Problem& problem, const Device& device, const Place& place);

// Whether it with its epilogue, so, is faster than without, and a kernel behind it. without: how that product is taken then; null: alike.
bool is_better_fused(const Form& form, const Device& device, const Choice& fused, uint64_t partial_bytes, double more_us = 0, const Form* without = nullptr);
// Whether the tensor may come so to a kernel that has the epilogue, and whether results leave by the copy engine.
bool can_come(const Problem& problem, int tensor, kernels::EpilogueKind kind);
bool leaves_by_engine(const Problem& problem);

// An instance's for a list, for the problem's addresses and strides; whether it has one, and takes the problem as it lies.
Finisher listed_finisher(const Form& form, uint32_t instance);
bool     takes_list(const Form& form, uint32_t instance);
// As gemm.h has them.
bool run_listed(const Problem& problem, const Device& device, const Place& place);
std::optional<int32_t> listed_part(const Problem& problem, const Device& device, uint64_t workspace_bytes);      // of its folds, as Finisher's part_length; nothing where can_run says no
std::optional<Finisher> finisher_for(const Problem& problem, const Device& device, const Way* way);
bool run_finished(const Problem& problem, const Device& device, const Finisher& finisher, const Place& place);

}  // namespace ng::cuda::gemm::sm90
