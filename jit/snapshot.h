// A graph as arrays: every node below some roots once, operands first, with only the edges that are computed.
#pragma once
#include "jit/graph.h"

#include <unordered_map>

namespace ng {

struct Snapshot {
    std::vector<const Node*> nodes;
    std::vector<Op>          ops;        // of the nodes: most of what is asked of them, without reading them
    std::vector<uint32_t>    first;      // args of node i: operands[first[i] .. first[i + 1])
    std::vector<uint32_t>    operands;
    std::vector<uint32_t>    uses;       // by computed nodes and roots
    std::vector<uint32_t>    roots;

    explicit Snapshot(std::span<const NodeRef> roots);
    std::span<const uint32_t> args(uint32_t i) const { return std::span(operands).subspan(first[i], first[i + 1] - first[i]); }
    uint32_t arg(uint32_t i, size_t k) const { return operands[first[i] + k]; }
    const Node& operator[](uint32_t i) const { return *nodes[i]; }
    uint32_t size() const { return uint32_t(nodes.size()); }
};

// Of a node's operands, how many are computed when it is: a custom derivative's parts and a surrogate's path are not.
size_t computed_args(const Node& n);
// Passes its operand's elements on unchanged.
bool is_mark(Op op);
bool is_movement(Op op);      // marks, reshape, broadcast, permute, slice, view, bitcast
bool is_call(Op op);          // a step of its own: products, pools, put, scan, segment, argsort

}  // namespace ng
