// Modules: the names that are in scope without import, and `import`.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "lang/context/function.h"
#include "lang/context/library_environment.h"
#include "lang/resolve/resolution.h"
#include "lang/source/foreign_names.h"
#include "lang/source/stdlib.h"
#include "lang/syntax/parser.h"
#include "lang/syntax/read_source.h"
#include "lang/walk/name_help.h"
#include "lang/walk/tools.h"
#include "lang/walk/walker.h"
#include "runtime/stop.h"

namespace unisono::lang {
namespace {

constexpr std::array<std::string_view, 5> prelude_modules = {
    "math", "array", "groups", "linalg", "random"};

const StdlibModule* find_stdlib(std::string_view name) {
  for (const StdlibModule& module : stdlib_modules())
    if (module.name == name) return &module;
  return nullptr;
}

/// What is imported instead of a module of another language, if anything is.
std::string foreign_import_help(std::string_view name) {
  if (!is_foreign_module(name)) return {};
  if (const auto ours = module_for(name); !ours.empty())
    return fmt::format("write `import {}`", ours);
  if (const auto help = foreign_name_help(name); !help.empty())
    return fmt::format("leave it out; {}", help);
  return "leave it out: functions of arrays are in scope without import, "
         "`zeros((2, 3))`; a file is imported by its path in quotes";
}

std::string stdlib_path(std::string_view name) {
  return fmt::format("<stdlib>/{}.uni", name);
}

/// The text of a file, or why it cannot be read.
Result<std::string> read_module(const std::filesystem::path& path) {
  std::error_code error;
  const auto kind = std::filesystem::status(path, error).type();
  if (kind == std::filesystem::file_type::fifo ||
      kind == std::filesystem::file_type::character)
    return Error{Error::Kind::io, "it is no file"};
  return read_source(path.string());
}

}  // namespace

std::string module_key(const std::string& path) {
  std::error_code error;
  return "file:" + std::filesystem::weakly_canonical(path, error).string();
}

Value library_function(Walk& walk, const std::string& name) {
  const Binding* found = Walker(walk).state().prelude->find(name).first;
  CHECK(found);
  return found->value;
}

bool is_in_stdlib(Span where) {
  return where.file && where.file->path().starts_with("<stdlib>/");
}

bool is_stdlib_module(std::string_view name) {
  return find_stdlib(name) != nullptr;
}

bool is_prelude_module(std::string_view name) {
  return std::ranges::count(prelude_modules, name) > 0;
}

namespace {

/// A definition of the library's, and the lines where it stands: with what
/// documents and decorates it, up to the next one.
struct LibraryLines {
  std::string_view name;
  uint32_t begin = 0, end = 0;
};

/// All that a module of the library defines. Each definition begins a line, and
/// no other line of it begins with a letter.
std::vector<LibraryLines> library_lines(std::string_view text) {
  std::vector<LibraryLines> out;
  std::optional<uint32_t> above;  // where lines begin that belong to the next
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
    std::string_view line = text.substr(at, end - at);
    const auto begin = static_cast<uint32_t>(at);
    at = end;
    if (line.starts_with("##") || line.starts_with('@')) {
      if (!above) above = begin;
      continue;
    }
    for (const std::string_view word : {"def ", "let ", "type "}) {
      if (!line.starts_with(word)) continue;
      line.remove_prefix(word.size());
      const size_t length = line.find_first_of(" ([=");
      if (!out.empty()) out.back().end = above.value_or(begin);
      out.push_back({line.substr(0, length), above.value_or(begin),
                     static_cast<uint32_t>(text.size())});
      break;
    }
    above.reset();
  }
  return out;
}

}  // namespace

void Walker::read_library(const std::string& name) {
  const Walk::State::LibraryPart& part = s_.library.at(name);
  const auto prelude = std::static_pointer_cast<LibraryEnvironment>(s_.prelude);
  ContextScope context(walk_);
  *context.operator->() = {};
  context->mode = Mode::check;
  const StopScope whole(nullptr);  // it is short, and needed whole
  const Saved<bool> attempt(s_.attempt, false);
  const Saved<uint64_t> steps(s_.steps);
  const size_t functions = s_.function_environments.size();
  const uint64_t version = prelude->version;
  ParseResult parsed =
      parse_lines(*part.file, part.begin, part.end, walk_.diagnostics_);
  CHECK(parsed.ok);
  try {
    for (const StmtPtr& statement : parsed.program->statements)
      this->statement(*statement, prelude, false);
  } catch (...) {
    // The library has no mistake: the machine has, and the next time may not.
    prelude->add_unread(name);
    Failure failure = caught(Span());
    failure.diagnostic.where = Span();
    throw failure;
  }
  s_.programs_kept.push_back(std::move(parsed.program));
  // Who asked for it sees what was always there.
  s_.function_environments.resize(functions);
  prelude->version = version;
}

void Walker::load_prelude() {
  auto names = std::make_shared<Environment>();
  auto add_builtin = [&](std::string_view name, const Builtin& builtin) {
    names->names[std::string(name)].value =
        std::make_shared<const FunctionValue>(
            FunctionValue{std::string(name), &builtin});
  };
  for (const Builtin& builtin : builtins()) add_builtin(builtin.name, builtin);
#define BUILTIN_ALIAS(alias, name) \
  if (const Builtin* b = find_builtin(#name)) add_builtin(#alias, *b);
#include "lang/context/builtins.def"
  for (DType dtype : all_dtypes)
    names->names[std::string(name(dtype))].value = TypeValue{{dtype, {}}};

  const auto prelude = std::make_shared<LibraryEnvironment>();
  prelude->parent = names;
  prelude->read = [&walk = walk_](const std::string& name) {
    Walker(walk).read_library(name);
  };
  s_.prelude = prelude;
  s_.module_environments.push_back(s_.prelude);
  for (const std::string_view name : prelude_modules) {
    const StdlibModule* module = find_stdlib(name);
    if (!module) continue;
    const SourceFile& file =
        walk_.sources_.add(stdlib_path(name), std::string(module->text));
    for (const LibraryLines& each : library_lines(file.text())) {
      const std::string key(each.name);
      s_.library[key] = {&file, each.begin, each.end};
      prelude->add_unread(key);
    }
  }
  s_.globals = std::make_shared<Environment>();
  s_.globals->parent = s_.prelude;
}

/// The module, parsed; reports why not.
Module& Walker::find_module(const ImportStmt& s) {
  std::filesystem::path path;
  std::string key = s.module.text;
  if (s.is_file) {
    path = std::filesystem::path(s.span.file->path()).parent_path() /
           s.module.text;
    key = module_key(path.string());
  }
  Module& module = s_.modules[key];
  if (module.program || module.failed) return module;

  std::string text, name = path.string();
  if (s.is_file) {
    const Machine& machine = walk_.machine_;
    if (!machine.import && !machine.files)
      walk_.fail(diagnostic(Code::no_file_access, s.module.span, "import"));
    Result<std::string> read =
        machine.import ? machine.import(path.string()) : read_module(path);
    if (!read) {
      s_.modules.erase(key);
      walk_.fail(
          diagnostic(Code::import_not_found, s.module.span, s.module.text,
                     read.error().message)
              .set_help("a path is relative to the file that imports it"));
    }
    text = std::move(*read);
  } else {
    const StdlibModule* found = find_stdlib(s.module.text);
    if (!found) {
      std::string all;
      for (const StdlibModule& m : stdlib_modules())
        all += fmt::format("{}`{}`", all.empty() ? "" : ", ", m.name);
      s_.modules.erase(key);
      if (const std::string later = later_text(s.module.text); !later.empty())
        walk_.fail(diagnostic(Code::not_there_yet, s.module.span, later));
      if (const std::string help = foreign_import_help(s.module.text);
          !help.empty())
        walk_.fail(
            diagnostic(Code::unknown_module, s.module.span, s.module.text)
                .set_help(help));
      walk_.fail(
          diagnostic(Code::unknown_module, s.module.span, s.module.text)
              .set_help(fmt::format("there are {}; a file is imported by its "
                                    "path in quotes",
                                    all)));
    }
    text = std::string(found->text);
    name = stdlib_path(s.module.text);
  }
  const SourceFile& file = walk_.sources_.add(name, std::move(text));
  ParseResult parsed = parse(file, walk_.diagnostics_);
  if (!parsed.ok && stop_requested()) {
    s_.modules.erase(key);
    s_.stopped = true;  // the parser has said so
    throw stopped(s.module.span);
  }
  module.program = std::move(parsed.program);
  module.failed = !parsed.ok;
  return module;
}

void Walker::import(const ImportStmt& s, const Env& env) {
  const Name name = module_name(s);
  Module& module = find_module(s);
  auto failed = [&] {
    throw Failure{diagnostic(Code::import_failed, s.module.span, s.module.text),
                  true};
  };
  if (module.active)
    walk_.fail(diagnostic(Code::import_cycle, s.module.span, s.module.text,
                          "one of its imports needs this file")
                   .set_help("move what both need to a third file"));
  auto report_failure = [&] {
    if (!std::exchange(module.reported, true))
      report(diagnostic(Code::import_failed, s.module.span, s.module.text));
    failed();
  };
  if (module.failed) report_failure();
  Env& names = checking() ? module.checked : module.run;
  if (!names) {
    names = std::make_shared<Environment>();
    names->parent = s_.prelude;
    Saved<bool> active(module.active, true);
    Saved<const SourceFile*> main(s_.main_file, s_.main_file);
    const auto functions =
        static_cast<std::ptrdiff_t>(s_.function_environments.size());
    const auto found = static_cast<std::ptrdiff_t>(s_.found.size());
    try {
      statements(module.program->statements, names, walk_.mode() == Mode::run,
                 false);
      if (walk_.mode() == Mode::run) wait_for_runs(walk_, s.span);
    } catch (...) {
      const Failure failure = caught(s.span);
      if (!failure.reported && !failure.open) report(failure.diagnostic);
      const auto is_passing = [](const Diagnostic& diagnostic) {
        return diagnostic.code == Code::out_of_memory ||
               diagnostic.code == Code::internal_error ||
               diagnostic.code == Code::cancelled;
      };
      const bool is_known = !checking() || !failure.reported;
      if (s_.stopped || (is_known && is_passing(failure.diagnostic)) ||
          std::any_of(s_.found.begin() + found, s_.found.end(), is_passing)) {
        names = nullptr;  // the next time it may be otherwise
        failed();
      }
      module.failed = !failure.open;
      if (module.failed) report_failure();
    }
    auto& environments = s_.function_environments;
    s_.module_environments.insert(s_.module_environments.end(),
                                  environments.begin() + functions,
                                  environments.end());
    environments.resize(static_cast<size_t>(functions));
  }
  define(env, name.text, ModuleValue{name.text, names}, false, name.span);
}

// ---- for tools
// ----------------------------------------------------------------

std::vector<KnownType> known_types(Walk& walk) {
  std::vector<KnownType> out;
  std::set<std::tuple<uint32_t, std::string_view>> seen;
  for (const TypeRecord& record : Walker(walk).state().types)
    if (seen.emplace(record.where.begin, record.type).second)
      out.push_back({record.where, record.name, record.type});
  return out;
}

void provide_module(Walk& walk, const std::string& path, std::string text) {
  Module& module = Walker(walk).state().modules[module_key(path)];
  if (module.program) return;
  const SourceFile& file = walk.sources().add(path, std::move(text));
  ParseResult parsed = parse(file, walk.diagnostics());
  module.program = std::move(parsed.program);
  module.failed = !parsed.ok;
}

}  // namespace unisono::lang
