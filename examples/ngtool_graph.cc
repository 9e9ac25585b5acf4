// Records and times graphs by the driver's own functions, which are looked up when ngtool runs: it links no CUDA.
#include "ngtool_graph.h"

#include <algorithm>
#include <dlfcn.h>
#include <type_traits>

namespace ngtool {
namespace {

constexpr int CAPTURE_STRICTLY = 0;         // CU_STREAM_CAPTURE_MODE_GLOBAL
constexpr int WARM_LAUNCHES = 2;

}

#define DRIVER_FUNCTIONS(X)                                                       \
    X(init, "cuInit", int (*)(unsigned))                                          \
    X(device, "cuDeviceGet", int (*)(int*, int))                                  \
    X(retain, "cuDevicePrimaryCtxRetain", int (*)(void**, int))                   \
    X(give_back, "cuDevicePrimaryCtxRelease_v2", int (*)(int))                    \
    X(push, "cuCtxPushCurrent_v2", int (*)(void*))                                \
    X(pop, "cuCtxPopCurrent_v2", int (*)(void**))                                 \
    X(make_stream, "cuStreamCreate", int (*)(void**, unsigned))                   \
    X(end_stream, "cuStreamDestroy_v2", int (*)(void*))                           \
    X(wait_for, "cuStreamSynchronize", int (*)(void*))                            \
    X(begin_capture, "cuStreamBeginCapture_v2", int (*)(void*, int))              \
    X(end_capture, "cuStreamEndCapture", int (*)(void*, void**))                  \
    X(instantiate, "cuGraphInstantiateWithFlags", int (*)(void**, void*, unsigned long long)) \
    X(launch, "cuGraphLaunch", int (*)(void*, void*))                             \
    X(end_executable, "cuGraphExecDestroy", int (*)(void*))                       \
    X(end_graph, "cuGraphDestroy", int (*)(void*))                                \
    X(make_event, "cuEventCreate", int (*)(void**, unsigned))                     \
    X(end_event, "cuEventDestroy_v2", int (*)(void*))                             \
    X(mark, "cuEventRecord", int (*)(void*, void*))                               \
    X(elapsed, "cuEventElapsedTime", int (*)(float*, void*, void*))

struct Driver {
#define MEMBER(name, symbol, ...) std::type_identity_t<__VA_ARGS__> name = nullptr;
    DRIVER_FUNCTIONS(MEMBER)
#undef MEMBER
    void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);

    bool is_whole()
    {
        if (!library) return false;
        bool found = true;
#define FIND(name, symbol, ...) name = reinterpret_cast<__VA_ARGS__>(dlsym(library, symbol)), found = found && name;
        DRIVER_FUNCTIONS(FIND)
#undef FIND
        return found;
    }
    ~Driver()
    {
        if (library) dlclose(library);
    }
};

// A context is the calling thread's while this lives.
struct Current {
    Driver& driver;

    Current(Driver& d, void* context) : driver(d) { driver.push(context); }
    ~Current()
    {
        void* context = nullptr;
        driver.pop(&context);
    }
};

double median(std::vector<double> values)
{
    std::sort(values.begin(), values.end());
    const size_t middle = values.size() / 2;
    return values.size() % 2 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

Recorder::Recorder() : driver_(std::make_unique<Driver>()) {}

std::unique_ptr<Recorder> Recorder::of_device(int32_t ordinal)
{
    std::unique_ptr<Recorder> recorder(new Recorder);
    return recorder->open(ordinal) ? std::move(recorder) : nullptr;
}

bool Recorder::open(int32_t ordinal)
{
    Driver& d = *driver_;
    if (!d.is_whole() || d.init(0) != 0 || d.device(&device_, ordinal) != 0 || d.retain(&context_, device_) != 0) return false;
    const Current current(d, context_);
    return d.make_stream(&stream_, 0) == 0 && d.make_event(&begin_, 0) == 0 && d.make_event(&end_, 0) == 0;
}

Recorder::~Recorder()
{
    if (!context_) return;
    {
        const Current current(*driver_, context_);
        if (end_) driver_->end_event(end_);
        if (begin_) driver_->end_event(begin_);
        if (stream_) driver_->end_stream(stream_);
    }
    driver_->give_back(device_);
}

void* Recorder::record(const std::function<void(size_t)>& call, size_t count)
{
    Driver& d = *driver_;
    if (d.begin_capture(stream_, CAPTURE_STRICTLY) != 0) return nullptr;
    void *graph = nullptr, *executable = nullptr;
    bool  is_recorded = true;
    try {
        for (size_t i = 0; i < count; i++) call(i);
    }
    catch (const Failure&) {
        is_recorded = false;
    }
    if (d.end_capture(stream_, &graph) != 0) return nullptr;
    if (is_recorded && d.instantiate(&executable, graph, 0) != 0) executable = nullptr;
    d.end_graph(graph);
    return executable;
}

double Recorder::median_us(const std::function<void(size_t)>& call, size_t count, int repetitions)
{
    Driver&       d = *driver_;
    const Current current(d, context_);
    void* const   executable = record(call, count);
    if (!executable) return 0;
    std::vector<double> times;
    for (int i = 0; i < WARM_LAUNCHES + repetitions; i++) {
        float ms = 0;
        d.mark(begin_, stream_);
        if (d.launch(executable, stream_) != 0) break;
        d.mark(end_, stream_);
        if (d.wait_for(stream_) != 0 || d.elapsed(&ms, begin_, end_) != 0) break;
        if (i >= WARM_LAUNCHES) times.push_back(double(ms) * 1e3 / double(count));
    }
    d.end_executable(executable);
    return int(times.size()) == repetitions ? median(times) : 0;
}

}
