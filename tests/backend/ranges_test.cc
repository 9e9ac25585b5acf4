// Ranges of NVTX on the CUDA backend: a tool that is in the process sees each run by its tag, its steps within, and each range ended.
#include "tests/backend/cuda_host.h"
#include "tests/backend/emulated_device.h"

using namespace ng;

namespace {

// Loaded before the first context of the process, as a profiler is.
struct Tool {
    void* library = dlopen(std::getenv("NG_FAKE_TOOL"), RTLD_NOW | RTLD_LOCAL);
    std::string names() const { return reinterpret_cast<const char* (*)()>(dlsym(library, "ng_fake_ranges"))(); }
    int depth() const { return reinterpret_cast<int (*)()>(dlsym(library, "ng_fake_depth"))(); }     // now * 100 + at most
};

}  // namespace

TEST_CASE("ranges: a run, its steps, an evaluation and a run that fails are ranges named by their tags, and end")
{
    REQUIRE_MESSAGE(std::getenv("NG_FAKE_TOOL") != nullptr, "NG_FAKE_TOOL is the path of the tool that the build made");
    const Tool tool;
    REQUIRE(tool.library != nullptr);
    const fake::Control& driver = emulated_device();
    ng_ctx* c = open_ctx(NG_CTX_NO_JIT);
    ng_tensor* const t[] = {make(c, 8), make(c, 8), make(c, 8)};
    for (ng_tensor* x : t) CHECK(ng_tensor_fill(x, nullptr, 1, nullptr) == NG_OK);
    ng_prog* p = program_of(c, "x + y", 8, true, "heat");
    CHECK(tool.names() == "");
    CHECK(run(p, nullptr, t, t[2]) == NG_OK);
    CHECK(run(p, nullptr, t, t[2]) == NG_OK);
    CHECK(tool.names() == "heat\nheat\n");
    ng_scope* s = ng_scope_create(c, 0);
    ng_expr* e = ng_tag(ng_exp(ng_leaf(s, t[0])), "growth");
    ng_tensor* out = nullptr;
    CHECK(ng_eval(c, nullptr, &e, &out, 1, nullptr) == NG_OK);
    ng_tensor_release(out);
    ng_scope_release(s);
    CHECK(tool.names() == "heat\nheat\ngrowth\n");
    driver.fail_function("cuLaunchKernel", 1, 1);
    CHECK(run(p, nullptr, t, t[2]) == NG_E_DEVICE);
    CHECK(tool.names() == "heat\nheat\ngrowth\nheat\n");
    CHECK(tool.depth() == 1);

    const size_t before = tool.names().size();
    ng_prog* steps = nullptr;
    {
        ng_scope* inner = ng_scope_create(c, 0);
        const ng_shape d = vector_of(8);
        ng_expr* const params[] = {ng_param(inner, 0, &d), ng_param(inner, 1, &d)};
        ng_expr* const flow = ng_tag(ng_mul(params[0], params[1]), "flow");
        ng_expr* const roots[] = {ng_tag(ng_exp(ng_scan(flow, 0, NG_FOLD_SUM, 0)), "weather"), flow};
        CHECK(ng_compile(c, nullptr, roots, 2, &steps, nullptr) == NG_OK);
        ng_scope_release(inner);
    }
    ng_tensor* const outs[] = {t[2], make(c, 8)};
    ng_run both{};
    both.size = sizeof both, both.nargs = 2, both.nout = 2, both.args = t, both.out = outs;
    CHECK(ng_prog_run(steps, nullptr, &both, nullptr) == NG_OK);
    CHECK(tool.names().substr(before) == "weather\nscan\nweather flow\n");    // what has no tag is in none of its own; a call is by what it is
    CHECK(tool.depth() == 2);
    driver.fail_function("cuLaunchKernel", 2, 1);
    CHECK(ng_prog_run(steps, nullptr, &both, nullptr) == NG_E_DEVICE);
    CHECK(tool.names().substr(before) == "weather\nscan\nweather flow\nweather\nscan\n");
    CHECK(tool.depth() == 2);                                              // none is open, two were at most
    ng_prog_release(steps), ng_tensor_release(outs[1]);
    for (ng_tensor* x : t) ng_tensor_release(x);
    ng_prog_release(p);
    shut(c);
}
