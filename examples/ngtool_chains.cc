// The cases of ngtool bench that nobody chose: chains of operations drawn from fixed seeds, over broadcasts and views.
#include "ngtool_bench.h"

#include <iterator>

namespace ngtool {
namespace {

constexpr int64_t ROWS = 4096, QUICK_ROWS = 64;
constexpr int OPERATIONS[] = { 5, 8, 12, 16, 20, 26, 33, 42, 51, 60 };

// Steele, Lea & Flood 2014: SplitMix.
class Dice {
public:
    explicit Dice(uint64_t seed) : state_(seed) {}
    int below(int count)
    {
        uint64_t z = state_ += 0x9e3779b97f4a7c15;
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9, z = (z ^ z >> 27) * 0x94d049bb133111eb;
        return int((z ^ z >> 31) % uint64_t(count));
    }

private:
    uint64_t state_;
};

// How an input's tensor is read as [rows, columns].
struct Reading { const char* after; bool is_row, is_column, is_turned, is_larger; };
const Reading READINGS[] = {
    { "", false, false, false, false },                // as it is
    { "", true, false, false, false },                 // one row for all
    { "", false, true, false, false },                 // one column for all
    { "[1:, 8:]", false, false, false, true },         // what is left of a larger one
    { "[::-1]", false, false, false, false },          // from the last row to the first
    { "permute", false, false, true, false },          // by columns
};

struct Drawn { std::string text, names; std::vector<ng_shape> args; int64_t height = ROWS; double bytes = 0; int dear = 0; };

void add_input(Drawn& drawn, Dice& dice, ng_dtype dtype, int64_t columns, bool is_first)
{
    const Reading& reading = READINGS[is_first ? 0 : dice.below(int(std::size(READINGS)))];
    const std::string name = text("x%zu", drawn.args.size());
    const int64_t rows = reading.is_row ? 1 : reading.is_larger ? drawn.height + 1 : drawn.height, across = reading.is_column ? 1 : reading.is_larger ? columns + 8 : columns;
    drawn.args.push_back(reading.is_turned ? make_shape(dtype, { across, rows }) : make_shape(dtype, { rows, across }));
    drawn.names += (drawn.names.empty() ? "" : ",") + name;
    drawn.bytes += double(reading.is_row ? 1 : drawn.height) * double(reading.is_column ? 1 : columns) * (dtype == NG_F16 ? 2 : 4);
    drawn.text += text("y%zu = %s; ", drawn.args.size() - 1, reading.is_turned ? ("permute(" + name + ", [1, 0])").c_str() : (name + reading.after).c_str());
}

// One step: the value so far and an input, or no input once all have come; numbers stay near one.
std::string step(Drawn& drawn, Dice& dice, size_t number)
{
    static const char* const cheap[] = { "t + %s", "t - %s", "t * %s", "maximum(t, %s)", "minimum(t, %s)", "where(t > %s, t, 0.5)", "0.7 * t", "abs(t - 0.3)", "relu(t + 0.1)" };
    constexpr int WITH_INPUT = 6;
    if (number + 1 < drawn.args.size()) return text(cheap[dice.below(WITH_INPUT)], text("y%zu", number + 1).c_str());
    static const char* const costly[] = { "tanh(t)", "sigmoid(t)", "exp(-abs(t))", "t / (1 + abs(%s))", "sqrt(abs(t))", "sin(t)" };
    const bool is_dear = dice.below(5) == 0;
    drawn.dear += is_dear;
    const char* const format = is_dear ? costly[dice.below(int(std::size(costly)))] : cheap[dice.below(int(std::size(cheap)))];
    return text(format, text("y%d", dice.below(int(drawn.args.size()))).c_str());
}

Case chain_case(size_t number, bool is_quick)
{
    const ng_dtype dtype = number % 2 ? NG_F16 : NG_F32;
    const int64_t columns = dtype == NG_F16 ? 8192 : 4096;
    Dice dice(number + 1);
    Drawn drawn;
    if (is_quick) drawn.height = QUICK_ROWS;
    const int inputs = 1 + dice.below(8);
    for (int i = 0; i < inputs; i++) add_input(drawn, dice, dtype, columns, i == 0);
    drawn.text += "t = y0; ";
    for (int i = 0; i < OPERATIONS[number]; i++) drawn.text += "t = " + step(drawn, dice, size_t(i)) + "; ";
    drawn.text += dtype == NG_F16 ? "f16(t)" : "t";
    Case what;
    what.name = text("%s chain %zu: %d operations (%d dear) on %d inputs", dtype == NG_F16 ? "fp16" : "fp32", number, OPERATIONS[number], drawn.dear, inputs);
    if (is_quick) what.name += text(", %lld rows", (long long)QUICK_ROWS);
    what.work = drawn.bytes + double(drawn.height) * double(columns) * (dtype == NG_F16 ? 2 : 4);
    what.args = drawn.args;
    what.has_limit = true;
    what.build = [drawn](ng_scope* scope, const Exprs& args) { return Exprs{ ng_parse(scope, drawn.text.c_str(), drawn.names.c_str(), args.data(), uint32_t(args.size())) }; };
    return what;
}

}

void bench_chains(Bench& bench)
{
    // What nothing is beside: a tensor read and written.
    Case copy;
    copy.name = "fp32 x * 0.5 of 1 GiB";
    copy.args = { make_shape(NG_F32, { 65536, 4096 }) };
    copy.work = 2.0 * double(1 << 30);
    copy.build = [](ng_scope* scope, const Exprs& args) { return Exprs{ ng_parse(scope, "x * 0.5", "x", args.data(), 1) }; };
    bench.run("chains", copy);
    for (size_t number = 0; number < std::size(OPERATIONS); number++) bench.run("chains", chain_case(number, bench.is_quick()));
}

}
