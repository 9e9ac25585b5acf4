// Whose bytes a CUDA context works in: all of the device's come from the host's allocator and go back, count, are limited and asked for.
#include "lib/backend/cuda/gemm.h"
#include "lib/backend/cuda/runtime.h"
#include "tests/backend/cuda_host.h"
#include "tests/backend/emulated_device.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

using namespace ng;
using namespace ng::cuda;

namespace {

// A host that has a heap of its own on the device.
class Heap {
  public:
    Heap() : driver_(Driver::need("a test", stand_in_path())), home_(DeviceContext::primary(driver_, 0)) {}
    ng_allocator table()
    {
        ng_allocator a{};
        a.size = sizeof a, a.user = this;
        a.alloc = [](void* self, size_t bytes, size_t align, ng_purpose purpose, ng_stream s) { return static_cast<Heap*>(self)->take(bytes, align, purpose, s); };
        a.free = [](void* self, void* p, size_t bytes, ng_purpose purpose, ng_stream s) { static_cast<Heap*>(self)->give(p, bytes, purpose, s); };
        return a;
    }
    uint64_t blocks() const { return live_.size(); }
    uint64_t bytes() const
    {
        uint64_t all = 0;
        for (const auto& [unused, block] : live_) all += block.bytes;
        return all;
    }
    uint64_t taken(ng_purpose purpose) const { return taken_[purpose]; }
    int      faults() const { return faults_; }

  private:
    struct Block { size_t bytes; ng_purpose purpose; };
    void* take(size_t bytes, size_t align, ng_purpose purpose, ng_stream s)
    {
        const std::lock_guard hold(lock_);
        const CurrentContext now(home_);
        CUdeviceptr memory = 0;
        if (driver_.cuMemAlloc.quiet(&memory, bytes) != CUDA_SUCCESS) return nullptr;
        void* const p = reinterpret_cast<void*>(memory);
        live_[p] = {bytes, purpose}, taken_[purpose] += bytes;
        faults_ += !s || memory % align || purpose == NG_MEM_STAGING || purpose == NG_MEM_NODE;
        return p;
    }
    void give(void* p, size_t bytes, ng_purpose purpose, ng_stream s)
    {
        const std::lock_guard hold(lock_);
        const auto at = live_.find(p);
        if (at == live_.end() || at->second.bytes != bytes || at->second.purpose != purpose || !s) faults_++;
        if (at == live_.end()) return;
        live_.erase(at);
        const CurrentContext now(home_);
        (void)driver_.cuMemFree.quiet(reinterpret_cast<CUdeviceptr>(p));
    }
    const Driver&          driver_;
    DeviceContext          home_;
    std::mutex             lock_;
    std::map<void*, Block> live_;
    uint64_t               taken_[NG_MEM_STAGING + 1] = {};
    int                    faults_ = 0;      // no stream, an address between multiples, another purpose or size than it came with
};

ng_ctx* open_on(Heap& heap, uint32_t flags, const ng_hooks* hooks = nullptr)
{
    const ng_allocator table = heap.table();
    ng_ctx_desc d = description(flags);
    d.dev = &table, d.hooks = hooks;
    ng_ctx* c = nullptr;
    ng_error error{};
    REQUIRE_MESSAGE(ng_ctx_create(&d, &c, &error) == NG_OK, error.text);
    return c;
}

// The status of compiling a text over x and y of n elements.
ng_status compiled(ng_ctx* c, const char* words, int64_t n, ng_prog** out, ng_error* error, uint32_t flags = 0)
{
    ng_scope* s = ng_scope_create(c, 0);
    const ng_shape d = vector_of(n);
    ng_expr* const params[] = {ng_param(s, 0, &d), ng_param(s, 1, &d)};
    ng_expr* e = ng_tag(ng_parse(s, words, "x,y", params, 2), "heat");
    ng_compile_desc desc{};
    desc.size = sizeof desc, desc.flags = flags;
    const ng_status status = ng_compile(c, &desc, &e, 1, out, error);
    ng_scope_release(s);
    return status;
}

// Into a tensor that is there.
ng_status evaluated_into(ng_ctx* c, const char* words, ng_tensor* x, ng_tensor* out, ng_error* error)
{
    ng_scope* s = ng_scope_create(c, 0);
    ng_expr* const leaf = ng_leaf(s, x);
    ng_expr* e = ng_tag(ng_parse(s, words, "x", &leaf, 1), "heat");
    ng_tensor* to = out;
    const ng_status status = ng_eval(c, nullptr, &e, &to, 1, error);
    ng_scope_release(s);
    return status;
}

float first_of(ng_tensor* t, size_t n)
{
    std::vector<float> all(n);
    CHECK(ng_tensor_get(t, all.data(), n * 4, nullptr) == NG_OK);
    return all[0];
}

// A host that releases what it can spare.
struct Spare {
    ng_tensor* tensor = nullptr;
    int        asked = 0;
    ng_hooks hooks()
    {
        ng_hooks h{};
        h.size = sizeof h, h.user = this;
        h.pressure = [](void* self, uint64_t) -> int32_t {
            Spare& s = *static_cast<Spare*>(self);
            s.asked++;
            ng_tensor* const t = std::exchange(s.tensor, nullptr);
            ng_tensor_release(t);
            return t != nullptr;
        };
        return h;
    }
};

constexpr int64_t N = 1024;

}  // namespace

TEST_CASE("cuda: with an allocator of the host's every byte of the device is the host's, by its purpose, and all come back")
{
    const fake::Control& driver = emulated_device();
    {
        Heap heap;
        const uint64_t others = driver.counts().device_bytes;
        const auto agree = [&](ng_ctx* c) {
            CHECK(stats(c).dev_bytes == heap.bytes());
            CHECK(driver.counts().device_bytes - others == heap.bytes());
        };
        ng_ctx* c = open_on(heap, NG_CTX_NO_JIT);
        ng_tensor* const t[] = {make(c, N), make(c, N), make(c, N)};
        CHECK(ng_tensor_fill(t[0], nullptr, 1, nullptr) == NG_OK);
        CHECK(ng_tensor_fill(t[1], nullptr, 2, nullptr) == NG_OK);
        agree(c);
        const char* const words[] = {"x * 3 + y", "x - sum(x) + 1024", "reshape(softmax(reshape(x, [32, 32]), 1), [1024]) * 32 * y", "scan(x + y, 0, sum)",
                                     "reshape(relu(reshape(x, [32, 32]) @ reshape(y, [32, 32]) + 1), [1024])", "f32(argsort(x * y, 0)) * 0.5 + y"};
        const float values[] = {5, 1, 2, 3, 65, 2};
        std::vector<ng_prog*> programs;
        for (size_t i = 0; i < std::size(words); i++) {
            INFO(words[i]);
            ng_error error{};
            REQUIRE_MESSAGE(compiled(c, words[i], N, &programs.emplace_back(), &error) == NG_OK, error.text);
            CHECK(run(programs.back(), i % 2 ? ng_ctx_stream(c, 1) : nullptr, t, t[2]) == NG_OK);
            CHECK(first_of(t[2], N) == values[i]);
            agree(c);
        }
        CHECK(evaluated_into(c, "exp(x - 1) + x", t[0], t[2], nullptr) == NG_OK);
        CHECK(first_of(t[2], N) == 2);
        for (const ng_purpose purpose : {NG_MEM_TENSOR, NG_MEM_WORK, NG_MEM_CODE}) CHECK(heap.taken(purpose) > 0);
        CHECK(driver.calls_of("cuMemAllocFromPoolAsync") == 0);
        for (ng_prog* p : programs) ng_prog_release(p);
        CHECK(ng_ctx_sync(c, nullptr, FOREVER, nullptr) == NG_OK);
        CHECK(heap.blocks() == 3);
        agree(c);
        for (ng_tensor* x : t) ng_tensor_release(x);
        ng_prog* left_open = nullptr;                    // its close takes what it has
        CHECK(compiled(c, "x * y + 7", N, &left_open, nullptr) == NG_OK);
        shut(c);
        CHECK(heap.blocks() == 0);
        CHECK(heap.faults() == 0);
        ng_prog_release(left_open);
    }
    CHECK(left(driver) == "");
    CHECK(driver.counts().misuses == 0);
}

TEST_CASE("cuda: what products are measured in is the host's as well, also where nobody closes the context")
{
    const fake::Control& driver = emulated_device();
    driver.count_time(1000), driver.compute(false);
    {
        Heap heap;
        for (const bool closes : {true, false}) {
            ng_ctx* c = open_on(heap, 0);
            const uint64_t before = heap.taken(NG_MEM_CODE);
            ng_prog* p = nullptr;
            ng_error error{};
            REQUIRE_MESSAGE(compiled(c, "reshape(reshape(x, [32, 32]) @ reshape(y, [32, 32]), [1024])", N, &p, &error, NG_PROG_TUNE) == NG_OK, error.text);
            if (closes) CHECK(ng_prog_wait(p, FOREVER, nullptr) == NG_OK);
            if (closes) CHECK(heap.taken(NG_MEM_CODE) > before + (uint64_t(32) << 20));
            ng_prog_release(p);
            if (closes) shut(c);
            else ng_ctx_release(c);
            ng_ctx* next = open_on(heap, 0);             // buries what nobody holds
            shut(next);
            CHECK(heap.blocks() == 0);
        }
        CHECK(heap.faults() == 0);
        CHECK(driver.calls_of("cuMemAllocFromPoolAsync") == 0);
    }
    CHECK(left(driver) == "");
}

TEST_CASE("cuda: where dev_limit has no room for what the interpreter reads, the host is asked, then told; then it works again")
{
    const fake::Control& driver = emulated_device();
    Spare spare;
    const ng_hooks hooks = spare.hooks();
    ng_ctx_desc d = description(NG_CTX_NO_JIT);
    d.hooks = &hooks;
    ng_ctx* c = nullptr;
    REQUIRE(ng_ctx_create(&d, &c, nullptr) == NG_OK);
    ng_tensor* const t[] = {make(c, N), make(c, N), make(c, N)};
    for (ng_tensor* x : t) CHECK(ng_tensor_fill(x, nullptr, 2, nullptr) == NG_OK);
    ng_prog* p = nullptr;
    ng_error error{};
    const auto call = [&](bool evaluates) { return evaluates ? evaluated_into(c, "x * 3 + sqrt(x * 8)", t[0], t[2], &error) : compiled(c, "x * 3 + y", N, &p, &error); };
    for (const bool evaluates : {false, true}) {
        INFO(evaluates);
        CHECK(ng_ctx_sync(c, nullptr, FOREVER, nullptr) == NG_OK);
        const uint64_t held = stats(c).dev_bytes;
        CHECK(ng_ctx_limit(c, held) == NG_OK);
        const int before = spare.asked;
        CHECK(call(evaluates) == NG_E_DEVMEM);
        INFO(error.text);
        CHECK(holds(error.text, "the interpreter's list of \"heat\""));
        CHECK(holds(error.text, text("dev_limit is ", held)));
        CHECK(spare.asked == before + 1);
        CHECK(stats(c).dev_bytes == held);
        CHECK(ng_ctx_limit(c, 0) == NG_OK);
        spare.tensor = make(c, N);
        CHECK(ng_ctx_limit(c, stats(c).dev_bytes) == NG_OK);
        CHECK(call(evaluates) == NG_OK);
        CHECK(spare.asked == before + 2);
        CHECK(spare.tensor == nullptr);
        if (!evaluates) CHECK(run(p, nullptr, t, t[2]) == NG_OK);
        CHECK(first_of(t[2], N) == (evaluates ? 10 : 8));
    }
    CHECK(ng_ctx_limit(c, 0) == NG_OK);
    ng_prog_release(p);
    for (ng_tensor* x : t) ng_tensor_release(x);
    CHECK(stats(c).dev_bytes == 0);
    shut(c);
    CHECK(left(driver) == "");
}

TEST_CASE("cuda: a device that is full says so when it compiles, not when it runs; a list made before a fault goes with it")
{
    const fake::Control& driver = emulated_device();
    ng_ctx* c = open_ctx(NG_CTX_NO_JIT);
    ng_tensor* const t[] = {make(c, N), make(c, N), make(c, N)};
    ng_prog* p = nullptr;
    ng_error error{};
    driver.set_memory(driver.counts().device_bytes);
    CHECK(compiled(c, "x * 3 + y", N, &p, &error) == NG_E_DEVMEM);
    CHECK(holds(error.text, "the interpreter's list of \"heat\": no memory for"));
    driver.set_memory(uint64_t(1) << 30);
    const uint64_t held = stats(c).dev_bytes, blocks = driver.counts().device_blocks;
    driver.fail_function("cuMemcpyHtoDAsync", 2, 1);
    CHECK(compiled(c, "scan(x * 3 + y, 0, sum) * 2 + 1", N, &p, &error) == NG_E_DEVICE);
    CHECK(ng_ctx_sync(c, nullptr, FOREVER, nullptr) == NG_OK);
    CHECK(stats(c).dev_bytes == held);
    CHECK(driver.counts().device_blocks == blocks);
    CHECK(compiled(c, "x * 3 + y", N, &p, &error) == NG_OK);
    for (int i = 0; i < 2; i++) CHECK(ng_tensor_fill(t[i], nullptr, 2, nullptr) == NG_OK);
    CHECK(run(p, nullptr, t, t[2]) == NG_OK);
    CHECK(first_of(t[2], N) == 8);
    ng_prog_release(p);
    for (ng_tensor* x : t) ng_tensor_release(x);
    shut(c);
    CHECK(left(driver) == "");
}

TEST_CASE("cuda: a product and the cast behind it stay in the workspace that was planned, at whatever addresses operands lie")
{
    const fake::Control& driver = emulated_device();
    driver.set_compute(90);
    constexpr size_t ANY = 1;
    for (const gemm::KernelFacts& k : gemm::kernels_of(gemm::Image::Sm90Half)) driver.set_kernel(k.name, [](const fake::KernelLaunch&) { FAIL("it takes no operand that lies so"); }, &ANY, 1);
    // So many products so small are nothing for portable kernels, nor for Hopper's where they would have to copy.
    constexpr int64_t BATCHES = 1024, SIDE = 16, COUNT = BATCHES * SIDE * SIDE, BYTES = 2 * COUNT, PLACE = BYTES + 256, ROOM = 8 * COUNT;
    constexpr uint16_t ONE = 0x3c00, SIXTEEN = 0x4c00;
    ng_ctx* c = open_ctx(NG_CTX_NO_JIT);
    ng_shape shape{};
    shape.size = sizeof shape, shape.dtype = NG_F16, shape.ndim = 3, shape.dims[0] = BATCHES, shape.dims[1] = shape.dims[2] = SIDE;
    ng_scope* s = ng_scope_create(c, 0);
    ng_expr* const params[] = {ng_param(s, 0, &shape), ng_param(s, 1, &shape)};
    ng_expr* e = ng_parse(s, "f16(x @ y)", "x,y", params, 2);
    ng_prog* p = nullptr;
    ng_error error{};
    REQUIRE_MESSAGE(ng_compile(c, nullptr, &e, 1, &p, &error) == NG_OK, error.text);
    ng_scope_release(s);
    ng_prog_info info{};
    info.size = sizeof info;
    CHECK(ng_prog_get_info(p, &info, nullptr) == NG_OK);
    ng_tensor* const all = make(c, (3 * PLACE + ROOM) / 4);
    void* base = nullptr;
    REQUIRE(ng_tensor_use(all, nullptr, 0, &base, &error) == NG_OK);
    char *const memory = static_cast<char*>(base), *const room = memory + 3 * PLACE;
    for (const auto& [x_off, y_off] : {std::pair{2, 0}, {0, 2}, {2, 6}}) {
        std::memset(memory, 0x33, 3 * PLACE + ROOM);
        char* const at[] = {memory + x_off, memory + PLACE + y_off, memory + 2 * PLACE};
        for (int i = 0; i < 2; i++) std::fill_n(reinterpret_cast<uint16_t*>(at[i]), COUNT, ONE);
        ng_tensor *t[3] = {}, *workspace = nullptr;
        for (int i = 0; i < 3; i++) CHECK(ng_tensor_wrap(c, &shape, at[i], BYTES, nullptr, nullptr, &t[i], &error) == NG_OK);
        ng_shape bytes = vector_of(int64_t(info.workspace_bytes));
        bytes.dtype = NG_U8;
        REQUIRE(info.workspace_bytes <= ROOM - 256);
        CHECK(ng_tensor_wrap(c, &bytes, room, info.workspace_bytes, nullptr, nullptr, &workspace, &error) == NG_OK);
        ng_run r{};
        r.size = sizeof r, r.nargs = 2, r.nout = 1, r.args = t, r.out = t + 2, r.workspace = workspace;
        CHECK(ng_prog_run(p, nullptr, &r, &error) == NG_OK);
        CHECK(ng_ctx_sync(c, nullptr, FOREVER, nullptr) == NG_OK);
        CHECK(std::count(reinterpret_cast<uint16_t*>(at[2]), reinterpret_cast<uint16_t*>(at[2]) + COUNT, SIXTEEN) == COUNT);
        CHECK(std::count(room + info.workspace_bytes, room + ROOM, char(0x33)) == ROOM - int64_t(info.workspace_bytes));
        for (ng_tensor* x : t) ng_tensor_release(x);
        ng_tensor_release(workspace);
    }
    ng_tensor_release(all);
    ng_prog_release(p);
    shut(c);
}

TEST_CASE("cuda: page-locked memory that comes back is there for the next tensor without a word to the driver, and is given back when asked for")
{
    const fake::Control& driver = fresh();
    driver.defer(true);
    ng_ctx* const c = open_ctx();
    const auto asked = [&] { return driver.calls_of("cuMemHostAlloc") + driver.calls_of("cuMemFreeHost"); };
    const auto left_by = [&](ng_tensor* t) {
        CHECK(ng_tensor_fill(t, nullptr, 1, nullptr) == NG_OK);
        ng_tensor_release(t);
        CHECK(ng_ctx_sync(c, nullptr, FOREVER, nullptr) == NG_OK);
    };
    left_by(make(c, 1000000, NG_HOST));
    const uint64_t first = asked(), blocks = driver.counts().host_blocks;
    ng_tensor* const busy = make(c, 100);
    for (int i = 0; i < 20; i++) {
        CHECK(ng_tensor_fill(busy, nullptr, 1, nullptr) == NG_OK);
        left_by(make(c, 1000000 - i, NG_HOST));
    }
    CHECK(asked() == first);
    left_by(make(c, 1200000, NG_HOST));
    CHECK(driver.counts().host_blocks == blocks + 1);
    left_by(make(c, 1400000, NG_HOST));                 // the last one goes: both would be more than was ever in use
    CHECK(driver.counts().host_blocks == blocks + 1);
    left_by(make(c, 1000000, NG_HOST));
    CHECK(driver.counts().host_blocks == blocks + 1);
    CHECK(ng_ctx_trim(c, 0) == NG_OK);
    CHECK(driver.counts().host_blocks == blocks - 1);
    left_by(make(c, 0, NG_HOST));
    ng_tensor_release(busy);
    shut(c);
    CHECK(driver.counts().misuses == 0);
    CHECK(left(driver) == "");
}
