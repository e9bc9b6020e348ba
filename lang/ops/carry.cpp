#include "lang/ops/carry.h"

#include <algorithm>

#include "lang/context/derivative_facts.h"
#include "lang/context/function.h"
#include "lang/context/scope.h"
#include "lang/context/traced_text.h"
#include "lang/ops/operators.h"
#include "lang/ops/sizes.h"
#include "lang/sizes/known_sizes.h"

namespace unisono::lang {
namespace {

/// Of two values of one kind.
bool same_function(const Value& a, const Value& b) {
  using Function = std::shared_ptr<const FunctionValue>;
  const auto *x = a.get_if<Function>(), *y = b.get_if<Function>();
  if (!x) return false;
  if (*x == *y) return true;
  // A builtin may have two names.
  const auto *p = std::get_if<const Builtin*>(&(*x)->what),
             *q = std::get_if<const Builtin*>(&(*y)->what);
  return p && q && *p == *q;
}

/// Whether two values of one kind are a T with one `part`.
template <class T, class Part>
bool same(const Value& a, const Value& b, Part T::* part) {
  const auto* x = a.get_if<T>();
  return x && x->*part == b.get_if<T>()->*part;
}

/// A leaf that must be computed: only its type is there.
bool is_open_leaf(const Value& leaf) {
  const ArrayCell* array = leaf.array();
  return array && !array->array && !array->constant && array->node < 0;
}

/// A number without an element type takes that of what it becomes: a float
/// that of any float, an integer that of any number. True if it did.
bool take_type(ArrayCell& before, const ArrayCell& after) {
  if (!before.weak || before.type == after.type || after.type.rank() > 0)
    return false;
  const DType own = before.type.dtype, wanted = after.type.dtype;
  if (is_bool(wanted) || (is_floating(own) && !is_floating(wanted)))
    return false;
  before.type.dtype = wanted;
  before.weak = after.weak;
  return true;
}

/// A carry depends on what it depends on after any turn. True if that is more.
bool grow_dependence(ArrayCell& before, const ArrayCell& after) {
  const DerivativeArguments depends = join(before.depends, after.depends);
  const Linearity linearity = either(before.linearity, after.linearity);
  const bool grown =
      depends != before.depends || !(linearity == before.linearity);
  before.depends = depends;
  before.linearity = linearity;
  return grown;
}

}  // namespace

bool same_host_value(const Value& a, const Value& b) {
  if (a.any.index() != b.any.index() || a.is<ArrayValue>()) return false;
  if (a.is<UnsetValue>() || same_function(a, b) ||
      same(a, b, &AxisValue::axis) || same(a, b, &SplitValue::axis) ||
      same(a, b, &ModuleValue::environment) ||
      same(a, b, &TypeAliasValue::definition) ||
      same(a, b, &RangeValue::start_stop_step) || same(a, b, &ManyValue::item))
    return true;
  if (const auto *x = a.get_if<StrValue>(), *y = b.get_if<StrValue>();
      x && x->deferred && y->deferred)
    return growing_number(*x) != 0 && growing_number(*x) == growing_number(*y);
  const auto equal = host_equal(a, b);
  return equal && *equal && **equal;
}

bool is_weak_anywhere(const Value& value) {
  bool weak = false;
  for_each_leaf(value, [&](const Value& leaf) {
    weak |= leaf.array() && leaf.array()->weak;
  });
  return weak;
}

Value adopt(Walk& walk, const Value& value, const Value& before, Span where) {
  const ArrayCell* old = before.array();
  const auto type = element_type(value);
  if (old && type && type->weak) {
    const DType dtype = old->type.dtype;
    const bool fits =
        is_floating(dtype) || (is_integer(dtype) && is_integer(type->dtype));
    return fits ? to_dtype(walk, {value, where}, {dtype, old->weak},
                           "an assignment")
                : value;
  }
  if (const TupleValue *a = value.tuple(), *b = before.tuple();
      a && b && a->items.size() == b->items.size()) {
    std::vector<Value> items;
    for (size_t i = 0; i < a->items.size(); ++i)
      items.push_back(adopt(walk, a->items[i], b->items[i], where));
    return make_tuple(std::move(items));
  }
  if (const RecordValue *a = value.record(), *b = before.record(); a && b) {
    std::vector<std::pair<std::string, Value>> fields;
    for (const auto& [name, part] : a->fields) {
      const Value* old_part = b->find(name);
      fields.emplace_back(
          name, old_part ? adopt(walk, part, *old_part, where) : part);
    }
    return make_record(std::move(fields));
  }
  return value;
}

namespace {
/// Whether a `var` holds the value as it is.
bool is_variable(const Value& value) {
  if (const ArrayCell* array = value.array())
    return !array->literal && array->call_numbers.empty();
  if (const TupleValue* tuple = value.tuple())
    return std::ranges::all_of(tuple->items, is_variable);
  if (const RecordValue* record = value.record())
    return std::ranges::all_of(record->fields, [](const auto& field) {
      return is_variable(field.second);
    });
  return !value.is<BoolValue>() && !value.is<IntValue>();
}
}  // namespace

Value as_variable(Walk& walk, const Value& value, Span where) {
  if (is_variable(value)) return value;
  return map_leaves(value, [&](const Value& leaf) -> Value {
    if (leaf.is<BoolValue>()) return walk.to_array(leaf, where, "a `var`");
    const auto* array = leaf.get_if<ArrayValue>();
    if (array && !(*array)->literal && (*array)->call_numbers.empty())
      return leaf;
    if (!array && !leaf.is<IntValue>()) return leaf;
    const ArrayValue number = walk.to_operand(leaf, where, "a `var`");
    auto changes = std::make_shared<ArrayCell>(*number);
    changes->literal = false;
    changes->call_numbers.clear();
    return changes;
  });
}

Value carry_shape(Walk& walk, const Value& value, const AxisSet& varies) {
  return map_leaves(value, [&](const Value& leaf) -> Value {
    const ArrayCell* array = leaf.array();
    if (!array) return leaf;
    ArrayValue open = walk.unknown_array(array->type);
    open->weak = array->weak;
    copy_facts(*array, *open);
    // A sum of what is linear in a tangent begins with zeros.
    if (open->linearity.state == Linearity::State::none && is_zero(*array))
      open->linearity = {Linearity::State::zero};
    open->varies = join(array->varies, varies);
    return open;
  });
}

Value with_sizes_of(Walk& walk, const Value& before, const Value& after) {
  if (walk.mode() != Mode::check) return after;
  std::vector<const ArrayCell*> known;
  for_each_leaf(before,
                [&](const Value& leaf) { known.push_back(leaf.array()); });
  size_t next = 0;
  return map_leaves(after, [&](const Value& leaf) -> Value {
    const ArrayCell* was = next < known.size() ? known[next] : nullptr;
    ++next;
    const auto* array = leaf.get_if<ArrayValue>();
    if (!array || !was || (*array)->weak ||
        !same_sizes((*array)->type.shape, was->type.shape))
      return leaf;
    return taken_for(walk, *array, was->type.shape);
  });
}

bool same_carry(Walk& walk, Value& before, const Value& given,
                const AxisSet& extra, bool& grown) {
  const Value after = with_sizes_of(walk, before, given);
  if (tree_size(before).leaves != tree_size(after).leaves) return false;
  std::vector<Value> leaves;
  for_each_leaf(after, [&](const Value& leaf) { leaves.push_back(leaf); });
  size_t next = 0;
  bool same = true;
  for_each_leaf(before, [&](const Value& leaf) {
    const Value& now = leaves[next++];
    ArrayCell* cell = leaf.array();
    const ArrayCell* new_cell = now.array();
    const auto* text = leaf.get_if<StrValue>();
    const bool any_text = text && !text->value && !text->deferred;
    if (any_text && now.is<StrValue>()) return;
    if (!cell || !new_cell) {
      same &= !cell && !new_cell && same_host_value(leaf, now);
      return;
    }
    if (cell->weak && !new_cell->weak && cell->type == new_cell->type) {
      cell->weak = false;  // f64, i64
      grown = true;
    }
    grown |= take_type(*cell, *new_cell);
    same &= cell->type == new_cell->type;
    grown |= grow_dependence(*cell, *new_cell);
    const AxisSet varies = join(join(cell->varies, new_cell->varies), extra);
    if (varies == cell->varies) return;
    cell->varies = varies;
    if (new_cell->varies_from) cell->varies_from = new_cell->varies_from;
    tell_derivatives(walk.context(), *cell);
    grown = true;
  });
  return same && type_name(before) == type_name(after);
}

void gather_leaves(Walk& walk, const Value& value, const Value& shape,
                   std::vector<ArrayValue>& out, Span where) {
  if (value.is<UnsetValue>()) {
    for_each_leaf(shape, [&](const Value& leaf) {
      if (!is_open_leaf(leaf)) return;
      const ArrayCell& open = *leaf.array();
      out.push_back(
          broadcast_to(walk, walk.constant(0, open.type.dtype, false, where),
                       open.type.shape, where));
    });
  } else if (const TupleValue* tuple = shape.tuple()) {
    for (size_t i = 0; i < tuple->items.size(); ++i)
      gather_leaves(walk, value.tuple()->items[i], tuple->items[i], out, where);
  } else if (const RecordValue* record = shape.record()) {
    for (const auto& [name, leaf] : record->fields)
      gather_leaves(walk, *value.record()->find(name), leaf, out, where);
  } else if (is_open_leaf(shape)) {
    const ArrayCell& leaf = *shape.array();
    out.push_back(to_dtype(walk, {value, where}, {leaf.type.dtype, leaf.weak},
                           "a value"));
  }
}

Value leaf_parameters(Walk& walk, const Value& shape) {
  GraphScope& scope = *walk.scope();
  return map_leaves(shape, [&](const Value& leaf) -> Value {
    if (!is_open_leaf(leaf)) return leaf;
    const ArrayCell& open = *leaf.array();
    ArrayValue parameter =
        scope.add_parameter(open.type, open.varies, open.varies_from);
    parameter->weak = open.weak;
    parameter->depends = open.depends;
    return parameter;
  });
}

std::vector<Value> fill_leaves(const std::vector<Value>& shapes,
                               const std::vector<ArrayValue>& arrays) {
  size_t next = 0;
  std::vector<Value> out;
  for (const Value& shape : shapes)
    out.push_back(map_leaves(shape, [&](const Value& leaf) -> Value {
      if (!is_open_leaf(leaf)) return leaf;
      const ArrayValue& array = arrays[next++];
      array->weak = leaf.array()->weak;
      copy_facts(*leaf.array(), *array);
      return array;
    }));
  return out;
}

std::vector<ArrayValue> project_all(Walk& walk, const ArrayValue& node,
                                    size_t count, Span where) {
  std::vector<ArrayValue> out;
  for (size_t i = 0; i < count; ++i)
    out.push_back(walk.add(ir::Op::project, {node},
                           ir::ProjectAttrs{static_cast<int>(i)}, where));
  return out;
}

namespace {

/// What stands in a tuple of which only running tells how long it is: of text
/// and numbers the type alone, as the items differ in the rest.
Value as_item(Walk& walk, const Value& value) {
  return map_leaves(value, [&](const Value& leaf) -> Value {
    if (leaf.is<StrValue>()) return StrValue{};
    if (leaf.is<BoolValue>()) return BoolValue{};
    if (leaf.is<IntValue>()) return IntValue{walk.open_size()};
    const ArrayCell* array = leaf.array();
    return array ? carry_shape(walk, leaf, {}) : leaf;
  });
}

}  // namespace

std::optional<Value> common_item(
    Walk& walk, const Value& a, const Value& b,
    const std::function<std::optional<Value>(const Value&, const Value&)>&
        meet) {
  std::optional<Value> item;
  const auto add = [&](const Value& value) {
    const Value one = as_item(walk, value);
    if (!item) {
      item = one;
      return true;
    }
    if (type_name(*item) == type_name(one)) {
      if (!is_weak_anywhere(one)) item = one;
      return true;
    }
    auto met = meet(*item, one);
    if (met) item = as_item(walk, *met);
    return met.has_value();
  };
  for (const Value* each : {&a, &b}) {
    if (const auto* many = each->get_if<ManyValue>()) {
      if (!add(*many->item)) return std::nullopt;
    } else if (const TupleValue* tuple = each->tuple()) {
      for (const Value& one : tuple->items)
        if (!add(one)) return std::nullopt;
    } else {
      return std::nullopt;
    }
  }
  return item;
}

Value item_of(Walk& walk, const ManyValue& many) {
  return map_leaves(
      renewed(walk, *many.item, UINT32_MAX), [&](const Value& leaf) -> Value {
        return leaf.is<IntValue>() ? Value(IntValue{walk.open_size()}) : leaf;
      });
}

}  // namespace unisono::lang
