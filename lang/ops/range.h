#pragma once
// What a `for` and a comprehension run over: the numbers of a range, and the
// rows of arrays.
//
// The turns of `for i in range(start, stop, step)` are counted before the first
// one: a counter that is compared with `stop` after each step could pass the
// end of its type, and start again at the other.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "lang/context/iterable.h"
#include "lang/context/walk.h"

namespace unisono::lang {

/// The integer type of a range's counter: the least that holds start, stop and
/// step. An error where there is none.
DType range_type(Walk& walk, const RangeValue& range, Span where);

/// How many numbers the range has, where its parts are ints (symbols, perhaps,
/// while checking); an error that `what` must be known otherwise.
ir::Dim range_count(Walk& walk, const RangeValue& range, std::string_view what,
                    Span where);

/// A range whose numbers are known, as 64-bit patterns, sign-extended where
/// the type has a sign. Its step is not 0.
struct KnownRange {
  DType dtype = DType::I32;
  uint64_t start = 0, stop = 0, step = 1;

  uint64_t turns() const;
  /// The counter in turn `k`.
  uint64_t at(uint64_t k) const { return start + k * step; }
};

/// Start, stop and step as arrays of the range's type (trace and check mode);
/// `known` if all three are.
struct RangeArrays {
  ArrayValue start, stop, step;
  std::optional<KnownRange> known;
  std::optional<int> unit;  // a known step of 1 or -1
};
RangeArrays range_arrays(Walk& walk, const RangeValue& range, Span where);
/// The counter in turn `turn`, an i64 scalar.
ArrayValue range_number(Walk& walk, const RangeArrays& range,
                        const ArrayValue& turn, Span where);
/// The number of turns of such a range, as an i64 that is computed before the
/// first. A step of 0 is an error when the code runs.
ArrayValue count_turns(Walk& walk, const RangeArrays& range, Span where);

/// The rows of arrays, one after the other: of one, or, by `zip` and
/// `enumerate`, of several side by side.
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
