// Devices by number, whatever backend each belongs to.
#pragma once
#include <ng.h>

#include <cstdint>
#include <string>

namespace ng {

uint32_t       device_count();
ng_device_info device_info(uint32_t index);        // index below device_count()
// "\"cpu\"": the backends of this build, for sentences.
std::string    backend_names();

namespace cpu {

ng_device_info device_info();
// The level that code is made for: the best of this machine for null, else `target` itself; "" when it has no such level.
std::string arch_for(const char* target);
// Cores that this process may use.
uint32_t usable_cores();

}  // namespace cpu
}  // namespace ng
