// The run-time compiler of CUDA, where this machine has it: generated text in, code for a device out, its words in an Error.
#include "jit/dialect.h"
#include "lib/backend/cuda/epilogue.h"
#include "lib/backend/cuda/gemm_mma.h"
#include "lib/backend/cuda/gemm_prologue.h"
#include "lib/backend/cuda/matmul.h"
#include "lib/backend/cuda/nvrtc.h"
#include "lib/backend/cuda/operand_form.h"
#include "lib/backend/cuda/runtime.h"
#include "tests/backend/finisher_image.h"
#include "tests/backend/plan_of_text.h"
#include "tests/backend/stand_in.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <thread>

using namespace ng;
using namespace ng::cuda;

REGISTER_EXCEPTION_TRANSLATOR(const Error& error) { return error.text.c_str(); }

namespace {

const Compiler* compiler()
{
    const Compiler* found = Compiler::find();
    if (!found) std::printf("skipped: no libnvrtc.so.13 or .12 here\n");
    return found;
}

std::string golden(const char* name)
{
    const char* root = std::getenv("NG_SOURCE");
    REQUIRE(root != nullptr);
    std::ifstream file(text(root, "/tests/jit/golden/", name));
    return {std::istreambuf_iterator<char>(file), {}};
}

CompileRequest request_for(const std::string& source, const char* arch)
{
    return {.prelude = cuda_dialect().prelude, .text = source, .options = cuda_dialect().options, .arch = arch};
}

}  // namespace

TEST_CASE("nvrtc: where there is none there is none, and a library that is not it is none")
{
    const char* const libraries[] = {"libng_no_such_compiler.so.13", "libm.so.6"};
    CHECK(Compiler::load(libraries) == nullptr);
    CHECK(Compiler::load({}) == nullptr);
    CHECK(Compiler::find() == Compiler::find());
}

TEST_CASE("nvrtc: a generated kernel becomes a cubin, and PTX for drivers that compile")
{
    const Compiler* nvrtc = compiler();
    const std::string source = golden("softmax_rows.cu");
    REQUIRE(holds(source, "fused"));
    if (!nvrtc) return;
    CHECK(nvrtc->version() >= 12000);
    CHECK(std::is_sorted(nvrtc->computes().begin(), nvrtc->computes().end()));
    CHECK(std::find(nvrtc->computes().begin(), nvrtc->computes().end(), 90) != nvrtc->computes().end());
    const std::string cubin = nvrtc->compile(request_for(source, "sm_90a"));
    CHECK(cubin.starts_with("\x7f" "ELF"));
    CHECK(holds(cubin, ".text.fused"));
    const std::string ptx = nvrtc->compile(request_for(source, "compute_80"));
    CHECK(holds(ptx, ".version"));
    CHECK(holds(ptx, ".entry fused"));

    // As a module both are found by the same name.
    const Driver& driver = fresh_driver();
    const DeviceContext home = DeviceContext::primary(driver, 0);
    const CurrentContext now(home);
    CHECK(Module(home, cubin, Module::Accepts::Binary).function("fused").native != nullptr);
    CHECK(Module(home, ptx, Module::Accepts::Ptx).function("fused").native != nullptr);
}

TEST_CASE("nvrtc: what is wrong with a text is in the Error, by line")
{
    const Compiler* nvrtc = compiler();
    if (!nvrtc) return;
    try {
        (void)nvrtc->compile({.prelude = "\n\n", .text = "__global__ void f() { nonsense; }\n", .options = "--fmad=false", .arch = "sm_90", .name = "mine.cu"});
        FAIL("it was taken");
    } catch (const Error& error) {
        CHECK(error.status == NG_E_COMPILE);
        CHECK(error.native != 0);
        CHECK(holds(error.text, "for sm_90: mine.cu(3): error"));
        CHECK(holds(error.text, "nonsense"));
    }
    for (const CompileRequest& bad : {CompileRequest{.text = "", .arch = "sm_1"}, CompileRequest{.options = "--no-such-option", .arch = "sm_90"}}) {
        try {
            (void)nvrtc->compile(bad);
            FAIL("it was taken");
        } catch (const Error& error) {
            CHECK(error.status == NG_E_COMPILE);
            CHECK(holds(error.text, text("for ", bad.arch, ": ")));
        }
    }
}

// What gcc and nvcc take of the kernels' headers, NVRTC may not: here each family is a text.
TEST_CASE("nvrtc: texts of products with what follows them, or what comes before, become cubins")
{
    if (!compiler()) return;
    const gemm::Device hopper = {90, 132, {true, true, true, true}}, ampere = {80, 108, {true, true, true, true}};
    struct Case {
        Dtype               type;
        int64_t             m, n;
        const gemm::Device& device;
        const char*         arch;
    };
    for (const Case& c : {Case{Dtype::f16, 256, 256, hopper, "sm_90a"}, {Dtype::f32, 256, 256, hopper, "sm_90a"}, {Dtype::f16, 100, 33, ampere, "sm_80"}, {Dtype::f32, 100, 33, ampere, "sm_80"}, {Dtype::i8, 16, 33, ampere, "sm_80"}}) {
        INFO(std::string(name_of(c.type)), " ", c.m, " ", c.arch);
        const Plan plan = tests::plan_of_text("maximum(f32(a @ b) * 0.5 + bias, 0)", {{"a", {c.m, 64}, c.type}, {"b", {64, c.n}, c.type}, {"bias", {c.n}, Dtype::f32}});
        const std::optional<EpilogueForm> form = EpilogueForm::of(plan.steps.at(0), plan.steps.at(1));
        REQUIRE(form);
        gemm::Problem p{};
        p.a_type = p.b_type = c.type, p.c_type = Dtype::f32, p.m = c.m, p.n = c.n, p.k = 64, p.batches = 1;
        p.a_row = 64, p.a_depth = 1, p.b_depth = c.n, p.b_column = 1, p.c_row = c.n, p.c_column = 1;
        const float no_scalars = 0;
        p.epilogue = form->in_numbers({}, &no_scalars), p.epilogue_weight = form->weight();
        p.epilogue.tensor[0].column = 1;
        const std::optional<gemm::Finisher> finisher = c.device.compute == 80 ? gemm::mma::finisher_for(p, c.device, nullptr) : gemm::finisher_for(p, c.device, nullptr);
        REQUIRE(finisher);
        CHECK(finisher->is_portable == (c.device.compute == 80));
        CHECK(holds(finisher_image(*finisher, form->text(), {}, c.arch), ".text.fused"));
    }
    const Plan  plan = tests::plan_of_text("a @ f16(f32(w) * column)", {{"a", {16, 4096}}, {"w", {4096, 2048}, Dtype::i8}, {"column", {2048}, Dtype::f32}});
    const Step& made = plan.steps.at(0);
    REQUIRE(made.feeds >= 0);
    const Step& product = plan.steps.at(size_t(made.feeds));
    const std::optional<OperandForm> form = OperandForm::of(made, product, 1);
    REQUIRE(form);
    const std::vector<Placed> in = {Placed(product.in[0]), Placed(form->raw())};
    const auto problem = matmul_problem({*product.node, in, Placed(product.out), nullptr, nullptr, &*form}, {});
    REQUIRE(problem);
    for (const auto& [device, arch] : {std::pair(hopper, "sm_90a"), std::pair(ampere, "sm_80")}) {
        INFO(arch);
        const std::optional<gemm::Finisher> finisher = gemm::made::finisher_for(*problem, device);
        REQUIRE(finisher);
        CHECK(holds(finisher_image(*finisher, {}, form->text(), arch), ".text.fused"));
    }
}

TEST_CASE("nvrtc: many threads compile at once")
{
    const Compiler* nvrtc = compiler();
    if (!nvrtc) return;
    const std::string source = golden("chain.cu"), wanted = nvrtc->compile(request_for(source, "compute_80"));
    std::vector<std::string> results(4);
    std::vector<std::thread> threads;
    for (std::string& result : results) threads.emplace_back([&] { result = Compiler::find()->compile(request_for(source, "compute_80")); });
    for (std::thread& thread : threads) thread.join();
    for (const std::string& result : results) CHECK(result == wanted);
}
