// In which form Hopper's products are taken: what is turned, copied or refused.
#include "tests/backend/gemm_problems.h"

#include <doctest/doctest.h>

namespace ng::gemm_check {
namespace {

using namespace cuda;
namespace sm90 = gemm::sm90;

}  // namespace

TEST_CASE("forms: where c's rows lie side by side it is the transposes' product, and its epilogue turns with it")
{
    gemm::Problem p = problem_of({200, 96, 64, 2}, {false, false, true, 0}, Dtype::f16, Dtype::f16, Dtype::f16);
    p.a = address(4096), p.b = address(8192), p.c = address(65536);
    p.epilogue.count = 1, p.epilogue.tensor[0].row = 7, p.epilogue.tensor[0].column = 1;
    sm90::Form form;
    REQUIRE(sm90::make_form(p, true, form));
    CHECK(form.problem.m == 96);
    CHECK(form.problem.n == 200);
    CHECK(form.problem.c_column == 1);
    CHECK(form.a.data == p.b);
    CHECK(form.a.is_turned);                         // b [k, n] lies along n
    CHECK(!form.b.is_turned);
    CHECK(form.problem.epilogue.tensor[0].row == 1);
    CHECK(form.problem.epilogue.tensor[0].column == 7);
    p.c_row = 2;
    CHECK(!sm90::make_form(p, true, form));
}

TEST_CASE("forms: rows are copied where the copy engine cannot read them in place")
{
    sm90::Form form;
    const auto copying = [&](const Lying& lying, uint64_t at, Dtype type) {
        gemm::Problem p = problem_of({64, 64, 64, 1}, lying, type, type, Dtype::f32);
        p.a = address(at), p.b = address(65536), p.c = address(131072);
        REQUIRE(sm90::make_form(p, true, form));
        return form.a.copying;
    };
    CHECK(copying({}, 4096, Dtype::f16) == sm90::Copying::None);
    CHECK(copying({true, false, false, 0}, 4096, Dtype::f16) == sm90::Copying::None);
    CHECK(copying({false, false, false, 8}, 4096, Dtype::f16) == sm90::Copying::None);
    CHECK(copying({false, false, false, 3}, 4096, Dtype::f16) == sm90::Copying::Pitch);
    CHECK(copying({}, 4098, Dtype::f16) == sm90::Copying::Pitch);
    CHECK(copying({true, false, false, 0}, 4096, Dtype::e4m3) == sm90::Copying::Strided);
    CHECK(copying({false, false, false, 16}, 4096, Dtype::e4m3) == sm90::Copying::None);
    CHECK(copying({}, 4096, Dtype::f32) == sm90::Copying::Planes);
}

TEST_CASE("forms: doubles are taken as whole products of f64 whose rows begin at multiples of 16 bytes")
{
    const auto is_taken = [](const Lying& lying, uint64_t at, Dtype c, double weight) {
        gemm::Problem p = problem_of({64, 64, 64, 1}, lying, Dtype::f64, Dtype::f64, c);
        p.a = address(at), p.b = address(65536), p.c = address(131080), p.epilogue_weight = weight;
        sm90::Form form;
        return sm90::make_form(p, true, form);
    };
    for (const bool a_turned : {false, true})
        for (const bool b_turned : {false, true}) {
            CHECK(is_taken({a_turned, b_turned, false, 0}, 4096, Dtype::f64, 0));
            CHECK(is_taken({a_turned, b_turned, true, 2}, 4096, Dtype::f64, 0));
            CHECK(!is_taken({a_turned, b_turned, false, 1}, 4096, Dtype::f64, 0));
        }
    CHECK(!is_taken({}, 4104, Dtype::f64, 0));
    CHECK(!is_taken({}, 4096, Dtype::f32, 0));
    CHECK(!is_taken({}, 4096, Dtype::f64, 1));
}

TEST_CASE("layouts: a stage more where columns that do not come by boxes leave room for it beside what is stored")
{
    struct Seen {
        uint32_t n, asked;
        bool     is_pingpong, b_turned;
        uint32_t lines, stages, buffers;
    };
    for (const Seen& s : {Seen{256, 4, false, true, 256, 4, 2}, Seen{128, 6, true, true, 128, 6, 2}, Seen{144, 4, false, false, 144, 5, 3}, Seen{144, 4, false, true, 192, 4, 3},
                          Seen{160, 4, false, false, 160, 4, 3}, Seen{160, 4, true, false, 160, 5, 2}, Seen{160, 4, true, true, 192, 4, 4}}) {
        const kernels::TilesLayout l = kernels::tiles_layout({128, s.n, s.asked, s.is_pingpong, false}, s.b_turned, {});
        CAPTURE(s.n);
        CAPTURE(s.b_turned);
        CHECK(l.lines == s.lines);
        CHECK(l.stages == s.stages);
        CHECK(l.buffers == s.buffers);
        CHECK(l.bytes <= kernels::SHARED_MOST);
    }
}

namespace {

struct TurnedLayout {
    uint32_t n, asked;
    bool     b_turned;
    uint32_t stages, buffers;
};
// Of tiles of so many rows of c's transpose, by so many warpgroups.
void check_layouts(uint32_t m, uint32_t groups, std::initializer_list<TurnedLayout> layouts)
{
    for (const TurnedLayout& s : layouts) {
        const kernels::TilesLayout l = kernels::tiles_layout({m, s.n, s.asked, false, true}, s.b_turned, {});
        CAPTURE(s.n);
        CAPTURE(s.b_turned);
        CHECK(l.stages == s.stages);
        CHECK(l.buffers == s.buffers);
        CHECK(l.bytes <= kernels::SHARED_MOST);
        // The ring, each group's buffers, and barriers, from wherever shared memory begins.
        CHECK(l.bytes >= 1023 + l.stages * ((m + l.lines) * 128 + 16) + groups * l.buffers * kernels::STAGING_BYTES);
    }
    CHECK(kernels::tiles_threads(m, true) == int32_t(groups + 1) * 128);
}

}  // namespace

TEST_CASE("layouts: three warpgroups stage what they store behind the ring of a tile of 192 rows, and a warp beside them loads")
{
    check_layouts(192, 3, {{80, 5, false, 5, 2}, {80, 5, true, 5, 1}, {112, 5, false, 5, 1}, {112, 5, true, 5, 1}, {160, 4, false, 4, 2}, {160, 4, true, 4, 1}});
    CHECK(kernels::tiles_threads(128, true) == 3 * 128);
}

TEST_CASE("layouts: one warpgroup of 64 rows of c's transpose has the stages that its buffers leave, up to one more than asked for")
{
    check_layouts(64, 1, {{72, 8, false, 9, 2}, {72, 12, false, 12, 2}, {72, 12, true, 8, 2}, {152, 12, false, 7, 3}, {152, 12, true, 6, 3}});
    CHECK(kernels::tiles_threads(64, false) == 3 * 128);         // of doubles
}

TEST_CASE("layouts: beside an epilogue pingpong has as many stages as what it reads leaves, others one less than asked for")
{
    struct Seen {
        uint32_t n, asked;
        bool     is_pingpong, has_box;
        uint32_t vectors, stages, buffers;
    };
    for (const Seen& s : {Seen{128, 6, true, false, 0, 6, 2}, Seen{128, 6, true, false, 1, 6, 2}, Seen{128, 6, true, false, 2, 5, 3}, Seen{128, 6, true, true, 0, 5, 4}, Seen{128, 6, true, true, 1, 5, 4},
                          Seen{128, 6, true, true, 4, 4, 4}, Seen{256, 4, false, false, 4, 3, 4}, Seen{256, 4, false, true, 4, 3, 4}, Seen{128, 6, false, true, 1, 5, 2}}) {
        const kernels::TilesLayout l = kernels::tiles_layout({128, s.n, s.asked, s.is_pingpong, false}, true, {true, s.has_box, s.vectors});
        CAPTURE(s.n);
        CAPTURE(s.has_box);
        CAPTURE(s.vectors);
        CHECK(l.stages == s.stages);
        CHECK(l.buffers == s.buffers);
        CHECK(l.bytes <= kernels::SHARED_MOST);
    }
}

}  // namespace ng::gemm_check
