// One flight for each text: who asks second waits for the first; the disk is asked before the compiler. The texts of a kernel
// are compiled side by side, as many at once as there are threads: one text of all takes two thirds of their time on one core.
// NVRTC reads one text at a time, whoever asks, and does the rest side by side; so it is given no more to read than is needed.
#include "lib/backend/cuda/code.h"

#include "jit/dialect.h"
#include "lib/backend/cuda/ending.h"
#include "lib/context.h"
#include "lib/deadline.h"

#include <algorithm>

namespace ng::cuda {
namespace {

constexpr size_t MOST_CODES = 4096;      // kept for those who ask again; then nobody's are let go

uint64_t microseconds_since(Deadline::Clock::time_point start)
{
    return uint64_t(std::chrono::duration_cast<std::chrono::microseconds>(Deadline::Clock::now() - start).count());
}

}  // namespace

Code::Code(const DeviceContext& home, const std::string& image, Module::Accepts accepts, int count) : module(std::in_place, home, image, accepts), bytes(image.size())
{
    for (int i = 0; i < count; i++) functions.push_back(module->function(i ? text("fused_", i).c_str() : "fused"));
}

CodeStore::CodeStore(const DeviceContext& home, const CodeOptions& options, Counters& counters) : home_(home), options_(options), counters_(counters)
{
    if (!options.may_compile) return;
    compiler_ = Compiler::find();
    if (!compiler_) return;
    disk_ = DiskCache::open(options.cache_dir);
    const std::vector<int>& computes = compiler_->computes();
    is_ptx_ = std::ranges::find(computes, options.compute) == computes.end();
    const auto newer = std::ranges::upper_bound(computes, options.compute);
    const int compute = !is_ptx_ || newer == computes.begin() ? options.compute : newer[-1];
    // Kernels for products want what Hopper alone has.
    arch_ = text(is_ptx_ ? "compute_" : "sm_", compute, !is_ptx_ && compute == 90 ? "a" : "");
    identity_ = cache_key({arch_, text("nvrtc ", compiler_->version()), cuda_dialect().options, cuda_dialect().prelude});
}

Digest CodeStore::key_of(const std::string& source) const noexcept
{
    return cache_key({{reinterpret_cast<const char*>(identity_.data()), identity_.size()}, source});
}

namespace {

// In an Error's words, where there is memory for these; without allocating, where there is none.
std::exception_ptr out_of_memory() noexcept
{
    try {
        throw Error(NG_E_NOMEM, "there is no host memory left to compile in");
    } catch (...) {
        return std::current_exception();
    }
}

// What the text is refused for stays so; what the device or its memory lacked may be there next time.
bool is_refused(const Error& e) { return e.status == NG_E_COMPILE || e.status == NG_E_UNSUPPORTED || e.status == NG_E_LIMIT; }

}  // namespace

std::shared_ptr<const Code> CodeStore::find(const std::string& source)
{
    const Digest key = key_of(source);
    const std::lock_guard hold(lock_);
    const auto known = entries_.find(key);
    return known == entries_.end() ? nullptr : known->second->code;
}

std::shared_ptr<const Code> CodeStore::need(const std::string& source, int functions, std::atomic<bool>& is_counted)
{
    const Digest key = key_of(source);
    const auto mine = std::make_shared<Entry>();
    {
        std::unique_lock hold(lock_);
        if (const std::shared_ptr<Entry> entry = entries_.try_emplace(key, mine).first->second; entry != mine) {
            changed_.wait(hold, [&] { return entry->is_done || is_stopped_; });
            if (entry->code) return entry->code;
            if (entry->fault) std::rethrow_exception(entry->fault);
            throw Error(NG_E_LOST, "the context is being closed");
        }
        if (entries_.size() > MOST_CODES)
            std::erase_if(entries_, [](const auto& entry) { return entry.second->is_done && entry.second->code.use_count() == 1; });
    }
    std::shared_ptr<const Code> code;
    std::exception_ptr fault;
    bool stays = true;
    // Nothing is thrown from here: others wait.
    try {
        code = make(key, source, functions, is_counted);
    } catch (const Error& error) {
        fault = std::current_exception(), stays = is_refused(error);
    } catch (const std::bad_alloc&) {
        fault = out_of_memory(), stays = false;
    } catch (...) {
        fault = std::current_exception(), stays = false;
    }
    const std::lock_guard hold(lock_);
    mine->code = code, mine->fault = fault, mine->is_done = true;
    if (const auto known = entries_.find(key); !stays && known != entries_.end() && known->second == mine) entries_.erase(known);
    changed_.notify_all();
    if (fault) std::rethrow_exception(fault);
    return code;
}

std::string CodeStore::prelude_of(const std::string& source)
{
    const std::lock_guard hold(pieces_lock_);
    if (!pieces_) pieces_ = std::make_unique<const Pieces>(cuda_dialect().prelude);
    return pieces_->needed_by(source);
}

std::shared_ptr<const Code> CodeStore::make(const Digest& key, const std::string& source, int functions, std::atomic<bool>& is_counted)
{
    if (!compiler_) throw Error(NG_E_UNSUPPORTED, "there is no compiler: libnvrtc.so.13 and .12 are not here, or NG_CTX_NO_JIT forbids them");
    const UntilExit working;
    const auto accepts = is_ptx_ ? Module::Accepts::Ptx : Module::Accepts::Binary;
    const auto load = [&](const std::string& image) {
        const RelaxedCapture relaxed(home_.driver());
        const CurrentContext now(home_);
        return std::make_shared<const Code>(home_, image, accepts, functions);
    };
    if (const auto found = disk_.load(key)) {
        try {
            std::shared_ptr<const Code> code = load(std::string(found->begin(), found->end()));
            counters_.cache_hits.fetch_add(1, std::memory_order_relaxed);
            return code;
        } catch (const Error&) {
            // A driver that refuses what another one took: it is compiled again.
        }
    }
    const auto start = Deadline::Clock::now();
    const std::string image = compiler_->compile({.prelude = prelude_of(source), .text = source, .options = cuda_dialect().options, .arch = arch_});
    if (!is_counted.exchange(true, std::memory_order_relaxed)) counters_.jit_compiles.fetch_add(1, std::memory_order_relaxed);
    counters_.jit_usec.fetch_add(microseconds_since(start), std::memory_order_relaxed);
    disk_.store(key, image);
    return load(image);
}

// ---- jobs -------------------------------------------------------------------------------------------------------------

void CodeStore::later(std::function<void()> job, bool is_short)
{
    const std::lock_guard hold(lock_);
    if (is_stopped_) return;
    jobs_.insert(is_short ? jobs_.begin() : jobs_.end(), std::move(job));
    // Who waits takes one job each.
    if (options_.has_threads && threads_.size() < options_.threads && jobs_.size() > idle_) start();
    changed_.notify_all();
}

void CodeStore::start()
{
    try {
        threads_.emplace_back([this] { work(); });
    } catch (const std::system_error&) {
        // Where no thread can be had, poll() and wait do the work.
    }
}

bool CodeStore::work_once()
{
    std::function<void()> job;
    {
        const std::lock_guard hold(lock_);
        if (jobs_.empty()) return false;
        job = std::move(jobs_.front());
        jobs_.pop_front();
    }
    job();
    return true;
}

void CodeStore::work()
{
    while (true) {
        {
            std::unique_lock hold(lock_);
            idle_++;
            changed_.wait(hold, [&] { return is_stopped_ || !jobs_.empty(); });
            idle_--;
            if (is_stopped_) return;
        }
        (void)work_once();
    }
}

bool CodeStore::poll(uint64_t budget_ns)
{
    const Deadline deadline(budget_ns);
    {
        const std::lock_guard hold(lock_);
        if (!threads_.empty() || jobs_.empty()) return true;
    }
    while (deadline.left_ns())
        if (!work_once()) return true;
    const std::lock_guard hold(lock_);
    return jobs_.empty();
}

bool CodeStore::is_stopped() noexcept
{
    const std::lock_guard hold(lock_);
    return is_stopped_;
}

void CodeStore::stop() noexcept
{
    std::deque<std::function<void()>> dropped;
    {
        const std::lock_guard hold(lock_);
        is_stopped_ = true;
        dropped.swap(jobs_);
        changed_.notify_all();
    }
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
    const std::lock_guard hold(lock_);
    entries_.clear();
}

}  // namespace ng::cuda
