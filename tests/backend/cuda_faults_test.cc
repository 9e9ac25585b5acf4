// A host's whole day on a CUDA device with every call of the driver failing in turn: always a status and a sentence, nothing left, and the same calls work again.
#include "tests/backend/cuda_host.h"
#include "tests/backend/emulated_device.h"
#include "tests/harm/dlpack_binary.h"

#include <algorithm>
#include <cmath>
#include <utility>

using namespace ng;
using namespace ng::cuda;

namespace {

constexpr int64_t N = 256;
constexpr int     OUT_OF_MEMORY = 2, SPOILT = 700, UNKNOWN = 999;      // codes of the driver

enum class Way {
    Interpreted,       // in a context of the host's own, with a run captured by the host
    Compiled,          // by the compiler that compiles nothing, so what its kernels store is not looked at
};

// What is to be ended, whichever call failed; and the first fault.
class Day {
  public:
    Day(const fake::Control& control, Way way, bool retries) : control_(control), driver_(Driver::need("a test", stand_in_path())), way_(way), retries_(retries) {}
    ~Day();
    void live();
    ng_status status() const { return status_; }
    int       first_fault() const { return first_fault_; }
    bool      is_right() const { return is_right_; }
    bool      is_hosts() const { return is_hosts_; }     // it was a call of the host's own that failed
    const std::string& said() const { return said_; }

  private:
    // Whether all went well so far. A call that fails is told so by a sentence, and made once more where `retries` says so.
    template <class Call>
    bool then(const char* what, Call&& call)
    {
        for (int turn = 0; status_ >= 0; turn++) {
            ng_error error{};
            const ng_status status = call(&error);
            if (status >= 0) return true;
            if (!first_fault_) first_fault_ = status, said_ = text(what, ": ", error.text);
            CHECK_MESSAGE(error.text[0] != 0, what);
            CHECK_MESSAGE(error.status == status, what);
            if (turn == 0 && retries_ && status != NG_E_LOST) continue;
            if (retries_) said_ += text("; again, ", what, ": ", error.text);
            status_ = status;
        }
        return false;
    }
    // The host's own calls of the driver, which it looks after itself.
    bool host(CUresult result)
    {
        if (result != CUDA_SUCCESS && status_ >= 0) status_ = NG_E_DEVICE, first_fault_ = first_fault_ ? first_fault_ : status_, is_hosts_ = true;
        return result == CUDA_SUCCESS;
    }
    void expect(ng_tensor* t, float value);
    void open();
    void make_tensors();
    void run_program(const char* words, float value, ng_stream s);
    void capture();
    void exchange();

    const fake::Control& control_;
    const Driver&        driver_;
    const Way            way_;
    const bool           retries_;
    void*                native_ = nullptr;
    ng_ctx*              c_ = nullptr;
    ng_tensor*           t_[5] = {};                     // x, y, out, pinned, what comes by DLPack
    std::vector<ng_prog*> programs_;
    ng_status            status_ = NG_OK;
    int                  first_fault_ = 0;
    bool                 is_right_ = true, is_hosts_ = false;
    std::string          said_;
};

Day::~Day()
{
    for (ng_prog* p : programs_) ng_prog_release(p);
    for (ng_tensor* t : t_) ng_tensor_release(t);
    for (int turn = 0; c_ && turn < 2 && ng_ctx_close(c_, FOREVER, nullptr) < 0; turn++) {}
    ng_ctx_release(c_);
    if (native_) control_.destroy_context(native_);
}

void Day::expect(ng_tensor* t, float value)
{
    std::vector<float> all(static_cast<size_t>(N));
    if (!then("ng_tensor_get", [&](ng_error* e) { return ng_tensor_get(t, all.data(), all.size() * 4, e); })) return;
    for (const float v : all) is_right_ &= way_ == Way::Compiled || std::abs(v - value) <= 1e-5f * std::abs(value);
}

void Day::open()
{
    ng_ctx_desc d = description(NG_CTX_NO_THREADS | (way_ == Way::Interpreted ? NG_CTX_NO_JIT : 0));
    if (way_ == Way::Interpreted) d.native = native_ = control_.create_context(0);
    then("ng_ctx_create", [&](ng_error* e) { return ng_ctx_create(&d, &c_, e); });
}

void Day::make_tensors()
{
    const std::vector<float> one(static_cast<size_t>(N), 1.f), two(static_cast<size_t>(N), 2.f);
    for (size_t i = 0; i < 4; i++) {
        const ng_shape d = vector_of(N, i == 3 ? NG_HOST : 0);
        then("ng_tensor_create", [&](ng_error* e) { return ng_tensor_create(c_, &d, &t_[i], e); });
    }
    then("ng_tensor_put", [&](ng_error* e) { return ng_tensor_put(t_[0], one.data(), one.size() * 4, e); });
    void* data = nullptr;
    if (then("ng_tensor_use", [&](ng_error* e) { return ng_tensor_use(t_[3], nullptr, NG_USE_WRITE, &data, e); })) std::copy(two.begin(), two.end(), static_cast<float*>(data));
    then("ng_tensor_use", [&](ng_error* e) { return ng_tensor_use(t_[3], nullptr, NG_USE_DONE, nullptr, e); });
    then("ng_tensor_copy", [&](ng_error* e) { return ng_tensor_copy(t_[1], t_[3], nullptr, e); });
    then("ng_tensor_fill", [&](ng_error* e) { return ng_tensor_fill(t_[2], nullptr, 7, e); });
}

// Over x of ones and y of twos; every element is `value`.
void Day::run_program(const char* words, float value, ng_stream s)
{
    if (status_ < 0) return;
    ng_scope* scope = ng_scope_create(c_, 0);
    const ng_shape d = vector_of(N);
    ng_expr* const params[] = {ng_param(scope, 0, &d), ng_param(scope, 1, &d)};
    ng_expr* e = ng_tag(ng_parse(scope, words, "x,y", params, 2), words);
    ng_prog* p = nullptr;
    // What a compiler's fault refused is refused for good, to this program: the next one asks anew.
    then(words, [&](ng_error* error) {
        ng_prog_release(std::exchange(p, nullptr));
        const ng_status status = ng_compile(c_, nullptr, &e, 1, &p, error);
        return status >= 0 ? ng_prog_wait(p, FOREVER, error) : status;
    });
    ng_scope_release(scope);
    programs_.push_back(p);
    then("ng_prog_run", [&](ng_error* error) { return run(p, s, t_, t_[2], error); });
    if (status_ >= 0) expect(t_[2], value);
}

// The last program once more, as a graph of the host's.
void Day::capture()
{
    if (status_ < 0) return;
    CUstream stream = nullptr;
    CUgraph graph = nullptr;
    CUgraphExec exec = nullptr;
    if (!host(driver_.cuCtxPushCurrent.quiet(static_cast<CUcontext>(native_)))) return;
    if (host(driver_.cuStreamCreateWithPriority.quiet(&stream, CU_STREAM_NON_BLOCKING, 0))) {
        then("ng_ctx_sync", [&](ng_error* e) { return ng_ctx_sync(c_, nullptr, FOREVER, e); });
        then("ng_prog_run", [&](ng_error* e) { return run(programs_.back(), stream, t_, t_[2], e); });     // what first runs on a stream make
        if (status_ >= 0 && host(driver_.cuStreamBeginCapture.quiet(stream, CU_STREAM_CAPTURE_MODE_GLOBAL))) {
            ng_error error{};
            const ng_status ran = run(programs_.back(), stream, t_, t_[2], &error);     // a capture may be spoilt for good: not made again
            const CUresult ended = driver_.cuStreamEndCapture.quiet(stream, &graph);
            if (ran < 0) {
                CHECK(error.text[0] != 0);
                status_ = ran, first_fault_ = first_fault_ ? first_fault_ : ran, is_hosts_ = true;
            }
            host(ended);
        }
        then("ng_tensor_fill", [&](ng_error* e) { return ng_tensor_fill(t_[2], stream, 7, e); });
        if (status_ >= 0 && host(driver_.cuGraphInstantiateWithFlags.quiet(&exec, graph, 0))) host(driver_.cuGraphLaunch.quiet(exec, stream));
        if (status_ >= 0) host(driver_.cuStreamSynchronize.quiet(stream));
        if (ng_ctx_sync(c_, stream, FOREVER, nullptr) < 0) (void)ng_ctx_sync(c_, stream, FOREVER, nullptr);      // else it is not forgotten
        if (exec) (void)driver_.cuGraphExecDestroy.quiet(exec);
        if (graph) (void)driver_.cuGraphDestroy.quiet(graph);
        (void)driver_.cuStreamDestroy.quiet(stream);
    }
    CUcontext ours = nullptr;
    (void)driver_.cuCtxPopCurrent.quiet(&ours);
    if (status_ >= 0) expect(t_[2], 5);
}

void Day::exchange()
{
    DLManagedTensorVersioned* m = nullptr;
    if (!then("ng_tensor_to_dlpack", [&](ng_error* e) { return ng_tensor_to_dlpack(t_[1], nullptr, &m, e); })) return;
    if (then("ng_tensor_from_dlpack", [&](ng_error* e) { return ng_tensor_from_dlpack(c_, m, nullptr, &t_[4], e); })) expect(t_[4], 2);
    else m->deleter(m);
}

void Day::live()
{
    open();
    make_tensors();
    ng_stream second = nullptr;
    then("ng_ctx_stream", [&](ng_error* e) {
        second = ng_ctx_stream(c_, 1);
        if (!second) e->status = NG_E_DEVICE, e->text[0] = '-';           // it has no error to say more in
        return second ? ng_status(NG_OK) : ng_status(NG_E_DEVICE);
    });
    run_program("softmax(reshape(x + y, [16, 16]), 1)[0, 0] * 48 + y * 0", 3, nullptr);
    run_program("scan(x * 0 + 0.5 ** (x - y), 0, sum) * 0 + y", 2, second);
    run_program("reshape(relu(reshape(x, [16, 16]) @ reshape(y, [16, 16]) * 0.5 + 1), [256])", 17, nullptr);
    run_program("x * 3 + y", 5, second);
    if (way_ == Way::Interpreted) capture();
    exchange();
    if (status_ >= 0) {
        ng_scope* scope = ng_scope_create(c_, 0);
        ng_expr* const leaf = ng_leaf(scope, t_[0]);
        ng_expr* e = ng_tag(ng_parse(scope, "exp(x - 1) + x", "x", &leaf, 1), "evaluated");
        ng_tensor* out = nullptr;
        if (then("ng_eval", [&](ng_error* error) { return ng_eval(c_, second, &e, &out, 1, error); })) expect(out, 2);
        ng_tensor_release(out), ng_scope_release(scope);
    }
    uint64_t mark = 0;
    then("ng_mark", [&](ng_error* e) { return ng_mark(c_, second, &mark, e); });
    then("ng_mark_after", [&](ng_error* e) { return ng_mark_after(c_, nullptr, mark, e); });
    then("ng_mark_wait", [&](ng_error* e) { return ng_mark_wait(c_, mark, FOREVER, e); });
    then("ng_ctx_trim", [&](ng_error* e) {
        const ng_status status = ng_ctx_trim(c_, 0);
        if (status < 0) e->status = status, e->text[0] = '-';             // nor has this
        return status;
    });
    then("ng_ctx_sync", [&](ng_error* e) { return ng_ctx_sync(c_, nullptr, FOREVER, e); });
}

// The n-th call fails by each code, or one of these by turns: every call once. NG_TEST_ALL: all by all.
void fail_in_turn(Way way)
{
    const fake::Control& driver = emulated_device();
    {
        Day day(driver, way, false);
        day.live();
        REQUIRE_MESSAGE(day.status() == NG_OK, day.said());
        REQUIRE(day.is_right());
    }
    CHECK(left(driver) == "");
    const uint64_t calls = driver.counts().calls;
    const bool is_all = std::getenv("NG_TEST_ALL") != nullptr;
    const int codes[] = {OUT_OF_MEMORY, SPOILT, UNKNOWN};
    int faults = 0;
    for (uint64_t number = 1; number <= calls; number++)
        for (size_t k = 0; k < std::size(codes); k++) {
            if (!is_all && number % std::size(codes) != k) continue;
            driver.reset();
            driver.set_compute(80);
            driver.fail_call(number, codes[k]);
            std::string failed, said;
            {
                Day day(driver, way, codes[k] != SPOILT);
                day.live();
                failed = driver.failed(), said = day.said();
                INFO("call ", number, " of ", calls, ", ", failed, ", code ", codes[k], ": ", said);
                faults += day.first_fault() != 0;
                CHECK(day.is_right());
                if (codes[k] != SPOILT && !day.is_hosts()) CHECK(day.status() == NG_OK);
            }
            if (failed.empty()) failed = driver.failed();            // in an end
            INFO("call ", number, " of ", calls, ", ", failed, ", code ", codes[k], ": ", said);
            CHECK(driver.counts().misuses == 0);
            // A context that cannot be made current is lost, and with it what lived there.
            if (failed != "cuCtxPushCurrent") CHECK(left(driver) == "");
        }
    CHECK(faults > 0);
    MESSAGE(calls, " calls, ", faults, " faults");
    driver.reset();
    Day day(driver, way, false);
    driver.set_compute(80);
    day.live();
    CHECK(day.status() == NG_OK);
}

}  // namespace

TEST_CASE("cuda: whichever call of the driver fails, interpreted programs and captures end in a status, and in right values when tried again") { fail_in_turn(Way::Interpreted); }

TEST_CASE("cuda: whichever call of the driver fails, compiled programs end in a status and leave nothing") { fail_in_turn(Way::Compiled); }

TEST_CASE("cuda: a fault that a fill meets, by a memset or a kernel, is told with the tags of what was under way")
{
    for (const bool is_kernel : {false, true}) {
        const fake::Control& driver = emulated_device();
        driver.defer(true);
        ng_ctx* c = open_ctx(NG_CTX_NO_JIT);
        ng_tensor *x = make(c, N), *out = make(c, N);
        ng_tensor* const args[] = {x, x};
        ng_shape d = vector_of(N);
        ng_tensor* wide = nullptr;
        d.dtype = NG_F64;
        CHECK(ng_tensor_create(c, &d, &wide, nullptr) == NG_OK);
        for (ng_tensor* t : {x, wide}) CHECK(ng_tensor_fill(t, nullptr, 1, nullptr) == NG_OK);
        ng_prog* p = program_of(c, "x * y", N, true, "the faulty one");
        CHECK(run(p, nullptr, args, out) >= 0);
        driver.fail_function(is_kernel ? "cuLaunchKernel" : "cuMemsetD32Async", 1, SPOILT);
        ng_error error{};
        CHECK(ng_tensor_fill(is_kernel ? wide : x, nullptr, 2, &error) == NG_E_LOST);
        CHECK_MESSAGE(holds(error.text, "; under way were \"the faulty one\""), error.text);
        for (ng_tensor* t : {x, out, wide}) ng_tensor_release(t);
        ng_prog_release(p);
        shut(c);
        CHECK(left(driver) == "");
    }
}
