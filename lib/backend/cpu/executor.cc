// Runs a plan on the CPU: fused kernels by the interpreter, calls by the products and the indexed steps.
#include "lib/executor.h"

#include "lib/backend/cpu/fused.h"
#include "lib/backend/cpu/indexed.h"
#include "lib/backend/cpu/saturated.h"
#include "lib/backend/cpu/sharing.h"
#include "lib/placed.h"

#include <algorithm>

namespace ng::cpu {
namespace {

constexpr int MAX_OPERANDS = 3;

Operand operand_at(const Placed& placed, const ExecutorRun& run, int32_t variables, Placed::Numbers& n)
{
    placed.at(run, variables, n);
    return {n.data, placed.type(), n.dims, n.strides};
}

// A step that is not fused, ready to run.
struct Call {
    NodeRef             node;        // null: a copy
    std::vector<Placed> in;
    Placed              out;
    bool                in_place = false;
};

struct Work {
    std::unique_ptr<FusedKernel> fused;
    std::vector<int32_t>         buffers;      // of the fused kernel
    std::vector<int32_t>         stored;       // places in `buffers` that it writes
    std::unique_ptr<Call>        call;
    bool                         epilogue = false;   // runs with the product before it
};

class CpuExecutor final : public Executor {
  public:
    CpuExecutor(const Plan& plan, const char* level);
    uint64_t scratch_bytes(std::span<const int64_t> variables, uint32_t workers) const override;
    bool wants_threads() const override { return wants_threads_; }
    ng_status run(const ExecutorRun& run, const Parallel& parallel) const noexcept override;

  private:
    uint64_t call_scratch(const Call& c, std::span<const int64_t> variables, uint32_t workers) const;
    void     run_fused(const Work& w, const ExecutorRun& run, char** local, const Parallel& parallel) const noexcept;
    bool     bind(const Work& w, const ExecutorRun& run, char** local) const noexcept;
    void     run_call(const Call& c, const Work* tail, const ExecutorRun& run, const Parallel& parallel) const;
    void     run_product(const Call& c, const Operand* x, const Operand& y, const Epilogue* epilogue, const Workplace& place) const;

    const IsaTable&     isa_;
    const ProductTable& products_;
    std::vector<Work>   works_;
    size_t              most_buffers_ = 0;
    int32_t             variables_;
    bool                wants_threads_ = false;
};

CpuExecutor::CpuExecutor(const Plan& plan, const char* level) : isa_(*isa_table(level)), products_(*product_table(level)), variables_(plan.lengths + plan.hidden)
{
    for (const Step& s : plan.steps) {
        Work w;
        w.epilogue = s.epilogue;
        if (s.kernel) {
            w.fused = std::make_unique<FusedKernel>(*s.kernel, isa_);
            w.buffers = s.buffers;
            for (const StoreTo& t : s.kernel->stores) w.stored.push_back(t.buffer);
            most_buffers_ = std::max(most_buffers_, s.buffers.size());
        } else {
            w.call = std::make_unique<Call>(Call{s.node, {}, Placed(s.out), s.in_place});
            for (const View& v : s.in) w.call->in.emplace_back(v);
        }
        if (!s.epilogue) wants_threads_ |= w.fused ? w.fused->may_be_cut(most_points(*s.kernel, plan.most)) : may_be_cut(s, plan.most);
        works_.push_back(std::move(w));
    }
}

// The fused kernel's buffers by its own numbers come first in the scratch.
uint64_t table_bytes(size_t buffers) { return (buffers * sizeof(char*) + 63) / 64 * 64; }

uint64_t CpuExecutor::scratch_bytes(std::span<const int64_t> variables, uint32_t workers) const
{
    uint64_t most = 0;
    for (const Work& w : works_) most = std::max(most, w.fused ? w.fused->workspace_bytes(variables, workers) : call_scratch(*w.call, variables, workers));
    return table_bytes(most_buffers_) + most;
}

uint64_t CpuExecutor::call_scratch(const Call& c, std::span<const int64_t> variables, uint32_t workers) const
{
    if (!c.node) return 0;
    std::vector<Placed::Numbers> n(c.in.size() + 1);
    for (size_t i = 0; i < c.in.size(); i++) c.in[i].evaluate_most(variables, n[i]);
    c.out.evaluate_most(variables, n.back());
    const auto operand = [&](size_t i) { return Operand{nullptr, c.in[i].type(), n[i].dims, n[i].strides}; };
    const Operand y{nullptr, c.out.type(), n.back().dims, n.back().strides};
    const int rank = c.out.rank();
    switch (c.node->op) {
    case Op::matmul: {
        int64_t batch = 1;
        for (int i = 0; i < rank - 2; i++) batch = times(batch, y.dims[i]);
        return matmul_workspace(products_, {batch, y.dims[rank - 2], y.dims[rank - 1], n[0].dims[rank - 1], c.in[0].type(), c.in[1].type(), y.type}, workers);
    }
    case Op::conv: case Op::conv_dx: case Op::conv_dw: {
        const auto    window = conv_window<ConvWindow>(*c.node, rank - 2);
        const bool    is_dw = c.node->op == Op::conv_dw;
        const Placed& filter = is_dw ? c.out : c.in[c.node->op == Op::conv];
        const Operand w = is_dw ? y : operand(c.node->op == Op::conv);
        // Fewer filters, or channels, than the most may be another kind of convolution.
        const uint64_t fewer = filter.is_known(0) && filter.is_known(1) ? 0 : conv_few_workspace(w, window, workers);
        if (is_dw) return std::max(fewer, conv_dw_workspace(products_, operand(0), operand(1), y, window, workers));
        if (c.node->op == Op::conv) return std::max(fewer, conv_workspace(products_, operand(0), w, y, window, workers));
        return std::max(fewer, conv_workspace(products_, y, w, operand(1), window, workers));
    }
    case Op::pool: case Op::pool_dx: return pool_workspace(products_, pool_window<PoolWindow>(*c.node, rank - 2), workers);
    case Op::argsort: return argsort_workspace(y.dims, int(c.node->value), workers);
    default: return 0;
    }
}

ng_status CpuExecutor::run(const ExecutorRun& run, const Parallel& parallel) const noexcept
{
    auto** const local = static_cast<char**>(run.scratch);
    for (size_t i = 0; i < works_.size(); i++) {
        const Work& w = works_[i];
        if (w.fused && !w.epilogue) run_fused(w, run, local, parallel);
        else if (!w.fused) run_call(*w.call, i + 1 < works_.size() && works_[i + 1].epilogue ? &works_[i + 1] : nullptr, run, parallel);
    }
    return NG_OK;
}

// Whether anything that it writes is wanted; then its buffers are in `local`.
bool CpuExecutor::bind(const Work& w, const ExecutorRun& run, char** local) const noexcept
{
    for (size_t i = 0; i < w.buffers.size(); i++) local[i] = run.buffers[w.buffers[i]];
    return std::ranges::any_of(w.stored, [&](int32_t b) { return local[b] != nullptr; });
}

void CpuExecutor::run_fused(const Work& w, const ExecutorRun& run, char** local, const Parallel& parallel) const noexcept
{
    if (!bind(w, run, local)) return;
    w.fused->run({run.variables, local, run.scalars, static_cast<char*>(run.scratch) + table_bytes(most_buffers_)}, parallel);
}

// The fused kernel on a part of a product, in the axes of more than one element.
struct Tail {
    const FusedKernel& kernel;
    FusedRun           run;
    const Placed&      product;

    static void box(void* self, const int64_t* first, const int64_t* count, uint32_t)
    {
        const Tail& t = *static_cast<const Tail*>(self);
        int64_t from[NG_MAX_NDIM], size[NG_MAX_NDIM];
        int axes = 0;
        for (int a = 0; a < t.product.rank(); a++)
            if (!t.product.is_unit(a)) from[axes] = first[a], size[axes++] = count[a];
        t.kernel.run_box(t.run, from, size);
    }
};

void CpuExecutor::run_call(const Call& c, const Work* tail, const ExecutorRun& run, const Parallel& parallel) const
{
    auto** const local = static_cast<char**>(run.scratch);
    if (tail && !bind(*tail, run, local)) return;
    Placed::Numbers n[MAX_OPERANDS], to;
    Operand x[MAX_OPERANDS];
    for (size_t i = 0; i < c.in.size(); i++) x[i] = operand_at(c.in[i], run, variables_, n[i]);
    const Operand y = operand_at(c.out, run, variables_, to);
    const int rank = c.out.rank();
    if (!y.data) return;                                           // not wanted
    if (!c.node) return copy(x[0], y, rank, parallel);
    char* const scratch = static_cast<char*>(run.scratch) + table_bytes(most_buffers_);
    const IndexPlace place{isa_, scratch, parallel};
    const int axis = int(c.node->value);
    switch (c.node->op) {
    case Op::put:
        if (x[0].data != y.data) copy(x[0], y, rank, parallel);
        return put(y, x[1], x[2], {rank, axis, c.in[1].rank()}, folding_of(Folding(c.node->int_at(0)), y.type), place);
    case Op::scan: return scan(x[0], y, rank, axis, folding_of(Folding(c.node->int_at(0)), y.type), uint32_t(c.node->int_at(1)), place);
    case Op::segment: return segment(x[0], x[1], y, rank, folding_of(Folding(c.node->int_at(0)), y.type), place);
    case Op::argsort: return argsort(x[0], y, rank, axis, uint32_t(c.node->int_at(0)), place);
    default: break;
    }
    if (!tail) return run_product(c, x, y, nullptr, {products_, scratch, parallel});
    Tail t{*tail->fused, {run.variables, local, run.scalars, nullptr}, c.out};
    const Epilogue epilogue{Tail::box, &t};
    run_product(c, x, y, &epilogue, {products_, scratch, parallel});
}

void CpuExecutor::run_product(const Call& c, const Operand* x, const Operand& y, const Epilogue* epilogue, const Workplace& place) const
{
    const Node& n = *c.node;
    const int rank = c.out.rank(), spatial = rank - 2;
    switch (n.op) {
    case Op::matmul: return matmul(x[0], x[1], y, rank, epilogue, place);
    case Op::conv: return conv(x[0], x[1], y, conv_window<ConvWindow>(n, spatial), epilogue, place);
    case Op::conv_dx: return conv_dx(x[0], x[1], y, conv_window<ConvWindow>(n, spatial), place);
    case Op::conv_dw: return conv_dw(x[0], x[1], y, conv_window<ConvWindow>(n, spatial), place);
    case Op::pool:
        if (c.in.size() > 1) return pool_pick(x[0], x[1], y, pool_window<PoolWindow>(n, spatial), place);
        return pool(x[0], y, pool_window<PoolWindow>(n, spatial), place);
    default: return pool_dx(x[0], x[1], y, pool_window<PoolWindow>(n, spatial), place);
    }
}

}  // namespace
}  // namespace ng::cpu

namespace ng {

std::unique_ptr<Executor> make_cpu_executor(const Plan& plan, const char* level) { return std::make_unique<cpu::CpuExecutor>(plan, level); }

}  // namespace ng
