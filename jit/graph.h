// The graph: immutable tensor-valued nodes, and the table in which equal nodes are one node.
#pragma once
#include "jit/error.h"
#include "jit/extent.h"
#include "jit/flat_map.h"
#include "jit/growing.h"
#include "jit/ops.h"
#include "jit/ref.h"
#include "jit/zeroed.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace ng {

struct Node;
using NodeRef = Ref<const Node>;
void destroy(const Node* node) noexcept;     // iterative: a chain of a million nodes is no recursion

// A leaf's tensor, read by some while others bind it anew. The lock is its own: those of std::atomic_load are the process's,
// and a child of a fork may find them taken for ever. It never reads its parent's leaves.
class LeafTensor {
  public:
    LeafTensor& operator=(std::shared_ptr<void> tensor) noexcept    // of a node that nobody shares yet
    {
        tensor_ = std::move(tensor);
        return *this;
    }
    std::shared_ptr<void> get() const noexcept;
    const void* address() const noexcept;
    void bind(std::shared_ptr<void> tensor) noexcept;
    uint32_t binds() const noexcept { return state_.load(std::memory_order_acquire) / 2; }

  private:
    uint32_t lock() const noexcept;          // gives the state as it was
    void unlock(uint32_t state) const noexcept { state_.store(state, std::memory_order_release); }

    mutable std::atomic<uint32_t> state_{0};     // binds * 2, + 1 while locked
    std::shared_ptr<void> tensor_;
};

// What few nodes have.
struct NodeExtra {
    std::vector<NodeRef>  args;              // all of them, where there are more than three
    std::vector<int64_t>  ints;
    Extents               extents;
    std::string           text;              // a tag's name
    mutable LeafTensor    tensor;            // a leaf's
    std::unique_ptr<Error> error;            // a poison's
    bool equals(const NodeExtra& other) const;
};

// Invariants: a map's operands have its shape, and the type that it computes in (but where's condition); casts and
// broadcasts are nodes. Folds keep their axes as 1. What `value`, ints and extents hold, by operation:
//   param         value index; extents strides; ints {ANY strides?}
//   leaf          extents strides, of the tensor when it became a leaf
//   scalar        value the byte          length   value the variable        constant  value the bits (f64's or i64's)
//   iota          value axis              random   value kind; args key, step
//   cast_stochastic  value bits; args x, key, step
//   permute       ints axes, -1: new      slice    value axis; extents {start}; ints {step}
//   concat        value axis              view     extents strides .., offset; over x's row-major numbering
//   take          value axis; args x, indices
//   put           value axis; ints {fold}; args x, indices, y (of take's shape)
//   scan          value axis; ints {fold, flags}      segment  ints {fold}; args x, offsets
//   argsort       value axis; ints {flags}
//   matmul        value flags; args a, b: equal rank >= 2
//   conv ..       ints as ConvShape; args x w | w dy | x dy        pool ..  ints as PoolShape; args x | x dy
//   folds         value axes as bits; max's ints {1}: of nothing it is -inf, no error
//   custom_grad   ints {n}; args y, dy, x .., dx ..                surrogate  args value [, path]
struct Node : RefCounted {
    Op       op = Op::poison;
    Dtype    dtype = Dtype::f32;
    bool     weak = false;                   // a constant that takes the type of its surroundings

  private:
    static constexpr uint8_t FEW = 3;
    uint8_t  count_ = 0;                     // of operands; more than FEW: they are in extra

  public:
    int64_t  value = 0;
    ShapeRef shape;
    std::unique_ptr<NodeExtra> extra;

    Node() = default;
    std::span<const NodeRef> args() const
    {
        return count_ <= FEW ? std::span(few_.data(), count_) : std::span<const NodeRef>(extra->args);
    }
    const NodeRef& arg(size_t i) const { return args()[i]; }
    void set_args(std::span<const NodeRef> args);
    NodeExtra& more() { return extra ? *extra : *(extra = std::make_unique<NodeExtra>()); }

    const Extents& dims() const { return shape->dims; }
    int            rank() const { return int(shape->dims.size()); }
    int64_t        int_at(size_t i) const { return extra->ints[i]; }
    bool           is_poison() const { return op == Op::poison; }
    uint32_t       place() const { return place_; }         // near the places of those born before and after it; not its name
    uint32_t       graph() const { return graph_; }         // the number of the graph that it was born in; 0: of none that is numbered

  private:
    friend void destroy(const Node*) noexcept;
    friend class Graph;
    uint32_t place_ = 0, graph_ = 0;
    std::array<NodeRef, FEW> few_;
};
static_assert(sizeof(Node) == 64, "a graph of a million nodes is read again and again: a node is one line of cache");

struct NodeOrder {
    static uint32_t of(const Node* n) { return n->place(); }
};
using NodeMap = FlatMap<const Node*, NodeOrder, nullptr>;

// Where nodes are born: equal nodes of one graph are one node. Not thread-safe: its scope locks.
class Graph {
  public:
    // number: like that of no other graph that lives, or 0. Nodes of one numbered graph are known to be unlike each other.
    explicit Graph(size_t max_nodes = size_t(1) << 20, uint32_t number = 0) : max_nodes_(max_nodes), number_(number) {}
    Graph(Graph&&) noexcept = default;
    Graph& operator=(Graph&& other) noexcept;
    ~Graph();
    // The node itself, or the equal one that was here before. NG_E_LIMIT beyond max_nodes.
    NodeRef intern(Ref<Node> node);
    size_t  size() const { return nodes_.size(); }

  private:
    Probe probe(const Node& n, uint32_t hash) const;
    void  grow();
    struct Slot { uint32_t at, hash; };
    size_t   max_nodes_;
    uint32_t number_;
    Growing<const Node*> nodes_;             // each with a reference of ours
    Zeroed<Slot>         index_;             // open addressing: 1 + where in nodes_, 0 empty; and the node's hash
};

NodeRef poison(const Error& error);          // of no graph
std::shared_ptr<void> leaf_tensor(const Node& leaf);
void bind_leaf(const Node& leaf, std::shared_ptr<void> tensor);
// How often it was bound anew: while that stays, so does its tensor.
uint32_t leaf_binds(const Node& leaf);
// The nearest tag that names n, looking through what does not compute; "" if none.
std::string name_near(const Node& n);
// "f32 [64, -1]" and, where there is one, its tag: for sentences.
std::string describe(const Node& n);

// All nodes below the roots, operands first, each once. Iterative.
std::vector<const Node*> topological(std::span<const NodeRef> roots);

}  // namespace ng
