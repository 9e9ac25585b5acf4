// What follows the products that choice_gpu times: as each shape's problem has it, over operands that take turns, and compiled with their instances.
#pragma once
#include "lib/backend/cuda/epilogue.h"
#include "lib/backend/cuda/gemm_sm90.h"
#include "lib/backend/cuda/runtime.h"
#include "tests/backend/finisher_image.h"
#include "tests/backend/plan_of_text.h"

#include <future>
#include <map>

namespace ng::bench {

// Of r, beside products of this type.
inline Dtype beside(Dtype product) { return is_float(product) ? product : Dtype::f16; }

// Texts over a [m, k], b [k, n], r [m, n], row [1, n] and col [m, 1] of f32.
class Behind {
  public:
    Behind(const std::string& words, const cuda::gemm::Problem& p) : form_(form_of(words, p)), m_(p.m), n_(p.n) {}
    const std::string& text() const { return form_.text(); }
    // What it reads lies there, in a row of its matrices and one of its vectors: those of this turn, behind those of the turns before.
    void add_to(cuda::gemm::Problem& p, uint64_t matrices = 0, uint64_t vectors = 0, uint64_t turn = 0) const
    {
        const float none = 0;
        p.epilogue = form_.in_numbers({}, &none), p.epilogue_weight = form_.weight(), p.c_type = form_.result().type;
        uint64_t matrix = matrices + turn * bytes_of(true), vector = vectors + turn * bytes_of(false);
        for (size_t i = 0; i < form_.tensors().size(); i++) {
            const cuda::EpilogueTensor& from = form_.tensors()[i];
            kernels::EpilogueTensor&    t = p.epilogue.tensor[i];
            t.row = stride(from, 0), t.column = stride(from, 1);
            uint64_t& at = is_matrix(from) ? matrix : vector;
            t.data = reinterpret_cast<const void*>(at), at += bytes_of(from);
        }
    }
    uint64_t bytes_of(bool of_matrices) const
    {
        uint64_t all = 0;
        for (const cuda::EpilogueTensor& t : form_.tensors()) all += is_matrix(t) == of_matrices ? bytes_of(t) : 0;
        return all;
    }

  private:
    static cuda::EpilogueForm form_of(const std::string& words, const cuda::gemm::Problem& p)
    {
        const Plan plan = tests::plan_of_texts({words}, {{"a", {p.m, p.k}, p.a_type}, {"b", {p.k, p.n}, p.b_type}, {"r", {p.m, p.n}, beside(p.c_type)}, {"row", {1, p.n}, Dtype::f32}, {"col", {p.m, 1}, Dtype::f32}});
        std::optional<cuda::EpilogueForm> form;
        if (plan.steps.size() == 2 && plan.steps[1].runs_with_product()) form = cuda::EpilogueForm::of(plan.steps[0], plan.steps[1]);
        if (!form || form->is_cast() || form->behind()) throw Error(NG_E_UNSUPPORTED, ng::text("\"", words, "\" is not what a product's kernel computes behind it"));
        return *form;
    }
    static int64_t stride(const cuda::EpilogueTensor& t, size_t axis) { return t.access.strides.at(axis).value({}); }
    static bool    is_matrix(const cuda::EpilogueTensor& t) { return stride(t, 0) != 0 && stride(t, 1) != 0; }
    uint64_t       bytes_of(const cuda::EpilogueTensor& t) const
    {
        return cuda::aligned(uint64_t((stride(t, 0) ? m_ : 1) * (stride(t, 1) ? n_ : 1) * ng::bytes_of(t.type)));
    }

    cuda::EpilogueForm form_;
    int64_t            m_, n_;
};

// Instances that have it in them; those of a call are compiled side by side.
class BehindTexts {
  public:
    struct Code {
        cuda::gemm::Finisher        finisher;
        cuda::Module                module;
        std::vector<cuda::Function> functions;
    };
    void need(const cuda::DeviceContext& home, const cuda::gemm::sm90::Form& form, const std::vector<uint32_t>& instances, const std::string& epilogue)
    {
        std::map<std::string, std::pair<cuda::gemm::Finisher, std::future<std::string>>> coming;
        of_instance_.clear();
        for (const uint32_t i : instances) {
            const cuda::gemm::Finisher finisher = cuda::gemm::sm90::finisher_of(form, i);
            const std::string          source = cuda::gemm::finisher_text(finisher, epilogue);
            of_instance_[i] = source;
            if (codes_.contains(source) || coming.contains(source)) continue;
            coming.try_emplace(source, finisher, std::async(std::launch::async, [finisher, epilogue] { return cuda::finisher_image(finisher, epilogue, {}, "sm_90a"); }));
        }
        for (auto& [source, one] : coming) {
            cuda::Module module(home, one.second.get(), cuda::Module::Accepts::Binary);
            std::vector<cuda::Function> functions = {module.function("fused"), module.function("fused_1")};
            allow_shared(home, functions[0], one.first.shared_bytes);
            codes_.try_emplace(source, Code{one.first, std::move(module), std::move(functions)});
        }
    }
    const Code& of(uint32_t instance) const { return codes_.at(of_instance_.at(instance)); }

  private:
    std::map<std::string, Code>     codes_;
    std::map<uint32_t, std::string> of_instance_;    // of the last call
};

}  // namespace ng::bench
