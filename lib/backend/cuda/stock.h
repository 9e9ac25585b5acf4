// Texts that were compiled with the library, found by what they say: kernels of common programs, for any lengths.
#pragma once
#include "lib/backend/cuda/code.h"
#include "lib/backend/cuda/stock_key.h"

namespace ng::cuda {

class Stock {
  public:
    Stock(const DeviceContext& home, int32_t compute) : home_(home), compute_(compute) {}
    bool has_any() const noexcept;                           // for this device
    // Loads the image, where there is one for this device: for some 30 milliseconds, in which the driver lets nobody else in.
    void need();
    // Null: there is no such text.
    std::shared_ptr<const Code> find(std::string_view text);
    void unload() noexcept;

  private:
    Module& loaded();                                        // lock_ is held
    const DeviceContext&  home_;
    const int32_t         compute_;
    std::mutex            lock_;                             // of the module
    std::optional<Module> module_;
};

}  // namespace ng::cuda
