#pragma once
// `x[...]` and `x[...] = v`, by NumPy's rules, as slices, gathers and scatters.
#include <optional>
#include <vector>

#include "lang/context/builtin.h"
#include "lang/context/value.h"

namespace unisono::lang {

class Walk;

/// One item between the brackets.
struct IndexItem {
  enum class Kind : uint8_t { value, slice, ellipsis };
  Kind kind = Kind::value;
  /// An int, an integer or boolean array, a tuple of ints, or `none`.
  Value value;
  /// Of a slice; empty if not written.
  std::optional<CallArgument> start, stop, step;
  Span where;
};

/// The part of `base` that the items select: of an array, a tuple or a type
/// (`f32[n, 3]`). Ints and slices are checked here where sizes are known, and
/// are assumed to be in range where sizes are symbols; slices are cut to the
/// array. Integer arrays gather, checked when they run. A boolean array selects
/// in run mode only.
Value index(Walk& walk, const Value& base, const std::vector<IndexItem>& items,
            Span where);

/// `base` with that part replaced by `value`, which is broadcast to it. Where
/// an index repeats, the last one wins.
Value update(Walk& walk, const Value& base, const std::vector<IndexItem>& items,
             const CallArgument& value, Span where);
/// The same for an array that `variable` holds, which is then the new one. In
/// run mode, on CPUs, it is changed in place, by as much work as there are new
/// elements, if nothing else holds it (elements.h says what counts, and that
/// `variable` must be the caller's only reference) and it is there; what is
/// pending is computed before, but where most of a large array is written by
/// one pass. Else a graph makes the new one.
void update_variable(Walk& walk, ArrayValue& variable,
                     const std::vector<IndexItem>& items,
                     const CallArgument& value, Span where);

}  // namespace unisono::lang
