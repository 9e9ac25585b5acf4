// What a CUDA executor tells of its steps: which way each runs, and the texts, registers and memory of its kernels.
#include "lib/backend/cuda/executor.h"

#include "lib/backend/cuda/calls.h"

#include <algorithm>
#include <cmath>

namespace ng::cuda {
namespace {

std::string hexadecimal(const Digest& key)
{
    static constexpr char DIGITS[] = "0123456789abcdef";
    std::string all;
    for (const uint8_t byte : key) all += DIGITS[byte >> 4], all += DIGITS[byte & 15];
    return all;
}

double rounded(double us) { return std::round(us * 100) / 100; }

std::string state_of(const Variant& v)
{
    switch (v.state.load(std::memory_order_acquire)) {
    case Variant::Ready: return "compiled";
    case Variant::Asked: return "being compiled";
    case Variant::Refused: return v.error ? v.error->text : "refused";
    default: return "not asked for";
    }
}

// What is known of a text as long as it has no code, and then.
CodeText text_of(const Variant& v, std::string name, std::string source, const CodeStore& store)
{
    CodeText t;
    t.name = std::move(name), t.state = state_of(v), t.source = std::move(source);
    if (store.can_compile()) t.key = hexadecimal(store.key_of(t.source));
    if (v.state.load(std::memory_order_acquire) == Variant::Ready) {
        const Function& first = v.code->functions.front();
        t.code_bytes = v.code->bytes;
        t.registers = first.registers, t.local_bytes = first.local_bytes, t.shared_bytes = first.shared_bytes, t.threads = first.max_threads;
    }
    return t;
}

CodeText text_of(const char* name, const Function& f)
{
    CodeText t;
    t.name = name, t.state = "shipped";
    t.registers = f.registers, t.local_bytes = f.local_bytes, t.shared_bytes = f.shared_bytes, t.threads = f.max_threads;
    return t;
}

constexpr double MOST_ELEMENTS = 0x1p40;     // of operands whose launches can be told before they run

}  // namespace

// The shipped kernels that a call takes at the greatest lengths, with operands that lie well: its launches, but that nothing runs.
std::vector<CodeText> CudaExecutor::shipped_of(const Call& c, const Work* behind) const
{
    std::vector<CodeText> all;
    const auto is_small = [&](const Placed& p) {
        Placed::Numbers n;
        p.evaluate_most(most_, n);
        double elements = 1;
        for (int i = 0; i < p.rank(); i++) elements *= double(n.dims[i]);
        return elements < MOST_ELEMENTS;
    };
    if (!is_small(c.out) || !std::ranges::all_of(c.in, is_small)) return all;
    const Shipped& shipped = backend_.shipped();
    const auto add = [&](const char* name, const Function& f) {
        if (std::ranges::find(all, name, &CodeText::name) == all.end()) all.push_back(text_of(name, f));
    };
    auto basic_body = [&](const basic::Launch& l) { add(basic::name_of(l.kernel), shipped.function_of(l)); };
    auto body = [&](const gemm::Launch& l) { add(gemm::kernels_of(l.image)[l.kernel].name, shipped.function_of(l)); };
    const basic::Launcher basic_launcher(basic_body);
    const gemm::Launcher launcher(body);
    // Far from each other; nothing follows them.
    std::vector<char*> buffers;
    for (size_t i = 0; i < buffers_; i++) buffers.push_back(reinterpret_cast<char*>((i + 2) << 44));
    char* const scratch = reinterpret_cast<char*>(uintptr_t(1) << 44);
    const ExecutorRun run{most_.data(), buffers.data(), nullptr, scratch};
    const CurrentContext now(backend_.home());
    if (c.is_matmul()) {
        MatmulParts parts = {scratch, 0};
        const bool  is_compiled = behind && behind->fused && behind->fused->is_ready();
        if (c.is_listed && run_matmul(listed_step(c, &parts), run, variables_, products_, nullptr, {scratch, call_scratch(c, most_), launcher, basic_launcher, &backend_.home().driver(), nullptr, nullptr, is_compiled})) return all;
        const MatmulStep step = matmul_step(c, c.epilogue && c.epilogue->is_cast());
        if (run_matmul(step, run, variables_, products_, nullptr, {scratch, call_scratch(c, most_), launcher, basic_launcher, &backend_.home().driver(), nullptr, tuned_})) return all;
    }
    calls::run(c.node, c.in, c.out, run, variables_, backend_.is_ordered(), {scratch, basic_launcher});
    return all;
}

// Its texts that the library has; false: none.
bool CudaExecutor::stocked_of(const Stocked& stocked, std::vector<CodeText>& all) const
{
    const Fused& f = *stocked.work.fused;
    bool has_any = false;
    for (size_t i = 0; i < f.kernel.classes().size(); i++) {
        const Variant& v = f.variants[i];
        if (v.state.load(std::memory_order_acquire) != Variant::Ready) continue;
        CodeText t = text_of(v, text_of(f.kernel.classes()[i]) + ", any lengths", f.kernel.source(i).text, backend_.code());
        t.state = "shipped", t.key.clear();
        all.push_back(std::move(t));
        has_any = true;
    }
    return has_any;
}

StepCode CudaExecutor::code_of(size_t step) const
{
    StepCode code;
    const Rates rates = rates_of(backend_.home().driver(), backend_.home().device());
    code.bytes_per_us = rates.bytes_per_us, code.instructions_per_us = rates.instructions_per_us;
    const Work& w = works_[step];
    if (w.call) {
        code.tier = w.call->is_matmul() ? "shipped, by a kernel made for products where one fits" : "shipped";
        code.texts = shipped_of(*w.call, step + 1 < works_.size() ? &works_[step + 1] : nullptr);
        const std::optional<gemm::Measured> best = tuned_ && w.call->shape ? tuned_->find(*w.call->shape) : std::nullopt;
        if (w.call->is_listed) code.tier += text(", or a shipped one that carries out the step behind it as a list: ", w.call->epilogue->list()->text());
        if (best) code.tier += text("; measured: ", gemm::words_of(best->way), ", ", rounded(best->us), " us; the model's choice ", rounded(best->usual_us), " us");
        for (const auto& f : w.call->finished) {
            const bool is_first = f == w.call->finished[0];
            const bool has_epilogue = !f->epilogue.empty();
            if (is_first && w.call->starting) code.tier += ", or compiled with the step before it that makes an operand";
            if (is_first && has_epilogue) code.tier += w.call->starting ? ", and the step behind it" : ", or compiled with the step behind it";
            const std::string name = text(w.call->starting ? "operand and " : "", "product", has_epilogue ? " and epilogue" : "", w.call->folding ? ", which folds" : "", is_first ? "" : text(", for ", f->rows, " rows"));
            code.texts.push_back(text_of(f->variant, name, gemm::finisher_text(f->finisher, f->epilogue, f->operand), backend_.code()));
            const Fused* const behind = w.call->folding ? w.call->folding->work.fused.get() : nullptr;
            for (size_t i = 0; behind && i < behind->kernel.classes().size(); i++)
                code.texts.push_back(text_of(behind->variants[i], "parts of its folds, " + text_of(behind->kernel.classes()[i]), behind->kernel.source(i).text, backend_.code()));
        }
        return code;
    }
    const Fused& f = *w.fused;
    for (size_t i = 0; i < f.kernel.classes().size(); i++)
        code.texts.push_back(text_of(f.variants[i], text_of(f.kernel.classes()[i]), f.kernel.source(i).text, backend_.code()));
    code.tier = f.is_ready() && may_compile(f) ? "compiled" : w.interim ? "interpreted" : "none yet";
    if (w.stocked && code.tier == "interpreted" && stocked_of(*w.stocked, code.texts)) code.tier = "shipped for any lengths, else interpreted";
    if (w.interim) code.list_bytes = w.interim->tape.code_bytes();
    if (w.interim && code.tier != "compiled") code.texts.push_back(text_of(INTERPRETER_KERNEL, backend_.shipped().interpreter()));
    if (w.waits) code.tier += ", or inside the product whose operand it makes";
    const Call* const before = step > 0 ? works_[step - 1].call.get() : nullptr;
    if (before && before->epilogue && (!before->finished.empty() || before->is_listed || before->epilogue->is_cast())) code.tier += ", or inside the product before it";
    return code;
}

}  // namespace ng::cuda
