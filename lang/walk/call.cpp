// Calls of functions, and definitions.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "lang/context/arguments.h"
#include "lang/context/function.h"
#include "lang/derivatives/derivatives.h"
#include "lang/maps/maps.h"
#include "lang/ops/array_ops.h"
#include "lang/ops/carry.h"
#include "lang/sizes/known_sizes.h"
#include "lang/source/stdlib.h"
#include "lang/walk/types.h"

namespace unisono::lang {

FunctionSyntax syntax_of(const Closure& closure) {
  if (closure.definition)
    return {&closure.definition->function, closure.definition->name.span};
  return {&closure.lambda->function, closure.lambda->span};
}

namespace {

/// A parameter's name, or its pattern.
std::string_view name_of(const Param& param) {
  return param.pattern.kind == Pattern::Kind::name
             ? std::string_view(param.pattern.name.text)
             : param.pattern.span.text();
}

std::vector<Parameter> parameters_of_syntax(const Function& function) {
  std::vector<Parameter> out;
  for (const Param& param : function.params) {
    Parameter p;
    p.name = name_of(param);
    p.has_default = param.default_value != nullptr;
    p.keyword_only = param.keyword_only;
    out.push_back(p);
  }
  return out;
}

/// `x, *, l2 = 0.0`: what stands between the brackets.
std::string_view signature_text(const Function& function) {
  std::string_view text = function.params_span.text();
  if (text.starts_with('(')) text.remove_prefix(1);
  if (text.ends_with(')')) text.remove_suffix(1);
  return text;
}

std::vector<DType> representatives(const std::string& restriction) {
  if (restriction == "float") return {DType::F32, DType::F64};
  if (restriction == "integer") return {DType::I32, DType::U8};
  if (restriction == "any") return {DType::F32, DType::I32, DType::Bool};
  return {DType::F32, DType::I32};
}

/// What a function may give whose result type is not written: the type of its
/// parameter, if it has one.
std::string_view result_example(const Function& function) {
  const Expr* type =
      function.params.size() == 1 ? function.params[0].type.get() : nullptr;
  return type ? type->span.text() : "f32";
}

// ---- keys of calls ---------------------------------------------------------

void append_dim(std::string& key, const ir::Dim& dim) {
  key += dim.to_string();
  for (uint32_t id : dim.symbols()) key += fmt::format("#{}", id);
}

void append_value(std::string& key, const Value& value);

struct AppendValue {
  std::string& key;
  void operator()(const NoneValue&) { key += "none"; }
  void operator()(const UnsetValue&) { key += "unset"; }
  void operator()(const ArrayValue& a) {
    key += unisono::name(a->type.dtype);
    for (const ir::Dim& size : a->type.shape) {
      key += ',';
      append_dim(key, size);
    }
    if (a->weak) key += '~';
    // What a literal says may decide whether it fits.
    if (a->weak && a->constant)
      for (uint8_t byte : *a->constant) key += fmt::format("{:02x}", byte);
    for (ir::AxisId axis : a->varies) key += fmt::format("^{}", axis);
    for (uint32_t argument : a->depends) key += fmt::format("'{}", argument);
    if (a->linearity.state != Linearity::State::none)
      key += fmt::format("\\{}", static_cast<int>(a->linearity.state));
  }
  void operator()(const IntValue& i) { append_dim(key += 'i', i.value); }
  void operator()(const BoolValue& b) {
    key += b.value ? (*b.value ? "true" : "false") : "bool";
  }
  void operator()(const StrValue& s) {
    key += s.value ? fmt::format("\"{}:{}", s.value->size(), *s.value) : "str";
    if (s.deferred) key += '+';
  }
  void operator()(const TypeValue& t) {
    auto array = std::make_shared<ArrayCell>();
    array->type = t.type;
    (*this)(array);
    key += 't';
  }
  void operator()(const std::shared_ptr<const TupleValue>& t) {
    key += '(';
    for (const Value& item : t->items) append_value(key, item);
    key += ')';
  }
  void operator()(const std::shared_ptr<const RecordValue>& r) {
    key += '(';
    for (const auto& [name, item] : r->fields) {
      key += name + '=';
      append_value(key, item);
    }
    key += ')';
  }
  void operator()(const std::shared_ptr<const FunctionValue>& f) {
    if (const auto* closure = std::get_if<Closure>(&f->what)) {
      key += fmt::format("f{}@{}", fmt::ptr(syntax_of(*closure).function),
                         fmt::ptr(closure->environment.get()));
      append_versions(*closure);
    } else {
      key += fmt::format("f{}", fmt::ptr(f.get()));
    }
  }
  void append_versions(const Closure& closure) {
    uint64_t version = 0;
    for (const Environment* env = closure.environment.get(); env;
         env = env->parent.get())
      version += env->version;
    key += fmt::format("v{}", version);
  }
  void operator()(const RangeValue& r) {
    key += 'r';
    for (const Value& part : *r.start_stop_step) append_value(key, part);
  }
  void operator()(const DeviceValue& d) { key += fmt::format("d{}", d.index); }
  void operator()(const AxisValue& a) { key += fmt::format("a{}", a.axis->id); }
  void operator()(const SplitValue& s) { key += fmt::format("s{}", s.axis); }
  void operator()(const ModuleValue& m) {
    key += fmt::format("m{}", fmt::ptr(m.environment.get()));
  }
  void operator()(const ManyValue& m) { append_value(key += '*', *m.item); }
  void operator()(const IterableValue& i) {
    key += fmt::format("I{}", fmt::ptr(i.iterable.get()));
  }
  void operator()(const ProgressValue& p) {
    key += fmt::format("p{}", fmt::ptr(p.show.get()));
    append_value(key, *p.over);
  }
  void operator()(const TypeAliasValue& t) {
    key += fmt::format("T{}", fmt::ptr(t.definition));
  }
};

void append_value(std::string& key, const Value& value) {
  std::visit(AppendValue{key}, value.any);
  key += ';';
}

}  // namespace

// ---- definitions -----------------------------------------------------------

/// It is about an open size, which running tells; or a size must be a number,
/// as in `unrolled(n)`: a definition cannot tell, but calls do.
bool Walker::is_open(const Failure& failure) const {
  return failure.open || (walk_.context().checking_definition &&
                          failure.diagnostic.code == Code::argument_not_known);
}

bool Walker::can_be_checked(const Function& function) {
  return std::all_of(
      function.params.begin(), function.params.end(), [](const Param& param) {
        const auto* name = param.type ? as<NameExpr>(*param.type) : nullptr;
        return param.type && !(name && name->text == "type");
      });
}

void Walker::def_stmt(const DefStmt& def, const Env& env) {
  auto function = std::make_shared<const FunctionValue>(FunctionValue{
      def.name.text, Closure{&def, nullptr, env, host_number(def)}});
  const bool trusted = is_in_stdlib(def.span);
  if (checking() && !trusted && can_be_checked(def.function)) {
    const auto key = std::make_pair(static_cast<const void*>(&def.function),
                                    static_cast<const Environment*>(env.get()));
    s_.definitions[key] = {function, Walk::State::Definition::waiting};
    s_.waiting.push_back(key);
  }
  define(env, def.name.text, function, false, def.name.span);
  Value value = function;
  for (size_t i = def.decorators.size(); i-- > 0;) {
    const Expr& decorator = *def.decorators[i];
    std::vector<CallArgument> positional{{value, def.name.span}};
    Named named;
    if (const auto* call = as<Call>(decorator)) {
      const CallArgument callee = argument(*call->callee, env);
      arguments(*call, callee.value, env, positional, named);
      value = call_value(callee, std::move(positional), std::move(named),
                         decorator.span);
    } else {
      value = call_value(argument(decorator, env), std::move(positional), {},
                         decorator.span);
    }
  }
  if (!def.decorators.empty())
    define(env, def.name.text, value, false, def.name.span);
}

bool Walker::check_waiting_definitions(size_t from) {
  bool ok = true;
  for (size_t i = from; i < s_.waiting.size(); ++i)
    ok &= check_definition(s_.waiting[i]);
  s_.waiting.resize(std::min(from, s_.waiting.size()));
  return ok;
}

bool Walker::check_definition(DefinitionKey key) {
  using Definition = Walk::State::Definition;
  auto& waiting = s_.definitions.at(key);
  if (waiting.state != Definition::waiting)
    return waiting.state != Definition::failed;
  waiting.state = Definition::active;
  const std::shared_ptr<const FunctionValue> function = waiting.function;
  const auto& closure = std::get<Closure>(function->what);
  const Function& syntax = *syntax_of(closure).function;

  // Who calls it is not known; only what lies around the definition is.
  const bool top = closure.environment->call == 0;
  ContextScope context(walk_);
  context->checking_definition = true;
  if (top) {
    context->mapped_axes.clear();
    context->varying_conditions.clear();
    context->compiled = nullptr;
  }
  bool ok = true;
  try {
    std::map<std::string, std::string> generics;
    TypeMatcher probe(*this, inner(closure.environment),
                      TypeMatcher::Names::bind);
    probe.declare(syntax.type_params);
    for (const Param& param : syntax.params)
      probe.collect_generics(*param.type, generics);
    std::vector<std::map<std::string, DType>> choices(1);
    for (const auto& [name, restriction] : generics) {
      std::vector<std::map<std::string, DType>> more;
      for (const auto& choice : choices)
        for (DType dtype : representatives(restriction)) {
          more.push_back(choice);
          more.back()[name] = dtype;
        }
      if (more.size() <= 16) choices = std::move(more);
    }
    for (const auto& choice : choices) {
      try {
        check_definition_with(function, choice);
      } catch (const Failure& failure) {
        if (!is_open(failure)) throw;
        auto& question = s_.definitions.at(key).open;
        if (!question) question = failure.diagnostic;
      }
    }
  } catch (...) {
    const Failure failure = caught(syntax_of(closure).name);
    if (!failure.reported) report(failure.diagnostic);
    ok = false;
  }
  s_.definitions.at(key).state = ok ? Definition::done : Definition::failed;
  return ok;
}

void Walker::check_definition_with(
    const std::shared_ptr<const FunctionValue>& function,
    const std::map<std::string, DType>& generics) {
  const auto& closure = std::get<Closure>(function->what);
  const Function& syntax = *syntax_of(closure).function;
  const Env env = inner(closure.environment);
  env->call = ++s_.last_call;
  TypeMatcher matcher(*this, env, TypeMatcher::Names::bind);
  matcher.declare(syntax.type_params);
  for (const auto& [name, dtype] : generics) matcher.choose(name, dtype);
  for (const Param& param : syntax.params) {
    Value any = matcher.any_value(*param.type);
    // A size that is computed from it is told by the parameter's name.
    if (any.is<IntValue>() && param.pattern.kind == Pattern::Kind::name)
      any = IntValue{
          ir::Dim::symbol(walk_.new_symbol_id(), param.pattern.name.text)};
    matcher.check_parameter(param);
    bind_pattern(param.pattern, any, env, false, param.span);
    if (!param.default_value) continue;
    const CallArgument value = argument(*param.default_value, env);
    TypeMatcher own(*this, inner(env), TypeMatcher::Names::bind);
    own.declare(syntax.type_params);
    own.match(*param.type, value.value, value.where,
              fmt::format("the default of `{}`", param.pattern.span.text()));
  }
  try {
    checked_body({function.get(), &syntax, env, syntax_of(closure).name,
                  /*is_definition=*/true, generics});
  } catch (...) {
    leave_frame();
  }
}

// ---- calls -----------------------------------------------------------------

Value Walk::call(const Value& function, std::vector<CallArgument> positional,
                 std::vector<std::pair<std::string, CallArgument>> named,
                 Span where) {
  return Walker(*this).call_value({function, where}, std::move(positional),
                                  std::move(named), where);
}

Value Walker::call_value(const CallArgument& callee,
                         std::vector<CallArgument> positional, Named named,
                         Span where) {
  if (const auto* function =
          callee.value.get_if<std::shared_ptr<const FunctionValue>>())
    return call(*function, std::move(positional), std::move(named), where);
  if (const auto* type = callee.value.get_if<TypeValue>();
      type && positional.size() == 1 && named.empty())
    return convert(walk_, positional[0], type->type, where);
  if (const auto* type = callee.value.get_if<TypeValue>())
    walk_.fail(diagnostic(Code::too_many_arguments, where,
                          type->type.to_string(), "one argument",
                          positional.size() + named.size())
                   .set_help("it converts a number or an array: `f32(x)`"));
  walk_.fail(diagnostic(Code::not_callable, callee.where,
                        fmt::format("{}", type_name(callee.value)))
                 .set_label(type_name(callee.value)));
}

Value Walker::call(const std::shared_ptr<const FunctionValue>& function,
                   std::vector<CallArgument> positional, Named named,
                   Span where) {
  enter(where);
  if (const auto* builtin = std::get_if<const Builtin*>(&function->what))
    return call_builtin(walk_, **builtin, std::move(positional),
                        std::move(named), where);
  if (s_.attempt) forbid_as_code(*function, where);
  if (std::holds_alternative<Transformed>(function->what))
    return call_transformed(walk_, function, std::move(positional),
                            std::move(named), where);
  if (std::holds_alternative<Differentiated>(function->what))
    return call_differentiated(walk_, function, std::move(positional),
                               std::move(named), where);
  if (const auto* declared = std::get_if<DeclaredFunction>(&function->what))
    return call_declared(*function, *declared, positional, named, where);
  Saved<int> depth(s_.call_depth, s_.call_depth + 1);
  return call_closure(function, std::move(positional), std::move(named), where);
}

Value Walker::call_declared(const FunctionValue& function,
                            const DeclaredFunction& declared,
                            const std::vector<CallArgument>& positional,
                            const Named& named, Span where) {
  const FunctionType& type = *declared.type;
  if (!named.empty() || positional.size() != type.params.size())
    walk_.fail(diagnostic(
        Code::function_mismatch, where, "this call", function.name,
        fmt::format("it takes {} positional argument{}", type.params.size(),
                    type.params.size() == 1 ? "" : "s")));
  TypeMatcher matcher(*this, inner(declared.environment),
                      TypeMatcher::Names::extend);
  for (size_t i = 0; i < positional.size(); ++i)
    matcher.match(*type.params[i], positional[i].value, positional[i].where,
                  fmt::format("argument {}", i + 1));
  matcher.finish();
  return matcher.any_value(*type.result);
}

namespace {
/// Numbers of which only the type is known: else each call of a recursion
/// would be another one to check.
Value forget_literals(Walk& walk, const Value& value) {
  return map_leaves(value, [&](const Value& leaf) -> Value {
    const ArrayCell* array = leaf.array();
    if (!array || !array->weak || !array->constant) return leaf;
    return walk.unknown_number(is_floating(array->type.dtype));
  });
}
}  // namespace

Env Walker::bind_arguments(const FunctionValue& function,
                           std::vector<CallArgument> positional, Named named,
                           Span where, std::vector<CallArgument>* values) {
  const auto& closure = std::get<Closure>(function.what);
  const FunctionSyntax syntax = syntax_of(closure);
  const Function& f = *syntax.function;
  // Most calls have an argument for each parameter, in their order.
  const bool plain = named.empty() && positional.size() == f.params.size() &&
                     std::ranges::none_of(f.params, &Param::keyword_only);
  MatchedArguments matched;
  if (!plain)
    matched = match_arguments(walk_, function.name, parameters_of_syntax(f),
                              signature_text(f), std::move(positional),
                              std::move(named), where, syntax.name);

  const bool recursive =
      checking() && std::ranges::any_of(s_.frames, [&](const CallFrame& frame) {
        return frame.syntax == &f;
      });
  const Env env = inner(closure.environment);
  env->call = ++s_.last_call;
  std::optional<TypeMatcher> matcher;  // if it is needed
  const auto matching = [&]() -> TypeMatcher& {
    if (!matcher) {
      matcher.emplace(*this, env, TypeMatcher::Names::bind);
      matcher->declare(f.type_params);
    }
    return *matcher;
  };
  if (!f.type_params.empty()) matching();
  for (size_t i = 0; i < f.params.size(); ++i) {
    const Param& param = f.params[i];
    CallArgument value = plain ? std::move(positional[i])
                         : matched.arguments[i]
                             ? std::move(*matched.arguments[i])
                             : argument(*param.default_value, env);
    if (param.type && !is_plainly(*param.type, value.value))
      value.value =
          matching().match(*param.type, value.value, value.where,
                           fmt::format("argument `{}`", name_of(param)));
    else if (!param.type && recursive)
      value.value = forget_literals(walk_, value.value);
    if (matcher) matcher->check_parameter(param);
    bind_pattern(param.pattern, value.value, env, false, value.where);
    if (values) values->push_back(std::move(value));
  }
  if (matcher) matcher->finish();
  return env;
}

std::vector<CallArgument> Walk::bind(
    const FunctionValue& closure, std::vector<CallArgument> positional,
    std::vector<std::pair<std::string, CallArgument>> named, Span where) {
  std::vector<CallArgument> values;
  Walker(*this).bind_arguments(closure, std::move(positional), std::move(named),
                               where, &values);
  return values;
}

Value Walker::function_body(const FunctionValue& function,
                            const Function& syntax, const Env& env) {
  if (const auto& closure = std::get<Closure>(function.what); closure.host >= 0)
    return call_host(closure, env, s_.frames.back().where);
  Value result = block(*syntax.body, env, false, true);
  if (!syntax.result || is_plainly(*syntax.result, result)) return result;
  TypeMatcher matcher(*this, env, TypeMatcher::Names::known);
  Span where = syntax.body->span;
  if (const auto* body = as<Block>(*syntax.body); body && body->value())
    where = body->value()->span;
  for (const auto& [begin, returned] : s_.frames.back().returned)
    if (type_name(returned.value) == type_name(result)) {
      where = returned.expression->span;
      break;
    }
  result = matcher.match(*syntax.result, result, where,
                         fmt::format("the result of `{}`", function.name));
  matcher.finish();
  return result;
}

void Walker::leave_frame() {
  Failure failure = caught(s_.frames.back().where);
  // The calls around are known here, and no more where it is caught.
  failure.open = is_open(failure);
  if (!failure.reported && !failure.open) report(failure.diagnostic);
  s_.frames.pop_back();
  failure.reported = !failure.open;
  s_.asked_result = nullptr;
  throw failure;
}

Value Walker::call_closure(const std::shared_ptr<const FunctionValue>& function,
                           std::vector<CallArgument> positional, Named named,
                           Span where) {
  bool again = false;
  if (named.empty() && may_run_code())
    if (auto result = call_code(function, positional, where, again))
      return *std::move(result);
  const Saved<bool> walks_again(s_.walks_again, s_.walks_again || again);
  return walk_closure(function, std::move(positional), std::move(named), where);
}

Value Walker::walk_closure(const std::shared_ptr<const FunctionValue>& function,
                           std::vector<CallArgument> positional, Named named,
                           Span where) {
  const auto& closure = std::get<Closure>(function->what);
  const Function& syntax = *syntax_of(closure).function;
  const size_t functions = s_.function_environments.size();
  const Env env =
      bind_arguments(*function, std::move(positional), std::move(named), where);
  if (checking()) return checked_call(function, syntax, env, where);

  if (walk_.machine().compile_only) s_.walked.insert(&syntax);
  s_.frames.push_back({function.get(), &syntax, env, where, false, {}});
  Value result;
  try {
    result = function_body(*function, syntax, env);
  } catch (...) {
    leave_frame();
  }
  s_.frames.pop_back();
  if (!has_function(result)) forget_functions(functions);
  return result;
}

void Walker::forget_functions(size_t from) {
  for (size_t i = from; i < s_.function_environments.size(); ++i)
    if (Env env = s_.function_environments[i].lock()) env->names.clear();
  s_.function_environments.resize(from);
}

namespace {
void append_pattern(std::string& key, const Pattern& pattern, const Env& env) {
  if (pattern.kind == Pattern::Kind::name)
    append_value(key, env->names.at(pattern.name.text).value);
  for (const Pattern& item : pattern.items) append_pattern(key, item, env);
}
}  // namespace

std::string Walker::call_key(
    const std::shared_ptr<const FunctionValue>& function,
    const Function& syntax, const Env& env) {
  const Context& context = walk_.context();
  std::string key;
  append_value(key, function);
  for (const Param& param : syntax.params)
    append_pattern(key, param.pattern, env);
  for (const MappedAxis& axis : context.mapped_axes) {
    key += fmt::format("|{}:{}", axis.axis->id, axis.over_devices);
    append_dim(key, axis.size);
  }
  for (const auto& condition : context.varying_conditions)
    for (ir::AxisId axis : condition.axes) key += fmt::format("!{}", axis);
  if (const Mesh* mesh =
          context.mesh()) {  // maps inside are over axes of it, or an error
    key += fmt::format("@{}:{}", fmt::join(mesh->sizes, ","),
                       fmt::join(mesh->devices, ","));
  }
  key += walk_.in_compiled_code() ? 'c' : 'h';
  if (HostSlices::around(walk_)) key += 's';
  key += context.checking_definition ? 'd' : 'n';
  if (context.in_linear_rule) key += 'r';
  return key;
}

namespace {

/// How a parameter of a call of a function in itself differs from that of the
/// call around.
struct ParameterChange {
  bool unknown_int = false;   // it has an int that only running tells
  bool unknown_size = false;  // and a size that the call around has made
  bool known = false;         // something in it is known, and another
};

ParameterChange change_of(const Value& before, const Value& now,
                          uint32_t first_symbol) {
  ParameterChange change;
  std::vector<Value> leaves;
  for_each_leaf(before, [&](const Value& leaf) { leaves.push_back(leaf); });
  size_t next = 0;
  const auto size = [&](const ir::Dim& was, const ir::Dim& is) {
    change.known |= was.is_constant() && is.is_constant() && !(was == is);
    change.unknown_size |= std::ranges::any_of(
        is.symbols(), [&](uint32_t id) { return id >= first_symbol; });
  };
  for_each_leaf(now, [&](const Value& leaf) {
    const Value& was = next < leaves.size() ? leaves[next++] : leaf;
    if (const auto* i = leaf.get_if<IntValue>()) {
      change.unknown_int |= !i->value.is_constant();
      if (const auto* j = was.get_if<IntValue>()) size(j->value, i->value);
    }
    const auto *s = leaf.get_if<StrValue>(), *t = was.get_if<StrValue>();
    if (s && t && s->value && t->value)
      change.known |= !same_host_value(leaf, was);
    const ArrayCell *array = leaf.array(), *other = was.array();
    if (!array || !other) return;
    if (array->type.rank() != other->type.rank()) {
      change.known = true;
      return;
    }
    for (size_t i = 0; i < array->type.shape.size(); ++i)
      size(other->type.shape[i], array->type.shape[i]);
  });
  return change;
}

}  // namespace

/// A call of a function in itself with an int, or with arrays of sizes, that
/// only running tells, and nothing known that changes: walked for one such
/// after the other, it would have no end. Arrays of such sizes are tried once.
bool Walker::is_endless(const Function& syntax, const Env& env) const {
  const auto around =
      std::find_if(s_.frames.rbegin(), s_.frames.rend(),
                   [&](const CallFrame& f) { return f.syntax == &syntax; });
  if (around == s_.frames.rend()) return false;
  ParameterChange all;
  for (const Param& param : syntax.params) {
    if (param.pattern.kind != Pattern::Kind::name) continue;
    const std::string& name = param.pattern.name.text;
    const auto before = around->environment->names.find(name);
    if (before == around->environment->names.end()) continue;
    const ParameterChange change = change_of(
        before->second.value, env->names.at(name).value, around->first_symbol);
    all.unknown_int |= change.unknown_int;
    all.unknown_size |= change.unknown_size;
    all.known |= change.known;
  }
  if (syntax.result && all.unknown_int) return true;
  const bool again =
      std::ranges::count(s_.frames, &syntax, &CallFrame::syntax) > 1;
  return again && !all.known && (all.unknown_int || all.unknown_size);
}

namespace {

/// What is known of a result before all of it is: its type, with any size where
/// that is not a number.
Value any_such_value(Walk& walk, const Value& value) {
  return map_leaves(value, [&](const Value& leaf) -> Value {
    if (leaf.is<IntValue>()) return IntValue{walk.open_size()};
    if (leaf.is<BoolValue>()) return BoolValue{};
    if (leaf.is<StrValue>()) return StrValue{};
    const ArrayCell* array = leaf.array();
    if (!array) return leaf;
    if (array->weak && array->type.rank() == 0)
      return walk.unknown_number(is_floating(array->type.dtype));
    ir::Type type = array->type;
    for (ir::Dim& size : type.shape)
      if (!size.is_constant()) size = walk.open_size();
    const ArrayValue any = walk.unknown_array(std::move(type));
    any->varies = array->varies;
    any->varies_from = array->varies_from;
    return any;
  });
}

/// Whether both have one type, apart from sizes that are no numbers.
bool same_results(const Value& a, const Value& b) {
  const auto shown = [](const Value& value) {
    std::string out =
        type_name(map_leaves(value, [](const Value& leaf) -> Value {
          const ArrayCell* array = leaf.array();
          if (!array) return leaf;
          auto type = std::make_shared<ArrayCell>();
          type->type = array->type;
          for (ir::Dim& size : type->type.shape)
            if (!size.is_constant()) size = ir::Dim::symbol(0, "?");
          return ArrayValue(type);
        }));
    for_each_leaf(value, [&](const Value& leaf) {
      if (const ArrayCell* array = leaf.array()) {
        out += array->weak ? '~' : '.';
        for (ir::AxisId axis : array->varies) out += fmt::format("^{}", axis);
      }
    });
    return out;
  };
  return shown(a) == shown(b);
}

}  // namespace

Value Walker::own_result(const FunctionValue& function, const Function& syntax,
                         Span where) {
  const auto around =
      std::find_if(s_.frames.rbegin(), s_.frames.rend(),
                   [&](const CallFrame& f) { return f.syntax == &syntax; });
  if (around != s_.frames.rend() && around->result)
    return any_such_value(walk_, *around->result);
  const auto& closure = std::get<Closure>(function.what);
  Failure failure{
      diagnostic(Code::recursion_needs_result, where, function.name)
          .add_note(syntax_of(closure).name, "defined here")
          .set_help(fmt::format("write it after the parameters, as in `-> {}`",
                                result_example(syntax)))};
  // In compiled code it would have no end.
  if (!walk_.in_compiled_code()) s_.asked_result = &syntax;
  throw failure;
}

bool Walker::is_own_result(const Failure& failure) const {
  return failure.diagnostic.code == Code::recursion_needs_result &&
         !failure.reported && s_.asked_result && !s_.frames.empty() &&
         s_.frames.back().syntax == s_.asked_result;
}

Value Walker::checked_body(const CallFrame& frame) {
  constexpr int most_passes = 6;
  const size_t types = s_.types.size();
  CallFrame now = frame;
  // Sizes of one pass may be those of the next.
  now.first_symbol = walk_.next_symbol_;
  for (int pass = 0;; ++pass) {
    s_.frames.push_back(now);
    Value result =
        function_body(*frame.function, *frame.syntax, frame.environment);
    const std::optional<Diagnostic> question =
        std::move(s_.frames.back().left_out);
    if (!question && (!now.result || same_results(*now.result, result))) {
      s_.frames.pop_back();
      return result;
    }
    if (pass == most_passes)
      walk_.fail(question ? *question
                          : diagnostic(Code::recursion_needs_result,
                                       frame.where, frame.function->name));
    s_.frames.pop_back();
    now.result = std::move(result);
    // What was found with another result of it counts no more.
    s_.types.resize(types);
    std::erase_if(s_.memo, [](const auto& known) {
      return known.second.result.has_value();
    });
  }
}

/// A call while checking: each function is walked once for the same types.
Value Walker::checked_call(const std::shared_ptr<const FunctionValue>& function,
                           const Function& syntax, const Env& env, Span where) {
  using Definition = Walk::State::Definition;
  const auto& closure = std::get<Closure>(function->what);
  const auto definition =
      s_.definitions.find({&syntax, closure.environment.get()});
  bool active = false;
  if (definition != s_.definitions.end()) {
    const auto key = definition->first;
    active = definition->second.state == Definition::active;
    if (!active && !check_definition(key))
      throw Failure{diagnostic(Code::not_callable, where, function->name),
                    true};
  }
  const std::string key = call_key(function, syntax, env);
  const auto known = s_.memo.find(key);
  const bool in_progress =
      known != s_.memo.end() && !known->second.result && !known->second.failed;
  if (active || in_progress ||
      (known == s_.memo.end() && is_endless(syntax, env))) {
    if (!syntax.result) return own_result(*function, syntax, where);
    TypeMatcher matcher(*this, env, TypeMatcher::Names::known);
    return matcher.any_value(*syntax.result);
  }
  if (known != s_.memo.end()) {
    if (known->second.open) throw Failure{*known->second.open, false, true};
    if (known->second.failed)
      throw Failure{diagnostic(Code::not_callable, where, function->name),
                    true};
    const std::vector<TypeRecord>& types = known->second.types;
    s_.types.insert(s_.types.end(), types.begin(), types.end());
    if (const auto& compiled = walk_.context().compiled)
      compiled->mesh = known->second.mesh;
    return renewed(walk_, *known->second.result, known->second.first_symbol);
  }

  const size_t types = s_.types.size();
  s_.memo[key] = {std::nullopt, false, {function}, env};
  s_.memo[key].first_symbol = walk_.next_symbol_;
  Value result;
  try {
    result = checked_body({function.get(), &syntax, env, where, false, {}});
  } catch (...) {
    const Failure failure = caught(where);
    Walk::State::Memo& memo = s_.memo[key];
    memo.failed = true;
    if (is_open(failure)) memo.open = failure.diagnostic;
    leave_frame();
  }
  Walk::State::Memo& memo = s_.memo[key];
  memo.result = result;
  memo.types.assign(s_.types.begin() + types, s_.types.end());
  if (const auto& compiled = walk_.context().compiled)
    memo.mesh = compiled->mesh;
  return result;
}

}  // namespace unisono::lang
