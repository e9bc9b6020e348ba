#pragma once
// What a `for` may run over besides ranges, arrays and tuples.
#include <memory>
#include <string>
#include <vector>

#include "lang/context/value.h"

namespace unisono::lang {

class Walk;
class Rows;
class Sequence;

/// It does not change, and may be run over several times. It is either Rows
/// (ops/range.h), which compiled code may run over, or a Sequence.
class Iterable {
 public:
  virtual ~Iterable() = default;
  /// For messages and `typeof`: "batches of (f32[32, 2], i32[32])".
  virtual std::string type_name() const = 0;
  /// How many items there are: a symbol, perhaps, while checking.
  virtual ir::Dim length() const = 0;
  /// The same with each item's number before it, from 0 on.
  virtual Value enumerated(Walk& walk) const = 0;
  virtual const Rows* rows() const { return nullptr; }
  virtual const Sequence* sequence() const { return nullptr; }
};

/// The items of a Sequence, one after the other (run mode). Its destructor
/// waits for what it does beside the program.
class Items {
 public:
  virtual ~Items() = default;
  /// The next one; there is one. Ends the program with an error at `where`.
  virtual Value next(Walk& walk, Span where) = 0;
};

/// Items that the host makes while the loop runs.
class Sequence : public Iterable {
 public:
  const Sequence* sequence() const override { return this; }
  /// An item of each type that there is, in the order in which they come.
  virtual const std::vector<Value>& kinds() const = 0;
  /// For messages, of a type that is not the first: "in the last batch, ...".
  virtual std::string last_kind() const = 0;
  virtual std::unique_ptr<Items> items(Walk& walk, Span where) const = 0;
};

}  // namespace unisono::lang
