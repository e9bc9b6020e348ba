#include "host/manual/module.h"

#include <fmt/format.h>

#include <algorithm>

namespace unisono::host::manual {
namespace {

std::string_view mark = "##";

/// The `##` lines from `first` up to before `end`, without mark and one space.
Comment comment_of(const lang::SourceFile& file, int first, int end) {
  Comment out{"", first};
  for (int line = first; line < end; ++line) {
    std::string_view text = file.line(line);
    text.remove_prefix(mark.size());
    if (text.starts_with(' ')) text.remove_prefix(1);
    if (text.ends_with('\r')) text.remove_suffix(1);
    out.text += std::string(text) + "\n";
  }
  return out;
}

bool is_marked(const lang::SourceFile& file, int line) {
  return line >= 1 && line <= file.line_count() &&
         file.line(line).starts_with(mark);
}

/// What stands right above a line.
Comment above(const lang::SourceFile& file, int line) {
  int first = line;
  while (is_marked(file, first - 1)) --first;
  return comment_of(file, first, line);
}

/// The first lines of a file, if an empty one follows.
Comment about_file(const lang::SourceFile& file) {
  int first = 1;
  while (first <= file.line_count() && !is_marked(file, first) &&
         (file.line(first).empty() || file.line(first).starts_with('#')))
    ++first;
  int end = first;
  while (is_marked(file, end)) ++end;
  const bool documents =
      end <= file.line_count() && !file.line(end).empty() && end > first;
  return documents ? Comment{"", first} : comment_of(file, first, end);
}

Entry entry_of(const lsp::Definition& d) {
  Entry out;
  out.name = d.name;
  if (d.function) {
    std::string name(d.name);
    if (d.def && !d.function->type_params.empty())
      name = lsp::one_line(
          lang::Span{d.where.file, d.where.begin, d.function->params_span.begin}
              .text());
    out.signature = lsp::signature_of(name, *d.function).label;
    if (d.def)
      for (const lang::ExprPtr& decorator : d.def->decorators)
        out.decorators.push_back("@" + lsp::one_line(decorator->span.text()));
    return out;
  }
  out.kind = d.alias  ? Entry::Kind::type
             : d.axis ? Entry::Kind::axis
                      : Entry::Kind::constant;
  out.signature = lsp::one_line(d.whole.text());
  constexpr size_t most = 100;
  if (out.kind == Entry::Kind::constant && out.signature.size() > most)
    out.signature =
        fmt::format("{} {} = ...", d.is_var ? "var" : "let", d.name);
  return out;
}

}  // namespace

std::string_view name(Entry::Kind kind) {
  switch (kind) {
    case Entry::Kind::function: return "function";
    case Entry::Kind::type: return "type";
    case Entry::Kind::constant: return "constant";
    case Entry::Kind::axis: return "axis";
  }
  return "";
}

void read_entries(Module& module) {
  const lang::SourceFile& file = *module.syntax->program().file;
  const lsp::Names& names = module.syntax->names();
  module.about = about_file(file);
  std::vector<const lsp::Definition*> definitions;
  for (const lsp::Definition& d : names.definitions())
    if (names.is_top_level(d) && !d.name.starts_with('_') && !d.import &&
        names.resolution().exported(d.name) == &d)
      definitions.push_back(&d);
  std::ranges::sort(definitions, {},
                    [](const lsp::Definition* d) { return d->where.begin; });
  for (const lsp::Definition* d : definitions) {
    Entry entry = entry_of(*d);
    entry.line = file.place(d->whole.begin).line;
    entry.documentation = above(file, entry.line);
    module.entries.push_back(std::move(entry));
  }
}

}  // namespace unisono::host::manual
