// Functions that the host defines: their declarations and calls.
#include <fmt/format.h>

#include <exception>

#include "lang/context/derivative_facts.h"
#include "lang/context/function.h"
#include "lang/ops/carry.h"
#include "lang/ops/operators.h"
#include "lang/walk/types.h"
#include "runtime/array.h"
#include "runtime/cluster/cluster_device.h"

namespace unisono::lang {
namespace {

[[noreturn]] void bad_declaration(Walk& walk, Span where, std::string_view why,
                                  std::string_view help) {
  walk.fail(diagnostic(Code::host_declaration, where, why)
                .set_help(std::string(help)));
}

/// A text as the bytes that the host gets.
ArrayValue text_argument(Walk& walk, const StrValue& text, Span where,
                         const std::string& parameter) {
  if (text.deferred)
    walk.fail(diagnostic(Code::host_value_in_compiled_code, where,
                         fmt::format("argument `{}`", parameter))
                  .set_help("give the function the array, or call it outside "
                            "compiled code"));
  if (!text.value) return walk.unknown_array({DType::U8, {walk.open_size()}});
  const std::string& bytes = *text.value;
  const auto size = static_cast<int64_t>(bytes.size());
  return walk.constant_array({DType::U8, {ir::Dim(size)}},
                             {bytes.begin(), bytes.end()}, where);
}

ArrayValue host_argument(Walk& walk, const Value& leaf, Span where,
                         const std::string& parameter) {
  if (const auto* text = leaf.get_if<StrValue>())
    return text_argument(walk, *text, where, parameter);
  if (const auto* integer = leaf.get_if<IntValue>())
    return cast_to(walk, walk.constant_size(integer->value, where), DType::I64,
                   where);
  if (leaf.array() || leaf.is<BoolValue>())
    return walk.to_array(leaf, where, "an array");
  bad_declaration(
      walk, where, fmt::format("`{}` is {}", parameter, type_name(leaf)),
      "the host takes arrays, `int`, `str`, and tuples and records of them");
}

/// What the host computes has no derivative but by a rule.
void check_derivative(Walk& walk, const std::string& name,
                      const std::vector<ArrayValue>& operands,
                      const Value& result, Span where) {
  bool floats = false;
  for_each_leaf(result, [&](const Value& leaf) {
    floats |= leaf.array() && is_floating(leaf.array()->type.dtype);
  });
  DerivativeArguments depends;
  for (const ArrayValue& operand : operands)
    depends = join(depends, operand->depends);
  if (!floats || depends.empty()) return;
  // Of a rule, whose tangent it is, more is said where the rule is checked.
  if (linearity_through(operands, where).state == Linearity::State::other)
    return;
  Diagnostic error = diagnostic(Code::no_derivative, where, name);
  if (const Derivative* around = innermost(walk.context(), depends))
    error.add_note(around->where, "the derivative is taken here");
  error.set_help(fmt::format(
      "the host computes it: it is defined with its derivative, "
      "`@custom_jvp(rule) def {0}(...)`, or called in a function that has a "
      "rule; where an argument may count as a constant, write "
      "`stop_gradient(...)`",
      name));
  walk.fail(std::move(error));
}

constexpr const char* sizes_help =
    "each size in the result stands in a parameter, too: `def f(x: f32[n]) -> "
    "f32[n]`";

/// Refuses a result of which the arguments do not tell each size, as `?k`: each
/// time that it is made such a size is a new symbol.
void check_result_sizes(Walk& walk, const Value& result, const Value& again,
                        Span where) {
  std::vector<ir::Type> types;
  for_each_leaf(result, [&](const Value& leaf) {
    if (leaf.array()) types.push_back(leaf.array()->type);
  });
  size_t next = 0;
  for_each_leaf(again, [&](const Value& leaf) {
    if (!leaf.array() || leaf.array()->type == types[next++]) return;
    bad_declaration(walk, where,
                    fmt::format("the arguments do not tell all sizes of `{}`",
                                where.text()),
                    sizes_help);
  });
}

std::vector<int64_t> sizes_of(const ir::Type& type) {
  std::vector<int64_t> sizes;
  for (const ir::Dim& size : type.shape) sizes.push_back(size.value());
  return sizes;
}

}  // namespace

Status call_host_function(const Machine& machine, const ir::HostCallAttrs& call,
                          const std::vector<jit::HostArray>& arguments,
                          std::vector<jit::HostArray>& results) {
  const auto failed = [&](std::string_view why) {
    return Error{.kind = Error::Kind::host_function,
                 .message = fmt::format("{}: {}", call.function, why)};
  };
  const auto& function = machine.host_functions.at(call.number);
  try {
    Status done = function->call(arguments, results);
    if (!done && done.error().kind == Error::Kind::cancelled) return done;
    if (!done) return failed(done.error().message);
    for (const jit::HostArray& result : results)
      if (static_cast<int64_t>(result.bytes.size()) != result.type.bytes())
        return failed("it gave another number of bytes than declared");
    return done;
  } catch (const std::exception& exception) {
    return failed(exception.what());
  } catch (...) {
    return failed("it threw something");
  }
}

int64_t Walker::host_number(const DefStmt& def) {
  if (def.function.body) return -1;
  for (const Param& param : def.function.params)
    if (param.pattern.kind != Pattern::Kind::name || !param.type)
      bad_declaration(
          walk_, param.span,
          fmt::format("`{}` has no name and type", param.pattern.span.text()),
          "the types of all parameters are declared: `x: f32[n]`");
  const auto& functions = walk_.machine().host_functions;
  for (size_t i = 0; i < functions.size(); ++i)
    if (functions[i]->declaration == &def) return static_cast<int64_t>(i);
  bad_declaration(walk_, def.name.span, "there is no body", "write `= ...`");
}

Value Walker::call_host(const Closure& closure, const Env& env, Span where) {
  const DefStmt& def = *closure.definition;
  const HostFunction& host = *walk_.machine().host_functions.at(closure.host);
  std::vector<ArrayValue> operands;
  for (const Param& param : def.function.params) {
    const std::string& name = param.pattern.name.text;
    for_each_leaf(env->names.at(name).value, [&](const Value& leaf) {
      operands.push_back(host_argument(walk_, leaf, where, name));
    });
  }

  ir::HostCallAttrs attrs;
  attrs.function = def.name.text;
  attrs.number = closure.host;
  attrs.pure = host.pure;
  attrs.everywhere = false;
  for (const MappedAxis& axis : walk_.context().mapped_axes)
    attrs.axes.push_back(axis.id);
  const auto declared = [&]() -> Value {
    if (!def.function.result) return NoneValue{};
    TypeMatcher matcher(*this, env, TypeMatcher::Names::known);
    try {
      Value value = matcher.any_value(*def.function.result);
      matcher.finish();
      return value;
    } catch (Failure& failure) {
      if (failure.diagnostic.code == Code::unbound_size)
        failure.diagnostic.set_help(sizes_help);
      throw;
    }
  };
  Value shape = declared();
  if (checking() && def.function.result)
    check_result_sizes(walk_, shape, declared(), def.function.result->span);
  check_derivative(walk_, def.name.text, operands, shape, where);
  AxisSet varies;
  for (const ArrayValue& operand : operands)
    varies = join(varies, operand->varies);
  if (!host.pure)
    for (const MappedAxis& axis : walk_.context().mapped_axes)
      varies = join(varies, {axis.id});
  for_each_leaf(shape, [&](const Value& leaf) {
    if (leaf.is<NoneValue>()) return;
    if (!leaf.array())
      bad_declaration(walk_, def.function.result->span,
                      fmt::format("the result is {}", type_name(leaf)),
                      "the host gives arrays, and tuples and records of them");
    walk_.check_size(leaf.array()->type, where);
    leaf.array()->varies = varies;
    if (!varies.empty()) leaf.array()->varies_from = where;
    leaf.array()->linearity = linearity_through(operands, where);
    attrs.results.push_back(leaf.array()->type);
  });
  if (checking()) return shape;
  if (walk_.mode() == Mode::run) return run_host(attrs, operands, shape, where);
  const size_t results = attrs.results.size();
  const ArrayValue node =
      walk_.add(ir::Op::host_call, operands, std::move(attrs), where);
  return fill_leaves({shape}, project_all(walk_, node, results, where))[0];
}

/// Outside compiled code it is called here and now.
Value Walker::run_host(const ir::HostCallAttrs& call,
                       const std::vector<ArrayValue>& operands,
                       const Value& shape, Span where) {
  Device& device = home_device(walk_.machine().runtime->devices());
  std::vector<jit::HostArray> arguments, results;
  for (const ir::Type& type : call.results)
    results.push_back(
        {type, std::vector<uint8_t>(static_cast<size_t>(type.bytes()))});
  std::vector<ArrayValue> arrays;
  if (walk_.machine().compile_only) {
    for (const ir::Type& type : call.results)
      arrays.push_back(walk_.from_array(
          Walk::absent(type.dtype, sizes_of(type), Sharding{-1, {&device}})));
    return fill_leaves({shape}, arrays)[0];
  }
  for (const ArrayValue& operand : operands)
    arguments.push_back({operand->type, walk_.host_bytes(operand, where)});
  Status done = call_host_function(walk_.machine(), call, arguments, results);
  if (!done) walk_.fail(done.error(), where);
  for (const jit::HostArray& result : results) {
    auto array = array_from_host(device, result.type.dtype,
                                 sizes_of(result.type), result.bytes.data());
    if (!array) walk_.fail(array.error(), where);
    arrays.push_back(walk_.from_array(std::move(*array)));
  }
  return fill_leaves({shape}, arrays)[0];
}

}  // namespace unisono::lang
