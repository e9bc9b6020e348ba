#include "jit/kernel/affine.h"

#include "runtime/check.h"

namespace unisono::jit {

AffineRange range(const Affine& affine, const std::vector<int64_t>& extents) {
  AffineRange result{affine.constant, affine.constant};
  for (size_t a = 0; a < extents.size(); ++a) {
    int64_t reach = affine.factors[a] * (extents[a] - 1);
    (reach < 0 ? result.low : result.high) += reach;
  }
  return result;
}

Affine constant_affine(int64_t value, size_t axes) {
  return {value, std::vector<int64_t>(axes, 0)};
}

Affine scaled(const Affine& a, int64_t scale, int64_t offset) {
  Affine result = a;
  result.constant = a.constant * scale + offset;
  for (int64_t& factor : result.factors) factor *= scale;
  return result;
}

Affine operator+(const Affine& a, const Affine& b) {
  CHECK(a.factors.size() == b.factors.size());
  Affine result = a;
  result.constant += b.constant;
  for (size_t i = 0; i < b.factors.size(); ++i)
    result.factors[i] += b.factors[i];
  return result;
}

std::vector<int64_t> dense_strides(const std::vector<int64_t>& shape) {
  std::vector<int64_t> strides(shape.size());
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= shape[i];
  }
  return strides;
}

Affine linearise(const IndexMap& map, const std::vector<int64_t>& shape,
                 size_t axes) {
  CHECK(map.size() == shape.size());
  std::vector<int64_t> strides = dense_strides(shape);
  Affine result = constant_affine(0, axes);
  for (size_t i = 0; i < map.size(); ++i)
    result = result + scaled(map[i], strides[i], 0);
  return result;
}

namespace {

int64_t floor_div(int64_t a, int64_t b) {
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

/// Splits `rest` into stride * high + low with 0 <= low < stride everywhere.
bool divide(const Affine& rest, int64_t stride,
            const std::vector<int64_t>& extents, Affine& high, Affine& low) {
  high = low = constant_affine(0, extents.size());
  AffineRange reach{0, 0};
  for (size_t a = 0; a < extents.size(); ++a) {
    int64_t factor = rest.factors[a];
    if (factor % stride == 0) {
      high.factors[a] = factor / stride;
    } else {
      low.factors[a] = factor;
      int64_t most = factor * (extents[a] - 1);
      (most < 0 ? reach.low : reach.high) += most;
    }
  }
  high.constant = floor_div(rest.constant + reach.low, stride);
  low.constant = rest.constant - high.constant * stride;
  return low.constant + reach.high < stride;
}

/// An axis whose steps cross `stride` evenly once it is split.
std::variant<IndexMap, AxisSplit, NotAffine> wish_split(
    const Affine& low, int64_t stride, const std::vector<int64_t>& extents) {
  for (size_t a = 0; a < extents.size(); ++a) {
    int64_t factor = low.factors[a] < 0 ? -low.factors[a] : low.factors[a];
    if (factor == 0 || stride % factor != 0) continue;
    int64_t inner = stride / factor;
    if (inner < extents[a] && extents[a] % inner == 0)
      return AxisSplit{a, inner};
  }
  return NotAffine{};
}

}  // namespace

std::variant<IndexMap, AxisSplit, NotAffine> delinearise(
    const Affine& offset, const std::vector<int64_t>& extents,
    const std::vector<int64_t>& shape) {
  std::vector<int64_t> strides = dense_strides(shape);
  IndexMap map;
  Affine rest = offset;
  for (size_t i = 0; i < shape.size(); ++i) {
    Affine high, low;
    if (shape[i] == 1) {
      map.push_back(constant_affine(0, extents.size()));
      continue;
    }
    if (!divide(rest, strides[i], extents, high, low))
      return wish_split(low, strides[i], extents);
    map.push_back(high);
    rest = low;
  }
  return map;
}

Affine split(const Affine& affine, const AxisSplit& wish) {
  Affine result = affine;
  int64_t factor = affine.factors[wish.axis];
  result.factors[wish.axis] = factor * wish.inner;
  result.factors.insert(result.factors.begin() + wish.axis + 1, factor);
  return result;
}

}  // namespace unisono::jit
