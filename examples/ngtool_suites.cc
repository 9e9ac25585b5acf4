// The cases of ngtool bench that GPU libraries are measured on too: row-wise expressions, products, convolutions, pooling.
#include "ngtool_bench.h"

#include <algorithm>
#include <cstring>
#include <initializer_list>

namespace ngtool {
namespace {

// A [n, c, h, w] tensor: channels innermost ("nhwc") or row-major ("nchw").
ng_shape image_shape(ng_dtype dtype, int64_t n, int64_t c, int64_t h, int64_t w, bool nhwc)
{
    ng_shape shape = make_shape(dtype, { n, c, h, w });
    if (!nhwc) return shape;
    const int64_t strides[] = { h * w * c, 1, w * c, c };
    shape.flags = NG_STRIDED;
    std::copy(strides, strides + 4, shape.strides);
    return shape;
}

double element_total(std::initializer_list<const ng_shape*> shapes)
{
    double total = 0;
    for (const ng_shape* shape : shapes) total += double(element_count(*shape));
    return total;
}

struct Gemm { int64_t m, n, k; char a, b; };
const Gemm GEMMS[] = {          // C[m, n] row-major; DeepBench training, then square ones. 't': stored transposed
    { 1760, 16, 1760, 'n', 'n' },     { 1760, 32, 1760, 'n', 'n' },    { 1760, 64, 1760, 'n', 'n' },   { 1760, 128, 1760, 'n', 'n' },
    { 1760, 7000, 1760, 'n', 'n' },   { 2048, 16, 2048, 'n', 'n' },    { 2048, 32, 2048, 'n', 'n' },   { 2048, 64, 2048, 'n', 'n' },
    { 2048, 128, 2048, 'n', 'n' },    { 2048, 7000, 2048, 'n', 'n' },  { 2560, 16, 2560, 'n', 'n' },   { 2560, 64, 2560, 'n', 'n' },
    { 2560, 7000, 2560, 'n', 'n' },   { 4096, 16, 4096, 'n', 'n' },    { 4096, 64, 4096, 'n', 'n' },   { 4096, 7000, 4096, 'n', 'n' },
    { 1760, 64, 1760, 't', 'n' },     { 1760, 7000, 1760, 't', 'n' },  { 2048, 64, 2048, 't', 'n' },   { 4096, 7000, 4096, 't', 'n' },
    { 1760, 7133, 1760, 'n', 't' },   { 4096, 7133, 4096, 'n', 't' },  { 5124, 9124, 1760, 'n', 'n' }, { 35, 8457, 1760, 'n', 'n' },
    { 5124, 9124, 2560, 'n', 'n' },   { 35, 8457, 4096, 'n', 'n' },    { 5124, 9124, 1760, 't', 'n' }, { 7680, 16, 2560, 'n', 'n' },
    { 7680, 64, 2560, 'n', 'n' },     { 7680, 128, 2560, 'n', 'n' },   { 3072, 16, 1024, 'n', 'n' },   { 3072, 128, 1024, 'n', 'n' },
    { 7680, 5481, 2560, 'n', 'n' },   { 512, 8, 500000, 'n', 'n' },    { 1024, 16, 500000, 'n', 'n' }, { 512, 8, 500000, 't', 'n' },
    { 3072, 128, 9216, 'n', 'n' },    { 3072, 9216, 128, 'n', 't' },   { 1000, 128, 3072, 'n', 'n' },  { 4096, 4096, 4096, 'n', 'n' },
    { 8192, 8192, 8192, 'n', 'n' },   { 1024, 1024, 1024, 'n', 'n' },  { 512, 512, 512, 'n', 'n' },    { 256, 256, 256, 'n', 'n' },
    { 128, 128, 128, 'n', 'n' },
};

// What a product's operands and result are; tf32 is f32 that may be rounded.
struct GemmKind { const char* name; ng_dtype in, out; uint32_t flags; };
const GemmKind HALVES = { "fp16", NG_F16, NG_F16, 0 }, ROUNDED = { "tf32", NG_F32, NG_F32, NG_TF32 };
const GemmKind OTHER_KINDS[] = {
    { "bf16", NG_BF16, NG_BF16, 0 }, { "fp32", NG_F32, NG_F32, 0 }, { "fp64", NG_F64, NG_F64, 0 }, { "e4m3", NG_E4M3, NG_F16, 0 }, { "int8", NG_I8, NG_I32, 0 },
};

Case gemm_case(const Gemm& g, const GemmKind& kind)
{
    Case what;
    what.name = text("%s m%lld n%lld k%lld %c%c", kind.name, (long long)g.m, (long long)g.n, (long long)g.k, g.a, g.b);
    what.work = what.flops = 2.0 * double(g.m) * double(g.n) * double(g.k);
    what.unit = "TFLOP/s";
    what.normal = kind.in != NG_I8;
    what.args = { g.a == 'n' ? make_shape(kind.in, { g.m, g.k }) : make_shape(kind.in, { g.k, g.m }),
                  g.b == 'n' ? make_shape(kind.in, { g.k, g.n }) : make_shape(kind.in, { g.n, g.k }) };
    what.build = [g, kind](ng_scope*, const Exprs& args) {
        const int32_t swapped[] = { 1, 0 };
        ng_matmul_desc desc = sized<ng_matmul_desc>();
        desc.flags = kind.flags;
        ng_expr* a = g.a == 'n' ? args[0] : ng_permute(args[0], swapped, 2);
        ng_expr* b = g.b == 'n' ? args[1] : ng_permute(args[1], swapped, 2);
        return Exprs{ ng_cast(ng_matmul(a, b, &desc), kind.out) };
    };
    return what;
}

// DeepBench training: vision and speech. Filters are s high and r wide.
struct Conv { int64_t w, h, c, n, k, r, s; int32_t pad_w, pad_h, stride_w, stride_h; };
const Conv CONVS[] = {
    { 700, 161, 1, 8, 32, 20, 5, 0, 0, 2, 2 },  { 341, 79, 32, 8, 32, 10, 5, 0, 0, 2, 2 },  { 480, 48, 1, 16, 16, 3, 3, 1, 1, 1, 1 },
    { 240, 24, 16, 16, 32, 3, 3, 1, 1, 1, 1 },  { 120, 12, 32, 16, 64, 3, 3, 1, 1, 1, 1 },  { 60, 6, 64, 16, 128, 3, 3, 1, 1, 1, 1 },
    { 108, 108, 3, 8, 64, 3, 3, 1, 1, 2, 2 },   { 54, 54, 64, 8, 64, 3, 3, 1, 1, 1, 1 },    { 27, 27, 128, 8, 128, 3, 3, 1, 1, 1, 1 },
    { 14, 14, 128, 8, 256, 3, 3, 1, 1, 1, 1 },  { 7, 7, 256, 8, 512, 3, 3, 1, 1, 1, 1 },    { 224, 224, 3, 8, 64, 3, 3, 1, 1, 1, 1 },
    { 112, 112, 64, 8, 128, 3, 3, 1, 1, 1, 1 }, { 56, 56, 128, 8, 256, 3, 3, 1, 1, 1, 1 },  { 28, 28, 256, 8, 512, 3, 3, 1, 1, 1, 1 },
    { 14, 14, 512, 8, 512, 3, 3, 1, 1, 1, 1 },  { 7, 7, 512, 8, 512, 3, 3, 1, 1, 1, 1 },    { 224, 224, 3, 16, 64, 7, 7, 3, 3, 2, 2 },
    { 28, 28, 192, 16, 32, 5, 5, 2, 2, 1, 1 },  { 28, 28, 192, 16, 64, 1, 1, 0, 0, 1, 1 },  { 14, 14, 512, 16, 48, 5, 5, 2, 2, 1, 1 },
    { 14, 14, 512, 16, 192, 1, 1, 0, 0, 1, 1 }, { 7, 7, 832, 16, 256, 1, 1, 0, 0, 1, 1 },   { 7, 7, 832, 16, 128, 5, 5, 2, 2, 1, 1 },
    { 56, 56, 64, 16, 64, 3, 3, 1, 1, 1, 1 },   { 56, 56, 256, 16, 64, 1, 1, 0, 0, 2, 2 },  { 28, 28, 128, 16, 128, 3, 3, 1, 1, 1, 1 },
    { 14, 14, 256, 16, 256, 3, 3, 1, 1, 1, 1 }, { 56, 56, 64, 64, 64, 3, 3, 1, 1, 1, 1 },   { 28, 28, 256, 64, 256, 3, 3, 1, 1, 1, 1 },
    { 14, 14, 1024, 64, 256, 1, 1, 0, 0, 1, 1 },
};

ng_conv_desc conv_desc(int32_t stride_h, int32_t stride_w, int32_t pad_h, int32_t pad_w, int32_t groups)
{
    ng_conv_desc desc = sized<ng_conv_desc>();
    desc.stride[0] = stride_h, desc.stride[1] = stride_w;
    desc.pad_lo[0] = desc.pad_hi[0] = pad_h;
    desc.pad_lo[1] = desc.pad_hi[1] = pad_w;
    desc.groups = groups;
    return desc;
}

enum class Pass { Fprop, Bprop, Update };

Case conv_case(const Conv& v, Pass pass)
{
    const int64_t p = (v.h + 2 * v.pad_h - v.s) / v.stride_h + 1, q = (v.w + 2 * v.pad_w - v.r) / v.stride_w + 1;
    const ng_shape x = image_shape(NG_F16, v.n, v.c, v.h, v.w, true), w = image_shape(NG_F16, v.k, v.c, v.s, v.r, true);
    const ng_shape y = image_shape(NG_F16, v.n, v.k, p, q, true);
    const char* const passes[] = { "fprop", "bprop", "update" };
    Case what;
    what.name = text("fp16 W%lld H%lld C%lld N%lld K%lld R%lld S%lld s%d%d %s", (long long)v.w, (long long)v.h, (long long)v.c,
                     (long long)v.n, (long long)v.k, (long long)v.r, (long long)v.s, v.stride_w, v.stride_h, passes[int(pass)]);
    what.work = what.flops = 2 * element_total({ &y }) * double(v.c * v.r * v.s);
    what.unit = "TFLOP/s";
    what.normal = true;
    what.args = { pass == Pass::Bprop ? w : x, pass == Pass::Fprop ? w : y };
    what.out = { pass == Pass::Fprop ? y : pass == Pass::Bprop ? x : w };
    const ng_conv_desc desc = conv_desc(v.stride_h, v.stride_w, v.pad_h, v.pad_w, 1);
    what.build = [desc, x, w, pass](ng_scope*, const Exprs& args) {
        const ng_shape to_x = make_shape(NG_F16, { x.dims, x.dims + 4 }), to_w = make_shape(NG_F16, { w.dims, w.dims + 4 });
        ng_expr* result = pass == Pass::Fprop ? ng_conv(args[0], args[1], &desc)
                        : pass == Pass::Bprop ? ng_conv_dx(args[0], args[1], &to_x, &desc)
                                              : ng_conv_dw(args[0], args[1], &to_w, &desc);
        return Exprs{ ng_cast(result, NG_F16) };
    };
    return what;
}

struct Depthwise { int64_t n, c, h, r; int32_t stride; };
const Depthwise DEPTHWISE[] = {
    { 1, 256, 96, 3, 1 },  { 1, 256, 64, 3, 1 },  { 1, 256, 32, 3, 1 },  { 1, 512, 14, 3, 1 },
    { 64, 32, 112, 3, 1 }, { 64, 64, 112, 3, 2 }, { 64, 128, 56, 3, 1 }, { 64, 256, 28, 3, 1 },
    { 64, 512, 14, 3, 1 }, { 64, 1024, 7, 3, 1 }, { 64, 256, 56, 5, 1 }, { 64, 256, 56, 7, 1 },
};

Case depthwise_case(const Depthwise& d, bool nhwc, bool half, bool fused)
{
    const ng_dtype dtype = half ? NG_F16 : NG_F32;
    const int32_t pad = int32_t(d.r / 2);
    const int64_t p = (d.h + 2 * pad - d.r) / d.stride + 1;
    const ng_shape x = image_shape(dtype, d.n, d.c, d.h, d.h, nhwc), y = image_shape(dtype, d.n, d.c, p, p, nhwc);
    Case what;
    what.name = text("%s %s N%lld C%lld H%lld R%lld s%d%s", half ? "fp16" : "fp32", nhwc ? "nhwc" : "nchw", (long long)d.n,
                     (long long)d.c, (long long)d.h, (long long)d.r, d.stride, fused ? " +scale_shift_relu" : "");
    what.work = element_total({ &x, &y }) * (half ? 2 : 4);
    what.normal = true;
    what.args = { x, image_shape(dtype, d.c, 1, d.r, d.r, nhwc) };
    if (fused) what.args.insert(what.args.end(), 2, make_shape(dtype, { 1, d.c, 1, 1 }));
    what.out = { y };
    const ng_conv_desc desc = conv_desc(d.stride, d.stride, pad, pad, int32_t(d.c));
    what.build = [desc, dtype, fused](ng_scope* scope, const Exprs& args) {
        ng_expr* result = ng_conv(args[0], args[1], &desc);
        ng_expr* const values[] = { result, fused ? args[2] : result, fused ? args[3] : result };
        if (fused) result = ng_parse(scope, "relu(y * scale + shift)", "y,scale,shift", values, 3);
        return Exprs{ ng_cast(result, dtype) };
    };
    return what;
}

struct Pool { int64_t n, c, h; int32_t window, stride, pad; };
const Pool POOLS[] = {
    { 128, 64, 55, 3, 2, 0 }, { 128, 192, 27, 3, 2, 0 }, { 64, 64, 224, 2, 2, 0 },
    { 64, 512, 28, 2, 2, 0 }, { 64, 64, 112, 3, 2, 1 },  { 64, 2048, 7, 7, 1, 0 },
};

Case pool_case(const Pool& l, bool nhwc, bool max, bool backward)
{
    const int64_t p = (l.h + 2 * l.pad - l.window) / l.stride + 1;
    const ng_shape x = image_shape(NG_F16, l.n, l.c, l.h, l.h, nhwc), y = image_shape(NG_F16, l.n, l.c, p, p, nhwc);
    Case what;
    what.name = text("%s fp16 %s N%lld C%lld H%lld R%d s%d%s", max ? "max" : "avg", nhwc ? "nhwc" : "nchw", (long long)l.n,
                     (long long)l.c, (long long)l.h, l.window, l.stride, backward ? " backward" : "");
    what.work = element_total({ &x, &y }) * 2;
    what.args = { x };
    if (backward) what.args.push_back(y);
    what.out = { backward ? x : y };
    ng_pool_desc desc = sized<ng_pool_desc>();
    desc.kind = max ? NG_POOL_MAX : NG_POOL_MEAN;
    desc.flags = max ? 0 : NG_POOL_COUNT_PAD;
    for (int i = 0; i < 2; i++) desc.window[i] = l.window, desc.stride[i] = l.stride, desc.pad_lo[i] = desc.pad_hi[i] = l.pad;
    what.build = [desc, backward](ng_scope*, const Exprs& args) {
        return Exprs{ ng_cast(backward ? ng_pool_dx(args[0], args[1], &desc) : ng_pool(args[0], &desc), NG_F16) };
    };
    return what;
}

struct Rowwise { const char *name, *text; int passes; };
const Rowwise ROWWISE[] = {     // passes: how often the array crosses the memory bus at least
    { "variance",        "mean((a - mean(a, 1)) ** 2, 1)", 1 },
    { "batchnorm",       "rsqrt(var(a, 1) + 0.001) * (a - mean(a, 1))", 2 },
    { "batchnorm_axis0", "rsqrt(var(a, 0) + 0.001) * (a - mean(a, 0))", 2 },
    { "softmax",         "softmax(a, 1)", 2 },
    { "gelu_chain",      "0.5 * a * (1 + tanh(0.79788456 * (a + 0.044715 * a * a * a))) * 1.1 + 0.3", 2 },
    { "sum_all",         "sum(a)", 1 },
    { "sum_axis0",       "sum(a, 0)", 1 },
};

// What follows products with batches [b, h]: q and k lie as such, or with heads beside each other (p, t); m is a mask for each of b, w a
// matrix for each of h.
void bench_batches(Bench& bench)
{
    static const struct { const char *name, *text; } texts[] = {
        { "none", "f16(q @ k)" },
        { "scale", "f16((q @ k) * 0.125)" },
        { "scale and mask", "f16((q @ k) * 0.125 + m)" },
        { "scale and bias of heads", "f16((q @ k) * 0.125 + w)" },
        { "scale and mask by heads beside", "f16((permute(p, [0, 2, 1, 3]) @ permute(t, [0, 2, 3, 1])) * 0.125 + m)" },
    };
    static const struct { int64_t b, h, n; } shapes[] = { { 32, 12, 128 }, { 32, 12, 512 }, { 8, 16, 1024 }, { 4, 16, 2048 } };
    for (const auto& s : shapes)
        for (const auto& t : texts) {
            constexpr int64_t DEPTH = 64;
            Case what;
            what.name = text("fp16 b%lld h%lld n%lld %s", (long long)s.b, (long long)s.h, (long long)s.n, t.name);
            what.work = what.flops = 2.0 * double(s.b * s.h * s.n * s.n * DEPTH);
            what.unit = "TFLOP/s";
            what.normal = true;
            const ng_shape beside = make_shape(NG_F16, { s.b, s.n, s.h, DEPTH });
            what.args = { make_shape(NG_F16, { s.b, s.h, s.n, DEPTH }), make_shape(NG_F16, { s.b, s.h, DEPTH, s.n }), make_shape(NG_F16, { s.b, 1, s.n, s.n }), make_shape(NG_F16, { s.h, s.n, s.n }), beside, beside };
            what.build = [&t](ng_scope* scope, const Exprs& args) { return Exprs{ ng_parse(scope, t.text, "q,k,m,w,p,t", args.data(), uint32_t(args.size())) }; };
            bench.run("epilogue", what);
        }
}

}

void bench_gemm(Bench& bench)
{
    for (const Gemm& gemm : GEMMS) bench.run("gemm", gemm_case(gemm, HALVES));
    for (const Gemm& gemm : GEMMS)
        if (gemm.k < 500000) bench.run("gemm", gemm_case(gemm, ROUNDED));
    // Square ones of each type; of halves in all ways to lie.
    for (const int64_t n : { 4096, 8192 })
        for (const char* ways : { "nt", "tn", "tt" }) bench.run("gemm", gemm_case({ n, n, n, ways[0], ways[1] }, HALVES));
    for (const GemmKind& kind : OTHER_KINDS)
        for (const int64_t n : { 1024, 2048, 4096, 8192 })
            if (kind.in != NG_F64 || n < 8192) bench.run("gemm", gemm_case({ n, n, n, 'n', 't' }, kind));
}

// What follows products of halves: a a matrix, b another, v a row, r a matrix like the product; and folds of that, beside it or alone.
void bench_epilogue(Bench& bench)
{
    static const struct { const char *name, *text, *fold = ""; bool is_alone = false; } texts[] = {
        { "none", "a @ b" },
        { "scale", "(a @ b) * 0.5" },
        { "bias", "a @ b + v" },
        { "bias relu", "relu(a @ b + v)" },
        { "residual", "a @ b + r" },
        { "bias gelu", "gelu(a @ b + v)" },
        { "bias gelu residual", "gelu(a @ b + v) + r" },
        { "silu gate", "silu(a @ b) * r" },
        { "bias and rows' sums", "a @ b + v", "sum(%s, 1)" },
        { "bias and columns' sums", "a @ b + v", "sum(%s, 0)" },
        { "bias and rows' greatest", "a @ b + v", "max(%s, 1)" },
        { "rows' sums alone", "a @ b", "sum(%s, 1)", true },
        { "columns' sums alone", "a @ b", "sum(%s, 0)", true },
        { "bias and rows' variance", "a @ b + v", "var(%s, 1)" },
    };
    for (const int64_t n : { 1024, 4096, 8192 })
        for (const auto& t : texts) {
            Case what = gemm_case({ n, n, n, 'n', 'n' }, HALVES);
            what.name = text("fp16 n%lld %s", (long long)n, t.name);
            what.args.push_back(make_shape(NG_F16, { n }));
            what.args.push_back(make_shape(NG_F16, { n, n }));
            what.build = [&t](ng_scope* scope, const Exprs& args) {
                const std::string words = std::string("f16(") + t.text + ")", fold = t.fold;
                const auto parsed = [&](const std::string& all) { return ng_parse(scope, all.c_str(), "a,b,v,r", args.data(), uint32_t(args.size())); };
                Exprs out;
                if (!t.is_alone) out.push_back(parsed(words));
                if (const size_t at = fold.find("%s"); at != fold.npos) out.push_back(parsed(fold.substr(0, at) + (t.is_alone ? t.text : words) + fold.substr(at + 2)));
                return out;
            };
            bench.run("epilogue", what);
        }
    bench_batches(bench);
}

// Products of a few rows of halves and weights of another type: made while they are loaded; by a kernel of its own, since the result
// is wanted, too; and weights that are halves.
void bench_prologue(Bench& bench)
{
    static const struct { const char* name; ng_dtype type; } weights[] = { { "i8", NG_I8 }, { "e4m3", NG_E4M3 }, { "f32", NG_F32 } };
    static const struct { const char *name, *text; } lies[] = { { "kn", "f16(w)" }, { "nk", "permute(f16(w), [1, 0])" }, { "nk scaled", "permute(f16(f32(w) * s), [1, 0])" } };
    enum Way { Plain, Made, Apart };
    const auto run = [&](const std::string& name, ng_dtype type, Gemm g, const char* weight, Way way) {
        Case what = gemm_case(g, HALVES);
        what.name = text("fp16 m%lld n%lld k%lld %s %s", (long long)g.m, (long long)g.n, (long long)g.k, name.c_str(), way == Plain ? "plain" : way == Made ? "made" : "apart");
        what.args[1] = make_shape(type, weight[0] == 'p' ? std::vector<int64_t>{ g.n, g.k } : std::vector<int64_t>{ g.k, g.n });
        what.args.push_back(make_shape(NG_F32, { g.n, 1 }));
        what.build = [weight, way](ng_scope* scope, const Exprs& args) {
            const auto parsed = [&](const std::string& all) { return ng_parse(scope, all.c_str(), "a,w,s", args.data(), uint32_t(args.size())); };
            Exprs out = { parsed(std::string("f16(a @ ") + weight + ")") };
            if (way == Apart) out.push_back(parsed(strstr(weight, "* s") ? "f16(f32(w) * s)" : "f16(w)"));
            return out;
        };
        bench.run("prologue", what);
    };
    for (const Gemm& g : { Gemm{ 16, 4096, 4096, 'n', 'n' }, { 64, 4096, 4096, 'n', 'n' }, { 16, 14336, 4096, 'n', 'n' }, { 128, 4096, 4096, 'n', 'n' } }) {
        for (const auto& lie : lies) {
            if (!strchr(lie.name, ' ')) run(std::string("f16 ") + lie.name, NG_F16, g, lie.text, Plain);
            for (const auto& weight : weights)
                for (const Way way : { Made, Apart }) run(std::string(weight.name) + " " + lie.name, weight.type, g, lie.text, way);
        }
    }
}

void bench_conv(Bench& bench)
{
    for (const Conv& conv : CONVS)
        for (const Pass pass : { Pass::Fprop, Pass::Bprop, Pass::Update }) bench.run("conv", conv_case(conv, pass));
}

void bench_dw(Bench& bench)
{
    for (const Depthwise& depthwise : DEPTHWISE)
        for (const bool nhwc : { true, false })
            for (const bool half : { true, false })
                for (const bool fused : { false, true }) bench.run("dw", depthwise_case(depthwise, nhwc, half, fused));
}

void bench_pool(Bench& bench)
{
    for (const Pool& pool : POOLS)
        for (const bool nhwc : { true, false })
            for (const bool backward : { false, true })
                for (const bool max : { true, false }) bench.run("pool", pool_case(pool, nhwc, max, backward));
}

void bench_ew(Bench& bench)
{
    struct Size { int64_t rows, columns; bool single; };
    static const Size sizes[] = { { 128, 32, true },        { 1 << 20, 32, false },    { 262144, 256, false },  { 65536, 1024, true },
                                  { 16384, 8192, false },   { 1024, 65536, false },    { 64, 1 << 20, true } };
    for (const bool half : { true, false })
        for (const Size& size : sizes) {
            if (!half && !size.single) continue;
            const ng_shape shape = make_shape(half ? NG_F16 : NG_F32, { size.rows, size.columns });
            for (const Rowwise& row : ROWWISE) {
                Case what;
                what.name = text("%s %s %lldx%lld", row.name, half ? "fp16" : "fp32", (long long)size.rows, (long long)size.columns);
                what.work = double(dense_bytes(shape)) * row.passes;
                what.args = { shape };
                const std::string source = half ? std::string("f16(") + row.text + ")" : row.text;
                what.build = [source](ng_scope* scope, const Exprs& args) {
                    return Exprs{ ng_parse(scope, source.c_str(), "a", args.data(), 1) };
                };
                bench.run("ew", what);
            }
        }
}

}
