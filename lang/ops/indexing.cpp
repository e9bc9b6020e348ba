#include "lang/ops/indexing.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "lang/context/literals.h"
#include "lang/ops/array_ops.h"
#include "lang/ops/builtin_arguments.h"
#include "lang/ops/carry.h"
#include "lang/ops/elements.h"
#include "lang/ops/index_plan.h"
#include "lang/ops/operators.h"
#include "lang/ops/sizes.h"
#include "lang/ops/text.h"

namespace unisono::lang {
namespace {

using Kind = Selection::Kind;

// ---- reading an array ------------------------------------------------------

/// x cut to its slices and known positions, which keep size 1.
ArrayValue slice_axes(Walk& walk, ArrayValue x, const IndexPlan& plan,
                      Span where) {
  const size_t rank = x->type.shape.size();
  ir::SliceAttrs attrs{ir::Shape(rank, ir::Dim(0)), ir::Shape(rank, ir::Dim(1)),
                       x->type.shape};
  std::vector<int> flipped;
  bool partial = false;
  for (const Selection& s : plan.selections) {
    if (s.kind != Kind::slice && s.kind != Kind::position) continue;
    const bool down = s.step.value() < 0;
    const ir::Dim& size = x->type.shape[s.axis];
    if (down) flipped.push_back(s.axis);
    attrs.start[s.axis] = down ? size - 1 - s.start : s.start;
    attrs.step[s.axis] = down ? ir::Dim(0) - s.step : s.step;
    attrs.size[s.axis] = s.size;
    partial |= !(s.size == size);
  }
  x = flip(walk, x, flipped, where);
  return partial ? walk.add(ir::Op::slice, {x}, std::move(attrs), where) : x;
}

/// Index arrays of one shape for the computed places: the axes of computed
/// indices, then one for each of `ranges`, windows and slices.
class Places {
 public:
  Places(Walk& walk, const IndexPlan& plan,
         const std::vector<const Selection*>& ranges, Span where)
      : walk_(walk), where_(where), shape_(plan.computed_shape) {
    for (const Selection* s : ranges) shape_.push_back(s->size);
  }

  /// `index`, whose axes are these ones of all.
  ArrayValue placed(const ArrayValue& index, std::vector<int> axes) const {
    ArrayValue out = as_index(walk_, index, where_);
    if (out->type.shape == shape_) return out;
    if (out->type.rank() == 0) return broadcast_to(walk_, out, shape_, where_);
    return walk_.add(ir::Op::broadcast, {out},
                     ir::BroadcastAttrs{shape_, std::move(axes)}, where_);
  }

 private:
  Walk& walk_;
  Span where_;
  ir::Shape shape_;
};

/// Index arrays of one element type.
void unify(Walk& walk, std::vector<ArrayValue>& indices, Span where) {
  const bool wide = std::ranges::any_of(
      indices, [](const ArrayValue& i) { return i->type.dtype == DType::I64; });
  for (ArrayValue& index : indices)
    index = cast_to(walk, index, wide ? DType::I64 : DType::I32, where);
}

/// x, without its known positions, read at the computed ones. The result's axes
/// are those of computed indices, those of windows, and what is left.
ArrayValue gather_places(Walk& walk, const ArrayValue& x, const IndexPlan& plan,
                         Span where) {
  std::vector<const Selection*> windows;
  for (const Selection& s : plan.selections)
    if (s.kind == Kind::window) windows.push_back(&s);
  const Places places(walk, plan, windows, where);
  const std::vector<ArrayValue> computed = computed_indices(walk, plan, where);
  const auto block = static_cast<int>(plan.computed_shape.size());
  std::vector<int> block_axes(plan.computed_shape.size());
  std::iota(block_axes.begin(), block_axes.end(), 0);
  std::vector<ArrayValue> indices;
  std::vector<int> axes;
  bool checked = false;
  int positions = 0, window = 0;
  size_t next = 0;
  for (const Selection& s : plan.selections) {
    if (s.kind == Kind::position) ++positions;
    if (s.kind == Kind::computed)
      indices.push_back(places.placed(computed[next++], block_axes));
    else if (s.kind == Kind::window)
      indices.push_back(
          places.placed(positions_of(walk, s, where), {block + window++}));
    else
      continue;
    axes.push_back(s.axis - positions);
    checked |= s.checked;
  }
  unify(walk, indices, where);
  return gather(walk, x, indices, std::move(axes), checked, where);
}

ArrayValue read_array(Walk& walk, const ArrayValue& base, const IndexPlan& plan,
                      Span where) {
  if (ArrayValue box = read_box(walk, base, plan, where)) return box;
  ArrayValue x = slice_axes(walk, base, plan, where);
  std::vector<int> positions;
  int windows = 0;
  for (const Selection& s : plan.selections) {
    if (s.kind == Kind::position) positions.push_back(s.axis);
    windows += s.kind == Kind::window;
  }
  x = remove_axes(walk, x, positions, where);
  if (plan.has_computed || windows > 0) {
    x = gather_places(walk, x, plan, where);
    const auto block = static_cast<int>(plan.computed_shape.size());
    std::vector<int> order;
    int window = block, rest = block + windows;
    for (const Selection* s : plan.layout()) {
      if (!s)
        for (int i = 0; i < block; ++i) order.push_back(i);
      else if (s->kind != Kind::newaxis)
        order.push_back(s->kind == Kind::window ? window++ : rest++);
    }
    x = transpose(walk, x, order, where);
  }
  return reshape(walk, x, plan.shape(), where);
}

// ---- writing an array ------------------------------------------------------

/// The value with x's element type, which can be broadcast to the selected
/// shape.
ArrayValue fitting_value(Walk& walk, const ArrayValue& base,
                         const CallArgument& value, const ir::Shape& shape,
                         Span where) {
  const CallArgument both[] = {{base, where}, value};
  const WeakDType common = promoted_type(walk, both, "assignment");
  if (common.dtype != base->type.dtype)
    walk.fail(diagnostic(Code::assigned_dtype, value.where,
                         type_name(value.value), base->type.to_string())
                  .set_help(fmt::format("convert it: `{}(...)`",
                                        name(base->type.dtype))));
  ArrayValue out =
      to_dtype(walk, value, WeakDType{base->type.dtype}, "the assigned value");
  // Leading axes of size 1 more than the place has are no harm.
  const int more = out->type.rank() - static_cast<int>(shape.size());
  const auto first = out->type.shape.begin();
  if (more > 0 && std::all_of(first, first + more, [](const ir::Dim& d) {
        return d == ir::Dim(1);
      })) {
    std::vector<int> surplus(more);
    std::iota(surplus.begin(), surplus.end(), 0);
    out = remove_axes(walk, out, surplus, where);
  }
  const auto broadcast = broadcast_shape(walk, out->type.shape, shape);
  if (!broadcast || !same_sizes(*broadcast, shape)) {
    Diagnostic d =
        diagnostic(Code::assigned_shape, value.where, out->type.to_string(),
                   ir::Type{base->type.dtype, shape}.to_string());
    d.set_label(out->type.to_string());
    walk.fail(d.about());
  }
  return out;
}

/// The items with which `x[mask] = v` is a selection among elements, for all v
/// that do not depend on how many are true: the mask alone, at the front.
const ArrayValue* lone_mask(const std::vector<IndexItem>& items) {
  if (items.empty() || items[0].kind != IndexItem::Kind::value) return nullptr;
  const auto* mask = items[0].value.get_if<ArrayValue>();
  if (!mask || !is_bool((*mask)->type.dtype) || (*mask)->type.rank() == 0)
    return nullptr;
  for (size_t i = 1; i < items.size(); ++i) {
    const IndexItem& item = items[i];
    const bool full = item.kind == IndexItem::Kind::ellipsis ||
                      (item.kind == IndexItem::Kind::slice && !item.start &&
                       !item.stop && !item.step);
    if (!full) return nullptr;
  }
  return mask;
}

/// `x[mask] = v` without knowing how many elements are selected; nothing if v
/// has an axis for them.
std::optional<ArrayValue> select_update(Walk& walk, const ArrayValue& base,
                                        const std::vector<IndexItem>& items,
                                        const CallArgument& value, Span where) {
  const ArrayValue* found = lone_mask(items);
  if (!found) return std::nullopt;
  ArrayValue mask = *found;
  const ir::Shape& shape = base->type.shape;
  const size_t rank = mask->type.shape.size();
  if (rank > shape.size()) return std::nullopt;
  const ir::Shape masked(shape.begin(),
                         shape.begin() + static_cast<int64_t>(rank));
  if (!same_sizes(mask->type.shape, masked))
    return std::nullopt;  // the plan has the words for it
  mask = taken_for(walk, mask, masked);
  const ArrayCell* array = value.value.array();
  if (array && array->type.shape.size() > shape.size() - rank)
    return std::nullopt;
  const ir::Shape rest(shape.begin() + static_cast<int64_t>(rank), shape.end());
  const ArrayValue v = broadcast_to(
      walk, fitting_value(walk, base, value, rest, where), shape, where);
  std::vector<int> axes(rank);
  std::iota(axes.begin(), axes.end(), 0);
  ArrayValue condition = mask;
  if (rank < shape.size())
    condition = walk.add(ir::Op::broadcast, {mask},
                         ir::BroadcastAttrs{shape, axes}, where);
  return walk.add(ir::Op::select, {condition, v, base}, ir::NoAttrs{}, where);
}

/// Whether compiled code will join what is written with what is left around it
/// (jit/transform/simplify_index.cpp): most of a large array, by slices.
bool is_joined(Walk& walk, const ir::Type& type, const IndexPlan& plan) {
  if (walk.mode() != Mode::run ||
      type.bytes() < walk.machine().compile_threshold)
    return false;
  int64_t written = type.elements();
  for (const Selection& s : plan.selections) {
    if (s.kind == Kind::newaxis || s.kind == Kind::full) continue;
    const bool is_slice = s.kind == Kind::slice && s.step == ir::Dim(1);
    if (!is_slice && s.kind != Kind::position) return false;
    const int64_t size = type.shape[static_cast<size_t>(s.axis)].value();
    if (size > INT32_MAX) return false;
    written = written / size * (is_slice ? s.size.value() : 1);
  }
  return written >= type.elements() / 2;
}

/// The operands of a scatter: index arrays of one shape, the axes they count
/// along, and the values in the order that it takes them.
class ScatterOperands {
 public:
  ScatterOperands(Walk& walk, const IndexPlan& plan, bool joined, Span where)
      : walk_(walk), plan_(plan), where_(where) {
    for (const Selection& s : plan.selections) {
      checked |= s.checked;
      if (is_range(s)) slices_.push_back(&s);
    }
    places_.emplace(walk, plan, slices_, where);
    add_computed();
    for (const Selection& s : plan.selections)
      if (s.kind == Kind::position)
        add(s.axis, walk.constant_size(s.start, where), {});
    for (size_t i = 0; i < slices_.size(); ++i) {
      const Selection& s = *slices_[i];
      add(s.axis, joined ? range_in_graph(s) : positions_of(walk, s, where),
          {static_cast<int>(plan.computed_shape.size() + i)});
    }
    unify(walk, indices, where);
  }

  /// `value` has the selected shape: its axes become those of the index arrays,
  /// then those of whole axes in order.
  ArrayValue arrange(const ArrayValue& value) {
    std::vector<int> computed, partial(slices_.size()), whole, new_axes;
    int axis = 0;
    for (const Selection* s : plan_.layout()) {
      if (!s) {
        for (size_t i = 0; i < plan_.computed_shape.size(); ++i)
          computed.push_back(axis++);
      } else if (s->kind == Kind::newaxis) {
        new_axes.push_back(axis + static_cast<int>(new_axes.size()));
      } else if (is_range(*s)) {
        partial[std::find(slices_.begin(), slices_.end(), s) -
                slices_.begin()] = axis++;
      } else {
        whole.push_back(axis++);
      }
    }
    std::vector<int> order = computed;
    order.insert(order.end(), partial.begin(), partial.end());
    order.insert(order.end(), whole.begin(), whole.end());
    return transpose(walk_, remove_axes(walk_, value, new_axes, where_), order,
                     where_);
  }

  std::vector<ArrayValue> indices;
  std::vector<int> axes;
  bool checked = false;

 private:
  static bool is_range(const Selection& s) {
    return s.kind == Kind::slice || s.kind == Kind::window;
  }

  void add(int axis, const ArrayValue& index, std::vector<int> places) {
    axes.push_back(axis);
    indices.push_back(places_->placed(index, std::move(places)));
  }

  void add_computed() {
    std::vector<int> places(plan_.computed_shape.size());
    std::iota(places.begin(), places.end(), 0);
    const std::vector<ArrayValue> computed =
        computed_indices(walk_, plan_, where_);
    size_t next = 0;
    for (const Selection& s : plan_.selections)
      if (s.kind == Kind::computed) add(s.axis, computed[next++], places);
  }

  /// The positions of a slice, left to the graph that has the write in it.
  ArrayValue range_in_graph(const Selection& s) {
    const ir::Type type{DType::I32, {s.size}};
    const ArrayValue places =
        walk_.scope()->add(ir::Op::iota, {}, ir::IotaAttrs{type, 0}, type,
                           walk_.source_id(where_));
    const ArrayValue start =
        broadcast_to(walk_,
                     cast_to(walk_, walk_.constant_size(s.start, where_),
                             DType::I32, where_),
                     type.shape, where_);
    return apply(walk_, ir::Op::add, places, start, where_);
  }

  Walk& walk_;
  const IndexPlan& plan_;
  Span where_;
  std::vector<const Selection*> slices_;
  std::optional<Places> places_;
};

// ---- tuples and types ------------------------------------------------------

/// An integer scalar on the host, which only running tells.
bool is_host_scalar(Walk& walk, const Value& index) {
  const ArrayCell* array = index.array();
  return array && array->type.rank() == 0 && is_integer(array->type.dtype) &&
         !walk.in_compiled_code();
}

/// What any item of the tuple is, where all are tuples of one kind of item, but
/// of different lengths: `((1, 2), (0,))`.
std::optional<Value> any_tuple(Walk& walk, const TupleValue& tuple) {
  std::optional<Value> item;
  const auto same = [](const Value& x, const Value& y) -> std::optional<Value> {
    return open_type_name(x) == open_type_name(y) ? std::optional(x)
                                                  : std::nullopt;
  };
  for (const Value& each : tuple.items) {
    item = common_item(
        walk,
        item ? Value(ManyValue{std::make_shared<Value>(*std::move(item))})
             : each,
        each, same);
    if (!item) return std::nullopt;
  }
  const Value any = map_leaves(*item, [&](const Value& leaf) -> Value {
    return leaf.is<IntValue>() ? Value(unknown_int(walk)) : leaf;
  });
  return ManyValue{std::make_shared<const Value>(any)};
}

/// What any item of the tuple is, while checking: its type, if they have one.
std::optional<Value> any_item(Walk& walk, const TupleValue& tuple) {
  if (tuple.items.empty()) return std::nullopt;
  bool alike = true;
  for (const Value& item : tuple.items) {
    if (open_type_name(item) != open_type_name(tuple.items[0]))
      return any_tuple(walk, tuple);
    alike &= type_name(item) == type_name(tuple.items[0]);
  }
  bool value = true;
  const Value any = map_leaves(tuple.items[0], [&](const Value& leaf) -> Value {
    if (leaf.is<StrValue>()) return StrValue{};
    if (leaf.is<BoolValue>()) return BoolValue{};
    if (leaf.is<IntValue>()) return unknown_int(walk);
    value &= leaf.array() != nullptr;
    if (alike || !leaf.array()) return leaf;
    ir::Shape shape = leaf.array()->type.shape;
    for (ir::Dim& size : shape)
      if (size.is_open()) size = walk.open_size();
    return taken_for(walk, *leaf.get_if<ArrayValue>(), std::move(shape));
  });
  return value ? std::optional(carry_shape(walk, any, {})) : std::nullopt;
}

size_t tuple_position(Walk& walk, const TupleValue& tuple, const Value& given,
                      Span where) {
  Value index = given;
  if (is_host_scalar(walk, index) && walk.mode() == Mode::run)
    index = IntValue{*host_number(walk, {index, where}, "an index")};
  const auto* i = index.get_if<IntValue>();
  if (!i) {
    Diagnostic d = diagnostic(Code::tuple_index, where, type_name(index));
    if (index.array())
      d.set_help(
          walk.in_compiled_code() || !is_host_scalar(walk, index)
              ? "items may have different types, so which one it is must be "
                "known when the program is compiled; `for item in t` is "
                "unrolled"
              : "an index that only running tells is for items of one type");
    walk.fail(std::move(d));
  }
  if (!i->value.is_constant())
    walk.fail(
        diagnostic(Code::argument_not_known, where, "the index of a tuple")
            .about(i->value));
  const auto n = static_cast<int64_t>(tuple.items.size());
  const int64_t at = i->value.value();
  if (at < -n || at >= n)
    walk.fail(diagnostic(Code::tuple_index_out_of_range, where, at, n));
  return static_cast<size_t>(at < 0 ? at + n : at);
}

/// The one item of a tuple's index.
const IndexItem& lone_item(Walk& walk, const std::vector<IndexItem>& items,
                           Span where) {
  if (items.size() != 1 || items[0].kind == IndexItem::Kind::ellipsis)
    walk.fail(diagnostic(Code::tuple_index, where,
                         items.size() == 1 ? "`...`" : "several indices")
                  .set_help("`t[(0, 2)]` is a tuple of two of its items"));
  return items[0];
}

Value index_tuple(Walk& walk, const TupleValue& tuple,
                  const std::vector<IndexItem>& items, Span where) {
  const IndexItem& item = lone_item(walk, items, where);
  std::vector<Value> out;
  if (item.kind == IndexItem::Kind::slice) {
    const SliceRange range =
        slice_range(walk, item, static_cast<int64_t>(tuple.items.size()));
    if (!range.size.is_constant())
      if (const auto any = any_item(walk, tuple))
        return ManyValue{std::make_shared<const Value>(*any)};
    if (!range.start.is_constant() || !range.size.is_constant())
      walk.fail(
          diagnostic(Code::argument_not_known, item.where, "a slice of a tuple")
              .about(range.start, range.size));
    for (int64_t i = 0; i < range.size.value(); ++i)
      out.push_back(tuple.items[range.start.value() + i * range.step.value()]);
    return make_tuple(std::move(out));
  }
  if (const TupleValue* several = item.value.tuple()) {
    for (const Value& index : several->items)
      out.push_back(
          tuple.items[tuple_position(walk, tuple, index, item.where)]);
    return make_tuple(std::move(out));
  }
  if (walk.mode() == Mode::check && is_host_scalar(walk, item.value))
    if (const auto any = any_item(walk, tuple)) return *any;
  return tuple.items[tuple_position(walk, tuple, item.value, item.where)];
}

Value index_type(Walk& walk, const ir::Type& type,
                 const std::vector<IndexItem>& items, Span where) {
  if (type.rank() > 0)
    walk.fail(diagnostic(Code::not_indexable, where, type.to_string()));
  ir::Type out = type;
  for (const IndexItem& item : items) {
    const auto size = item.kind == IndexItem::Kind::value
                          ? int_of(walk, item.value, item.where)
                          : std::nullopt;
    if (!size) {
      Diagnostic d = diagnostic(Code::wrong_size, item.where,
                                item.kind == IndexItem::Kind::value
                                    ? type_name(item.value)
                                    : std::string(item.where.text()));
      if (item.value.array())
        d.set_help("a size is an `int`, known when the program is compiled");
      walk.fail(std::move(d));
    }
    check_size(walk, *size, item.where);
    out.shape.push_back(*size);
  }
  return TypeValue{std::move(out)};
}

/// `x[(i, j)]` is `x[i, j]`.
std::vector<IndexItem> without_parentheses(
    const std::vector<IndexItem>& items) {
  if (items.size() != 1 || items[0].kind != IndexItem::Kind::value)
    return items;
  const TupleValue* tuple = items[0].value.tuple();
  if (!tuple) return items;
  std::vector<IndexItem> out;
  for (const Value& value : tuple->items)
    out.push_back({IndexItem::Kind::value, value, {}, {}, {}, items[0].where});
  return out;
}

/// Sets or adds to elements of `variable`; `in_place` if it may be changed.
void update_array(Walk& walk, ir::Op scatter, ArrayValue& variable,
                  const std::vector<IndexItem>& items,
                  const CallArgument& value, bool in_place, Span where) {
  // All of a number without an element type.
  if (variable->weak)
    variable = cast_to(walk, variable, default_dtype(*variable), where);
  if (scatter == ir::Op::scatter)
    if (auto out = select_update(walk, variable, items, value, where)) {
      variable = std::move(*out);
      return;
    }
  const IndexPlan plan = plan_index(walk, variable->type, items, where);
  const ArrayValue fitting =
      fitting_value(walk, variable, value, plan.shape(), where);
  const bool joined = is_joined(walk, variable->type, plan);
  if (in_place && plan.selects() &&
      store_box(walk, variable, plan, fitting, joined, where))
    return;
  ScatterOperands scattered(walk, plan, joined, where);
  const ArrayValue updates =
      scattered.arrange(broadcast_to(walk, fitting, plan.shape(), where));
  if (scattered.indices.empty()) {
    variable = scatter == ir::Op::scatter
                   ? updates
                   : apply(walk, ir::Op::add, variable, updates, where);
    return;
  }
  ir::IndexAttrs attrs{scattered.axes, scattered.checked};
  std::vector<ArrayValue> operands = {updates};
  operands.insert(operands.end(), scattered.indices.begin(),
                  scattered.indices.end());
  if (in_place) {
    if (!joined) release(walk, variable, operands, where);
    if (scatter_in_place(walk, scatter, variable, updates, scattered.indices,
                         attrs, where))
      return;
  }
  operands.insert(operands.begin(), variable);
  variable = walk.add(scatter, operands, std::move(attrs), where);
}

[[noreturn]] void not_indexable(Walk& walk, const Value& base, Span where) {
  Diagnostic d = diagnostic(Code::not_indexable, where, type_name(base));
  if (base.record()) d.set_help("a field is read as `r.name`");
  if (base.is<IntValue>()) d.set_help("an `int` is a single number");
  if (base.is<StrValue>())
    d.set_help("text does not change: make another, `s[:i] + c + s[i + 1:]`");
  if (base.is<RangeValue>())
    d.set_help("the array of these numbers is `arange(n)`");
  if (base.is<std::shared_ptr<const FunctionValue>>())
    d.set_help("a call has parentheses: `f(x)`");
  walk.fail(std::move(d));
}

}  // namespace

Value index(Walk& walk, const Value& base, const std::vector<IndexItem>& items,
            Span where) {
  if (const auto* array = base.get_if<ArrayValue>()) {
    if (ArrayValue element = element_at(walk, **array, items)) return element;
    if (items.size() == 1 && items[0].kind == IndexItem::Kind::value)
      if (const auto* mask = items[0].value.get_if<ArrayValue>();
          mask && (*mask)->type.dtype == DType::Bool)
        if (ArrayValue chosen =
                elements_of_true(walk, *array, *mask, items[0].where))
          return chosen;
    const IndexPlan plan =
        plan_index(walk, (*array)->type, without_parentheses(items), where);
    return read_array(walk, *array, plan, where);
  }
  if (const TupleValue* tuple = base.tuple())
    return index_tuple(walk, *tuple, items, where);
  if (const auto* type = base.get_if<TypeValue>())
    return index_type(walk, type->type, items, where);
  if (const auto* text = base.get_if<StrValue>())
    return index_text(walk, *text, items, where);
  if (const auto* many = base.get_if<ManyValue>()) {
    const IndexItem& item = lone_item(walk, items, where);
    if (item.kind == IndexItem::Kind::slice) return base;
    if (const TupleValue* several = item.value.tuple()) {
      std::vector<Value> out;
      for (size_t i = 0; i < several->items.size(); ++i)
        out.push_back(item_of(walk, *many));
      return make_tuple(std::move(out));
    }
    if (!item.value.is<IntValue>() && !is_host_scalar(walk, item.value))
      walk.fail(
          diagnostic(Code::tuple_index, item.where, type_name(item.value)));
    return item_of(walk, *many);
  }
  not_indexable(walk, base, where);
}

ArrayValue update_array(Walk& walk, ir::Op scatter, const ArrayValue& base,
                        const std::vector<IndexItem>& items,
                        const CallArgument& value, Span where) {
  ArrayValue variable = base;
  update_array(walk, scatter, variable, items, value, /*in_place=*/false,
               where);
  return variable;
}

Value update(Walk& walk, const Value& base, const std::vector<IndexItem>& items,
             const CallArgument& value, Span where) {
  if (const auto* array = base.get_if<ArrayValue>())
    return update_array(walk, ir::Op::scatter, *array,
                        without_parentheses(items), value, where);
  if (const TupleValue* tuple = base.tuple()) {
    const IndexItem& item = lone_item(walk, items, where);
    std::vector<Value> out = tuple->items;
    if (walk.mode() == Mode::check && is_host_scalar(walk, item.value))
      // An int among the items has become a number, as in any variable.
      if (const auto any = any_item(walk, *tuple);
          any && open_type_name(*any) == open_type_name(as_variable(
                                             walk, value.value, value.where)))
        // One of them, and nobody knows which: each may be it.
        return make_tuple(std::vector<Value>(out.size(), *any));
    out[tuple_position(walk, *tuple, item.value, item.where)] = value.value;
    return make_tuple(std::move(out));
  }
  not_indexable(walk, base, where);
}

void update_variable(Walk& walk, ArrayValue& variable,
                     const std::vector<IndexItem>& items,
                     const CallArgument& value, Span where) {
  if (set_element(walk, variable, items, value)) return;
  update_array(walk, ir::Op::scatter, variable, without_parentheses(items),
               value, /*in_place=*/true, where);
}

}  // namespace unisono::lang
