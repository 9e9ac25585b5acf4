// Our own types and signatures of the CUDA driver against NVIDIA's headers, where they are installed.
#include "lib/backend/cuda/driver_types.h"

#include <doctest/doctest.h>

#include <cstdio>
#include <tuple>
#include <type_traits>
#include <utility>

// Before cuda.h makes macros of these names.
constexpr unsigned OUR_ALLOC = ng::cuda::CU_MEMHOSTALLOC_PORTABLE, OUR_REGISTER = ng::cuda::CU_MEMHOSTREGISTER_PORTABLE;

// Ours, by name: what cuda.h renames by macros is not renamed in `using Ours_##name`.
namespace ng::cuda {
#define DRIVER(name, version, parameters) using Ours_##name = CUresult(*) parameters;
#include "lib/backend/cuda/driver.def"
#undef DRIVER
}  // namespace ng::cuda

#if __has_include(<cudaTypedefs.h>)
#include <cudaTypedefs.h>

namespace {

template <class A, class B>
constexpr bool IS_SAME_PARAMETER = sizeof(A) == sizeof(B) && std::is_pointer_v<A> == std::is_pointer_v<B>;

template <class A, class B> struct Compare : std::false_type {};
template <class R, class... A, class S, class... B>
    requires(sizeof...(A) == sizeof...(B))
struct Compare<R (*)(A...), S (*)(B...)> : std::bool_constant<sizeof(R) == sizeof(S) && (IS_SAME_PARAMETER<A, B> && ...)> {};

#define SAME_FIELD(type, field) (offsetof(ng::cuda::type, field) == offsetof(::type, field) && sizeof(ng::cuda::type::field) == sizeof(::type::field))

static_assert(sizeof(ng::cuda::CUmemPoolProps) == sizeof(::CUmemPoolProps));
static_assert(SAME_FIELD(CUmemPoolProps, allocType) && SAME_FIELD(CUmemPoolProps, handleTypes) && SAME_FIELD(CUmemPoolProps, maxSize));
static_assert(offsetof(ng::cuda::CUmemPoolProps, location_type) == offsetof(::CUmemPoolProps, location));
static_assert(offsetof(ng::cuda::CUmemPoolProps, location_id) == offsetof(::CUmemPoolProps, location) + offsetof(::CUmemLocation, id));
static_assert(sizeof(ng::cuda::CUlaunchAttribute) == sizeof(::CUlaunchAttribute) && SAME_FIELD(CUlaunchAttribute, value));
static_assert(sizeof(ng::cuda::CUlaunchConfig) == sizeof(::CUlaunchConfig) && SAME_FIELD(CUlaunchConfig, sharedMemBytes));
static_assert(SAME_FIELD(CUlaunchConfig, hStream) && SAME_FIELD(CUlaunchConfig, attrs) && SAME_FIELD(CUlaunchConfig, numAttrs));
static_assert(sizeof(ng::cuda::CUDA_MEMCPY2D) == sizeof(::CUDA_MEMCPY2D) && SAME_FIELD(CUDA_MEMCPY2D, srcMemoryType));
static_assert(SAME_FIELD(CUDA_MEMCPY2D, srcHost) && SAME_FIELD(CUDA_MEMCPY2D, srcDevice) && SAME_FIELD(CUDA_MEMCPY2D, srcPitch));
static_assert(SAME_FIELD(CUDA_MEMCPY2D, dstY) && SAME_FIELD(CUDA_MEMCPY2D, dstHost) && SAME_FIELD(CUDA_MEMCPY2D, dstDevice));
static_assert(SAME_FIELD(CUDA_MEMCPY2D, dstPitch) && SAME_FIELD(CUDA_MEMCPY2D, WidthInBytes) && SAME_FIELD(CUDA_MEMCPY2D, Height));
static_assert(sizeof(ng::cuda::CUtensorMap) == sizeof(::CUtensorMap) && sizeof(ng::cuda::CUuuid) == sizeof(::CUuuid));
static_assert(sizeof(ng::cuda::CUdeviceptr) == sizeof(::CUdeviceptr) && sizeof(ng::cuda::CUdevice) == sizeof(::CUdevice));
static_assert(OUR_ALLOC == CU_MEMHOSTALLOC_PORTABLE && OUR_REGISTER == CU_MEMHOSTREGISTER_PORTABLE);

#define SAME(name) static_assert((long long)(ng::cuda::name) == (long long)(::name), #name)
SAME(CUDA_SUCCESS); SAME(CUDA_ERROR_INVALID_VALUE); SAME(CUDA_ERROR_OUT_OF_MEMORY); SAME(CUDA_ERROR_NOT_INITIALIZED);
SAME(CUDA_ERROR_DEINITIALIZED); SAME(CUDA_ERROR_DEVICE_UNAVAILABLE); SAME(CUDA_ERROR_NO_DEVICE); SAME(CUDA_ERROR_INVALID_DEVICE);
SAME(CUDA_ERROR_INVALID_IMAGE); SAME(CUDA_ERROR_INVALID_CONTEXT); SAME(CUDA_ERROR_ECC_UNCORRECTABLE); SAME(CUDA_ERROR_INVALID_PTX);
SAME(CUDA_ERROR_NVLINK_UNCORRECTABLE); SAME(CUDA_ERROR_UNSUPPORTED_PTX_VERSION); SAME(CUDA_ERROR_INVALID_HANDLE);
SAME(CUDA_ERROR_NOT_FOUND); SAME(CUDA_ERROR_NOT_READY); SAME(CUDA_ERROR_ILLEGAL_ADDRESS); SAME(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
SAME(CUDA_ERROR_LAUNCH_TIMEOUT); SAME(CUDA_ERROR_CONTEXT_IS_DESTROYED); SAME(CUDA_ERROR_ASSERT);
SAME(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED); SAME(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED); SAME(CUDA_ERROR_HARDWARE_STACK_ERROR);
SAME(CUDA_ERROR_ILLEGAL_INSTRUCTION); SAME(CUDA_ERROR_MISALIGNED_ADDRESS); SAME(CUDA_ERROR_INVALID_ADDRESS_SPACE);
SAME(CUDA_ERROR_INVALID_PC); SAME(CUDA_ERROR_LAUNCH_FAILED); SAME(CUDA_ERROR_NOT_SUPPORTED); SAME(CUDA_ERROR_MPS_CLIENT_TERMINATED);
SAME(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED); SAME(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED); SAME(CUDA_ERROR_STREAM_CAPTURE_MERGE);
SAME(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED); SAME(CUDA_ERROR_STREAM_CAPTURE_UNJOINED); SAME(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
SAME(CU_DEVICE_ATTRIBUTE_CLOCK_RATE); SAME(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE); SAME(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
SAME(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT); SAME(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
SAME(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR); SAME(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
SAME(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN); SAME(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED);
SAME(CU_POINTER_ATTRIBUTE_CONTEXT); SAME(CU_POINTER_ATTRIBUTE_MEMORY_TYPE); SAME(CU_POINTER_ATTRIBUTE_IS_MANAGED);
SAME(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL); SAME(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR); SAME(CU_POINTER_ATTRIBUTE_RANGE_SIZE);
SAME(CU_MEMORYTYPE_HOST); SAME(CU_MEMORYTYPE_DEVICE);
SAME(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK); SAME(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES); SAME(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
SAME(CU_FUNC_ATTRIBUTE_NUM_REGS); SAME(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
SAME(CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED);
SAME(CU_MEMPOOL_ATTR_RELEASE_THRESHOLD); SAME(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT); SAME(CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
SAME(CU_MEM_ALLOCATION_TYPE_PINNED); SAME(CU_MEM_LOCATION_TYPE_DEVICE);
SAME(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION); SAME(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
SAME(CU_JIT_ERROR_LOG_BUFFER); SAME(CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);
SAME(CU_STREAM_DEFAULT); SAME(CU_STREAM_NON_BLOCKING); SAME(CU_EVENT_DEFAULT); SAME(CU_EVENT_DISABLE_TIMING);
SAME(CU_STREAM_CAPTURE_STATUS_NONE); SAME(CU_STREAM_CAPTURE_STATUS_ACTIVE); SAME(CU_STREAM_CAPTURE_STATUS_INVALIDATED);
SAME(CU_STREAM_CAPTURE_MODE_GLOBAL); SAME(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL); SAME(CU_STREAM_CAPTURE_MODE_RELAXED);
SAME(CU_GRAPH_USER_OBJECT_MOVE); SAME(CU_USER_OBJECT_NO_DESTRUCTOR_SYNC); SAME(CU_GET_PROC_ADDRESS_LEGACY_STREAM);

}  // namespace

TEST_CASE("driver.def: each version is one that the headers know, with the same parameters")
{
#define DRIVER(name, version, parameters) CHECK_MESSAGE((Compare<ng::cuda::Ours_##name, PFN_##name##_v##version>::value), #name);
#include "lib/backend/cuda/driver.def"
#undef DRIVER
}
#else
TEST_CASE("driver.def: each version is one that the headers know, with the same parameters")
{
    std::printf("skipped: no cudaTypedefs.h here\n");
}
#endif
