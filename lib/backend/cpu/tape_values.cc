// Single instructions of the CPU's tapes: which loop computes a value, and what it needs to know.
#include "jit/error.h"
#include "lib/backend/cpu/lowering.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <type_traits>

namespace ng::cpu {
namespace {

template <class T>
uint64_t bits_of(T value)
{
    if constexpr (std::is_same_v<T, double>) return std::bit_cast<uint64_t>(value);
    else if constexpr (std::is_same_v<T, float>) return std::bit_cast<uint32_t>(value);
    else return uint64_t(std::make_unsigned_t<T>(value));
}

// The bits of a fold's start value; rows of ops.def say it over a type T.
template <class T>
uint64_t start_in(Op op)
{
    using Limits = std::numeric_limits<T>;
    [[maybe_unused]] const T LOWEST = Limits::has_infinity ? T(-Limits::infinity()) : Limits::lowest();
    [[maybe_unused]] const T HIGHEST = Limits::has_infinity ? Limits::infinity() : Limits::max();
    switch (op) {
#define K(v) T(v)
#define FOLD(name, domain, start, ...) case Op::name: return bits_of<T>(start);
#include "jit/ops.def"
#undef K
    default: return 0;
    }
}

uint64_t start_of(Op op, Dtype type)
{
    if (type == Dtype::bool_ && (op == Op::min || op == Op::argmin)) return 1;
    switch (type) {
#define DTYPE(name, code, cpp, ...) case Dtype::name: return start_in<cpp>(op);
#include "jit/dtypes.def"
#undef DTYPE
    default: return 0;
    }
}

int64_t constant_bits(Dtype type, int64_t bits)
{
    if (compute_of(type) != Dtype::f32) return bits;
    return int64_t(std::bit_cast<uint32_t>(float(std::bit_cast<double>(bits))));
}

uint16_t link_of_rounding(Dtype type) { return type == Dtype::f16 ? LINK_ROUND_F16 : type == Dtype::bf16 ? LINK_ROUND_BF16 : 0; }
uint16_t link_of_store(Dtype type)
{
    return type == Dtype::f32 ? LINK_PUT_F32 : type == Dtype::f16 ? LINK_PUT_F16 : type == Dtype::bf16 ? LINK_PUT_BF16 : 0;
}

RandomKind random_kind(RandomWord word, bool wide)
{
    switch (word) {
    case RandomWord::Bits: return RANDOM_BITS;
    case RandomWord::Word3: return RANDOM_WORD3;
    case RandomWord::Uniform: return wide ? RANDOM_UNIFORM64 : RANDOM_UNIFORM32;
    case RandomWord::Normal: break;
    }
    return wide ? RANDOM_NORMAL64 : RANDOM_NORMAL32;
}

}  // namespace

Maker::Maker(const Kernel& kernel_, const IsaTable& isa_) : kernel(kernel_), isa(isa_), analysis(analyse(kernel_))
{
    program.isa = &isa;
    add_axes();
    add_folds();
    add_fixed_slots();
    mark_copies();
}

void Maker::add_access(int32_t old, bool is_full, bool decides)
{
    if (accesses_[size_t(old)] >= 0) {
        if (is_full) program.is_full[size_t(accesses_[size_t(old)])] = true;
        return;
    }
    program.is_full.push_back(is_full), program.is_in_memory.push_back(false);
    program.decides.push_back(decides);
    accesses_[size_t(old)] = program.accesses++;
    const Access& access = kernel.accesses[size_t(old)];
    program.lengths.add(access.offset);
    for (const Extent& stride : access.strides) program.lengths.add(stride);
    if (program.accesses * (program.axes + 3) > MAX_STRIDES)
        throw Error(NG_E_LIMIT, text(kernel.name, ": one fused kernel has more than ", MAX_STRIDES, " offsets and strides"));
}

void Maker::add_axes()
{
    if (kernel.axes.size() > size_t(MAX_AXES))
        throw Error(NG_E_LIMIT, text(kernel.name, ": a fused kernel has ", kernel.axes.size(), " axes; ", MAX_AXES, " is the most"));
    program.axes = int32_t(kernel.axes.size());
    for (const KernelAxis& axis : kernel.axes) {
        program.lengths.add(axis.extent);
        program.reduced.push_back(axis.reduced);
    }
    program.has_reduced = analysis.has_reduced;
    program.passes = analysis.passes;
    accesses_.assign(kernel.accesses.size(), -1);
    for (size_t v = 0; v < kernel.values.size(); v++) {
        const int32_t access = kernel.values[v].access;
        if (!analysis.wanted[v] || access < 0) continue;
        add_access(access, analysis.level[v] == FULL, true);
        if (kernel.values[v].kind != ValueKind::Index) program.is_in_memory[size_t(accesses_[size_t(access)])] = true;
    }
    for (size_t s = 0; s < kernel.stores.size(); s++) {
        const int32_t access = kernel.stores[s].access;
        add_access(access, !analysis.stores[s].row, !program.has_reduced || has_known_strides(kernel.accesses[size_t(access)]));
        program.is_in_memory[size_t(accesses_[size_t(access)])] = true;
    }
}

void Maker::add_folds()
{
    fold.assign(kernel.values.size(), -1);
    bool has_arg = false;
    for (size_t v = 0; v < kernel.values.size(); v++) {
        const Value& from = kernel.values[v];
        if (!analysis.wanted[v] || from.kind != ValueKind::Fold) continue;
        FoldSlot slot{};
        slot.op = from.op;
        slot.type = compute_of(value(from.args[0]).type);
        slot.accumulator = accumulator_of(slot.op, slot.type);
        slot.loops = isa.fold[int(slot.op)][int(slot.type)];
        slot.bytes = bytes_of(slot.accumulator);
        slot.pass = analysis.need[v] - 1;
        slot.start = start_of(slot.op, slot.accumulator);
        slot.slot = program.fold_slots++;
        const bool is_arg = slot.op == Op::argmin || slot.op == Op::argmax;
        if (is_arg) slot.at = program.fold_slots++;
        else slot.merge = isa.fold[int(slot.op)][int(slot.accumulator)].across;
        if (is_arg ? !slot.loops.arg_along || !slot.loops.arg_across : !slot.loops.along || !slot.loops.across || !slot.merge)
            throw Error(NG_E_UNSUPPORTED, text(kernel.name, ": the CPU has no ", name_of(slot.op), " of ", name_of(slot.type)));
        has_arg |= is_arg;
        fold[v] = int32_t(program.folds.size());
        folded.push_back(from.args[0]);
        program.folds.push_back(slot);
    }
    if (has_arg) add_positions();
}

// Positions of argmin and argmax are one more access: row-major over the reduced axes.
void Maker::add_positions()
{
    std::vector<Extent> strides(kernel.axes.size());
    Extent next = 1;
    for (size_t axis = kernel.axes.size(); axis-- > 0;) {
        if (!kernel.axes[axis].reduced) continue;
        strides[axis] = next;
        next = next * kernel.axes[axis].extent;
    }
    program.position = program.accesses++;
    program.is_full.push_back(true), program.is_in_memory.push_back(false);
    program.decides.push_back(true);
    program.lengths.add(0);
    for (const Extent& stride : strides) program.lengths.add(stride);
}

// Slots that no register allocation decides: constants, uniform values, and folds whose accumulator is the value.
void Maker::add_fixed_slots()
{
    const size_t count = kernel.values.size();
    plan.slots.assign(count, 0);
    plan.level = analysis.level;
    plan.bytes.resize(count);
    program.constants.push_back(0);
    for (size_t v = 0; v < count; v++) {
        const Value& from = kernel.values[v];
        plan.bytes[v] = uint8_t(bytes_of(compute_of(from.type)));
        if (!analysis.wanted[v]) continue;
        if (from.kind == ValueKind::Constant) {
            plan.slots[v] = ~int32_t(program.constants.size());
            program.constants.push_back(constant_bits(from.type, from.bits));
        } else if (analysis.level[v] == UNIFORM) {
            plan.slots[v] = program.uniform_slots++;
        } else {
            int64_t& widest = analysis.level[v] == FULL ? program.full_bytes : program.row_bytes;
            widest = std::max<int64_t>(widest, plan.bytes[v]);
        }
    }
    for (FoldSlot& slot : program.folds) {
        slot.slot += program.uniform_slots;
        if (slot.is_arg()) slot.at += program.uniform_slots;
        program.row_bytes = std::max<int64_t>({program.row_bytes, bytes_of(slot.accumulator), slot.is_arg() ? 8 : 1});
    }
    for (size_t v = 0; v < count; v++) {
        if (fold[v] < 0) continue;
        const FoldSlot& slot = program.folds[size_t(fold[v])];
        if (!slot.is_arg() && slot.accumulator != compute_of(kernel.values[v].type)) continue;
        plan.slots[v] = slot.is_arg() ? slot.at : slot.slot;
        plan.level[v] = UNIFORM;
    }
}

// Two late stores may swap: neither may read memory that the other has written.
void Maker::mark_copies()
{
    copied_.assign(kernel.values.size(), false);
    const auto late = std::count_if(kernel.stores.begin(), kernel.stores.end(), [](const StoreTo& s) { return s.late; });
    if (late > 1)
        for (const StoreTo& store : kernel.stores) copied_[size_t(store.value)] = true;
}

void Maker::fill(Instruction& i, const Value& from)
{
    const int type = int(i.type);
    switch (from.kind) {
    case ValueKind::Load:
        i.code = Code::Load;
        i.load = isa.load[type];
        i.extra = access(from.access);
        i.buffer = from.buffer;
        return;
    case ValueKind::Gather:
        i.code = Code::Gather;
        i.buffer = from.buffer;
        i.gather = isa.gather[type];
        i.extra = int32_t(program.gathers.size());
        program.gathers.push_back({access(from.access), program.lengths.add(from.extent), program.lengths.add(from.stride),
                                   isa.load[type]});
        return;
    case ValueKind::Index:
        i.code = Code::Index;
        i.extra = access(from.access);
        return;
    case ValueKind::Scalar:
        i.code = Code::Scalar;
        i.load = isa.load[type];
        i.extra = int32_t(from.bits);
        return;
    case ValueKind::Length:
        i.code = Code::Length;
        i.extra = program.lengths.add(from.extent);
        return;
    case ValueKind::Convert:
        i.code = Code::Convert;
        i.convert = isa.convert[int(i.operand)][type];
        if (isa.chain && i.operand == Dtype::f32) i.link = link_of_rounding(i.type);
        return;
    case ValueKind::Bitcast:
        i.code = Code::Bitcast;
        i.load = isa.load[type];
        i.operand = value(from.args[0]).type;          // what it is encoded as
        return;
    case ValueKind::Random:
        i.code = Code::Random;
        i.random = isa.random[random_kind(RandomWord(from.bits), i.type == Dtype::f64)];
        return;
    case ValueKind::Stochastic:
        i.code = Code::Stochastic;
        i.operand = compute_of(value(from.args[0]).type);
        i.stochastic = isa.stochastic[i.operand == Dtype::f64][type];
        i.extra = int32_t(from.bits);
        return;
    default:
        i.code = Code::Map;
        i.map = isa.map[int(from.op)][int(i.operand)].loops;
        if (isa.chain && i.operand == Dtype::f32 && is_link(from.op, isa.vector_bytes)) i.link = uint16_t(link_of_map(from.op, Form::Block, false));
    }
}

Instruction Maker::of_value(int32_t v)
{
    const Value& from = value(v);
    Instruction i{};
    i.type = from.type;
    i.bytes = plan.bytes[size_t(v)];
    i.memory_bytes = uint8_t(bytes_of(from.type));
    i.out = v;
    if (from.kind == ValueKind::Fold) {                // what is left of it in a list of rows: its rounding
        i.code = Code::Finish;
        i.extra = fold[size_t(v)];
        i.convert = isa.convert[int(program.folds[size_t(i.extra)].accumulator)][int(compute_of(from.type))];
        return i;
    }
    for (const int32_t arg : from.args) {
        if (arg < 0) break;
        i.operand = compute_of(value(arg).type);
        i.args[i.arity++] = arg;
    }
    // Bools may be any byte in memory; registers hold 0 or 1.
    if (!copied_[size_t(v)] && i.type == compute_of(i.type) && !is_bool(i.type)) i.flags |= IN_PLACE;
    fill(i, from);
    const bool has_loop = i.code == Code::Length || i.code == Code::Index || (i.map && (i.code != Code::Map || i.map[MODE_ALL]));
    if (!has_loop)
        throw Error(NG_E_UNSUPPORTED, text(kernel.name, ": the CPU has no ", i.code == Code::Map ? name_of(from.op) : "conversion",
                                           " of ", name_of(i.operand), " that gives ", name_of(i.type)));
    return i;
}

Instruction Maker::of_store(int32_t s) const
{
    const StoreTo& store = kernel.stores[size_t(s)];
    Instruction i{};
    i.code = Code::Store;
    i.type = value(store.value).type;
    i.operand = compute_of(i.type);
    i.bytes = plan.bytes[size_t(store.value)];
    i.memory_bytes = uint8_t(bytes_of(i.type));
    i.arity = 1;
    i.args[0] = store.value;
    i.extra = access(store.access);
    i.buffer = store.buffer;
    i.store = isa.store[int(i.type)];
    if (isa.chain) i.link = link_of_store(i.type);
    return i;
}

Instruction Maker::of_fold(int32_t f) const
{
    Instruction i{};
    i.code = Code::Fold;
    i.type = i.operand = program.folds[size_t(f)].type;
    i.bytes = uint8_t(bytes_of(i.type));
    i.arity = 1;
    i.args[0] = folded[size_t(f)];
    i.extra = f;
    return i;
}

Instruction Maker::of_start(int32_t f) const
{
    Instruction i{};
    i.code = Code::Start;
    i.type = program.folds[size_t(f)].accumulator;
    i.load = isa.load[int(i.type)];
    i.extra = f;
    return i;
}

}  // namespace ng::cpu
