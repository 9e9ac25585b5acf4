// NG_PROG_TUNE on a CUDA device, real or emulated: measured products run as measured, in later programs and processes too.
#include "kernels/gemm_mma.h"
#include "lib/backend/cuda/gemm_tuned.h"
#include "tests/backend/cuda_host.h"
#include "tests/backend/emulated_device.h"
#include "tests/backend/gemm_problems.h"
#include "tests/lib/cache_place.h"

#include <cstring>

using namespace ng;
using namespace ng::gemm_check;
using namespace ng::cuda;

namespace {

// The first launch that is not a copy's, of a run with what a table has.
gemm::Launch launch_of(const gemm::Problem& p, const gemm::Tuned* tuned, gemm::Memory& memory)
{
    constexpr uint64_t BYTES = uint64_t(64) << 20;
    gemm::Launch seen{};
    bool is_seen = false;
    auto body = [&](const gemm::Launch& l) { if (!is_seen) seen = l, is_seen = true; };
    auto basic_body = [](const basic::Launch&) {};
    const gemm::Launcher launcher(body);
    const basic::Launcher basic_launcher(basic_body);
    const Driver& driver = std::getenv("NG_FAKE_DRIVER") ? fresh_driver() : Driver::need("a test", DRIVER_LIBRARY);
    gemm::run(p, whole_device(), {reinterpret_cast<void*>(uint64_t(4) << 32), BYTES, launcher, basic_launcher, &driver, &memory, tuned});
    REQUIRE(is_seen);
    return seen;
}

// By the stand-in's events a block of a kernel takes a millisecond, whatever else the machine does. So measurements are as short as they
// get, and the same every time.
constexpr unsigned BLOCK_US = 1000;

const fake::Control& counting_device()
{
    const fake::Control& driver = emulated_device();
    driver.count_time(BLOCK_US);
    return driver;
}
// As new, where it is not a GPU: contexts of before are lost.
void begin()
{
    if (std::getenv("NG_FAKE_DRIVER")) (void)counting_device();
}

// A program of a text over x [rows, K] and y [K, N], halves of ones, on a context of its own.
struct Product {
    ng_ctx*     c = nullptr;
    ng_prog*    prog = nullptr;
    std::string said;
    int64_t     rows;

    static void log(void* user, int32_t, const char* text) { static_cast<Product*>(user)->said += text; }
    Product(const char* text, const char* cache_dir, uint32_t flags, uint32_t ctx_flags = 0, uint64_t limit = 0, int64_t rows_ = 48) : rows(rows_)
    {
        ng_ctx_desc d = description(ctx_flags);
        ng_hooks hooks{};
        hooks.size = sizeof hooks, hooks.log = log, hooks.user = this;
        d.cache_dir = cache_dir, d.dev_limit = limit, d.hooks = &hooks;
        ng_error error{};
        REQUIRE_MESSAGE(ng_ctx_create(&d, &c, &error) == NG_OK, error.text);
        ng_scope* s = ng_scope_create(c, 0);
        const ng_shape left = shape(rows, K), right = shape(K, N);
        ng_expr* x[] = {ng_param(s, 0, &left), ng_param(s, 1, &right)};
        ng_expr* e = ng_parse(s, text, "x,y", x, 2);
        ng_compile_desc compiled{};
        compiled.size = sizeof compiled, compiled.flags = flags;
        REQUIRE_MESSAGE(ng_compile(c, &compiled, &e, 1, &prog, &error) == NG_OK, error.text);
        ng_scope_release(s);
        REQUIRE_MESSAGE(ng_prog_wait(prog, FOREVER, &error) == NG_OK, error.text);
    }
    ~Product()
    {
        ng_prog_release(prog);
        shut(c);
    }
    static constexpr int64_t N = 40, K = 64;
    static ng_shape shape(int64_t height, int64_t width)
    {
        ng_shape d{};
        d.size = sizeof d, d.dtype = NG_F16, d.ndim = 2, d.dims[0] = height, d.dims[1] = width;
        return d;
    }
    std::string explained() const
    {
        size_t bytes = 0;
        CHECK(ng_prog_explain(prog, nullptr, &bytes, nullptr) == NG_OK);
        std::string json(bytes, '\0');
        CHECK(ng_prog_explain(prog, json.data(), &bytes, nullptr) == NG_OK);
        return json;
    }
    bool is_measured() const { return explained().find("measured: gemm_") != std::string::npos || explained().find("measured: mma_") != std::string::npos; }
    // Whether every element is the depth.
    bool is_right() const
    {
        constexpr uint16_t ONE = 0x3c00, DEPTH = 0x5400;         // 64
        ng_tensor* t[3] = {};
        const ng_shape shapes[] = {shape(rows, K), shape(K, N), shape(rows, N)};
        for (int i = 0; i < 3; i++) {
            CHECK(ng_tensor_create(c, &shapes[i], &t[i], nullptr) == NG_OK);
            const std::vector<uint16_t> ones(size_t(shapes[i].dims[0] * shapes[i].dims[1]), ONE);
            CHECK(ng_tensor_put(t[i], ones.data(), ones.size() * 2, nullptr) == NG_OK);
        }
        ng_run run{};
        run.size = sizeof run, run.nargs = 2, run.nout = 1, run.args = t, run.out = t + 2;
        bool all = ng_prog_run(prog, nullptr, &run, nullptr) == NG_OK && ng_prog_run(prog, nullptr, &run, nullptr) == NG_OK;
        std::vector<uint16_t> out(size_t(rows * N));
        CHECK(ng_tensor_get(t[2], out.data(), out.size() * 2, nullptr) == NG_OK);
        for (const uint16_t v : out) all &= v == DEPTH;
        for (ng_tensor* tensor : t) ng_tensor_release(tensor);
        return all;
    }
};

// Where the kernels of a measurement of halves read and write, [first byte, byte behind the last).
using Stretch = std::pair<uintptr_t, uintptr_t>;
struct Seen {
    std::set<Stretch> operands, results, rooms;          // rooms: of the workspace
    std::set<Stretch> blocks;                            // of the driver's memory, with all of it
    std::set<uintptr_t> copies;                          // of operands, for the product that comes next
    int64_t strangers = 0, elements = 0, zeros = 0;      // strangers: elements of no block, and such as are no numbers of [-1, 1]
};
Seen* seen = nullptr;

Stretch stretch_of(const void* data, int64_t bytes_each, std::initializer_list<std::pair<int64_t, int64_t>> axes)
{
    Stretch s = {uintptr_t(data), uintptr_t(data) + uintptr_t(bytes_each)};
    for (const auto& [extent, stride] : axes) (stride < 0 ? s.first : s.second) += uintptr_t((extent - 1) * stride * bytes_each);
    return s;
}
// Whether it is new, and all of it in one block.
bool note(std::set<Stretch>& all, const Stretch& s)
{
    if (!all.insert(s).second) return false;
    const Driver& driver = Driver::need("a test", DRIVER_LIBRARY);
    uintptr_t begin = 0;
    uint64_t bytes = 0;
    const bool is_known = !driver.cuPointerGetAttribute.quiet(&begin, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, s.first) &&
                          !driver.cuPointerGetAttribute.quiet(&bytes, CU_POINTER_ATTRIBUTE_RANGE_SIZE, s.first);
    if (!is_known || s.second > begin + bytes) return seen->strangers++, false;
    return seen->blocks.insert({begin, begin + bytes}), true;
}
void note_operand(const kernels::MmaOperand& o, int64_t lines, int64_t depth, int64_t batches)
{
    const Stretch s = stretch_of(o.data, 2, {{lines, o.line}, {depth, o.depth}, {batches, o.batch}});
    if (seen->copies.contains(uintptr_t(o.data)) || !note(seen->operands, s)) return;
    for (uintptr_t at = s.first; at < s.second; at += 2) {
        constexpr uint16_t ONE = 0x3c00;
        uint16_t size = 0;
        std::memcpy(&size, reinterpret_cast<const void*>(at), 2), size &= 0x7fff;
        seen->elements++, seen->zeros += size == 0, seen->strangers += size > ONE;
    }
}
void see_sums(const fake::KernelLaunch& l)
{
    kernels::MmaNumbers n;
    std::memcpy(&n, l.arguments[0], sizeof n);
    (void)note(seen->results, stretch_of(n.c, bytes_of(Dtype(n.c_type)), {{n.m, n.c_row}, {n.n, n.c_column}, {n.batches, n.c_batch}}));
}
void see_product(const fake::KernelLaunch& l)
{
    kernels::MmaNumbers n;
    std::memcpy(&n, l.arguments[0], sizeof n);
    note_operand(n.a, n.m, n.k, n.batches), note_operand(n.b, n.n, n.k, n.batches);
    seen->copies.clear();
    if (n.partial) (void)note(seen->rooms, stretch_of(n.partial, 4, {{n.splits * n.batches * n.m * n.pitch, 1}}));
    else see_sums(l);
}
void see_copy(const fake::KernelLaunch& l)
{
    kernels::MmaLayNumbers n;
    std::memcpy(&n, l.arguments[0], sizeof n);
    note_operand(n.from, n.is_deep ? n.rows : n.length, n.is_deep ? n.length : n.rows, n.batches);
    (void)note(seen->rooms, stretch_of(n.to, 2, {{n.rows * n.batches * n.pitch, 1}}));
    seen->copies.insert(uintptr_t(n.to));
}
// These instead of the shipped kernels, until the stand-in is made anew.
void look(const fake::Control& driver, Seen& into)
{
    seen = &into;
    static constexpr size_t of_product = sizeof(kernels::MmaNumbers), of_copy = sizeof(kernels::MmaLayNumbers);
#define PRODUCT_TILES(name, ...) driver.set_kernel("mma_" #name, see_product, &of_product, 1);
#define SIMT PRODUCT_TILES
#define ROW PRODUCT_TILES
#define SMALL PRODUCT_TILES
#define SMALL_SIMT PRODUCT_TILES
#define LAY(name, ...) driver.set_kernel("mma_" #name, see_copy, &of_copy, 1);
#define PARTS(name, ...) driver.set_kernel("mma_" #name, see_sums, &of_product, 1);
#include "kernels/gemm_mma.def"
}

}  // namespace

TEST_CASE("ways: all of them may run, the model's choice is among them, and their words name each alone")
{
    for (const Extents& e : {Extents{512, 512, 512, 1}, Extents{2048, 64, 4096, 1}, Extents{33, 17, 65, 3}})
        for (const Dtype type : {Dtype::f16, Dtype::f32, Dtype::i8}) {
            const gemm::Problem p = placed(problem_of(e, {false, true, false, 0}, type, type, type == Dtype::i8 ? Dtype::i32 : Dtype::f32));
            const uint64_t bytes = gemm::workspace(p, whole_device(), true);
            const std::vector<gemm::Way> ways = gemm::ways(p, whole_device(), bytes);
            REQUIRE(!ways.empty());
            std::set<std::string> words;
            for (const gemm::Way& way : ways) {
                CHECK(gemm::can_run_so(p, whole_device(), bytes, way));
                CHECK(words.insert(gemm::words_of(way)).second);
            }
            gemm::Memory memory;
            (void)launch_of(p, nullptr, memory);
            CHECK(words.contains(gemm::words_of(memory.way)));
        }
}

TEST_CASE("a table's lines say what it holds; what cannot be read is passed over, what is known stays")
{
    gemm::Tuned first;
    std::vector<std::pair<gemm::Shape, gemm::Measured>> kept;
    for (const Extents& e : {Extents{512, 512, 512, 1}, Extents{64, 2048, 300, 7}}) {
        const gemm::Problem p = placed(problem_of(e, {true, false, false, 8}, Dtype::bf16, Dtype::bf16, Dtype::bf16));
        kept.emplace_back(gemm::shape_of(p), gemm::Measured{gemm::ways(p, whole_device(), 0).back(), 12.5, 13.25});
        CHECK(!first.find(kept.back().first));
        first.keep(kept.back().first, kept.back().second);
    }
    const std::string text = first.text();
    gemm::Tuned second;
    second.add("nonsense\n\n1 2 3\n" + text.substr(0, text.size() / 3) + "\n" + text);
    CHECK(second.count() > 0);
    for (const auto& [shape, measured] : kept) CHECK((second.find(shape) == measured));
    CHECK(second.text() == text);

    gemm::Tuned other;
    const size_t name = text.find("gemm_");
    REQUIRE(name != std::string::npos);
    std::string renamed = text;
    renamed.replace(name, 5, "gone_");
    other.add(renamed);
    CHECK(other.text().size() < text.size());
    other.add(text + " ");
    const gemm::Measured mine = {{true, false, 0, 1, 1, 1}, 1, 2};
    gemm::Tuned own;
    own.keep(kept[0].first, mine);
    own.add(text);
    CHECK((own.find(kept[0].first) == mine));
    CHECK((own.find(kept[1].first) == kept[1].second));
}

TEST_CASE("a time that was just measured is what a later process reads of it, whatever follows its nanoseconds")
{
    for (const double us : {4.335, 4.34499999, 4.345, 1.0 / 3, 0.0004, 8.16450001, 123456.7895}) {
        const gemm::Problem p = placed(problem_of({512, 512, 512, 1}, {true, false, false, 8}, Dtype::bf16, Dtype::bf16, Dtype::bf16));
        gemm::Tuned now, later;
        now.keep(gemm::shape_of(p), {gemm::ways(p, whole_device(), 0).back(), us, us * 1.1});
        later.add(now.text());
        INFO(us);
        REQUIRE(now.find(gemm::shape_of(p)));
        CHECK((now.find(gemm::shape_of(p)) == later.find(gemm::shape_of(p))));
        CHECK(now.find(gemm::shape_of(p))->us == doctest::Approx(us).epsilon(0.0005 / us));
    }
}

TEST_CASE("runs take what was measured, from the moment that it is known; what cannot run so is chosen as ever")
{
    const gemm::Problem p = placed(problem_of({512, 512, 512, 1}, {}, Dtype::f16, Dtype::f16, Dtype::f16));
    gemm::Tuned  tuned;
    gemm::Memory memory;
    const gemm::Launch usual = launch_of(p, &tuned, memory);
    const std::vector<gemm::Way> ways = gemm::ways(p, whole_device(), uint64_t(64) << 20);
    int others = 0;
    for (const gemm::Way& way : ways) {
        tuned.keep(gemm::shape_of(p), {way, 1, 1});
        const gemm::Launch l = launch_of(p, &tuned, memory);
        CHECK((memory.way == way));
        others += l.image != usual.image || l.kernel != usual.kernel || l.cluster != usual.cluster || l.grid[0] != usual.grid[0];
    }
    CHECK(others > 0);
    tuned.keep(gemm::shape_of(p), {{false, false, 0, 7, 3, 1}, 1, 1});       // no instance is of such clusters
    const gemm::Launch l = launch_of(p, &tuned, memory);
    CHECK(l.kernel == usual.kernel);
    CHECK(l.grid[0] == usual.grid[0]);
}

TEST_CASE("P1: a program that is to be measured is, before ng_prog_wait says so, and later processes find it")
{
    begin();
    const Surroundings clean;
    const Place place;
    {
        const Product untouched("f16(x @ y)", place.path.c_str(), 0);
        CHECK(!untouched.is_measured());
        CHECK(untouched.is_right());
    }
    {
        const Product measured("f16(x @ y)", place.path.c_str(), NG_PROG_TUNE);
        CHECK(measured.is_measured());
        CHECK(measured.is_right());
    }
    const Product later("f16(x @ y)", place.path.c_str(), 0), elsewhere("f16(x @ y)", "", 0);
    CHECK(later.is_measured());
    CHECK(later.is_right());
    CHECK(!elsewhere.is_measured());
}

TEST_CASE("the fastest way is kept, and beside it the time of the one that would be taken, by a clock that counts blocks")
{
    if (!std::getenv("NG_FAKE_DRIVER")) return skip("time is the stand-in's");
    const fake::Control& driver = counting_device();
    const Surroundings clean;
    const Place place;
    driver.compute(false);
    const auto blocks = [&](uint32_t flags) {
        const Product product("f16(x @ y)", place.path.c_str(), flags, 0, 0, 200);
        const uint64_t before = driver.counts().blocks;
        (void)product.is_right();                                      // two runs, of which nothing comes here
        return int64_t(driver.counts().blocks - before) / 2;
    };
    const int64_t usual = blocks(0), fastest = blocks(NG_PROG_TUNE);
    CHECK(fastest < usual);
    std::string table;
    for (const auto& entry : files::recursive_directory_iterator(place.path))
        if (std::ifstream file(entry.path(), std::ios::binary); entry.is_regular_file()) table.append(std::istreambuf_iterator<char>(file), {});
    CHECK_MESSAGE(table.find(ng::text(" ", fastest * BLOCK_US * 1000, " ", usual * BLOCK_US * 1000, " ")) != std::string::npos, fastest, " ", usual, ": ", table);
}

TEST_CASE("what is measured reads random numbers and writes beside them, each time in the place of another set, in one block of memory")
{
    if (!std::getenv("NG_FAKE_DRIVER")) return skip("launches are seen by the stand-in");
    // sets: what is twice the stand-in's cache of a megabyte, but 16 at most.
    const struct { const char* text; int64_t rows; size_t sets; } cases[] = {{"x @ y", 48, 16}, {"x[::-1, ::-1] @ y[::-1, ::-1]", 48, 16}, {"x @ y", 4000, 2}};
    size_t rooms = 0;
    for (const auto& one : cases) {
        INFO(one.text, " of ", one.rows, " rows");
        Seen all;
        look(counting_device(), all);
        { const Product measured(one.text, "", NG_PROG_TUNE, 0, 0, one.rows); }
        CHECK(all.strangers == 0);
        CHECK(all.elements > 0);
        CHECK(all.zeros * 100 < all.elements);
        CHECK(all.blocks.size() == 1);
        CHECK(all.results.size() == one.sets);
        CHECK(all.operands.size() == 2 * one.sets);
        std::set<Stretch> sets = all.operands;
        sets.insert(all.results.begin(), all.results.end());
        CHECK(sets.size() == 3 * one.sets);
        for (auto next = sets.begin(), s = next++; next != sets.end(); s = next++) CHECK(s->second <= next->first);
        for (const Stretch& room : all.rooms)
            for (const Stretch& s : sets) CHECK((s.second <= room.first || room.second <= s.first));
        rooms += all.rooms.size();
    }
    CHECK(rooms > 0);
    begin();
}

TEST_CASE("P6, S6: deterministic contexts measure nothing, nor what dev_limit has no room for, which the log is told")
{
    begin();
    const Product ordered("f16(x @ y)", "", NG_PROG_TUNE, NG_CTX_DETERMINISTIC);
    CHECK(!ordered.is_measured());
    CHECK(ordered.is_right());
    const Product small("f16(x @ y)", "", NG_PROG_TUNE, 0, uint64_t(1) << 20);
    CHECK(!small.is_measured());
    CHECK(small.is_right());
    CHECK(small.said.find("dev_limit") != std::string::npos);
}

TEST_CASE("whichever call of the driver fails in a measurement, the program is there or a status says why")
{
    if (!std::getenv("NG_FAKE_DRIVER")) return skip("faults are the stand-in's");
    const fake::Control& driver = counting_device();
    driver.compute(false);
    const auto compile = [] {
        ng_ctx_desc d = description();
        ng_ctx* c = nullptr;
        ng_prog* prog = nullptr;
        ng_status status = ng_ctx_create(&d, &c, nullptr);
        if (status < 0) return status;
        ng_scope* s = ng_scope_create(c, 0);
        const ng_shape left = Product::shape(8, 16), right = Product::shape(16, 8);
        ng_expr* e = ng_cast(ng_matmul(ng_param(s, 0, &left), ng_param(s, 1, &right), nullptr), NG_F16);
        ng_compile_desc compiled{};
        compiled.size = sizeof compiled, compiled.flags = NG_PROG_TUNE;
        status = ng_compile(c, &compiled, &e, 1, &prog, nullptr);
        if (status >= 0) status = ng_prog_wait(prog, FOREVER, nullptr);
        ng_scope_release(s), ng_prog_release(prog);
        (void)ng_ctx_close(c, FOREVER, nullptr);
        ng_ctx_release(c);
        return status;
    };
    REQUIRE(compile() == NG_OK);
    const uint64_t calls = driver.counts().calls;
    REQUIRE(calls > 500);
    for (uint64_t number = 1; number <= calls; number += 1 + number / 6) {
        begin();
        driver.compute(false);
        driver.fail_call(number, 700);
        const ng_status status = compile();
        const std::string failed = driver.failed();
        INFO("call ", number, " of ", calls, ", ", failed);
        CHECK(driver.counts().misuses == 0);
        CHECK((status == NG_OK || status < 0));
    }
    begin();
    CHECK(compile() == NG_OK);
}

TEST_CASE("what is behind a product does not hinder its measurement, and what has no product has none")
{
    begin();
    const Product behind("f16(relu(x @ y))", "", NG_PROG_TUNE, NG_CTX_NO_JIT);
    CHECK(behind.is_measured());
    CHECK(behind.is_right());
    const Product none("x[:, 0] + 1", "", NG_PROG_TUNE);
    CHECK(!none.is_measured());
}

TEST_CASE("S6: what there is no memory to measure hinders nothing else that is measured, and what was is kept")
{
    if (!std::getenv("NG_FAKE_DRIVER")) return skip("its launches compute nothing");
    counting_device().compute(false);
    const Surroundings clean;
    const Place place;
    // Operands of two of the three are 12 MiB and more, beside 32 that any measurement takes.
    constexpr const char* TEXT = "(x @ y) @ (permute(y, [1, 0]) @ y)";
    constexpr uint64_t LIMIT = uint64_t(56) << 20;
    constexpr int64_t  ROWS = 100000;
    const auto measured = [](const Product& p) {
        const std::string all = p.explained();
        int64_t count = 0;
        for (size_t at = 0; (at = all.find("measured: ", at)) != std::string::npos; at++) count++;
        return count;
    };
    {
        const Product all(TEXT, "", NG_PROG_TUNE, 0, 0, ROWS);
        CHECK(measured(all) == 3);
    }
    {
        const Product some(TEXT, place.path.c_str(), NG_PROG_TUNE, 0, LIMIT, ROWS);
        CHECK(measured(some) == 1);
        CHECK(some.said.find("products were not measured") != std::string::npos);
        CHECK(some.said.find("dev_limit") != std::string::npos);
    }
    const Product later(TEXT, place.path.c_str(), 0, 0, LIMIT, ROWS);
    CHECK(measured(later) == 1);
    begin();
}
