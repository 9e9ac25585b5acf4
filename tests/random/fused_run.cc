// A program through ng_compile and ng_prog_run, or ng_eval: arguments placed, outputs laid over them, results fetched.
#include "tests/random/fused_run.h"

#include <algorithm>
#include <cstring>

namespace programs {
namespace {

constexpr int64_t LONGER = 3;        // what a tensor that lends its head has more
constexpr int64_t SPARE_ROWS = 4;    // of an input that an output may be shifted over

}  // namespace

bool Fused::is_static(const Extents& dims)
{
    return std::ranges::all_of(dims, [](const Polynomial& d) { return d.is_constant(); });
}

Fused::Fused(ng_ctx* c, const Table& table, const Program& program) : c_(c), table_(table), p_(program), scope_(ng_scope_create(c, 0))
{
    for (const Input& in : p_.inputs) first_.push_back(place_input(in, 0));
    exprs_ = build_in(scope_.get());
    for (const Output& o : p_.outputs) outputs_.push_back(exprs_[size_t(o.node)]);
}

// ---- places

Dims Fused::tensor_dims(const Extents& dims, size_t r) const
{
    Dims d = dims_of(dims, r);
    if (p_.heads)
        for (size_t a = 0; a < d.size(); a++)
            if (!dims[a].is_constant() && dims[a].dim()) d[a] += LONGER;
    return d;
}

TensorRef Fused::head_of(ng_tensor* t, const Dims& whole, const Dims& head) const
{
    ng_tensor_retain(t);
    TensorRef part(t);
    for (size_t a = 0; a < head.size(); a++)
        if (head[a] != whole[a]) part = part_of(part.get(), int32_t(a), 0, head[a], 1);
    return part;
}

Placed Fused::place_input(const Input& in, size_t r) const
{
    const bool shared = std::ranges::any_of(p_.outputs, [&](const Output& o) { return o.over >= 0 && &p_.inputs[size_t(o.over)] == &in; });
    Placed at = placed(c_, in.type, tensor_dims(in.dims, r), lends_heads(in.dims) ? Lie::Dense : in.lie, shared ? SPARE_ROWS : 0);
    write_input(in, at, r);
    return at;
}

void Fused::write_input(const Input& in, Placed& at, size_t r) const
{
    const Dims dims = dims_of(in.dims, r);
    write(c_, head_of(at.tensor.get(), at.dims, dims).get(), in.type, dims, *in.values[r]);
}

ng_shape Fused::declared(const Extents& dims, const Placed& at, bool any) const
{
    ng_shape d = shape_of(at.type, face_dims(dims));
    if (any) d.flags = NG_ANY;
    if (any || !is_static(dims)) return d;
    ng_shape actual{};
    actual.size = sizeof actual;
    ng_tensor_shape(at.tensor.get(), &actual);
    d.flags = NG_STRIDED;
    std::copy(actual.strides, actual.strides + dims.size(), d.strides);
    return d;
}

// ---- building

std::vector<ng_expr*> Fused::build_in(ng_scope* scope)
{
    std::vector<ng_expr*> exprs;
    for (const Node& n : p_.nodes) {
        std::vector<ng_expr*> args;
        for (const int a : n.args) args.push_back(exprs[size_t(a)]);
        if (n.form == Form::Input) {
            const Input& in = p_.inputs[size_t(n.ints[0])];
            const ng_shape d = declared(in.dims, first_[size_t(n.ints[0])], in.any_strides);
            if (in.source == Input::Leaf || !p_.compiled) exprs.push_back(ng_leaf(scope, first_[size_t(n.ints[0])].tensor.get()));
            else exprs.push_back(in.source == Input::Scalar ? ng_scalar(scope, in.type, uint32_t(in.slot)) : ng_param(scope, uint32_t(in.slot), &d));
        } else {
            exprs.push_back(expression_of(table_, p_, n, scope, args, nullptr));
        }
        check_shape(n, exprs.back(), nullptr);
    }
    return exprs;
}

ProgRef Fused::compiled(std::span<ng_expr* const> outputs)
{
    std::vector<ng_shape> shapes(p_.outputs.size());
    std::vector<const ng_shape*> layouts;
    std::vector<int32_t> alias;
    std::vector<Placed> inputs;
    for (size_t i = 0; i < p_.outputs.size(); i++) {
        const Output& o = p_.outputs[i];
        Extents dims = p_.nodes[size_t(o.node)].dims;
        alias.push_back(o.over < 0 ? -1 : p_.inputs[size_t(o.over)].slot);
        const bool plain = o.lie == Lie::Dense && !o.repeat && !o.any_strides;
        if (o.repeat) dims.insert(dims.begin(), o.repeat);
        if (!plain && has_face(dims)) {
            if (o.over >= 0) shapes[i] = shape_of(p_.nodes[size_t(o.node)].type, face_dims(dims)), shapes[i].flags = NG_ANY;
            else {
                const Target t = target(o, 0, inputs);
                shapes[i] = declared(dims, t.at, o.any_strides || (!is_static(dims) && o.lie != Lie::Dense && o.lie != Lie::Shifted));
            }
        }
        layouts.push_back(!plain && has_face(dims) ? &shapes[i] : nullptr);
    }
    Dims most = p_.runs[0];
    for (const Dims& lengths : p_.runs)
        for (size_t k = 0; k < most.size(); k++) most[k] = std::max(most[k], lengths[k] + p_.slack);
    ng_compile_desc d{};
    d.size = sizeof d, d.alias = alias.data(), d.out = layouts.data(), d.length_max = most.data(), d.nlength = uint32_t(most.size());
    ProgRef prog;
    ng_error error{};
    check(ng_compile(c_, &d, outputs.data(), uint32_t(outputs.size()), prog.put(), &error), error, "ng_compile");
    check(ng_prog_wait(prog.get(), UINT64_MAX, &error), error, "ng_prog_wait");
    return prog;
}

// ---- running

Fused::Target Fused::target(const Output& o, size_t r, std::vector<Placed>& inputs) const
{
    const Node& n = p_.nodes[size_t(o.node)];
    Target t;
    t.dims = tensor_dims(n.dims, r);
    if (o.repeat) t.dims.insert(t.dims.begin(), o.repeat);
    if (o.over < 0) {
        t.at = placed(c_, n.type, t.dims, lends_heads(n.dims) ? Lie::Dense : o.lie);
        return t;
    }
    t.inside = part_of(inputs[size_t(o.over)].base.get(), 0, o.shift, o.shift + t.dims[0], 1);
    if (o.lie == Lie::Flipped) t.inside = part_of(t.inside.get(), 0, NG_END, NG_END, -1);
    return t;
}

bool Fused::shows_lengths(ng_prog* prog) const
{
    Dims shown(p_.runs[0].size(), 0);
    ng_prog_info info{};
    info.size = sizeof info;
    ng_error error{};
    check(ng_prog_get_info(prog, &info, &error), error, "ng_prog_get_info");
    for (uint32_t i = 0; i < info.nargs; i++) {
        ng_shape d{};
        d.size = sizeof d;
        const char* name = nullptr;
        if (ng_prog_port(prog, i, &d, &name, &error) != NG_OK) continue;        // a hole
        for (int32_t a = 0; a < d.ndim; a++)
            if (d.dims[a] < 0 && d.dims[a] != NG_REST) shown[size_t(-1 - d.dims[a])] = 1;
    }
    return std::ranges::count(shown, 0) == 0;
}

void Fused::call(size_t r, ng_prog* prog, std::vector<Placed>& inputs, std::vector<Target>& targets, uint64_t wanted)
{
    ng_error error{};
    std::vector<ng_tensor*> out, args;
    std::vector<unsigned char> scalars;
    for (size_t i = 0; i < targets.size(); i++) out.push_back(wanted >> i & 1 ? targets[i].tensor() : nullptr);
    if (!p_.compiled) {
        const ng_status status = ng_eval(c_, nullptr, outputs_.data(), out.data(), uint32_t(out.size()), &error);
        return check(status, error, "ng_eval of all outputs");
    }
    for (size_t i = 0; i < inputs.size(); i++) {
        const Input& in = p_.inputs[i];
        if (in.source == Input::Param) {
            args.resize(std::max(args.size(), size_t(in.slot) + 1), nullptr);
            args[size_t(in.slot)] = inputs[i].tensor.get();
        } else if (in.source == Input::Scalar) {
            scalars.resize(std::max(scalars.size(), size_t(in.slot) + 8));
            std::memcpy(&scalars[size_t(in.slot)], in.values[r]->data(), in.values[r]->size());
        }
    }
    // Lengths are said where heads are lent and where no argument that the program kept shows them, else now and then.
    const bool said = p_.heads || p_.seed % 4 == 0 || !shows_lengths(prog);
    ng_run call{};
    call.size = sizeof call, call.nargs = uint32_t(args.size()), call.nout = uint32_t(out.size()), call.args = args.data(), call.out = out.data();
    call.scalars = scalars.data(), call.scalar_bytes = uint32_t(scalars.size());
    if (said) call.lengths = p_.runs[r].data(), call.nlength = uint32_t(p_.runs[r].size());
    check(ng_prog_run(prog, nullptr, &call, &error), error, "ng_prog_run");
}

Bytes Fused::result(const Output& o, Target& t, size_t r) const
{
    const Node& n = p_.nodes[size_t(o.node)];
    Dims dims = dims_of(n.dims, r);
    const auto bytes = size_t(count_of(dims) * element(n.type).bytes);
    if (o.repeat) dims.insert(dims.begin(), o.repeat);
    const TensorRef head = head_of(t.tensor(), t.dims, dims);
    Bytes all = read(c_, head.get(), n.type, dims);
    for (size_t at = bytes; at < all.size(); at += bytes)
        if (std::memcmp(all.data(), &all[at], bytes) != 0) throw Fault("an output that is broadcast is not the same in row " + std::to_string(at / bytes));
    if (t.inside.get()) return all.resize(bytes), all;
    write(c_, head.get(), n.type, dims, pattern(n.type, count_of(dims)));
    if (read(c_, t.at.tensor.get(), n.type, t.at.dims) != pattern(n.type, count_of(t.at.dims))) throw Fault("something was written behind an output's head");
    if (!surroundings_untouched(c_, t.at)) throw Fault("something was written beside an output");
    all.resize(bytes);
    return all;
}

void Fused::check_inputs(size_t r, std::vector<Placed>& inputs) const
{
    for (size_t i = 0; i < inputs.size(); i++) {
        const Input& in = p_.inputs[i];
        if (std::ranges::any_of(p_.outputs, [&](const Output& o) { return o.over == int(i); })) continue;
        const Dims dims = dims_of(in.dims, r);
        if (read(c_, head_of(inputs[i].tensor.get(), inputs[i].dims, dims).get(), in.type, dims) != *in.values[r]) throw Fault("an input has changed");
    }
}

std::vector<Bytes> Fused::run(size_t r, uint64_t wanted, ng_prog* other)
{
    // Leaves keep their tensors, everything else is placed anew.
    std::vector<Placed> fresh;
    for (size_t i = 0; i < p_.inputs.size(); i++) {
        if (p_.compiled && p_.inputs[i].source != Input::Leaf) fresh.push_back(place_input(p_.inputs[i], r));
        else write_input(p_.inputs[i], first_[i], r), fresh.push_back(std::move(first_[i]));
    }
    std::vector<Target> targets;
    for (const Output& o : p_.outputs) targets.push_back(target(o, r, fresh));
    call(r, other ? other : prog_.get(), fresh, targets, wanted);
    check_inputs(r, fresh);
    std::vector<Bytes> results;
    for (size_t i = 0; i < targets.size(); i++) results.push_back(wanted >> i & 1 ? result(p_.outputs[i], targets[i], r) : Bytes{});
    for (size_t i = 0; i < p_.inputs.size(); i++)
        if (!p_.compiled || p_.inputs[i].source == Input::Leaf) first_[i] = std::move(fresh[i]);
    return results;
}

// ---- the same program by other ways

ProgRef Fused::saved_and_loaded()
{
    ng_error error{};
    size_t bytes = 0;
    check(ng_prog_save(prog_.get(), 0, nullptr, &bytes, &error), error, "ng_prog_save");
    Bytes saved(bytes);
    check(ng_prog_save(prog_.get(), 0, saved.data(), &bytes, &error), error, "ng_prog_save");
    ProgRef loaded;
    check(ng_prog_load(c_, 0, saved.data(), bytes, loaded.put(), &error), error, "ng_prog_load");
    return loaded;
}

std::string Fused::texts() const
{
    std::string all;
    for (ng_expr* e : outputs_) all += text_of(e) + "\n";
    return all;
}

ProgRef Fused::from_texts()
{
    const ScopeRef scope(ng_scope_create(c_, 0));
    std::string names;
    std::vector<ng_expr*> values, parsed;
    std::vector<std::string> seen;
    for (size_t i = 0; i < p_.inputs.size(); i++) {
        const Input& in = p_.inputs[i];
        const std::string name = (in.source == Input::Scalar ? "s" : "p") + std::to_string(in.slot);
        if (std::ranges::find(seen, name) != seen.end()) continue;
        seen.push_back(name);
        names += (names.empty() ? "" : ",") + name;
        const ng_shape d = declared(in.dims, first_[i], in.any_strides);
        values.push_back(in.source == Input::Scalar ? ng_scalar(scope.get(), in.type, uint32_t(in.slot)) : ng_param(scope.get(), uint32_t(in.slot), &d));
    }
    for (size_t k = 0; k < p_.runs[0].size(); k++) {
        names += std::string(names.empty() ? "" : ",") + "n" + std::to_string(k + 1);
        values.push_back(ng_length(scope.get(), -1 - int64_t(k)));
    }
    ng_error error{};
    for (ng_expr* e : outputs_) {
        const std::string text = text_of(e);
        ng_expr* const again = ng_parse(scope.get(), text.c_str(), names.c_str(), values.data(), uint32_t(values.size()));
        ng_shape d{};
        d.size = sizeof d;
        check(ng_expr_shape(again, &d, &error), error, "ng_parse of " + text);
        parsed.push_back(again);
    }
    return compiled(parsed);
}

}  // namespace programs
