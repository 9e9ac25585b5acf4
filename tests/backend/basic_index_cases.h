// Shipped kernels that move, fold and order elements by index, against plain loops: every type, fold, layout and awkward size.
#pragma once
#include "tests/backend/basic_machine.h"

namespace basic_check {
using namespace ng::kernels;

inline const basic::Folding FOLDS[] = {LAST, SUM, PROD, MIN, MAX};

inline Tensor& fill_for(Tensor& t, basic::Folding how, uint32_t seed) { return how == PROD ? fill_factors(t, seed) : fill(t, seed); }

// ---- copies ------------------------------------------------------------------------------------------------------------

inline void check_copy(Dtype type, const Index& dims, const Lie& from_lie, const Lie& to_lie)
{
    Tensor from(type, dims, from_lie), to(type, dims, to_lie);
    fill(from, 1);
    const std::vector<char> before = to.memory;
    There x(from), y(to);
    with_workspace(0, [&](const basic::Place& place) { basic::copy(x.operand(), y.operand(), int(dims.size()), place); });
    y.back();
    bool good = true;
    to.each([&](const Index& i) { good &= std::memcmp(from.at(i), to.at(i), size_t(ng::bytes_of(type))) == 0; });
    CHECK(good);
    CHECK(is_untouched_around(to, before));
}

TEST_CASE("copy: every size of element between any two layouts, transposed through tiles or not")
{
    const std::vector<Index> shapes = {{}, {0}, {1}, {7}, {4096}, {3, 0, 2}, {33, 65}, {64, 32}, {1, 40}, {5, 31, 9}, {2, 3, 4, 5}, {3, 1, 17, 2, 8}};
    for (const Dtype type : {Dtype::u8, Dtype::bf16, Dtype::f32, Dtype::f64})
        for (const Index& dims : shapes) {
            Lie backwards;
            for (size_t a = dims.size(); a-- > 0;) backwards.order.push_back(int64_t(a));
            Lie gaps = {{}, 1, 3};
            const Lie lies[] = {{}, backwards, gaps, {backwards.order, 2, 1}};
            for (const Lie& from : lies)
                for (const Lie& to : lies) {
                    INFO(ng::name_of(type), " rank ", dims.size());
                    check_copy(type, dims, from, to);
                }
        }
}

TEST_CASE("copy: a row that is read everywhere, and memory that is off every wider element")
{
    Tensor row(Dtype::f32, {1, 50}), to(Dtype::f32, {40, 50});
    fill(row, 2);
    There          x(row), y(to);
    basic::Operand from = x.operand();
    const int64_t  strides[] = {0, 1};
    from.dims = to.dims.data(), from.strides = strides;
    with_workspace(0, [&](const basic::Place& place) { basic::copy(from, y.operand(), 2, place); });
    y.back();
    to.each([&](const Index& i) { REQUIRE(to.get(i) == row.get({0, i[1]})); });
    for (int64_t shift = 0; shift < 9; shift++) {
        Tensor a(Dtype::u8, {64}), b(Dtype::u8, {64});
        fill(a, 3), a.origin = 0;
        const Index dims = {64 - shift};
        There       p(a), q(b);
        basic::Operand in = p.operand(), out = q.operand();
        in.dims = out.dims = dims.data(), in.data = static_cast<char*>(in.data) + shift;
        with_workspace(0, [&](const basic::Place& place) { basic::copy(in, out, 1, place); });
        q.back();
        for (int64_t i = 0; i < 64; i++) REQUIRE(b.get({i}) == (i < dims[0] ? a.get({i + shift}) : 255));
    }
}

TEST_CASE("fill: one element's bits everywhere, between gaps too")
{
    for (const Dtype type : {Dtype::i8, Dtype::f16, Dtype::u32, Dtype::f64})
        for (const Lie& lie : {Lie{}, Lie{{1, 0, 2}, 5, 1}, Lie{{}, 0, 2}})
            for (const Index& dims : {Index{3, 5, 8}, {1, 1, 33}, {2, 0, 2}, {16, 16, 16}}) {
                Tensor to(type, dims, lie);
                const std::vector<char> before = to.memory;
                There y(to);
                with_workspace(0, [&](const basic::Place& place) { basic::fill(y.operand(), 3, 0x0123456789abcdef, place); });
                y.back();
                const uint64_t bits = 0x0123456789abcdef;
                bool           good = true;
                to.each([&](const Index& i) { good &= std::memcmp(to.at(i), &bits, size_t(ng::bytes_of(type))) == 0; });
                CHECK(good);
                CHECK(is_untouched_around(to, before));
            }
}

// ---- scans -------------------------------------------------------------------------------------------------------------

inline void check_scan(Tensor& x, Tensor& y, const basic::ScanAlong& along)
{
    const std::vector<char> before = y.memory;
    There a(x), b(y);
    with_workspace(basic::scan_workspace(x.dims.data(), along.rank, along.axis), [&](const basic::Place& place) { basic::scan(a.operand(), b.operand(), along, place); });
    b.back();
    const int64_t n = x.dims[size_t(along.axis)];
    Index         line = x.dims;
    line[size_t(along.axis)] = n > 0;
    bool good = true;
    Tensor(Dtype::u8, line).each([&](Index i) {
        Number sum = identity(x.type, along.how);
        for (int64_t k = 0; k < n; k++) {
            i[size_t(along.axis)] = along.flags & NG_REVERSE ? n - 1 - k : k;
            const Number last = sum;
            sum = folded(x.type, along.how, sum, number_at(x.type, x.at(i)));
            good &= same(x.type, number_at(x.type, y.at(i)), stored(x.type, along.flags & NG_EXCLUSIVE ? last : sum));
        }
    });
    CHECK(good);
    CHECK(is_untouched_around(y, before));
}

TEST_CASE("scan: every type, fold and flag, along short and long lines of any axis")
{
    const struct { Index dims; int axis; } cases[] = {{{0}, 0}, {{1}, 0}, {{33}, 0}, {{700}, 0}, {{3, 0, 2}, 2}, {{4, 70}, 1}, {{130, 40}, 0}, {{2, 37, 3}, 1}};
    for (const Dtype type : ALL_TYPES)
        for (const basic::Folding how : FOLDS)
            for (const uint32_t flags : {0, 1, 2, 3})
                for (const auto& c : cases) {
                    INFO(ng::name_of(type), " fold ", int(how), " flags ", flags, " axis ", c.axis, " of ", c.dims.size());
                    Tensor x(type, c.dims), y(type, c.dims);
                    fill_for(x, how, 4);
                    check_scan(x, y, {int(c.dims.size()), c.axis, how, flags});
                }
}

TEST_CASE("scan: lines of many chunks, with threads and with blocks, in any layout and in place")
{
    const Lie lies[] = {{}, {{1, 0}, 1, 2}};
    for (const Dtype type : {Dtype::f32, Dtype::i16, Dtype::u64, Dtype::f64})
        for (const basic::Folding how : FOLDS)
            for (const uint32_t flags : {0, 3})
                for (const Lie& lie : lies)
                    for (const Index& dims : {Index{2, 8193}, {9000, 2}, {600, 33}, {1, 12300}}) {
                        Tensor x(type, dims, lie), y(type, dims);
                        fill_for(x, how, 5);
                        check_scan(x, y, {2, dims[0] > dims[1] ? 0 : 1, how, flags});
                    }
    Tensor x(Dtype::f32, {3, 5000}), want(Dtype::f32, {3, 5000});
    fill(x, 6);
    check_scan(x, want, {2, 1, SUM, 0});
    There a(x);
    with_workspace(basic::scan_workspace(x.dims.data(), 2, 1), [&](const basic::Place& place) { basic::scan(a.operand(), a.operand(), {2, 1, SUM, 0}, place); });
    a.back();
    CHECK(x.memory == want.memory);
    if (!machine().is_fast()) return;
    Tensor wide(Dtype::i32, {1, 20000000}), sums(Dtype::i32, {1, 20000000});
    fill(wide, 7);
    check_scan(wide, sums, {2, 1, SUM, 0});
}

TEST_CASE("scan: NaN stays in minima and maxima")
{
    for (const basic::Folding how : {MIN, MAX})
        for (const int64_t n : {40, 5000}) {
            Tensor x(Dtype::f16, {n}), y(Dtype::f16, {n});
            fill(x, 8);
                        write<uint16_t>(x.at({17}), 0x7e00);
            check_scan(x, y, {1, 0, how, 0});
            CHECK(std::isnan(y.get({n - 1})));
        }
}

// ---- segments ----------------------------------------------------------------------------------------------------------

inline void check_segment(Tensor& x, Tensor& offsets, Tensor& y, basic::Folding how)
{
    const std::vector<char> before = y.memory;
    There a(x), o(offsets), b(y);
    const int rank = int(x.dims.size());
    with_workspace(basic::segment_workspace(x.dims.data(), rank), [&](const basic::Place& place) { basic::segment(a.operand(), o.operand(), b.operand(), rank, how, place); });
    b.back();
    bool good = true;
    y.each([&](const Index& i) {
        const int64_t n = x.dims[0], from = std::clamp<int64_t>(int64_t(offsets.get({i[0]})), 0, n), to = std::clamp<int64_t>(int64_t(offsets.get({i[0] + 1})), 0, n);
        Number        sum = identity(x.type, how);
        Index         at = i;
        for (at[0] = from; at[0] < to; at[0]++) sum = folded(x.type, how, sum, number_at(x.type, x.at(at)));
        good &= same(x.type, number_at(x.type, y.at(i)), stored(x.type, sum));
    });
    CHECK(good);
    CHECK(is_untouched_around(y, before));
}

// Offsets that cut n rows; some past both ends, some that go backwards.
inline Tensor offsets_of(int64_t n, int64_t segments, bool is_wild, const Lie& lie)
{
    Tensor               t(Dtype::i64, {segments + 1}, lie);
    std::mt19937         random(9);
    std::vector<int64_t> cuts;
    for (int64_t i = 0; i <= segments; i++) cuts.push_back(int64_t(random() % uint64_t(n + 1)));
    std::sort(cuts.begin(), cuts.end());
    cuts.front() = 0, cuts.back() = n;
    if (is_wild) cuts.front() = -5, cuts.back() = n + 100, std::swap(cuts[size_t(segments) / 2], cuts[size_t(segments) / 3]);
    for (int64_t i = 0; i <= segments; i++) write<int64_t>(t.at({i}), cuts[size_t(i)]);
    return t;
}

TEST_CASE("segment: every type and fold, short segments, empty ones and ones that hold whole chunks")
{
    for (const Dtype type : ALL_TYPES)
        for (const basic::Folding how : FOLDS)
            for (const Index& s : {Index{0, 3, 1}, {10, 1, 1}, {90, 20, 3}, {300, 2, 40}, {50, 200, 1}}) {
                INFO(ng::name_of(type), " fold ", int(how), " rows ", s[0], " segments ", s[1], " inner ", s[2]);
                Tensor x(type, {s[0], s[2]}), y(type, {s[1], s[2]}), offsets = offsets_of(s[0], s[1], s[0] == 90, {});
                check_segment(fill_for(x, how, 10), offsets, y, how);
            }
    for (const Dtype type : {Dtype::f32, Dtype::u16})
        for (const basic::Folding how : FOLDS)
            for (const Index& s : {Index{5000, 3, 1}, {4096, 1, 2}, {9001, 70, 3}, {6000, 2, 33}})
                for (const Lie& lie : {Lie{}, Lie{{1, 0}, 1, 2}}) {
                    Tensor x(type, {s[0], s[2]}, lie), y(type, {s[1], s[2]}, lie), offsets = offsets_of(s[0], s[1], s[1] == 70, {{}, 1, 2});
                    check_segment(fill_for(x, how, 11), offsets, y, how);
                }
}

// ---- sorts -------------------------------------------------------------------------------------------------------------

inline void check_argsort(Tensor& x, Tensor& y, int axis, uint32_t flags)
{
    const std::vector<char> before = y.memory;
    There a(x), b(y);
    const int rank = int(x.dims.size());
    with_workspace(basic::argsort_workspace(x.dims.data(), rank, axis, x.type), [&](const basic::Place& place) { basic::argsort(a.operand(), b.operand(), rank, axis, flags, place); });
    b.back();
    const int64_t n = x.dims[size_t(axis)];
    Index         line = x.dims;
    line[size_t(axis)] = n > 0;
    bool good = true;
    Tensor(Dtype::u8, line).each([&](Index i) {
        std::vector<Number>  values;
        std::vector<int64_t> order;
        for (int64_t k = 0; k < n; k++) i[size_t(axis)] = k, values.push_back(number_at(x.type, x.at(i))), order.push_back(k);
        std::stable_sort(order.begin(), order.end(), [&](int64_t p, int64_t q) {
            const Number u = values[size_t(p)], v = values[size_t(q)];
            if (u.real != u.real || v.real != v.real) return u.real == u.real;
            return flags & NG_REVERSE ? less(x.type, v, u) : less(x.type, u, v);
        });
        for (int64_t k = 0; k < n; k++) i[size_t(axis)] = k, good &= read<int64_t>(y.at(i)) == order[size_t(k)];
    });
    CHECK(good);
    CHECK(is_untouched_around(y, before));
}

// Any bits at all, with many equal ones, zeros of both signs and NaN among floats.
inline Tensor& fill_bits(Tensor& t, uint32_t seed)
{
    std::mt19937_64 random(seed);
    t.each([&](const Index& i) {
        uint64_t bits = random();
        if (random() % 4 == 0) bits = (random() % 2) << (8 * ng::bytes_of(t.type) - 1);
        if (random() % 4 == 0) bits &= 0xf0f0f0f0f0f0f0f0;
        if (ng::is_bool(t.type)) bits &= 1;
        std::memcpy(t.at(i), &bits, size_t(ng::bytes_of(t.type)));
    });
    return t;
}

TEST_CASE("argsort: every type, both ways, NaN last, short lines many together")
{
    const struct { Index dims; int axis; } cases[] = {{{0}, 0}, {{1}, 0}, {{2}, 0}, {{100}, 0}, {{5, 0}, 0}, {{70, 3}, 1}, {{33, 70}, 0}, {{2, 47, 3}, 1}};
    for (const Dtype type : ALL_TYPES)
        for (const uint32_t flags : {0, 2})
            for (const auto& c : cases) {
                INFO(ng::name_of(type), " flags ", flags);
                Tensor x(type, c.dims), y(Dtype::i64, c.dims);
                check_argsort(fill_bits(x, 12), y, c.axis, flags);
            }
    Tensor x(Dtype::f32, {2048}), y(Dtype::i64, {2048});
    check_argsort(fill_bits(x, 13), y, 0, 0);
}

TEST_CASE("argsort: long lines by digits, in any layout")
{
    for (const Dtype type : ALL_TYPES)
        for (const uint32_t flags : {0, 2}) {
            INFO(ng::name_of(type), " flags ", flags);
            Tensor x(type, {2049}), y(Dtype::i64, {2049});
            check_argsort(fill_bits(x, 14), y, 0, flags);
        }
    for (const Dtype type : {Dtype::f32, Dtype::u8, Dtype::f64})
        for (const Lie& lie : {Lie{}, Lie{{1, 0}, 2, 2}}) {
            Tensor x(type, {2, 4500}, lie), y(Dtype::i64, {2, 4500}, lie);
            check_argsort(fill_bits(x, 15), y, 1, 2);
        }
    if (!machine().is_fast()) return;
    for (const Dtype type : {Dtype::f32, Dtype::i64}) {
        Tensor x(type, {3000000}), y(Dtype::i64, {3000000});
        check_argsort(fill_bits(x, 16), y, 0, 0);
    }
}

// ---- put ---------------------------------------------------------------------------------------------------------------

struct PutCase {
    Index   x;
    int     axis;
    Index   indices;
    Lie     x_lie = {}, y_lie = {};
    int64_t distinct = 0;                // indices are among so many; 0: any, some out of range
};
inline void check_put(Dtype type, basic::Folding how, bool is_ordered, const PutCase& c, uint32_t seed)
{
    Index y_dims(c.x.begin(), c.x.begin() + c.axis);
    y_dims.insert(y_dims.end(), c.indices.begin(), c.indices.end());
    y_dims.insert(y_dims.end(), c.x.begin() + c.axis + 1, c.x.end());
    Tensor       x(type, c.x, c.x_lie), indices(Dtype::i64, c.indices), y(type, y_dims, c.y_lie);
    std::mt19937 random(seed);
    const int64_t size = c.x[size_t(c.axis)];
    indices.each([&](const Index& i) {
        const int64_t v = c.distinct ? int64_t(random() % uint64_t(c.distinct)) : int64_t(random() % uint64_t(size + 4)) - 2;
        write<int64_t>(indices.at(i), v);
    });
    fill_for(x, how, seed + 1), fill_for(y, how, seed + 2);
    Tensor want = x;
    Tensor(Dtype::u8, y_dims).each([&](const Index& i) {       // row-major: equal indices come in their order
        const Index   at(i.begin() + c.axis, i.begin() + c.axis + int64_t(c.indices.size()));
        const int64_t to = read<int64_t>(indices.at(at));
        if (to < 0 || to >= size) return;
        Index k(i.begin(), i.begin() + c.axis);
        k.push_back(to), k.insert(k.end(), i.begin() + c.axis + int64_t(c.indices.size()), i.end());
        const Number v = stored(type, folded(type, how, number_at(type, want.at(k)), number_at(type, y.at(i))));
        if (ng::is_float(type)) set_real(type, want.at(k), v.real);
        else std::memcpy(want.at(k), &v.whole, size_t(ng::bytes_of(type)));
    });
    There a(x), o(indices), b(y);
    const basic::PutExtents extents = {int(c.x.size()), c.axis, int(c.indices.size()), is_ordered};
    with_workspace(basic::put_workspace(a.operand(), o.operand(), extents, how),
                   [&](const basic::Place& place) { basic::put(a.operand(), o.operand(), b.operand(), extents, how, place); });
    a.back();
    CHECK(x.memory == want.memory);
}

TEST_CASE("put: every type and fold, indices of any rank, equal ones in their order, those out of range nowhere")
{
    const PutCase cases[] = {{{7}, 0, {20}}, {{7}, 0, {}}, {{0}, 0, {3}}, {{5}, 0, {0}}, {{6, 5}, 0, {13}}, {{3, 9, 4}, 1, {2, 7}, {{2, 0, 1}, 3, 1}, {{}, 5, 2}},
                             {{2, 40}, 1, {3, 2, 5}}, {{200000}, 0, {40}}, {{300}, 0, {64}, {}, {}, 2}};
    for (const Dtype type : ALL_TYPES)
        for (const basic::Folding how : FOLDS)
            for (const PutCase& c : cases)
                for (const bool is_ordered : {true, false}) {
                    if (c.x[0] == 200000 && type != Dtype::f16 && type != Dtype::i32) continue;
                    INFO(ng::name_of(type), " fold ", int(how), " into ", c.x[0], " axis ", c.axis);
                    check_put(type, how, is_ordered, c, 17);
                }
}

TEST_CASE("put: many indices, sorted by digits")
{
    for (const Dtype type : {Dtype::f32, Dtype::e4m3, Dtype::i64})
        for (const basic::Folding how : FOLDS) {
            if (type == Dtype::f32 && how == PROD) continue;     // of so many equal ones it leaves the type
            check_put(type, how, true, {{900}, 0, {3000}}, 18);
            check_put(type, how, true, {{2, 70000}, 1, {50, 61}}, 19);
            check_put(type, how, false, {{2, 70000}, 1, {50, 61}}, 20);
        }
    if (!machine().is_fast()) return;
    check_put(Dtype::bf16, SUM, true, {{100000, 3}, 0, {400000}}, 21);
    check_put(Dtype::f32, SUM, false, {{100000, 3}, 0, {400000}}, 22);
    check_put(Dtype::f32, LAST, true, {{100000, 3}, 0, {400000}}, 23);
}

TEST_CASE("put: long runs of equal indices, by chunks where nothing is rounded between")
{
    for (const Dtype type : ALL_TYPES)
        for (const basic::Folding how : FOLDS) {
            if (how == PROD && ng::is_float(type)) continue;
            INFO(ng::name_of(type), " fold ", int(how));
            check_put(type, how, true, {{9}, 0, {3000}, {}, {}, 3}, 24);
            check_put(type, how, true, {{2, 5, 3}, 1, {40, 31}, {{2, 0, 1}, 3, 1}, {{}, 5, 2}, 1}, 25);
        }
    check_put(Dtype::f16, LAST, true, {{150000}, 0, {3000}, {}, {}, 2}, 26);
}

// All codes of a type, each once in x and in what is asked of it.
template <class Body>
inline void with_codes(Dtype type, Body&& body)
{
    Tensor     x(type, {type == Dtype::f16 ? 65536 : 256}), y(type, x.dims);
    const auto bytes = size_t(ng::bytes_of(type));
    for (int64_t i = 0; i < x.dims[0]; i++) std::memcpy(x.at({i}), &i, bytes);
    There a(x), b(y);
    body(a.operand(), b.operand(), x.dims[0]);
    b.back();
    INFO(ng::name_of(type));
    CHECK(x.memory == y.memory);
}

TEST_CASE("the last of several is moved bit by bit, infinities and every NaN")
{
    for (const Dtype type : {Dtype::e5m2, Dtype::e4m3, Dtype::f16}) {
        with_codes(type, [](const basic::Operand& x, const basic::Operand& y, int64_t) {
            with_workspace(basic::scan_workspace(x.dims, 1, 0), [&](const basic::Place& place) { basic::scan(x, y, {1, 0, LAST, 0}, place); });
        });
        with_codes(type, [](const basic::Operand& x, const basic::Operand& y, int64_t count) {
            Tensor offsets(Dtype::i64, {count + 1});
            for (int64_t i = 0; i <= count; i++) write<int64_t>(offsets.at({i}), i);
            There at(offsets);
            with_workspace(basic::segment_workspace(x.dims, 1), [&](const basic::Place& place) { basic::segment(x, at.operand(), y, 1, LAST, place); });
        });
    }
    // Few positions among so many places are sorted.
    Tensor x(Dtype::e5m2, {200000}), y(Dtype::e5m2, {256}), indices(Dtype::i64, {256});
    for (int64_t i = 0; i < 256; i++) std::memcpy(y.at({i}), &i, 1), write<int64_t>(indices.at({i}), 700 * i);
    There a(x), o(indices), b(y);
    with_workspace(basic::put_workspace(a.operand(), o.operand(), {1, 0, 1, true}, LAST),
                   [&](const basic::Place& place) { basic::put(a.operand(), o.operand(), b.operand(), {1, 0, 1, true}, LAST, place); });
    a.back();
    int64_t wrong = 0;
    for (int64_t i = 0; i < 256; i++) wrong += std::memcmp(x.at({700 * i}), y.at({i}), 1) != 0;
    CHECK(wrong == 0);
}

TEST_CASE("workspaces grow with every extent")
{
    const int64_t sizes[] = {0, 1, 32, 33, 64, 500, 2048, 2049, 4096, 4097, 100000, 1 << 20, (int64_t(1) << 26) + 1, int64_t(1) << 33};
    for (size_t k = 1; k < std::size(sizes); k++)
        for (const int64_t other : {0, 1, 40, 5000}) {
            const int64_t small[] = {sizes[k - 1], other}, large[] = {sizes[k], other};
            for (const int axis : {0, 1}) {
                CHECK(basic::scan_workspace(small, 2, axis) <= basic::scan_workspace(large, 2, axis));
                for (const Dtype t : {Dtype::u8, Dtype::f16, Dtype::f32, Dtype::f64})
                    CHECK(basic::argsort_workspace(small, 2, axis, t) <= basic::argsort_workspace(large, 2, axis, t));
            }
            CHECK(basic::segment_workspace(small, 2) <= basic::segment_workspace(large, 2));
            const basic::Operand x[] = {{nullptr, Dtype::f32, small, nullptr}, {nullptr, Dtype::f32, large, nullptr}};
            const int64_t        count[] = {other};
            const basic::Operand indices = {nullptr, Dtype::i64, count, nullptr};
            for (const basic::Folding how : FOLDS) {
                CHECK(basic::put_workspace(x[0], indices, {2, 0, 1, true}, how) <= basic::put_workspace(x[1], indices, {2, 0, 1, true}, how));
                CHECK(basic::put_workspace({nullptr, Dtype::f32, count, nullptr}, x[0], {1, 0, 1, true}, how) <=
                      basic::put_workspace({nullptr, Dtype::f32, count, nullptr}, x[1], {1, 0, 1, true}, how));
            }
            const auto matmul = [&](int64_t m, int64_t n, int64_t depth) { return basic::matmul_workspace({2, m, n, depth, Dtype::f32}); };
            CHECK(matmul(sizes[k - 1], other, 1000) <= matmul(sizes[k], other, 1000));
            CHECK(matmul(other, sizes[k - 1], 1000) <= matmul(other, sizes[k], 1000));
            CHECK(matmul(other, 70, sizes[k - 1]) <= matmul(other, 70, sizes[k]));
        }
}

}  // namespace basic_check
