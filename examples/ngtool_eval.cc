// ngtool eval: an expression over .npy files, numbers and random arrays, shown or written to a .npy file.
#include "ngtool.h"
#include "npy.h"

#include <cstdio>
#include <filesystem>

namespace ngtool {
namespace {

NpyArray open_array(const std::string& path)
{
    std::error_code unknown;
    if (!std::filesystem::exists(path, unknown) && !unknown)
        throw Failure("\"" + path + "\" is neither a number nor a type and shape such as f32[64,128], and there is no file of that name");
    return read_npy(path);
}

// One in Fortran's order keeps it, by strides.
ng_shape shape_of(const NpyArray& array)
{
    ng_shape shape = make_shape(array.dtype, array.dims);
    if (array.fortran_order) {
        shape.flags = NG_STRIDED;
        int64_t stride = 1;
        for (int32_t axis = 0; axis < shape.ndim; axis++) {
            shape.strides[axis] = stride;
            stride *= shape.dims[axis];
        }
    }
    return shape;
}

Tensor load_tensor(ng_ctx* context, const std::string& path)
{
    const NpyArray array = open_array(path);
    const ng_shape shape = shape_of(array);
    ng_tensor* tensor = nullptr;
    ng_error fault{};
    check(ng_tensor_create(context, &shape, &tensor, &fault), fault);
    Tensor owner(tensor);
    check(ng_tensor_put(tensor, array.data.data(), array.data.size(), &fault), fault);
    return owner;
}

void write_result(ng_tensor* tensor, const std::string& path)
{
    ng_shape shape = sized<ng_shape>();
    ng_error fault{};
    check(ng_tensor_shape(tensor, &shape), fault);
    NpyArray array;
    array.dtype = shape.dtype;
    array.dims.assign(shape.dims, shape.dims + shape.ndim);
    array.data.resize(dense_bytes(shape));
    check(ng_tensor_get(tensor, array.data.data(), array.data.size(), &fault), fault);
    write_npy(path, array);
    printf("%s: %s\n", path.c_str(), shape_text(shape).c_str());
}

}

ng_shape shape_of_file(const std::string& path) { return shape_of(open_array(path)); }

void fill_random(ng_ctx* context, ng_tensor* tensor, uint64_t seed, bool normal)
{
    ng_shape shape = sized<ng_shape>();
    ng_error fault{};
    check(ng_tensor_shape(tensor, &shape), fault);
    const Scope scope(ng_scope_create(context, 0));
    const bool wide = shape.dtype == NG_F64;
    const bool is_float = wide || shape.dtype == NG_F32 || shape.dtype == NG_F16 || shape.dtype == NG_BF16
                       || shape.dtype == NG_E4M3 || shape.dtype == NG_E5M2;
    const ng_shape drawn = make_shape(wide ? NG_F64 : NG_F32, { shape.dims, shape.dims + shape.ndim });
    ng_expr* key = ng_const_int(scope.get(), NG_U64, int64_t(seed));
    ng_expr* value = ng_random(scope.get(), normal ? NG_NORMAL : NG_UNIFORM, key, nullptr, &drawn);
    if (!is_float) value = ng_parse(scope.get(), shape.dtype == NG_BOOL ? "r < 0.5" : "floor(100 * r)", "r", &value, 1);
    value = ng_cast(value, shape.dtype);
    check(ng_eval(context, nullptr, &value, &tensor, 1, &fault), fault);
}

Tensor random_tensor(ng_ctx* context, const ng_shape& shape, uint64_t seed)
{
    ng_tensor* tensor = nullptr;
    ng_error fault{};
    check(ng_tensor_create(context, &shape, &tensor, &fault), fault);
    Tensor owner(tensor);
    fill_random(context, tensor, seed);
    return owner;
}

int run_eval(const Arguments& arguments)
{
    if (arguments.words.empty()) throw Failure("eval wants an expression: ngtool eval \"sum(x)\" x=data.npy", 2);
    const std::vector<Binding> bindings = read_bindings(arguments.words, 1);
    const Context context = open_context(arguments);
    const Scope scope(ng_scope_create(context.get(), 0));
    std::vector<Tensor> tensors;
    std::vector<ng_expr*> values;
    for (const Binding& binding : bindings) {
        if (binding.kind == Binding::Kind::File) tensors.push_back(load_tensor(context.get(), binding.value));
        if (binding.kind == Binding::Kind::Shape) tensors.push_back(random_tensor(context.get(), binding.shape, values.size()));
        ng_expr* constant = constant_of(scope.get(), binding);
        values.push_back(constant ? constant : ng_leaf(scope.get(), tensors.back().get()));
    }
    ng_expr* root = parse_expression(scope.get(), arguments.words[0], bindings, values);
    ng_tensor* result = nullptr;
    ng_error fault{};
    check(ng_eval(context.get(), nullptr, &root, &result, 1, &fault), fault);
    const Tensor owner(result);
    if (arguments.has("-o")) write_result(result, arguments.get("-o", ""));
    else printf("%s\n", array_text(context.get(), result).c_str());
    return 0;
}

}
