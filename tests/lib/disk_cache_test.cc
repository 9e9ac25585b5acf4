// The kernels on disk: whatever becomes of folders, files, disks and processes, a load gives the bytes stored or nothing.
#include "tests/lib/cache_place.h"

#include <sched.h>
#include <sys/mount.h>

#include <numeric>

// The values of RFC 7693, appendix B, and of blake2s_kat of its authors (bytes 00 01 02 ..); the last is Python's hashlib's.
TEST_CASE("hash: BLAKE2s gives the published values, in one piece and in any two")
{
    const auto of = [](std::string_view text) {
        ng::Blake2s hash;
        hash.update(text);
        return hex(hash.finish());
    };
    std::string counted(255, 0);
    std::iota(counted.begin(), counted.end(), char(0));
    const std::string_view all = counted;
    CHECK(of("") == "69217a3079908094e11121d042354a7c1f55b6482ca1a51e1b250dfd1ed0eef9");
    CHECK(of("abc") == "508c5e8c327c14e2e1a72ba34eeb452f37458b209ed63a294d999b4c86675982");
    CHECK(of(all.substr(0, 1)) == "e34d74dbaf4ff4c6abd871cc220451d2ea2648846c7757fbaac82fe51ad64bea");
    CHECK(of(all.substr(0, 64)) == "56f34e8b96557e90c1f24b52d0c89d51086acf1b00f634cf1dde9233b8eaaa3e");
    CHECK(of(all.substr(0, 65)) == "1b53ee94aaf34e4b159d48de352c7f0661d0a40edff95a0b1639b4090e974472");
    CHECK(of(all.substr(0, 128)) == "1fa877de67259d19863a2a34bcc6962a2b25fcbf5cbecd7ede8f1fa36688a796");
    CHECK(of(all) == "f03f5789d3336b80d002d59fdf918bdb775b00956ed5528e86aa994acb38fe2d");
    CHECK(of(std::string(1000000, 'a')) == "bec0c0e6cde5b67acb73b81f79a67a4079ae1c60dac9d2661af18e9f8b50dfa5");
    for (size_t i = 0; i <= all.size(); i++) {
        ng::Blake2s hash;
        hash.update(all.substr(0, i)), hash.update(all.substr(i));
        CHECK(hex(hash.finish()) == of(all));
    }
}

TEST_CASE("key: its parts count with their lengths and in their order")
{
    std::set<Digest> keys = {cache_key({}), cache_key({""}), cache_key({"", ""}), cache_key({"ab", "c"}), cache_key({"a", "bc"}), cache_key({"abc"}),
                             cache_key({"c", "ab"}), cache_key({"abc", ""}), cache_key({std::string_view("a\0bc", 4)}), cache_key({"a", "b", "c"}),
                             cache_key({std::string_view("ab\0\0\0\0\0\0\0\0c", 11)})};
    CHECK(keys.size() == 11);
    CHECK(cache_key({"ab", "c"}) == cache_key({"ab", "c"}));
}

TEST_CASE("files: made with the first store, the user's alone, and what was stored comes back")
{
    const Place place;
    const mode_t before = umask(0);
    const DiskCache cache = DiskCache::open((place / "a/b").c_str());
    CHECK(cache.folder() == place / "a/b/1");
    CHECK(!cache.load(key_of(1)));
    CHECK(cache.bytes() == 0);
    CHECK(names_in(place.path).empty());
    uint64_t total = 0;
    for (const size_t size : {0, 1, 63, 64, 65, 4096, 1000003}) {
        store(cache, int(size), size);
        CHECK(is_stored(cache, int(size), size));
        CHECK(mode_of(file_of(cache, int(size))) == 0600);
        CHECK(cache.bytes() == (total += HEADER + size));
    }
    for (const char* folder : {"a", "a/b", "a/b/1"}) CHECK(mode_of(place / folder) == 0700);
    CHECK(is_stored(DiskCache::open((place / "a/b/").c_str()), 64, 64));
    CHECK(!cache.load(key_of(2)));
    cache.store(key_of(64), payload_of(65, 65));
    CHECK(cache.load(key_of(64)) == payload_of(65, 65));
    CHECK(names_in(cache.folder()).size() == 7);
    umask(before);
}

TEST_CASE("damage: a file cut at any length, longer, with any bit turned or under another's name is none")
{
    const Place place;
    const DiskCache cache = DiskCache::open(place.path.c_str());
    store(cache, 1, 40);
    const std::string path = file_of(cache, 1), whole = read_file(path);
    REQUIRE(whole.size() == HEADER + 40);
    for (size_t i = 0; i < whole.size(); i++) {
        write_file(path, whole.substr(0, i));
        CHECK(!cache.load(key_of(1)));
        for (int bit = 0; bit < 8; bit++) {
            std::string turned = whole;
            turned[i] = char(turned[i] ^ 1 << bit);
            write_file(path, turned);
            CHECK(!cache.load(key_of(1)));
        }
    }
    write_file(path, whole + '\0');
    CHECK(!cache.load(key_of(1)));
    write_file(file_of(cache, 2), whole);
    CHECK(!cache.load(key_of(2)));
    REQUIRE(truncate(path.c_str(), off_t(1) << 40) == 0);   // a terabyte of nothing is not read
    CHECK(!cache.load(key_of(1)));
    store(cache, 1, 40);
    CHECK(is_stored(cache, 1, 40));
}

TEST_CASE("odd files: links, pipes and folders in a file's place are passed over, not followed, not waited for")
{
    const Place place;
    const DiskCache cache = DiskCache::open((place / "cache").c_str());
    store(cache, 1, 100);
    const std::string path = file_of(cache, 1), aside = place / "aside";
    const std::string whole = read_file(path);
    const auto heals = [&] {
        CHECK(!cache.load(key_of(1)));
        store(cache, 1, 100);
        CHECK(is_stored(cache, 1, 100));
        CHECK(files::is_regular_file(files::symlink_status(path)));
    };
    files::rename(path, aside);
    files::create_symlink(aside, path);
    heals();
    CHECK(read_file(aside) == whole);   // the link was replaced, what it named was not written
    files::remove(path), files::create_symlink(place / "nowhere", path);
    heals();
    files::remove(path);
    REQUIRE(mkfifo(path.c_str(), 0600) == 0);
    heals();
    files::remove(path), files::create_directory(path), write_file(path + "/mine", "mine");
    CHECK(!cache.load(key_of(1)));
    store(cache, 1, 100);
    CHECK(!cache.load(key_of(1)));
    CHECK(read_file(path + "/mine") == "mine");
    CHECK(names_in(cache.folder()).size() == 1);
    store(cache, 2, 100);
    CHECK(is_stored(cache, 2, 100));
}

TEST_CASE("odd folders: a link, a pipe or a file in our folder's place is no folder; the user's own may be a link")
{
    const Place place;
    const Surroundings around;
    setenv("XDG_CACHE_HOME", (place / "cache").c_str(), 1);
    const DiskCache cache = DiskCache::open(nullptr);
    store(cache, 1, 100);
    REQUIRE(is_stored(cache, 1, 100));
    for (const std::string& ours : {place / "cache/ng", place / "cache/ng/1"}) {
        const std::string aside = place / "aside";
        files::rename(ours, aside);
        for (int kind = 0; kind < 4; kind++) {
            if (kind == 0) files::create_symlink(aside, ours);
            if (kind == 1) files::create_symlink(place / "nowhere", ours);
            if (kind == 2) REQUIRE(mkfifo(ours.c_str(), 0600) == 0);
            if (kind == 3) write_file(ours, "a file");
            CHECK(!cache.load(key_of(1)));
            CHECK(cache.bytes() == 0);
            store(cache, 2, 100);
            CHECK(!cache.load(key_of(2)));
            files::remove(ours);
        }
        files::rename(aside, ours);
        CHECK(names_in(cache.folder()).size() == 1);
    }
    files::rename(place / "cache", place / "far");
    files::create_symlink(place / "far", place / "cache");
    CHECK(is_stored(cache, 1, 100));
}

TEST_CASE("modes: what group or others may write is not read and not written to")
{
    const Place place;
    const Surroundings around;
    setenv("XDG_CACHE_HOME", place.path.c_str(), 1);
    const DiskCache cache = DiskCache::open(nullptr);
    store(cache, 1, 100);
    for (const std::string& path : {file_of(cache, 1), cache.folder(), place / "ng"}) {
        const mode_t before = mode_of(path);
        for (const mode_t bit : {S_IWGRP, S_IWOTH}) {
            REQUIRE(chmod(path.c_str(), before | bit) == 0);
            CHECK(!cache.load(key_of(1)));
            if (path == file_of(cache, 1)) continue;
            store(cache, 2, 100);
            CHECK(names_in(cache.folder()).size() == 1);
        }
        REQUIRE(chmod(path.c_str(), before | S_IRGRP | S_IROTH) == 0);   // reading is no harm
        CHECK(is_stored(cache, 1, 100));
        REQUIRE(chmod(path.c_str(), before) == 0);
    }
    REQUIRE(chmod(place.path.c_str(), 0777) == 0);   // the user's own folder; in it, ours is checked
    CHECK(is_stored(cache, 1, 100));
}

TEST_CASE("owners: what another user owns is not read and not written to")
{
    if (geteuid() != 0) return skip("only root can give files away");
    const Place place;
    const Surroundings around;
    setenv("HOME", place.path.c_str(), 1);
    const DiskCache cache = DiskCache::open(nullptr);
    store(cache, 1, 100);
    for (const std::string& path : {file_of(cache, 1), cache.folder(), place / ".cache/ng"}) {
        REQUIRE(chown(path.c_str(), NOBODY, NOBODY) == 0);
        CHECK(!cache.load(key_of(1)));
        if (path != file_of(cache, 1)) store(cache, 2, 100);
        CHECK(names_in(cache.folder()).size() == 1);
        REQUIRE(chown(path.c_str(), 0, 0) == 0);
        CHECK(is_stored(cache, 1, 100));
    }
    // as after sudo: the home is another's, whose cache we would spoil
    REQUIRE(chown(place.path.c_str(), NOBODY, NOBODY) == 0);
    CHECK(!DiskCache::open(nullptr).has_folder());
    setenv("XDG_CACHE_HOME", place.path.c_str(), 1);
    CHECK(!DiskCache::open(nullptr).has_folder());
    CHECK(DiskCache::open(place.path.c_str()).has_folder());
}

TEST_CASE("folders that cannot be written: what is there is read, a store is silent")
{
    CHECK(holds_elsewhere([] {
        if (geteuid() == 0 && setresuid(NOBODY, NOBODY, NOBODY) != 0) return false;
        const Place place;
        const DiskCache cache = DiskCache::open(place.path.c_str()), other = DiskCache::open((place / "1/below").c_str());
        store(cache, 1, 100);
        bool is_good = chmod(cache.folder().c_str(), 0500) == 0;
        store(cache, 1, 200), store(cache, 2, 100), store(other, 3, 100);
        is_good = is_good && is_stored(cache, 1, 100) && !cache.load(key_of(2)) && !other.load(key_of(3)) && names_in(cache.folder()).size() == 1;
        is_good = is_good && chmod(cache.folder().c_str(), 0) == 0 && !cache.load(key_of(1)) && cache.bytes() == 0;
        return chmod(cache.folder().c_str(), 0700) == 0 && is_good;
    }));
}

TEST_CASE("disks that are full or turn read-only: no part of a file stays, what was there does")
{
    const Place place;
    const pid_t child = start([&] {
        if (unshare(CLONE_NEWNS) != 0 || mount("", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) _exit(77);
        if (mount("none", place.path.c_str(), "tmpfs", 0, "size=128k,mode=700") != 0) _exit(77);
        const DiskCache cache = DiskCache::open(place.path.c_str());
        store(cache, 1, 70000);
        bool is_good = is_stored(cache, 1, 70000);
        for (int i = 2; i < 10; i++) store(cache, i, 70000), is_good = is_good && !cache.load(key_of(i));
        store(cache, 1, 70001);
        is_good = is_good && is_stored(cache, 1, 70000) && names_in(cache.folder()).size() == 1 && cache.bytes() == HEADER + 70000;
        age(file_of(cache, 1), 3 * 24 * 3600);   // a load would say that it was used
        is_good = is_good && mount("none", place.path.c_str(), nullptr, MS_REMOUNT | MS_RDONLY, nullptr) == 0;
        store(cache, 2, 100);
        return is_good && is_stored(cache, 1, 70000) && !cache.load(key_of(2));
    });
    const int status = end_of(child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) return skip("only root can mount a small disk");
    CHECK(status == 0);
}

TEST_CASE("a folder that is deleted between two calls is made again")
{
    const Place place;
    const DiskCache cache = DiskCache::open((place / "cache").c_str());
    for (int i = 0; i < 3; i++) {
        store(cache, i, 100);
        CHECK(is_stored(cache, i, 100));
        files::remove_all(i == 0 ? cache.folder() : place / "cache");
        CHECK(!cache.load(key_of(i)));
        CHECK(cache.bytes() == 0);
    }
}

TEST_CASE("limit: what was used least recently goes first, a hit counts once a day, what is not ours stays")
{
    const Place place;
    constexpr long HOUR = 3600;
    const DiskCache cache = DiskCache::open(place.path.c_str(), 5 * (HEADER + 1000));
    for (int i = 0; i < 5; i++) store(cache, i, 1000), age(file_of(cache, i), (100 - i) * HOUR);
    write_file(cache.folder() + "/notes.txt", std::string(100000, 'n'));
    write_file(cache.folder() + "/" + std::string(64, 'g') + ".ngk", "no digits");
    CHECK(cache.bytes() == 5 * (HEADER + 1000));
    CHECK(is_stored(cache, 0, 1000));   // now the newest
    CHECK(is_stored(cache, 2, 1000));
    store(cache, 5, 1000);              // 1 goes
    store(cache, 6, 2000);              // 3 and 4 go
    for (const int kept : {0, 2, 5}) CHECK(is_stored(cache, kept, 1000));
    for (const int gone : {1, 3, 4}) CHECK(!cache.load(key_of(gone)));
    CHECK(cache.bytes() == 3 * (HEADER + 1000) + HEADER + 2000);
    CHECK(files::exists(cache.folder() + "/notes.txt"));
    CHECK(names_in(cache.folder()).size() == 6);

    const auto time_of = [&](int i) { return files::last_write_time(file_of(cache, i)); };
    age(file_of(cache, 0), 23 * HOUR), age(file_of(cache, 2), 25 * HOUR), age(file_of(cache, 5), -25 * HOUR);
    const auto of_0 = time_of(0), of_2 = time_of(2), of_5 = time_of(5);
    for (const int i : {0, 2, 5}) CHECK(is_stored(cache, i, 1000));
    CHECK(time_of(0) == of_0);
    CHECK(time_of(2) > of_2);
    CHECK(time_of(5) < of_5);
    age(file_of(cache, 5), -25 * HOUR);   // from tomorrow: first to go
    store(cache, 7, 1000);
    CHECK(!files::exists(file_of(cache, 5)));
    CHECK(files::exists(file_of(cache, 0)));

    cache.store(key_of(8), payload_of(8, 5 * (HEADER + 1000)));   // a header too large
    CHECK(!files::exists(file_of(cache, 8)));
    store(cache, 9, 5 * (HEADER + 1000) - HEADER);                // just so
    CHECK(is_stored(cache, 9, 5 * (HEADER + 1000) - HEADER));
    CHECK(cache.bytes() == 5 * (HEADER + 1000));
    CHECK(!DiskCache::open(place.path.c_str(), 1000).load(key_of(9)));
    store(DiskCache::open((place / "none").c_str(), 0), 1, 0);
    CHECK(!files::exists(place / "none"));
}

TEST_CASE("temporary files: what a dead writer left goes with the next store, what is being written stays")
{
    const Place place;
    const DiskCache cache = DiskCache::open(place.path.c_str());
    store(cache, 1, 100);
    const std::string in = cache.folder() + "/";
    for (const char* name : {"temp-0123456789abcdef", "temp-fedcba9876543210", "temp-00000000000000aa", "temp-mine", "temp-0123456789abcdef0"})
        write_file(in + name, "half");
    for (const char* name : {"temp-0123456789abcdef", "temp-mine", "temp-0123456789abcdef0"}) age(in + name, 120);
    age(in + "temp-fedcba9876543210", -120);
    CHECK(cache.bytes() == HEADER + 100 + 12);
    store(cache, 2, 100);
    const std::set<std::string> left = names_in(cache.folder());
    CHECK(left.size() == 5);
    for (const char* name : {"temp-00000000000000aa", "temp-mine", "temp-0123456789abcdef0"}) CHECK(left.count(name));
}
