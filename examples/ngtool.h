// What the parts of ngtool share: owned handles, checked calls, the command line, values by name.
#pragma once
#include <ng.h>

#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace ngtool {

// Its text is what the user reads; the program ends with exit status 1 (usage: 2).
struct Failure : std::runtime_error {
    explicit Failure(const std::string& text, int exit_status = 1) : std::runtime_error(text), status(exit_status) {}
    int status;
};

template <auto release>
struct Releaser {
    template <class Handle> void operator()(Handle* handle) const { release(handle); }
};
using Context = std::unique_ptr<ng_ctx, Releaser<ng_ctx_release>>;
using Scope   = std::unique_ptr<ng_scope, Releaser<ng_scope_release>>;
using Tensor  = std::unique_ptr<ng_tensor, Releaser<ng_tensor_release>>;
using Program = std::unique_ptr<ng_prog, Releaser<ng_prog_release>>;

// A struct of ng.h, zeroed, with its size set.
template <class Struct> Struct sized()
{
    Struct value{};
    value.size = sizeof value;
    return value;
}

// Throws Failure with the library's sentence where status is a failure.
ng_status check(ng_status status, const ng_error& fault);
std::string text(const char* format, ...) __attribute__((format(printf, 1, 2)));

ng_shape make_shape(ng_dtype dtype, const std::vector<int64_t>& dims);
int64_t  element_count(const ng_shape& shape);
uint64_t dense_bytes(const ng_shape& shape);
const char* dtype_name(ng_dtype dtype);                                     // "f32"; "?" if unknown
std::string shape_text(const ng_shape& shape);                              // "f32[64, 128]"

// ---- the command line

struct Arguments {
    std::vector<std::string>           words;                               // without the subcommand
    std::map<std::string, std::string> options;                             // "-o" -> "out.npy", "--json" -> ""
    bool has(const std::string& option) const { return options.count(option) != 0; }
    std::string get(const std::string& option, const std::string& otherwise) const;
    int64_t number(const std::string& option, int64_t otherwise, int64_t most) const;     // a whole one from 0 to most
};
Arguments read_arguments(int argc, char** argv);                            // of all after the subcommand
Context   open_context(const Arguments& arguments);

// NAME=VALUE, where VALUE is a number, true or false, a .npy file, or a type and shape such as f32[64,128].
struct Binding {
    enum class Kind { Integer, Real, Truth, File, Shape } kind;
    std::string name, value;
    int64_t     integer = 0;
    double      real = 0;
    ng_shape    shape{};
};
std::vector<Binding> read_bindings(const std::vector<std::string>& words, size_t first);

ng_shape shape_of_file(const std::string& path);                            // of the array in a .npy file

// EXPR with its names standing for values. Throws Failure with the text and a caret where it is wrong.
ng_expr* parse_expression(ng_scope* scope, const std::string& source, const std::vector<Binding>& bindings,
                          const std::vector<ng_expr*>& values);
ng_expr* constant_of(ng_scope* scope, const Binding& binding);              // NULL for files and shapes

// Numbers in [0, 1) (normal: of variance 1) as shape's dtype, whole numbers below 100 for integers; the same for one seed.
void fill_random(ng_ctx* context, ng_tensor* tensor, uint64_t seed, bool normal = false);
Tensor random_tensor(ng_ctx* context, const ng_shape& shape, uint64_t seed);

// What numpy's str() would show of it.
std::string array_text(ng_ctx* context, ng_tensor* tensor);

// ---- subcommands: exit status

int run_eval(const Arguments& arguments);
int run_explain(const Arguments& arguments);
int run_dot(const Arguments& arguments);
int run_bench(const Arguments& arguments);
int run_tune(const Arguments& arguments);

std::string explained(const ng_prog* program);                              // the JSON that ng_prog_explain writes

}
