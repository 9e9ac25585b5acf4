// An epilogue with folds beside it that products are tested with, for any types of theirs.
#pragma once
#include "lib/backend/cuda/epilogue.h"
#include "tests/backend/gemm_problems.h"
#include "tests/backend/plan_of_text.h"

#include <doctest/doctest.h>

namespace ng::gemm_check {

using cuda::EpilogueForm;

// What an epilogue also does with its values: sums and greatest ones of rows, or of columns, and how far they are off their means.
enum class Folds { None, OverColumns, OverRows, SquaresOverColumns };

// max(c / 2 + bias, 0) + residual, bias f32 [n] and residual f16 [batches, m, n], as a text for products of these types.
inline EpilogueForm epilogue_of(const Types& t, Dtype c, int64_t batches, Folds folds)
{
    const auto batched = [&](ng::Extents dims) { return batches > 1 ? (dims.insert(dims.begin(), batches), dims) : dims; };
    const std::string words = text(name_of(c), "(maximum(f32(a @ b) * 0.5 + bias, 0) + residual)");
    const bool is_over_columns = folds == Folds::OverColumns || folds == Folds::SquaresOverColumns;
    const std::string axis = text(", ", int(batches > 1) + int(is_over_columns), ")"), sums = "sum(" + words + axis, most = "max(" + words + axis, squares = "var(" + words + axis;
    std::vector<std::string_view> outputs = {words, sums, most, squares};
    outputs.resize(folds == Folds::None ? 1 : folds <= Folds::OverRows ? 3 : 4);
    const Plan plan = tests::plan_of_texts(outputs, {{"a", batched({24, 16}), t.a}, {"b", batched({16, 32}), t.b}, {"bias", {32}, Dtype::f32}, {"residual", batched({24, 32}), Dtype::f16}});
    const std::optional<EpilogueForm> form = EpilogueForm::of(plan.steps.at(0), plan.steps.at(1));
    REQUIRE(form);
    return *form;
}
inline void add_epilogue(cuda::gemm::Problem& p, const EpilogueForm& form, const void* bias, const void* residual)
{
    const float none = 0;
    p.epilogue = form.in_numbers({}, &none), p.epilogue_weight = form.weight();
    p.is_pivoted = form.folds() && form.folds()->is_pivoted;
    REQUIRE(p.epilogue.loads == 2);
    for (int i = 0; i < 2; i++) {
        kernels::EpilogueTensor& t = p.epilogue.tensor[i];
        t.column = 1;
        if (form.tensors()[size_t(i)].type == Dtype::f32) t.data = bias;
        else t.data = residual, t.row = p.n, t.batch = p.m * p.n;
    }
}

}  // namespace ng::gemm_check
