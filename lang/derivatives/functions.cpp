// The builtins that make functions of functions, and stop_gradient.
#include <fmt/format.h>

#include "lang/context/call_of.h"
#include "lang/derivatives/arguments.h"
#include "lang/ops/builtin_arguments.h"

namespace unisono::lang {
namespace {

using Kind = Differentiated::Kind;

std::shared_ptr<const FunctionValue> function_argument(Argument f) {
  const auto* function =
      f.value().get_if<std::shared_ptr<const FunctionValue>>();
  if (function) return *function;
  BuiltinCall& call = f.call();
  const std::string_view name = call.builtin.name;
  Diagnostic error =
      diagnostic(Code::not_a_function, f.where(), name, type_name(f.value()));
  error.set_help(f.value().array()
                     ? fmt::format("`{}` takes the function, not what it "
                                   "gives: `{}(f)(x)`",
                                   name, name)
                     : "give it a function: `f`, or `fn(x) => 2 * x`");
  call.walk.fail(std::move(error));
}

DerivativeOf wrt_item(Argument wrt, const Value& item) {
  if (const auto* position = item.get_if<IntValue>();
      position && position->value.is_constant())
    return position->value.value();
  if (const auto* name = item.get_if<StrValue>(); name && name->value)
    return *name->value;
  BuiltinCall& call = wrt.call();
  Diagnostic error =
      diagnostic(Code::bad_wrt, wrt.where(), call.builtin.name,
                 fmt::format("it must be a position, a name or a tuple of "
                             "them, not {}",
                             type_name(item)));
  error.set_help(item.array() && !item.array()->literal
                     ? fmt::format("the arguments of f come behind: `{}(f)(x)`",
                                   call.builtin.name)
                     : "as in `wrt=0`, `wrt=\"w\"`, `wrt=(0, 1)`");
  call.walk.fail(std::move(error));
}

Differentiated made_of(Kind kind, Argument f) {
  Differentiated made;
  made.kind = kind;
  made.inner = function_argument(f);
  made.where = f.call().where;
  return made;
}

void read_wrt(Argument wrt, Differentiated& made) {
  Walk& walk = wrt.call().walk;
  made.wrt = {int64_t{0}};
  if (wrt.written()) {
    made.wrt_span = wrt.where();
    made.wrt.clear();
    const TupleValue* items = wrt.value().tuple();
    made.wrt_is_tuple = items != nullptr;
    if (items)
      for (const Value& item : items->items)
        made.wrt.push_back(wrt_item(wrt, item));
    else
      made.wrt.push_back(wrt_item(wrt, wrt.value()));
    if (made.wrt.empty())
      walk.fail(diagnostic(Code::bad_wrt, wrt.where(), wrt.call().builtin.name,
                           "it names no argument"));
  }
  check_wrt(walk, *made.inner, made, wrt.call().builtin.name);
}

Value function_of(BuiltinCall& call, Differentiated made) {
  const bool named = made.rule == nullptr && made.kind != Kind::checkpoint;
  std::string name =
      named ? fmt::format("{}({})", call.builtin.name, made.inner->name)
            : made.inner->name;
  return std::shared_ptr<const FunctionValue>(std::make_shared<FunctionValue>(
      FunctionValue{std::move(name), std::move(made)}));
}

template <class Call>
Value make_by_wrt(Call& call, Kind kind) {
  Differentiated made = made_of(kind, call["f"]);
  read_wrt(call["wrt"], made);
  return function_of(call, std::move(made));
}

template <class Call>
Value make_with_rule(Call& call, Kind kind) {
  Differentiated made = made_of(kind, call["f"]);
  made.rule = function_argument(call["rule"]);
  return function_of(call, std::move(made));
}

}  // namespace

Value builtin_grad(CallOf<"grad">& call) {
  return make_by_wrt(call, Kind::grad);
}

Value builtin_value_and_grad(CallOf<"value_and_grad">& call) {
  Differentiated made = made_of(Kind::value_and_grad, call["f"]);
  read_wrt(call["wrt"], made);
  made.aux = bool_argument_or(call["aux"], false);
  return function_of(call, std::move(made));
}

Value builtin_jvp(CallOf<"jvp">& call) {
  return function_of(call, made_of(Kind::jvp, call["f"]));
}

Value builtin_vjp(CallOf<"vjp">& call) {
  return function_of(call, made_of(Kind::vjp, call["f"]));
}

Value builtin_jacobian(CallOf<"jacobian">& call) {
  return make_by_wrt(call, Kind::jacobian);
}

Value builtin_hessian(CallOf<"hessian">& call) {
  return make_by_wrt(call, Kind::hessian);
}

Value builtin_checkpoint(CallOf<"checkpoint">& call) {
  return function_of(call, made_of(Kind::checkpoint, call["f"]));
}

Value builtin_custom_jvp(CallOf<"custom_jvp">& call) {
  return make_with_rule(call, Kind::custom_jvp);
}

Value builtin_custom_vjp(CallOf<"custom_vjp">& call) {
  return make_with_rule(call, Kind::custom_vjp);
}

Value builtin_stop_gradient(CallOf<"stop_gradient">& call) {
  return map_leaves(call["x"].value(), [&](const Value& leaf) -> Value {
    if (!is_float_leaf(leaf) || leaf.array()->weak) return leaf;
    return call.walk.add(ir::Op::stop_gradient, {*leaf.get_if<ArrayValue>()},
                         ir::NoAttrs{}, call.where);
  });
}

}  // namespace unisono::lang
