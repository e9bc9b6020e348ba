#pragma once
// The type classes of ops.def's rows.
#include <cstdint>

#include "runtime/dtype.h"

namespace unisono::ir {

enum class TypeClass : uint8_t {
  Any,
  Number,   // integers and floats
  Integer,  // not bool
  Float,
  Bool,
  Bits,    // integers and bool
  Signed,  // signed integers and floats
  U64,
};

constexpr DTypeClass static_class_of(DType dtype) {
  switch (dtype) {
#define DTYPE(enumerator, name, storage, cls, ...) \
  case DType::enumerator: return DTypeClass::cls;
#include "runtime/dtype.def"
  }
  __builtin_unreachable();
}

constexpr bool admits(TypeClass types, DType dtype) {
  const DTypeClass c = static_class_of(dtype);
  switch (types) {
    case TypeClass::Any: return true;
    case TypeClass::Number: return c != DTypeClass::boolean;
    case TypeClass::Integer:
      return c == DTypeClass::signed_ || c == DTypeClass::unsigned_;
    case TypeClass::Float: return c == DTypeClass::floating;
    case TypeClass::Bool: return c == DTypeClass::boolean;
    case TypeClass::Bits: return c != DTypeClass::floating;
    case TypeClass::Signed:
      return c == DTypeClass::signed_ || c == DTypeClass::floating;
    case TypeClass::U64: return dtype == DType::U64;
  }
  __builtin_unreachable();
}

}  // namespace unisono::ir
