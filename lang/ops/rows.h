#pragma once
// The rows of arrays, one after the other: what a `for` and a comprehension run
// over, alone or, by `zip` and `enumerate`, side by side.
#include <memory>
#include <string>

#include "lang/context/iterable.h"
#include "lang/context/walk.h"

namespace unisono::lang {

class Rows : public Iterable {
 public:
  /// `tree`: an array of `length` rows, a range for their numbers from 0 on, or
  /// a tuple of such trees.
  Rows(Value tree, ir::Dim length)
      : tree_(std::move(tree)), length_(std::move(length)) {}

  std::string type_name() const override;
  ir::Dim length() const override { return length_; }
  Value enumerated(Walk& walk) const override;
  const Rows* rows() const override { return this; }

  const Value& tree() const { return tree_; }
  /// The tree of row `number`, an integer scalar in range.
  Value row(Walk& walk, const ArrayValue& number, Span where) const;
  /// The tree with numbers as an array: each leaf has all rows along axis 0.
  Value columns(Walk& walk, Span where) const;

 private:
  Value tree_;
  ir::Dim length_;
};

/// The rows of an array of rank 1 or more, or those that `zip` and `enumerate`
/// put side by side; null for other values.
std::shared_ptr<const Rows> rows_of(const Value& value);

}  // namespace unisono::lang
