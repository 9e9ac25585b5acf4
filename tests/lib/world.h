// What tests of the face share: contexts opened and shut, shapes in one line, memory that is counted.
#pragma once
#include <doctest/doctest.h>
#include <ng.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <vector>

inline ng_error error;

inline ng_ctx_desc description(uint32_t flags = 0)
{
    ng_ctx_desc d{};
    d.size = sizeof d, d.version = NG_VERSION, d.backend = "cpu", d.flags = flags;
    return d;
}
inline ng_ctx* open_ctx(const ng_ctx_desc& d)
{
    ng_ctx* c = nullptr;
    REQUIRE(ng_ctx_create(&d, &c, &error) == NG_OK);
    REQUIRE(c);
    return c;
}
inline ng_ctx* open_ctx(uint32_t flags = 0) { return open_ctx(description(flags)); }
inline void shut(ng_ctx* c)
{
    CHECK(ng_ctx_close(c, 5000000000u, &error) == NG_OK);
    ng_ctx_release(c);
}
inline ng_stats stats(ng_ctx* c)
{
    ng_stats s{};
    s.size = sizeof s;
    REQUIRE(ng_ctx_stats(c, &s) == NG_OK);
    return s;
}

inline ng_shape shape(ng_dtype t, std::vector<int64_t> dims, std::vector<int64_t> strides = {}, uint32_t flags = 0)
{
    ng_shape d{};
    d.size = sizeof d, d.dtype = t, d.ndim = int32_t(dims.size()), d.flags = flags;
    std::copy(dims.begin(), dims.end(), d.dims);
    if (!strides.empty()) d.flags |= NG_STRIDED;
    std::copy(strides.begin(), strides.end(), d.strides);
    return d;
}
inline ng_shape vec(int64_t n) { return shape(NG_F32, {n}); }
inline ng_tensor* tensor(ng_ctx* c, const ng_shape& d)
{
    ng_tensor* t = nullptr;
    REQUIRE(ng_tensor_create(c, &d, &t, &error) == NG_OK);
    return t;
}
inline ng_tensor* tensor(ng_ctx* c, int64_t n) { return tensor(c, vec(n)); }
template <class T>
T* data_of(ng_tensor* t)
{
    void* data = nullptr;
    REQUIRE(ng_tensor_use(t, nullptr, NG_USE_READ, &data, &error) == NG_OK);
    return static_cast<T*>(data);
}

// A context that must be left empty.
struct World {
    ng_ctx* c;
    explicit World(uint32_t flags = 0) : c(open_ctx(flags)) {}
    ~World()
    {
        CHECK(ng_ctx_sync(c, nullptr, 0, &error) == NG_OK);
        CHECK(stats(c).tensors == 0);
        CHECK(stats(c).dev_bytes == 0);
        shut(c);
    }
};

// An allocator of the host's, and its account.
inline std::atomic<int>  allocator_calls{0};
inline std::atomic<long> outstanding{0};
inline ng_allocator allocator()
{
    ng_allocator a{};
    a.size = sizeof a;
    a.alloc = [](void*, size_t bytes, size_t align, ng_purpose, ng_stream) -> void* {
        allocator_calls++, outstanding += long(bytes);
        return std::aligned_alloc(align, (bytes + align - 1) / align * align);
    };
    a.free = [](void*, void* p, size_t bytes, ng_purpose, ng_stream) {
        allocator_calls++, outstanding -= long(bytes);
        std::free(p);
    };
    return a;
}

// 64 numbers lent to c; done counts.
inline ng_tensor* lent(ng_ctx* c, std::atomic<int>& done)
{
    static float memory[64];
    const ng_shape d = vec(64);
    ng_tensor* t = nullptr;
    REQUIRE(ng_tensor_wrap(c, &d, memory, sizeof memory, [](void* user) { ++*static_cast<std::atomic<int>*>(user); }, &done, &t, &error) == NG_OK);
    return t;
}
