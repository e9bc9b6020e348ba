// grad, value_and_grad, jvp and vjp: what a call gives.
#include "lang/derivatives/call.h"

#include <fmt/format.h>

#include "lang/derivatives/derivatives.h"
#include "lang/maps/map_call.h"
#include "lang/maps/map_state.h"

namespace unisono::lang {
namespace {

using Kind = Differentiated::Kind;

Value call_with(Walk& walk, const DerivativeCall& call,
                CallArguments arguments) {
  return walk.call(call.made.inner, std::move(arguments.positional),
                   std::move(arguments.named), call.where);
}

// ---- grad, value_and_grad

std::string loss_help(const DerivativeCall& call, const Value& result) {
  const TupleValue* items = result.tuple();
  const ArrayCell* array = result.array();
  if (call.made.aux)
    return "with `aux=true` it gives the loss and what else there is, `(loss, "
           "more)`";
  if (items && items->items.size() == 2)
    return "`value_and_grad(f, aux=true)` takes `(loss, more)`; `vjp` and "
           "`jacobian` take any results";
  if (array && array->type.rank() > 0)
    return "reduce it, as `sum` or `mean` does; or use `vjp` or `jacobian`";
  return array ? "only floats have derivatives" : "the loss is one float";
}

/// The loss among what the function gives: the first of its outputs.
ArrayValue loss_of(Walk& walk, const DerivativeCall& call,
                   const Value& result) {
  const Value* loss = &result;
  if (call.made.aux) {
    const TupleValue* pair = result.tuple();
    loss = pair && pair->items.size() == 2 ? pair->items.data() : nullptr;
  }
  const ArrayCell* array = loss ? loss->array() : nullptr;
  if (array && array->type.rank() == 0 && is_floating(array->type.dtype))
    return *loss->get_if<ArrayValue>();
  Diagnostic error = diagnostic(Code::bad_loss, call.where, call.function.name,
                                call.made.inner->name, type_name(result));
  error.set_help(loss_help(call, result));
  walk.fail(std::move(error));
}

Value call_gradient(Walk& walk, const DerivativeCall& call) {
  const WrtSelection selection =
      select_wrt(walk, call.function, call.made, call.arguments);
  const WalkedFunction walked =
      walk_function(walk, call.derivative(/*reverse=*/true), selection.leaves,
                    [&](const std::vector<ArrayValue>& parameters) {
                      return call_with(walk, call, selection.with(parameters));
                    });
  const ArrayValue loss = loss_of(walk, call, walked.result);
  std::vector<ArrayValue> values, gradients;
  if (walk.mode() == Mode::check) {
    for (const ArrayValue& output : walked.outputs)
      values.push_back(walk.unknown_array(output->type));
    for (const DerivativeLeaf& leaf : walked.leaves)
      gradients.push_back(walk.unknown_array(leaf.value->type));
  } else {
    jit::DerivativeSpec spec = spec_of(walk, walked);
    spec.outputs.assign(walked.outputs.size(), false);
    spec.outputs[0] = true;
    std::vector<ArrayValue> arguments = walked.arguments;
    arguments.push_back(
        walk.constant(1, loss->type.dtype, /*weak=*/false, call.where));
    values = walk.scope()->append(
        graph_of(walk, jit::vjp(walked.graph, spec), walked), arguments);
    const auto first =
        values.begin() + static_cast<ptrdiff_t>(walked.outputs.size());
    gradients.assign(first, values.end());
    values.erase(first, values.end());
  }
  set_value_facts(walked, values);
  for (size_t i = 0; i < gradients.size(); ++i)
    set_cotangent_facts(walk, walked, walked.leaves[i], {}, *gradients[i]);
  std::vector<Value> trees = selection.trees(gradients);
  Value gradient = call.made.wrt_is_tuple ? make_tuple(std::move(trees))
                                          : std::move(trees[0]);
  if (call.made.kind == Kind::grad) return gradient;
  return make_tuple(
      {replace_arrays(walked.result, values), std::move(gradient)});
}

// ---- jvp, vjp

/// `args` of a jvp or vjp, and what goes with it.
struct PackedCall {
  CallArgument args, along;
  bool is_list = false;  // `args` is a tuple: all arguments
  std::vector<CallArgument> list;
  CallArguments rest;  // keyword-only arguments of the function
};

PackedCall unpack(Walk& walk, const DerivativeCall& call) {
  const bool jvp = call.made.kind == Kind::jvp;
  const std::string names[] = {"args", jvp ? "tangents" : "cotangent"};
  const std::string usage = fmt::format(
      "it is called as `{}({}, {})`: `args` is the argument, or a tuple of all",
      call.function.name, names[0], names[1]);
  std::vector<CallArgument> given = call.arguments.positional;
  PackedCall out;
  for (const auto& [name, argument] : call.arguments.named)
    if (given.size() < 2 && name == names[given.size()])
      given.push_back(argument);
    else
      out.rest.named.emplace_back(name, argument);
  if (given.size() < 2)
    walk.fail(diagnostic(Code::missing_argument, call.where, call.function.name,
                         names[given.size()])
                  .set_help(usage));
  if (given.size() > 2)
    walk.fail(diagnostic(Code::too_many_arguments, given[2].where,
                         call.function.name, "2 positional arguments",
                         given.size())
                  .set_help(usage));
  out.args = given[0];
  out.along = given[1];
  const TupleValue* items = out.args.value.tuple();
  out.is_list = items != nullptr;
  if (items)
    for (const Value& item : items->items)
      out.list.push_back({item, out.args.where});
  else
    out.list.push_back(out.args);
  return out;
}

WrtSelection select_packed(Walk& walk, const DerivativeCall& call,
                           const PackedCall& packed) {
  return select_first(
      walk,
      bind_arguments(walk, *call.made.inner, {packed.list, packed.rest.named},
                     call.where),
      packed.list.size());
}

/// Of several arguments a tuple.
Value packed_value(const PackedCall& packed, std::vector<Value> items) {
  return packed.is_list ? make_tuple(std::move(items)) : std::move(items[0]);
}

Value packed_primals(const PackedCall& packed, WrtSelection selection) {
  std::vector<Value> items;
  for (const size_t place : selection.arguments)
    items.push_back(selection.argument(place).value);
  return packed_value(packed, std::move(items));
}

Value call_jvp(Walk& walk, const DerivativeCall& call) {
  const PackedCall packed = unpack(walk, call);
  const WrtSelection selection = select_packed(walk, call, packed);
  std::vector<ArrayValue> tangents;
  match_tangents(walk, packed_primals(packed, selection), packed.along,
                 "the tangent", tangents);
  std::vector<DerivativeLeaf> leaves;
  for (size_t i = 0; i < tangents.size(); ++i) {
    if (!tangents[i]) continue;
    leaves.push_back(selection.leaves[i]);
    leaves.back().tangent = tangents[i];
  }
  const WalkedFunction walked =
      walk_function(walk, call.derivative(/*reverse=*/false), leaves,
                    [&](const std::vector<ArrayValue>& parameters) {
                      std::vector<ArrayValue> all(tangents.size());
                      size_t next = 0;
                      for (size_t i = 0; i < all.size(); ++i)
                        if (tangents[i]) all[i] = parameters[next++];
                      return call_with(walk, call, selection.with(all));
                    });
  const std::vector<ArrayValue> floats = float_outputs(walked);
  std::vector<ArrayValue> values, results;
  if (walk.mode() == Mode::check) {
    for (const ArrayValue& output : walked.outputs)
      values.push_back(walk.unknown_array(output->type));
    for (const ArrayValue& output : floats)
      results.push_back(walk.unknown_array(output->type));
  } else {
    std::vector<ArrayValue> arguments = walked.arguments;
    for (const DerivativeLeaf& leaf : walked.leaves)
      arguments.push_back(leaf.tangent);
    values = walk.scope()->append(
        graph_of(walk, jit::jvp(walked.graph, spec_of(walk, walked)), walked),
        arguments);
    const auto first =
        values.begin() + static_cast<ptrdiff_t>(walked.outputs.size());
    results.assign(first, values.end());
    values.erase(first, values.end());
  }
  set_value_facts(walked, values);
  for (size_t i = 0; i < floats.size(); ++i)
    set_tangent_facts(walk, walked, *floats[i], *results[i]);
  return make_tuple({replace_arrays(walked.result, values),
                     tangent_tree(walked.result, results)});
}

Value call_vjp(Walk& walk, const DerivativeCall& call) {
  const PackedCall packed = unpack(walk, call);
  const WrtSelection selection = select_packed(walk, call, packed);
  const WalkedFunction walked =
      walk_function(walk, call.derivative(/*reverse=*/true), selection.leaves,
                    [&](const std::vector<ArrayValue>& parameters) {
                      return call_with(walk, call, selection.with(parameters));
                    });
  std::vector<ArrayValue> given, cotangents;
  match_tangents(walk, walked.result, packed.along, "the cotangent", given);
  for (const ArrayValue& cotangent : given)
    if (cotangent) cotangents.push_back(cotangent);
  std::vector<ArrayValue> values, results;
  if (walk.mode() == Mode::check) {
    for (const ArrayValue& output : walked.outputs)
      values.push_back(walk.unknown_array(output->type));
    for (const DerivativeLeaf& leaf : walked.leaves)
      results.push_back(walk.unknown_array(leaf.value->type));
  } else {
    jit::DerivativeSpec spec = spec_of(walk, walked);
    size_t next = 0;
    for (const ArrayValue& output : walked.outputs)
      spec.outputs.push_back(is_floating(output->type.dtype) &&
                             given[next++] != nullptr);
    std::vector<ArrayValue> arguments = walked.arguments;
    arguments.insert(arguments.end(), cotangents.begin(), cotangents.end());
    values = walk.scope()->append(
        graph_of(walk, jit::vjp(walked.graph, spec), walked), arguments);
    const auto first =
        values.begin() + static_cast<ptrdiff_t>(walked.outputs.size());
    results.assign(first, values.end());
    values.erase(first, values.end());
  }
  set_value_facts(walked, values);
  for (size_t i = 0; i < results.size(); ++i)
    set_cotangent_facts(walk, walked, walked.leaves[i], cotangents,
                        *results[i]);
  return make_tuple({replace_arrays(walked.result, values),
                     packed_value(packed, selection.trees(results))});
}

// ---- any of them

Value call_derivative(Walk& walk, DerivativeCall call) {
  switch (call.made.kind) {
    case Kind::jvp: return call_jvp(walk, call);
    case Kind::vjp: return call_vjp(walk, call);
    case Kind::checkpoint: return call_checkpoint(walk, std::move(call));
    case Kind::custom_jvp:
    case Kind::custom_vjp: return call_with_rule(walk, std::move(call));
    case Kind::grad:
    case Kind::value_and_grad:
    case Kind::jacobian:
    case Kind::hessian: break;
  }
  call.arguments = bind_arguments(walk, *call.made.inner,
                                  std::move(call.arguments), call.where);
  const bool gradient =
      call.made.kind == Kind::grad || call.made.kind == Kind::value_and_grad;
  return gradient ? call_gradient(walk, call)
                  : call_jacobian(walk, std::move(call));
}

/// At the top level: compiled as `jit` of the derivative is.
Value run_compiled(Walk& walk,
                   const std::shared_ptr<const FunctionValue>& function,
                   const DerivativeCall& call) {
  Transformed jit;
  jit.kind = Transformed::Kind::jit;
  jit.inner = function;
  jit.in_axes = jit.out_axes = NoneValue{};
  jit.where = call.where;
  jit.state =
      map_cache(walk).state(jit, [] { return std::make_shared<MapState>(); });
  const FunctionValue whole{function->name, std::move(jit)};
  const MapCallee callee{whole, std::get<Transformed>(whole.what), nullptr};
  return run_map(walk, callee, call.arguments.positional, call.arguments.named,
                 call.where);
}

}  // namespace

Derivative DerivativeCall::derivative(bool reverse) const {
  Derivative out;
  out.reverse = reverse;
  out.where = where;
  out.name = function.name;
  return out;
}

bool is_derivative(const Differentiated& function) {
  switch (function.kind) {
    case Kind::grad:
    case Kind::value_and_grad:
    case Kind::jvp:
    case Kind::vjp:
    case Kind::jacobian:
    case Kind::hessian: return true;
    case Kind::checkpoint:
    case Kind::custom_jvp:
    case Kind::custom_vjp: return false;
  }
  __builtin_unreachable();
}

Value call_differentiated(
    Walk& walk, const std::shared_ptr<const FunctionValue>& function,
    std::vector<CallArgument> positional,
    std::vector<std::pair<std::string, CallArgument>> named, Span where) {
  const auto& made = std::get<Differentiated>(function->what);
  DerivativeCall call{
      *function, made, {std::move(positional), std::move(named)}, where};
  if (!is_derivative(made) || walk.in_compiled_code())
    return call_derivative(walk, std::move(call));
  if (walk.mode() == Mode::run) return run_compiled(walk, function, call);
  const InsideMap inside(walk, nullptr, 1, false, where);
  return call_derivative(walk, std::move(call));
}

}  // namespace unisono::lang
