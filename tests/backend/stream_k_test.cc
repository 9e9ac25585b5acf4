// How steps of depth are dealt to clusters by stream-K, without a device: all of them, once, in pieces that differ by one step; tickets, and room for what meets in memory.
#include "lib/backend/cuda/gemm_sm90.h"
#include "lib/backend/cuda/rounding.h"
#include "tests/backend/gemm_problems.h"
#include "tests/backend/stand_in.h"

#include <set>

namespace ng::gemm_check {
namespace {

using namespace cuda;
namespace sm90 = cuda::gemm::sm90;

constexpr Extents DEALT[] = {{1, 1, 1, 1}, {137, 11008, 4096, 1}, {300, 18944, 3584, 1}, {1001, 11008, 4096, 1}, {137, 300, 8192, 1}, {256, 33792, 128, 1}, {200, 1000, 640, 7}};

sm90::Form form_of(const Extents& e)
{
    gemm::Problem p = problem_of(e, {}, Dtype::f16, Dtype::f16, Dtype::f16);
    p = placed(p);
    sm90::Form form;
    REQUIRE(sm90::make_form(p, true, form));
    return form;
}

// look(launch, numbers) of each instance for each of these.
template <class Look>
void each_launch(const Extents& e, const Look& look)
{
    const sm90::Form form = form_of(e);
    for (uint32_t i = 0; i < sm90::instances().size(); i++) {
        const sm90::Instance& instance = sm90::instances()[i];
        if (!instance.is_stream_k || instance.group != form.group) continue;
        const sm90::Choice choice = {i, instance.cluster, 1, 8};
        REQUIRE(sm90::is_possible(form, choice));
        int  seen = 0;
        auto body = [&](const gemm::Launch& l) {
            if (l.shared_bytes == 0) return;                 // a copy
            seen++;
            look(form, choice, l, *static_cast<const kernels::GemmTilesNumbers*>(l.numbers));
        };
        auto copied = [](const basic::Launch&) {};
        const gemm::Launcher  launcher(body);
        const basic::Launcher basic_launcher(copied);
        const uint64_t bytes = sm90::copies_workspace(form) + sm90::partial_bytes(form, whole_device(), choice);
        sm90::run_as(form, whole_device(), choice, nullptr, {address(uint64_t(1) << 40), bytes, launcher, basic_launcher, &fresh_driver()});
        CHECK(seen == 1);
    }
}

}  // namespace

TEST_CASE("stream-K: clusters have as many steps of the dealt tiles, or one more, and as many whole tiles")
{
    for (const Extents& e : DEALT)
        each_launch(e, [&](const sm90::Form& form, const sm90::Choice&, const gemm::Launch& l, const kernels::GemmTilesNumbers& n) {
            const int64_t clusters = l.grid[0] / l.cluster, tiles = int64_t(n.row_clusters) * n.column_clusters * n.batches, together = whole_device().units / l.cluster;
            INFO(e.batches, " x ", e.m, " x ", e.n, " x ", e.k, ": ", tiles, " tiles, ", n.stream_k.tiles, " of them dealt to ", clusters, " clusters");
            CHECK(clusters <= together);
            CHECK(n.k_steps == sm90::steps_of(form));
            CHECK(n.stream_k.steps * clusters + n.stream_k.longer == n.stream_k.tiles * int64_t(n.k_steps));
            CHECK(n.stream_k.longer < clusters);
            CHECK((tiles - n.stream_k.tiles) % clusters == 0);           // the others are whole, as many for each
            CHECK(n.stream_k.tiles < 2 * together);
            if (tiles >= together) CHECK((n.stream_k.tiles == 0) == (tiles % together == 0));
        });
}

TEST_CASE("stream-K: each launch has a ticket of its own, and its words behind a tile for each block, in the workspace")
{
    std::set<uint64_t> tickets;
    size_t launches = 0;
    for (int again = 0; again < 2; again++)
        for (const Extents& e : DEALT)
            each_launch(e, [&](const sm90::Form& form, const sm90::Choice& choice, const gemm::Launch& l, const kernels::GemmTilesNumbers& n) {
                const sm90::Instance& i = sm90::instances()[choice.instance];
                const int64_t between = reinterpret_cast<const char*>(n.stream_k.arrived) - reinterpret_cast<const char*>(n.stream_k.partial);
                CHECK(n.stream_k.ticket != 0);
                tickets.insert(n.stream_k.ticket), launches++;
                CHECK(between == int64_t(l.grid[0]) * i.m * i.n * 4);
                CHECK(uint64_t(between) + l.grid[0] * 2 * sizeof(uint64_t) <= sm90::partial_bytes(form, whole_device(), choice));
                CHECK(reinterpret_cast<uintptr_t>(n.stream_k.partial) % 16 == 0);
            });
    CHECK(launches > 0);
    CHECK(tickets.size() == launches);
}

TEST_CASE("stream-K: without room for what meets in memory it is not chosen")
{
    for (const Extents& e : DEALT) {
        const sm90::Form form = form_of(e);
        CHECK(!sm90::instances()[sm90::choose(form, whole_device(), 0).instance].is_stream_k);
    }
}

}  // namespace ng::gemm_check
