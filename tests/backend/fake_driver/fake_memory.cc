// The stand-in's memory: blocks of the host's, counted and watched, with copies and fills in the order of streams.
#include "tests/backend/fake_driver/fake_state.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace ng::fake {
namespace {

// What nobody has written, and what nobody may read any more.
constexpr int FRESH = 0xCD, FREED = 0xDD;

void* address(uintptr_t value) { return reinterpret_cast<void*>(value); }
uintptr_t number(const void* memory) { return reinterpret_cast<uintptr_t>(memory); }

CUresult take(uintptr_t* out, uint64_t bytes, Block::Kind kind, Pool* pool)
{
    if (!current()) return CUDA_ERROR_INVALID_CONTEXT;
    if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
    if (kind == Block::Kind::Device && (bytes > state().memory_bytes || device_bytes() > state().memory_bytes - bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
    void* memory = nullptr;
    if (posix_memalign(&memory, 512, bytes) != 0) return CUDA_ERROR_OUT_OF_MEMORY;
    std::memset(memory, FRESH, bytes);
    state().blocks[number(memory)] = {bytes, current(), pool, kind, false};
    if (pool) pool->used += bytes, pool->kept -= std::min(pool->kept, bytes);
    return *out = number(memory), CUDA_SUCCESS;
}

// Whether the device may touch it: registered, page-locked, or its own. Else the context is broken, as after a fault.
bool may_touch(Context& context, uintptr_t memory, uint64_t bytes)
{
    if (bytes == 0 || block_of(memory, bytes)) return true;
    state().misuses++;
    context.broken = CUDA_ERROR_ILLEGAL_ADDRESS;
    return false;
}

CUresult copy_between_devices(Stream* s, uintptr_t to, uintptr_t from, uint64_t bytes)
{
    if (!s) return CUDA_ERROR_INVALID_HANDLE;
    Context* context = s->context;
    return enqueue(*s, {[=] {
        if (may_touch(*context, to, bytes) && may_touch(*context, from, bytes)) std::memmove(address(to), address(from), bytes);
    }, nullptr});
}

// From ordinary memory the driver has read all when the call returns.
CUresult copy_to_device(Stream* s, uintptr_t to, uintptr_t from, uint64_t bytes)
{
    if (!s) return CUDA_ERROR_INVALID_HANDLE;
    if (block_of(from, bytes)) return copy_between_devices(s, to, from, bytes);
    if (s->capture) return copy_between_devices(s, to, from, bytes);
    Context* context = s->context;
    std::vector<char> read(static_cast<const char*>(address(from)), static_cast<const char*>(address(from)) + bytes);
    return enqueue(*s, {[=, read = std::move(read)] {
        if (may_touch(*context, to, bytes)) std::memcpy(address(to), read.data(), bytes);
    }, nullptr});
}

// Into ordinary memory the driver has written all when the call returns.
CUresult copy_to_host(Stream* s, uintptr_t to, uintptr_t from, uint64_t bytes)
{
    if (!s) return CUDA_ERROR_INVALID_HANDLE;
    if (block_of(to, bytes)) return copy_between_devices(s, to, from, bytes);
    Context* context = s->context;
    const CUresult result = enqueue(*s, {[=] {
        if (may_touch(*context, from, bytes)) std::memcpy(address(to), address(from), bytes);
    }, nullptr});
    if (!s->capture) drain(*s);
    return result ? result : context->broken;
}

template <class T>
CUresult fill(CUdeviceptr memory, T value, size_t count, CUstream stream)
{
    Stream* s = stream_of(stream);
    if (!s) return CUDA_ERROR_INVALID_HANDLE;
    if (memory % sizeof(T)) return CUDA_ERROR_INVALID_VALUE;
    Context* context = s->context;
    return enqueue(*s, {[=] {
        if (may_touch(*context, memory, count * sizeof(T)) && state().computes) std::fill_n(static_cast<T*>(address(memory)), count, value);
    }, nullptr});
}

// The block that begins here, of this kind, or null.
Block* whole_block(uintptr_t memory, Block::Kind kind)
{
    const auto found = state().blocks.find(memory);
    if (found != state().blocks.end() && found->second.kind == kind && !found->second.is_freed_soon) return &found->second;
    state().misuses++;
    return nullptr;
}

}  // namespace

uint64_t device_bytes()
{
    uint64_t bytes = 0;
    for (const auto& [unused, block] : state().blocks)
        if (block.kind == Block::Kind::Device) bytes += block.bytes;
    return bytes;
}

Block* block_of(uintptr_t memory, uint64_t bytes)
{
    auto found = state().blocks.upper_bound(memory);
    if (found == state().blocks.begin()) return nullptr;
    --found;
    const uint64_t before = memory - found->first;
    return before <= found->second.bytes && bytes <= found->second.bytes - before ? &found->second : nullptr;
}

void free_block(uintptr_t memory)
{
    const auto found = state().blocks.find(memory);
    std::memset(address(memory), FREED, found->second.bytes);
    if (Pool* pool = found->second.pool) pool->used -= found->second.bytes, pool->kept += found->second.bytes;
    state().blocks.erase(found);
    std::free(address(memory));
}

CUresult cuMemGetInfo(size_t* free, size_t* total)
{
    *total = state().memory_bytes, *free = *total - device_bytes();
    return CUDA_SUCCESS;
}

CUresult cuMemAlloc(CUdeviceptr* memory, size_t bytes)
{
    if (const CUresult refused = refuse_in_capture()) return refused;
    uintptr_t made = 0;
    const CUresult result = take(&made, bytes, Block::Kind::Device, nullptr);
    return *memory = made, result;
}

CUresult cuMemFree(CUdeviceptr memory)
{
    if (memory == 0) return CUDA_SUCCESS;
    if (const CUresult refused = refuse_in_capture()) return refused;
    const Block* block = whole_block(memory, Block::Kind::Device);
    if (!block) return CUDA_ERROR_INVALID_VALUE;
    drain_context(*block->context);
    return free_block(memory), CUDA_SUCCESS;
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr* memory, size_t bytes, CUmemoryPool pool, CUstream stream)
{
    Stream* s = stream_of(stream);
    Pool* from = alive<Pool>(state().pools, pool);
    if (!s || !from) return CUDA_ERROR_INVALID_HANDLE;
    // The driver would make a node of it, whose memory lives as long as the graph: nobody here means that.
    if (s->capture) return s->capture->is_spoilt = true, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    uintptr_t made = 0;
    const CUresult result = take(&made, bytes, Block::Kind::Device, from);
    return *memory = made, result;
}

CUresult cuMemAllocAsync(CUdeviceptr* memory, size_t bytes, CUstream stream)
{
    if (!stream_of(stream)) return CUDA_ERROR_INVALID_HANDLE;
    return cuMemAlloc(memory, bytes);
}

CUresult cuMemFreeAsync(CUdeviceptr memory, CUstream stream)
{
    if (memory == 0) return CUDA_SUCCESS;
    Stream* s = stream_of(stream);
    Block* block = whole_block(memory, Block::Kind::Device);
    if (!s || !block) return CUDA_ERROR_INVALID_VALUE;
    if (s->capture) return s->capture->is_spoilt = true, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    block->is_freed_soon = true;
    const CUresult result = enqueue(*s, {[memory] { free_block(memory); }, nullptr});
    if (result && state().blocks.count(memory)) free_block(memory);   // a broken context: nothing runs any more
    return result;
}

CUresult cuMemPoolCreate(CUmemoryPool* pool, const CUmemPoolProps* properties)
{
    if (!state().has_pools) return CUDA_ERROR_NOT_SUPPORTED;
    if (properties->allocType != CU_MEM_ALLOCATION_TYPE_PINNED || properties->location_type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_INVALID_VALUE;
    auto* made = new Pool;
    made->context = current();
    state().pools.emplace(made, made);
    return *pool = reinterpret_cast<CUmemoryPool>(made), CUDA_SUCCESS;
}

CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
    Pool* dead = alive<Pool>(state().pools, pool);
    if (!dead) return CUDA_ERROR_INVALID_HANDLE;
    // What is still allocated stays so, and the pool's end waits for it: here it is only cut off.
    for (auto& [unused, block] : state().blocks)
        if (block.pool == dead) block.pool = nullptr;
    return state().pools.erase(dead), CUDA_SUCCESS;
}

CUresult cuMemPoolSetAttribute(CUmemoryPool pool, int attribute, void* value)
{
    Pool* p = alive<Pool>(state().pools, pool);
    if (!p) return CUDA_ERROR_INVALID_HANDLE;
    if (attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) std::memcpy(&p->threshold, value, sizeof p->threshold);
    return CUDA_SUCCESS;
}

CUresult cuMemPoolGetAttribute(CUmemoryPool pool, int attribute, void* value)
{
    Pool* p = alive<Pool>(state().pools, pool);
    if (!p) return CUDA_ERROR_INVALID_HANDLE;
    const uint64_t answer = attribute == CU_MEMPOOL_ATTR_USED_MEM_CURRENT ? p->used
                          : attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT ? p->used + p->kept : p->threshold;
    return std::memcpy(value, &answer, sizeof answer), CUDA_SUCCESS;
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep_bytes)
{
    Pool* p = alive<Pool>(state().pools, pool);
    if (!p) return CUDA_ERROR_INVALID_HANDLE;
    if (const CUresult refused = refuse_in_capture()) return refused;
    p->kept = std::min<uint64_t>(p->kept, keep_bytes > p->used ? keep_bytes - p->used : 0);
    return CUDA_SUCCESS;
}

CUresult cuPointerGetAttributes(unsigned count, int* attributes, void** values, CUdeviceptr memory)
{
    const auto next = state().blocks.upper_bound(memory);
    const Block* block = block_of(memory, 1);
    const uintptr_t begin = block ? std::prev(next)->first : 0;
    const auto give = [](void* to, auto value) { std::memcpy(to, &value, sizeof value); };
    for (unsigned i = 0; i < count; i++) {
        switch (attributes[i]) {
        case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
            give(values[i], !block ? 0 : block->kind == Block::Kind::Device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST);
            break;
        case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: give(values[i], block ? block->context->device : -2); break;
        case CU_POINTER_ATTRIBUTE_IS_MANAGED: give(values[i], 0u); break;
        case CU_POINTER_ATTRIBUTE_CONTEXT: give(values[i], block && !block->pool ? block->context : nullptr); break;
        case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: give(values[i], uint64_t(begin)); break;
        case CU_POINTER_ATTRIBUTE_RANGE_SIZE: give(values[i], block ? block->bytes : 0); break;
        default: return CUDA_ERROR_INVALID_VALUE;
        }
    }
    return CUDA_SUCCESS;
}

CUresult cuPointerGetAttribute(void* value, int attribute, CUdeviceptr memory)
{
    if (!block_of(memory, 1)) return CUDA_ERROR_INVALID_VALUE;
    return cuPointerGetAttributes(1, &attribute, &value, memory);
}

CUresult cuMemHostAlloc(void** memory, size_t bytes, unsigned)
{
    if (const CUresult refused = refuse_in_capture()) return refused;
    uintptr_t made = 0;
    const CUresult result = take(&made, bytes, Block::Kind::Host, nullptr);
    return *memory = address(made), result;
}

CUresult cuMemFreeHost(void* memory)
{
    const Block* block = whole_block(number(memory), Block::Kind::Host);
    if (!block) return CUDA_ERROR_INVALID_VALUE;
    drain_context(*block->context);
    return free_block(number(memory)), CUDA_SUCCESS;
}

CUresult cuMemHostRegister(void* memory, size_t bytes, unsigned)
{
    if (const CUresult refused = refuse_in_capture()) return refused;
    if (!current()) return CUDA_ERROR_INVALID_CONTEXT;
    if (!memory || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
    if (block_of(number(memory), 1)) return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    state().blocks[number(memory)] = {bytes, current(), nullptr, Block::Kind::Registered, false};
    return CUDA_SUCCESS;
}

CUresult cuMemHostUnregister(void* memory)
{
    const Block* block = whole_block(number(memory), Block::Kind::Registered);
    if (!block) return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    drain_context(*block->context);
    return state().blocks.erase(number(memory)), CUDA_SUCCESS;
}

CUresult cuMemHostGetDevicePointer(CUdeviceptr* memory, void* host, unsigned)
{
    const Block* block = block_of(number(host), 1);
    if (!block || block->kind == Block::Kind::Device) return CUDA_ERROR_INVALID_VALUE;
    return *memory = number(host), CUDA_SUCCESS;
}

// Which way it goes, the addresses say.
CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    if (!block_of(to, bytes)) return copy_to_host(stream_of(stream), to, from, bytes);
    return copy_to_device(stream_of(stream), to, from, bytes);
}

CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void* from, size_t bytes, CUstream stream)
{
    return copy_to_device(stream_of(stream), to, number(from), bytes);
}

CUresult cuMemcpyDtoHAsync(void* to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    return copy_to_host(stream_of(stream), number(to), from, bytes);
}

CUresult cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    return copy_between_devices(stream_of(stream), to, from, bytes);
}

CUresult cuMemcpy2DAsync(const CUDA_MEMCPY2D* c, CUstream stream)
{
    if ((c->Height > 1 && (c->srcPitch < c->WidthInBytes || c->dstPitch < c->WidthInBytes)) || c->srcArray || c->dstArray) return CUDA_ERROR_INVALID_VALUE;
    const uintptr_t from = c->srcMemoryType == CU_MEMORYTYPE_HOST ? number(c->srcHost) : c->srcDevice;
    const uintptr_t to = c->dstMemoryType == CU_MEMORYTYPE_HOST ? number(c->dstHost) : c->dstDevice;
    for (size_t row = 0; row < c->Height; row++) {
        const uintptr_t source = from + (c->srcY + row) * c->srcPitch + c->srcXInBytes, target = to + (c->dstY + row) * c->dstPitch + c->dstXInBytes;
        if (const CUresult result = cuMemcpyAsync(target, source, c->WidthInBytes, stream)) return result;
    }
    return CUDA_SUCCESS;
}

CUresult cuMemsetD8Async(CUdeviceptr memory, unsigned char value, size_t count, CUstream stream) { return fill<uint8_t>(memory, value, count, stream); }
CUresult cuMemsetD16Async(CUdeviceptr memory, unsigned short value, size_t count, CUstream stream) { return fill<uint16_t>(memory, value, count, stream); }
CUresult cuMemsetD32Async(CUdeviceptr memory, unsigned value, size_t count, CUstream stream) { return fill<uint32_t>(memory, value, count, stream); }

}  // namespace ng::fake
