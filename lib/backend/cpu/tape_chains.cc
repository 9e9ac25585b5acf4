// Finds chains: instructions in a row of which each takes the last one's result from the vector registers it lies in.
#include "lib/backend/cpu/tape.h"

#include <algorithm>

namespace ng::cpu {
namespace {

// Rewrites one list. Loads among a chain's instructions go before it: nobody writes what they read before all have read. Its
// stores go to its end, so that what they store keeps its register until then: it is needed where memory is no row.
class Chainer {
  public:
    Chainer(std::vector<Instruction>& code, size_t begin, const std::vector<bool>& is_read_later)
        : code_(code), begin_(begin), is_plain_(is_read_later), has_codes_(is_read_later.size()), uses_(is_read_later.size()),
          reads_(is_read_later.size())
    {
    }
    void run();

  private:
    bool has_room() const;
    bool is_worth_it() const;
    bool is_exp_of_difference() const;
    void meet(int32_t v);
    void add(Instruction i);
    void close();
    void mark_reads();
    void settle();
    void keep_near(size_t first, size_t end);

    std::vector<Instruction>& code_;
    const size_t              begin_;
    std::vector<Instruction>  chain_, stores_;         // of the chain at hand
    std::vector<bool>         is_plain_;               // by value: read from its register, and not by a chain
    std::vector<bool>         has_codes_;              // by value: loads of f16 and bf16
    std::vector<int32_t>      uses_;                   // by value: how often it is read
    std::vector<int32_t>      reads_;                  // by value: how often from its register
    int32_t                   bundle_ = -1;            // the value that the chain at hand has come to
    std::vector<int32_t>      met_;                    // values that it meets in memory
    int                       links_ = 0;
};

bool Chainer::has_room() const
{
    return links_ + 4 <= MAX_LINKS && met_.size() + stores_.size() + 5 <= MAX_MET;
}

void Chainer::meet(int32_t v)
{
    if (std::find(met_.begin(), met_.end(), v) == met_.end()) met_.push_back(v);
}

void Chainer::add(Instruction i)
{
    links_ += 3;                                       // its first operand, itself, a copy of its result
    if (i.code == Code::Store) {
        chain_.back().extra++;
        stores_.push_back(i);
        return;
    }
    if (bundle_ >= 0 && i.args[0] == bundle_) i.flags |= FROM_X;
    else if (bundle_ >= 0 && i.arity == 2 && i.args[1] == bundle_) i.flags |= FROM_Y;
    if (bundle_ >= 0 && !(i.flags & (FROM_X | FROM_Y))) meet(bundle_);
    for (int k = 0; k < i.arity; k++)
        if (!(i.flags & (k ? FROM_Y : FROM_X))) meet(i.args[k]);
    if (uses_[size_t(i.out)] > 1 || is_plain_[size_t(i.out)]) meet(i.out);
    i.extra = 0;
    bundle_ = i.out;
    chain_.push_back(i);
}

// One or two instructions on f32 stay as they were: their loops are through before a chain has begun.
bool Chainer::is_worth_it() const
{
    const auto is_narrow = [&](const Instruction& i) {
        return i.code == Code::Convert || std::any_of(i.args, i.args + i.arity, [&](int32_t v) { return has_codes_[size_t(v)]; });
    };
    return chain_.size() + stores_.size() > 2 || std::any_of(chain_.begin(), chain_.end(), is_narrow);
}

// Too short for a chain, but one loop where nobody else reads the difference.
bool Chainer::is_exp_of_difference() const
{
    const auto is = [&](size_t at, Op op) { return chain_[at].link == link_of_map(op, Form::Block, false); };
    if (chain_.size() != 2 || !stores_.empty() || !is(0, Op::sub) || !is(1, Op::exp)) return false;
    return uses_[size_t(chain_[0].out)] == 1 && !is_plain_[size_t(chain_[0].out)];
}

void Chainer::close()
{
    if (is_worth_it()) {
        Instruction marker{};
        marker.code = Code::Chain;
        marker.extra = int32_t(chain_.size() + stores_.size());
        for (Instruction& i : chain_) {
            if (i.flags & FROM_X) i.args[0] = -1;
            if (i.flags & FROM_Y) i.args[1] = -1, i.link += FORMS;
        }
        code_.push_back(marker);
    } else if (is_exp_of_difference()) {
        Instruction& exp = chain_[1];
        exp.arity = 2;
        exp.args[0] = chain_[0].args[0];
        exp.args[1] = chain_[0].args[1];
        exp.map += OF_DIFFERENCE;
        chain_.erase(chain_.begin());
    }
    code_.insert(code_.end(), chain_.begin(), chain_.end());
    code_.insert(code_.end(), stores_.begin(), stores_.end());
    chain_.clear();
    stores_.clear();
    bundle_ = -1;
    met_.clear();
    links_ = 0;
}

// Who reads registers: of a chain's stores nobody but where memory is no row, and that is written then.
void Chainer::mark_reads()
{
    for (size_t at = begin_, chained = begin_; at < code_.size(); at++) {
        const Instruction& i = code_[at];
        if (i.code == Code::Chain) chained = at + 1 + size_t(i.extra);
        const bool is_chained = at < chained;          // or a marker, which reads nothing
        if (is_chained && i.code == Code::Store) continue;
        for (int k = 0; k < i.arity; k++) {
            if (i.args[k] < 0) continue;
            reads_[size_t(i.args[k])]++;
            if (!is_chained) is_plain_[size_t(i.args[k])] = true;
        }
    }
}

// Values that their own chain alone reads again lie in its own registers, which are one bundle long.
void Chainer::keep_near(size_t first, size_t end)
{
    std::vector<int32_t> holds(MAX_NEAR, -1);          // by register: the value
    std::vector<int32_t> left(MAX_NEAR);               // how often it will be read
    for (size_t at = first; at < end; at++) {
        Instruction& i = code_[at];
        for (int k = 0; k < i.arity; k++)
            for (int n = 0; n < MAX_NEAR && i.args[k] >= 0; n++) {
                if (holds[size_t(n)] != i.args[k]) continue;
                i.near[k] = int8_t(n);
                i.args[k] = -1;
                if (--left[size_t(n)] == 0) holds[size_t(n)] = -1;
            }
        if (!(i.flags & KEPT) || i.extra > 0 || is_plain_[size_t(i.out)]) continue;
        int32_t reads = 0;
        for (size_t later = at + 1; later < end; later++)
            for (const int32_t arg : code_[later].args) reads += arg == i.out;
        const auto place = std::find(holds.begin(), holds.end(), -1);
        if (reads != reads_[size_t(i.out)] || place == holds.end()) continue;
        i.near[2] = int8_t(place - holds.begin());
        *place = i.out;
        left[size_t(i.near[2])] = reads;
        i.out = -1;
    }
}

// Results that nobody reads from a register have none; codes stay as they are where chains alone read them.
void Chainer::settle()
{
    for (size_t at = begin_, chained = begin_; at < code_.size(); at++) {
        Instruction& i = code_[at];
        if (i.code == Code::Chain) chained = at + 1 + size_t(i.extra);
        if (i.code == Code::Load && has_codes_[size_t(i.out)] && !is_plain_[size_t(i.out)]) i.flags |= CODES;
        if (i.code == Code::Chain || i.code == Code::Store || at >= chained) continue;
        const bool is_kept = reads_[size_t(i.out)] > 0 || is_plain_[size_t(i.out)];
        const bool goes_on = at + 1 < chained && code_[at + 1].flags & (FROM_X | FROM_Y);
        if (is_kept) i.flags |= KEPT;
        else if (i.extra == 0) i.out = -1;
        else if (i.code == Code::Convert && i.extra == 1 && !goes_on) i.flags |= ROUNDS;
    }
    for (size_t at = begin_; at < code_.size(); at++)
        if (code_[at].code == Code::Chain) keep_near(at + 1, at + 1 + size_t(code_[at].extra));
}

void Chainer::run()
{
    const std::vector<Instruction> old(code_.begin() + std::ptrdiff_t(begin_), code_.end());
    code_.resize(begin_);
    for (const Instruction& i : old)
        for (int k = 0; k < i.arity; k++) uses_[size_t(i.args[k])]++;
    for (const Instruction& i : old) {
        if (i.code == Code::Load) {
            has_codes_[size_t(i.out)] = i.type == Dtype::f16 || i.type == Dtype::bf16;
            code_.push_back(i);
            continue;
        }
        if (!has_room()) close();
        if (i.link && (i.code != Code::Store || i.args[0] == bundle_)) {
            add(i);
            continue;
        }
        close();
        code_.push_back(i);
    }
    close();
    mark_reads();
    settle();
}

}  // namespace

void form_chains(std::vector<Instruction>& code, size_t begin, const std::vector<bool>& is_read_later)
{
    Chainer(code, begin, is_read_later).run();
}

}  // namespace ng::cpu
