// What tests of the shipped kernels run on: a device or its emulation, tensors there, and workspaces whose end is watched.
#pragma once
#include "lib/backend/cuda/basic_launch.h"
#include "lib/backend/cuda/rounding.h"
#include "tests/backend/product_check.h"

#include <cstdlib>

namespace basic_check {
using namespace product_check;
namespace basic = ng::cuda::basic;

class Machine {
  public:
    virtual ~Machine() = default;
    virtual void* take(size_t bytes) = 0;
    virtual void  give(void* memory) = 0;
    virtual void  put(void* to, const void* from, size_t bytes) = 0;
    virtual void  get(void* to, const void* from, size_t bytes) = 0;
    virtual void  launch(const basic::Launch& launch) = 0;
    virtual bool  is_fast() const = 0;           // large cases too
    virtual bool  has_guards() const { return true; }   // false: something else watches the ends of memory
};
Machine& machine();                      // of this program

// One whose memory is the host's: kernels are run as C++.
class HostMachine : public Machine {
  public:
    void* take(size_t bytes) override { return std::aligned_alloc(256, size_t(ng::cuda::aligned(bytes))); }
    void  give(void* memory) override { std::free(memory); }
    void  put(void* to, const void* from, size_t bytes) override { std::memcpy(to, from, bytes); }
    void  get(void* to, const void* from, size_t bytes) override { std::memcpy(to, from, bytes); }
    bool  is_fast() const override { return false; }
};

// Memory there, of exactly so many bytes, full of NaN.
class Memory {
  public:
    explicit Memory(size_t bytes) : bytes_(bytes), guard_(machine().has_guards() ? 256 : 0), data_(machine().take(std::max<size_t>(bytes + guard_, 1)))
    {
        const std::vector<char> poison(bytes + guard_, char(0xff));
        machine().put(data_, poison.data(), poison.size());
    }
    ~Memory() { machine().give(data_); }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    void* data() const { return data_; }
    bool  is_intact() const
    {
        std::vector<char> guard(guard_);
        if (guard_) machine().get(guard.data(), static_cast<const char*>(data_) + bytes_, guard_);
        return std::all_of(guard.begin(), guard.end(), [](char c) { return c == char(0xff); });
    }

  private:
    size_t bytes_, guard_;
    void*  data_;
};

// A tensor's copy there, while this lives.
class There {
  public:
    explicit There(Tensor& here) : here_(here), memory_(here.memory.size()) { machine().put(memory_.data(), here.memory.data(), here.memory.size()); }
    basic::Operand operand() const
    {
        return {static_cast<char*>(memory_.data()) + here_.origin * ng::bytes_of(here_.type), here_.type, here_.dims.data(), here_.strides.data()};
    }
    void back()
    {
        machine().get(here_.memory.data(), memory_.data(), here_.memory.size());
        CHECK(memory_.is_intact());
    }

  private:
    Tensor& here_;
    Memory  memory_;
};

// body(place): what it launches runs with a workspace of so many bytes.
template <class Body>
void with_workspace(uint64_t bytes, Body&& body)
{
    Memory workspace(bytes);
    auto   send = [](const basic::Launch& l) {
        REQUIRE(l.grid > 0);
        REQUIRE(l.block > 0);
        REQUIRE(l.block <= uint32_t(ng::kernels::THREADS));
        machine().launch(l);
    };
    const basic::Launcher launcher(send);
    body(basic::Place{bytes ? workspace.data() : nullptr, launcher});
    CHECK(workspace.is_intact());
}

inline const Dtype ALL_TYPES[] = {
#define DTYPE(name, ...) Dtype::name,
#include "jit/dtypes.def"
#undef DTYPE
};

// All values of a narrow float by code, and its codes by value: looked up much more often here than decoding is quick.
class Codes {
  public:
    static const Codes& of(Dtype t)
    {
        static const Codes codes[] = {Codes(Dtype::f16), Codes(Dtype::bf16), Codes(Dtype::e4m3), Codes(Dtype::e5m2)};
        return codes[int(t) - int(Dtype::f16)];
    }
    double   value(uint32_t code) const { return value_[code]; }
    uint32_t code(double v) const
    {
        const auto at = std::lower_bound(order_.begin(), order_.end(), v, [&](uint32_t c, double x) { return is_before(value_[c], x); });
        if (at == order_.end() || value_[*at] != v || std::signbit(value_[*at]) != std::signbit(v)) FAIL("no such value");
        return *at;
    }

  private:
    explicit Codes(Dtype t)
    {
        for (uint64_t c = 0; c < (ng::bytes_of(t) == 1 ? 256u : 65536u); c++) {
            value_.push_back(get(t, &c));
            if (value_[c] == value_[c]) order_.push_back(uint32_t(c));
        }
        std::sort(order_.begin(), order_.end(), [&](uint32_t a, uint32_t b) { return is_before(value_[a], value_[b]); });
    }
    static bool is_before(double a, double b) { return a < b || (a == 0 && b == 0 && std::signbit(a) && !std::signbit(b)); }

    std::vector<double>   value_;
    std::vector<uint32_t> order_;
};
inline bool is_narrow(Dtype t) { return t >= Dtype::f16; }
inline uint32_t code_at(Dtype t, const void* p) { return ng::bytes_of(t) == 1 ? read<uint8_t>(p) : read<uint16_t>(p); }
inline double real_at(Dtype t, const void* p) { return is_narrow(t) ? Codes::of(t).value(code_at(t, p)) : get(t, p); }
inline void set_real(Dtype t, void* p, double v)
{
    if (!is_narrow(t)) return put(t, p, v);
    const uint32_t code = Codes::of(t).code(v);
    std::memcpy(p, &code, size_t(ng::bytes_of(t)));
}

// Small values as Tensor::fill's: sums of products of them are exact in every accumulator.
inline Tensor& fill(Tensor& t, uint32_t seed)
{
    std::mt19937 random(seed);
    char         codes[15][8];
    for (int v = -7; v <= 7; v++) set_real(t.type, codes[v + 7], ng::is_float(t.type) ? v / 4.0 : ng::is_bool(t.type) ? v & 1 : ng::is_signed(t.type) ? v : v + 7);
    t.each([&](const Index& i) { std::memcpy(t.at(i), codes[random() % 15], size_t(ng::bytes_of(t.type))); });
    return t;
}

// The nearest value that a float type has, even ones first; 8-bit floats saturate.
inline double nearest(Dtype t, double v)
{
    if (!ng::is_float(t) || t == Dtype::f64 || v != v) return v;
    const ng::DtypeInfo& i = ng::info(t);
    const int    bias = (1 << (i.exponent - 1)) - 1;
    const double largest = t == Dtype::e4m3 ? 448 : std::ldexp(2 - std::ldexp(1, -i.mantissa), bias);
    int          power = 0;
    std::frexp(v, &power);
    const double unit = std::ldexp(1, std::max(power - 1, 1 - bias) - i.mantissa);
    const double r = std::isinf(v) ? v : std::nearbyint(v / unit) * unit;
    if (std::fabs(r) <= largest) return r;
    return std::copysign(i.bytes == 1 ? largest : std::numeric_limits<double>::infinity(), v);
}

// What is computed with here: floats as double, integers modulo 2^64.
struct Number {
    double   real = 0;
    uint64_t whole = 0;
};
inline Number number_at(Dtype t, const void* p)
{
    Number n;
    if (ng::is_float(t)) {
        n.real = real_at(t, p);
        return n;
    }
    std::memcpy(&n.whole, p, size_t(ng::bytes_of(t)));
    const int shift = 64 - 8 * ng::bytes_of(t);
    if (ng::is_signed(t)) n.whole = uint64_t(int64_t(n.whole << shift) >> shift);
    if (ng::is_bool(t)) n.whole = n.whole != 0;
    return n;
}
// As the type holds it.
inline Number stored(Dtype t, Number n)
{
    if (ng::is_float(t)) n.real = nearest(t, n.real);
    else if (ng::is_bool(t)) n.whole = n.whole != 0;
    else n = number_at(t, &n.whole);
    return n;
}
inline bool same(Dtype t, Number a, Number b)
{
    if (ng::is_float(t)) return a.real == b.real || (a.real != a.real && b.real != b.real);
    return a.whole == b.whole;
}
inline bool less(Dtype t, Number a, Number b)
{
    if (ng::is_float(t)) return a.real < b.real;
    return ng::is_signed(t) ? int64_t(a.whole) < int64_t(b.whole) : a.whole < b.whole;
}
inline Number folded(Dtype t, basic::Folding how, Number a, Number b)
{
    using namespace ng::kernels;
    switch (how) {
    case LAST: return b;
    case SUM: return {a.real + b.real, a.whole + b.whole};
    case PROD: return {a.real * b.real, a.whole * b.whole};
    case MIN: return less(t, b, a) || b.real != b.real ? b : a;
    default: return less(t, a, b) || b.real != b.real ? b : a;
    }
}
inline Number identity(Dtype t, basic::Folding how)
{
    using namespace ng::kernels;
    if (how == PROD) return {1, 1};
    if (how != MIN && how != MAX) return {0, 0};
    const double   infinite = std::numeric_limits<double>::infinity();
    const int      bits = 8 * ng::bytes_of(t);
    const uint64_t all = ~uint64_t(0) >> (64 - bits);
    if (ng::is_bool(t)) return {0, how == MIN};
    if (ng::is_float(t)) return {how == MIN ? infinite : -infinite, 0};
    const uint64_t most = ng::is_signed(t) ? all >> 1 : all;
    return {0, how == MIN ? most : ng::is_signed(t) ? ~most : 0};
}

// Values whose products stay exact: -1, 1, and a few halves and twos.
inline Tensor& fill_factors(Tensor& t, uint32_t seed)
{
    std::mt19937 random(seed);
    t.each([&](const Index& i) {
        const uint32_t r = random() % 16;
        set_real(t.type, t.at(i), !ng::is_float(t.type) ? (ng::is_bool(t.type) ? r > 0 : r % 4 + 1) : r == 0 ? 0.5 : r == 1 ? 2 : r % 2 && t.type != Dtype::bool_ ? -1 : 1);
    });
    return t;
}

// Bytes of t's memory that no element of it has.
inline bool is_untouched_around(const Tensor& t, const std::vector<char>& before)
{
    std::vector<bool> owned(t.memory.size());
    Tensor            copy = t;
    copy.each([&](const Index& i) {
        const auto at = size_t(copy.at(i) - copy.memory.data());
        for (size_t b = 0; b < size_t(ng::bytes_of(t.type)); b++) owned[at + b] = true;
    });
    for (size_t i = 0; i < owned.size(); i++)
        if (!owned[i] && t.memory[i] != before[i]) return false;
    return true;
}

}  // namespace basic_check
