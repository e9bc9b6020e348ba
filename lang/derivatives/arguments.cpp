#include "lang/derivatives/arguments.h"

#include <fmt/format.h>

#include <algorithm>

#include "lang/context/literals.h"
#include "lang/maps/map_spec.h"
#include "lang/ops/operators.h"
#include "lang/ops/sizes.h"

namespace unisono::lang {
namespace {

/// The function written in the language that a call of `function` reaches with
/// the same arguments; null if it is another kind of function, or gets others.
const FunctionValue* written_function(const FunctionValue& function) {
  if (std::holds_alternative<Closure>(function.what)) return &function;
  if (const auto* map = std::get_if<Transformed>(&function.what))
    return map->kind == Transformed::Kind::jit ? written_function(*map->inner)
                                               : nullptr;
  if (const auto* made = std::get_if<Differentiated>(&function.what)) {
    const bool packed = made->kind == Differentiated::Kind::jvp ||
                        made->kind == Differentiated::Kind::vjp;
    return packed ? nullptr : written_function(*made->inner);
  }
  return nullptr;
}

std::string parameters_text(const std::vector<ParameterInfo>& parameters) {
  std::string text;
  for (const ParameterInfo& parameter : parameters)
    text += fmt::format("{}`{}`", text.empty() ? "" : ", ",
                        parameter.name.empty() ? "_" : parameter.name);
  return text;
}

[[noreturn]] void bad_wrt(Walk& walk, const Differentiated& made,
                          std::string_view name, const std::string& why,
                          const std::vector<ParameterInfo>& parameters) {
  Diagnostic error = diagnostic(
      Code::bad_wrt, made.wrt_span ? made.wrt_span : made.where, name, why);
  if (!parameters.empty())
    error.set_help(fmt::format("the parameters of `{}` are {}",
                               made.inner->name, parameters_text(parameters)));
  walk.fail(std::move(error));
}

/// The place of a parameter among the arguments of a call; nothing if the call
/// does not give it.
std::optional<size_t> place_of(const DerivativeOf& of,
                               const std::vector<ParameterInfo>& parameters,
                               const CallArguments& call) {
  const size_t count = call.positional.size();
  std::string name;
  if (const auto* position = std::get_if<int64_t>(&of)) {
    const auto place = static_cast<size_t>(*position);
    if (place < count) return place;
    if (place < parameters.size()) name = parameters[place].name;
  } else {
    name = std::get<std::string>(of);
    for (size_t i = 0; i < parameters.size() && i < count; ++i)
      if (parameters[i].name == name && !parameters[i].keyword_only) return i;
  }
  for (size_t i = 0; i < call.named.size(); ++i)
    if (!name.empty() && call.named[i].first == name) return count + i;
  return std::nullopt;
}

/// "`w`", "argument 1"
std::string argument_label(size_t place,
                           const std::vector<ParameterInfo>& parameters,
                           const CallArguments& call) {
  if (place >= call.positional.size())
    return call.named[place - call.positional.size()].first;
  if (place < parameters.size() && !parameters[place].name.empty())
    return parameters[place].name;
  return fmt::format("argument {}", place);
}

/// Calls for each leaf with its path: "w.layers.0".
void for_each_path(
    const Value& tree, const std::string& path,
    const std::function<void(const Value&, const std::string&)>& f) {
  if (const TupleValue* tuple = tree.tuple())
    for (size_t i = 0; i < tuple->items.size(); ++i)
      for_each_path(tuple->items[i], fmt::format("{}.{}", path, i), f);
  else if (const RecordValue* record = tree.record())
    for (const auto& [name, item] : record->fields)
      for_each_path(item, fmt::format("{}.{}", path, name), f);
  else
    f(tree, path);
}

/// The floats of a tree, with an element type.
void add_leaves(Walk& walk, const CallArgument& tree, size_t argument,
                std::vector<DerivativeLeaf>& leaves) {
  for_each_leaf(tree.value, [&](const Value& leaf) {
    if (is_float_leaf(leaf))
      leaves.push_back({walk.to_array(leaf, tree.where, "a derivative"),
                        tree.where, argument});
  });
}

Value with_floats(const Value& tree, const std::vector<ArrayValue>& arrays,
                  size_t& next) {
  return map_leaves(tree, [&](const Value& leaf) -> Value {
    if (!is_float_leaf(leaf)) return leaf;
    const ArrayValue& array = arrays[next++];
    return array ? Value(array) : leaf;
  });
}

Value tangents_of(const Value& tree, const std::vector<ArrayValue>& arrays,
                  size_t& next) {
  return map_leaves(tree, [&](const Value& leaf) -> Value {
    if (!is_float_leaf(leaf)) return NoneValue{};
    const ArrayValue& array = arrays[next++];
    return array ? Value(array) : Value(NoneValue{});
  });
}

}  // namespace

bool is_float_leaf(const Value& leaf) {
  const ArrayCell* array = leaf.array();
  return array && is_floating(array->type.dtype);
}

Value tangent_tree(const Value& tree, const std::vector<ArrayValue>& arrays) {
  size_t next = 0;
  return tangents_of(tree, arrays, next);
}

CallArguments bind_arguments(Walk& walk, const FunctionValue& function,
                             CallArguments given, Span where) {
  const FunctionValue* written = written_function(function);
  if (!written) return given;
  std::vector<CallArgument> values = walk.bind(
      *written, std::move(given.positional), std::move(given.named), where);
  const std::vector<ParameterInfo> parameters = parameters_of(*written);
  CallArguments bound;
  for (size_t i = 0; i < values.size(); ++i)
    if (parameters[i].keyword_only)
      bound.named.emplace_back(parameters[i].name, std::move(values[i]));
    else
      bound.positional.push_back(std::move(values[i]));
  return bound;
}

CallArgument& WrtSelection::argument(size_t place) {
  const size_t count = call.positional.size();
  return place < count ? call.positional[place]
                       : call.named[place - count].second;
}

CallArguments WrtSelection::with(const std::vector<ArrayValue>& arrays) const {
  WrtSelection out = *this;
  size_t next = 0;
  for (const size_t place : arguments) {
    CallArgument& argument = out.argument(place);
    argument.value = with_floats(argument.value, arrays, next);
  }
  return std::move(out.call);
}

std::vector<Value> WrtSelection::trees(
    const std::vector<ArrayValue>& arrays) const {
  WrtSelection own = *this;
  std::vector<Value> out;
  size_t next = 0;
  for (const size_t place : arguments)
    out.push_back(tangents_of(own.argument(place).value, arrays, next));
  return out;
}

void check_wrt(Walk& walk, const FunctionValue& function,
               const Differentiated& made, std::string_view name) {
  const std::vector<ParameterInfo> parameters = parameters_of(function);
  for (size_t i = 0; i < made.wrt.size(); ++i) {
    if (std::ranges::count(made.wrt, made.wrt[i]) > 1)
      bad_wrt(walk, made, name, "it names an argument twice", {});
    if (const auto* position = std::get_if<int64_t>(&made.wrt[i])) {
      if (*position < 0)
        bad_wrt(
            walk, made, name,
            fmt::format("positions count from 0, so there is no {}", *position),
            parameters);
      if (!parameters.empty() &&
          *position >= static_cast<int64_t>(parameters.size()))
        bad_wrt(
            walk, made, name,
            fmt::format("`{}` has no argument {}", function.name, *position),
            parameters);
      continue;
    }
    const std::string& wanted = std::get<std::string>(made.wrt[i]);
    if (!parameters.empty() &&
        std::ranges::none_of(parameters, [&](const ParameterInfo& p) {
          return p.name == wanted;
        }))
      bad_wrt(walk, made, name,
              fmt::format("`{}` has no parameter `{}`", function.name, wanted),
              parameters);
  }
}

WrtSelection select_wrt(Walk& walk, const FunctionValue& function,
                        const Differentiated& made, CallArguments call) {
  const std::vector<ParameterInfo> parameters = parameters_of(*made.inner);
  WrtSelection out;
  out.call = std::move(call);
  for (const DerivativeOf& of : made.wrt) {
    const std::optional<size_t> place = place_of(of, parameters, out.call);
    if (!place) {
      const auto* name = std::get_if<std::string>(&of);
      bad_wrt(walk, made, function.name,
              fmt::format("this call gives no argument {}",
                          name ? "`" + *name + "`"
                               : fmt::to_string(std::get<int64_t>(of))),
              parameters);
    }
    const CallArgument& argument = out.argument(*place);
    for_each_path(
        argument.value, argument_label(*place, parameters, out.call),
        [&](const Value& leaf, const std::string& path) {
          if (leaf.is<NoneValue>() || is_float_leaf(leaf)) return;
          const bool number =
              leaf.is<IntValue>() || (leaf.array() && leaf.array()->literal);
          Diagnostic error = diagnostic(
              Code::not_differentiable, argument.where, function.name,
              path.starts_with("argument ") ? path : "`" + path + "`",
              type_name(leaf));
          error.set_help(
              number ? "write it as a float, `3.0`, or leave it out of `wrt`"
                     : "leave it out of `wrt`, or make it a float with `cast`");
          walk.fail(std::move(error));
        });
    add_leaves(walk, argument, out.arguments.size(), out.leaves);
    out.arguments.push_back(*place);
  }
  return out;
}

WrtSelection select_first(Walk& walk, CallArguments call, size_t count) {
  WrtSelection out;
  out.call = std::move(call);
  for (size_t i = 0; i < count; ++i) {
    add_leaves(walk, out.call.positional[i], i, out.leaves);
    out.arguments.push_back(i);
  }
  return out;
}

namespace {

class TangentMatcher {
 public:
  TangentMatcher(Walk& walk, Span where, const std::string& what,
                 std::vector<ArrayValue>& out)
      : walk_(walk), where_(where), what_(what), out_(out) {}

  void match(const Value& primal, const Value& tangent,
             const std::string& path) {
    if (tangent.is<NoneValue>()) {
      for_each_leaf(primal, [&](const Value& leaf) {
        if (is_float_leaf(leaf)) out_.push_back(nullptr);
      });
      return;
    }
    if (const TupleValue* items = primal.tuple()) {
      const TupleValue* given = tangent.tuple();
      if (!given || given->items.size() != items->items.size())
        mismatch(primal, tangent, path);
      for (size_t i = 0; i < items->items.size(); ++i)
        match(items->items[i], given->items[i], fmt::format("{}.{}", path, i));
      return;
    }
    if (const RecordValue* fields = primal.record()) {
      const RecordValue* given = tangent.record();
      if (!given || given->fields.size() != fields->fields.size())
        mismatch(primal, tangent, path);
      for (const auto& [name, item] : fields->fields) {
        const Value* part = given->find(name);
        if (!part) mismatch(primal, tangent, path);
        match(item, *part, path + "." + name);
      }
      return;
    }
    leaf(primal, tangent, path);
  }

 private:
  void leaf(const Value& primal, const Value& tangent,
            const std::string& path) {
    if (!is_float_leaf(primal)) mismatch(primal, tangent, path);
    const ArrayCell& cell = *primal.array();
    const ir::Type type = shown_type(cell);
    const ArrayCell* array = tangent.array();
    const bool number = tangent.is<IntValue>() || (array && array->weak);
    const bool fits = number ? type.rank() == 0
                             : array && array->type.dtype == type.dtype &&
                                   same_sizes(array->type.shape, type.shape);
    if (!fits) mismatch(primal, tangent, path);
    out_.push_back(taken_for(
        walk_, to_dtype(walk_, {tangent, where_}, {type.dtype}, "a tangent"),
        type.shape));
  }

  [[noreturn]] void mismatch(const Value& primal, const Value& tangent,
                             const std::string& path) {
    const bool leaf = !primal.tuple() && !primal.record();
    const bool none = leaf && !is_float_leaf(primal);
    Diagnostic error = diagnostic(
        Code::tangent_mismatch, where_,
        path.empty() ? what_ : fmt::format("`{}` of {}", path.substr(1), what_),
        type_name(tangent), none ? "none" : type_name(primal));
    error.about();
    error.set_label(type_name(tangent));
    if (none)
      error.set_help(fmt::format("{} has no derivative: `none` stands there",
                                 type_name(primal)));
    walk_.fail(std::move(error));
  }

  Walk& walk_;
  Span where_;
  const std::string& what_;
  std::vector<ArrayValue>& out_;
};

}  // namespace

void match_tangents(Walk& walk, const Value& primal, const CallArgument& given,
                    const std::string& what, std::vector<ArrayValue>& out) {
  TangentMatcher(walk, given.where, what, out).match(primal, given.value, "");
}

}  // namespace unisono::lang
