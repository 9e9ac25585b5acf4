// Writes a fused kernel as the shipped interpreter's list of instructions.
#include "lib/backend/cuda/interpreter.h"

#include "jit/error.h"
#include "lib/backend/cuda/interpreter_parts.h"

#include <algorithm>

namespace ng::cuda {

using emitting::Level;
using namespace interpreter;

namespace {

// The machine folds these from its registers, and has their results there.
bool is_held_kind(uint32_t kind)
{
    const uint32_t word = kind / LANES;
    return kind % LANES == LANE_F32 && (word == FOLD_SUM || word == FOLD_MIN || word == FOLD_MAX);
}

}  // namespace

TapeWriter::TapeWriter(const Kernel& kernel, uint32_t shared_bytes) : kernel_(kernel), shared_bytes_(shared_bytes), passes_(emitting::passes_of(kernel))
{
    const size_t count = kernel.values.size();
    now_.assign(count, NOTHING);
    fold_.assign(count, -1);
    kept_.assign(count, NOTHING);
    users_.assign(count, 0);
    stored_.assign(kernel.stores.size(), false);
    moves_.assign(count, false), computes_.assign(count, false);
    code_.assign(count, NOTHING);
    for (size_t v = 0; v < count; v++)
        for (const int32_t arg : kernel.values[v].args)
            if (arg >= 0 && passes_.wanted[v]) {
                users_[size_t(arg)]++;
                (kernel.values[v].kind == ValueKind::Bitcast ? moves_ : computes_)[size_t(arg)] = true;
            }
    for (const StoreTo& s : kernel.stores) moves_[size_t(s.value)] = true;
}

void TapeWriter::find_axes()
{
    tape_.axes = kernel_.axes;
    tape_.has_rows = passes_.has_rows;
    tape_.extents = {1, 1};
    for (size_t a = 0; a < kernel_.axes.size(); a++) {
        const bool is_row = tape_.has_rows && !kernel_.axes[a].reduced;
        (is_row ? tape_.row_axes : tape_.walked).push_back(int32_t(a));
        Extent& count = tape_.extents[is_row ? 0 : 1];
        count = count * kernel_.axes[a].extent;
    }
    tape_.passes = uint32_t(passes_.count);
    // Launches of passes read rows' values again: nothing may be written where they read.
    tape_.may_split = tape_.has_rows;
    for (size_t s = 0; s < kernel_.stores.size(); s++) {
        if (passes_.stores[s].row) tape_.ends_with_stores = true;
        else if (kernel_.stores[s].late) tape_.may_split = false;
    }
    for (const Value& v : kernel_.values) tape_.buffers = std::max(tape_.buffers, v.buffer + 1);
    for (const StoreTo& s : kernel_.stores) tape_.buffers = std::max(tape_.buffers, s.buffer + 1);
    // The coordinates of walked axes are slots like others.
    if (tape_.walked.size() > 1) tape_.units = uint32_t(tape_.walked.size()) * UNITS_32;
}

void TapeWriter::jump(uint16_t code, uint32_t to, uint16_t pass, uint16_t place)
{
    Draft d{code};
    d.more = to, d.place = place;
    (code == BEGIN_PASS ? d.y : d.z) = pass;
    drafts_.push_back(d);
}

void TapeWriter::compute(size_t v)
{
    if (now_[v] == NOTHING) now_[v] = instruct(v);
}

void TapeWriter::uniform()
{
    keeps_ = true;
    for (size_t v = 0; v < kernel_.values.size(); v++)
        if (passes_.wanted[v] && passes_.level[v] == Level::Uniform) compute(v);
    keeps_ = false;
}

void TapeWriter::leaves_of(size_t v)
{
    for (size_t k = 3; k-- > 0;) {                     // the first operand last: it may stay in registers
        const int32_t arg = value(v).args[k];
        if (arg >= 0 && is_full(size_t(arg)) && is_leaf(size_t(arg))) compute(size_t(arg));
    }
}

// A value after the leaves that it reads, and those that its only neighbour reads beside it: what it gives stays in registers.
void TapeWriter::with_leaves(size_t v, int32_t pass)
{
    for (size_t next = v + 1; next < kernel_.values.size(); next++) {
        if (!is_full(next) || !has_pass(next, pass) || is_leaf(next) || value(next).kind == ValueKind::Fold) continue;
        if (std::ranges::find(value(next).args, int32_t(v)) != value(next).args.end()) leaves_of(next);
        break;
    }
    leaves_of(v);
    compute(v);
}

void TapeWriter::store(size_t s)
{
    const StoreTo& to = kernel_.stores[s];
    const Dtype t = value(size_t(to.value)).type;
    const int bytes = bytes_of(t);
    int32_t x = operand(to.value);
    const int32_t code = code_[size_t(to.value)];
    Draft d{uint16_t(bytes == 1 ? STORE_8 : bytes == 2 ? STORE_16 : bytes == 4 ? STORE_32 : STORE_64)};
    if (code != NOTHING) x = code;
    else if (t == Dtype::f16 || t == Dtype::bf16) d.more = t == Dtype::f16 ? AS_F16 : AS_BF16;
    else x = encoded(x, t);
    d.args[0] = x;
    if (passes_.stores[s].row) d.more |= OF_ROW;
    d.place = access(to.access, to.buffer, bytes, true, has_known_strides(kernel_.accesses[size_t(to.access)]));
    drafts_.push_back(d);
    stored_[s] = true;
}

void TapeWriter::stores_of(size_t v, int32_t pass)
{
    for (size_t s = 0; s < kernel_.stores.size(); s++) {
        const StoreTo& to = kernel_.stores[s];
        if (size_t(to.value) == v && !to.late && !stored_[s] && !passes_.stores[s].row && passes_.stores[s].pass == pass) store(s);
    }
}

void TapeWriter::folds_of(size_t v, int32_t pass)
{
    for (size_t f = 0; f < kernel_.values.size(); f++) {
        const Value& fold = value(f);
        if (fold.kind != ValueKind::Fold || size_t(fold.args[0]) != v || !passes_.wanted[f] || passes_.need[f] != pass + 1) continue;
        const uint32_t kind = fold_kind(fold);
        Draft d{uint16_t(is_held_kind(kind) ? FOLD_HELD + kind / LANES : slow(FOLD))};
        d.args[0] = operand(int32_t(v));
        d.place = uint16_t(fold_[f]);
        d.more = kind;
        drafts_.push_back(d);
    }
}

void TapeWriter::full_list(int32_t pass)
{
    for (size_t v = 0; v < kernel_.values.size(); v++)
        if (is_full(v)) now_[v] = code_[v] = NOTHING;  // nothing full outlives its pass
    for (size_t v = 0; v < kernel_.values.size(); v++) {
        if (!is_full(v) || !has_pass(v, pass) || is_leaf(v)) continue;
        with_leaves(v, pass);
        stores_of(v, pass);
        folds_of(v, pass);
    }
    for (size_t v = 0; v < kernel_.values.size(); v++) {       // leaves and what does not change with the point
        const bool is_computed = is_full(v) && !is_leaf(v);
        if (is_computed || !passes_.wanted[v]) continue;
        if (is_full(v) && has_pass(v, pass)) compute(v);
        stores_of(v, pass);
        folds_of(v, pass);
    }
    if (pass != std::max(passes_.count, 1) - 1) return;
    for (size_t s = 0; s < kernel_.stores.size(); s++)
        if (!passes_.stores[s].row && kernel_.stores[s].late) {
            compute(size_t(kernel_.stores[s].value));
            store(s);
        }
}

void TapeWriter::points()
{
    const uint32_t loop = label(), end = label();
    jump(BEGIN_POINTS, end);
    mark(loop);
    const size_t begin = drafts_.size();
    full_list(0);
    jump(NEXT_POINTS, loop);
    loops_.push_back({begin, drafts_.size()});
    mark(end);
}

void TapeWriter::row_list(int32_t pass)
{
    for (size_t v = 0; v < kernel_.values.size(); v++)
        if (passes_.wanted[v] && passes_.level[v] == Level::Row && passes_.need[v] == pass && value(v).kind != ValueKind::Fold) compute(v);
}

void TapeWriter::starts(int32_t pass)
{
    for (size_t v = 0; v < kernel_.values.size(); v++) {
        if (value(v).kind != ValueKind::Fold || !passes_.wanted[v] || passes_.need[v] != pass + 1) continue;
        fold_[v] = int32_t(tape_.folds++);
        Draft d{START};
        d.z = uint16_t(~start_numbers(value(v)));
        d.place = uint16_t(fold_[v]);
        drafts_.push_back(d);
    }
}

// left: where a launch goes that has done this pass, or NOWHERE. Whether the last fold sees to that.
bool TapeWriter::finishes(int32_t pass, uint32_t left)
{
    size_t last = drafts_.size();
    bool   is_last_held = false;
    for (size_t v = 0; v < kernel_.values.size(); v++) {
        if (fold_[v] < 0 || passes_.need[v] != pass + 1) continue;
        const bool is_arg = value(v).op == Op::argmin || value(v).op == Op::argmax;
        const bool is_wide = is_arg || bytes_of(compute_of(value(size_t(value(v).args[0])).type)) == 8;
        const uint32_t kind = fold_kind(value(v));
        is_last_held = is_held_kind(kind);
        Draft d{uint16_t(is_last_held ? uint32_t(FINISH_HELD) + kind / LANES : uint32_t(FINISH))};
        d.place = uint16_t(fold_[v]);
        d.more = is_last_held ? NOWHERE : kind;
        d.z = uint16_t(pass);
        d.out = fresh(is_wide);
        if (!is_last_held) registers_[size_t(d.out)].has_slot = true;
        last = drafts_.size();
        drafts_.push_back(d);
        now_[v] = folded(value(v), d.out);
    }
    if (is_last_held) drafts_[last].more = left;
    return is_last_held;
}

void TapeWriter::rows()
{
    const uint32_t loop = label(), next = label(), end = label();
    jump(BEGIN_ROWS, end);
    mark(loop);
    for (int32_t pass = 0; pass < passes_.count; pass++) {
        row_list(pass);
        starts(pass);
        const uint32_t step = label(), over = label();
        jump(BEGIN_PASS, over, uint16_t(pass));
        mark(step);
        const size_t begin = drafts_.size();
        full_list(pass);
        jump(NEXT_POINT, step);
        loops_.push_back({begin, drafts_.size()});
        mark(over);
        // Row stores come once all threads have read what they need: those that have met did.
        const bool is_last = pass == passes_.count - 1, waits = is_last && tape_.ends_with_stores, leaves = tape_.may_split && (!is_last || waits);
        const bool have_met = finishes(pass, leaves ? next : NOWHERE);
        if ((waits || leaves) && !have_met) jump(END_PASS, next, uint16_t(pass), waits);
    }
    row_list(passes_.count);
    for (const bool late : {false, true})
        for (size_t s = 0; s < kernel_.stores.size(); s++)
            if (passes_.stores[s].row && kernel_.stores[s].late == late) store(s);
    mark(next);
    jump(NEXT_ROWS, loop);
    mark(end);
}

void TapeWriter::check_size() const
{
    const Tape& t = tape_;
    const uint64_t lists = (t.row_axes.size() > 1 ? t.row_axes.size() : 0) + (t.walked.size() > 1 ? t.walked.size() : 0);
    const uint64_t words = t.accesses.size() * (4 + lists) + 2 * lists + t.numbers.size();
    if (words > WORDS)
        throw Error(NG_E_LIMIT, text(kernel_.name, ": a fused kernel has ", words, " numbers, offsets and strides; the interpreter takes ", WORDS));
}

Tape TapeWriter::write()
{
    find_axes();
    uniform();
    tape_.has_rows ? rows() : points();
    drafts_.push_back(Draft{END});
    check_size();
    forward();
    keep();
    pair_up();
    keep_loads();
    if (!fits()) spill();
    lay_out();
    finish_code();
    return std::move(tape_);
}

Tape make_tape(const Kernel& kernel, uint32_t shared_bytes) { return TapeWriter(kernel, shared_bytes).write(); }

}  // namespace ng::cuda
