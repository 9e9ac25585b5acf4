// What the API fuzzer has in hand: handles of every kind, living and dead, and hostile arguments in memory of the very size.
#pragma once
#include "tests/harm/dlpack_binary.h"
#include "tests/harm/fuzz.h"

#include <map>
#include <memory>
#include <set>

namespace harm {

enum Kind { CONTEXT, TENSOR, SCOPE, EXPR, PROGRAM, KINDS };
template <class H> inline constexpr Kind KIND_OF = KINDS;
template <> inline constexpr Kind KIND_OF<ng_ctx> = CONTEXT;
template <> inline constexpr Kind KIND_OF<ng_tensor> = TENSOR;
template <> inline constexpr Kind KIND_OF<ng_scope> = SCOPE;
template <> inline constexpr Kind KIND_OF<ng_expr> = EXPR;
template <> inline constexpr Kind KIND_OF<ng_prog> = PROGRAM;

constexpr uint64_t SMALL_MEMORY = 1 << 24;

// Memory that the library borrows until done is called; exactly once for what it took.
struct Lent {
    std::unique_ptr<uint8_t[]> memory = std::make_unique<uint8_t[]>(BYTES);
    bool was_taken = false;
    int  ends = 0;
    int64_t dims[4] = {}, strides[4] = {};
    DLManagedTensorVersioned managed{};
    static constexpr uint64_t BYTES = 4096;
};

class World {
  public:
    World(const uint8_t* data, size_t size);
    ~World();
    World(const World&) = delete;

    Bytes bytes;

    // ---- handles
    template <class H> H* any() { return static_cast<H*>(pick(KIND_OF<H>)); }
    ng_ctx*    context() { return any<ng_ctx>(); }
    ng_tensor* tensor() { return any<ng_tensor>(); }
    ng_scope*  scope() { return bytes.one_in(3) ? nullptr : any<ng_scope>(); }
    ng_expr*   expr() { return any<ng_expr>(); }
    ng_prog*   program() { return any<ng_prog>(); }
    template <class H> void give(H* handle) { keep(KIND_OF<H>, handle); }
    // A builder's: never NULL. It is vast when an operand was, or when its own shape is. Most of the poisoned are let go.
    void built(const char* call, ng_expr* e);
    bool is_vast(const void* handle) const { return vast_.count(handle) != 0; }
    bool met_vast() const { return met_vast_; }                          // since begin()
    void set_vast(const void* handle) { vast_.insert(handle); }
    // Few elements, so that a copy of them ends; what is no tensor too.
    bool is_short(ng_tensor* t) const;
    void retained(void* handle) { retains_[handle]++; }

    // ---- arguments, in memory that lasts until the next begin()
    void begin();
    void* scratch(size_t size);
    int64_t number();
    int64_t dim() { return bytes.one_in(8) ? number() : bytes.one_in(8) ? -1 - int64_t(bytes.below(3)) : int64_t(1 + bytes.below(5)); }
    int32_t axis() { return bytes.one_in(16) ? int32_t(number()) : bytes.one_in(4) ? int32_t(bytes.below(5)) - 1 : int32_t(bytes.below(2)); }
    uint32_t flags() { return bytes.one_in(30) ? uint32_t(bytes.word()) : bytes.one_in(4) ? bytes.below(4) : 0; }
    ng_axes axes() { return bytes.one_in(4) ? NG_ALL : bytes.one_in(16) ? bytes.word() : bytes.below(4); }
    ng_dtype dtype();
    double real();
    const char* text();
    ng_error* error() { return bytes.one_in(12) ? nullptr : static_cast<ng_error*>(scratch(sizeof(ng_error))); }
    uint32_t count(uint32_t most) { return bytes.below(most + 1); }
    // A struct of an odd size now and then, its memory no longer than that; NULL now and then.
    template <class T> T* structure(const T& full, bool may_be_null = true)
    {
        if (may_be_null && bytes.one_in(24)) return nullptr;
        const uint32_t size = struct_size(sizeof(T));
        const size_t room = size < sizeof(T) ? (size < 8 ? 8 : size) : sizeof(T);
        void* memory = scratch(room);
        std::memcpy(memory, &full, room);
        std::memcpy(memory, &size, sizeof size);
        return static_cast<T*>(memory);
    }
    template <class T> T* out() { return structure(T{}); }
    const ng_shape* shape();
    ng_shape shape_value();
    template <class T, class Make> T* array(uint32_t n, Make&& make)
    {
        if (bytes.one_in(40)) return nullptr;
        T* all = static_cast<T*>(scratch(sizeof(T) * n));
        for (uint32_t i = 0; i < n; i++) all[i] = make();
        return all;
    }
    ng_expr** exprs(uint32_t n) { return array<ng_expr*>(n, [&] { return expr(); }); }
    Lent& lend();
    static void end(void* lent) { static_cast<Lent*>(lent)->ends++; }

    void* pick(Kind kind);
    std::vector<DLManagedTensorVersioned*> borrowed;      // DLPack tensors that the library gave us
    std::vector<std::string> saved;                       // programs

  private:
    void keep(Kind kind, void* handle);
    uint32_t struct_size(size_t whole);
    void release_all();

    std::vector<void*>               handles_[KINDS];
    std::set<const void*>            vast_;
    std::map<void*, unsigned>        retains_;
    std::vector<std::unique_ptr<uint8_t[]>> scratch_;
    std::vector<std::unique_ptr<Lent>> lent_;
    bool                             met_vast_ = false;
};

struct Row {
    const char* name;
    void      (*call)(World& w);
};
// Every function of ng.h: what acts, and the words.
const std::vector<Row>& acting_rows();
const std::vector<Row>& building_rows();
const std::vector<Row>& word_rows();

}  // namespace harm
