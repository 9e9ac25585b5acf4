// Ranges on the time line of a tool that is attached to this process: NVTX without its library.
#pragma once

namespace ng::cuda {

// NVTX 3's agreement between programs and tools: a tool exports InitializeInjectionNvtx2, is called once with a way to our
// table of functions, and puts its own into it. Usually an environment variable says where the tool lies; we read none
// (contract S10) and look among the libraries that are in the process already, where Nsight's are once the driver is started.
// From any thread; only the first call looks.
void find_tool() noexcept;

// From here to its end the thread is in the range of this name; null: in none. Without a tool: a look at one pointer.
class NamedRange {
  public:
    explicit NamedRange(const char* name) noexcept;
    ~NamedRange();
    NamedRange(const NamedRange&) = delete;
    bool is_open() const noexcept { return is_open_; }       // somebody listens

  private:
    bool is_open_;
};

}  // namespace ng::cuda
