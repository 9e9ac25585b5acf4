// Makes a faulty program small: what is left of it still fails.
#pragma once
#include "tests/random/trial.h"

namespace programs {

struct Shrunk {
    Program program;
    Verdict verdict;
};
Shrunk shrunk(const Session& session, const Table& table, Program program, Verdict verdict);

}  // namespace programs
