#include "host/lsp/syntax.h"

#include <cctype>
#include <filesystem>
#include <utility>

#include "lang/syntax/parser.h"

namespace unisono::host::lsp {

Syntax::Syntax(std::string path, std::string text)
    : text_(std::move(text)),
      file_(&sources_.add(std::move(path), text_.str())) {
  lang::ParseResult parsed = lang::parse_as_written(*file_, diagnostics_);
  program_ = std::move(parsed.program);
  ok_ = parsed.ok;
  lang::Diagnostics again;  // what the parser has told
  tokens_ = lang::lex(*file_, again).tokens;
  names_ = std::make_unique<Names>(*program_);
}

std::string Syntax::path_of(const lang::ImportStmt& import) const {
  return (std::filesystem::path(path()).parent_path() / import.module.text)
      .string();
}

std::vector<std::string> Syntax::imported_files() const {
  std::vector<std::string> out;
  for (const lang::ImportStmt* import : names().imports())
    if (import->is_file) out.push_back(path_of(*import));
  return out;
}

std::string one_line(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool space = std::isspace(static_cast<unsigned char>(c)) != 0;
    if (!space)
      out += c;
    else if (!out.empty() && out.back() != ' ')
      out += ' ';
  }
  while (out.ends_with(' ')) out.pop_back();
  return out;
}

std::vector<std::string_view> split_at_commas(std::string_view text) {
  std::vector<std::string_view> out;
  int depth = 0;
  bool quoted = false;
  size_t begin = 0;
  auto add = [&](size_t end) {
    std::string_view part = text.substr(begin, end - begin);
    while (part.starts_with(' ')) part.remove_prefix(1);
    while (part.ends_with(' ')) part.remove_suffix(1);
    if (!part.empty()) out.push_back(part);
    begin = end + 1;
  };
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') quoted = !quoted;
    if (quoted) continue;
    if (c == '(' || c == '[' || c == '{') ++depth;
    if (c == ')' || c == ']' || c == '}') --depth;
    if (c == ',' && depth == 0) add(i);
  }
  add(text.size());
  return out;
}

namespace {

void add_parameter(Signature& to, std::string_view text, std::string name,
                   bool keyword_only, bool rest = false) {
  if (!to.parameters.empty() || to.label.ends_with('*')) to.label += ", ";
  const auto begin = static_cast<uint32_t>(to.label.size());
  to.label += text;
  to.parameters.push_back({std::move(name), begin,
                           static_cast<uint32_t>(to.label.size()), keyword_only,
                           rest});
}

void add_star(Signature& to) {
  to.label += to.parameters.empty() ? "*" : ", *";
}

}  // namespace

Signature signature_of(std::string_view name, const lang::Function& function) {
  Signature out;
  out.label = std::string(name) + "(";
  bool star = false;
  for (const lang::Param& p : function.params) {
    if (p.keyword_only && !std::exchange(star, true)) add_star(out);
    const bool named = p.pattern.kind == lang::Pattern::Kind::name;
    add_parameter(out, one_line(p.span.text()),
                  named ? p.pattern.name.text : "", p.keyword_only);
  }
  out.label += ")";
  if (function.result)
    out.label += " -> " + one_line(function.result->span.text());
  return out;
}

Signature signature_of(std::string_view name, std::string_view parameters) {
  Signature out;
  out.label = std::string(name) + "(";
  bool star = false;
  for (const std::string_view part : split_at_commas(parameters)) {
    if (part == "*") {
      star = true;
      add_star(out);
    } else if (part.starts_with('*')) {
      add_parameter(out, part, "", false, true);
    } else {
      add_parameter(out, part, std::string(part.substr(0, part.find('='))),
                    star);
    }
  }
  out.label += ")";
  return out;
}

}  // namespace unisono::host::lsp
