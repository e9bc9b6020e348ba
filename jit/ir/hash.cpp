#include "jit/ir/hash.h"

#include <functional>
#include <string_view>

#include "jit/ir/attr_fields.h"

namespace unisono::ir {
namespace {

class Hasher {
 public:
  size_t state = 0;

  void add(size_t value) {
    state = (state ^ value) * 0x9e3779b97f4a7c15;
    state ^= state >> 29;
  }
  void value(int x) { add(static_cast<size_t>(x)); }
  void value(int64_t x) { add(static_cast<size_t>(x)); }
  void value(bool x) { add(x); }
  void value(DType x) { add(static_cast<size_t>(x)); }
  void value(ReduceOrder x) { add(static_cast<size_t>(x)); }
  void value(Precision x) { add(static_cast<size_t>(x)); }
  void value(CallAttrs::Rule x) { add(static_cast<size_t>(x)); }
  void value(ReduceOp x) { add(static_cast<size_t>(x)); }
  void value(const std::string& x) { add(std::hash<std::string>()(x)); }
  void value(const Dim& x) {
    if (x.is_constant()) return add(static_cast<size_t>(x.value()));
    // In a normal form; symbols of one name are told apart by their ids.
    value(x.to_string());
    for (const uint32_t id : x.symbols()) add(id);
  }
  void value(const Type& x) {
    value(x.dtype);
    value(x.shape);
  }
  void value(const std::pair<int, int>& x) {
    value(x.first);
    value(x.second);
  }
  void value(const std::shared_ptr<const Graph>& x) {
    add(std::hash<const Graph*>()(x.get()));
  }
  template <class T>
  void value(const std::vector<T>& list) {
    add(list.size());
    for (const T& x : list) value(x);
  }
  void bytes(const std::vector<uint8_t>& x) {
    add(std::hash<std::string_view>()(
        {reinterpret_cast<const char*>(x.data()), x.size()}));
  }
};

}  // namespace

size_t hash(const Node& node) {
  Hasher h;
  h.add(static_cast<size_t>(node.op));
  h.value(node.type);
  h.value(node.inputs);
  std::visit(
      [&](const auto& a) {
        for_each_field(
            a, a, [&](const char*, const auto& x, const auto&) { h.value(x); });
      },
      node.attrs);
  if (const auto* constant = std::get_if<ConstantAttrs>(&node.attrs))
    h.bytes(constant->bytes);
  return h.state;
}

bool equal(const Node& a, const Node& b) {
  return a.op == b.op && a.inputs == b.inputs && a.type == b.type &&
         a.attrs == b.attrs;
}

}  // namespace unisono::ir
