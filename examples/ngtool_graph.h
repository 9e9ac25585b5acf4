// A GPU's programs as one graph of the driver's: what they take without the gaps that launching them one by one may leave.
#pragma once
#include "ngtool.h"

#include <functional>
#include <memory>

namespace ngtool {

struct Driver;                              // the functions of libcuda that this takes

// A stream of the device's primary context, on which calls are recorded.
class Recorder {
public:
    // Null where there is no such driver or device.
    static std::unique_ptr<Recorder> of_device(int32_t ordinal);
    ~Recorder();
    void* stream() const { return stream_; }
    // The medians of a few launches of `count` calls, call(0) .. call(count - 1), which run on stream(); 0: these cannot be recorded.
    double median_us(const std::function<void(size_t)>& call, size_t count, int repetitions);

private:
    std::unique_ptr<Driver> driver_;
    void *context_ = nullptr, *stream_ = nullptr, *begin_ = nullptr, *end_ = nullptr;
    int   device_ = 0;

    Recorder();
    bool open(int32_t ordinal);
    void* record(const std::function<void(size_t)>& call, size_t count);     // an executable graph
};

double median(std::vector<double> values);

}
