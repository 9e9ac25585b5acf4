// What texts that the build compiles are called and found by.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace ng::cuda {

using StockKey = std::array<uint8_t, 16>;
StockKey stock_key(std::string_view text) noexcept;
std::string stock_name(size_t number, int32_t function);     // of a text's function, as the image has it

struct StockEntry {
    StockKey key;
    uint32_t number;
    int32_t  functions;
};
extern const StockEntry STOCK_ENTRIES[];                     // by rising keys
extern const size_t     STOCK_COUNT;

}  // namespace ng::cuda
