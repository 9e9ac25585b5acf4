// One program's trial: run fused, node by node and on other contexts, compared with each other and with what must be.
#pragma once
#include "tests/random/face_calls.h"

#include <array>
#include <cstdio>

namespace programs {

// A context that every program runs on once more, beside the backend that is tried.
struct Witness {
    const char* name;
    ContextRef  context;
};

// A worker's contexts; a thread has its own.
class Session {
  public:
    explicit Session(const char* backend);
    bool shows = false;       // texts before they are run
    std::string pretended;    // a row or form whose programs count as wrong, to see how faults are told; "": none
    ng_ctx* context(World w) const { return contexts_[size_t(w)].get(); }
    // The CPU with nothing fused and in f64; the CPU as it is where another backend is tried.
    std::span<const Witness> witnesses() const { return witnesses_; }

  private:
    std::array<ContextRef, size_t(World::count_)> contexts_;
    std::vector<Witness> witnesses_;
};

struct Verdict {
    std::string fault;                              // "" where all is right
    std::string text;                               // of a faulty program's outputs, as ng_parse reads them
    uint64_t    judged = 0, not_judged = 0;         // elements held against the reference, and those it says nothing of
    uint64_t    bit_equal = 0;                      // elements of which the same bits were demanded
    std::vector<std::vector<Bytes>> node_values;    // of the unfused run: [run][node], as far as it came
};
Verdict tried(const Session& session, const Table& table, const Program& program);

}  // namespace programs
