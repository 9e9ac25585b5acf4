// A random program: inputs with their values, nodes in order, outputs, and how it is to be run. Plain data, cheap to copy.
#pragma once
#include "tests/random/polynomial.h"
#include "tests/random/row_table.h"

#include <memory>

namespace programs {

enum class Form : uint8_t {
    Input, Constant, Length, Iota, Random, Map, Reduce, Norm, Cast, Stochastic, Bitcast, Reshape, Broadcast, Permute, Slice, Window,
    Concat, View, Take, Put, Scan, Segment, Argsort, Matmul, Conv, ConvDx, ConvDw, Pool, PoolDx, Mark, count_
};

struct Node {
    Form              form;
    int               row = -1;        // of maps and reductions
    std::vector<int>  args = {};       // earlier nodes
    // Constant: whether it is whole, its value. Length, Input: which. Iota: axis, dims. Random: kind, dims. Reduce: axes, flags.
    // Norm: axes. Stochastic: bits. Reshape, Broadcast: dims. Permute: axes. Slice: axis, start, stop, step. Window: axis, count.
    // Concat, Take: axis. View: offset, dims, strides. Put, Scan: axis, fold, flags. Segment: fold. Argsort: axis, flags.
    // Mark: which of tag, keep, stop, surrogate.
    std::vector<int64_t> ints = {};
    double            number = 0;      // of a constant
    bool              weak = false;    // a literal
    ng_dtype          type = NG_F32;   // given for leaves and casts, else inferred
    Extents           dims = {};       // inferred; of conv_dx and conv_dw given
    ng_conv_desc      conv = {};
    ng_pool_desc      pool = {};
};

using Bytes = std::vector<unsigned char>;

// How a tensor lies in the memory of a larger one that is dense.
enum class Lie : uint8_t { Dense, Permuted, Stepped, Flipped, Shifted };

struct Input {
    enum Source : uint8_t { Param, Leaf, Scalar } source = Param;
    ng_dtype type = NG_F32;
    Extents  dims = {};
    Lie      lie = Lie::Dense;
    bool     any_strides = false;      // of a param: NG_ANY
    int      slot = 0;                 // index of a param, byte of a scalar
    std::vector<std::shared_ptr<const Bytes>> values = {};   // dense, row-major, one a run
};

struct Output {
    int  node;
    Lie  lie = Lie::Dense;
    bool any_strides = false;
    int  over = -1;                    // the input in whose memory it lies
    int  shift = 0;                    // by so many rows
    int  repeat = 0;                   // broadcast along a new first axis of so many; 0: none
};

enum class World : uint8_t { One, Three, NoThreads, Deterministic, count_ };   // contexts

struct Program {
    uint64_t            seed = 0;      // of this program
    bool                wild = false;  // NaN, infinities, extremes: judged against itself only
    bool                compiled = true;
    bool                adopt = false; // what rounds by its order is an output, and what follows is bit-equal
    bool                heads = false; // lengths are given, tensors are longer
    bool                twice = false; // runs again with some outputs only, from a saved program, from its own text
    World               world = World::One;
    std::vector<Input>  inputs;
    std::vector<Node>   nodes;
    std::vector<Output> outputs;
    std::vector<Dims>   runs;          // lengths of each
    int64_t             slack = 0;     // of length_max
};

const char* form_name(Form form);
// What the node is by the contract, from its arguments' types and dims; false where it is wrong to ask for it.
bool infer(const Table& table, const Program& program, Node& node);
// All of them again, after a change.
bool infer_all(const Table& table, Program& program);
// Whether order of addition or the like may show in its last bits.
bool rounds_by_order(const Table& table, const Node& node);
// Whether its last bits may be others on another device or in other arithmetic.
bool rounds_freely(const Table& table, const Node& node);
// Without nodes and inputs that no output reaches.
Program pruned(const Program& program);

}  // namespace programs
