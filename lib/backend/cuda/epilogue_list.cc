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
    Maker(const Kernel& kernel, int32_t product, EpilogueList& to) : kernel_(kernel), product_(product), to_(to), left_(kernel.values.size()), tensor_(kernel.values.size(), NOTHING) {}

    bool make()
    {
        if (kernel_.stores.size() != 1) return false;
        const Dtype result = value(kernel_.stores[0].value).type;
        if (!is_float(result) || !is_held(result)) return false;
        int32_t last = kernel_.stores[0].value;
        // The store rounds, so that need not be done before.
        if (result != Dtype::f32 && value(last).kind == ValueKind::Convert && is_held(value(value(last).args[0]).type)) last = value(last).args[0];
        last = itself(last);
        if (!count(last)) return false;
        for (size_t v = 0; v < kernel_.values.size(); v++) {
            const auto at = int32_t(v);
            if (left_[v] > 0 && !is_leaf(at) && !is_sum(at) && itself(at) == at && !add(at)) return false;
        }
        return now_ == last;
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

    // How often each value is read, and whether all are of a kind that lists have. Sums of integers are read as f32 alone.
    bool count(int32_t last)
    {
        left_[size_t(last)] = 1;
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
    EpilogueList&        to_;
    std::vector<int32_t> left_, tensor_;
    int32_t              now_ = NOTHING, kept_[2] = {NOTHING, NOTHING};
};

std::optional<EpilogueList> EpilogueList::of(const Kernel& kernel, int32_t product)
{
    EpilogueList list;
    if (!Maker(kernel, product, list).make()) return std::nullopt;
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
        default:
            all += name_of(Op(code));
            if (info(Op(code)).arity > 1) all += (list_is_turned(word) ? " of " : " ") + operand;
            if (info(Op(code)).arity > 2) all += " k1";
        }
    }
    return all.empty() ? "nothing" : all;
}

}  // namespace ng::cuda
