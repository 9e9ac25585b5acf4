// What of a node need be written: casts, broadcasts and types of numbers that reading infers are left out.
#pragma once
#include "jit/build.h"

#include <string>
#include <vector>

namespace ng {

// Typed: as a node, constants as f32(0.5). Plain: a constant as 2.0. Pretty: a whole one as 2.
enum class Style : uint8_t { Typed, Plain, Pretty };
struct Written {
    const Node* node;
    Style       style = Style::Typed;
};

struct Wording {
    Op                   word;           // the node's, or of ops.def where that is a shorter way to say it
    const Node*          core;           // whose parameters are written: of sum(x) the fold below the reshape
    bool                 total = false;  // a fold of everything, written without axes
    ng_axes              axes = 0;
    std::vector<Written> operands;
};

// Every choice is tried by building it: in a graph of its own, so that the expression's graph does not grow.
class Wordings {
  public:
    Wording wording_of(const Node& n);
    // start and stop of a slice in ng_slice's terms; false where no numbers say it.
    bool range_of(const Node& slice, int64_t& start, int64_t& stop);

  private:
    void choose(Wording& wording);
    bool is_norm(const Node& n, Wording& wording);
    bool reads_back(const Node& n, std::span<const Written> written);
    NodeRef read(const Written& w);
    Graph& scratch();

    Graph scratch_;
};

// A maximum that is -inf of nothing.
inline bool has_lowest(const Node& n) { return n.op == Op::max && n.extra && n.extra->ints == std::vector<int64_t>{1}; }
// A node without its tags.
const Node* below_tags(const Node* n);
// "-0.5", "2", "inf": reads back as the constant where its type is inferred.
std::string literal_text(const Node& constant, Style style);
// "f32(0.5)", "true".
std::string constant_text(const Node& constant);
// "[64, -1, 2*(-1)+1]"
std::string shape_text(std::span<const Extent> dims);

}  // namespace ng
