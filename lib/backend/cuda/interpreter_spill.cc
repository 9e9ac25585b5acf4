// Live values that shared memory has no room for: kept in scratch memory, and fetched where an instruction reads them.
#include "jit/error.h"
#include "lib/backend/cuda/interpreter_parts.h"

#include <algorithm>
#include <array>

namespace ng::cuda {

using namespace interpreter;

namespace {

// Pairs of units that one instruction may need for what it fetches and gives: three operands and a result of 64 bits.
constexpr size_t FETCHED_PAIRS = 8;

uint32_t units_of(const Register& r) { return uint32_t(r.is_wide ? UNITS_64 : UNITS_32); }

}  // namespace

// The registers that are to go so that the others take no more than so many pairs at any time: of those that live, the one
// that does so for longest (Poletto & Sarkar 1999).
std::vector<bool> TapeWriter::beyond(size_t pairs) const
{
    std::vector<bool>    chosen(registers_.size());
    std::vector<int32_t> live;
    size_t held = 0;
    const auto pairs_of = [&](int32_t r) { return size_t(units_of(registers_[size_t(r)]) / UNITS_32); };
    const auto ends_before = [&](int32_t r, int32_t s) { return registers_[size_t(r)].last < registers_[size_t(s)].last; };
    for (size_t at = 0; at < drafts_.size(); at++) {
        const int32_t made = drafts_[at].out;
        if (made < 0 || registers_[size_t(made)].first != int64_t(at)) continue;
        std::erase_if(live, [&](int32_t r) {
            const bool is_over = registers_[size_t(r)].last < int64_t(at);
            if (is_over) held -= pairs_of(r);
            return is_over;
        });
        live.push_back(made), held += pairs_of(made);
        while (held > pairs) {
            const auto longest = std::ranges::max_element(live, ends_before);
            chosen[size_t(*longest)] = true;
            held -= pairs_of(*longest);
            live.erase(longest);
        }
    }
    return chosen;
}

// Whoever gives one of them hands it on at once; whoever reads one has it fetched, to a register that lives no longer.
void TapeWriter::spill(const std::vector<bool>& chosen)
{
    std::vector<uint32_t> place(chosen.size());
    for (size_t r = 0; r < chosen.size(); r++) {
        if (!chosen[r]) continue;
        place[r] = tape_.spilled;
        tape_.spilled += units_of(registers_[r]);
    }
    if (tape_.spilled > 0xffff) throw Error(NG_E_LIMIT, text(kernel_.name, ": values of ", tape_.spilled, " units are live at once in one fused kernel; the interpreter keeps 65535"));
    const auto is_chosen = [&](int32_t r) { return r >= 0 && size_t(r) < chosen.size() && chosen[size_t(r)]; };
    const auto moved = [&](Code code, int32_t r) {
        Draft d{code};
        d.place = uint16_t(place[size_t(r)]), d.more = units_of(registers_[size_t(r)]);
        return d;
    };
    std::vector<Draft>  out;
    std::vector<size_t> now_at;
    for (Draft d : drafts_) {
        now_at.push_back(out.size());
        const std::array<int32_t, 3> args = std::to_array(d.args);
        for (size_t k = 0; k < args.size(); k++) {
            if (!is_chosen(args[k])) continue;
            const auto same = size_t(std::ranges::find(args, args[k]) - args.begin());
            d.args[k] = same < k ? d.args[same] : fresh(registers_[size_t(args[k])].is_wide);
            if (same < k) continue;
            out.push_back(moved(FILL, args[k]));
            out.back().out = d.args[k];
        }
        const int32_t given = is_chosen(d.out) ? d.out : NOTHING;
        if (given != NOTHING) d.out = fresh(registers_[size_t(given)].is_wide);
        out.push_back(d);
        if (given == NOTHING) continue;
        out.push_back(moved(SPILL, given));
        out.back().args[0] = d.out;
    }
    now_at.push_back(out.size());
    replace(std::move(out), now_at);
}

void TapeWriter::spill()
{
    // Two such blocks share a multiprocessor; launches of one pass would each need scratch of the others'.
    shared_bytes_ = std::min(shared_bytes_, MAX_SHARED_BYTES);
    tape_.may_split = false;
    const uint32_t axes = tape_.walked.size() > 1 ? uint32_t(tape_.walked.size()) * UNITS_32 : 0;
    const uint64_t least = bytes_with(MIN_THREADS, axes), pair = uint64_t(UNITS_32) * UNIT_BYTES * MIN_THREADS;
    const size_t   room = least < shared_bytes_ ? size_t((shared_bytes_ - least) / pair) : 0;
    // Pairs of units that are neighbours may be wanting although enough are free: less is kept then.
    for (size_t kept = room; kept > FETCHED_PAIRS && !fits(); kept -= std::min<size_t>(kept, 4)) {
        spill(beyond(kept - FETCHED_PAIRS));
        tape_.units = axes;
        find_lives();
        give_slots();
    }
    if (!fits()) throw Error(NG_E_LIMIT, text(kernel_.name, ": folds and numbers of one fused kernel leave the interpreter no room for values"));
}

}  // namespace ng::cuda
