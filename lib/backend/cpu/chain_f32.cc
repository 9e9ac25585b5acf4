// Chains of f32: eight vector registers go from link to link, each a function that ends in a jump to the next.
#include "lib/backend/cpu/bundle_tail.h"
#include "lib/backend/cpu/convert_loops.h"
#include "lib/backend/cpu/curves_wide.h"
#include "lib/backend/cpu/divide_wide.h"
#include "lib/backend/cpu/row_loops.h"

namespace ng::cpu {

#if defined(__AVX2__)
namespace {

#if defined(__AVX512F__)
constexpr int WIDTH = 16;
#else
constexpr int WIDTH = 8;
#endif
constexpr int VECTORS = 8, BUNDLE = VECTORS * WIDTH;   // as many vectors as the calling convention hands over in registers
using Vector = float __attribute__((vector_size(WIDTH * 4)));
using Codes = uint16_t __attribute__((vector_size(WIDTH * 2)));

// A vector's elements lie anywhere. In templates clang forgets a smaller alignment that a type's name has beyond the type, so these are none.
INLINE Vector vector_at(const char* from)
{
    Vector v;
    __builtin_memcpy(&v, from, sizeof v);
    return v;
}
INLINE void put_at(char* to, Vector v) { __builtin_memcpy(to, &v, sizeof v); }
INLINE void put_codes_at(char* to, Codes codes) { __builtin_memcpy(to, &codes, sizeof codes); }

struct Bound;
// Bundles that go through a chain in a turn. Each begins with a jump from where the one before it ended, which costs 8 cycles less than to
// return and call, of the 46 of a chain of four links (Cascade Lake). Where jumps are calls, as compilers leave them without optimisation, the stack bounds them.
constexpr int TURN = 8;
struct Turn {
    const Bound* first;
    int64_t      last;                                  // the element that the last bundle begins with
};
// What goes from link to link in registers beside the bundle. A load of it from memory waits where a store before it, still under way, has the
// same place in its page; while L2 takes stores, some do for every place. On Zen 5 chains in L2 gain a fifth by that, and in L1 a quarter, where
// each bundle waited for three loads, one behind the other, behind the bundle before it.
struct Here {
    int64_t     at;                                     // the element of all operands that the bundle begins with
    const Turn* turn;
};
struct Reads { const char *first, *beside; };           // the memory of the first link, and of the first map that meets f32 in memory
using LinkLoop = void (*)(const Bound* link, Here here, Reads in, char* result, Vector a, Vector b, Vector c, Vector d, Vector e, Vector f, Vector g, Vector h);
// A link and what it works on; the next one lies behind it.
struct Bound {
    LinkLoop run;
    union {
        char*       memory;
        float       number;
    };
};

// One vector by a function of floats: the compiler makes one vector's instructions of the loop.
template <class F>
INLINE Vector each(F f)
{
    float lanes[WIDTH];
    for (int i = 0; i < WIDTH; i++) lanes[i] = f(i);
    Vector v;
    __builtin_memcpy(&v, lanes, sizeof v);
    return v;
}
struct Lanes {
    float lane[WIDTH];
    explicit INLINE Lanes(Vector v) { __builtin_memcpy(lane, &v, sizeof v); }
};

template <Format F>
INLINE Vector decoded(const uint16_t* codes)
{
#if defined(__AVX512F__)
    const __m256i c = _mm256_loadu_si256((const __m256i*)codes);
    if constexpr (F.exponent == 8) return (Vector)_mm512_maskz_slli_epi32(0xffff, _mm512_maskz_cvtepu16_epi32(0xffff, c), 16);
    else return (Vector)_mm512_maskz_cvtph_ps(0xffff, c);
#else
    const __m128i c = _mm_loadu_si128((const __m128i*)codes);
    if constexpr (F.exponent == 8) return (Vector)_mm256_slli_epi32(_mm256_cvtepu16_epi32(c), 16);
    else return (Vector)_mm256_cvtph_ps(c);
#endif
}
// The codes of numbers that the format has.
template <Format F>
INLINE Codes encoded(Vector v)
{
    if constexpr (F.exponent == 8) {
        const Lanes x(v);
        uint16_t    codes[WIDTH];
        for (int i = 0; i < WIDTH; i++) codes[i] = uint16_t(bits_of(x.lane[i]) >> 16);
        Codes all;
        __builtin_memcpy(&all, codes, sizeof all);
        return all;
    } else {
#if defined(__AVX512F__)
        return (Codes)_mm512_maskz_cvtps_ph(0xffff, (__m512)v, 0);
#else
        return (Codes)_mm256_cvtps_ph((__m256)v, 0);
#endif
    }
}
// NaNs as rounding gives them: quiet, without payload.
INLINE Vector with_plain_nans(Vector v)
{
    const Lanes x(v);
    return each([&](int i) __attribute__((always_inline)) {
        const uint32_t u = bits_of(x.lane[i]);
        return from_bits((u & 0x7fffffff) > 0x7f800000 ? (u & 0x80000000) | 0x7fc00000 : u);
    });
}
// To the format, still as floats; where its encoding rounds (F16C), of f16 the NaNs alone.
template <Format F, bool IS_STORED>
INLINE Vector rounded(Vector v)
{
    if constexpr (F.exponent == 8) {
        const Lanes x(v);
        return each([&](int i) __attribute__((always_inline)) { return round_to<F>(x.lane[i]); });
    } else if constexpr (IS_STORED) {
        return with_plain_nans(v);
    } else {
#if defined(__AVX512F__)
        return with_plain_nans((Vector)_mm512_maskz_cvtph_ps(0xffff, _mm512_maskz_cvtps_ph(0xffff, (__m512)v, 0)));
#else
        return with_plain_nans((Vector)_mm256_cvtph_ps(_mm256_cvtps_ph((__m256)v, 0)));
#endif
    }
}

// The operand's k-th vector of a bundle.
template <Form FORM> struct Met {
    const char* memory;
    INLINE Met(const char* from, int64_t at) : memory(from + at * (FORM == Form::Block ? 4 : FORM == Form::Near ? 0 : 2)) {}
    INLINE Met(const Bound* link, int64_t at) : Met(link->memory, at) {}
    INLINE Vector operator[](int k) const
    {
        if constexpr (FORM == Form::Block || FORM == Form::Near) return vector_at(memory + k * int(sizeof(Vector)));
        else if constexpr (FORM == Form::F16) return decoded<F16>((const uint16_t*)memory + k * WIDTH);
        else return decoded<BF16>((const uint16_t*)memory + k * WIDTH);
    }
};
template <> struct Met<Form::One> {
    Vector all;
    INLINE Met(const Bound* link, int64_t) : all(each([&](int) __attribute__((always_inline)) { return link->number; })) {}
    INLINE Vector operator[](int) const { return all; }
};

// The vectors of a bundle are read and written one after the other: in the order that compilers make of them (7 to 0) Zen 5 reads and
// writes L2 an eighth slower.
INLINE Vector in_order(Vector v)
{
    __asm__ volatile("" : "+v"(v) : : "memory");
    return v;
}// Its memory comes in a register, or with the link.
template <Form FORM, bool IS_HANDED>
INLINE Met<FORM> met(const Bound* link, const char* handed, int64_t at)
{
    if constexpr (IS_HANDED) return {handed, at};
    else return {link, at};
}

// Each vector by f, and on to the next link.
template <class F>
INLINE void onwards(const Bound* link, Here here, Reads in, char* result, F f, Vector a, Vector b, Vector c, Vector d, Vector e, Vector g, Vector h, Vector i)
{
    a = in_order(f(0, a)), b = in_order(f(1, b)), c = in_order(f(2, c)), d = in_order(f(3, d));
    e = in_order(f(4, e)), g = in_order(f(5, g)), h = in_order(f(6, h)), i = in_order(f(7, i));
    link[1].run(link + 1, here, in, result, a, b, c, d, e, g, h, i);
}

template <Form FORM, bool IS_FIRST = false>
void get(const Bound* link, Here here, Reads in, char* result, Vector a, Vector b, Vector c, Vector d, Vector e, Vector f, Vector g, Vector h)
{
    const Met<FORM> x = met<FORM, IS_FIRST>(link, in.first, here.at);
    onwards(link, here, in, result, [&](int k, Vector) __attribute__((always_inline)) { return x[k]; }, a, b, c, d, e, f, g, h);
}
template <class Row, Form FORM, bool IS_SWAPPED, bool IS_BESIDE = false>
void map_two(const Bound* link, Here here, Reads in, char* result, Vector a, Vector b, Vector c, Vector d, Vector e, Vector f, Vector g, Vector h)
{
    const Met<FORM> y = met<FORM, IS_BESIDE>(link, in.beside, here.at);
    onwards(link, here, in, result, [&](int k, Vector v) __attribute__((always_inline)) {
        const Lanes mine(v), other(y[k]);
        return each([&](int i) __attribute__((always_inline)) {
            return IS_SWAPPED ? Row::value(other.lane[i], mine.lane[i], 0.0f) : Row::value(mine.lane[i], other.lane[i], 0.0f);
        });
    }, a, b, c, d, e, f, g, h);
}
template <class Row>
void map_one(const Bound* link, Here here, Reads in, char* result, Vector a, Vector b, Vector c, Vector d, Vector e, Vector f, Vector g, Vector h)
{
    onwards(link, here, in, result, [&](int, Vector v) __attribute__((always_inline)) {
        const Lanes x(v);
        return each([&](int i) __attribute__((always_inline)) { return Row::value(x.lane[i], 0.0f, 0.0f); });
    }, a, b, c, d, e, f, g, h);
}
#if defined(__AVX512F__)
// By fours in place, for which there are registers.
template <class F>
INLINE void onwards_by_fours(const Bound* link, Here here, Reads in, char* result, F f, Vector a, Vector b, Vector c, Vector d, Vector e, Vector g, Vector h, Vector i)
{
    Vector first[] = {a, b, c, d}, last[] = {e, g, h, i};
    f(first);
    f(last);
    link[1].run(link + 1, here, in, result, first[0], first[1], first[2], first[3], last[0], last[1], last[2], last[3]);
}
template <>
void map_one<Row_exp>(const Bound* link, Here here, Reads in, char* result, Vector a, Vector b, Vector c, Vector d, Vector e, Vector f, Vector g, Vector h)
{
    onwards_by_fours(link, here, in, result, [](Vector (&v)[4]) __attribute__((always_inline)) { put_exp(v); }, a, b, c, d, e, f, g, h);
}
template <Op OP>
void map_curve(const Bound* link, Here here, Reads in, char* result, Vector a, Vector b, Vector c, Vector d, Vector e, Vector f, Vector g, Vector h)
{
    onwards_by_fours(link, here, in, result, [](Vector (&v)[4]) __attribute__((always_inline)) { put_curve<OP>(v); }, a, b, c, d, e, f, g, h);
}
template <>
void map_two<Row_div, Form::One, false>(const Bound* link, Here here, Reads in, char* result, Vector a, Vector b, Vector c, Vector d, Vector e, Vector f, Vector g, Vector h)
{
    Vector all[VECTORS] = {a, b, c, d, e, f, g, h};
    Divisor(link->number).divide(all);
    link[1].run(link + 1, here, in, result, all[0], all[1], all[2], all[3], all[4], all[5], all[6], all[7]);
}
#endif
template <Format F>
void round_all(const Bound* link, Here here, Reads in, char* result, Vector a, Vector b, Vector c, Vector d, Vector e, Vector f, Vector g, Vector h)
{
    onwards(link, here, in, result, [&](int, Vector v) __attribute__((always_inline)) { return rounded<F, false>(v); }, a, b, c, d, e, f, g, h);
}

void keep_near(const Bound* link, Here here, Reads in, char* result, Vector a, Vector b, Vector c, Vector d, Vector e, Vector f, Vector g, Vector h)
{
    auto* out = (Vector*)link->memory;
    onwards(link, here, in, result, [&](int k, Vector v) __attribute__((always_inline)) { return out[k] = v; }, a, b, c, d, e, f, g, h);
}
template <bool IS_STREAMING, bool IS_LAST = false>
void put_f32(const Bound* link, Here here, Reads in, char* result, Vector a, Vector b, Vector c, Vector d, Vector e, Vector f, Vector g, Vector h)
{
    char* const out = (IS_LAST ? result : link->memory) + here.at * 4;
    onwards(link, here, in, result, [&](int k, Vector v) __attribute__((always_inline)) {
        if constexpr (!IS_STREAMING) put_at(out + k * int(sizeof v), v);
#if defined(__AVX512F__)
        else _mm512_stream_ps((float*)out + k * WIDTH, (__m512)v);
#else
        else _mm256_stream_ps((float*)out + k * WIDTH, (__m256)v);
#endif
        return v;
    }, a, b, c, d, e, f, g, h);
}
template <Format F, bool IS_ROUNDING>
INLINE Codes codes_of(Vector v) { return encoded<F>(IS_ROUNDING ? rounded<F, true>(v) : v); }
template <Format F, bool IS_ROUNDING, bool IS_STREAMING, bool IS_LAST = false>
void put_codes(const Bound* link, Here here, Reads in, char* result, Vector a, Vector b, Vector c, Vector d, Vector e, Vector f, Vector g, Vector h)
{
    char* const out = (IS_LAST ? result : link->memory) + here.at * 2;
    // Past the caches by pairs of vectors: half a line at a time takes memory 7 % longer.
    const auto stream = [out](int k, Vector v, Vector w) __attribute__((always_inline)) {
        const Codes x = codes_of<F, IS_ROUNDING>(v), y = codes_of<F, IS_ROUNDING>(w);
#if defined(__AVX512F__)
        _mm512_stream_si512((__m512i*)out + k, __builtin_shufflevector((__m256i)x, (__m256i)y, 0, 1, 2, 3, 4, 5, 6, 7));
#else
        _mm256_stream_si256((__m256i*)out + k, __builtin_shufflevector((__m128i)x, (__m128i)y, 0, 1, 2, 3));
#endif
    };
    if constexpr (IS_STREAMING) {
        stream(0, a, b), stream(1, c, d), stream(2, e, f), stream(3, g, h);
        link[1].run(link + 1, here, in, result, a, b, c, d, e, f, g, h);
    } else {
        onwards(link, here, in, result, [&](int k, Vector v) __attribute__((always_inline)) {
            put_codes_at(out + k * int(sizeof(Codes)), codes_of<F, IS_ROUNDING>(v));
            return v;
        }, a, b, c, d, e, f, g, h);
    }
}
void finish(const Bound*, Here here, Reads in, char* result, Vector a, Vector b, Vector c, Vector d, Vector e, Vector f, Vector g, Vector h)
{
    const Turn& turn = *here.turn;
    if (here.at < turn.last) turn.first->run(turn.first, {here.at + BUNDLE, &turn}, in, result, a, b, c, d, e, f, g, h);
}

// Links, and those whose memory comes in a register: of the first get, of a map that meets f32 beside it, of the last put.
struct LinkTable { LinkLoop loop[2][LINK_PUTS], other[LINK_CODES], first[FORMS], beside[OPS * 2], last[LINK_PUTS]; };

template <class Row, bool IS_SWAPPED>
constexpr void put_forms(LinkLoop* loops)
{
    loops[int(Form::Block)] = map_two<Row, Form::Block, IS_SWAPPED>;
    loops[int(Form::One)] = map_two<Row, Form::One, IS_SWAPPED>;
    loops[int(Form::F16)] = map_two<Row, Form::F16, IS_SWAPPED>;
    loops[int(Form::Bf16)] = map_two<Row, Form::Bf16, IS_SWAPPED>;
    loops[int(Form::Near)] = map_two<Row, Form::Near, IS_SWAPPED>;
}
template <class Row>
constexpr void put_links(LinkTable& t)
{
    constexpr bool exists = is_link(Row::op, VECTOR_BYTES);
    if constexpr (exists && Row::arity == 1) {
        t.other[link_of_map(Row::op, Form::Block, false)] = map_one<Row>;
    } else if constexpr (exists) {
        constexpr bool is_ordered = Row::op != Op::add && Row::op != Op::mul;
        put_forms<Row, false>(t.other + link_of_map(Row::op, Form::Block, false));
        put_forms<Row, is_ordered>(t.other + link_of_map(Row::op, Form::Block, true));
        t.beside[int(Row::op) * 2] = map_two<Row, Form::Block, false, true>;
        t.beside[int(Row::op) * 2 + 1] = map_two<Row, Form::Block, is_ordered, true>;
    }
}
template <bool IS_STREAMING, bool IS_LAST>
constexpr void put_puts(LinkLoop* puts)
{
    puts[LINK_PUT_F32 - LINK_PUT_F32] = put_f32<IS_STREAMING, IS_LAST>;
    puts[LINK_PUT_F16 - LINK_PUT_F32] = put_codes<F16, false, IS_STREAMING, IS_LAST>;
    puts[LINK_PUT_BF16 - LINK_PUT_F32] = put_codes<BF16, false, IS_STREAMING, IS_LAST>;
    puts[LINK_ROUNDED_F16 - LINK_PUT_F32] = put_codes<F16, true, IS_STREAMING, IS_LAST>;
    puts[LINK_ROUNDED_BF16 - LINK_PUT_F32] = put_codes<BF16, true, IS_STREAMING, IS_LAST>;
}
constexpr LinkTable table()
{
    LinkTable t{};
    put_puts<false, false>(t.loop[false]);
    put_puts<true, false>(t.loop[true]);
    put_puts<false, true>(t.last);
    t.first[int(Form::Block)] = get<Form::Block, true>;
    t.first[int(Form::F16)] = get<Form::F16, true>;
    t.first[int(Form::Bf16)] = get<Form::Bf16, true>;
    t.other[LINK_GET + int(Form::Block)] = get<Form::Block>;
    t.other[LINK_GET + int(Form::One)] = get<Form::One>;
    t.other[LINK_GET + int(Form::F16)] = get<Form::F16>;
    t.other[LINK_GET + int(Form::Bf16)] = get<Form::Bf16>;
    t.other[LINK_GET + int(Form::Near)] = get<Form::Near>;
    t.other[LINK_KEEP_NEAR] = keep_near;
    t.other[LINK_KEEP] = put_f32<false>;
    t.other[LINK_ROUND_F16] = round_all<F16>;
    t.other[LINK_ROUND_BF16] = round_all<BF16>;
#define MAP(name, ...) put_links<Row_##name>(t);
#include "jit/ops.def"
#if defined(__AVX512F__)
#define CURVE(name) t.other[link_of_map(Op::name, Form::Block, false)] = map_curve<Op::name>;
    WIDE_CURVES(CURVE)
#undef CURVE
#endif
    return t;
}
constexpr LinkTable TABLE = table();

struct alignas(64) Bundle { char bytes[BUNDLE * 4]; };

constexpr bool is_put(const Link& link) { return link.code >= LINK_PUT_F32 && link.code < LINK_MAP; }
constexpr Form form_of(const Link& link) { return Form(link.code < LINK_KEEP ? link.code : (link.code - LINK_MAP) % FORMS); }
constexpr bool meets(const Link& link, Form form) { return (link.code < LINK_KEEP || link.code >= LINK_MAP) && form_of(link) == form; }
constexpr bool is_near(const Link& link) { return link.code == LINK_KEEP_NEAR || meets(link, Form::Near); }

// A chain as it runs: where it begins, and what registers hold.
struct Way {
    Reads in{};
    char* result = nullptr;
};

void bind(Bound* bound, const Link* links, int count, Bundle* near)
{
    for (int k = 0; k < count; k++) {
        const Link& link = links[k];
        bound[k].run = is_put(link) ? TABLE.loop[link.is_streaming][link.code - LINK_PUT_F32] : TABLE.other[link.code];
        bound[k].memory = is_near(link) ? near[link.near].bytes : link.memory;
    }
    bound[count].run = finish;
}
// Lets the links whose memory may come in registers take it from there.
Way hand_over(Bound* bound, const Link* links, int count)
{
    Way way;
    const Link &first = links[0], &last = links[count - 1];
    if (first.code < LINK_KEEP && TABLE.first[first.code]) bound[0].run = TABLE.first[first.code], way.in.first = first.memory;
    if (is_put(last) && !last.is_streaming) bound[count - 1].run = TABLE.last[last.code - LINK_PUT_F32], way.result = last.memory;
    for (int k = 1; k < count; k++) {
        const int map = (links[k].code - LINK_MAP) / FORMS;
        if (links[k].code < LINK_MAP || !meets(links[k], Form::Block) || !TABLE.beside[map]) continue;
        bound[k].run = TABLE.beside[map], way.in.beside = links[k].memory;
        break;
    }
    return way;
}
// Bundles from that of `at` to the last of the turn. Callers leave it to links to clear the registers' upper parts, and GCC forgets it in links:
// then SSE's next instructions, all that a block takes beside its loops, wait for the bundle's numbers.
void run_turn(const Turn& turn, int64_t at, const Way& way)
{
    turn.first->run(turn.first, {at, &turn}, way.in, way.result, Vector{}, Vector{}, Vector{}, Vector{}, Vector{}, Vector{}, Vector{}, Vector{});
    _mm256_zeroupper();
}

// Less than a bundle, in copies of what the links read and write: links that meet in memory meet in its copy.
void run_tail(Bound* bound, const Link* links, int links_count, int64_t at, int64_t count)
{
    Bundle copies[MAX_MET];
    uint32_t written = 0;                              // bits of copies
    int  owner[MAX_MET], owners = 0;                   // the first link at this memory
    for (int k = 0; k < links_count; k++) {
        const Link& link = links[k];
        if (is_put(link)) bound[k].run = TABLE.loop[false][link.code - LINK_PUT_F32];
        if (!link.bytes) continue;                     // it meets no memory
        int o = 0;
        while (o < owners && links[owner[o]].memory != link.memory) o++;
        if (o == owners) {
            owner[owners++] = k;
            for (int i = 0; i < VECTORS; i++) put_at(copies[o].bytes + i * int(sizeof(Vector)), Vector{});
            move_tail(copies[o].bytes, link.memory + at * link.bytes, count * link.bytes);
        }
        written |= uint32_t(is_put(link) || link.code == LINK_KEEP) << o;
        bound[k].memory = copies[o].bytes;
    }
    run_turn({bound, 0}, 0, {});
    for (int o = 0; o < owners; o++) {
        const Link& link = links[owner[o]];
        if (written >> o & 1) move_tail(link.memory + at * link.bytes, copies[o].bytes, count * link.bytes);
    }
}

}  // namespace

void ISA_NAME(chain)(const Link* links, int links_count, int64_t count, Aheads aheads)
{
    Bound   bound[MAX_LINKS + 1];
    Bundle  near[MAX_NEAR];
    Turn    turn{bound, 0};
    bind(bound, links, links_count, near);
    const Way way = count < BUNDLE ? Way{} : hand_over(bound, links, links_count);
    const int64_t most = aheads.count ? 1 : TURN;       // reading ahead and writing past the caches take turns
    int64_t       at = 0;
    for (int64_t bundles = count / BUNDLE, now; bundles > 0; bundles -= now, at += now * BUNDLE) {
        now = bundles < most ? bundles : most;
        turn.last = at + (now - 1) * BUNDLE;
        for (int k = 0; k < aheads.count; k++) {
            const Ahead&  ahead = aheads.first[k];
            const int64_t soon = (at + BUNDLE) * ahead.element_bytes, last = soon < ahead.bytes ? soon : ahead.bytes;
            for (int64_t i = at * ahead.element_bytes; i < last; i += 64) __builtin_prefetch(ahead.from + i);
        }
        run_turn(turn, at, way);
    }
    if (at == count) return;
    if (at > 0) bind(bound, links, links_count, near);
    run_tail(bound, links, links_count, at, count - at);
}

#endif

}  // namespace ng::cpu
