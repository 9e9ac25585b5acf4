// Looks texts up among those that the build compiled, and takes their functions from the image.
#include "lib/backend/cuda/stock.h"

#include "lib/backend/cuda/images.h"

#include <algorithm>

namespace ng::cuda {

bool Stock::has_any() const noexcept { return has_stock_code(compute_); }

Module& Stock::loaded()
{
    return module_ ? *module_ : module_.emplace(home_, std::string(stock_image()), Module::Accepts::Ptx);      // a fat binary; there is no PTX in it
}

void Stock::need()
{
    if (!has_any()) return;
    const RelaxedCapture relaxed(home_.driver());
    const CurrentContext now(home_);
    const std::lock_guard hold(lock_);
    (void)loaded();
}

std::shared_ptr<const Code> Stock::find(std::string_view text)
{
    const StockKey key = stock_key(text);
    const std::span entries(STOCK_ENTRIES, STOCK_COUNT);
    const auto at = std::ranges::lower_bound(entries, key, {}, &StockEntry::key);
    if (at == entries.end() || at->key != key || !has_any()) return nullptr;
    const RelaxedCapture relaxed(home_.driver());
    const CurrentContext now(home_);
    const std::lock_guard hold(lock_);
    std::vector<Function> functions;
    for (int32_t k = 0; k < at->functions; k++) functions.push_back(loaded().function(stock_name(at->number, k).c_str()));
    return std::make_shared<const Code>(std::move(functions));
}

void Stock::unload() noexcept
{
    const std::lock_guard hold(lock_);
    module_.reset();
}

}  // namespace ng::cuda
