#pragma once
// Names and what they are bound to.
#include <cstdint>
#include <memory>
#include <string>

#include "lang/context/names.h"
#include "lang/context/value.h"

namespace unisono::lang {

/// Names of one block, call or module, and the environment around it.
struct Environment : std::enable_shared_from_this<Environment> {
  std::shared_ptr<Environment> parent;
  Names names;
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
