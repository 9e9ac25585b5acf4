// All outputs of a program at once, as its users run it: compiled or evaluated, in others' memory, with lengths.
#pragma once
#include "tests/random/trial.h"

namespace programs {

class Fused {
  public:
    Fused(ng_ctx* c, const Table& table, const Program& program);      // builds
    void compile() { if (p_.compiled) prog_ = compiled(outputs_); }
    // The outputs, dense and row-major. Of those that are not wanted nothing; a saved program runs in place of this one.
    std::vector<Bytes> run(size_t r, uint64_t wanted = ~uint64_t(0), ng_prog* other = nullptr);
    ProgRef saved_and_loaded();
    // The program that the outputs' texts say, in a scope of its own.
    ProgRef from_texts();
    std::string texts() const;

  private:
    Dims tensor_dims(const Extents& dims, size_t r) const;       // longer where heads are lent
    Dims dims_of(const Extents& dims, size_t r) const { return values_of(dims, p_.runs[r]); }
    Placed place_input(const Input& in, size_t r) const;
    void write_input(const Input& in, Placed& at, size_t r) const;
    TensorRef head_of(ng_tensor* t, const Dims& whole, const Dims& head) const;
    ng_shape declared(const Extents& dims, const Placed& at, bool any) const;
    bool lends_heads(const Extents& dims) const { return p_.heads && !is_static(dims); }
    static bool is_static(const Extents& dims);
    std::vector<ng_expr*> build_in(ng_scope* scope);
    ProgRef compiled(std::span<ng_expr* const> outputs);
    struct Target {
        Placed    at;
        TensorRef inside;        // of an input's memory
        Dims      dims;
        ng_tensor* tensor() const { return inside.get() ? inside.get() : at.tensor.get(); }
    };
    Target target(const Output& o, size_t r, std::vector<Placed>& inputs) const;
    void call(size_t r, ng_prog* prog, std::vector<Placed>& inputs, std::vector<Target>& targets, uint64_t wanted);
    bool shows_lengths(ng_prog* prog) const;
    Bytes result(const Output& o, Target& t, size_t r) const;
    void check_inputs(size_t r, std::vector<Placed>& inputs) const;

    ng_ctx*        c_;
    const Table&   table_;
    const Program& p_;
    ScopeRef       scope_;
    std::vector<Placed>   first_;       // inputs of the first run: leaves' tensors, and what params are declared by
    std::vector<ng_expr*> exprs_, outputs_;
    ProgRef        prog_;
};

}  // namespace programs
