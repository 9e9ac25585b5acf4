// Puts a kernel's values in turn: each is made of the one before it, of at most two that are kept, of numbers and of tensors.
#include "lib/backend/cuda/epilogue_list.h"

#include "jit/error.h"
#include "kernels/listed_maps.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace ng::cuda {

using namespace kernels;

namespace {

constexpr int32_t NOTHING = -1;

bool is_held(Dtype t) { return compute_of(t) == Dtype::f32; }
bool is_of_memory(Dtype t) { return t == Dtype::f32 || t == Dtype::f16 || t == Dtype::bf16; }

}  // namespace

// now_: the value that is worked on; kept_: what the two places have; left_: how often each value is still read.
class EpilogueList::Maker {
  public:
    Maker(const Kernel& kernel, int32_t product, std::span<const FinishFold> folds, EpilogueList& to)
        : kernel_(kernel), product_(product), folds_(folds), to_(to), left_(kernel.values.size()), tensor_(kernel.values.size(), NOTHING) {}

    bool make()
    {
        const size_t results = kernel_.stores.size() - folds_.size();
        if (results > 1 || results + folds_.size() == 0) return false;
        for (const FinishFold& f : folds_)
            if (compute_of(value(kernel_.stores[size_t(f.store)].value).type) != Dtype::f32) return false;
        const int32_t last = results ? stored(kernel_.stores[0].value) : NOTHING;
        if ((results && last == NOTHING) || !count(last) || !fold_now()) return false;
        for (size_t v = 0; v < kernel_.values.size(); v++) {
            const auto at = int32_t(v);
            if (left_[v] > 0 && !is_leaf(at) && !is_sum(at) && itself(at) == at && (!add(at) || !fold_now())) return false;
        }
        return folded_ == folds_.size() && (last == NOTHING || take(last));
    }

  private:
    const Value& value(int32_t v) const { return kernel_.values[size_t(v)]; }
    bool is_sum(int32_t v) const { return value(v).kind == ValueKind::Load && value(v).buffer == product_; }
    bool is_leaf(int32_t v) const { return value(v).kind == ValueKind::Constant || value(v).kind == ValueKind::Scalar || (value(v).kind == ValueKind::Load && !is_sum(v)); }
    // What a conversion that changes no f32 is of: from what memory has, and whole sums, which are f32 before the list begins.
    int32_t itself(int32_t v) const
    {
        while (value(v).kind == ValueKind::Convert) {
            const Value& from = value(value(v).args[0]);
            const bool is_same = value(v).type == Dtype::f32 && (is_held(from.type) || (is_sum(value(v).args[0]) && from.type == Dtype::i32));
            if (!is_same) break;
            v = value(v).args[0];
        }
        return v;
    }

    int32_t term_of(size_t fold) const { return itself(kernel_.stores[size_t(folds_[fold].store)].value); }
    // Folds that are one instruction with the first of them.
    size_t length_of(size_t fold) const { return folds_[fold].term == FoldTerm::Pivot ? 4 : 1; }
    // The value to end with for a result of this one, which the store rounds: so that need not be done before, but where what is rounded is folded.
    int32_t stored(int32_t result) const
    {
        const Dtype type = value(result).type;
        if (!is_float(type) || !is_held(type)) return NOTHING;
        bool is_folded = false;
        for (size_t f = 0; f < folds_.size(); f += length_of(f)) is_folded |= term_of(f) == itself(result);
        const bool is_rounded = type != Dtype::f32 && value(result).kind == ValueKind::Convert && is_held(value(value(result).args[0]).type);
        return itself(is_rounded && !is_folded ? value(result).args[0] : result);
    }
    // All that is folded of the value that is worked on.
    bool fold_now()
    {
        u32 index = 0;
        for (size_t f = 0; f < folds_.size(); f += length_of(f)) {
            const bool is_squares = folds_[f].term == FoldTerm::Pivot;
            const Op   op = folds_[f].op;
            const u32  how = is_squares ? LIST_SQUARES : op == Op::sum ? LIST_SUM : op == Op::prod ? LIST_PROD : op == Op::min ? LIST_MIN : LIST_MAX;
            if (term_of(f) == now_) {
                if (!put(LIST_FOLD, FROM_NUMBER, false, list_fold_number(u32(f), how, index))) return false;
                left_[size_t(now_)]--, folded_ += length_of(f);
            }
            index += !is_squares;
        }
        return index <= LIST_FOLDS;
    }

    // How often each value is read, and whether all are of a kind that lists have. Sums of integers are read as f32 alone.
    bool count(int32_t last)
    {
        if (last != NOTHING) left_[size_t(last)] = 1;
        for (size_t f = 0; f < folds_.size(); f += length_of(f)) left_[size_t(term_of(f))]++;
        for (size_t v = kernel_.values.size(); v-- > 0;) {
            const auto at = int32_t(v);
            if (left_[v] == 0 || itself(at) != at) continue;
            if (!is_known(at) || (is_sum(at) && now_ != NOTHING)) return false;
            if (is_sum(at)) now_ = at;
            if (is_leaf(at) || is_sum(at)) continue;
            for (const int32_t a : value(at).args) {
                if (a < 0) continue;
                if (is_sum(a) && value(a).type == Dtype::i32) return false;      // not as f32
                left_[size_t(itself(a))]++;
            }
        }
        // Tensors are numbered as texts have them.
        for (size_t v = 0; v < kernel_.values.size(); v++) {
            const Value& a = value(int32_t(v));
            if (left_[v] == 0 || a.kind != ValueKind::Load || a.buffer == product_) continue;
            tensor_[v] = to_.tensors(), to_.types_.push_back(a.type);
        }
        return to_.tensors() <= LIST_TENSORS && now_ != NOTHING;
    }
    bool is_known(int32_t v) const
    {
        const Value& a = value(v);
        switch (a.kind) {
        case ValueKind::Load: return is_sum(v) ? a.type == Dtype::f32 || a.type == Dtype::i32 : is_of_memory(a.type);
        case ValueKind::Constant: return is_held(a.type);
        case ValueKind::Scalar: return a.type == Dtype::f32;
        case ValueKind::Convert: return (a.type == Dtype::f16 || a.type == Dtype::bf16) && is_held(value(a.args[0]).type);
        case ValueKind::Map: {
            if (!is_listed_map(name_of(a.op))) return false;
            const bool is_choice = a.op == Op::where;    // of a truth
            for (int32_t k = 0; k < info(a.op).arity; k++) {
                const int32_t x = a.args[size_t(k)];
                const bool    is_truth = is_bool(value(x).type);
                if (is_truth ? !is_choice || k > 0 || value(x).kind != ValueKind::Map : !is_held(value(x).type)) return false;
            }
            return true;
        }
        default: return false;
        }
    }

    bool put(uint32_t code, uint32_t source = FROM_NUMBER, bool is_turned = false, uint32_t number = 0)
    {
        if (int(to_.words_.size()) >= LIST_MOST) return false;
        to_.words_.push_back(list_word(code, source, is_turned, number));
        return true;
    }
    // An instruction whose second operand is v: a leaf, or kept.
    bool put_with(uint32_t code, int32_t v, bool is_turned)
    {
        const Value& a = value(v);
        if (a.kind == ValueKind::Scalar) to_.scalars_.push_back({int32_t(to_.words_.size()), a.bits});
        if (a.kind == ValueKind::Scalar) return put(code, FROM_NUMBER, is_turned);
        if (a.kind == ValueKind::Constant) return put(code, FROM_NUMBER, is_turned, std::bit_cast<uint32_t>(float(std::bit_cast<double>(a.bits))));
        if (tensor_[size_t(v)] >= 0) return put(code, FROM_TENSOR + uint32_t(tensor_[size_t(v)]), is_turned);
        return kept_[0] == v ? put(code, FROM_KEPT_0, is_turned) : kept_[1] == v && put(code, FROM_KEPT_1, is_turned);
    }
    bool is_kept(int32_t v) const { return kept_[0] == v || kept_[1] == v; }
    bool is_free(int place) const { return kept_[place] == NOTHING || left_[size_t(kept_[place])] == 0; }
    // So that it can still be read when another takes its place. The second place is what maps of three want, so the first one is taken first.
    bool keep_now()
    {
        if (now_ == NOTHING || left_[size_t(now_)] == 0 || is_kept(now_) || is_leaf(now_)) return true;
        for (int place = 0; place < 2; place++) {
            if (!is_free(place)) continue;
            kept_[place] = now_;
            return put(place == 0 ? LIST_KEEP_0 : LIST_KEEP_1);
        }
        return false;
    }
    bool take(int32_t v)
    {
        if (now_ == v) return true;
        for (int place = 0; place < 2; place++)
            if (kept_[place] == v && left_[size_t(v)] == 1 && now_ != NOTHING && left_[size_t(now_)] > 0 && !is_kept(now_)) {
                kept_[place] = now_, now_ = v;       // for the last time
                return put(place == 0 ? LIST_SWAP_0 : LIST_SWAP_1);
            }
        if (!keep_now() || !put_with(LIST_TAKE, v, false)) return false;
        now_ = v;
        return true;
    }

    bool add(int32_t v)
    {
        const Value& a = value(v);
        const bool    is_map = a.kind == ValueKind::Map;
        const int32_t arity = is_map ? info(a.op).arity : 1;
        int32_t x = itself(a.args[0]), y = arity > 1 ? itself(a.args[1]) : NOTHING;
        bool    is_turned = false;
        if (arity == 2 && now_ == y && now_ != x) std::swap(x, y), is_turned = true;
        if (!take(x)) return false;
        if (arity == 3 && !bring_beside(itself(a.args[2]))) return false;
        left_[size_t(x)]--;              // the others' places are taken until they have been read
        if (!keep_now()) return false;
        const uint32_t code = is_map ? uint32_t(a.op) : a.type == Dtype::f16 ? uint32_t(LIST_ROUND_F16) : uint32_t(LIST_ROUND_BF16);
        if (arity > 1 ? !put_with(code, y, is_turned) : !put(code)) return false;
        if (arity > 1) left_[size_t(y)]--;
        if (arity > 2) left_[size_t(itself(a.args[2]))]--;
        if (kept_[1] != NOTHING && is_leaf(kept_[1])) kept_[1] = NOTHING;
        now_ = v;
        return true;
    }
    // A map's third operand to the second place.
    bool bring_beside(int32_t z)
    {
        if (kept_[1] == z) return true;
        if (!is_free(1)) return false;
        if (z == now_) {
            kept_[1] = z;
            return put(LIST_KEEP_1);
        }
        if (!put_with(LIST_BESIDE, z, false)) return false;
        kept_[1] = z;
        return true;
    }

    const Kernel&        kernel_;
    const int32_t        product_;
    const std::span<const FinishFold> folds_;
    EpilogueList&        to_;
    size_t               folded_ = 0;
    std::vector<int32_t> left_, tensor_;
    int32_t              now_ = NOTHING, kept_[2] = {NOTHING, NOTHING};
};

std::optional<EpilogueList> EpilogueList::of(const Kernel& kernel, int32_t product, std::span<const FinishFold> folds)
{
    EpilogueList list;
    if (!Maker(kernel, product, folds, list).make()) return std::nullopt;
    constexpr int32_t DISPATCH = 3;      // instructions of a sum from one of the list to the next, of eight that take them together
    list.weight_ = DISPATCH * int32_t(list.words_.size());
    return list;
}

void EpilogueList::fill(const void* scalars, std::span<u64, EPILOGUE_NUMBERS> to) const
{
    std::ranges::fill(to, 0);
    to[0] = words_.size();
    for (int i = 0; i < tensors(); i++) to[0] |= list_type_bits(i, i32(types_[size_t(i)]));
    std::ranges::copy(words_, to.begin() + 1);
    for (const Scalar& s : scalars_) {
        if (!scalars) break;             // nothing runs
        uint32_t number;
        std::memcpy(&number, static_cast<const char*>(scalars) + s.at, sizeof number);
        to[size_t(s.word) + 1] |= u64(number) << 32;
    }
}

namespace {

constexpr const char* FOLDS[] = {"sum", "prod", "min", "max", "squares"};      // by ListFold

}  // namespace

std::string EpilogueList::text() const
{
    std::string all;
    for (size_t i = 0; i < words_.size(); i++) {
        const u64  word = words_[i];
        const u32  code = list_code(word), source = list_source(word);
        const bool is_scalar = std::ranges::any_of(scalars_, [&](const Scalar& s) { return s.word == int32_t(i); });
        const std::string operand = source >= FROM_TENSOR ? ng::text("t", source - FROM_TENSOR) : source == FROM_KEPT_0 ? "k0" : source == FROM_KEPT_1 ? "k1" : is_scalar ? "s" : ng::text(std::bit_cast<float>(list_number(word)));
        if (i > 0) all += ", ";
        switch (code) {
        case LIST_KEEP_0: all += "keep k0"; break;
        case LIST_KEEP_1: all += "keep k1"; break;
        case LIST_SWAP_0: all += "swap k0"; break;
        case LIST_SWAP_1: all += "swap k1"; break;
        case LIST_BESIDE: all += "k1 = " + operand; break;
        case LIST_TAKE: all += "take " + operand; break;
        case LIST_ROUND_F16: all += "f16"; break;
        case LIST_ROUND_BF16: all += "bf16"; break;
        case LIST_FOLD: all += ng::text("fold ", FOLDS[list_fold_how(list_number(word))]); break;
        default:
            all += name_of(Op(code));
            if (info(Op(code)).arity > 1) all += (list_is_turned(word) ? " of " : " ") + operand;
            if (info(Op(code)).arity > 2) all += " k1";
        }
    }
    return all.empty() ? "nothing" : all;
}

}  // namespace ng::cuda
