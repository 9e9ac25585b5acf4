// Turns bytes into calls of every function of ng.h with whatever is in hand: no call may harm, and at the end nothing is left.
#include "tests/harm/api_world.h"

#include <algorithm>
#include <set>

namespace {

constexpr int MAX_CALLS = 200;      // of one input

// ng.h's functions by its own list; a new one has no row here until somebody writes it.
void check_rows()
{
    std::set<std::string> declared, called;
    const std::string json = ng_api_json(), key = "{\"name\":\"", then = "\",\"returns\":";
    for (size_t at = 0; (at = json.find(key, at)) != std::string::npos;) {
        const size_t begin = at + key.size(), end = json.find('"', begin);
        if (json.compare(end, then.size(), then) == 0) declared.insert(json.substr(begin, end - begin));
        at = end;
    }
    for (const auto* rows : {&harm::acting_rows(), &harm::building_rows(), &harm::word_rows()})
        for (const harm::Row& row : *rows) called.insert(row.name);
    for (const std::string& name : declared)
        if (!called.count(name)) harm::fault("%s is in ng.h and no row of the fuzzer calls it", name.c_str());
    for (const std::string& name : called)
        if (!declared.count(name)) harm::fault("%s is called, and ng.h lacks it", name.c_str());
}

}  // namespace

// A walk over the rows, and walks that dice have thrown.
std::vector<std::string> harm::seeds()
{
    check_rows();
    std::vector<std::string> all = {""};
    const size_t most = std::max({acting_rows().size(), building_rows().size(), word_rows().size()});
    std::string walk;
    for (size_t i = 0; i < most; i++)
        for (const char table : {0, 40, 80}) walk += std::string{table, char(i)} + std::string(12, 0);
    all.push_back(walk);
    Dice d(7);
    for (int i = 0; i < 40; i++) {
        std::string text;
        for (size_t n = 400 + d.below(2000); n-- > 0;) text += char(d.one_in(3) ? d.below(8) : d.word());
        all.push_back(text);
    }
    return all;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed)
{
    harm::Dice d(seed);
    if (!d.one_in(24)) return LLVMFuzzerMutate(data, size, max_size);
    size = std::min(max_size, 200 + d.below(3000));                 // another walk
    for (size_t i = 0; i < size; i++) data[i] = uint8_t(d.word());
    return size;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size)
{
    harm::World w(data, size);
    for (int i = 0; i < MAX_CALLS && !w.bytes.is_empty(); i++) {
        const unsigned table = w.bytes.byte();
        const auto& rows = table % 120 < 45 ? harm::acting_rows() : table % 120 < 80 ? harm::building_rows() : harm::word_rows();
        const harm::Row& row = rows[w.bytes.below(uint32_t(rows.size()))];
        static const bool tells = std::getenv("HARM_TELLS") != nullptr;
        if (tells) std::fprintf(stderr, "%s\n", row.name);
        w.begin();
        row.call(w);
    }
    return 0;
}
