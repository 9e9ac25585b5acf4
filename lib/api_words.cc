// ng.h: one function an operation, from the table.
#include "lib/builder.h"

using namespace ng;

namespace {

ng_expr* word(const char* who, Op op, std::initializer_list<ng_expr*> operands)
{
    return build_expr(who, [&](Building& b) {
        std::array<NodeRef, 3> x;
        size_t count = 0;
        for (ng_expr* e : operands) x[count] = b.operand(e, std::array{"x", "y", "z"}[count]), count++;
        return b.build([&](Graph& g) { return build::map(g, op, std::span<const NodeRef>(x.data(), count)); });
    });
}

ng_expr* reduction(const char* who, Op op, ng_expr* x, ng_axes axes, uint32_t flags)
{
    return build_expr(who, [&](Building& b) {
        const NodeRef n = b.operand(x, "x");
        return b.build([&](Graph& g) { return build::reduce(g, op, n, axes, flags); });
    });
}

ng_expr* normalisation(const char* who, Op op, ng_expr* x, ng_axes axes)
{
    return build_expr(who, [&](Building& b) {
        const NodeRef n = b.operand(x, "x");
        return b.build([&](Graph& g) { return build::norm(g, op, n, axes); });
    });
}

}  // namespace

#define WORD_1(name) \
    ng_expr* ng_##name(ng_expr* x) { return word("ng_" #name, Op::name, {x}); }
#define WORD_2(name) \
    ng_expr* ng_##name(ng_expr* x, ng_expr* y) { return word("ng_" #name, Op::name, {x, y}); }
#define WORD_3(name) \
    ng_expr* ng_##name(ng_expr* x, ng_expr* y, ng_expr* z) { return word("ng_" #name, Op::name, {x, y, z}); }
#define MAP(name, arity, ...) WORD_##arity(name)
#define FOLD(name, ...) \
    ng_expr* ng_##name(ng_expr* x, ng_axes axes, uint32_t flags) { return reduction("ng_" #name, Op::name, x, axes, flags); }
#define STAT(name, ...) FOLD(name)
#define NORM(name, ...) \
    ng_expr* ng_##name(ng_expr* x, ng_axes axes) { return normalisation("ng_" #name, Op::name, x, axes); }
#include "jit/ops.def"
#undef WORD_1
#undef WORD_2
#undef WORD_3
