// Plans of expressions over named operands, outputs between bars, as tests of what comes before kernels and products ask for them.
#pragma once
#include "jit/parse.h"
#include "jit/plan.h"

#include <algorithm>

namespace ng {

struct Operand { const char* name; Extents dims; Dtype type = Dtype::f32; };

// alias: the params that outputs are written in place of; turned_bytes: as schedule() takes them.
inline Plan planned(const std::vector<Operand>& operands, std::string_view words, const std::vector<int32_t>& alias = {}, int64_t turned_bytes = NEVER_TURNED, int32_t lengths = 0)
{
    Graph g;
    std::vector<std::string_view> names;
    std::vector<NodeRef> params, roots;
    std::vector<Target>  targets;
    const auto layout = [](const Extents& dims, Dtype t) {
        Layout l;
        l.dtype = t, l.dims = dims, l.strides = dense_strides(dims);
        return l;
    };
    for (const Operand& o : operands) names.push_back(o.name), params.push_back(build::param(g, uint32_t(params.size()), layout(o.dims, o.type)));
    for (size_t j = 0;; j++) {
        const size_t bar = std::min(words.find(" | "), words.size());
        roots.push_back(parse(g, words.substr(0, bar), names, params));
        Target t;
        t.layout = layout(roots.back()->dims(), roots.back()->dtype), t.alias_param = j < alias.size() ? alias[j] : -1;
        targets.push_back(t);
        if (bar == words.size()) break;
        words.remove_prefix(bar + 3);
    }
    return schedule(roots, targets, lengths, Fusion::Usual, nullptr, turned_bytes);
}

}  // namespace ng
