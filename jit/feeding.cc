// Steps that give products their operands: which could be done by the product itself, and which are cut from kernels that do more.
#include "jit/scheduler.h"
#include "jit/step_uses.h"

#include <algorithm>

namespace ng {

int32_t end_of_product(const Plan& plan, int32_t product)
{
    const auto behind = size_t(product) + 1;
    return behind < plan.steps.size() && plan.steps[behind].runs_with_product() ? product + 1 : product;
}

// Whose operand step i alone gives, such that it may as well be computed while the product runs: nothing that it reads is written
// until then; -1: nobody's.
int32_t Scheduler::product_fed(const Plan& plan, const BufferUses& uses, const AliasingOuts& aliasing, size_t i) const
{
    const Step& s = plan.steps[i];
    if (!s.kernel || s.runs_with_product() || s.kernel->stores.size() != 1 || std::ranges::any_of(s.kernel->axes, &KernelAxis::reduced)) return -1;
    const int32_t  b = s.buffers[size_t(s.kernel->stores[0].buffer)];
    const Buffer&  operand = plan.buffers[size_t(b)];
    if (operand.place != Place::Work || operand.first != int32_t(i) || operand.last <= int32_t(i)) return -1;
    const Step& product = plan.steps[size_t(operand.last)];
    if (!product.node || product.node->op != Op::matmul || (product.in[0].buffer == b) == (product.in[1].buffer == b)) return -1;
    const int32_t end = end_of_product(plan, operand.last);
    const auto is_written = [&](int32_t w) {
        const std::vector<int32_t>& writers = uses.writers[size_t(w)];
        const auto next = std::ranges::upper_bound(writers, int32_t(i));
        return next != writers.end() && *next <= end;
    };
    bool is_alone = uses.readers[size_t(b)].size() == 1 && !is_written(b);
    each_read(s, [&](int32_t r) {
        is_alone = is_alone && !is_written(r);
        if (const auto outs = aliasing.find(r); outs != aliasing.end()) is_alone = is_alone && std::ranges::none_of(outs->second, is_written);
    });
    return is_alone ? operand.last : -1;
}

void Scheduler::mark_feeding(Plan& plan) const
{
    if (std::ranges::none_of(plan.steps, [](const Step& s) { return s.node && s.node->op == Op::matmul; })) return;
    const BufferUses uses(plan);
    AliasingOuts aliasing;
    for (size_t j = 0; j < targets_.size(); j++)
        for (const int32_t b : alias_buffers(j)) aliasing[b].push_back(outs_[j].buffer);
    for (size_t i = 0; i < plan.steps.size(); i++) plan.steps[i].feeds = product_fed(plan, uses, aliasing, i);
}

namespace {

// Marks the values that a store is made of.
void mark_needed(const Kernel& k, const StoreTo& store, std::vector<bool>& needed)
{
    std::vector<bool> mine(k.values.size(), false);
    mine[size_t(store.value)] = true;
    for (size_t v = k.values.size(); v-- > 0;) {
        if (!mine[v]) continue;
        needed[v] = true;
        for (const int32_t arg : k.values[v].args)
            if (arg >= 0) mine[size_t(arg)] = true;
    }
}

// The step with the stores that are asked for, or with all others. Numbers of buffers and accesses stay.
Step part_of(const Step& s, const std::vector<bool>& asked, bool are_wanted)
{
    Step out = s;
    out.kernel = std::make_shared<Kernel>(*s.kernel);
    Kernel& k = *out.kernel;
    k.values.clear(), k.stores.clear();
    const Kernel& from = *s.kernel;
    std::vector<bool> needed(from.values.size(), false);
    for (size_t t = 0; t < from.stores.size(); t++)
        if (asked[t] == are_wanted) mark_needed(from, from.stores[t], needed), k.stores.push_back(from.stores[t]);
    std::vector<int32_t> place(from.values.size(), -1);
    for (size_t v = 0; v < from.values.size(); v++) {
        if (!needed[v]) continue;
        place[v] = int32_t(k.values.size());
        k.values.push_back(from.values[v]);
        for (int32_t& arg : k.values.back().args) arg = arg < 0 ? -1 : place[size_t(arg)];
    }
    for (StoreTo& t : k.stores) t.value = place[size_t(t.value)];
    return out;
}

// Which stores read nothing that others read as well: being of one size is all that they have in common.
std::vector<bool> stores_apart(const Kernel& k)
{
    constexpr int32_t NOBODY = -1, SEVERAL = -2;
    std::vector<int32_t> reader(k.values.size(), NOBODY);
    std::vector<bool> apart(k.stores.size(), true), needed(k.values.size());
    for (size_t s = 0; s < k.stores.size(); s++) {
        needed.assign(k.values.size(), false);
        mark_needed(k, k.stores[s], needed);
        for (size_t v = 0; v < k.values.size(); v++) {
            if (!needed[v] || k.values[v].buffer < 0) continue;
            if (reader[v] != NOBODY) apart[s] = false;
            if (reader[v] >= 0) apart[size_t(reader[v])] = false;
            reader[v] = reader[v] == NOBODY ? int32_t(s) : SEVERAL;
        }
    }
    return apart;
}

}  // namespace

// Operands of products that share a kernel with what only happens to have their size get kernels of their own.
void Scheduler::cut_operands(Plan& plan)
{
    // Readers of each buffer; -1: several, or what is no product.
    std::vector<int32_t> reader(plan.buffers.size(), -2);
    for (size_t i = 0; i < plan.steps.size(); i++) {
        const bool is_product = plan.steps[i].node && plan.steps[i].node->op == Op::matmul;
        each_read(plan.steps[i], [&](int32_t b) { reader[size_t(b)] = is_product && reader[size_t(b)] == -2 ? int32_t(i) : -1; });
    }
    std::vector<Step> steps;
    for (Step& s : plan.steps) {
        const bool        is_plain = s.kernel && s.kernel->stores.size() > 1 && std::ranges::none_of(s.kernel->axes, &KernelAxis::reduced);
        std::vector<bool> one(is_plain ? s.kernel->stores.size() : 0, false), cut = one;
        std::vector<bool> apart;                                   // made for the first operand of a product
        for (size_t t = 0; t < one.size(); t++) {
            const auto b = size_t(s.buffers[size_t(s.kernel->stores[t].buffer)]);
            if (plan.buffers[b].place != Place::Work || reader[b] < 0) continue;
            if (apart.empty()) apart = stores_apart(*s.kernel);
            if (!apart[t]) continue;
            one[t] = cut[t] = true;
            steps.push_back(part_of(s, one, true));
            one[t] = false;
        }
        const bool is_whole = cut == one;
        if (is_whole || std::ranges::count(cut, false) > 0) steps.push_back(is_whole ? std::move(s) : part_of(s, cut, false));
    }
    plan.steps = std::move(steps);
}

}  // namespace ng
