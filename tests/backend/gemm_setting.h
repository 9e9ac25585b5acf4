// A problem of Hopper's products on the GPU of this program, with what must come out of it, and whether that came.
#pragma once
#include "lib/backend/cuda/epilogue.h"
#include "tests/backend/gemm_epilogues.h"
#include "tests/backend/gpu_machine.h"

namespace ng::gemm_check {
using product_check::get;

const test::Gpu& gpu();                  // of this program

// Bytes there, poisoned, with poison behind them.
class Bytes {
  public:
    explicit Bytes(size_t bytes) : bytes_(bytes), data_(gpu().take(bytes + GUARD)) { poison(); }
    ~Bytes() { gpu().give(data_); }
    Bytes(const Bytes&) = delete;
    Bytes& operator=(const Bytes&) = delete;
    void* data() const { return data_; }
    void  poison() const { gpu().fill(data_, 0xff, bytes_ + GUARD); }
    char* byte(int64_t i) const { return static_cast<char*>(data_) + i; }
    void* put(const std::vector<char>& from, int64_t at = 0) const { return gpu().put(byte(at), from.data(), from.size()), byte(at); }
    std::vector<char> get() const                // and what stands behind
    {
        std::vector<char> r(bytes_ + GUARD);
        gpu().get(r.data(), data_, r.size());
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

inline constexpr Extents EXTENTS[] = {{1, 1, 1, 1}, {129, 67, 93, 1}, {64, 200, 1000, 1}, {7, 300, 31, 4}, {7, 264, 136, 2}, {16, 520, 264, 1}, {257, 136, 72, 2}, {300, 530, 264, 1}};
inline std::vector<Extents> all_extents()
{
    std::vector<Extents> all(std::begin(EXTENTS), std::end(EXTENTS));
    all.insert(all.end(), std::begin(DEEP), std::end(DEEP));
    return all;
}
// For compute-sanitizer.
inline bool is_too_large(int64_t m, int64_t n) { return gpu().is_small() && m * n > 10000; }

// A problem's operands there, the sums, and the sums of absolute values.
struct Setting {
    gemm::Problem       problem;
    std::vector<double> sums, sizes;
    Matrix              a, b;
    std::unique_ptr<Bytes> a_there, b_there, c_there, bias, residual;
    std::optional<EpilogueForm> epilogue;
    int64_t             parts = 0, before, c_before;     // parts: of each fold; others: bytes ahead of operands, and of c, of 16 bits, as addresses may lie
    std::unique_ptr<Bytes> parts_there;

    Setting(const Extents& e, const Lying& lying, const Types& t, Dtype c, bool with_epilogue = false, Folds folds = Folds::None) : problem(problem_of(e, lying, t.a, t.b, c)), before(bytes_of(t.a) == 2 ? lying.gap % 8 * 2 : 0), c_before(bytes_of(c) == 2 ? lying.gap % 8 * 2 : 0)
    {
        gemm::Problem& p = problem;
        a = random_matrix(t.a, p.a_batch * p.batches, 1), b = random_matrix(t.b, p.b_batch * p.batches, 2);
        a_there = std::make_unique<Bytes>(a.bytes.size() + size_t(before)), b_there = std::make_unique<Bytes>(b.bytes.size() + size_t(before));
        c_there = std::make_unique<Bytes>(size_t(p.c_batch * p.batches * bytes_of(c) + c_before));
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
    // What was written, from c's first element on; nothing was before it.
    std::vector<char> result() const
    {
        std::vector<char> r = c_there->get();
        CHECK(std::all_of(r.begin(), r.begin() + c_before, [](char x) { return x == char(0xff); }));
        r.erase(r.begin(), r.begin() + c_before);
        return r;
    }
    // The operands' values are what they are now.
    void settle()
    {
        gemm::Problem& p = problem;
        p.a = a_there->put(a.bytes, before), p.b = b_there->put(b.bytes, before), p.c = c_there->byte(c_before);
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
inline void check_result(const Setting& s, const std::vector<char>& c)
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
inline double squares_of(const Setting& s, const std::vector<char>& bytes, int64_t first, int64_t i, double mean)
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
inline void check_parts(const Setting& s)
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

}  // namespace ng::gemm_check
