// Rewrites a graph, operands first: operations with a bound take their operands as f64.
#include "jit/reference.h"

#include "jit/build.h"
#include "jit/snapshot.h"

namespace ng {
namespace {

bool rounds_freely(const Node& n)
{
    if (!is_float(n.dtype)) return false;
    if (is_map(n.op)) return info(n.op).ulp > 0;
    switch (n.op) {
    case Op::sum: case Op::prod: case Op::matmul: case Op::conv: case Op::conv_dx: case Op::conv_dw: case Op::pool_dx: return true;
    case Op::scan: case Op::segment: return n.int_at(0) == NG_FOLD_SUM || n.int_at(0) == NG_FOLD_PROD;     // others pick elements; put rounds each (N10)
    case Op::pool: return pool_shape(n).kind != NG_POOL_MAX;
    default: return false;
    }
}

NodeRef computed(Graph& g, const Node& n, std::vector<NodeRef> args)
{
    const bool doubled = rounds_freely(n);
    if (doubled)
        for (NodeRef& a : args)
            if (is_float(a->dtype)) a = build::cast(g, a, Dtype::f64);
    if (n.op == Op::max && n.extra) return build::greatest(g, args[0], ng_axes(n.value));
    const NodeRef y = is_fold(n.op) ? build::reduce(g, n.op, args[0], ng_axes(n.value), NG_KEEP) : build::rebuild(g, n, args);
    return doubled ? build::cast(g, y, n.dtype) : y;
}

}  // namespace

std::vector<NodeRef> in_double(Graph& g, std::span<const NodeRef> roots)
{
    const Snapshot graph(roots);
    std::vector<NodeRef> now;
    for (uint32_t i = 0; i < graph.size(); i++) {
        const Node& n = graph[i];
        std::vector<NodeRef> args;
        for (const uint32_t a : graph.args(i)) args.push_back(now[a]);
        if (args.empty()) now.push_back(NodeRef(&n));
        else if (n.op == Op::custom_grad || n.op == Op::surrogate) now.push_back(args[0]);
        else now.push_back(computed(g, n, std::move(args)));
    }
    std::vector<NodeRef> out;
    for (const uint32_t r : graph.roots) out.push_back(now[r]);
    return out;
}

}  // namespace ng
