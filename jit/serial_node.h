// One node as a saved program says it, and its way back through the builders.
#pragma once
#include "jit/build.h"

namespace ng::serial {

struct SavedNode {
    Op       op = Op::poison;
    Dtype    dtype = Dtype::f32;
    ShapeRef shape;
    int64_t  value = 0;
    std::vector<NodeRef> args;
    std::vector<int64_t> ints;
    Extents  extents;
    std::string name;
};

// Built anew from operands that were; nothing of the record is trusted. Throws what the builder throws, or
// NG_E_INVALID where type or shape would be others than said.
NodeRef rebuilt(Graph& g, const SavedNode& saved);

}  // namespace ng::serial
