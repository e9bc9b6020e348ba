// Functions that say something of their own derivative: checkpoint, custom_jvp
// and custom_vjp. Outside derivatives they are functions as any other.
#include <fmt/format.h>

#include <algorithm>

#include "jit/ir/kinds.h"
#include "jit/transform/transforms.h"
#include "lang/context/derivative_facts.h"
#include "lang/derivatives/call.h"
#include "lang/maps/map_spec.h"
#include "lang/ops/array_ops.h"
#include "lang/ops/carry.h"

namespace unisono::lang {
namespace {

using Kind = Differentiated::Kind;

std::vector<ArrayValue> arrays_of(const Value& tree) {
  std::vector<ArrayValue> arrays;
  for_each_leaf(tree, [&](const Value& leaf) {
    if (const auto* array = leaf.get_if<ArrayValue>()) arrays.push_back(*array);
  });
  return arrays;
}

/// The tree without weak numbers, as results of graphs are.
Value with_types(Walk& walk, const Value& tree, Span where) {
  return map_leaves(tree, [&](const Value& leaf) -> Value {
    require_known_result(walk, leaf, where);
    const ArrayCell* array = leaf.array();
    return array && array->weak ? walk.to_array(leaf, where, "a result") : leaf;
  });
}

/// Arrays of a control node, each as known of `known`.
std::vector<ArrayValue> results_of(Walk& walk, const ArrayValue& node,
                                   const std::vector<ArrayValue>& known,
                                   Span where) {
  std::vector<ArrayValue> results;
  for (size_t i = 0; i < known.size(); ++i) {
    results.push_back(walk.add(ir::Op::project, {node},
                               ir::ProjectAttrs{static_cast<int>(i)}, where));
    copy_facts(*known[i], *results.back());
  }
  return results;
}

}  // namespace

// ---- checkpoint

Value call_checkpoint(Walk& walk, DerivativeCall call) {
  const auto body = [&] {
    return walk.call(call.made.inner, std::move(call.arguments.positional),
                     std::move(call.arguments.named), call.where);
  };
  if (walk.mode() != Mode::trace || walk.context().derivatives.empty())
    return body();
  // A loop of one turn, to which the arguments are captured as all else is.
  Value result;
  std::vector<ArrayValue> outputs;
  ir::LoopAttrs attrs;
  attrs.turns = 1;
  attrs.recomputed = true;
  const auto scope = walk.with_scope([&] {
    walk.scope()->add_parameter({DType::I64, {}}, {}, call.where);
    result = with_types(walk, body(), call.where);
    outputs = arrays_of(result);
    attrs.body =
        std::make_shared<const ir::Graph>(walk.scope()->finish(outputs));
  });
  const ArrayValue node =
      walk.add(ir::Op::loop, scope->captures(), std::move(attrs), call.where);
  std::vector<ArrayValue> results;
  for (const ArrayValue& stack : results_of(walk, node, outputs, call.where)) {
    const ArrayValue& output = outputs[results.size()];
    results.push_back(reshape(walk, stack, output->type.shape, call.where));
    copy_facts(*output, *results.back());
  }
  return replace_arrays(result, results);
}

// ---- functions with rules

namespace {

/// A call of a function with a rule. Its positional arguments are what is
/// derived by; keyword-only ones, and what it captures, are constants.
class RuleCall {
 public:
  RuleCall(Walk& walk, DerivativeCall call)
      : walk_(walk), call_(std::move(call)) {
    call_.arguments = bind_arguments(walk, *call_.made.inner,
                                     std::move(call_.arguments), call_.where);
  }

  Value run() {
    if (walk_.mode() == Mode::check) return check();
    if (walk_.mode() == Mode::run || depends().empty())
      return call(call_.made.inner, call_.arguments.positional);
    return trace();
  }

 private:
  bool is_jvp() const { return call_.made.kind == Kind::custom_jvp; }
  const std::string& rule_name() const { return call_.made.rule->name; }

  Value call(const std::shared_ptr<const FunctionValue>& function,
             std::vector<CallArgument> positional) {
    return walk_.call(function, std::move(positional), call_.arguments.named,
                      call_.where);
  }

  DerivativeArguments depends() const {
    DerivativeArguments all;
    for (const CallArgument& argument : call_.arguments.positional)
      for (const ArrayValue& array : arrays_of(argument.value))
        all = join(all, array->depends);
    return all;
  }

  /// Whether an argument depends on the tangent of a rule around the call.
  bool touches_tangent() const {
    return std::ranges::any_of(
        call_.arguments.positional, [](const CallArgument& argument) {
          return std::ranges::any_of(
              arrays_of(argument.value), [](const ArrayValue& array) {
                return array->linearity.state == Linearity::State::linear ||
                       array->linearity.state == Linearity::State::other;
              });
        });
  }

  /// The positional arguments with other arrays for theirs.
  std::vector<CallArgument> arguments_with(
      const std::vector<ArrayValue>& arrays) const {
    std::vector<CallArgument> out = call_.arguments.positional;
    size_t next = 0;
    for (CallArgument& argument : out)
      argument.value = map_leaves(argument.value, [&](const Value& leaf) {
        return leaf.array() ? Value(arrays[next++]) : leaf;
      });
    return out;
  }

  /// The first argument of the rule: the argument, or a tuple of all. One that
  /// is a tuple itself stands in another one, as for `jvp`.
  CallArgument packed(std::vector<CallArgument> arguments) const {
    if (arguments.size() == 1 && !arguments[0].value.tuple())
      return arguments[0];
    std::vector<Value> items;
    for (CallArgument& argument : arguments)
      items.push_back(std::move(argument.value));
    return {make_tuple(std::move(items)), call_.where};
  }

  /// What the rule gives: the function's value, and what goes with it.
  struct RuleResult {
    Value value;
    std::vector<ArrayValue> along;  // by float, null for `none`
  };

  /// Matches the result of the rule: `value` is the function's, `primal` what
  /// the second part goes with.
  RuleResult match(const Value& result, const Value& value,
                   const CallArgument& primal) {
    const TupleValue* pair = result.tuple();
    if (!pair || pair->items.size() != 2)
      bad_rule(result, is_jvp() ? "a pair, `(value, tangent)`"
                                : "a pair, `(value, cotangents)`");
    RuleResult out;
    out.value = with_sizes_of(walk_, value,
                              with_types(walk_, pair->items[0], call_.where));
    if (type_name(out.value) != type_name(value))
      bad_rule(out.value, type_name(value) + ", as the function does,");
    const CallArgument along{pair->items[1], call_.where};
    try {
      match_tangents(
          walk_, primal.value, along,
          fmt::format("the {} that `{}` gives",
                      is_jvp() ? "tangent" : "cotangent", rule_name()),
          out.along);
    } catch (Failure& failure) {
      failure.diagnostic.add_note(call_.made.where, "the rule is given here");
      throw;
    }
    return out;
  }

  [[noreturn]] void bad_rule(const Value& seen, const std::string& expected) {
    walk_.fail(diagnostic(Code::bad_rule, call_.where, rule_name(),
                          call_.function.name, type_name(seen), expected)
                   .add_note(call_.made.where, "the rule is given here"));
  }

  // ---- check mode

  Value check() {
    if (depends().empty()) {
      Value value = call(call_.made.inner, call_.arguments.positional);
      // A rule may call its own function, for the value and for derivatives of
      // higher order: it is checked where something else calls that.
      if (!walk_.context().in_linear_rule)
        check_rule(with_types(walk_, value, call_.where), nullptr);
      return value;
    }
    const Derivative* around = innermost(walk_.context(), depends());
    if (around && !is_jvp() && !around->reverse)
      walk_.fail(diagnostic(Code::forward_custom_vjp, call_.where, around->name,
                            call_.function.name)
                     .add_note(around->where, "the derivative is taken here")
                     .set_help("give it a `custom_jvp`, which serves both "
                               "directions"));
    // The function itself is not derived, and the rule by no more than what is
    // around the innermost derivative.
    const Value value = with_types(
        walk_, call(call_.made.inner, plain_arguments({})), call_.where);
    const RuleResult rule = check_rule(value, around);
    return replace_arrays(
        value, known_results(value, rule, [&](const ArrayValue& array) {
          return walk_.unknown_array(array->type);
        }));
  }

  /// The call's results, each made by `make` of the function's: what is known
  /// of them is what is known of the function's and of the rule's.
  template <class Make>
  std::vector<ArrayValue> known_results(const Value& value,
                                        const RuleResult& rule, Make make) {
    const std::vector<ArrayValue> plain = arrays_of(value),
                                  derived = arrays_of(rule.value);
    DerivativeArguments all = depends();
    AxisSet varies;
    Span varies_from;
    for (const ArrayValue& along : rule.along) {
      if (!along) continue;
      all = join(all, along->depends);
      varies = join(varies, along->varies);
      if (!varies_from) varies_from = along->varies_from;
    }
    std::vector<ArrayValue> results;
    for (size_t i = 0; i < plain.size(); ++i) {
      const ArrayValue result = make(plain[i]);
      copy_facts(*plain[i], *result);
      result->varies = join(result->varies, derived[i]->varies);
      if (!result->varies_from) result->varies_from = derived[i]->varies_from;
      result->linearity = {};
      if (touches_tangent())
        result->linearity = {Linearity::State::other, call_.where};
      if (is_floating(result->type.dtype)) {
        result->depends = join(all, derived[i]->depends);
        tell_derivatives(walk_.context(), *result);
        // What goes along with it varies perhaps more.
        ArrayCell along = *result;
        along.varies = join(along.varies, varies);
        along.varies_from = varies_from;
        tell_derivatives(walk_.context(), along);
      }
      results.push_back(result);
    }
    return results;
  }

  /// What of the arguments' arrays are weak numbers has a type in a derivative.
  std::vector<ArrayValue> operands() {
    std::vector<ArrayValue> arrays;
    for (const CallArgument& argument : call_.arguments.positional)
      for (const ArrayValue& array : arrays_of(argument.value))
        arrays.push_back(walk_.to_array(array, argument.where, "an argument"));
    return arrays;
  }

  /// The arguments, which depend on no more than `depends`.
  std::vector<CallArgument> plain_arguments(
      const DerivativeArguments& depends) {
    std::vector<ArrayValue> arrays;
    for (const ArrayValue& array : operands()) {
      const ArrayValue plain = std::make_shared<ArrayCell>(*array);
      plain->depends = kept(array->depends, depends);
      plain->linearity = {};
      arrays.push_back(plain);
    }
    return arguments_with(arrays);
  }

  static DerivativeArguments kept(const DerivativeArguments& all,
                                  const DerivativeArguments& which) {
    DerivativeArguments out;
    std::ranges::set_intersection(all, which, std::back_inserter(out));
    return out;
  }

  /// On what the rule depends: what the innermost derivative derives by is a
  /// constant in it.
  DerivativeArguments outer_depends(const Derivative* around) const {
    DerivativeArguments outer = depends();
    if (around)
      std::erase_if(outer,
                    [&](uint32_t argument) { return around->has(argument); });
    return outer;
  }

  RuleResult check_rule(const Value& value, const Derivative* around) {
    const DerivativeArguments outer = outer_depends(around);
    const CallArgument args = packed(plain_arguments(outer));
    const Value& primal = is_jvp() ? args.value : value;
    const Value along = map_leaves(primal, [&](const Value& leaf) -> Value {
      if (!is_float_leaf(leaf)) return NoneValue{};
      const ArrayValue tangent = walk_.unknown_array(leaf.array()->type);
      tangent->varies = leaf.array()->varies;
      tangent->varies_from = leaf.array()->varies_from;
      tangent->depends = is_jvp() ? depends() : outer;
      tangent->linearity = {Linearity::State::linear};
      return tangent;
    });
    ContextScope context(walk_);
    context->in_linear_rule = true;
    const RuleResult result =
        match(call(call_.made.rule, {args, {along, call_.where}}), value,
              is_jvp() ? CallArgument{value, call_.where} : args);
    check_linear(result);
    return result;
  }

  /// The value depends on nothing that goes along, and what goes along with it
  /// on nothing else alone. A tangent is linear; a cotangent may be clipped.
  void check_linear(const RuleResult& result) {
    using State = Linearity::State;
    const std::string_view along = is_jvp() ? "tangent" : "cotangent";
    for (const ArrayValue& value : arrays_of(result.value))
      if (value->linearity.state == State::linear ||
          value->linearity.state == State::other)
        not_linear(fmt::format("its value depends on the {}", along),
                   value->linearity.broken_by);
    for (const ArrayValue& given : result.along) {
      if (!given) continue;
      const Linearity& found = given->linearity;
      if (found.state == State::none && !is_zero(*given))
        not_linear(fmt::format("a {} depends on none", along), {});
      if (is_jvp() && found.state == State::other)
        not_linear(found.broken_by ? fmt::format("`{}`", found.broken_by.text())
                                   : "it depends on a condition",
                   found.broken_by);
    }
  }

  [[noreturn]] void not_linear(const std::string& why, Span broken_by) {
    Diagnostic error =
        diagnostic(Code::rule_not_linear, broken_by ? broken_by : call_.where,
                   rule_name(), why);
    error.add_note(call_.made.where, "the rule is given here");
    error.set_help(
        is_jvp()
            ? "a tangent is scaled and added: products have one factor "
              "that depends on it, sums have such terms only"
            : "each cotangent that a rule gives comes from the one that it "
              "gets; `none` stands for zeros");
    walk_.fail(std::move(error));
  }

  // ---- trace mode

  Value trace() {
    const Derivative* around = innermost(walk_.context(), depends());
    const std::vector<ArrayValue> arguments = operands();
    // The function, which is not derived.
    Value value;
    std::vector<ArrayValue> outputs;
    const auto function = walk_.with_scope([&] {
      value =
          with_types(walk_, call(call_.made.inner, parameters(arguments, {})),
                     call_.where);
      outputs = arrays_of(value);
      import(outputs);
    });
    // The rule: along is what goes with the arguments, or with the results.
    RuleResult result;
    std::vector<ArrayValue> along;
    const auto rule = walk_.with_scope([&] {
      const CallArgument args =
          packed(parameters(arguments, outer_depends(around)));
      along = add_along(is_jvp() ? arguments : outputs,
                        is_jvp() ? depends() : outer_depends(around));
      const Value& primal = is_jvp() ? args.value : value;
      result = match(call(call_.made.rule,
                          {args, {tangent_tree(primal, along), call_.where}}),
                     value, is_jvp() ? CallArgument{value, call_.where} : args);
      with_zeros(result, is_jvp() ? outputs : arguments);
      import(arrays_of(result.value));
      import(result.along);
    });
    const ArrayValue node =
        add_call(arguments, *function, outputs, *rule, result, along.size());
    size_t next = 0;
    return replace_arrays(
        value, known_results(value, result, [&](const ArrayValue&) {
          return walk_.add(ir::Op::project, {node},
                           ir::ProjectAttrs{static_cast<int>(next++)},
                           call_.where);
        }));
  }

  /// New parameters of the graph in place of the arguments' arrays.
  std::vector<CallArgument> parameters(const std::vector<ArrayValue>& arrays,
                                       const DerivativeArguments& depends) {
    std::vector<ArrayValue> parameters;
    for (const ArrayValue& array : arrays) {
      parameters.push_back(walk_.scope()->add_parameter(
          array->type, array->varies, array->varies_from));
      parameters.back()->depends = kept(array->depends, depends);
    }
    return arguments_with(parameters);
  }

  /// Parameters for what goes with the floats among the arrays.
  std::vector<ArrayValue> add_along(const std::vector<ArrayValue>& arrays,
                                    const DerivativeArguments& depends) {
    std::vector<ArrayValue> along;
    for (const ArrayValue& array : arrays) {
      if (!is_floating(array->type.dtype)) continue;
      along.push_back(walk_.scope()->add_parameter(array->type, array->varies,
                                                   array->varies_from));
      along.back()->depends = depends;
    }
    return along;
  }

  void import(const std::vector<ArrayValue>& arrays) {
    for (const ArrayValue& array : arrays) walk_.scope()->import(array);
  }

  ArrayValue zeros(const ir::Type& type) {
    return walk_.constant_array(
        type, std::vector<uint8_t>(byte_size(type.dtype)), call_.where);
  }

  /// Zeros where the rule gives `none`.
  void with_zeros(RuleResult& result, const std::vector<ArrayValue>& primals) {
    size_t next = 0;
    for (const ArrayValue& primal : primals) {
      if (!is_floating(primal->type.dtype)) continue;
      ArrayValue& along = result.along[next++];
      if (!along) along = zeros(primal->type);
    }
  }

  /// The node: both graphs take the arguments, then what either captures.
  ArrayValue add_call(const std::vector<ArrayValue>& arguments,
                      GraphScope& function,
                      const std::vector<ArrayValue>& outputs, GraphScope& rule,
                      const RuleResult& result, size_t along) {
    std::vector<ArrayValue> captures = function.captures();
    for (const ArrayValue& capture : rule.captures())
      if (std::ranges::find(captures, capture) == captures.end())
        captures.push_back(capture);
    std::vector<ArrayValue> given = arrays_of(result.value);
    given.insert(given.end(), result.along.begin(), result.along.end());
    if (!is_jvp())  // captures are constants
      for (const ArrayValue& capture : captures)
        if (is_floating(capture->type.dtype))
          given.push_back(zeros(capture->type));
    ir::CallAttrs attrs;
    attrs.kind = is_jvp() ? ir::CallAttrs::Rule::jvp : ir::CallAttrs::Rule::vjp;
    attrs.graph =
        std::make_shared<const ir::Graph>(function.finish(outputs, captures));
    attrs.rule = std::make_shared<const ir::Graph>(
        in_order(rule.finish(given, captures), arguments.size(), along));
    std::vector<ArrayValue> operands = arguments;
    operands.insert(operands.end(), captures.begin(), captures.end());
    return walk_.add(ir::Op::call, operands, std::move(attrs), call_.where);
  }

  /// A rule's graph has its parameters first, `arguments` and `along`, then
  /// what it captures: what goes along comes last, for a jvp with tangents of
  /// what is captured, which nobody reads.
  ir::Graph in_order(const ir::Graph& graph, size_t arguments, size_t along) {
    ir::Graph out;
    std::vector<ir::NodeId> inputs(graph.inputs.size());
    const auto add = [&](size_t i) {
      inputs[i] = out.add_input(graph.type(graph.inputs[i]));
    };
    for (size_t i = 0; i < arguments; ++i) add(i);
    for (size_t i = arguments + along; i < inputs.size(); ++i) add(i);
    for (size_t i = arguments; i < arguments + along; ++i) add(i);
    if (is_jvp())
      for (size_t i = arguments + along; i < inputs.size(); ++i)
        if (const ir::Type& type = graph.type(graph.inputs[i]);
            is_floating(type.dtype))
          out.add_input(type);
    out.outputs = jit::inline_graph(out, graph, inputs);
    return out;
  }

  Walk& walk_;
  DerivativeCall call_;
};

}  // namespace

Value call_with_rule(Walk& walk, DerivativeCall call) {
  return RuleCall(walk, std::move(call)).run();
}

}  // namespace unisono::lang
