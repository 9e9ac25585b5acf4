// Orders a kernel's instructions: leaves just before their first user, stores as soon as their value is there.
#include "lib/backend/cpu/tape.h"

#include "jit/error.h"
#include "lib/backend/cpu/lowering.h"

#include <algorithm>

namespace ng::cpu {
namespace {

// Work of an element beyond the memory it comes from, roughly as measured on AVX-512: what chunks are cut by.
double element_ns(const Instruction& i, Op op)
{
    const double words = std::max<double>(i.bytes, 4) / 4;
    switch (i.code) {
    case Code::Map: return (info(op).ulp > 0 ? 0.5 : 0.06) * words;
    case Code::Fold: return 0.08 * words;
    case Code::Random: return 2;
    case Code::Gather: return 1;
    case Code::Load:
    case Code::Store: return i.type == compute_of(i.type) ? 0 : 0.12;
    default: return 0.15 * words;
    }
}

class Writer {
  public:
    explicit Writer(Maker& maker);
    Tape tape(bool is_resident);

  private:
    bool is_full(int32_t v) const { return a_.level[size_t(v)] == FULL; }
    bool is_leaf(int32_t v) const { return m_.value(v).kind == ValueKind::Load || m_.value(v).kind == ValueKind::Index; }
    void add(const Instruction& i, Op op, bool row);
    void touch(int32_t access, Dtype type);
    void add_uniform();
    void close_rows(std::vector<List>& lists, uint32_t begin);
    void add_row(int32_t pass);
    void add_starts(int32_t pass);
    std::vector<bool> read_behind(int32_t pass) const;
    void add_full(int32_t pass, bool is_resident);
    void add_value(int32_t v, int32_t pass);
    void add_with_leaves(int32_t v, int32_t pass);
    void add_store(int32_t s);
    void mark_direct(List list);
    bool is_passing() const;
    bool has_outbox() const;
    bool sums_memory(List list) const;

    Maker&          m_;
    const Analysis& a_;
    int32_t         values_;
    Tape            tape_;
    std::vector<int32_t> first_store_, next_store_;    // full stores that need not wait, by value
    std::vector<int32_t> late_full_, row_stores_;      // others, in order
    std::vector<bool>    written_, stored_;            // of the pass, or resident tape, at hand
    std::vector<int32_t> touched_;                     // by access: its place among the touches
};

Writer::Writer(Maker& maker) : m_(maker), a_(maker.analysis), values_(int32_t(maker.kernel.values.size()))
{
    const auto& stores = m_.kernel.stores;
    first_store_.assign(size_t(values_), -1);
    next_store_.assign(stores.size(), -1);
    for (size_t s = stores.size(); s-- > 0;) {
        const bool waits = a_.stores[s].row || stores[s].late;
        if (waits) (a_.stores[s].row ? row_stores_ : late_full_).push_back(int32_t(s));
        if (waits) continue;
        next_store_[s] = first_store_[size_t(stores[s].value)];
        first_store_[size_t(stores[s].value)] = int32_t(s);
    }
    // The value that is computed last is stored first: then it can be computed in place.
    std::stable_sort(late_full_.begin(), late_full_.end(), [&](int32_t s, int32_t t) { return stores[size_t(s)].value > stores[size_t(t)].value; });
    std::stable_sort(row_stores_.begin(), row_stores_.end(), [&](int32_t s, int32_t t) { return stores[size_t(s)].late < stores[size_t(t)].late; });
}

void Writer::add(const Instruction& i, Op op, bool row)
{
    tape_.code.push_back(i);
    if (i.code == Code::Map && info(op).ulp > 0) tape_.code.back().flags |= SLOW;
    (row ? tape_.row_ns : tape_.element_ns) += element_ns(i, op);
    (row ? tape_.row_calls : tape_.full_calls) += i.code == Code::Load ? 0.5 : 1;
}

void Writer::touch(int32_t access, Dtype type)
{
    int32_t& at = touched_[size_t(access)];
    if (at < 0) {
        at = int32_t(tape_.touches.size());
        tape_.touches.push_back({access, bytes_of(type), 0, false});
    }
    tape_.touches[size_t(at)].times++;
}

void Writer::add_uniform()
{
    for (int32_t v = 0; v < values_; v++)
        if (a_.wanted[size_t(v)] && a_.level[size_t(v)] == UNIFORM && m_.value(v).kind != ValueKind::Constant)
            tape_.code.push_back(m_.of_value(v));
    tape_.uniform = {0, uint32_t(tape_.code.size())};
}

void Writer::close_rows(std::vector<List>& lists, uint32_t begin)
{
    lists.push_back({begin, uint32_t(tape_.code.size())});
    for (uint32_t at = begin; at < lists.back().end; at++) tape_.code[at].is_row = true;
}

void Writer::add_row(int32_t pass)
{
    const uint32_t begin = uint32_t(tape_.code.size());
    for (int32_t v = 0; v < values_ && m_.program.has_reduced; v++) {
        const bool is_here = a_.wanted[size_t(v)] && a_.level[size_t(v)] == ROW && a_.need[size_t(v)] == pass;
        if (is_here && m_.plan.level[size_t(v)] == ROW) add(m_.of_value(v), m_.value(v).op, true);
    }
    if (pass == m_.program.passes)
        for (const int32_t s : row_stores_) add(m_.of_store(s), Op::poison, true);
    close_rows(tape_.rows, begin);
}

void Writer::add_starts(int32_t pass)
{
    const uint32_t begin = uint32_t(tape_.code.size());
    for (int32_t f = 0; f < int32_t(m_.program.folds.size()); f++)
        if (m_.program.folds[size_t(f)].pass == pass) add(m_.of_start(f), Op::poison, true);
    close_rows(tape_.starts, begin);
}

void Writer::add_store(int32_t s)
{
    const Instruction i = m_.of_store(s);
    add(i, Op::poison, false);
    touch(i.extra, i.type);
    tape_.touches[size_t(touched_[size_t(i.extra)])].is_stored = true;
}

// Writes a value, where it is a full one, and the stores of it that belong to this pass.
void Writer::add_value(int32_t v, int32_t pass)
{
    if (is_full(v) && !written_[size_t(v)]) {
        written_[size_t(v)] = true;
        const Value& value = m_.value(v);
        add(m_.of_value(v), value.op, false);
        if (value.kind == ValueKind::Load || value.kind == ValueKind::Gather) touch(m_.access(value.access), value.type);
    }
    for (int32_t s = first_store_[size_t(v)]; s >= 0; s = next_store_[size_t(s)])
        if (a_.stores[size_t(s)].pass == pass && !stored_[size_t(s)]) {
            stored_[size_t(s)] = true;
            add_store(s);
        }
}

void Writer::add_with_leaves(int32_t v, int32_t pass)
{
    for (const int32_t arg : m_.value(v).args)
        if (is_full(v) && arg >= 0 && is_full(arg) && is_leaf(arg)) add_value(arg, pass);
    add_value(v, pass);
}

// By value: whether a pass behind this one reads its register. What is written is kept, and not computed again.
std::vector<bool> Writer::read_behind(int32_t pass) const
{
    std::vector<bool> is_read(static_cast<size_t>(values_));
    for (int32_t v = 0; v < values_; v++) {
        if (is_full(v) && !written_[size_t(v)] && a_.wanted[size_t(v)] >> (pass + 1))
            for (const int32_t arg : m_.value(v).args)
                if (arg >= 0) is_read[size_t(arg)] = true;
        const int32_t f = m_.fold[size_t(v)];
        if (f >= 0 && m_.program.folds[size_t(f)].pass > pass) is_read[size_t(m_.folded[size_t(f)])] = true;
    }
    for (size_t s = 0; s < a_.stores.size(); s++)
        if (!a_.stores[s].row && a_.stores[s].pass > pass) is_read[size_t(m_.kernel.stores[s].value)] = true;
    if (pass < m_.program.passes - 1)
        for (const int32_t s : late_full_) is_read[size_t(m_.kernel.stores[size_t(s)].value)] = true;
    return is_read;
}

void Writer::add_full(int32_t pass, bool is_resident)
{
    if (!is_resident) written_.assign(size_t(values_), false);
    const uint32_t begin = uint32_t(tape_.code.size());
    for (int32_t v = 0; v < values_; v++) {
        if (is_full(v) && (a_.wanted[size_t(v)] >> pass & 1) && !is_leaf(v)) add_with_leaves(v, pass);
        const int32_t f = m_.fold[size_t(v)];
        if (f < 0 || m_.program.folds[size_t(f)].pass != pass) continue;
        add_value(m_.folded[size_t(f)], pass);
        add(m_.of_fold(f), Op::poison, false);
    }
    for (size_t s = 0; s < a_.stores.size(); s++)      // copies of leaves, and of what does not change with the point
        if (!a_.stores[s].row && a_.stores[s].pass == pass) add_value(m_.kernel.stores[s].value, pass);
    if (pass == m_.program.passes - 1)
        for (const int32_t s : late_full_) add_store(s);
    form_chains(tape_.code, begin, is_resident ? read_behind(pass) : std::vector<bool>(static_cast<size_t>(values_)));
    tape_.full.push_back({begin, uint32_t(tape_.code.size())});
}

// Marks results whose only reader is the store that follows: of late stores that is the first.
void Writer::mark_direct(List list)
{
    for (uint32_t at = list.begin; at + 1 < list.end; at++) {
        Instruction& i = tape_.code[at];
        const Instruction& next = tape_.code[at + 1];
        if (i.code == Code::Load || i.code == Code::Index || i.out < 0 || next.code != Code::Store) continue;
        if (next.args[0] == i.out && !written_[size_t(i.out)] && i.type == compute_of(i.type)) i.flags |= DIRECT;
    }
}

bool Writer::is_passing() const
{
    for (const List& list : tape_.full)
        for (uint32_t at = list.begin; at < list.end; at++) {
            const Instruction& i = tape_.code[at];
            if (i.code == Code::Chain) at += uint32_t(i.extra);
            else if (i.code != Code::Load && !is_sent(i) && !(i.code == Code::Store && i.type == i.operand)) return false;
        }
    return true;
}

bool Writer::has_outbox() const
{
    unsigned flags = 0;
    for (const List& list : tape_.full)
        for (uint32_t at = list.begin; at < list.end; at++) {
            const Instruction& i = tape_.code[at];
            if (i.code == Code::Chain) at += uint32_t(i.extra);
            else if (i.code == Code::Map) flags |= i.flags;
        }
    return flags & SLOW && flags & DIRECT;
}

bool Writer::sums_memory(List list) const
{
    const Instruction* load = nullptr;
    for (uint32_t at = list.begin; at < list.end; at++) {
        const Instruction& i = tape_.code[at];
        if (i.code == Code::Load) load = &i;
        else if (i.code != Code::Fold || !load || i.args[0] != load->out) return false;
        else if (m_.program.folds[size_t(i.extra)].op != Op::sum || !m_.isa.sum_rows[int(load->type)]) return false;
    }
    return load != nullptr;
}

Tape Writer::tape(bool is_resident)
{
    tape_ = Tape();
    tape_.code.reserve(size_t(values_) + m_.kernel.stores.size() + 2 * m_.program.folds.size());
    written_.assign(size_t(values_), false);
    stored_.assign(m_.kernel.stores.size(), false);
    touched_.assign(size_t(m_.program.accesses), -1);
    add_uniform();
    for (int32_t pass = 0; pass < m_.program.passes; pass++) {
        add_row(pass);
        add_starts(pass);
        add_full(pass, is_resident);
    }
    add_row(m_.program.passes);
    std::vector<bool> used(static_cast<size_t>(values_));
    written_.assign(size_t(values_), false);           // from here on: read more than once
    for (const Instruction& i : tape_.code)
        for (const int32_t arg : i.args) {
            if (arg < 0) continue;
            if (used[size_t(arg)]) written_[size_t(arg)] = true;
            used[size_t(arg)] = true;
        }
    for (const List& list : tape_.full) mark_direct(list);
    for (const List& list : tape_.rows) mark_direct(list);
    tape_.is_passing = is_passing();
    tape_.has_outbox = has_outbox();
    for (const List& list : tape_.full) tape_.sums_memory.push_back(!is_resident && sums_memory(list));
    assign_slots(tape_, m_.plan, m_.program, is_resident);
    return std::move(tape_);
}

}  // namespace

int live_registers(const Kernel& kernel, const IsaTable& isa)
{
    Maker maker(kernel, isa);
    return Writer(maker).tape(false).live();
}

Program lower(const Kernel& kernel, const IsaTable& isa)
{
    Maker  maker(kernel, isa);
    Writer writer(maker);
    Program& program = maker.program;
    program.streamed = writer.tape(false);
    const int live = program.streamed.live();
    if (live > MAX_LIVE)
        throw Error(NG_E_LIMIT, text(kernel.name, ": ", live, " values of one fused kernel are live at once; ", MAX_LIVE, " is the most"));
    if (program.passes > 1) {
        program.resident = writer.tape(true);
        program.has_resident = program.resident.live() <= MAX_LIVE;
    }
    return std::move(program);
}

}  // namespace ng::cpu
