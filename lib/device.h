// Devices by number, whatever backend each belongs to, and the backends of this build.
#pragma once
#include "lib/backend.h"

#include <span>

namespace ng {

// One row a backend; open throws what its first call with this context's plan must say.
struct BackendRow {
    const char*              name;
    uint32_t               (*count)();                       // devices that there are now
    ng_device_info         (*info)(uint32_t index);          // below count()
    std::unique_ptr<Backend> (*open)(Context& context);
};
std::span<const BackendRow> backends();
// By name; null: the best that has a device. NG_E_UNSUPPORTED.
const BackendRow& need_backend(const char* name, const char* who);

uint32_t       device_count();
ng_device_info device_info(uint32_t index);        // index below device_count()

namespace cpu {

uint32_t       count_devices();
ng_device_info device_info(uint32_t);
std::unique_ptr<Backend> open_backend(Context& context);
// The level that code is made for: the best of this machine for null, else `target` itself; "" when it has no such level.
std::string arch_for(const char* target);
// Cores that this process may use.
uint32_t usable_cores();

}  // namespace cpu

#if NG_CUDA
namespace cuda {

uint32_t       count_devices();                    // 0 without a driver
ng_device_info device_info(uint32_t index);
std::unique_ptr<Backend> open_backend(Context& context);

}  // namespace cuda
#endif
}  // namespace ng
