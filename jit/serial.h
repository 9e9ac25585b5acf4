// Programs as bytes: a graph and its options, checked by the builders when they are read again.
#pragma once
#include "jit/compile_options.h"

#include <string>
#include <string_view>

namespace ng {

// NG_E_INVALID names a leaf's tag where there is one: saved programs have none (contract E7).
std::string save(std::span<const NodeRef> roots, const CompileOptions& options);

struct Saved {
    std::vector<NodeRef> roots;
    CompileOptions       options;
};
// Any bytes: NG_E_INVALID, or what a builder said, for those that are no program. Work and memory are in proportion to
// the number of bytes.
Saved load(std::string_view bytes);

}  // namespace ng
