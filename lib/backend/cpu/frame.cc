// A task's registers beside their instructions: where they lie, how groups meet, and sums of memory that need no register.
#include "lib/backend/cpu/interpret.h"

#include <algorithm>
#include <cstring>

#if defined __SSE2__
#include <immintrin.h>
#endif

namespace ng::cpu {

void fence_streams() noexcept
{
#if defined __SSE2__
    _mm_sfence();
#endif
}

void set_up(Frame& frame, const Job& job, char* scratch) noexcept
{
    const Program& p = job.program;
    const Plan& plan = job.plan;
    const Tape& tape = *plan.tape;
    frame.job = &job;
    const char* const end_of_scratch = scratch + SCRATCH_BYTES;
    int32_t slot = 0;
    for (; slot < p.uniform_slots; slot++) frame.homes[slot] = reinterpret_cast<char*>(frame.uniform + slot);
    const auto give = [&](int32_t count, int64_t stride) {
        for (const int32_t end = slot + count; slot < end; slot++, scratch += stride) frame.homes[slot] = scratch;
    };
    give(tape.row_slots, plan.row_stride);
    give(tape.full_slots - tape.sent_slots - tape.light_slots, plan.full_stride);
    give(tape.sent_slots, plan.sent_stride);
    give(tape.light_slots, plan.light_stride);
    scratch += (plan.banks - 1) * tape.full_slots * plan.full_stride;
    for (char*& temp : frame.temps) {
        temp = scratch;
        scratch += plan.temp_stride;
    }
    const bool has_outbox = plan.is_streaming && &tape == &p.resident && !plan.is_columns && plan.pieces == 1 && tape.has_outbox;
    frame.outbox = has_outbox && scratch + plan.full_stride <= end_of_scratch ? scratch : nullptr;
}

void join_groups(Frame& frame, int32_t pass) noexcept
{
    const Plan& plan = frame.job->plan;
    for (const FoldSlot& fold : frame.job->program.folds) {
        if (fold.pass != pass) continue;
        char* all = frame.slots[fold.slot];
        const int64_t bytes = plan.group * fold.bytes;
        for (int64_t done = plan.group; done < plan.block; done += plan.group) fold.merge(all, all + done * fold.bytes, plan.group);
        for (int64_t done = bytes; done < plan.block * fold.bytes; done += bytes) std::memcpy(all + done, all, size_t(bytes));
    }
}

void sum_memory(Frame& frame, List list, const int64_t* at, const int64_t* stride, int64_t rows, int64_t count) noexcept
{
    constexpr int64_t TURN = 24;                       // rows that are near still where a second fold reads them
    const Job& job = *frame.job;
    const Instruction* code = job.plan.tape->code.data();
    for (int64_t row = 0; row < rows; row += TURN) {
        const Instruction* load = nullptr;
        for (uint32_t k = list.begin; k < list.end; k++) {
            if (code[k].code == Code::Load) {
                load = code + k;
                continue;
            }
            const FoldSlot& fold = job.program.folds[size_t(code[k].extra)];
            const int64_t place = at[load->extra] + row * stride[load->extra];
            const char*   x = job.run.buffers[load->buffer] + place * load->memory_bytes;
            const SumRows loop = job.program.isa->sum_rows[int(load->type)];
            loop({x, stride[load->extra], std::min(TURN, rows - row), count, reinterpret_cast<double*>(frame.slots[fold.slot]), job.plan.is_prefetching});
        }
    }
}

}  // namespace ng::cpu
