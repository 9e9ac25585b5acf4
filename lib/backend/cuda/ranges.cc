// The table that tools fill, as nvtx3/nvtxDetail/nvtxTypes.h of CUDA 13 lays it out; module and function numbers are from there.
#include "lib/backend/cuda/ranges.h"

#include <dlfcn.h>
#include <link.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <new>
#include <string>
#include <utility>
#include <vector>

namespace ng::cuda {
namespace {

constexpr uint32_t CALLBACKS = 1, VERSION_INFO = 3;             // export tables
constexpr int CORE = 1;                                         // the module of plain ranges
constexpr size_t PUSH = 9, POP = 11, CORE_COUNT = 16;           // RangePushA, RangePop

using Any = void (*)();
using Push = int (*)(const char* name);
using Pop = int (*)();

constinit std::array<Any, CORE_COUNT> functions{};              // the tool's
template <size_t... I>
constexpr std::array<Any*, CORE_COUNT> places_of(std::index_sequence<I...>) { return {&functions[I]...}; }
constinit std::array<Any*, CORE_COUNT> places = places_of(std::make_index_sequence<CORE_COUNT>());

int table_of(int module, Any*** table, unsigned* count)
{
    if (module != CORE) return 0;
    if (table) *table = places.data();
    if (count) *count = CORE_COUNT;
    return 1;
}
void take_version(uint32_t) {}

struct Callbacks { size_t bytes; int (*table_of)(int, Any***, unsigned*); };
struct VersionInfo { size_t bytes; uint32_t version, reserved; void (*take)(uint32_t); };
constexpr Callbacks   callbacks{sizeof(Callbacks), table_of};
constexpr VersionInfo version_info{sizeof(VersionInfo), 3, 0, take_version};

const void* export_table(uint32_t id)
{
    return id == CALLBACKS ? static_cast<const void*>(&callbacks) : id == VERSION_INFO ? static_cast<const void*>(&version_info) : nullptr;
}

constinit std::atomic<bool> is_looked_for{false};
constinit std::atomic<Push> push{nullptr};
constinit std::atomic<Pop>  pop{nullptr};

std::vector<std::string> loaded_libraries()
{
    std::vector<std::string> names;
    (void)dl_iterate_phdr([](dl_phdr_info* info, size_t, void* all) {
        try {
            if (info->dlpi_name && *info->dlpi_name) static_cast<std::vector<std::string>*>(all)->emplace_back(info->dlpi_name);
        } catch (const std::bad_alloc&) {
            return 1;
        }
        return 0;
    }, &names);
    return names;
}

}  // namespace

void find_tool() noexcept
{
    if (is_looked_for.exchange(true, std::memory_order_acq_rel)) return;
    try {
        for (const std::string& name : loaded_libraries()) {
            void* const library = dlopen(name.c_str(), RTLD_LAZY | RTLD_NOLOAD);
            const auto start = library ? reinterpret_cast<int (*)(const void* (*)(uint32_t))>(dlsym(library, "InitializeInjectionNvtx2")) : nullptr;
            if (!start || start(export_table) != 1) {
                if (library) (void)dlclose(library);
                continue;
            }
            // It stays, for its functions do.
            pop.store(reinterpret_cast<Pop>(functions[POP]), std::memory_order_release);
            push.store(functions[POP] ? reinterpret_cast<Push>(functions[PUSH]) : nullptr, std::memory_order_release);
            return;
        }
    } catch (const std::bad_alloc&) {
        // Then there are no ranges.
    }
}

NamedRange::NamedRange(const char* name) noexcept
{
    const Push begin = push.load(std::memory_order_acquire);
    is_open_ = begin != nullptr && name != nullptr;
    if (is_open_) (void)begin(name);
}

NamedRange::~NamedRange()
{
    if (is_open_) (void)pop.load(std::memory_order_relaxed)();
}

}  // namespace ng::cuda
