// Nodes as calls of ng.h, and tensors that lie in others' memory: all that the random programs ask of the library.
#pragma once
#include "tests/random/graph_of_program.h"

#include <span>
#include <stdexcept>
#include <string>
#include <utility>

namespace programs {

// What the library refused that it should have done, and other findings: a sentence.
struct Fault : std::runtime_error {
    using std::runtime_error::runtime_error;
};
void check(ng_status status, const ng_error& error, const std::string& what);

ng_shape shape_of(ng_dtype t, const Dims& dims);
// The dims as ng.h writes them; throws where one is no constant or length.
Dims face_dims(const Extents& dims);
bool has_face(const Extents& dims);

// One reference, released at the end.
template <class T, void (*RELEASE)(T*)>
class Held {
  public:
    explicit Held(T* t = nullptr) : t_(t) {}
    Held(Held&& other) noexcept : t_(std::exchange(other.t_, nullptr)) {}
    Held& operator=(Held&& other) noexcept { return std::swap(t_, other.t_), *this; }
    ~Held() { RELEASE(t_); }
    T* get() const { return t_; }
    T** put() { return &t_; }

  private:
    T* t_;
};
using ContextRef = Held<ng_ctx, ng_ctx_release>;
using TensorRef = Held<ng_tensor, ng_tensor_release>;
using ScopeRef = Held<ng_scope, ng_scope_release>;
using ProgRef = Held<ng_prog, ng_prog_release>;

// The node's expression. lengths: extents are these numbers; null: they are known when run. Inputs are not built here.
ng_expr* expression_of(const Table& table, const Program& program, const Node& node, ng_scope* scope, std::span<ng_expr* const> args, const Dims* lengths);
std::string text_of(const ng_expr* e);
// Of the type and dims that the contract says; throws Fault.
void check_shape(const Node& node, const ng_expr* e, const Dims* lengths);

// A tensor within a dense one.
struct Placed {
    TensorRef base, tensor;
    ng_dtype  type = 0;
    Dims      dims, base_dims;
};
Placed placed(ng_ctx* c, ng_dtype t, const Dims& dims, Lie lie, int64_t spare_rows = 0);
TensorRef part_of(ng_tensor* t, int32_t axis, int64_t start, int64_t stop, int64_t step);
void   write(ng_ctx* c, ng_tensor* t, ng_dtype type, const Dims& dims, const Bytes& values);
Bytes  read(ng_ctx* c, ng_tensor* t, ng_dtype type, const Dims& dims);
Bytes  pattern(ng_dtype t, int64_t count);                     // what lies where nothing was written
// Whether what surrounds the tensor still is the pattern. Overwrites the tensor.
bool   surroundings_untouched(ng_ctx* c, Placed& p);

}  // namespace programs
