// The kernels on disk among processes: crowds, killed writers, limits of the host, its environment and its descriptors.
#include "tests/lib/cache_place.h"

#include <sys/auxv.h>
#include <sys/resource.h>

#include <atomic>
#include <climits>
#include <csignal>
#include <thread>

namespace {

std::string chosen(const char* cache_dir = nullptr) { return DiskCache::open(cache_dir).folder(); }
size_t open_descriptors() { return names_in("/proc/self/fd").size(); }

// One of many: stores and loads keys of all and of its own. True: each load gave nothing or what was stored.
bool is_good_citizen(const DiskCache& cache, int who, int turns)
{
    bool is_good = true;
    for (int i = 0; i < turns; i++) {
        const int shared = (who + i * i) % 11, own = 1000 + who;
        store(cache, shared, size_t(shared) * 1000);
        store(cache, own, size_t(own));
        for (const int number : {(shared + i) % 11, own}) {
            const auto got = cache.load(key_of(number));
            is_good = is_good && (!got || *got == payload_of(number, number < 11 ? size_t(number) * 1000 : size_t(number)));
        }
    }
    return is_good;
}

}  // namespace

TEST_CASE("crowds: 64 processes store and load the same and different kernels, each load is right or nothing")
{
    const Place place;
    const DiskCache cache = DiskCache::open((place / "new").c_str());
    int gate[2];
    REQUIRE(pipe(gate) == 0);
    std::vector<pid_t> children;
    for (int who = 0; who < 64; who++)
        children.push_back(start([&] {
            char byte;
            close(gate[1]);
            return read(gate[0], &byte, 1) == 0 && is_good_citizen(cache, who, 10);
        }));
    close(gate[0]), close(gate[1]);   // all at once: the folders too are made by all
    for (const pid_t child : children) CHECK(end_of(child) == 0);
    for (int number = 0; number < 11; number++) CHECK(is_stored(cache, number, size_t(number) * 1000));
    for (int who = 0; who < 64; who++) CHECK(is_stored(cache, 1000 + who, size_t(1000 + who)));
    CHECK(names_in(cache.folder()).size() == 75);
}

TEST_CASE("crowds: threads of one process share a cache")
{
    const Place place;
    const DiskCache cache = DiskCache::open(place.path.c_str());
    std::atomic<int> good{0};
    std::vector<std::thread> threads;
    for (int who = 0; who < 8; who++) threads.emplace_back([&, who] { good += is_good_citizen(cache, who, 20); });
    for (std::thread& thread : threads) thread.join();
    CHECK(good == 8);
    for (int number = 0; number < 11; number++) CHECK(is_stored(cache, number, size_t(number) * 1000));
    for (int who = 0; who < 8; who++) CHECK(is_stored(cache, 1000 + who, size_t(1000 + who)));
    CHECK(names_in(cache.folder()).size() == 19);
}

TEST_CASE("crowds: the limit is kept while many store, but for what they are storing")
{
    const Place place;
    constexpr uint64_t EACH = HEADER + 5000, LIMIT = 20 * EACH;
    constexpr int WRITERS = 8;
    const DiskCache cache = DiskCache::open(place.path.c_str(), LIMIT);
    std::vector<pid_t> children;
    for (int who = 0; who < WRITERS; who++)
        children.push_back(start([&] {
            bool is_good = true;
            for (int i = 0; i < 100; i++) {
                const int number = who * 100 + i;
                store(cache, number, 5000);
                const auto got = cache.load(key_of(number));
                is_good = is_good && (!got || *got == payload_of(number, 5000));
            }
            return is_good;
        }));
    uint64_t most = 0;
    for (int status = 0; !children.empty();) {
        // A listing is no picture of one moment: what comes and goes while it is read may be seen on both sides. Files that
        // are there, one being written and one not yet removed for each writer, and as many that came meanwhile.
        most = std::max(most, cache.bytes());
        const pid_t ended = waitpid(-1, &status, WNOHANG);
        if (ended <= 0) continue;
        CHECK(status == 0);
        std::erase(children, ended);
    }
    CHECK(most > LIMIT / 2);
    CHECK(most <= LIMIT + 4 * WRITERS * EACH);
    CHECK(cache.bytes() <= LIMIT);
    CHECK(cache.bytes() > LIMIT - WRITERS * EACH);   // and no more was removed than had to be
}

TEST_CASE("writers killed at any moment leave nothing that is taken for a kernel, and nothing for ever")
{
    const Place place;
    const DiskCache cache = DiskCache::open(place.path.c_str());
    int found = 0;
    // Where all is slow, on until one has been written whole: each 200 turns wait longer.
    for (int turn = 0; turn < 200 || (found == 0 && turn < 2000); turn++) {
        int ready[2];
        REQUIRE(pipe(ready) == 0);
        const pid_t child = start([&] {
            if (write(ready[1], "", 1) != 1) return false;
            for (int i = 0;; i++) store(cache, i % 5, size_t(200000) * size_t(1 + i % 5));
        });
        char byte;
        REQUIRE(read(ready[0], &byte, 1) == 1);
        close(ready[0]), close(ready[1]);
        usleep(useconds_t(turn * 7919 % 4001 * (1 + turn / 200)));
        REQUIRE(kill(child, SIGKILL) == 0);
        end_of(child);
        for (int i = 0; i < 5; i++)
            if (const auto got = cache.load(key_of(i))) {
                CHECK(*got == payload_of(i, size_t(200000) * size_t(1 + i)));
                found++;
            }
        if (turn % 50 != 49) continue;
        for (const std::string& name : names_in(cache.folder()))
            if (name.starts_with("temp-")) age(cache.folder() + "/" + name, 61);
        store(cache, 9, 10);
        for (const std::string& name : names_in(cache.folder())) CHECK(name.ends_with(".ngk"));
    }
    CHECK(found > 0);
}

TEST_CASE("limits of the host: too large a file kills nobody, no descriptor is no cache")
{
    const Place place;
    const DiskCache cache = DiskCache::open(place.path.c_str());
    store(cache, 1, 100);
    for (const rlim_t limit : {rlim_t(0), rlim_t(1), rlim_t(HEADER), rlim_t(HEADER + 4999), rlim_t(HEADER + 5000)})
        CHECK(holds_elsewhere([&] {
            const rlimit most{limit, limit};
            if (setrlimit(RLIMIT_FSIZE, &most) != 0) return false;
            for (int i = 0; i < 2; i++) store(cache, 2, 5000);
            return bool(cache.load(key_of(2))) == (limit == HEADER + 5000) && is_stored(cache, 1, 100);
        }));
    CHECK(names_in(cache.folder()).size() == 2);
    CHECK(holds_elsewhere([&] {
        bool is_good = true;
        const int next = dup(0);
        for (rlim_t more = 0; more < 5; more++) {   // each step of a store and a load is refused once
            const rlimit most{rlim_t(next) + more, rlim_t(next) + 10};
            if (next < 0 || setrlimit(RLIMIT_NOFILE, &most) != 0) return false;
            const auto got = cache.load(key_of(1));
            store(cache, 3, 100);
            is_good = is_good && (!got || *got == payload_of(1, 100)) && bool(got) == (more >= 3);
        }
        return is_good && close(next) == 0 && cache.bytes() == 3 * HEADER + 5200;
    }));
    CHECK(names_in(cache.folder()).size() == 3);
}

TEST_CASE("environment: cache_dir, NG_CACHE_DIR, XDG_CACHE_HOME, HOME in this order, and nothing without any")
{
    const Place place;
    const Surroundings around;
    CHECK(chosen().empty());
    CHECK(!DiskCache().has_folder());
    setenv("HOME", place.path.c_str(), 1);
    CHECK(chosen() == place / ".cache/ng/1");
    setenv("XDG_CACHE_HOME", "", 1);
    CHECK(chosen() == place / ".cache/ng/1");
    setenv("XDG_CACHE_HOME", "relative", 1);
    CHECK(chosen() == place / ".cache/ng/1");
    setenv("XDG_CACHE_HOME", (place / "xdg").c_str(), 1);
    CHECK(chosen() == place / "xdg/ng/1");
    setenv("NG_CACHE_DIR", (place / "named").c_str(), 1);
    CHECK(chosen() == place / "named/1");
    CHECK(chosen((place / "asked").c_str()) == place / "asked/1");
    CHECK(chosen("").empty());
    setenv("NG_CACHE_DIR", "", 1);
    CHECK(chosen().empty());
    CHECK(chosen("here") == files::current_path().string() + "/here/1");
    CHECK(chosen(std::string(PATH_MAX, 'x').c_str()).empty());
    CHECK(chosen(("/" + std::string(1000, 'x')).c_str()).size() == 1003);   // a name too long for the disk: silent
    store(DiskCache::open(("/" + std::string(1000, 'x')).c_str()), 1, 10);

    for (const DiskCache& none : {DiskCache(), DiskCache::open(""), DiskCache::open(nullptr)}) {
        store(none, 1, 100);
        CHECK(!none.load(key_of(1)));
        CHECK(none.bytes() == 0);
    }
    unsetenv("NG_CACHE_DIR");
    store(DiskCache::open(nullptr), 1, 100);   // makes XDG_CACHE_HOME
    CHECK(names_in(place.path) == std::set<std::string>{"xdg"});
    unsetenv("XDG_CACHE_HOME");
    for (const std::string& home : {std::string(), std::string("relative"), place / "missing"}) {
        setenv("HOME", home.c_str(), 1);
        CHECK(chosen().empty());
    }
    setenv("HOME", (place / "xdg/").c_str(), 1);
    const DiskCache cache = DiskCache::open(nullptr);
    store(cache, 1, 100);
    CHECK(is_stored(cache, 1, 100));
    files::remove_all(place / "xdg");   // a home is never made
    store(cache, 1, 100);
    CHECK(names_in(place.path).empty());
}

TEST_CASE("environment: a program that runs with another's rights does not listen to it")
{
    const Surroundings around;
    const char* const name = "environment: a program that runs with another's rights*";
    if (getauxval(AT_SECURE)) {   // the program below; it ends at once, for sanitizers may not look into such a one
        for (const char* variable : Surroundings::NAMES) setenv(variable, "/tmp", 1);
        _exit(chosen().empty() && chosen("/tmp/asked") == "/tmp/asked/1" ? 0 : 1);
    }
    if (std::getenv("NG_TEST_INSIDE")) _exit(77);   // the program below, on a disk that gives no rights
    if (geteuid() != 0) return skip("only root can make a program that runs as another");
    const Place place;
    const std::string program = place / "program";
    files::copy_file("/proc/self/exe", program);
    REQUIRE(chmod(place.path.c_str(), 0755) == 0);
    REQUIRE(chown(program.c_str(), NOBODY, NOBODY) == 0);
    REQUIRE(chmod(program.c_str(), 04755) == 0);
    const std::string filter = std::string("-tc=") + name;
    const int status = end_of(start([&] {
        setenv("NG_TEST_INSIDE", "1", 1);
        return execl(program.c_str(), program.c_str(), filter.c_str(), "-m", nullptr) == 0;
    }));
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) return skip("programs on this disk run as who starts them");
    CHECK(status == 0);
}

TEST_CASE("descriptors: none stays open, none is seen by a program that the host starts meanwhile")
{
    const Place place;
    const DiskCache cache = DiskCache::open(place.path.c_str());
    const size_t before = open_descriptors();
    store(cache, 1, 300000), store(cache, 2, 100);
    write_file(file_of(cache, 2), "damaged");
    CHECK(is_stored(cache, 1, 300000));
    CHECK(!cache.load(key_of(2)));
    CHECK(!cache.load(key_of(3)));
    CHECK(cache.bytes() > 300000);
    CHECK(open_descriptors() == before);

    std::atomic<bool> is_over{false};
    std::thread busy([&] {
        while (!is_over) store(cache, 1, 300000), (void)cache.load(key_of(1)), (void)cache.bytes();
    });
    const std::string look = "ls -l /proc/self/fd | grep -q -- '" + place.path + "' && exit 1; exit 0";
    for (int i = 0; i < 100; i++) CHECK(end_of(start([&] { return execl("/bin/sh", "sh", "-c", look.c_str(), nullptr) == 0; })) == 0);
    is_over = true;
    busy.join();
}
