// Programs that are compiled and not run (Machine::compile_only): arrays have a
// type and a place, but no elements. The walk is that of a run; what needs
// elements is an error that says so (Code::needs_run).
#include <algorithm>
#include <map>
#include <utility>

#include "lang/syntax/parser.h"
#include "lang/walk/types.h"
#include "lang/walk/walker.h"
#include "runtime/cluster/cluster_device.h"

namespace unisono::lang {

unisono::Array Walk::absent(DType dtype, std::vector<int64_t> shape,
                            Sharding sharding) {
  DeviceBlocks nothing(sharding.devices.size());
  return {dtype, std::move(shape), std::move(sharding), std::move(nothing)};
}

bool Walk::is_absent(const unisono::Array& array) {
  return !array.blocks().empty() && !array.blocks()[0];
}

void Walk::fail_needs_run(Span where) {
  fail(diagnostic(Code::needs_run, where, where.text())
           .set_help("`--run` runs the program, with all that it does"));
}

Value Walk::with_absent(const Value& value) {
  Device* first = &home_device(machine_.runtime->devices());
  return map_leaves(value, [&](const Value& leaf) -> Value {
    const ArrayCell* array = leaf.array();
    if (!array || array->constant || array->array) return leaf;
    return from_array(
        absent(array->type.dtype, array->type.sizes(), Sharding{-1, {first}}));
  });
}

namespace {

/// Why code cannot be made for a value of this type; nothing if it can.
std::string unknown_part(const Value& value) {
  std::string why;
  for_each_leaf(value, [&](const Value& leaf) {
    const ArrayCell* array = leaf.array();
    const auto* i = leaf.get_if<IntValue>();
    const auto* text = leaf.get_if<StrValue>();
    const bool function = leaf.is<std::shared_ptr<const FunctionValue>>();
    if ((array && !array->type.is_concrete()) ||
        (i && !i->value.is_constant()) || (text && !text->value) || function)
      why = type_name(leaf);
  });
  return why;
}

}  // namespace

std::string Walker::compile_definition(
    const DefStmt& def, const std::map<std::string, const Expr*>& given,
    const std::function<void()>& begins) {
  const auto [binding, holder] = s_.globals->find(def.name.text);
  const auto* function =
      binding ? binding->value.get_if<std::shared_ptr<const FunctionValue>>()
              : nullptr;
  const auto* map =
      function ? std::get_if<Transformed>(&(*function)->what) : nullptr;
  const bool decorated = map && map->kind == Transformed::Kind::jit;
  const auto* closure =
      function
          ? std::get_if<Closure>(&(decorated ? *map->inner : **function).what)
          : nullptr;
  if (!closure || closure->definition != &def)
    return map ? "it is a map: a call of it would be compiled"
               : "it is not defined where the program ends";
  std::vector<CallArgument> positional;
  Named named;
  {
    ContextScope context(walk_);
    context->mode = Mode::check;
    const Env env = inner(closure->environment);
    env->call = ++s_.last_call;
    TypeMatcher matcher(*this, env, TypeMatcher::Names::bind);
    matcher.declare(def.function.type_params);
    std::map<const Param*, Value> values;
    for (const Param& param : def.function.params) {
      const auto found = given.find(param.pattern.name.text);
      if (found == given.end()) continue;
      TypeMatcher own(*this, env, TypeMatcher::Names::bind);
      Value value = own.any_value(*found->second);
      if (param.type)
        value = matcher.match(*param.type, value, found->second->span,
                              fmt::format("`{}`", param.pattern.span.text()));
      values[&param] = std::move(value);
    }
    bool in_order = true;  // a default that is left out ends that
    for (const Param& param : def.function.params) {
      in_order = in_order && !param.keyword_only;
      if (!values.contains(&param)) {
        in_order = in_order && !param.default_value;
        if (param.default_value) continue;
        if (!param.type)
          return fmt::format("the type of `{}` is not known",
                             param.pattern.span.text());
        values[&param] = matcher.any_value(*param.type);
      }
      const Value& value = values[&param];
      if (const std::string part = unknown_part(value); !part.empty())
        return fmt::format("`{}` is {}", param.pattern.span.text(), part);
      const CallArgument argument{walk_.with_absent(value), param.span};
      if (in_order)
        positional.push_back(argument);
      else if (param.pattern.kind == Pattern::Kind::name)
        named.emplace_back(param.pattern.name.text, argument);
      else
        return fmt::format("`{}` has no name to be given by",
                           param.pattern.span.text());
    }
  }
  begins();
  const Span where = def.name.span;
  Value compiled = *function;
  if (!decorated) {
    const Value jit = s_.prelude->find("jit").first->value;
    compiled = call_value({jit, where}, {{*function, where}}, {}, where);
  }
  call_value({compiled, where}, std::move(positional), std::move(named), where);
  walk_.flush(where);
  return {};
}

namespace {

/// The type expressions of what was given, kept with the programs.
struct ParsedType {
  const GivenType* given;
  const Expr* type;
  bool used = false;
};

}  // namespace

bool Walk::compile_definitions(
    const Program& program, const std::vector<GivenType>& given,
    const std::function<void(const DefStmt&)>& begins,
    const std::function<void(const DefStmt&, const std::string&)>& left_out) {
  std::vector<ParsedType> types;
  for (const GivenType& one : given) {
    const SourceFile& file = sources_.add(
        fmt::format("--shape {}", one.parameter), "type given = " + one.type);
    ParseResult parsed = parse(file, diagnostics_);
    if (!parsed.ok) return false;
    if (parsed.program->statements.size() != 1) {
      const Span more = parsed.program->statements[1]->span;
      diagnostics_.report(Code::unexpected_token, more, "the end of the type",
                          fmt::format("`{}`", more.text()));
      return false;
    }
    const Stmt& stmt = *parsed.program->statements[0];
    types.push_back({&one, static_cast<const TypeStmt&>(stmt).type.get()});
    state_->programs_kept.push_back(std::move(parsed.program));
  }
  on_stack([&] {
    Walker walker(*this);
    for (const StmtPtr& stmt : program.statements) {
      if (stmt->kind != StmtKind::DefStmt) continue;
      const auto& def = static_cast<const DefStmt&>(*stmt);
      std::map<std::string, const Expr*> own;
      for (const Param& param : def.function.params)
        for (ParsedType& type : types) {
          if (param.pattern.name.text != type.given->parameter ||
              (!type.given->function.empty() &&
               type.given->function != def.name.text))
            continue;
          type.used = true;
          own[type.given->parameter] = type.type;
        }
      if (own.empty() && state_->walked.contains(&def.function)) continue;
      const size_t before = diagnostics_.size();
      ContextScope context(*this);
      context->mode = Mode::run;
      std::string why;
      try {
        why = walker.compile_definition(def, own, [&] { begins(def); });
      } catch (const Failure& failure) {
        why = failure.diagnostic.message;
        walker.abandon_run();
      }
      if (state_->stopped) return;
      if (diagnostics_.size() > before)
        why = diagnostics_.all()[before].message;
      diagnostics_.truncate(before);
      if (!why.empty()) left_out(def, why);
    }
  });
  for (const ParsedType& type : types) {
    if (type.used) continue;
    const std::string& name = type.given->function;
    diagnostics_.report(Code::unknown_argument, type.type->span,
                        name.empty() ? "any function" : name,
                        type.given->parameter);
    return false;
  }
  return !state_->stopped;
}

}  // namespace unisono::lang
