// Joins boxes that go on where another ends, and tells the epilogue of them when they are many elements.
#include "lib/backend/cpu/finished.h"

#include <algorithm>

namespace ng::cpu {

// Whether the next one goes on where the box ends, along one axis; then the box is both.
bool Finished::joins(Box& box, const Box& next) const
{
    int along = -1;
    for (int a = 0; a < rank_; a++) {
        if (box.first[a] == next.first[a] && box.count[a] == next.count[a]) continue;
        if (along >= 0 || box.first[a] + box.count[a] != next.first[a]) return false;
        along = a;
    }
    if (along < 0) return false;
    box.count[along] += next.count[along];
    return true;
}

void Finished::add(const int64_t* first, const int64_t* count)
{
    Box&    box = box_[boxes_++];
    int64_t elements = 1;
    for (int a = 0; a < rank_; a++) box.first[a] = first[a], box.count[a] = count[a], elements *= count[a];
    elements_ += elements;
    while (boxes_ > 1 && joins(box_[boxes_ - 2], box_[boxes_ - 1])) boxes_--;
    if (boxes_ == MOST || elements_ >= ENOUGH) tell();
}

void Finished::tell()
{
    for (int i = 0; i < boxes_; i++) epilogue_->box(epilogue_->self, box_[i].first, box_[i].count, worker_);
    boxes_ = 0, elements_ = 0;
}

}  // namespace ng::cpu
