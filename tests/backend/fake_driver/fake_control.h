// What tests tell the stand-in of the CUDA driver, and ask it.
#pragma once
#include <cstddef>
#include <cstdint>

// The stand-in is a shared library with the driver's functions on memory of the host: no GPU. Tests load it by its path,
// as the driver, and find these functions in it by name (StandIn in tests/backend/stand_in.h does).
//
// Faults: a call that is made to fail does nothing and gives the code, but for those that end something (destroy, free,
// unload, release, pop, unregister, end of capture), which do it and give the code, as the driver does when earlier work went wrong.
// When it is initialised it also reads NG_FAKE_FAIL, "NAME[:COUNT[:CODE]]" or "COUNT[:CODE]", and NG_FAKE_DEFER, "1".
namespace ng::fake {

// What is alive now, and how often things were done since the last reset().
struct Counts {
    uint64_t calls, launches, blocks, misuses;      // blocks: of all grids; misuses: of handles and addresses that are not alive
    uint64_t contexts, primary_holds, pushed;       // pushed: depth of every thread's stack
    uint64_t streams, events, modules, pools, graphs, objects;
    uint64_t device_blocks, device_bytes, host_blocks, registrations;
    uint64_t queued;                                // operations that wait in streams

    // Things that somebody has to end.
    uint64_t alive() const
    {
        return primary_holds + pushed + streams + events + modules + pools + graphs + objects + device_blocks + host_blocks + registrations;
    }
};

struct KernelLaunch {
    unsigned grid[3], block[3], cluster[3], shared_bytes;
    void**   arguments;                             // the address of each, copied when it was launched
};
using Kernel = void (*)(const KernelLaunch& launch);

struct Control {
    // As after loading, but for kernels and cuInit; what is still alive is freed and its handles are dead.
    void (*reset)();
    // As if cuInit had not been called.
    void (*forget_init)();
    Counts (*counts)();
    // Calls of this function since the last reset().
    uint64_t (*calls_of)(const char* name);
    // The number-th call from now fails, 1: the next. 0: none does.
    void (*fail_call)(uint64_t number, int code);
    // The number-th call of this function from now.
    void (*fail_function)(const char* name, uint64_t number, int code);
    // Every call from now on gives this, as after a fault of a kernel; 0: no longer.
    void (*break_all)(int code);
    // The function that was made to fail last, "" if none was.
    const char* (*failed)();
    // Functions from here on are unknown to cuGetProcAddress: an old driver. Null: none.
    void (*hide)(const char* name);
    // On: work waits in its stream until somebody waits for it, as late as the driver may do it. Off: done in the call.
    void (*defer)(bool is_on);
    void (*set_devices)(int count);
    void (*set_compute)(int compute);               // of the first: 90 after loading
    void (*set_memory)(uint64_t bytes);             // of each device
    void (*set_clocks)(int khz, int memory_khz, int memory_bits);       // 0 after loading: it does not tell
    void (*set_pools)(bool has_pools);
    void (*count_time)(unsigned block_us);          // by events each block of a kernel takes as long, and all else nothing; 0: by the host's clock
    void (*compute)(bool is_on);                    // Off: kernels are counted, no more, and memory is not filled
    // Kernels of this name call it: sizes of its arguments in bytes. Kernels without one are counted, no more.
    void (*set_kernel)(const char* name, Kernel kernel, const size_t* sizes, size_t count);
    // Contexts of the host's own; destroying one leaves what lives in it dangling.
    void* (*create_context)(int device);
    void (*destroy_context)(void* context);
};

}  // namespace ng::fake

// The one function of the library that is not the driver's.
extern "C" const ng::fake::Control* ng_fake_control();
