// Register allocation: slots of a tape's values by when they are read last, in two walks over the code.
#include "lib/backend/cpu/lowering.h"

#include <algorithm>
#include <array>

namespace ng::cpu {
namespace {

class Slots {
  public:
    explicit Slots(int32_t first) : end_(first) {}
    int32_t take()
    {
        if (free_.empty()) return end_++;
        const int32_t slot = free_.back();
        free_.pop_back();
        return slot;
    }
    void give(int32_t slot) { free_.push_back(slot); }
    int32_t end() const { return end_; }

  private:
    std::vector<int32_t> free_;
    int32_t end_;
};

class Assigner {
  public:
    Assigner(Tape& tape, const SlotPlan& plan, const Program& program);

    // Values of one level in this part of the code. What a loop reads stays until the loop ends.
    void assign(List part, uint8_t level, Slots& slots, const std::vector<List>& loops);
    void rewrite();

  private:
    struct Place { int32_t out; std::array<int32_t, 3> args; };
    void mark_levels(const Program& program);
    // The loop that an instruction is in, or null; instructions are asked for in order.
    static const List* loop_of(uint32_t at, const std::vector<List>& loops, size_t& next);
    void find_last(List part, uint8_t level, const std::vector<List>& loops);
    bool is(int32_t v, uint8_t level) const { return v >= 0 && level_[size_t(v)] == level; }

    Tape& tape_;
    std::vector<uint8_t>        level_;
    const std::vector<uint8_t>& bytes_;
    std::vector<int32_t> slots_;          // by value
    std::vector<int64_t> last_;           // by value: the instruction that reads it last
    std::vector<int32_t> held_;           // slots to give back where the loop at hand ends
    std::vector<Place>   places_;         // by instruction
};

Assigner::Assigner(Tape& tape, const SlotPlan& plan, const Program& program)
    : tape_(tape), level_(plan.level), bytes_(plan.bytes), slots_(plan.slots), last_(plan.slots.size(), -1)
{
    places_.reserve(tape.code.size());
    mark_levels(program);
    for (const Instruction& i : tape.code) {
        Place place{-1, {-1, -1, -1}};
        for (size_t k = 0; k < 3; k++)
            if (is(i.args[k], UNIFORM)) place.args[k] = slots_[size_t(i.args[k])];
        if (is(i.out, UNIFORM)) place.out = slots_[size_t(i.out)];
        places_.push_back(place);
    }
}

void Assigner::mark_levels(const Program& program)
{
    std::vector<bool> strays(level_.size());           // by value: a store of it may have no rows where the plan has
    for (const Instruction& i : tape_.code)
        if (i.code == Code::Store && i.args[0] >= 0 && !program.decides[size_t(i.extra)]) strays[size_t(i.args[0])] = true;
    for (const List& list : tape_.full)
        for (uint32_t at = list.begin, chained = at; at < list.end; at++) {
            const Instruction& i = tape_.code[at];
            if (i.code == Code::Chain) chained = at + 1 + uint32_t(i.extra);
            if (!is(i.out, FULL)) continue;
            if (at >= chained && is_sent(i)) level_[size_t(i.out)] = SENT;
            else if (i.code == Code::Load ? i.flags & (IN_PLACE | CODES) : at < chained && !(i.flags & KEPT) && !strays[size_t(i.out)]) level_[size_t(i.out)] = LIGHT;
        }
}

const List* Assigner::loop_of(uint32_t at, const std::vector<List>& loops, size_t& next)
{
    while (next < loops.size() && loops[next].end <= at) next++;
    return next < loops.size() && at >= loops[next].begin ? &loops[next] : nullptr;
}

void Assigner::find_last(List part, uint8_t level, const std::vector<List>& loops)
{
    size_t next = 0;
    for (uint32_t at = part.begin; at < part.end; at++) {
        const List* loop = loop_of(at, loops, next);
        for (const int32_t arg : tape_.code[at].args)
            if (is(arg, level)) last_[size_t(arg)] = loop ? loop->end - 1 : at;
    }
}

void Assigner::assign(List part, uint8_t level, Slots& slots, const std::vector<List>& loops)
{
    find_last(part, level, loops);
    size_t next = 0;
    for (uint32_t at = part.begin; at < part.end; at++) {
        const Instruction& i = tape_.code[at];
        const List* loop = loop_of(at, loops, next);
        int32_t ending[3];
        int     count = 0;
        // A result may take the place of an operand of its size; loops that change sizes would overtake themselves.
        bool in_place = i.code == Code::Map || i.code == Code::Convert;
        for (size_t k = 0; k < 3; k++) {
            const int32_t v = i.args[k];
            if (!is(v, level)) continue;
            const int32_t slot = places_[at].args[k] = slots_[size_t(v)];
            if (last_[size_t(v)] != int64_t(loop ? loop->end - 1 : at)) continue;
            last_[size_t(v)] = -1;                     // once, though it be read twice
            if (loop) held_.push_back(slot);
            else ending[count++] = slot;
            in_place = in_place && bytes_[size_t(v)] == i.bytes;
        }
        if (in_place)
            for (int k = 0; k < count; k++) slots.give(ending[k]);
        if (is(i.out, level)) places_[at].out = slots_[size_t(i.out)] = slots.take();
        if (!in_place)
            for (int k = 0; k < count; k++) slots.give(ending[k]);
        if (!loop || at + 1 < loop->end) continue;
        for (const int32_t slot : held_) slots.give(slot);
        held_.clear();
    }
}

void Assigner::rewrite()
{
    for (size_t at = 0; at < places_.size(); at++) {
        tape_.code[at].out = places_[at].out;
        for (size_t k = 0; k < 3; k++) tape_.code[at].args[k] = places_[at].args[k];
    }
}

}  // namespace

void assign_slots(Tape& tape, const SlotPlan& plan, const Program& program, bool is_resident)
{
    const List all{0, uint32_t(tape.code.size())};
    Assigner assigner(tape, plan, program);
    Slots rows(program.uniform_slots + program.fold_slots);
    assigner.assign(all, ROW, rows, tape.full);
    tape.row_slots = rows.end() - program.uniform_slots;
    const std::vector<List> parts = is_resident ? std::vector<List>{all} : tape.full;   // nothing full outlives its pass
    int32_t end = rows.end();
    for (const uint8_t level : {uint8_t(FULL), SENT, LIGHT}) {
        const int32_t first = end;
        for (const List& list : parts) {
            Slots slots(first);
            assigner.assign(list, level, slots, {});
            end = std::max(end, slots.end());
        }
        (level == SENT ? tape.sent_slots : tape.light_slots) = end - first;
    }
    tape.full_slots = end - rows.end();
    assigner.rewrite();
}

}  // namespace ng::cpu
