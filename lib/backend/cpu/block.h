// One block of a task: where its instructions find their operands, and where their results go.
#pragma once
#include "lib/backend/cpu/interpret.h"

namespace ng::cpu {

// Lists are short, so it holds no more than it must.
struct Block {
    Frame&             frame;
    const int64_t*     at;            // [accesses]
    const int64_t      count;

    const Program&  program() const { return frame.job->program; }
    const Plan&     plan() const { return frame.job->plan; }
    const IsaTable& isa() const { return *program().isa; }
    char*           buffer(int32_t i) const { return frame.job->run.buffers[i]; }

    const char* operand(int32_t slot) const
    {
        return slot >= 0 ? frame.slots[slot] : reinterpret_cast<const char*>(program().constants.data() + ~slot);
    }
    Form form(int32_t slot) const { return slot < 0 ? Form::One : frame.form[slot]; }
    bool is_single(int32_t slot) const { return form(slot) == Form::One; }
    char* memory(const Instruction& i, int32_t access) const { return buffer(i.buffer) + at[access] * i.memory_bytes; }

    // The operand as a block of n elements.
    const char* spread(int32_t slot, Dtype type, int64_t n, int temp) const
    {
        const char* in = operand(slot);
        if (n == 1 || !is_single(slot)) return in;
        isa().load[int(type)](frame.temps[temp], in, 0, n);
        return frame.temps[temp];
    }
    char* result(const Instruction& i, bool single) const
    {
        frame.form[i.out] = single ? Form::One : Form::Block;
        return frame.slots[i.out] = frame.homes[i.out];
    }
    // Whether the next instruction would store the result, but nobody wants it; then that one is passed.
    bool is_unwanted(const Instruction*& i) const
    {
        if (!(i->flags & DIRECT) || buffer(i[1].buffer)) return false;
        i++;
        return true;
    }
    // As result; the memory that the next instruction would store it in, where that does as well.
    char* result_or_memory(const Instruction*& i, bool single) const
    {
        if (!(i->flags & DIRECT) || single || plan().is_streaming || plan().group) return result(*i, single);
        const Instruction& store = i[1];
        if (plan().step[store.extra] != 1 || !buffer(store.buffer)) return result(*i, single);
        i++;
        return memory(store, store.extra);
    }
};

}  // namespace ng::cpu
