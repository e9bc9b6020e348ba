#include "lang/maps/map_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "lang/context/arguments.h"
#include "lang/context/literals.h"
#include "lang/context/walk.h"
#include "lang/ops/sizes.h"
#include "lang/syntax/ast.h"

namespace unisono::lang {
namespace {

std::optional<AxisEntry> entry_of(const Value& value) {
  if (value.is<NoneValue>()) return AxisEntry{};
  if (const auto* split = value.get_if<SplitValue>())
    return AxisEntry{AxisEntry::Kind::split, split->axis};
  const auto* number = value.get_if<IntValue>();
  if (!number) return std::nullopt;
  const int64_t axis = number->value.value();
  // Beyond any rank there is; it is reported where the rank is known.
  const int64_t far = 1'000'000;
  return AxisEntry{AxisEntry::Kind::mapped,
                   static_cast<int>(std::clamp(axis, -far, far))};
}

std::string plural(size_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string field_list(const RecordValue& record) {
  std::string text = record.fields.size() == 1 ? "the field " : "the fields ";
  for (size_t i = 0; i < record.fields.size(); ++i)
    text += fmt::format("{}{}", i ? ", " : "", record.fields[i].first);
  return text;
}

/// What a tree of axes has at its root, and what a value has there.
std::string describe_axes(const Value& axes) {
  if (const TupleValue* tuple = axes.tuple())
    return fmt::format("length {}", tuple->items.size());
  return field_list(*axes.record());
}
std::string describe_value(const Value& value) {
  if (const TupleValue* tuple = value.tuple())
    return fmt::format("has length {}", tuple->items.size());
  if (const RecordValue* record = value.record())
    return "has " + field_list(*record);
  return "is " + type_name(value);
}

/// Walks a tree of axes, which is a prefix of a value's tree, together with it.
struct AxesWalk {
  /// Calls for each leaf, with its path (".0.w"), and rebuilds.
  std::function<Value(const AxisEntry&, const Value&, const std::string&)> leaf;
  /// The trees differ at this path.
  std::function<void(const Value& axes, const std::string& axes_path,
                     const Value& value, const std::string& path)>
      differ;

  Value operator()(const Value& axes, const std::string& axes_path,
                   const Value& value, const std::string& path) const {
    const TupleValue* tuple = value.tuple();
    const RecordValue* record = value.record();
    const bool axes_are_tree = axes.tuple() || axes.record();
    if (const TupleValue* entries = axes.tuple();
        entries && (!tuple || tuple->items.size() != entries->items.size())) {
      differ(axes, axes_path, value, path);
    }
    if (axes.record() && !(record && same_fields(*axes.record(), *record)))
      differ(axes, axes_path, value, path);
    if (tuple) {
      std::vector<Value> items;
      for (size_t i = 0; i < tuple->items.size(); ++i) {
        items.push_back((*this)(axes_are_tree ? axes.tuple()->items[i] : axes,
                                fmt::format("{}[{}]", axes_path, i),
                                tuple->items[i],
                                fmt::format("{}.{}", path, i)));
      }
      return make_tuple(std::move(items));
    }
    if (record) {
      std::vector<std::pair<std::string, Value>> fields;
      for (const auto& [name, item] : record->fields) {
        fields.emplace_back(
            name, (*this)(axes_are_tree ? *axes.record()->find(name) : axes,
                          fmt::format("{}.{}", axes_path, name), item,
                          fmt::format("{}.{}", path, name)));
      }
      return make_record(std::move(fields));
    }
    if (value.is<NoneValue>()) return value;  // no value, no axes
    return leaf(*entry_of(axes), value, path);
  }

  static bool same_fields(const RecordValue& a, const RecordValue& b) {
    if (a.fields.size() != b.fields.size()) return false;
    return std::ranges::all_of(
        a.fields, [&](const auto& field) { return b.find(field.first); });
  }
};

Span declared_at(const Transformed& map, Span axes_span) {
  return axes_span ? axes_span : map.where;
}

/// "in_axes=0 maps axis 0 of `x` (declared at train.uni:9:20)"
std::string mapping_fact(const Transformed& map, const MapInput& input) {
  return fmt::format(
      "in_axes={} {} axis {} of {} (declared at {})", input.entry.to_string(),
      input.entry.is_split() ? "splits" : "maps", input.entry.axis,
      input.path.empty() ? input.label() : "`" + input.path + "`",
      to_string(declared_at(map, map.in_axes_span)));
}

std::string devices_fact(Walk& walk, const AxisInfo& axis) {
  return fmt::format("{} runs over {}: {} (declared at {})", label(axis),
                     plural(axis.devices->size(), "device"),
                     device_names(walk, *axis.devices),
                     to_string(axis.declared));
}

/// The arguments of one call, each with its entry of in_axes.
class CallBinder {
 public:
  CallBinder(Walk& walk, const MapCallee& callee, Span where)
      : walk_(walk),
        callee_(callee),
        map_(callee.map),
        parameters_(parameters_of(*map_.inner)),
        where_(where) {}

  BoundCall bind(std::vector<CallArgument> positional,
                 std::vector<std::pair<std::string, CallArgument>> named) {
    BoundCall call;
    call.positional = std::move(positional);
    call.named = std::move(named);
    check_names();
    check_count(call);
    for (size_t i = 0; i < call.positional.size(); ++i)
      add_argument(call, static_cast<int>(i), name_of(i), call.positional[i]);
    for (auto& [name, argument] : call.named)
      add_argument(call, position_of(name), name, argument);
    share(call);
    return call;
  }

 private:
  std::string name_of(size_t position) const {
    size_t seen = 0;
    for (const ParameterInfo& parameter : parameters_)
      if (!parameter.keyword_only && seen++ == position) return parameter.name;
    return {};
  }
  int position_of(std::string_view name) const {
    int position = 0;
    for (const ParameterInfo& parameter : parameters_) {
      if (parameter.keyword_only) continue;
      if (parameter.name == name) return position;
      ++position;
    }
    return -1;
  }
  int positional_parameters() const {
    return static_cast<int>(std::ranges::count_if(
        parameters_, [](const auto& p) { return !p.keyword_only; }));
  }

  /// A record of axes names parameters that there are.
  void check_names() {
    const RecordValue* axes = map_.in_axes.record();
    if (!axes) return;
    for (const auto& [name, entry] : axes->fields) {
      const bool known = std::ranges::any_of(
          parameters_, [&](const auto& p) { return p.name == name; });
      if (known) continue;
      auto error = diagnostic(
          Code::in_axes_name, declared_at(map_, map_.in_axes_span),
          "names `" + name + "`",
          fmt::format("which is no parameter of `{}`", map_.inner->name));
      const std::string_view text = map_.in_axes_span.text();
      if (parameters_.size() == 1 && text.starts_with('(') && text.size() < 60)
        error.set_help(fmt::format(
            "the entries of a record stand in one of the tuple: `({},)`",
            text));
      walk_.fail(std::move(error));
    }
  }

  /// A tuple of axes has one entry for each argument; defaults may stay away.
  void check_count(const BoundCall& call) {
    const TupleValue* axes = map_.in_axes.tuple();
    if (!axes) return;
    int given = static_cast<int>(call.positional.size());
    for (const auto& [name, argument] : call.named)
      given = std::max(given, position_of(name) + 1);
    const int entries = static_cast<int>(axes->items.size());
    if (entries >= given && entries <= std::max(given, positional_parameters()))
      return;
    auto error = diagnostic(Code::in_axes_count, where_, entries,
                            callee_.function.name, given);
    if (map_.in_axes_span)
      error.add_note(map_.in_axes_span, "the axes stand here");
    error.set_help(
        "give one entry per argument, or one without a tuple for all; the axes "
        "of one argument that is a tuple are `((0, none),)`");
    walk_.fail(std::move(error));
  }

  void add_argument(BoundCall& call, int position, const std::string& name,
                    const CallArgument& argument) {
    std::string axes_path = "in_axes";
    const Value axes = axes_of(position, name, axes_path);
    AxesWalk axes_walk;
    axes_walk.leaf = [&](const AxisEntry& entry, const Value& leaf,
                         const std::string& path) {
      MapInput input;
      input.entry = entry;
      input.position = position;
      input.path = name.empty() ? "" : name + path;
      input.where = argument.where;
      add_leaf(call, std::move(input), leaf);
      return leaf;
    };
    axes_walk.differ = [&](const Value& part, const std::string& part_path,
                           const Value& value, const std::string& path) {
      MapInput input;
      input.position = position;
      input.path = name.empty() ? "" : name + path;
      auto error = diagnostic(
          Code::axes_structure, argument.where, part_path, describe_axes(part),
          fmt::format("{} {}", input.label(), describe_value(value)));
      if (map_.in_axes_span)
        error.add_note(map_.in_axes_span, "the axes stand here");
      error.set_help(
          "give one entry for each part of the argument, or one for all of it");
      walk_.fail(std::move(error));
    };
    axes_walk(axes, axes_path, argument.value, "");
  }

  /// The entry, or tree of entries, of one argument.
  Value axes_of(int position, const std::string& name, std::string& path) {
    if (const TupleValue* axes = map_.in_axes.tuple()) {
      if (position < 0) return NoneValue{};
      path = fmt::format("in_axes[{}]", position);
      return axes->items[position];
    }
    if (const RecordValue* axes = map_.in_axes.record()) {
      path = "in_axes." + name;
      if (const Value* entry = axes->find(name)) return *entry;
      if (position < 0) return NoneValue{};
      auto error = diagnostic(
          Code::in_axes_name, declared_at(map_, map_.in_axes_span),
          "does not name " + (name.empty()
                                  ? fmt::format("argument {}", position)
                                  : "`" + name + "`"),
          fmt::format("which `{}` is called with", callee_.function.name));
      error.add_note(where_, "the call");
      error.set_help(
          name.empty()
              ? "give this parameter a name, or one entry per argument: "
                "`in_axes=(0, none)`"
              : fmt::format("add `{} = none` to copy it to every device",
                            name));
      walk_.fail(std::move(error));
    }
    return position < 0 ? Value(NoneValue{}) : map_.in_axes;
  }

  void add_leaf(BoundCall& call, MapInput input, const Value& leaf) {
    const auto* array = leaf.get_if<ArrayValue>();
    if (array) {
      input.value = *array;
      input.type = (*array)->type;
      check_rank(input, input.type.rank(), shown_type(**array).to_string());
      input.member = input.type;
      call.inputs.push_back(std::move(input));
      return;
    }
    if (input.entry.is_none()) return;
    if (leaf.is<IntValue>() || leaf.is<BoolValue>())
      check_rank(input, 0, type_name(leaf));
    auto error = diagnostic(Code::not_mappable, input.where, input.label(),
                            type_name(leaf));
    error.set_help("use none to give every member the whole value");
    walk_.fail(std::move(error));
  }

  void check_rank(MapInput& input, int rank, std::string type) {
    if (input.entry.is_none()) return;
    const int axis =
        input.entry.axis < 0 ? input.entry.axis + rank : input.entry.axis;
    if (axis >= 0 && axis < rank) {
      input.entry.axis = axis;
      return;
    }
    auto error = diagnostic(Code::axis_out_of_range, input.where, input.label(),
                            rank, input.entry.axis);
    error.set_label(std::move(type));
    error.add_fact(mapping_fact(map_, input));
    const std::string axes =
        rank < 2 ? "its only axis is 0"
                 : fmt::format("its axes are 0 to {}", rank - 1);
    error.set_help((rank == 0 ? "" : axes + "; ") +
                   "use none to broadcast it to all members");
    walk_.fail(std::move(error));
  }

  /// Sizes are compared with one another first, then shared among devices.
  void share(BoundCall& call) {
    MapLayout& layout = call.layout;
    if (callee_.axis && !callee_.is_vmap())
      layout.devices = static_cast<int>(callee_.axis->devices->size());
    layout.members = layout.devices;
    const MapInput* first = nullptr;
    ir::Dim members;
    for (const MapInput& input : call.inputs) {
      layout.has_split |= input.entry.is_split();
      if (!input.entry.is_mapped()) continue;
      if (!first) {
        first = &input;
        members = size_of(input);
        continue;
      }
      const auto both = same_size(members, size_of(input));
      if (!both) differ(*first, input);
      members = *both;
    }
    if (first) {
      layout.members = members;
      layout.per_device = divided(*first, members, layout.devices);
      if (layout.has_split && !same_size(members, layout.devices))
        mixed(layout);
    } else if (callee_.is_vmap()) {
      nothing_mapped();
    }
    for (MapInput& input : call.inputs) {
      auto& shape = input.member.shape;
      if (input.entry.is_mapped())
        shape.erase(shape.begin() + input.entry.axis);
      if (input.entry.is_split())
        shape[input.entry.axis] =
            divided(input, size_of(input), layout.devices);
    }
  }

  static ir::Dim size_of(const MapInput& input) {
    return input.type.shape[input.entry.axis];
  }

  [[noreturn]] void differ(const MapInput& first, const MapInput& other) {
    auto error =
        diagnostic(Code::mapped_sizes_differ, other.where, first.label(),
                   size_of(first).to_string(), first.entry.axis, other.label(),
                   size_of(other).to_string(), other.entry.axis);
    error.about(size_of(first) - size_of(other));
    error.set_label(other.type.to_string());
    error.add_note(first.where, first.type.to_string());
    error.add_fact(mapping_fact(map_, other));
    error.set_help(
        "all mapped axes have one size; use none to give every "
        "member the whole array");
    walk_.fail(std::move(error));
  }

  ir::Dim divided(const MapInput& input, const ir::Dim& size, int devices) {
    if (auto part = equal_parts(size, devices)) return *part;
    auto error = diagnostic(
        Code::uneven_members, input.where, input.entry.axis,
        input.path.empty() ? std::to_string(input.position) : input.path,
        size.to_string(), devices);
    error.about(size);
    error.set_label(input.type.to_string());
    error.add_fact(mapping_fact(map_, input));
    error.add_fact(devices_fact(walk_, *callee_.axis));
    add_uneven_help(error, input, size, devices);
    walk_.fail(std::move(error));
  }

  void add_uneven_help(Diagnostic& error, const MapInput& input,
                       const ir::Dim& size, int devices) {
    const std::string path = input.path.empty() ? "x" : input.path;
    const std::string padded =
        size.is_constant()
            ? std::to_string((size.value() + devices - 1) / devices * devices)
            : fmt::format("({}) // {} * {}",
                          (size + ir::Dim(devices - 1)).to_string(), devices,
                          devices);
    const std::string axis =
        input.entry.axis ? fmt::format(", axis={}", input.entry.axis) : "";
    const std::string target = fmt::format("({}, {}{})`", path, padded, axis);
    error.add_fact("after `pad_to" + target + ", `mask_of" + target +
                   " is true where there was data");
    error.set_help(
        uneven_help(input, size, devices, "pad with `pad_to" + target));
  }

  std::string uneven_help(const MapInput& input, const ir::Dim& size,
                          int devices, const std::string& pad) {
    if (!size.is_constant()) {
      return fmt::format(
          "give it a size that is a multiple of {0}, as in `{0}*m`, {1}, or "
          "coerce it with `as` to a known size, which is checked at run time",
          devices, pad);
    }
    const int64_t count = size.value();
    int fewer = devices - 1;
    while (fewer > 1 && count % fewer != 0) --fewer;
    const std::string multiple =
        input.entry.axis
            ? fmt::format("use a size that is a multiple of {}", devices)
            : fmt::format("use a multiple of {} rows", devices);
    if (fewer < 2) return fmt::format("{}, or {}", multiple, pad);
    return fmt::format("{}, {}, or map over `devices({})`", multiple, pad,
                       fewer);
  }

  void mixed(const MapLayout& layout) {
    auto error = diagnostic(Code::split_and_mapped, where_,
                            layout.members.to_string(), layout.devices);
    error.about(layout.members);
    error.add_fact(devices_fact(walk_, *callee_.axis));
    error.set_help(
        "split and an integer go together only where the mapped size is the "
        "number of devices; use `split(k)` for all, or integers for all");
    walk_.fail(std::move(error));
  }

  void nothing_mapped() {
    auto error =
        diagnostic(Code::nothing_mapped, where_, callee_.function.name);
    if (map_.in_axes_span)
      error.add_note(map_.in_axes_span, "the axes stand here");
    error.set_help("give at least one array argument an integer in `in_axes`");
    walk_.fail(std::move(error));
  }

  Walk& walk_;
  const MapCallee& callee_;
  const Transformed& map_;
  std::vector<ParameterInfo> parameters_;
  Span where_;
};

/// "the result", "result 1", "result 1.w"
std::string result_label(const std::string& path) {
  return path.empty() ? "the result" : "result " + path.substr(1);
}

/// Matches one member's results to out_axes.
class ResultBinder {
 public:
  ResultBinder(Walk& walk, const MapCallee& callee, const MapLayout& layout,
               Span where)
      : walk_(walk),
        callee_(callee),
        layout_(layout),
        call_(where),
        where_(callee.map.out_axes_span ? callee.map.out_axes_span : where) {}

  BoundResult bind(const Value& result) {
    BoundResult bound;
    AxesWalk axes_walk;
    axes_walk.leaf = [&](const AxisEntry& entry, const Value& leaf,
                         const std::string& path) {
      return add_leaf(bound, entry, leaf, path);
    };
    axes_walk.differ = [&](const Value& axes, const std::string& axes_path,
                           const Value& value, const std::string& path) {
      differ(axes, axes_path, value, path);
    };
    bound.tree = axes_walk(callee_.map.out_axes, "out_axes", result, "");
    return bound;
  }

 private:
  void differ(const Value& axes, const std::string& axes_path,
              const Value& value, const std::string& path) {
    std::string seen, has = describe_axes(axes);
    if (path.empty() && axes.tuple()) {
      has = axes.tuple()->items.size() == 1
                ? "1 entry"
                : fmt::format("{} entries", axes.tuple()->items.size());
      seen = fmt::format("`{}` gives {}", callee_.map.inner->name,
                         value.tuple()
                             ? plural(value.tuple()->items.size(), "result")
                             : "1 result, " + type_name(value));
    } else {
      seen = fmt::format("{} {}", result_label(path), describe_value(value));
    }
    auto error = diagnostic(Code::out_axes_structure, where_,
                            path.empty() ? "`out_axes`" : axes_path, has, seen);
    note_call(error);
    error.set_help("give one entry for each result, or one for all");
    walk_.fail(std::move(error));
  }

  Value add_leaf(BoundResult& bound, const AxisEntry& entry, const Value& leaf,
                 const std::string& path) {
    const auto* array = leaf.get_if<ArrayValue>();
    if (!array && entry.is_none()) {
      require_known_result(walk_, leaf, call_);
      return leaf;
    }
    if (array && (*array)->int_argument && entry.is_none())
      give_up_int_argument(call_);
    if (!array && !leaf.is<IntValue>() && !leaf.is<BoolValue>()) {
      auto error = diagnostic(Code::result_not_array, where_,
                              result_label(path), type_name(leaf));
      note_call(error);
      if (callee_.map.state) {  // not of a comprehension
        error.add_fact("its entry in out_axes is " + entry.to_string());
        error.set_help("give it the entry none, or do not return it");
      }
      walk_.fail(std::move(error));
    }
    MapOutput output;
    // A number without an element type stays one where it is no array's part.
    output.value = array && !callee_.axis
                       ? *array
                       : walk_.to_array(leaf, call_, result_label(path));
    output.entry = entry;
    output.type = output.value->type;
    if (entry.is_none())
      prove_same(*output.value, path);
    else
      stack(output, path);
    bound.outputs.push_back(output);
    return output.value;
  }

  void prove_same(const ArrayCell& value, const std::string& path) {
    if (!callee_.axis) return;
    if (!std::ranges::binary_search(value.varies, callee_.axis->id)) return;
    auto error = diagnostic(Code::result_varies, where_, result_label(path),
                            label(*callee_.axis));
    error.set_label("result: " + value.type.to_string());
    if (value.varies_from)
      error.add_note(value.varies_from, "it varies because of this");
    note_call(error);
    error.set_help(
        "use out_axes=0 or a reduction such as `psum`; `assume_same(x)` takes "
        "the first member's value");
    walk_.fail(std::move(error));
  }

  /// An integer counts in the stacked result, which has one axis more.
  void stack(MapOutput& output, const std::string& path) {
    const int extra = output.entry.is_mapped() ? 1 : 0;
    const int rank = output.type.rank() + extra;
    const int axis =
        output.entry.axis < 0 ? output.entry.axis + rank : output.entry.axis;
    if (axis < 0 || axis >= rank) {
      auto error = diagnostic(
          Code::out_axis_out_of_range, where_, output.entry.to_string(),
          result_label(path), output.type.to_string(),
          rank == 0 ? "it has no axis"
                    : fmt::format("{} to {} fit", -rank, rank - 1));
      note_call(error);
      error.set_help(rank == 0
                         ? "use out_axes=0: a scalar has no axis to join along"
                         : "it counts in the stacked result");
      walk_.fail(std::move(error));
    }
    output.entry.axis = axis;
    auto& shape = output.type.shape;
    if (output.entry.is_mapped())
      shape.insert(shape.begin() + axis, layout_.members);
    else
      shape[axis] = shape[axis] * layout_.members;
  }

  void note_call(Diagnostic& error) const {
    if (!(call_ == where_)) error.add_note(call_, "in this call");
  }

  Walk& walk_;
  const MapCallee& callee_;
  const MapLayout& layout_;
  Span call_, where_;
};

void check_form(Walk& walk, const Value& axes, const std::string& path,
                Span where) {
  if (const TupleValue* tuple = axes.tuple()) {
    for (size_t i = 0; i < tuple->items.size(); ++i)
      check_form(walk, tuple->items[i], fmt::format("{}[{}]", path, i), where);
  } else if (const RecordValue* record = axes.record()) {
    for (const auto& [name, entry] : record->fields)
      check_form(walk, entry, fmt::format("{}.{}", path, name), where);
  } else if (const auto* number = axes.get_if<IntValue>();
             number && !number->value.is_constant()) {
    // In a definition that is checked: a call tells it.
    walk.fail(diagnostic(Code::argument_not_known, where, "`" + path + "`")
                  .about(number->value));
  } else if (!entry_of(axes)) {
    walk.fail(diagnostic(Code::bad_axes_entry, where, "`" + path + "`",
                         type_name(axes)));
  }
}

}  // namespace

void require_known_result(Walk& walk, const Value& leaf, Span call) {
  std::string what;
  if (const auto* text = leaf.get_if<StrValue>(); text && text->deferred) {
    require_known(text->deferred->call_numbers, call);
    what = "this text";
  }
  if (const auto* range = leaf.get_if<RangeValue>())
    for (const Value& part : *range->start_stop_step) {
      const ArrayCell* array = part.array();
      if (!array || array->constant) continue;
      require_known(*array, call);
      what = "this range";
    }
  if (!what.empty())
    walk.fail(diagnostic(Code::host_value_in_compiled_code, call, what)
                  .set_help("return the array, and make that of it outside"));
}

std::vector<ParameterInfo> parameters_of(const FunctionValue& function) {
  std::vector<ParameterInfo> parameters;
  if (const auto* builtin = std::get_if<const Builtin*>(&function.what)) {
    for (const Parameter& parameter : (*builtin)->parameters) {
      if (parameter.is_rest) continue;
      parameters.push_back(
          {std::string(parameter.name), parameter.keyword_only});
    }
  } else if (const auto* map = std::get_if<Transformed>(&function.what)) {
    return parameters_of(*map->inner);
  } else if (const auto* made = std::get_if<Differentiated>(&function.what)) {
    if (made->kind == Differentiated::Kind::jvp)
      return {{"args"}, {"tangents"}};
    if (made->kind == Differentiated::Kind::vjp)
      return {{"args"}, {"cotangent"}};
    return parameters_of(*made->inner);
  } else if (const auto* closure = std::get_if<Closure>(&function.what)) {
    const Function& code = closure->definition ? closure->definition->function
                                               : closure->lambda->function;
    for (const Param& param : code.params) {
      const bool named = param.pattern.kind == Pattern::Kind::name;
      parameters.push_back(
          {named ? param.pattern.name.text : "", param.keyword_only});
    }
  }
  return parameters;
}

std::string label(const AxisInfo& axis) {
  return axis.anonymous ? "the axis of `" + axis.name + "`"
                        : "axis " + axis.name;
}

std::string device_names(Walk& walk, std::span<const int> devices) {
  const auto& all = walk.machine().runtime->devices();
  std::string names;
  size_t shown = 0;
  for (const int index : devices) {
    if (shown == 8) return names + ", ...";
    names += (shown++ ? ", " : "") + all[index]->name();
  }
  return names;
}

std::string tuple_text(const std::vector<int64_t>& items) {
  return fmt::format("({}{})", fmt::join(items, ", "),
                     items.size() == 1 ? "," : "");
}

std::string MapInput::label() const {
  if (position < 0) return fmt::format("argument `{}`", path);
  if (path.empty()) return fmt::format("argument {}", position);
  return fmt::format("argument {} (`{}`)", position, path);
}

void check_axes_form(Walk& walk, const Value& axes, std::string_view what,
                     Span where) {
  check_form(walk, axes, std::string(what), where);
}

BoundCall bind_call(Walk& walk, const MapCallee& callee,
                    std::vector<CallArgument> positional,
                    std::vector<std::pair<std::string, CallArgument>> named,
                    Span where) {
  return CallBinder(walk, callee, where)
      .bind(std::move(positional), std::move(named));
}

BoundResult bind_result(Walk& walk, const MapCallee& callee,
                        const MapLayout& layout, const Value& result,
                        Span where) {
  return ResultBinder(walk, callee, layout, where).bind(result);
}

Value replace_arrays(const Value& tree, const std::vector<ArrayValue>& arrays) {
  size_t next = 0;
  return map_leaves(tree, [&](const Value& leaf) -> Value {
    return leaf.is<ArrayValue>() ? Value(arrays[next++]) : leaf;
  });
}

void BoundCall::replace_arrays(const std::vector<ArrayValue>& arrays) {
  size_t next = 0;
  const auto leaf = [&](const Value& old) -> Value {
    const ArrayCell* array = old.array();
    return array ? Value(arrays[next++]) : old;
  };
  for (CallArgument& argument : positional)
    argument.value = map_leaves(argument.value, leaf);
  for (auto& [name, argument] : named)
    argument.value = map_leaves(argument.value, leaf);
}

std::vector<std::string> member_facts(const std::vector<MapInput>& inputs) {
  std::vector<std::string> facts;
  for (const MapInput& input : inputs) {
    const bool is_argument = input.position >= 0 || !input.path.empty();
    if (input.entry.is_none() || !is_argument) continue;
    if (facts.size() == 4) break;
    facts.push_back(fmt::format(
        "{} is {}; one member sees {}, after {} axis {}", input.label(),
        input.type.to_string(), input.member.to_string(),
        input.entry.is_split() ? "splitting" : "mapping", input.entry.axis));
  }
  return facts;
}

void explain_members(const MappedAxis& axis, Diagnostic& diagnostic) {
  bool mapped = false;
  for (const std::string& fact : axis.facts) {
    diagnostic.add_fact(fact);
    mapped |= fact.find(", after mapping axis 0") != std::string::npos;
  }
  const bool fewer_axes = diagnostic.code == Code::too_many_indices ||
                          diagnostic.code == Code::no_such_axis;
  if (axis.over_devices && mapped && fewer_axes)
    diagnostic.set_help(
        diagnostic.help + (diagnostic.help.empty() ? "" : "; ") +
        "for a block of rows on each device instead of one row, write "
        "`split(0)` in `in_axes`");
}

}  // namespace unisono::lang
