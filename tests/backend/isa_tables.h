// The loops of every instruction set that this machine has, for tests that go through all.
#pragma once
#include "lib/backend/cpu/isa.h"

#include <vector>

namespace ng::cpu {

inline std::vector<const IsaTable*> tables()
{
    std::vector<const IsaTable*> found;
    for (const char* level : {"x86-64-v2", "x86-64-v3", "x86-64-v4", "generic"})
        if (const IsaTable* table = isa_table(level)) found.push_back(table);
    return found;
}

}  // namespace ng::cpu
