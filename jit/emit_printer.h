// The printer of CUDA's forms: its state, and what its two halves, walks and whole functions, call of each other.
#pragma once
#include "jit/emit_vectors.h"

namespace ng::emitting {

class FormPrinter {
  public:
    FormPrinter(const Arranged& a, const Dialect& dialect, const LaunchClass& c)
        : a_(a), kernel_(a.kernel), dialect_(dialect), c_(c), helpers_(dialect, c.form == Form::Columns && c.is_split, c.is_staying), words_(a, c, dialect, helpers_, numbers_), single_class_(c), at_(words_.at()) { single_class_.width = single_class_.held = 1, single_class_.is_staying = single_class_.is_keeping = false; }
    KernelSource print();

  private:
    // How a thread goes over points: `count` vectors, `step` points apart; guarded: some may lie behind the last.
    // There: what it loads was sent before.
    struct Batch { int32_t pass; std::string count; bool is_guarded; bool is_there = false; };

    void line(const std::string& s) { body_ += std::string(size_t(depth_) * 4, ' ') + s + "\n"; }
    void unroll() { body_ += "#pragma unroll\n"; }
    void open(const std::string& s) { line(s + " {"), depth_++; }
    void close() { depth_--, line("}"); }
    void open_lanes() { unroll(), open("for (i32 j = 0; j < WIDTH; j++)"), words_.enter_lanes(); }
    void close_lanes() { words_.leave_lanes(), close(); }
    std::string cut(const char* name, Cut cut) { return numbers_.add(name, {NumberKind::Cut, cut == Cut::Region ? Dtype::i64 : Dtype::i32, 0, 0, int64_t(cut)}); }
    bool is_wanted(size_t v, Level level) const { return a_.passes.wanted[v] && a_.passes.level[v] == level && (kernel_.values[v].kind != ValueKind::Fold || a_.passes.is_running(v)); }
    bool is_full_load(size_t v) const { return is_wanted(v, Level::Full) && kernel_.values[v].kind == ValueKind::Load; }
    // Computed in this pass, which a value is not that was kept before.
    bool is_in(size_t v, int32_t pass) const { return is_kept(v) ? a_.kept_from[v] == pass : (c_.form == Form::Held ? a_.held_wanted : a_.passes.wanted)[v] >> pass & 1; }
    bool is_kept(size_t v) const { return c_.form == Form::Held && a_.kept_from[v] >= 0; }
    bool is_held(size_t v) const { return c_.form == Form::Held && a_.is_held(int32_t(v)); }
    std::vector<size_t> folds_of(int32_t pass) const;
    bool runs(int32_t pass) const;
    FoldWords fold_words_of(size_t v) { return helpers_.team(kernel_.values[v].op, kernel_.values[size_t(kernel_.values[v].args[0])].type, a_.is_across, c_.form == Form::Held, a_.passes.running[v].kind); }
    // Of these a pass keeps what it adds up, and adds afterwards.
    static bool is_tree(const FoldWords& w) { return w.kind == FoldWords::Kind::Pair || w.kind == FoldWords::Kind::Tree; }
    // Along a row each vector's meet first, so that few are kept; blocks that stay add as they go.
    bool is_by_lanes(const FoldWords& w) const { return is_tree(w) && !a_.is_across && !c_.is_staying; }
    Batch held_batch(int32_t pass) const { return {pass, "HELD", !c_.is_full}; }
    int32_t least_blocks() const;

    void indices(const std::vector<int32_t>& axes, const std::string& number);
    void define(size_t v);
    void define_uniform();
    void define_row(int32_t pass);
    void define_inverses(int32_t pass);
    bool may_repeat(int32_t pass) const;
    // Where rows that are held have distances of their own, which are added to their pointers one by one; and where points are small, so that instructions count.
    bool is_hidden() const { return c_.form == Form::Held ? !c_.is_full : c_.form == Form::Points && has_small_points(a_); }
    std::string hidden(const std::string& pointer) const { return is_hidden() ? "hidden(" + pointer + ")" : pointer; }
    void pointer_to(size_t load);
    void pointers();
    void open_item(const Batch& b);
    void declare(const Batch& b, const std::vector<size_t>& loads);
    void begin_row(bool has_parts);
    void hold(const Batch& b, const std::vector<size_t>& loads);
    void hold_single(const std::vector<size_t>& loads);
    void fetch(const Batch& b, const std::vector<size_t>& loads);
    void compute(const Batch& b);
    void lanes(const Batch& b);
    void lane_indices();
    bool is_vector_store(size_t s, int32_t pass) const;
    void batch(const Batch& b);
    std::string tree(const std::string& array, int64_t from, int64_t count, const FoldWords& w);
    void add_pairs(const Batch& b);
    std::vector<size_t> loads_ahead(int32_t pass) const;
    void send(const std::vector<size_t>& loads, const std::string& from, const std::string& slot);
    void declare_ahead(const std::vector<size_t>& loads);
    void send_first(int32_t pass);
    void receive(const std::vector<size_t>& loads);
    void walk(int32_t pass);
    void start_folds(int32_t pass, bool is_walk);
    void take_running(size_t fold);
    // What runs takes one vector after the other: there are too many registers of them, or some have no points.
    bool is_by_vector(const Batch& b) const { return c_.form == Form::Held || b.is_guarded; }
    void meet_threads(size_t fold);
    std::string accumulated(size_t fold, bool is_walk);
    void finish(size_t fold, const std::string& all);
    void meet(int32_t pass, bool is_walk);
    void recall(int32_t pass);
    void join(int32_t stage, bool is_last);
    void last_rows();
    void scatter(int32_t pass);
    void write_partial(size_t fold, const std::string& part, const std::string& all);
    void gather(size_t fold, int32_t count, bool is_guarded);
    void gather(int32_t pass);
    std::string partial(size_t fold, const std::string& part);
    void row_stores();
    void shared();
    void span(bool has_parts);
    std::string place() const;
    void peel_vectors();
    void peel_single();
    void ask_for_single(const std::vector<size_t>& loads);
    void open_single();
    void close_single();
    void walk_single(int32_t pass);
    void lanes_of_held();
    void lanes_of_walked(bool has_parts, const std::string& block);
    void lanes_of_cluster();
    void place_tile();
    std::string extent_of(int32_t axis);
    std::string in_space();
    void read_lines(size_t v);
    void ask_ahead();
    void tiles();
    void open_tile_item();
    void meet_cluster(int32_t pass);
    std::vector<size_t> stayed() const;
    int32_t words_of(size_t v) const;
    void lanes_of_staying();
    void place_item(const std::string& item);
    void open_coming(const std::string& item, const std::vector<size_t>& loads);
    void close_coming_vectors();
    void ask_for(const std::string& item, const std::vector<size_t>& loads);
    int32_t at_once() const { return staying_at_once(c_.held); }
    void walk_staying(int32_t pass);
    void take_vectors(int32_t pass);
    void add_vector(int32_t pass);
    void add_staying(size_t fold);
    void meet_in_block(size_t fold);
    void tell_others(const std::vector<size_t>& folds);
    void join_told(const std::vector<size_t>& folds, const std::string& turn);
    void meet_staying(int32_t pass);
    void define_columns(int32_t pass, const std::string& item);
    void define_item(int32_t pass, const std::string& item) { a_.is_across ? define_columns(pass, item) : define_row(pass); }
    void declare_staying(const std::vector<size_t>& loads);
    void hold_in(const std::vector<size_t>& loads, const std::string& place);
    void stay();
    void ask_into(const std::string& place, const std::string& item, const std::vector<size_t>& loads);
    void guess(int32_t pass);
    std::string count_of(const std::string& part) const;
    std::string told(size_t fold, const std::string& own) const;
    std::string part_of(size_t fold, const std::string& turn) const;
    int32_t turns() const { return c_.is_ring ? RING_TURNS : 2; }
    void fold_coming(const std::vector<size_t>& loads);
    void store_going(const std::vector<size_t>& loads);
    void ring();
    bool is_chase() const { return c_.is_split && c_.form != Form::Held && chases(a_); }
    bool is_cluster() const { return c_.form == Form::Held && c_.is_split && !c_.is_staying; }
    void lanes_of_columns(bool has_parts, bool is_last);
    void points();
    void rows();
    void stage(int32_t stage);
    void walk_part(int32_t stage, const std::string& count);
    std::string counts();
    void clear_counts();
    void share(const std::string& name, const std::string& value);
    void chase();
    void function(KernelSource& source, const std::string& name);
    int32_t slot(size_t fold) const;
    std::string head() const;

    const Arranged& a_;
    const Kernel&   kernel_;
    const Dialect&  dialect_;
    LaunchClass     c_;
    Helpers         helpers_;
    Numbers         numbers_;
    VectorWords     words_;
    LaunchClass     single_class_;       // of a single element; where that is printed, that of the form
    std::string     at_;
    std::string     body_, functions_;
    int32_t         depth_ = 1;
    bool            has_met_ = false;    // blocks of a cluster did
};

}  // namespace ng::emitting
