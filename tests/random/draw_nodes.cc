// A node of each form with attributes that are likely to be allowed: infer() has the last word.
#include "tests/random/draw.h"

#include <algorithm>
#include <limits>

namespace programs {

int Drawing::any()
{
    for (;;) {
        const int count = int(p_.nodes.size());
        const int i = dice_.chance(50) ? std::max(0, count - 1 - dice_.below(3)) : dice_.below(size_t(count));
        if (!at(i).weak || count == 1) return i;
    }
}
int Drawing::with_rank(int least)
{
    for (int i = 0; i < 8; i++) {
        const int x = any();
        if (int(at(x).dims.size()) >= least) return x;
    }
    const int fresh = input(type(), some_dims(least, std::max(least, 4)), random_fill(dice_));
    return fresh >= 0 ? fresh : any();
}
int Drawing::any_real()
{
    for (int i = 0; i < 4; i++) {
        const int x = any();
        if (is_float(at(x).type)) return x;
    }
    return any();
}
int64_t Drawing::least_extent(const Polynomial& d) const
{
    int64_t least = std::numeric_limits<int64_t>::max();
    for (const Dims& lengths : p_.runs) least = std::min(least, d.value(lengths));
    return least;
}

Node Drawing::map()
{
    Node n{Form::Map};
    n.row = dice_.of(table_.maps);
    const Row& row = table_.rows[size_t(n.row)];
    const bool fresh = dice_.chance(30);
    int first = fresh ? input(row.domain == Domain::Bits ? whole_type() : type(), beside(at(any()).dims), random_fill(dice_)) : any();
    if (first < 0) first = any();
    n.args = {first};
    for (int i = 1; i < row.arity; i++) {
        int other = -1;
        const Extents dims = at(first).dims;
        if (dice_.chance(25)) other = literal();
        else if (dice_.chance(35)) other = input(dice_.chance(60) ? at(first).type : type(), beside(dims), random_fill(dice_));
        for (int k = 0; k < 6 && other < 0; k++) {
            const int candidate = any();
            if (k == 5 || at(candidate).dims == dims) other = candidate;
        }
        n.args.push_back(other);
    }
    if (row.arity > 1 && dice_.chance(20)) std::swap(n.args[0], n.args[1]);
    return n;
}

Node Drawing::reduction()
{
    Node n{Form::Reduce};
    n.row = dice_.of(table_.reductions);
    n.args = {dice_.chance(70) ? with_rank(1) : any_real()};
    const size_t rank = at(n.args[0]).dims.size();
    const int64_t axes = dice_.chance(20) ? -1 : dice_.within(0, (int64_t(1) << rank) - 1);
    n.ints = {axes, dice_.chance(50) ? int64_t(NG_KEEP) : 0};
    return n;
}

Node Drawing::reshaped()
{
    Node n{Form::Reshape};
    n.args = {with_rank(dice_.chance(80) ? 1 : 0)};
    const Extents& dims = at(n.args[0]).dims;
    Dims out;
    bool rest = false;
    const size_t merged = dims.size() > 1 && dice_.chance(50) ? size_t(dice_.below(dims.size() - 1)) : dims.size();
    for (size_t a = 0; a < dims.size(); a++) {
        if (dice_.chance(10)) out.push_back(1);
        if (a == merged) {
            out.push_back(NG_REST), rest = true, a++;
            continue;
        }
        const auto d = dims[a].dim();
        if (!d) {
            if (rest) return nothing();
            out.push_back(NG_REST), rest = true;
        } else if (*d > 3 && dice_.chance(40)) {
            int64_t part = dice_.within(2, *d / 2);
            while (*d % part) part--;
            out.push_back(part), out.push_back(*d / part);
        } else if (*d != 1 || dice_.chance(50)) {
            out.push_back(*d);
        }
    }
    if (dice_.chance(15)) out = {NG_REST};
    n.ints = out;
    return n;
}

Node Drawing::sliced()
{
    Node n{Form::Slice};
    n.args = {with_rank(1)};
    const Extents& dims = at(n.args[0]).dims;
    if (dims.empty()) return nothing();
    const int axis = dice_.below(dims.size());
    const int64_t size = least_extent(dims[size_t(axis)]);
    const bool is_known = dims[size_t(axis)].is_constant();
    int64_t step = is_known ? dice_.of<int64_t>({1, 1, 1, 2, 3, -1, -1, -2}) : dice_.of<int64_t>({1, 1, 1, -1});
    int64_t start = dice_.chance(40) ? (step > 0 ? 0 : NG_END) : dice_.within(-size - is_known, size + is_known);
    int64_t stop = dice_.chance(40) ? NG_END : dice_.within(-size - is_known, size + is_known);
    if (dice_.chance(30)) step = -1, start = NG_END, stop = NG_END;
    n.ints = {axis, start, stop, step};
    return n;
}

Node Drawing::moved(Form form)
{
    Node n{form};
    n.args = {form == Form::Broadcast ? any() : with_rank(1)};
    const Node& x = at(n.args[0]);
    const auto rank = x.dims.size();
    if (!rank && form != Form::Broadcast) return nothing();
    if (form == Form::Broadcast) {
        if (!has_dims(x)) return nothing();
        for (int64_t more = dice_.within(0, 2); more > 0; more--) n.ints.push_back(extent());
        for (const Polynomial& d : x.dims) n.ints.push_back(d.is(1) ? extent() : *d.dim());
    } else if (form == Form::Permute) {
        for (size_t a = 0; a < rank; a++) n.ints.push_back(int64_t(a));
        for (size_t a = rank; a > 1; a--) std::swap(n.ints[a - 1], n.ints[size_t(dice_.below(a))]);
        if (dice_.chance(25)) n.ints.insert(n.ints.begin() + dice_.below(n.ints.size() + 1), -1);
    } else if (form == Form::Window) {
        const int axis = dice_.below(rank);
        const int64_t room = least_extent(x.dims[size_t(axis)]);
        const int start = input(whole_type(), {}, Fill::Index, room + 1);
        n.args.push_back(start);
        n.ints = {axis, dice_.within(0, room)};
    } else if (form == Form::Concat) {
        n.ints = {dice_.below(rank)};
        for (int64_t more = dice_.within(1, 3); more > 0; more--) {
            Extents dims = at(n.args[0]).dims;
            dims[size_t(n.ints[0])] = Polynomial::of_dim(extent());
            const int fresh = dice_.chance(50) ? input(dice_.chance(80) ? at(n.args[0]).type : type(), dims, random_fill(dice_)) : -1;
            n.args.push_back(fresh >= 0 ? fresh : dice_.chance(50) ? n.args[0] : any());
        }
    } else {                                                    // View
        const Polynomial count = product_of(x.dims);
        if (!count.is_constant() || count.is(0)) return nothing();
        const int64_t all = count.constant();
        int64_t low = 0, high = 0;
        Dims dims, strides;
        for (int64_t r = dice_.within(1, 3); r > 0; r--) {
            const int64_t d = dice_.within(1, 5), stride = dice_.within(-3, 4), reach = (d - 1) * stride;
            if (high - low + std::abs(reach) >= all) continue;
            (reach < 0 ? low : high) += reach;
            dims.push_back(d), strides.push_back(stride);
        }
        n.ints = {dice_.within(-low, all - 1 - high)};
        n.ints.insert(n.ints.end(), dims.begin(), dims.end());
        n.ints.insert(n.ints.end(), strides.begin(), strides.end());
    }
    return n;
}

Node Drawing::indexed(Form form)
{
    Node n{form};
    n.args = {with_rank(1)};
    const Extents dims = at(n.args[0]).dims;
    if (dims.empty()) return nothing();
    const auto axis = size_t(dice_.below(dims.size()));
    const int64_t fold = dice_.of<int64_t>({NG_FOLD_LAST, NG_FOLD_SUM, NG_FOLD_SUM, NG_FOLD_PROD, NG_FOLD_MIN, NG_FOLD_MAX});
    if (form == Form::Scan) n.ints = {int64_t(axis), fold, dice_.within(0, 3)};
    if (form == Form::Argsort) n.ints = {int64_t(axis), dice_.of<int64_t>({0, NG_REVERSE})};
    if (form == Form::Segment) {
        n.ints = {fold};
        n.args.push_back(input(dice_.of({ng_dtype(NG_I32), ng_dtype(NG_I64)}), {Polynomial(dice_.within(1, 6))}, Fill::Offsets, least_extent(dims[0])));
    }
    if (form != Form::Take && form != Form::Put) return n;
    n.ints = {int64_t(axis), fold};
    int indices = -1;
    if (dice_.chance(80)) indices = input(whole_type(), some_dims(0, 2), Fill::Index, least_extent(dims[axis]));
    if (indices < 0) indices = any();
    n.args.push_back(indices);
    if (form == Form::Take) return n.ints.resize(1), n;
    Extents places(dims.begin(), dims.begin() + long(axis));
    places.insert(places.end(), at(indices).dims.begin(), at(indices).dims.end());
    places.insert(places.end(), dims.begin() + long(axis) + 1, dims.end());
    int y = dice_.chance(15) ? literal() : dice_.chance(70) ? input(at(n.args[0]).type, beside(places), random_fill(dice_)) : -1;
    if (y < 0) y = any();
    n.args.push_back(y);
    return n;
}

Node Drawing::made(Form form)
{
    Node n{form};
    const auto dims_as_ints = [&](int least) {
        for (int64_t rank = dice_.within(least, 3); rank > 0; rank--) n.ints.push_back(extent());
    };
    if (form == Form::Constant) {
        n.type = type();
        const bool whole = !is_float(n.type) && !is_bool(n.type);
        n.ints = {whole, dice_.within(0, 9)}, n.number = dice_.of({0.0, 1.0, -1.5, 0.1, 2.0});
    } else if (form == Form::Length) {
        if (p_.runs[0].empty()) return n.form = Form::Constant, n.type = NG_F32, n.ints = {0, 0}, n;
        n.ints = {dice_.below(p_.runs[0].size())};
    } else if (form == Form::Iota) {
        n.type = dice_.of({ng_dtype(NG_I32), ng_dtype(NG_I64), ng_dtype(NG_F32), ng_dtype(NG_F64), ng_dtype(NG_U16)});
        n.ints = {0};
        dims_as_ints(1);
        n.ints[0] = dice_.below(n.ints.size() - 1);
    } else if (form == Form::Random) {
        const int64_t kind = dice_.of<int64_t>({NG_UNIFORM, NG_NORMAL, NG_BITS});
        n.type = kind == NG_BITS ? ng_dtype(NG_U32) : dice_.of({ng_dtype(NG_F32), ng_dtype(NG_F64)});
        n.ints = {kind};
        dims_as_ints(0);
    }
    if (form == Form::Stochastic) {
        n.args = {any_real()};
        n.type = dice_.of({ng_dtype(NG_F16), ng_dtype(NG_BF16), ng_dtype(NG_E4M3), ng_dtype(NG_E5M2), ng_dtype(NG_F32)});
        n.ints = {dice_.chance(50) ? 0 : dice_.within(1, element(n.type).mantissa)};
    }
    if (form == Form::Random || form == Form::Stochastic) {
        n.args.push_back(input(NG_U64, {}, Fill::Key));
        if (dice_.chance(60)) n.args.push_back(input(NG_U64, {}, Fill::Key));
    }
    if (form == Form::Mark) {
        n.args = {any()}, n.ints = {dice_.within(0, 3)};
        if (n.ints[0] == 3) n.args.push_back(n.args[0]);
    }
    if (form == Form::Cast || form == Form::Bitcast) n.args = {any()}, n.type = type();
    for (int i = 0; form == Form::Bitcast && i < 20 && element(n.type).bytes != element(at(n.args[0]).type).bytes; i++) n.type = type();
    return n;
}

Node Drawing::drawn(Form form)
{
    switch (form) {
    case Form::Map: return map();
    case Form::Reduce: return reduction();
    case Form::Norm: { Node n = reduction(); n.form = form, n.row = dice_.of(table_.norms), n.ints.resize(1); return n; }
    case Form::Reshape: return reshaped();
    case Form::Slice: return sliced();
    case Form::Broadcast: case Form::Permute: case Form::Window: case Form::Concat: case Form::View: return moved(form);
    case Form::Take: case Form::Put: case Form::Scan: case Form::Segment: case Form::Argsort: return indexed(form);
    case Form::Matmul: return product();
    case Form::Conv: case Form::ConvDx: case Form::ConvDw: return convolved(form);
    case Form::Pool: case Form::PoolDx: return pooled(form);
    case Form::Input: return nothing();
    default: return made(form);
    }
}

}  // namespace programs
