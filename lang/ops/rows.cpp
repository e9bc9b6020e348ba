#include "lang/ops/rows.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "lang/ops/array_ops.h"

namespace unisono::lang {

std::string Rows::type_name() const {
  return "rows of " + lang::type_name(tree_);
}

Value Rows::enumerated(Walk&) const {
  const Value numbers = RangeValue{std::make_shared<const std::vector<Value>>(
      std::vector<Value>{IntValue{0}, IntValue{length_}, IntValue{1}})};
  return IterableValue{
      std::make_shared<const Rows>(make_tuple({numbers, tree_}), length_)};
}

Value Rows::row(Walk& walk, const ArrayValue& number, Span where) const {
  return map_leaves(tree_, [&](const Value& leaf) -> Value {
    const auto* array = leaf.get_if<ArrayValue>();
    return array ? gather(walk, *array, {number}, {0}, false, where) : number;
  });
}

Value Rows::columns(Walk& walk, Span where) const {
  return map_leaves(tree_, [&](const Value& leaf) -> Value {
    if (leaf.is<ArrayValue>()) return leaf;
    return iota(walk, {DType::I32, {length_}}, 0, where);
  });
}

std::shared_ptr<const Rows> rows_of(const Value& value) {
  if (const auto* made = value.get_if<IterableValue>()) {
    if (!made->iterable->rows()) return nullptr;
    return std::static_pointer_cast<const Rows>(made->iterable);
  }
  const ArrayCell* array = value.array();
  if (!array || array->type.rank() == 0) return nullptr;
  return std::make_shared<const Rows>(value, array->type.shape[0]);
}

}  // namespace unisono::lang
