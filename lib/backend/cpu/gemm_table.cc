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
    const int found = processor().level;
    if (found >= 4 && wanted(products_v4)) return &products_v4;
    if (found >= 3 && wanted(products_v3)) return &products_v3;
    return found >= 2 && wanted(products_v2) ? &products_v2 : nullptr;
#else
    return wanted(products_generic) ? &products_generic : nullptr;
#endif
}

}  // namespace ng::cpu
