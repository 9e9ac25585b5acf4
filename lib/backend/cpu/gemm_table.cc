// Which of the tables of product loops this CPU may run.
#include "lib/backend/cpu/gemm_table.h"

#include "lib/backend/cpu/processor.h"
#include "lib/backend/cpu/products.h"

#include <cstring>

namespace ng::cpu {

const ProductTable* product_table(const char* level)
{
    const auto wanted = [&](const ProductTable& t) { return !level || std::strcmp(level, t.name) == 0; };
#if defined(__x86_64__)
    const Processor found = processor();
    if (found.level >= 4 && wanted(products_v4)) return found.vnni ? &products_v4_vnni : &products_v4;
    if (found.level >= 3 && wanted(products_v3)) return &products_v3;
    return found.level >= 2 && wanted(products_v2) ? &products_v2 : nullptr;
#else
    return wanted(products_generic) ? &products_generic : nullptr;
#endif
}

}  // namespace ng::cpu
