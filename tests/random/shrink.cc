// Fewer outputs, nodes turned into inputs of their computed values, plainer layouts, smaller extents, while it fails.
#include "tests/random/shrink.h"

#include "tests/random/meaning.h"

#include <algorithm>
#include <functional>

namespace programs {
namespace {

constexpr int MOST_TRIALS = 600;

class Shrinking {
  public:
    Shrinking(const Session& session, const Table& table, Program p, Verdict v) : session_(session), table_(table), best_{std::move(p), std::move(v)} {}
    Shrunk run()
    {
        while (round()) {}
        return std::move(best_);
    }

  private:
    bool round()
    {
        bool any = false;
        any |= plainer();
        for (size_t i = best_.program.outputs.size(); i-- > 0 && best_.program.outputs.size() > 1;)
            any |= change([&](Program& p) { return p.outputs.erase(p.outputs.begin() + long(i)), true; });
        for (size_t i = 0; i < best_.program.nodes.size(); i++) any |= change([&](Program& p) { return earlier_output(p, i); });
        for (size_t i = best_.program.nodes.size(); i-- > 0;) any |= change([&](Program& p) { return node_to_input(p, i); });
        for (size_t i = best_.program.nodes.size(); i-- > 0;) any |= change([&](Program& p) { return bypass(p, i); });
        any |= smaller();
        return any && trials_ < MOST_TRIALS;
    }
    // Keeps the change if it leaves a program that is right to ask for and still fails.
    bool change(const std::function<bool(Program&)>& make)
    {
        Program p = best_.program;
        if (trials_ >= MOST_TRIALS || !make(p)) return false;
        p = pruned(p);
        if (!infer_all(table_, p)) return false;
        trials_++;
        Verdict v = tried(session_, table_, p);
        if (v.fault.empty()) return false;
        best_ = {std::move(p), std::move(v)};
        return true;
    }

    bool plainer()
    {
        bool any = false;
        const auto flag = [&](bool Program::*f) { any |= best_.program.*f && change([&](Program& p) { return p.*f = false, true; }); };
        flag(&Program::twice), flag(&Program::adopt), flag(&Program::heads);
        any |= best_.program.slack && change([](Program& p) { return p.slack = 0, true; });
        any |= best_.program.world != World::One && change([](Program& p) { return p.world = World::One, true; });
        for (size_t r = best_.program.runs.size(); r-- > 0 && best_.program.runs.size() > 1;)
            any |= change([&](Program& p) {
                p.runs.erase(p.runs.begin() + long(r));
                for (Input& in : p.inputs) in.values.erase(in.values.begin() + long(r));
                return true;
            });
        for (size_t i = 0; i < best_.program.outputs.size(); i++)
            any |= change([&](Program& p) {
                if (i >= p.outputs.size()) return false;
                Output& o = p.outputs[i];
                const bool was_plain = o.lie == Lie::Dense && !o.any_strides && o.over < 0 && !o.repeat;
                return o = {o.node}, !was_plain;
            });
        for (size_t i = 0; i < best_.program.inputs.size(); i++)
            any |= change([&](Program& p) {
                if (i >= p.inputs.size()) return false;
                Input& in = p.inputs[i];
                const bool was_plain = in.lie == Lie::Dense && !in.any_strides;
                return in.lie = Lie::Dense, in.any_strides = false, !was_plain;
            });
        return any;
    }

    // The program ends at an inner node.
    static bool earlier_output(Program& p, size_t i)
    {
        if (i >= p.nodes.size() || p.nodes[i].weak || p.nodes[i].form == Form::Input || (p.outputs.size() == 1 && p.outputs[0].node == int(i))) return false;
        p.outputs = {{int(i)}};
        return true;
    }
    bool node_to_input(Program& p, size_t i) const
    {
        if (i >= p.nodes.size()) return false;
        Node& n = p.nodes[i];
        if (n.form == Form::Input || n.form == Form::Constant || !has_face(n.dims)) return false;
        Input in;
        in.type = n.type, in.dims = n.dims;
        in.source = p.compiled ? Input::Param : Input::Leaf;
        for (const Input& other : p.inputs) in.slot = std::max(in.slot, other.slot + 1);
        for (size_t r = 0; r < p.runs.size(); r++) {
            const auto& known = best_.verdict.node_values;
            if (r >= known.size() || i >= known[r].size()) return false;
            in.values.push_back(std::make_shared<const Bytes>(known[r][i]));
        }
        p.inputs.push_back(in);
        n = Node{.form = Form::Input, .ints = {int64_t(p.inputs.size()) - 1}};
        return true;
    }
    // What uses it uses its argument.
    static bool bypass(Program& p, size_t i)
    {
        if (i >= p.nodes.size()) return false;
        const Node& n = p.nodes[i];
        if (n.args.empty()) return false;
        const int to = n.args[0];
        for (Node& other : p.nodes)
            for (int& a : other.args)
                if (a == int(i)) a = to;
        for (Output& o : p.outputs)
            if (o.node == int(i)) o.node = to;
        return true;
    }

    // ---- extents
    bool smaller()
    {
        bool any = false;
        std::vector<int64_t> extents;
        for (const Input& in : best_.program.inputs)
            for (const Polynomial& d : in.dims)
                if (d.is_constant() && d.constant() > 1) extents.push_back(d.constant());
        std::sort(extents.begin(), extents.end());
        extents.erase(std::unique(extents.begin(), extents.end()), extents.end());
        for (const int64_t d : extents)
            for (const int64_t less : {int64_t(1), int64_t(2), d / 2, d - 1})
                if (less > 0 && less < d && change([&](Program& p) { return replace_extent(p, d, less); })) { any = true; break; }
        for (size_t k = 0; k < best_.program.runs[0].size(); k++)
            for (size_t r = 0; r < best_.program.runs.size(); r++)
                for (const int64_t less : {int64_t(1), int64_t(2), best_.program.runs[r][k] / 2, best_.program.runs[r][k] - 1})
                    if (less > 0 && less < best_.program.runs[r][k] && change([&](Program& p) {
                            Program old = p;
                            p.runs[r][k] = less;
                            return cut_inputs(old, p);
                        })) { any = true; break; }
        return any;
    }
    static bool replace_extent(Program& p, int64_t from, int64_t to)
    {
        const Program old = p;
        const auto replace = [&](Extents& dims) {
            for (Polynomial& d : dims)
                if (d.is(from)) d = to;
        };
        for (Input& in : p.inputs) replace(in.dims);
        for (Node& n : p.nodes) {
            if (n.form == Form::ConvDx || n.form == Form::ConvDw) replace(n.dims);
            const bool from_second = n.form == Form::Iota || n.form == Form::Random || n.form == Form::Window;
            if (n.form != Form::Reshape && n.form != Form::Broadcast && !from_second) continue;
            for (size_t i = from_second; i < n.ints.size(); i++)
                if (n.ints[i] == from) n.ints[i] = to;
        }
        return cut_inputs(old, p);
    }
    // The heads of the old values.
    static bool cut_inputs(const Program& old, Program& p)
    {
        for (size_t i = 0; i < p.inputs.size(); i++) {
            Input& in = p.inputs[i];
            const auto size = size_t(element(in.type).bytes);
            for (size_t r = 0; r < p.runs.size(); r++) {
                const Dims was = values_of(old.inputs[i].dims, old.runs[r]), now = values_of(in.dims, p.runs[r]);
                Bytes cut;
                each(now, [&](const Index& at, size_t) {
                    const auto from = size_t(flat(at, was)) * size;
                    cut.insert(cut.end(), in.values[r]->begin() + long(from), in.values[r]->begin() + long(from + size));
                });
                in.values[r] = std::make_shared<const Bytes>(std::move(cut));
            }
        }
        return true;
    }

    const Session& session_;
    const Table&   table_;
    Shrunk         best_;
    int            trials_ = 0;
};

}  // namespace

Shrunk shrunk(const Session& session, const Table& table, Program program, Verdict verdict)
{
    return Shrinking(session, table, std::move(program), std::move(verdict)).run();
}

}  // namespace programs
