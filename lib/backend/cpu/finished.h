// What a task has finished of a product's result, box by box, and its epilogue has not heard of yet.
#pragma once
#include "lib/backend/cpu/products.h"

namespace ng::cpu {

// An epilogue plans each box anew, which takes as long as a few thousand elements: small boxes wait for those beside them.
class Finished {
  public:
    // epilogue: null where nobody wants to hear. rank: of the result.
    Finished(const Epilogue* epilogue, int rank, uint32_t worker) : epilogue_(epilogue), rank_(rank), worker_(worker) {}
    ~Finished() { tell(); }
    Finished(const Finished&) = delete;

    bool is_wanted() const { return epilogue_ != nullptr; }
    void add(const int64_t* first, const int64_t* count);

  private:
    static constexpr int     MOST = 4;       // a row of boxes, a row of rows and so on: each axis may be on its way
    static constexpr int64_t ENOUGH = 4096;  // elements, which are in L1 still

    struct Box { int64_t first[NG_MAX_NDIM], count[NG_MAX_NDIM]; };
    bool joins(Box& box, const Box& next) const;
    void tell();

    const Epilogue* epilogue_;
    const int       rank_;
    const uint32_t  worker_;
    int             boxes_ = 0;
    int64_t         elements_ = 0;
    Box             box_[MOST];
};

}  // namespace ng::cpu
