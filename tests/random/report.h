// A fault of a random program in words: how to run it again, what it shrank to, its inputs, its text for ng_parse.
#pragma once
#include "tests/random/shrink.h"

namespace programs {

// first: the fault before the program was shrunk.
std::string report(uint64_t seed, uint64_t number, const std::string& first, const Shrunk& shrunk);

}  // namespace programs
