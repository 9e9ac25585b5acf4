// What small programs hold: all that was made, released in the end, and the first failure.
#pragma once
#include "tests/harm/small_programs.h"

#include <cstring>

namespace harm {

// What was made, to be released in the end, whatever happened; and the first failure.
class Hands {
  public:
    Hands(ng_ctx* context, Outcome& outcome) : c(context), o(outcome) {}
    ~Hands()
    {
        ng_scope_release(s);
        for (int i = 0; i < exprs_; i++) ng_expr_release(expr_[i]);
        for (int i = 0; i < programs_; i++) ng_prog_release(program_[i]);
        for (int i = 0; i < tensors_; i++) ng_tensor_release(tensor_[i]);
    }
    Hands(const Hands&) = delete;

    bool did(ng_status status, const char* call)
    {
        if (status >= 0) return true;
        if (o.status >= 0) o.status = status, o.call = call;
        return false;
    }
    bool failed() const { return o.status < 0; }
    // Never NULL, which would be an operand left out.
    ng_expr* own(ng_expr* e)
    {
        if (!e) did(NG_E_BUG, "a builder gave NULL");
        return e ? expr_[exprs_++] = e : nullptr;
    }
    ng_expr* scoped(ng_expr* e)
    {
        if (!e) did(NG_E_BUG, "a builder gave NULL");
        return e;
    }
    bool open_scope()
    {
        s = ng_scope_create(c, 0);
        return s || did(NG_E_BUG, "ng_scope_create gave NULL");
    }
    ng_tensor* keep(ng_tensor* t) { return t ? tensor_[tensors_++] = t : nullptr; }
    ng_prog*   keep(ng_prog* p) { return p ? program_[programs_++] = p : nullptr; }
    ng_tensor* tensor(const ng_shape& d, const void* values, uint64_t bytes)
    {
        ng_tensor* t = nullptr;
        if (!did(ng_tensor_create(c, &d, &t, &o.error), "ng_tensor_create")) return nullptr;
        keep(t);
        return !values || did(ng_tensor_put(t, values, bytes, &o.error), "ng_tensor_put") ? t : nullptr;
    }
    ng_prog* compile(ng_expr* const* e, uint32_t n, const ng_compile_desc* d = nullptr)
    {
        ng_prog* p = nullptr;
        if (failed() || !did(ng_compile(c, d, e, n, &p, &o.error), "ng_compile")) return nullptr;
        return keep(p);
    }
    // of one output
    bool run(ng_prog* p, ng_tensor* const* args, uint32_t nargs, ng_tensor* const* out)
    {
        ng_run r{};
        r.size = sizeof r, r.nargs = nargs, r.args = args, r.nout = 1, r.out = out;
        return p && did(ng_prog_run(p, nullptr, &r, &o.error), "ng_prog_run");
    }
    bool eval(ng_expr* e, float* values, uint64_t bytes)
    {
        ng_tensor* out = nullptr;
        if (failed() || !did(ng_eval(c, nullptr, &e, &out, 1, &o.error), "ng_eval")) return false;
        return did(ng_tensor_get(keep(out), values, bytes, &o.error), "ng_tensor_get");
    }

    ng_ctx*   c;
    Outcome&  o;
    ng_scope* s = nullptr;

  private:
    ng_tensor* tensor_[24];
    ng_expr*   expr_[24];
    ng_prog*   program_[8];
    int        tensors_ = 0, exprs_ = 0, programs_ = 0;
};

template <class... Dims>
ng_shape shape(ng_dtype t, Dims... dims)
{
    ng_shape d{};
    const int64_t all[] = {int64_t(dims)..., 0};
    d.size = sizeof d, d.dtype = t, d.ndim = sizeof...(dims);
    std::memcpy(d.dims, all, sizeof...(dims) * sizeof *all);
    return d;
}
inline constexpr float X[6] = {1, 2, 3, 4, 5, 6};

}  // namespace harm
