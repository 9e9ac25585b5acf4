// Writes down a shrunk program so that a reader can type it in: lengths, inputs with values, where outputs lie, texts.
#include "tests/random/report.h"

#include <cstdio>

namespace programs {
namespace {

constexpr size_t MOST_VALUES = 24;         // of an input
constexpr const char* WORLDS[] = {"one thread", "three threads", "no threads", "deterministic"};
constexpr const char* LIES[] = {"", ", permuted", ", stepped", ", flipped", ", shifted"};

std::string list(const Dims& dims)
{
    std::string text = "[";
    for (const int64_t d : dims) text += (text.size() > 1 ? ", " : "") + std::to_string(d);
    return text + "]";
}

std::string described(const Input& in, const Dims& lengths)
{
    const char* const letter = in.source == Input::Param ? "p" : in.source == Input::Scalar ? "s" : "t";
    std::string text = std::string("  ") + letter + std::to_string(in.slot) + " " + element(in.type).name + " " + list(values_of(in.dims, lengths)) + LIES[size_t(in.lie)] + ":";
    const auto size = size_t(element(in.type).bytes);
    for (size_t i = 0; i < in.values[0]->size() / size && i < MOST_VALUES; i++) {
        char number[64];
        std::snprintf(number, sizeof number, " %.17Lg", load(in.type, &(*in.values[0])[i * size]));
        text += number;
    }
    return text + "\n";
}

std::string described(const Output& o)
{
    const std::string over = o.over < 0 ? "" : ", over input " + std::to_string(o.over) + ", shifted by " + std::to_string(o.shift);
    return "  output of node " + std::to_string(o.node) + LIES[size_t(o.lie)] + over + (o.repeat ? ", broadcast" : "") + "\n";
}

}  // namespace

std::string report(uint64_t seed, uint64_t number, const std::string& first, const Shrunk& s)
{
    const std::string program = std::to_string(number);
    std::string text = "FAULT in program " + program + ": --seed " + std::to_string(seed) + " --first " + program + " --count 1\n";
    text += "  at first: " + first + "\n  shrunk:   " + s.verdict.fault + "\n";
    text += std::string("  ") + (s.program.compiled ? "compiled" : "evaluated") + ", " + WORLDS[size_t(s.program.world)] + "\n";
    for (size_t r = 0; r < s.program.runs.size() && !s.program.runs[r].empty(); r++) text += "  lengths of run " + std::to_string(r) + ": " + list(s.program.runs[r]) + "\n";
    for (const Input& in : s.program.inputs) text += described(in, s.program.runs[0]);
    for (const Output& o : s.program.outputs) text += described(o);
    return text + s.verdict.text;
}

}  // namespace programs
