// What the programs of a campaign were made of: rows, forms, types, layouts, aliases, lengths; what is missing is said.
#pragma once
#include "tests/random/graph_of_program.h"

#include <atomic>

namespace programs {

class Drawn {
  public:
    explicit Drawn(const Table& table);
    void add(const Program& program);                     // from any thread
    std::vector<std::string> missing() const;

  private:
    void meet(size_t at, bool is_so) { if (is_so) met_[at] = true; }
    const Table& table_;
    std::vector<std::atomic<bool>> met_;
};

}  // namespace programs
