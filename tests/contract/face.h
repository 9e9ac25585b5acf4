// What the contract's tests share: a context that must end clean, arrays as vectors of doubles, programs in a line.
#pragma once
#include <doctest/doctest.h>
#include <ng.h>

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

using Values = std::vector<double>;
using Dims = std::vector<int64_t>;
using Exprs = std::vector<ng_expr*>;
using Tensors = std::vector<ng_tensor*>;

constexpr double INF = std::numeric_limits<double>::infinity();
constexpr double NOT_A_NUMBER = std::numeric_limits<double>::quiet_NaN();

// An 8- or 16-bit float of so many bits of exponent and mantissa; e4m3 has no infinity and one NaN.
inline double decode_narrow(uint32_t code, int bits, int mantissa)
{
    const int exponent_bits = bits - 1 - mantissa, bias = (1 << (exponent_bits - 1)) - 1;
    const int exponent = int(code >> mantissa) & ((1 << exponent_bits) - 1), fraction = int(code) & ((1 << mantissa) - 1);
    const double sign = code >> (bits - 1) & 1 ? -1 : 1;
    const bool is_e4m3 = bits == 8 && mantissa == 3, is_top = exponent == (1 << exponent_bits) - 1;
    if (is_top && (is_e4m3 ? fraction == 7 : fraction != 0)) return NOT_A_NUMBER;
    if (is_top && !is_e4m3) return sign * INF;
    if (!exponent) return sign * std::ldexp(fraction, 1 - bias - mantissa);
    return sign * std::ldexp(fraction + (1 << mantissa), exponent - bias - mantissa);
}
inline int mantissa_bits(ng_dtype t) { return t == NG_F16 ? 10 : t == NG_BF16 ? 7 : t == NG_E4M3 ? 3 : t == NG_E5M2 ? 2 : 0; }
// The code of v, which the type holds exactly.
inline uint32_t encode_narrow(double v, int bits, int mantissa)
{
    for (uint32_t code = 0; code < 1u << bits; code++) {
        const double have = decode_narrow(code, bits, mantissa);
        if (have == v ? std::signbit(have) == std::signbit(v) : have != have && v != v) return code;
    }
    FAIL("the type does not hold ", v);
    return 0;
}
inline size_t bytes_of(ng_dtype t) { return (t >> 8 & 0xff) / 8; }

template <class T>
double load(const unsigned char* at)
{
    T v;
    std::memcpy(&v, at, sizeof v);
    return double(v);
}
template <class T>
void store(unsigned char* at, double v)
{
    const T x = T(v);
    std::memcpy(at, &x, sizeof x);
}
#define CONTRACT_TYPES(X) X(NG_BOOL, uint8_t) X(NG_I8, int8_t) X(NG_I16, int16_t) X(NG_I32, int32_t) X(NG_I64, int64_t) \
    X(NG_U8, uint8_t) X(NG_U16, uint16_t) X(NG_U32, uint32_t) X(NG_U64, uint64_t) X(NG_F32, float) X(NG_F64, double)
inline double decode(ng_dtype t, const unsigned char* at)
{
    if (const int m = mantissa_bits(t)) return bytes_of(t) == 2 ? decode_narrow(uint32_t(load<uint16_t>(at)), 16, m) : decode_narrow(*at, 8, m);
    switch (t) {
#define X(type, cpp) case type: return load<cpp>(at);
        CONTRACT_TYPES(X)
#undef X
    default: return NOT_A_NUMBER;
    }
}
inline void encode(ng_dtype t, double v, unsigned char* at)
{
    if (const int m = mantissa_bits(t)) {
        const uint32_t code = encode_narrow(v, int(bytes_of(t)) * 8, m);
        return bytes_of(t) == 2 ? store<uint16_t>(at, code) : store<uint8_t>(at, code);
    }
    switch (t) {
#define X(type, cpp) case type: return store<cpp>(at, v);
        CONTRACT_TYPES(X)
#undef X
    default: return;
    }
}
#undef CONTRACT_TYPES

inline ng_shape shape(ng_dtype t, const Dims& dims, const Dims& strides = {}, uint32_t flags = 0)
{
    ng_shape d{};
    d.size = sizeof d, d.dtype = t, d.ndim = int32_t(dims.size()), d.flags = flags | (strides.empty() ? 0 : NG_STRIDED);
    std::copy(dims.begin(), dims.end(), d.dims);
    std::copy(strides.begin(), strides.end(), d.strides);
    return d;
}
inline size_t count_of(const ng_shape& d)
{
    size_t n = 1;
    for (int32_t i = 0; i < d.ndim; i++) n *= size_t(d.dims[i]);
    return n;
}
inline Values counted(size_t n, double first = 0, double step = 1)
{
    Values v(n);
    for (size_t i = 0; i < n; i++) v[i] = first + step * double(i);
    return v;
}
// "" when got is want, each within atol + rtol |want|, NaN beside NaN; else the first fault, in a sentence.
inline std::string differs(const Values& got, const Values& want, double atol = 0, double rtol = 0)
{
    if (got.size() != want.size()) return std::to_string(got.size()) + " values, should be " + std::to_string(want.size());
    for (size_t i = 0; i < got.size(); i++) {
        if (got[i] == want[i] || (got[i] != got[i] && want[i] != want[i])) continue;
        if (std::isfinite(want[i]) && std::abs(got[i] - want[i]) <= atol + rtol * std::abs(want[i])) continue;
        char text[120];
        std::snprintf(text, sizeof text, "[%zu] is %.17g, should be %.17g", i, got[i], want[i]);
        return text;
    }
    return "";
}
// The backend that the rules are tried on: NG_TEST_BACKEND, else the processor.
inline const char* backend()
{
    constexpr std::string_view name = "NG_TEST_BACKEND=";      // a test watches getenv
    for (char** variable = environ; variable && *variable; variable++)
        if (std::string_view(*variable).starts_with(name)) return *variable + name.size();
    return "cpu";
}
inline ng_ctx_desc description(uint32_t flags = 0, uint32_t threads = 0)
{
    ng_ctx_desc d{};
    d.size = sizeof d, d.version = NG_VERSION, d.backend = backend(), d.flags = flags, d.threads = threads, d.cache_dir = "";
    return d;
}

inline ng_ctx* opened(uint32_t threads, uint32_t flags = 0, const ng_hooks* hooks = nullptr)
{
    ng_ctx_desc d = description(flags, threads);
    d.hooks = hooks;
    ng_ctx* c = nullptr;
    REQUIRE(ng_ctx_create(&d, &c, nullptr) == NG_OK);
    return c;
}
// body(i) on so many threads at once; they start together. doctest's checks are made by the caller afterwards.
inline void together(int threads, const std::function<void(int)>& body)
{
    std::atomic<int> waiting{0};
    std::vector<std::thread> all;
    for (int i = 0; i < threads; i++)
        all.emplace_back([&, i] {
            for (waiting++; waiting < threads;) std::this_thread::yield();
            body(i);
        });
    for (std::thread& t : all) t.join();
}

struct Plan {
    std::vector<int32_t> alias = {};
    std::vector<const ng_shape*> out = {};
    Dims length_max = {};
    uint32_t runs = 0;
    uint64_t workspace_max = 0;
    ng_prog* workspace_of = nullptr;
    uint32_t flags = 0;
};
struct Call {
    Tensors args = {}, out = {};
    const void* scalars = nullptr;
    uint32_t scalar_bytes = 0;
    Dims lengths = {};
    uint32_t flags = 0;
    ng_tensor* workspace = nullptr;
};

// A context and a scope; what is made through it is released with it, and then nothing may be left.
struct Face {
    ng_ctx* c = nullptr;
    ng_scope* s = nullptr;
    ng_error error{};
    Tensors tensors;
    std::vector<ng_prog*> programs;

    explicit Face(const ng_ctx_desc& d)
    {
        REQUIRE(ng_ctx_create(&d, &c, &error) == NG_OK);
        s = ng_scope_create(c, 0);
        REQUIRE(s);
    }
    explicit Face(uint32_t flags = 0, uint32_t threads = 0) : Face(description(flags, threads)) {}
    Face(const Face&) = delete;
    Face& operator=(const Face&) = delete;
    ~Face()
    {
        for (ng_prog* p : programs) ng_prog_release(p);
        ng_scope_release(s);
        for (ng_tensor* t : tensors) ng_tensor_release(t);
        CHECK(ng_ctx_sync(c, nullptr, UINT64_MAX, &error) == NG_OK);
        CHECK(ng_ctx_trim(c, 0) == NG_OK);
        const ng_stats left = stats();
        CHECK(left.tensors == 0);
        CHECK(left.live_bytes == 0);
        CHECK(left.workspace_bytes == 0);
        CHECK(ng_ctx_close(c, 5000000000u, &error) == NG_OK);
        ng_ctx_release(c);
    }

    std::string said() const { return error.text; }
    bool says(const std::string& part) const { return said().find(part) != std::string::npos; }
    ng_stats stats() const
    {
        ng_stats st{};
        st.size = sizeof st;
        REQUIRE(ng_ctx_stats(c, &st) == NG_OK);
        return st;
    }

    // ---- tensors
    ng_tensor* keep(ng_tensor* t) { return tensors.push_back(t), t; }
    ng_tensor* make(const ng_shape& d)
    {
        ng_tensor* t = nullptr;
        REQUIRE_MESSAGE(ng_tensor_create(c, &d, &t, &error) == NG_OK, said());
        return keep(t);
    }
    ng_tensor* tensor(const ng_shape& d, const Values& values)
    {
        ng_tensor* t = make(d);
        put(t, values);
        return t;
    }
    ng_tensor* tensor(const Values& values) { return tensor(shape(NG_F32, {int64_t(values.size())}), values); }
    ng_tensor* wrap(const ng_shape& d, void* data, uint64_t bytes)
    {
        ng_tensor* t = nullptr;
        REQUIRE_MESSAGE(ng_tensor_wrap(c, &d, data, bytes, nullptr, nullptr, &t, &error) == NG_OK, said());
        return keep(t);
    }
    ng_tensor* view(ng_expr* e)
    {
        ng_tensor* t = nullptr;
        REQUIRE_MESSAGE(ng_tensor_view(e, &t, &error) == NG_OK, said());
        return keep(t);
    }
    // t's elements from start to stop along an axis, as a tensor over the same memory
    ng_tensor* part(ng_tensor* t, int32_t axis, int64_t start, int64_t stop, int64_t step = 1)
    {
        return view(ng_slice(ng_leaf(s, t), axis, start, stop, step));
    }
    ng_shape shape_of(ng_tensor* t)
    {
        ng_shape d{};
        d.size = sizeof d;
        REQUIRE(ng_tensor_shape(t, &d) == NG_OK);
        return d;
    }
    void put(ng_tensor* t, const Values& values)
    {
        const ng_shape d = shape_of(t);
        const size_t bytes = bytes_of(d.dtype), n = count_of(d);
        REQUIRE(n == values.size());
        std::vector<unsigned char> raw(n * bytes + 1);
        for (size_t i = 0; i < n; i++) encode(d.dtype, values[i], &raw[i * bytes]);
        REQUIRE_MESSAGE(ng_tensor_put(t, raw.data(), n * bytes, &error) == NG_OK, said());
    }
    // in the order of its memory
    Values get(ng_tensor* t)
    {
        const ng_shape d = shape_of(t);
        const size_t bytes = bytes_of(d.dtype), n = count_of(d);
        std::vector<unsigned char> raw(n * bytes + 1);
        REQUIRE_MESSAGE(ng_tensor_get(t, raw.data(), n * bytes, &error) == NG_OK, said());
        Values values(n);
        for (size_t i = 0; i < n; i++) values[i] = decode(d.dtype, &raw[i * bytes]);
        return values;
    }
    void* data(ng_tensor* t)
    {
        void* at = nullptr;
        REQUIRE(ng_tensor_use(t, nullptr, 0, &at, &error) == NG_OK);
        return at;
    }

    // ---- expressions
    ng_expr* leaf(const ng_shape& d, const Values& values) { return ng_leaf(s, tensor(d, values)); }
    ng_expr* leaf(const Values& values) { return ng_leaf(s, tensor(values)); }
    ng_expr* leaf64(const Values& values) { return leaf(shape(NG_F64, {int64_t(values.size())}), values); }
    ng_expr* param(uint32_t i, const ng_shape& d) { return ng_param(s, i, &d); }
    ng_expr* whole(int64_t v, ng_dtype t = NG_I64) { return ng_const_int(s, t, v); }
    ng_expr* text(const char* text, const char* names = "", const Exprs& values = {})
    {
        return ng_parse(s, text, names, values.data(), uint32_t(values.size()));
    }
    ng_shape shape_of(ng_expr* e)
    {
        ng_shape d{};
        d.size = sizeof d;
        REQUIRE_MESSAGE(ng_expr_shape(e, &d, &error) == NG_OK, said());
        return d;
    }
    ng_dtype type_of(ng_expr* e) { return shape_of(e).dtype; }
    Dims dims_of(ng_expr* e)
    {
        const ng_shape d = shape_of(e);
        return Dims(d.dims, d.dims + d.ndim);
    }

    // ---- evaluation
    ng_tensor* made(ng_expr* e)
    {
        ng_tensor* t = nullptr;
        REQUIRE_MESSAGE(ng_eval(c, nullptr, &e, &t, 1, &error) == NG_OK, said());
        return keep(t);
    }
    Values eval(ng_expr* e) { return get(made(e)); }
    ng_status eval_into(const Exprs& e, Tensors out)
    {
        error = {};
        return ng_eval(c, nullptr, e.data(), out.data(), uint32_t(e.size()), &error);
    }
    // why e cannot be evaluated; NG_OK if it can
    ng_status fault(ng_expr* e)
    {
        ng_tensor* t = nullptr;
        error = {};
        REQUIRE(e);
        const ng_status status = ng_eval(c, nullptr, &e, &t, 1, &error);
        CHECK((t != nullptr) == (status >= 0));
        CHECK(error.status == (status < 0 ? status : error.status));
        CHECK((status >= 0 || error.text[0]));
        ng_tensor_release(t);
        return status;
    }
    // dx[i] of y, seeds NULL
    Exprs grad(const Exprs& y, const Exprs& wrt, ng_status want = NG_OK, const Exprs& seeds = {})
    {
        Exprs dx(wrt.size());
        const ng_status got = ng_grad(y.data(), seeds.empty() ? nullptr : seeds.data(), uint32_t(y.size()), wrt.data(), dx.data(),
                                      uint32_t(wrt.size()), &error);
        REQUIRE_MESSAGE(got == want, said());
        return dx;
    }
    Values slope(ng_expr* y, ng_expr* x) { return eval(grad({y}, {x})[0]); }

    // ---- programs
    ng_status try_compile(const Exprs& e, const Plan& plan, ng_prog** out)
    {
        ng_compile_desc d{};
        d.size = sizeof d, d.alias = plan.alias.empty() ? nullptr : plan.alias.data(), d.out = plan.out.empty() ? nullptr : plan.out.data();
        d.length_max = plan.length_max.empty() ? nullptr : plan.length_max.data(), d.nlength = uint32_t(plan.length_max.size());
        d.runs = plan.runs, d.workspace_max = plan.workspace_max, d.workspace_of = plan.workspace_of, d.flags = plan.flags;
        error = {};
        return ng_compile(c, &d, e.data(), uint32_t(e.size()), out, &error);
    }
    ng_prog* compile(const Exprs& e, const Plan& plan = {})
    {
        ng_prog* p = nullptr;
        REQUIRE_MESSAGE(try_compile(e, plan, &p) == NG_OK, said());
        programs.push_back(p);
        REQUIRE_MESSAGE(ng_prog_wait(p, UINT64_MAX, &error) == NG_OK, said());
        return p;
    }
    ng_status run(ng_prog* p, const Call& call)
    {
        ng_run r{};
        r.size = sizeof r, r.flags = call.flags, r.nargs = uint32_t(call.args.size()), r.nout = uint32_t(call.out.size());
        r.args = call.args.data(), r.out = call.out.data(), r.scalars = call.scalars, r.scalar_bytes = call.scalar_bytes;
        r.lengths = call.lengths.empty() ? nullptr : call.lengths.data(), r.nlength = uint32_t(call.lengths.size());
        r.workspace = call.workspace;
        error = {};
        return ng_prog_run(p, nullptr, &r, &error);
    }
    ng_prog_info info(ng_prog* p)
    {
        ng_prog_info i{};
        i.size = sizeof i;
        REQUIRE_MESSAGE(ng_prog_get_info(p, &i, &error) == NG_OK, said());
        return i;
    }
};
