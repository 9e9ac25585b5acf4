// ngtool tune: has the library measure its kernels for an expression's shapes, and shows what came out.
#include "json_reader.h"
#include "ngtool_bench.h"

#include <cstdio>

namespace ngtool {
namespace {

// The expression over arguments of the shapes that the command line gives.
Case case_of(const Arguments& arguments, const std::vector<Binding>& bindings)
{
    Case what;
    what.name = arguments.words[0];
    for (const Binding& binding : bindings) {
        if (binding.kind == Binding::Kind::File) throw Failure("\"" + binding.value + "\" is neither a number nor a type and shape such as f32[64,128]", 2);
        if (binding.kind != Binding::Kind::Shape) continue;
        for (int32_t axis = 0; axis < binding.shape.ndim; axis++)
            if (binding.shape.dims[axis] < 0) throw Failure(binding.name + " wants lengths that are known: what is measured is one shape", 2);
        what.args.push_back(binding.shape);
    }
    what.build = [&arguments, &bindings](ng_scope* scope, const Exprs& args) {
        Exprs values;
        size_t next = 0;
        for (const Binding& binding : bindings) {
            ng_expr* constant = constant_of(scope, binding);
            values.push_back(constant ? constant : args[next++]);
        }
        return Exprs{ parse_expression(scope, arguments.words[0], bindings, values) };
    };
    return what;
}

void print_products(const ng_prog* program)
{
    size_t products = 0;
    const Json root = read_json(explained(program));
    for (const Json& step : root.list("steps")) {
        if (step.text_of("kind") != "matmul") continue;
        printf("product %zu: %s\n", products++, step.text_of("tier").c_str());
    }
    if (products == 0) puts("there is no product in it: nothing was measured");
}

}

int run_tune(const Arguments& arguments)
{
    if (arguments.words.empty()) throw Failure("tune wants an expression: ngtool tune \"f16(a @ b)\" a=f16[512,4096] b=f16[4096,1024]", 2);
    const std::vector<Binding> bindings = read_bindings(arguments.words, 1);
    Bench bench(arguments);
    if (bench.is_cpu()) throw Failure("the choice among kernels is measured on GPUs alone: on a CPU there is one for each product");
    Case what = case_of(arguments, bindings);
    what.flags = NG_PROG_TUNE;
    print_products(compile_case(bench.context(), what).get());
    return 0;
}

}
