// A scope: the graph in which expressions are built, and the owner of their handles.
#pragma once
#include "lib/context.h"
#include "lib/released.h"

#include <mutex>

namespace ng {

template <> inline constexpr const char* NOUN_OF<const Node> = "expression";

class Scope : public RefCounted {
  public:
    static constexpr size_t DEFAULT_NODES = size_t(1) << 20;

    // The scope with its handle, which is the caller's. context may be null.
    static uint64_t create(Ref<Context> context, size_t max_nodes);
    uint64_t       handle() const noexcept { return handle_; }
    uint64_t       age() const noexcept { return serial_; }            // the youngest scope has the greatest
    const Ref<Context>& context() const noexcept { return context_; }

    std::mutex& lock() noexcept { return lock_; }                      // hold it around graph()
    Graph&      graph() noexcept { return graph_; }                    // grows until the scope ends

    // A handle of the node, owned by the scope, or by the caller where the scope has been released meanwhile. Hold the lock.
    uint64_t hand_out(NodeRef node);
    // Gives up the scope's references; what the caller retained becomes his. Once; ng_scope_release.
    void end() noexcept;

  private:
    Scope(Ref<Context> context, size_t max_nodes);
    friend void destroy<Scope>(const Scope*) noexcept;
    ~Scope() = default;

    const Ref<Context>    context_;
    const uint64_t        serial_;
    const uint32_t        epoch_;
    uint64_t              handle_ = 0;
    std::mutex            lock_;
    Graph                 graph_;
    Growing<uint64_t>     owned_;
    bool                  is_ended_ = false;
};

template <> inline constexpr HandleKind  KIND_OF<Scope> = HandleKind::Scope;
template <> inline constexpr const char* NOUN_OF<Scope> = "scope";

}  // namespace ng
