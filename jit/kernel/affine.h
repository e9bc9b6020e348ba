#pragma once
// Affine index expressions over the axes of a loop nest, and the algebra that
// turns views (reshape, transpose, broadcast, slice, flip) into arithmetic.
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace unisono::jit {

/// constant + sum of factors[a] * (index along axis a of the nest).
struct Affine {
  int64_t constant = 0;
  std::vector<int64_t> factors;  // one per axis of the nest
  bool operator==(const Affine&) const = default;
};

/// The element of an array that a point of the nest stands at: one coordinate
/// per axis of the array.
using IndexMap = std::vector<Affine>;

struct AffineRange {
  int64_t low = 0, high = 0;  // both are taken
};
/// The values that `affine` takes over a nest whose extents are all positive.
AffineRange range(const Affine& affine, const std::vector<int64_t>& extents);

/// `value` at every point of a nest with so many axes.
Affine constant_affine(int64_t value, size_t axes);
/// a * scale + offset.
Affine scaled(const Affine& a, int64_t scale, int64_t offset);
Affine operator+(const Affine& a, const Affine& b);

/// Row-major strides of a dense array.
std::vector<int64_t> dense_strides(const std::vector<int64_t>& shape);
/// The row-major offset of the element that `map` names in an array of this
/// shape; `axes` is the number of axes of the nest.
Affine linearise(const IndexMap& map, const std::vector<int64_t>& shape,
                 size_t axes);

/// A wish to have axis `axis` of the nest as two axes, the inner one of extent
/// `inner`, which divides the axis's.
struct AxisSplit {
  size_t axis = 0;
  int64_t inner = 0;
};
struct NotAffine {};
/// The coordinates, in an array of this shape, of the element with row-major
/// offset `offset`. Where they are not affine, the split of an axis of the nest
/// after which they may be, if there is one.
std::variant<IndexMap, AxisSplit, NotAffine> delinearise(
    const Affine& offset, const std::vector<int64_t>& extents,
    const std::vector<int64_t>& shape);

/// The same function of a point in terms of the nest's axes after the split.
Affine split(const Affine& affine, const AxisSplit& wish);

}  // namespace unisono::jit
