// Temporaries in one workspace: apart while both live, in little memory, and laid out in time however many they are.
#include "lib/layout.h"
#include "tests/lib/world.h"

#include <chrono>
#include <functional>
#include <map>
#include <random>

using namespace ng;

namespace {

// What runs a plan and needs all of its temporaries, or all but one.
struct Needing final : Executor {
    explicit Needing(int32_t fused_away = -1) : fused_away_(fused_away) {}
    uint64_t  scratch_bytes(std::span<const int64_t>, uint32_t) const override { return 0; }
    bool      needs(int32_t buffer) const override { return buffer != fused_away_; }
    ng_status run(const ExecutorRun&, const Parallel&) const override { return NG_OK; }
    int32_t   fused_away_;
};
ng::Plan temporaries(std::vector<Buffer> buffers)
{
    ng::Plan p;
    p.buffers = std::move(buffers);
    return p;
}
Buffer temporary(Extent count, int32_t first, int32_t last, Dtype t = Dtype::f32)
{
    Buffer b{Place::Work};
    b.dtype = t, b.count = count, b.first = first, b.last = last;
    return b;
}

uint64_t bytes_of_all(const Buffer& b) { return std::max<uint64_t>(uint64_t(b.count.constant()), 1) * uint64_t(bytes_of(b.dtype)); }
double seconds(const std::function<void()>& f)
{
    const auto start = std::chrono::steady_clock::now();
    f();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}
// As those of a chain's gradient: what comes first is read last, and beside it is what lives for a step.
ng::Plan nested(int32_t count)
{
    std::vector<Buffer> all;
    for (int32_t i = 0; i < count; i++) {
        all.push_back(temporary(1000, i, 2 * count - i));
        all.push_back(temporary(i % 3 ? 1000 : 5000, 2 * count - i, 2 * count - i + 1));
    }
    return temporaries(all);
}

}  // namespace

TEST_CASE("layout: temporaries that live at once never share a byte, all lie aligned within what is asked for")
{
    std::mt19937 dice(1);
    for (int round = 0; round < 300; round++) {
        std::vector<Buffer> buffers;
        uint64_t sum = 0, alive = 0;
        for (unsigned i = 0, count = dice() % 40; i < count; i++) {
            const int32_t from = int32_t(dice() % 20), to = from + int32_t(dice() % 6);
            buffers.push_back(temporary(int64_t(dice() % 3 ? dice() % 3000 : dice() % 3), from, to, dice() % 2 ? Dtype::f32 : Dtype::u8));
        }
        buffers.push_back(temporary(100, -1, -1));                 // no step uses it
        const ng::Plan p = temporaries(buffers);
        const WorkLayout l = layout_work(p, {}, Needing());
        const auto bytes = [&](size_t i) { return std::max<uint64_t>(uint64_t(p.buffers[i].count.constant()), 1) * uint64_t(bytes_of(p.buffers[i].dtype)); };
        for (size_t i = 0; i + 1 < p.buffers.size(); i++) {
            const Buffer& a = p.buffers[i];
            sum += (bytes(i) + 63) / 64 * 64;
            REQUIRE(l.offsets[i] % 64 == 0);
            REQUIRE(l.offsets[i] + bytes(i) <= l.bytes);
            for (size_t k = 0; k < i; k++) {
                const Buffer& b = p.buffers[k];
                const bool meet = a.first <= b.last && b.first <= a.last, apart = l.offsets[i] + bytes(i) <= l.offsets[k] || l.offsets[k] + bytes(k) <= l.offsets[i];
                REQUIRE((!meet || apart));
            }
        }
        for (int32_t step = 0; step < 26; step++) {
            uint64_t now = 0;
            for (size_t i = 0; i + 1 < p.buffers.size(); i++)
                if (p.buffers[i].first <= step && step <= p.buffers[i].last) now += bytes(i);
            alive = std::max(alive, now);
        }
        CHECK(l.bytes >= alive);
        CHECK(l.bytes <= sum);
    }
}

TEST_CASE("layout: a chain of temporaries takes the room of two")
{
    std::vector<Buffer> chain;
    for (int32_t i = 0; i < 100; i++) chain.push_back(temporary(1000, i, i + 1));
    CHECK(layout_work(temporaries(chain), {}, Needing()).bytes == 2 * 4032);
    const int64_t lengths[] = {1000};
    for (Buffer& b : chain) b.count = Extent::variable(0);
    CHECK(layout_work(temporaries(chain), lengths, Needing()).bytes == 2 * 4032);
    CHECK(layout_work(temporaries({}), {}, Needing()).bytes == 0);
    CHECK(layout_work(temporaries({temporary(1000, 0, 1), temporary(5000, 0, 1)}), {}, Needing(1)).bytes == 4032);
}

TEST_CASE("layout: more bytes than there are numbers for is refused, never a small number")
{
    const auto refused = [](std::vector<Buffer> buffers) {
        try {
            return layout_work(temporaries(std::move(buffers)), {}, Needing()).bytes ? NG_OK : NG_E_BUG;
        } catch (const Error& e) {
            return ng_status_(e.status);
        }
    };
    CHECK(refused({temporary(int64_t(1) << 61, 0, 1, Dtype::f64)}) == NG_E_LIMIT);
    CHECK(refused({temporary(INT64_MAX, 0, 1, Dtype::u8)}) == NG_E_LIMIT);
    CHECK(refused({temporary(int64_t(1) << 60, 0, 1, Dtype::f64), temporary(int64_t(1) << 60, 0, 1, Dtype::f64)}) == NG_E_LIMIT);
    CHECK(refused({temporary(int64_t(1) << 30, 0, 1)}) == NG_OK);
    World w;
    ng_scope* s = ng_scope_create(w.c, 0);
    const int64_t many[] = {int64_t(1) << 61};
    ng_expr* e = ng_argsort(ng_broadcast(ng_const(s, NG_F32, 1), many, 1), 0, 0);      // 2^64 bytes between two steps
    e = ng_take(e, ng_const_int(s, NG_I64, 5), 0);
    ng_tensor* out = nullptr;
    const ng_status status = ng_eval(w.c, nullptr, &e, &out, 1, &error);
    CHECK((status == NG_E_LIMIT || status == NG_E_DEVMEM));
    ng_prog* p = nullptr;
    const ng_status compiled = ng_compile(w.c, nullptr, &e, 1, &p, &error);
    CHECK((compiled == NG_E_LIMIT || compiled == NG_E_DEVMEM));
    ng_scope_release(s);
}

TEST_CASE("layout: tens of thousands of temporaries are apart as well, in hardly more than what lives at once")
{
    std::mt19937 dice(2);
    for (int round = 0; round < 6; round++) {
        std::vector<Buffer> buffers;
        const auto steps = int32_t(round % 2 ? 200 : 20000);
        for (int i = 0; i < 20000; i++) {
            const int32_t from = int32_t(dice() % uint32_t(steps));
            buffers.push_back(temporary(int64_t(1 + dice() % (round < 4 ? 3000 : 16)), from, from + int32_t(dice() % 50)));
        }
        const ng::Plan p = temporaries(buffers);
        const WorkLayout l = layout_work(p, {}, Needing());
        std::vector<std::vector<size_t>> begin(size_t(steps) + 51), end(begin.size());
        for (size_t i = 0; i < p.buffers.size(); i++) begin[size_t(p.buffers[i].first)].push_back(i), end[size_t(p.buffers[i].last) + 1].push_back(i);
        std::map<uint64_t, uint64_t> now;                          // where each that lives begins and ends
        uint64_t alive = 0, most = 0;
        for (size_t step = 0; step < begin.size(); step++) {
            for (const size_t i : end[step]) now.erase(l.offsets[i]), alive -= (bytes_of_all(p.buffers[i]) + 63) / 64 * 64;
            for (const size_t i : begin[step]) {
                const uint64_t at = l.offsets[i], behind = at + bytes_of_all(p.buffers[i]);
                REQUIRE(at % 64 == 0);
                REQUIRE(behind <= l.bytes);
                const auto [place, fresh] = now.emplace(at, behind);
                REQUIRE(fresh);
                REQUIRE((place == now.begin() || std::prev(place)->second <= at));
                REQUIRE((std::next(place) == now.end() || behind <= std::next(place)->first));
                alive += (behind - at + 63) / 64 * 64;
            }
            most = std::max(most, alive);
        }
        MESSAGE(l.bytes << " bytes where " << most << " live at once");
        CHECK(l.bytes >= most);
        CHECK(l.bytes <= most + most / 2);
    }
}

TEST_CASE("layout: the time grows as the number of temporaries does")
{
    const auto time = [](int32_t count) {
        const ng::Plan p = nested(count);
        uint64_t bytes = 0;
        const double s = seconds([&] { bytes = layout_work(p, {}, Needing()).bytes; });
        CHECK(bytes <= uint64_t(count) * 4032 * 5 / 4 + 40000);
        return s;
    };
    const double few = time(12500), many = time(100000);
    MESSAGE("25000 temporaries: " << few << " s, 200000: " << many << " s");
    CHECK(many < 40 * few + 0.5);                                   // 8 to 10 as it is, 64 if each were compared with all
}
