// The portable products as this build's image has them, on the device of this machine: the cases of their emulation, and how fast they are.
//
//   mma_gpu_test                                      all cases; without a driver, a device or an image they are skipped, and counted so
//   CUDA_FORCE_PTX_JIT=1 mma_gpu_test                 the same, compiled by the driver
//   NG_TEST_SMALL=1 compute-sanitizer mma_gpu_test    in memory of exactly the size that is theirs
//   mma_gpu_test --no-skip -tc="speed*"               how fast they are
#define DOCTEST_CONFIG_IMPLEMENT
#include "lib/backend/cuda/epilogue.h"
#include "lib/backend/cuda/images.h"
#include "lib/backend/cuda/nvrtc.h"
#include "lib/backend/cuda/rounding.h"
#include "tests/backend/gpu_machine.h"
#include "tests/backend/mma_cases.h"
#include "tests/backend/plan_of_text.h"

#include <bit>

REGISTER_EXCEPTION_TRANSLATOR(const ng::Error& error) { return error.text.c_str(); }

namespace basic_check {
namespace {

using namespace ng::cuda;

class Device final : public GpuMachine {
  public:
    explicit Device(const Driver& driver) : GpuMachine(driver), module_(gpu().home(), std::string(gemm_image(gemm::Image::Mma)), ng::cuda::Module::Accepts::Ptx), units(int(gpu().info().units))
    {
        for (const gemm::KernelFacts& k : mma::kernels()) {
            functions_.push_back(module_.function(k.name));
            allow_shared(gpu().home(), functions_.back(), k.shared_bytes);
        }
        const ng_device_info info = gpu().info();
        std::printf("%s, %s: %zu kernels in an image of %zu bytes, %s\n", info.name, info.arch, functions_.size(), gemm_image(gemm::Image::Mma).size(),
                    has_code() ? "with code for it" : "compiled from PTX");
    }
    void            launch(const basic::Launch&) override { FAIL("no basic kernel is needed"); }
    void            launch(const gemm::Launch& l) { gpu().launch(l.image == gemm::Image::Text ? text_->functions[l.kernel] : functions_[l.kernel], l); }
    const Function& function(size_t k) const { return functions_[k]; }
    int             compute() const { return compute_of(gpu().driver(), gpu().home().device()); }
    bool            has_code() const { return !ng::test::wants_ptx() && has_gemm_code(gemm::Image::Mma, compute()); }
    // What launches of texts are from here on.
    void compile(const gemm::Finisher& finisher, const std::string& epilogue) { text_.emplace(gpu(), finisher, epilogue); }

  private:
    ng::cuda::Module      module_;
    std::vector<Function> functions_;
    std::optional<ng::test::FinisherCode> text_;

  public:
    const int units;
};

Device* device = nullptr;

}  // namespace

Machine& machine() { return *device; }
void     launch_product(const gemm::Launch& l) { device->launch(l); }

TEST_CASE("image: every portable product is there and spills nothing")
{
    for (size_t k = 0; k < mma::kernels().size(); k++) {
        const Function& f = device->function(k);
        INFO(std::string(mma::kernels()[k].name));
        CHECK(f.registers > 0);
        CHECK(f.local_bytes == 0);
    }
}

TEST_CASE("image: its kernels are those that were compiled for the device, or, where there are none or CUDA_FORCE_PTX_JIT is 1, PTX that the driver compiled")
{
    constexpr int PTX_VERSION = 5, PORTABLE = 80;        // CU_FUNC_ATTRIBUTE_PTX_VERSION in cuda.h; kernels/image.py
    for (size_t k = 0; k < mma::kernels().size(); k++) {
        int version = 0;
        device->gpu().driver().cuFuncGetAttribute(&version, PTX_VERSION, device->function(k).native);
        INFO(std::string(mma::kernels()[k].name), " on ", device->compute());
        // Code for 9.0 was compiled for that and nothing older.
        if (device->has_code()) CHECK(version / 10 == device->compute() / 10);
        else CHECK(version == PORTABLE);
    }
}

// ---- epilogues ---------------------------------------------------------------------------------------------------------

namespace {

template <class T>
struct Array {
    std::vector<T> here;
    T*             there;
    explicit Array(size_t count) : here(count), there(static_cast<T*>(device->take(count * sizeof(T) + 16))) {}
    ~Array() { device->give(there); }
    Array(const Array&) = delete;
    void put() { device->put(there, here.data(), here.size() * sizeof(T)); }
    void get() { device->get(here.data(), there, here.size() * sizeof(T)); }
};

// max(c / 2 + bias, 0) + residual over a product of these types: the same bits as what the product and then each operation give.
void check_finished(Dtype a_type, Dtype b_type, const Index& mnk, int64_t batches = 1)
{
    const int64_t m = mnk[0], n = mnk[1], k = mnk[2];
    const auto    plan = ng::tests::plan_of_text("maximum(f32(a @ b) * 0.5 + bias, 0) + residual",
                                                 {{"a", {m, k}, a_type}, {"b", {k, n}, b_type}, {"bias", {n}, Dtype::f32}, {"residual", {m, n}, Dtype::bf16}});
    const std::optional<EpilogueForm> form = EpilogueForm::of(plan.steps.at(0), plan.steps.at(1));
    REQUIRE(form);
    Array<uint8_t> a{size_t(batches * m * k * ng::bytes_of(a_type))}, b{size_t(batches * k * n * ng::bytes_of(b_type))};
    std::mt19937   random(7);
    // Of floats, codes with small exponents of both signs; of bytes, any.
    const auto fill = [&](std::vector<uint8_t>& x, Dtype t) {
        for (size_t i = 0; i < x.size(); i++) {
            const bool is_top = i % size_t(ng::bytes_of(t)) == size_t(ng::bytes_of(t)) - 1;
            x[i] = uint8_t(is_top && ng::is_float(t) ? (t == Dtype::f16 ? 0x38 : 0x3f) | (random() & 1) << 7 : random() % 128);
        }
    };
    fill(a.here, a_type), fill(b.here, b_type);
    Array<uint16_t> residual{size_t(batches * m * n)};
    Array<float>    bias{size_t(n)}, bare{size_t(batches * m * n)}, finished{size_t(batches * m * n)};
    for (float& x : bias.here) x = float(random()) * 0x1p-31f - 1;
    for (uint16_t& x : residual.here) x = uint16_t(0x3f00 | (random() & 0x80ff));
    a.put(), b.put(), bias.put(), residual.put();
    gemm::Problem p{};
    p.a = a.there, p.b = b.there, p.c = bare.there, p.a_type = a_type, p.b_type = b_type, p.c_type = Dtype::f32;
    p.m = m, p.n = n, p.k = k, p.batches = batches, p.a_row = k, p.a_depth = 1, p.b_depth = n, p.b_column = 1, p.c_row = n, p.c_column = 1;
    p.a_batch = m * k, p.b_batch = k * n, p.c_batch = m * n;
    p.epilogue.is_cast = 1;
    const gemm::Device facts = device_of(device->units);
    const uint64_t     bytes = mma::workspace(p, true);
    Array<uint8_t>     workspace(bytes);
    auto send = [](const gemm::Launch& l) { device->launch(l); };
    auto none = [](const basic::Launch&) { FAIL("no basic kernel is needed"); };
    const gemm::Launcher  launcher(send);
    const basic::Launcher nobody(none);
    const gemm::Place     place = {workspace.there, bytes, launcher, nobody, nullptr};
    mma::run(p, facts, place);
    bare.get();
    const float no_scalars = 0;
    p.c = finished.there, p.epilogue = form->in_numbers({}, &no_scalars), p.epilogue_weight = form->weight();
    for (int i = 0; i < p.epilogue.count; i++) {
        ng::kernels::EpilogueTensor& t = p.epilogue.tensor[i];
        t.column = 1;
        if (form->tensors()[size_t(i)].type == Dtype::f32) t.data = bias.there;
        else t.data = residual.there, t.row = n, t.batch = m * n;
    }
    const std::optional<gemm::Finisher> finisher = mma::finisher_for(p, facts, nullptr);
    REQUIRE(finisher);
    device->compile(*finisher, form->text());
    REQUIRE(mma::run_finished(p, facts, *finisher, place));
    finished.get();
    int64_t wrong = 0;
    for (int64_t i = 0; i < batches * m * n; i++) {
        const float scaled = bare.here[size_t(i)] * 0.5f, moved = scaled + bias.here[size_t(i % n)];
        wrong += finished.here[size_t(i)] != std::max(moved, 0.0f) + std::bit_cast<float>(uint32_t(residual.here[size_t(i)]) << 16);
    }
    INFO(std::string(mma::kernels()[finisher->instance].name), ": ", m, " x ", n, " x ", k);
    CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("portable products with an epilogue compiled into them: as the product, and then what follows it")
{
    if (!Compiler::find()) {
        MESSAGE("there is no compiler");
        return;
    }
    for (const Index& mnk : {Index{37, 43, 24}, {10, 260, 3000}, {300, 200, 136}, {1, 64, 64}, {130, 3, 40}})
        for (const auto& [a, b] : {std::pair{Dtype::f16, Dtype::f16}, {Dtype::bf16, Dtype::bf16}, {Dtype::f32, Dtype::f32}, {Dtype::i8, Dtype::u8}}) check_finished(a, b, mnk);
    // Few rows of codes, and of bytes, by a row-major b as it lies.
    for (const auto& [a, b] : {std::pair{Dtype::e4m3, Dtype::e5m2}, {Dtype::i8, Dtype::u8}}) check_finished(a, b, {5, 256, 64}), check_finished(a, b, {3, 512, 80}, 300);
    // Halves whose rows lie at multiples of 8 bytes.
    check_finished(Dtype::f16, Dtype::f16, {68, 100, 36});
    // Of these warps have a tile each.
    for (const Index& mnk : {Index{8, 8, 8}, Index{17, 24, 40}, Index{9, 7, 33}})
        for (const auto& [a, b] : {std::pair{Dtype::f16, Dtype::f16}, {Dtype::bf16, Dtype::bf16}, {Dtype::f32, Dtype::f32}, {Dtype::i8, Dtype::u8}}) check_finished(a, b, mnk, 2000);
}

// ---- speed -------------------------------------------------------------------------------------------------------------

namespace {

struct Speed {
    const char* name;
    Dtype       a, b, c;
    bool        allows_tf32;
};

// Random numbers there, the same 64 MiB again and again.
void* random_memory(Dtype type, uint64_t count)
{
    const uint64_t    bytes = count * uint64_t(ng::bytes_of(type)), part = uint64_t(64) << 20;
    std::vector<char> host(std::min(bytes, part));
    std::mt19937_64   random(1);
    for (size_t i = 0; i + 8 <= host.size(); i += 8) {
        uint64_t bits = random();
        // Floats of 1 .. 2 and their negatives.
        if (type == Dtype::f16) bits = (bits & 0x83ff83ff83ff83ff) | 0x3c003c003c003c00;
        if (type == Dtype::bf16) bits = (bits & 0x807f807f807f807f) | 0x3f803f803f803f80;
        if (type == Dtype::f32) bits = (bits & 0x807fffff807fffff) | 0x3f8000003f800000;
        if (type == Dtype::f64) bits = (bits & 0x800fffffffffffff) | 0x3ff0000000000000;
        std::memcpy(host.data() + i, &bits, 8);
    }
    void* const memory = device->take(bytes + 256);
    for (uint64_t at = 0; at < bytes; at += part) device->put(static_cast<char*>(memory) + at, host.data(), std::min(part, bytes - at));
    return memory;
}

// Dense, batch after batch, wherever it lies.
gemm::Problem dense(const Speed& s, const Index& mnk, int64_t batches, const char* transposes)
{
    const bool    a_turned = transposes[0] == 't', b_turned = transposes[1] == 't';
    gemm::Problem p{};
    p.a_type = s.a, p.b_type = s.b, p.c_type = s.c, p.allows_tf32 = s.allows_tf32;
    p.m = mnk[0], p.n = mnk[1], p.k = mnk[2], p.batches = batches, p.c_row = p.n, p.c_column = 1;
    p.a_row = a_turned ? 1 : p.k, p.a_depth = a_turned ? p.m : 1, p.b_depth = b_turned ? 1 : p.n, p.b_column = b_turned ? p.k : 1;
    p.a_batch = p.m * p.k, p.b_batch = p.k * p.n, p.c_batch = p.m * p.n;
    return p;
}

// Prints the median time of a few runs of c [m, n], transposes as in "nt": n for row-major.
void time_product(const Speed& s, const Index& mnk, const char* transposes)
{
    const int64_t m = mnk[0], n = mnk[1], k = mnk[2];
    gemm::Problem p = dense(s, mnk, 1, transposes);
    p.a = random_memory(s.a, uint64_t(m * k)), p.b = random_memory(s.b, uint64_t(k * n)), p.c = device->take(uint64_t(m * n * ng::bytes_of(s.c)));
    const uint64_t bytes = mma::workspace(p, true);
    void* const    workspace = device->take(bytes + 256);
    std::string    ran;
    auto           send = [&](const gemm::Launch& l) {
        ran += std::string(ran.empty() ? "" : " + ") + mma::kernels()[l.kernel].name + " " + std::to_string(l.grid[0]);
        device->launch(l);
    };
    auto none = [](const basic::Launch&) {};
    const gemm::Launcher  launcher(send);
    const basic::Launcher nobody(none);
    const Event begin(device->gpu().home(), Event::Timing::On), end(device->gpu().home(), Event::Timing::On);
    const double work = 2.0 * double(m) * double(n) * double(k);
    const int    turns = work > 1e11 ? 1 : work > 1e9 ? 5 : 20;
    std::vector<double> times;
    for (int i = 0; i < 12; i++) {
        begin.record(device->gpu().stream());
        for (int j = 0; j < turns; j++) ran.clear(), mma::run(p, device_of(device->units), {workspace, bytes, launcher, nobody, nullptr});
        end.record(device->gpu().stream());
        end.wait();
        if (i > 1) times.push_back(double(end.milliseconds_since(begin)) * 1000 / turns);
    }
    std::sort(times.begin(), times.end());
    std::printf("%-6s %s %6ld %6ld %6ld %10.2f us %8.1f TFLOP/s  %s\n", s.name, transposes, long(m), long(n), long(k), times[times.size() / 2],
                work / times[times.size() / 2] / 1e6, ran.c_str());
    for (const void* memory : {p.a, p.b, static_cast<const void*>(p.c), static_cast<const void*>(workspace)}) device->give(const_cast<void*>(memory));
}

// The same of each way to run many, whose memory takes turns until it is twice the second cache: names, microseconds and what the model says.
void time_ways(const Speed& s, const Index& mnk, int64_t batches, const char* transposes)
{
    constexpr uint64_t ROTATED = uint64_t(120) << 20;
    const int64_t  m = mnk[0], n = mnk[1], k = mnk[2];
    const uint64_t a = uint64_t(batches * m * k * ng::bytes_of(s.a)), b = uint64_t(batches * k * n * ng::bytes_of(s.b)), c = uint64_t(batches * m * n * ng::bytes_of(s.c)), sets = ROTATED / (a + b + c) + 1;
    gemm::Problem  p = dense(s, mnk, batches, transposes);
    char* const all_a = static_cast<char*>(random_memory(s.a, sets * aligned(a))), *const all_b = static_cast<char*>(random_memory(s.b, sets * aligned(b))), *const all_c = static_cast<char*>(device->take(sets * aligned(c)));
    p.a = all_a, p.b = all_b, p.c = all_c;
    const uint64_t bytes = mma::workspace(p, true);
    void* const    workspace = device->take(bytes + 256);
    auto           send = [&](const gemm::Launch& l) { device->launch(l); };
    auto           none = [](const basic::Launch&) {};
    const gemm::Launcher  launcher(send);
    const basic::Launcher nobody(none);
    const Event begin(device->gpu().home(), Event::Timing::On), end(device->gpu().home(), Event::Timing::On);
    std::vector<gemm::CostedWay> ways;
    mma::add_ways(p, device_of(device->units), bytes, ways);
    std::printf("%-6s b%ld m%ld n%ld k%ld %s\n", s.name, long(batches), long(m), long(n), long(k), transposes);
    for (const gemm::CostedWay& w : ways) {
        if (w.way.splits > 1) continue;
        gemm::Memory known;
        known.is_known = true, known.way = w.way;
        std::vector<double> times;
        uint64_t            set = 0;
        for (int i = 0; i < 7; i++) {
            constexpr int TURNS = 12;
            begin.record(device->gpu().stream());
            for (int j = 0; j < TURNS; j++, set = (set + 1) % sets) {
                p.a = all_a + set * aligned(a), p.b = all_b + set * aligned(b), p.c = all_c + set * aligned(c);
                mma::run(p, device_of(device->units), {workspace, bytes, launcher, nobody, nullptr, &known});
            }
            end.record(device->gpu().stream());
            end.wait();
            if (i > 1) times.push_back(double(end.milliseconds_since(begin)) * 1000 / TURNS);
        }
        std::sort(times.begin(), times.end());
        std::printf("    %9.2f us, by the model %9.2f  %s%s\n", times[times.size() / 2], w.us, mma::kernels()[w.way.instance].name, w.way.copies ? " of copies" : "");
    }
    for (void* memory : {static_cast<void*>(all_a), static_cast<void*>(all_b), static_cast<void*>(all_c), workspace}) device->give(memory);
}

const Speed SPEEDS[] = {{"f16", Dtype::f16, Dtype::f16, Dtype::f16, false}, {"bf16", Dtype::bf16, Dtype::bf16, Dtype::bf16, false}, {"tf32", Dtype::f32, Dtype::f32, Dtype::f32, true},
                        {"f32", Dtype::f32, Dtype::f32, Dtype::f32, false}, {"i8", Dtype::i8, Dtype::i8, Dtype::i32, false}, {"f64", Dtype::f64, Dtype::f64, Dtype::f64, false},
                        {"e4m3", Dtype::e4m3, Dtype::e4m3, Dtype::f16, false}};

}  // namespace

TEST_CASE("speed: portable products" * doctest::skip())
{
    for (const Speed& s : SPEEDS) {
        for (const Index& mnk : {Index{512, 512, 512}, {1024, 1024, 1024}, {4096, 4096, 4096}})
            for (const char* transposes : {"nn", "nt", "tn", "tt"}) time_product(s, mnk, transposes);
        for (const Index& mnk : {Index{8192, 16, 8192}, {16, 8192, 8192}, {1760, 64, 1760}, {1, 4096, 4096}, {64, 64, 65536}, {3000, 1000, 700}}) time_product(s, mnk, "nn");
        for (const char* transposes : {"nn", "nt", "tn"})
            for (const Index& mnk : {Index{4095, 4097, 4099}, {513, 511, 509}, {15, 4095, 1001}}) time_product(s, mnk, transposes);
    }
}

TEST_CASE("speed: many small products" * doctest::skip())
{
    struct Shape {
        int64_t     batches;
        Index       mnk;
        const char* transposes;
    };
    const Shape shapes[] = {{10000, {8, 8, 8}, "nn"}, {10000, {16, 16, 16}, "nn"}, {4096, {32, 32, 32}, "nn"}, {4096, {32, 32, 32}, "tt"}, {1000, {33, 33, 33}, "nn"}, {1000, {33, 33, 33}, "nt"}, {4096, {64, 64, 64}, "nn"},
                            {4096, {64, 64, 64}, "nt"}, {4096, {64, 64, 64}, "tn"}, {2048, {49, 49, 32}, "nt"}, {2048, {49, 32, 49}, "nn"}, {768, {197, 197, 64}, "nt"}, {768, {197, 64, 197}, "nn"}, {1024, {100, 100, 100}, "nn"},
                            {1024, {128, 128, 128}, "nn"}, {512, {1, 2048, 128}, "nt"}, {128, {8, 2048, 128}, "nt"}, {512, {1, 128, 2048}, "nn"}, {128, {8, 128, 2048}, "nn"}, {512, {128, 128, 64}, "nt"}, {512, {128, 64, 128}, "nn"},
                            {256, {256, 256, 256}, "nn"}, {2000, {3, 3, 500}, "nn"}, {20000, {4, 4, 4}, "nn"}, {512, {16, 512, 64}, "nt"}, {512, {32, 32, 512}, "tn"}, {384, {196, 196, 64}, "nt"}, {384, {196, 64, 196}, "nn"},
                            {1024, {1, 64, 512}, "nn"}, {2000, {2, 256, 256}, "nn"}};
    for (const Speed& s : SPEEDS)
        for (const Shape& shape : shapes) time_ways(s, shape.mnk, shape.batches, shape.transposes);
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
