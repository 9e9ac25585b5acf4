// One random program's texts: which its runs take, and what they compute beside naive loops.
#pragma once
#include "tests/jit/emit_run.h"
#include "tests/jit/text_draw.h"

#include <atomic>
#include <set>

namespace ng::emitted {

class TextTrial {
  public:
    // The program of this number: the first that its dice draw which is one and has kernels alone.
    TextTrial(uint64_t seed, uint64_t number);
    uint64_t number() const { return number_; }
    void add_to(Emulation& code);
    // Of all runs, the first that is wrong in words; empty where none is. now: the run that goes on.
    std::string fault(const Emulation& code, std::atomic<size_t>& now);
    std::string words() const;
    std::string words_of_run(size_t run) const;
    void count(std::set<std::string>& met) const;

  private:
    struct Variant {
        size_t lengths;          // of program_.runs
        Lying  lies;
        Run    run;
        std::vector<Geometry> chosen;
    };
    bool prepare();
    void lay(size_t lengths, Dice& dice);
    std::string fault(Variant& v, const Emulation& code);

    uint64_t     number_;
    DrawnProgram program_;
    std::vector<std::unique_ptr<Case>> cases_;           // by lengths
    std::vector<KernelFamily>          families_;        // by step
    std::vector<std::vector<size_t>>   classes_;         // by step and class: the kernel's number
    std::vector<Variant>               variants_;
};

// What a large number of programs must have launched between them, of that what none did.
std::vector<std::string> missing_texts(const std::set<std::string>& met);

}  // namespace ng::emitted
