// The table of measured products, and its lines: types, extents, strides, times, then the way by its kernel's name.
#include "lib/backend/cuda/gemm_tuned.h"

#include "jit/error.h"
#include "lib/backend/cuda/gemm_mma.h"
#include "lib/backend/cuda/gemm_sm90.h"

#include <charconv>
#include <cmath>
#include <concepts>

namespace ng::cuda::gemm {
namespace {

const char* name_of(const Way& w)
{
    if (w.is_portable) return mma::kernels()[w.instance].name;
    const sm90::Instance& i = sm90::instances()[w.instance];
    return sm90::kernels_of(i.image)[i.first_kernel].name;
}

// Whether there is one.
bool find_instance(std::string_view name, Way& w)
{
    for (const bool is_portable : {false, true})
        for (uint32_t i = 0; i < (is_portable ? mma::kernels().size() : sm90::instances().size()); i++) {
            w.is_portable = is_portable, w.instance = i;
            if (name == name_of(w)) return true;
        }
    return false;
}

// Lines have times as whole nanoseconds.
int64_t nanoseconds(double us) { return std::llround(us * 1000); }
double  microseconds(int64_t ns) { return double(ns) / 1000; }

// The words of a line, one after the other; after one that cannot be read, none is.
class Words {
  public:
    explicit Words(std::string_view line) : rest_(line) {}
    std::string_view next()
    {
        const size_t end = std::min(rest_.find(' '), rest_.size());
        const std::string_view word = rest_.substr(0, end);
        rest_.remove_prefix(std::min(end + 1, rest_.size()));
        is_good_ &= !word.empty();
        return word;
    }
    template <class T>
    void read(T& number)
    {
        const std::string_view word = next();
        const auto [end, fault] = std::from_chars(word.data(), word.data() + word.size(), number);
        is_good_ &= fault == std::errc() && end == word.data() + word.size();
    }
    void read(double& us)
    {
        int64_t ns = 0;
        read(ns);
        us = microseconds(ns);
    }
    void read(bool& truth)
    {
        const std::string_view word = next();
        is_good_ &= word == "0" || word == "1";
        truth = word == "1";
    }
    void read(Dtype& type)
    {
        const std::string_view word = next();
        int i = 0;
        while (i < DTYPES && word != ng::name_of(Dtype(i))) i++;
        is_good_ &= i < DTYPES;
        if (i < DTYPES) type = Dtype(i);
    }
    bool is_good() const { return is_good_; }
    bool is_read() const { return is_good_ && rest_.empty(); }

  private:
    std::string_view rest_;
    bool             is_good_ = true;
};

// visit(field) of each that a line has.
template <class S, class Visit>
void each_of_shape(S& s, const Visit& visit)
{
    visit(s.a_type), visit(s.b_type), visit(s.c_type), visit(s.allows_tf32);
    visit(s.m), visit(s.n), visit(s.k), visit(s.batches);
    visit(s.a_row), visit(s.a_depth), visit(s.a_batch), visit(s.b_depth), visit(s.b_column), visit(s.b_batch), visit(s.c_row), visit(s.c_column), visit(s.c_batch);
}
template <class W, class Visit>
void each_of_way(W& w, const Visit& visit)
{
    visit(w.cluster), visit(w.splits), visit(w.group), visit(w.copies);
}

template <class M, class Visit>
void each_time(M& m, const Visit& visit)
{
    visit(m.us), visit(m.usual_us);
}

struct Writer {
    std::string& line;
    void operator()(Dtype t) const { line += text(ng::name_of(t), " "); }
    void operator()(bool b) const { line += b ? "1 " : "0 "; }
    void operator()(std::integral auto v) const { line += text(int64_t(v), " "); }
    void operator()(double us) const { line += text(nanoseconds(us), " "); }
};

}  // namespace

Shape shape_of(const Problem& p)
{
    return {p.a_type, p.b_type, p.c_type, p.allows_tf32, p.m, p.n, p.k, p.batches, p.a_row, p.a_depth, p.a_batch, p.b_depth, p.b_column, p.b_batch, p.c_row, p.c_column, p.c_batch};
}

std::string words_of(const Way& way)
{
    std::string line = text(name_of(way), " ");
    each_of_way(way, Writer{line});
    line.pop_back();
    return line;
}

std::optional<Measured> Tuned::find(const Shape& shape) const
{
    if (count() == 0) return std::nullopt;
    const std::lock_guard hold(lock_);
    const auto at = measured_.find(shape);
    return at == measured_.end() ? std::nullopt : std::optional(at->second);
}

void Tuned::keep(const Shape& shape, const Measured& measured)
{
    const std::lock_guard hold(lock_);
    Measured& kept = measured_[shape];
    kept = measured;
    each_time(kept, [](double& us) { us = microseconds(nanoseconds(us)); });
    count_.fetch_add(1, std::memory_order_release);
}

std::string Tuned::text() const
{
    const std::lock_guard hold(lock_);
    std::string all;
    for (const auto& [shape, measured] : measured_) {
        each_of_shape(shape, Writer{all}), each_time(measured, Writer{all});
        all += words_of(measured.way) + "\n";
    }
    return all;
}

void Tuned::add(std::string_view text)
{
    const std::lock_guard hold(lock_);
    while (!text.empty()) {
        const size_t end = std::min(text.find('\n'), text.size());
        Words words(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
        Shape    shape = {};
        Measured measured = {};
        const auto read = [&](auto& field) { words.read(field); };
        each_of_shape(shape, read), each_time(measured, read);
        const bool is_known = words.is_good() && find_instance(words.next(), measured.way);
        each_of_way(measured.way, read);
        if (is_known && words.is_read()) measured_.emplace(shape, measured);
    }
    if (!measured_.empty()) count_.fetch_add(1, std::memory_order_release);
}

}  // namespace ng::cuda::gemm
