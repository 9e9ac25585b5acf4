// Walks a fused kernel over its space: units of rows or blocks in parallel, or pieces of each unit whose folds are merged.
#include "lib/backend/cpu/fused.h"

#include "lib/backend/cpu/interpret.h"
#include "lib/backend/cpu/plan.h"
#include "lib/backend/cpu/tape.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace ng::cpu {
namespace {

// Where a task is: indices of all loops, and where each access is.
struct Place {
    explicit Place(const Plan& p) : plan(p) { std::fill_n(index, p.kept + p.reduced, 0); }

    const Plan& plan;
    int64_t     index[MAX_AXES + 1];

    // The point-th of these loops, all of which are at 0.
    void seek(int32_t first, int32_t count, int64_t point, int64_t* at)
    {
        for (int32_t loop = first + count; point > 0 && loop-- > first;) {
            index[loop] = point % plan.extents[loop];
            point /= plan.extents[loop];
            const int64_t* stride = plan.stride(loop);
            for (int32_t a = 0; a < plan.accesses; a++) at[a] += index[loop] * stride[a];
        }
    }
    void step(int32_t first, int32_t count, int64_t* at)
    {
        for (int32_t loop = first + count; loop-- > first;) {
            const int64_t* stride = plan.stride(loop);
            if (++index[loop] < plan.extents[loop]) {
                for (int32_t a = 0; a < plan.accesses; a++) at[a] += stride[a];
                return;
            }
            index[loop] = 0;
            for (int32_t a = 0; a < plan.accesses; a++) at[a] -= (plan.extents[loop] - 1) * stride[a];
        }
    }
    // Steps from here on along the innermost loop whose blocks are as long as this one.
    int64_t alike() const
    {
        const int32_t loop = innermost();
        const int64_t left = plan.extents[loop] - index[loop];
        return loop == plan.block_loop && plan.tail != plan.block && left > 1 ? left - 1 : left;
    }
    // Along the innermost loop, within its extent.
    void skip(int64_t steps, int64_t* at)
    {
        index[innermost()] += steps;
        for (int32_t a = 0; a < plan.accesses; a++) at[a] += steps * plan.stride(innermost())[a];
    }
    int32_t innermost() const { return plan.kept + plan.reduced - 1; }
};

struct alignas(64) Scratch { char bytes[SCRATCH_BYTES]; };

// The full registers of each step of a unit, where a resident tape keeps them all: pointers and forms.
class Banks {
  public:
    Banks(Frame& frame, const Program& program, const Plan& plan)
        : frame_(frame), first_(program.uniform_slots + plan.tape->row_slots), count_(plan.tape->full_slots),
          bytes_(count_ * plan.full_stride)
    {
        std::copy_n(frame.homes + first_, count_, homes_);
    }
    void enter(int64_t step)
    {
        for (int32_t i = 0; i < count_; i++) frame_.homes[first_ + i] = homes_[i] + step * bytes_;
        std::copy_n(slots_ + step * count_, count_, frame_.slots + first_);
        std::copy_n(forms_ + step * count_, count_, frame_.form + first_);
    }
    void leave(int64_t step)
    {
        std::copy_n(frame_.slots + first_, count_, slots_ + step * count_);
        std::copy_n(frame_.form + first_, count_, forms_ + step * count_);
    }

  private:
    Frame&  frame_;
    int32_t first_, count_;
    int64_t bytes_;                   // of a bank
    char*   homes_[MAX_LIVE];
    char*   slots_[MAX_LIVE];
    Form    forms_[MAX_LIVE];
};

// A unit whose steps are few: each value is computed once.
void walk_banks(Frame& frame, Place& place, const int64_t* unit_at, int64_t* at) noexcept
{
    const Plan& plan = place.plan;
    const Tape& tape = *plan.tape;
    const int64_t count = plan.row_count_at(place.index);
    Banks banks(frame, frame.job->program, plan);
    for (size_t pass = 0; pass < tape.full.size(); pass++) {
        execute(frame, tape.rows[pass], unit_at, count);
        execute(frame, tape.starts[pass], unit_at, count);
        std::copy_n(unit_at, plan.accesses, at);
        for (int64_t step = 0; step < plan.steps; step++) {
            banks.enter(step);
            execute(frame, tape.full[pass], at, count);
            banks.leave(step);
            place.step(plan.kept, plan.reduced, at);
        }
    }
    execute(frame, tape.rows.back(), unit_at, count);
    banks.enter(0);                                    // homes as they were
}

// Steps first .. last - 1 of one pass; unit_at: where the unit's accesses are; at: to count in.
void walk_steps(Frame& frame, Place& place, size_t pass, const int64_t* unit_at, int64_t* at, int64_t first, int64_t last)
{
    const Plan& plan = place.plan;
    const List  full = plan.tape->full[pass];
    if (first == last) return;
    if (plan.steps == 1) return execute(frame, full, unit_at, plan.count_at(place.index));
    std::copy_n(unit_at, plan.accesses, at);
    place.seek(plan.kept, plan.reduced, first, at);
    const bool sums_memory = plan.sums_memory >> pass & 1;
    for (int64_t step = first; step < last; step++) {
        const int64_t rows = sums_memory ? std::min(place.alike(), last - step) : 1;
        if (rows > 1) {
            sum_memory(frame, full, at, plan.stride(place.innermost()), rows, plan.count_at(place.index));
            place.skip(rows - 1, at);
            step += rows - 1;
        } else {
            execute(frame, full, at, plan.count_at(place.index));
        }
        place.step(plan.kept, plan.reduced, at);
    }
}

void walk_unit(Frame& frame, Place& place, const int64_t* unit_at, int64_t* at)
{
    const Plan& plan = place.plan;
    const Tape& tape = *plan.tape;
    const int64_t count = plan.row_count_at(place.index);
    if (plan.steps == 1 && !plan.group) return execute_unit(frame, unit_at, count, plan.count_at(place.index));
    for (size_t pass = 0; pass < tape.full.size(); pass++) {
        execute(frame, tape.rows[pass], unit_at, count, plan.group);
        if (plan.sums_whole >> pass & 1) continue;
        execute(frame, tape.starts[pass], unit_at, count);
        walk_steps(frame, place, pass, unit_at, at, 0, plan.steps);
        if (plan.group) join_groups(frame, int32_t(pass));
    }
    execute(frame, tape.rows.back(), unit_at, count, plan.group);
}

void walk_units(const Job& job, int64_t first, int64_t last) noexcept
{
    const Plan& plan = job.plan;
    Scratch scratch;
    Frame   frame;
    auto* unit_at = static_cast<int64_t*>(__builtin_alloca(size_t(plan.accesses) * 16 + 16));
    auto* at = unit_at + plan.accesses;
    set_up(frame, job, scratch.bytes);
    std::copy_n(plan.offset, plan.accesses, unit_at);
    execute(frame, plan.tape->uniform, unit_at, 1);
    Place place{plan};
    place.seek(0, plan.kept, first, unit_at);
    for (int64_t unit = first; unit < last; unit++) {
        if (plan.banks > 1) walk_banks(frame, place, unit_at, at);
        else walk_unit(frame, place, unit_at, at);
        place.step(0, plan.kept, unit_at);
    }
    empty_outbox(frame);
    if (plan.is_streaming) fence_streams();
}

// One pass of one unit, cut into pieces: each folds into accumulators of its own in the workspace.
class SplitPass {
  public:
    SplitPass(const Job& job, const Frame& frame, const Place& place, const int64_t* unit_at, int64_t count, int32_t pass)
        : job_(job), frame_(frame), place_(place), unit_at_(unit_at), count_(count), pass_(pass) {}
    void walk(uint32_t piece) const noexcept;
    void merge() const noexcept;

  private:
    char* partial(uint32_t piece, int32_t slot) const
    {
        const int64_t number = int64_t(piece) * job_.program.fold_slots + slot - job_.program.uniform_slots;
        return static_cast<char*>(job_.run.workspace) + number * job_.plan.row_stride;
    }

    const Job&     job_;
    const Frame&   frame_;            // of the unit
    const Place&   place_;
    const int64_t* unit_at_;
    int64_t        count_;
    int32_t        pass_;
};

void SplitPass::walk(uint32_t piece) const noexcept
{
    const Plan& plan = job_.plan;
    const size_t pass = size_t(pass_);
    Scratch scratch;
    Frame   frame;
    set_up(frame, job_, scratch.bytes);
    std::copy_n(frame_.slots, MAX_SLOTS, frame.slots);
    std::copy_n(frame_.form, MAX_SLOTS, frame.form);
    for (const FoldSlot& fold : job_.program.folds) {
        if (fold.pass != pass_) continue;
        frame.homes[fold.slot] = partial(piece, fold.slot);
        if (fold.is_arg()) frame.homes[fold.at] = partial(piece, fold.at);
    }
    auto* at = static_cast<int64_t*>(__builtin_alloca(size_t(plan.accesses) * 8 + 8));
    Place place = place_;
    execute(frame, plan.tape->starts[pass], unit_at_, count_);
    const int64_t first = plan.steps * piece / plan.pieces, last = plan.steps * (piece + 1) / plan.pieces;
    walk_steps(frame, place, pass, unit_at_, at, first, last);
    if (plan.is_streaming) fence_streams();
}

void SplitPass::merge() const noexcept
{
    for (uint32_t piece = 0; piece < job_.plan.pieces; piece++)
        for (const FoldSlot& fold : job_.program.folds) {
            if (fold.pass != pass_) continue;
            char* into = frame_.slots[fold.slot];
            const char* from = partial(piece, fold.slot);
            if (!fold.is_arg()) {
                fold.merge(into, from, count_);
                continue;
            }
            const auto* from_at = reinterpret_cast<const int64_t*>(partial(piece, fold.at));
            auto*       into_at = reinterpret_cast<int64_t*>(frame_.slots[fold.at]);
            const int64_t bytes = fold.bytes;
            for (int64_t i = 0; i < count_; i++)
                fold.loops.arg_along(into + i * bytes, into_at + i, from + i * bytes, from_at[i], 0, 1);
        }
}

void walk_pieces(const Job& job, const Parallel& parallel) noexcept
{
    const Plan& plan = job.plan;
    const Tape& tape = *plan.tape;
    Scratch scratch;
    Frame   frame = {};                                // its slots are copied whole
    auto* unit_at = static_cast<int64_t*>(__builtin_alloca(size_t(plan.accesses) * 8 + 8));
    set_up(frame, job, scratch.bytes);
    std::copy_n(plan.offset, plan.accesses, unit_at);
    execute(frame, tape.uniform, unit_at, 1);
    Place place{plan};
    place.seek(0, plan.kept, 0, unit_at);
    for (int64_t unit = 0; unit < plan.units; unit++) {
        const int64_t count = plan.row_count_at(place.index);
        for (size_t pass = 0; pass < tape.full.size(); pass++) {
            execute(frame, tape.rows[pass], unit_at, count, plan.group);
            execute(frame, tape.starts[pass], unit_at, count);
            const SplitPass split(job, frame, place, unit_at, count, int32_t(pass));
            parallel.for_each(plan.pieces, [&](uint32_t piece, uint32_t) { split.walk(piece); });
            split.merge();
            if (plan.group) join_groups(frame, int32_t(pass));
        }
        execute(frame, tape.rows.back(), unit_at, count, plan.group);
        place.step(0, plan.kept, unit_at);
    }
}

void walk(const Job& job, const Parallel& parallel) noexcept
{
    const Plan& plan = job.plan;
    if (plan.units == 0) return;
    if (plan.pieces > 1) return walk_pieces(job, parallel);
    if (plan.chunks == 1 || parallel.workers() == 1) return walk_units(job, 0, plan.units);
    parallel.for_each(plan.chunks, [&](uint32_t chunk, uint32_t) {
        walk_units(job, plan.units * chunk / plan.chunks, plan.units * (chunk + 1) / plan.chunks);
    });
}

}  // namespace

// Kernels without variables are planned once.
struct FusedKernel::Kept {
    Kept(const Kernel& kernel, const IsaTable& isa) : program(lower(kernel, isa))
    {
        if (!program.lengths.is_constant()) return;
        memory.resize(size_t(plan_numbers(program)));
        plan = make_plan(program, program.lengths.constants(), nullptr, memory.data());
    }
    Program              program;
    std::vector<int64_t> memory;
    Plan                 plan;
};

FusedKernel::FusedKernel(const Kernel& kernel, const IsaTable& isa) : kept_(std::make_unique<Kept>(kernel, isa)) {}
FusedKernel::~FusedKernel() = default;
FusedKernel::FusedKernel(FusedKernel&&) noexcept = default;

int FusedKernel::live_registers(const Kernel& kernel, const IsaTable& isa) { return cpu::live_registers(kernel, isa); }
int FusedKernel::live_limit() { return MAX_LIVE; }

uint64_t FusedKernel::workspace_bytes(std::span<const int64_t>, uint32_t) const
{
    const Program& program = kept_->program;
    if (program.lengths.is_constant()) return piece_bytes(program, kept_->plan);
    return most_piece_bytes(program);
}

bool FusedKernel::may_be_cut(double most_points) const
{
    const Program& program = kept_->program;
    if (program.lengths.is_constant()) return kept_->plan.chunks > 1 || kept_->plan.pieces > 1;
    // An instruction takes more than this for an element only where it touches a line of memory for it, far from the last one.
    constexpr double MOST_NS = 4;
    return most_points * double(program.streamed.code.size()) * MOST_NS >= PARALLEL_NS;
}

void FusedKernel::run(const FusedRun& run, const Parallel& parallel) const noexcept
{
    const Program& program = kept_->program;
    if (program.lengths.is_constant()) return walk({program, kept_->plan, run, program.lengths.constants()}, parallel);
    auto* lengths = static_cast<int64_t*>(__builtin_alloca(size_t(program.lengths.count()) * 8));
    program.lengths.evaluate(run.variables, lengths);
    auto* memory = static_cast<int64_t*>(__builtin_alloca(size_t(plan_numbers(program)) * 8));
    const Plan plan = make_plan(program, lengths, nullptr, memory);
    walk({program, plan, run, lengths}, parallel);
}

void FusedKernel::run_box(const FusedRun& run, const int64_t* first, const int64_t* count) const noexcept
{
    const Program& program = kept_->program;
    const int64_t* lengths = program.lengths.constants();
    if (!program.lengths.is_constant()) {
        auto* values = static_cast<int64_t*>(__builtin_alloca(size_t(program.lengths.count()) * 8));
        program.lengths.evaluate(run.variables, values);
        lengths = values;
    }
    const Box box{first, count};
    auto* memory = static_cast<int64_t*>(__builtin_alloca(size_t(plan_numbers(program)) * 8));
    const Plan plan = make_plan(program, lengths, &box, memory);
    walk_units({program, plan, run, lengths}, 0, plan.units);
}

}  // namespace ng::cpu
