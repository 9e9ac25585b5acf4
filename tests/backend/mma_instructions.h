// The words of kernels/gemm_mma_ptx.cuh in plain C++: a warp's lanes give what they have, meet, and take what is theirs.
//
// Copies that are on their way are done when they are waited for, and what lies there until then is NaN; whatever is beyond the
// launch's shared memory or not aligned as the hardware wants it ends the program.
#pragma once
#include "kernels/elements.cuh"

#include <cstdint>
#include <cstring>
#include <vector>

static inline float __fmaf_rn(float x, float y, float z) { return std::fma(x, y, z); }

namespace ng::kernels {
namespace {

constexpr size_t MOST_ROOM = 227 << 10;
alignas(128) char mma_room[MOST_ROOM];
size_t            mma_room_bytes;        // of this launch

char* room_at(u32 at, u32 bytes)
{
    if (at % bytes != 0 || at + bytes > mma_room_bytes) std::abort();
    return mma_room + at;
}

// ---- lanes ---------------------------------------------------------------------------------------------------------------

constexpr int MOST_OFFERED = 12;
struct Offers {
    u32 word[2][MOST_OFFERED];           // in turns: who is ahead writes where nobody reads any more
    u32 turn;
};
Offers offers[1024];

// What the lanes of this thread's warp offer, once all have come.
struct Warp {
    const Offers* lanes;
    u32           turn;
    u32           operator()(u32 lane, int word) const { return lanes[lane].word[turn][word]; }
};
Warp meet(const u32* words, int count)
{
    Offers&   mine = offers[threadIdx.x];
    const u32 turn = mine.turn;
    std::memcpy(mine.word[turn], words, size_t(count) * 4), mine.turn ^= 1;
    __syncthreads();
    return {offers + threadIdx.x / 32 * 32, turn};
}

void load_blocks(u32 (&x)[4], u32 at)
{
    const Warp warp = meet(&at, 1);
    for (u32 i = 0; i < 4; i++) std::memcpy(&x[i], room_at(warp(8 * i + threadIdx.x % 32 / 4, 0), 16) + threadIdx.x % 4 * 4, 4);
}
void load_turned_blocks(u32 (&x)[4], u32 at)
{
    const Warp warp = meet(&at, 1);
    for (u32 i = 0; i < 4; i++) {
        u16 pair[2];
        for (u32 j = 0; j < 2; j++) std::memcpy(&pair[j], room_at(warp(8 * i + threadIdx.x % 4 * 2 + j, 0), 16) + threadIdx.x % 32 / 4 * 2, 2);
        x[i] = pair[0] | u32(pair[1]) << 16;
    }
}

// c += a b, where element(word, place) is the place-th number in a word of `per` of them.
template <class SUM, class A, class B>
void add_products(SUM (&c)[4], const u32 (&a)[4], const u32 (&b)[2], u32 per, A a_element, B b_element)
{
    const u32  words[6] = {a[0], a[1], a[2], a[3], b[0], b[1]};
    const Warp warp = meet(words, 6);
    const u32  g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    for (u32 half = 0; half < 2; half++)
        for (u32 t_of_k = 0; t_of_k < 4; t_of_k++)
            for (u32 e = 0; e < per; e++)
                for (u32 i = 0; i < 4; i++) {
                    const auto x = a_element(warp(4 * g + t_of_k, int(2 * half + i / 2)), e);
                    const auto y = b_element(warp(4 * (2 * t + i % 2) + t_of_k, int(4 + half)), e);
                    if constexpr (IS_REAL<SUM>) c[i] += x * y;
                    else c[i] = SUM(u32(c[i]) + u32(x * y));
                }
}

const float* half_values()
{
    static std::vector<float> values;
    if (values.empty())
        for (u32 code = 0; code < 65536; code++) values.push_back(narrow_number(F16, code));
    return values.data();
}
void product_f16(float (&c)[4], const u32 (&a)[4], const u32 (&b)[2])
{
    const auto number = [values = half_values()](u32 word, u32 e) { return values[word >> 16 * e & 0xffff]; };
    add_products(c, a, b, 2, number, number);
}
void product_bf16(float (&c)[4], const u32 (&a)[4], const u32 (&b)[2])
{
    const auto number = [](u32 word, u32 e) { return __uint_as_float(word >> 16 * e << 16); };
    add_products(c, a, b, 2, number, number);
}
void product_tf32(float (&c)[4], const u32 (&a)[4], const u32 (&b)[2])
{
    const auto number = [](u32 word, u32) { return __uint_as_float(word >> 13 << 13); };
    add_products(c, a, b, 1, number, number);
}
const auto signed_byte = [](u32 word, u32 e) { return i32(static_cast<signed char>(word >> 8 * e)); };
const auto plain_byte = [](u32 word, u32 e) { return i32(word >> 8 * e & 0xff); };
void product_s8_s8(i32 (&c)[4], const u32 (&a)[4], const u32 (&b)[2]) { add_products(c, a, b, 4, signed_byte, signed_byte); }
void product_s8_u8(i32 (&c)[4], const u32 (&a)[4], const u32 (&b)[2]) { add_products(c, a, b, 4, signed_byte, plain_byte); }
void product_u8_s8(i32 (&c)[4], const u32 (&a)[4], const u32 (&b)[2]) { add_products(c, a, b, 4, plain_byte, signed_byte); }
void product_u8_u8(i32 (&c)[4], const u32 (&a)[4], const u32 (&b)[2]) { add_products(c, a, b, 4, plain_byte, plain_byte); }

void product_f64(double (&c)[4], const double (&a)[4], const double (&b)[2])
{
    u32 words[12];
    std::memcpy(words, a, 32), std::memcpy(words + 8, b, 16);
    const Warp warp = meet(words, 12);
    const u32  g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    const auto number = [&](u32 lane, u32 i) { return __longlong_as_double(i64(u64(warp(lane, int(2 * i + 1))) << 32 | warp(lane, int(2 * i)))); };
    for (u32 step = 0; step < 2; step++)
        for (u32 k = 0; k < 4; k++)
            for (u32 i = 0; i < 4; i++) c[i] += number(4 * g + k, 2 * step + i / 2) * number(4 * (2 * t + i % 2) + k, 4 + step);
}

i64  unknown(i64 x) { return x; }
void meet_warp() { (void)meet(nullptr, 0); }

// ---- shared memory -------------------------------------------------------------------------------------------------------

u32  shared_begin() { return 0; }
u32  load_word(u32 at) { u32 x; std::memcpy(&x, room_at(at, 4), 4); return x; }
double load_double(u32 at) { double x; std::memcpy(&x, room_at(at, 8), 8); return x; }
void load_four(u32 at, u32 (&x)[4]) { std::memcpy(x, room_at(at, 16), 16); }
void store_two(u32 at, u32 x, u32 y) { std::memcpy(room_at(at, 8), &x, 4), std::memcpy(room_at(at, 8) + 4, &y, 4); }
void store_four(u32 at, const u32 (&x)[4]) { std::memcpy(room_at(at, 16), x, 16); }

struct AsyncCopy {
    char*       to;
    const void* from;
    i32         bytes, there, group;
};
struct AsyncCopies {
    std::vector<AsyncCopy> under_way;
    i32                    group;
};
AsyncCopies async_copies[1024];

template <int BYTES>
void copy_async(u32 to, const void* from, bool is_there)
{
    if (reinterpret_cast<uintptr_t>(from) % BYTES != 0) std::abort();
    AsyncCopies& mine = async_copies[threadIdx.x];
    mine.under_way.push_back({room_at(to, BYTES), from, BYTES, is_there ? BYTES : 0, mine.group});
    std::memset(room_at(to, BYTES), 0xff, BYTES);
}
void close_group() { async_copies[threadIdx.x].group++; }
template <int GROUPS>
void wait_groups()
{
    AsyncCopies& mine = async_copies[threadIdx.x];
    size_t       done = 0;
    for (; done < mine.under_way.size() && mine.under_way[done].group < mine.group - GROUPS; done++) {
        const AsyncCopy& c = mine.under_way[done];
        std::memset(c.to, 0, size_t(c.bytes)), std::memcpy(c.to, c.from, size_t(c.there));
    }
    mine.under_way.erase(mine.under_way.begin(), mine.under_way.begin() + std::ptrdiff_t(done));
}

u32 near_tf32(u32 x) { return std::fabs(__uint_as_float(x)) < __uint_as_float(0x7f800000) ? x + 0x1000 : x; }
u32 second_bytes(u32 x, u32 y, int first)
{
    x >>= 8 * first, y >>= 8 * first;
    return (x & 0xff) | (x >> 8 & 0xff00) | (y & 0xff) << 16 | (y & 0xff0000) << 8;
}
u32 halves_of_e4m3(u32 x) { return pair_f16(narrow_number(E4M3, x & 0xff), narrow_number(E4M3, x >> 8 & 0xff)); }

}  // namespace
}  // namespace ng::kernels
