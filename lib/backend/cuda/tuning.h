// Measures how products of given shapes run fastest on the device, beside whatever else it does, for all later runs.
#pragma once
#include "lib/backend/cuda/backend.h"

#include <atomic>
#include <vector>

namespace ng::cuda {

// A job; it keeps nothing of the program that asked for it.
class Tuning {
  public:
    Tuning(CudaBackend& backend, const gemm::Device& device) : backend_(backend), device_(device) {}
    // Addresses, the epilogue's tensors and scalars do not matter; with a text behind it, the same with a cast is measured.
    void add(const gemm::Problem& problem, uint64_t workspace_bytes) { wanted_.push_back({problem, workspace_bytes}); }
    bool is_empty() const { return wanted_.empty(); }
    // For any thread, once. What there is no memory for, or is known already, is not measured.
    void run() noexcept;

    std::atomic<int> waiting{1};             // 0: done

  private:
    struct Wanted { gemm::Problem problem; uint64_t workspace_bytes; };
    void measure(const Wanted& wanted);
    // What it throws goes to the log.
    template <class Body>
    void guarded(const Body& body) noexcept;

    CudaBackend&        backend_;
    const gemm::Device  device_;
    std::vector<Wanted> wanted_;
};

}  // namespace ng::cuda
