#include "host/session/help.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "lang/context/arguments.h"
#include "lang/context/environment.h"
#include "lang/context/function.h"
#include "lang/maps/map_spec.h"
#include "lang/source/builtin_examples.h"
#include "lang/source/explain.h"
#include "lang/source/foreign_names.h"
#include "lang/source/stdlib.h"

namespace unisono::host {
namespace {

using lang::Closure;
using lang::FunctionValue;
using lang::Value;
using Function = std::shared_ptr<const FunctionValue>;

/// The parts of `a.b.0`.
std::vector<std::string> parts_of(std::string_view name) {
  std::vector<std::string> out;
  for (;;) {
    const size_t dot = name.find('.');
    out.emplace_back(name.substr(0, dot));
    if (dot == name.npos) return out;
    name.remove_prefix(dot + 1);
  }
}

std::optional<Value> part_of(const Value& value, const std::string& name) {
  if (const auto* module = value.get_if<lang::ModuleValue>()) {
    const auto found = module->environment->names.find(name);
    if (found == module->environment->names.end()) return std::nullopt;
    return found->second.value;
  }
  if (const lang::RecordValue* record = value.record()) {
    const Value* found = record->find(name);
    return found ? std::optional(*found) : std::nullopt;
  }
  if (const lang::TupleValue* tuple = value.tuple()) {
    size_t index = 0;
    const auto [end, error] =
        std::from_chars(name.data(), name.data() + name.size(), index);
    const bool whole = error == std::errc() && end == name.data() + name.size();
    if (whole && index < tuple->items.size()) return tuple->items[index];
  }
  return std::nullopt;
}

/// The function itself, without the maps around it.
const FunctionValue& innermost(const FunctionValue& function) {
  const FunctionValue* inner = &function;
  while (true)
    if (const auto* map = std::get_if<lang::Transformed>(&inner->what))
      inner = map->inner.get();
    else if (const auto* made = std::get_if<lang::Differentiated>(&inner->what))
      inner = made->inner.get();
    else
      return *inner;
}

const Closure* closure_of(const Value& value) {
  const auto* function = value.get_if<Function>();
  return function ? std::get_if<Closure>(&innermost(**function).what) : nullptr;
}

std::string indented(std::string_view text, std::string_view by) {
  std::string out;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    out += line.empty() ? "\n" : fmt::format("{}{}\n", by, line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

std::string place_text(const lang::Span& where) {
  return where ? fmt::format("defined at {}\n", lang::to_string(where)) : "";
}

/// Names, in columns of a terminal of usual width.
std::string in_columns(const std::vector<std::string>& names) {
  std::string out;
  size_t at = 0;
  for (const std::string& name : names) {
    if (at > 0 && at + name.size() > 76) {
      out += '\n';
      at = 0;
    }
    out += at == 0 ? "  " : " ";
    out += name;
    at += name.size() + 1;
  }
  return out.empty() ? "" : out + "\n";
}

std::string describe_function(const FunctionValue& function) {
  std::string out = signature_of(function) + "\n";
  const FunctionValue& inner = innermost(function);
  if (const auto* builtin = std::get_if<const lang::Builtin*>(&inner.what))
    return out + indented(lang::builtin_documentation((*builtin)->name,
                                                      (*builtin)->help),
                          "  ");
  if (const auto* closure = std::get_if<Closure>(&inner.what)) {
    if (closure->definition) {
      out += indented(closure->definition->documentation, "  ");
      if (!lang::is_in_stdlib(closure->definition->name.span))
        out += place_text(closure->definition->name.span);
    } else {
      out += place_text(closure->lambda->span);
    }
  }
  return out;
}

std::string describe_module(const lang::ModuleValue& module) {
  std::vector<std::string> names;
  for (const auto& [name, binding] : module.environment->names)
    if (!name.starts_with('_')) names.push_back(name);
  std::ranges::sort(names);
  return fmt::format("module {}\n{}`?{}.NAME` tells of one\n", module.name,
                     in_columns(names), module.name);
}

struct Keyword {
  std::string_view word, form;
};
constexpr Keyword keywords[] = {
    {"def", "def f(x, y: f32 = 1.0) -> f32 = ...   or   def f(x) { ... }"},
    {"fn", "fn(x) => x + 1"},
    {"let", "let x = 3   let (a, b) = f()   let x: f32[0] = []"},
    {"var", "var x = 3, which `x = 4`, `x += 1`, `x[i] = 0` change"},
    {"if", "if c { a } else { b }, a value, too"},
    {"else", "if c { a } else { b }"},
    {"for", "for i in range(n) { ... }   [f(x) for x in xs]"},
    {"in", "for x in xs { ... }   a in (1, 2)"},
    {"while", "while c { ... }"},
    {"break", "break: leaves the loop"},
    {"continue", "continue: goes on with the loop's next turn"},
    {"return", "return x   or   return: leaves the function"},
    {"import", "import nn   import \"layers.uni\" as layers"},
    {"axis", "axis dev = devices()   axis rows, cols = mesh(2, 2)"},
    {"type", "type Params[d] = (w: f32[d], b: f32)"},
    {"and", "c and d, element by element on arrays"},
    {"or", "c or d, element by element on arrays"},
    {"not", "not c"},
    {"true", "a bool"},
    {"false", "a bool"},
    {"none", "no value; an entry of in_axes and out_axes"},
    {"as", "x as f32[n]: checked when it runs if it cannot be proved"},
    {"with", "r with (b = 2.0): a record with another field"},
    {"test", "test \"name\" { ... }: what `unisono test` runs"},
    {"bench", "bench \"name\" { ... }: what `unisono bench` measures"},
};

/// What is said of a name that means nothing.
std::string unknown(Session& session, std::string_view name) {
  std::string out = fmt::format("there is no `{}`", name);
  if (const auto help = lang::foreign_name_help(name); !help.empty())
    return fmt::format("{}: {}\n", out, help);
  std::set<std::string> like;
  for (const lang::Environment* env = session.walk().globals().get(); env;
       env = env->parent.get())
    for (const auto& [known, binding] : env->names)
      if (name.size() > 1 &&
          (known.find(name) != known.npos ||
           (known.size() > 2 && name.find(known) != name.npos)))
        like.insert(known);
  if (like.empty()) return out + "\n";
  return fmt::format("{}; there are\n{}", out,
                     in_columns({like.begin(), like.end()}));
}

}  // namespace

std::optional<Value> find_value(Session& session, std::string_view name) {
  const std::vector<std::string> parts = parts_of(name);
  const auto& globals = session.walk().globals();
  if (!globals) return std::nullopt;
  const lang::Binding* binding = globals->find(parts[0]).first;
  if (!binding || binding->poisoned) return std::nullopt;
  std::optional<Value> value = binding->value;
  for (size_t i = 1; i < parts.size() && value; ++i)
    value = part_of(*value, parts[i]);
  return value;
}

std::string signature_of(const FunctionValue& function) {
  const FunctionValue& inner = innermost(function);
  std::string out = function.name;
  if (const auto* builtin = std::get_if<const lang::Builtin*>(&inner.what))
    return fmt::format("{}({})", out, (*builtin)->signature);
  const auto* closure = std::get_if<Closure>(&inner.what);
  if (!closure) return out;
  const lang::Function& syntax = closure->definition
                                     ? closure->definition->function
                                     : closure->lambda->function;
  lang::Span shown = syntax.params_span;
  if (syntax.result) shown.end = syntax.result->span.end;
  return fmt::format("{}{}{}", out, closure->lambda ? " " : "", shown.text());
}

std::vector<std::string> parameters_of(Session&,
                                       const FunctionValue& function) {
  std::vector<std::string> out;
  const FunctionValue& inner = innermost(function);
  if (const auto* builtin = std::get_if<const lang::Builtin*>(&inner.what)) {
    for (const lang::Parameter& p : (*builtin)->parameters)
      if (!p.is_rest) out.emplace_back(p.name);
  } else {
    for (const lang::ParameterInfo& p : lang::parameters_of(inner))
      out.push_back(p.name);
  }
  return out;
}

std::optional<std::string> description_of(Session& session,
                                          std::string_view name) {
  if (const auto page = lang::explain(name);
      page && (name[0] == 'U' || name[0] == 'u'))
    return std::string(*page);
  const auto* keyword = std::ranges::find(keywords, name, &Keyword::word);
  const auto value = find_value(session, name);
  if (!value) {
    if (keyword != std::end(keywords))
      return fmt::format("{}: {}\n", name, keyword->form);
    if (lang::is_stdlib_module(name))
      return fmt::format("a module of the standard library: `import {}`\n",
                         name);
    return std::nullopt;
  }
  if (const auto* function = value->get_if<Function>())
    return describe_function(**function);
  if (const auto* module = value->get_if<lang::ModuleValue>())
    return describe_module(*module);
  std::string out = fmt::format("{}: {}", name, lang::type_name(*value));
  if (const auto* type = value->get_if<lang::TypeAliasValue>())
    out = std::string(type->definition->span.text());
  if (const lang::ArrayCell* array = value->array(); array && array->array)
    out += " " + array->array->sharding().to_string();
  out += "\n";
  const bool whole = name.find('.') == name.npos;
  const lang::Binding* binding =
      whole ? session.walk().globals()->find(std::string(name)).first : nullptr;
  return binding ? out + place_text(binding->where) : out;
}

std::string describe(Session& session, std::string_view name) {
  auto found = description_of(session, name);
  return found ? std::move(*found) : unknown(session, name);
}

std::string source_of(Session& session, std::string_view name) {
  const auto value = find_value(session, name);
  if (!value) return unknown(session, name);
  if (const auto* function = value->get_if<Function>();
      function &&
      std::holds_alternative<const lang::Builtin*>(innermost(**function).what))
    return fmt::format("{} is written in C++\n", signature_of(**function));
  const auto text_of = [](lang::Span where) {
    // With the documentation above it.
    int line = where.file->place(where.begin).line;
    while (line > 1 && where.file->line(line - 1).starts_with("##")) --line;
    where.begin = std::min(where.begin, where.file->line_offset(line));
    return fmt::format("# {}\n{}\n", lang::to_string(where), where.text());
  };
  if (const Closure* closure = closure_of(*value)) {
    if (closure->definition) return text_of(closure->definition->span);
    const lang::Stmt* around = session.statement_at(closure->lambda->span);
    return text_of(around ? around->span : closure->lambda->span);
  }
  if (const auto* type = value->get_if<lang::TypeAliasValue>())
    return text_of(type->definition->span);
  const lang::Binding* binding =
      session.walk().globals()->find(parts_of(name)[0]).first;
  const lang::Stmt* statement = binding && binding->where
                                    ? session.statement_at(binding->where)
                                    : nullptr;
  if (statement) return text_of(statement->span);
  return fmt::format("`{}` has no source\n", name);
}

}  // namespace unisono::host
