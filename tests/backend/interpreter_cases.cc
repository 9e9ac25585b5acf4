// Element-wise kernels of every kind for the interpreter, and how its results are compared with the CPU backend's.
#include "tests/backend/interpreter_cases.h"

#include "jit/error.h"

#include <algorithm>

namespace ng::test {
namespace {

constexpr Dtype ALL_TYPES[] = {Dtype::bool_, Dtype::i8, Dtype::i16, Dtype::i32, Dtype::i64, Dtype::u8, Dtype::u16, Dtype::u32, Dtype::u64,
                               Dtype::f32, Dtype::f64, Dtype::f16, Dtype::bf16, Dtype::e4m3, Dtype::e5m2};

// Codes that look random, every eighth a small whole number: all of a narrow type's, infinities and NaN among them.
void fill_codes(Buffer& b, uint64_t seed)
{
    const auto bytes = size_t(bytes_of(b.type));
    for (int64_t i = 0; i < b.count; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        const uint64_t code = is_bool(b.type) ? seed >> 63 : seed >> 20 ^ seed << 44;
        std::memcpy(b.data() + size_t(i) * bytes, &code, bytes);
        if (i % 8 == 0 && !is_bool(b.type)) b.set(i, double(i / 8 % 200) - (is_signed(b.type) ? 100 : 0));
    }
}

TapeCase live_case(int live, Dtype type, uint32_t shared_bytes)
{
    const int64_t n = 3001;
    Builder b;
    b.axis(n);
    std::vector<int> v;
    for (int k = 0; k < live; k++) v.push_back(b.load(type, 0, {1}, k));
    int sum = b.constant(0, type);
    for (int k = 0; k < live; k++) sum = b.map(Op::add, b.map(Op::mul, sum, v[size_t(k)]), b.map(Op::abs, v[size_t(live - 1 - k)]));
    b.store(sum, 1, {1});
    TapeCase c{text(live, " live values of ", name_of(type)), b.kernel, {}, {}, 0, 0};
    c.shared_bytes = shared_bytes;
    for (const int64_t count : {n + live, n}) {
        c.buffers.emplace_back(type, count);
        fill(c.buffers.back(), c.buffers.size());
    }
    return c;
}

void add_flat(TapeCases& all)
{
    for (const int64_t n : {1, 7, 8, 511, 512, 513, 2047, 2049, 70001})
        for (const int64_t shift : {0, 1}) {
            Builder b;
            b.axis(n);
            const int x = b.load(Dtype::f32, 0, {1}), y = b.load(Dtype::f32, 1, {1});
            const int s = b.map(Op::add, x, b.map(Op::mul, y, b.scalar(Dtype::f32, 4)));
            b.store(b.map(Op::sub, b.map(Op::maximum, s, b.constant(-1.5)), y), 2, {1});
            b.store(b.map(Op::where, b.map(Op::less, x, y), s, x), 3, {1});
            all.push_back({text("flat ", n, " + ", shift), b.kernel, filled({n, n, n, n}), {}, 0, shift});
        }
}

void add_matrices(TapeCases& all)
{
    for (const int64_t columns : {1, 3, 4, 301, 512})
        for (const int64_t shift : {0, 1}) {
            const int64_t rows = 67;
            Builder b;
            b.axis(rows);
            b.axis(columns);
            const int x = b.load(Dtype::f32, 0, {columns, 1}), row = b.load(Dtype::f32, 1, {0, 1}), column = b.load(Dtype::f32, 2, {1, 0});
            b.store(b.map(Op::fma, x, row, b.map(Op::square, column)), 3, {columns, 1});
            b.store(b.map(Op::where, b.map(Op::less, x, column), b.constant(7), b.map(Op::mul, row, column)), 4, {1, rows});
            all.push_back({text("matrix of ", columns, " columns + ", shift), b.kernel, filled({rows * columns, columns, rows, rows * columns, rows * columns}), {}, 0, shift});
        }
    const int64_t m = 67, n = 301;
    Builder b;
    b.axis(m);
    b.axis(n);
    const int t = b.load(Dtype::f32, 0, {1, m}), reversed = b.load(Dtype::f32, 0, {-n, -1}, m * n - 1), stepped = b.load(Dtype::f32, 1, {2 * n, 2});
    b.store(b.map(Op::add, b.map(Op::mul, t, reversed), stepped), 2, {n, 1});
    b.store(b.constant(3), 3, {n, 1});
    b.store(t, 4, {n, 1});
    all.push_back({"transposed, reversed, stepped, a constant, a copy", b.kernel, filled({m * n, 2 * m * n, m * n, m * n, m * n}), {}, 0, 0});
}

void add_deep(TapeCases& all)
{
    const std::array<int64_t, 5> extent = {3, 5, 4, 7, 6};
    Builder b;
    for (const int64_t e : extent) b.axis(e);
    const int64_t all_of = 3 * 5 * 4 * 7 * 6;
    const int x = b.load(Dtype::f32, 0, {1, 3, 15, 60, 420}), y = b.load(Dtype::f16, 1, {0, 0, 42, 6, 1}), z = b.load(Dtype::f64, 2, {5, 1, 0, 0, 0});
    b.store(b.map(Op::add, b.map(Op::mul, x, y), b.convert(z, Dtype::f32)), 3, {840, 168, 42, 6, 1});
    b.store(b.index({1, 10, 100, 1000, 10000}, 5), 4, {840, 168, 42, 6, 1});
    TapeCase c{"five axes", b.kernel, {}, {}, 0, 0};
    for (const auto& [type, count] : {std::pair(Dtype::f32, all_of), std::pair(Dtype::f16, int64_t(168)), std::pair(Dtype::f64, int64_t(15)), std::pair(Dtype::f32, all_of * 3), std::pair(Dtype::i64, all_of * 3)}) {
        c.buffers.emplace_back(type, count);
        fill(c.buffers.back(), uint64_t(count));
    }
    all.push_back(std::move(c));

    Builder number;
    number.store(number.map(Op::add, number.load(Dtype::f32, 0, {}), number.constant(1)), 1, {});
    all.push_back({"one number", number.kernel, filled({1, 1}), {}, 0, 0});

    Builder lengths;
    const Extent rows = Extent::variable(0), columns = Extent::variable(1);
    lengths.axis(rows);
    lengths.axis(columns);
    const int v = lengths.load(Dtype::f32, 0, {columns, 1});
    lengths.store(lengths.map(Op::mul, v, lengths.convert(lengths.length(rows * columns), Dtype::f32)), 1, {1, rows});
    for (const auto& [m, n] : {std::pair(0, 5), std::pair(9, 1), std::pair(1, 9), std::pair(33, 65)})
        all.push_back({text("lengths ", m, " ", n), lengths.kernel, filled({m * n + 1, m * n + 1}), {m, n}, 0, 0});
}

void add_aliases(TapeCases& all)
{
    const int64_t n = 3001;
    Builder swap;
    swap.axis(n);
    const int x = swap.load(Dtype::f32, 0, {1}), y = swap.load(Dtype::f32, 1, {1});
    swap.store(swap.map(Op::sub, x, y), 0, {1}, true);
    swap.store(x, 1, {1}, true);
    all.push_back({"two late stores that swap", swap.kernel, filled({n, n}), {}, 0, 0});

    // More than a block of all threads has slots for.
    for (const int live : {12, 24, 40}) all.push_back(live_case(live, Dtype::f32, interpreter::MAX_SHARED_BYTES));
}

TapeCase gather_case(Dtype type)
{
    const int64_t m = 37, n = 53;
    Builder b;
    b.axis(m);
    b.axis(n);
    const int i = b.convert(b.load(Dtype::i32, 1, {1, 0}), Dtype::i64);
    b.store(b.gather(type, 0, {0, 1}, i, 40, n), 2, {n, 1});
    TapeCase c{text("gather ", name_of(type)), b.kernel, {}, {}, 0, 0};
    c.buffers.emplace_back(type, 40 * n);
    fill_codes(c.buffers.back(), 7);
    c.buffers.emplace_back(Dtype::i32, m);
    fill(c.buffers.back(), 3, -5, 45);
    c.buffers.emplace_back(type, m * n);
    return c;
}

TapeCase conversion_case(Dtype from, Dtype to, int64_t shift)
{
    const int64_t n = 1203;
    Builder b;
    b.axis(n);
    const int x = b.load(from, 0, {1});
    b.store(b.convert(x, to), 1, {1});
    b.store(x, 2, {1});
    TapeCase c{text(name_of(from), " to ", name_of(to), " + ", shift), b.kernel, {}, {}, 0, shift};
    c.buffers.emplace_back(from, n);
    fill_codes(c.buffers.back(), uint64_t(from) * 16 + uint64_t(to));
    c.buffers.emplace_back(to, n);
    c.buffers.emplace_back(from, n);
    return c;
}

TapeCase bitcast_case(Dtype from, Dtype to)
{
    const int64_t n = 700;
    Builder b;
    b.axis(n);
    Value v{ValueKind::Bitcast};
    v.type = to;
    v.args[0] = b.load(from, 0, {1});
    b.store(b.add(v), 1, {1});
    TapeCase c{text(name_of(from), " as ", name_of(to)), b.kernel, {}, {}, 0, 0};
    c.buffers.emplace_back(from, n);
    fill_codes(c.buffers.back(), 99);
    // The CPU makes each NaN of a narrow float a quiet one.
    for (int64_t i = 0; i < n && is_float(from); i++)
        if (std::isnan(c.buffers[0].get(i))) c.buffers[0].set(i, 1);
    c.buffers.emplace_back(to, n);
    return c;
}

TapeCase scalars_case()
{
    Builder b;
    b.axis(100);
    const int x = b.load(Dtype::f32, 0, {1});
    int sum = x;
    for (const auto& [type, at] : {std::pair(Dtype::f16, offsetof(CaseScalars, half)), std::pair(Dtype::bf16, offsetof(CaseScalars, brain)), std::pair(Dtype::i8, offsetof(CaseScalars, small)),
                                   std::pair(Dtype::e4m3, offsetof(CaseScalars, f8)), std::pair(Dtype::f64, offsetof(CaseScalars, d))})
        sum = b.map(Op::add, sum, b.convert(b.scalar(type, int64_t(at)), Dtype::f32));
    b.store(b.map(Op::where, b.scalar(Dtype::bool_, int64_t(offsetof(CaseScalars, truth))), sum, x), 1, {1});
    return {"scalars of many types", b.kernel, filled({100, 100}), {}, 0, 0};
}

bool is_possible(Op op, Dtype t)
{
    switch (info(op).domain) {
    case Domain::Any: return !is_bool(t);
    case Domain::Keep: return true;
    case Domain::Real: return is_float(t);
    case Domain::Bits: return !is_float(t);
    case Domain::Logic: return is_bool(t);
    }
    return false;
}

TapeCase map_case(Op op, Dtype t, double low, double high)
{
    const int64_t n = 600;
    Builder b;
    b.axis(n);
    const int arity = info(op).arity;
    int x[3] = {-1, -1, -1};
    for (int k = 0; k < arity; k++) x[k] = b.load(op == Op::where && k == 0 ? Dtype::bool_ : t, k, {1});
    const int y = b.map(op, x[0], x[1], x[2]);
    b.store(y, arity, {1});
    TapeCase c{text(name_of(op), " of ", name_of(t), " from ", low, " to ", high), b.kernel, {}, {}, 0, 0};
    for (int k = 0; k < arity; k++) {
        c.buffers.emplace_back(op == Op::where && k == 0 ? Dtype::bool_ : t, n);
        if (is_float(t)) fill(c.buffers.back(), uint64_t(k) + 5, low, high);
        else fill_codes(c.buffers.back(), uint64_t(k) + 5);
    }
    c.buffers.emplace_back(b.kernel.values[size_t(y)].type, n);
    // Each of the two is within the row's bound; the stand-in of the device's functions, within a few units more.
    c.least = t == Dtype::f32 ? 0x1p-126 : 0x1p-1022;
    // Where operands cancel a bound counts their units; the stand-in has no better sine of pi x.
    if (op == Op::logaddexp || op == Op::sinpi || op == Op::cospi || op == Op::sinc) c.least = 8;
    if (is_float(t)) c.tolerance = info(op).ulp == 0 ? 0 : (2 * info(op).ulp + 4) * (t == Dtype::f32 ? 0x1p-23 : 0x1p-52);
    return c;
}

}  // namespace

// Of many rows and points, so that blocks stride: values of points, of rows and of the whole run, read on both sides of a fold.
TapeCase live_rows(int live)
{
    const int64_t rows = 100, points = 130;
    Builder b;
    b.axis(rows);
    b.axis(points, true);
    std::vector<int> whole, row, point;
    for (int k = 0; k < live; k++) {
        whole.push_back(b.map(Op::neg, b.scalar(Dtype::f32, k % 4 * 4)));
        row.push_back(b.map(Op::abs, b.load(Dtype::f32, 2, {1, 0}, k)));
        b.kernel.values[size_t(row.back())].row = b.kernel.values[size_t(row.back()) - 1].row = true;
        point.push_back(b.map(Op::abs, b.load(Dtype::f32, 0, {points, 1}, k)));
    }
    const auto mixed = [&](int x) {
        for (int k = 0; k < live; k++) {
            const auto i = size_t(k), j = size_t(live - 1 - k);
            x = b.map(Op::maximum, b.map(Op::mul, x, whole[i]), b.map(Op::minimum, point[j], b.map(Op::add, row[i], point[i])));
        }
        return x;
    };
    const int greatest = b.fold(Op::max, mixed(point[0])), least = b.fold(Op::min, mixed(greatest));
    b.store(greatest, 1, {1, 0});
    b.store(least, 3, {1, 0});
    return {text(live, " live values of points, rows and all"), b.kernel, filled({rows * points + live, rows, rows + live, rows}), {}, 0, 0};
}

TapeCases stride_cases()
{
    TapeCases all;
    add_flat(all);
    add_matrices(all);
    add_deep(all);
    add_aliases(all);
    for (const Dtype t : ALL_TYPES) all.push_back(gather_case(t));
    all.push_back(scalars_case());
    return all;
}

TapeCases spilling_cases()
{
    TapeCases all;
    for (const uint32_t shared : {interpreter::MAX_SHARED_BYTES, interpreter::MOST_SHARED_BYTES})
        for (const Dtype t : {Dtype::f32, Dtype::f64, Dtype::i64})
            for (const int live : {60, 118}) all.push_back(live_case(live, t, shared));
    for (const int live : {8, 24, 40}) all.push_back(live_rows(live));
    return all;
}

TapeCases type_cases()
{
    TapeCases all;
    for (const Dtype from : ALL_TYPES)
        for (const Dtype to : ALL_TYPES) {
            all.push_back(conversion_case(from, to, (int(from) + int(to)) % 2));
            if (bytes_of(from) == bytes_of(to)) all.push_back(bitcast_case(from, to));
        }
    return all;
}

TapeCases map_cases()
{
    TapeCases all;
    for (int o = 0; o < OPS; o++)
        for (const Dtype t : HELD_TYPES) {
            const Op op = Op(o);
            if (!is_map(op) || !is_possible(op, t) || (op == Op::where && is_bool(t))) continue;
            if (!is_float(t)) {
                all.push_back(map_case(op, t, 0, 0));
                continue;
            }
            all.push_back(map_case(op, t, -0.95, 0.95));
            if (op != Op::gelu_tanh) all.push_back(map_case(op, t, -4, 6));
        }
    return all;
}

std::string difference(const TapeCase& c, TapeMachine& machine)
{
    std::vector<int64_t> variables = c.variables;
    variables.resize(16, 1);
    std::vector<Buffer> want = c.buffers, got = c.buffers;
    const cpu::FusedKernel fused(c.kernel, *cpu::isa_table(nullptr));
    std::vector<Buffer::Line> workspace(fused.workspace_bytes(variables, 1) / 64 + 1);
    std::vector<char*> pointers;
    for (Buffer& b : want) pointers.push_back(b.data());
    fused.run({variables.data(), pointers.data(), &CASE_SCALARS, workspace.data()}, Parallel());
    TapeCase run = c;
    run.variables = variables;
    machine.run(cuda::make_tape(c.kernel, c.shared_bytes), run, got);
    for (size_t b = 0; b < want.size(); b++) {
        int64_t wrong = 0, first = -1;
        for (int64_t i = 0; i < want[b].count; i++) {
            const auto bytes = size_t(bytes_of(want[b].type));
            if (std::memcmp(want[b].data() + size_t(i) * bytes, got[b].data() + size_t(i) * bytes, bytes) == 0) continue;
            const double x = got[b].get(i), y = want[b].get(i);
            const bool same = (std::isnan(x) && std::isnan(y)) || std::abs(x - y) <= c.tolerance * std::max(std::abs(y), c.least);
            if (!same && wrong++ == 0) first = i;
        }
        if (wrong) return text(c.name, ": ", wrong, " of ", want[b].count, " elements of buffer ", b, " differ, the first at ", first, ": ", got[b].get(first), " (", std::to_string(got[b].get(first)), ") instead of ", want[b].get(first));
    }
    return "";
}

}  // namespace ng::test
