// Bytes that pretend to be programs: cut, flipped or made up, they are refused or give nodes that are sound.
#include "jit/serial_format.h"
#include "tests/jit/serial_samples.h"

#include <doctest/doctest.h>

using namespace samples;

namespace {

void seal(std::string& bytes)
{
    if (bytes.size() < serial::HEAD_BYTES) return;
    const uint64_t sum = serial::checksum(std::string_view(bytes).substr(serial::HEAD_BYTES));
    for (size_t i = 0; i < 8; i++) bytes[serial::MAGIC.size() + 1 + i] = char(sum >> 8 * i);
}

std::string sealed(std::string body)
{
    std::string bytes(serial::MAGIC);
    bytes += char(serial::VERSION);
    bytes += std::string(8, '\0') + body;
    seal(bytes);
    return bytes;
}

struct Dice {
    uint64_t state = 0x243F6A8885A308D3u;
    uint64_t operator()(uint64_t below)
    {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        return (state * 0x2545F4914F6CDD1Du >> 20) % below;
    }
};

void mutate(std::string& s, Dice& dice)
{
    const size_t first = dice(8) ? serial::HEAD_BYTES : 0;       // mostly what the checksum guards
    for (uint64_t k = dice(3) ? 1 : 2 + dice(3); k > 0 && s.size() > first; k--) {
        const size_t at = first + dice(s.size() - first);
        switch (dice(10)) {
        case 0: s[at] = char(s[at] ^ 1 << dice(8)); break;
        case 1: s[at] = char(dice(256)); break;
        case 2: case 3: case 4: s[at] = char(s[at] + (dice(2) ? 1 : -1)); break;
        case 5: s.insert(at, 1, char(dice(256))); break;
        case 6: s.erase(at, 1 + dice(3)); break;
        case 7: s[at] = dice(2) ? char(0xff) : '\0'; break;
        case 8: s.replace(at, 1, std::string(9, char(0xff)) + '\x01'); break;
        default: {
            const size_t from = first + dice(s.size() - first);
            s.insert(at, s.substr(from, 1 + dice(12)));
        }
        }
    }
}

// What builders guarantee of every node.
void check_sound(const Node& n, const CompileOptions& o)
{
    INFO(name_of(n.op), " ", describe(n));
    REQUIRE(n.rank() <= NG_MAX_NDIM);
    for (const Extent& e : n.dims()) {
        REQUIRE(e.highest_variable() < int32_t(o.length_max.size()));
        if (e.is_constant()) REQUIRE(e.constant() >= 0);
    }
    const auto args = n.args();
    if (is_map(n.op)) {
        REQUIRE(args.size() == info(n.op).arity);
        for (size_t k = 0; k < args.size(); k++) {
            REQUIRE(same(args[k]->shape, n.shape));
            REQUIRE(args[k]->dtype == (n.op == Op::where && k == 0 ? Dtype::bool_ : args.back()->dtype));
        }
        return;
    }
    if (is_fold(n.op)) {
        REQUIRE(args[0]->rank() == n.rank());
        for (int a = 0; a < n.rank(); a++)
            REQUIRE(n.dims()[size_t(a)] == (n.value >> a & 1 ? Extent(1) : args[0]->dims()[size_t(a)]));
        return;
    }
    switch (n.op) {
    case Op::param: REQUIRE((n.value >= 0 && n.value < 65536)); REQUIRE(n.extra->extents.size() == n.dims().size()); break;
    case Op::length: REQUIRE((n.value >= 0 && n.value < int64_t(o.length_max.size()))); break;
    case Op::scalar: REQUIRE((n.value >= 0 && n.value <= 1 << 20)); break;
    case Op::constant: REQUIRE(n.rank() == 0); break;
    case Op::iota: REQUIRE((n.value >= 0 && n.value < n.rank())); break;
    case Op::take: case Op::put: REQUIRE(args[1]->dtype == Dtype::i64); [[fallthrough]];
    case Op::scan: case Op::argsort: case Op::concat: REQUIRE((n.value >= 0 && n.value < args[0]->rank())); break;
    case Op::reshape: REQUIRE(product(n.dims()) == product(args[0]->dims())); break;
    case Op::permute: REQUIRE(n.extra->ints.size() == n.dims().size()); break;
    case Op::view: REQUIRE(n.extra->extents.size() == n.dims().size() + 1); break;
    case Op::matmul: REQUIRE((n.rank() >= 2 && args[0]->rank() == n.rank() && args[1]->rank() == n.rank())); break;
    case Op::slice: {
        const Extent &d = args[0]->dims()[size_t(n.value)], &start = n.extra->extents[0], &count = n.dims()[size_t(n.value)];
        if (!d.is_constant() || !start.is_constant() || !count.is_constant() || count.is(0)) break;
        const int64_t last = start.constant() + (count.constant() - 1) * n.int_at(0);
        REQUIRE((std::min(start.constant(), last) >= 0 && std::max(start.constant(), last) < d.constant()));
        break;
    }
    default: REQUIRE(n.op != Op::leaf); REQUIRE(n.op != Op::poison); REQUIRE(n.op != Op::custom_grad);
    }
}

}  // namespace

REGISTER_EXCEPTION_TRANSLATOR(const Error& e) { return e.text.c_str(); }

TEST_CASE("serial: every prefix is refused, sealed or not, and so is every flipped bit and every appended byte")
{
    Room room;
    const NodeRef roots[] = {build::tag(room.graph, room("softmax(long @ permute(a, [1, 0]), 1)"), "y"), room("conv(x, w)[1:]")};
    const std::string bytes = save(roots, two_lengths());
    REQUIRE(fault(bytes).status == NG_OK);
    for (size_t n = 0; n < bytes.size(); n++) {
        std::string cut = bytes.substr(0, n);
        REQUIRE(fault(cut).status < 0);
        seal(cut);
        REQUIRE(fault(cut).status < 0);
    }
    for (size_t bit = 0; bit < 8 * bytes.size(); bit++) {
        std::string flipped = bytes;
        flipped[bit / 8] = char(flipped[bit / 8] ^ 1 << bit % 8);
        const Error e = fault(flipped);
        REQUIRE(e.status < 0);
        REQUIRE(!e.text.empty());
    }
    std::string more = bytes + '\0';
    seal(more);
    CHECK(fault(more).status == NG_E_INVALID);
}

TEST_CASE("serial: damage with the checksum made good is refused or gives sound nodes")
{
    Room room;
    const std::vector<std::string> all = programs(room);
    Dice dice;
    int loaded = 0;
    for (int k = 0; k < 20000; k++) {
        std::string bytes = all[dice(all.size())];
        mutate(bytes, dice);
        seal(bytes);
        const std::vector<char> exact(bytes.begin(), bytes.end());       // as long as it is: sanitizers see a read beyond
        try {
            const Saved s = load({exact.data(), exact.size()});
            loaded++;
            const Snapshot nodes(s.roots);
            for (uint32_t i = 0; i < nodes.size(); i++) check_sound(nodes[i], s.options);
            REQUIRE((s.options.alias.empty() || s.options.alias.size() == s.roots.size()));
            REQUIRE((s.options.outs.empty() || s.options.outs.size() == s.roots.size()));
            REQUIRE(s.options.declared.size() == s.options.outs.size());
        } catch (const Error& e) {
            REQUIRE(e.status < 0);
            REQUIRE(!e.text.empty());
        }
    }
    CHECK(loaded > 500);                     // else only the outermost checks were tried
    MESSAGE(loaded, " of 20000 damaged programs are programs");
}

TEST_CASE("serial: counts that the bytes do not hold allocate nothing")
{
    const std::string huge = "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", million = "\x80\x80\x40";
    const std::string start("\x01\x00\x00", 3);          // runs, flags, workspace_max
    for (const std::string& many : {huge, million}) {
        CHECK(fault(sealed(start + many)).status == NG_E_INVALID);                                             // lengths
        CHECK(fault(sealed(start + std::string(1, '\0') + many)).status == NG_E_INVALID);                      // names
        CHECK(fault(sealed(start + std::string("\0\x01", 2) + many)).status == NG_E_INVALID);                  // a name
        CHECK(fault(sealed(start + std::string("\0\0", 2) + many)).status == NG_E_INVALID);                    // types
        CHECK(fault(sealed(start + std::string("\0\0\0", 3) + many)).status == NG_E_INVALID);                  // shapes
        CHECK(fault(sealed(start + std::string("\0\0\0\0", 4) + many)).status == NG_E_INVALID);                // nodes
    }
}

TEST_CASE("serial: a version of tomorrow is told apart from damage")
{
    Room room;
    const NodeRef root = room("a + 1");
    std::string bytes = save({&root, 1}, {});
    bytes[serial::MAGIC.size()] = char(serial::VERSION + 1);
    CHECK(fault(bytes).status == NG_E_UNSUPPORTED);
    CHECK(fault("").status == NG_E_INVALID);
    CHECK(fault("NGPROG\n").status == NG_E_INVALID);
}

TEST_CASE("serial: aliases are of all outputs or of none")
{
    Room room;
    const NodeRef roots[] = {room("a + 1"), room("a * row"), room("a - row")};
    CompileOptions o;
    o.alias = {0, -1, 0};
    CHECK(fault(save(roots, o)).status == NG_OK);
    for (const std::vector<int32_t>& few : {std::vector<int32_t>{0}, {0, -1}}) {
        o.alias = few;
        CHECK(fault(save(roots, o)).status == NG_E_INVALID);
    }
}

TEST_CASE("serial: lengths without a greatest value are refused")
{
    Room room;
    for (const char* const t : {"long * 2", "long[2:]", "iota(f32, [3], 0) * length(-2)"}) {
        const NodeRef root = room(t);
        CHECK(fault(save({&root, 1}, {})).status == NG_E_INVALID);
    }
}

TEST_CASE("serial: polynomials that would multiply without end are refused soon")
{
    Graph g;
    Extents dims;
    CompileOptions o;
    for (int32_t v = 0; v < 20; v++) dims.push_back(Extent::variable(v)), o.length_max.push_back(8);
    NodeRef x = build::param(g, 0, layout(Dtype::f32, dims));
    for (int32_t a = 0; a < 20; a++) x = build::slice(g, x, a, 1, NG_END, 1);          // 2^20 terms, were they multiplied
    x = build::reduce(g, Op::sum, x, 1, NG_KEEP);
    const std::string bytes = save({&x, 1}, o);
    const Error e = fault(bytes);
    INFO(e.text);
    CHECK(e.status == NG_E_LIMIT);
}
