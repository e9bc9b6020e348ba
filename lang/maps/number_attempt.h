#pragma once
// Compiled code takes the numbers of its call, `int`s and literals, as
// arguments where it can do without their values, so that other numbers compile
// nothing. Whether it can is found out by tracing it: an attempt with arguments
// in place of the numbers is given up where the value of one is asked for, such
// as an `int` that is a size, or a literal that may be a small exponent.
#include <memory>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "lang/context/value.h"
#include "lang/context/walk.h"

namespace unisono::lang {

/// The numbers of a function's calls that have to be known: those that earlier
/// attempts have found.
struct KnownNumbers {
  bool ints = false;          // all of them
  std::set<size_t> literals;  // by their places among the arguments' leaves
};

/// An int or a literal as an array on the first device (run mode).
ArrayValue number_argument(Walk& walk, const Value& number, Span where);

/// One attempt; it is given all arguments before the function is traced.
class NumberAttempt {
 public:
  /// Without `ints`, all ints stay known; `known.literals` stay so, too.
  NumberAttempt(Walk& walk, const KnownNumbers& known, bool ints, Span where);

  /// The next argument, with arrays in place of its numbers.
  Value next(const Value& argument);
  /// After the trace has failed: whether that may be no mistake of the program,
  /// but for want of a number that has to be known. Then the number is added to
  /// `known`, and all that the attempt has reported is forgotten.
  bool given_up(const Failure& failure, KnownNumbers& known);

 private:
  Walk& walk_;
  std::set<size_t> known_;
  bool ints_;
  Span where_;
  size_t leaves_ = 0;
  bool any_int_ = false;
  std::vector<std::pair<size_t, std::shared_ptr<NumberArgument>>> literals_;
  size_t messages_;
  Walk::Reported reported_;
};

}  // namespace unisono::lang
