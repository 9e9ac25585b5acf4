// Runs a fuzz target without libFuzzer: its seeds, files, then mutations of both by a number, for some seconds.
#include "tests/harm/fuzz.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <unistd.h>

// Only where AddressSanitizer is there. Sizes that no machine has are refused as malloc refuses them.
extern "C" __attribute__((weak)) void __sanitizer_set_death_callback(void (*callback)());
extern "C" const char* __asan_default_options() { return "allocator_may_return_null=1:detect_stack_use_after_return=0"; }
extern "C" const char* __ubsan_default_options() { return "halt_on_error=1:print_stacktrace=1"; }
extern "C" const char* __tsan_default_options() { return "allocator_may_return_null=1"; }

namespace {

constexpr size_t   MAX_BYTES = 1 << 16;
constexpr unsigned MAX_SECONDS_EACH = 60;

harm::Dice  dice(1);
std::string input;             // that runs now
uint64_t    seed = 1, number = 0;
const char* kept_name = "failing.input";

// Async-signal-safe: the input goes to a file, its number to stderr.
void keep_input()
{
    char line[160];
    const int length = std::snprintf(line, sizeof line, "\nthe input is --seed %llu --first %llu --count 1, %zu bytes, kept in %s\n",
                                     (unsigned long long)seed, (unsigned long long)number, input.size(), kept_name);
    (void)!write(STDERR_FILENO, line, size_t(length));
    if (FILE* file = std::fopen(kept_name, "wb")) {
        std::fwrite(input.data(), 1, input.size(), file);
        std::fclose(file);
    }
}
void on_signal(int signal)
{
    if (signal == SIGALRM) (void)!write(STDERR_FILENO, "\none input took more than a minute", 34);
    keep_input();
    std::signal(signal, SIG_DFL);
    std::raise(signal);
}

void run(std::string bytes)
{
    input = std::move(bytes);
    alarm(MAX_SECONDS_EACH);
    // A copy of the very size: reading past its end is seen.
    const std::vector<uint8_t> copy(input.begin(), input.end());
    LLVMFuzzerTestOneInput(copy.data(), copy.size());
    alarm(0);
}

std::string mutated(const std::vector<std::string>& all)
{
    std::vector<uint8_t> bytes(MAX_BYTES);
    size_t size = 0;
    if (!all.empty() && !dice.one_in(16)) {
        const std::string& base = dice.of(all);
        size = std::min(base.size(), MAX_BYTES);
        std::copy_n(base.begin(), size, bytes.begin());
    }
    for (size_t turns = 1 + dice.below(6); turns-- > 0;) size = LLVMFuzzerCustomMutator(bytes.data(), size, MAX_BYTES, unsigned(dice.word()));
    return std::string(bytes.begin(), bytes.begin() + ptrdiff_t(size));
}

std::vector<std::string> files_below(const std::vector<std::string>& paths)
{
    std::vector<std::filesystem::path> files;
    for (const std::string& path : paths) {
        if (!std::filesystem::is_directory(path)) files.push_back(path);
        else
            for (const auto& entry : std::filesystem::directory_iterator(path)) files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    std::vector<std::string> texts;
    for (const auto& file : files) {
        std::ifstream stream(file, std::ios::binary);
        if (!stream) harm::fault("%s cannot be read", file.c_str());
        texts.emplace_back(std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>());
    }
    return texts;
}

// Seeds as files: where libFuzzer begins.
int write_seeds(const std::filesystem::path& folder)
{
    size_t count = 0;
    for (const std::string& bytes : harm::seeds())
        if (!(std::ofstream(folder / std::to_string(count++), std::ios::binary) << bytes)) harm::fault("%s: no file can be written there", folder.c_str());
    return 0;
}

void watch()
{
    if (&__sanitizer_set_death_callback) __sanitizer_set_death_callback(keep_input);
    else
        for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) std::signal(signal, on_signal);
    for (const int signal : {SIGABRT, SIGALRM}) std::signal(signal, on_signal);
}

}  // namespace

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size)
{
    const auto insert = [&](size_t at, size_t count) {
        count = std::min(count, max_size - size);
        std::memmove(data + at + count, data + at, size - at);
        for (size_t i = 0; i < count; i++) data[at + i] = uint8_t(dice.word());
        size += count;
    };
    if (size == 0) return insert(0, 1 + dice.below(64)), size;
    const size_t at = dice.below(size), count = 1 + dice.below(std::min<size_t>(size - at, 32));
    switch (dice.below(8)) {
    case 0: data[at] ^= uint8_t(1u << dice.below(8)); break;
    case 1: data[at] = uint8_t(dice.word()); break;
    case 2: insert(at, 1 + dice.below(16)); break;
    case 3: std::memmove(data + at, data + at + count, size - at - count), size -= count; break;
    case 4: {                                                        // a stretch from elsewhere
        const size_t from = dice.below(size);
        std::memmove(data + at, data + from, std::min(count, size - from));
        break;
    }
    case 5: {                                                        // a stretch once more
        std::vector<uint8_t> part(data + at, data + at + count);
        insert(at, count);
        std::copy_n(part.begin(), std::min(part.size(), size - at), data + at);
        break;
    }
    case 6: std::memset(data + at, dice.one_in(2) ? 0xff : 0, count); break;
    default: data[at] = uint8_t(data[at] + (dice.one_in(2) ? 1 : -1)); break;
    }
    return size;
}

int main(int argc, char** argv)
{
    double seconds = 3;
    uint64_t first = 0, count = UINT64_MAX;
    std::vector<std::string> paths;
    for (int i = 1; i < argc; i++) {
        const std::string option = argv[i];
        const auto value = [&] { return i + 1 < argc ? argv[++i] : "0"; };
        if (option == "--seconds") seconds = std::atof(value());
        else if (option == "--seed") seed = std::strtoull(value(), nullptr, 0);
        else if (option == "--first") first = std::strtoull(value(), nullptr, 0);
        else if (option == "--count") count = std::strtoull(value(), nullptr, 0);
        else if (option == "--write") return write_seeds(value());
        else paths.push_back(option);
    }
    watch();
    std::vector<std::string> all = harm::seeds();
    for (std::string& text : files_below(paths)) all.push_back(std::move(text));
    const auto start = std::chrono::steady_clock::now();
    const auto elapsed = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
    number = UINT64_MAX;
    if (first == 0)
        for (const std::string& text : all) run(text);
    for (number = first; number - first < count && (count != UINT64_MAX || elapsed() < seconds); number++) {
        dice = harm::Dice(seed * 0x100000001B3u + number);           // an input depends on nothing but its number
        run(mutated(all));
    }
    std::printf("%zu seeds and %llu mutations in %.1f s, seed %llu\n", all.size(), (unsigned long long)(number - first), elapsed(), (unsigned long long)seed);
    std::printf("1 passed, 0 failed\n");
    return 0;
}
