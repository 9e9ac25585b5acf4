// The shipped interpreter on this machine's device, where it has one, against the CPU backend.
//
//   interpreter_gpu_test    all cases; without a driver, a device or an image they are skipped, and counted so
#define DOCTEST_CONFIG_IMPLEMENT
#include "lib/backend/cuda/images.h"
#include "tests/backend/gpu_machine.h"
#include "tests/backend/interpreter_cases.h"

using namespace ng;
using namespace ng::cuda;
using namespace ng::test;

REGISTER_EXCEPTION_TRANSLATOR(const Error& error) { return error.text.c_str(); }

namespace {

class Device : public TapeMachine {
  public:
    explicit Device(const Driver& driver)
        : gpu_(driver), module_(gpu_.home(), std::string(interpreter_image()), Module::Accepts::Ptx), function_(module_.function(INTERPRETER_KERNEL)), pool_(gpu_.home())
    {
        allow_shared(gpu_.home(), function_, std::min(interpreter::MOST_SHARED_BYTES, uint32_t(attribute_of(driver, gpu_.home().device(), CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN))));
    }
    const Function& function() const { return function_; }

    void run(const Tape& tape, const TapeCase& c, std::vector<Buffer>& buffers) override
    {
        const Driver&  driver = gpu_.driver();
        const CUstream stream = gpu_.stream();
        const TapeGeometry g = geometry_of(tape, c.variables);
        const uint64_t most = most_scratch(tape, gpu_.info().units);
        CHECK(g.scratch_bytes <= most);
        const DeviceMemory code(pool_, tape.code_bytes(), stream), scratch(pool_, tape.spilled ? most : g.scratch_bytes, stream);
        driver.cuMemcpyHtoDAsync(code.get(), tape.code.data(), tape.code_bytes(), stream);
        std::vector<DeviceMemory> homes;
        std::vector<void*> pointers;
        for (Buffer& b : buffers) {
            const auto bytes = uint64_t(b.count * bytes_of(b.type)), shift = uint64_t(c.shift * bytes_of(b.type));
            homes.emplace_back(pool_, bytes + shift, stream);
            pointers.push_back(reinterpret_cast<void*>(homes.back().get() + shift));
            if (bytes) driver.cuMemcpyHtoDAsync(homes.back().get() + shift, b.data(), bytes, stream);
        }
        for (uint32_t k = 0; k < g.launches; k++) {
            interpreter::Numbers numbers;
            fill_numbers(tape, g, {reinterpret_cast<void*>(code.get()), reinterpret_cast<void*>(scratch.get()), pointers, c.variables, &CASE_SCALARS}, k, numbers);
            Launch l;
            l.grid[0] = g.blocks(k, gpu_.info().units), l.block[0] = g.threads, l.shared_bytes = g.shared_bytes;
            gpu_.launch(function_, l, &numbers);
        }
        for (size_t b = 0; b < buffers.size(); b++) {
            const auto bytes = uint64_t(buffers[b].count * bytes_of(buffers[b].type));
            if (bytes) driver.cuMemcpyDtoHAsync(buffers[b].data(), reinterpret_cast<CUdeviceptr>(pointers[b]), bytes, stream);
        }
        gpu_.wait();
    }

  private:
    Gpu        gpu_;
    Module     module_;
    Function   function_;
    MemoryPool pool_;
};

Device* device = nullptr;

void check(const TapeCases& all)
{
    for (const TapeCase& c : all) {
        INFO(c.name);
        const std::string found = difference(c, *device);
        CHECK_MESSAGE(found.empty(), found);
    }
}

}  // namespace

TEST_CASE("interpreter on a device: registers that leave room for five blocks")
{
    std::printf("interpret: %d registers, %d bytes of local memory\n", device->function().registers, device->function().local_bytes);
    CHECK(device->function().registers <= 65536 / (5 * interpreter::MAX_THREADS));
}
TEST_CASE("interpreter on a device: any strides, lengths, aliases and alignments") { check(stride_cases()); }
TEST_CASE("interpreter on a device: live values that shared memory has no room for") { check(spilling_cases()); }
TEST_CASE("interpreter on a device: every type in memory, every conversion and bitcast") { check(type_cases()); }
TEST_CASE("interpreter on a device: every row of ops.def in every type") { check(map_cases()); }
TEST_CASE("interpreter on a device: every fold in every type") { check(fold_cases()); }
TEST_CASE("interpreter on a device: random numbers and roundings by chance are the same bits") { check(chance_cases()); }

int main(int argc, char** argv)
{
    return run_cases(argc, argv, device, [](const Driver& driver) {
        if (!interpreter_image().empty()) return std::make_unique<Device>(driver);
        std::printf("skipped: this build has no nvcc's image of the interpreter\n");
        return std::unique_ptr<Device>();
    });
}
