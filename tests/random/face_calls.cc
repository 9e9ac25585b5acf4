// Every form of node through the C header, with extents as numbers or as lengths; tensors written and read by copies.
#include "tests/random/face_calls.h"

#include <algorithm>
#include <numeric>

namespace programs {

void check(ng_status status, const ng_error& error, const std::string& what)
{
    if (status != NG_OK && status != NG_SLOW) throw Fault(what + ": " + ng_status_name(status) + " " + error.text);
}

ng_shape shape_of(ng_dtype t, const Dims& dims)
{
    ng_shape d{};
    d.size = sizeof d, d.dtype = t, d.ndim = int32_t(dims.size());
    std::copy(dims.begin(), dims.end(), d.dims);
    return d;
}

bool has_face(const Extents& dims)
{
    return std::ranges::all_of(dims, [](const Polynomial& d) { return d.dim().has_value(); });
}
Dims face_dims(const Extents& dims)
{
    Dims out;
    for (const Polynomial& d : dims) {
        if (!d.dim()) throw Fault("an extent that ng.h cannot say");
        out.push_back(*d.dim());
    }
    return out;
}

namespace {

Dims concrete(Dims dims, const Dims* lengths)
{
    for (int64_t& d : dims)
        if (lengths && d < 0 && d != NG_REST) d = (*lengths)[size_t(-1 - d)];
    return dims;
}

ng_expr* mapped(const Row& row, std::span<ng_expr* const> x)
{
    return row.one ? row.one(x[0]) : row.two ? row.two(x[0], x[1]) : row.three(x[0], x[1], x[2]);
}

ng_expr* marked(const Node& n, std::span<ng_expr* const> x)
{
    switch (n.ints[0]) {
    case 0: return ng_tag(x[0], "marked");
    case 1: return ng_keep(x[0]);
    case 2: return ng_surrogate(x[0], nullptr);
    default: return ng_surrogate(x[0], x.back());
    }
}

ng_expr* moved(const Node& n, std::span<ng_expr* const> x, const Dims* lengths)
{
    const Dims& k = n.ints;
    switch (n.form) {
    case Form::Reshape: {
        const Dims dims = lengths ? values_of(n.dims, *lengths) : k;
        return ng_reshape(x[0], dims.data(), uint32_t(dims.size()));
    }
    case Form::Broadcast: {
        const Dims dims = concrete(k, lengths);
        return ng_broadcast(x[0], dims.data(), uint32_t(dims.size()));
    }
    case Form::Permute: {
        const std::vector<int32_t> axes(k.begin(), k.end());
        return ng_permute(x[0], axes.data(), uint32_t(axes.size()));
    }
    case Form::Slice: return ng_slice(x[0], int32_t(k[0]), k[1], k[2], k[3]);
    case Form::Window: return ng_window(x[0], int32_t(k[0]), x[1], concrete({k[1]}, lengths)[0]);
    case Form::Concat: return ng_concat(x.data(), uint32_t(x.size()), int32_t(k[0]));
    default: {
        const size_t rank = (k.size() - 1) / 2;
        ng_shape d = shape_of(n.type, Dims(k.begin() + 1, k.begin() + 1 + long(rank)));
        d.flags = NG_STRIDED;
        std::copy(k.begin() + 1 + long(rank), k.end(), d.strides);
        return ng_view(x[0], &d, k[0]);
    }
    }
}

}  // namespace

ng_expr* expression_of(const Table& table, const Program&, const Node& n, ng_scope* s, std::span<ng_expr* const> x, const Dims* lengths)
{
    const Dims& k = n.ints;
    const auto given = [&] { return lengths ? values_of(n.dims, *lengths) : face_dims(n.dims); };
    switch (n.form) {
    case Form::Constant: return k[0] ? ng_const_int(s, n.weak ? 0 : n.type, k[1]) : ng_const(s, n.weak ? 0 : n.type, n.number);
    case Form::Length: return lengths ? ng_const_int(s, NG_I64, (*lengths)[size_t(k[0])]) : ng_length(s, -1 - k[0]);
    case Form::Iota: { const ng_shape d = shape_of(n.type, given()); return ng_iota(s, &d, int32_t(k[0])); }
    case Form::Random: { const ng_shape d = shape_of(n.type, given()); return ng_random(s, ng_random_kind(k[0]), x[0], x.size() > 1 ? x[1] : nullptr, &d); }
    case Form::Map: return mapped(table.rows[size_t(n.row)], x);
    case Form::Reduce: return table.rows[size_t(n.row)].reduce(x[0], ng_axes(k[0]), uint32_t(k[1]));
    case Form::Norm: return table.rows[size_t(n.row)].norm(x[0], ng_axes(k[0]));
    case Form::Cast: return ng_cast(x[0], n.type);
    case Form::Stochastic: return ng_cast_stochastic(x[0], n.type, uint32_t(k[0]), x[1], x.size() > 2 ? x[2] : nullptr);
    case Form::Bitcast: return ng_bitcast(x[0], n.type);
    case Form::Take: return ng_take(x[0], x[1], int32_t(k[0]));
    case Form::Put: return ng_put(x[0], x[1], x[2], int32_t(k[0]), ng_fold(k[1]));
    case Form::Scan: return ng_scan(x[0], int32_t(k[0]), ng_fold(k[1]), uint32_t(k[2]));
    case Form::Segment: return ng_segment(x[0], x[1], ng_fold(k[0]));
    case Form::Argsort: return ng_argsort(x[0], int32_t(k[0]), uint32_t(k[1]));
    case Form::Matmul: return ng_matmul(x[0], x[1], nullptr);
    case Form::Conv: return ng_conv(x[0], x[1], &n.conv);
    case Form::ConvDx: { const ng_shape d = shape_of(n.type, given()); return ng_conv_dx(x[0], x[1], &d, &n.conv); }
    case Form::ConvDw: { const ng_shape d = shape_of(n.type, given()); return ng_conv_dw(x[0], x[1], &d, &n.conv); }
    case Form::Pool: return ng_pool(x[0], &n.pool);
    case Form::PoolDx: return ng_pool_dx(x[0], x[1], &n.pool);
    case Form::Mark: return marked(n, x);
    default: return moved(n, x, lengths);
    }
}

std::string text_of(const ng_expr* e)
{
    ng_error error{};
    size_t bytes = 0;
    if (ng_expr_text(e, nullptr, &bytes, &error) != NG_OK) return std::string("no text: ") + error.text;
    std::string s(bytes, '\0');
    if (ng_expr_text(e, s.data(), &bytes, &error) != NG_OK) return std::string("no text: ") + error.text;
    return s.c_str();
}

void check_shape(const Node& n, const ng_expr* e, const Dims* lengths)
{
    if (n.weak) return;
    ng_shape d{};
    d.size = sizeof d;
    ng_error error{};
    check(ng_expr_shape(e, &d, &error), error, "ng_expr_shape");
    if (d.dtype != n.type) throw Fault(std::string("a type is ") + element(d.dtype).name + ", should be " + element(n.type).name);
    if (d.ndim != int32_t(n.dims.size())) throw Fault("a rank is " + std::to_string(d.ndim) + ", should be " + std::to_string(n.dims.size()));
    for (size_t a = 0; a < n.dims.size(); a++) {
        if (!lengths && !n.dims[a].dim()) continue;
        const int64_t want = lengths ? n.dims[a].value(*lengths) : *n.dims[a].dim();
        if (d.dims[a] != want) throw Fault("axis " + std::to_string(a) + " is " + std::to_string(d.dims[a]) + ", should be " + std::to_string(want));
    }
}

// ---- tensors

namespace {

TensorRef created(ng_ctx* c, ng_dtype t, const Dims& dims)
{
    TensorRef out;
    ng_error error{};
    const ng_shape d = shape_of(t, dims);
    check(ng_tensor_create(c, &d, out.put(), &error), error, "ng_tensor_create");
    return out;
}

TensorRef view_of(ng_expr* e)
{
    TensorRef out;
    ng_error error{};
    const ng_status status = ng_tensor_view(e, out.put(), &error);
    ng_expr_release(e);
    check(status, error, "ng_tensor_view");
    return out;
}

}  // namespace

TensorRef part_of(ng_tensor* t, int32_t axis, int64_t start, int64_t stop, int64_t step)
{
    ng_expr* const leaf = ng_leaf(nullptr, t);
    ng_expr* const e = ng_slice(leaf, axis, start, stop, step);
    ng_expr_release(leaf);
    return view_of(e);
}

Placed placed(ng_ctx* c, ng_dtype t, const Dims& dims, Lie lie, int64_t spare_rows)
{
    Placed p;
    p.type = t, p.dims = p.base_dims = dims;
    if (dims.empty()) lie = Lie::Dense;
    const auto last = int32_t(dims.size()) - 1;
    if (lie == Lie::Permuted) std::reverse(p.base_dims.begin(), p.base_dims.end());
    if (lie == Lie::Stepped) p.base_dims.back() = 2 * dims.back() + 1;
    if (lie == Lie::Shifted) p.base_dims[0] += 3;
    if (lie == Lie::Dense && !dims.empty()) p.base_dims[0] += spare_rows;
    constexpr int64_t MOST = int64_t(1) << 24;         // an empty array's other axes may be vast, and a base has all of them
    if (count_of(dims) == 0 && count_of(p.base_dims) > MOST) p.base_dims = dims, lie = Lie::Dense, spare_rows = 0;
    p.base = created(c, t, p.base_dims);
    write(c, p.base.get(), t, p.base_dims, pattern(t, count_of(p.base_dims)));
    switch (lie) {
    case Lie::Permuted: {
        std::vector<int32_t> axes(dims.size());
        std::iota(axes.rbegin(), axes.rend(), 0);
        ng_expr* const leaf = ng_leaf(nullptr, p.base.get());
        ng_expr* const e = ng_permute(leaf, axes.data(), uint32_t(axes.size()));
        ng_expr_release(leaf);
        p.tensor = view_of(e);
        break;
    }
    case Lie::Stepped: p.tensor = part_of(p.base.get(), last, 1, 2 * dims.back() + 1, 2); break;
    case Lie::Flipped: p.tensor = part_of(p.base.get(), last, NG_END, NG_END, -1); break;
    case Lie::Shifted: p.tensor = part_of(p.base.get(), 0, 2, 2 + dims[0], 1); break;
    default:
        if (spare_rows && !dims.empty()) p.tensor = part_of(p.base.get(), 0, 0, dims[0], 1);
        else ng_tensor_retain(p.base.get()), p.tensor = TensorRef(p.base.get());
    }
    return p;
}

void write(ng_ctx* c, ng_tensor* t, ng_dtype type, const Dims& dims, const Bytes& values)
{
    ng_error error{};
    const TensorRef dense = created(c, type, dims);
    check(ng_tensor_put(dense.get(), values.data(), values.size(), &error), error, "ng_tensor_put");
    check(ng_tensor_copy(t, dense.get(), nullptr, &error), error, "ng_tensor_copy");
}

Bytes read(ng_ctx* c, ng_tensor* t, ng_dtype type, const Dims& dims)
{
    ng_error error{};
    const TensorRef dense = created(c, type, dims);
    check(ng_tensor_copy(dense.get(), t, nullptr, &error), error, "ng_tensor_copy");
    Bytes values(size_t(count_of(dims) * element(type).bytes));
    check(ng_tensor_get(dense.get(), values.data(), values.size(), &error), error, "ng_tensor_get");
    return values;
}

Bytes pattern(ng_dtype t, int64_t count) { return Bytes(size_t(count * element(t).bytes), is_bool(t) ? 1 : 0x5a); }

bool surroundings_untouched(ng_ctx* c, Placed& p)
{
    if (p.base_dims == p.dims) return true;
    write(c, p.tensor.get(), p.type, p.dims, pattern(p.type, count_of(p.dims)));
    return read(c, p.base.get(), p.type, p.base_dims) == pattern(p.type, count_of(p.base_dims));
}

}  // namespace programs
