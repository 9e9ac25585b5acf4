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

// One output, row-major. `s` is an f32 at byte 4 of the scalars.
inline Plan plan_of_text(std::string_view words, const std::vector<NamedParam>& named)
{
    Graph g;
    std::vector<std::string_view> names;
    std::vector<NodeRef> params;
    for (const NamedParam& p : named) {
        names.push_back(p.name);
        params.push_back(build::param(g, uint32_t(params.size()), dense_layout(p.dims, p.type)));
    }
    names.push_back("s"), params.push_back(build::scalar(g, Dtype::f32, 4));
    const std::vector<NodeRef> roots = {parse(g, words, names, params)};
    Target t;
    t.layout = dense_layout(roots[0]->dims(), roots[0]->dtype);
    return schedule(roots, {&t, 1}, 0);
}

}  // namespace ng::tests
