// Polynomials of lengths keep to the laws of arithmetic, and index forms reach the very elements that movement names.
#include "jit/extent.h"
#include "jit/forms.h"

#include <doctest/doctest.h>

#include <functional>
#include <random>

using namespace ng;

namespace {

const Extent n = Extent::variable(0), m = Extent::variable(1), k = Extent::variable(2);

ng_status status_of(const std::function<void()>& body)
{
    try {
        body();
    } catch (const Error& e) {
        CHECK_FALSE(e.text.empty());
        return e.status;
    }
    return NG_OK;
}

// A polynomial of n, m, k of degree 3 at most, and the same as a function.
struct Poly {
    std::vector<Term> terms;
    Extent  extent() const { return Extent::of_terms(terms); }
    int64_t at(std::span<const int64_t> v) const
    {
        int64_t sum = 0;
        for (const Term& t : terms) {
            int64_t p = t.coefficient;
            for (const int32_t i : t.variables) p *= v[size_t(i)];
            sum += p;
        }
        return sum;
    }
};
Poly any_poly(std::mt19937& dice, int most = 4)
{
    Poly p;
    for (unsigned i = 0, count = dice() % unsigned(most + 1); i < count; i++) {
        Term t{int64_t(dice() % 9) - 4, {}};
        for (unsigned d = dice() % 4; d > 0; d--) t.variables.push_back(int32_t(dice() % 3));
        p.terms.push_back(t);
    }
    return p;
}

}  // namespace

TEST_CASE("extent: constants and variables say what they are")
{
    CHECK(Extent().is(0));
    CHECK(Extent(7).is_constant());
    CHECK(Extent(7).constant() == 7);
    CHECK_FALSE(n.is_constant());
    CHECK_FALSE(n.is(0));
    CHECK(n.as_dim() == -1);
    CHECK(k.as_dim() == -3);
    CHECK(Extent(-5).as_dim() == -5);
    CHECK((n + Extent(1)).as_dim() == NG_REST);
    CHECK((n * n).as_dim() == NG_REST);
    CHECK((n * Extent(2)).as_dim() == NG_REST);
    CHECK(Extent::variable(Extent::HIDDEN).as_dim() == NG_REST);
    CHECK(Extent::variable(Extent::HIDDEN - 1).as_dim() == -int64_t(Extent::HIDDEN));
    CHECK((n * k + Extent(3)).highest_variable() == 2);
    CHECK((n * Extent::variable(Extent::HIDDEN + 4)).highest_variable() == 0);
    CHECK(Extent(9).highest_variable() == -1);
    CHECK(Extent(0).terms().empty());
    CHECK(Extent(3).terms() == std::vector<Term>{{3, {}}});
}

TEST_CASE("extent: one canonical form, whatever the order, repeats and zeros that it was made of")
{
    CHECK(Extent::of_terms({}).is(0));
    CHECK(Extent::of_terms({{0, {0, 1}}}).is(0));
    CHECK(Extent::of_terms({{2, {}}, {3, {}}}).is(5));
    CHECK(Extent::of_terms({{1, {1, 0}}, {0, {2}}, {1, {0, 1}}}) == n * m * Extent(2));
    CHECK(Extent::of_terms({{1, {0}}, {-1, {0}}, {4, {}}}).is(4));
    CHECK((n + m) == (m + n));
    CHECK((n + m).hash() == (m + n).hash());
    CHECK((n - n).is(0));
    CHECK((n * Extent(0)).is(0));
    CHECK((n + m) * (n - m) == n * n - m * m);
    CHECK_FALSE(n == m);
    CHECK_FALSE(n == Extent(-1));
}

TEST_CASE("extent: texts are as the header says them")
{
    CHECK(Extent(128).text() == "128");
    CHECK(n.text() == "-1");
    CHECK((n * Extent(2) + Extent(1)).text() == "2*(-1)+1");
    CHECK((n * m).text() == "-1*-2");
    CHECK((n * Extent(-1) - Extent(3)).text() == "-1*(-1)-3");
    CHECK(text_of(Extents{64, n}) == "[64, -1]");
    CHECK(text_of(Extents{}) == "[]");
}

TEST_CASE("extent: sums, differences and products have the values of their parts, and equal values have equal hashes")
{
    std::mt19937 dice(1);
    for (int round = 0; round < 3000; round++) {
        const Poly p = any_poly(dice), q = any_poly(dice);
        const Extent a = p.extent(), b = q.extent();
        const int64_t v[] = {int64_t(dice() % 7), int64_t(dice() % 7), int64_t(dice() % 7)};
        REQUIRE(a.value(v) == p.at(v));
        REQUIRE((a + b).value(v) == p.at(v) + q.at(v));
        REQUIRE((a - b).value(v) == p.at(v) - q.at(v));
        REQUIRE((a * b).value(v) == p.at(v) * q.at(v));
        REQUIRE(a * b == b * a);
        REQUIRE((a * b).hash() == (b * a).hash());
        REQUIRE((a + b) - b == a);
        REQUIRE(Extent::of_terms((a * b).terms()) == a * b);
    }
}

TEST_CASE("extent: division gives the exact quotient or nothing")
{
    std::mt19937 dice(2);
    for (int round = 0; round < 3000; round++) {
        const Extent a = any_poly(dice).extent(), b = any_poly(dice, 3).extent();
        const auto q = (a * b).divided_by(b);
        if (b.is(0)) {
            REQUIRE_FALSE(q);
            continue;
        }
        REQUIRE(q);
        REQUIRE(*q == a);
        const auto odd = (a * b + Extent(1)).divided_by(b);
        if (odd) REQUIRE(*odd * b == a * b + Extent(1));
    }
    CHECK(Extent(0).divided_by(n)->is(0));
    CHECK_FALSE(Extent(1).divided_by(0));
    CHECK_FALSE(Extent(7).divided_by(2));
    CHECK(Extent(-8).divided_by(2)->is(-4));
    CHECK_FALSE(n.divided_by(m));
    CHECK_FALSE(n.divided_by(2));
    CHECK_FALSE(Extent(6).divided_by(n));
    CHECK_FALSE((n + Extent(1)).divided_by(n));
}

TEST_CASE("extent: what leaves 64 bits is NG_E_LIMIT, never a wrong number and never a trap")
{
    const Extent greatest(INT64_MAX), least(INT64_MIN);
    CHECK(status_of([&] { (void)(greatest + Extent(1)); }) == NG_E_LIMIT);
    CHECK(status_of([&] { (void)(least - Extent(1)); }) == NG_E_LIMIT);
    CHECK(status_of([&] { (void)(greatest * Extent(2)); }) == NG_E_LIMIT);
    CHECK(status_of([&] { (void)(n * greatest * Extent(2)); }) == NG_E_LIMIT);
    CHECK(status_of([&] { (void)(n * greatest + n); }) == NG_E_LIMIT);
    CHECK(status_of([&] { (void)(least.divided_by(-1)); }) == NG_E_LIMIT);
    CHECK(status_of([&] { (void)((n * least + m).divided_by(-1)); }) == NG_E_LIMIT);
    CHECK(status_of([&] { (void)((n * m * least).divided_by(m * Extent(-1))); }) == NG_E_LIMIT);
    CHECK(status_of([&] { (void)product(Extents{int64_t(1) << 32, int64_t(1) << 31}); }) == NG_E_LIMIT);
    const int64_t big[] = {int64_t(1) << 32, int64_t(1) << 31, 1};
    CHECK(status_of([&] { (void)(n * m).value(big); }) == NG_E_LIMIT);
    CHECK(status_of([&] { (void)(n * greatest + Extent(5)).value(std::vector<int64_t>{1}); }) == NG_E_LIMIT);
    CHECK((n * m).value(std::vector<int64_t>{int64_t(1) << 32, (int64_t(1) << 31) - 1}) > 0);
}

TEST_CASE("extent: a product of more than 4096 terms is refused before it is made")
{
    Extent wide = 0;
    for (int32_t v = 0; v < 4000; v++) wide = wide + Extent::variable(v);
    CHECK(status_of([&] { (void)(wide * wide); }) == NG_E_LIMIT);
    CHECK(status_of([&] { (void)(wide * Extent(3)); }) == NG_OK);
}

TEST_CASE("extent: products, strides and shapes of lists")
{
    CHECK(product(Extents{}).is(1));
    CHECK(product(Extents{2, n, 3}) == n * Extent(6));
    CHECK(product(Extents{n, 0}).is(0));
    CHECK(dense_strides(Extents{2, 3, 4}) == Extents{12, 4, 1});
    CHECK(dense_strides(Extents{2, n, m}) == Extents{n * m, m, 1});
    CHECK(dense_strides(Extents{}).empty());
    const ShapeRef a(new Shape({2, n})), b(new Shape({2, n})), c(new Shape({n, 2})), none(new Shape({}));
    CHECK(same(a, a));
    CHECK(same(a, b));
    CHECK_FALSE(same(a, c));
    CHECK_FALSE(same(a, none));
}

// ---- forms -------------------------------------------------------------------------------------------

namespace {

using Index = std::vector<int64_t>;
const int64_t LENGTHS[] = {4, 3, 2};         // of n, m, k where forms are evaluated

Index values(const Extents& dims)
{
    Index out;
    for (const Extent& e : dims) out.push_back(e.value(LENGTHS));
    return out;
}
int64_t value(const IndexForm& f, const Index& point)
{
    int64_t v = f.offset.value(LENGTHS);
    for (const auto& [axis, c] : f.terms) v += c.value(LENGTHS) * point[size_t(axis)];
    return v;
}
void each_index(const Index& dims, const std::function<void(const Index&)>& visit)
{
    int64_t count = 1;
    for (const int64_t d : dims) count *= d;
    Index i(dims.size(), 0);
    for (int64_t at = 0; at < count; at++) {
        visit(i);
        for (size_t a = dims.size(); a-- > 0 && ++i[a] == dims[a];) i[a] = 0;
    }
}
int64_t flat(const Index& i, const Index& dims)
{
    int64_t at = 0;
    for (size_t a = 0; a < dims.size(); a++) at = at * dims[a] + i[a];
    return at;
}
Index point_of(const IndexForms& forms, const Index& axes_at)
{
    Index out;
    for (const IndexForm& f : forms) out.push_back(value(f, axes_at));
    return out;
}
std::vector<KernelAxis> axes_of(const Extents& dims)
{
    std::vector<KernelAxis> axes;
    for (const Extent& d : dims)
        if (!d.is(1)) axes.push_back({d, false});
    return axes;
}
Index sizes(const std::vector<KernelAxis>& axes)
{
    Index out;
    for (const KernelAxis& a : axes) out.push_back(a.extent.value(LENGTHS));
    return out;
}
// Each dim's own axis; of extent 1: zero.
IndexForms own_axes(const Extents& dims)
{
    IndexForms forms(dims.size());
    int32_t axis = 0;
    for (size_t d = 0; d < dims.size(); d++)
        if (!dims[d].is(1)) forms[d].terms = {{axis++, 1}};
    return forms;
}

NodeRef param(Graph& g, Extents dims)
{
    Layout l;
    l.dims = dims, l.strides = dense_strides(dims);
    return build::param(g, 0, l);
}

// The forms of a reshape's operand, after as many splits as it asks for; splits says how many.
std::optional<IndexForms> reshape_forms(const Extents& to, const Extents& from, std::vector<KernelAxis>& axes, int& splits)
{
    IndexForms forms = own_axes(to);
    for (splits = 0; splits < 8; splits++) {
        AxisSplit split;
        if (auto below = through_reshape(to, from, forms, axes, split)) return below;
        if (split.axis < 0) return std::nullopt;
        ng::apply(split, forms), ng::apply(split, axes);
    }
    return std::nullopt;
}

void check_reshape(const Extents& to, const Extents& from, bool must)
{
    std::vector<KernelAxis> axes = axes_of(to);
    int splits = 0;
    const auto forms = reshape_forms(to, from, axes, splits);
    INFO(text_of(from) << " seen as " << text_of(to) << ", " << splits << " splits");
    REQUIRE((forms.has_value() || !must));
    if (!forms) return;
    // The axes, cut or not, number the elements of `to` row-major.
    const Index sides = sizes(axes), from_dims = values(from);
    bool good = true;
    each_index(sides, [&](const Index& i) {
        const Index at = point_of(*forms, i);
        for (size_t d = 0; d < at.size(); d++) good = good && at[d] >= 0 && at[d] < from_dims[d];
        good = good && flat(at, from_dims) == flat(i, sides);
    });
    CHECK(good);
}

}  // namespace

TEST_CASE("forms: sums and multiples, with terms that vanish")
{
    const IndexForm a{3, {{0, 2}, {2, n}}}, b{n, {{0, -2}, {1, 5}}};
    const IndexForm s = sum(a, b), t = scaled(a, 4);
    each_index({3, 3, 3}, [&](const Index& i) {
        CHECK(value(s, i) == value(a, i) + value(b, i));
        CHECK(value(t, i) == 4 * value(a, i));
    });
    CHECK(s.terms.size() == 2);
    CHECK(scaled(a, 0) == IndexForm());
}

TEST_CASE("forms: through broadcast, permute and slice to the elements that Python names")
{
    Graph g;
    const NodeRef x = param(g, {4, 1, 3});
    const auto check = [&](const NodeRef& y, const std::function<Index(const Index&)>& want) {
        const IndexForms forms = through(*y, own_axes(y->dims()));
        const std::vector<KernelAxis> axes = axes_of(y->dims());
        each_index(values(y->dims()), [&](const Index& i) {
            Index point;
            for (size_t d = 0; d < i.size(); d++)
                if (!y->dims()[d].is(1)) point.push_back(i[d]);
            CHECK(point_of(forms, point) == want(i));
        });
    };
    check(build::broadcast(g, x, Extents{2, 4, 5, 3}), [](const Index& i) { return Index{i[1], 0, i[3]}; });
    const int32_t turned[] = {2, -1, 0, 1};
    check(build::permute(g, x, turned), [](const Index& i) { return Index{i[2], i[3], i[0]}; });
    check(build::slice(g, x, 0, 1, NG_END, 2), [](const Index& i) { return Index{1 + 2 * i[0], i[1], i[2]}; });
    check(build::slice(g, x, 2, NG_END, NG_END, -1), [](const Index& i) { return Index{i[0], i[1], 2 - i[2]}; });
    check(build::slice(g, x, 0, -2, -1, 1), [](const Index& i) { return Index{2, 0, i[2]}; });
}

TEST_CASE("forms: every reshape of known extents is affine after splits, and reaches each element once")
{
    const std::vector<Extents> of_24 = {{24}, {4, 6}, {6, 4}, {2, 3, 4}, {4, 3, 2}, {8, 3}, {3, 8}, {1, 24, 1}, {2, 1, 12}, {2, 2, 2, 3}, {12, 2}, {3, 2, 4}};
    for (const Extents& to : of_24)
        for (const Extents& from : of_24) check_reshape(to, from, false);
    // Extents that divide each other need no luck.
    for (const Extents& from : {Extents{24}, Extents{4, 6}, Extents{2, 3, 4}, Extents{8, 3}}) check_reshape({24}, from, true);
    for (const Extents& to : of_24) check_reshape(to, {24}, true);
    check_reshape({5, 7}, {7, 5}, false);
    check_reshape({1, 1}, {}, true);
    check_reshape({}, {1}, true);
    check_reshape({0, 3}, {3, 0}, false);
}

TEST_CASE("forms: reshapes of unknown lengths, split and merged")
{
    check_reshape({n, m}, {n * m}, true);
    check_reshape({n * m}, {n, m}, true);
    check_reshape({n * m * k}, {n, m, k}, true);
    check_reshape({n, m, k}, {n, m * k}, true);
    check_reshape({n, m * k}, {n * m, k}, true);
    check_reshape({n * m, k}, {n, m * k}, true);
    check_reshape({n, Extent(6)}, {n, 2, 3}, true);
    check_reshape({n * Extent(6)}, {n, 2, 3}, true);
    check_reshape({n, 2, 3}, {n * Extent(6)}, true);
    check_reshape({n, m}, {m, n}, false);
}

TEST_CASE("forms: dims are laid over neighbouring axes, or the split that would do is named")
{
    const std::vector<KernelAxis> axes = axes_of({2, 3, 4, n});
    const int32_t every[] = {0, 1, 2, 3}, some[] = {0, 2};
    AxisSplit split;
    for (const Extents& dims : {Extents{2, 3, 4, n}, Extents{6, 4, n}, Extents{2, 12, n}, Extents{24, n}, Extents{1, 24, 1, n}, Extents{6, n * Extent(4)}, Extents{n * Extent(24)}}) {
        const auto forms = laid_over(dims, axes, every, split);
        INFO(text_of(dims));
        REQUIRE(forms);
        const Index sides = sizes(axes), to = values(dims);
        each_index(sides, [&](const Index& i) { CHECK(flat(point_of(*forms, i), to) == flat(i, sides)); });
    }
    CHECK(laid_over({2, 4}, axes, some, split));
    CHECK_FALSE(laid_over({2, 3}, axes, some, split));
    CHECK_FALSE(laid_over({2, 3, 4}, axes, every, split));
    CHECK_FALSE(laid_over({2, 3, 4, n, 2}, axes, every, split));
    const std::vector<KernelAxis> one = axes_of({24});
    const int32_t first[] = {0};
    split = {};
    CHECK_FALSE(laid_over({4, 6}, one, first, split));
    CHECK(split.axis == 0);
    CHECK(split.inner == Extent(6));
    const std::vector<KernelAxis> none = axes_of({0, 5});
    const int32_t both[] = {0, 1};
    CHECK(laid_over({0, 5}, none, both, split));
}

TEST_CASE("forms: a split axis is its two parts, for forms and for axes")
{
    std::vector<KernelAxis> axes = {{5, false}, {12, true}, {2, false}};
    IndexForms forms = {{1, {{0, 3}, {1, 7}, {2, 11}}}};
    const IndexForms before = forms;
    const AxisSplit split{1, 4};
    ng::apply(split, forms), ng::apply(split, axes);
    REQUIRE(axes.size() == 4);
    CHECK(axes[1].extent.is(3));
    CHECK(axes[2].extent.is(4));
    CHECK((axes[1].reduced && axes[2].reduced && !axes[3].reduced));
    each_index({5, 3, 4, 2}, [&](const Index& i) { CHECK(value(forms[0], i) == value(before[0], {i[0], i[1] * 4 + i[2], i[3]})); });
}

TEST_CASE("forms: an access is offset and strides of the view that the forms walk over")
{
    const View view{0, Dtype::f32, 100, {4, 6}, {-20, 3}};
    const IndexForms forms = {{3, {{0, -1}}}, {1, {{0, 1}, {2, 2}}}};
    const Access a = access_of(view, forms, 3);
    each_index({4, 2, 2}, [&](const Index& i) {
        int64_t want = 100, have = a.offset.value(LENGTHS);
        for (size_t d = 0; d < 2; d++) want += view.strides[d].constant() * value(forms[d], i);
        for (size_t x = 0; x < 3; x++) have += a.strides[x].value(LENGTHS) * i[x];
        CHECK(have == want);
    });
}

TEST_CASE("forms: a view through movement addresses the very elements, or says that strides cannot")
{
    Graph g;
    const NodeRef x = param(g, {4, 6});
    const View dense{0, Dtype::f32, 0, {4, 6}, {6, 1}}, turned{0, Dtype::f32, 50, {4, 6}, {1, 4}}, back{0, Dtype::f32, 23, {4, 6}, {-6, -1}};
    const auto address = [](const View& v, const Index& i) {
        int64_t at = v.offset.value(LENGTHS);
        for (size_t d = 0; d < i.size(); d++) at += v.strides[d].value(LENGTHS) * i[d];
        return at;
    };
    const int32_t swap[] = {1, -1, 0};
    const NodeRef moved[] = {build::reshape(g, x, {2, 2, 6}), build::reshape(g, x, {4, 3, 2}), build::reshape(g, x, {24}), build::permute(g, x, swap),
                             build::slice(g, x, 1, 5, 0, -2), build::slice(g, x, 0, 1, 3, 1), build::reshape(g, x, {8, 3}), build::reshape(g, x, {1, 4, 1, 6})};
    for (const View& v : {dense, turned, back})
        for (const NodeRef& y : moved) {
            const auto seen = through_view(*y, v);
            INFO(text(describe(*y), " by ng_", name_of(y->op), " of strides ", text_of(v.strides)));
            const bool can = y->op != Op::reshape || v.strides != turned.strides || y->dims() != Extents{24};
            if (v.strides != turned.strides) REQUIRE(seen);
            if (!can) CHECK_FALSE(seen);
            if (!seen) continue;
            const IndexForms forms = through(*y, own_axes(y->dims()));
            each_index(values(y->dims()), [&](const Index& i) {
                Index from;
                if (y->op == Op::reshape) {
                    const int64_t at = flat(i, values(y->dims()));
                    from = {at / 6, at % 6};
                } else {
                    Index point;
                    for (size_t d = 0; d < i.size(); d++)
                        if (!y->dims()[d].is(1)) point.push_back(i[d]);
                    from = point_of(forms, point);
                }
                CHECK(address(*seen, i) == address(v, from));
            });
        }
    CHECK(reshaped({2, 2, 6}, turned));
    CHECK_FALSE(reshaped({8, 3}, turned));
    const View unknown{0, Dtype::f32, 0, {n, m}, {m, 1}};
    CHECK(reshaped({n * m}, unknown));
    CHECK_FALSE(reshaped({m * n}, View{0, Dtype::f32, 0, {n, m}, {1, n}}));
}
