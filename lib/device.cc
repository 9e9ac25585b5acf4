// The backends of this build, counted: today the processor alone.
#include "lib/device.h"

namespace ng {

uint32_t       device_count() { return 1; }
ng_device_info device_info(uint32_t) { return cpu::device_info(); }
std::string    backend_names() { return "\"cpu\""; }

}  // namespace ng
