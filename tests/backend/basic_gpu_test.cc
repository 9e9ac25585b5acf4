// The shipped kernels as this build's image has them, on the device of this machine: the cases of their emulation, and larger ones.
//
//   basic_gpu_test                                 all cases; without a driver, a device or an image they are skipped, and counted so
//   NG_TEST_SMALL=1 compute-sanitizer basic_gpu_test   small cases, in memory of exactly the size that is theirs
//   basic_gpu_test --no-skip -tc="speed*"          how fast the kernels are
#define DOCTEST_CONFIG_IMPLEMENT
#include "lib/backend/cuda/images.h"
#include "tests/backend/basic_index_cases.h"
#include "tests/backend/basic_pool_cases.h"
#include "tests/backend/basic_product_cases.h"
#include "tests/backend/gpu_machine.h"

REGISTER_EXCEPTION_TRANSLATOR(const ng::Error& error) { return error.text.c_str(); }

namespace basic_check {
namespace {

using namespace ng::cuda;
using basic::BasicKernel;

constexpr uint32_t KERNELS = uint32_t(BasicKernel::count_);

class Device final : public GpuMachine {
  public:
    explicit Device(const Driver& driver) : GpuMachine(driver), module_(gpu().home(), std::string(basic_image()), ng::cuda::Module::Accepts::Ptx)
    {
        for (uint32_t k = 0; k < KERNELS; k++) functions_[k] = module_.function(name_of(BasicKernel(k)));
        const ng_device_info info = gpu().info();
        std::printf("%s, %s: %u kernels in an image of %zu bytes, %s\n", info.name, info.arch, KERNELS, basic_image().size(),
                    has_basic_code(compute_of(driver, gpu().home().device())) ? "with code for it" : "compiled from PTX");
    }
    void            launch(const basic::Launch& l) override { gpu().launch(function(l.kernel), l); }
    const Function& function(BasicKernel k) const { return functions_[uint32_t(k)]; }

  private:
    ng::cuda::Module module_;
    Function         functions_[KERNELS];
};

Device* device = nullptr;

}  // namespace

Machine& machine() { return *device; }

TEST_CASE("image: every kernel is there, spills nothing and takes blocks of every size")
{
    for (uint32_t k = 0; k < KERNELS; k++) {
        const Function& f = device->function(BasicKernel(k));
        INFO(std::string(name_of(BasicKernel(k))));
        CHECK(f.registers > 0);
        CHECK(f.local_bytes == 0);
        CHECK(f.max_threads >= ng::kernels::THREADS);
    }
}

// ---- speed -------------------------------------------------------------------------------------------------------------

namespace {

// A dense tensor there: floats of 0 .. 1, integers of any bits or below `most`.
class Large {
  public:
    Large(Dtype type, Index dims, uint64_t most = 0) : type_(type), dims_(std::move(dims)), strides_(dims_.size())
    {
        int64_t count = 1;
        for (size_t i = dims_.size(); i-- > 0;) strides_[i] = count, count *= dims_[i];
        bytes_ = size_t(count) * size_t(ng::bytes_of(type));
        std::mt19937_64   random(1);
        std::vector<char> host(bytes_);
        for (int64_t i = 0; i < count; i++) {
            const double   v = double(random() >> 11) * 0x1p-53;
            const float    narrow = float(v);
            const uint64_t whole = most ? random() % most : random();
            char* const    to = host.data() + size_t(i) * size_t(ng::bytes_of(type));
            if (type == Dtype::f32) write(to, narrow);
            else if (type == Dtype::f64) write(to, v);
            else if (type == Dtype::bf16) std::memcpy(to, reinterpret_cast<const char*>(&narrow) + 2, 2);
            else std::memcpy(to, &whole, size_t(ng::bytes_of(type)));
        }
        data_ = device->take(bytes_);
        device->put(data_, host.data(), bytes_);
    }
    ~Large() { device->give(data_); }
    Large(const Large&) = delete;
    Large& operator=(const Large&) = delete;
    basic::Operand operand() const { return {data_, type_, dims_.data(), strides_.data()}; }
    const int64_t* dims() const { return dims_.data(); }
    double         bytes() const { return double(bytes_); }
    void           transpose() { std::swap(strides_[0], strides_[1]), std::swap(dims_[0], dims_[1]); }

  private:
    Dtype  type_;
    Index  dims_, strides_;
    size_t bytes_;
    void*  data_;
};

// Prints the least time of a few runs, and `work`, of which `unit` is 1e9, a second.
template <class Body>
void time(const char* what, double work, const char* unit, uint64_t workspace_bytes, Body&& body)
{
    void* const workspace = device->take(std::max<uint64_t>(workspace_bytes, 1));
    auto        send = [](const basic::Launch& l) { device->launch(l); };
    const basic::Launcher launcher(send);
    const basic::Place    place = {workspace, launcher};
    const Event begin(device->gpu().home(), Event::Timing::On), end(device->gpu().home(), Event::Timing::On);
    double      best = HUGE_VAL;
    for (int i = 0; i < 6; i++) {
        begin.record(device->gpu().stream());
        body(place);
        end.record(device->gpu().stream());
        end.wait();
        if (i > 0) best = std::min(best, double(end.milliseconds_since(begin)));
    }
    device->give(workspace);
    std::printf("%-44s %10.3f ms %10.1f %s\n", what, best, work / best / 1e6, unit);
}

}  // namespace

TEST_CASE("speed: copies and fills" * doctest::skip())
{
    Large a(Dtype::f32, {16384, 16384}), b(Dtype::f32, {16384, 16384});
    time("copy f32 16384 x 16384", a.bytes() + b.bytes(), "GB/s", 0, [&](const basic::Place& p) { basic::copy(a.operand(), b.operand(), 2, p); });
    time("fill f32 16384 x 16384", b.bytes(), "GB/s", 0, [&](const basic::Place& p) { basic::fill(b.operand(), 2, 1, p); });
    a.transpose();
    time("copy f32 16384 x 16384, transposed", a.bytes() + b.bytes(), "GB/s", 0, [&](const basic::Place& p) { basic::copy(a.operand(), b.operand(), 2, p); });
}

TEST_CASE("speed: scans, segments, sorts" * doctest::skip())
{
    for (const Index& dims : {Index{1, 1 << 26}, {1 << 13, 1 << 13}, {1 << 20, 64}}) {
        Large x(Dtype::f32, dims), y(Dtype::f32, dims);
        for (const int axis : {0, 1}) {
            const std::string what = "scan f32 " + std::to_string(dims[0]) + " x " + std::to_string(dims[1]) + " along " + std::to_string(axis);
            time(what.c_str(), x.bytes() + y.bytes(), "GB/s", basic::scan_workspace(dims.data(), 2, axis),
                 [&](const basic::Place& p) { basic::scan(x.operand(), y.operand(), {2, axis, SUM, 0}, p); });
        }
    }
    for (const int64_t segments : {10, 100000}) {
        Large                x(Dtype::f32, {1 << 20, 64}), y(Dtype::f32, {segments, 64}), offsets(Dtype::i64, {segments + 1});
        std::vector<int64_t> cuts;
        for (int64_t i = 0; i <= segments; i++) cuts.push_back(i * (1 << 20) / segments);
        device->put(offsets.operand().data, cuts.data(), cuts.size() * 8);
        time(("segment f32 2^20 x 64 into " + std::to_string(segments)).c_str(), x.bytes(), "GB/s", basic::segment_workspace(x.dims(), 2),
             [&](const basic::Place& p) { basic::segment(x.operand(), offsets.operand(), y.operand(), 2, SUM, p); });
    }
    for (const Dtype type : {Dtype::f32, Dtype::i64})
        for (const Index& dims : {Index{1, 1 << 24}, {1 << 14, 1 << 10}, {1 << 10, 1 << 14}}) {
            Large             x(type, dims), y(Dtype::i64, dims);
            const std::string what = std::string("argsort ") + ng::name_of(type) + " " + std::to_string(dims[0]) + " x " + std::to_string(dims[1]);
            time(what.c_str(), double(dims[0] * dims[1]), "G keys/s", basic::argsort_workspace(dims.data(), 2, 1, type),
                 [&](const basic::Place& p) { basic::argsort(x.operand(), y.operand(), 2, 1, 0, p); });
        }
}

TEST_CASE("speed: put" * doctest::skip())
{
    for (const basic::Folding how : {SUM, LAST, MAX})
        for (const bool is_ordered : {false, true}) {
            Large x(Dtype::f32, {1 << 20, 16}), y(Dtype::f32, {1 << 22, 16}), indices(Dtype::i64, {1 << 22}, 1 << 20);
            const basic::PutExtents extents = {2, 0, 1, is_ordered};
            time(("put f32 2^22 rows of 16 into 2^20, fold " + std::to_string(how) + (is_ordered ? ", ordered" : "")).c_str(), y.bytes(), "GB/s",
                 basic::put_workspace(x.operand(), indices.operand(), extents, how),
                 [&](const basic::Place& p) { basic::put(x.operand(), indices.operand(), y.operand(), extents, how, p); });
        }
}

TEST_CASE("speed: products and pools" * doctest::skip())
{
    for (const Dtype type : {Dtype::f32, Dtype::bf16, Dtype::f64, Dtype::i8})
        for (const Index& s : {Index{4096, 4096, 4096}, {64, 64, 65536}, {1, 4096, 4096}}) {
            const Dtype c_type = type == Dtype::f64 ? Dtype::f64 : type == Dtype::i8 ? Dtype::i32 : Dtype::f32;
            Large       a(type, {s[0], s[2]}), b(type, {s[2], s[1]}), c(c_type, {s[0], s[1]});
            const std::string what = std::string("matmul ") + ng::name_of(type) + " " + std::to_string(s[0]) + " x " + std::to_string(s[1]) + " x " + std::to_string(s[2]);
            time(what.c_str(), 2.0 * double(s[0]) * double(s[1]) * double(s[2]), "GFLOP/s", basic::matmul_workspace({1, s[0], s[1], s[2], c_type}),
                 [&](const basic::Place& p) { basic::matmul(a.operand(), b.operand(), c.operand(), 2, p); });
        }
    Large x(Dtype::f32, {32, 64, 56, 56}), w(Dtype::f32, {64, 64, 3, 3}), y(Dtype::f32, {32, 64, 56, 56}), pooled(Dtype::f32, {32, 64, 28, 28});
    const basic::ConvWindow window = {2, {1, 1, 1}, {1, 1, 1}, {1, 1, 0}, 1, 0};
    const double            flops = 2.0 * 32 * 64 * 56 * 56 * 64 * 9;
    const uint64_t          bytes = basic::conv_workspace(x.operand(), w.operand(), y.operand(), window);
    time("conv f32 32 x 64 x 56 x 56, 3 x 3 to 64", flops, "GFLOP/s", bytes, [&](const basic::Place& p) { basic::conv(x.operand(), w.operand(), y.operand(), window, p); });
    time("conv_dx of it", flops, "GFLOP/s", bytes, [&](const basic::Place& p) { basic::conv_dx(w.operand(), y.operand(), x.operand(), window, p); });
    time("conv_dw of it", flops, "GFLOP/s", bytes, [&](const basic::Place& p) { basic::conv_dw(x.operand(), y.operand(), w.operand(), window, p); });
    basic::PoolWindow pool = {};
    pool.spatial = 2, pool.channel_window = pool.channel_stride = 1;
    for (int d = 0; d < 2; d++) pool.window[d] = pool.stride[d] = 2, pool.dilate[d] = 1;
    for (const ng_pool_kind kind : POOL_KINDS) {
        pool.kind = kind;
        time(("pool kind " + std::to_string(kind) + ", 2 x 2").c_str(), x.bytes() + pooled.bytes(), "GB/s", 0, [&](const basic::Place& p) { basic::pool(x.operand(), pooled.operand(), pool, p); });
        time("pool_dx of it", x.bytes() + pooled.bytes() + y.bytes(), "GB/s", basic::pool_dx_workspace(pooled.dims(), pool),
             [&](const basic::Place& p) { basic::pool_dx(x.operand(), pooled.operand(), y.operand(), pool, p); });
    }
}

}  // namespace basic_check

int main(int argc, char** argv)
{
    using basic_check::Device;
    return ng::test::run_cases(argc, argv, basic_check::device, [](const ng::cuda::Driver& driver) {
        if (!ng::cuda::basic_image().empty()) return std::make_unique<Device>(driver);
        std::printf("skipped: this build has no kernels for a device\n");
        return std::unique_ptr<Device>();
    });
}
