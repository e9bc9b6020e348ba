#include "lang/ops/index_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "lang/context/literals.h"
#include "lang/ops/builtin_arguments.h"
#include "lang/ops/elements.h"
#include "lang/ops/operators.h"
#include "lang/ops/sizes.h"
#include "lang/ops/text.h"
#include "lang/sizes/known_sizes.h"
#include "runtime/cluster/cluster_device.h"
#include "runtime/stop.h"

namespace unisono::lang {
namespace {

using Kind = Selection::Kind;

/// Whether a bound counts from the end. For a bound with symbols: its sign for
/// large sizes.
bool counts_from_end(const ir::Dim& bound) {
  const ir::Dim value = bound.substitute(
      [](uint32_t) { return std::optional<ir::Dim>(1'000'003); });
  return !value.overflowed() && value.value() < 0;
}

ir::Dim slice_bound(Walk& walk, const CallArgument& bound) {
  if (const auto* i = bound.value.get_if<IntValue>()) return i->value;
  Diagnostic d =
      diagnostic(Code::slice_bound, bound.where, type_name(bound.value));
  const ArrayCell* array = bound.value.array();
  if (array && array->type.rank() == 0 && is_integer(array->type.dtype))
    d.set_help(
        "compiled code has to know how long a slice is: "
        "`x[start:start + n]`, or `x[start + arange(n)]`");
  walk.fail(std::move(d));
}

ir::Dim ceil_div(const ir::Dim& a, const ir::Dim& b) {
  return b == ir::Dim(1) ? a : floor_div(a + b - 1, b);
}

}  // namespace

SliceRange known_slice(std::optional<int64_t> start,
                       std::optional<int64_t> stop, int64_t step, int64_t n) {
  const auto clamp = [&](int64_t bound) {
    if (bound < 0) bound += n;
    return step > 0 ? std::clamp<int64_t>(bound, 0, n)
                    : std::clamp<int64_t>(bound, -1, n - 1);
  };
  const int64_t first = start ? clamp(*start) : step > 0 ? 0 : n - 1;
  const int64_t end = stop ? clamp(*stop) : step > 0 ? n : -1;
  const int64_t distance = step > 0 ? end - first : first - end;
  if (distance <= 0) return {0, 1, 0};
  const uint64_t stride =
      step > 0 ? static_cast<uint64_t>(step) : -static_cast<uint64_t>(step);
  const auto size =
      static_cast<int64_t>((static_cast<uint64_t>(distance) - 1) / stride + 1);
  // A lone element has no distance to the next.
  return {first, size == 1 ? int64_t{1} : step, size};
}

namespace {

/// At most `n` elements, of which nobody knows how many they are; a number that
/// is computed from n is taken to be less.
ir::Dim at_most(Walk& walk, const ir::Dim& count, const ir::Dim& n) {
  const std::vector<uint32_t> own = count.symbols(), of_n = n.symbols();
  const bool computed = std::ranges::find_first_of(own, of_n) != own.end();
  if (computed && !(n - count).is_constant()) return count;
  return walk.extreme_size(false, count, n);
}

/// What the length of a slice is computed from.
SizeKey slice_key(const std::optional<ir::Dim>& start,
                  const std::optional<ir::Dim>& stop, const ir::Dim& step,
                  const ir::Dim& n) {
  SizeKey key("slice");
  for (const auto* bound : {&start, &stop}) {
    key.add(static_cast<uint64_t>(bound->has_value()));
    if (*bound) key.add(**bound);
  }
  return key.add(step).add(n);
}

/// The same where sizes are symbols: bounds are taken to be in range. Of an
/// open size, which may be small, a slice takes what is there.
SliceRange symbolic_slice(Walk& walk, std::optional<ir::Dim> start,
                          std::optional<ir::Dim> stop, int64_t step,
                          const ir::Dim& n) {
  const bool open =
      n.is_open() || (start && start->is_open()) || (stop && stop->is_open());
  if (open && step < 0 && (start || stop))
    return {0, 1, open_size(walk, slice_key(start, stop, step, n))};
  if (open && stop && !counts_from_end(*stop)) stop = at_most(walk, *stop, n);
  if (open && start && counts_from_end(*start))
    start = n - at_most(walk, 0 - *start, n);
  for (auto* bound : {&start, &stop})
    if (*bound && counts_from_end(**bound)) *bound = n + **bound;
  const ir::Dim first = start ? *start : step > 0 ? ir::Dim(0) : n - 1;
  const ir::Dim end = stop ? *stop : step > 0 ? n : ir::Dim(-1);
  const ir::Dim distance = step > 0 ? end - first : first - end;
  if (distance.is_constant() && distance.value() <= 0) return {0, 1, 0};
  return {first, step,
          ceil_div(distance, step > 0 ? ir::Dim(step) : ir::Dim(0) - step)};
}

/// The elements of an array of integers, if it is constant; what i64 does not
/// hold as the greatest that it does.
std::optional<std::vector<int64_t>> constant_integers(const ArrayCell& array) {
  if (!array.constant) return std::nullopt;
  return with_dtype(array.type.dtype, [&]<DType D>() {
    using T = typename StorageOf<D>::type;
    std::vector<int64_t> out(array.constant->size() / sizeof(T));
    if constexpr (std::is_integral_v<T>) {
      for (size_t i = 0; i < out.size(); ++i) {
        T value;
        std::memcpy(&value, array.constant->data() + i * sizeof(T), sizeof(T));
        out[i] = std::in_range<int64_t>(value) ? static_cast<int64_t>(value)
                                               : INT64_MAX;
      }
    }
    return std::optional(std::move(out));
  });
}

/// A slice of compiled code at a computed place.
struct Window {
  ArrayValue start;
  ir::Dim length;
  int64_t step = 1;
};

/// A bound of a slice as a size: an int, or an integer scalar.
std::optional<ir::Dim> bound_size(Walk& walk,
                                  const std::optional<CallArgument>& bound) {
  if (!bound) return std::nullopt;
  if (const auto* i = bound->value.get_if<IntValue>()) return i->value;
  const ArrayValue* scalar = integer_scalar(bound->value);
  if (!scalar) return std::nullopt;
  require_known(**scalar, bound->where);
  return size_of(walk, **scalar);
}

/// Nothing where the host cuts the slice, its bounds are known, or only running
/// tells its length.
std::optional<Window> window_of(Walk& walk, const IndexItem& item) {
  if (!walk.in_compiled_code() || HostSlices::around(walk)) return std::nullopt;
  const auto start = bound_size(walk, item.start),
             stop = bound_size(walk, item.stop);
  if (!start || !stop || !is_computed(walk, *start)) return std::nullopt;
  const ArrayValue* place = integer_scalar(item.start->value);
  ir::Dim step = 1;
  if (item.step && !item.step->value.is<NoneValue>()) {
    const auto* i = item.step->value.get_if<IntValue>();
    if (!i || !i->value.is_constant() || i->value.value() < 1)
      return std::nullopt;
    step = i->value;
  }
  const ir::Dim length = *stop - *start;
  if (!place || length.overflowed()) return std::nullopt;
  if (!is_computed(walk, length)) return Window{*place, length, step.value()};
  if (walk.mode() != Mode::check || !is_of_renewed(walk, length))
    return std::nullopt;
  Diagnostic question = diagnostic(Code::slice_bound, item.start->where,
                                   type_name(item.start->value));
  question.open = true;
  walk.fail(std::move(question));
}

/// Reads the items of one index expression.
class Planner {
 public:
  Planner(Walk& walk, const ir::Type& type, Span where)
      : walk_(walk), type_(type), where_(where) {}

  IndexPlan run(const std::vector<IndexItem>& items) {
    const int missing = missing_axes(items);
    bool seen_rest = false;
    for (const IndexItem& item : items) {
      if (item.kind == IndexItem::Kind::ellipsis) {
        if (seen_rest) walk_.fail(diagnostic(Code::two_ellipses, item.where));
        seen_rest = true;
        for (int i = 0; i < missing; ++i) add_full(item.where);
      } else {
        add(item);
      }
    }
    while (axis_ < type_.rank()) add_full(where_);
    place_computed();
    return std::move(plan_);
  }

 private:
  /// Axes that an item takes.
  int axes_of(const IndexItem& item) {
    if (item.kind == IndexItem::Kind::ellipsis) return 0;
    if (item.kind == IndexItem::Kind::slice) return 1;
    if (item.value.is<NoneValue>()) return 0;
    const ArrayCell* array = item.value.array();
    return array && is_bool(array->type.dtype) ? array->type.rank() : 1;
  }

  int missing_axes(const std::vector<IndexItem>& items) {
    int taken = 0;
    for (const IndexItem& item : items) {
      taken += axes_of(item);
      if (taken > type_.rank())
        walk_.fail(diagnostic(Code::too_many_indices, item.where,
                              type_.to_string(), type_.rank())
                       .set_label(type_.to_string()));
    }
    return type_.rank() - taken;
  }

  Selection& push(Kind kind, Span where) {
    Selection s;
    s.kind = kind;
    s.where = where;
    if (kind != Kind::newaxis) {
      s.axis = axis_++;
      s.size = type_.shape[s.axis];
    }
    plan_.selections.push_back(std::move(s));
    return plan_.selections.back();
  }

  void add_full(Span where) { push(Kind::full, where); }

  void add(const IndexItem& item) {
    if (item.kind == IndexItem::Kind::slice) return add_slice(item);
    if (item.value.is<NoneValue>())
      push(Kind::newaxis, item.where);
    else if (const auto* i = item.value.get_if<IntValue>())
      add_position(i->value, item.where);
    else if (const auto* array = item.value.get_if<ArrayValue>())
      add_array(*array, item.where);
    else
      wrong_item(item);
  }

  [[noreturn]] void wrong_item(const IndexItem& item) {
    Diagnostic d = diagnostic(Code::wrong_index, item.where, type_.to_string(),
                              type_name(item.value));
    if (item.value.is<RangeValue>()) d.set_help("write a slice, or `arange`");
    if (item.value.tuple())
      d.set_help("several indices are separated by commas: `x[i, j]`");
    walk_.fail(std::move(d));
  }

  void add_slice(const IndexItem& item) {
    if (const auto window = window_of(walk_, item))
      return add_window(*window, item.where);
    const SliceRange range = slice_range(walk_, item, type_.shape[axis_]);
    Selection& s = push(Kind::slice, item.where);
    const bool all = range.start == ir::Dim(0) && range.step == ir::Dim(1) &&
                     range.size == s.size;
    if (all) s.kind = Kind::full;
    s.start = range.start;
    s.step = range.step;
    s.size = range.size;
    for (const auto* bound : {&item.start, &item.stop})
      s.moves |= *bound && (*bound)->value.array();
  }

  void add_window(const Window& window, Span where) {
    const ir::Dim size = type_.shape[axis_];
    const bool known = window.length.is_constant() && size.is_constant();
    const SliceCheck slice{known ? window.length.value() : 0, window.step,
                           known ? size.value() : 0};
    const ir::Dim count = ceil_div(window.length, ir::Dim(window.step));
    if (count.is_constant() && count.value() <= 0) {
      push(Kind::slice, where).size = 0;
      return;
    }
    if (known && (count.value() - 1) * slice.step >= slice.size)
      walk_.fail(
          diagnostic(Code::index_out_of_bounds, where,
                     fmt::format("a slice of {} is out of bounds for size {}",
                                 slice.length, slice.size)));
    Selection& s = push(Kind::window, where);
    s.step = window.step;
    s.size = count;
    const ArrayValue start = as_index(
        walk_, cast_to(walk_, window.start, window.start->type.dtype, where),
        where);
    if (walk_.mode() == Mode::trace)
      walk_.assert_inside_when_it_runs(cast_to(walk_, start, DType::I64, where),
                                       slice, where);
    const bool wide = known && slice.size > INT32_MAX;
    s.index = cast_to(walk_, start, wide ? DType::I64 : DType::I32, where);
  }

  [[noreturn]] void out_of_range(int64_t index, Span where) {
    const ir::Dim& size = type_.shape[axis_];
    Diagnostic d = diagnostic(Code::index_out_of_range, where, index, axis_,
                              type_.to_string(), size.to_string());
    if (size == ir::Dim(0))
      d.set_help("this axis is empty");
    else
      d.set_help(fmt::format("indices here are 0 ... {}, or -{} ... -1",
                             size.value() - 1, size.value()));
    walk_.fail(std::move(d));
  }

  void add_position(ir::Dim index, Span where) {
    const ir::Dim& size = type_.shape[axis_];
    if (index.is_constant() && size.is_constant() &&
        (index.value() < -size.value() || index.value() >= size.value()))
      out_of_range(index.value(), where);
    if (counts_from_end(index)) index = size + index;
    Selection& s = push(Kind::position, where);
    s.start = std::move(index);
    s.size = 1;
  }

  void add_array(const ArrayValue& given, Span where) {
    if (is_bool(given->type.dtype)) return add_mask(given, where);
    if (!is_integer(given->type.dtype))
      walk_.fail(diagnostic(Code::wrong_index, where, type_.to_string(),
                            shown_type(*given).to_string())
                     .set_help("round and cast first: `i32(floor(x))`"));
    const ArrayValue array =
        given->weak ? cast_to(walk_, given, given->type.dtype, where) : given;
    const ir::Dim& size = type_.shape[axis_];
    bool checked = true;
    const auto known = constant_integers(*array);
    if (known && size.is_constant()) {
      // Of no indices a constant has an element, which nobody uses.
      const bool none = std::ranges::count(array->type.shape, ir::Dim(0)) > 0;
      for (int64_t i : *known)
        if (!none && (i < -size.value() || i >= size.value()))
          out_of_range(i, where);
      checked = false;
    }
    Selection& s = push(Kind::computed, where);
    s.index = as_index(walk_, array, where);
    s.checked = checked;
    if (walk_.mode() != Mode::run || array->type.rank() > 0) return;
    s.place = position_there(*array, size);
    s.moves = s.place && !array->constant;
  }

  void add_mask(const ArrayValue& mask, Span where) {
    if (mask->type.rank() == 0)
      walk_.fail(diagnostic(Code::wrong_index, where, type_.to_string(),
                            mask->type.to_string()));
    for (int i = 0; i < mask->type.rank(); ++i)
      if (!same_size(mask->type.shape[i], type_.shape[axis_ + i]))
        walk_.fail(diagnostic(Code::mask_shape, where, mask->type.to_string(),
                              type_.to_string())
                       .about(mask->type.shape[i] - type_.shape[axis_ + i])
                       .add_fact(fmt::format(
                           "axis {} has size {} there and {} here", axis_ + i,
                           type_.shape[axis_ + i].to_string(),
                           mask->type.shape[i].to_string())));
    for (const ArrayValue& positions : positions_of_true(walk_, mask, where)) {
      Selection& s = push(Kind::computed, where);
      s.index = positions;
    }
  }

  /// Finds the common shape of computed indices and its place.
  void place_computed() {
    CallArgument first;
    bool arrays = false;
    for (const Selection& s : plan_.selections) {
      if (s.kind != Kind::computed) continue;
      arrays |= s.index->type.rank() > 0;
      if (!plan_.has_computed) {
        plan_.computed_shape = s.index->type.shape;
        first = {s.index, s.where};
        plan_.has_computed = true;
        continue;
      }
      const auto common =
          broadcast_shape(walk_, plan_.computed_shape, s.index->type.shape);
      if (!common) {
        Diagnostic d =
            diagnostic(Code::shapes_differ, s.where, "indexing",
                       ir::Type{DType::I32, plan_.computed_shape}.to_string(),
                       s.index->type.to_string());
        d.add_note(first.where, "the first index array");
        d.set_help("index arrays are broadcast to one shape");
        walk_.fail(d.about());
      }
      plan_.computed_shape = *common;
    }
    // Beside index arrays an int counts as one (NumPy).
    int last = -1;
    for (int i = 0; i < static_cast<int>(plan_.selections.size()); ++i) {
      const Kind kind = plan_.selections[i].kind;
      if (kind != Kind::computed && !(arrays && kind == Kind::position))
        continue;
      if (last >= 0 && last != i - 1) plan_.computed_first = true;
      last = i;
    }
  }

  Walk& walk_;
  const ir::Type& type_;
  Span where_;
  IndexPlan plan_;
  int axis_ = 0;
};

}  // namespace

SliceRange slice_range(Walk& walk, const IndexItem& item, const ir::Dim& size) {
  // On the host a bound may be an integer scalar: running tells what it is.
  bool known = true;
  const auto bound = [&](const std::optional<CallArgument>& b) {
    std::optional<ir::Dim> out;
    if (!b || b->value.is<NoneValue>()) return out;
    const ArrayValue* scalar = integer_scalar(b->value);
    if (!scalar) return std::optional(slice_bound(walk, *b));
    if (walk.mode() != Mode::run) out = bound_size(walk, b);
    if (walk.in_compiled_code())
      return is_computed(walk, *out) ? std::optional(slice_bound(walk, *b))
                                     : out;
    const auto number = host_number(walk, *b, "a bound of a slice");
    known = known && number;
    if (number) out = *number;
    return out;
  };
  const auto start = bound(item.start), stop = bound(item.stop);
  const ir::Dim step = bound(item.step).value_or(1);
  if (!known)
    return {0, 1, open_size(walk, slice_key(start, stop, step, size))};
  if (!step.is_constant())
    walk.fail(diagnostic(Code::argument_not_known, item.step->where,
                         "the step of a slice")
                  .about(step));
  if (step.value() == 0)
    walk.fail(diagnostic(Code::zero_step, item.where, "a slice"));
  const auto constant = [](const std::optional<ir::Dim>& d) {
    return !d || d->is_constant();
  };
  if (!size.is_constant() || !constant(start) || !constant(stop))
    return symbolic_slice(walk, start, stop, step.value(), size);
  const auto value = [](const std::optional<ir::Dim>& d) {
    return d ? std::optional(d->value()) : std::nullopt;
  };
  return known_slice(value(start), value(stop), step.value(), size.value());
}

IndexPlan plan_index(Walk& walk, const ir::Type& type,
                     const std::vector<IndexItem>& items, Span where) {
  return Planner(walk, type, where).run(items);
}

std::vector<const Selection*> IndexPlan::layout() const {
  std::vector<const Selection*> out;
  bool placed = !has_computed || computed_first;
  if (computed_first) out.push_back(nullptr);
  for (const Selection& s : selections) {
    const bool joins = s.kind == Kind::computed || s.kind == Kind::position;
    if (s.kind == Kind::computed && !placed) {
      out.push_back(nullptr);
      placed = true;
    }
    if (!joins) out.push_back(&s);
  }
  return out;
}

bool IndexPlan::selects() const {
  return std::ranges::any_of(selections, [](const Selection& s) {
    return s.kind != Kind::full && s.kind != Kind::newaxis;
  });
}

ir::Shape IndexPlan::shape() const {
  ir::Shape out;
  for (const Selection* s : layout())
    if (s)
      out.push_back(s->size);
    else
      out.insert(out.end(), computed_shape.begin(), computed_shape.end());
  return out;
}

std::vector<ArrayValue> computed_indices(Walk& walk, const IndexPlan& plan,
                                         Span where) {
  std::vector<ArrayValue> out;
  bool wide = false;
  for (const Selection& s : plan.selections)
    if (s.kind == Kind::computed) wide |= s.index->type.dtype == DType::I64;
  for (const Selection& s : plan.selections)
    if (s.kind == Kind::computed)
      out.push_back(broadcast_to(
          walk, wide ? cast_to(walk, s.index, DType::I64, where) : s.index,
          plan.computed_shape, where));
  return out;
}

ArrayValue positions_of(Walk& walk, const Selection& s, Span where) {
  if (s.kind == Kind::slice)
    return index_range(walk, s.start, s.step, s.size, where);
  const DType dtype = s.index->type.dtype;
  ArrayValue out = iota(walk, {dtype, {s.size}}, 0, where);
  if (!(s.step == ir::Dim(1)))
    out = apply(walk, ir::Op::mul, out, static_cast<double>(s.step.value()),
                where);
  return apply(walk, ir::Op::add,
               broadcast_to(walk, s.index, out->type.shape, where), out, where);
}

}  // namespace unisono::lang
