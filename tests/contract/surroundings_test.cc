// The rules of what surrounds a call: floating-point state, signals and locale are as before, and change no result.
#include "tests/contract/face.h"

#include <fenv.h>
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>

#if defined __SSE2__
#include <immintrin.h>
#endif

namespace files = std::filesystem;

namespace {

// What a host may ask for in a day, each call made by way of `around`: numbers that rounding, denormals and a locale
// would show, and texts. One line a value.
struct Day {
    using Around = std::function<void(const char* name, const std::function<void()>& call)>;
    const Around& around;
    ng_ctx* c = nullptr;
    std::vector<std::string> lines = {};

    void call(const char* name, const std::function<void()>& body) { around(name, body); }
    void status(const char* name, const std::function<ng_status(ng_error*)>& body)
    {
        ng_error error{};
        ng_status got = NG_E_BUG;
        call(name, [&] { got = body(&error); });
        lines.push_back(std::string(name) + " " + ng_status_name(got) + " " + error.text);
    }
    void bits(ng_tensor* t)
    {
        ng_shape d{};
        d.size = sizeof d;
        if (ng_tensor_shape(t, &d) != NG_OK) return lines.push_back("no tensor");
        std::string raw(count_of(d) * bytes_of(d.dtype), 0), digits;
        status("ng_tensor_get", [&](ng_error* e) { return ng_tensor_get(t, raw.data(), raw.size(), e); });
        for (const char byte : raw) digits += "0123456789abcdef"[byte >> 4 & 15], digits += "0123456789abcdef"[byte & 15];
        lines.push_back(digits);
    }
    void text_of(ng_expr* e)
    {
        size_t bytes = 0;
        status("ng_expr_text", [&](ng_error* error) { return ng_expr_text(e, nullptr, &bytes, error); });
        std::string text(bytes + 1, 0);
        status("ng_expr_text", [&](ng_error* error) { return ng_expr_text(e, text.data(), &bytes, error); });
        lines.push_back(text.c_str());
    }
    ng_expr* built(const char* name, const std::function<ng_expr*()>& body)
    {
        ng_expr* e = nullptr;
        call(name, [&] { e = body(); });
        return e;
    }

    void run(uint32_t threads);
    void evaluate(ng_scope* s, ng_expr* x, ng_expr* m);
    void compile(ng_scope* s, ng_tensor* x);
};

void Day::evaluate(ng_scope* s, ng_expr* x, ng_expr* m)
{
    const char* texts[] = {"x * 1.1 + 0.1", "(x * 1e-30) * 1e-10", "x / 3", "exp(x) + log(abs(x) + 0.3)", "sin(x) * tanh(x) + x ** 2.5", "f16(x * 0.1)", "e4m3(x * 0.3)",
                           "i32(x * 1.7)", "sum(x * 0.1)", "softmax(x)", "std(x)", "matmul(m, m * 0.7)", "f64(x) * 0.1 / 3", "1e-39 + x * 0", "x * 0 + 1.1754944e-38 * 0.5"};
    const char* const names = "x,m";
    ng_expr* const values[] = {x, m};
    for (const char* text : texts) {
        ng_expr* e = built(text, [&] { return ng_parse(s, text, names, values, 2); });
        ng_tensor* y = nullptr;
        text_of(e);
        status("ng_eval", [&](ng_error* error) { return ng_eval(c, nullptr, &e, &y, 1, error); });
        bits(y);
        ng_tensor_release(y);
    }
    // what is folded while it is built: a third, a denormal, a half between two floats
    ng_expr* folded[] = {
        built("ng_div", [&] { return ng_div(ng_const(s, NG_F32, 1), ng_const(s, NG_F32, 3)); }),
        built("ng_mul", [&] { return ng_mul(ng_const(s, NG_F32, 0x1p-100), ng_const(s, NG_F32, 0x1.234568p-30)); }),
        built("ng_const", [&] { return ng_const(s, NG_F32, 0.1); }),
        built("ng_cast", [&] { return ng_cast(ng_const(s, NG_F64, 1 + 0x1p-24 + 0x1p-40), NG_F32); }),
        built("ng_exp", [&] { return ng_exp(ng_const(s, NG_F64, 0.7)); }),
        built("ng_div", [&] { return ng_div(ng_const(s, NG_F32, 1), ng_const(s, NG_F32, 0)); }),
        built("ng_sqrt", [&] { return ng_sqrt(ng_const(s, NG_F64, -2)); }),
    };
    for (ng_expr* e : folded) {
        ng_tensor* y = nullptr;
        text_of(e);
        status("ng_eval", [&](ng_error* error) { return ng_eval(c, nullptr, &e, &y, 1, error); });
        bits(y);
        ng_tensor_release(y);
    }
    ng_expr *square = ng_sum(ng_mul(x, ng_const(s, 0, 0.3)), NG_ALL, 0), *dx = nullptr;
    status("ng_grad", [&](ng_error* error) { return ng_grad(&square, nullptr, 1, &x, &dx, 1, error); });
    text_of(dx);
}

void Day::compile(ng_scope* s, ng_tensor* x)
{
    const ng_shape d = shape(NG_F32, {-1});
    const int64_t max = 100000;
    ng_expr* e = ng_parse(s, "(x * a + 0.1) / 3", "x,a", std::vector<ng_expr*>{ng_param(s, 0, &d), ng_scalar(s, NG_F32, 0)}.data(), 2);
    ng_compile_desc desc{};
    desc.size = sizeof desc, desc.length_max = &max, desc.nlength = 1;
    ng_prog *p = nullptr, *q = nullptr;
    status("ng_compile", [&](ng_error* error) { return ng_compile(c, &desc, &e, 1, &p, error); });
    status("ng_prog_wait", [&](ng_error* error) { return ng_prog_wait(p, UINT64_MAX, error); });
    ng_shape dims{};
    dims.size = sizeof dims;
    ng_tensor* y = nullptr;
    if (ng_tensor_shape(x, &dims) != NG_OK || ng_tensor_create(c, &dims, &y, nullptr) != NG_OK) return lines.push_back("no tensor");
    const float scalar = 0.7f;
    ng_run r{};
    r.size = sizeof r, r.nargs = r.nout = 1, r.args = &x, r.out = &y, r.scalars = &scalar, r.scalar_bytes = sizeof scalar;
    status("ng_prog_run", [&](ng_error* error) { return ng_prog_run(p, nullptr, &r, error); });
    bits(y);
    status("ng_tensor_fill", [&](ng_error* error) { return ng_tensor_fill(y, nullptr, 0.1, error); });
    bits(y);
    status("ng_tensor_copy", [&](ng_error* error) { return ng_tensor_copy(y, x, nullptr, error); });
    bits(y);
    size_t bytes = 0;
    status("ng_prog_explain", [&](ng_error* error) { return ng_prog_explain(p, nullptr, &bytes, error); });
    std::string text(bytes + 1, 0);
    status("ng_prog_explain", [&](ng_error* error) { return ng_prog_explain(p, text.data(), &bytes, error); });
    lines.push_back(text.c_str());
    bytes = 0;
    status("ng_prog_save", [&](ng_error* error) { return ng_prog_save(p, 0, nullptr, &bytes, error); });
    std::string saved(bytes, 0);
    status("ng_prog_save", [&](ng_error* error) { return ng_prog_save(p, 0, saved.data(), &bytes, error); });
    status("ng_prog_load", [&](ng_error* error) { return ng_prog_load(c, 0, saved.data(), saved.size(), &q, error); });
    status("ng_prog_run", [&](ng_error* error) { return ng_prog_run(q, nullptr, &r, error); });
    bits(y);
    ng_tensor_release(y);
    call("ng_prog_release", [&] { ng_prog_release(p), ng_prog_release(q); });
}

void Day::run(uint32_t threads)
{
    const ng_ctx_desc d = description(NG_CTX_DETERMINISTIC, threads);
    status("ng_ctx_create", [&](ng_error* error) { return ng_ctx_create(&d, &c, error); });
    ng_scope* s = ng_scope_create(c, 0);
    const ng_shape line = shape(NG_F32, {5000}), square = shape(NG_F32, {37, 37});
    ng_tensor *x = nullptr, *m = nullptr;
    status("ng_tensor_create", [&](ng_error* error) { return ng_tensor_create(c, &line, &x, error); });
    status("ng_tensor_create", [&](ng_error* error) { return ng_tensor_create(c, &square, &m, error); });
    std::vector<float> values(5000);
    for (size_t i = 0; i < values.size(); i++) values[i] = float((int(i * 7919 % 1000) - 500) * 0.00371);
    values[7] = 1e-40f, values[8] = -3e-41f;
    status("ng_tensor_put", [&](ng_error* error) { return ng_tensor_put(x, values.data(), 20000, error); });
    status("ng_tensor_put", [&](ng_error* error) { return ng_tensor_put(m, values.data(), 37 * 37 * 4, error); });
    evaluate(s, ng_leaf(s, x), ng_leaf(s, m));
    compile(s, x);
    call("ng_scope_release", [&] { ng_scope_release(s); });
    ng_tensor_release(x), ng_tensor_release(m);
    status("ng_ctx_poll", [&](ng_error* error) { return ng_ctx_poll(c, 0, error); });
    status("ng_ctx_close", [&](ng_error* error) { return ng_ctx_close(c, UINT64_MAX, error); });
    ng_ctx_release(c);
}

std::vector<std::string> day(uint32_t threads, const Day::Around& around = [](const char*, const std::function<void()>& call) { call(); })
{
    Day d{around};
    d.run(threads);
    return d.lines;
}
// The first line that is another.
std::string differs(const std::vector<std::string>& got, const std::vector<std::string>& want)
{
    for (size_t i = 0; i < std::max(got.size(), want.size()); i++) {
        const std::string g = i < got.size() ? got[i] : "", w = i < want.size() ? want[i] : "";
        if (g == w) continue;
        size_t at = 0;
        while (at < g.size() && at < w.size() && g[at] == w[at]) at++;
        at -= std::min<size_t>(at, 8);
        for (size_t k = i; k-- > 0 && k + 6 > i;)
            if (want[k].size() < 200) return want[k] + ": \"" + g.substr(at, 40) + "\", should be \"" + w.substr(at, 40) + "\"";
        return "\"" + g.substr(at, 40) + "\", should be \"" + w.substr(at, 40) + "\"";
    }
    return "";
}
std::string listed(const std::set<std::string>& names)
{
    std::string all;
    for (const std::string& n : names) all += (all.empty() ? "" : ", ") + n;
    return all;
}

}  // namespace

#if defined __SSE2__
namespace {
// A call made under the host's MXCSR, and the names of those after which it is another.
struct HostFloats {
    unsigned setting;
    std::set<std::string> changed = {};
    void operator()(const char* name, const std::function<void()>& call)
    {
        const unsigned before = _mm_getcsr();
        _mm_setcsr(setting);
        call();
        const unsigned after = _mm_getcsr();
        _mm_setcsr(before);
        if (after != setting) changed.insert(name);
    }
};
constexpr unsigned PLAIN = 0x1F80, FLUSH = 0x8040, DOWN = 0x2000, UP = 0x4000, TO_ZERO = 0x6000;
}  // namespace

TEST_CASE("S8: whatever MXCSR says, denormals flushed or another rounding, results and texts are the same and MXCSR is as before")
{
    for (const uint32_t threads : {1u, 3u}) {
        const std::vector<std::string> want = day(threads);
        for (const unsigned setting : {PLAIN, PLAIN | FLUSH, PLAIN | DOWN, PLAIN | UP, PLAIN | TO_ZERO | FLUSH, PLAIN | 0x3F}) {
            CAPTURE(setting);
            HostFloats host{setting};
            CHECK(differs(day(threads, std::ref(host)), want) == "");
            CHECK(listed(host.changed) == "");
        }
    }
}

TEST_CASE("S8: a host that traps on every floating-point exception is not interrupted")
{
    const std::vector<std::string> want = day(1);
    const pid_t child = fork();
    if (child == 0) {
        alarm(60);
        signal(SIGFPE, SIG_DFL);        // not the test's reporter: the parent reports
        HostFloats host{0};
        const bool is_same = differs(day(1, std::ref(host)), want) == "";
        _exit(is_same && host.changed.empty() ? 0 : 1);
    }
    int status = -1;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    CHECK(status == 0);
}
#endif

TEST_CASE("S8: the rounding of the C library's fesetround is the host's own too")
{
    const std::vector<std::string> want = day(2);
    for (const int mode : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
        std::set<std::string> changed;
        const Day::Around around = [&](const char* name, const std::function<void()>& call) {
            fesetround(mode);
            call();
            if (fegetround() != mode) changed.insert(name);
            fesetround(FE_TONEAREST);
        };
        CHECK(differs(day(2, around), want) == "");
        CHECK(listed(changed) == "");
    }
}

TEST_CASE("S8: the signal mask is as before, and the library's threads take none of the host's signals")
{
    sigset_t before, mine;
    sigemptyset(&mine);
    for (const int number : {SIGUSR1, SIGALRM, SIGWINCH}) sigaddset(&mine, number);
    REQUIRE(pthread_sigmask(SIG_SETMASK, &mine, &before) == 0);
    std::set<std::string> changed;
    const Day::Around around = [&](const char* name, const std::function<void()>& call) {
        call();
        sigset_t now;
        pthread_sigmask(SIG_SETMASK, nullptr, &now);
        for (int number = 1; number < 32; number++)
            if (sigismember(&now, number) != sigismember(&mine, number)) changed.insert(name);
    };
    day(4, around);
    CHECK(listed(changed) == "");
    pthread_sigmask(SIG_SETMASK, &before, nullptr);

    Face f(0, 4);
    f.eval(ng_exp(f.leaf(counted(400000, 0, 1e-5))));
    size_t others = 0, open = 0;
    for (const files::directory_entry& task : files::directory_iterator("/proc/self/task")) {
        if (task.path().filename() == std::to_string(getpid())) continue;
        std::ifstream lines(task.path() / "status");
        for (std::string line; std::getline(lines, line);) {
            if (line.rfind("SigBlk:", 0) != 0) continue;
            const uint64_t blocked = std::stoull(line.substr(7), nullptr, 16);
            others++, open += !(blocked >> (SIGUSR1 - 1) & blocked >> (SIGTERM - 1) & blocked >> (SIGALRM - 1) & 1);
        }
    }
    CHECK(others >= 3);
    CHECK(open == 0);
}

namespace {

// A locale in which 0.5 is written 0,5: the machine's, else one of our own making, in glibc's form: a number that names the
// category, the count of entries, where they lie, and the entries.
std::string comma_locale(const files::path& folder)
{
    for (const char* name : {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "fr_FR.utf8"})
        if (setlocale(LC_NUMERIC, name)) return name;
    const uint32_t words[] = {0x20031115u ^ LC_NUMERIC, 6, 32, 34, 36, 40, 44, 48};
    std::string bytes(reinterpret_cast<const char*>(words), sizeof words);
    const uint32_t wide[] = {',', '.'};
    bytes += std::string(",\0.\0\x03\x03\0\0", 8) + std::string(reinterpret_cast<const char*>(wide), sizeof wide) + std::string("ANSI_X3.4-1968\0", 15);
    files::create_directories(folder / "xx_COMMA");
    std::ofstream(folder / "xx_COMMA" / "LC_NUMERIC", std::ios::binary) << bytes;
    setenv("LOCPATH", folder.c_str(), 1);
    return setlocale(LC_NUMERIC, "xx_COMMA") ? "xx_COMMA" : "";
}
files::path empty_folder()
{
    std::string name = (files::temp_directory_path() / "ng_contract_XXXXXX").string();
    REQUIRE(mkdtemp(name.data()));
    return name;
}

}  // namespace

TEST_CASE("S8: a comma for a point changes no number and no text, and the locale is as before")
{
    const std::vector<std::string> want = day(2);
    const files::path folder = empty_folder();
    const std::string name = comma_locale(folder);
    if (name.empty()) MESSAGE("this C library takes no locale with a comma: the locale is the C one");
    char shown[8];
    std::snprintf(shown, sizeof shown, "%.1f", 0.5);
    CHECK((name.empty() || shown == std::string("0,5")));
    const std::string all = setlocale(LC_ALL, nullptr);
    const locale_t thread_s = uselocale(locale_t(0));
    CHECK(differs(day(2), want) == "");
    CHECK(setlocale(LC_ALL, nullptr) == all);
    CHECK(uselocale(locale_t(0)) == thread_s);
    Face f;
    CHECK(f.eval(f.text("0.5 + 1.25e-1")) == Values{0.625});
    ng_expr* wrong = f.text("maximum(0,5)");         // two operands, as ever
    CHECK(f.eval(wrong) == Values{5});
    setlocale(LC_ALL, "C");
    unsetenv("LOCPATH");
    files::remove_all(folder);
}
