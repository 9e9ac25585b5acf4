// What each instruction of a tape does to a block: picks the loop for how its operands lie in memory, and calls it.
#include "lib/backend/cpu/traffic.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace ng::cpu {
namespace {

// whole: elements of the block. Of less, which is laid in a register again and again, codes become numbers: it may be the result's, too.
void load(const Block& b, const Instruction& i, int64_t whole)
{
    const int64_t step = b.plan().step[i.extra];
    char* in = b.memory(i, i.extra);
    const bool single = step == 0 || b.count == 1;
    if ((i.flags & IN_PLACE) && (single || step == 1)) {
        b.frame.slots[i.out] = in;
        b.frame.form[i.out] = single ? Form::One : Form::Block;
    } else if ((i.flags & CODES) && step == 1 && !single && b.count == whole) {
        b.frame.slots[i.out] = in;
        b.frame.form[i.out] = i.type == Dtype::f16 ? Form::F16 : Form::Bf16;
    } else {
        i.load(b.result(i, single), in, step, single ? 1 : b.count);
    }
    if (!b.plan().is_prefetching || step != 1) return;
    const int64_t bytes = b.count * i.memory_bytes;
    const char* next = in + b.plan().stride(b.plan().kept + b.plan().reduced - 1)[i.extra] * i.memory_bytes;
    if (next == in) return;
    if (b.plan().is_streaming && b.frame.aheads < MAX_AHEAD) b.frame.ahead[b.frame.aheads++] = {next, bytes, i.memory_bytes};
    else fetch(next, bytes);
}

void map(const Block& b, const Instruction*& at)
{
    const Instruction& i = *at;
    if (b.is_unwanted(at)) return;
    const char* in[3] = {b.operand(i.args[0]), nullptr, nullptr};
    int mode = int(b.is_single(i.args[0])), all = MODE_X;
    if (i.arity > 1) {
        in[1] = b.operand(i.args[1]);
        mode |= int(b.is_single(i.args[1])) * MODE_Y;
        all = MODE_X | MODE_Y;
    }
    if (i.arity > 2) {
        in[2] = b.operand(i.args[2]);
        mode |= int(b.is_single(i.args[2])) * MODE_Z;
        all = MODE_X | MODE_Y | MODE_Z;
    }
    if (mode == all) return i.map[MODE_ALL](b.result(i, true), in[0], in[1], in[2], 1);
    const int64_t n = b.count;
    MapLoop loop = i.map[mode];
    if (!loop) {                                       // only loops of three operands lack modes that can come up
        for (int k = 0, temp = 0; k < i.arity; k++)
            if (mode >> k & 1) in[k] = b.spread(i.args[k], i.operand, n, temp++);
        loop = i.map[MODE_ALL];
    }
    if (i.flags & DIRECT && i.arity < 3 && !b.plan().group)     // one or two operands are of one type
        if (const Stream stream(b, at[1]); stream.is_open()) return at++, map_past_caches(b, {i, loop, in, mode}, stream);
    char* const out = b.result_or_memory(at, false);
    if (b.frame.outbox && i.flags & SLOW && i.arity < 3) return map_slowly(b, {i, loop, in, mode}, out);
    loop(out, in[0], in[1], in[2], n);
}

void convert(const Block& b, const Instruction*& at)
{
    const Instruction& i = *at;
    if (b.is_unwanted(at)) return;
    const bool single = b.is_single(i.args[0]);
    const char* in = b.operand(i.args[0]);
    i.convert(b.result_or_memory(at, single), in, single ? 1 : b.count);
}

void bitcast(const Block& b, const Instruction& i)
{
    const bool single = b.is_single(i.args[0]);
    const int64_t n = single ? 1 : b.count;
    b.isa().store[int(i.operand)](b.frame.temps[0], 1, b.operand(i.args[0]), n);
    i.load(b.result(i, single), b.frame.temps[0], 1, n);
}

void store_by_parts(const Block& b, const Instruction& i)
{
    const Plan& plan = b.plan();
    const int64_t* const position = b.at + plan.positions;
    int64_t base = b.at[i.extra];
    for (int32_t loop = 0; loop < plan.kept + plan.reduced; loop++)
        if (loop != plan.block_loop) base += plan.place_by_parts(loop, position[loop], i.extra);
    const char* const in = b.spread(i.args[0], i.operand, b.count, 0);
    for (int64_t done = 0, count; done < b.count; done += count) {
        const int64_t   at = position[plan.block_loop] + done;
        const Plan::Row row = plan.row_by_parts(plan.block_loop, at, i.extra);
        count = std::min(row.count, b.count - done);
        i.store(b.buffer(i.buffer) + (base + plan.place_by_parts(plan.block_loop, at, i.extra)) * i.memory_bytes, row.stride, in + done * i.bytes, count);
    }
}

void store(const Block& b, const Instruction& i)
{
    if (!b.buffer(i.buffer)) return;                   // an output that is not wanted this time
    if (b.plan().step[i.extra] == Plan::BY_PARTS) return store_by_parts(b, i);
    const bool fills = !b.plan().is_streaming && i.type == i.operand && b.is_single(i.args[0]) && b.plan().step[i.extra] == 1;
    if (fills) return b.isa().load[int(i.type)](b.memory(i, i.extra), b.operand(i.args[0]), 0, b.count);
    const char* in = b.spread(i.args[0], i.operand, b.count, 0);
    if (const Stream stream(b, i); stream.is_open()) return stream.write(in, 0, b.count);
    i.store(b.memory(i, i.extra), b.plan().step[i.extra], in, b.count);
}

// base[index[i] * stride + i * step]: as a gather with stride 1 from the lowest place that can come up.
void gather_diagonally(const Block& b, const Instruction& i, const GatherInfo& info, int64_t extent, int64_t stride)
{
    const int64_t step = b.plan().step[info.access];
    const auto* index = reinterpret_cast<const int64_t*>(b.operand(i.args[0]));
    auto* place = reinterpret_cast<int64_t*>(b.frame.temps[0]);
    const int64_t low = std::min<int64_t>(0, (extent - 1) * stride) + std::min<int64_t>(0, (b.count - 1) * step);
    for (int64_t k = 0; k < b.count; k++) {
        const bool inside = uint64_t(index[k]) < uint64_t(extent);
        place[k] = inside ? index[k] * stride + k * step - low : -1;
    }
    const char* base = b.memory(i, info.access) + low * i.memory_bytes;
    i.gather(b.result(i, false), base, place, std::numeric_limits<int64_t>::max(), 1, b.count);
}

void gather(const Block& b, const Instruction& i)
{
    const GatherInfo& info = b.program().gathers[size_t(i.extra)];
    const int64_t extent = b.frame.job->lengths[info.extent], stride = b.frame.job->lengths[info.stride];
    const int64_t step = b.plan().step[info.access];
    const bool    single = b.is_single(i.args[0]);
    const auto*   index = reinterpret_cast<const int64_t*>(b.operand(i.args[0]));
    const char*   base = b.memory(i, info.access);
    if (step == 0 || b.count == 1) {
        const bool one = single || b.count == 1;
        return i.gather(b.result(i, one), base, index, extent, stride, one ? 1 : b.count);
    }
    if (!single) return gather_diagonally(b, i, info, extent, stride);
    // One place for the whole block: its elements are a row.
    if (uint64_t(*index) < uint64_t(extent)) {
        const char* row = base + *index * stride * i.memory_bytes;
        return info.load(b.result(i, false), row, step, b.count);
    }
    std::memset(b.result(i, true), 0, size_t(i.bytes));
}

void random(const Block& b, const Instruction& i)
{
    const bool single = b.is_single(i.args[0]);
    uint64_t key, step;
    std::memcpy(&key, b.operand(i.args[1]), 8);
    std::memcpy(&step, b.operand(i.args[2]), 8);
    const auto* index = reinterpret_cast<const int64_t*>(b.operand(i.args[0]));
    i.random(b.result(i, single), index, key, step, single ? 1 : b.count);
}

void stochastic(const Block& b, const Instruction& i)
{
    const bool single = b.is_single(i.args[0]) && b.is_single(i.args[1]);
    const int64_t n = single ? 1 : b.count;
    const char* x = b.spread(i.args[0], i.operand, n, 0);
    const char* word = b.spread(i.args[1], Dtype::u32, n, 1);
    i.stochastic(b.result(i, single), x, reinterpret_cast<const uint32_t*>(word), uint32_t(i.extra), n);
}

void index(const Block& b, const Instruction& i)
{
    const int64_t step = b.plan().step[i.extra];
    const bool    single = step == 0 || b.count == 1;
    b.isa().ramp(reinterpret_cast<int64_t*>(b.result(i, single)), b.at[i.extra], step, single ? 1 : b.count);
}

void start(const Block& b, const Instruction& i)
{
    const FoldSlot& fold = b.program().folds[size_t(i.extra)];
    const bool single = b.count == 1;
    const auto fill = [&](int32_t slot, Dtype type, const void* value) {
        b.frame.form[slot] = single ? Form::One : Form::Block;
        b.frame.slots[slot] = b.frame.homes[slot];
        b.isa().load[int(type)](b.frame.homes[slot], value, 0, b.count);
    };
    fill(fold.slot, fold.accumulator, &fold.start);
    const int64_t nothing_yet = -1;
    if (fold.is_arg()) fill(fold.at, Dtype::i64, &nothing_yet);
}

void fold(const Block& b, const Instruction& i)
{
    const FoldSlot& fold = b.program().folds[size_t(i.extra)];
    const char* x = b.spread(i.args[0], i.operand, b.count, 0);
    char* into = b.frame.slots[fold.slot];
    if (!fold.is_arg()) return (b.plan().is_columns ? fold.loops.across : fold.loops.along)(into, x, b.count);
    auto* where = reinterpret_cast<int64_t*>(b.frame.slots[fold.at]);
    const int64_t position = b.at[b.program().position];
    if (b.plan().is_columns) return fold.loops.arg_across(into, where, x, position, b.count);
    fold.loops.arg_along(into, where, x, position, b.plan().step[b.program().position], b.count);
}

void finish(const Block& b, const Instruction*& at)
{
    const Instruction& i = *at;
    const FoldSlot& fold = b.program().folds[size_t(i.extra)];
    char* out = b.result_or_memory(at, b.count == 1);
    if (!(b.plan().sums_whole >> fold.pass & 1)) return i.convert(out, b.frame.slots[fold.slot], b.count);
    const Instruction& load = b.plan().tape->code[b.plan().tape->full[size_t(fold.pass)].begin];
    char* const sums = b.frame.homes[fold.slot];
    const bool  rounds = i.type == Dtype::f32;
    b.isa().sum_rows[int(load.type)]({b.memory(load, load.extra), b.plan().stride(b.plan().kept)[load.extra], b.plan().steps, b.count, reinterpret_cast<double*>(sums),
                                    b.plan().is_prefetching, true, rounds ? reinterpret_cast<float*>(out) : nullptr});
    if (!rounds) i.convert(out, sums, b.count);
}

// Lays what the first group of a block has read in each of its groups.
void repeat(const Block& b, const Instruction& i, int64_t group)
{
    if (b.is_single(i.out)) return;
    const char* from = b.frame.slots[i.out];
    char* to = b.result(i, false);
    if (from != to) std::memcpy(to, from, size_t(group * i.bytes));
    for (int64_t done = group, more; done < b.count; done += more) {
        more = std::min(done, b.count - done);
        std::memcpy(to + done * i.bytes, to, size_t(more * i.bytes));
    }
}

// Lays each of the numbers that were read along a row of its own.
void lay_along(const Block& b, const Instruction& i, int64_t row)
{
    if (b.is_single(i.out)) return;
    const int64_t  rows = b.count / row;
    const LoadLoop lay = b.isa().load[int(bits_of_size(i.bytes))];
    char* const    numbers = b.frame.temps[0];
    std::memcpy(numbers, b.frame.slots[i.out], size_t(rows * i.bytes));
    char* const to = b.result(i, false);
    for (int64_t k = 0; k < rows; k++) lay(to + k * row * i.bytes, numbers + k * i.bytes, 0, row);
}

// A load or an index for a block of several rows.
void read_rows(const Block& b, const Instruction& i)
{
    const int64_t row = b.plan().row;
    const Lie     lie = b.plan().lies[i.extra];
    const Block   seen{b.frame, b.at, lie == Lie::Again ? row : lie == Lie::Each ? b.count / row : b.count};
    i.code == Code::Load ? load(seen, i, b.count) : index(seen, i);
    if (lie == Lie::Again && b.count > row) repeat(b, i, row);
    if (lie == Lie::Each) lay_along(b, i, row);
}

// A chain's links for this block: where its operands lie, and where its results go.
class Chain {
  public:
    Chain(const Block& b, const Instruction* marker) : b_(b), store_(marker + 1), end_(marker + 1 + marker->extra)
    {
        while (store_ < end_ && store_->code != Code::Store) store_++;
    }
    void add(const Instruction& i);
    void run();
    const Instruction* end() const { return end_; }

  private:
    void push(int code, char* memory, int bytes) { links_[count_++] = {uint16_t(code), false, uint8_t(bytes), {memory}}; }
    void push_operand(int code, const Instruction& i, int k);
    void push_store(bool is_rounding);

    const Block&       b_;
    Link               links_[MAX_LINKS];
    int                count_ = 0, later_count_ = 0;
    const Instruction* later_[MAX_MET];                // stores to memory that is no row
    const Instruction* store_;                         // the next of the chain's
    const Instruction* end_;
};

void Chain::push_operand(int code, const Instruction& i, int k)
{
    if (i.near[k] >= 0) {
        push(code + int(Form::Near), nullptr, 0);
        links_[count_ - 1].near = uint64_t(i.near[k]);
        return;
    }
    const int32_t slot = i.args[k];
    const Form  form = b_.form(slot);
    const char* operand = b_.operand(slot);
    code += int(form);
    if (form != Form::One) return push(code, const_cast<char*>(operand), form == Form::Block ? 4 : 2);
    push(code, nullptr, 0);
    std::memcpy(&links_[count_ - 1].number, operand, 4);
}

void Chain::push_store(bool is_rounding)
{
    const Instruction& i = *store_++;
    if (!b_.buffer(i.buffer)) return;
    if (b_.plan().step[i.extra] == 1) {
        char* out = b_.memory(i, i.extra);
        push(is_rounding ? i.link - LINK_PUT_F16 + LINK_ROUNDED_F16 : i.link, out, i.memory_bytes);
        links_[count_ - 1].is_streaming = b_.plan().is_streaming && reinterpret_cast<uintptr_t>(out) % 64 == 0;
        return;
    }
    b_.frame.form[i.args[0]] = Form::Block;
    push(LINK_KEEP, b_.frame.slots[i.args[0]] = b_.frame.homes[i.args[0]], 4);
    later_[later_count_++] = &i;
}

void Chain::add(const Instruction& i)
{
    if (!(i.flags & (FROM_X | FROM_Y))) push_operand(LINK_GET, i, 0);
    const bool is_rounding = i.flags & ROUNDS && b_.buffer(store_->buffer) && b_.plan().step[store_->extra] == 1;
    if (i.arity == 2) push_operand(i.link, i, i.flags & FROM_Y ? 0 : 1);
    else if (!is_rounding) push(i.link, nullptr, 0);
    if (i.near[2] >= 0) {
        push(LINK_KEEP_NEAR, nullptr, 0);
        links_[count_ - 1].near = uint64_t(i.near[2]);
    } else if (i.flags & KEPT) {
        push(LINK_KEEP, b_.result(i, false), 4);
    }
    for (int32_t k = 0; k < i.extra; k++) push_store(is_rounding);
}

void Chain::run()
{
    Frame& frame = b_.frame;
    const bool is_streaming = b_.plan().is_streaming;
    b_.isa().chain(links_, count_, b_.count, {frame.ahead, is_streaming ? frame.aheads : 0});
    if (is_streaming) frame.aheads = 0;
    for (int k = 0; k < later_count_; k++) store(b_, *later_[k]);
}

void chain(const Block& b, const Instruction*& at)
{
    Chain chain(b, at);
    for (const Instruction* i = at + 1; i < chain.end() && i->code != Code::Store; i++) chain.add(*i);
    at = chain.end() - 1;
    chain.run();
}

void length(const Block& b, const Instruction& i)
{
    std::memcpy(b.result(i, true), b.frame.job->lengths + i.extra, 8);
}

void scalar(const Block& b, const Instruction& i)
{
    i.load(b.result(i, true), static_cast<const char*>(b.frame.job->run.scalars) + i.extra, 0, 1);
}

// What an instruction works on: a block of full values or one of row values; and what loads and stores see of it, its first group.
struct Blocks {
    const Block &full, &row, &part;
};

void run_list(const Blocks& blocks, List list)
{
    Frame& frame = blocks.full.frame;
    const Plan& plan = blocks.full.plan();
    const Instruction* end = plan.tape->code.data() + list.end;
    const bool spreads = plan.is_streaming && plan.tape == &blocks.full.program().resident;      // there is more to come before the next block
    for (const Instruction* i = plan.tape->code.data() + list.begin; i < end; i++) {
        const Block& b = i->is_row ? blocks.row : blocks.full;
        const Block& part = &b == &blocks.full ? blocks.part : b;
        switch (i->code) {
        case Code::Chain: chain(b, i); break;
        case Code::Load: plan.row ? read_rows(b, *i) : load(part, *i, b.count); break;
        case Code::Map: map(b, i); break;
        case Code::Store: store(part, *i); break;
        case Code::Fold: fold(b, *i); break;
        case Code::Convert: convert(b, i); break;
        case Code::Index: plan.row ? read_rows(b, *i) : index(part, *i); break;
        case Code::Gather: gather(part, *i); break;
        case Code::Start: start(b, *i); break;
        case Code::Finish: finish(b, i); break;
        case Code::Bitcast: bitcast(b, *i); break;
        case Code::Random: random(b, *i); break;
        case Code::Stochastic: stochastic(b, *i); break;
        case Code::Scalar: scalar(b, *i); break;
        case Code::Length: length(b, *i); break;
        }
        const bool repeats = &part != &b && (i->code == Code::Load || i->code == Code::Index || i->code == Code::Gather);
        if (repeats) repeat(b, *i, part.count);
        // Of the sizes tried on a Xeon the fastest, for softmax beyond the caches by one thread.
        if (spreads && i->code != Code::Load && (b.count > 1 || !frame.outbox)) pass_on(frame, frame.outbox ? 320 : 256);
    }
    if (!spreads && frame.aheads) fetch_ahead(frame);
}

}  // namespace

void execute_list(Frame& frame, List list, const int64_t* at, int64_t count, int64_t group) noexcept
{
    const Block b{frame, at, count}, part{frame, at, group};
    run_list({b, b, group ? part : b}, list);
}

void execute_unit(Frame& frame, const int64_t* at, int64_t row_count, int64_t count) noexcept
{
    const Tape& tape = *frame.job->plan.tape;
    const Block row{frame, at, row_count}, full{frame, at, count};
    run_list({full, row, full}, {tape.rows.front().begin, tape.rows.back().end});
}

}  // namespace ng::cpu
