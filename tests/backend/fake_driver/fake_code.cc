// The stand-in's modules and launches: functions are found by name in any image and run as functions of the host.
#include "tests/backend/fake_driver/fake_state.h"

#include <cstdio>
#include <cstring>

namespace ng::fake {
namespace {

constexpr int PLAIN_SHARED = 48 * 1024, MOST_SHARED = 227 * 1024, MOST_THREADS = 1024;

// nvcc's container of several: a head of 16 bytes, the last 8 of which say how many follow.
bool is_container(const char* image) { return std::memcmp(image, "\x50\xed\x55\xba", 4) == 0; }

// Bytes of a cubin (an ELF file ends with its table of sections), of a container, or of a text.
size_t image_bytes(const char* image)
{
    if (is_container(image)) {
        uint64_t rest = 0;
        std::memcpy(&rest, image + 8, 8);
        return 16 + size_t(rest);
    }
    if (std::memcmp(image, "\x7f" "ELF", 4) != 0) return std::strlen(image);
    uint64_t table = 0;
    uint16_t size = 0, count = 0;
    std::memcpy(&table, image + 40, 8), std::memcpy(&size, image + 58, 2), std::memcpy(&count, image + 60, 2);
    return size_t(table) + size_t(size) * count;
}

// An ELF file, a container, or a text that has the word it begins with in PTX.
bool is_code(const std::string& image) { return image.starts_with("\x7f" "ELF") || is_container(image.c_str()) || image.find(".version") != image.npos; }

Function* function_of(CUfunction handle)
{
    const auto found = state().functions.find(reinterpret_cast<Function*>(handle));
    return found == state().functions.end() ? misuse(0), nullptr : found->first;
}

struct Shape { unsigned grid[3], block[3], cluster[3], shared_bytes; };
Shape shape_of(const CUlaunchConfig* c)
{
    Shape shape = {{c->gridDimX, c->gridDimY, c->gridDimZ}, {c->blockDimX, c->blockDimY, c->blockDimZ}, {1, 1, 1}, c->sharedMemBytes};
    for (unsigned i = 0; i < c->numAttrs; i++) {
        if (c->attrs[i].id != CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) continue;
        const auto& cluster = c->attrs[i].value.clusterDim;
        shape.cluster[0] = cluster.x, shape.cluster[1] = cluster.y, shape.cluster[2] = cluster.z;
    }
    return shape;
}

CUresult check(const Function& f, const Shape& s)
{
    uint64_t threads = 1;
    for (int i = 0; i < 3; i++) {
        if (s.grid[i] == 0 || s.block[i] == 0 || s.cluster[i] == 0 || s.grid[i] % s.cluster[i] || s.grid[i] > (i ? 65535u : 0x7fffffffu)) return CUDA_ERROR_INVALID_VALUE;
        threads *= s.block[i];
    }
    return threads > MOST_THREADS || s.shared_bytes > unsigned(f.dynamic_shared) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult launch(Function* f, const Shape& shape, CUstream stream, void** arguments, void** extra)
{
    Stream* s = stream_of(stream);
    if (!f || !s) return CUDA_ERROR_INVALID_HANDLE;
    if (extra) return CUDA_ERROR_NOT_SUPPORTED;     // arguments as one block of bytes: not understood here
    if (const CUresult bad = check(*f, shape)) return bad;
    state().launches++;
    state().launched_blocks += uint64_t(shape.grid[0]) * shape.grid[1] * shape.grid[2];
    const auto known = state().kernels.find(f->name);
    if (known == state().kernels.end() || !state().computes) return enqueue(*s, {});
    std::vector<std::vector<char>> copies;
    for (size_t i = 0; i < known->second.sizes.size(); i++) {
        const char* from = static_cast<const char*>(arguments[i]);
        copies.emplace_back(from, from + known->second.sizes[i]);
    }
    return enqueue(*s, {[kernel = known->second.kernel, shape, copies]() mutable {
        std::vector<void*> addresses;
        for (auto& copy : copies) addresses.push_back(copy.data());
        KernelLaunch l{};
        std::memcpy(l.grid, shape.grid, sizeof l.grid);
        std::memcpy(l.block, shape.block, sizeof l.block);
        std::memcpy(l.cluster, shape.cluster, sizeof l.cluster);
        l.shared_bytes = shape.shared_bytes;
        l.arguments = addresses.data();
        kernel(l);
    }, nullptr});
}

CUresult make_map(CUtensorMap* map, int type, uint32_t rank, const void* memory)
{
    if (!map || reinterpret_cast<uintptr_t>(map) % 64 || rank < 1 || rank > 5 || reinterpret_cast<uintptr_t>(memory) % 16) return CUDA_ERROR_INVALID_VALUE;
    *map = {};
    map->opaque[0] = reinterpret_cast<uintptr_t>(memory);
    map->opaque[1] = uint64_t(type) << 32 | rank;
    return CUDA_SUCCESS;
}

}  // namespace

CUresult cuModuleLoadData(CUmodule* module, const void* image)
{
    if (!current()) return CUDA_ERROR_INVALID_CONTEXT;
    if (const CUresult refused = refuse_in_capture()) return refused;
    if (!image) return CUDA_ERROR_INVALID_VALUE;
    const char* bytes = static_cast<const char*>(image);
    auto made = std::make_unique<Module>();
    made->context = current();
    made->image.assign(bytes, image_bytes(bytes));
    if (!is_code(made->image)) return CUDA_ERROR_INVALID_IMAGE;
    Module* key = made.get();
    state().modules.emplace(key, std::move(made));
    return *module = reinterpret_cast<CUmodule>(key), CUDA_SUCCESS;
}

CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned count, int* options, void** values)
{
    const CUresult result = cuModuleLoadData(module, image);
    if (result != CUDA_ERROR_INVALID_IMAGE) return result;
    char* log = nullptr;
    size_t room = 0;
    for (unsigned i = 0; i < count; i++) {
        if (options[i] == CU_JIT_ERROR_LOG_BUFFER) log = static_cast<char*>(values[i]);
        if (options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES) room = reinterpret_cast<size_t>(values[i]);
    }
    if (log && room) std::snprintf(log, room, "ptxas stand-in, line 1: no .version here");
    return CUDA_ERROR_INVALID_PTX;
}

CUresult cuModuleUnload(CUmodule module)
{
    Module* dead = alive<Module>(state().modules, module);
    if (!dead) return CUDA_ERROR_INVALID_HANDLE;
    for (auto& [name, function] : dead->functions) state().functions.erase(function.get());
    return state().modules.erase(dead), CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name)
{
    Module* m = alive<Module>(state().modules, module);
    if (!m) return CUDA_ERROR_INVALID_HANDLE;
    const bool is_known = is_container(m->image.c_str()) && state().kernels.contains(name);     // names in it are compressed
    if (!is_known && m->image.find(name) == m->image.npos) return CUDA_ERROR_NOT_FOUND;
    auto& found = m->functions[name];
    if (!found) {
        found = std::make_unique<Function>();
        found->name = name;
        state().functions[found.get()] = m;
    }
    return *function = reinterpret_cast<CUfunction>(found.get()), CUDA_SUCCESS;
}

CUresult cuModuleGetGlobal(CUdeviceptr*, size_t*, CUmodule module, const char*)
{
    return alive<Module>(state().modules, module) ? CUDA_ERROR_NOT_FOUND : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuFuncGetAttribute(int* value, int attribute, CUfunction function)
{
    const Function* f = function_of(function);
    if (!f) return CUDA_ERROR_INVALID_HANDLE;
    switch (attribute) {
    case CU_FUNC_ATTRIBUTE_NUM_REGS: *value = 32; break;
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = MOST_THREADS; break;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: *value = f->dynamic_shared; break;
    default: *value = 0;
    }
    return CUDA_SUCCESS;
}

CUresult cuFuncSetAttribute(CUfunction function, int attribute, int value)
{
    Function* f = function_of(function);
    if (!f) return CUDA_ERROR_INVALID_HANDLE;
    if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) return CUDA_SUCCESS;
    if (value < 0 || value > MOST_SHARED) return CUDA_ERROR_INVALID_VALUE;
    return f->dynamic_shared = std::max(value, PLAIN_SHARED), CUDA_SUCCESS;
}

CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
                        unsigned block_z, unsigned shared_bytes, CUstream stream, void** arguments, void** extra)
{
    return launch(function_of(function), {{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, {1, 1, 1}, shared_bytes}, stream, arguments, extra);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig* c, CUfunction function, void** arguments, void** extra)
{
    return launch(function_of(function), shape_of(c), c->hStream, arguments, extra);
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction function, int threads, size_t shared_bytes)
{
    if (!function_of(function) || threads <= 0 || threads > MOST_THREADS) return CUDA_ERROR_INVALID_VALUE;
    const int by_shared = shared_bytes ? int(MOST_SHARED / shared_bytes) : 32;
    return *blocks = std::min({2048 / threads, 32, by_shared}), CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveClusters(int* clusters, CUfunction function, const CUlaunchConfig* c)
{
    const Shape shape = shape_of(c);
    int units = 0, blocks = 0;
    cuDeviceGetAttribute(&units, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0);
    const CUresult result = cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, int(c->blockDimX), shape.shared_bytes);
    return *clusters = units * blocks / int(shape.cluster[0]), result;
}

// A box's lines are whole units of 16 bytes, and no longer than what they are swizzled by.
CUresult cuTensorMapEncodeTiled(CUtensorMap* map, int type, uint32_t rank, void* memory, const uint64_t* extents, const uint64_t* strides, const uint32_t* box,
                                const uint32_t*, int, int swizzle, int promotion, int)
{
    if (const CUresult r = make_map(map, type, rank, memory)) return r;
    constexpr uint32_t BYTES[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};     // of types, as cuda.h numbers them
    const uint32_t line = box[0] * BYTES[type];
    map->opaque[2] = rank > 1 ? uint64_t(box[1]) << 32 | box[0] : box[0], map->opaque[3] = uint64_t(promotion);
    if (line % 16 != 0 || (swizzle > 0 && line > 16u << swizzle)) return *map = {}, CUDA_ERROR_INVALID_VALUE;
    for (uint32_t i = 0; i < rank; i++) {
        const bool is_good = extents[i] >= 1 && extents[i] <= uint64_t(1) << 32 && box[i] >= 1 && box[i] <= 256;
        if (!is_good || (i > 0 && (strides[i - 1] % 16 != 0 || strides[i - 1] >= uint64_t(1) << 40))) return *map = {}, CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

CUresult cuTensorMapEncodeIm2col(CUtensorMap* map, int type, uint32_t rank, void* memory, const uint64_t*, const uint64_t*, const int*,
                                 const int*, uint32_t, uint32_t, const uint32_t*, int, int, int, int)
{
    return make_map(map, type, rank, memory);
}

}  // namespace ng::fake
