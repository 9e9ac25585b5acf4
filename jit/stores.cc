// Book-keeping of buffers and views for the scheduler.
#include "jit/stores.h"

#include <algorithm>

namespace ng {

Stores::Stores(const Snapshot& graph, Plan& plan)
    : graph_(graph), plan_(plan), place_(graph.size(), -1), seen_(graph.size(), -1), owner_(graph.size(), -1), unwritten_(graph.size(), false)
{
}

int32_t Stores::add_buffer(Buffer b)
{
    plan_.buffers.push_back(std::move(b));
    return int32_t(plan_.buffers.size()) - 1;
}

View Stores::dense(uint32_t node)
{
    const Node& n = graph_[node];
    Buffer b{Place::Work};
    b.dtype = n.dtype, b.count = product(n.dims());
    return {add_buffer(b), n.dtype, 0, n.dims(), dense_strides(n.dims())};
}

void Stores::assign(uint32_t node, View view, int32_t step)
{
    views_.push_back(std::move(view));
    place_[node] = int32_t(views_.size()) - 1;
    if (step >= 0) producers_[node] = {step};
}

const View& Stores::source(uint32_t node)
{
    if (place_[node] >= 0) return views_[size_t(place_[node])];
    const Node& n = graph_[node];
    int32_t buffer;
    if (n.op == Op::param) {
        const auto [at, fresh] = params_.try_emplace(n.value, -1);
        if (fresh) {
            Buffer b{Place::Arg};
            b.index = int32_t(n.value), b.dtype = n.dtype;
            at->second = add_buffer(b);
        }
        buffer = at->second;
    } else {
        const auto [at, fresh] = leaves_.try_emplace(leaf_tensor(n).get(), -1);
        if (fresh) {
            Buffer b{Place::Leaf};
            b.index = int32_t(plan_.leaves.size()), b.dtype = n.dtype;
            plan_.leaves.emplace_back(&n);
            at->second = add_buffer(b);
        }
        buffer = at->second;
    }
    View v{buffer, n.dtype, 0, n.dims(), n.extra->extents};
    if (n.op == Op::param) v.strides = std::ranges::lower_bound(plan_.args, int32_t(n.value), {}, &Port::index)->strides;    // which may be known when run only
    views_.push_back(std::move(v));
    place_[node] = int32_t(views_.size()) - 1;
    return views_.back();
}

int32_t Stores::param_buffer(int64_t index) const
{
    const auto at = params_.find(index);
    return at == params_.end() ? -1 : at->second;
}

int32_t Stores::leaf_buffer(const void* tensor) const
{
    const auto at = leaves_.find(tensor);
    return at == leaves_.end() ? -1 : at->second;
}

const View* Stores::stored(uint32_t node)
{
    if (place_[node] >= 0) return &views_[size_t(place_[node])];
    if (graph_.ops[node] == Op::param || graph_.ops[node] == Op::leaf) return &source(node);
    if (owner_[node] < 0) return nullptr;
    unwritten_[node] = true;
    assign(node, dense(node), owner_[node]);
    return &views_[size_t(place_[node])];
}

bool Stores::claim_store(uint32_t node)
{
    const bool was = unwritten_[node];
    unwritten_[node] = false;
    return was;
}

// Where viewed() finds it: what was seen through movement before a kernel came to own it is still seen that way.
uint32_t Stores::bottom(uint32_t node) const
{
    while (is_movement(graph_.ops[node]) && (seen_[node] >= 0 || (place_[node] < 0 && owner_[node] < 0))) node = graph_.arg(node, 0);
    return node;
}

const View* Stores::viewed(uint32_t node)
{
    if (seen_[node] >= 0) return &views_[size_t(seen_[node])];
    std::vector<uint32_t> path;
    uint32_t at = node;
    for (; seen_[at] < 0 && is_movement(graph_[at].op) && place_[at] < 0 && owner_[at] < 0; at = graph_.arg(at, 0)) path.push_back(at);
    const View* v = seen_[at] >= 0 ? &views_[size_t(seen_[at])] : stored(at);
    if (!v) return nullptr;
    View now = *v;
    while (!path.empty()) {
        const std::optional<View> next = through_view(graph_[path.back()], now);
        if (!next) return nullptr;
        now = *next;
        views_.push_back(now);
        seen_[path.back()] = int32_t(views_.size()) - 1;
        path.pop_back();
    }
    return seen_[node] >= 0 ? &views_[size_t(seen_[node])] : v;
}

}  // namespace ng
