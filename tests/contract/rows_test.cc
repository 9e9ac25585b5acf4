// Every row of ops.def with an extent of 0, and with every element type: it computes, or says which type it does not take.
#include "tests/contract/face.h"

#include <map>
#include <set>

namespace {

struct Type {
    std::string name;
    ng_dtype    code;
    std::string kind;                                        // as in dtypes.def
    bool is_float() const { return kind == "Float"; }
    bool is_integer() const { return kind == "Int" || kind == "Uint"; }
};
const Type TYPES[] = {
#define DTYPE(name, constant, cpp, kind, ...) {#name, constant, #kind},
#include "jit/dtypes.def"
#undef DTYPE
};
std::string plain(const Type& t) { return t.name == "bool_" ? "bool" : t.name; }

struct Word {
    std::string name, domain;
    size_t      arity;
    ng_expr* (*call)(ng_expr* const* x, ng_axes axes, uint32_t flags);
};
#define WORD_1(name) ng_##name(x[0])
#define WORD_2(name) ng_##name(x[0], x[1])
#define WORD_3(name) ng_##name(x[0], x[1], x[2])
const Word MAPS[] = {
#define MAP(name, arity, domain, ...) {#name, #domain, arity, [](ng_expr* const* x, ng_axes, uint32_t) { return WORD_##arity(name); }},
#include "jit/ops.def"
};
const Word FOLDS[] = {
#define FOLD(name, ...) {#name, "fold", 1, [](ng_expr* const* x, ng_axes axes, uint32_t flags) { return ng_##name(x[0], axes, flags); }},
#define STAT(name, ...) {#name, "stat", 1, [](ng_expr* const* x, ng_axes axes, uint32_t flags) { return ng_##name(x[0], axes, flags); }},
#include "jit/ops.def"
};
const Word NORMS[] = {
#define NORM(name, ...) {#name, "norm", 1, [](ng_expr* const* x, ng_axes axes, uint32_t) { return ng_##name(x[0], axes); }},
#include "jit/ops.def"
};
const std::set<std::string> NODES = {
#define NODE(name, ...) #name,
#include "jit/ops.def"
};
#undef WORD_1
#undef WORD_2
#undef WORD_3

struct Rows : Face {
    ng_expr* of(const Type& t, const Dims& dims) { return leaf(shape(t.code, dims), Values(count_of(shape(t.code, dims)), 1)); }
    ng_expr* of(const Dims& dims) { return of(type("f32"), dims); }
    ng_expr* ints(const Values& v) { return leaf(shape(NG_I64, {int64_t(v.size())}), v); }
    ng_expr* key() { return whole(1, NG_U64); }
    static const Type& type(const std::string& name) { return *std::find_if(std::begin(TYPES), std::end(TYPES), [&](const Type& t) { return t.name == name; }); }
    // dims and values of what it gives
    void gives(const std::string& what, ng_expr* e, const Dims& dims, const Values& values = {})
    {
        INFO(what);
        ng_tensor* t = nullptr;
        error = {};
        const ng_status status = ng_eval(c, nullptr, &e, &t, 1, &error);
        CHECK_MESSAGE(status == NG_OK, said());
        if (status != NG_OK) return;
        keep(t);
        const ng_shape d = shape_of(t);
        CHECK(Dims(d.dims, d.dims + d.ndim) == dims);
        CHECK(differs(get(t), values) == "");
    }
    // NG_OK, or NG_E_DTYPE with a sentence that names the operation and the type
    void takes(bool is_taken, const std::string& word, const Type& t, ng_expr* e)
    {
        INFO(word, " of ", plain(t));
        const ng_status status = fault(e);
        const std::string sentence = said();
        CHECK_MESSAGE(status == (is_taken ? NG_OK : NG_E_DTYPE), sentence);
        if (status >= 0 || is_taken) return;
        CHECK_MESSAGE(sentence.find("ng_" + word + ": ") == 0, sentence);
        CHECK_MESSAGE(sentence.find(plain(t)) != std::string::npos, sentence);
    }
};

// What a fold or statistic of no numbers is. Those that are not here have no value then.
const std::map<std::string, double> OF_NOTHING = {
    {"sum", 0}, {"prod", 1}, {"any", 0}, {"all", 1}, {"mean", NOT_A_NUMBER}, {"var", NOT_A_NUMBER}, {"std", NOT_A_NUMBER}, {"norm", 0}, {"logsumexp", -INF}, {"count_nonzero", 0}};

}  // namespace

TEST_CASE("empty: every map of every type gives nothing of nothing, its operands beside it broadcast")
{
    Rows f;
    for (const Word& w : MAPS)
        for (const Type& t : TYPES) {
            if (w.domain == "Bits" && t.is_float()) continue;
            const std::string what = w.name + " of " + plain(t);
            ng_expr *none = f.of(t, {3, 0}), *column = f.of(t, {3, 1}), *one = f.of(t, {1});
            ng_expr *all[] = {none, none, none}, *first[] = {none, column, one}, *last[] = {column, one, none};
            f.gives(what, w.call(all, 0, 0), {3, 0});
            if (w.arity > 1) f.gives(what + ", others of 1", w.call(first, 0, 0), {3, 0});
            if (w.arity > 2) f.gives(what + ", others of 1", w.call(last, 0, 0), {3, 0});
        }
}

TEST_CASE("empty: every fold and statistic of nothing is its identity or says that there is nothing to choose from")
{
    Rows f;
    for (const Word& w : FOLDS)
        for (const Type& t : TYPES) {
            const std::string what = w.name + " of " + plain(t);
            ng_expr *flat = f.of(t, {3, 0}), *none = f.of(t, {0});
            f.gives(what + ", the other axis", w.call(&flat, NG_AXIS_0, 0), {0});
            f.gives(what + ", the other axis kept", w.call(&flat, NG_AXIS_0, NG_KEEP), {1, 0});
            f.gives(what + ", no axis", w.call(&flat, 0, 0), {3, 0});
            const auto value = OF_NOTHING.find(w.name);
            if (value == OF_NOTHING.end()) {
                for (ng_expr* e : {w.call(&flat, NG_AXIS_1, 0), w.call(&none, NG_ALL, NG_KEEP)}) {
                    CHECK_MESSAGE(f.fault(e) == NG_E_SHAPE, what);
                    CHECK_MESSAGE(f.says("ng_" + w.name + ": "), f.said());
                    CHECK_MESSAGE(f.says("has no element to choose from"), f.said());
                }
                continue;
            }
            f.gives(what + ", rows", w.call(&flat, NG_AXIS_1, 0), {3}, Values(3, value->second));
            f.gives(what + ", all", w.call(&none, NG_ALL, NG_KEEP), {1}, {value->second});
        }
    for (const Word& w : NORMS)
        for (const Type& t : TYPES) {
            ng_expr* flat = f.of(t, {3, 0});
            for (const ng_axes axes : {ng_axes(NG_AXIS_0), ng_axes(NG_AXIS_1), NG_ALL}) f.gives(w.name + " of " + plain(t), w.call(&flat, axes, 0), {3, 0});
        }
}

TEST_CASE("empty: a program's length may be 0 in every map, fold and statistic")
{
    Rows f;
    const ng_shape d = shape(NG_I32, {-1});
    ng_expr* x = f.param(0, d);
    ng_tensor *none = f.make(shape(NG_I32, {0})), *three = f.tensor(shape(NG_I32, {3}), {1, 2, 3});
    for (const Word& w : MAPS) {
        ng_expr* all[] = {x, x, x};
        ng_expr* e = w.call(all, 0, 0);
        ng_prog* p = f.compile({e}, {.length_max = {3}});
        CHECK_MESSAGE(f.run(p, {.args = {none}, .out = {f.make(shape(f.type_of(e), {0}))}}) == NG_OK, w.name, f.said());
        CHECK_MESSAGE(f.run(p, {.args = {three}, .out = {f.make(shape(f.type_of(e), {3}))}}) == NG_OK, w.name, f.said());
    }
    for (const Word& w : FOLDS) {
        ng_expr* e = w.call(&x, NG_ALL, 0);
        ng_prog* p = f.compile({e}, {.length_max = {3}});
        ng_tensor* out = f.make(shape(f.type_of(e), {}));
        const ng_status status = f.run(p, {.args = {none}, .out = {out}});
        const auto value = OF_NOTHING.find(w.name);
        CHECK_MESSAGE(status == (value == OF_NOTHING.end() ? NG_E_SHAPE : NG_OK), w.name, f.said());
        if (status == NG_OK) CHECK_MESSAGE(differs(f.get(out), {value->second}) == "", w.name);
        CHECK(f.run(p, {.args = {three}, .out = {out}}) == NG_OK);
    }
}

TEST_CASE("empty: every node that has a shape gives nothing of nothing, and of what is left out the identity")
{
    Rows f;
    std::set<std::string> seen = {"poison", "scalar", "length", "constant"};          // the first is no value, the others have no extents
    const auto gives = [&](const std::string& node, ng_expr* e, const Dims& dims, const Values& values = {}) { seen.insert(node), f.gives(node, e, dims, values); };
    const Dims to_seven = {0, 7}, to_rows = {5, 0}, to_none = {0};
    const int32_t turned[] = {1, 0}, more[] = {0, -1};
    ng_expr *none = f.of({0}), *flat = f.of({3, 0}), *tall = f.of({0, 4}), *four = f.of({4}), *at = f.ints({});
    ng_expr *both[] = {none, none}, *around[] = {none, four, none}, *beside[] = {flat, flat};
    const ng_shape nothing = shape(NG_F32, {0}), rows = shape(NG_F32, {0, 4}), columns = shape(NG_F32, {4, 0}), bits = shape(NG_U32, {2, 0}), two = shape(NG_F32, {2});
    gives("leaf", none, {0});
    {
        ng_prog* p = f.compile({f.param(0, nothing)});
        seen.insert("param");
        CHECK_MESSAGE(f.run(p, {.args = {f.make(nothing)}, .out = {f.make(nothing)}}) == NG_OK, f.said());
    }
    for (const int32_t axis : {0, 1}) gives("iota", ng_iota(f.s, &rows, axis), {0, 4}), gives("iota", ng_iota(f.s, &columns, axis), {4, 0});
    gives("random", ng_random(f.s, NG_UNIFORM, f.key(), nullptr, &nothing), {0}), gives("random", ng_random(f.s, NG_NORMAL, f.key(), f.key(), &rows), {0, 4});
    gives("random", ng_random(f.s, NG_BITS, f.key(), nullptr, &bits), {2, 0});
    for (const Type& t : TYPES) gives("cast", ng_cast(flat, t.code), {3, 0}), gives("cast", ng_cast(f.of(t, {0}), NG_F32), {0});
    gives("cast_stochastic", ng_cast_stochastic(flat, NG_F16, 0, f.key(), nullptr), {3, 0}), gives("bitcast", ng_bitcast(flat, NG_I32), {3, 0});
    gives("reshape", ng_reshape(none, to_seven.data(), 2), {0, 7}), gives("broadcast", ng_broadcast(none, to_rows.data(), 2), {5, 0});
    gives("broadcast", ng_broadcast(f.of({1}), to_none.data(), 1), {0});
    gives("permute", ng_permute(flat, turned, 2), {0, 3}), gives("permute", ng_permute(none, more, 2), {0, 1});
    for (const int64_t step : {1, 2, -1}) gives("slice", ng_slice(none, 0, 0, 9, step), {0}), gives("slice", ng_slice(four, 0, 2, 2, step), {0}), gives("slice", ng_slice(flat, 0, 0, 3, 3), {1, 0});
    gives("concat", ng_concat(both, 2, 0), {0}), gives("concat", ng_concat(around, 3, 0), {4}, {1, 1, 1, 1}), gives("concat", ng_concat(beside, 2, 0), {6, 0});
    gives("view", ng_view(none, &nothing, 0), {0}), gives("view", ng_view(four, &nothing, 0), {0}), gives("view", ng_view(none, &rows, 0), {0, 4});
    CHECK(f.fault(ng_view(none, &two, 0)) == NG_E_SHAPE);
    CHECK_MESSAGE(f.says("ng_view: "), f.said());
    gives("take", ng_take(four, at, 0), {0}), gives("take", ng_take(none, f.ints({0, 1}), 0), {2}, {0, 0}), gives("take", ng_take(none, at, 0), {0}), gives("take", ng_take(flat, f.ints({2}), 0), {1, 0});
    gives("window", ng_window(four, 0, f.whole(1), 0), {0}), gives("window", ng_window(none, 0, f.whole(1), 0), {0}), gives("window", ng_window(flat, 0, f.whole(1), 2), {2, 0});
    CHECK(f.fault(ng_window(none, 0, f.whole(0), 1)) == NG_E_SHAPE);
    CHECK_MESSAGE(f.says("ng_window: "), f.said());
    for (const ng_fold how : {NG_FOLD_LAST, NG_FOLD_SUM, NG_FOLD_PROD, NG_FOLD_MIN, NG_FOLD_MAX}) {
        gives("put", ng_put(four, at, none, 0, how), {4}, {1, 1, 1, 1}), gives("put", ng_put(none, f.ints({0, 1}), f.of({2}), 0, how), {0}), gives("put", ng_put(flat, f.ints({0, 0}), f.of({2, 0}), 0, how), {3, 0});
        for (const uint32_t flags : {0u, uint32_t(NG_EXCLUSIVE), uint32_t(NG_REVERSE)}) gives("scan", ng_scan(none, 0, how, flags), {0}), gives("scan", ng_scan(flat, 0, how, flags), {3, 0}), gives("scan", ng_scan(flat, 1, how, flags), {3, 0});
        gives("segment", ng_segment(tall, f.ints({0}), how), {0, 4}), gives("segment", ng_segment(flat, f.ints({0, 2, 3}), how), {2, 0});
    }
    const Values of_nothing[] = {{0, 0}, {0, 0}, {1, 1}, {INF, INF}, {-INF, -INF}};
    for (const ng_fold how : {NG_FOLD_LAST, NG_FOLD_SUM, NG_FOLD_PROD, NG_FOLD_MIN, NG_FOLD_MAX}) gives("segment", ng_segment(none, f.ints({0, 0, 0}), how), {2}, of_nothing[how]);
    for (const uint32_t flags : {0u, uint32_t(NG_REVERSE)}) gives("argsort", ng_argsort(none, 0, flags), {0}), gives("argsort", ng_argsort(flat, 0, flags), {3, 0}), gives("argsort", ng_argsort(flat, 1, flags), {3, 0});
    gives("tag", ng_tag(none, "nothing"), {0}), gives("keep", ng_keep(ng_exp(flat)), {3, 0}), gives("surrogate", ng_surrogate(none, ng_exp(none)), {0});
    ng_expr *dy = f.param(1, nothing), *x = f.leaf(Values{}), *y = ng_exp(x), *slope = ng_mul(dy, y);
    ng_expr* custom = ng_custom_grad(y, dy, &x, &slope, 1);
    gives("custom_grad", custom, {0}), gives("custom_grad", f.grad({custom}, {x})[0], {0});
    seen.erase("window");                                            // no node, a take
    for (const char* product : {"matmul", "conv", "conv_dx", "conv_dw", "pool", "pool_dx"}) seen.insert(product);      // in the next case
    CHECK(seen == NODES);
}

TEST_CASE("empty: products and pools of no images, channels, depth or rows, in every type; a window needs one place at least")
{
    Rows f;
    const auto refused = [&](ng_expr* e, const std::string& sentence) {
        CHECK(f.fault(e) == NG_E_SHAPE);
        CHECK_MESSAGE(f.said().find(sentence) == 0, f.said());
    };
    for (const Type& t : TYPES) {
        INFO(plain(t));
        f.gives("matmul, no depth", ng_matmul(f.of(t, {3, 0}), f.of(t, {0, 4}), nullptr), {3, 4}, Values(12, 0));
        f.gives("matmul, no rows", ng_matmul(f.of(t, {0, 4}), f.of(t, {4, 2}), nullptr), {0, 2});
        f.gives("matmul, no columns", ng_matmul(f.of(t, {3, 4}), f.of(t, {4, 0}), nullptr), {3, 0});
        f.gives("matmul, no batch", ng_matmul(f.of(t, {0, 3, 4}), f.of(t, {4, 2}), nullptr), {0, 3, 2});
        f.gives("matmul, a vector", ng_matmul(f.of(t, {0}), f.of(t, {0, 2}), nullptr), {2}, {0, 0});
        f.gives("conv, no images", ng_conv(f.of(t, {0, 2, 4, 4}), f.of(t, {3, 2, 3, 3}), nullptr), {0, 3, 2, 2});
        refused(ng_conv(f.of(t, {1, 2, 0, 4}), f.of(t, {3, 2, 1, 1}), nullptr), "ng_conv: a window over 1 elements does not fit spatial axis 0 of 0");
        refused(ng_conv(f.of(t, {1, 2, 4, 4}), f.of(t, {3, 2, 0, 3}), nullptr), "ng_conv: w is [3, 2, 0, 3]: filters have known, positive extents");
        f.gives("conv, no channels", ng_conv(f.of(t, {1, 0, 4, 4}), f.of(t, {3, 0, 3, 3}), nullptr), {1, 3, 2, 2}, Values(12, 0));
        f.gives("conv, no filters", ng_conv(f.of(t, {1, 2, 4, 4}), f.of(t, {0, 2, 3, 3}), nullptr), {1, 0, 2, 2});
    }
    const ng_shape x = shape(NG_F32, {0, 2, 4, 4}), w = shape(NG_F32, {3, 2, 3, 3}), no_filters = shape(NG_F32, {0, 2, 3, 3}), image = shape(NG_F32, {1, 2, 4, 4});
    f.gives("conv_dx, no images", ng_conv_dx(f.of({3, 2, 3, 3}), f.of({0, 3, 2, 2}), &x, nullptr), {0, 2, 4, 4});
    f.gives("conv_dx, no filters", ng_conv_dx(f.of({0, 2, 3, 3}), f.of({1, 0, 2, 2}), &image, nullptr), {1, 2, 4, 4}, Values(32, 0));
    f.gives("conv_dw, no images", ng_conv_dw(f.of({0, 2, 4, 4}), f.of({0, 3, 2, 2}), &w, nullptr), {3, 2, 3, 3}, Values(54, 0));
    f.gives("conv_dw, no filters", ng_conv_dw(f.of({1, 2, 4, 4}), f.of({1, 0, 2, 2}), &no_filters, nullptr), {0, 2, 3, 3});
    ng_pool_desc d{};
    d.size = sizeof d, d.window[0] = d.window[1] = 2;
    ng_pool_desc flat = d;                                           // a window over one row
    flat.window[0] = 1;
    for (const ng_pool_kind kind : {NG_POOL_MAX, NG_POOL_MEAN, NG_POOL_L2}) {
        d.kind = flat.kind = kind;
        f.gives("pool, no images", ng_pool(f.of({0, 2, 4, 4}), &d), {0, 2, 2, 2});
        ng_prog* p = f.compile({ng_pool(f.param(0, shape(NG_F32, {1, 1, -1, 4})), &flat)}, {.length_max = {3}});
        CHECK(f.run(p, {.args = {f.make(shape(NG_F32, {1, 1, 0, 4}))}, .out = {f.make(shape(NG_F32, {1, 1, 0, 2}))}}) == NG_E_SHAPE);
        CHECK_MESSAGE(f.says("ng_pool of f32 [1, 1, -1, 4]: no window fits axis 2"), f.said());
        refused(ng_pool(f.of({1, 2, 0, 4}), &flat), "ng_pool: a window over 1 elements does not fit spatial axis 0 of 0");
        refused(ng_pool(f.of({1, 0, 4, 4}), &d), "ng_pool: a window over 1 elements does not fit the 0 channels");
        f.gives("pool_dx, no images", ng_pool_dx(f.of({0, 2, 4, 4}), f.of({0, 2, 2, 2}), &d), {0, 2, 4, 4});
    }
}

TEST_CASE("types: a map of bits takes integers and bool, any other map, fold and statistic takes all; what is refused is named")
{
    Rows f;
    for (const Type& t : TYPES) {
        ng_expr* const x = f.of(t, {2, 3});
        for (const Word& w : MAPS)
            for (size_t odd = 0; odd <= w.arity; odd++) {            // the operand of this type; all at last
                ng_expr* operands[3];
                for (size_t i = 0; i < 3; i++) operands[i] = odd == w.arity || i == odd ? x : f.of(f.type("bool_"), {2, 3});
                f.takes(w.domain != "Bits" || !t.is_float(), w.name, t, w.call(operands, 0, 0));
            }
        for (const Word& w : FOLDS) f.takes(true, w.name, t, w.call(&x, NG_AXIS_1, 0));
        for (const Word& w : NORMS) f.takes(true, w.name, t, w.call(&x, NG_AXIS_1, 0));
        if (t.kind != "Int") continue;
        for (const Word& w : MAPS) {                                 // no type holds all of u64's numbers and negative ones
            ng_expr *const wide = f.of(f.type("u64"), {2, 3}), *operands[] = {x, wide, wide};
            if (w.arity > 1) f.takes(w.domain == "Logic" || w.name == "where", w.name, t, w.call(operands, 0, 0));
        }
    }
}

TEST_CASE("types: what indexes, counts, draws, reads bits or has a slope takes its own types; what is refused is named")
{
    Rows f;
    ng_expr *x = f.of({4}), *at = f.ints({0, 1}), *image = f.of({1, 1, 2, 2});
    const ng_shape pair = shape(NG_F32, {2});
    ng_pool_desc d{};
    d.size = sizeof d, d.window[0] = d.window[1] = 2;
    for (const Type& t : TYPES) {
        const bool real = t.is_float(), whole = t.is_integer();
        ng_expr *two = f.of(t, {2}), *four = f.of(t, {4}), *one = f.of(t, {}), *square = f.of(t, {1, 1, 2, 2});
        const ng_shape d1 = shape(t.code, {2});
        f.takes(whole, "take", t, ng_take(x, two, 0)), f.takes(whole, "put", t, ng_put(x, two, f.of({2}), 0, NG_FOLD_SUM)), f.takes(whole, "segment", t, ng_segment(x, two, NG_FOLD_SUM));
        f.takes(whole, "window", t, ng_window(x, 0, one, 2));
        f.takes(whole, "random", t, ng_random(f.s, NG_UNIFORM, one, nullptr, &pair)), f.takes(whole, "random", t, ng_random(f.s, NG_UNIFORM, f.key(), one, &pair));
        f.takes(t.name == "f32" || t.name == "f64", "random", t, ng_random(f.s, NG_UNIFORM, f.key(), nullptr, &d1)), f.takes(t.name == "f32" || t.name == "f64", "random", t, ng_random(f.s, NG_NORMAL, f.key(), nullptr, &d1));
        f.takes(t.name == "u32", "random", t, ng_random(f.s, NG_BITS, f.key(), nullptr, &d1));
        f.takes(true, "iota", t, ng_iota(f.s, &d1, 0)), f.takes(true, "cast", t, ng_cast(x, t.code)), f.takes(true, "scan", t, ng_scan(four, 0, NG_FOLD_SUM, 0)), f.takes(true, "argsort", t, ng_argsort(four, 0, 0));
        f.takes(real, "cast_stochastic", t, ng_cast_stochastic(x, t.code, 0, f.key(), nullptr)), f.takes(whole, "cast_stochastic", t, ng_cast_stochastic(x, NG_F16, 0, one, nullptr));
        f.takes(bytes_of(t.code) == 4, "bitcast", t, ng_bitcast(x, t.code)), f.takes(t.name == "f32", "view", t, ng_view(x, &d1, 0));
        f.takes(true, "matmul", t, ng_matmul(two, two, nullptr)), f.takes(true, "conv", t, ng_conv(square, square, nullptr));
        f.takes(true, "pool", t, ng_pool(square, &d)), f.takes(real, "pool_dx", t, ng_pool_dx(square, f.of({1, 1, 1, 1}), &d));
        f.takes(real, "surrogate", t, ng_surrogate(x, four));
        // y: what only narrows to x's type is refused, with both
        f.takes(real && t.name != "f64", "put", t, ng_put(x, at, two, 0, NG_FOLD_SUM));
        if (t.name != "f32" && t.name != "f64") f.takes(false, "put", t, ng_put(four, at, f.leaf64({1, 2}), 0, NG_FOLD_SUM));
        ng_expr *dx = nullptr, *wrt[] = {four, x};
        for (ng_expr* of : {four, ng_cast(four, NG_F32)}) {
            f.error = {};
            const ng_status status = ng_grad(&of, nullptr, 1, wrt, &dx, 1, &f.error);
            CHECK_MESSAGE(status == (real ? NG_OK : NG_E_DTYPE), f.said());
            if (!real) CHECK_MESSAGE((f.said().find("ng_grad: ") == 0 && f.says(plain(t))), f.said());
        }
        ng_tensor* out = f.make(shape(t.code, {4}));
        CHECK(f.eval_into({x}, {out}) == (t.name == "f32" ? NG_OK : NG_E_DTYPE));
        if (t.name != "f32") CHECK_MESSAGE((f.said().find("ng_eval: ") == 0 && f.says(plain(t))), f.said());
    }
    CHECK(f.fault(ng_conv(image, image, nullptr)) == NG_OK);
}
