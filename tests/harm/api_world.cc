// Handles and arguments for the API fuzzer, and the end of everything that its calls have made.
#include "tests/harm/api_world.h"

#include <algorithm>

namespace harm {
namespace {

constexpr int64_t NUMBERS[] = {0, 1, 2, 7, 16, 31, 32, 33, 64, 255, 257, 4096, 65535, 65536, 1 << 20, INT32_MAX, int64_t(INT32_MAX) + 1, UINT32_MAX, int64_t(1) << 32,
                               int64_t(1) << 40, int64_t(1) << 60, INT64_MAX / 8, INT64_MAX - 1, INT64_MAX, INT64_MIN, INT64_MIN + 1, -1, -2, -33, -65536, INT32_MIN};
constexpr ng_dtype DTYPES[] = {NG_F32, NG_I32, NG_F64, NG_BOOL, NG_U64, NG_I64, NG_F16, NG_BF16, NG_E4M3, NG_E5M2, NG_I8, NG_U8, NG_I16, NG_U16, NG_U32};
constexpr const char* TEXTS[] = {"", "x", "x + y", "a\xff\xfe", "x,y,k", "\"\\\n\t", "sum(x, 0) * y", "m = x; m[1:]", ",", "x,,y", "softmax(x, [1])", "cpu", "cuda", "x86-64-v2", "/", "((", "%s%n"};

// Counts bytes, so that a closed context can be asked whether it gave all back.
void* take(void* user, size_t bytes, size_t align, ng_purpose, ng_stream)
{
    void* memory = nullptr;
    if (bytes > SMALL_MEMORY || posix_memalign(&memory, std::max(align, sizeof(void*)), std::max<size_t>(bytes, 1))) return nullptr;
    *static_cast<int64_t*>(user) += int64_t(bytes);
    return memory;
}
void give_back(void* user, void* memory, size_t bytes, ng_purpose, ng_stream)
{
    *static_cast<int64_t*>(user) -= int64_t(bytes);
    std::free(memory);
}
void run_backwards(void*, uint32_t count, ng_task_fn task, void* arg)
{
    while (count-- > 0) task(arg, count);
}
void say(void*, int32_t, const char* text) { (void)std::strlen(text); }
int32_t press(void*, uint64_t) { return 0; }
void trace(void*, uint32_t, const char* tag, ng_stream) { (void)std::strlen(tag); }

int64_t hook_bytes = 0;

ng_ctx* hooked_context()
{
    ng_allocator memory{};
    memory.size = sizeof memory, memory.alloc = take, memory.free = give_back, memory.user = &hook_bytes;
    ng_hooks hooks{};
    hooks.size = sizeof hooks, hooks.parallel = run_backwards, hooks.log = say, hooks.pressure = press, hooks.trace = trace;
    ng_ctx_desc d{};
    d.size = sizeof d, d.backend = backend(), d.cache_dir = "", d.dev_limit = SMALL_MEMORY, d.host = d.dev = is_host() ? &memory : nullptr, d.hooks = &hooks;
    ng_ctx* c = nullptr;
    ng_error error{};
    if (sound("ng_ctx_create", ng_ctx_create(&d, &c, &error), &error) != NG_OK) fault("a context with hooks: %s", error.text);
    return c;
}

uint64_t elements(const ng_shape& d)
{
    uint64_t n = 1;
    for (int32_t a = 0; a < d.ndim; a++) {
        const uint64_t length = d.dims[a] < 0 ? 1 : uint64_t(d.dims[a]);
        if (length == 0) return 0;
        n = n > UINT64_MAX / length ? UINT64_MAX : n * length;
    }
    return n;
}

}  // namespace

World::World(const uint8_t* data, size_t size) : bytes(data, size)
{
    ng_error error{};
    ng_ctx* contexts[] = {small_context(), hooked_context()};
    for (ng_ctx* c : contexts) give(c);
    ng_scope* s = ng_scope_create(contexts[0], 0);
    give(s);
    ng_shape d{};
    d.size = sizeof d, d.ndim = 2, d.dims[0] = 3, d.dims[1] = 4;
    for (const ng_dtype t : {NG_BOOL, NG_F64, NG_I32, NG_F32}) {
        for (ng_ctx* c : {contexts[1], contexts[0]}) {
            ng_tensor* tensor = nullptr;
            d.dtype = t;
            if (ng_tensor_create(c, &d, &tensor, &error) != NG_OK || ng_tensor_fill(tensor, nullptr, 1, &error) != NG_OK) fault("%s", error.text);
            give(tensor);
            if (c == contexts[0]) give(ng_leaf(s, tensor));
        }
    }
    for (uint32_t i = 0; i < 3; i++) give(ng_param(s, i, &d));
    ng_shape any = d;
    any.dims[0] = -1, any.flags = NG_ANY;
    ng_expr *unknown = ng_param(nullptr, 1, &any), *sum = ng_add(unknown, ng_const(nullptr, NG_F32, 2));
    give(unknown), give(sum);
    const int64_t most = 9;
    ng_compile_desc description{};
    description.size = sizeof description, description.length_max = &most, description.nlength = 1;
    ng_prog* p = nullptr;
    if (ng_compile(contexts[0], &description, &sum, 1, &p, &error) != NG_OK) fault("%s", error.text);
    give(p);
}

World::~World()
{
    begin();
    release_all();
    for (DLManagedTensorVersioned* m : borrowed) m->deleter(m);
    // A call of another context buries those that nobody holds any more.
    ng_ctx* c = small_context();
    if (ng_ctx_poll(c, 0, nullptr) != NG_OK) fault("ng_ctx_poll of a new context");
    end_context(c);
    ng_ctx* last = small_context();
    end_context(last);
    for (const auto& lent : lent_)
        if (lent->ends != int(lent->was_taken)) fault("memory that was %s was ended %d times", lent->was_taken ? "taken" : "refused", lent->ends);
    if (hook_bytes) fault("the host's allocator lacks %lld bytes", (long long)hook_bytes);
}

void World::release_all()
{
    const auto each = [&](Kind kind, auto&& release) {
        for (void* handle : handles_[kind])
            for (unsigned n = retains_.count(handle) ? 1 + retains_[handle] : 1; n-- > 0;) release(handle);
    };
    each(SCOPE, [](void* h) { ng_scope_release(static_cast<ng_scope*>(h)); });
    each(EXPR, [](void* h) { ng_expr_release(static_cast<ng_expr*>(h)); });
    each(PROGRAM, [](void* h) { ng_prog_release(static_cast<ng_prog*>(h)); });
    each(TENSOR, [](void* h) { ng_tensor_release(static_cast<ng_tensor*>(h)); });
    // What expired in one context may hold what is another's, as a program holds its leaves: each is removed by calls of its own.
    for (size_t links = handles_[CONTEXT].size(); links-- > 0;)
        for (void* handle : handles_[CONTEXT]) (void)ng_ctx_poll(static_cast<ng_ctx*>(handle), 0, nullptr);
    for (void* handle : handles_[CONTEXT]) {
        ng_ctx* c = static_cast<ng_ctx*>(handle);
        ng_stats left{};
        left.size = sizeof left;
        if (borrowed.empty() && ng_ctx_stats(c, &left) == NG_OK && (left.tensors || left.live_bytes || left.workspace_bytes))
            fault("a context has %u tensors and %llu bytes left", left.tensors, (unsigned long long)(left.live_bytes + left.workspace_bytes));
        ng_error error{};
        sound("ng_ctx_close", ng_ctx_close(c, UINT64_MAX, &error), &error);
    }
    each(CONTEXT, [](void* h) { ng_ctx_release(static_cast<ng_ctx*>(h)); });
}

void World::keep(Kind kind, void* handle)
{
    if (handle && reinterpret_cast<uintptr_t>(handle) >> 47) fault("the handle %p is not below 2^47", handle);
    if (handle) handles_[kind].push_back(handle);
}

void* World::pick(Kind kind)
{
    const unsigned how = bytes.byte();
    std::vector<void*>& all = handles_[kind];
    if (how >= 250 || all.empty()) {
        switch (bytes.below(6)) {
        case 0: return nullptr;
        case 1: return reinterpret_cast<void*>(uintptr_t(bytes.word()));
        case 2: return reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(all.empty() ? nullptr : all[0]) ^ uintptr_t(1) << bytes.below(64));
        case 3: return &bytes;
        case 4: return reinterpret_cast<void*>(uintptr_t(how));
        default: {
            const std::vector<void*>& others = handles_[bytes.below(KINDS)];
            return others.empty() ? nullptr : others.back();
        }
        }
    }
    // mostly what is young
    if (kind == CONTEXT && how < 200) return all[0];
    const size_t back = how < 160 ? how % std::min<size_t>(all.size(), 8) : (how << 8 | bytes.byte()) % all.size();
    void* handle = all[all.size() - 1 - back];
    if (is_vast(handle)) met_vast_ = true;
    return handle;
}

void World::built(const char* call, ng_expr* e)
{
    if (!e) fault("%s gave NULL", call);
    ng_shape d{};
    d.size = sizeof d;
    const bool is_sound = ng_expr_shape(e, &d, nullptr) == NG_OK;
    if (!is_sound && !bytes.one_in(8)) return ng_expr_release(e);
    keep(EXPR, e);
    if (met_vast_ || (is_sound && elements(d) > 1 << 16)) set_vast(e);
}

bool World::is_short(ng_tensor* t) const
{
    ng_shape d{};
    d.size = sizeof d;
    return ng_tensor_shape(t, &d) != NG_OK || elements(d) <= 1 << 20;
}

void World::begin()
{
    scratch_.clear();
    met_vast_ = false;
}

void* World::scratch(size_t size)
{
    scratch_.push_back(std::make_unique<uint8_t[]>(size));
    return scratch_.back().get();
}

int64_t World::number() { return bytes.one_in(6) ? int64_t(bytes.word()) : NUMBERS[bytes.below(std::size(NUMBERS))]; }

ng_dtype World::dtype() { return bytes.one_in(16) ? ng_dtype(bytes.word()) : DTYPES[bytes.one_in(2) ? 0 : bytes.below(std::size(DTYPES))]; }

double World::real()
{
    const uint64_t word = bytes.word();
    double value;
    std::memcpy(&value, &word, sizeof value);
    return bytes.one_in(2) ? double(int64_t(word % 9)) - 4 : value;
}

const char* World::text()
{
    if (bytes.one_in(30)) return nullptr;
    if (!bytes.one_in(6)) return TEXTS[bytes.below(std::size(TEXTS))];
    const uint32_t n = bytes.one_in(4) ? 400 : bytes.below(40);
    char* made = static_cast<char*>(scratch(n + 1));
    for (uint32_t i = 0; i < n; i++) made[i] = char(bytes.is_empty() ? 'x' : bytes.byte());
    made[n] = 0;
    return made;
}

uint32_t World::struct_size(size_t whole)
{
    if (!bytes.one_in(10)) return uint32_t(whole);
    const uint32_t odd[] = {0, 4, 7, 8, 9, 12, 16, 24, uint32_t(whole) - 1, uint32_t(whole) - 4, uint32_t(whole) - 8, uint32_t(whole) + 8, UINT32_MAX};
    return bytes.one_in(5) ? uint32_t(bytes.word()) : odd[bytes.below(std::size(odd))];
}

ng_shape World::shape_value()
{
    ng_shape d{};
    d.size = sizeof d, d.dtype = dtype();
    d.ndim = bytes.one_in(30) ? int32_t(number()) : int32_t(bytes.one_in(20) ? bytes.below(34) : bytes.below(5));
    d.flags = bytes.one_in(20) ? uint32_t(bytes.word()) : bytes.one_in(3) ? bytes.below(16) : 0;
    for (int32_t a = 0; a < std::min(d.ndim, int32_t(NG_MAX_NDIM)); a++) d.dims[a] = dim(), d.strides[a] = bytes.one_in(6) ? number() : int64_t(bytes.below(9)) - 2;
    // A device's context has no bound for memory of the host.
    if (!is_host() && (d.flags & NG_STRIDED || elements(d) > SMALL_MEMORY / 8)) d.flags &= ~uint32_t(NG_HOST);
    return d;
}
const ng_shape* World::shape() { return structure(shape_value()); }

Lent& World::lend()
{
    lent_.push_back(std::make_unique<Lent>());
    return *lent_.back();
}

}  // namespace harm
