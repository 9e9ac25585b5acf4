// What texts that were compiled with the library are called: for the build, which writes their table, and for whoever looks in it.
#include "lib/backend/cuda/stock_key.h"

#include "jit/error.h"
#include "lib/disk_cache.h"

#include <algorithm>

namespace ng::cuda {

StockKey stock_key(std::string_view text) noexcept
{
    const Digest whole = cache_key({text});
    StockKey key;
    std::copy_n(whole.begin(), key.size(), key.begin());
    return key;
}

std::string stock_name(size_t number, int32_t function) { return function == 0 ? text("stock_", number) : text("stock_", number, "_", function); }

}  // namespace ng::cuda
