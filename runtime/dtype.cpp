#include "runtime/dtype.h"

#include <cmath>

#include "runtime/check.h"

namespace unisono {

std::string_view name(DType dtype) {
  switch (dtype) {
#define DTYPE(enumerator, text, ...) \
  case DType::enumerator: return text;
#include "runtime/dtype.def"
  }
  __builtin_unreachable();
}

std::optional<DType> dtype_from_name(std::string_view text) {
  for (DType d : all_dtypes)
    if (name(d) == text) return d;
  return std::nullopt;
}

int64_t byte_size(DType dtype) {
  switch (dtype) {
#define DTYPE(enumerator, text, storage, ...) \
  case DType::enumerator: return sizeof(storage);
#include "runtime/dtype.def"
  }
  __builtin_unreachable();
}

DTypeClass class_of(DType dtype) {
  switch (dtype) {
#define DTYPE(enumerator, text, storage, cls, ...) \
  case DType::enumerator: return DTypeClass::cls;
#include "runtime/dtype.def"
  }
  __builtin_unreachable();
}

namespace {

/// Points of the lattice: the element types, then the two weak types.
constexpr int weak_integer = dtype_count, weak_float = dtype_count + 1;
constexpr int points = dtype_count + 2;

constexpr int point(DType d) { return static_cast<int>(d); }

/// Each point's direct upper neighbours, as published for JAX (64-bit types
/// enabled), without complex numbers.
constexpr std::pair<int, int> edges[] = {
    {point(DType::Bool), weak_integer},
    {weak_integer, point(DType::U8)},
    {weak_integer, point(DType::I8)},
    {point(DType::U8), point(DType::I16)},
    {point(DType::U8), point(DType::U16)},
    {point(DType::U16), point(DType::I32)},
    {point(DType::U16), point(DType::U32)},
    {point(DType::U32), point(DType::I64)},
    {point(DType::U32), point(DType::U64)},
    {point(DType::U64), weak_float},
    {point(DType::I8), point(DType::I16)},
    {point(DType::I16), point(DType::I32)},
    {point(DType::I32), point(DType::I64)},
    {point(DType::I64), weak_float},
    {weak_float, point(DType::BF16)},
    {weak_float, point(DType::F16)},
    {point(DType::BF16), point(DType::F32)},
    {point(DType::F16), point(DType::F32)},
    {point(DType::F32), point(DType::F64)},
};

/// above[p]: the set of points that are p or above it.
constexpr std::array<uint32_t, points> above = [] {
  std::array<uint32_t, points> set{};
  for (int p = 0; p < points; ++p) set[p] = 1u << p;
  for (int round = 0; round < points; ++round)
    for (auto [low, high] : edges) set[low] |= set[high];
  return set;
}();

int point_of(WeakDType w) {
  if (!w.weak || is_bool(w.dtype)) return point(w.dtype);
  return is_floating(w.dtype) ? weak_float : weak_integer;
}

}  // namespace

WeakDType promote(WeakDType a, WeakDType b) {
  const uint32_t common = above[point_of(a)] & above[point_of(b)];
  // The least upper bound is the one whose upper set is all common bounds.
  for (int p = 0; p < points; ++p) {
    if (above[p] != common) continue;
    if (p == weak_integer) return {DType::I32, true};
    if (p == weak_float) return {DType::F32, true};
    return {static_cast<DType>(p), false};
  }
  __builtin_unreachable();
}

}  // namespace unisono
