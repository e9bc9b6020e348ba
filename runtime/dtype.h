#pragma once
// Element types: the table dtype.def, and how two types promote.
#include <array>
#include <bit>
#include <cstdint>
#include <optional>
#include <string_view>

#include "runtime/half.h"

namespace unisono {

enum class DTypeClass : uint8_t { boolean, signed_, unsigned_, floating };

enum class DType : uint8_t {
#define DTYPE(enumerator, ...) enumerator,
#include "runtime/dtype.def"
};

inline constexpr int dtype_count = 0
#define DTYPE(...) +1
#include "runtime/dtype.def"
    ;

/// All element types, in the order of the table.
inline constexpr std::array<DType, dtype_count> all_dtypes = {
#define DTYPE(enumerator, ...) DType::enumerator,
#include "runtime/dtype.def"
};

/// The name in the language: "f32".
std::string_view name(DType dtype);
/// Nothing if no type has that name.
std::optional<DType> dtype_from_name(std::string_view name);
/// Bytes of one stored element.
int64_t byte_size(DType dtype);
DTypeClass class_of(DType dtype);

/// Only integers are signed or unsigned here.
inline bool is_floating(DType d) { return class_of(d) == DTypeClass::floating; }
inline bool is_signed(DType d) { return class_of(d) == DTypeClass::signed_; }
inline bool is_unsigned(DType d) {
  return class_of(d) == DTypeClass::unsigned_;
}
inline bool is_integer(DType d) { return is_signed(d) || is_unsigned(d); }
inline bool is_bool(DType d) { return d == DType::Bool; }

/// A position in the promotion lattice: an element type, or the type of a
/// literal that adopts the width of the other operand ("weak").
struct WeakDType {
  DType dtype;
  bool weak = false;
  bool operator==(const WeakDType&) const = default;
};

/// The published JAX lattice: the least type above both. A weak i32 is the
/// lattice's `i*`, a weak f32 is `f*`; bool is never weak.
WeakDType promote(WeakDType a, WeakDType b);

/// The C++ type that stores an element, and the one it is computed in.
template <DType>
struct StorageOf;
template <DType>
struct ComputeOf;
#define DTYPE(enumerator, text, storage, cls, bits, compute, npy) \
  template <>                                                     \
  struct StorageOf<DType::enumerator> {                           \
    using type = storage;                                         \
  };                                                              \
  template <>                                                     \
  struct ComputeOf<DType::enumerator> {                           \
    using type = compute;                                         \
  };
#include "runtime/dtype.def"

/// Returns `f.template operator()<D>()`, where the constant D is `dtype`.
template <class F>
decltype(auto) with_dtype(DType dtype, F&& f) {
  switch (dtype) {
#define DTYPE(enumerator, ...) \
  case DType::enumerator: return f.template operator()<DType::enumerator>();
#include "runtime/dtype.def"
  }
  __builtin_unreachable();
}

}  // namespace unisono
