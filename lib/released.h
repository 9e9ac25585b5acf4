// Expressions that callers gave up: a release frees nothing (NG_RT), so what dies of one waits here for a call that may.
#pragma once
#include "jit/graph.h"
#include "lib/handle.h"

namespace ng {

template <> inline constexpr HandleKind KIND_OF<const Node> = HandleKind::Expression;

// One reference goes, of the handle or that one: no lock, no allocation, nothing is freed.
void release_expression(uint64_t handle) noexcept;
void release_later(NodeRef& node) noexcept;
// Frees what waits: part of building, of ends of scopes, of every call that names a context, and of whatever removes what expired.
// Where there is nothing it costs a look.
void free_released_expressions() noexcept;

}  // namespace ng
