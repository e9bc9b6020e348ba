#pragma once
// Sizes of arrays, known or symbolic.
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace unisono::ir {

/// A size: a known integer, or a polynomial with integer coefficients over
/// symbols ("n", "d"), held in a normal form so that equal sizes compare equal.
/// The checker computes with symbols; a graph that is executed has only
/// constants. A quotient that does not divide evenly is a symbol of its own,
/// keyed by dividend and divisor, so that `(n + 1) // 2` equals itself.
class Dim {
 public:
  struct Poly;
  Dim() : Dim(0) {}
  Dim(int64_t value) : value_(value) {}  // NOLINT: sizes are mostly integers
  /// A symbol, told apart by its id; `name` is for people. It is a given size,
  /// which stands for all values, or an open one: only running tells it.
  static Dim symbol(uint32_t id, std::string name, bool open = false);

  bool is_constant() const { return !poly_; }
  /// Whether it depends on an open symbol.
  bool is_open() const;
  /// The integer; only if `is_constant()`.
  int64_t value() const;
  /// The id, if this is one symbol and nothing else.
  std::optional<uint32_t> as_symbol() const;

  friend Dim operator+(const Dim& a, const Dim& b);
  friend Dim operator-(const Dim& a, const Dim& b);
  friend Dim operator*(const Dim& a, const Dim& b);
  /// Rounds towards minus infinity; b must not be the constant 0.
  friend Dim floor_div(const Dim& a, const Dim& b);
  friend Dim floor_mod(const Dim& a, const Dim& b);
  /// a / b if it divides evenly for every value of the symbols.
  friend std::optional<Dim> exact_div(const Dim& a, const Dim& b);
  /// Whether they are proved equal, for all values of the symbols.
  friend bool operator==(const Dim& a, const Dim& b);

  /// This size with each symbol replaced by what `f` gives for its id; where
  /// that is nothing, the symbol stays.
  Dim substitute(const std::function<std::optional<Dim>(uint32_t id)>& f) const;
  /// "n + 1", "2*n", "12".
  std::string to_string() const;
  /// The ids of its symbols, each once.
  std::vector<uint32_t> symbols() const;

  /// True when an operation on constants left the range of int64; such a
  /// value is a user's error ("this size is too large") and never executed.
  bool overflowed() const { return overflowed_; }

 private:
  int64_t value_ = 0;
  bool overflowed_ = false;
  std::shared_ptr<const Poly> poly_;
};

/// What is known of two sizes. They are `different` if they differ by a number,
/// as `n - 1` and `n` do, or if that they are equal is not proved for all
/// values of given symbols; `open` if only running tells.
enum class Comparison : uint8_t { equal, different, open };
Comparison compare(const Dim& a, const Dim& b);

using Shape = std::vector<Dim>;

/// Product of all sizes; 1 for rank 0.
Dim element_count(const Shape& shape);

}  // namespace unisono::ir
