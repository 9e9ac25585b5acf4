// Turns a fused step's values into a chain: each value but the first is made of the one before it, of one put aside, and of tensors.
#include "lib/backend/cuda/epilogue.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace ng::cuda {

using kernels::EpilogueStep;

namespace {

EpilogueStep step_of(kernels::i32 op, Dtype type = Dtype::f32)
{
    EpilogueStep s = {};
    s.op = op, s.type = kernels::i32(type);
    return s;
}

}  // namespace

// Walks the values in order; `last_` is what registers hold, `kept_` what was put aside.
class EpilogueForm::Maker {
  public:
    Maker(const Step& product, const Step& fused) : kernel_(*fused.kernel), buffers_(fused.buffers), product_(product.out.buffer), sums_(product.out.dtype) {}

    bool make(EpilogueForm& form)
    {
        if (kernel_.stores.size() != 1 || (sums_ != Dtype::f32 && sums_ != Dtype::i32)) return false;
        const StoreTo& store = kernel_.stores[0];
        if (!find_chain(store.value)) return false;
        form_ = &form;
        for (const int32_t v : chain_)
            if (!add(v)) return false;
        if (last_ != store.value) return false;
        const Dtype type = kernel_.values[size_t(store.value)].type;
        if (compute_of(type) != Dtype::f32 && type != sums_) return false;
        // The store rounds once more: what is rounded to its type is not rounded again.
        kernels::Epilogue& e = form.steps_;
        if (e.count > 0 && e.step[e.count - 1].op == kernels::EPILOGUE_ROUND && e.step[e.count - 1].type == kernels::i32(type)) e.count--;
        form.result_ = {buffers_[size_t(store.buffer)], type, kernel_.accesses[size_t(store.access)]};
        return true;
    }

  private:
    bool is_of_product(int32_t v) const { return depends_[size_t(v)]; }
    const Value& value(int32_t v) const { return kernel_.values[size_t(v)]; }

    // The values that depend on the product and that the store needs, in order; false where it needs none.
    bool find_chain(int32_t stored)
    {
        const size_t count = kernel_.values.size();
        depends_.assign(count, false), last_use_.assign(count, -1);
        std::vector<bool> needed(count, false);
        needed[size_t(stored)] = true;
        for (size_t v = count; v-- > 0;) {
            if (!needed[v]) continue;
            for (const int32_t a : kernel_.values[v].args)
                if (a >= 0) needed[size_t(a)] = true;
        }
        for (size_t v = 0; v < count; v++) {
            const Value& a = kernel_.values[v];
            depends_[v] = a.kind == ValueKind::Load && buffers_[size_t(a.buffer)] == product_;
            for (const int32_t x : a.args)
                if (x >= 0 && depends_[size_t(x)]) depends_[v] = true;
            if (!needed[v] || !depends_[v]) continue;
            for (const int32_t x : a.args)
                if (x >= 0 && depends_[size_t(x)]) last_use_[size_t(x)] = int32_t(v);
            chain_.push_back(int32_t(v));
        }
        return !chain_.empty();
    }

    bool add(int32_t v)
    {
        const Value& a = value(v);
        const int32_t before = last_;
        last_ = v;
        if (a.kind == ValueKind::Load) return before < 0 && keep_for_later(v);
        const bool ok = a.kind == ValueKind::Convert ? add_convert(a, before) : a.kind == ValueKind::Map && add_map(a, before);
        return ok && keep_for_later(v);
    }

    // A value that others than the next one read, or that one twice, stays in the second register.
    bool keep_for_later(int32_t v)
    {
        const auto next = std::find(chain_.begin(), chain_.end(), v) + 1;
        if (next == chain_.end()) return true;
        const Value& n = value(*next);
        const bool is_square = n.args[0] == v && n.args[1] == v;
        if (last_use_[size_t(v)] <= *next && !is_square) return true;
        kept_ = v;
        return push(step_of(kernels::EPILOGUE_KEEP));
    }

    bool push(const EpilogueStep& step)
    {
        kernels::Epilogue& e = form_->steps_;
        if (e.count == kernels::EPILOGUE_STEPS) return false;
        e.step[e.count++] = step;
        return true;
    }

    bool add_convert(const Value& a, int32_t before)
    {
        if (a.args[0] != before) return false;
        const Dtype from = value(before).type;
        if (from == Dtype::i32) {
            form_->steps_.is_cast = 1;
            return form_->steps_.count == 0 && a.type == Dtype::f32;     // a narrower type would be rounded to twice
        }
        if (compute_of(a.type) != Dtype::f32 || compute_of(from) != Dtype::f32) return false;
        return a.type == Dtype::f32 || push(step_of(kernels::EPILOGUE_ROUND, a.type));
    }

    bool add_map(const Value& a, int32_t before)
    {
        const OpInfo& op = info(a.op);
        if (a.type != Dtype::f32 || !kernels::is_epilogue_map(op.name)) return false;
        EpilogueStep step = step_of(kernels::i32(a.op));
        if (op.arity == 1) return a.args[0] == before && push(step);
        step.is_turned = a.args[0] != before;
        if (step.is_turned && (op.arity > 2 || a.args[1] != before)) return false;
        const int at = form_->steps_.count;
        if (!push(step)) return false;
        if (op.arity == 3) return is_number(a.args[1]) && is_number(a.args[2]) && set_number(at, a.args[1], false) && set_number(at, a.args[2], true);
        return add_operand(at, a.args[step.is_turned ? 0 : 1]);
    }

    bool is_number(int32_t v) const { return value(v).kind == ValueKind::Constant || value(v).kind == ValueKind::Scalar; }

    bool set_number(int at, int32_t v, bool is_high)
    {
        const Value& a = value(v);
        if (compute_of(a.type) != Dtype::f32) return false;
        EpilogueStep& step = form_->steps_.step[at];
        if (a.kind == ValueKind::Constant) (is_high ? step.high : step.number) = float(std::bit_cast<double>(a.bits));
        else form_->scalars_.push_back({at, is_high, a.bits});
        return a.kind == ValueKind::Constant || a.type == Dtype::f32;
    }

    bool add_operand(int at, int32_t v)
    {
        EpilogueStep& step = form_->steps_.step[at];
        if (is_number(v)) return set_number(at, v, false);
        if (is_of_product(v)) {
            step.source = kernels::FROM_KEPT;
            return v == kept_;
        }
        const Value *load = &value(v), &number = *load;
        if (number.kind == ValueKind::Convert) load = &value(number.args[0]);
        if (load->kind != ValueKind::Load || compute_of(number.type) != Dtype::f32 || (load != &number && number.type != Dtype::f32)) return false;
        step.source = kernels::FROM_TENSOR, step.type = kernels::i32(load->type);
        form_->tensors_.push_back({buffers_[size_t(load->buffer)], load->type, kernel_.accesses[size_t(load->access)]});
        form_->tensor_steps_.push_back(at);
        return true;
    }

    const Kernel&               kernel_;
    const std::vector<int32_t>& buffers_;
    const int32_t               product_;
    const Dtype                 sums_;
    EpilogueForm*               form_ = nullptr;
    std::vector<bool>           depends_;
    std::vector<int32_t>        last_use_, chain_;
    int32_t                     last_ = -1, kept_ = -1;
};

std::optional<EpilogueForm> EpilogueForm::of(const Step& product, const Step& fused)
{
    EpilogueForm form;
    if (!Maker(product, fused).make(form)) return std::nullopt;
    return form;
}

kernels::Epilogue EpilogueForm::steps(const void* scalars) const
{
    kernels::Epilogue e = steps_;
    for (const Scalar& s : scalars_) std::memcpy(s.is_high ? &e.step[s.step].high : &e.step[s.step].number, static_cast<const char*>(scalars) + s.at, sizeof(float));
    return e;
}

}  // namespace ng::cuda
