// How NVRTC is found, with the library of built-ins beside it, and called.
#include "lib/backend/cuda/nvrtc.h"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>

namespace ng::cuda {
namespace {

// Newest first. Where the loader has no path to it (a toolkit that was only unpacked), the usual folders do.
constexpr const char* LIBRARIES[] = {
    "libnvrtc.so.13",
    "libnvrtc.so.12",
    "/usr/local/cuda/lib64/libnvrtc.so.13",
    "/usr/local/cuda-13/lib64/libnvrtc.so.13",
    "/opt/cuda/lib64/libnvrtc.so.13",
    "/usr/local/cuda/lib64/libnvrtc.so.12",
    "/usr/local/cuda-12/lib64/libnvrtc.so.12",
    "/opt/cuda/lib64/libnvrtc.so.12",
};

struct Search { std::unique_ptr<const Compiler> compiler; };
constinit std::atomic<const Search*> searched{nullptr};         // never freed

// NVRTC opens its built-ins by their bare name, which is found only where the loader has a path to it; opened by us
// beforehand, from NVRTC's own folder, that name is already loaded. Where this fails, compiling says so.
void preload_builtins(const void* function_of_nvrtc, int major, int minor)
{
    Dl_info place{};
    if (!dladdr(function_of_nvrtc, &place) || !place.dli_fname) return;
    char* real = realpath(place.dli_fname, nullptr);            // a link elsewhere leads to the folder
    const std::string library = real ? real : place.dli_fname;
    std::free(real);
    const size_t slash = library.rfind('/');
    if (slash == std::string::npos) return;
    (void)dlopen(text(library.substr(0, slash), "/libnvrtc-builtins.so.", major, ".", minor).c_str(), RTLD_NOW | RTLD_LOCAL);
}

std::vector<std::string> words_of(std::string_view text)
{
    std::vector<std::string> words;
    for (size_t at = 0; at < text.size();) {
        const size_t end = std::min(text.find(' ', at), text.size());
        if (end > at) words.emplace_back(text.substr(at, end - at));
        at = end + 1;
    }
    return words;
}

}  // namespace

std::unique_ptr<const Compiler> Compiler::load(std::span<const char* const> libraries)
{
    for (const char* library : libraries) {
        // Never closed: what it has compiled may be under way in another thread, and it is slow to open again.
        void* handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
        if (!handle) continue;
        std::unique_ptr<Compiler> made(new Compiler);
        bool is_complete = true;
#define NVRTC(name, parameters)                                                             \
        made->name = reinterpret_cast<decltype(made->name)>(dlsym(handle, #name));          \
        is_complete = is_complete && made->name;
#include "lib/backend/cuda/nvrtc.def"
#undef NVRTC
        int major = 0, minor = 0, count = 0;
        if (!is_complete || made->nvrtcVersion(&major, &minor) != 0 || made->nvrtcGetNumSupportedArchs(&count) != 0) continue;
        if (major == 0) return nullptr;             // it says itself that there is none, and nobody looks further
        made->version_ = 1000 * major + 10 * minor;
        made->computes_.resize(size_t(count));
        if (made->nvrtcGetSupportedArchs(made->computes_.data()) != 0) continue;
        preload_builtins(reinterpret_cast<const void*>(made->nvrtcVersion), major, minor);
        return made;
    }
    return nullptr;
}

const Compiler* Compiler::find() noexcept
{
    if (const Search* known = searched.load(std::memory_order_acquire)) return known->compiler.get();
    try {
        auto made = std::make_unique<Search>();
        made->compiler = load(LIBRARIES);
        const Search* known = nullptr;
        if (!searched.compare_exchange_strong(known, made.get(), std::memory_order_acq_rel)) return known->compiler.get();
        return made.release()->compiler.get();
    } catch (const std::bad_alloc&) {
        return nullptr;
    }
}

std::string Compiler::compile(const CompileRequest& request) const
{
    const std::string source = text(request.prelude, request.text);
    std::vector<std::string> options = words_of(request.options);
    options.push_back(text("--gpu-architecture=", request.arch));
    // Without declarations of textures and of the runtime's functions: 7 ms less a text. Older ones may not know the word.
    if (version_ >= 13000) options.push_back("--minimal");
    std::vector<const char*> pointers;
    for (const std::string& option : options) pointers.push_back(option.c_str());

    void* made = nullptr;
    if (nvrtcCreateProgram(&made, source.c_str(), request.name, 0, nullptr, nullptr) != 0)
        throw Error(NG_E_NOMEM, text("nvrtcCreateProgram: no room for ", source.size(), " bytes of source"));
    const auto destroy = [this](void* program) { (void)nvrtcDestroyProgram(&program); };
    const std::unique_ptr<void, decltype(destroy)> program(made, destroy);

    const int result = nvrtcCompileProgram(made, int(pointers.size()), pointers.data());
    size_t bytes = 0;
    if (result != 0) {
        std::string log;
        if (nvrtcGetProgramLogSize(made, &bytes) == 0) log.resize(bytes);
        if (log.empty() || nvrtcGetProgramLog(made, log.data()) != 0) log = "it left no log";
        while (!log.empty() && (log.back() == '\0' || log.back() == '\n')) log.pop_back();
        throw Error(NG_E_COMPILE, text("NVRTC ", version_ / 1000, ".", version_ % 1000 / 10, " for ", request.arch, ": ", log), -1, result);
    }
    const bool is_ptx = request.arch.starts_with("compute_");
    std::string code;
    if ((is_ptx ? nvrtcGetPTXSize : nvrtcGetCUBINSize)(made, &bytes) == 0) code.resize(bytes);
    if (code.empty() || (is_ptx ? nvrtcGetPTX : nvrtcGetCUBIN)(made, code.data()) != 0)
        throw Error(NG_E_COMPILE, text("NVRTC ", version_ / 1000, ".", version_ % 1000 / 10, " for ", request.arch, ": no code came out"));
    return code;
}

}  // namespace ng::cuda
