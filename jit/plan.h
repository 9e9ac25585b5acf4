// What a schedule gives: buffers, and the steps that read and write them in order.
#pragma once
#include "jit/build.h"
#include "jit/kernel.h"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace ng {

enum class Place : uint8_t { Arg, Leaf, Out, Work };

struct Buffer {
    Place   place;
    int32_t index = -1;          // of the param, of Plan::leaves, of the output
    Dtype   dtype = Dtype::f32;
    Extent  count = 0;           // Work: elements

    int32_t first = -1, last = -1;   // steps that use it
};

// Where a node's elements lie: offset and strides in elements from the buffer's first.
struct View {
    int32_t buffer = -1;
    Dtype   dtype = Dtype::f32;
    Extent  offset = 0;
    Extents dims, strides;
};

struct Step {
    NodeRef node;                // of a call; null: fused
    std::shared_ptr<Kernel> kernel;
    std::vector<int32_t> buffers;    // fused: the kernel's buffer numbers are places in this list
    std::vector<View> in;        // calls: operands
    View    out;                 // calls: the result
    bool    in_place = false;    // put: x is where the result goes
    bool    epilogue = false;    // fused: works on the elements of the product before it as they come
    bool    folds = false;       // fused: the same, but that it folds what it makes of them
    std::vector<int32_t> turned; // fused: an epilogue but that its axes stand in another order; these are the product's in turn
    bool    finishes = false;    // copies a temporary over an argument that is read until then
    int32_t feeds = -1;          // fused: the product that alone reads what it stores, and could do its work then: a step behind it
    std::vector<int32_t> after;  // steps that come before
    std::string name;
    // Whether it may run with the product before it, as an epilogue of any kind.
    bool runs_with_product() const { return epilogue || folds || !turned.empty(); }
};

// What must hold when run: low <= value <= high.
struct Check {
    Extent      low, value, high;
    std::string sentence;
};

struct Port {                    // an argument or an output, as declared
    int32_t index = -1;
    Dtype   dtype = Dtype::f32;
    Extents dims, strides;
    bool    any = false;         // any strides will do
    bool    row_major = true;
    bool    hidden = false;      // strides known when run, as variables: any, or row-major of a tensor that may be longer
    std::string name;
};

struct Snapshot;

struct Plan {
    std::vector<Port>   args;        // params that occur, ascending index
    std::vector<Port>   outs;
    std::vector<NodeRef> leaves;
    std::vector<Buffer> buffers;
    std::vector<Step>   steps;       // in order
    std::vector<Check>  checks;
    std::vector<bool>   direct;      // output j is written in place of what it aliases
    std::vector<int64_t> most;       // the greatest values of lengths; empty: nothing is known of them
    int32_t  lengths = 0;            // variables 0 .. lengths - 1
    int32_t  hidden = 0;             // variables after them: strides, in the order of args then outs
    uint32_t scalar_bytes = 0;
};

// Variables of these lengths, where all that hidden strides are of is dense.
std::vector<int64_t> dense_variables(const Plan& plan, std::span<const int64_t> lengths);

// The last of a product's steps: what follows it runs with it.
int32_t end_of_product(const Plan& plan, int32_t product);

// What outputs will be, for the scheduler. alias: the params (or leaves, by tensor) whose memory output j may share.
struct Target {
    Layout  layout;                  // dims that the expression broadcasts to; any: strides known when run
    bool    declared = false;        // else the expression's shape, row-major
    int32_t alias_param = -1;        // exactly it, or anywhere in its memory
    std::vector<const void*> alias_leaves;   // tensors that it is, element by element
    bool    overlaps = false;        // it shares memory with what is read in some other way: write it last
};

// What shared and kept values are worth: stored for those who read them again, computed again where that stores less, or
// each operation a kernel of its own.
enum class Fusion { Usual, Lean, None };

// known: a snapshot of the roots, where the caller has one. turned_bytes: from how many on operands that lie across the rows of a fold are turned
// by a step before.
inline constexpr int64_t NEVER_TURNED = INT64_MAX;
Plan schedule(std::span<const NodeRef> roots, std::span<const Target> targets, int32_t lengths, Fusion fusion = Fusion::Usual, const Snapshot* known = nullptr, int64_t turned_bytes = NEVER_TURNED);

}  // namespace ng
