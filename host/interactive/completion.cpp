#include "host/interactive/completion.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <string_view>
#include <system_error>

#include "host/interactive/commands.h"
#include "host/session/help.h"
#include "lang/context/environment.h"
#include "lang/context/function.h"
#include "lang/source/explain.h"
#include "lang/source/stdlib.h"
#include "lang/syntax/lexer.h"

namespace unisono::host {
namespace {

using Names = std::set<std::string>;
constexpr size_t most_files = 2000;

bool is_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' ||
         static_cast<uint8_t>(c) >= 0x80;
}

size_t name_begin(std::string_view text, size_t end) {
  while (end > 0 && is_name(text[end - 1])) --end;
  return end;
}

/// The beginning of `a.b.c` that ends here.
size_t chain_begin(std::string_view text, size_t end) {
  size_t begin = name_begin(text, end);
  while (begin > 1 && text[begin - 1] == '.' && is_name(text[begin - 2]))
    begin = name_begin(text, begin - 1);
  return begin;
}

Completions those_with(const Names& names, std::string_view prefix,
                       size_t begin) {
  Completions out{begin, {}};
  for (auto at = names.lower_bound(std::string(prefix));
       at != names.end() && at->starts_with(prefix); ++at)
    out.words.push_back(*at);
  return out;
}

void add_functions(const lang::Environment* env, Names& out) {
  for (; env; env = env->parent.get())
    for (const auto& [name, binding] : env->names)
      if (binding.value.is<std::shared_ptr<const lang::FunctionValue>>())
        out.insert(name);
}

/// What may follow the dot behind a value.
Names fields_of(Session& session, const lang::Value& value) {
  Names out;
  if (const auto* module = value.get_if<lang::ModuleValue>()) {
    for (const auto& [name, binding] : module->environment->names)
      if (!name.starts_with('_')) out.insert(name);
    return out;
  }
  if (const lang::RecordValue* record = value.record())
    for (const auto& [name, part] : record->fields) out.insert(name);
  if (const lang::TupleValue* tuple = value.tuple())
    for (size_t i = 0; i < tuple->items.size(); ++i)
      out.insert(std::to_string(i));
  // x.sum() is sum(x).
  if (value.array()) add_functions(session.walk().globals().get(), out);
  return out;
}

std::string home() {
  const char* home = std::getenv("HOME");
  return home ? home : "";
}

Completions paths(std::string_view typed, size_t begin) {
  const size_t slash = typed.rfind('/');
  const std::string_view folder =
      slash == typed.npos ? std::string_view() : typed.substr(0, slash + 1);
  const std::string_view prefix = typed.substr(folder.size());
  std::string place = folder.empty() ? "." : std::string(folder);
  if (place.starts_with("~/")) place = home() + place.substr(1);
  Names names;
  std::error_code error;
  for (std::filesystem::directory_iterator
           at(place, std::filesystem::directory_options::skip_permission_denied,
              error),
       end;
       !error && at != end && names.size() < most_files; at.increment(error)) {
    std::string name = at->path().filename().string();
    if (!name.starts_with(prefix) || (name[0] == '.' && prefix.empty()))
      continue;
    std::error_code ignored;
    if (at->is_directory(ignored)) name += '/';
    names.insert(std::string(folder) + name);
  }
  return those_with(names, typed, begin);
}

/// The begin of the string that is open at the end, or npos.
size_t open_string(std::string_view text) {
  size_t open = text.npos;
  for (size_t i = 0; i < text.size(); ++i)
    if (text[i] == '\n')
      open = text.npos;
    else if (text[i] == '\\' && open != text.npos)
      ++i;
    else if (text[i] == '"')
      open = open == text.npos ? i + 1 : text.npos;
    else if (text[i] == '#' && open == text.npos)
      i = std::min(text.find('\n', i), text.size()) - 1;
  return open;
}

/// The function in whose call the text ends, as it is written: "nn.dense".
std::string_view called_function(std::string_view text) {
  int depth = 0;
  for (size_t i = text.size(); i-- > 0;) {
    const char c = text[i];
    if (c == ')' || c == ']' || c == '}') ++depth;
    if (c == '(' || c == '[' || c == '{') --depth;
    if (depth >= 0) continue;
    if (c != '(') return {};
    const size_t begin = chain_begin(text, i);
    return text.substr(begin, i - begin);
  }
  return {};
}

Names names_in_scope(Session& session) {
  Names out;
  for (const lang::Environment* env = session.walk().globals().get(); env;
       env = env->parent.get())
    for (const auto& [name, binding] : env->names) out.insert(name);
#define KEYWORD(name, text, line_end) out.insert(text);
#define DECLARATION(text) out.insert(text);
#define SPECIAL(name, description, line_end)
#define PUNCTUATION(name, text, line_end)
#include "lang/syntax/token.def"
#undef KEYWORD
#undef SPECIAL
#undef PUNCTUATION
  out.insert({"int", "str"});
  return out;
}

Completions code_before(Session& session, std::string_view text) {
  if (const size_t string = open_string(text); string != text.npos) {
    // An interpolation in it is code again.
    const std::string_view inside = text.substr(string);
    const size_t brace = inside.rfind('{');
    if (brace == inside.npos || inside.find('}', brace) != inside.npos)
      return paths(inside, string);
  }
  const size_t begin = name_begin(text, text.size());
  const std::string_view prefix = text.substr(begin);
  if (begin > 0 && text[begin - 1] == '.') {
    const size_t chain = chain_begin(text, begin - 1);
    const auto value =
        find_value(session, text.substr(chain, begin - 1 - chain));
    Names names;
    if (value)
      names = fields_of(session, *value);
    else if (chain == begin - 1)  // of an expression: f(x).sum
      add_functions(session.walk().globals().get(), names);
    return those_with(names, prefix, begin);
  }
  const std::string_view before = text.substr(0, begin);
  const size_t word_end = before.find_last_not_of(' ');
  if (word_end != before.npos && begin > word_end + 1) {
    const size_t word = name_begin(before, word_end + 1);
    if (before.substr(word, word_end + 1 - word) == "import") {
      Names modules;
      for (const lang::StdlibModule& module : lang::stdlib_modules())
        if (!lang::is_prelude_module(module.name))
          modules.insert(std::string(module.name));
      return those_with(modules, prefix, begin);
    }
  }
  Names names = names_in_scope(session);
  if (const auto function = find_value(session, called_function(text)))
    if (const auto* called =
            function->get_if<std::shared_ptr<const lang::FunctionValue>>())
      for (const std::string& parameter : parameters_of(session, **called)) {
        names.erase(parameter);
        names.insert(parameter + "=");
      }
  if (prefix.empty()) {
    // All names help nobody; those of the call's arguments do.
    std::erase_if(names,
                  [](const std::string& name) { return !name.ends_with('='); });
  }
  return those_with(names, prefix, begin);
}

Completions command_before(Session& session, std::string_view text,
                           size_t colon) {
  const size_t space = text.find(' ', colon);
  if (space == text.npos) {
    Names names;
    for (const Command& command : commands())
      names.insert(":" + std::string(command.name));
    return those_with(names, text.substr(colon), colon);
  }
  const std::string_view word = text.substr(colon + 1, space - colon - 1);
  const size_t begin = text.find_last_of(' ') + 1;
  const std::string_view typed = text.substr(begin);
  const bool first =
      text.find_first_not_of(' ', space) == begin || begin == text.size();
  for (const Command& command : commands()) {
    if (command.name != word) continue;
    switch (command.followed_by) {
      case CommandArgument::nothing: return {};
      case CommandArgument::name:
      case CommandArgument::input: return code_before(session, text);
      case CommandArgument::path:
      case CommandArgument::path_and_input:
        return first ? paths(typed, begin) : code_before(session, text);
      case CommandArgument::devices:
        return those_with({"cpu:1", "cpu:2", "cpu:4", "cpu:8", "cuda", "sim:2"},
                          typed, begin);
      case CommandArgument::code: {
        Names codes;
        for (const lang::ErrorPage& page : lang::error_pages())
          codes.insert(std::string(page.code));
        return those_with(codes, typed, begin);
      }
      case CommandArgument::setting: {
        const std::vector<std::string> settings = setting_names();
        return those_with({settings.begin(), settings.end()}, typed, begin);
      }
    }
  }
  return {};
}

}  // namespace

Completions complete_input(Session& session, const std::string& text,
                           size_t cursor) {
  const std::string_view before = std::string_view(text).substr(0, cursor);
  const size_t first = before.find_first_not_of(" \n");
  if (first != before.npos && before[first] == ':')
    return command_before(session, before, first);
  return code_before(session, before);
}

std::string name_at(Session& session, const std::string& text, size_t cursor) {
  const std::string_view all = text;
  size_t end = cursor;
  while (end < all.size() && is_name(all[end])) ++end;
  const size_t begin = chain_begin(all, end);
  std::string here(all.substr(begin, end - begin));
  const auto is_function = [&](std::string_view name) {
    const auto value = find_value(session, name);
    return value && value->is<std::shared_ptr<const lang::FunctionValue>>();
  };
  if (is_function(here)) return here;
  const std::string_view called = called_function(all.substr(0, begin));
  return is_function(called) ? std::string(called) : here;
}

}  // namespace unisono::host
