// Hopper's products as this build's images have them, on the device of this machine: every instance against sums of doubles.
//
//   gemm_gpu_test                                    all cases; without a driver, such a device or images they are skipped, and counted so
//   NG_TEST_SMALL=1 compute-sanitizer gemm_gpu_test  a few small problems
#define DOCTEST_CONFIG_IMPLEMENT
#include "lib/backend/cuda/epilogue.h"
#include "lib/backend/cuda/nvrtc.h"
#include "tests/backend/gemm_epilogues.h"
#include "tests/backend/gemm_machine.h"
#include "tests/backend/plan_of_text.h"
#include "tests/backend/product_check.h"

#include <set>
#include <tuple>

REGISTER_EXCEPTION_TRANSLATOR(const ng::Error& error) { return error.text.c_str(); }

namespace ng::gemm_check {
namespace {

using namespace cuda;
using product_check::get;
namespace sm90 = gemm::sm90;
constexpr gemm::Image IMAGES[] = {gemm::Image::Sm90Half, gemm::Image::Sm90Byte, gemm::Image::Sm90Wide};

struct Device : GemmMachine {
    explicit Device(const Driver& driver) : GemmMachine(driver, IMAGES) {}
    // With an epilogue: by what the text's instance was compiled to.
    void run(const sm90::Form& form, const sm90::Choice& choice, void* workspace, uint64_t bytes, const test::FinisherCode* text = nullptr) const
    {
        with_place(workspace, bytes, [&](const gemm::Place& place) { sm90::run_as(form, facts, choice, text ? &text->finisher : nullptr, place); }, text);
    }
};

Device* device = nullptr;

// Bytes there, poisoned, with poison behind them.
class Bytes {
  public:
    explicit Bytes(size_t bytes) : bytes_(bytes), data_(device->gpu.take(bytes + GUARD)) { poison(); }
    ~Bytes() { device->gpu.give(data_); }
    Bytes(const Bytes&) = delete;
    Bytes& operator=(const Bytes&) = delete;
    void* data() const { return data_; }
    void  poison() const { device->gpu.fill(data_, 0xff, bytes_ + GUARD); }
    char* byte(int64_t i) const { return static_cast<char*>(data_) + i; }
    void* put(const std::vector<char>& from, int64_t at = 0) const { return device->gpu.put(byte(at), from.data(), from.size()), byte(at); }
    std::vector<char> get() const                // and what stands behind
    {
        std::vector<char> r(bytes_ + GUARD);
        device->gpu.get(r.data(), data_, r.size());
        return r;
    }
    bool is_intact() const
    {
        const std::vector<char> all = get();
        return std::all_of(all.end() - GUARD, all.end(), [](char c) { return c == char(0xff); });
    }

  private:
    static constexpr size_t GUARD = 512;
    size_t bytes_;
    void*  data_;
};

constexpr Extents EXTENTS[] = {{1, 1, 1, 1}, {129, 67, 93, 1}, {64, 200, 1000, 1}, {7, 300, 31, 4}, {257, 136, 72, 2}, {300, 530, 264, 1}};

// A problem's operands there, the sums, and the sums of absolute values.
struct Setting {
    gemm::Problem       problem;
    std::vector<double> sums, sizes;
    Matrix              a, b;
    std::unique_ptr<Bytes> a_there, b_there, c_there, bias, residual;
    std::optional<EpilogueForm> epilogue;
    int64_t             parts = 0, before;   // parts: of each fold; before: bytes ahead of operands of 16 bits, as addresses may lie
    std::unique_ptr<Bytes> parts_there;

    Setting(const Extents& e, const Lying& lying, const Types& t, Dtype c, bool with_epilogue = false, Folds folds = Folds::None) : problem(problem_of(e, lying, t.a, t.b, c)), before(bytes_of(t.a) == 2 ? lying.gap % 8 * 2 : 0)
    {
        gemm::Problem& p = problem;
        a = random_matrix(t.a, p.a_batch * p.batches, 1), b = random_matrix(t.b, p.b_batch * p.batches, 2);
        a_there = std::make_unique<Bytes>(a.bytes.size() + size_t(before)), b_there = std::make_unique<Bytes>(b.bytes.size() + size_t(before));
        c_there = std::make_unique<Bytes>(size_t(p.c_batch * p.batches * bytes_of(c)));
        settle();
        const Matrix beside = random_matrix(Dtype::f32, p.n, 3), behind = random_matrix(Dtype::f16, p.batches * p.m * p.n, 4);
        if (!with_epilogue) return;
        epilogue = epilogue_of(t, c, e.batches, folds);
        bias = std::make_unique<Bytes>(beside.bytes.size()), residual = std::make_unique<Bytes>(behind.bytes.size());
        bias->put(beside.bytes), residual->put(behind.bytes);
        add_epilogue(p, *epilogue, bias->data(), residual->data());
        for (size_t i = 0; i < sums.size(); i++) sums[i] = std::max(sums[i] / 2 + beside.values[i % size_t(p.n)], 0.0) + behind.values[i], sizes[i] += 3;
    }
    bool    is_over_columns() const { return epilogue->folds()->is_over_columns; }
    int64_t part_count() const { return problem.batches * (is_over_columns() ? problem.m : problem.n); }
    // Where parts of folds go, as this instance cuts them.
    void place_parts(const gemm::Finisher& finisher)
    {
        gemm::Problem& p = problem;
        parts = gemm::parts_of(finisher, is_over_columns() ? p.n : p.m);
        const int64_t each = parts * part_count() * 4;
        parts_there = std::make_unique<Bytes>(size_t(each * (p.epilogue.count - p.epilogue.loads)));
        for (int i = p.epilogue.loads; i < p.epilogue.count; i++) {
            kernels::EpilogueTensor& t = p.epilogue.tensor[i];
            t.data = static_cast<char*>(parts_there->data()) + (i - p.epilogue.loads) * each;
            t.row = is_over_columns() ? 1 : part_count(), t.column = is_over_columns() ? part_count() : 1, t.batch = is_over_columns() ? p.m : p.n;
        }
    }
    // The operands' values are what they are now.
    void settle()
    {
        gemm::Problem& p = problem;
        p.a = a_there->put(a.bytes, before), p.b = b_there->put(b.bytes, before), p.c = c_there->data();
        sums.assign(size_t(p.batches * p.m * p.n), 0), sizes = sums;
        for (int64_t i = 0; i < p.batches; i++)
            for (int64_t row = 0; row < p.m; row++)
                for (int64_t depth = 0; depth < p.k; depth++) {
                    const double x = a.values[size_t(i * p.a_batch + row * p.a_row + depth * p.a_depth)];
                    for (int64_t column = 0; column < p.n; column++) {
                        const size_t at = size_t((i * p.m + row) * p.n + column);
                        const double y = x * b.values[size_t(i * p.b_batch + depth * p.b_depth + column * p.b_column)];
                        sums[at] += y, sizes[at] += std::abs(y);
                    }
                }
    }
};

// c against the sums; what lies between and behind its rows is as it was.
void check_result(const Setting& s, const std::vector<char>& c)
{
    const gemm::Problem& p = s.problem;
    const int64_t        bytes = bytes_of(p.c_type);
    const double         error = error_of(s.problem, s.epilogue.has_value());
    std::vector<char>    rest = c;
    int64_t              wrong = 0;
    double               worst = 0;
    for (int64_t i = 0; i < p.batches; i++)
        for (int64_t row = 0; row < p.m; row++)
            for (int64_t column = 0; column < p.n; column++) {
                const size_t at = size_t((i * p.m + row) * p.n + column), place = size_t((i * p.c_batch + row * p.c_row + column * p.c_column) * bytes);
                const double got = get(p.c_type, c.data() + place), want = s.sums[at];
                const double bound = error * s.sizes[at] + rounding_of(p.c_type) * (std::abs(want) + error * s.sizes[at]) + (p.c_type == Dtype::f64 ? 0 : 0x1p-24);
                const bool   is_beyond = std::isinf(want) || (p.c_type == Dtype::f16 && std::abs(want) >= 65520);
                const bool   is_right = want != want ? got != got : is_beyond ? std::isinf(got) && std::signbit(got) == std::signbit(want) : std::abs(got - want) <= bound;
                if (!is_right) wrong++, worst = std::max(worst, std::abs(got - want) / bound);
                std::memset(rest.data() + place, 0xff, size_t(bytes));
            }
    INFO("times its bound: ", worst);
    CHECK(wrong == 0);
    CHECK(std::all_of(rest.begin(), rest.end(), [](char x) { return x == char(0xff); }));
}

// The sum of squared distances from a mean, as parts from `first` on give it: pivots, sums of distances from these and of their squares, counts.
double squares_of(const Setting& s, const std::vector<char>& bytes, int64_t first, int64_t i, double mean)
{
    double all = 0;
    for (int64_t j = 0; j < s.parts; j++) {
        const auto   part = [&](int64_t fold) { return get(Dtype::f32, bytes.data() + (((first + fold) * s.parts + j) * s.part_count() + i) * 4); };
        const double off = part(0) - mean;
        all += part(2) + off * (2 * part(1) + part(3) * off);
    }
    return all;
}

// Sums, then the greatest, as their parts give them: of what c holds, which beyond f16 is infinite.
void check_parts(const Setting& s)
{
    const gemm::Problem&    p = s.problem;
    const std::vector<char> bytes = s.parts_there->get();
    const bool    is_row = s.is_over_columns();
    const int64_t length = is_row ? p.n : p.m, kept = is_row ? p.m : p.n;
    int64_t wrong = 0;
    for (int64_t i = 0; i < s.part_count(); i++) {
        double sum = 0, size = 0, most = -INFINITY, sum_got = 0, most_got = -INFINITY;
        for (int64_t j = 0; j < length; j++) {
            const size_t at = size_t(is_row ? i * p.n + j : (i / kept * p.m + j) * p.n + i % kept);
            const double held = p.c_type == Dtype::f16 && std::abs(s.sums[at]) >= 65520 ? std::copysign(INFINITY, s.sums[at]) : s.sums[at];
            sum += held, most = std::max(most, held);
            size += error_of(s.problem, s.epilogue.has_value()) * s.sizes[at] + (rounding_of(p.c_type) + 0x1p-20) * std::abs(s.sums[at]) + 0x1p-24;
        }
        for (int64_t j = 0; j < s.parts; j++) {
            const double part = get(Dtype::f32, bytes.data() + (j * s.part_count() + i) * 4), greatest = get(Dtype::f32, bytes.data() + ((s.parts + j) * s.part_count() + i) * 4);
            sum_got += part, most_got = greatest != greatest ? greatest : std::max(most_got, greatest);
        }
        const auto is_right = [&](double got, double want) { return std::isinf(want) ? got == want : std::abs(got - want) <= size; };
        wrong += !is_right(sum_got, sum) || !is_right(most_got, most);
        if (!p.is_pivoted) continue;
        const double mean = sum / double(length), got = squares_of(s, bytes, 2, i, mean);
        double squares = 0, farthest = 0, squares_size = 0;
        for (int64_t j = 0; j < length; j++) {
            const size_t at = size_t(is_row ? i * p.n + j : (i / kept * p.m + j) * p.n + i % kept);
            const double off = std::abs(s.sums[at] - mean), error = error_of(s.problem, s.epilogue.has_value()) * s.sizes[at] + rounding_of(p.c_type) * std::abs(s.sums[at]) + 0x1p-24;
            squares += off * off, farthest = std::max(farthest, off), squares_size += (2 * off + error) * error;
        }
        wrong += std::isinf(sum) || sum != sum ? std::isfinite(got) : !(std::abs(got - squares) <= squares_size + double(length) * 0x1p-21 * farthest * farthest);
    }
    CHECK(wrong == 0);
    CHECK(s.parts_there->is_intact());
}

// By every instance that can, in a workspace of just what it needs; twice, to the same bits. text: an instance's, and then by
// it alone.
void check_instances(const Setting& s, const std::vector<sm90::Choice>& shapes, const test::FinisherCode* with = nullptr)
{
    sm90::Form form;
    const bool is_taken = sm90::make_form(s.problem, true, form);
    CHECK((is_taken || s.problem.a_type == Dtype::f64));
    for (uint32_t i = 0; is_taken && i < sm90::instances().size(); i++) {
        if (with && i != with->finisher.instance) continue;
        const sm90::Instance& instance = sm90::instances()[i];
        for (const sm90::Choice& shape : shapes) {
            const sm90::Choice choice = {i, instance.is_split ? shape.cluster : instance.cluster, instance.is_split ? shape.splits : 1, shape.group};
            if (!sm90::is_possible(form, choice)) continue;
            const gemm::Problem& p = s.problem;
            INFO(std::string(instance.tile), " cluster ", choice.cluster, " splits ", choice.splits, ", ", p.batches, " x ", p.m, " x ", p.n, " x ", p.k, " types ", int(p.a_type), " ", int(p.b_type), " ",
                 int(p.c_type), " strides ", p.a_row, " ", p.b_column, " ", p.c_row);
            const uint64_t bytes = sm90::copies_workspace(form) + sm90::partial_bytes(form, choice.splits);
            const Bytes    workspace(bytes);
            s.c_there->poison();
            if (s.parts_there) s.parts_there->poison();
            device->run(form, choice, workspace.data(), bytes, with);
            const std::vector<char> first = s.c_there->get(), parts = s.parts_there ? s.parts_there->get() : std::vector<char>();
            check_result(s, first);
            if (s.parts_there) check_parts(s);
            CHECK(workspace.is_intact());
            device->run(form, choice, workspace.data(), bytes, with);
            CHECK(s.c_there->get() == first);
            if (s.parts_there) CHECK(s.parts_there->get() == parts);
            if (!instance.is_split) break;
        }
    }
}

const std::vector<sm90::Choice> SHAPES = {{0, 1, 1, 8}, {0, 2, 1, 8}, {0, 8, 1, 3}, {0, 3, 2, 1}};

}  // namespace

TEST_CASE("images: no kernel spills")
{
    for (const gemm::Image image : IMAGES)
        for (size_t k = 0; k < gemm::kernels_of(image).size(); k++) {
            INFO(std::string(gemm::kernels_of(image)[k].name));
            CHECK(device->function(image, k).registers > 0);
            CHECK(device->function(image, k).local_bytes == 0);
        }
}

TEST_CASE("products: every instance, type and way that operands lie")
{
    for (const Types& t : TYPES)
        for (const Extents& e : EXTENTS) {
            if ((device->gpu.is_small() && e.m * e.n > 10000) || !device->gpu.takes_next()) continue;
            for (int bits = 0; bits < 8; bits++) check_instances(Setting(e, {(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0, 0}, t, t.sum), SHAPES);
        }
}

TEST_CASE("products: every instance of doubles, where rows begin at multiples of 16 bytes")
{
    const Types t = {Dtype::f64, Dtype::f64, Dtype::f64};
    for (const Extents& e : EXTENTS)
        for (int bits = 0; bits < 16; bits++)
            if (device->gpu.takes_next()) check_instances(Setting(e, {(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0, bits >> 3}, t, t.sum), SHAPES);
}

TEST_CASE("products: rows at odd distances, of 16 bits at odd addresses, results of few bits")
{
    for (const Types& t : TYPES)
        for (const Extents& e : EXTENTS) {
            if ((device->gpu.is_small() && e.m * e.n > 10000) || !device->gpu.takes_next()) continue;
            const Dtype few = t.a == Dtype::bf16 ? Dtype::bf16 : Dtype::f16;
            for (int bits = 0; bits < 4; bits++) {
                const Lying lying = {(bits & 1) != 0, (bits & 2) != 0, (bits & 1) != 0, 1 + bits};
                if (is_float(t.a)) check_instances(Setting(e, lying, t, few), {{0, 2, 1, 8}});
                check_instances(Setting(e, lying, t, t.sum), {{0, 4, 2, 8}});
            }
        }
}

TEST_CASE("products: f32 whose rows begin at multiples of 16 bytes, which blocks cut themselves, all ways that it lies")
{
    const Types t = {Dtype::f32, Dtype::f32, Dtype::f32};
    for (const Extents& e : {Extents{1, 1, 1, 1}, Extents{129, 65, 93, 1}, Extents{5, 297, 33, 4}, Extents{258, 130, 1002, 1}, Extents{64, 192, 256, 1}, Extents{300, 532, 264, 2}}) {
        if (device->gpu.is_small() && e.m * e.n > 10000) continue;
        const int64_t gap = 4 - e.m % 4;     // all three have the same rest
        for (int bits = 0; bits < 8; bits++)
            if (device->gpu.takes_next()) check_instances(Setting(e, {(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0, gap}, t, t.sum), {{0, 1, 1, 8}, {0, 2, 1, 8}, {0, 3, 1, 8}, {0, 8, 1, 8}});
    }
}

TEST_CASE("products with an epilogue compiled into them: an instance of each kind and group, of halves each width, all ways that c lies")
{
    if (!Compiler::find()) {
        MESSAGE("there is no compiler");
        return;
    }
    std::set<std::tuple<sm90::Group, int, int32_t>> seen;
    for (uint32_t i = 0; i < sm90::instances().size(); i++) {
        const sm90::Instance& instance = sm90::instances()[i];
        const int kind = instance.is_odd ? 4 : instance.is_cut ? 3 : instance.is_split ? 2 : instance.schedule < 0;
        // How many buffers a tile is stored through goes by its width.
        if (instance.group == sm90::Group::Double || (!instance.is_split && instance.n % 64 != 0)) continue;    // none
        if (!seen.insert({instance.group, kind, kind < 2 && instance.group == sm90::Group::Half ? instance.n : 0}).second) continue;
        const bool  is_round = instance.group == sm90::Group::Round;
        const Types t = TYPES[instance.group == sm90::Group::Half ? 0 : instance.group == sm90::Group::Byte ? 2 : instance.group == sm90::Group::Whole ? 6 : 10];
        for (const Dtype c : {Dtype::f16, Dtype::f32})
            for (const bool is_batched : {false, true}) {
                if (!device->gpu.takes_next()) continue;
                test::FinisherTexts texts;
                for (const Extents& e : EXTENTS) {
                    if ((device->gpu.is_small() && e.m * e.n > 10000) || (e.batches > 1) != is_batched) continue;
                    for (const int64_t gap : {0, 1, 8}) {
                        Setting s(e, {false, !instance.is_odd, false, gap}, t, c, true);
                        s.problem.allows_tf32 = is_round;
                        sm90::Form form;
                        REQUIRE(sm90::make_form(s.problem, true, form));
                        check_instances(s, {{0, 1, 1, 8}, {0, 2, 1, 8}, {0, 3, 2, 1}}, &texts.of(device->gpu, sm90::finisher_of(form, i), s.epilogue->text()));
                    }
                }
            }
    }
}

TEST_CASE("products with folds compiled into them: an instance of each kind and group, over columns and rows, also where c is turned")
{
    if (!Compiler::find()) {
        MESSAGE("there is no compiler");
        return;
    }
    std::set<std::pair<sm90::Group, int>> seen;
    for (uint32_t i = 0; i < sm90::instances().size(); i++) {
        const sm90::Instance& instance = sm90::instances()[i];
        if (instance.group == sm90::Group::Double) continue;
        if (!seen.insert({instance.group, instance.is_odd ? 4 : instance.is_cut ? 3 : instance.is_split ? 2 : instance.schedule < 0}).second) continue;
        const bool  is_round = instance.group == sm90::Group::Round;
        const Types t = TYPES[instance.group == sm90::Group::Half ? 0 : instance.group == sm90::Group::Byte ? 2 : instance.group == sm90::Group::Whole ? 6 : 10];
        for (const Folds folds : {instance.is_split ? Folds::OverColumns : Folds::SquaresOverColumns, Folds::OverRows})
            for (const bool is_turned : {false, true}) {
                if ((is_turned && instance.group != sm90::Group::Half) || !device->gpu.takes_next()) continue;
                test::FinisherTexts texts;
                for (const Extents& e : EXTENTS) {
                    if ((device->gpu.is_small() && e.m * e.n > 10000) || e.m == 1) continue;
                    for (const int64_t gap : {0, 1}) {
                        Setting s(e, {false, true, is_turned, gap}, t, Dtype::f16, true, folds);
                        s.problem.allows_tf32 = is_round;
                        sm90::Form form;
                        REQUIRE(sm90::make_form(s.problem, true, form));
                        const gemm::Finisher finisher = sm90::finisher_of(form, i);
                        s.place_parts(finisher);
                        check_instances(s, {{0, 1, 1, 8}, {0, 3, 1, 1}}, &texts.of(device->gpu, finisher, s.epilogue->text()));
                    }
                }
            }
    }
}

TEST_CASE("f32 stays f32: infinities, NaN, the largest and the smallest come out as plain sums have them")
{
    for (const float special : {INFINITY, -INFINITY, NAN, 3.4e38f, 1e34f, 1e30f, 1e-38f, 1e-42f})
        for (int bits = 0; bits < 4; bits++) {
            const int64_t gap = bits & 2;    // of 2: rows begin at multiples of 16 bytes
            Setting s({70, 90, 34, 1}, {(bits & 1) != 0, false, false, gap}, {Dtype::f32, Dtype::f32, Dtype::f32}, Dtype::f32);
            const gemm::Problem& p = s.problem;
            for (int64_t at : {5 * p.a_depth, 40 * p.a_row + 7 * p.a_depth}) product_check::write(s.a.bytes.data() + at * 4, special), s.a.values[size_t(at)] = double(special);
            s.settle();
            for (size_t i = 0; i < s.sums.size(); i++)
                if (std::isfinite(s.sums[i]) && std::abs(s.sums[i]) > 3.4028235e38) s.sums[i] = std::copysign(double(INFINITY), s.sums[i]);
            check_instances(s, SHAPES);
        }
}

TEST_CASE("f32 of very small numbers is as exact as of others")
{
    Setting s({64, 64, 128, 1}, {}, {Dtype::f32, Dtype::f32, Dtype::f32}, Dtype::f32);
    for (size_t i = 0; i < s.a.values.size(); i++) {
        const float small = float(s.a.values[i]) * 0x1p-115f;
        product_check::write(s.a.bytes.data() + i * 4, small), s.a.values[i] = double(small);
    }
    s.settle();
    for (size_t i = 0; i < s.sums.size(); i++) s.sums[i] *= 0x1p115, s.sizes[i] *= 0x1p115;
    sm90::Form form;
    REQUIRE(sm90::make_form(s.problem, true, form));
    const Bytes workspace(sm90::copies_workspace(form));
    for (uint32_t instance = 0; instance < sm90::instances().size(); instance++) {
        const sm90::Choice choice = {instance, sm90::instances()[instance].cluster, 1, 8};
        if (!sm90::is_possible(form, choice)) continue;
        INFO(std::string(sm90::instances()[instance].tile));
        device->run(form, choice, workspace.data(), sm90::copies_workspace(form));
        const std::vector<char> c = s.c_there->get();
        for (size_t i = 0; i < s.sums.size(); i++) {
            const double got = get(Dtype::f32, c.data() + i * 4) * 0x1p115;
            CHECK(std::abs(got - s.sums[i]) <= 0x1p-21 * s.sizes[i]);
        }
    }
}

TEST_CASE("tf32 where it is allowed")
{
    for (const Extents& e : EXTENTS)
        for (int bits = 0; bits < 4; bits++) {
            Setting s(e, {(bits & 1) != 0, (bits & 2) != 0, false, bits}, {Dtype::f32, Dtype::f32, Dtype::f32}, Dtype::f32);
            s.problem.allows_tf32 = true;
            check_instances(s, SHAPES);
        }
}

}  // namespace ng::gemm_check

int main(int argc, char** argv)
{
    using namespace ng::cuda;
    using ng::gemm_check::Device;
    return ng::test::run_cases(argc, argv, ng::gemm_check::device, [](const Driver& driver) {
        const int compute = compute_of(driver, device_at(driver, 0));
        if (has_gemm_code(gemm::Image::Sm90Half, compute)) return std::make_unique<Device>(driver);
        std::printf("skipped: this build has no products for a device of compute capability %d\n", compute);
        return std::unique_ptr<Device>();
    });
}
