// Reads saved programs: bytes that nobody vouches for become a graph only by way of the builders.
#include "jit/serial.h"

#include "jit/serial_format.h"
#include "jit/serial_node.h"

#include <algorithm>
#include <limits>

namespace ng {
namespace {

using namespace serial;

constexpr int64_t  MAX_EXTENT = int64_t(1) << 60;
constexpr uint64_t MAX_NAMES = 4096, MAX_INTS = 64;

class Reader {
  public:
    explicit Reader(std::string_view bytes) : bytes_(bytes) {}

    [[noreturn]] void fault(const std::string& what) const { throw Error(NG_E_INVALID, text("ng_prog_load: byte ", at_, ": ", what)); }
    void expect(bool holds, const char* what) const { if (!holds) fault(what); }

    uint64_t number()
    {
        uint64_t v = 0;
        for (int shift = 0; shift < 64; shift += 7) {
            expect(at_ < bytes_.size(), "the program is cut off");
            const auto b = uint8_t(bytes_[at_++]);
            expect(shift < 63 || b < 2, "a number exceeds 64 bits");
            v |= uint64_t(b & 127) << shift;
            if (b < 128) return v;
        }
        fault("a number has no end");
    }
    uint64_t number(uint64_t most, const char* what)
    {
        const uint64_t v = number();
        if (v > most) fault(text(what, " is ", v, ", the limit is ", most));
        return v;
    }
    int64_t signed_number()
    {
        const uint64_t v = number();
        return int64_t(v >> 1 ^ (0 - (v & 1)));
    }
    // How many things follow, of a byte each at least: nothing is allocated that the bytes do not hold.
    size_t count(uint64_t most, const char* what)
    {
        const uint64_t n = number(most, what);
        expect(n <= bytes_.size() - at_, "there are fewer bytes than things said to follow");
        return size_t(n);
    }
    std::string_view string(uint64_t most, const char* what)
    {
        const size_t n = count(most, what);
        at_ += n;
        return bytes_.substr(at_ - n, n);
    }
    uint64_t fixed()
    {
        expect(bytes_.size() - at_ >= 8, "the program is cut off");
        uint64_t v = 0;
        for (int i = 0; i < 8; i++) v |= uint64_t(uint8_t(bytes_[at_++])) << 8 * i;
        return v;
    }
    std::string_view rest() const { return bytes_.substr(at_); }

  private:
    std::string_view bytes_;
    size_t at_ = 0;
};

struct Weight {
    uint64_t each = 0, multiplied = 0;       // one after the other; all by each other
};

class Loader {
  public:
    explicit Loader(std::string_view bytes) : in_(bytes), work_((uint64_t(1) << 20) + 64 * uint64_t(bytes.size())) {}
    Saved run();

  private:
    void read_head();
    void read_options();
    void read_tables();
    void read_nodes();
    void read_roots();
    bool   read_layout(Layout& l);
    Extent read_extent();
    Extents read_extents(const char* what);
    Extents read_dims(const char* what);
    uint32_t read_place(size_t size, const char* what);
    void read_node(SavedNode& n);
    void charge_node(const SavedNode& n, uint32_t shape, std::span<const uint32_t> args);
    void charge(uint64_t work);
    Dtype read_dtype() { return dtype_of(ng_dtype(in_.number(UINT32_MAX, "a type's code")), "ng_prog_load"); }

    Reader                in_;
    uint64_t              work_;         // that polynomials may still cost: in proportion to the bytes
    Saved                 out_;
    std::vector<Op>       ops_;
    std::vector<Dtype>    dtypes_;
    std::vector<ShapeRef> shapes_;
    std::vector<Weight>   weights_;      // of shapes
    std::vector<NodeRef>  nodes_;
    std::vector<uint32_t> node_shapes_;
};

void Loader::charge(uint64_t work)
{
    if (work > work_) throw Error(NG_E_LIMIT, "ng_prog_load: polynomials of lengths take more work than the program's size allows");
    work_ -= work;
}

// ---- the parts of a program ------------------------------------------------------------------------

void Loader::read_head()
{
    const std::string_view all = in_.rest();
    if (all.substr(0, MAGIC.size()) != MAGIC || all.size() < HEAD_BYTES) throw Error(NG_E_INVALID, "ng_prog_load: these bytes are no saved program");
    const auto version = uint8_t(all[MAGIC.size()]);
    if (version != VERSION) throw Error(NG_E_UNSUPPORTED, text("ng_prog_load: the program is of format ", int(version), ", this libng reads format ", int(VERSION)));
    in_ = Reader(all.substr(MAGIC.size() + 1));
    const uint64_t sum = in_.fixed();
    in_ = Reader(in_.rest());
    if (sum != checksum(in_.rest())) throw Error(NG_E_INVALID, "ng_prog_load: the program was changed since it was saved: its checksum is another");
}

void Loader::read_options()
{
    CompileOptions& o = out_.options;
    o.runs = uint32_t(in_.number(MAX_RUNS, "runs"));
    in_.expect(o.runs > 0, "runs is 0");
    o.flags = uint32_t(in_.number(NG_PROG_EARLY | NG_PROG_TUNE, "flags"));
    o.workspace_max = in_.number();
    for (size_t n = in_.count(MAX_LENGTHS, "the number of lengths"); n > 0; n--)
        o.length_max.push_back(int64_t(in_.number(uint64_t(std::numeric_limits<int64_t>::max()), "a greatest length")));
}

// Lengths beyond those that have a greatest value are refused here: nothing later looks at all extents.
Extent Loader::read_extent()
{
    const size_t terms = in_.count(Extent::MAX_TERMS, "the number of an extent's terms");
    if (!terms) return Extent(in_.signed_number());
    std::vector<Term> list(terms);
    for (Term& t : list) {
        t.coefficient = in_.signed_number();
        t.variables.resize(in_.count(Extent::MAX_DEGREE, "a term's degree"));
        for (int32_t& v : t.variables) {
            const uint64_t length = in_.number(MAX_LENGTHS - 1, "a length's number");
            if (length >= out_.options.length_max.size()) in_.fault(text("length ", -1 - int64_t(length), " has no greatest value"));
            v = int32_t(length);
        }
    }
    return Extent::of_terms(std::move(list));
}

Extents Loader::read_extents(const char* what)
{
    Extents list;
    for (size_t n = in_.count(NG_MAX_NDIM + 1, what); n > 0; n--) list.push_back(read_extent());
    return list;
}

Extents Loader::read_dims(const char* what)
{
    Extents dims = read_extents(what);
    in_.expect(dims.size() <= NG_MAX_NDIM, "a rank exceeds NG_MAX_NDIM");
    for (const Extent& e : dims)
        if (e.is_constant() && (e.constant() < 0 || e.constant() > MAX_EXTENT)) in_.fault(text("an extent is ", e.constant()));
    return dims;
}

// What handling the extents of a shape may cost; 0 where no length occurs. Sizes and strides multiply them from either end.
Weight weight_of(const Extents& dims)
{
    constexpr uint64_t MOST = uint64_t(1) << 32;
    Weight w;
    std::vector<std::pair<uint64_t, uint64_t>> factors;      // terms, degree
    for (const Extent& e : dims) {
        const std::vector<Term> terms = e.is_constant() ? std::vector<Term>() : e.terms();
        for (const Term& t : terms) w.each += 1 + t.variables.size();
        factors.emplace_back(std::max<size_t>(terms.size(), 1), terms.empty() ? 0 : terms[0].variables.size());
    }
    for (int end = 0; w.each && end < 2; end++, std::ranges::reverse(factors)) {
        uint64_t product = 1, degree = 0;
        for (const auto& [terms, more] : factors) {
            product = std::min(product * terms, MOST), degree += more;
            if (degree) w.multiplied += product * (1 + degree);
        }
    }
    return w;
}

void Loader::read_tables()
{
    for (size_t n = in_.count(MAX_NAMES, "the number of operations"); n > 0; n--) {
        const std::string name(in_.string(MAX_NAME, "the length of an operation's name"));
        int op = 0;
        while (op < OPS && name != name_of(Op(op))) op++;
        if (op == OPS) throw Error(NG_E_UNSUPPORTED, "ng_prog_load: this libng has no operation \"" + name.substr(0, 40) + "\"");
        ops_.push_back(Op(op));
    }
    for (size_t n = in_.count(MAX_NAMES, "the number of types"); n > 0; n--) dtypes_.push_back(read_dtype());
    for (size_t n = in_.count(MAX_NODES, "the number of shapes"); n > 0; n--) {
        shapes_.push_back(build::shape_ref(read_dims("a rank")));
        weights_.push_back(weight_of(shapes_.back()->dims));
    }
}

uint32_t Loader::read_place(size_t size, const char* what)
{
    const uint64_t i = in_.number();
    in_.expect(i < size, what);
    return uint32_t(i);
}

void Loader::read_node(SavedNode& n)
{
    n.op = ops_[read_place(ops_.size(), "an operation is not in the table")];
    n.dtype = dtypes_[read_place(dtypes_.size(), "a type is not in the table")];
    const uint32_t shape = read_place(shapes_.size(), "a shape is not in the table");
    n.shape = shapes_[shape];
    const uint64_t parts = in_.number(ALL_PARTS, "a node's parts");
    n.args.clear(), n.ints.clear(), n.extents.clear(), n.name.clear();
    std::vector<uint32_t> args(in_.count(MAX_NODES, "the number of operands"));
    for (uint32_t& a : args) {
        const uint64_t back = in_.number();
        in_.expect(back > 0 && back <= nodes_.size(), "an operand does not come before its node");
        a = uint32_t(nodes_.size() - back);
        n.args.push_back(nodes_[a]);
    }
    n.value = parts & HAS_VALUE ? in_.signed_number() : 0;
    if (parts & HAS_INTS)
        for (size_t k = in_.count(MAX_INTS, "the number of a node's integers"); k > 0; k--) n.ints.push_back(in_.signed_number());
    if (parts & HAS_EXTENTS) n.extents = read_extents("the number of a node's extents");
    if (parts & HAS_NAME) n.name = in_.string(MAX_NAME, "the length of a name");
    in_.expect(n.name.find('\0') == std::string::npos, "a name has a zero byte");
    if (n.op == Op::length) in_.expect(n.value >= 0 && uint64_t(n.value) < out_.options.length_max.size(), "a length has no greatest value");
    charge_node(n, shape, args);
    node_shapes_.push_back(shape);
}

// Builders look at the extents of operands and results; some multiply them, concatenating sorts them.
void Loader::charge_node(const SavedNode& n, uint32_t shape, std::span<const uint32_t> args)
{
    const bool multiplies = n.op == Op::reshape || n.op == Op::view || n.op == Op::param || is_fold(n.op);
    const auto weight = [&](uint32_t s) { return multiplies ? weights_[s].multiplied : weights_[s].each; };
    uint64_t sum = weight(shape);
    for (const uint32_t a : args) sum += weight(node_shapes_[a]);
    charge(n.op == Op::concat ? 4 * sum : sum);
}

void Loader::read_nodes()
{
    const size_t count = in_.count(MAX_NODES, "the number of nodes");
    Graph graph(4 * count + 64);                                     // a builder may make some on its way
    SavedNode n;
    for (size_t i = 0; i < count; i++) {
        read_node(n);
        nodes_.push_back(rebuilt(graph, n));
    }
}

// False: none was declared.
bool Loader::read_layout(Layout& l)
{
    const uint64_t bits = in_.number(ALL_LAYOUT_BITS, "a layout's bits");
    if (!bits) return false;
    in_.expect(bits & DECLARED, "a layout is there and not there");
    l.strided = bits & STRIDED, l.any = bits & ANY, l.readonly = bits & READONLY, l.host = bits & HOST;
    in_.expect(!(l.strided && l.any), "a layout has strides, and any");
    l.dtype = read_dtype(), l.dims = read_dims("an output's rank");
    for (const Extent& e : l.dims) in_.expect(e.as_dim() != NG_REST, "an output's declared extent is neither a number nor a length");
    if (!l.strided) return l.strides = dense_strides(l.dims), true;
    for (size_t a = 0; a < l.dims.size(); a++) {
        l.strides.push_back(read_extent());
        in_.expect(l.strides.back().is_constant(), "an output's declared stride is no number");
    }
    return true;
}

void Loader::read_roots()
{
    CompileOptions& o = out_.options;
    const size_t n = in_.count(MAX_NODES, "the number of outputs");
    in_.expect(n > 0, "there is no output");
    for (size_t j = 0; j < n; j++) {
        const uint64_t root = in_.number();
        in_.expect(root < nodes_.size(), "an output is no node");
        out_.roots.push_back(nodes_[size_t(root)]);
    }
    const size_t aliases = in_.count(n, "the number of aliases");
    in_.expect(aliases == 0 || aliases == n, "there are aliases of some outputs only");
    for (size_t j = 0; j < aliases; j++) o.alias.push_back(int32_t(in_.number(MAX_PARAM + 1, "an alias")) - 1);
    if (!in_.number(1, "the presence of layouts")) return;
    for (size_t j = 0; j < n; j++) {
        Layout l;
        o.declared.push_back(read_layout(l));
        const Node& root = *out_.roots[j];
        if (!o.declared.back()) l.dtype = root.dtype, l.dims = root.dims(), l.strides = dense_strides(l.dims);
        o.outs.push_back(std::move(l));
    }
}

Saved Loader::run()
{
    read_head();
    read_options();
    read_tables();
    read_nodes();
    read_roots();
    in_.expect(in_.rest().empty(), "bytes follow the end of the program");
    return std::move(out_);
}

}  // namespace

Saved load(std::string_view bytes) { return Loader(bytes).run(); }

}  // namespace ng
