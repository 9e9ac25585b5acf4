// What Hopper's products are launched as, seen one launch after the other without a device, each with what no launch may exceed.
#pragma once
#include "lib/backend/cuda/driver.h"
#include "tests/backend/gemm_problems.h"
#include "tests/backend/stand_in.h"

#include <vector>

namespace ng::gemm_check {

inline gemm::sm90::Form form_of(const gemm::Problem& p)
{
    gemm::sm90::Form form;
    REQUIRE(gemm::sm90::make_form(p, true, form));
    return form;
}

// Launches of a problem by one choice, with a workspace of exactly the copies' and parts' bytes, looked at one by one.
struct Seen {
    std::vector<gemm::Launch> launches;
    int                       copies = 0;
};
template <class Look>
Seen run_as(const gemm::sm90::Form& form, const gemm::sm90::Choice& choice, Look&& look, const gemm::Finisher* finisher = nullptr)
{
    Seen seen;
    auto body = [&](const gemm::Launch& l) {
        seen.launches.push_back(l);
        CHECK(l.grid[0] * l.grid[1] * l.grid[2] > 0);
        CHECK(l.grid[0] % l.cluster == 0);
        CHECK(l.cluster <= 8);
        CHECK(l.block <= 1024);
        CHECK(l.shared_bytes <= 232448);
        if (l.image == gemm::Image::Text) {
            REQUIRE(finisher);
            CHECK(l.kernel < gemm::FINISHER_FUNCTIONS);
            CHECK(l.shared_bytes <= finisher->shared_bytes);
        } else {
            REQUIRE(l.kernel < gemm::kernels_of(l.image).size());
            CHECK(gemm::kernels_of(l.image)[l.kernel].shared_bytes >= l.shared_bytes);
        }
        CHECK(l.numbers_bytes <= 4096);
        look(l);
    };
    auto basic_body = [&](const cuda::basic::Launch&) { seen.copies++; };
    const gemm::Launcher launcher(body);
    const cuda::basic::Launcher basic_launcher(basic_body);
    const uint64_t bytes = gemm::sm90::copies_workspace(form) + gemm::sm90::partial_bytes(form, whole_device(), choice);
    gemm::sm90::run_as(form, whole_device(), choice, finisher, {address(uint64_t(1) << 40), bytes, launcher, basic_launcher, &fresh_driver()});
    return seen;
}

}  // namespace ng::gemm_check
