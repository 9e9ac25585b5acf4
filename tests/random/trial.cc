// Where fused, unfused and expected values meet: bit for bit where the contract says so, within bounds elsewhere.
#include "tests/random/trial.h"

#include "tests/random/fused_run.h"
#include "tests/random/meaning.h"

#include <algorithm>
#include <cstring>

namespace programs {

namespace {

ContextRef created(const char* backend, uint32_t threads, uint32_t flags)
{
    ng_ctx_desc d{};
    d.size = sizeof d, d.version = NG_VERSION, d.backend = backend, d.cache_dir = "", d.threads = threads, d.flags = flags;
    // Elsewhere sums may depend on which tier runs, unless asked not to (contract P6); what is compared to the bit needs that.
    if (std::strcmp(backend, "cpu") != 0) d.flags |= NG_CTX_DETERMINISTIC;
    ContextRef c;
    ng_error error{};
    check(ng_ctx_create(&d, c.put(), &error), error, std::string("ng_ctx_create for ") + backend);
    return c;
}

}  // namespace

Session::Session(const char* backend)
{
    const auto make = [&](World w, uint32_t threads, uint32_t flags) { contexts_[size_t(w)] = created(backend, threads, flags); };
    make(World::One, 1, 0);
    make(World::Three, 3, 0);
    make(World::NoThreads, 0, NG_CTX_NO_THREADS);
    make(World::Deterministic, 3, NG_CTX_DETERMINISTIC);
    witnesses_.push_back({"the CPU's NG_CTX_REFERENCE", created("cpu", 1, NG_CTX_REFERENCE)});
    if (std::strcmp(backend, "cpu") != 0) witnesses_.push_back({"the CPU", created("cpu", 1, 0)});
}

namespace {

// Elements whose bound is beyond this share of 1 + their size say nothing: they are counted as not judged.
constexpr double TELLING = 0.05;

std::string digits(Real v)
{
    char text[64];
    std::snprintf(text, sizeof text, "%.21Lg", v);
    return text;
}

class Trial {
  public:
    Trial(const Session& session, const Table& table, const Program& program)
        : session_(session), c_(session.context(program.world)), table_(table), p_(program) {}
    Verdict run()
    {
        try {
            Fused fused(c_, table_, p_);
            v_.text = fused.texts();
            if (session_.shows) std::fprintf(stderr, "%s\n", v_.text.c_str());
            fused.compile();
            for (size_t r = 0; r < p_.runs.size(); r++) run_of(fused, r);
            if (p_.twice) again(fused);
            for (const Witness& w : session_.witnesses()) elsewhere(w);
        } catch (const std::exception& fault) {
            v_.fault = fault.what();
        }
        return std::move(v_);
    }

  private:
    void run_of(Fused& fused, size_t r)
    {
        results_.push_back(fused.run(r));
        if (!session_.pretended.empty()) spoil(results_.back());
        v_.node_values.emplace_back();
        std::vector<Value>& expected = expected_.emplace_back();
        if (!p_.wild)
            for (const Node& n : p_.nodes) {
                std::vector<const Value*> args;
                for (const int a : n.args) args.push_back(&expected[size_t(a)]);
                Value value = Meaning{table_, p_, n, r, args}.value();
                expected.push_back(std::move(value));
            }
        unfused(r, expected);
    }

    // The first element of every output that what is pretended to be wrong reaches is another one.
    void spoil(std::vector<Bytes>& results) const
    {
        std::vector<bool> reached;
        for (const Node& n : p_.nodes) reached.push_back(name_of(n) == session_.pretended || std::ranges::any_of(n.args, [&](int a) { return bool(reached[size_t(a)]); }));
        for (size_t o = 0; o < results.size(); o++) {
            const auto node = size_t(p_.outputs[o].node);
            const auto size = size_t(element(p_.nodes[node].type).bytes);
            if (!reached[node] || results[o].empty()) continue;
            if (is_float(p_.nodes[node].type)) results[o][size - 1] ^= 0x40;         // 0 becomes 2, another number very different
            else results[o][0] ^= 1;
        }
    }

    // ---- the whole program on another context: the same bits where no step may round as it likes
    void elsewhere(const Witness& witness)
    {
        Fused other(witness.context.get(), table_, p_);
        other.compile();
        for (size_t r = 0; r < p_.runs.size(); r++) {
            const std::vector<Bytes> got = other.run(r);
            std::vector<bool> exact;
            for (const Node& n : p_.nodes) {
                const bool stays = !rounds_freely(table_, n) && !(is_extreme(n) && has_negative_zero(n, r)) && !(reads_sign(n) && has_nan(n, r));
                exact.push_back(stays && std::ranges::all_of(n.args, [&](int a) { return bool(exact[size_t(a)]); }));
            }
            for (size_t o = 0; o < got.size(); o++) {
                const auto node = size_t(p_.outputs[o].node);
                const ng_dtype t = p_.nodes[node].type;
                where_ = "run " + std::to_string(r) + ", output " + std::to_string(o) + " " + name_of(p_.nodes[node]);
                if (!p_.wild) judge(t, got[o], expected_[r][node], std::string("on ") + witness.name);
                if (exact[node]) same_bits(t, results_[r][o], got[o], "the value", witness.name);
            }
        }
    }

    // ---- node by node
    void unfused(size_t r, const std::vector<Value>& expected)
    {
        const ScopeRef scope(ng_scope_create(c_, 0));
        std::vector<ng_expr*> leaves;
        std::vector<bool> exact;
        std::vector<TensorRef> tensors;
        for (size_t i = 0; i < p_.nodes.size(); i++) {
            const Node& n = p_.nodes[i];
            where_ = "run " + std::to_string(r) + ", node " + std::to_string(i) + " " + name_of(n);
            std::vector<ng_expr*> args;
            bool is_exact = !rounds_by_order(table_, n) && !(is_extreme(n) && has_negative_zero(n, r));
            for (const int a : n.args) args.push_back(leaves[size_t(a)]), is_exact = is_exact && exact[size_t(a)];
            if (n.weak) {
                leaves.push_back(expression_of(table_, p_, n, scope.get(), args, &p_.runs[r]));
                v_.node_values[r].emplace_back(), exact.push_back(true), tensors.emplace_back();
                continue;
            }
            TensorRef t = evaluated(n, r, scope.get(), args);
            const Dims dims = values_of(n.dims, p_.runs[r]);
            Bytes bytes = read(c_, t.get(), n.type, dims);
            if (!p_.wild) judge(n.type, bytes, expected[i], "unfused");
            is_exact = compare(i, r, bytes, is_exact, expected);
            if (n.form != Form::Input && p_.adopt && adopted_ >= 0) {
                bytes = results_[r][size_t(adopted_)];
                write(c_, t.get(), n.type, dims, bytes);
            }
            v_.node_values[r].push_back(bytes), exact.push_back(is_exact);
            leaves.push_back(ng_leaf(scope.get(), t.get()));
            tensors.push_back(std::move(t));
        }
    }
    TensorRef evaluated(const Node& n, size_t r, ng_scope* scope, const std::vector<ng_expr*>& args)
    {
        const Dims dims = values_of(n.dims, p_.runs[r]);
        TensorRef t;
        ng_error error{};
        if (n.form == Form::Input) {
            const ng_shape d = shape_of(n.type, dims);
            check(ng_tensor_create(c_, &d, t.put(), &error), error, "ng_tensor_create");
            write(c_, t.get(), n.type, dims, *p_.inputs[size_t(n.ints[0])].values[r]);
            return t;
        }
        ng_expr* const e = expression_of(table_, p_, n, scope, args, &p_.runs[r]);
        const ng_status status = ng_eval(c_, nullptr, &e, t.put(), 1, &error);
        if (status != NG_OK) throw Fault(where_ + ": ng_eval: " + error.text);
        check_shape(n, e, &p_.runs[r]);
        return t;
    }

    // ---- fused against unfused and expected; whether what follows may be compared bit by bit
    bool compare(size_t node, size_t r, const Bytes& bytes, bool is_exact, const std::vector<Value>& expected)
    {
        adopted_ = -1;
        for (size_t o = 0; o < p_.outputs.size(); o++) {
            if (size_t(p_.outputs[o].node) != node) continue;
            const Bytes& got = results_[r][o];
            const ng_dtype t = p_.nodes[node].type;
            if (!p_.wild) judge(t, got, expected[node], "fused, output " + std::to_string(o));
            if (is_exact) same_bits(t, got, bytes, "output " + std::to_string(o) + ", fused", "unfused");
            if (!is_exact) adopted_ = int(o);
        }
        return is_exact || (p_.adopt && adopted_ >= 0);
    }
    void same_bits(ng_dtype t, const Bytes& got, const Bytes& want, const std::string& what, const char* other)
    {
        const auto size = size_t(element(t).bytes);
        v_.bit_equal += want.size() / size;
        if (got == want) return;
        for (size_t i = 0; i < want.size() / size; i++) {
            if (std::memcmp(&got[i * size], &want[i * size], size) == 0) continue;
            const Real a = load(t, &got[i * size]), b = load(t, &want[i * size]);
            if (a != a && b != b) continue;
            throw Fault(where_ + ": " + what + " [" + std::to_string(i) + "] is " + digits(a) + ", " + other + ": " + digits(b) + ", should be equal to the bit");
        }
    }
    void judge(ng_dtype t, const Bytes& bytes, const Value& want, const std::string& what)
    {
        const auto size = size_t(element(t).bytes);
        if (want.type != t || bytes.size() != want.cells.size() * size) throw Fault(where_ + ": the reference has another shape");
        for (size_t i = 0; i < want.cells.size(); i++) {
            const Cell& c = want.cells[i];
            const Real got = load(t, &bytes[i * size]);
            const bool tells = is_bool(t) ? c.off < 0.5 : c.off <= TELLING * (1 + double(std::abs(c.v)));
            ++(tells || c.v != c.v || std::isinf(c.v) ? v_.judged : v_.not_judged);
            if (!(c.off < INFINITY)) continue;
            const bool right = c.v != c.v ? got != got : got == c.v || std::abs(got - c.v) <= Real(c.off) * Real(1.000001);
            if (!right)
                throw Fault(where_ + ": " + what + " [" + std::to_string(i) + "] is " + digits(got) + ", should be " + digits(c.v) + " +- " + digits(Real(c.off)));
        }
    }
    bool is_extreme(const Node& n) const
    {
        if (!is_float(n.type)) return false;
        return n.form == Form::Reduce || (n.form == Form::Pool && n.pool.kind == NG_POOL_MAX);
    }
    bool reads_sign(const Node& n) const { return n.form == Form::Bitcast || name_of(n) == "signbit" || name_of(n) == "copysign"; }
    // Of two zeros either is the greatest, and devices write NaN each in their own way.
    bool has_negative_zero(const Node& n, size_t r) const { return is_any_read(n, r, [](Real v) { return v == 0 && std::signbit(v); }); }
    bool has_nan(const Node& n, size_t r) const { return is_any_read(n, r, [](Real v) { return v != v; }); }
    bool is_any_read(const Node& n, size_t r, bool (*is_so)(Real)) const
    {
        for (const int arg : n.args) {
            const Bytes& x = v_.node_values[r][size_t(arg)];
            const ng_dtype t = p_.nodes[size_t(arg)].type;
            for (size_t i = 0; is_float(t) && i < x.size(); i += size_t(element(t).bytes))
                if (is_so(load(t, &x[i]))) return true;
        }
        return false;
    }

    // ---- E6, E7, P8: fewer outputs, saved and loaded, written and read
    void again(Fused& fused)
    {
        const size_t last = p_.runs.size() - 1, outputs = p_.outputs.size();
        const bool has_leaf = [&] {
            for (const Input& in : p_.inputs)
                if (in.source == Input::Leaf) return true;
            return false;
        }();
        // In an evaluation there is no output that is not wanted: it runs once more.
        const uint64_t wanted = p_.compiled ? p_.seed % (uint64_t(1) << outputs) : ~uint64_t(0);
        equal(fused.run(last, wanted), last, wanted, "with some outputs only");
        if (!p_.compiled || has_leaf) return;
        const ProgRef loaded = fused.saved_and_loaded();
        equal(fused.run(last, ~uint64_t(0), loaded.get()), last, ~uint64_t(0), "saved and loaded");
        const ProgRef parsed = fused.from_texts();
        equal(fused.run(last, ~uint64_t(0), parsed.get()), last, ~uint64_t(0), "from its text");
    }
    void equal(const std::vector<Bytes>& got, size_t r, uint64_t wanted, const std::string& what)
    {
        for (size_t o = 0; o < got.size(); o++) {
            where_ = "output " + std::to_string(o);
            if (wanted >> o & 1) same_bits(p_.nodes[size_t(p_.outputs[o].node)].type, got[o], results_[r][o], what, "before");
        }
    }

    std::string name_of(const Node& n) const { return n.row >= 0 ? table_.rows[size_t(n.row)].name : form_name(n.form); }

    const Session& session_;
    ng_ctx*        c_;
    const Table&   table_;
    const Program& p_;
    Verdict        v_;
    std::vector<std::vector<Bytes>> results_;     // [run][output]
    std::vector<std::vector<Value>> expected_;    // [run][node], of programs that are not wild
    std::string    where_;
    int            adopted_ = -1;
};

}  // namespace

Verdict tried(const Session& session, const Table& table, const Program& program) { return Trial(session, table, program).run(); }

}  // namespace programs
