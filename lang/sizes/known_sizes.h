#pragma once
// Equal expressions have equal sizes. While a program is checked or traced,
// values have numbers: what the same operation computes from values of the same
// numbers has the same number. An integer scalar is a size, too, an open symbol
// where it comes from; sums, products and quotients of scalars are those of
// their sizes. So `x[i:i + 64]` and `y[i:i + 64]` have one length, and compiled
// code knows that `(i + 1) * 64 - i * 64` is 64. Sums of numbers wrap as those
// of sizes do; two values of one number by chance (a hash) are one in 2^64.
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "jit/ir/graph.h"
#include "lang/context/value.h"
#include "lang/context/walk.h"

namespace unisono::lang {

class KnownSizes;

/// What a size is computed from: a way, and in order sizes and numbers.
class SizeKey {
 public:
  explicit SizeKey(std::string_view way);
  SizeKey& add(uint64_t number);
  SizeKey& add(const ir::Dim& size);
  uint64_t hash() const { return hash_; }

 private:
  uint64_t hash_;
};

/// The open size that is computed so: of equal keys the same symbol.
ir::Dim open_size(Walk& walk, const SizeKey& key);
/// The number of a value, which it has from now on.
uint64_t number_of(Walk& walk, ArrayCell& cell);
/// An integer scalar as a size.
ir::Dim size_of(Walk& walk, ArrayCell& scalar);
/// The same of a scalar of the host of which an `int` is made: code that is
/// traced later knows it.
ir::Dim host_size_of(Walk& walk, ArrayCell& scalar);
/// `cell` is a scalar that was made of `size`.
void set_size(Walk& walk, ArrayCell& cell, const ir::Dim& size);

/// Whether a size depends on what integer scalars hold.
bool is_computed(Walk& walk, const ir::Dim& size);
/// The same of a scalar of `renewed`, of which more may be known when the code
/// is traced.
bool is_of_renewed(Walk& walk, const ir::Dim& size);

/// The number of an operation's result, in check and trace; nothing where
/// nobody knows what is computed, or asks.
std::optional<uint64_t> result_number(Walk& walk, ir::Op op,
                                      std::span<const ArrayValue> operands,
                                      const ir::Attrs& attrs,
                                      const ir::Type& type);
/// Gives it to the result, and its size.
void note_result(Walk& walk, ir::Op op, std::span<const ArrayValue> operands,
                 uint64_t number, ArrayCell& result);
/// `value`, which may stand for another one than it did: arrays in it have
/// other numbers, and other symbols those from `first_symbol` on.
Value renewed(Walk& walk, const Value& value, uint32_t first_symbol);
/// Arguments of code that is compiled for all such: what was known of their
/// integer scalars is not.
Value as_parameters(const Value& value);
/// While it lives, code that is traced stands for members that the host would
/// walk one by one, and cuts slices for. So it has no slice at a computed
/// place.
class HostSlices {
 public:
  explicit HostSlices(Walk& walk);
  ~HostSlices();
  HostSlices(const HostSlices&) = delete;
  HostSlices& operator=(const HostSlices&) = delete;
  static bool around(Walk& walk);

 private:
  KnownSizes& sizes_;
};

/// A check or a trace begins: no number of before counts.
void forget_sizes(Walk& walk);

}  // namespace unisono::lang
