// Plans of texts over named parameters, for tests that look at single steps.
#pragma once
#include "jit/parse.h"
#include "jit/plan.h"

#include <vector>

namespace ng::tests {

struct NamedParam {
    std::string_view name;
    Extents          dims;
    Dtype            type = Dtype::f16;
};

inline Layout dense_layout(Extents dims, Dtype t)
{
    Layout l;
    l.dtype = t, l.dims = dims, l.strides = dense_strides(dims);
    return l;
}

// One output each, row-major. `s` is an f32 at byte 4 of the scalars.
inline Plan plan_of_texts(const std::vector<std::string_view>& outputs, const std::vector<NamedParam>& named)
{
    Graph g;
    std::vector<std::string_view> names;
    std::vector<NodeRef> params;
    for (const NamedParam& p : named) {
        names.push_back(p.name);
        params.push_back(build::param(g, uint32_t(params.size()), dense_layout(p.dims, p.type)));
    }
    names.push_back("s"), params.push_back(build::scalar(g, Dtype::f32, 4));
    std::vector<NodeRef> roots;
    std::vector<Target>  targets;
    for (const std::string_view words : outputs) {
        roots.push_back(parse(g, words, names, params));
        targets.emplace_back().layout = dense_layout(roots.back()->dims(), roots.back()->dtype);
    }
    return schedule(roots, targets, 0);
}
inline Plan plan_of_text(std::string_view words, const std::vector<NamedParam>& named) { return plan_of_texts({words}, named); }

}  // namespace ng::tests
