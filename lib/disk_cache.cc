// The cache of compiled kernels: its hash, its folders and whom they belong to, files that appear whole, and their end.
#include "lib/disk_cache.h"

#include "lib/owned.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <climits>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <tuple>

namespace ng {
namespace {

using Descriptor = Owned<int, ::close, -1>;
using Listing = Owned<DIR*, ::closedir>;
using Header = std::array<char, 80>;
using Name = std::array<char, 72>;      // 64 digits, ".ngk", 0

constexpr char   ABI[] = "1";           // of files and payloads: that of libng.so.1
constexpr char   SUFFIX[] = ".ngk", TEMP[] = "temp-";
constexpr size_t KEY_DIGITS = 64, TEMP_DIGITS = 16;
constexpr double DAY = 24 * 60 * 60, ABANDONED = 60;   // seconds; a file is written in milliseconds

constexpr uint32_t START[8] = {0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A, 0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19};

// RFC 7693, 2.7: the order in which a round takes the words of its block.
constexpr uint8_t ORDER[10][16] = {
    { 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14, 15},
    {14, 10,  4,  8,  9, 15, 13,  6,  1, 12,  0,  2, 11,  7,  5,  3},
    {11,  8, 12,  0,  5,  2, 15, 13, 10, 14,  3,  6,  7,  1,  9,  4},
    { 7,  9,  3,  1, 13, 12, 11, 14,  2,  6,  5, 10,  4,  0, 15,  8},
    { 9,  0,  5,  7,  2,  4, 10, 15, 14,  1, 11, 12,  6,  8,  3, 13},
    { 2, 12,  6, 10,  0, 11,  8,  3,  4, 13,  7,  5, 15, 14,  1,  9},
    {12,  5,  1, 15, 14, 13,  4, 10,  0,  7,  6,  3,  9,  2,  8, 11},
    {13, 11,  7, 14, 12,  1,  3,  9,  5,  0, 15,  4,  8,  6,  2, 10},
    { 6, 15, 14,  9, 11,  3,  0,  8, 12,  2, 13,  7,  1,  4, 10,  5},
    {10,  2,  8,  4,  7,  6,  1,  5, 15, 11,  9, 14,  3, 12, 13,  0},
};

// Whole numbers with their least byte first, on every machine.
template <class T>
void put_number(T number, void* to) noexcept
{
    for (size_t i = 0; i < sizeof number; i++) static_cast<unsigned char*>(to)[i] = static_cast<unsigned char>(number >> (8 * i));
}

uint32_t word_at(const uint8_t* from) noexcept
{
    return uint32_t(from[0]) | uint32_t(from[1]) << 8 | uint32_t(from[2]) << 16 | uint32_t(from[3]) << 24;
}

void mix(uint32_t& a, uint32_t& b, uint32_t& c, uint32_t& d, std::array<uint32_t, 2> words) noexcept
{
    a += b + words[0], d = std::rotr(d ^ a, 16), c += d, b = std::rotr(b ^ c, 12);
    a += b + words[1], d = std::rotr(d ^ a, 8), c += d, b = std::rotr(b ^ c, 7);
}

char* put_digits(const uint8_t* bytes, size_t count, char* to) noexcept
{
    for (size_t i = 0; i < count; i++) {
        *to++ = "0123456789abcdef"[bytes[i] >> 4];
        *to++ = "0123456789abcdef"[bytes[i] & 15];
    }
    return to;
}

Name file_name(const Digest& key) noexcept
{
    Name name{};
    std::memcpy(put_digits(key.data(), key.size(), name.data()), SUFFIX, sizeof SUFFIX);
    return name;
}

Name temp_name(uint64_t number) noexcept
{
    Name name{};
    uint8_t bytes[TEMP_DIGITS / 2];
    put_number(number, bytes);
    std::memcpy(name.data(), TEMP, sizeof TEMP);
    put_digits(bytes, sizeof bytes, name.data() + sizeof TEMP - 1);
    return name;
}

bool are_digits(std::string_view text, size_t count) noexcept
{
    return text.size() == count && text.find_first_not_of("0123456789abcdef") == text.npos;
}
bool is_temp(std::string_view name) noexcept
{
    return name.starts_with(TEMP) && are_digits(name.substr(sizeof TEMP - 1), TEMP_DIGITS);
}
bool is_kernel(std::string_view name) noexcept
{
    return name.ends_with(SUFFIX) && are_digits(name.substr(0, name.size() - (sizeof SUFFIX - 1)), KEY_DIGITS);
}

// All there is before the payload. A file is whole when it begins with what its payload and its key ask for.
Header header_of(const Digest& key, std::span<const char> payload) noexcept
{
    Blake2s hash;
    hash.update(payload);
    const Digest of_payload = hash.finish();
    Header header{'N', 'G', 'K', 'C'};
    put_number(uint32_t(1), &header[4]);
    std::memcpy(&header[8], key.data(), key.size());
    put_number(uint64_t(payload.size()), &header[40]);
    std::memcpy(&header[48], of_payload.data(), of_payload.size());
    return header;
}

// Nobody else wrote it, nobody else can. (Root can do anything, and is trusted to.)
bool is_safe(const struct stat& about) noexcept
{
    return about.st_uid == geteuid() && !(about.st_mode & (S_IWGRP | S_IWOTH));
}

// As doubles: times of files may be any 64-bit number.
double seconds_between(const timespec& earlier, const timespec& later) noexcept
{
    return double(later.tv_sec) - double(earlier.tv_sec);
}

bool read_all(int file, std::span<char> bytes, off_t from) noexcept
{
    while (!bytes.empty()) {
        const ssize_t count = pread(file, bytes.data(), bytes.size(), from);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) return false;
        bytes = bytes.subspan(size_t(count));
        from += count;
    }
    return true;
}

// The first write beyond RLIMIT_FSIZE is cut off at it, the next one kills the process: so the limit is asked first, and a
// write that was cut off is never continued.
bool may_write(uint64_t bytes) noexcept
{
    struct rlimit limit{};
    return getrlimit(RLIMIT_FSIZE, &limit) == 0 && (limit.rlim_cur == RLIM_INFINITY || bytes <= limit.rlim_cur);
}

Descriptor create_temp(int folder, Name& name) noexcept
{
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    // Different enough; where it is not, O_EXCL says so and the next number is tried.
    uint64_t number = (uint64_t(now.tv_sec) * 1000000000 + uint64_t(now.tv_nsec)) ^ uint64_t(getpid()) << 40;
    for (int tries = 0; tries < 64; tries++, number++) {
        name = temp_name(number);
        Descriptor file(openat(folder, name.data(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
        if (file || errno != EEXIST) return file;
    }
    return {};
}

// The time as the disk's own clock has it, which over a network may not be ours; nothing when no file could be made.
std::optional<timespec> write_file(int folder, const Digest& key, std::span<const char> payload) noexcept
{
    Header header = header_of(key, payload);
    Name temp{};
    const Descriptor file = create_temp(folder, temp);
    if (!file) return std::nullopt;
    const iovec parts[] = {{header.data(), header.size()}, {const_cast<char*>(payload.data()), payload.size()}};
    const bool is_whole = writev(file.get(), parts, 2) == ssize_t(header.size() + payload.size());
    struct stat about{};
    const bool is_known = fstat(file.get(), &about) == 0;
    if (!is_whole || renameat(folder, temp.data(), folder, file_name(key).data()) != 0) unlinkat(folder, temp.data(), 0);
    return is_known ? std::optional(about.st_mtim) : std::nullopt;
}

struct Found {
    Name     name;
    timespec used;
    uint64_t bytes;
    bool     is_temp;
};

// The files that have our names. What else is in the folder is not ours to count or to remove.
std::vector<Found> list(int folder)
{
    std::vector<Found> found;
    Descriptor again(openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!again) return found;
    const Listing listing(fdopendir(again.get()));
    if (!listing) return found;
    (void)again.release();
    while (const dirent* entry = readdir(listing.get())) {
        const std::string_view name = entry->d_name;
        struct stat about{};
        if (!is_temp(name) && !is_kernel(name)) continue;
        if (fstatat(folder, entry->d_name, &about, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(about.st_mode)) continue;
        Found file{{}, about.st_mtim, uint64_t(about.st_size), is_temp(name)};
        std::memcpy(file.name.data(), name.data(), name.size());
        found.push_back(file);
    }
    return found;
}

// Removes what dead writers left, then what was used least recently, until no more than the limit is left. All processes
// remove in the same order, so that many at once do not remove more than one would.
void tidy(int folder, const Name& kept, const timespec& now, uint64_t limit_bytes)
{
    std::vector<Found> files = list(folder);
    uint64_t total = 0;
    for (const Found& file : files) {
        if (!file.is_temp) total += file.bytes;
        else if (std::abs(seconds_between(file.used, now)) > ABANDONED) unlinkat(folder, file.name.data(), 0);
    }
    // What was used tomorrow was used when a clock was wrong: it goes first, else it would stay for ever.
    std::erase_if(files, [&](const Found& file) { return file.is_temp || file.name == kept; });
    std::sort(files.begin(), files.end(), [&](const Found& a, const Found& b) {
        const auto order = [&](const Found& f) { return std::tuple(seconds_between(now, f.used) <= DAY, f.used.tv_sec, f.used.tv_nsec, f.name); };
        return order(a) < order(b);
    });
    for (const Found& file : files) {
        if (total <= limit_bytes) return;
        if (unlinkat(folder, file.name.data(), 0) == 0 || errno == ENOENT) total -= file.bytes;
    }
}

// A relative path is one of now: the host may change its folder. Empty: no files.
std::string absolute(const char* path)
{
    std::string whole = path;
    if (!whole.empty() && whole[0] != '/') {
        char here[PATH_MAX];
        if (!getcwd(here, sizeof here) || here[0] != '/') return {};
        whole = std::string(here) + "/" + whole;
    }
    return whole.size() < PATH_MAX ? whole : std::string();
}

// A folder of the environment that is the user's. One that is missing may be made where `may_miss`.
bool is_own(const char* path, bool may_miss) noexcept
{
    struct stat about{};
    if (!path || path[0] != '/') return false;
    if (stat(path, &about) != 0) return may_miss && errno == ENOENT;
    return about.st_uid == geteuid();
}

}  // namespace

Blake2s::Blake2s() noexcept
{
    std::copy(std::begin(START), std::end(START), state_.begin());
    state_[0] ^= 0x01010000 ^ uint32_t(sizeof(Digest));   // one leaf, no key, the digest's bytes
}

void Blake2s::update(std::span<const char> bytes) noexcept
{
    while (!bytes.empty()) {
        if (held_ == block_.size()) compress(false);
        const size_t part = std::min(bytes.size(), block_.size() - held_);
        std::memcpy(block_.data() + held_, bytes.data(), part);
        held_ += part;
        count_ += part;
        bytes = bytes.subspan(part);
    }
}

Digest Blake2s::finish() noexcept
{
    std::fill(block_.begin() + ptrdiff_t(held_), block_.end(), uint8_t(0));
    compress(true);
    Digest digest;
    for (size_t i = 0; i < state_.size(); i++) put_number(state_[i], &digest[4 * i]);
    return digest;
}

void Blake2s::compress(bool is_last) noexcept
{
    uint32_t v[16], m[16];
    for (size_t i = 0; i < 8; i++) v[i] = state_[i], v[8 + i] = START[i];
    for (size_t i = 0; i < 16; i++) m[i] = word_at(&block_[4 * i]);
    v[12] ^= uint32_t(count_), v[13] ^= uint32_t(count_ >> 32);
    if (is_last) v[14] = ~v[14];
    for (const auto& s : ORDER) {
        for (size_t i = 0; i < 4; i++) mix(v[i], v[4 + i], v[8 + i], v[12 + i], {m[s[2 * i]], m[s[2 * i + 1]]});
        for (size_t i = 0; i < 4; i++)   // the diagonals
            mix(v[i], v[4 + (i + 1) % 4], v[8 + (i + 2) % 4], v[12 + (i + 3) % 4], {m[s[8 + 2 * i]], m[s[9 + 2 * i]]});
    }
    for (size_t i = 0; i < 8; i++) state_[i] ^= v[i] ^ v[8 + i];
    held_ = 0;
}

Digest cache_key(std::initializer_list<std::string_view> parts) noexcept
{
    Blake2s hash;
    for (const std::string_view part : parts) {
        char length[8];
        put_number(uint64_t(part.size()), length);
        hash.update(length);
        hash.update(part);
    }
    return hash.finish();
}

DiskCache DiskCache::open(const char* cache_dir, uint64_t limit_bytes) noexcept
{
    DiskCache cache;
    cache.limit_bytes_ = limit_bytes;
    try {
        if (!cache_dir) cache_dir = secure_getenv("NG_CACHE_DIR");
        if (cache_dir) {
            cache.base_ = absolute(cache_dir);
            return cache;
        }
        cache.is_shared_ = true;
        const char *shared = secure_getenv("XDG_CACHE_HOME"), *home = secure_getenv("HOME");
        if (shared && shared[0] == '/') {   // the specification of XDG: a relative one is as none
            if (is_own(shared, true)) cache.base_ = absolute(shared);
        } else if (is_own(home, false)) {
            cache.base_ = absolute((std::string(home) + "/.cache").c_str());
            cache.given_ = std::strlen(home);
        }
        return cache;
    } catch (...) {   // no memory
        return {};
    }
}

std::string DiskCache::folder() const
{
    return has_folder() ? base_ + (is_shared_ ? "/ng/" : "/") + ABI : std::string();
}

int DiskCache::open_folder(bool may_make) const noexcept
{
    if (may_make) {
        char path[PATH_MAX] = {};
        std::memcpy(path, base_.data(), std::min(base_.size(), sizeof path - 1));
        for (size_t i = given_ + 1; i <= base_.size(); i++) {
            if (path[i] != '/' && path[i] != 0) continue;
            const char next = std::exchange(path[i], '\0');
            (void)mkdir(path, 0700);   // most are there
            path[i] = next;
        }
    }
    Descriptor folder(::open(base_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    const char* const names[] = {"ng", ABI};
    for (size_t i = is_shared_ ? 0 : 1; i < std::size(names) && folder; i++) {
        const char* name = names[i];
        if (may_make) (void)mkdirat(folder.get(), name, 0700);
        folder = Descriptor(openat(folder.get(), name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
        struct stat about{};
        if (folder && (fstat(folder.get(), &about) != 0 || !is_safe(about))) folder.reset();
    }
    return folder.release();
}

std::optional<std::vector<char>> DiskCache::load(const Digest& key) const noexcept
{
    if (!has_folder()) return std::nullopt;
    try {
        const Descriptor folder(open_folder(false));
        if (!folder) return std::nullopt;
        // O_NONBLOCK: a pipe without a writer would keep us waiting.
        const Descriptor file(openat(folder.get(), file_name(key).data(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
        struct stat about{};
        if (!file || fstat(file.get(), &about) != 0 || !S_ISREG(about.st_mode) || !is_safe(about)) return std::nullopt;
        const uint64_t size = uint64_t(about.st_size);
        Header header;
        if (size < header.size() || size > limit_bytes_) return std::nullopt;
        std::vector<char> payload(size - header.size());
        if (!read_all(file.get(), header, 0) || !read_all(file.get(), payload, header.size())) return std::nullopt;
        if (header != header_of(key, payload)) return std::nullopt;
        const timespec now{::time(nullptr), 0}, times[2] = {{0, UTIME_OMIT}, {0, UTIME_NOW}};
        if (std::abs(seconds_between(about.st_mtim, now)) > DAY) (void)futimens(file.get(), times);
        return payload;
    } catch (...) {   // no memory
        return std::nullopt;
    }
}

void DiskCache::store(const Digest& key, std::span<const char> payload) const noexcept
{
    const uint64_t header_bytes = sizeof(Header);
    if (!has_folder() || limit_bytes_ < header_bytes || payload.size() > limit_bytes_ - header_bytes) return;
    if (!may_write(header_bytes + payload.size())) return;
    try {
        const Descriptor folder(open_folder(true));
        if (!folder) return;
        if (const auto now = write_file(folder.get(), key, payload)) tidy(folder.get(), file_name(key), *now, limit_bytes_);
    } catch (...) {   // no memory for the list: it stays as long as it is
    }
}

uint64_t DiskCache::bytes() const noexcept
{
    if (!has_folder()) return 0;
    try {
        const Descriptor folder(open_folder(false));
        uint64_t total = 0;
        if (folder)
            for (const Found& file : list(folder.get())) total += file.bytes;
        return total;
    } catch (...) {   // no memory
        return 0;
    }
}

}  // namespace ng
