#pragma once
// What an input of a session that fails must not have changed.
#include <optional>
#include <unordered_set>
#include <vector>

#include "lang/walk/walker.h"

namespace unisono::lang {

/// Remembers the global names, and the arrays in them that are given away:
/// these stay until the input ends, as a failure makes them what they were.
class Undo {
 public:
  explicit Undo(Env globals)
      : globals_(std::move(globals)), names_(globals_->names) {}
  /// Before `value` is given away.
  void keep(const ArrayValue& value);
  void take_back();

 private:
  struct Kept {
    ArrayValue value;
    std::optional<unisono::Array> array;
  };
  Env globals_;
  Names names_;
  std::vector<Kept> kept_;
  /// Arrays that the names held, once something is given away.
  std::optional<std::unordered_set<ArrayCell*>> held_;
};

}  // namespace unisono::lang
