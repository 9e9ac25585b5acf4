// DLPack's exchange struct, flat, as a foreign library fills it in and reads it.
#pragma once
#include <cstdint>

// dmlc/dlpack, include/dlpack/dlpack.h, version 1.0 (2024).
struct DLManagedTensorVersioned {
    uint32_t major, minor;
    void*    manager;
    void   (*deleter)(DLManagedTensorVersioned* self);
    uint64_t flags;
    void*    data;
    int32_t  device_type, device_id;
    int32_t  ndim;
    uint8_t  code, bits;
    uint16_t lanes;
    int64_t *shape, *strides;
    uint64_t byte_offset;
};
