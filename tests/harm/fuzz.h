// What the fuzz targets share: bytes that choose, dice for mutators, and what every call must leave behind.
#pragma once
#include "tests/split_mix.h"

#include <ng.h>

#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

// libFuzzer's names. Every target has the first two; the third is libFuzzer's, or fuzz_driver.cc's where there is none.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed);
extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace harm {

// Inputs that the target makes when it runs, beside those in files.
std::vector<std::string> seeds();

// An input read from its front; behind its end there are zeros.
class Bytes {
  public:
    Bytes(const uint8_t* data, size_t size) : at_(data), end_(data + size) {}
    bool     is_empty() const { return at_ == end_; }
    uint8_t  byte() { return at_ < end_ ? *at_++ : 0; }
    uint32_t below(uint32_t n) { return n > 256 ? (byte() << 8 | byte()) % n : byte() % n; }
    bool     one_in(uint32_t n) { return below(n) == n - 1; }
    uint64_t word()
    {
        uint64_t v = 0;
        for (int i = 0; i < 8; i++) v = v << 8 | byte();
        return v;
    }

  private:
    const uint8_t *at_, *end_;
};

// What fuzzers draw.
class Dice : public SplitMix {
  public:
    using SplitMix::SplitMix;
    size_t below(size_t n) { return size_t(word() % n); }
    bool   one_in(size_t n) { return below(n) == 0; }
    template <class T> const T& of(const std::vector<T>& all) { return all[below(all.size())]; }
};

// What was promised did not happen: the driver and libFuzzer keep the input.
[[noreturn]] __attribute__((format(printf, 1, 2))) inline void fault(const char* format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    std::fputs("FAULT: ", stderr);
    std::vfprintf(stderr, format, arguments);
    std::fputs("\n", stderr);
    va_end(arguments);
    std::abort();
}

// Every status is one of ng.h's and never our bug; a failure fills *error with its own status and a sentence.
inline ng_status sound(const char* call, ng_status status, const ng_error* error)
{
    if (!std::strncmp(ng_status_name(status), "no status", 9)) fault("%s returned %d, which ng.h does not have", call, status);
    if (status == NG_E_BUG) fault("%s: NG_E_BUG: %s", call, error ? error->text : "");
    if (status >= 0 || !error) return status;
    if (error->status != status) fault("%s returned %s and filled in %d", call, ng_status_name(status), error->status);
    if (!error->text[0] || !std::memchr(error->text, 0, sizeof error->text)) fault("%s: %s without a sentence", call, ng_status_name(status));
    return status;
}

constexpr uint64_t AFFORDABLE = uint64_t(1) << 24;   // operations and bytes of a run that a fuzzer waits for

// What one run of p at its largest lengths costs; a program that has no answer costs too much.
inline uint64_t cost_of(ng_prog* p)
{
    ng_prog_info info{};
    info.size = sizeof info;
    if (ng_prog_get_info(p, &info, nullptr) != NG_OK) return UINT64_MAX;
    return info.flops > UINT64_MAX - info.moved_bytes ? UINT64_MAX : info.flops + info.moved_bytes;
}

// Where calls run: the processor, or what NG_TEST_BACKEND says.
inline const char* backend()
{
    static const char* const given = std::getenv("NG_TEST_BACKEND");
    return given ? given : "cpu";
}
inline bool is_host() { return std::string_view(backend()) == "cpu"; }

// A context for one input: small memory, no thread, no file.
inline ng_ctx* small_context()
{
    ng_ctx_desc d{};
    d.size = sizeof d, d.version = NG_VERSION, d.backend = backend(), d.flags = NG_CTX_NO_THREADS, d.cache_dir = "", d.dev_limit = 1 << 24;
    ng_ctx* c = nullptr;
    ng_error error{};
    if (ng_ctx_create(&d, &c, &error) != NG_OK) fault("ng_ctx_create: %s", error.text);
    return c;
}
// Everything made in c was released before.
inline void end_context(ng_ctx* c)
{
    ng_error error{};
    ng_stats left{};
    left.size = sizeof left;
    if (ng_ctx_sync(c, nullptr, UINT64_MAX, &error) != NG_OK || ng_ctx_stats(c, &left) != NG_OK) fault("at the end: %s", error.text);
    if (left.tensors || left.live_bytes || left.workspace_bytes)
        fault("left behind: %u tensors, %llu bytes live, %llu in workspaces", left.tensors, (unsigned long long)left.live_bytes, (unsigned long long)left.workspace_bytes);
    if (ng_ctx_close(c, UINT64_MAX, &error) != NG_OK) fault("ng_ctx_close: %s", error.text);
    ng_ctx_release(c);
}

}  // namespace harm
