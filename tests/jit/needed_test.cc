// What is left of a prelude for a text: all that it calls by whatever way, and nothing that it does not.
#include "jit/needed.h"

#include "jit/dialect.h"

#include <doctest/doctest.h>

using namespace ng;

namespace {

bool has(const std::string& text, std::string_view words) { return text.find(words) != std::string::npos; }

constexpr std::string_view SOME = R"(// first_of_all() is in a comment.
typedef int i32;
#define DEVICE static inline
#define LEAST i32_least()
DEVICE i32 i32_least() { return -1; }

struct alignas(8) Pair { i32 a, b; };
typedef struct {
    i32 x;
} Single;
DEVICE i32 of(Pair p)
{
    asm("{ not a brace");
    if (p.a) { return p.b; }
    return inner(p.a);
}
DEVICE i32 of(Single s) { return s.x; }
DEVICE i32 inner(i32 x);
DEVICE i32 inner(i32 x) { return x; }
template <class T>
DEVICE T lonely(T x)
{
    return x;
}
#define BOTH(name, T)                         \
    DEVICE T name##_##T(T x) { return x; }    \
    /* and { */                               \
    ONE(name##_of, T)
#define ONE(name, T) DEVICE T name##_##T() { return deep_##T(); }
#ifdef WIDE
#define EACH(T) DEVICE T wide_##T() { return lonely(T()); }
#else
#define EACH(T) DEVICE T narrow_##T() { return 0; }
#endif
DEVICE i32 deep_i32() { return 1; }
BOTH(neg, i32)
EACH(i32)
#undef BOTH
)";

}  // namespace

TEST_CASE("needed: nothing but directives is kept for nothing")
{
    const Pieces pieces(SOME);
    const std::string none = pieces.needed_by("");
    CHECK(none == "#ifdef WIDE\n#else\n#endif\n#undef BOTH\n");
    CHECK(pieces.needed_by("// of(p), \"inner(x)\"\n/* lonely(1) */ 7 + other(\"lonely\")") == none);
}

TEST_CASE("needed: a call brings every function of that name, what these name, and what those do")
{
    const Pieces pieces(SOME);
    const std::string some = pieces.needed_by("x = of(y);");
    for (const char* words : {"typedef int i32", "#define DEVICE", "struct alignas(8) Pair", "} Single;", "DEVICE i32 of(Pair p)", "DEVICE i32 of(Single s)", "inner(i32 x);", "inner(i32 x) {"})
        CHECK_MESSAGE(has(some, words), words);
    for (const char* words : {"lonely", "deep_i32", "#define BOTH", "i32_least", "comment"}) CHECK_MESSAGE(!has(some, words), words);
    CHECK(some.find("inner(i32 x);") < some.find("inner(i32 x) {"));
}

TEST_CASE("needed: macros are followed, also those that make names, in each way they are defined")
{
    const Pieces pieces(SOME);
    CHECK(has(pieces.needed_by("LEAST"), "DEVICE i32 i32_least()"));
    for (const char* word : {"neg_i32(1)", "neg_of_i32()"}) {
        const std::string made = pieces.needed_by(word);
        for (const char* words : {"#define BOTH", "#define ONE", "BOTH(neg, i32)", "deep_i32() {", "typedef int"}) CHECK_MESSAGE(has(made, words), words);
        CHECK(!has(made, "EACH"));
    }
    for (const char* word : {"wide_i32", "narrow_i32"}) {
        const std::string made = pieces.needed_by(word);
        for (const char* words : {"#define EACH(T) DEVICE T wide", "#define EACH(T) DEVICE T narrow", "EACH(i32)", "DEVICE T lonely"}) CHECK_MESSAGE(has(made, words), words);
        CHECK(has(made, "template <class T>\nDEVICE T lonely(T x)\n{\n    return x;\n}\n"));
    }
}

TEST_CASE("needed: a text that joins words gets everything")
{
    CHECK(Pieces(SOME).needed_by("#define F(x) f_##x\n") == SOME);
    CHECK(Pieces("").needed_by("f(x)").empty());
    CHECK(Pieces("typedef int i32;").needed_by("i32 x;") == "typedef int i32;");
}

TEST_CASE("needed: of the preludes in use, a small part for a small kernel")
{
    const std::string_view all = cuda_dialect().prelude;
    const std::string less = Pieces(all).needed_by("f32 f(f32 x) { return exp_f32(x); }");
    CHECK(less.size() * 10 < all.size());
    CHECK(has(less, "ONE(exp,"));
    CHECK(!has(less, "ONE(log,"));
    CHECK(!has(less, "philox"));
    const std::string random = Pieces(all).needed_by("normal_f32(i, k, s)");
    for (const char* words : {"DEVICE Words philox", "DEVICE f32 plain_log_f32", "DEVICE f32 plain_cosine_f32", "} Words;", "ONE(sqrt,"}) CHECK_MESSAGE(has(random, words), words);
    const std::string folds = Pieces(all).needed_by("moments_f32 m; together_f32(m, m);");
    for (const char* words : {"#define RUNNING", "RUNNING(f32,", "DEVICE f32 share(f32", "tree_sum", "FLOAT(f32,", "near_exp2"}) CHECK_MESSAGE(has(folds, words) == (std::string_view(words) != "near_exp2"), words);
    CHECK(!has(folds, "RUNNING(f64,"));
}
