// What tests of the CUDA backend through ng.h share: contexts on the stand-in of the driver, vectors of f32, programs in a line.
#pragma once
#include "tests/backend/stand_in.h"

#include <ng.h>

#include <string>
#include <vector>

namespace ng {

inline constexpr uint64_t FOREVER = UINT64_MAX;

// The process's driver is the stand-in from the first question on.
inline const fake::Control& fresh()
{
    (void)fresh_driver();
    return stand_in();
}

inline ng_ctx_desc description(uint32_t flags = 0)
{
    ng_ctx_desc d{};
    d.size = sizeof d, d.version = NG_VERSION, d.backend = "cuda", d.cache_dir = "", d.flags = flags;
    return d;
}
inline ng_ctx* open_ctx(uint32_t flags = 0)
{
    const ng_ctx_desc d = description(flags);
    ng_ctx* c = nullptr;
    ng_error error{};
    REQUIRE_MESSAGE(ng_ctx_create(&d, &c, &error) == NG_OK, error.text);
    return c;
}
inline void shut(ng_ctx* c)
{
    CHECK(ng_ctx_close(c, FOREVER, nullptr) == NG_OK);
    ng_ctx_release(c);
    CHECK(ng_ctx_poll(nullptr, 0, nullptr) == NG_E_INVALID);
}
inline ng_shape vector_of(int64_t n, uint32_t flags = 0)
{
    ng_shape d{};
    d.size = sizeof d, d.dtype = NG_F32, d.ndim = 1, d.dims[0] = n, d.flags = flags;
    return d;
}
inline ng_tensor* make(ng_ctx* c, int64_t n, uint32_t flags = 0)
{
    const ng_shape d = vector_of(n, flags);
    ng_tensor* t = nullptr;
    ng_error error{};
    REQUIRE_MESSAGE(ng_tensor_create(c, &d, &t, &error) == NG_OK, error.text);
    return t;
}
inline ng_stats stats(ng_ctx* c)
{
    ng_stats s{};
    s.size = sizeof s;
    CHECK(ng_ctx_stats(c, &s) == NG_OK);
    return s;
}

// What somebody should have ended, in words.
inline std::string left(const fake::Control& driver)
{
    const fake::Counts n = driver.counts();
    std::string all;
    const auto add = [&](const char* noun, uint64_t count) { if (count) all += text(all.empty() ? "" : ", ", count, " ", noun); };
    add("holds", n.primary_holds), add("contexts pushed", n.pushed), add("streams", n.streams), add("events", n.events), add("modules", n.modules);
    add("pools", n.pools), add("graphs", n.graphs), add("blocks", n.device_blocks), add("blocks of the host", n.host_blocks);
    return all;
}

// A program of texts over x and y, vectors of a length that is known when it runs, at most `most`; open: else exactly it.
inline ng_prog* program_of(ng_ctx* c, const std::string& words, int64_t most, bool is_open = true, const char* tag = "a test's")
{
    ng_scope* s = ng_scope_create(c, 0);
    const ng_shape d = vector_of(is_open ? -1 : most);
    ng_expr* const params[] = {ng_param(s, 0, &d), ng_param(s, 1, &d)};
    ng_expr* e = ng_tag(ng_parse(s, words.c_str(), "x,y", params, 2), tag);
    ng_compile_desc desc{};
    desc.size = sizeof desc, desc.length_max = &most, desc.nlength = is_open;
    ng_prog* p = nullptr;
    ng_error error{};
    REQUIRE_MESSAGE(ng_compile(c, &desc, &e, 1, &p, &error) == NG_OK, error.text);
    ng_scope_release(s);
    return p;
}
// args: x and y; what a run said.
inline ng_status run(ng_prog* p, ng_stream s, ng_tensor* const* args, ng_tensor* out, ng_error* error = nullptr)
{
    ng_run r{};
    r.size = sizeof r, r.nargs = 2, r.nout = 1, r.args = args, r.out = &out;
    return ng_prog_run(p, s, &r, error);
}

}  // namespace ng
