// Generated CUDA kernels on the CPU: texts compiled as C++, a case's memory, launches as plain texts or families cut them.
#pragma once
#include "tests/jit/guarded.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <numeric>

namespace ng::emitted {

using Launched = void (*)(unsigned blocks, unsigned threads, unsigned cluster, char** buffers, const void* numbers);

// What holds whatever is computed.
inline void demand(bool holds, const char* words)
{
    if (!holds) throw Error(NG_E_BUG, words);
}

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
    // options: the compiler's, beside those that all texts need.
    bool load(const char* options = "")
    {
        const char* named = std::getenv("CXX");
        const std::string compiler = named && *named ? named : "c++";
        if (!succeeds(compiler + " --version")) return std::printf("skipped %zu kernels: no C++ compiler to run them with\n", count_), false;
        const std::string base = std::filesystem::temp_directory_path() / text("ng_emulated_", std::random_device()());
        std::ofstream(base + ".cc") << "#include \"" << source_root() << "/tests/jit/cuda_emulation.h\"\n" << cuda_dialect().prelude << text_;
        const bool well = succeeds(text(compiler, " -std=c++20 -w -O1 -ffp-contract=off -fno-strict-aliasing -fPIC -shared ", options, " -I", source_root(), " ", base, ".cc -o ", base, ".so"));
        if (well) library_ = dlopen((base + ".so").c_str(), RTLD_NOW | RTLD_LOCAL);
        std::remove((base + ".cc").c_str());
        std::remove((base + ".so").c_str());
        demand(library_, "texts do not compile");
        return true;
    }
    void* find(const std::string& name) const
    {
        void* at = dlsym(library_, name.c_str());
        demand(at, "a function is not in the code");
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

// Elements before the first, and from it on.
struct Reach { int64_t below, above; };
inline Reach reach(const std::vector<int64_t>& dims, const std::vector<int64_t>& strides)
{
    Reach r{0, 1};
    for (size_t a = 0; a < dims.size(); a++) {
        if (dims[a] == 0) return {0, 0};
        (strides[a] < 0 ? r.below : r.above) += (dims[a] - 1) * std::abs(strides[a]);
    }
    return r;
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

// How the memory of a run lies.
struct Lying {
    int64_t  shift = 0;          // elements by which every buffer misses a vector's alignment; negative: every parameter alone
    int64_t  unwanted = -1;      // an output that is a null pointer
    bool     is_at_end = true;   // guarded behind its last element, else before its first
    uint64_t scattered = 0;      // other than 0: each buffer is shifted by as much as this says
};

// One run of a case: memory of its own, every step launched, every output read.
class Run {
  public:
    explicit Run(Case& c, const Lying& lies = {}) : c_(c), variables_(c.in.lengths), lies_(lies)
    {
        for (const Port& p : c.plan.args)
            if (p.hidden)
                for (const int64_t s : values(c.layouts[size_t(p.index)].strides, c.in.lengths)) variables_.push_back(s);
        for (size_t j = 0; j < c.plan.outs.size(); j++)
            if (c.plan.outs[j].hidden)
                for (const int64_t s : values(c.targets[j].layout.strides, c.in.lengths)) variables_.push_back(s);
        for (size_t k = 0; k < c.layouts.size(); k++) params_.push_back(filled(c.layouts[k], c.in.params.at(int64_t(k))));
        for (size_t j = 0; j < c.roots.size(); j++) outs_.push_back(blank(c.targets[j].layout, lies.shift));
        for (const Buffer& b : c.plan.buffers) work_.push_back(placed(b.dtype, {0, b.place == Place::Work ? b.count.value(variables_) : 0}, lies.shift));
        for (auto* all : {&params_, &outs_, &work_})
            for (Guarded& m : *all) m.keep();
    }
    const std::vector<int64_t>& variables() const { return variables_; }
    Guarded& output(size_t j)
    {
        const int32_t alias = c_.targets[j].alias_param;
        return alias >= 0 && c_.plan.direct[j] ? params_[size_t(alias)] : outs_[j];
    }
    void launch(const Emulation& code, const std::vector<size_t>& kernels, const PlainCut& cut)
    {
        for (size_t k = 0; k < c_.plan.steps.size(); k++) {
            const KernelSource source = emit(*c_.plan.steps[k].kernel, cuda_dialect());
            if (source.rows.value(variables_) == 0) continue;
            std::vector<char*> buffers = pointers(k);
            std::vector<char> numbers(source.number_bytes);
            fill_numbers(source, variables_, c_.scalars.data(), cut.per_block, numbers.data());
            code.kernel(kernels[k])(cut.blocks, cut.threads, 1, buffers.data(), numbers.data());
        }
    }

    // What the families of the steps choose for it.
    std::vector<Geometry> choose(const std::vector<KernelFamily>& families)
    {
        std::vector<Geometry> chosen;
        for (size_t k = 0; k < families.size(); k++) {
            std::vector<uint64_t> addresses;
            for (char* const p : pointers(k)) addresses.push_back(reinterpret_cast<uintptr_t>(p));
            const Geometry& g = chosen.emplace_back(families[k].choose(variables_, addresses));
            demand(g.scratch_bytes <= families[k].scratch_bytes(variables_), "a launch takes more scratch memory than was said before");
            if (!g.launches) continue;
            demand(g.which >= 0, "a launch takes a text that is none of the family's");
            const KernelSource source = families[k].source(size_t(g.which));
            demand(g.launches == source.functions, "a text has other functions than are launched");
            const std::string most = "THREADS = ";
            for (int32_t f = 0; f < g.launches; f++) {
                const Geometry::Launch& l = g.launch[size_t(f)];
                demand(l.threads > 0 && int(l.threads) <= std::atoi(source.text.c_str() + source.text.find(most) + most.size()), "a launch has more threads than its text");
                demand(l.blocks > 0 && l.blocks % l.cluster == 0, "a launch has no whole number of clusters");
            }
        }
        return chosen;
    }
    // So; classes[k]: by class of step k, the kernel's number. Gives the classes' numbers.
    std::vector<int32_t> launch(const Emulation& code, const std::vector<KernelFamily>& families, const std::vector<std::vector<size_t>>& classes)
    {
        std::vector<int32_t> taken;
        const std::vector<Geometry> chosen = choose(families);
        for (size_t k = 0; k < chosen.size(); k++) {
            const Geometry& g = chosen[k];
            taken.push_back(g.which);
            if (!g.launches) continue;
            const KernelSource source = families[k].source(size_t(g.which));
            std::vector<char> numbers(source.number_bytes);
            std::vector<char*> buffers = pointers(k);
            Guarded scratch(Dtype::u8, 0, int64_t((g.scratch_bytes + 255) / 256 * 256));
            scratch.keep();
            fill_numbers(source, variables_, c_.scalars.data(), g, reinterpret_cast<uintptr_t>(scratch.data()), numbers.data());
            for (int32_t f = 0; f < g.launches; f++) code.kernel(classes[k][size_t(g.which)], f)(unsigned(g.launch[size_t(f)].blocks), g.launch[size_t(f)].threads, g.launch[size_t(f)].cluster, buffers.data(), numbers.data());
            demand(scratch.is_kept(counted(g.scratch_bytes)), "a launch has written beside its scratch memory");
        }
        return taken;
    }
    // What was written though nobody asked for it; empty where nothing was.
    std::string spoilt()
    {
        for (size_t k = 0; k < params_.size(); k++) {
            bool is_written = false;
            for (size_t j = 0; j < c_.roots.size(); j++) is_written |= &output(j) == &params_[k];
            if (!is_written && !params_[k].is_kept({})) return text("parameter ", k, " has changed");
        }
        for (size_t j = 0; j < c_.roots.size(); j++)
            if (!output(j).is_kept(int64_t(j) == lies_.unwanted ? std::vector<int64_t>() : elements(c_.targets[j].layout))) return text("something beside output ", j, " has changed");
        for (size_t b = 0; b < work_.size(); b++)
            if (!work_[b].is_kept(counted(work_[b].bytes().size() / size_t(bytes_of(work_[b].type()))))) return text("something beside buffer ", b, " has changed");
        return {};
    }

  private:
    static std::vector<int64_t> counted(size_t count)
    {
        std::vector<int64_t> all(count);
        std::iota(all.begin(), all.end(), 0);
        return all;
    }
    std::vector<int64_t> elements(const Layout& l) const
    {
        const std::vector<int64_t> strides = values(l.strides, c_.in.lengths);
        std::vector<int64_t> all;
        naive::each(values(l.dims, c_.in.lengths), [&](const naive::Index& i, int64_t) { all.push_back(place(i, strides)); });
        return all;
    }
    std::vector<char*> pointers(size_t step)
    {
        std::vector<char*> all;
        for (const int32_t b : c_.plan.steps[step].buffers) {
            const Buffer& buffer = c_.plan.buffers[size_t(b)];
            const bool is_missing = buffer.place == Place::Out && buffer.index == lies_.unwanted;
            all.push_back(is_missing ? nullptr : (buffer.place == Place::Arg ? params_[size_t(buffer.index)] : buffer.place == Place::Out ? output(size_t(buffer.index)) : work_[size_t(b)]).data());
        }
        return all;
    }
    Guarded placed(Dtype t, const Reach& r, int64_t shift)
    {
        constexpr uint64_t SHIFTS = 6;
        if (lies_.scattered) shift = int64_t(lies_.scattered % SHIFTS), lies_.scattered = lies_.scattered / SHIFTS + 1;
        return Guarded(t, r.below, r.above, shift * bytes_of(t), lies_.is_at_end);
    }
    Guarded blank(const Layout& l, int64_t shift) { return placed(l.dtype, reach(values(l.dims, c_.in.lengths), values(l.strides, c_.in.lengths)), std::max<int64_t>(0, shift)); }
    Guarded filled(const Layout& l, const naive::Value& v)
    {
        Guarded m = blank(l, std::abs(lies_.shift));
        const std::vector<int64_t> strides = values(l.strides, c_.in.lengths);
        naive::each(v.dims, [&](const naive::Index& i, int64_t k) { m.set(place(i, strides), v.v[size_t(k)]); });
        return m;
    }

    Case&                c_;
    std::vector<int64_t> variables_;
    Lying                lies_;
    std::vector<Guarded> params_, outs_, work_;
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

// room: what it may be off whatever it is.
inline bool is_near(double got, double want, double tolerance, double room = 0)
{
    if (std::isnan(want) || std::isinf(want)) return std::isnan(want) ? std::isnan(got) : got == want;
    return std::abs(got - want) <= tolerance * (1 + std::abs(want)) + room;
}

// Where an output is not what is wanted, in words; empty where it is. Integers are exact.
inline std::string difference(const Case& c, Run& run, const naive::Value& want, size_t j, double tolerance, double room = 0)
{
    const Guarded& got = run.output(j);
    const std::vector<int64_t> strides = values(c.targets[j].layout.strides, c.in.lengths);
    if (!is_float(got.type())) tolerance = room = 0;
    int64_t wrong = 0;
    std::string first;
    naive::each(want.dims, [&](const naive::Index& i, int64_t k) {
        const double g = got.get(place(i, strides)), w = want.v[size_t(k)];
        if (!is_near(g, w, tolerance, room) && !wrong++) first = text("element ", k, " of output ", j, " is ", g, ", not ", w);
    });
    return wrong ? text(first, ", and ", wrong - 1, " others are wrong of ", want.v.size()) : "";
}

}  // namespace ng::emitted
