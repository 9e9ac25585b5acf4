// Explains a plan: the graph that was asked for, the memory it lies in, the steps and what each costs.
#include "jit/explain.h"

#include "jit/cost.h"
#include "jit/explain_parts.h"
#include "jit/saturated.h"

#include <algorithm>
#include <map>

namespace ng {
namespace {

constexpr size_t MAX_LISTED = 10000;          // of nodes, buffers, steps, lines: what a person might look through

class Explainer {
  public:
    Explainer(const Plan& plan, std::span<const NodeRef> roots, std::span<const int64_t> variables, std::span<const StepCode> codes)
        : plan_(plan), graph_(roots), variables_(variables), codes_(codes), step_nodes_(nodes_of_steps(plan, graph_)) {}
    std::string run();

  private:
    struct Traffic { std::vector<int32_t> reads, writes; };

    void list_nodes();
    void details(const Node& n);
    void list_buffers();
    void list_steps();
    void step(size_t at);
    void kernel(const Step& s);
    void code(const StepCode& code, const Cost& cost);
    std::string split(size_t at, const Traffic& t) const;
    Traffic traffic_of(const Step& s) const;
    std::string why(const Step& s, const Traffic& t) const;
    uint64_t bytes_of_buffer(const Buffer& b) const;
    const Port* port_of(const Buffer& b) const;

    Json                     json_;
    const Plan&              plan_;
    Snapshot                 graph_;
    std::span<const int64_t> variables_;
    std::span<const StepCode> codes_;
    std::vector<std::vector<uint32_t>> step_nodes_;
    size_t                   lines_ = 0;
};

std::string counted(size_t n, const char* noun) { return text(n, " ", noun, n == 1 ? "" : "s"); }

// ---- the graph -----------------------------------------------------------------------------------------

// What of a node its operands and shape do not say.
void Explainer::details(const Node& n)
{
    switch (n.op) {
    case Op::param: json_.member("index", n.value); break;
    case Op::scalar: json_.member("byte", n.value); break;
    case Op::length: json_.member("length", -1 - n.value); break;
    case Op::constant:
        if (is_float(n.dtype)) json_.member("value", number_of_bits(n.dtype, n.value));
        else if (info(n.dtype).kind == Kind::Uint) json_.member("value", uint64_t(n.value));
        else json_.member("value", n.value);
        break;
    case Op::iota: case Op::concat: case Op::take: case Op::put: case Op::scan: case Op::argsort: json_.member("axis", n.value); break;
    case Op::slice: json_.member("axis", n.value).member("start", n.extra->extents[0]).member("step", n.int_at(0)); break;
    case Op::permute:
        json_.key("axes").open('[');
        for (const int64_t a : n.extra->ints) json_.value(a);
        json_.close(']');
        break;
    default:
        if (!is_fold(n.op)) break;
        json_.key("axes").open('[');
        for (int a = 0; a < n.rank(); a++)
            if (n.value >> a & 1) json_.value(a);
        json_.close(']');
    }
}

void Explainer::list_nodes()
{
    json_.key("nodes").open('[');
    for (uint32_t i = 0; i < graph_.size() && i < MAX_LISTED; i++) {
        const Node& n = graph_[i];
        json_.open('{').member("id", i).member("op", name_of(n.op)).member("dtype", name_of(n.dtype));
        json_.key("shape").values(n.dims());
        json_.key("args").open('[');
        for (const uint32_t a : graph_.args(i)) json_.value(a);
        json_.close(']');
        json_.member("name", n.op == Op::tag ? n.extra->text : "");
        details(n);
        json_.close('}');
    }
    json_.close(']');
}

// ---- memory --------------------------------------------------------------------------------------------

const Port* Explainer::port_of(const Buffer& b) const
{
    if (b.place == Place::Out) return &plan_.outs[size_t(b.index)];
    const auto at = std::ranges::lower_bound(plan_.args, b.index, {}, &Port::index);
    return b.place == Place::Arg && at != plan_.args.end() && at->index == b.index ? &*at : nullptr;
}

// Of all elements, without gaps between; what exceeds 64 bits is their end.
uint64_t Explainer::bytes_of_buffer(const Buffer& b) const
{
    uint64_t bytes = uint64_t(bytes_of(b.dtype));
    const auto take = [&](const Extent& e) { bytes = times(bytes, extent_at(e, variables_)); };
    if (b.place == Place::Work) take(b.count);
    else if (const Port* p = port_of(b)) std::ranges::for_each(p->dims, take);
    else if (b.place == Place::Leaf) std::ranges::for_each(plan_.leaves[size_t(b.index)]->dims(), take);
    return bytes;
}

void Explainer::list_buffers()
{
    static constexpr const char* KINDS[] = {"argument", "leaf", "output", "temporary"};      // by Place
    json_.key("buffers").open('[');
    for (size_t i = 0; i < plan_.buffers.size() && i < MAX_LISTED; i++) {
        const Buffer& b = plan_.buffers[i];
        const Port* port = port_of(b);
        json_.open('{').member("id", uint64_t(i)).member("kind", KINDS[size_t(b.place)]).member("index", b.index);
        json_.member("dtype", name_of(b.dtype)).member("bytes", bytes_of_buffer(b)).member("name", port ? port->name : "");
        json_.close('}');
    }
    json_.close(']');
}

// ---- steps ---------------------------------------------------------------------------------------------

Explainer::Traffic Explainer::traffic_of(const Step& s) const
{
    Traffic t;
    const auto add = [](std::vector<int32_t>& list, int32_t b) { list.push_back(b); };
    if (s.kernel) {
        for (const Value& v : s.kernel->values)
            if (v.kind == ValueKind::Load || v.kind == ValueKind::Gather) add(t.reads, s.buffers[size_t(v.buffer)]);
        for (const StoreTo& to : s.kernel->stores) add(t.writes, s.buffers[size_t(to.buffer)]);
    } else {
        for (const View& v : s.in) add(t.reads, v.buffer);
        add(t.writes, s.out.buffer);
    }
    for (std::vector<int32_t>* list : {&t.reads, &t.writes}) {
        std::ranges::sort(*list);
        list->erase(std::unique(list->begin(), list->end()), list->end());
    }
    return t;
}

std::string Explainer::why(const Step& s, const Traffic& t) const
{
    if (!s.kernel && !s.node) return "the output may share memory with what is read until the end, so it is copied there last";
    if (!s.kernel) {
        if (s.in_place) return "a call of its own, written in place: only the elements that are put are touched";
        return text("a call of its own: ", name_of(s.node->op), " reads ", counted(s.in.size(), "operand"), " from memory");
    }
    size_t folds = 0, passes = 0;
    for (const Value& v : s.kernel->values) folds += v.kind == ValueKind::Fold;
    for (const KernelAxis& a : s.kernel->axes) passes += a.reduced;
    std::string said = text("fused: ", counted(s.kernel->values.size(), "value"), ", ", counted(folds, "fold"), ", ", counted(s.kernel->stores.size(), "store"));
    said += text(" in one loop nest of depth ", s.kernel->axes.size(), passes ? text(", ", passes, " of it reduced") : "");
    return said + text(", reading ", counted(t.reads.size(), "buffer"));
}

// Of a fused step: why what it reads from steps before it was stored, not computed in it. Empty: it reads nothing of theirs.
std::string Explainer::split(size_t at, const Traffic& t) const
{
    const auto space = [](const Step& s) {
        std::string kept, reduced;
        for (const KernelAxis& a : s.kernel->axes) (a.reduced ? reduced : kept) += (a.reduced ? reduced : kept).empty() ? a.extent.text() : " x " + a.extent.text();
        return text(kept.empty() ? "1" : kept, reduced.empty() ? "" : " rows over ", reduced);
    };
    std::string all;
    for (const int32_t b : t.reads) {
        if (plan_.buffers[size_t(b)].place != Place::Work) continue;
        for (size_t p = at; p-- > 0;) {
            const Step& from = plan_.steps[p];
            const Traffic wrote = traffic_of(from);
            if (!std::ranges::binary_search(wrote.writes, b)) continue;
            all += text(all.empty() ? "" : "; ", "b", b, " comes from step ", p, ": ");
            if (!from.kernel) all += text(from.node ? name_of(from.node->op) : "copy", " is a call of its own");
            else if (space(from) != space(plan_.steps[at])) all += text("another loop nest, ", space(from), " beside ", space(plan_.steps[at]));
            else all += "it is needed elsewhere too, or whole before it is read";
            break;
        }
    }
    return all;
}

void Explainer::code(const StepCode& code, const Cost& cost)
{
    if (code.tier.empty()) return;
    json_.member("tier", code.tier);
    if (code.bytes_per_us > 0 && code.instructions_per_us > 0) {
        const double memory_us = double(cost.moved_bytes) / code.bytes_per_us, arithmetic_us = double(cost.instructions) / code.instructions_per_us;
        json_.member("bound", arithmetic_us > memory_us ? "arithmetic" : "memory").member("memory_us", memory_us).member("arithmetic_us", arithmetic_us);
    }
    if (code.list_bytes) json_.member("list_bytes", code.list_bytes);
    json_.key("texts").open('[');
    for (const CodeText& t : code.texts) {
        json_.open('{').member("for", t.name).member("state", t.state).member("key", t.key).member("code_bytes", t.code_bytes);
        json_.member("registers", t.registers).member("local_bytes", t.local_bytes).member("shared_bytes", t.shared_bytes);
        json_.member("threads", t.threads).member("source", t.source).close('}');
    }
    json_.close(']');
}

void Explainer::kernel(const Step& s)
{
    json_.key("space").open('[');
    for (const KernelAxis& a : s.kernel->axes) json_.open('[').value(a.extent).value(a.reduced ? "reduced" : "kept").close(']');
    json_.close(']');
    std::map<std::string, uint64_t> ops;
    for (const Value& v : s.kernel->values)
        if (v.kind == ValueKind::Map || v.kind == ValueKind::Fold) ops[name_of(v.op)]++;
    json_.key("ops").open('{');
    for (const auto& [name, count] : ops) json_.key(name).value(count);
    json_.close('}');
    json_.key("tape").open('[');
    for (size_t i = 0; i < s.kernel->values.size() && lines_ < MAX_LISTED; i++, lines_++) json_.value(line_of_value(*s.kernel, i, s.buffers));
    for (size_t i = 0; i < s.kernel->stores.size() && lines_ < MAX_LISTED; i++, lines_++) json_.value(line_of_store(*s.kernel, i, s.buffers));
    json_.close(']');
}

void Explainer::step(size_t at)
{
    const Step& s = plan_.steps[at];
    const Traffic t = traffic_of(s);
    const Cost cost = cost_of(s, variables_);
    json_.open('{').member("id", uint64_t(at)).member("kind", s.kernel ? "fused" : s.node ? name_of(s.node->op) : "copy").member("name", s.name);
    const auto ids = [&](const char* key, const auto& list) {
        json_.key(key).open('[');
        for (const auto i : list) json_.value(i);
        json_.close(']');
    };
    ids("reads", t.reads), ids("writes", t.writes), ids("after", s.after), ids("nodes", step_nodes_[at]);
    if (s.kernel) kernel(s);
    json_.member("moved_bytes", cost.moved_bytes).member("flops", cost.flops).member("why", why(s, t));
    if (s.kernel)
        if (const std::string said = split(at, t); !said.empty()) json_.member("split", said);
    if (at < codes_.size()) code(codes_[at], cost);
    json_.close('}');
}

void Explainer::list_steps()
{
    json_.key("steps").open('[');
    for (size_t i = 0; i < plan_.steps.size() && i < MAX_LISTED; i++) step(i);
    json_.close(']');
}

std::string Explainer::run()
{
    const Cost cost = cost_of(plan_, variables_);
    uint64_t temporary = 0;
    for (const Buffer& b : plan_.buffers)
        if (b.place == Place::Work && __builtin_add_overflow(temporary, bytes_of_buffer(b), &temporary)) temporary = UINT64_MAX;
    json_.open('{');
    json_.member("moved_bytes", cost.moved_bytes).member("flops", cost.flops);
    json_.member("workspace_unshared_bytes", temporary);         // before temporaries whose lives do not meet share
    json_.member("scalar_bytes", plan_.scalar_bytes).member("checks", uint64_t(plan_.checks.size()));
    json_.key("lengths").open('[');
    for (int32_t v = 0; v < plan_.lengths; v++) json_.value(variables_[size_t(v)]);
    json_.close(']');
    list_nodes(), list_buffers(), list_steps();
    const bool truncated = graph_.size() > MAX_LISTED || plan_.buffers.size() > MAX_LISTED || plan_.steps.size() > MAX_LISTED || lines_ >= MAX_LISTED;
    json_.member("truncated", truncated);
    json_.close('}');
    return json_.str();
}

}  // namespace

std::string explain(const Plan& plan, std::span<const NodeRef> roots, std::span<const int64_t> variables, std::span<const StepCode> codes)
{
    return Explainer(plan, roots, variables, codes).run();
}

}  // namespace ng
