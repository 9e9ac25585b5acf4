// Folds of every kind for the interpreter, and random numbers.
#include "tests/backend/interpreter_cases.h"

#include "jit/error.h"

namespace ng::test {
namespace {

TapeCase fold_case(Op op, Dtype t, int64_t rows, int64_t points, bool across)
{
    Builder b;
    if (across) b.axis(points, true);
    b.axis(rows);
    if (!across) b.axis(points, true);
    const Extents strides = across ? Extents{rows, 1} : Extents{points, 1}, kept = across ? Extents{0, 1} : Extents{1, 0};
    const int x = b.load(t, 0, strides), f = b.fold(op, x);
    b.store(f, 1, kept);
    TapeCase c{text(name_of(op), " of ", name_of(t), across ? " down [" : " along [", rows, ", ", points, "]"), b.kernel, {}, {}, 0, 0};
    c.buffers.emplace_back(t, rows * points);
    // Values that are summed exactly, products that stay small.
    const bool is_product = op == Op::prod;
    for (int64_t i = 0; i < rows * points; i++) {
        const uint64_t r = uint64_t(i + 1) * 6364136223846793005u >> 40;
        c.buffers[0].set(i, is_bool(t) ? double(r % 3 == 0) : is_product ? (is_float(t) ? (r % 2 ? 1.0 : -1.0) : double(r % 2 * 2 + 1)) : double(r % 41) - (is_signed(t) ? 20 : 0));
    }
    if (is_float(t) && points > 3 && (op == Op::argmax || op == Op::min)) c.buffers[0].set(points * rows / 2, NAN);
    c.buffers.emplace_back(b.kernel.values[size_t(f)].type, rows);
    return c;
}

void add_row_kernels(TapeCases& all)
{
    for (const auto& [m, n] : {std::pair(5, 3), std::pair(3, 1000), std::pair(300, 40), std::pair(1, 9000), std::pair(700, 1), std::pair(2, 70000)})
        for (const bool over_last : {true, false}) {
            // Sums of f32 may round as f32 does on one side: what is near the mean is off by that.
            TapeCase c{text("normalised [", m, ", ", n, over_last ? "] along" : "] down"), normalised(Extent::variable(0), Extent::variable(1), over_last), filled({m * n, m * n}), {m, n}, 4e-6, 0};
            c.least = 0.1;
            all.push_back(std::move(c));
        }
    for (const auto& [m, n] : {std::pair(6, 50), std::pair(300, 8), std::pair(2, 40000)})
        all.push_back({text("softmax [", m, ", ", n, "]"), softmax(m, n), filled({m * n, m * n}), {}, 4e-6, 0});

    // Rows of as many lanes as are read in ways of their own, at borders of 16 bytes and beside them: whole tiles and a rest.
    for (const Dtype t : {Dtype::f32, Dtype::f16, Dtype::bf16})
        for (const auto& [m, n] : {std::pair(70, 32), std::pair(70, 31), std::pair(40, 256), std::pair(5, 1024), std::pair(5, 1100), std::pair(3, 8200)})
            for (const int64_t shift : {0, 1}) {
                Builder b;
                b.axis(m);
                b.axis(n, true);
                const int x = b.load(t, 0, {n, 1}), most = b.fold(Op::max, x), y = b.map(Op::sub, most, x);
                b.store(t == Dtype::f32 ? y : b.convert(y, t), 1, {n, 1});
                b.store(b.fold(Op::min, x), 2, {1, 0});
                TapeCase c{text("most less x, ", name_of(t), " [", m, ", ", n, "] + ", shift), b.kernel, {}, {}, 0, shift};
                for (const int64_t count : {m * n, m * n}) c.buffers.emplace_back(t, count);
                c.buffers.emplace_back(Dtype::f32, m);
                fill(c.buffers[0], 5);
                all.push_back(std::move(c));
            }

    // Middle axes, of which two apart are folded, in place.
    Builder b;
    b.axis(3);
    b.axis(5, true);
    b.axis(4);
    b.axis(7, true);
    const Extents strides{140, 28, 7, 1};
    const int x = b.load(Dtype::f32, 0, strides), w = b.load(Dtype::f32, 1, {0, 0, 1, 0});
    const int y = b.map(Op::mul, x, w), sum = b.fold(Op::sum, y);
    b.store(b.map(Op::sub, y, sum), 0, strides, true);
    b.store(sum, 2, {4, 0, 1, 0});
    b.store(b.fold(Op::argmax, x), 3, {4, 0, 1, 0});
    TapeCase c{"middle axes in place", b.kernel, filled({420, 4, 12}), {}, 1e-5, 0};
    c.buffers.emplace_back(Dtype::i64, 12);
    all.push_back(std::move(c));

    // Rows without points, and a long row whose passes also store.
    Builder e;
    e.axis(Extent::variable(0));
    e.axis(Extent::variable(1), true);
    const int v = e.load(Dtype::f32, 0, {Extent::variable(1), 1});
    e.store(e.fold(Op::sum, v), 1, {1, 0});
    e.store(e.map(Op::mul, v, e.constant(2)), 2, {Extent::variable(1), 1});
    for (const auto& [m, n] : {std::pair(4, 0), std::pair(0, 4), std::pair(2, 60000)})
        all.push_back({text("sum and twice [", m, ", ", n, "]"), e.kernel, filled({m * n + 1, m + 1, m * n + 1}), {m, n}, 2e-5, 0});
}

Value random_value(RandomWord word, Dtype t, int index, int key, int step)
{
    Value v{ValueKind::Random};
    v.type = t;
    v.args = {index, key, step};
    v.bits = int64_t(word);
    return v;
}

}  // namespace

TapeCases fold_cases()
{
    TapeCases all;
    for (int o = 0; o < OPS; o++)
        for (const Dtype t : HELD_TYPES) {
            const Op op = Op(o);
            if (!is_fold(op)) continue;
            const bool fits = info(op).domain == Domain::Logic ? is_bool(t) : info(op).domain == Domain::Any ? !is_bool(t) : true;
            if (!fits || !cpu::isa_table(nullptr)->fold[o][int(t)].along == !cpu::isa_table(nullptr)->fold[o][int(t)].arg_along) continue;
            for (const bool across : {false, true}) {
                all.push_back(fold_case(op, t, 5, 300, across));
                all.push_back(fold_case(op, t, 300, 6, across));
            }
            all.push_back(fold_case(op, t, 1, 50000, false));
            all.push_back(fold_case(op, t, 3, 20000, true));
        }
    add_row_kernels(all);
    return all;
}

TapeCases chance_cases()
{
    TapeCases all;
    const int64_t n = 1500;
    for (const Dtype t : {Dtype::u32, Dtype::f32, Dtype::f64})
        for (const RandomWord word : {RandomWord::Bits, RandomWord::Word3, RandomWord::Uniform, RandomWord::Normal}) {
            if ((t == Dtype::u32) != (word == RandomWord::Bits || word == RandomWord::Word3)) continue;
            Builder b;
            b.axis(n);
            const int key = b.scalar(Dtype::u64, int64_t(offsetof(CaseScalars, key))), step = b.scalar(Dtype::u64, int64_t(offsetof(CaseScalars, step)));
            b.store(b.add(random_value(word, t, b.index({1}), key, step)), 0, {1});
            TapeCase c{text("random word ", int(word), " as ", name_of(t)), b.kernel, {}, {}, 0, 0};
            c.buffers.emplace_back(t, n);
            all.push_back(std::move(c));
        }
    for (const Dtype from : {Dtype::f32, Dtype::f64})
        for (const Dtype to : {Dtype::f32, Dtype::f64, Dtype::f16, Dtype::bf16, Dtype::e4m3, Dtype::e5m2})
            for (const int64_t bits : {0, 2}) {
                Builder b;
                b.axis(n);
                const int word = b.add(random_value(RandomWord::Word3, Dtype::u32, b.index({1}), b.constant(5, Dtype::u64), b.constant(2, Dtype::u64)));
                Value v{ValueKind::Stochastic};
                v.type = to;
                v.args = {b.load(from, 0, {1}), word, -1};
                v.bits = bits;
                b.store(b.add(v), 1, {1});
                TapeCase c{text(name_of(from), " to ", name_of(to), " by chance, bits ", bits), b.kernel, {}, {}, 0, 0};
                c.buffers.emplace_back(from, n);
                fill(c.buffers.back(), 4, -600, 600);
                c.buffers.emplace_back(to, n);
                all.push_back(std::move(c));
            }
    return all;
}

}  // namespace ng::test
