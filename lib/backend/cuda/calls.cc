// Each operation that is a call: its operands in numbers, its workspace, its launches.
#include "lib/backend/cuda/calls.h"

#include "jit/saturated.h"

#include <algorithm>

namespace ng::cuda::calls {
namespace {

constexpr size_t MAX_OPERANDS = 3;
using basic::Operand;

}  // namespace

uint64_t scratch_bytes(const NodeRef& node, const std::vector<Placed>& in, const Placed& out, std::span<const int64_t> variables)
{
    if (!node) return 0;
    Placed::Numbers n[MAX_OPERANDS], to;
    Operand x[MAX_OPERANDS];
    for (size_t i = 0; i < in.size(); i++) {
        in[i].evaluate_most(variables, n[i]);
        x[i] = {nullptr, in[i].type(), n[i].dims, n[i].strides};
    }
    out.evaluate_most(variables, to);
    const Operand y{nullptr, out.type(), to.dims, to.strides};
    const int rank = out.rank(), spatial = rank - 2, axis = int(node->value);
    // What these take grows with the elements of one tensor; of more than any memory holds no number is right.
    const auto is_endless = [](const Placed::Numbers& t, int of_rank) {
        double elements = 1;
        for (int i = 0; i < of_rank; i++) elements *= double(t.dims[i]);
        return elements > 0x1p50;
    };
    const bool is_by_result = node->op == Op::scan || node->op == Op::argsort, is_by_second = node->op == Op::put || node->op == Op::pool_dx;
    if (is_by_result ? is_endless(to, rank) : is_by_second ? is_endless(n[1], in[1].rank()) : node->op == Op::segment && is_endless(n[0], in[0].rank())) return uint64_t(1) << 56;
    switch (node->op) {
    case Op::put: return basic::put_workspace(y, x[1], {rank, axis, in[1].rank(), true}, basic::Folding(node->int_at(0)));
    case Op::scan: return basic::scan_workspace(to.dims, rank, axis);
    case Op::segment: return basic::segment_workspace(n[0].dims, rank);
    case Op::argsort: return basic::argsort_workspace(to.dims, rank, axis, x[0].type);
    case Op::matmul: {
        int64_t batch = 1;
        for (int i = 0; i < rank - 2; i++) batch = times(batch, to.dims[i]);         // its parts are bounded, whatever its size
        return basic::matmul_workspace({batch, to.dims[rank - 2], to.dims[rank - 1], n[0].dims[rank - 1], y.type});
    }
    case Op::conv: return basic::conv_workspace(x[0], x[1], y, conv_window<basic::ConvWindow>(*node, spatial));
    case Op::conv_dx: return basic::conv_workspace(y, x[0], x[1], conv_window<basic::ConvWindow>(*node, spatial));
    case Op::conv_dw: return basic::conv_workspace(x[0], y, x[1], conv_window<basic::ConvWindow>(*node, spatial));
    case Op::pool_dx: return basic::pool_dx_workspace(n[1].dims, pool_window<basic::PoolWindow>(*node, spatial));
    default: return 0;
    }
}

void run(const NodeRef& node, const std::vector<Placed>& in, const Placed& out, const ExecutorRun& run, int32_t variables, bool is_ordered,
         const basic::Place& place)
{
    Placed::Numbers n[MAX_OPERANDS], to;
    Operand x[MAX_OPERANDS];
    for (size_t i = 0; i < in.size(); i++) {
        in[i].at(run, variables, n[i]);
        x[i] = {n[i].data, in[i].type(), n[i].dims, n[i].strides};
    }
    out.at(run, variables, to);
    const Operand y{to.data, out.type(), to.dims, to.strides};
    if (!to.data) return;                                          // not wanted
    const int rank = out.rank(), spatial = rank - 2;
    if (!node) return basic::copy(x[0], y, rank, place);
    const Node& c = *node;
    const int axis = int(c.value);
    switch (c.op) {
    case Op::put:
        if (x[0].data != y.data) basic::copy(x[0], y, rank, place);
        return basic::put(y, x[1], x[2], {rank, axis, in[1].rank(), is_ordered}, basic::Folding(c.int_at(0)), place);
    case Op::scan: return basic::scan(x[0], y, {rank, axis, basic::Folding(c.int_at(0)), uint32_t(c.int_at(1))}, place);
    case Op::segment: return basic::segment(x[0], x[1], y, rank, basic::Folding(c.int_at(0)), place);
    case Op::argsort: return basic::argsort(x[0], y, rank, axis, uint32_t(c.int_at(0)), place);
    case Op::matmul: return basic::matmul(x[0], x[1], y, rank, place);
    case Op::conv: return basic::conv(x[0], x[1], y, conv_window<basic::ConvWindow>(c, spatial), place);
    case Op::conv_dx: return basic::conv_dx(x[0], x[1], y, conv_window<basic::ConvWindow>(c, spatial), place);
    case Op::conv_dw: return basic::conv_dw(x[0], x[1], y, conv_window<basic::ConvWindow>(c, spatial), place);
    case Op::pool:
        if (in.size() > 1) return basic::pool_pick(x[0], x[1], y, pool_window<basic::PoolWindow>(c, spatial), place);
        return basic::pool(x[0], y, pool_window<basic::PoolWindow>(c, spatial), place);
    default: return basic::pool_dx(x[0], x[1], y, pool_window<basic::PoolWindow>(c, spatial), place);
    }
}

}  // namespace ng::cuda::calls
