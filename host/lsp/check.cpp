#include "host/lsp/check.h"

#include <algorithm>
#include <cctype>
#include <string_view>

#include "jit/compile.h"
#include "lang/context/walk.h"
#include "lang/source/stdlib.h"
#include "lang/syntax/parser.h"
#include "lang/walk/tools.h"
#include "runtime/execute/program.h"
#include "runtime/stop.h"

namespace unisono::host::lsp {
namespace {

class Messages {
 public:
  Messages(const CheckRequest& request, Checked& out)
      : request_(request), out_(out) {}

  void add(const lang::Diagnostic& d) {
    Message m;
    m.severity = d.severity;
    m.code = lang::info(d.code).number;
    m.text = d.message;
    for (const std::string& fact : d.facts) m.text += "\n= " + fact;
    lang::Span at = d.where;
    if (at && !is_own(at)) {
      relate(m, d.where, d.label.empty() ? "here" : d.label);
      const auto own = std::ranges::find_if(
          d.notes, [&](const lang::Note& note) { return is_own(note.where); });
      at = own == d.notes.end() ? import_of(at) : own->where;
    }
    for (const lang::Note& note : d.notes) relate(m, note.where, note.text);
    if (!d.help.empty()) m.text += "\nhelp: " + d.help;
    if (at)
      m.range =
          request_.syntax->text().range(at.begin, at.end, request_.encoding);
    if (is_own(d.where)) m.fixes = fixes(d, *request_.syntax);
    out_.has_errors |= d.severity == lang::Severity::error;
    out_.messages.push_back(std::move(m));
  }

 private:
  bool is_own(lang::Span where) const {
    return where.file && where.file == request_.syntax->program().file;
  }

  /// The import that brings another file, or one that may.
  lang::Span import_of(lang::Span where) const {
    const lang::ImportStmt* best = nullptr;
    for (const lang::ImportStmt* import : request_.syntax->names().imports()) {
      if (!import->is_file) continue;
      const bool this_one =
          request_.syntax->path_of(*import) == where.file->path();
      if (this_one || !best) best = import;
      if (this_one) break;
    }
    return best ? best->module.span : lang::Span();
  }

  void relate(Message& m, lang::Span where, const std::string& text) {
    if (!where) {
      m.text += "\nnote: " + text;
    } else if (is_own(where)) {
      m.related.push_back(
          {{where.file->path(), request_.syntax->text().range(
                                    where.begin, where.end, request_.encoding)},
           text});
    } else if (lang::is_in_stdlib(where)) {
      m.text += "\nnote: " + text + " (" + lang::to_string(where) + ")";
    } else {
      const Text other{std::string(where.file->text())};
      m.related.push_back(
          {{where.file->path(),
            other.range(where.begin, where.end, request_.encoding)},
           text});
    }
  }

  const CheckRequest& request_;
  Checked& out_;
};

}  // namespace

bool has_names_of_sizes(std::string_view type) {
  bool inside = false;
  for (size_t i = 0; i < type.size(); ++i) {
    if (type[i] == '[' || type[i] == ']') inside = type[i] == '[';
    if (inside && (std::isalpha(static_cast<unsigned char>(type[i])) ||
                   type[i] == '_' || type[i] == '?'))
      return true;
  }
  return false;
}

namespace {
/// A type as people see it: `f32[?, 8]` of `f32[?k7, 8]`, as nobody asks which
/// open sizes are equal.
std::string without_numbers(std::string type) {
  for (size_t i = 0; (i = type.find("?k", i)) != type.npos; ++i) {
    const size_t end = type.find_first_not_of("0123456789", i + 2);
    if (end != i + 2) type.erase(i + 1, end - i - 1);
  }
  return type;
}
}  // namespace

std::optional<Checked> check(const CheckRequest& request,
                             const std::atomic<bool>* stop) {
  const Syntax& syntax = *request.syntax;
  Checked out{request.syntax, {}, false, {}};
  Messages messages(request, out);
  for (const lang::Diagnostic& d : syntax.diagnostics().all()) messages.add(d);
  if (!syntax.ok()) return out;

  Runtime runtime(request.devices, /*workers=*/1);
  jit::Compiler compiler;
  lang::Machine machine;
  machine.runtime = &runtime;
  machine.compiler = &compiler;
  machine.stop = stop;
  machine.arguments_known = false;
  machine.output = [](std::string_view) {};
  lang::SourceMap sources;
  lang::Diagnostics diagnostics;
  lang::Walk walk(machine, sources, diagnostics);
  walk.keep_types = true;
  const StopScope scope(stop);
  for (const auto& [path, text] : request.modules)
    lang::provide_module(walk, path, text);
  lang::Diagnostics known;  // from before
  const lang::ParseResult parsed = lang::parse(*syntax.program().file, known);
  walk.check(*parsed.program);
  for (const lang::Diagnostic& d : diagnostics.all()) {
    if (d.code == lang::Code::cancelled) return std::nullopt;
    messages.add(d);
  }
  for (lang::KnownType& type : lang::known_types(walk)) {
    type.type = without_numbers(std::move(type.type));
    std::vector<std::string>& types = out.types[type.where.begin];
    if (std::ranges::count(types, type.type) > 0) continue;
    const auto place = has_names_of_sizes(type.type)
                           ? std::ranges::find_if_not(types, has_names_of_sizes)
                           : types.end();
    types.insert(place, std::move(type.type));
  }
  return out;
}

}  // namespace unisono::host::lsp
