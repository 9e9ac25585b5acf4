// Which of the tables of product loops this CPU may run.
#include "lib/backend/cpu/gemm_table.h"

#include "lib/backend/cpu/products.h"

#include <cstring>

namespace ng::cpu {
#if defined(__x86_64__)
namespace {

bool has_v2() { return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt"); }
bool has_v3() { return has_v2() && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2"); }
bool has_v4()
{
    return has_v3() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

}  // namespace

const ProductTable* product_table(const char* level)
{
    const auto wanted = [&](const ProductTable& t) { return !level || std::strcmp(level, t.name) == 0; };
    if (wanted(products_v4) && has_v4()) return __builtin_cpu_supports("avx512vnni") ? &products_v4_vnni : &products_v4;
    if (wanted(products_v3) && has_v3()) return &products_v3;
    return wanted(products_v2) && has_v2() ? &products_v2 : nullptr;
}
#else
const ProductTable* product_table(const char* level)
{
    return !level || std::strcmp(level, products_generic.name) == 0 ? &products_generic : nullptr;
}
#endif

}  // namespace ng::cpu
