// Graphs of every kind that saved programs are tried with.
#pragma once
#include "jit/grad.h"
#include "jit/parse.h"
#include "jit/serial.h"
#include "jit/snapshot.h"

#include <algorithm>

namespace samples {

using namespace ng;

inline Layout layout(Dtype t, Extents dims)
{
    Layout l;
    l.dtype = t, l.dims = std::move(dims), l.strides = dense_strides(l.dims);
    return l;
}

// Values of many kinds, under names for texts; lengths -1 and -2.
struct Room {
    Graph graph;
    std::vector<std::string_view> names;
    std::vector<NodeRef> values;

    Room()
    {
        const Extent n = Extent::variable(0), m = Extent::variable(1);
        param("a", Dtype::f32, {4, 3});
        param("row", Dtype::f32, {3});
        param("whole", Dtype::i32, {4, 3});
        param("half", Dtype::f16, {4, 3});
        param("long", Dtype::f32, {n, 3});
        param("x", Dtype::f32, {2, 4, 9, 9});
        param("w", Dtype::f32, {8, 4, 3, 3});
        param("key", Dtype::u64, {});
        param("flag", Dtype::bool_, {4, 1});
        param("at", Dtype::i64, {5});
        param("wide", Dtype::f32, {n, m, 2});
        param("bytes", Dtype::u8, {4, 6});
        give("s", build::scalar(graph, Dtype::f32, 4));
    }
    void give(std::string_view name, NodeRef value) { names.push_back(name), values.push_back(std::move(value)); }
    void param(std::string_view name, Dtype t, Extents dims) { give(name, build::param(graph, uint32_t(values.size()), layout(t, std::move(dims)))); }
    NodeRef operator()(std::string_view text) { return parse(graph, text, names, values); }
    NodeRef at(std::string_view name) const { return values[size_t(std::ranges::find(names, name) - names.begin())]; }
    NodeRef slope(std::string_view text, std::string_view by)
    {
        std::vector<NodeRef> dx;
        const NodeRef y = (*this)(text), x = at(by);
        grad(graph, {&y, 1}, {}, {&x, 1}, dx);
        return dx[0];
    }
};

inline CompileOptions two_lengths()
{
    CompileOptions o;
    o.length_max = {1000, 20};
    return o;
}

inline const char* const TEXTS[] = {
    "a + row * 2 - 1",
    "tanh(a @ row) / (row @ row)",
    "where(flag, a, -a)",
    "softmax(a, 1)",
    "log_softmax(long, 1)",
    "sum(a, [0, 1])",
    "mean(long, 0)",
    "var(a, 1) + std(a, 1) + norm(a, 1)",
    "logsumexp(long, 1)",
    "argmax(a, 1) + argmin(whole, 1)",
    "any(flag, 0)",
    "prod(whole, 1)",
    "f32(half) * s",
    "f16(a) + half",
    "bitcast(a, u32) ^ 0xff",
    "reshape(long, [3*(-1)])",
    "a[1:3, ::-1]",
    "long[2:-1]",
    "wide[1:, ::-1, 0]",
    "concat([a, a * 2, f32(whole)], 0)",
    "concat([long, long[3:]], 0)",
    "take(a, at, 0)",
    "put(a, at, row, 0, sum)",
    "put(put(a, at, row, 0, last), at, 2, 0, max)",
    "scan(a, 1, sum, exclusive, reverse)",
    "argsort(a, 1, reverse)",
    "segment(a, at, max)",
    "window(long, 0, key, 2)",
    "long @ permute(a, [1, 0])",
    "matmul(a, permute(a, [1, 0]), tf32)",
    "relu(conv(x, w, pad = 1, stride = 2, pad_value = 0.5))",
    "pool(x, max, window = 3, stride = 2, pad = 1)",
    "pool(x, mean, window = [2, 3], ceil, count_pad)",
    "pool(x, l2, window = 2, channel_window = 2)",
    "random(normal, f32, [4, 3], key, 7) + random(uniform, f32, [4, 3], key)",
    "cast_stochastic(a, bf16, 3, key, 1)",
    "iota(f32, [3, 4], 1) + length(-2)",
    "view(a, [2, 2], [3, -1], 2)",
    "keep(exp(a)) + surrogate(floor(a), a)",
    "broadcast(row, [5, 4, 3]) * -0.0",
    "a * inf + nan",
};

// Programs of every kind, as bytes.
inline std::vector<std::string> programs(Room& room)
{
    std::vector<std::string> out;
    for (const char* const t : TEXTS) {
        const NodeRef root = build::tag(room.graph, room(t), "y");
        out.push_back(save({&root, 1}, two_lengths()));
    }
    for (const NodeRef& d : {room.slope("pool(x, max, window = 3)", "x"), room.slope("conv(x, w, stride = 2)", "w"), room.slope("wide[1:, ::-1]", "wide")})
        out.push_back(save({&d, 1}, two_lengths()));
    return out;
}

// What loading says; NG_OK: nothing.
inline Error fault(std::string_view bytes)
{
    try {
        load(bytes);
    } catch (const Error& e) {
        return e;
    }
    return Error(NG_OK, "");
}

}  // namespace samples
