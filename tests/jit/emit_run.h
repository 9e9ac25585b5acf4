// Generated CUDA kernels on the CPU: texts compiled as C++, a case's memory, launches as plain texts or families cut them.
#pragma once
#include "tests/jit/emit_cases.h"

#include <doctest/doctest.h>

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

namespace ng::emitted {

using Launched = void (*)(unsigned blocks, unsigned threads, unsigned cluster, char** buffers, const void* numbers);

// Texts compiled together as C++ and loaded; empty where there is no compiler.
class Emulation {
  public:
    size_t add(const std::string& kernel, int32_t functions = 1)
    {
        const auto [at, fresh] = numbers_.try_emplace(kernel, count_);
        if (!fresh) return at->second;
        const size_t k = count_++;
        std::string names = text("#define fused fused_of_", k, "\n"), ends = "#undef fused\n", launches = text("LAUNCHED(", k, ")\n");
        for (int32_t f = 1; f < functions; f++) {
            names += text("#define fused_", f, " fused_", f, "_of_", k, "\n"), ends += text("#undef fused_", f, "\n");
            launches += text("LAUNCHED_STAGE(", k, ", ", f, ")\n");
        }
        text_ += text(names, "namespace kernel_", k, " {\n", kernel, "}\n", ends, launches);
        return k;
    }
    size_t count() const { return count_; }
    void add_code(const std::string& code) { text_ += code; }
    bool load()
    {
        const char* named = std::getenv("CXX");
        const std::string compiler = named && *named ? named : "c++";
        if (!succeeds(compiler + " --version")) return std::printf("skipped %zu kernels: no C++ compiler to run them with\n", count_), false;
        const std::string base = std::filesystem::temp_directory_path() / text("ng_emulated_", std::random_device()());
        std::ofstream(base + ".cc") << "#include \"" << source_root() << "/tests/jit/cuda_emulation.h\"\n" << cuda_dialect().prelude << text_;
        const bool well = succeeds(text(compiler, " -std=c++20 -w -O1 -ffp-contract=off -fno-strict-aliasing -fPIC -shared -I", source_root(), " ", base, ".cc -o ", base, ".so"));
        if (well) library_ = dlopen((base + ".so").c_str(), RTLD_NOW | RTLD_LOCAL);
        std::remove((base + ".cc").c_str());
        std::remove((base + ".so").c_str());
        REQUIRE(library_);
        return true;
    }
    void* find(const std::string& name) const
    {
        void* at = dlsym(library_, name.c_str());
        REQUIRE(at);
        return at;
    }
    Launched kernel(size_t k, int32_t function = 0) const { return reinterpret_cast<Launched>(find(function ? text("launch_", k, "_", function) : text("launch_", k))); }

  private:
    std::string text_;
    size_t      count_ = 0;
    std::map<std::string, size_t> numbers_;
    void*       library_ = nullptr;
};

// How a launch of a plain text is cut.
struct PlainCut { unsigned blocks, threads; int32_t per_block; };

inline int64_t reach(const std::vector<int64_t>& dims, const std::vector<int64_t>& strides)
{
    int64_t last = 0;
    for (size_t a = 0; a < dims.size(); a++) {
        if (dims[a] == 0) return 0;
        last += (dims[a] - 1) * strides[a];
    }
    return last + 1;
}
inline std::vector<int64_t> values(const Extents& e, const std::vector<int64_t>& lengths)
{
    std::vector<int64_t> out;
    for (const Extent& x : e) out.push_back(x.value(lengths));
    return out;
}
inline int64_t place(const naive::Index& i, const std::vector<int64_t>& strides)
{
    int64_t at = 0;
    for (size_t a = 0; a < i.size(); a++) at += i[a] * strides[a];
    return at;
}

// One run of a case: memory of its own, every step launched, every output read.
class Run {
  public:
    // shift: elements by which every buffer misses a vector's alignment; negative: every parameter alone. unwanted: an output that is a null pointer.
    explicit Run(Case& c, int64_t shift = 0, int64_t unwanted = -1) : c_(c), variables_(c.in.lengths), shift_(std::max<int64_t>(0, shift)), shift_of_params_(std::abs(shift)), unwanted_(unwanted)
    {
        for (const Port& p : c.plan.args)
            if (p.hidden)
                for (const int64_t s : values(c.layouts[size_t(p.index)].strides, c.in.lengths)) variables_.push_back(s);
        for (size_t j = 0; j < c.plan.outs.size(); j++)
            if (c.plan.outs[j].hidden)
                for (const int64_t s : values(c.targets[j].layout.strides, c.in.lengths)) variables_.push_back(s);
        for (size_t k = 0; k < c.layouts.size(); k++) params_.push_back(filled(c.layouts[k], c.in.params.at(int64_t(k))));
        for (size_t j = 0; j < c.roots.size(); j++) outs_.push_back(blank(c.targets[j].layout));
        for (const Buffer& b : c.plan.buffers) {
            Memory m{b.dtype, {}};
            if (b.place == Place::Work) m.bytes.assign(size_t(b.count.value(variables_) * bytes_of(b.dtype)), char(0xa5));
            shift_by(m, shift_);
            work_.push_back(std::move(m));
        }
    }
    Memory& output(size_t j)
    {
        const int32_t alias = c_.targets[j].alias_param;
        return alias >= 0 && c_.plan.direct[j] ? params_[size_t(alias)] : outs_[j];
    }
    void launch(const Emulation& code, const std::vector<size_t>& kernels, const PlainCut& cut)
    {
        for (size_t k = 0; k < c_.plan.steps.size(); k++) {
            const Step& s = c_.plan.steps[k];
            const KernelSource source = emit(*s.kernel, cuda_dialect());
            if (source.rows.value(variables_) == 0) continue;
            std::vector<char*> pointers;
            for (const int32_t b : s.buffers) pointers.push_back(pointer(b));
            std::vector<char> numbers(source.number_bytes);
            fill_numbers(source, variables_, c_.scalars.data(), cut.per_block, numbers.data());
            code.kernel(kernels[k])(cut.blocks, cut.threads, 1, pointers.data(), numbers.data());
        }
    }

    // As the families of the steps choose; classes[k]: by class of step k, the kernel's number. Gives the classes' numbers.
    std::vector<int32_t> launch(const Emulation& code, const std::vector<KernelFamily>& families, const std::vector<std::vector<size_t>>& classes)
    {
        std::vector<int32_t> chosen;
        for (size_t k = 0; k < c_.plan.steps.size(); k++) {
            std::vector<char*> pointers;
            std::vector<uint64_t> addresses;
            for (const int32_t b : c_.plan.steps[k].buffers) pointers.push_back(pointer(b)), addresses.push_back(reinterpret_cast<uintptr_t>(pointers.back()));
            const Geometry g = families[k].choose(variables_, addresses);
            chosen.push_back(g.which);
            CHECK(g.scratch_bytes <= families[k].scratch_bytes(variables_));
            if (!g.launches) continue;
            REQUIRE(g.which >= 0);
            const KernelSource source = families[k].source(size_t(g.which));
            REQUIRE(g.launches == source.functions);
            const std::string most = "THREADS = ";
            for (int32_t f = 0; f < g.launches; f++) CHECK(int(g.launch[size_t(f)].threads) <= std::atoi(source.text.c_str() + source.text.find(most) + most.size()));
            std::vector<char> numbers(source.number_bytes), scratch(g.scratch_bytes + 1, char(0xa5));
            fill_numbers(source, variables_, c_.scalars.data(), g, reinterpret_cast<uintptr_t>(scratch.data()), numbers.data());
            for (int32_t f = 0; f < g.launches; f++) code.kernel(classes[k][size_t(g.which)], f)(unsigned(g.launch[size_t(f)].blocks), g.launch[size_t(f)].threads, g.launch[size_t(f)].cluster, pointers.data(), numbers.data());
            CHECK(scratch.back() == char(0xa5));
        }
        return chosen;
    }

  private:
    static void shift_by(Memory& m, int64_t shift)
    {
        m.shift = shift * bytes_of(m.type);
        m.bytes.insert(m.bytes.end(), size_t(m.shift), char(0xa5));
    }
    char* pointer(int32_t b)
    {
        const Buffer& buffer = c_.plan.buffers[size_t(b)];
        return buffer.place == Place::Out && buffer.index == unwanted_ ? nullptr : memory(b).data();
    }
    Memory& memory(int32_t b)
    {
        const Buffer& buffer = c_.plan.buffers[size_t(b)];
        return buffer.place == Place::Arg ? params_[size_t(buffer.index)] : buffer.place == Place::Out ? output(size_t(buffer.index)) : work_[size_t(b)];
    }
    Memory blank(const Layout& l) const { return blank(l, shift_); }
    Memory blank(const Layout& l, int64_t shift) const
    {
        const int64_t count = reach(values(l.dims, c_.in.lengths), values(l.strides, c_.in.lengths));
        Memory m{l.dtype, std::vector<char>(size_t(count * bytes_of(l.dtype)), char(0xa5))};
        shift_by(m, shift);
        return m;
    }
    Memory filled(const Layout& l, const naive::Value& v)
    {
        Memory m = blank(l, shift_of_params_);
        const std::vector<int64_t> strides = values(l.strides, c_.in.lengths);
        naive::each(v.dims, [&](const naive::Index& i, int64_t k) { m.set(place(i, strides), v.v[size_t(k)]); });
        return m;
    }

    Case&                c_;
    std::vector<int64_t> variables_;
    int64_t              shift_, shift_of_params_, unwanted_;
    std::vector<Memory>  params_, outs_, work_;
};

// Whether no kernel reads the output's memory, so that it may be missing.
inline bool may_miss(const Case& c, size_t output)
{
    if (c.targets[output].alias_param >= 0) return false;
    for (const Step& s : c.plan.steps)
        for (const Value& v : s.kernel->values) {
            if (v.buffer < 0) continue;
            const Buffer& b = c.plan.buffers[size_t(s.buffers[size_t(v.buffer)])];
            if (b.place == Place::Out && size_t(b.index) == output) return false;
        }
    return true;
}

inline bool is_near(double got, double want, double tolerance)
{
    if (std::isnan(want) || std::isinf(want)) return std::isnan(want) ? std::isnan(got) : got == want;
    return std::abs(got - want) <= tolerance * (1 + std::abs(want));
}

}  // namespace ng::emitted
