// Work that may not be under way when the process ends: exit() waits for it, and none begins after.
#pragma once

namespace ng::cuda {

// NVRTC and the driver take their own data apart in exit(), whoever still works with them in another thread; then that
// thread crashes, and the host with it. While one of these lives exit() waits, which is as long as a text compiles.
class UntilExit {
  public:
    UntilExit();                     // NG_E_LOST: the process ends
    ~UntilExit();
    UntilExit(const UntilExit&) = delete;
    static bool is_awaited() noexcept;       // exit() waits for them: what can be left is left
};

}  // namespace ng::cuda
