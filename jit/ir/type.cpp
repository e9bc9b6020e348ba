#include "jit/ir/type.h"

#include <algorithm>

namespace unisono::ir {

std::string Type::to_string() const {
  std::string out(name(dtype));
  if (shape.empty()) return out;
  out += "[";
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i) out += ", ";
    out += shape[i].to_string();
  }
  return out + "]";
}

bool Type::is_concrete() const {
  return std::all_of(shape.begin(), shape.end(),
                     [](const Dim& d) { return d.is_constant(); });
}

std::vector<int64_t> Type::sizes() const {
  std::vector<int64_t> out;
  out.reserve(shape.size());
  for (const Dim& d : shape) out.push_back(d.value());
  return out;
}

int64_t Type::elements() const {
  int64_t product = 1;
  bool overflow = false, empty = false;
  for (const Dim& d : shape) {
    empty |= d.value() == 0;
    overflow |= __builtin_mul_overflow(product, d.value(), &product);
  }
  return empty ? 0 : overflow ? INT64_MAX : product;
}

int64_t Type::bytes() const {
  int64_t bytes;
  if (__builtin_mul_overflow(elements(), byte_size(dtype), &bytes))
    return INT64_MAX;
  return bytes;
}

}  // namespace unisono::ir
