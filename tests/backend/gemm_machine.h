// This machine's GPU with images of products loaded, for tests that say themselves how a product runs.
#pragma once
#include "lib/backend/cuda/images.h"
#include "tests/backend/gemm_problems.h"
#include "tests/backend/gpu_machine.h"

#include <map>
#include <span>
#include <string>
#include <vector>

namespace ng::gemm_check {

class GemmMachine {
  public:
    // Of the images those that have code for the device; the portable one has it for any.
    GemmMachine(const cuda::Driver& driver, std::span<const gemm::Image> images)
        : gpu(driver), basic_(gpu.home(), std::string(cuda::basic_image()), cuda::Module::Accepts::Ptx)
    {
        facts = {cuda::compute_of(driver, gpu.home().device()), gpu.info().units, {}};
        for (uint32_t k = 0; k < uint32_t(cuda::basic::BasicKernel::count_); k++) basic_functions_.push_back(basic_.function(name_of(cuda::basic::BasicKernel(k))));
        for (const gemm::Image image : images) {
            if (image != gemm::Image::Mma && !cuda::has_gemm_code(image, facts.compute)) continue;
            modules_.emplace_back(gpu.home(), std::string(cuda::gemm_image(image)), cuda::Module::Accepts::Ptx);
            for (const gemm::KernelFacts& k : gemm::kernels_of(image)) {
                functions_[image].push_back(modules_.back().function(k.name));
                if (k.shared_bytes) cuda::allow_shared(gpu.home(), functions_[image].back(), k.shared_bytes);
            }
            facts.has[size_t(image)] = true;
        }
    }
    // run(place), with launches on this device; of texts, by what this one was compiled to.
    template <class Run>
    void with_place(void* workspace, uint64_t bytes, const Run& run, const test::FinisherCode* text = nullptr) const
    {
        auto body = [&](const gemm::Launch& l) { gpu.launch(l.image == gemm::Image::Text ? text->functions[l.kernel] : function(l.image, l.kernel), l); };
        auto basic_body = [&](const cuda::basic::Launch& l) { gpu.launch(basic_functions_[size_t(l.kernel)], l); };
        const gemm::Launcher        launcher(body);
        const cuda::basic::Launcher basic_launcher(basic_body);
        run(gemm::Place{workspace, bytes, launcher, basic_launcher, &gpu.driver()});
    }
    const cuda::Function& function(gemm::Image image, size_t i) const { return functions_.at(image)[i]; }

    const test::Gpu gpu;
    gemm::Device    facts = {};

  private:
    cuda::Module                basic_;
    std::vector<cuda::Function> basic_functions_;
    std::vector<cuda::Module>   modules_;
    std::map<gemm::Image, std::vector<cuda::Function>> functions_;
};

}  // namespace ng::gemm_check
