// What the rules of derivation share: which operands lead to a variable, and where their cotangents gather.
#pragma once
#include "jit/build.h"

#include <string_view>
#include <unordered_map>

namespace ng {

// One pass over all that lies below y, from y down. Rules call wants, then give; nothing else is theirs.
class Sweep {
  public:
    Graph& g;

    Sweep(Graph& graph, std::span<const NodeRef> y, std::span<const NodeRef> wrt);
    void    seed(const NodeRef& y, NodeRef dy);                      // dy empty: ones
    void    run();
    NodeRef total(size_t variable) const { return totals_[variable_of_[variable]]; }   // of wrt[variable]; empty: no path

    // Whether the derivative by this operand is wanted: it leads to a variable, and by no rule that is zero.
    bool wants(const Node& n, size_t operand) const;
    // Adds d, which may still broadcast to the operand, to its cotangent.
    void give(const Node& n, size_t operand, NodeRef d);
    // Adds d at these indices of an axis of operand 0: gathered in one buffer, however many give (D9).
    void give_at(const Node& take, NodeRef indices, NodeRef d, int32_t axis);
    void give_slice(const Node& slice, NodeRef d);
    // The derivative of operation n has no rule: NG_E_UNSUPPORTED, with the tag that is nearest.
    [[noreturn]] void refuse(const Node& n, const char* why) const;

  private:
    struct Deposit {
        NodeRef indices;              // empty: count elements from start on, step apart
        NodeRef d;
        int32_t axis = 0;
        Extent  start, count;
        int64_t step = 1;
    };
    struct Place {
        bool                 active = false;
        int32_t              variable = -1;
        const Node*          label = nullptr;    // the tag that it lies below
        NodeRef              sum;
        std::vector<Deposit> deposits;
    };
    void    order_below(std::span<const NodeRef> y);
    void    find_variables(std::span<const NodeRef> wrt);
    Place&  place_of(const Node& n, size_t operand);
    NodeRef gathered(const Node& n, Place& p);
    NodeRef side_by_side(const Node& n, std::vector<Deposit>& deposits);
    void    spread(const Node& n, const NodeRef& d);
    void    spread_custom(const Node& n, const NodeRef& d);
    NodeRef instantiated(const NodeRef& dx, const NodeRef& dy, const NodeRef& d);

    std::vector<const Node*>                  order_;       // operands first
    std::unordered_map<const Node*, uint32_t> at_;          // places in order_
    std::vector<Place>                        places_;
    std::vector<size_t>                       variable_of_; // of wrt's entries: equal ones are one variable
    std::vector<NodeRef>                      totals_;
};

// The rules, a file each; false: n is none of theirs.
bool spread_movement(Sweep& s, const Node& n, const NodeRef& d);
bool spread_index(Sweep& s, const Node& n, const NodeRef& d);
bool spread_fold(Sweep& s, const Node& n, const NodeRef& d);
bool spread_product(Sweep& s, const Node& n, const NodeRef& d);

inline Dtype cotangent_type(Dtype t) { return t == Dtype::f64 ? t : Dtype::f32; }
inline NodeRef filled(Graph& g, Dtype t, double value, const Extents& dims) { return build::broadcast(g, build::constant(g, t, value), dims); }
// d summed over the axes along which something of these dims was repeated.
NodeRef sum_to(Graph& g, NodeRef d, const Extents& dims);
// Row-major numbers as i64, of this shape.
NodeRef numbering(Graph& g, const Extents& dims);

}  // namespace ng
