// Matrix products by kernels made for them: one problem in numbers, who can do it, and its launches.
#pragma once
#include "kernels/gemm_list.h"
#include "kernels/gemm_operand.h"
#include "lib/backend/cuda/basic_launch.h"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ng::cuda {
class Driver;
}

namespace ng::cuda::gemm {

// An operand that a text makes while it is loaded: a_type or b_type, and strides, say how it lies; here is what is multiplied.
struct Prologue {
    enum Side : int32_t { None, A, B };
    Side    side = None;
    Dtype   type = Dtype::f16;
    int32_t weight = 0;                  // of an element: about its instructions; 0: a cast
    kernels::OperandText text = {};
};

// c[i, row, column] = epilogue(sum over depth of a[i, row, depth] b[i, depth, column]). Strides in elements, of any sign;
// sums are f32 of floats, f64 of f64, i32 of 8-bit integers, and c's own type otherwise (contract N7). Shipped kernels have no
// epilogue but is_cast.
struct Problem {
    const void *a, *b;
    void*       c;
    Dtype       a_type, b_type, c_type;  // c_type: as stored
    bool        allows_tf32;             // NG_TF32
    int64_t     m, n, k, batches;
    int64_t     a_row, a_depth, b_depth, b_column, c_row, c_column;
    int64_t     a_batch, b_batch, c_batch;
    kernels::Epilogue epilogue;
    int32_t     epilogue_weight;         // of a text's: about its instructions for a sum; 0: there is none
    bool        is_unstored;             // folds of the epilogue are all that is wanted: there is no c
    bool        is_read_again;           // c, by a kernel behind it that would read the sums otherwise
    bool        is_pivoted;              // folds of the epilogue are of distances from a number of each part
    int64_t     repeats;                 // of a step whose batches are no one axis: problems like this; 0: it alone
    Prologue    prologue = {};
};
void turn(Problem& problem);             // c^T = b^T a^T: the same sums, rows for columns

// The images of kernels for products. Each is loaded when a product needs it.
enum class Image : uint32_t {
    Sm90Half,                            // Hopper's wgmma: f16 and bf16
    Sm90Byte,                            // fp8 and 8-bit integers
    Sm90Wide,                            // f32 and f64
    Mma,                                 // mma.sync and plain multiply-adds, from sm_80 on
    Sm90Listed, Sm90Boxed,               // Hopper's that carry out epilogues' lists; of which a tensor comes by the copy engine
    MmaListed,                           // portable ones that do
    count_,
    Text = count_,                       // none: an instance that is compiled with an epilogue; kernel 1 adds up parts
};
struct KernelFacts {
    const char* name;                    // as the image has it
    uint32_t    shared_bytes;            // dynamic, the most of any launch
};
// By the number that a Launch has of them.
std::span<const KernelFacts> kernels_of(Image image);

// Of so many blocks, each of which has a multiprocessor: how many a device holds at once; of H200s the least that was seen.
struct Clusters {
    int32_t of_four = 29, of_eight = 14;
};

// What matters of a device. has: the images that were built, by Image, and that it can run.
struct Device {
    int32_t  compute;                    // 90 for sm_90
    uint32_t units;                      // multiprocessors
    bool     has[size_t(Image::count_)];
    double   memory_bytes_per_us = 4.8e6;    // at most, by its clock; an H200's
    Clusters clusters = {};
};
bool needs(Image image, Dtype a, Dtype b, bool has_list = false);    // whether products of these types may launch kernels of it

// As basic::Launch. cluster: blocks along x; is_early: cuda::Launch says.
struct Launch {
    Image       image;
    uint32_t    kernel;
    uint32_t    grid[3], block, cluster, shared_bytes;
    bool        is_early;
    const void* numbers;                 // the kernel's one parameter, by value; valid during the call
    uint32_t    numbers_bytes;
};

using Launcher = basic::LauncherOf<Launch>;

// How a product is run: what a choice comes to.
struct Way {
    bool     is_portable;                // the family
    bool     copies;                     // the portable family's: what does not lie well, first
    uint32_t instance;
    int32_t  cluster, splits, group;     // Hopper's have all three, the portable family splits
    bool operator==(const Way&) const = default;
};

// All that a way depends on, but for addresses and room.
struct Shape {
    Dtype   a_type, b_type, c_type;
    bool    allows_tf32;
    int64_t m, n, k, batches, a_row, a_depth, a_batch, b_depth, b_column, b_batch, c_row, c_column, c_batch;
    auto operator<=>(const Shape&) const = default;
};
Shape shape_of(const Problem& problem);

class Tuned;

// What one run of a step chose, for the next that is like it.
struct Memory {
    struct Key {
        Shape    shape;
        uint64_t workspace_bytes, tuned;     // tuned: Tuned::count()
        bool     is_a_placed, is_b_placed, is_c_placed;   // where 16 bytes may be moved at once
        bool     is_compiled;                // Place::is_compiled
        bool operator==(const Key&) const = default;
    };
    Key  key = {};
    bool is_known = false;
    bool is_better = false;                  // a finisher: than the product without its epilogue
    bool is_declined = false;                // the last run was nothing for it; whoever runs it says when that may be otherwise
    Way  way = {};
};
inline void remember(Memory* memory, const Way& way, bool is_better)
{
    if (memory) memory->is_known = true, memory->is_better = is_better, memory->way = way;
}

// workspace: 256-byte aligned, never exceeded.
struct Place {
    void*                  workspace;
    uint64_t               workspace_bytes;
    const Launcher&        launch;
    const basic::Launcher& launch_basic;     // for copies of operands
    const Driver*          driver;           // encodes tensor maps; null: only what needs none is launched
    Memory*                memory = nullptr; // of the step; null: none
    const Tuned*           tuned = nullptr;  // ways that were measured; null: none
    bool                   is_compiled = false;      // a step behind it that the epilogue is of would be no interpreter's
};

// All ways that may be worth a measurement in so much workspace, what a model thinks the fastest first: those that it has
// within so many times of that.
std::vector<Way> ways(const Problem& problem, const Device& device, uint64_t workspace_bytes);
inline constexpr double WAYS_WITHIN = 2;
struct CostedWay { Way way; double us; };
// Whether it may run in that way; and where it may, that. Nothing here allocates.
bool can_run_so(const Problem& problem, const Device& device, uint64_t workspace_bytes, const Way& way);
void run_so(const Problem& problem, const Device& device, const Way& way, const Place& place);

// An instance that a text is made of: with an epilogue in it, it is one kernel for products of these types and this way of
// lying.
struct Finisher {
    bool     is_portable;                // the family
    uint32_t instance, variant;
    uint32_t shared_bytes;               // dynamic, the most of any launch
    kernels::EpilogueKind kinds[kernels::EPILOGUE_TENSORS];      // how the epilogue's tensors come
    int32_t  part_length, parts_each;    // of folds: so many rows (columns) give so many parts
    bool     has_outer = false;          // batches of tensors may be two axes
    bool     makes_operand = false;      // of gemm_prologue.h: b's text is in it as well
    bool     is_listed = false;          // no text: a shipped kernel that carries out the epilogue's list
    bool     has_few_rows = false;       // for few rows, or one, which are columns to Hopper's kernels
};
inline int64_t parts_of(const Finisher& f, int64_t length) { return (length + f.part_length - 1) / f.part_length * f.parts_each; }
inline bool has_folds(const Problem& p) { return p.epilogue.count > 0 && p.epilogue.tensor[p.epilogue.count - 1].kind >= kernels::OVER_COLUMNS; }
inline bool has_folds_over(const Problem& p, kernels::EpilogueKind axis) { return has_folds(p) && p.epilogue.tensor[p.epilogue.count - 1].kind == axis; }
inline constexpr int FINISHER_FUNCTIONS = 2;
// A function of a text in the words of its headers: launch bounds, the struct that it is told, what it calls with that.
struct FunctionWords {
    std::string bounds, numbers, call;
};

// Bytes that let run() choose freely. is_fixed: all runs have these extents and strides; else it grows with each extent,
// whatever the strides, so that what the largest need is enough for all smaller ones. Addresses do not matter.
uint64_t workspace(const Problem& largest, const Device& device, bool is_fixed);
// False: these kernels cannot do it (in so much workspace), basic::matmul and a fused kernel can. Nothing of the epilogue
// but is_cast and c_type matters here.
bool can_run(const Problem& problem, const Device& device, uint64_t workspace_bytes);
// Where can_run says so. Nothing here allocates, locks or throws; what is launched depends on the problem, the device and
// the workspace's size alone.
void run(const Problem& problem, const Device& device, const Place& place);

// The instance to compile with this problem's epilogue; none where the product and a kernel of its own behind it are as fast.
// way: what was measured of it; null: nothing.
std::optional<Finisher> finisher_for(const Problem& problem, const Device& device, const Way* way);
// epilogue, operand: texts; empty: none.
std::string finisher_text(const Finisher& finisher, const std::string& epilogue, const std::string& operand = {});
// False: another instance, or the product without its epilogue, is better for this one. As run() otherwise.
bool run_finished(const Problem& problem, const Device& device, const Finisher& finisher, const Place& place);

// With the epilogue as a list (EpilogueForm::in_list), by shipped kernels. False: none of them takes it, or the product and a kernel behind it are
// faster; nothing was launched. As run() otherwise.
bool run_listed(const Problem& problem, const Device& device, const Place& place);
// How its folds are cut, whichever of them runs it: part_length and parts_each, by the axis that kernels fold.
Finisher listed_parts(const Problem& problem, const Device& device, uint64_t workspace_bytes);
// Whether lists fold as this one does, as kernels see it: over rows from no pivot.
inline bool has_listed_folds(const Problem& p) { return !has_folds_over(p, kernels::OVER_ROWS) || !p.is_pivoted; }
// As it is cut in the most parts.
inline constexpr Finisher MOST_LISTED_PARTS = {false, 0, 0, 0, {}, kernels::LIST_PART_ROWS, 1};

// The epilogue as kernels want it: which of its tensors come several at once.
kernels::Epilogue settled(const Problem& problem);

}  // namespace ng::cuda::gemm
