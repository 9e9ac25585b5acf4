// What the stand-in of the CUDA driver remembers: contexts, streams and their queues, memory, code.
#pragma once
#include "lib/backend/cuda/driver_types.h"
#include "tests/backend/fake_driver/fake_control.h"

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace ng::fake {

using namespace ng::cuda;

// One function for each row of the list.
#define DRIVER(name, version, parameters) CUresult name parameters;
#include "lib/backend/cuda/driver.def"
#undef DRIVER

struct Stream;

// A point in a stream: what is waited for.
struct Mark {
    Stream* stream = nullptr;
    bool    is_done = false;
    double  milliseconds = 0;
};

struct Operation {
    std::function<void()> run;
    std::shared_ptr<Mark> waits_for;                // null: for nothing
};

// Streams that record instead of work; shared by the streams that joined.
struct Capture {
    uint64_t id = 0;
    Stream*  origin = nullptr;
    bool     is_spoilt = false;
    int      mode = 0;
    std::vector<Operation> nodes;
    std::set<Stream*> open;                         // joined, and not yet waited for by the origin's line
};

struct Context {
    CUdevice device = 0;
    bool     is_primary = false;
    int      broken = 0;                            // what every call gives from now on
    std::unique_ptr<Stream> legacy;
};
struct Stream {
    Context* context = nullptr;
    bool     is_blocking = true;
    std::deque<Operation> queue;
    std::shared_ptr<Capture> capture;
};
struct Event {
    Context* context = nullptr;
    bool     has_time = false;
    std::shared_ptr<Mark> mark;
    std::shared_ptr<Capture> capture;               // recorded in a capture, by this stream
    Stream*  captured_in = nullptr;
};
struct Pool {
    Context* context = nullptr;
    uint64_t threshold = 0, used = 0, kept = 0;     // kept: freed, not given back
};
struct Function {
    std::string name;
    int dynamic_shared = 48 * 1024;
};
struct Module {
    Context* context = nullptr;
    std::string image;
    std::map<std::string, std::unique_ptr<Function>> functions;
};
struct Object { void* user; CUhostFn destroy; uint64_t references; };
struct Graph {
    std::vector<Operation> nodes;
    std::vector<Object*>   objects;
    bool is_exec = false;
};
struct Block {
    uint64_t bytes = 0;
    Context* context = nullptr;
    Pool*    pool = nullptr;
    enum class Kind { Device, Host, Registered } kind = Kind::Device;
    bool     is_freed_soon = false;                 // cuMemFreeAsync is queued
};
struct KernelCode { Kernel kernel = nullptr; std::vector<size_t> sizes; };

// All of it, under one lock. Handles are addresses of these objects; what is not in its set is dead.
struct State {
    bool is_started = false, is_deferred = false, has_pools = true, computes = true;
    unsigned block_us = 0;                          // what a block of a kernel takes; 0: what it takes here
    int  devices = 2, compute = 90;
    int  clock_khz = 0, memory_khz = 0, memory_bits = 0;
    uint64_t memory_bytes = uint64_t(1) << 30;
    std::map<int, std::unique_ptr<Context>> primaries;
    std::map<int, int> primary_holds;
    std::map<Context*, std::unique_ptr<Context>> own_contexts;
    std::map<Stream*, std::unique_ptr<Stream>> streams;
    std::map<Event*, std::unique_ptr<Event>> events;
    std::map<Pool*, std::unique_ptr<Pool>> pools;
    std::map<Module*, std::unique_ptr<Module>> modules;
    std::map<Function*, Module*> functions;
    std::map<Graph*, std::unique_ptr<Graph>> graphs;
    std::map<Object*, std::unique_ptr<Object>> objects;
    std::map<uintptr_t, Block> blocks;
    std::map<uint64_t, std::vector<Context*>> stacks;   // by thread
    std::map<uint64_t, int> capture_modes;              // by thread
    std::map<std::string, KernelCode> kernels;
    std::set<Capture*> captures;
    uint64_t next_capture = 1, launches = 0, launched_blocks = 0, misuses = 0;
};
State& state();
uint64_t this_thread();

// The context that is current to this thread, or null.
Context* current();
// A handle that is dead: counted, and the code for it.
CUresult misuse(CUresult code);
template <class T, class Handle, class Live>
T* alive(Live& live, Handle handle)
{
    const auto found = live.find(reinterpret_cast<T*>(handle));
    if (found != live.end()) return found->first;
    misuse(CUDA_ERROR_INVALID_HANDLE);
    return nullptr;
}

// Null where it is dead; null, 1 and 2 are the legacy stream of the current context.
Stream* stream_of(CUstream handle);
// Into the stream: done now, queued, or recorded by the capture it is in.
CUresult enqueue(Stream& stream, Operation operation);
void drain(Stream& stream);
void drain_context(const Context& context);
// What may not be done while a stream captures; it spoils the captures it meets.
CUresult refuse_in_capture();

// The block that holds bytes of memory from here on, or null.
Block* block_of(uintptr_t address, uint64_t bytes);
uint64_t device_bytes();
void free_block(uintptr_t address);
void drop_object(Object& object, uint64_t count);

}  // namespace ng::fake
