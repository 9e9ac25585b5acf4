// Types and shapes by the contract's rules, a form at a time: what the library must answer too.
#include "tests/random/graph_of_program.h"

#include <algorithm>
#include <iterator>

namespace programs {
namespace {

class Inference {
  public:
    Inference(const Table& table, const Program& program, Node& node) : table_(table), program_(program), n_(node) {}
    bool run()
    {
        const bool takes_literals = n_.form == Form::Map || n_.form == Form::Put;
        for (const int a : n_.args)
            if (arg_at(a).weak && !takes_literals) return false;
        if (!known() || n_.dims.size() > 6) return false;
        for (const Dims& lengths : program_.runs)
            for (const int64_t d : values_of(n_.dims, lengths))
                if (d < 0) return false;
        return true;
    }

  private:
    const Node& arg_at(int i) const { return program_.nodes[size_t(i)]; }
    const Node& arg(size_t i) const { return arg_at(n_.args[i]); }
    bool each_run(auto holds) const { return std::ranges::all_of(program_.runs, holds); }
    bool same(ng_dtype type, const Extents& dims) { return n_.type = type, n_.dims = dims, true; }

    bool known()
    {
        switch (n_.form) {
        case Form::Input: { const Input& in = program_.inputs[size_t(n_.ints[0])]; return same(in.type, in.dims); }
        case Form::Constant: return same(n_.weak ? ng_dtype(n_.ints[0] ? NG_I32 : NG_F32) : n_.type, {});
        case Form::Length: return same(NG_I64, {});
        case Form::Iota: return same(n_.type, dims_from(1)) && n_.ints[0] < int64_t(n_.dims.size());
        case Form::Random: return random();
        case Form::Map: return map();
        case Form::Reduce: return reduce();
        case Form::Norm: return same(real_of(arg(0).type), arg(0).dims) && inside(n_.ints[0], -1) && no_empty_fold(n_.ints[0]);
        case Form::Cast: return same(n_.type, arg(0).dims);
        case Form::Stochastic: return same(n_.type, arg(0).dims) && is_float(n_.type) && n_.ints[0] <= element(n_.type).mantissa && whole_scalars(1);
        case Form::Bitcast: return !is_bool(n_.type) && element(n_.type).bytes == element(arg(0).type).bytes && same(n_.type, arg(0).dims);
        case Form::Put: return put();
        case Form::Take: return take();
        case Form::Scan: return axis(n_.ints[0]) && same(arg(0).type, arg(0).dims);
        case Form::Segment: return segment();
        case Form::Argsort: return axis(n_.ints[0]) && same(NG_I64, arg(0).dims);
        case Form::Matmul: return matmul();
        case Form::Conv: case Form::ConvDx: case Form::ConvDw: return conv();
        case Form::Pool: case Form::PoolDx: return pool();
        case Form::Mark: return same(arg(0).type, arg(0).dims) && (n_.ints[0] != 3 || is_float(n_.type));
        default: return moved();
        }
    }
    Extents dims_from(size_t first, size_t count = 99) const
    {
        Extents dims;
        for (size_t i = first; i < n_.ints.size() && i < first + count; i++) dims.push_back(Polynomial::of_dim(n_.ints[i]));
        return dims;
    }
    bool axis(int64_t a) const { return a >= 0 && a < int64_t(arg(0).dims.size()); }
    bool inside(int64_t axes, int64_t all) const { return axes == all || !(axes >> arg(0).dims.size()); }
    bool whole_scalars(size_t from) const
    {
        for (size_t i = from; i < n_.args.size(); i++)
            if (!is_integer(arg(i).type) || !arg(i).dims.empty()) return false;
        return true;
    }
    // Nothing has no greatest element, no mean, no softmax.
    bool no_empty_fold(int64_t axes) const
    {
        return each_run([&](const Dims& lengths) {
            const Dims d = values_of(arg(0).dims, lengths);
            for (size_t a = 0; a < d.size(); a++)
                if ((axes >> a & 1) && d[a] == 0) return false;
            return true;
        });
    }
    bool random()
    {
        const bool fits = n_.ints[0] == NG_BITS ? n_.type == NG_U32 : n_.type == NG_F32 || n_.type == NG_F64;
        return fits && whole_scalars(0) && same(n_.type, dims_from(1));
    }

    // ---- element-wise
    static bool literal_fits(ng_dtype t, const Node& literal)
    {
        if (!is_integer(t) || !literal.ints[0]) return true;
        return converted(t, Real(literal.ints[1]), NG_I64) == Real(literal.ints[1]);
    }
    bool map()
    {
        const Row& row = table_.rows[size_t(n_.row)];
        const size_t skip = row.name == "where" ? 1 : 0;
        ng_dtype t = 0;
        bool point = false, whole = false;
        for (size_t i = skip; i < n_.args.size(); i++) {
            const Node& x = arg(i);
            if (x.weak) (x.ints[0] ? whole : point) = true;
            else if (!(t = t ? promoted(t, x.type) : element(x.type).compute)) return false;
        }
        if (!t || arg(0).weak > !skip) return false;      // literals alone are Python's, not the contract's
        if (point && !is_float(t)) t = NG_F32;
        if (whole && is_bool(t)) t = NG_I32;
        if (row.domain == Domain::Bits && is_float(t)) return false;
        if (row.domain == Domain::Any && is_bool(t)) t = NG_I32;
        if (row.domain == Domain::Real) t = real_of(t);
        if (row.domain == Domain::Logic) t = NG_BOOL;
        for (size_t i = skip; i < n_.args.size(); i++)
            if (arg(i).weak && !literal_fits(t, arg(i))) return false;
        n_.number = double(t);                              // the type it computes in, for the reference
        n_.type = row.gives_bool ? ng_dtype(NG_BOOL) : t;
        n_.dims = {};
        for (const int a : n_.args)
            if (!join(n_.dims, arg_at(a).dims)) return false;
        return true;
    }
    static bool join(Extents& dims, const Extents& other)
    {
        while (dims.size() < other.size()) dims.insert(dims.begin(), 1);
        for (size_t i = 0; i < other.size(); i++) {
            Polynomial& d = dims[dims.size() - 1 - i];
            const Polynomial& o = other[other.size() - 1 - i];
            if (d == o || o.is(1)) continue;
            if (!d.is(1)) return false;
            d = o;
        }
        return true;
    }

    // ---- reductions
    bool reduce()
    {
        const std::string& name = table_.rows[size_t(n_.row)].name;
        const ng_dtype x = arg(0).type;
        const int64_t axes = n_.ints[0];
        const bool place = name == "argmin" || name == "argmax", orders = name == "min" || name == "max";
        if (!inside(axes, -1)) return false;
        if (name == "any" || name == "all") n_.type = NG_BOOL;
        else if (place || name == "count_nonzero") n_.type = NG_I64;
        else if (orders) n_.type = element(x).compute;
        else if (name == "sum" || name == "prod") n_.type = is_float(x) ? element(x).compute : ng_dtype(element(x).kind == Kind::Uint ? NG_U64 : NG_I64);
        else n_.type = real_of(x);
        n_.dims = {};
        for (size_t a = 0; a < arg(0).dims.size(); a++) {
            if (!(axes >> a & 1)) n_.dims.push_back(arg(0).dims[a]);
            else if (n_.ints[1] & NG_KEEP) n_.dims.push_back(1);
        }
        const bool takes_nothing = name == "sum" || name == "prod" || name == "any" || name == "all" || name == "count_nonzero";
        return takes_nothing || no_empty_fold(axes);
    }

    // ---- movement
    bool moved()
    {
        const Extents& x = arg(0).dims;
        n_.type = arg(0).type;
        switch (n_.form) {
        case Form::Reshape: return reshape();
        case Form::Broadcast: {
            n_.dims = dims_from(0);
            Extents joined = n_.dims;
            return x.size() <= n_.dims.size() && join(joined, x) && joined == n_.dims;
        }
        case Form::Permute: {
            n_.dims = {};
            std::vector<bool> seen(x.size());
            for (const int64_t a : n_.ints) {
                if (a >= int64_t(x.size()) || (a >= 0 && seen[size_t(a)])) return false;
                if (a >= 0) seen[size_t(a)] = true;
                n_.dims.push_back(a < 0 ? Polynomial(1) : x[size_t(a)]);
            }
            return std::ranges::all_of(seen, [](bool b) { return b; });
        }
        case Form::Slice: return slice();
        case Form::Window: {
            if (!axis(n_.ints[0]) || !whole_scalars(1)) return false;
            n_.dims = x;
            n_.dims[size_t(n_.ints[0])] = Polynomial::of_dim(n_.ints[1]);
            return each_run([&](const Dims& l) { return n_.dims[size_t(n_.ints[0])].value(l) <= x[size_t(n_.ints[0])].value(l); });
        }
        case Form::Concat: return concat();
        default: return view();
        }
    }
    bool reshape()
    {
        Extents dims;
        int rest = -1;
        for (const int64_t d : n_.ints) {
            if (d == NG_REST && rest >= 0) return false;
            if (d == NG_REST) rest = int(dims.size());
            dims.push_back(d == NG_REST ? Polynomial(1) : Polynomial::of_dim(d));
        }
        const Polynomial all = product_of(arg(0).dims), others = product_of(dims);
        if (rest >= 0) {
            if (others.is(0)) return false;
            const auto quotient = all.divided_by(others);
            if (!quotient) return false;
            dims[size_t(rest)] = *quotient;
        }
        n_.dims = dims;
        return product_of(dims) == all;
    }
    bool slice()
    {
        if (!axis(n_.ints[0])) return false;
        const auto a = size_t(n_.ints[0]);
        const int64_t start = n_.ints[1], stop = n_.ints[2], step = n_.ints[3];
        n_.dims = arg(0).dims;
        const Polynomial d = n_.dims[a];
        if (!d.is_constant()) {
            if (step != 1 && step != -1) return false;
            const auto place = [&](int64_t i, const Polynomial& omitted) { return i == NG_END ? omitted : i < 0 ? d + Polynomial(i) : Polynomial(i); };
            const Polynomial first = place(start, step > 0 ? d : d - 1), end = place(stop, step > 0 ? d : Polynomial(-1));
            n_.dims[a] = step > 0 ? end - first : first - end;
            return each_run([&](const Dims& l) {
                const int64_t f = first.value(l), e = end.value(l), size = d.value(l), count = n_.dims[a].value(l);
                const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? size : size - 1;
                return count >= 0 && f >= low && f <= high && e >= low && e <= high;
            });
        }
        int64_t first, count;
        python_slice(d.constant(), start, stop, step, first, count);
        n_.dims[a] = count;
        return true;
    }

  public:
    // Python's slice(start, stop, step).indices(size), NG_END for None.
    static void python_slice(int64_t size, int64_t start, int64_t stop, int64_t step, int64_t& first, int64_t& count)
    {
        const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? size : size - 1;
        const auto place = [&](int64_t i, int64_t none) { return i == NG_END ? none : std::clamp(i < 0 ? i + size : i, low, high); };
        first = place(start, step > 0 ? low : high);
        const int64_t end = place(stop, step > 0 ? high : low);
        if (start == NG_END && step > 0) first = high;      // ng.h's NG_END lies at the end
        count = step > 0 ? (end - first + step - 1) / step : (first - end - step - 1) / -step;
        count = std::max<int64_t>(count, 0);
    }

  private:
    bool concat()
    {
        if (!axis(n_.ints[0])) return false;
        n_.dims = arg(0).dims;
        const auto along = size_t(n_.ints[0]);
        for (size_t i = 1; i < n_.args.size(); i++) {
            const Node& x = arg(i);
            if (x.type != n_.type && !(n_.type = promoted(n_.type, x.type))) return false;
            if (x.dims.size() != n_.dims.size()) return false;
            for (size_t a = 0; a < x.dims.size(); a++)
                if (a != along && !(x.dims[a] == n_.dims[a])) return false;
            n_.dims[along] = n_.dims[along] + x.dims[along];
        }
        return true;
    }
    bool view()
    {
        const Polynomial count = product_of(arg(0).dims);
        const size_t rank = (n_.ints.size() - 1) / 2;
        n_.dims = dims_from(1, rank);
        if (!count.is_constant()) return false;
        int64_t low = n_.ints[0], high = low;
        for (size_t a = 0; a < rank; a++) {
            const int64_t d = n_.ints[1 + a], stride = n_.ints[1 + rank + a];
            if (d <= 0) return false;
            (stride < 0 ? low : high) += (d - 1) * stride;
        }
        return low >= 0 && high < count.constant();
    }

    // ---- by index
    Extents places() const
    {
        Extents dims(arg(0).dims.begin(), arg(0).dims.begin() + n_.ints[0]);
        dims.insert(dims.end(), arg(1).dims.begin(), arg(1).dims.end());
        dims.insert(dims.end(), arg(0).dims.begin() + n_.ints[0] + 1, arg(0).dims.end());
        return dims;
    }
    bool take() { return axis(n_.ints[0]) && is_integer(arg(1).type) && same(arg(0).type, places()); }
    bool put()
    {
        const Node& y = arg(2);
        if (arg(0).weak || arg(1).weak || !axis(n_.ints[0]) || !is_integer(arg(1).type)) return false;
        const ng_dtype x = arg(0).type;
        if (y.weak ? (!is_float(x) && !(is_integer(x) && y.ints[0])) || !literal_fits(x, y)
                   : y.type != x && (is_float(x) != is_float(y.type) || promoted(x, y.type) != x)) return false;
        Extents all = places(), joined = all;
        return y.dims.size() <= all.size() && join(joined, y.dims) && joined == all && same(x, arg(0).dims);
    }
    bool segment()
    {
        if (arg(0).dims.empty() || arg(1).dims.size() != 1 || !is_integer(arg(1).type)) return false;
        if (!each_run([&](const Dims& l) { return arg(1).dims[0].value(l) > 0; })) return false;
        same(arg(0).type, arg(0).dims);
        n_.dims[0] = arg(1).dims[0] - 1;
        return true;
    }

    // ---- products
    bool accumulates()
    {
        const ng_dtype a = arg(0).type, b = arg(1).type;
        if (is_float(a) && is_float(b)) return n_.type = promoted(a, b), true;
        if (is_byte(a) && is_byte(b)) return n_.type = NG_I32, true;
        return n_.type = a, a == b && is_integer(a) && element(a).bytes >= 4;
    }
    bool matmul()
    {
        Extents a = arg(0).dims, b = arg(1).dims;
        if (!accumulates() || a.empty() || b.empty()) return false;
        const bool row = a.size() == 1, column = b.size() == 1;
        if (row) a.insert(a.begin(), 1);
        if (column) b.push_back(1);
        if (!(a.back() == b[b.size() - 2])) return false;
        n_.dims = Extents(a.begin(), a.end() - 2);
        if (!join(n_.dims, Extents(b.begin(), b.end() - 2))) return false;
        if (!row) n_.dims.push_back(a[a.size() - 2]);
        if (!column) n_.dims.push_back(b.back());
        return true;
    }
    static int or_one(int v) { return v ? v : 1; }
    bool conv()
    {
        Extents x = arg(0).dims, w = arg(1).dims, y;
        if (n_.form == Form::ConvDx) w = arg(0).dims, y = arg(1).dims, x = n_.dims;
        if (n_.form == Form::ConvDw) y = arg(1).dims, w = n_.dims;
        if (!accumulates() || x.size() < 3 || x.size() > 5 || w.size() != x.size()) return false;
        const int groups = or_one(n_.conv.groups);
        if (!(w[1] * Polynomial(groups) == x[1]) || !w[0].is_constant() || w[0].constant() % groups || w[0].is(0) || w[1].is(0)) return false;
        Extents want = {x[0], w[0]};
        for (size_t a = 2; a < x.size(); a++) {
            if (!w[a].is_constant() || !x[a].is_constant() || w[a].is(0)) return false;
            const int64_t reach = 1 + (w[a].constant() - 1) * or_one(n_.conv.dilate[a - 2]);
            const int64_t room = x[a].constant() + n_.conv.pad_lo[a - 2] + n_.conv.pad_hi[a - 2] - reach;
            if (room < 0) return false;
            want.push_back(1 + room / or_one(n_.conv.stride[a - 2]));
        }
        for (size_t a = x.size() - 2; a < 3; a++)
            if (n_.conv.stride[a] > 1 || n_.conv.dilate[a] > 1 || n_.conv.pad_lo[a] || n_.conv.pad_hi[a]) return false;
        if (n_.form == Form::Conv) return n_.dims = want, true;
        return y == want;
    }
    bool pool()
    {
        const Extents& x = arg(0).dims;
        const ng_pool_desc& d = n_.pool;
        if (x.size() < 3 || x.size() > 5 || !x[1].is_constant()) return false;
        const int over = or_one(d.channel_window), by = d.channel_stride ? d.channel_stride : over;
        if (x[1].constant() + 2 * d.channel_pad < over) return false;
        Extents y = {x[0], 1 + (x[1].constant() + 2 * d.channel_pad - over) / by};
        for (size_t a = 2; a < x.size(); a++) {
            const size_t i = a - 2;
            const int window = or_one(d.window[i]), stride = d.stride[i] ? d.stride[i] : window;
            if (!x[a].is_constant()) return false;
            const int64_t reach = 1 + int64_t(window - 1) * or_one(d.dilate[i]), room = x[a].constant() + d.pad_lo[i] + d.pad_hi[i] - reach;
            if (room < 0 || (d.pad_lo[i] && d.pad_lo[i] >= reach) || (d.pad_hi[i] && d.pad_hi[i] >= reach)) return false;
            int64_t n = 1 + (d.flags & NG_POOL_CEIL ? (room + stride - 1) / stride : room / stride);
            if ((d.flags & NG_POOL_CEIL) && (n - 1) * stride >= x[a].constant() + d.pad_lo[i]) n--;
            y.push_back(n);
        }
        for (size_t i = x.size() - 2; i < 3; i++)
            if (d.window[i] > 1 || d.pad_lo[i] || d.pad_hi[i]) return false;
        if (n_.form == Form::Pool) return same(d.kind == NG_POOL_MAX ? arg(0).type : real_of(arg(0).type), y);
        return is_float(arg(0).type) && is_float(arg(1).type) && arg(1).dims == y && same(promoted(arg(0).type, arg(1).type), x);
    }

    const Table& table_;
    const Program& program_;
    Node& n_;
};

}  // namespace

const char* form_name(Form form)
{
    static constexpr const char* NAMES[] = {"input", "constant", "length", "iota", "random", "map", "reduction", "norm", "cast", "cast_stochastic", "bitcast",
                                            "reshape", "broadcast", "permute", "slice", "window", "concat", "view", "take", "put", "scan", "segment", "argsort",
                                            "matmul", "conv", "conv_dx", "conv_dw", "pool", "pool_dx", "mark"};
    static_assert(std::size(NAMES) == size_t(Form::count_));
    return NAMES[size_t(form)];
}

bool infer(const Table& table, const Program& program, Node& node) { return Inference(table, program, node).run(); }

bool infer_all(const Table& table, Program& program)
{
    return std::ranges::all_of(program.nodes, [&](Node& n) { return infer(table, program, n); });
}

bool rounds_by_order(const Table& table, const Node& n)
{
    if (!is_float(n.type)) return false;
    const auto fold_rounds = [](int64_t fold) { return fold == NG_FOLD_SUM || fold == NG_FOLD_PROD; };
    switch (n.form) {
    case Form::Reduce: return table.rows[size_t(n.row)].name != "min" && table.rows[size_t(n.row)].name != "max";
    case Form::Norm: case Form::Matmul: case Form::Conv: case Form::ConvDx: case Form::ConvDw: case Form::PoolDx: return true;
    case Form::Pool: return n.pool.kind != NG_POOL_MAX;
    case Form::Scan: case Form::Put: return fold_rounds(n.ints[1]);
    case Form::Segment: return fold_rounds(n.ints[0]);
    default: return false;
    }
}

bool rounds_freely(const Table& table, const Node& n)
{
    const bool is_bounded = n.form == Form::Map && table.rows[size_t(n.row)].ulp > 0 && is_float(ng_dtype(n.number));
    return is_bounded || rounds_by_order(table, n);
}

Program pruned(const Program& program)
{
    Program p = program;
    std::vector<int> node_at(p.nodes.size(), -1), input_at(p.inputs.size(), -1);
    for (const Output& o : p.outputs) node_at[size_t(o.node)] = 0;
    for (size_t i = p.nodes.size(); i-- > 0;)
        if (node_at[i] == 0)
            for (const int a : p.nodes[i].args) node_at[size_t(a)] = 0;
    p.nodes.clear(), p.inputs.clear();
    for (size_t i = 0; i < program.nodes.size(); i++) {
        if (node_at[i] < 0) continue;
        Node n = program.nodes[i];
        for (int& a : n.args) a = node_at[size_t(a)];
        if (n.form == Form::Input) {
            int& at = input_at[size_t(n.ints[0])];
            if (at < 0) at = int(p.inputs.size()), p.inputs.push_back(program.inputs[size_t(n.ints[0])]);
            n.ints[0] = at;
        }
        node_at[i] = int(p.nodes.size());
        p.nodes.push_back(n);
    }
    for (Output& o : p.outputs) o.node = node_at[size_t(o.node)], o.over = o.over < 0 ? -1 : input_at[size_t(o.over)];
    return p;
}

}  // namespace programs
