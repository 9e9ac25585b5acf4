// A libnvrtc that compiles nothing and counts: what it gives is a file of code whose functions have the names in the source.
#include "lib/backend/cuda/nvrtc.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace {

struct Source { std::string text; };
std::atomic<uint64_t> compilations{0}, under_way{0}, most_at_once{0};

// As the real one's data, which is gone after exit() got here: who works with it now would crash.
constexpr int WOULD_CRASH = 77;
struct Data {
    ~Data() { if (under_way) _exit(WOULD_CRASH); }
} data;

int compile()
{
    const uint64_t now = ++under_way;
    for (uint64_t most = most_at_once; now > most && !most_at_once.compare_exchange_weak(most, now);) {}
    const char* const slow = std::getenv("NG_FAKE_COMPILE_MS");
    if (slow) std::this_thread::sleep_for(std::chrono::milliseconds(std::atoi(slow)));
    under_way--;
    return compilations++, 0;
}

// As long as a cubin's head says; names are found in it as in a text.
std::string code_of(const Source& source)
{
    std::string code(64, '\0');
    code.replace(0, 4, "\x7f" "ELF");
    code += source.text;
    const uint64_t bytes = code.size();
    std::memcpy(code.data() + 40, &bytes, sizeof bytes);
    return code;
}
Source& source(void* program) { return *static_cast<Source*>(program); }

}  // namespace

extern "C" {

// Asked for by tests, by name.
uint64_t ng_fake_compilations() { return compilations; }
uint64_t ng_fake_most_at_once() { return most_at_once; }

int nvrtcVersion(int* major, int* minor) { return *major = 13, *minor = 0, 0; }
int nvrtcGetNumSupportedArchs(int* count) { return *count = 3, 0; }
int nvrtcGetSupportedArchs(int* archs) { return archs[0] = 75, archs[1] = 80, archs[2] = 90, 0; }
int nvrtcCreateProgram(void** program, const char* text, const char*, int, const char* const*, const char* const*) { return *program = new Source{text}, 0; }
int nvrtcDestroyProgram(void** program) { return delete static_cast<Source*>(*program), 0; }
int nvrtcCompileProgram(void*, int, const char* const*) { return compile(); }
int nvrtcGetProgramLogSize(void*, size_t* bytes) { return *bytes = 0, 0; }
int nvrtcGetProgramLog(void*, char*) { return 0; }
int nvrtcGetCUBINSize(void* program, size_t* bytes) { return *bytes = code_of(source(program)).size(), 0; }
int nvrtcGetCUBIN(void* program, char* code)
{
    const std::string made = code_of(source(program));
    std::memcpy(code, made.data(), made.size());
    return 0;
}
int nvrtcGetPTXSize(void*, size_t*) { return 1; }
int nvrtcGetPTX(void*, char*) { return 1; }

}
