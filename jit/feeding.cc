// Steps that give products their operands: which could be done by the product itself, and which are cut from kernels that do more.
#include "jit/scheduler.h"
#include "jit/step_uses.h"

#include <algorithm>

namespace ng {

int32_t end_of_product(const Plan& plan, int32_t product)
{
    const auto behind = size_t(product) + 1;
    return behind < plan.steps.size() && (plan.steps[behind].epilogue || plan.steps[behind].folds) ? product + 1 : product;
}

// Whose operand step i alone gives, such that it may as well be computed while the product runs: nothing that it reads is written
// until then; -1: nobody's.
int32_t Scheduler::product_fed(const Plan& plan, size_t i) const
{
    const Step& s = plan.steps[i];
    if (!s.kernel || s.epilogue || s.folds || s.kernel->stores.size() != 1 || std::ranges::any_of(s.kernel->axes, &KernelAxis::reduced)) return -1;
    const int32_t  b = s.buffers[size_t(s.kernel->stores[0].buffer)];
    const Buffer&  operand = plan.buffers[size_t(b)];
    if (operand.place != Place::Work || operand.first != int32_t(i) || operand.last <= int32_t(i)) return -1;
    const Step& product = plan.steps[size_t(operand.last)];
    if (!product.node || product.node->op != Op::matmul || (product.in[0].buffer == b) == (product.in[1].buffer == b)) return -1;
    std::set<int32_t> read;
    each_read(s, [&](int32_t r) { read.insert(r); });
    bool is_alone = true;
    for (auto at = int32_t(i) + 1; at <= end_of_product(plan, operand.last); at++) {
        const Step& other = plan.steps[size_t(at)];
        each_read(other, [&](int32_t r) { is_alone &= r != b || at == operand.last; });
        each_write(other, [&](int32_t w) {
            is_alone &= w != b && !read.contains(w);
            const Buffer& out = plan.buffers[size_t(w)];
            if (out.place == Place::Out)
                for (const int32_t alias : alias_buffers(size_t(out.index), plan)) is_alone &= !read.contains(alias);
        });
    }
    return is_alone ? operand.last : -1;
}

namespace {

// Values that a store is made of.
std::vector<bool> needed_by(const Kernel& k, size_t store)
{
    std::vector<bool> needed(k.values.size(), false);
    needed[size_t(k.stores[store].value)] = true;
    for (size_t v = k.values.size(); v-- > 0;)
        for (const int32_t arg : k.values[v].args)
            if (arg >= 0 && needed[v]) needed[size_t(arg)] = true;
    return needed;
}

// Whether a store reads nothing that others read as well: being of one size is all that they have in common.
bool is_apart(const Kernel& k, size_t store)
{
    const std::vector<bool> mine = needed_by(k, store);
    for (size_t s = 0; s < k.stores.size(); s++) {
        if (s == store) continue;
        const std::vector<bool> theirs = needed_by(k, s);
        for (size_t v = 0; v < k.values.size(); v++)
            if (mine[v] && theirs[v] && k.values[v].buffer >= 0) return false;
    }
    return true;
}

// The step with these stores alone.
Step part_of(const Step& s, const std::vector<size_t>& stores)
{
    const Kernel& from = *s.kernel;
    std::vector<bool> needed(from.values.size(), false);
    for (const size_t store : stores) {
        const std::vector<bool> more = needed_by(from, store);
        for (size_t v = 0; v < more.size(); v++) needed[v] = needed[v] || more[v];
    }
    Step out;
    out.name = s.name, out.finishes = s.finishes;
    Kernel k;
    k.axes = from.axes, k.name = from.name;
    const auto buffer = [&](int32_t b) {
        if (b < 0) return b;
        const auto at = std::ranges::find(out.buffers, s.buffers[size_t(b)]);
        if (at != out.buffers.end()) return int32_t(at - out.buffers.begin());
        out.buffers.push_back(s.buffers[size_t(b)]);
        return int32_t(out.buffers.size()) - 1;
    };
    const auto access = [&](int32_t a) {
        if (a < 0) return a;
        const auto at = std::ranges::find(k.accesses, from.accesses[size_t(a)]);
        if (at != k.accesses.end()) return int32_t(at - k.accesses.begin());
        k.accesses.push_back(from.accesses[size_t(a)]);
        return int32_t(k.accesses.size()) - 1;
    };
    std::vector<int32_t> place(from.values.size(), -1);
    for (size_t v = 0; v < from.values.size(); v++) {
        if (!needed[v]) continue;
        Value value = from.values[v];
        for (int32_t& arg : value.args) arg = arg < 0 ? -1 : place[size_t(arg)];
        value.buffer = buffer(value.buffer), value.access = access(value.access);
        place[v] = int32_t(k.values.size());
        k.values.push_back(std::move(value));
    }
    for (const size_t store : stores) {
        const StoreTo& t = from.stores[store];
        k.stores.push_back({place[size_t(t.value)], buffer(t.buffer), access(t.access), t.late});
    }
    out.kernel = std::make_shared<Kernel>(std::move(k));
    return out;
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
        const bool is_plain = s.kernel && s.kernel->stores.size() > 1 && std::ranges::none_of(s.kernel->axes, &KernelAxis::reduced);
        std::vector<size_t> others;
        for (size_t t = 0; is_plain && t < s.kernel->stores.size(); t++) {
            const int32_t b = s.buffers[size_t(s.kernel->stores[t].buffer)];
            if (plan.buffers[size_t(b)].place == Place::Work && reader[size_t(b)] >= 0 && is_apart(*s.kernel, t)) steps.push_back(part_of(s, {t}));
            else others.push_back(t);
        }
        if (!is_plain || others.size() == s.kernel->stores.size()) steps.push_back(std::move(s));
        else if (!others.empty()) steps.push_back(part_of(s, others));
    }
    plan.steps = std::move(steps);
}

}  // namespace ng
