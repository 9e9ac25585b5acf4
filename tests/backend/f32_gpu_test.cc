// How far off products of f32 are on the device of this machine: no farther than chains of multiply-adds in f32, by doubles.
//
//   f32_gpu_test        all cases; without a driver, a device or its images they are skipped, and counted so
//   f32_gpu_test -s     and the figures
//
// The error of a sum is told in parts of the sum of its products' sizes. Chains are the portable products' plain multiply-adds with the depth in one part, in
// the order of k: tested here against the processor's. Products by tf32 have to fall.
#define DOCTEST_CONFIG_IMPLEMENT
#include "lib/backend/cuda/gemm_mma.h"
#include "tests/backend/gemm_machine.h"

#include <cmath>

REGISTER_EXCEPTION_TRANSLATOR(const ng::Error& error) { return error.text.c_str(); }

namespace ng::gemm_check {
namespace {

using namespace cuda;
constexpr gemm::Image IMAGES[] = {gemm::Image::Sm90Wide, gemm::Image::Mma};

struct Device : GemmMachine {
    explicit Device(const Driver& driver) : GemmMachine(driver, IMAGES) {}
};

Device* device = nullptr;

template <class T>
class There {
  public:
    explicit There(size_t count) : count_(count), data_(device->gpu.take(count * sizeof(T))) {}
    explicit There(const std::vector<T>& from) : There(from.size()) { device->gpu.put(data_, from.data(), from.size() * sizeof(T)); }
    ~There() { device->gpu.give(data_); }
    There(const There&) = delete;
    void*          data() const { return data_; }
    std::vector<T> get() const
    {
        std::vector<T> r(count_);
        device->gpu.get(r.data(), data_, count_ * sizeof(T));
        return r;
    }

  private:
    size_t count_;
    void*  data_;
};

// ---- numbers -----------------------------------------------------------------------------------------------------------

enum class Numbers { BothSigns, Positive, OfAllSizes };
constexpr const char* NAMES[] = {"both signs", "positive", "of all sizes"};

// Below 1; of all sizes: from 2^-20 to 2^20 and of both signs.
std::vector<float> random_numbers(Numbers which, int64_t count, uint32_t seed)
{
    std::mt19937       random(seed);
    std::vector<float> all(static_cast<size_t>(count));
    for (float& x : all) {
        const double part = double(random()) * 0x1p-32;
        if (which == Numbers::OfAllSizes) x = float(std::ldexp(random() & 1 ? 1 + part : -1 - part, int(random() % 40) - 20));
        else x = float(which == Numbers::Positive ? part : 2 * part - 1);
    }
    return all;
}

// ---- products ----------------------------------------------------------------------------------------------------------

template <class T>
std::vector<T> product(const gemm::Problem& of, const There<T>& a, const There<T>& b, const auto& run, uint64_t workspace_bytes)
{
    gemm::Problem p = of;
    There<T>      c(size_t(p.m * p.n));
    There<char>   workspace(workspace_bytes + 1);
    p.a = a.data(), p.b = b.data(), p.c = c.data();
    device->with_place(workspace_bytes ? workspace.data() : nullptr, workspace_bytes, [&](const gemm::Place& place) { run(p, place); });
    device->gpu.wait();
    return c.get();
}

void run_chosen(const gemm::Problem& p, const gemm::Place& place) { gemm::run(p, device->facts, place); }
void run_chains(const gemm::Problem& p, const gemm::Place& place) { gemm::mma::run(p, device->facts, place); }

std::vector<double> in_doubles(const gemm::Problem& like, const std::vector<float>& a, const std::vector<float>& b, bool of_sizes)
{
    const auto doubles = [&](const std::vector<float>& x) {
        std::vector<double> r(x.begin(), x.end());
        if (of_sizes) for (double& v : r) v = std::fabs(v);
        return r;
    };
    gemm::Problem p = like;
    p.a_type = p.b_type = p.c_type = Dtype::f64, p.allows_tf32 = false;
    return product<double>(p, There<double>(doubles(a)), There<double>(doubles(b)), run_chosen, gemm::workspace(p, device->facts, true));
}

struct Error {
    double mean = 0, most = 0;           // mean: root of the mean square
    bool   is_within(const Error& other) const { return mean <= other.mean && most <= other.most; }
};
Error error_of(const std::vector<float>& got, const std::vector<double>& sums, const std::vector<double>& sizes)
{
    Error e;
    for (size_t i = 0; i < got.size(); i++) {
        const double off = std::fabs(double(got[i]) - sums[i]) / sizes[i];
        e.mean += off * off, e.most = off <= e.most ? e.most : off;      // NaN is the most
    }
    e.mean = std::sqrt(e.mean / double(got.size()));
    return e;
}

// That doubles and chains are what they are taken for, at some places.
void check_witnesses(const gemm::Problem& p, const std::vector<float>& a, const std::vector<float>& b, const std::vector<float>& chains, const std::vector<double>& sums, const std::vector<double>& sizes)
{
    std::mt19937 random(7);
    int64_t      wrong = 0;
    for (int i = 0; i < 50; i++) {
        const int64_t row = int64_t(random()) % p.m, column = int64_t(random()) % p.n;
        const size_t  at = size_t(row * p.n + column);
        float         chain = 0;
        double        sum = 0;
        for (int64_t k = 0; k < p.k; k++) {
            const float x = a[size_t(row * p.a_row + k * p.a_depth)], y = b[size_t(k * p.b_depth + column * p.b_column)];
            chain = std::fma(x, y, chain), sum += double(x) * double(y);
        }
        wrong += chain != chains[at] || !(std::fabs(sum - sums[at]) <= 2 * double(p.k) * 0x1p-53 * sizes[at]);
    }
    CHECK(wrong == 0);
}

// Ways that were not chosen, of numbers of all sizes: up to 1.34 times the mean and 1.2 times the most of chains (H200, 2026-11-23, 129 x 130 x 64). Few
// numbers are most of such a sum, and a chain of few is hardly rounded.
constexpr double OTHER_WAYS = 1.5;

void check_product(const Extents& e, const Lying& lying, Numbers numbers)
{
    gemm::Problem p = problem_of(e, lying, Dtype::f32, Dtype::f32, Dtype::f32);
    const std::vector<float> a = random_numbers(numbers, p.a_batch, 1), b = random_numbers(numbers, p.b_batch, 2);
    const std::vector<double> sums = in_doubles(p, a, b, false), sizes = in_doubles(p, a, b, true);
    const There<float>        a_there(a), b_there(b);
    const auto error = [&](const gemm::Problem& of, const auto& run, uint64_t bytes) { return error_of(product<float>(of, a_there, b_there, run, bytes), sums, sizes); };
    const std::vector<float> chains = product<float>(p, a_there, b_there, run_chains, 0);
    check_witnesses(p, a, b, chains, sums, sizes);
    const uint64_t bytes = gemm::workspace(p, device->facts, true);
    const Error    chain = error_of(chains, sums, sizes), ours = error(p, run_chosen, bytes);
    p.allows_tf32 = true;
    const Error by_tf32 = error(p, run_chosen, gemm::workspace(p, device->facts, true));
    p.allows_tf32 = false;
    const auto text_of = [](const Error& of) { return text(of.mean, " and ", of.most); };
    const std::string what = text(e.m, " x ", e.n, " x ", e.k, ", ", NAMES[int(numbers)], ": ", text_of(ours), ", chains ", text_of(chain), ", tf32 ", text_of(by_tf32));
    INFO(what);
    CHECK(ours.is_within(chain));
    // Chains of tens of thousands of positive numbers are as far off as tf32 is.
    if (numbers != Numbers::Positive || e.k <= 4096) CHECK(!by_tf32.is_within(chain));
    for (const gemm::Way& way : gemm::ways(p, device->facts, bytes)) {
        const Error of_way = error(p, [&](const gemm::Problem& of, const gemm::Place& place) { gemm::run_so(of, device->facts, way, place); }, bytes);
        const std::string by = text("portable ", way.is_portable, ", instance ", way.instance, ", cluster ", way.cluster, ", splits ", way.splits, ": ", text_of(of_way));
        INFO(by);
        const double times = numbers == Numbers::OfAllSizes ? OTHER_WAYS : 1;
        CHECK(of_way.is_within({times * chain.mean, times * chain.most}));
    }
}

}  // namespace

TEST_CASE("products of f32 are no farther off than chains of multiply-adds, in the mean and at the most; tf32 is")
{
    const Extents shapes[] = {{40, 50, 16, 1}, {129, 130, 64, 1}, {300, 500, 256, 1}, {129, 67, 1000, 1}, {1024, 1024, 1024, 1}, {1760, 64, 1760, 1}, {3, 4096, 4096, 1}, {96, 80, 32768, 1}};
    for (const Extents& e : shapes) {
        if (device->gpu.is_small() && e.m * e.n > 20000) continue;
        for (const Numbers n : {Numbers::BothSigns, Numbers::Positive, Numbers::OfAllSizes})
            for (const bool b_turned : {false, true}) check_product(e, {false, b_turned, false, 0}, n);
    }
}

}  // namespace ng::gemm_check

int main(int argc, char** argv)
{
    using namespace ng::cuda;
    using ng::gemm_check::Device;
    return ng::test::run_cases(argc, argv, ng::gemm_check::device, [](const Driver& driver) {
        if (!gemm_image(gemm::Image::Mma).empty()) return std::make_unique<Device>(driver);
        std::printf("skipped: this build has no kernels for a device\n");
        return std::unique_ptr<Device>();
    });
}
