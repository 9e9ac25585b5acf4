// The cases of emitting: one kernel or a few of every kind that the scheduler makes.
#include "tests/jit/emit_cases.h"

#include <cstdlib>

namespace ng::emitted {
namespace {

Case& add(Cases& all, const char* name, const char* caption) { return *all.emplace_back(std::make_unique<Case>(name, caption)); }

void add_points(Cases& all)
{
    Case& chain = add(all, "chain", "a chain of element-wise operations with a constant and a scalar");
    chain.input("x", Dtype::f32, {4, 33});
    chain.input("y", Dtype::f32, {4, 33});
    chain.scalar("a", Dtype::f32, 0.75);
    chain.out("gelu(x * 1.5 + y) * sigmoid(a - maximum(x, y))");

    Case& spread = add(all, "broadcasting", "a row and a column over a matrix");
    spread.input("x", Dtype::f32, {5, 7});
    spread.input("row", Dtype::f32, {7});
    spread.input("column", Dtype::f32, {5, 1});
    spread.out("relu(x * row + column)");

    Case& strided = add(all, "strided_slice", "a transposed matrix, slices of another, a result with gaps");
    strided.input("x", Dtype::f32, {6, 9}, -2, 2, {1, 6});
    strided.input("y", Dtype::f32, {13, 18});
    strided.out("x[::-1] - y[1:13:2, 17:0:-2][:, 0:9]", {20, 2});

    Case& gather = add(all, "gathering", "rows by index, zero where there is no such row");
    gather.input("x", Dtype::f32, {10, 6});
    gather.input("i", Dtype::i32, {8}, -3, 13);
    gather.out("take(x, i, 0) * 2.0");

    Case& halves = add(all, "halves", "f16 read and written, f32 between");
    halves.tolerance = 0x1p-10;
    halves.input("x", Dtype::f16, {3, 40});
    halves.input("w", Dtype::bf16, {40});
    halves.out("f16(relu(x * w + 0.5))");

    Case& dropout = add(all, "dropout", "uniform numbers by a key and a step as a mask, and normal noise");
    dropout.input("x", Dtype::f32, {6, 21});
    dropout.draw("u", NG_UNIFORM, Dtype::f32, {6, 21}, 0x123456789, 7);
    dropout.draw("noise", NG_NORMAL, Dtype::f32, {6, 21}, 99, 3);
    dropout.out("where(u < 0.75, x / 0.75, 0) + 0.1 * noise");

    Case& update = add(all, "momentum_step", "a parameter and its momentum in place");
    update.input("p", Dtype::f32, {70});
    update.input("m", Dtype::f32, {70});
    update.input("d", Dtype::f32, {70});
    update.scalar("rate", Dtype::f32, 0.01);
    update.out("p - rate * (0.9 * m + d)", {}, 0);
    update.out("0.9 * m + d", {}, 1);
}

void add_folds(Cases& all)
{
    Case& batch = add(all, "batch_norm_rows", "normalisation of channels over images and places");
    batch.tolerance = 1e-5;
    batch.input("x", Dtype::f32, {4, 3, 25});
    batch.input("gain", Dtype::f32, {3, 1});
    batch.input("bias", Dtype::f32, {3, 1});
    batch.out("(x - mean(x, [0, 2])) * rsqrt(var(x, [0, 2]) + 1e-5) * gain + bias");

    Case& softmax = add(all, "softmax_rows", "softmax along the fastest axis");
    softmax.input("x", Dtype::f32, {6, 50}, -9, 9);
    softmax.out("softmax(x, 1)");

    Case& columns = add(all, "column_sum", "sums down the columns");
    columns.tolerance = 1e-5;
    columns.input("x", Dtype::f32, {41, 7});
    columns.out("sum(x * x, 0)");

    Case& best = add(all, "argmax_rows", "where the greatest of each row is, and the greatest");
    best.input("x", Dtype::f32, {5, 37}, -3, 3);
    naive::Value& x = best.in.params[0];
    for (double& v : x.v) v = std::round(v);             // ties
    best.out("argmax(x, 1)");
    best.out("max(x, 1)");

    Case& many = add(all, "several_outputs", "a result beside what is asked about it");
    many.tolerance = 1e-5;
    many.input("x", Dtype::f32, {7, 19});
    many.input("y", Dtype::f32, {7, 19});
    many.out("x * x + y");
    many.out("max(abs(x * x + y))");
    many.out("sum(i64(isfinite(x * x + y)))");
}

}  // namespace

Cases golden_cases()
{
    Cases all;
    add_points(all);
    add_folds(all);
    Case& chance = add(all, "stochastic_cast", "f32 rounded to bf16 by chance");
    chance.tolerance = 0x1p-7;                           // of its meaning, which is not rounded
    chance.input("x", Dtype::f32, {5, 13});
    const NodeRef x = chance.real[0];
    chance.add_out(build::cast_stochastic(*chance.g, x, Dtype::bf16, 0, chance.pass(Dtype::u64, 5), chance.pass(Dtype::u64, 2)), x);
    for (auto& c : all) c->compile();
    return all;
}

Cases other_cases()
{
    Cases all;
    Case& lengths = add(all, "lengths", "a variance whose extents are known when run");
    lengths.in.lengths = {9, 70};
    lengths.tolerance = 1e-5;
    lengths.input("x", Dtype::f32, {Extent::variable(0), Extent::variable(1)});
    lengths.out("var(x, 1) + sum(x, 1)");

    Case& whole = add(all, "all_of_it", "one row that is everything, in doubles");
    whole.tolerance = 1e-13;
    whole.input("x", Dtype::f64, {11, 30});
    whole.out("logsumexp(x)");
    whole.out("prod(1 + x * 0.01)");
    whole.out("argmin(x)");

    Case& mixed = add(all, "mixed_types", "integers, bools, bits and f8 in one kernel");
    mixed.tolerance = 0x1p-3;
    mixed.input("x", Dtype::e4m3, {6, 8});
    mixed.input("i", Dtype::i8, {6, 8}, -100, 100);
    mixed.input("u", Dtype::u16, {6, 8}, 0, 60000);
    mixed.input("b", Dtype::bool_, {8}, 0, 2);
    mixed.out("e5m2(where(b, x, i))");
    mixed.out("i32(u) // 7 + i32(i) % 5 - (i32(i) << 3)");
    mixed.out("i8(x * 3.5) + i");
    mixed.out("(i > 3) & b");

    Case& integers = add(all, "integer_folds", "folds of integers and bools");
    integers.input("i", Dtype::i16, {9, 33}, -300, 300);
    integers.input("u", Dtype::u8, {9, 33}, 0, 200);
    integers.out("sum(i, 1)");
    integers.out("min(i, 1)");
    integers.out("max(u, 1)");
    integers.out("any(i > 290, 1)");
    integers.out("all(u < 190, 1)");
    integers.out("argmin(u, 1)");

    Case& middle = add(all, "middle_axes", "four axes of which two apart are folded, read again after that");
    middle.tolerance = 1e-5;
    middle.input("x", Dtype::f32, {3, 5, 4, 7});
    middle.input("w", Dtype::f32, {4, 1});
    middle.out("x * w - mean(x * w, [1, 3])");

    Case& empty = add(all, "empty_rows", "rows without points");
    empty.in.lengths = {4, 0};
    empty.input("x", Dtype::f32, {Extent::variable(0), Extent::variable(1)});
    empty.out("sum(x, 1)");
    empty.out("x * 2.0");

    Case& short_case = add(all, "casts", "f16 widened, and one number");
    short_case.input("x", Dtype::f16, {17});
    short_case.input("y", Dtype::f32, {});
    short_case.out("f32(x)");
    short_case.out("exp(y)");
    short_case.out("bitcast(y, i32)");
    // naive bits: what the number is in memory
    short_case.meant.back() = short_case.param(Dtype::f64, {}, {{}, {double(std::bit_cast<int32_t>(float(short_case.in.params[1].v[0])))}});
    for (auto& c : all) c->compile();
    return all;
}

std::string golden_text(const Case& c, const KernelSource& source, const Dialect& dialect, size_t step)
{
    const std::string part = step ? text(", kernel ", step + 1) : "";
    return text("// Golden for ", dialect.name, ": ", c.caption, part, ".\n", source.text);
}
std::string golden_name(const Case& c, const Dialect& dialect, size_t step) { return text(source_root(), "/tests/jit/golden/", c.name, step ? text("_", step + 1) : "", dialect.suffix); }

std::string source_root()
{
    if (const char* root = std::getenv("NG_SOURCE")) return root;
    const std::string here = __FILE__;
    return here.substr(0, here.rfind("/tests/jit/"));
}

bool succeeds(const std::string& command)
{
    unsetenv("LD_PRELOAD");                            // LeakSanitizer's, for which compilers leak
    const std::string log = "/tmp/ng_emit_" + std::to_string(std::random_device()()) + ".log";
    const bool well = std::system((command + " >" + log + " 2>&1").c_str()) == 0;
    if (!well) (void)std::system(("head -c 6000 " + log).c_str());
    std::remove(log.c_str());
    return well;
}

}  // namespace ng::emitted
