// The measurements of products: operands of random numbers that take turns, and every way by turns with all others.
#include "lib/backend/cuda/tuning.h"

#include "jit/saturated.h"
#include "lib/backend/cuda/ending.h"
#include "lib/backend/cuda/gemm_tuned.h"
#include "lib/backend/cuda/rounding.h"
#include "lib/context.h"
#include "lib/strided.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

namespace ng::cuda {
namespace {

constexpr double   WARM_US = 20000;                    // of work, until clocks are what they will be
constexpr uint64_t MOST_BYTES = uint64_t(1) << 47;     // of an operand: more than any memory

// How far an operand's elements lie from its first, as those of the greatest lengths, which may be what no memory has.
struct Reach {
    uint64_t below = 0, above = 0, size = 1;             // the first two in elements, the last in bytes
    void along(int64_t extent, int64_t stride)
    {
        uint64_t& side = stride < 0 ? below : above;
        side = plus(side, times(uint64_t(extent - 1), stride < 0 ? -uint64_t(stride) : uint64_t(stride)));
    }
    uint64_t bytes() const { return times(plus(plus(below, above), uint64_t(1)), size); }
};
struct Reaches {
    Reach a, b, c;
    bool fit() const { return std::max({a.bytes(), b.bytes(), c.bytes()}) < MOST_BYTES; }
    uint64_t bytes() const { return aligned(a.bytes()) + aligned(b.bytes()) + aligned(c.bytes()); }
};
Reaches reaches_of(const gemm::Problem& p)
{
    Reaches r;
    r.a.size = uint64_t(bytes_of(p.a_type)), r.b.size = uint64_t(bytes_of(p.b_type)), r.c.size = uint64_t(bytes_of(p.c_type));
    r.a.along(p.m, p.a_row), r.a.along(p.k, p.a_depth), r.a.along(p.batches, p.a_batch);
    r.b.along(p.k, p.b_depth), r.b.along(p.n, p.b_column), r.b.along(p.batches, p.b_batch);
    r.c.along(p.m, p.c_row), r.c.along(p.n, p.c_column), r.c.along(p.batches, p.c_batch);
    return r;
}

// Times on a stream that nobody else has, in memory of its own.
class Bench {
  public:
    Bench(CudaBackend& backend, const gemm::Device& device, const gemm::Problem& problem, const Reaches& reaches, uint64_t workspace_bytes)
        : backend_(backend), device_(device), problem_(problem), workspace_bytes_(workspace_bytes), reaches_(reaches),
          stream_(make_stream(backend.home(), StreamKind::Independent)), begin_(backend.home(), Event::Timing::On), end_(backend.home(), Event::Timing::On)
    {
        set_bytes_ = reaches_.bytes();
        const uint64_t cache = std::max<uint64_t>(backend.info().l2_bytes, 1);
        sets_ = int(std::clamp<uint64_t>(divided_up(int64_t(2 * cache), int64_t(set_bytes_)), 1, MOST_SETS));
        memory_ = backend.aside(set_bytes_ * uint64_t(sets_) + workspace_bytes_ + AHEAD_BYTES, "memory to measure in");
        fill();
    }
    // What a fault left under way is over before the memory goes.
    ~Bench() { (void)backend_.home().driver().cuStreamSynchronize.quiet(stream_.get()); }
    Bench(const Bench&) = delete;
    // Of one run, as many follow on each other; what interrupts them only makes it more.
    double microseconds(const gemm::Way& way)
    {
        const Driver& driver = backend_.home().driver();
        const int count = turns_;
        // While the device does this, the host gets ahead of it.
        for (int i = 0; i <= count / LAUNCHES_AHEAD; i++) driver.cuMemsetD8Async(ahead(), 0, AHEAD_BYTES, stream_.get());
        begin_.record(stream_.get());
        for (int i = 0; i < count; i++) run(way);
        end_.record(stream_.get());
        end_.wait();
        const double us = double(end_.milliseconds_since(begin_)) * 1000 / count;
        turns_ = int(std::clamp(WANTED_US / std::max(us, 1.0), 3.0, double(MOST_TURNS)));
        return us;
    }
    void run(const gemm::Way& way)
    {
        auto basic_body = [&](const basic::Launch& launch) { backend_.shipped().launch(launch, stream_.get()); };
        auto body = [&](const gemm::Launch& launch) { backend_.shipped().launch(launch, stream_.get()); };
        const basic::Launcher basic_launcher(basic_body);
        const gemm::Launcher  launcher(body);
        gemm::Problem p = problem_;
        uint64_t at = first() + set_bytes_ * uint64_t(next_++ % sets_);
        const auto place = [&](const Reach& reach) {
            const uint64_t first = at + reach.below * reach.size;
            at += aligned(reach.bytes());
            return reinterpret_cast<void*>(first);
        };
        p.a = place(reaches_.a), p.b = place(reaches_.b), p.c = place(reaches_.c);
        gemm::run_so(p, device_, way, {reinterpret_cast<void*>(workspace()), workspace_bytes_, launcher, basic_launcher, &backend_.home().driver()});
    }

  private:
    static constexpr uint64_t AHEAD_BYTES = uint64_t(32) << 20, PATTERN_BYTES = uint64_t(1) << 20;
    static constexpr int      MOST_SETS = 16, MOST_TURNS = 48, LAUNCHES_AHEAD = 4;
    static constexpr double   WANTED_US = 400;            // of a measurement

    uint64_t first() const { return reinterpret_cast<uintptr_t>(memory_->data()); }
    uint64_t workspace() const { return first() + set_bytes_ * uint64_t(sets_); }
    uint64_t ahead() const { return workspace() + workspace_bytes_; }
    // Random numbers of a's type everywhere: what a product takes depends on them, for the card has just so much power.
    void fill()
    {
        const Driver&  driver = backend_.home().driver();
        const int64_t  size = bytes_of(problem_.a_type);
        const uint64_t all = set_bytes_ * uint64_t(sets_), begin = std::min(PATTERN_BYTES, all);
        std::vector<char> pattern(begin);
        std::mt19937_64 random;
        for (uint64_t i = 0; i + uint64_t(size) <= begin; i += uint64_t(size)) {
            const double v = is_float(problem_.a_type) ? double(random() >> 11) * 0x1p-52 - 1 : double(random() >> 57);
            const uint64_t bits = encode(problem_.a_type, v);
            std::memcpy(&pattern[i], &bits, size_t(size));
        }
        driver.cuMemcpyHtoDAsync(first(), pattern.data(), begin, stream_.get());
        for (uint64_t done = begin; done < all; done += std::min(done, all - done)) driver.cuMemcpyDtoDAsync(first() + done, first(), std::min(done, all - done), stream_.get());
        driver.cuStreamSynchronize(stream_.get());
    }

    CudaBackend&         backend_;
    const gemm::Device&  device_;
    const gemm::Problem& problem_;
    const uint64_t       workspace_bytes_;
    const Reaches        reaches_;
    const Stream         stream_;
    const Event          begin_, end_;
    uint64_t             set_bytes_ = 0;
    int                  sets_ = 1, next_ = 0, turns_ = 3;
    std::unique_ptr<Aside> memory_;
};

}  // namespace

void Tuning::measure(const Wanted& wanted)
{
    gemm::Problem p = wanted.problem;
    const gemm::Shape shape = gemm::shape_of(p);
    if (backend_.tuned().find(shape)) return;
    if (p.m == 0 || p.n == 0 || p.k == 0 || p.batches == 0) return;
    const Reaches reaches = reaches_of(p);
    if (!reaches.fit()) throw Error(NG_E_DEVMEM, "operands of the greatest lengths are more than any memory");
    if (p.epilogue_weight > 0) p.epilogue = {}, p.epilogue.is_cast = true, p.epilogue_weight = 0;
    struct Timed { gemm::Way way; double us; bool is_usual; };
    std::vector<Timed> timed;
    for (const gemm::Way& way : gemm::ways(p, device_, wanted.workspace_bytes)) timed.push_back({way, HUGE_VAL, timed.empty()});
    if (timed.empty()) return;
    Bench bench(backend_, device_, p, reaches, wanted.workspace_bytes);
    // Whoever closes the context, or ends the process, waits for this.
    const auto goes_on = [&] { return !backend_.code().is_stopped() && !UntilExit::is_awaited(); };
    for (double warm_us = 0; warm_us < WARM_US && goes_on(); warm_us += 100)
        for (const Timed& t : timed) warm_us += goes_on() ? bench.microseconds(t.way) : 0;
    // The card's speed goes up and down with what it did before: all take turns, and what is clearly behind leaves.
    for (const double within : {2.0, 1.3, 1.1, 1.05, 1.0}) {
        for (Timed& t : timed) {
            if (!goes_on()) return;
            t.us = std::min(t.us, bench.microseconds(t.way));
        }
        std::ranges::stable_sort(timed, {}, &Timed::us);
        const double most = timed.front().us * within;
        std::erase_if(timed, [&](const Timed& t) { return t.us > most && !t.is_usual; });
    }
    const double usual_us = std::ranges::find(timed, true, &Timed::is_usual)->us;
    backend_.tuned().keep(shape, {timed.front().way, timed.front().us, usual_us});
}

// What one product lacks, others may have.
template <class Body>
void Tuning::guarded(const Body& body) noexcept
{
    try {
        try {
            body();
        } catch (const Error& error) {
            backend_.context().log(2, text("libng: products were not measured: ", error.text));
        }
    } catch (...) {
        // Not enough memory to say more.
    }
}

void Tuning::run() noexcept
{
    guarded([&] {
        const UntilExit working;
        const CurrentContext now(backend_.home());
        const RelaxedCapture relaxed(backend_.home().driver());
        const uint64_t known = backend_.tuned().count();
        for (const Wanted& wanted : wanted_)
            if (!backend_.code().is_stopped()) guarded([&] { measure(wanted); });
        if (backend_.tuned().count() != known) backend_.save_tuned();
    });
    waiting.store(0, std::memory_order_release);
}

}  // namespace ng::cuda
