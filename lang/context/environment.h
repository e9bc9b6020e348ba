#pragma once
// Names and what they are bound to.
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>

#include "lang/context/value.h"

namespace unisono::lang {

struct Expr;  // ast.h

/// A name's meaning. `var`s may be assigned again.
struct Binding {
  Value value;
  bool is_var = false;
  /// Its definition had an error: uses of the name are not reported again.
  bool poisoned = false;
  Span where;  // of the definition
  /// The type that a `var` was declared with, or null.
  const Expr* type = nullptr;
  /// Of a `var`, its place among the types that are kept (Walk::keep_types); -1
  /// if none are.
  int64_t type_record = -1;
  /// Of a poisoned name: there was no error, but a question that only a call of
  /// the function answers (Failure::open).
  bool open = false;
};

/// Names of one block, call or module, and the environment around it.
struct Environment : std::enable_shared_from_this<Environment> {
  std::shared_ptr<Environment> parent;
  std::unordered_map<std::string, Binding> names;
  /// The number of the call that this environment belongs to (later calls have
  /// larger ones), or 0 at top level: assignment reaches `var`s of the same
  /// call only.
  uint32_t call = 0;
  /// Grows with each change, so that conclusions from the names can be
  /// forgotten.
  uint64_t version = 0;

  /// The binding of a name here or further out, and the environment that holds
  /// it; nulls if there is none.
  std::pair<Binding*, Environment*> find(const std::string& name);
};

}  // namespace unisono::lang
