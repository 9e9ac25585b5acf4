// Products that make an operand while they load it, on the device of this machine: the same bits as of an operand made before, and how fast.
//
//   operand_gpu_test                                  all cases; without a driver, a device, an image or a compiler they are skipped
//   NG_TEST_SMALL=1 compute-sanitizer operand_gpu_test    in memory of exactly the size that is theirs
//   operand_gpu_test --no-skip -tc="speed*"           how fast each height of tiles is, in how many parts, and what is chosen
#define DOCTEST_CONFIG_IMPLEMENT
#include "lib/backend/cuda/gemm_mma.h"
#include "lib/backend/cuda/gemm_prologue.h"
#include "lib/backend/cuda/gemm_sm90.h"
#include "lib/backend/cuda/images.h"
#include "lib/backend/cuda/matmul.h"
#include "lib/backend/cuda/nvrtc.h"
#include "lib/backend/cuda/rounding.h"
#include "lib/strided.h"
#include "tests/backend/gpu_machine.h"
#include "tests/backend/plan_of_text.h"

#include <cmath>
#include <functional>

REGISTER_EXCEPTION_TRANSLATOR(const ng::Error& error) { return error.text.c_str(); }

namespace basic_check {
namespace {

using namespace ng::cuda;
namespace mma = gemm::mma;
namespace made = gemm::made;

class Device final : public GpuMachine {
  public:
    explicit Device(const Driver& driver)
        : GpuMachine(driver), module_(gpu().home(), std::string(gemm_image(gemm::Image::Mma)), ng::cuda::Module::Accepts::Ptx), facts{compute_of(driver, gpu().home().device()), gpu().info().units, {false, false, false, true}}
    {
        for (const gemm::KernelFacts& k : mma::kernels()) {
            functions_.push_back(module_.function(k.name));
            allow_shared(gpu().home(), functions_.back(), k.shared_bytes);
        }
    }
    void launch(const basic::Launch&) override { FAIL("no basic kernel is needed"); }
    void launch(const gemm::Launch& l) { gpu().launch(l.image == gemm::Image::Text ? text_->functions[l.kernel] : functions_[l.kernel], l); }
    // What launches of texts are from here on.
    const Function& compile(const gemm::Finisher& finisher, const std::string& operand)
    {
        text_.emplace(gpu(), finisher, std::string(), operand);
        return text_->functions[0];
    }

  private:
    ng::cuda::Module      module_;
    std::vector<Function> functions_;
    std::optional<ng::test::FinisherCode> text_;

  public:
    const gemm::Device facts;
};

Device* device = nullptr;

struct Memory {
    char* data;
    explicit Memory(size_t bytes) : data(static_cast<char*>(device->take(bytes))) {}
    ~Memory() { device->give(data); }
    Memory(const Memory&) = delete;
};

using Made = std::function<float(float x, float of_line)>;
float same(float x, float) { return x; }

// words: of a [m, k] or b, of what is made: w [k, n] or v [n, k], and of v_line [n, 1] or w_line [n].
struct Words {
    const char* words;
    Dtype       raw;
    bool        is_deep;                 // v, else w
    Made        made = same;
    Dtype       half = Dtype::f16;
};

// A text's product, its operands there, `sets` of what is made one after the other.
class Product {
  public:
    Product(const Words& w, const Index& mnk, int sets = 1) : words_(w), m(mnk[0]), n(mnk[1]), k(mnk[2])
    {
        using ng::Extents;
        plan_ = ng::tests::plan_of_text(w.words, {{"a", {m, k}, w.half}, {"w", {k, n}, w.raw}, {"v", {n, k}, w.raw}, {"w_line", {n}, Dtype::f32}, {"v_line", {n, 1}, Dtype::f32}});
        REQUIRE(plan_.steps.size() == 2);
        form_ = OperandForm::of(plan_.steps[0], plan_.steps[1], 1);
        REQUIRE(form_);
        in_.emplace_back(plan_.steps[1].in[0]), in_.emplace_back(form_->raw());
        out_.emplace(plan_.steps[1].out);
        set_bytes_ = aligned(uint64_t(n * k * ng::bytes_of(w.raw)));
        a_.emplace(size_t(m * k * 2)), raw_.emplace(set_bytes_ * uint64_t(sets)), c_.emplace(size_t(m * n * 4)), line_.emplace(size_t(n * 4));
        std::mt19937 random(5);
        std::vector<uint16_t> a(size_t(m * k));
        for (uint16_t& x : a) x = uint16_t(ng::encode(w.half, double(random()) * 0x1p-31 - 1));
        device->put(a_->data, a.data(), a.size() * 2);
        lines.resize(size_t(n));
        for (float& x : lines) x = float(double(random()) * 0x1p-31 - 1);
        device->put(line_->data, lines.data(), lines.size() * 4);
        raws.resize(size_t(n * k * ng::bytes_of(w.raw)));
        for (size_t i = 0; i < raws.size() / size_t(ng::bytes_of(w.raw)); i++) {
            char* const at = raws.data() + i * size_t(ng::bytes_of(w.raw));
            if (w.raw == Dtype::f32) product_check::write(at, float(double(random()) * 0x1p-31 - 1));
            else if (ng::bytes_of(w.raw) == 2) product_check::write(at, uint16_t(ng::encode(w.raw, double(random()) * 0x1p-31 - 1)));
            else if (ng::is_float(w.raw)) product_check::write(at, uint8_t(ng::encode(w.raw, double(random()) * 0x1p-31 - 1)));
            else product_check::write(at, uint8_t(random()));
        }
        for (int s = 0; s < sets; s++) device->put(raw_->data + uint64_t(s) * set_bytes_, raws.data(), raws.size());
    }
    gemm::Problem problem(int set = 0) const
    {
        const MatmulStep step = {*plan_.steps[1].node, in_, *out_, nullptr, nullptr, &*form_};
        gemm::Problem    p = *matmul_problem(step, {});
        p.a = a_->data, p.b = raw_->data + uint64_t(set) * set_bytes_, p.c = c_->data;
        std::vector<char*> buffers(plan_.buffers.size(), line_->data);
        p.prologue.text = form_->in_numbers({}, nullptr, buffers.data());
        return p;
    }
    // The same with an operand that was made before.
    gemm::Problem bare(const void* operand) const
    {
        gemm::Problem p = problem();
        p.b = operand, p.b_type = words_.half, p.prologue = {};
        return p;
    }
    std::vector<uint16_t> operand() const
    {
        std::vector<uint16_t> b(size_t(n * k));
        for (int64_t i = 0; i < n * k; i++) {
            const float x = float(product_check::get(words_.raw, raws.data() + i * ng::bytes_of(words_.raw)));
            b[size_t(i)] = uint16_t(ng::encode(words_.half, words_.made(x, lines[size_t(words_.is_deep ? i / k : i % n)])));
        }
        return b;
    }
    std::vector<float> result() const
    {
        std::vector<float> c(size_t(m * n));
        device->get(c.data(), c_->data, c.size() * 4);
        return c;
    }
    void poison() const { device->gpu().fill(c_->data, 0xff, size_t(m * n * 4)); }
    const std::string& text() const { return form_->text(); }

  private:
    const Words& words_;

  public:
    const int64_t      m, n, k;
    std::vector<float> lines;
    std::vector<char>  raws;

  private:
    ng::Plan                   plan_;
    std::optional<OperandForm> form_;
    std::vector<ng::Placed>    in_;
    std::optional<ng::Placed>  out_;
    uint64_t                   set_bytes_;
    std::optional<Memory>      a_, raw_, c_, line_;
};

const Words WORDS[] = {
    {"a @ f16(w)", Dtype::i8, false},
    {"a @ permute(f16(v), [1, 0])", Dtype::i8, true},
    {"a @ f16(w)", Dtype::u8, false},
    {"a @ permute(f16(v), [1, 0])", Dtype::u8, true},
    {"a @ f16(w)", Dtype::e4m3, false},
    {"a @ permute(f16(v), [1, 0])", Dtype::e4m3, true},
    {"a @ permute(f16(v), [1, 0])", Dtype::e5m2, true},
    {"a @ f16(w)", Dtype::f32, false},
    {"a @ permute(f16(v), [1, 0])", Dtype::f32, true},
    {"a @ bf16(w)", Dtype::i8, false, same, Dtype::bf16},
    {"a @ permute(bf16(v), [1, 0])", Dtype::e4m3, true, same, Dtype::bf16},
    {"a @ permute(bf16(v), [1, 0])", Dtype::f16, true, same, Dtype::bf16},
    {"a @ f16(f32(w) * w_line)", Dtype::i8, false, [](float x, float line) { return x * line; }},
    {"a @ permute(f16((f32(v) - 3) * v_line), [1, 0])", Dtype::i8, true, [](float x, float line) { return (x - 3) * line; }},
    {"a @ f16(f32(w) * w_line)", Dtype::e4m3, false, [](float x, float line) { return x * line; }},
};

struct Room {
    Memory   memory;
    uint64_t bytes;
    explicit Room(uint64_t size) : memory(size), bytes(size) {}
};
template <class Run>
void with_place(const Room& room, const Run& run)
{
    auto send = [](const gemm::Launch& l) { device->launch(l); };
    auto none = [](const basic::Launch&) { FAIL("no basic kernel is needed"); };
    const gemm::Launcher  launcher(send);
    const basic::Launcher nobody(none);
    run(gemm::Place{room.memory.data, room.bytes, launcher, nobody, &device->gpu().driver()});
}

// In so many parts, by any instance: all add in one order.
std::vector<float> result_of_bare(const Product& product, int64_t splits)
{
    const std::vector<uint16_t> operand = product.operand();
    const Memory                there(operand.size() * 2);
    device->put(there.data, operand.data(), operand.size() * 2);
    const gemm::Problem bare = product.bare(there.data);
    const Room          room(mma::workspace(bare, true) + uint64_t(splits * product.m * (product.n + 4) * 4));
    std::vector<gemm::CostedWay> ways;
    mma::add_ways(bare, device->facts, room.bytes, ways);
    const auto way = std::ranges::find_if(ways, [&](const gemm::CostedWay& w) { return w.way.splits == splits; });
    REQUIRE(way != ways.end());
    with_place(room, [&](const gemm::Place& place) { gemm::run_so(bare, device->facts, way->way, place); });
    return product.result();
}

void check(const Words& w, const Index& mnk, int32_t height)
{
    const Product product(w, mnk);
    const auto    finisher = made::finisher_of(product.problem(), height, 64 / height);
    REQUIRE(finisher);
    const Function& f = device->compile(*finisher, product.text());
    CHECK(f.local_bytes == 0);
    for (const int64_t splits : {1, 2, 3}) {
        if (splits > product.k / 256) break;
        INFO(w.words, ", of ", ng::name_of(w.raw), ", ", mnk[0], " x ", mnk[1], " x ", mnk[2], ", tiles of ", height, ", ", splits, " parts; registers: ", f.registers);
        const std::vector<float> want = result_of_bare(product, splits);
        product.poison();
        const Room room(uint64_t(splits * product.m * (product.n + 4) * 4));
        bool       has_run = false;
        with_place(room, [&](const gemm::Place& place) { has_run = made::run_in_parts(product.problem(), device->facts, *finisher, splits, place); });
        REQUIRE(has_run);
        const std::vector<float> got = product.result();
        int64_t wrong = 0;
        for (size_t i = 0; i < got.size(); i++) wrong += std::memcmp(&got[i], &want[i], 4) != 0;
        CHECK(wrong == 0);
    }
}

// Hopper's tiles add in an order of their own.
void check_hoppers(const Words& w, const Index& mnk, int32_t columns)
{
    const Product product(w, mnk);
    const auto    finisher = gemm::sm90::made_finisher_of(product.problem(), device->facts, columns);
    REQUIRE(finisher);
    const Function& f = device->compile(*finisher, product.text());
    CHECK(f.local_bytes == 0);
    const std::vector<float> want = result_of_bare(product, 1);
    float most = 0;
    for (const float x : want) most = std::max(most, std::abs(x));
    for (const int64_t blocks : {1, 2, 3, 8}) {
        INFO(w.words, ", of ", ng::name_of(w.raw), ", ", mnk[0], " x ", mnk[1], " x ", mnk[2], ", Hopper's tiles of ", columns, ", ", blocks, " blocks; registers: ", f.registers);
        std::vector<float> got[2];
        for (std::vector<float>& c : got) {
            product.poison();
            const Room room(256);
            bool       has_run = false;
            with_place(room, [&](const gemm::Place& place) { has_run = made::run_in_parts(product.problem(), device->facts, *finisher, blocks, place); });
            REQUIRE(has_run);
            c = product.result();
        }
        int64_t wrong = 0;
        for (size_t i = 0; i < want.size(); i++) wrong += !(std::abs(got[0][i] - want[i]) <= most * 2e-5f);
        CHECK(wrong == 0);
        CHECK(std::memcmp(got[0].data(), got[1].data(), want.size() * 4) == 0);
    }
}

}  // namespace

TEST_CASE("operands: products that make one have the bits of products of one that was made before")
{
    if (!Compiler::find()) {
        MESSAGE("there is no compiler");
        return;
    }
    for (const Words& w : WORDS) check(w, {7, 208, 1104}, 16);
    for (const size_t i : {0, 1, 8, 13}) check(WORDS[i], {33, 144, 1040}, 32), check(WORDS[i], {130, 336, 528}, 64);
}

TEST_CASE("operands: Hopper's products that make halves of bytes are those of an operand that was made before")
{
    if (!Compiler::find() || device->facts.compute != 90) {
        MESSAGE("there is no compiler, or the device is none of Hopper's");
        return;
    }
    for (const Words& w : WORDS)
        if (ng::bytes_of(w.raw) == 1) check_hoppers(w, {7, 208, 1104}, 16);
    for (const size_t i : {0, 1, 13})
        for (const int32_t columns : gemm::sm90::MADE_COLUMNS) check_hoppers(WORDS[i], {33, 144, 1040}, columns), check_hoppers(WORDS[i], {130, 336, 528}, columns);
    check_hoppers(WORDS[12], {1, 16, 512}, 16), check_hoppers(WORDS[13], {150, 400, 512}, 128);
}

// ---- speed -------------------------------------------------------------------------------------------------------------

namespace {

template <class Run>
double median_us(const Run& run)
{
    constexpr int TURNS = 40;
    const Event begin(device->gpu().home(), Event::Timing::On), end(device->gpu().home(), Event::Timing::On);
    std::vector<double> times;
    const Memory ahead(uint64_t(256) << 20);
    for (int i = 0; i < 7; i++) {
        device->gpu().fill(ahead.data, 1, size_t(256) << 20), device->gpu().fill(ahead.data, 1, size_t(256) << 20);       // the host gets ahead of it
        begin.record(device->gpu().stream());
        for (int j = 0; j < TURNS; j++) run(j);
        end.record(device->gpu().stream());
        end.wait();
        if (i > 1) times.push_back(double(end.milliseconds_since(begin)) * 1000 / TURNS);
    }
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
}

void time_product(const Words& w, const Index& mnk)
{
    const int     sets = int(std::max<int64_t>(1, 200000000 / (mnk[1] * mnk[2] * ng::bytes_of(w.raw))));
    const Product product(w, mnk, sets);
    const Room    room(uint64_t(32) << 20);
    std::printf("%s of %s, %ld x %ld x %ld\n", w.words, ng::name_of(w.raw), long(mnk[0]), long(mnk[1]), long(mnk[2]));
    const auto chosen = made::finisher_for(product.problem(), {90, device->facts.units, {true, true, true, true}});
    std::printf("    weight %d, chosen: %s %d, %d\n", product.problem().prologue.weight, !chosen ? "none" : chosen->is_portable ? "portable" : "Hopper's", chosen ? int(chosen->instance & 0xff) : 0, chosen ? int(chosen->instance >> 8) : 0);
    for (const auto& [height, blocks] : {std::pair{16, 4}, {16, 2}, {16, 1}, {32, 2}, {64, 2}, {64, 1}}) {
        if (height > 16 && height >= 4 * mnk[0]) continue;
        const auto finisher = made::finisher_of(product.problem(), height, blocks);
        const Function& f = device->compile(*finisher, product.text());
        std::printf("    %2d, %d blocks (%d registers):", height, blocks, f.registers);
        for (const int64_t splits : {1, 2, 4, 8, 12, 16}) {
            if (mnk[2] / splits < 128) break;
            with_place(room, [&](const gemm::Place& place) {
                bool has_run = true;
                const double us = median_us([&](int turn) { has_run &= made::run_in_parts(product.problem(turn % sets), device->facts, *finisher, splits, place); });
                if (has_run) std::printf("  %ld: %.2f", long(splits), us);
                gemm::Device older = device->facts;      // whose parts meet in the workspace
                older.compute = 80;
                if (splits == 8) std::printf(" (%.2f)", median_us([&](int turn) { (void)made::run_in_parts(product.problem(turn % sets), older, *finisher, splits, place); }));
            });
        }
        std::printf("\n");
    }
    for (const int32_t columns : gemm::sm90::MADE_COLUMNS) {
        const auto finisher = ng::bytes_of(w.raw) == 1 && columns < 4 * mnk[0] ? gemm::sm90::made_finisher_of(product.problem(), device->facts, columns) : std::nullopt;
        if (!finisher) continue;
        const Function& f = device->compile(*finisher, product.text());
        std::printf("    Hopper's of %3d columns (%d registers):", columns, f.registers);
        for (const int64_t blocks : {1, 2, 3, 4, 6, 8})
            with_place(room, [&](const gemm::Place& place) {
                std::printf("  %ld: %.2f", long(blocks), median_us([&](int turn) { (void)made::run_in_parts(product.problem(turn % sets), device->facts, *finisher, blocks, place); }));
            });
        std::printf("\n");
    }
}

}  // namespace

TEST_CASE("speed: products that make an operand, microseconds by the number of parts" * doctest::skip())
{
    for (const size_t i : {0, 1, 4, 12})
        for (const Index& mnk : {Index{16, 4096, 4096}, {64, 4096, 4096}, {128, 4096, 4096}}) time_product(WORDS[i], mnk);
    for (const size_t i : {5, 8}) time_product(WORDS[i], {16, 4096, 4096});
    for (const Index& mnk : {Index{8, 4096, 4096}, {32, 4096, 4096}, {16, 14336, 4096}, {16, 4096, 14336}, {64, 14336, 4096}, {16, 1024, 4096}}) time_product(WORDS[1], mnk);
    for (const Index& mnk : {Index{128, 14336, 4096}, {256, 4096, 4096}, {256, 14336, 4096}, {128, 4096, 14336}, {512, 4096, 4096}, {64, 1024, 4096}, {64, 1024, 1024}, {200, 8192, 8192}}) time_product(WORDS[0], mnk);
    for (const size_t i : {12, 14})
        for (const Index& mnk : {Index{256, 4096, 4096}, {256, 14336, 4096}}) time_product(WORDS[i], mnk);
}

}  // namespace basic_check

int main(int argc, char** argv)
{
    using basic_check::Device;
    return ng::test::run_cases(argc, argv, basic_check::device, [](const ng::cuda::Driver& driver) {
        if (!ng::cuda::gemm_image(ng::cuda::gemm::Image::Mma).empty()) return std::make_unique<Device>(driver);
        std::printf("skipped: this build has no kernels for a device\n");
        return std::unique_ptr<Device>();
    });
}
