// Generated texts through their languages' own compilers, where this machine has them.
#include "jit/needed.h"
#include "tests/jit/emit_cases.h"

#include <doctest/doctest.h>

#include <dlfcn.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

using namespace ng;
using namespace ng::emitted;

REGISTER_EXCEPTION_TRANSLATOR(const Error& error) { return error.text.c_str(); }

namespace {

// NVRTC by its symbols, as a program without CUDA's headers calls it.
class Nvrtc {
  public:
    Nvrtc()
    {
        for (const char* name : {"libnvrtc.so.13", "libnvrtc.so.12"})
            if (!library_) library_ = dlopen(name, RTLD_NOW | RTLD_LOCAL);
        if (!library_) return;
        find(create_, "nvrtcCreateProgram"), find(compile_, "nvrtcCompileProgram"), find(destroy_, "nvrtcDestroyProgram");
        find(log_size_, "nvrtcGetProgramLogSize"), find(log_, "nvrtcGetProgramLog");
    }
    bool is_here() const { return library_; }
    // What is wrong with the text behind as much of the prelude as it needs, or nothing.
    std::string fault(const std::string& text, const std::string& architecture) const
    {
        void* program = nullptr;
        const std::string source = pieces_.needed_by(text) + text;
        if (create_(&program, source.c_str(), "fused.cu", 0, nullptr, nullptr) != 0) return "no program";
        std::vector<std::string> options = {"--gpu-architecture=" + architecture};
        std::istringstream more(cuda_dialect().options);
        for (std::string option; more >> option;) options.push_back(option);
        std::vector<const char*> pointers;
        for (const std::string& o : options) pointers.push_back(o.c_str());
        const int result = compile_(program, int(pointers.size()), pointers.data());
        size_t size = 0;
        log_size_(program, &size);
        std::string log(size, ' ');
        log_(program, log.data());
        destroy_(&program);
        return result == 0 ? "" : "NVRTC: " + log;
    }

  private:
    template <class F> void find(F& f, const char* name)
    {
        f = reinterpret_cast<F>(dlsym(library_, name));
        const bool is_found = f != nullptr;
        REQUIRE(is_found);
    }
    Pieces pieces_{cuda_dialect().prelude};
    void* library_ = nullptr;
    int (*create_)(void**, const char*, const char*, int, const char* const*, const char* const*) = nullptr;
    int (*compile_)(void*, int, const char* const*) = nullptr;
    int (*destroy_)(void**) = nullptr;
    int (*log_size_)(void*, size_t*) = nullptr;
    int (*log_)(void*, char*) = nullptr;
};

struct Named { std::string name, text; };

std::vector<Named> all_kernels(const Dialect& dialect)
{
    std::vector<Named> out;
    for (Cases (*cases)() : {golden_cases, other_cases})
        for (const auto& c : cases())
            for (const Step& s : c->plan.steps)
                if (s.kernel) out.push_back({c->name, emit(*s.kernel, dialect).text});
    return out;
}

// One text with a kernel for every row of one type.
Named all_maps(Dtype t, const Dialect& dialect)
{
    std::string text;
    for (int o = 0; o < OPS; o++) {
        const Op op = Op(o);
        if (!is_map(op) || (info(op).domain == Domain::Bits && is_float(t))) continue;
        Case c(name_of(op), "");
        c.input("x", op == Op::where ? Dtype::bool_ : t, {29}, 0, 2);
        c.input("y", t, {29}), c.input("z", t, {29});
        const std::array<NodeRef, 3> given = {c.real[0], c.real[1], c.real[2]};
        const NodeRef y = build::map(*c.g, op, std::span(given.data(), info(op).arity));
        c.add_out(y, y);
        c.compile();
        // Each with names of its own, as one language has no namespaces.
        const std::string kernel = emit(*c.plan.steps.at(0).kernel, dialect).text, tail = std::string("_of_") + c.name;
        text += ng::text("#define fused fused", tail, "\n#define Numbers Numbers", tail, "\n", kernel, "#undef fused\n#undef Numbers\n");
    }
    return {ng::text("every row of ", name_of(t)), text};
}

std::vector<Named> everything(const Dialect& dialect)
{
    std::vector<Named> all = all_kernels(dialect);
    for (const Dtype t : {Dtype::f32, Dtype::f64, Dtype::i32}) all.push_back(all_maps(t, dialect));
    return all;
}

}  // namespace

TEST_CASE("cuda: NVRTC takes every kernel and every row, for a processor and as PTX")
{
    const Nvrtc nvrtc;
    const std::vector<Named> all = everything(cuda_dialect());
    if (!nvrtc.is_here()) return (void)std::printf("skipped %zu texts: no libnvrtc.so.13 or .12 here\n", all.size());
    for (const Named& k : all)
        for (const char* architecture : {"sm_90", "compute_80"}) {
            if (k.text.size() > 50000 && architecture[0] == 's') continue;       // rows by the hundred: their PTX says as much
            INFO(k.name << " for " << architecture);
            CHECK(nvrtc.fault(k.text, architecture) == "");
        }
}

TEST_CASE("cuda: NVRTC takes every class of a family, with clusters and without")
{
    const Nvrtc nvrtc;
    if (!nvrtc.is_here()) return (void)std::printf("skipped: no libnvrtc.so.13 or .12 here\n");
    const std::array<std::pair<Dtype, const char*>, 7> all = {{{Dtype::f16, "f16(softmax(x, 1) + y)"}, {Dtype::f32, "(x - mean(x, 1)) * rsqrt(var(x, 1) + 1e-5)"}, {Dtype::bf16, "bf16(gelu(x) * y)"},
                                                               {Dtype::f32, "softmax(x, 0)"}, {Dtype::i8, "x - max(x, 1)"}, {Dtype::f32, "x * argmax(x, 1)"}, {Dtype::f16, "f16(permute(x, [1, 0]) * 2)"}}};
    for (const auto& [type, words] : all) {
        Case c(words, "");
        c.in.lengths = {3, 8};
        const Extent rows = Extent::variable(0), points = Extent::variable(1);
        c.input("x", type, {rows, points}), c.input("y", type, {points});
        c.out(words);
        c.compile();
        for (const Step& s : c.plan.steps)
            for (const int32_t compute : {80, 90}) {
                const KernelFamily family(*s.kernel, cuda_dialect(), {compute, 132});
                for (size_t k = 0; k < family.classes().size(); k++) {
                    INFO(words << ", " << text_of(family.classes()[k]));
                    CHECK(nvrtc.fault(family.source(k).text, text("sm_", compute)) == "");
                }
            }
    }
}

TEST_CASE("cuda: NVRTC takes blocks that stay, with rows and with columns, alone and in clusters")
{
    const Nvrtc nvrtc;
    if (!nvrtc.is_here()) return (void)std::printf("skipped: no libnvrtc.so.13 or .12 here\n");
    struct Held { Dtype type; const char* words; int64_t rows, columns; };
    for (const Held& h : {Held{Dtype::f32, "softmax(x, 1)", 1024, 65536}, {Dtype::f32, "exp(x) * argmax(x, 1)", 1024, 65536}, {Dtype::f32, "(x - mean(x, 0)) * rsqrt(var(x, 0) + 1e-5)", 2048, 8192},
                          {Dtype::f32, "x - max(x, 0)", 4096, 8192}, {Dtype::f64, "exp(x) / sum(exp(x), 1)", 1024, 16384}}) {
        Case c(h.words, "");
        c.in.lengths = {3, 8};
        c.input("x", h.type, {h.rows, h.columns});
        c.out(h.words);
        c.compile();
        const KernelFamily family(*c.plan.steps[0].kernel, cuda_dialect(), {90, 132, 227 << 10});
        INFO(h.words << ": " << text_of(family.classes()[0]));
        CHECK(family.classes()[0].is_staying);
        CHECK(nvrtc.fault(family.source(0).text, "sm_90") == "");
    }
}

TEST_CASE("opencl: clang takes every kernel and every row as OpenCL C 1.2")
{
    const std::vector<Named> all = everything(opencl_dialect());
    const std::string path = std::filesystem::temp_directory_path() / text("ng_opencl_", std::random_device()(), ".cl");
    const std::string clang = "clang -x cl -cl-std=CL1.2 -w -fsyntax-only ";
    std::ofstream(path) << "__kernel void nothing(__global float* x) { x[0] = exp(x[0]); }\n";
    const bool is_here = succeeds("command -v clang") && succeeds(clang + path);
    if (!is_here) std::printf("skipped %zu texts: no clang here that has OpenCL C\n", all.size());
    for (const Named& k : all) {
        if (!is_here) break;
        std::ofstream(path) << opencl_dialect().prelude << k.text;
        INFO(k.name);
        CHECK(succeeds(clang + path));
        // Devices without doubles
        const bool has_doubles = k.text.find("f64") != std::string::npos;
        if (!has_doubles) CHECK(succeeds(clang + "-Xclang -cl-ext=-cl_khr_fp64 " + path));
    }
    std::remove(path.c_str());
}
