// The list of backends, a row each, and their devices counted one after the other.
#include "lib/device.h"

#include "jit/error.h"

#include <algorithm>
#include <string_view>

namespace ng {
namespace {

constexpr BackendRow ROWS[] = {
    {"cpu", cpu::count_devices, cpu::device_info, cpu::open_backend},
#if NG_CUDA
    {"cuda", cuda::count_devices, cuda::device_info, cuda::open_backend},
#endif
};

std::string names()
{
    std::string all;
    for (const BackendRow& row : ROWS) all += text(all.empty() ? "" : ", ", '"', row.name, '"');
    return all;
}

}  // namespace

std::span<const BackendRow> backends() { return ROWS; }

// The rows get better downwards.
const BackendRow& need_backend(const char* name, const char* who)
{
    for (size_t i = std::size(ROWS); i-- > 0;)
        if (name ? std::string_view(name) == ROWS[i].name : i == 0 || ROWS[i].count()) return ROWS[i];
    throw Error(NG_E_UNSUPPORTED, text(who, ": no backend \"", name, "\" in this build; there is ", names()));
}

uint32_t device_count()
{
    uint32_t all = 0;
    for (const BackendRow& row : ROWS) all += row.count();
    return all;
}

ng_device_info device_info(uint32_t index)
{
    const BackendRow* row = ROWS;
    for (uint32_t count; index >= (count = row->count()) && row + 1 < std::end(ROWS); row++) index -= count;
    return row->info(index);
}

}  // namespace ng
