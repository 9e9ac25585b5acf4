// The stand-in's front: how its functions are found, made to fail and counted; devices and contexts.
#include "tests/backend/fake_driver/fake_state.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <type_traits>

namespace ng::fake {
namespace {

#define DRIVER(name, version, parameters) Row_##name,
enum Row : int {
#include "lib/backend/cuda/driver.def"
    ROWS
};
#undef DRIVER

constexpr const char* NAMES[] = {
#define DRIVER(name, version, parameters) #name,
#include "lib/backend/cuda/driver.def"
#undef DRIVER
};

struct Faults {
    uint64_t calls = 0, call_number = 0, function_number = 0;   // numbers count down; 0: off
    int      call_code = 0, function_code = 0, all = 0, function = -1;
    const char* failed = "";
    int      hidden_from = ROWS;
    std::array<uint64_t, ROWS> calls_of{};
};
std::recursive_mutex& lock()
{
    static auto* const made = new std::recursive_mutex;
    return *made;
}
Faults& faults()
{
    static auto* const made = new Faults;
    return *made;
}
std::atomic<pid_t> owner{0};                        // the process that called cuInit

int row_of(const std::string& name)
{
    for (int i = 0; i < ROWS; i++)
        if (name == NAMES[i]) return i;
    return -1;
}

// These do what they are for even when they report a fault.
bool ends_something(std::string_view name)
{
    for (const char* word : {"Destroy", "MemFree", "Unload", "Release", "PopCurrent", "Unregister", "EndCapture"})
        if (name.find(word) != name.npos) return true;
    return false;
}

// May be asked before cuInit.
bool is_free(int row) { return row == Row_cuInit || row == Row_cuGetErrorName || row == Row_cuGetErrorString || row == Row_cuDriverGetVersion; }

int injected(int row)
{
    Faults& f = faults();
    f.calls++, f.calls_of[size_t(row)]++;
    int code = 0;
    if (f.call_number && --f.call_number == 0) code = f.call_code;
    if (row == f.function && f.function_number && --f.function_number == 0) code = f.function_code;
    if (f.all && !is_free(row) && row != Row_cuCtxPopCurrent && row != Row_cuCtxPushCurrent) code = f.all;
    if (code) f.failed = NAMES[row];
    return code;
}

template <int ROW, auto FUNCTION> struct Entry;
template <int ROW, class... A, CUresult (*FUNCTION)(A...)>
struct Entry<ROW, FUNCTION> {
    static CUresult call(A... arguments)
    {
        // In a forked child the driver is dead, and its lock may be held for ever.
        if (const pid_t known = owner; known && known != getpid()) return CUDA_ERROR_NOT_INITIALIZED;
        const std::lock_guard hold(lock());
        const int code = injected(ROW);
        if (code && !ends_something(NAMES[ROW])) return code;
        if (!is_free(ROW) && !state().is_started) return CUDA_ERROR_NOT_INITIALIZED;
        // A capture that ends in a fault gives no graph.
        if (code && ROW == Row_cuStreamEndCapture)
            for (Capture* capture : state().captures) capture->is_spoilt = true;
        const CUresult result = FUNCTION(arguments...);
        if (code) return code;
        const Context* context = state().is_started ? current() : nullptr;
        const bool tells = !is_free(ROW) && ROW != Row_cuCtxPopCurrent && ROW != Row_cuCtxPushCurrent && ROW != Row_cuCtxGetCurrent;
        return tells && context && context->broken && result != CUDA_ERROR_INVALID_HANDLE ? context->broken : result;
    }
};

struct Named { const char* name; int version; void* address; };
const Named TABLE[] = {
#define DRIVER(name, version, parameters) {#name, version, reinterpret_cast<void*>(&Entry<Row_##name, &fake::name>::call)},
#include "lib/backend/cuda/driver.def"
#undef DRIVER
};

// "NAME[:COUNT[:CODE]]" or "COUNT[:CODE]"
void read_environment()
{
    if (const char* text = std::getenv("NG_FAKE_DEFER")) state().is_deferred = *text == '1';
    const char* text = std::getenv("NG_FAKE_FAIL");
    if (!text) return;
    char name[64] = "";
    unsigned long long number = 1;
    int code = 719;
    if (std::sscanf(text, "%llu:%d", &number, &code) >= 1) {
        faults().call_number = number, faults().call_code = code;
    } else if (std::sscanf(text, "%63[^:]:%llu:%d", name, &number, &code) >= 1) {
        faults().function = row_of(name), faults().function_number = number, faults().function_code = code;
    }
}

Counts counts()
{
    const std::lock_guard hold(lock());
    State& s = state();
    Counts c{};
    c.calls = faults().calls, c.launches = s.launches, c.blocks = s.launched_blocks, c.misuses = s.misuses;
    c.contexts = s.primaries.size() + s.own_contexts.size();
    for (const auto& [device, holds] : s.primary_holds) c.primary_holds += uint64_t(holds);
    for (const auto& [thread, stack] : s.stacks) c.pushed += stack.size();
    c.streams = s.streams.size(), c.events = s.events.size(), c.modules = s.modules.size(), c.pools = s.pools.size();
    c.graphs = s.graphs.size(), c.objects = s.objects.size(), c.device_bytes = device_bytes();
    for (const auto& [address, block] : s.blocks) {
        c.device_blocks += block.kind == Block::Kind::Device && !block.is_freed_soon;
        c.host_blocks += block.kind == Block::Kind::Host;
        c.registrations += block.kind == Block::Kind::Registered;
    }
    for (const auto& [stream, unused] : s.streams) c.queued += stream->queue.size();
    return c;
}

void reset()
{
    const std::lock_guard hold(lock());
    State& s = state();
    for (auto it = s.blocks.begin(); it != s.blocks.end(); it = s.blocks.begin()) {
        if (it->second.kind == Block::Kind::Registered) s.blocks.erase(it);
        else free_block(it->first);
    }
    auto kernels = std::move(s.kernels);
    // Contexts stay in memory: a handle that a test kept must not come to life as another's.
    static auto* const grave = new std::vector<std::unique_ptr<Context>>;
    for (auto& [device, context] : s.primaries) grave->push_back(std::move(context));
    for (auto& [key, context] : s.own_contexts) grave->push_back(std::move(context));
    const bool is_started = s.is_started;
    s = State{};
    s.kernels = std::move(kernels);
    s.is_started = is_started;
    faults() = Faults{};
}

Context* make_context(int device, bool is_primary)
{
    auto* context = new Context;
    context->device = device, context->is_primary = is_primary;
    context->legacy = std::make_unique<Stream>();
    context->legacy->context = context;
    return context;
}

template <class Body>
auto locked(Body body)
{
    const std::lock_guard hold(lock());
    return body();
}

constexpr Control CONTROL = {
    .reset = reset,
    .forget_init = [] { locked([] { state().is_started = false, owner = 0; }); },
    .counts = counts,
    .calls_of = [](const char* name) { return locked([&] { return faults().calls_of.at(size_t(row_of(name))); }); },
    .fail_call = [](uint64_t number, int code) { locked([&] { faults().call_number = number, faults().call_code = code, faults().failed = ""; }); },
    .fail_function = [](const char* name, uint64_t number, int code) {
        locked([&] { faults().function = row_of(name), faults().function_number = number, faults().function_code = code, faults().failed = ""; });
    },
    .break_all = [](int code) { locked([&] { faults().all = code; }); },
    .failed = [] { return locked([] { return faults().failed; }); },
    .hide = [](const char* name) { locked([&] { faults().hidden_from = name ? row_of(name) : int(ROWS); }); },
    .defer = [](bool is_on) { locked([&] { state().is_deferred = is_on; }); },
    .set_devices = [](int count) { locked([&] { state().devices = count; }); },
    .set_compute = [](int compute) { locked([&] { state().compute = compute; }); },
    .set_memory = [](uint64_t bytes) { locked([&] { state().memory_bytes = bytes; }); },
    .set_clocks = [](int khz, int memory_khz, int memory_bits) { locked([&] { state().clock_khz = khz, state().memory_khz = memory_khz, state().memory_bits = memory_bits; }); },
    .set_pools = [](bool has_pools) { locked([&] { state().has_pools = has_pools; }); },
    .count_time = [](unsigned block_us) { locked([&] { state().block_us = block_us; }); },
    .compute = [](bool is_on) { locked([&] { state().computes = is_on; }); },
    .set_kernel = [](const char* name, Kernel kernel, const size_t* sizes, size_t count) {
        locked([&] { state().kernels[name] = {kernel, {sizes, sizes + count}}; });
    },
    .create_context = [](int device) -> void* {
        return locked([&] {
            Context* made = make_context(device, false);
            state().own_contexts.emplace(made, made);
            return made;
        });
    },
    .destroy_context = [](void* context) {
        locked([&] {
            const auto found = state().own_contexts.find(static_cast<Context*>(context));
            if (found == state().own_contexts.end()) return;
            static auto* const grave = new std::vector<std::unique_ptr<Context>>;
            found->second->broken = CUDA_ERROR_CONTEXT_IS_DESTROYED;
            grave->push_back(std::move(found->second));
            state().own_contexts.erase(found);
        });
    },
};

bool is_alive(Context* context)
{
    const auto primary = state().primaries.find(context ? context->device : -1);
    return state().own_contexts.count(context) || (primary != state().primaries.end() && primary->second.get() == context);
}

bool is_device(CUdevice device) { return device >= 0 && device < state().devices; }

}  // namespace

State& state()
{
    static auto* const made = new State;
    return *made;
}

uint64_t this_thread()
{
    static std::atomic<uint64_t> next{1};
    thread_local const uint64_t number = next++;
    return number;
}

Context* current()
{
    const auto found = state().stacks.find(this_thread());
    return found == state().stacks.end() || found->second.empty() ? nullptr : found->second.back();
}

CUresult misuse(CUresult code)
{
    state().misuses++;
    return code;
}

CUresult cuInit(unsigned)
{
    if (!state().is_started) read_environment();
    if (state().devices == 0) return CUDA_ERROR_NO_DEVICE;
    state().is_started = true;
    owner = getpid();
    return CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int* version) { return *version = 13000, CUDA_SUCCESS; }

CUresult cuGetErrorName(CUresult result, const char** name)
{
    struct Row { int code; const char* name; };
    static constexpr Row rows[] = {
        {1, "CUDA_ERROR_INVALID_VALUE"}, {2, "CUDA_ERROR_OUT_OF_MEMORY"}, {3, "CUDA_ERROR_NOT_INITIALIZED"}, {100, "CUDA_ERROR_NO_DEVICE"},
        {101, "CUDA_ERROR_INVALID_DEVICE"}, {200, "CUDA_ERROR_INVALID_IMAGE"}, {201, "CUDA_ERROR_INVALID_CONTEXT"}, {218, "CUDA_ERROR_INVALID_PTX"},
        {400, "CUDA_ERROR_INVALID_HANDLE"}, {500, "CUDA_ERROR_NOT_FOUND"}, {600, "CUDA_ERROR_NOT_READY"}, {700, "CUDA_ERROR_ILLEGAL_ADDRESS"},
        {701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"}, {709, "CUDA_ERROR_CONTEXT_IS_DESTROYED"}, {719, "CUDA_ERROR_LAUNCH_FAILED"},
        {801, "CUDA_ERROR_NOT_SUPPORTED"}, {900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"}, {999, "CUDA_ERROR_UNKNOWN"},
    };
    for (const Row& row : rows)
        if (row.code == result) return *name = row.name, CUDA_SUCCESS;
    return *name = nullptr, CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorString(CUresult result, const char** sentence)
{
    const char* name = nullptr;
    if (cuGetErrorName(result, &name) != CUDA_SUCCESS) return *sentence = nullptr, CUDA_ERROR_INVALID_VALUE;
    return *sentence = "the stand-in was told to say no", CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int* count) { return *count = state().devices, CUDA_SUCCESS; }

CUresult cuDeviceGet(CUdevice* device, int ordinal)
{
    if (!is_device(ordinal)) return CUDA_ERROR_INVALID_DEVICE;
    return *device = ordinal, CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char* name, int room, CUdevice device)
{
    if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    return std::snprintf(name, size_t(room), "Stand-in %d", device), CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice device)
{
    if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    for (int i = 0; i < 16; i++) uuid->bytes[i] = char(16 * device + i);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetPCIBusId(char* bus, int room, CUdevice device)
{
    if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    return std::snprintf(bus, size_t(room), "0000:%02x:00.0", device + 1), CUDA_SUCCESS;
}

// The first is an sm_90, or what a test made of it, the others are sm_86.
CUresult cuDeviceGetAttribute(int* value, int attribute, CUdevice device)
{
    if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *value = device == 0 ? state().compute / 10 : 8; break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: *value = device == 0 ? state().compute % 10 : 6; break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *value = 4; break;
    case CU_DEVICE_ATTRIBUTE_CLOCK_RATE: *value = state().clock_khz; break;
    case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE: *value = state().memory_khz; break;
    case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH: *value = state().memory_bits; break;
    case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE: *value = 1 << 20; break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: *value = device == 0 ? 227 * 1024 : 99 * 1024; break;
    case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED: *value = state().has_pools; break;
    default: *value = 0;
    }
    return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem(size_t* bytes, CUdevice device)
{
    if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    return *bytes = state().memory_bytes, CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device)
{
    if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    auto& primary = state().primaries[device];
    if (!primary) primary.reset(make_context(device, true));
    state().primary_holds[device]++;
    return *context = reinterpret_cast<CUcontext>(primary.get()), CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device)
{
    if (state().primary_holds[device] == 0) return misuse(CUDA_ERROR_INVALID_CONTEXT);
    state().primary_holds[device]--;
    return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent(CUcontext context)
{
    auto* given = reinterpret_cast<Context*>(context);
    if (!is_alive(given)) return CUDA_ERROR_INVALID_CONTEXT;
    state().stacks[this_thread()].push_back(given);
    return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent(CUcontext* context)
{
    auto& stack = state().stacks[this_thread()];
    if (stack.empty()) return CUDA_ERROR_INVALID_CONTEXT;
    if (context) *context = reinterpret_cast<CUcontext>(stack.back());
    return stack.pop_back(), CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext* context) { return *context = reinterpret_cast<CUcontext>(current()), CUDA_SUCCESS; }

CUresult cuCtxGetDevice(CUdevice* device)
{
    if (!current()) return CUDA_ERROR_INVALID_CONTEXT;
    return *device = current()->device, CUDA_SUCCESS;
}

CUresult cuCtxSynchronize()
{
    if (!current()) return CUDA_ERROR_INVALID_CONTEXT;
    if (const CUresult refused = refuse_in_capture()) return refused;
    return drain_context(*current()), CUDA_SUCCESS;
}

}  // namespace ng::fake

extern "C" {

// Answers as the driver does for names and versions of this table; cuGetProcAddress knows nothing else here.
__attribute__((visibility("default")))
int cuGetProcAddress_v2(const char* name, void** function, int version, uint64_t, int* why)
{
    using namespace ng::fake;
    *function = nullptr;
    *why = 1;
    const std::lock_guard hold(lock());
    for (int i = 0; i < faults().hidden_from; i++) {
        if (std::strcmp(name, TABLE[i].name) != 0) continue;
        if (version < TABLE[i].version) return *why = 2, 0;
        *function = TABLE[i].address;
        *why = 0;
    }
    return 0;
}

__attribute__((visibility("default")))
const ng::fake::Control* ng_fake_control() { return &ng::fake::CONTROL; }

}
