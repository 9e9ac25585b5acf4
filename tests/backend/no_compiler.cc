// A libnvrtc that is complete, and of version 0: it says that there is no compiler, and the search for one ends.
#include "lib/backend/cuda/nvrtc.h"

extern "C" {
#define NVRTC(name, parameters) int name parameters { return 0; }
#include "lib/backend/cuda/nvrtc.def"
#undef NVRTC
}
