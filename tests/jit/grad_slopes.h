// A graph under derivation, and the check that what ng::grad gives are the slopes of what it is given.
#pragma once
#include "jit/grad.h"
#include "jit/parse.h"
#include "tests/jit/naive_graph.h"

#include <doctest/doctest.h>

#include <random>

using namespace ng;

struct Slopes {
    Graph                g;
    naive::Inputs        in;
    std::vector<NodeRef> variables;
    std::mt19937         random{7};
    int64_t              next = 0;

    Layout layout(Dtype t, Extents dims)
    {
        Layout l;
        l.dtype = t, l.dims = dims, l.strides = dense_strides(dims);
        return l;
    }
    std::vector<int64_t> sizes(const Extents& dims)
    {
        std::vector<int64_t> out;
        for (const Extent& e : dims) out.push_back(e.value(in.lengths));
        return out;
    }
    // A param of random values, apart from each other by 1 / 40 at least, so that steps of 1e-3 reach no tie.
    NodeRef param(Extents dims, double low = -2, double high = 2, Dtype t = Dtype::f64)
    {
        naive::Value v = naive::zeros(sizes(dims));
        for (size_t i = 0; i < v.v.size(); i++) v.v[i] = low + (high - low) * (double(i) + 0.25 + 0.5 * std::uniform_real_distribution<double>()(random)) / double(v.v.size());
        std::shuffle(v.v.begin(), v.v.end(), random);
        return param(std::move(v), dims, t);
    }
    NodeRef param(naive::Value v, Extents dims, Dtype t = Dtype::f64)
    {
        const NodeRef n = build::param(g, uint32_t(next), layout(t, dims));
        in.params[next++] = std::move(v);
        if (is_float(t)) variables.push_back(n);
        return n;
    }
    NodeRef integers(std::vector<int64_t> dims, std::vector<double> v) { return param({dims, std::move(v)}, Extents(dims.begin(), dims.end()), Dtype::i32); }
    NodeRef text(std::string_view words, std::vector<std::string_view> names, std::vector<NodeRef> values) { return parse(g, words, names, values); }

    NodeRef derived(const NodeRef& y, const NodeRef& dy, const NodeRef& x, bool* missing = nullptr)
    {
        std::vector<NodeRef> dx;
        const NodeRef seeds[] = {dy};
        const bool none = grad(g, {&y, 1}, dy ? std::span(seeds) : std::span<const NodeRef>(), {&x, 1}, dx);
        if (missing) *missing = none;
        REQUIRE(dx.size() == 1);
        CHECK(same(dx[0]->shape, x->shape));
        CHECK(dx[0]->dtype == x->dtype);
        return dx[0];
    }
    std::vector<double> numbers(const NodeRef& e) { return naive::value(e, in).v; }

    // Every derivative of y against differences, for a random seed; again of every derivative while orders are left.
    // The bound: steps of 1e-3 leave h^4 f''''' / 480 = 1e-12 f''''' / 480, and 1e-16 f / h = 1e-13 f of rounding.
    void check(const NodeRef& y, int orders = 1)
    {
        std::vector<NodeRef> below = variables;
        const NodeRef seed = param(y->dims(), 0.5, 1.5, y->dtype);
        const naive::Value weights = in.params.at(seed->value);
        std::vector<NodeRef> dx;
        const NodeRef seeds[] = {seed};
        grad(g, {&y, 1}, seeds, below, dx);
        for (size_t i = 0; i < dx.size(); i++) {
            const std::vector<double> got = numbers(dx[i]);
            for (size_t k = 0; k < got.size(); k++) {
                const naive::Slope want = naive::slope(y, weights, in, below[i]->value, k);
                INFO("variable " << i << ", element " << k << ": " << got[k] << ", by differences " << want.slope);
                CHECK(std::abs(got[k] - want.slope) <= 1e-8 * (1 + std::abs(want.slope)));
            }
            if (orders > 1) check(dx[i], orders - 1);
        }
        variables = below;
    }
};
