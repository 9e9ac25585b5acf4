// Every row of ops.def, in every type and mode, on every instruction set that this machine has, within its bound.
#include "tests/backend/isa_tables.h"
#include "tests/backend/row_values.h"

#include <doctest/doctest.h>

#include <bit>
#include <cstring>
#include <random>
#include <string>
#include <vector>

using namespace ng;
using namespace ng::cpu;

namespace {

template <class T> using Bits = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

// The numbers that hurt.
template <class T>
std::vector<T> edges()
{
    using L = std::numeric_limits<T>;
    std::vector<T> v;
    if constexpr (std::is_floating_point_v<T>) {
        v = {T(0), L::denorm_min(), T(3) * L::denorm_min(), L::min() - L::denorm_min(), L::min(), L::epsilon(), T(0.1), T(0.25), T(0.5), T(0.66),
             T(0.75), T(0.927734375), std::nextafter(T(1), T(0)), T(1), std::nextafter(T(1), T(2)), T(1.5), T(2), T(2.5), T(3), T(3.5), T(4), T(6),
             T(7), T(9.5), T(13), T(22), T(38.6), T(50), T(88.7), T(103.9), T(150), T(709.78), T(745), T(1e6), T(1) / L::epsilon() - T(1),
             T(1) / L::epsilon(), T(4) / L::epsilon(), std::sqrt(L::max()), L::max(), L::infinity()};
        for (size_t i = 0, n = v.size(); i < n; i++) v.push_back(-v[i]);
        v.push_back(L::quiet_NaN());
    } else if constexpr (std::is_same_v<T, bool>) {
        v = {false, true};
    } else {
        for (int i = 0; i < 10; i++) v.push_back(T(i)), v.push_back(T(-i));
        for (int i = 3; i < int(8 * sizeof(T)); i++) v.push_back(T(T(1) << i)), v.push_back(T((T(1) << i) - 1)), v.push_back(T(8 * sizeof(T) + i));
        v.push_back(L::min()), v.push_back(L::max()), v.push_back(T(L::min() + 1));
    }
    return v;
}
template <class T>
T any_number(std::mt19937_64& dice, int round)
{
    const uint64_t u = dice();
    if constexpr (std::is_same_v<T, bool>) return u & 1;
    else if constexpr (std::is_integral_v<T>) return round % 3 ? T(u) : T(int64_t(u % 41) - 20);
    else if (round % 3 == 0) return std::bit_cast<T>(Bits<T>(u));
    else return T((double(u >> 11) * 0x1p-53 - 0.5) * (round % 3 == 1 ? 4 : 40));
}

// The number of a code of f16.
float half(uint32_t code)
{
    const int   exponent = int(code >> 10 & 31), fraction = int(code & 1023);
    const float special = fraction ? std::numeric_limits<float>::quiet_NaN() : std::numeric_limits<float>::infinity();
    const float x = exponent == 31 ? special : exponent ? std::ldexp(float(1024 + fraction), exponent - 25) : std::ldexp(float(fraction), -24);
    return code >> 15 ? -x : x;
}

template <class T> struct Samples { std::vector<T> x, y, z; };

template <class T>
Samples<T> samples(int arity, bool is_exact)
{
    std::mt19937_64 dice(uint64_t(arity) * 7 + sizeof(T));
    Samples<T>      s;
    auto            put = [&](T x, T y, T z) { s.x.push_back(x), s.y.push_back(y), s.z.push_back(z); };
    const auto      e = edges<T>();
    if (arity == 1) {
        for (const T x : e) put(x, x, x);
        if constexpr (std::is_same_v<T, float>)
        {
            for (uint64_t u = 0; u < uint64_t(1) << 32; u += is_exact ? 65537 : 32771) put(std::bit_cast<float>(uint32_t(u)), 0, 0);
            for (uint32_t code = 0; code < 1u << 16; code++) put(std::bit_cast<float>(code << 16), 0, 0), put(half(code), 0, 0);   // all of bf16 and f16
        }
    } else if (arity == 2) {
        for (const T x : e)
            for (const T y : e) put(x, y, x);
    } else {
        for (size_t i = 0; i < e.size(); i += 3)
            for (size_t j = 1; j < e.size(); j += 3)
                for (size_t k = 0; k < e.size(); k += 4) put(e[i], e[j], e[k]);
    }
    for (int i = 0; i < (is_exact ? 3001 : 30011); i++) put(any_number<T>(dice, i), any_number<T>(dice, i), any_number<T>(dice, i + i / 3));
    return s;
}

struct Worst { double distance = 0; std::string text; };

// One row of one type: `expected` by the reference, in T where the row is exact, else in long double.
template <class T>
struct Case {
    using Memory = std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>;
    Op         op;
    Samples<T> s;
    std::vector<uint8_t> condition;   // of where
    std::vector<T>       exact;
    std::vector<long double> precise, place;

    explicit Case(Op op_) : op(op_)
    {
        const OpInfo& row = info(op);
        s = samples<T>(row.arity, row.ulp == 0);
        for (size_t i = 0; i < s.x.size(); i++) {
            const T x = s.x[i], y = s.y[i], z = s.z[i];
            condition.push_back(x == x && x > T(0));
            if (op == Op::where) exact.push_back(condition[i] ? y : z);
            else if (row.ulp == 0 || std::is_integral_v<T>) exact.push_back(reference::Values<T>::of(op, x, y, z));
            else if constexpr (std::is_floating_point_v<T>) {
                using L = long double;
                precise.push_back(reference::Values<L>::of(op, L(x), L(y), L(z)));
                place.push_back(op == Op::logaddexp ? std::max(std::abs(L(x)), std::abs(L(y))) : 0);
                if (!std::isfinite(place[i])) place[i] = 0;
            }
        }
    }
    Memory result(const void* out, size_t i) const
    {
        if (info(op).result == Result::Bool) return Memory(static_cast<const uint8_t*>(out)[i]);
        return static_cast<const Memory*>(out)[i];
    }
    double off(Memory got, size_t i) const
    {
        if (!exact.empty()) {
            const Memory want = Memory(exact[i]);
            if constexpr (std::is_floating_point_v<T>) {
                if (got != got || want != want) return (got != got) == (want != want) ? 0 : 1e9;
                return got == want && std::signbit(got) == std::signbit(want) ? 0 : 1e9;
            }
            return got == want ? 0 : 1e9;
        }
        if constexpr (std::is_floating_point_v<T>) {
            if (precise[i] == 0 && place[i] == 0 && std::signbit(precise[i]) != std::signbit(got)) return 1e9;
            return reference::distance(got, precise[i], place[i]);
        }
        return 0;
    }
    Worst worst(const IsaTable& isa) const
    {
        std::vector<Memory> x(s.x.begin(), s.x.end()), y(s.y.begin(), s.y.end()), z(s.z.begin(), s.z.end()), out(x.size());
        const void* first = op == Op::where ? static_cast<const void*>(condition.data()) : x.data();
        isa.map[int(op)][int(DTYPE_OF<T>)][MODE_ALL](out.data(), first, y.data(), z.data(), int64_t(x.size()));
        Worst w;
        for (size_t i = 0; i < x.size(); i++) {
            const double d = off(result(out.data(), i), i);
            if (!(d > w.distance)) continue;
            w.distance = d;
            char text[200];
            snprintf(text, sizeof text, "%s %s %s(%.17g, %.17g, %.17g) = %.17g, should be %.20Lg", isa.name, name_of(DTYPE_OF<T>), name_of(op),
                     double(x[i]), double(y[i]), double(z[i]), double(result(out.data(), i)),
                     exact.empty() ? precise[i] : (long double)(exact[i]));
            w.text = text;
        }
        return w;
    }
};

template <class T>
void check_rows()
{
    for (int i = 0; i < OPS; i++) {
        const Op op = Op(i);
        if (!is_map(op)) continue;
        const bool taken = reference::Values<T>::takes(info(op).domain);
        for (const IsaTable* isa : tables()) CHECK_MESSAGE((isa->map[i][int(DTYPE_OF<T>)][MODE_ALL] != nullptr) == taken, std::string(name_of(op)));
        if (!taken) continue;
        const Case<T> c(op);
        for (const IsaTable* isa : tables()) {
            const Worst w = c.worst(*isa);
            CHECK_MESSAGE(w.distance <= double(info(op).ulp), w.distance, " ulp: ", w.text);
        }
    }
}

// Of NaN only that it is one: which of two NaNs an addition keeps is the compiler's choice.
template <class Memory>
bool same(const void* a, const void* b, int bytes, int count)
{
    if (!std::is_floating_point_v<Memory> || bytes != int(sizeof(Memory))) return !memcmp(a, b, size_t(bytes * count));
    for (int i = 0; i < count; i++) {
        Memory p, q;
        memcpy(&p, static_cast<const char*>(a) + i * bytes, sizeof p);
        memcpy(&q, static_cast<const char*>(b) + i * bytes, sizeof q);
        if (memcmp(&p, &q, sizeof p) && !(p != p && q != q)) return false;
    }
    return true;
}

// In place, of any length and alignment, and with one operand for all: the bits of a plain call; exp of a difference: those of two.
template <class T>
void check_modes(const IsaTable& isa, Op op)
{
    using Memory = typename Case<T>::Memory;
    const int       bytes = info(op).result == Result::Bool ? 1 : int(sizeof(Memory));
    const Samples<T> s = samples<T>(2, true);
    for (const int count : {0, 1, 2, 7, 64, 129, 517}) {
        for (int mode = 0; mode < MODES; mode++) {
            const MapLoop loop = isa.map[int(op)][int(DTYPE_OF<T>)][mode];
            if (!loop) continue;
            std::vector<Memory>  from[3], all[3];
            std::vector<uint8_t> condition;
            for (int k = 0; k < 3; k++)
                for (int i = 0; i < count + 2; i++) {   // one number is there even for a block of none
                    const auto& source = k == 0 ? s.x : k == 1 ? s.y : s.z;
                    from[k].push_back(Memory(source[size_t(i * 37 + k * 11) % source.size()]));
                    all[k].push_back((mode >> k & 1) && i > 1 ? from[k][1] : from[k][size_t(i)]);
                }
            const void *a[3], *b[3];
            for (int k = 0; k < 3; k++) a[k] = from[k].data() + 1, b[k] = all[k].data() + 1;
            std::vector<uint8_t> flag, flags;
            if (op == Op::where) {
                for (int i = 0; i < count + 2; i++) flag.push_back(from[0][size_t(i)] != 0), flags.push_back(all[0][size_t(i)] != 0);
                a[0] = flag.data() + 1, b[0] = flags.data() + 1;
            }
            std::vector<char> want(size_t(bytes * count + 1), 1), got(size_t(bytes * count + 1), 1);
            const bool is_difference = op == Op::exp && mode >= OF_DIFFERENCE;
            if (is_difference) isa.map[int(Op::sub)][int(DTYPE_OF<T>)][MODE_ALL](want.data(), b[0], b[1], b[2], count);
            isa.map[int(op)][int(DTYPE_OF<T>)][MODE_ALL](want.data(), is_difference ? want.data() : b[0], b[1], b[2], count);
            loop(got.data(), a[0], a[1], a[2], count);
            const std::string what = std::string(isa.name) + " " + name_of(op) + " " + name_of(DTYPE_OF<T>) + " mode " + std::to_string(mode);
            CHECK_MESSAGE(same<Memory>(want.data(), got.data(), bytes, count), what, " of ", count);
            if (bytes != int(sizeof(Memory)) || (mode & MODE_Y) || op == Op::where) continue;
            loop(const_cast<void*>(a[1]), a[0], a[1], a[2], count);
            CHECK_MESSAGE(same<Memory>(want.data(), a[1], bytes, count), what, " in place, of ", count);
        }
    }
}
template <class T>
void check_all_modes()
{
    for (const IsaTable* isa : tables())
        for (int i = 0; i < OPS; i++)
            if (is_map(Op(i)) && reference::Values<T>::takes(info(Op(i)).domain)) check_modes<T>(*isa, Op(i));
}

}  // namespace

TEST_CASE("maps: rows of f32 keep their bounds") { check_rows<float>(); }
TEST_CASE("maps: rows of f64 keep their bounds") { check_rows<double>(); }
TEST_CASE("maps: rows of bool and integers are exact")
{
    check_rows<bool>();
    check_rows<int8_t>(), check_rows<int16_t>(), check_rows<int32_t>(), check_rows<int64_t>();
    check_rows<uint8_t>(), check_rows<uint16_t>(), check_rows<uint32_t>(), check_rows<uint64_t>();
}
TEST_CASE("maps: one operand for the whole block, odd lengths and alignments, and writing in place change no bit")
{
    check_all_modes<bool>();
    check_all_modes<int8_t>(), check_all_modes<int16_t>(), check_all_modes<int32_t>(), check_all_modes<int64_t>();
    check_all_modes<uint8_t>(), check_all_modes<uint16_t>(), check_all_modes<uint32_t>(), check_all_modes<uint64_t>();
    check_all_modes<float>(), check_all_modes<double>();
}
TEST_CASE("maps: where has all modes, operations of two operands have three")
{
    for (const IsaTable* isa : tables())
        for (int i = 0; i < OPS; i++) {
            if (!is_map(Op(i)) || info(Op(i)).domain != Domain::Any) continue;
            for (int mode = 1; mode < MODES; mode++)
                CHECK_MESSAGE((isa->map[i][int(Dtype::i32)][mode] != nullptr) == (info(Op(i)).arity == 2 && mode <= MODE_Y), std::string(name_of(Op(i))));
        }
    for (const IsaTable* isa : tables())
        for (int mode = 0; mode < MODES; mode++) CHECK((isa->map[int(Op::where)][int(Dtype::f32)][mode] != nullptr));
}
