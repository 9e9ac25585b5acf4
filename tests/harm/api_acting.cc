// The fuzzer's calls of what acts: devices, contexts, marks, tensors, evaluation, programs.
#include "tests/harm/api_world.h"

#include <algorithm>
#include <cstdlib>
#include <limits>

namespace harm {
namespace {

// A call with an error of its own, whose outcome must make sense.
#define TRY(function, ...) tried(#function, w, [&](ng_error* err) { return function(__VA_ARGS__ __VA_OPT__(,) err); })
template <class Call>
ng_status tried(const char* name, World& w, Call&& call)
{
    ng_error* err = w.error();
    return sound(name, call(err), err);
}
#define PLAIN(function, ...) sound(#function, function(__VA_ARGS__), nullptr)

// *out changes exactly when the call succeeds.
template <class H, class Call>
void made(const char* name, World& w, Call&& call)
{
    H* const before = reinterpret_cast<H*>(uintptr_t(77));
    H* out = before;
    H** where = w.bytes.one_in(40) ? nullptr : &out;
    ng_error* err = w.error();
    const ng_status status = sound(name, call(where, err), err);
    if ((out != before) != (status >= 0 && where)) fault("%s returned %s and %s *out", name, ng_status_name(status), out != before ? "wrote" : "did not write");
    if (out != before) w.give(out);
}

uint64_t timeout(World& w) { return w.bytes.one_in(2) ? 0 : w.bytes.one_in(2) ? 1000 : UINT64_MAX; }
// The processor has none, so any is refused; a device's driver believes what it is given.
ng_stream stream(World& w)
{
    if (is_host()) return w.bytes.one_in(20) ? ng_stream(uintptr_t(w.bytes.word())) : nullptr;
    return w.bytes.one_in(3) ? ng_ctx_stream(w.context(), w.bytes.below(3)) : nullptr;
}

// Room, the pointer to it and the count of bytes, as odd as they come.
template <class Call>
void sized(const char* name, World& w, Call&& call)
{
    size_t room = w.bytes.one_in(2) ? w.bytes.below(4096) : w.bytes.below(20);
    char* buffer = w.bytes.one_in(3) ? nullptr : static_cast<char*>(w.scratch(room));
    ng_error* err = w.error();
    const ng_status status = sound(name, call(buffer, w.bytes.one_in(30) ? nullptr : &room, err), err);
    if (status == NG_OK && !buffer && w.bytes.one_in(2)) {
        buffer = static_cast<char*>(w.scratch(room));
        if (const ng_status again = sound(name, call(buffer, &room, err), err); again == NG_E_LIMIT) fault("%s asked for %zu bytes and found too little room", name, room);
    }
}

// ---- contexts

void create_context(World& w)
{
    static const ng_hooks hooks = {sizeof hooks, 0, nullptr, nullptr, nullptr, nullptr, nullptr};
    ng_ctx_desc d{};
    d.version = w.bytes.one_in(8) ? uint32_t(w.bytes.word()) : NG_VERSION;
    d.backend = w.bytes.one_in(12) ? w.text() : backend();
    d.device = w.bytes.one_in(8) ? int32_t(w.number()) : 0;
    d.flags = w.bytes.one_in(12) ? uint32_t(w.bytes.word()) : w.bytes.below(64);
    d.native = w.bytes.one_in(20) && is_host() ? &d : nullptr;
    d.target = w.bytes.one_in(20) ? w.text() : nullptr;
    d.hooks = w.bytes.one_in(4) ? w.structure(hooks) : nullptr;
    const ng_allocator none = {};
    d.host = w.bytes.one_in(20) ? w.structure(none) : nullptr;
    d.dev = w.bytes.one_in(20) ? w.structure(none) : nullptr;
    d.cache_dir = w.bytes.one_in(4) ? w.text() : "";
    d.pack_dirs = w.bytes.one_in(8) ? w.text() : nullptr;
    d.dev_limit = SMALL_MEMORY, d.threads = 1 + w.bytes.below(3), d.jit_threads = w.flags();
    ng_ctx_desc* given = w.structure(d);
    ng_ctx* fresh = nullptr;
    made<ng_ctx>("ng_ctx_create", w, [&](ng_ctx** out, ng_error* err) {
        const ng_status status = ng_ctx_create(given, out, err);
        if (status == NG_OK && out) fresh = *out;
        return status;
    });
    if (fresh && ng_ctx_limit(fresh, SMALL_MEMORY) != NG_OK) fault("ng_ctx_limit of a new context");
}

// ---- tensors

void wrap(World& w)
{
    Lent& lent = w.lend();
    const uint64_t bytes = w.bytes.one_in(4) ? w.bytes.below(Lent::BYTES + 1) : Lent::BYTES;
    // Elements may lie at any address of the host's; where UBSan looks, it takes what x86 reads for a fault.
    static const uint64_t unit = std::getenv("HARM_ALIGNED") ? 8 : 1;
    const uint64_t skipped = std::min<uint64_t>(w.bytes.one_in(6) ? w.bytes.below(16) : 0, Lent::BYTES - bytes) / unit * unit;
    void* data = w.bytes.one_in(20) ? nullptr : lent.memory.get() + skipped;
    ng_ctx* c = w.context();
    const ng_shape* d = w.shape();
    made<ng_tensor>("ng_tensor_wrap", w, [&](ng_tensor** out, ng_error* err) {
        const ng_status status = ng_tensor_wrap(c, d, data, data ? bytes : w.bytes.below(3), World::end, &lent, out, err);
        lent.was_taken = status == NG_OK;
        return status;
    });
}

void end_managed(DLManagedTensorVersioned* m) { World::end(m->manager); }

void from_dlpack(World& w)
{
    Lent& lent = w.lend();
    DLManagedTensorVersioned& m = lent.managed;
    m.major = w.bytes.one_in(12) ? uint32_t(w.number()) : 1, m.flags = w.bytes.below(4), m.device_type = w.bytes.one_in(12) ? int32_t(w.number()) : 1;
    m.manager = &lent, m.deleter = w.bytes.one_in(20) ? nullptr : end_managed;
    const ng_dtype t = w.dtype();
    m.code = uint8_t(t), m.bits = uint8_t(t >> 8), m.lanes = uint16_t(w.bytes.one_in(20) ? 2 : t >> 16);
    // At most 4 * 4 * 4 * 4 elements of 8 bytes; what is beyond is refused for what it says, not for what it points to.
    m.ndim = w.bytes.one_in(20) ? std::min(int32_t(w.number()), -1) : w.bytes.one_in(20) ? 33 : int32_t(w.bytes.below(5));
    int64_t stride = 1;
    for (int a = 3; a >= 0; a--) {
        lent.dims[a] = w.bytes.one_in(20) ? -int64_t(w.bytes.below(9)) : int64_t(w.bytes.below(5)), lent.strides[a] = w.bytes.one_in(8) ? 0 : stride;
        stride *= std::max<int64_t>(lent.dims[a], 1);
    }
    m.shape = w.bytes.one_in(20) ? nullptr : lent.dims, m.strides = w.bytes.one_in(2) ? nullptr : lent.strides;
    m.data = w.bytes.one_in(20) ? nullptr : lent.memory.get(), m.byte_offset = w.bytes.below(3) * 8;
    ng_ctx* c = w.context();
    DLManagedTensorVersioned* given = w.bytes.one_in(30) ? nullptr : &m;
    made<ng_tensor>("ng_tensor_from_dlpack", w, [&](ng_tensor** out, ng_error* err) {
        const ng_status status = ng_tensor_from_dlpack(c, given, stream(w), out, err);
        lent.was_taken = status == NG_OK && m.deleter;
        return status;
    });
}

void to_dlpack(World& w)
{
    DLManagedTensorVersioned* out = nullptr;
    ng_tensor* t = w.tensor();
    const ng_stream s = stream(w);
    const ng_status status = TRY(ng_tensor_to_dlpack, t, s, w.bytes.one_in(40) ? nullptr : &out);
    if (status == NG_OK && out) w.borrowed.push_back(out);
}

// The bytes of t, or not; behind the pointer there are as many as are named.
template <class Call>
void moved(const char* name, World& w, Call&& call)
{
    ng_tensor* t = w.tensor();
    ng_shape d{};
    d.size = sizeof d;
    uint64_t bytes = w.bytes.below(200);
    if (w.is_short(t) && ng_tensor_shape(t, &d) == NG_OK && !w.bytes.one_in(8)) {
        bytes = (d.dtype >> 8 & 0xff) / 8;
        for (int32_t a = 0; a < d.ndim; a++) bytes *= uint64_t(d.dims[a]);
    }
    void* memory = w.bytes.one_in(30) ? nullptr : w.scratch(bytes);
    if (!memory && w.bytes.one_in(2)) bytes = w.bytes.word();
    ng_error* err = w.error();
    sound(name, call(t, memory, bytes, err), err);
}

// ---- evaluation and programs

// What is said beside a fault of ours: the texts of the roots.
ng_status told(ng_status status, ng_expr* const* e, uint32_t n)
{
    for (uint32_t i = 0; status == NG_E_BUG && i < n; i++) {
        size_t bytes = 0;
        if (ng_expr_text(e[i], nullptr, &bytes, nullptr) != NG_OK) continue;
        std::string text(bytes, 0);
        if (ng_expr_text(e[i], text.data(), &bytes, nullptr) == NG_OK) std::fprintf(stderr, "root %u: %s\n", i, text.c_str());
    }
    return status;
}

// A program of the roots says what they cost.
bool is_affordable(ng_ctx* c, ng_expr* const* e, uint32_t n, World& w)
{
    if (w.met_vast()) return false;
    ng_prog* p = nullptr;
    if (ng_compile(c, nullptr, e, n, &p, nullptr) != NG_OK) return true;
    const bool cheap = cost_of(p) < AFFORDABLE;
    ng_prog_release(p);
    return cheap;
}

void evaluate(World& w)
{
    const uint32_t n = w.bytes.one_in(3) ? w.count(3) : 1;
    ng_ctx* c = w.context();
    ng_expr** e = w.exprs(n);
    ng_tensor** out = w.array<ng_tensor*>(n, [&] { return w.bytes.one_in(3) ? w.tensor() : nullptr; });
    if (!is_affordable(c, e, n, w)) return;
    const std::vector<ng_tensor*> before(out, out + (out ? n : 0));
    const uint32_t given = e && out ? n : w.flags() & 3;
    ng_error* err = w.error();
    const ng_status status = sound("ng_eval", told(ng_eval(c, stream(w), e, out, given, err), e, e && out ? n : 0), err);
    for (size_t j = 0; j < before.size(); j++) {
        if (status != NG_OK && out[j] != before[j]) fault("ng_eval failed and wrote out[%zu]", j);
        if (status == NG_OK && !before[j]) w.give(out[j]);
    }
}

void compile(World& w)
{
    const uint32_t n = w.bytes.one_in(3) ? w.count(3) : 1;
    ng_ctx* c = w.context();
    ng_expr** e = w.exprs(n);
    ng_compile_desc d{};
    d.flags = w.bytes.one_in(12) ? uint32_t(w.bytes.word()) : w.bytes.below(2);
    d.alias = w.bytes.one_in(3) ? w.array<int32_t>(n, [&] { return w.bytes.one_in(16) ? int32_t(w.number()) : int32_t(w.bytes.below(4)) - 1; }) : nullptr;
    d.out = w.bytes.one_in(4) ? w.array<const ng_shape*>(n, [&] { return w.bytes.one_in(2) ? w.shape() : nullptr; }) : nullptr;
    d.nlength = w.bytes.one_in(4) ? w.count(3) : 3;
    bool has_long = false;
    d.length_max = w.array<int64_t>(d.nlength, [&] {
        const int64_t most = w.bytes.one_in(12) ? w.number() : int64_t(w.bytes.below(20));
        has_long |= most > 256;
        return most;
    });
    if (!d.length_max && w.bytes.one_in(2)) d.nlength = uint32_t(w.bytes.word());
    d.runs = w.bytes.one_in(20) ? uint32_t(w.number()) : w.bytes.below(3);
    d.workspace_max = w.bytes.one_in(16) ? w.bytes.word() >> w.bytes.below(64) : 0;
    d.workspace_of = w.bytes.one_in(6) ? w.program() : nullptr;
    const ng_compile_desc* given = w.bytes.one_in(4) ? nullptr : w.structure(d);
    const bool vast = has_long || w.met_vast();
    ng_prog* fresh = nullptr;
    made<ng_prog>("ng_compile", w, [&](ng_prog** out, ng_error* err) {
        const ng_status status = told(ng_compile(c, given, e, e ? n : w.flags(), out, err), e, e ? n : 0);
        if (status == NG_OK && out) fresh = *out;
        return status;
    });
    if (fresh && (vast || cost_of(fresh) > AFFORDABLE)) w.set_vast(fresh);
}

// What the port asks for, in a context of ours; or anything.
ng_tensor* fitting(World& w, ng_ctx* c, ng_prog* p, uint32_t port, int64_t length)
{
    ng_shape d{};
    d.size = sizeof d;
    ng_tensor* t = nullptr;
    if (w.bytes.one_in(10) || ng_prog_port(p, port, &d, nullptr, nullptr) != NG_OK) return w.bytes.one_in(3) ? nullptr : w.tensor();
    for (int32_t a = 0; a < d.ndim; a++) d.dims[a] = d.dims[a] < 0 ? length : d.dims[a];
    d.flags = 0;
    if (ng_tensor_create(c, &d, &t, nullptr) != NG_OK) return nullptr;
    w.give(t);
    ng_tensor_fill(t, nullptr, 1, nullptr);
    return t;
}

void run(World& w)
{
    ng_prog* p = w.program();
    if (w.is_vast(p)) return;
    ng_prog_info info{};
    info.size = sizeof info;
    if (ng_prog_get_info(p, &info, nullptr) != NG_OK || info.nargs > 100) info = {};
    ng_ctx* c = w.context();
    const int64_t length = w.bytes.below(5);
    ng_run r{};
    uint32_t port = 0;
    r.nargs = w.bytes.one_in(16) ? w.count(5) : info.nargs, r.nout = w.bytes.one_in(16) ? w.count(5) : info.nout;
    r.args = w.array<ng_tensor*>(r.nargs, [&] { return fitting(w, c, p, port++, length); });
    port = info.nargs;
    r.out = w.array<ng_tensor*>(r.nout, [&] { return w.bytes.one_in(5) ? nullptr : w.bytes.one_in(6) && r.args && r.nargs ? r.args[0] : fitting(w, c, p, port++, length); });
    r.flags = w.bytes.one_in(30) ? uint32_t(w.bytes.word()) : 0;
    r.scalar_bytes = w.bytes.one_in(8) || info.scalar_bytes > 4096 ? w.count(16) : info.scalar_bytes;
    r.scalars = w.array<uint8_t>(r.scalar_bytes, [&] { return w.bytes.byte(); });
    r.nlength = w.bytes.one_in(8) ? w.count(4) : info.nlength > 8 ? 8 : info.nlength;
    r.lengths = w.bytes.one_in(2) ? nullptr : w.array<int64_t>(r.nlength, [&] { return w.bytes.one_in(10) ? w.number() : int64_t(w.bytes.below(6)); });
    r.workspace = w.bytes.one_in(8) ? w.tensor() : nullptr;
    const ng_run* given = w.structure(r);
    TRY(ng_prog_run, p, stream(w), given);
}

void load(World& w)
{
    std::string text = w.saved.empty() || w.bytes.one_in(6) ? std::string(w.bytes.below(200), 'N') : w.saved[w.bytes.below(uint32_t(w.saved.size()))];
    if (!text.empty() && w.bytes.one_in(3)) text[w.bytes.below(uint32_t(text.size()))] = char(w.bytes.byte());
    void* memory = w.scratch(text.size());
    std::memcpy(memory, text.data(), text.size());
    const void* given = w.bytes.one_in(30) ? nullptr : memory;
    const uint32_t flags = w.flags();
    ng_ctx* c = w.context();
    ng_prog* fresh = nullptr;
    made<ng_prog>("ng_prog_load", w, [&](ng_prog** out, ng_error* err) {
        const ng_status status = ng_prog_load(c, flags, given, text.size(), out, err);
        if (status == NG_OK && out) fresh = *out;
        return status;
    });
    if (fresh && cost_of(fresh) > AFFORDABLE) w.set_vast(fresh);
}

void save(World& w)
{
    ng_prog* p = w.program();
    const uint32_t flags = w.flags();
    sized("ng_prog_save", w, [&](char* buffer, size_t* bytes, ng_error* err) {
        const ng_status status = ng_prog_save(p, flags, buffer, bytes, err);
        if (status == NG_OK && buffer && bytes) w.saved.emplace_back(buffer, *bytes);
        return status;
    });
}

// After these the pool's contexts could take more than is healthy: limits stay small.
uint64_t small_limit(World& w) { return 1 + w.bytes.word() % SMALL_MEMORY; }

const std::vector<Row> ROWS = {
    {"ng_status_name", [](World& w) { if (!*ng_status_name(ng_status(w.bytes.word()))) fault("a status without a name"); }},
    {"ng_version", [](World&) { if (ng_version() < NG_VERSION) fault("ng_version"); }},
    {"ng_api_json", [](World&) { if (*ng_api_json() != '{') fault("ng_api_json"); }},
    {"ng_device_count", [](World&) { if (!ng_device_count()) fault("ng_device_count"); }},
    {"ng_device_get", [](World& w) { PLAIN(ng_device_get, w.flags(), w.out<ng_device_info>()); }},
    {"ng_ctx_create", create_context},
    {"ng_ctx_retain", [](World& w) { ng_ctx* c = w.context(); ng_ctx_retain(c), w.retained(c); }},
    {"ng_ctx_release", [](World& w) { if (w.bytes.one_in(16)) ng_ctx_release(w.context()); }},
    {"ng_ctx_close", [](World& w) { if (w.bytes.one_in(24)) TRY(ng_ctx_close, w.context(), timeout(w)); }},
    {"ng_ctx_poll", [](World& w) { TRY(ng_ctx_poll, w.context(), timeout(w)); }},
    {"ng_ctx_sync", [](World& w) { TRY(ng_ctx_sync, w.context(), stream(w), timeout(w)); }},
    {"ng_ctx_info", [](World& w) { PLAIN(ng_ctx_info, w.context(), w.out<ng_device_info>()); }},
    {"ng_ctx_stats", [](World& w) { PLAIN(ng_ctx_stats, w.context(), w.out<ng_stats>()); }},
    {"ng_ctx_limit", [](World& w) { PLAIN(ng_ctx_limit, w.context(), w.bytes.one_in(8) ? small_limit(w) : SMALL_MEMORY); }},
    {"ng_ctx_trim", [](World& w) { PLAIN(ng_ctx_trim, w.context(), w.bytes.word()); }},
    {"ng_ctx_stream", [](World& w) { if (ng_ctx_stream(w.context(), w.flags()) && is_host()) fault("the CPU has a stream"); }},
    {"ng_mark", [](World& w) { uint64_t mark; TRY(ng_mark, w.context(), stream(w), w.bytes.one_in(20) ? nullptr : &mark); }},
    {"ng_mark_wait", [](World& w) { TRY(ng_mark_wait, w.context(), w.bytes.below(3), timeout(w)); }},
    {"ng_mark_after", [](World& w) { TRY(ng_mark_after, w.context(), stream(w), w.bytes.one_in(4) ? w.bytes.word() : w.bytes.below(3)); }},
    {"ng_tensor_create", [](World& w) {
         ng_ctx* c = w.context();
         const ng_shape* d = w.shape();
         made<ng_tensor>("ng_tensor_create", w, [&](ng_tensor** out, ng_error* err) { return ng_tensor_create(c, d, out, err); });
     }},
    {"ng_tensor_wrap", wrap},
    {"ng_tensor_view", [](World& w) {
         ng_expr* e = w.expr();
         made<ng_tensor>("ng_tensor_view", w, [&](ng_tensor** out, ng_error* err) { return ng_tensor_view(e, out, err); });
     }},
    {"ng_tensor_retain", [](World& w) { ng_tensor* t = w.tensor(); ng_tensor_retain(t), w.retained(t); }},
    {"ng_tensor_release", [](World& w) { if (w.bytes.one_in(3)) ng_tensor_release(w.tensor()); }},
    {"ng_tensor_close", [](World& w) { if (w.bytes.one_in(3)) TRY(ng_tensor_close, w.tensor()); }},
    {"ng_tensor_shape", [](World& w) { PLAIN(ng_tensor_shape, w.tensor(), w.out<ng_shape>()); }},
    {"ng_tensor_ctx", [](World& w) { (void)ng_tensor_ctx(w.tensor()); }},
    {"ng_tensor_use", [](World& w) { void* at; TRY(ng_tensor_use, w.tensor(), stream(w), w.bytes.one_in(8) ? uint32_t(w.bytes.word()) : w.bytes.below(8), w.bytes.one_in(8) ? nullptr : &at); }},
    {"ng_tensor_put", [](World& w) { moved("ng_tensor_put", w, [](ng_tensor* t, void* memory, uint64_t bytes, ng_error* err) { return ng_tensor_put(t, memory, bytes, err); }); }},
    {"ng_tensor_get", [](World& w) { moved("ng_tensor_get", w, [](ng_tensor* t, void* memory, uint64_t bytes, ng_error* err) { return ng_tensor_get(t, memory, bytes, err); }); }},
    {"ng_tensor_copy", [](World& w) {
         ng_tensor *to = w.tensor(), *from = w.tensor();
         if (w.is_short(to) && w.is_short(from)) TRY(ng_tensor_copy, to, from, stream(w));
     }},
    {"ng_tensor_fill", [](World& w) { ng_tensor* t = w.tensor(); if (w.is_short(t)) TRY(ng_tensor_fill, t, stream(w), w.real()); }},
    {"ng_tensor_from_dlpack", from_dlpack},
    {"ng_tensor_to_dlpack", to_dlpack},
    {"ng_eval", evaluate},
    {"ng_compile", compile},
    {"ng_prog_wait", [](World& w) { TRY(ng_prog_wait, w.program(), timeout(w)); }},
    {"ng_prog_run", run},
    {"ng_prog_get_info", [](World& w) { TRY(ng_prog_get_info, w.program(), w.out<ng_prog_info>()); }},
    {"ng_prog_port", [](World& w) { const char* name; TRY(ng_prog_port, w.program(), w.bytes.one_in(8) ? uint32_t(w.bytes.word()) : w.bytes.below(5), w.bytes.one_in(8) ? nullptr : w.out<ng_shape>(), w.bytes.one_in(8) ? nullptr : &name); }},
    {"ng_prog_explain", [](World& w) { ng_prog* p = w.program(); sized("ng_prog_explain", w, [&](char* buffer, size_t* bytes, ng_error* err) { return ng_prog_explain(p, buffer, bytes, err); }); }},
    {"ng_prog_save", save},
    {"ng_prog_load", load},
    {"ng_prog_retain", [](World& w) { ng_prog* p = w.program(); ng_prog_retain(p), w.retained(p); }},
    {"ng_prog_release", [](World& w) { if (w.bytes.one_in(3)) ng_prog_release(w.program()); }},
    {"ng_scope_create", [](World& w) { if (ng_scope* s = ng_scope_create(w.bytes.one_in(2) ? nullptr : w.context(), w.bytes.one_in(4) ? size_t(w.number()) : 0)) w.give(s); }},
    {"ng_scope_release", [](World& w) { if (w.bytes.one_in(4)) ng_scope_release(w.any<ng_scope>()); }},
    {"ng_expr_retain", [](World& w) { ng_expr* e = w.expr(); ng_expr_retain(e), w.retained(e); }},
    {"ng_expr_release", [](World& w) { if (w.bytes.one_in(3)) ng_expr_release(w.expr()); }},
    {"ng_expr_shape", [](World& w) { TRY(ng_expr_shape, w.expr(), w.out<ng_shape>()); }},
    {"ng_expr_text", [](World& w) { ng_expr* e = w.expr(); sized("ng_expr_text", w, [&](char* buffer, size_t* bytes, ng_error* err) { return ng_expr_text(e, buffer, bytes, err); }); }},
    {"ng_expr_bind", [](World& w) { TRY(ng_expr_bind, w.expr(), w.tensor()); }},
};

#undef TRY
#undef PLAIN

}  // namespace

const std::vector<Row>& acting_rows() { return ROWS; }

}  // namespace harm
