#pragma once
#include <memory>
#include <string>
#include <unordered_map>

#include "lang/value.h"

namespace unisono::lang {

/// A name's meaning. `var`s may be assigned again.
struct Binding {
  Value value;
  bool is_var = false;
  /// Its definition had an error: uses of it are not reported again.
  bool poisoned = false;
  Span where;
};

/// Names of one block, call or module, and the environment around it.
struct Environment : std::enable_shared_from_this<Environment> {
  std::shared_ptr<Environment> parent;
  std::unordered_map<std::string, Binding> names;
  /// The call that this environment is the body of, or 0 at top level:
  /// assignment reaches `var`s of the same function only.
  uint32_t function_depth = 0;

  /// The binding and the environment that holds it; null if there is none.
  std::pair<Binding*, Environment*> find(const std::string& name);
};

}  // namespace unisono::lang
