// Chooses the CPU's table of loops by the level of the processor.
#include "lib/backend/cpu/isa.h"

#include "lib/backend/cpu/processor.h"

#include <cstring>

namespace ng::cpu {

#if defined(__x86_64__)
extern const IsaTable isa_v2, isa_v3, isa_v4;

const IsaTable* isa_table(const char* wanted)
{
    const int       best = processor().level;
    const IsaTable* tables[] = {&isa_v4, &isa_v3, &isa_v2};
    for (int i = 0; i < 3; i++)
        if (best >= 4 - i && (!wanted || !strcmp(wanted, tables[i]->name))) return tables[i];
    return nullptr;
}
#else
extern const IsaTable isa_generic;

const IsaTable* isa_table(const char* wanted) { return !wanted || !strcmp(wanted, isa_generic.name) ? &isa_generic : nullptr; }
#endif

}  // namespace ng::cpu
