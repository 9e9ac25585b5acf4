// A folder for a test of the kernels on disk, what is stored in it, and processes of the test's own.
#pragma once
#include "lib/disk_cache.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <set>

namespace files = std::filesystem;
using ng::cache_key, ng::Digest, ng::DiskCache;

constexpr uid_t NOBODY = 65534;
constexpr uint64_t HEADER = 80;

// A folder of this test's own, gone with it. A test that waits for ever is ended.
struct Place {
    std::string path = (files::temp_directory_path() / "ng-cache-XXXXXX").string();
    Place()
    {
        REQUIRE(mkdtemp(path.data()));
        alarm(250);
    }
    ~Place() { alarm(0), files::remove_all(path); }
    std::string operator/(const std::string& name) const { return path + "/" + name; }
};

inline Digest key_of(int number) { return cache_key({"kernel", std::to_string(number)}); }

// What is stored for a number: no two agree.
inline std::vector<char> payload_of(int number, size_t size)
{
    std::vector<char> bytes(size);
    uint32_t state = uint32_t(number) * 2654435761u + 12345u;
    for (char& byte : bytes) byte = char((state = state * 1664525u + 1013904223u) >> 24);
    return bytes;
}

inline std::string hex(const Digest& digest)
{
    std::string text;
    for (const uint8_t byte : digest) text += "0123456789abcdef"[byte >> 4], text += "0123456789abcdef"[byte & 15];
    return text;
}
inline std::string file_of(const DiskCache& cache, int number) { return cache.folder() + "/" + hex(key_of(number)) + ".ngk"; }
inline mode_t mode_of(const std::string& path)
{
    struct stat about{};
    return lstat(path.c_str(), &about) == 0 ? about.st_mode & 07777 : mode_t(-1);
}

inline std::string read_file(const std::string& path)
{
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}
inline void write_file(const std::string& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

// "used" so many seconds ago
inline void age(const std::string& path, long seconds)
{
    const timespec then{std::time(nullptr) - seconds, 0}, times[2] = {then, then};
    REQUIRE(utimensat(AT_FDCWD, path.c_str(), times, AT_SYMLINK_NOFOLLOW) == 0);
}

inline std::set<std::string> names_in(const std::string& folder)
{
    std::set<std::string> names;
    if (files::is_directory(folder))
        for (const auto& entry : files::directory_iterator(folder)) names.insert(entry.path().filename());
    return names;
}

inline bool is_stored(const DiskCache& cache, int number, size_t size) { return cache.load(key_of(number)) == payload_of(number, size); }
inline void store(const DiskCache& cache, int number, size_t size) { cache.store(key_of(number), payload_of(number, size)); }

inline pid_t start(const std::function<bool()>& body)
{
    const pid_t child = fork();
    if (child != 0) return child;
    alarm(250);
    bool is_good = false;
    try {
        is_good = body();
    } catch (...) {}
    _exit(is_good ? 0 : 1);
}
inline int end_of(pid_t child)
{
    int status = -1;
    REQUIRE(waitpid(child, &status, 0) == child);
    return status;
}
// Whether the body, in a process of its own, said true and lived.
inline bool holds_elsewhere(const std::function<bool()>& body) { return end_of(start(body)) == 0; }

inline void skip(const char* why) { std::printf("skipped: %s\n", why); }

// What the library reads of the environment (S10): unset for a test, and afterwards as before.
struct Surroundings {
    static constexpr const char* NAMES[] = {"NG_CACHE_DIR", "XDG_CACHE_HOME", "HOME"};
    std::vector<std::pair<const char*, std::string>> before;
    Surroundings()
    {
        for (const char* name : NAMES)
            if (const char* value = std::getenv(name)) before.emplace_back(name, value), unsetenv(name);
    }
    ~Surroundings()
    {
        for (const char* name : NAMES) unsetenv(name);
        for (const auto& [name, value] : before) setenv(name, value.c_str(), 1);
    }
};
