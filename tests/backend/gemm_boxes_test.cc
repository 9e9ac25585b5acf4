// Which lines of its operands a product asks Hopper's copy engine for: all that are there, and hardly any that is not.
#include "lib/backend/cuda/driver.h"
#include "lib/backend/cuda/gemm_sm90.h"
#include "tests/backend/gemm_problems.h"
#include "tests/backend/stand_in.h"

#include <algorithm>
#include <string>
#include <string_view>

namespace ng::gemm_check {
namespace {

using namespace cuda;
namespace sm90 = cuda::gemm::sm90;

// What a stand-in of a driver took for a map: 0 where it took none.
int64_t box_lines(const kernels::TensorMap& map) { return map.opaque[1] == 0 ? 0 : int64_t(map.opaque[2] >> 32); }
int64_t promoted_bytes(const kernels::TensorMap& map) { return map.opaque[3] == 0 ? 0 : 32 << map.opaque[3]; }
int64_t box_length(const kernels::TensorMap& map) { return map.opaque[1] == 0 ? 0 : int64_t(map.opaque[2] & 0xffffffff); }

sm90::Form form_of(const Extents& e, int bits, Dtype type, bool allows_tf32 = false)
{
    const Dtype   sum = type == Dtype::f64 ? type : bytes_of(type) == 1 && !is_float(type) ? Dtype::i32 : bytes_of(type) == 4 ? Dtype::f32 : Dtype::f16;
    gemm::Problem p = problem_of(e, {(bits & 1) != 0, (bits & 2) != 0, false, 0}, type, type, sum);
    p = placed(p), p.allows_tf32 = allows_tf32;
    sm90::Form form;
    REQUIRE(sm90::make_form(p, true, form));
    return form;
}

// look(numbers) of the launch that multiplies, numbers as T.
template <class T, class Look>
void with_numbers(const sm90::Form& form, const gemm::Device& device, const sm90::Choice& choice, const Look& look)
{
    int  seen = 0;
    auto body = [&](const gemm::Launch& l) {
        if (l.shared_bytes == 0) return;                     // a copy's
        seen++;
        look(*static_cast<const T*>(l.numbers));
    };
    auto copied = [](const basic::Launch&) {};
    const gemm::Launcher  launcher(body);
    const basic::Launcher basic_launcher(copied);
    sm90::run_as(form, device, choice, nullptr, {address(uint64_t(1) << 40), uint64_t(1) << 30, launcher, basic_launcher, &fresh_driver()});
    CHECK(seen == 1);
}

// Boxes that `sharers` blocks bring of tiles of `tile` lines of `all`, the last by `edge`: each a part of the tile, or all of it in turn where parts would be no whole eights.
void check_tiles(const kernels::TensorMap& whole, const kernels::TensorMap& edge, bool is_turned, bool are_all, int64_t tile, int64_t sharers, int64_t all)
{
    const int64_t rest = all % tile;
    CHECK(box_lines(whole) > 0);
    if (is_turned || rest == 0 || are_all) {
        CHECK(box_lines(edge) == box_lines(whole));          // kernels ask for both maps early
        CHECK(box_length(edge) == box_length(whole));
        return;
    }
    const int64_t parts = tile / sharers % 8 == 0 ? sharers : 1;
    CHECK(box_lines(whole) * parts == tile);
    CHECK(box_lines(edge) * parts == kernels::tile_lines(int32_t(tile), int32_t(parts), int32_t(rest)));
    CHECK(box_lines(edge) * parts >= rest);
    CHECK(box_lines(edge) * parts < rest + 8 * parts);
    CHECK(box_lines(edge) % 8 == 0);                         // of which swizzled lines repeat
    CHECK(box_length(edge) == box_length(whole));
}

}  // namespace

TEST_CASE("boxes: of a tile's lines those come that are there, in whole eights of each block that brings some")
{
    for (const int32_t tile : {16, 64, 128, 256})
        for (const int32_t sharers : {1, 2}) {
            CHECK(kernels::tile_lines(tile, sharers, tile + 1) == tile);
            CHECK(kernels::tile_lines(tile, sharers, tile) == tile);
            CHECK(kernels::tile_lines(tile, sharers, 0) == 0);
            CHECK(kernels::tile_lines(tile, sharers, -tile) == 0);
            CHECK(kernels::tile_lines(tile, sharers, 1) == 8 * sharers);
            CHECK(kernels::tile_lines(tile, sharers, 8 * sharers + 1) <= tile);
        }
    CHECK(kernels::tile_parts(160, 2) == 2);
    CHECK(kernels::tile_parts(152, 2) == 1);                 // 76 are no whole eights
    CHECK(kernels::tile_parts(152, 1) == 1);
    CHECK(kernels::tile_lines(128, 2, 35) == 48);
    CHECK(kernels::tile_lines(128, 1, 35) == 40);
    for (const int32_t tile : {16, 64, 128})
        for (const int64_t extent : {1, 8, 17, 64, 65, 72, 130, 1000}) {
            const int64_t each = sm90::even_lines(extent, tile), tiles = (extent + tile - 1) / tile;
            INFO(extent, " by ", tile, ": ", each);
            CHECK((each > 0 && each <= tile && each % 8 == 0));
            CHECK((extent + each - 1) / each == tiles);
            CHECK(each * tiles < extent + 8 * tiles);
        }
}

TEST_CASE("boxes: tiles' last ones are no longer than what is left, of every instance, type and way")
{
    const struct { Dtype type; bool allows_tf32; } kinds[] = {{Dtype::f16, false}, {Dtype::e4m3, false}, {Dtype::i8, false}, {Dtype::f32, false}, {Dtype::f32, true}, {Dtype::f64, false}};
    int seen = 0;
    for (const auto& kind : kinds)
        for (int bits = 0; bits < 4; bits++)
            for (const Extents& e : {Extents{272, 144, 528, 3}, Extents{264, 1032, 528, 1}, Extents{8, 304, 528, 1}, Extents{384, 512, 528, 1}}) {
                const sm90::Form form = form_of(e, bits, kind.type, kind.allows_tf32);
                for (uint32_t i = 0; i < sm90::instances().size(); i++) {
                    const sm90::Instance& instance = sm90::instances()[i];
                    const sm90::Choice    choice = {i, instance.cluster, 1, 8};
                    if (instance.is_split || !sm90::is_possible(form, choice)) continue;
                    INFO(int(kind.type), " ", bits, " ", e.m, " x ", e.n, " ", std::string(instance.tile));
                    const sm90::Form own = sm90::form_of(form, instance);
                    with_numbers<kernels::GemmTilesNumbers>(form, whole_device(), choice, [&](const kernels::GemmTilesNumbers& n) {
                        const bool are_all = form.planes == 3 || kind.type == Dtype::f64;
                        check_tiles(n.a, n.a_edge, own.a.is_turned, are_all, instance.m, instance.across, own.problem.m);
                        check_tiles(n.b, n.b_edge, own.b.is_turned, are_all, instance.n, instance.down, own.problem.n);
                        if (n.output.store == kernels::STORE_HALVES) CHECK(box_lines(n.c) == (!sm90::is_swapped(form, instance) ? 64 : instance.n % 16 == 0 ? 16 : 8));
                        CHECK(n.a_lines == (are_all ? INT32_MAX : own.problem.m));
                        CHECK(n.b_lines == (are_all ? INT32_MAX : own.problem.n));
                        seen++;
                    });
                }
            }
    CHECK(seen > 100);
}

TEST_CASE("boxes: tiles of splits are alike, and their boxes are what counts of them")
{
    int seen = 0;
    for (const Dtype type : {Dtype::f16, Dtype::bf16, Dtype::e4m3, Dtype::i8, Dtype::f32})
        for (int bits = 0; bits < 4; bits++)
            for (const Extents& e : {Extents{8, 304, 528, 1}, Extents{304, 8, 528, 1}, Extents{1, 11008, 4096, 1}, Extents{272, 144, 528, 3}, Extents{64, 11008, 528, 1}, Extents{40, 8457, 1760, 1}}) {
                const sm90::Form form = form_of(e, bits, type);
                for (uint32_t i = 0; i < sm90::instances().size(); i++)
                    for (const int32_t cluster : {1, 3, 8})
                        for (const uint32_t units : {5, 40, 114, 132}) {
                            const sm90::Instance& instance = sm90::instances()[i];
                            const sm90::Choice    choice = {i, cluster, 1, 8};
                            gemm::Device          device = whole_device();
                            device.units = units;
                            if (!instance.is_split || !sm90::is_possible(form, choice)) continue;
                            INFO(int(type), " ", bits, " ", e.m, " x ", e.n, " ", std::string(instance.tile), " ", cluster, " ", units);
                            const sm90::Form own = sm90::form_of(form, instance);
                            const auto check = [&](const kernels::TensorMap& map, bool has_fewer, int64_t lines, int64_t tile, int64_t tiles, int64_t all) {
                                CHECK(box_lines(map) > 0);   // the driver took it
                                CHECK((lines <= tile && lines * tiles >= all && lines * (tiles - 1) < all));
                                if (!has_fewer) {
                                    CHECK(lines == tile);
                                    return;
                                }
                                CHECK(box_lines(map) == lines);
                                CHECK(lines * tiles < all + 8 * tiles);
                            };
                            with_numbers<kernels::GemmSplitNumbers>(form, device, choice, [&](const kernels::GemmSplitNumbers& n) {
                                const bool has_fewer = !instance.is_cut && form.planes != 3;
                                check(n.a, has_fewer && !own.a.is_turned, n.tile_rows, instance.m, n.row_tiles, own.problem.m);
                                check(n.b, has_fewer && !own.b.is_turned, n.tile_columns, instance.n, n.column_tiles, own.problem.n);
                                seen++;
                            });
                        }
            }
    CHECK(seen > 1000);
}

TEST_CASE("boxes: beside few rows or columns the second cache asks memory for a box's lines alone, else for what the next step reads, too")
{
    bool has_odd = false;
    for (const Dtype type : {Dtype::f16, Dtype::e4m3, Dtype::i8})
        for (int bits = 0; bits < 4; bits++)
            for (const Extents& e : {Extents{8, 11008, 4096, 1}, Extents{4096, 1, 4096, 1}, Extents{35, 8457, 1760, 1}, Extents{128, 4096, 4096, 1}, Extents{136, 4096, 4096, 1}, Extents{4096, 4096, 4096, 1}}) {
                const sm90::Form form = form_of(e, bits, type);
                for (uint32_t i = 0; i < sm90::instances().size(); i++) {
                    const sm90::Instance& instance = sm90::instances()[i];
                    const sm90::Choice    choice = {i, instance.cluster, 1, 8};
                    if (!sm90::is_possible(form, choice)) continue;
                    INFO(int(type), " ", bits, " ", e.m, " x ", e.n, " ", std::string(instance.tile));
                    has_odd |= instance.is_odd;
                    const auto check = [&](const auto& n) {
                        const int64_t bytes = std::min(e.m, e.n) <= 128 ? 128 : 256;
                        CHECK(promoted_bytes(n.a) == bytes);
                        CHECK(promoted_bytes(n.b) == bytes);
                    };
                    if (instance.is_split) with_numbers<kernels::GemmSplitNumbers>(form, whole_device(), choice, check);
                    else with_numbers<kernels::GemmTilesNumbers>(form, whole_device(), choice, check);
                }
            }
    CHECK(has_odd);
}

}  // namespace ng::gemm_check
