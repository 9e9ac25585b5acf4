// Hostile bytes for ng_prog_load: saved programs changed behind a sum made right again; what loads is asked, saved and run.
#include "jit/serial_format.h"
#include "tests/harm/fuzz.h"

#include <algorithm>

namespace {

using harm::sound;

ng_shape shape(ng_dtype t, std::initializer_list<int64_t> dims, uint32_t flags = 0)
{
    ng_shape d{};
    d.size = sizeof d, d.dtype = t, d.ndim = int32_t(dims.size()), d.flags = flags;
    std::copy(dims.begin(), dims.end(), d.dims);
    return d;
}

std::string saved(const ng_prog* p)
{
    size_t bytes = 0;
    ng_error error{};
    if (sound("ng_prog_save", ng_prog_save(p, 0, nullptr, &bytes, &error), &error) != NG_OK) harm::fault("ng_prog_save: %s", error.text);
    std::string text(bytes, 0);
    if (ng_prog_save(p, 0, text.data(), &bytes, &error) != NG_OK || bytes != text.size()) harm::fault("ng_prog_save twice: %s", error.text);
    return text;
}

// Programs that together have every kind of part: windows, indices, lengths, layouts, aliases, names, derivatives.
std::vector<ng_expr*> samples(ng_scope* s)
{
    const ng_shape image = shape(NG_F32, {1, 2, 6, 5}), filter = shape(NG_F32, {3, 2, 3, 3}), matrix = shape(NG_F32, {3, 4}), any = shape(NG_F32, {-1, 4}, NG_ANY), places = shape(NG_I32, {2});
    ng_expr *x = ng_param(s, 0, &matrix), *y = ng_param(s, 1, &any), *i = ng_param(s, 2, &places), *picture = ng_param(s, 0, &image), *w = ng_param(s, 1, &filter), *key = ng_scalar(s, NG_U64, 8);
    ng_pool_desc pool{};
    pool.size = sizeof pool, pool.window[0] = pool.window[1] = 2;
    ng_conv_desc conv{};
    conv.size = sizeof conv, conv.pad_lo[0] = conv.pad_hi[1] = 1;
    const auto text = [&](const char* source) {
        ng_expr* const values[] = {x, y, i, key};
        return ng_parse(s, source, "x,y,i,k", values, 4);
    };
    std::vector<ng_expr*> all = {
        text("m = mean(x, 1); rsqrt(var(x, 1) + 1e-5) * (x - m)"), text("softmax(y, 1) * 2 + 1"), text("concat(x[::2], x[1:, ::-1], 0)"), text("take(x, i, 0) + take(x, i, 0)[0]"),
        ng_tag(ng_put(x, i, ng_const(s, NG_F32, 2), 0, NG_FOLD_SUM), "placed"), ng_scan(y, 0, NG_FOLD_SUM, NG_EXCLUSIVE), ng_argsort(x, 1, NG_REVERSE), ng_keep(ng_matmul(x, ng_permute(y, std::data({1, 0}), 2), nullptr)),
        ng_pool(ng_conv(picture, w, &conv), &pool), ng_random(s, NG_NORMAL, key, nullptr, &matrix), ng_cast_stochastic(x, NG_E4M3, 2, key, key), ng_window(x, 1, ng_scalar(s, NG_I32, 0), 2),
        ng_where(ng_less(x, ng_const(s, NG_F32, 0)), ng_gelu(x), ng_cast(ng_length(s, -1), NG_F32)), ng_bitcast(x, NG_U32), ng_segment(x, ng_cast(i, NG_I64), NG_FOLD_MAX)};
    ng_expr *loss = ng_sum(ng_tanh(ng_conv(picture, w, nullptr)), NG_ALL, 0), *slope = nullptr;
    ng_error error{};
    if (ng_grad(&loss, nullptr, 1, &w, &slope, 1, &error) != NG_OK) harm::fault("ng_grad: %s", error.text);
    all.push_back(slope);
    return all;
}

const std::vector<std::string>& programs()
{
    static const std::vector<std::string> made = [] {
        std::vector<std::string> all;
        ng_ctx* c = harm::small_context();
        ng_scope* s = ng_scope_create(c, 0);
        const std::vector<ng_expr*> roots = samples(s);
        const int64_t most[] = {9};
        const int32_t alias[] = {0};
        ng_compile_desc d{};
        d.size = sizeof d, d.length_max = most, d.nlength = 1, d.runs = 2;
        for (size_t i = 0; i < roots.size(); i++) {
            ng_prog* p = nullptr;
            ng_error error{};
            d.alias = i % 2 ? nullptr : alias;
            if (ng_compile(c, &d, &roots[i], 1, &p, &error) != NG_OK) harm::fault("sample %zu: %s", i, error.text);
            all.push_back(saved(p));
            ng_prog_release(p);
        }
        ng_scope_release(s);
        harm::end_context(c);
        return all;
    }();
    return made;
}

// A tensor for a port: its lengths 2, whatever they are called.
ng_tensor* tensor_for(ng_ctx* c, ng_prog* p, uint32_t port)
{
    ng_shape d{};
    d.size = sizeof d;
    ng_tensor* t = nullptr;
    ng_error error{};
    if (sound("ng_prog_port", ng_prog_port(p, port, &d, nullptr, &error), &error) != NG_OK) return nullptr;
    for (int32_t a = 0; a < d.ndim; a++) d.dims[a] = d.dims[a] < 0 ? 2 : d.dims[a];
    d.flags = 0, d.size = sizeof d;
    if (sound("ng_tensor_create", ng_tensor_create(c, &d, &t, &error), &error) == NG_OK) sound("ng_tensor_fill", ng_tensor_fill(t, nullptr, 1, &error), &error);
    return t;
}

void run(ng_ctx* c, ng_prog* p, const ng_prog_info& info)
{
    if (info.nargs > 16 || info.nout > 16 || info.scalar_bytes > 4096) return;
    std::vector<ng_tensor*> tensors;
    for (uint32_t i = 0; i < info.nargs + info.nout; i++) tensors.push_back(tensor_for(c, p, i));
    const std::vector<uint8_t> scalars(info.scalar_bytes + 1, 1);
    ng_run r{};
    r.size = sizeof r, r.nargs = info.nargs, r.nout = info.nout, r.args = tensors.data(), r.out = tensors.data() + info.nargs;
    r.scalars = scalars.data(), r.scalar_bytes = info.scalar_bytes;
    ng_error error{};
    sound("ng_prog_run", ng_prog_run(p, nullptr, &r, &error), &error);
    for (ng_tensor* t : tensors) ng_tensor_release(t);
}

}  // namespace

std::vector<std::string> harm::seeds() { return programs(); }

// Mostly behind a good head: what is refused by its sum alone is tried least.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed)
{
    using namespace ng::serial;
    harm::Dice d(seed);
    if (size <= HEAD_BYTES || d.one_in(32)) {
        const std::string& base = d.of(programs());
        size = std::min(base.size(), max_size);
        std::copy_n(base.begin(), size, data);
    }
    if (size <= HEAD_BYTES || d.one_in(16)) return LLVMFuzzerMutate(data, size, max_size);
    uint8_t* body = data + HEAD_BYTES;
    size_t bytes = size - HEAD_BYTES;
    switch (d.below(4)) {
    case 0: bytes = LLVMFuzzerMutate(body, bytes, max_size - HEAD_BYTES); break;
    case 1: body[d.below(bytes)] = uint8_t(d.below(24)); break;      // numbers, counts and places are small
    case 2: {                                                        // a stretch of another program
        const std::string& other = d.of(programs());
        const size_t from = HEAD_BYTES + d.below(other.size() - HEAD_BYTES), at = d.below(bytes), count = std::min({other.size() - from, bytes - at, 1 + d.below(30)});
        std::copy_n(other.begin() + ptrdiff_t(from), count, body + at);
        break;
    }
    default: body[d.below(bytes)] ^= uint8_t(1u << d.below(8)); break;
    }
    const uint64_t sum = checksum({reinterpret_cast<const char*>(body), bytes});
    for (int i = 0; i < 8; i++) data[HEAD_BYTES - 8 + size_t(i)] = uint8_t(sum >> 8 * i);
    return HEAD_BYTES + bytes;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size)
{
    ng_ctx* c = harm::small_context();
    ng_error error{};
    ng_prog *p = nullptr, *again = nullptr;
    if (sound("ng_prog_load", ng_prog_load(c, 0, data, size, &p, &error), &error) == NG_OK) {
        ng_prog_info info{};
        info.size = sizeof info;
        if (ng_prog_get_info(p, &info, &error) != NG_OK) harm::fault("ng_prog_get_info: %s", error.text);
        size_t bytes = 0;
        if (sound("ng_prog_explain", ng_prog_explain(p, nullptr, &bytes, &error), &error) != NG_OK) harm::fault("ng_prog_explain: %s", error.text);
        const std::string text = saved(p);
        const ng_status status = ng_prog_load(c, 0, text.data(), text.size(), &again, &error);
        if (status != NG_OK && status != NG_E_DEVMEM) harm::fault("what was loaded and saved is refused: %s", error.text);
        if (again && saved(again) != text) harm::fault("a program saved, loaded and saved is another");
        if (harm::cost_of(p) < harm::AFFORDABLE) run(c, p, info);
    } else if (p) {
        harm::fault("ng_prog_load failed and wrote *out");
    }
    ng_prog_release(p);
    ng_prog_release(again);
    harm::end_context(c);
    return 0;
}
