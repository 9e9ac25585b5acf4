// The machine's own processor as a device: its name, level, memory and cores.
#include "lib/device.h"

#include "lib/backend/cpu/isa.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <thread>

#if defined __x86_64__
#include <cpuid.h>
#endif

namespace ng::cpu {
namespace {

// The brand string, without the blanks that pad it.
std::string processor_name()
{
#if defined __x86_64__
    unsigned words[12] = {};
    unsigned most = __get_cpuid_max(0x80000000u, nullptr);
    if (most >= 0x80000004u) {
        for (unsigned i = 0; i < 3; i++) __get_cpuid(0x80000002u + i, &words[4 * i], &words[4 * i + 1], &words[4 * i + 2], &words[4 * i + 3]);
        char brand[sizeof words + 1] = {};
        std::memcpy(brand, words, sizeof words);
        std::string name = brand;
        name.erase(0, std::min(name.find_first_not_of(' '), name.size()));
        name.erase(name.find_last_not_of(' ') + 1);
        if (!name.empty()) return name;
    }
    return "x86-64 processor";
#elif defined __aarch64__
    return "aarch64 processor";
#else
    return "processor";
#endif
}

uint64_t configured(int what)
{
    const long value = sysconf(what);
    return value > 0 ? uint64_t(value) : 0;
}

template <size_t N>
void set_text(char (&to)[N], const std::string& from)
{
    std::memcpy(to, from.data(), std::min(from.size(), N - 1));
}

}  // namespace

std::string arch_for(const char* target)
{
    const IsaTable* table = isa_table(target);
    return table ? table->name : "";
}

uint32_t usable_cores()
{
    cpu_set_t mask;
    CPU_ZERO(&mask);
    if (sched_getaffinity(0, sizeof mask, &mask) == 0) return uint32_t(std::max(1, CPU_COUNT(&mask)));
    return std::max(1u, std::thread::hardware_concurrency());    // more cores than the mask has bits
}

uint32_t count_devices() { return 1; }

ng_device_info device_info(uint32_t)
{
    ng_device_info info{};
    info.size = sizeof info;
    set_text(info.backend, "cpu");
    set_text(info.name, processor_name());
    set_text(info.arch, arch_for(nullptr));
    info.memory_bytes = configured(_SC_PHYS_PAGES) * configured(_SC_PAGESIZE);
#ifdef _SC_LEVEL2_CACHE_SIZE
    info.l2_bytes = configured(_SC_LEVEL2_CACHE_SIZE);
#endif
    info.units = usable_cores();
    return info;
}

}  // namespace ng::cpu
