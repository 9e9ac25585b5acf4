// Handles: any number may be looked up, counts come out even under many threads, generations never come back.
#include "lib/handle.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <random>
#include <thread>
#include <vector>

namespace {

std::atomic<int> alive{0};

struct Thing : ng::RefCounted {
    explicit Thing(int v) : value(v) { alive++; }
    ~Thing() { alive--; }
    int value;
};
struct Other : ng::RefCounted {};

}  // namespace

template <> inline constexpr ng::HandleKind ng::KIND_OF<Thing> = ng::HandleKind::Program;
template <> inline constexpr ng::HandleKind ng::KIND_OF<Other> = ng::HandleKind::Scope;

namespace {

using ng::Pin;
using ng::Ref;

uint64_t thing(int value) { return ng::make_handle(Ref<Thing>(new Thing(value))); }

}  // namespace

TEST_CASE("handle: what it stands for is found, by its own kind alone")
{
    const uint64_t h = thing(7);
    CHECK(h < (uint64_t(1) << 47));
    CHECK(Pin<Thing>(h)->value == 7);
    CHECK(Pin<Thing>(h).handle() == h);
    CHECK_FALSE(Pin<Other>(h));
    CHECK_FALSE(ng::retain_handle<Other>(h));
    ng::release_handle<Other>(h);
    CHECK(Pin<Thing>(h));
    ng::release_handle<Thing>(h);
    CHECK_FALSE(Pin<Thing>(h));
    CHECK(alive == 0);
}

TEST_CASE("handle: a released one stays dead though its slot is used again")
{
    const uint64_t old = thing(1);
    ng::release_handle<Thing>(old);
    for (int i = 0; i < 1000; i++) {
        const uint64_t h = thing(i);
        REQUIRE(h != old);
        REQUIRE_FALSE(Pin<Thing>(old));
        REQUIRE_FALSE(ng::retain_handle<Thing>(old));
        ng::release_handle<Thing>(old);
        REQUIRE(Pin<Thing>(h)->value == i);
        ng::release_handle<Thing>(h);
    }
    CHECK(alive == 0);
}

TEST_CASE("handle: a slot whose generations are used up is never used again")
{
    const uint64_t first = thing(1);
    const uint64_t slot = first & ((1u << 26) - 1);
    ng::release_handle<Thing>(first);
    int uses = 0;
    for (int i = 0; i < 300000; i++) {
        const uint64_t h = thing(i);
        uses += (h & ((1u << 26) - 1)) == slot;
        REQUIRE(h != first);
        ng::release_handle<Thing>(h);
    }
    CHECK(uses > 0);
    CHECK(uses < (1 << 18));
    CHECK_FALSE(Pin<Thing>(first));
}

TEST_CASE("handle: retained twice, released three times, and once too often")
{
    const uint64_t h = thing(3);
    CHECK(ng::retain_handle<Thing>(h));
    CHECK(ng::retain_handle<Thing>(h));
    for (int i = 0; i < 2; i++) ng::release_handle<Thing>(h);
    CHECK(alive == 1);
    ng::release_handle<Thing>(h);
    CHECK(alive == 0);
    ng::release_handle<Thing>(h);
    CHECK(alive == 0);
}

TEST_CASE("handle: released while pinned, it is gone for others and lives for who holds it")
{
    const uint64_t h = thing(5);
    {
        const Pin<Thing> pin(h);
        ng::release_handle<Thing>(h);
        ng::release_handle<Thing>(h);      // once too often: the pin's count is not a reference
        CHECK_FALSE(Pin<Thing>(h));
        CHECK(alive == 1);
        CHECK(pin->value == 5);
    }
    CHECK(alive == 0);
}

TEST_CASE("handle: several stand for one object")
{
    const Ref<Thing> object = new Thing(9);
    const uint64_t a = ng::make_handle(object), b = ng::make_handle(object, 77);
    CHECK(a != b);
    CHECK(Pin<Thing>(a).get() == Pin<Thing>(b).get());
    CHECK(Pin<Thing>(a).owner() == 0);
    CHECK(Pin<Thing>(b).owner() == 77);
    Pin<Thing>(b).set_owner(0);
    CHECK(Pin<Thing>(b).owner() == 0);
    ng::release_handle<Thing>(a);
    CHECK(Pin<Thing>(b)->value == 9);
    ng::release_handle<Thing>(b);
    CHECK(object->owners() == 1);
}

TEST_CASE("handle: garbage is nothing")
{
    const uint64_t h = thing(1);
    int local = 0;
    std::vector<uint64_t> odd = {0, 1, 8, 4095, 0xdeadbeefcafe, ~0ull, 1ull << 46, 1ull << 47, 1ull << 63, uint64_t(&local), uint64_t("text"), uint64_t(&thing)};
    for (int bit = 26; bit < 64; bit++) odd.push_back(h ^ 1ull << bit);
    std::mt19937_64 random(1);
    for (int i = 0; i < 100000; i++) odd.push_back(random() >> (i % 40));
    for (const uint64_t v : odd) {
        if (v == h) continue;
        REQUIRE_FALSE(Pin<Thing>(v));
        ng::release_handle<Thing>(v);
        REQUIRE_FALSE(ng::retain_handle<Thing>(v));
    }
    CHECK(Pin<Thing>(h)->value == 1);
    ng::release_handle<Thing>(h);
}

TEST_CASE("handle: many threads make, pin, retain and release, some too often")
{
    constexpr int THREADS = 6, SHARED = 16, ROUNDS = 20000;
    std::atomic<uint64_t> shared[SHARED] = {};
    std::vector<std::thread> threads;
    std::atomic<int> wrong{0};
    for (int t = 0; t < THREADS; t++)
        threads.emplace_back([&, t] {
            std::mt19937 random(unsigned(t) + 1);
            for (int i = 0; i < ROUNDS; i++) {
                auto& place = shared[random() % SHARED];
                const uint64_t h = place.load();
                switch (random() % 5) {
                case 0: ng::release_handle<Thing>(place.exchange(thing(int(random() % 1000)))); break;
                case 1: ng::release_handle<Thing>(h); break;
                case 2:
                    if (ng::retain_handle<Thing>(h)) ng::release_handle<Thing>(h);
                    break;
                default: {
                    const Pin<Thing> pin(h);
                    if (!pin) break;
                    const Pin<Thing> again(h);
                    if (pin->value < 0 || pin->value >= 1000 || (again && again.get() != pin.get())) wrong++;
                }
                }
            }
        });
    for (std::thread& t : threads) t.join();
    for (auto& place : shared) ng::release_handle<Thing>(place.load());
    CHECK(wrong == 0);
    CHECK(alive == 0);
}

TEST_CASE("handle: hundreds of thousands at once")
{
    std::vector<uint64_t> all;
    for (int i = 0; i < 300000; i++) all.push_back(thing(i));
    for (int i = 0; i < 300000; i++) REQUIRE(Pin<Thing>(all[size_t(i)])->value == i);
    for (const uint64_t h : all) ng::release_handle<Thing>(h);
    CHECK(alive == 0);
}

TEST_CASE("handle: a forked child sees which are its parent's")
{
    const uint64_t h = thing(4);
    CHECK_FALSE(Pin<Thing>(h).is_forked());
    const pid_t child = fork();
    if (child == 0) {
        const Pin<Thing> old(h);
        const uint64_t mine = thing(5);
        _exit(old && old.is_forked() && !Pin<Thing>(mine).is_forked() ? 0 : 1);
    }
    int status = -1;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(status == 0);
    CHECK_FALSE(Pin<Thing>(h).is_forked());
    ng::release_handle<Thing>(h);
}
