// Leaves in the interpreter's registers what the next instruction reads, and gives what must be kept its slots.
#include "jit/error.h"
#include "lib/backend/cuda/interpreter_parts.h"

#include <algorithm>

namespace ng::cuda {

using namespace interpreter;

namespace {

constexpr int32_t HELD = INT32_MAX;                    // an operand that the machine holds
constexpr int FIRST_MAP = int(Op::add);
static_assert(int(Op::sum) - FIRST_MAP < int(FAST_ROWS), "maps stand together in ops.def, before the folds");

constexpr uint16_t fast(Op op) { return uint16_t(FAST + int(op) - FIRST_MAP); }
bool is_fast_code(uint16_t code) { return code >= FAST && code < SLOW; }
bool is_finish_held(uint16_t code) { return code >= FINISH_HELD && code < STORE_8; }
bool is_fold_held(uint16_t code) { return code >= FOLD_HELD && code < FOLD_NEXT; }
bool is_jump(uint16_t code) { return (code <= END_PASS && code != START && code != FINISH && code != END) || is_finish_held(code) || (code >= FOLD_NEXT && code < FAST); }
bool takes_held(uint16_t code) { return code >= STORE_8 && code < SLOW && code != HOLD && code != HOLD_NUMBER; }
bool gives_held(uint16_t code) { return (code >= LOAD_8 && code < STORE_8) || (code >= WHERE && code <= ROUND_BF16) || is_fast_code(code); }
// Works on items one by one: the result may lie where an operand of its size was.
bool is_in_place(uint16_t code) { return code % CODES == SLOW && (code / CODES == WHERE_64 || code / CODES >= DECODE); }

}  // namespace

// The operand that must be held is, or is fetched; of two, whichever is held already.
void TapeWriter::take(Draft& d, int32_t held, std::vector<Draft>& out)
{
    const auto is_held = [&](int32_t x) { return x >= 0 && x == held; };
    int32_t& x = d.args[0];
    int32_t& y = d.args[1];
    FastKind kind = OF_SLOT;
    const bool is_pair = is_fast_code(d.code) && y != NOTHING && d.args[2] == NOTHING;
    if (is_pair && x == y && d.code == fast(Op::mul)) d.code = fast(Op::square), y = NOTHING;
    if (is_pair && y != NOTHING) {
        if (!is_held(x) && (is_held(y) || (x < 0 && y >= 0))) std::swap(x, y), kind = TURNED_SLOT;
        if (y < 0) kind = kind == TURNED_SLOT ? TURNED_NUMBER : OF_NUMBER;
        d.code = uint16_t(d.code + kind * FAST_ROWS);
    }
    if (!is_held(x)) {
        Draft hold{uint16_t(x < 0 ? HOLD_NUMBER : HOLD)};
        hold.args[0] = x;
        if (x >= 0) registers_[size_t(x)].has_slot = true;
        out.push_back(hold);
    }
    x = HELD;
}

// Walks the code as the machine does, knowing what it holds.
void TapeWriter::forward()
{
    std::vector<Draft>  out;
    std::vector<size_t> now_at;
    int32_t held = NOTHING;
    for (Draft d : drafts_) {
        now_at.push_back(out.size());
        if (takes_held(d.code)) {
            const int32_t x = d.args[0];
            take(d, held, out);
            held = x >= 0 ? x : NOTHING;               // where it gives nothing itself
        } else if ((d.code < LOAD_8 && d.code != END_PASS) || d.code >= SLOW) {
            held = NOTHING;
        }
        for (const int32_t arg : d.args)
            if (arg >= 0 && arg != HELD) registers_[size_t(arg)].has_slot = true;
        if (gives_held(d.code)) held = d.out;
        else if (d.out >= 0) registers_[size_t(d.out)].has_slot = true;
        out.push_back(d);
    }
    now_at.push_back(out.size());
    replace(std::move(out), now_at);
}

// What is read from memory later goes there as soon as it is held.
void TapeWriter::keep()
{
    std::vector<Draft>  out;
    std::vector<size_t> now_at;
    for (Draft& d : drafts_) {
        now_at.push_back(out.size());
        const int32_t kept = gives_held(d.code) && registers_[size_t(d.out)].has_slot ? d.out : NOTHING;
        if (gives_held(d.code)) d.out = NOTHING;
        out.push_back(d);
        if (kept == NOTHING) continue;
        Draft keep{KEEP};
        keep.out = kept;
        out.push_back(keep);
    }
    now_at.push_back(out.size());
    replace(std::move(out), now_at);
}

// Pairs that follow each other in every row are one instruction: the way to the next one takes longer than what these do.
void TapeWriter::pair_up()
{
    std::vector<Draft>  out;
    std::vector<size_t> now_at;
    for (const Draft& d : drafts_) {
        const bool is_next = d.code == NEXT_POINT && !out.empty() && is_fold_held(out.back().code);
        const bool is_start = d.code == BEGIN_PASS && !out.empty() && out.back().code == START;
        now_at.push_back(is_next || is_start ? out.size() - 1 : out.size());
        if (is_next) {
            out.back().code = uint16_t(out.back().code - FOLD_HELD + FOLD_NEXT), out.back().more = d.more;
        } else if (is_start) {
            out.back().code = START_PASS, out.back().more = d.more, out.back().y = d.y;
        } else {
            out.push_back(d);
        }
    }
    now_at.push_back(out.size());
    replace(std::move(out), now_at);
}

void TapeWriter::replace(std::vector<Draft> drafts, const std::vector<size_t>& now_at)
{
    drafts_ = std::move(drafts);
    for (Loop& loop : loops_) loop.begin = now_at[loop.begin], loop.end = now_at[loop.end];
    for (Mark& mark : marks_) mark.at = now_at[mark.at];
}

void TapeWriter::find_lives()
{
    for (Register& r : registers_) r.first = r.last = r.slot = -1;
    const auto end_of = [&](size_t at, int64_t first) {            // of the loop that reads what was there before it
        for (const Loop& loop : loops_)
            if (at >= loop.begin && at < loop.end && first < int64_t(loop.begin)) return int64_t(loop.end);
        return int64_t(at);
    };
    for (size_t at = 0; at < drafts_.size(); at++) {
        const Draft& d = drafts_[at];
        for (const int32_t arg : d.args)
            if (arg >= 0 && arg != HELD) {
                Register& r = registers_[size_t(arg)];
                r.last = std::max(r.last, end_of(at, r.first));
            }
        if (d.kept >= 0) {                             // from row to row: whoever goes through it first gives it
            Register& r = registers_[size_t(d.kept)];
            r.first = r.first < 0 ? int64_t(at) : r.first, r.last = int64_t(drafts_.size());
        }
        if (d.out < 0) continue;
        Register& r = registers_[size_t(d.out)];
        r.first = int64_t(at);
        r.last = r.is_kept ? int64_t(drafts_.size()) : std::max(r.last, r.first);
    }
}

// Slots in the order of the code; pairs of units, one for 32 bits, two neighbours for 64.
void TapeWriter::give_slots()
{
    std::vector<int64_t> busy;                         // by pair: the draft up to which it is
    const auto is_free = [&](size_t pair, int64_t at) { return pair >= busy.size() || busy[pair] < at; };
    for (size_t at = 0; at < drafts_.size(); at++) {
        const Draft& d = drafts_[at];
        const int32_t given = d.kept >= 0 && (d.more & KEEPS) ? d.kept : d.out;
        if (given < 0) continue;
        Register& r = registers_[size_t(given)];
        int64_t from = int64_t(at);                    // what ends here is read here
        if (is_in_place(d.code)) {
            bool same = true;
            for (const int32_t arg : d.args) same = same && (arg < 0 || registers_[size_t(arg)].is_wide == r.is_wide);
            from += same;
        }
        size_t pair = 0;
        while (!is_free(pair, from) || (r.is_wide && !is_free(pair + 1, from))) pair++;
        busy.resize(std::max(busy.size(), pair + 1 + r.is_wide), -1);
        for (size_t k = pair; k <= pair + r.is_wide; k++) busy[k] = r.last;
        r.slot = int32_t(tape_.units) + int32_t(pair) * UNITS_32;
    }
    tape_.units += uint32_t(busy.size()) * UNITS_32;
}

void TapeWriter::try_slots()
{
    tape_.units = tape_.walked.size() > 1 ? uint32_t(tape_.walked.size()) * UNITS_32 : 0;
    find_lives();
    give_slots();
}

// Short rows are loaded once, where slots of so many tiles leave room for as many blocks.
void TapeWriter::keep_loads()
{
    const auto each = [&](auto change) {
        for (Draft& d : drafts_)
            if (d.kept >= 0) change(d);
    };
    bool has_any = false;
    each([&](Draft&) { has_any = true; });
    for (uint32_t tiles = has_any ? MOST_KEPT_TILES : 0; tiles > 0; tiles--) {
        each([&](Draft& d) { registers_[size_t(d.kept)].is_wide = tiles > 1; });
        try_slots();
        tape_.kept_tiles = tiles;
        if (bytes_with(MAX_THREADS, tape_.units) + NEAR_BYTES / 4 <= std::min(shared_bytes_, KEEPING_BYTES)) return;
    }
    tape_.kept_tiles = 0;
    each([&](Draft& d) { d.kept = NOTHING, d.more &= ~(KEEPS | KEPT); });
    try_slots();
}

uint64_t TapeWriter::bytes_with(uint32_t threads, uint64_t units) const
{
    const size_t row_axes = tape_.row_axes.size() > 1 ? tape_.row_axes.size() : 0;
    return tape_.numbers.size() * UNIT_BYTES + threads * (size_t(tape_.folds) * UNIT_BYTES + row_axes * 4) + units * UNIT_BYTES * threads;
}

bool TapeWriter::fits() const { return bytes_with(MIN_THREADS, tape_.units) <= shared_bytes_; }

// The largest block whose slots fit its shared memory.
void TapeWriter::lay_out()
{
    tape_.threads = MAX_THREADS;
    while (tape_.threads > uint32_t(MIN_THREADS) && bytes_with(tape_.threads, tape_.units) > MAX_SHARED_BYTES) tape_.threads /= 2;
    tape_.slots_at = uint32_t(bytes_with(tape_.threads, 0)), tape_.shared_bytes = uint32_t(bytes_with(tape_.threads, tape_.units));
    const uint64_t near = tape_.accesses.size() * sizeof(interpreter::Access) + drafts_.size() * sizeof(Instruction), at = std::max<uint32_t>(tape_.shared_bytes, UNIT_BYTES);
    if (near > NEAR_BYTES || at + near > std::min(shared_bytes_, MAX_SHARED_BYTES)) return;
    tape_.near_at = uint32_t(at);
    tape_.shared_bytes = uint32_t(at + near);
}

uint32_t TapeWriter::byte_of(int32_t arg) const
{
    if (arg < 0) return uint32_t(~arg) * UNIT_BYTES;
    return tape_.slots_at + uint32_t(registers_[size_t(arg)].slot) * UNIT_BYTES * tape_.threads;
}

void TapeWriter::finish_code()
{
    std::vector<uint32_t> place(labels_, 0);
    for (const Mark& m : marks_) place[m.label] = uint32_t(m.at);
    const auto operand = [&](int32_t arg, uint16_t otherwise) {
        if (arg == NOTHING || arg == HELD) return otherwise;
        return arg < 0 ? uint16_t(NUMBER | ~arg) : uint16_t(registers_[size_t(arg)].slot);
    };
    for (const Draft& d : drafts_) {
        Instruction i{};
        i.code = d.code;
        i.place = d.place;
        i.more = is_jump(d.code) && d.more != NOWHERE ? place[d.more] : d.more;
        i.out = operand(d.out, 0);
        i.x = operand(d.args[0], 0);
        i.y = operand(d.kept >= 0 ? d.kept : d.args[1], d.y);
        i.z = operand(d.args[2], d.z);
        if (d.code == HOLD || d.code == HOLD_NUMBER) i.more = byte_of(d.args[0]);
        if (d.code == KEEP) i.more = byte_of(d.out);
        if (is_fast_code(d.code) && d.args[1] != NOTHING && d.args[2] == NOTHING) i.more = byte_of(d.args[1]);
        tape_.code.push_back(i);
    }
}

}  // namespace ng::cuda
