#include "host/lsp/answers.h"

namespace unisono::host::lsp {
namespace {

using lang::as;

/// SymbolKind.
enum class SymbolKind : int {
  module = 2,
  function = 12,
  variable = 13,
  constant = 14,
  structure = 23,
  event = 24,
};

class Symbols {
 public:
  explicit Symbols(View& view) : view_(view) {}

  Json list(const std::vector<lang::StmtPtr>& statements) {
    Json out = Json::array();
    for (const lang::StmtPtr& s : statements) add(*s, out);
    return out;
  }

 private:
  Json symbol(const std::string& name, SymbolKind kind, lang::Span whole,
              lang::Span where) const {
    return {{"name", name},
            {"kind", static_cast<int>(kind)},
            {"range", view_.range(whole)},
            {"selectionRange", view_.range(where)}};
  }
  void add_pattern(const lang::Pattern& p, const lang::LetStmt& let,
                   Json& out) const {
    if (p.kind == lang::Pattern::Kind::name)
      out.push_back(symbol(
          p.name.text, let.is_var ? SymbolKind::variable : SymbolKind::constant,
          let.span, p.name.span));
    for (const lang::Pattern& item : p.items) add_pattern(item, let, out);
  }

  void add(const lang::Stmt& s, Json& out) {
    if (const auto* def = as<lang::DefStmt>(s)) {
      Json here =
          symbol(def->name.text, SymbolKind::function, s.span, def->name.span);
      here["detail"] = signature_of("", def->function).label;
      if (const auto* block = as<lang::Block>(*def->function.body))
        here["children"] = list(block->statements);
      out.push_back(std::move(here));
    } else if (const auto* let = as<lang::LetStmt>(s)) {
      add_pattern(let->pattern, *let, out);
    } else if (const auto* type = as<lang::TypeStmt>(s)) {
      out.push_back(symbol(type->name.text, SymbolKind::structure, s.span,
                           type->name.span));
    } else if (const auto* axis = as<lang::AxisStmt>(s)) {
      for (const lang::Name& name : axis->names)
        out.push_back(
            symbol(name.text, SymbolKind::constant, s.span, name.span));
    } else if (const auto* import = as<lang::ImportStmt>(s)) {
      const lang::Name name = lang::module_name(*import);
      out.push_back(symbol(name.text.empty() ? "import" : name.text,
                           SymbolKind::module, s.span, name.span));
    } else if (const auto* tool = as<lang::ToolStmt>(s)) {
      Json here = symbol(
          tool->name.empty() ? std::string(word(tool->tool)) : tool->name,
          SymbolKind::event, s.span, tool->name_span);
      if (const auto* block = as<lang::Block>(*tool->body))
        here["children"] = list(block->statements);
      out.push_back(std::move(here));
    }
  }

  View& view_;
};

}  // namespace

Json symbols(View& view) {
  return Symbols(view).list(view.syntax().program().statements);
}

Json folds(View& view) {
  using lang::TokenKind;
  const Text& text = view.syntax().text();
  Json out = Json::array();
  const auto add = [&](uint32_t first, uint32_t last, const char* kind) {
    if (last <= first) return;
    Json fold = {{"startLine", first}, {"endLine", last}};
    if (kind) fold["kind"] = kind;
    out.push_back(std::move(fold));
  };
  std::vector<uint32_t> open;  // lines of brackets
  uint32_t folded = UINT32_MAX;
  for (const lang::Token& t : view.syntax().tokens()) {
    const bool opens = t.kind == TokenKind::LeftBrace ||
                       t.kind == TokenKind::LeftParen ||
                       t.kind == TokenKind::LeftBracket;
    const bool closes = t.kind == TokenKind::RightBrace ||
                        t.kind == TokenKind::RightParen ||
                        t.kind == TokenKind::RightBracket;
    if (opens) open.push_back(text.line_of(t.begin));
    if (!closes || open.empty()) continue;
    const uint32_t first = open.back(), last = text.line_of(t.begin);
    open.pop_back();
    // The line of the closing bracket stays visible; a line folds once.
    if (last > first + 1 && first != folded) add(first, last - 1, nullptr);
    if (last > first) folded = first;
  }
  const auto& comments = view.syntax().program().comments;
  for (size_t i = 0; i < comments.size();) {
    size_t next = i + 1;
    const uint32_t first = text.line_of(comments[i].span.begin);
    uint32_t last = first;
    while (comments[i].own_line && next < comments.size() &&
           comments[next].own_line &&
           text.line_of(comments[next].span.begin) == last + 1) {
      ++last;
      ++next;
    }
    add(first, last, "comment");
    i = next;
  }
  return out;
}

}  // namespace unisono::host::lsp
