// oneDNN behind plain C functions: a product or a convolution is made once, then repeated; layouts plain, or those it likes best.
#include <oneapi/dnnl/dnnl.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

namespace {

using dnnl::memory;
using Tag = memory::format_tag;
using Type = memory::data_type;

// Steps that run one after the other: a primitive and its arguments.
struct Job {
    struct Step {
        dnnl::primitive                 primitive;
        std::unordered_map<int, memory> arguments;
    };
    dnnl::engine      engine{dnnl::engine::kind::cpu, 0};
    dnnl::stream      stream{engine};
    std::vector<Step> before, steps, after;

    memory plain(const memory::desc& desc, void* data) { return memory(desc, engine, data); }
    // What the primitive wants to read: the plain memory, or one that a step fills from it.
    memory input(const memory& plain, const memory::desc& wanted)
    {
        if (plain.get_desc() == wanted) return plain;
        memory other(wanted, engine);
        before.push_back({dnnl::reorder(plain, other), {{DNNL_ARG_FROM, plain}, {DNNL_ARG_TO, other}}});
        return other;
    }
    memory output(const memory& plain, const memory::desc& wanted)
    {
        if (plain.get_desc() == wanted) return plain;
        memory other(wanted, engine);
        after.push_back({dnnl::reorder(other, plain), {{DNNL_ARG_FROM, other}, {DNNL_ARG_TO, plain}}});
        return other;
    }
    void run()
    {
        for (const auto* list : {&before, &steps, &after})
            for (const Step& step : *list) step.primitive.execute(stream, step.arguments);
        stream.wait();
    }
};

Type type_of(int bits, bool is_sum)
{
    if (bits == 32) return Type::f32;
    if (bits == 16) return is_sum ? Type::f32 : Type::bf16;
    return is_sum ? Type::s32 : Type::s8;
}

// 3x3 with a border of 1: y and x have one shape, w is [k, c, 3, 3].
struct Convolution {
    memory::dims x, w;
    bool         is_plain;
    memory::desc desc(const memory::dims& dims, bool data) const
    {
        return {dims, Type::f32, is_plain ? (data ? Tag::nchw : Tag::oihw) : Tag::any};
    }
};

const memory::dims ONE = {1, 1};

dnnl::convolution_forward::primitive_desc forward(const Convolution& c, const dnnl::engine& engine)
{
    return {{dnnl::prop_kind::forward_training, dnnl::algorithm::convolution_direct, c.desc(c.x, true), c.desc(c.w, false),
             c.desc(c.x, true), ONE, ONE, ONE}, engine};
}

}  // namespace

extern "C" {

// c[m, n] = a[m, k] b[k, n], all row-major; bits of an element of a and b: 32, 16 (bfloat) or 8. Null: oneDNN cannot.
void* onednn_product(int bits, int64_t m, int64_t n, int64_t k, void* a, void* b, void* c) try {
    auto job = std::make_unique<Job>();
    const memory::desc a_desc({m, k}, type_of(bits, false), Tag::ab), b_desc({k, n}, type_of(bits, false), Tag::ab);
    const memory::desc c_desc({m, n}, type_of(bits, true), Tag::ab);
    const dnnl::matmul::primitive_desc desc({a_desc, b_desc, c_desc}, job->engine);
    job->steps.push_back({dnnl::matmul(desc), {{DNNL_ARG_SRC, job->plain(a_desc, a)}, {DNNL_ARG_WEIGHTS, job->plain(b_desc, b)},
                                              {DNNL_ARG_DST, job->plain(c_desc, c)}}});
    return job.release();
} catch (...) {
    return nullptr;
}

// pass 0: y from x and w; 1: dx from y and w; 2: dw from x and y. Arrays are NCHW and KCRS; is_plain 0: oneDNN picks its
// layouts, and each run reorders from and to those.
void* onednn_convolution(int pass, int is_plain, int64_t images, int64_t channels, int64_t side, void* x_data, void* w_data, void* y_data) try {
    auto job = std::make_unique<Job>();
    const Convolution c = {{images, channels, side, side}, {channels, channels, 3, 3}, is_plain != 0};
    const memory::desc data(c.x, Type::f32, Tag::nchw), filter(c.w, Type::f32, Tag::oihw);
    const memory x = job->plain(data, x_data), w = job->plain(filter, w_data), y = job->plain(data, y_data);
    const auto fwd = forward(c, job->engine);
    if (pass == 0) {
        job->steps.push_back({dnnl::convolution_forward(fwd), {{DNNL_ARG_SRC, job->input(x, fwd.src_desc())},
            {DNNL_ARG_WEIGHTS, job->input(w, fwd.weights_desc())}, {DNNL_ARG_DST, job->output(y, fwd.dst_desc())}}});
    } else if (pass == 1) {
        const dnnl::convolution_backward_data::primitive_desc desc(
            {dnnl::algorithm::convolution_direct, c.desc(c.x, true), c.desc(c.w, false), c.desc(c.x, true), ONE, ONE, ONE}, job->engine, fwd);
        job->steps.push_back({dnnl::convolution_backward_data(desc), {{DNNL_ARG_DIFF_SRC, job->output(x, desc.diff_src_desc())},
            {DNNL_ARG_WEIGHTS, job->input(w, desc.weights_desc())}, {DNNL_ARG_DIFF_DST, job->input(y, desc.diff_dst_desc())}}});
    } else {
        const dnnl::convolution_backward_weights::primitive_desc desc(
            {dnnl::algorithm::convolution_direct, c.desc(c.x, true), c.desc(c.w, false), c.desc(c.x, true), ONE, ONE, ONE}, job->engine, fwd);
        job->steps.push_back({dnnl::convolution_backward_weights(desc), {{DNNL_ARG_SRC, job->input(x, desc.src_desc())},
            {DNNL_ARG_DIFF_WEIGHTS, job->output(w, desc.diff_weights_desc())}, {DNNL_ARG_DIFF_DST, job->input(y, desc.diff_dst_desc())}}});
    }
    return job.release();
} catch (...) {
    return nullptr;
}

double onednn_repeat(void* job, int64_t count)
{
    const auto start = std::chrono::steady_clock::now();
    for (int64_t i = 0; i < count; i++) static_cast<Job*>(job)->run();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void onednn_release(void* job) { delete static_cast<Job*>(job); }
}
