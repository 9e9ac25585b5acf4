// ng.h: status names, devices, contexts and marks.
#include "lib/api_json.h"
#include "lib/context.h"
#include "lib/deadline.h"

using namespace ng;

namespace {

constexpr uint32_t CTX_FLAGS = NG_CTX_NO_JIT | NG_CTX_DETERMINISTIC | NG_CTX_REFERENCE | NG_CTX_NO_THREADS | NG_CTX_POLL | NG_CTX_CALLER_ORDERS;

ng_allocator allocator_of(const ng_allocator* given, const char* name)
{
    if (!given) return {};
    const ng_allocator a = read_struct(given, "ng_ctx_create", name);
    if (!a.alloc || !a.free) throw Error(NG_E_INVALID, text("ng_ctx_create: ", name, " lacks alloc or free; it needs both"));
    return a;
}

ContextPlan plan_of(const ng_ctx_desc* given)
{
    const char* who = "ng_ctx_create";
    ng_ctx_desc d{};
    if (given) d = read_struct(given, who, "ng_ctx_desc");
    if (d.version && d.version >> 16 != NG_VERSION >> 16)
        throw Error(NG_E_UNSUPPORTED, text(who, ": version is that of ng.h ", d.version >> 16, ".x, this library is ", NG_VERSION >> 16, ".x"));
    const BackendRow& backend = need_backend(d.backend, who);
    if (d.flags & ~CTX_FLAGS) throw Error(NG_E_INVALID, text(who, ": flags ", d.flags, " has bits that are no NG_CTX_ flag"));
    // Where there is none at all, opening says why.
    if (!d.target && backend.count() && (d.device < 0 || uint32_t(d.device) >= backend.count()))
        throw Error(NG_E_INVALID, text(who, ": no device ", d.device, " of \"", backend.name, "\"; there are ", backend.count(), ", counted from 0"));
    ContextPlan plan;
    plan.backend = &backend;
    plan.device = d.device, plan.native = d.native, plan.jit_threads = d.jit_threads;
    plan.flags = d.flags;
    plan.threads = d.threads ? d.threads : cpu::usable_cores();
    plan.host = allocator_of(d.host, "ng_ctx_desc.host");
    plan.dev = allocator_of(d.dev, "ng_ctx_desc.dev");
    if (d.hooks) plan.hooks = read_struct(d.hooks, who, "ng_ctx_desc.hooks");
    plan.limit = d.dev_limit;
    plan.has_cache_dir = d.cache_dir != nullptr;
    if (d.cache_dir) plan.cache_dir = d.cache_dir;
    plan.has_target = d.target != nullptr;
    if (d.target) plan.target = d.target;
    return plan;
}

// most calls: the context pinned and entered
template <class Body>
ng_status inside(const ng_ctx* c, const char* who, ng_error* error, Body&& body)
{
    return guard(error, [&]() -> ng_status {
        const Pin<Context> context = need_context(c, who);
        const Entry entry(*context, who);
        return body(*context);
    });
}

}  // namespace

const char* ng_status_name(ng_status s)
{
    switch (s) {
#define NAME(code) case code: return #code;
    NAME(NG_OK) NAME(NG_NOT_READY) NAME(NG_SLOW) NAME(NG_NO_PATH)
    NAME(NG_E_INVALID) NAME(NG_E_SHAPE) NAME(NG_E_DTYPE) NAME(NG_E_UNSUPPORTED) NAME(NG_E_LIMIT) NAME(NG_E_COMPILE)
    NAME(NG_E_NOMEM) NAME(NG_E_DEVMEM) NAME(NG_E_DEVICE) NAME(NG_E_LOST) NAME(NG_E_IO) NAME(NG_E_BUG)
#undef NAME
    default: return "no status of ng.h";
    }
}

uint32_t ng_version(void) { return NG_VERSION; }

const char* ng_api_json(void) { return api_json_text; }

uint32_t ng_device_count(void) { return device_count(); }

ng_status ng_device_get(uint32_t i, ng_device_info* out)
{
    return guard(nullptr, [&] {
        if (i >= device_count()) return ng_status(NG_E_INVALID);
        write_struct(out, device_info(i), "ng_device_get", "ng_device_info");
        return ng_status(NG_OK);
    });
}

ng_status ng_ctx_create(const ng_ctx_desc* d, ng_ctx** out, ng_error* err)
{
    return guard(err, [&] {
        ng_ctx*& made = need_out(out, "ng_ctx_create");
        made = to_handle<ng_ctx>(Context::create(plan_of(d)));
        return NG_OK;
    });
}

void ng_ctx_retain(ng_ctx* c) { retain_handle<Context>(handle_of(c)); }
void ng_ctx_release(ng_ctx* c) { release_handle<Context>(handle_of(c)); }

ng_status ng_ctx_close(ng_ctx* c, uint64_t timeout_ns, ng_error* err)
{
    return guard(err, [&] { return need_context(c, "ng_ctx_close")->close(timeout_ns); });
}

ng_status ng_ctx_poll(ng_ctx* c, uint64_t budget_ns, ng_error* err)
{
    return inside(c, "ng_ctx_poll", err, [&](Context& context) {
        const Deadline deadline(budget_ns);
        const bool is_done = context.backend().poll(budget_ns);
        (void)context.settle(Context::Where::Poll, deadline.left_ns());
        for (int turn = 0; context.is_waiting(); turn++) {
            if (!deadline.wait(turn)) return ng_status(NG_NOT_READY);
            (void)context.settle(Context::Where::Poll, deadline.left_ns());
        }
        return ng_status(is_done ? NG_OK : NG_NOT_READY);
    });
}

ng_status ng_ctx_sync(ng_ctx* c, ng_stream s, uint64_t timeout_ns, ng_error* err)
{
    return inside(c, "ng_ctx_sync", err, [&](Context& context) {
        context.backend().need_stream(s, "ng_ctx_sync");
        const Deadline deadline(timeout_ns);
        const ng_status status = context.backend().sync(s, timeout_ns);
        const bool is_settled = context.settle(Context::Where::Poll, status == NG_OK ? deadline.left_ns() : 0);
        return status == NG_OK && !is_settled ? ng_status(NG_NOT_READY) : status;
    });
}

ng_status ng_ctx_info(const ng_ctx* c, ng_device_info* out)
{
    return inside(c, "ng_ctx_info", nullptr, [&](Context& context) {
        const ng_device_info info = context.backend().info();
        write_struct(out, info, "ng_ctx_info", "ng_device_info");
        return NG_OK;
    });
}

ng_status ng_ctx_stats(const ng_ctx* c, ng_stats* out)
{
    return inside(c, "ng_ctx_stats", nullptr, [&](Context& context) {
        context.settle(Context::Where::Call);
        const auto read = [](const std::atomic<uint64_t>& counter) { return counter.load(std::memory_order_relaxed); };
        Heap& heap = context.heap();
        const Counters& counted = context.counters;
        ng_stats stats{};
        stats.tensors = uint32_t(read(counted.tensors));
        stats.dev_bytes = heap.held();
        stats.dev_peak = heap.peak();
        stats.live_bytes = heap.in(NG_MEM_TENSOR);
        stats.workspace_bytes = heap.in(NG_MEM_WORK);
        stats.launches = read(counted.launches);
        stats.interim_runs = read(counted.interim_runs);
        stats.jit_compiles = read(counted.jit_compiles);
        stats.jit_usec = read(counted.jit_usec);
        stats.cache_hits = read(counted.cache_hits);
        write_struct(out, stats, "ng_ctx_stats", "ng_stats");
        return NG_OK;
    });
}

ng_status ng_ctx_limit(ng_ctx* c, uint64_t dev_bytes)
{
    return inside(c, "ng_ctx_limit", nullptr, [&](Context& context) {
        context.heap().set_limit(dev_bytes);
        return NG_OK;
    });
}

ng_status ng_ctx_trim(ng_ctx* c, uint64_t keep_bytes)
{
    return inside(c, "ng_ctx_trim", nullptr, [&](Context& context) {
        context.settle(Context::Where::Call);
        context.backend().trim(keep_bytes);
        context.heap().forget_peak();
        return NG_OK;
    });
}

ng_stream ng_ctx_stream(ng_ctx* c, uint32_t i)
{
    ng_stream stream = nullptr;
    inside(c, "ng_ctx_stream", nullptr, [&](Context& context) {
        stream = context.backend().stream(i);
        return NG_OK;
    });
    return stream;
}

ng_status ng_mark(ng_ctx* c, ng_stream s, uint64_t* out, ng_error* err)
{
    return inside(c, "ng_mark", err, [&](Context& context) {
        context.backend().need_stream(s, "ng_mark");
        uint64_t& mark = need_out(out, "ng_mark");
        mark = context.backend().mark(s);
        return NG_OK;
    });
}

ng_status ng_mark_wait(ng_ctx* c, uint64_t mark, uint64_t timeout_ns, ng_error* err)
{
    return inside(c, "ng_mark_wait", err, [&](Context& context) { return context.backend().wait_for(mark, timeout_ns, "ng_mark_wait"); });
}

ng_status ng_mark_after(ng_ctx* c, ng_stream s, uint64_t mark, ng_error* err)
{
    return inside(c, "ng_mark_after", err, [&](Context& context) {
        context.backend().need_stream(s, "ng_mark_after");
        context.backend().hold(s, mark, "ng_mark_after");
        return NG_OK;
    });
}
