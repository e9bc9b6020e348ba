// Statements and declarations.
#include <algorithm>
#include <span>

#include "lang/syntax/parser_impl.h"

namespace unisono::lang {
namespace {

/// What an expression is, where it cannot be assigned to.
std::string_view kind_of(const Expr& e) {
  if (e.kind == ExprKind::Call) return "the result of a call";
  if (e.kind == ExprKind::Tuple) return "a tuple";
  if (e.kind == ExprKind::Record) return "a record";
  const bool literal =
      e.kind == ExprKind::IntLiteral || e.kind == ExprKind::FloatLiteral ||
      e.kind == ExprKind::StringLiteral || e.kind == ExprKind::BoolLiteral ||
      e.kind == ExprKind::NoneLiteral;
  return literal ? "a literal" : "the value of an expression";
}

}  // namespace

// ---- Lists of statements

std::vector<StmtPtr> Parser::statements(TokenKind closer) {
  std::vector<StmtPtr> out;
  const int brackets_outside = std::exchange(open_brackets_, 0);
  const bool in_block = closer == TokenKind::RightBrace;
  while (true) {
    while (at(TokenKind::Newline) || at(TokenKind::Semicolon))
      if (at(TokenKind::Newline))
        line_end_taken_ = index_;
      else
        advance();
    if (at_end() || at(closer) || state_.gave_up) break;
    poll();
    const size_t start = statement_start_ = index_;
    open_brackets_ = 0;
    const bool was_in_block = std::exchange(in_block_, in_block);
    StmtPtr next = statement();
    in_block_ = was_in_block;
    const bool ended = next && (at_statement_end() || at(closer));
    if (next && !ended) not_ended();
    if (!ended) skip_to_next_statement(start);
    if (index_ == start) advance();
    if (!next) continue;
    if (!out.empty()) warn_if_continuation(*next, *out.back());
    out.push_back(std::move(next));
  }
  open_brackets_ = brackets_outside;
  return out;
}

/// `let a = b` and below it, further right, `- c`: legal, and hardly meant.
void Parser::warn_if_continuation(const Stmt& statement, const Stmt& before) {
  if (statement.kind != StmtKind::ExprStmt) return;
  const char first = statement.span.text().front();
  if (first != '-' && first != '(' && first != '[') return;
  const SourceFile& file = state_.file;
  const SourceFile::Place here = file.place(statement.span.begin);
  const bool next_line = file.place(before.span.end).line + 1 == here.line;
  if (!next_line || here.column <= file.place(before.span.begin).column) return;
  const Span mark = {&file, statement.span.begin, statement.span.begin + 1};
  if (Diagnostic* warning = report(Code::not_a_continuation, mark)) {
    warning->set_help(fmt::format(
        "to go on with the line above, end it with `{}`; else indent alike",
        first));
  }
}

ExprPtr Parser::block() {
  const Level level(*this);
  if (!level.fits()) return nullptr;
  const Token opener = token();
  if (!expect(TokenKind::LeftBrace)) return nullptr;
  const LineEnds inside(*this, true);
  auto node = std::make_unique<Block>();
  node->statements = statements(TokenKind::RightBrace);
  if (!at(TokenKind::RightBrace)) {
    ++open_brackets_;
    close(TokenKind::RightBrace, opener);
    return nullptr;
  }
  advance();
  return finish(std::move(node), opener.begin);
}

StmtPtr Parser::statement() {
  const bool next_is_name =
      token_after().kind == TokenKind::Identifier && !token_after().line_start;
  const bool next_is_string = token_after().kind == TokenKind::String;
  if (at_word("axis") && next_is_name) return axis_statement();
  if (at_word("type") && next_is_name) return type_statement();
  for (const auto tool : {ToolStmt::Tool::test, ToolStmt::Tool::bench})
    if (at_word(word(tool)) && next_is_string) return tool_statement(tool);
  if (at(TokenKind::Let) || at(TokenKind::Var)) return let_statement();
  if (at(TokenKind::Def)) return def_statement();
  if (at(TokenKind::At)) return decorated();
  if (at(TokenKind::Import)) return import_statement();
  if (at(TokenKind::For)) return for_statement();
  if (at(TokenKind::While)) return while_statement();
  if (at(TokenKind::Break) || at(TokenKind::Continue) || at(TokenKind::Return))
    return jump_statement();
  if (arrow_assignment()) return nullptr;
  if (at(TokenKind::Else)) {
    if (Diagnostic* mistake = report(Code::else_on_new_line, here()))
      mistake->set_help("it follows the `}` of an `if`");
    return nullptr;
  }
  return expression_statement();
}

bool Parser::at_top_level(std::string_view what) {
  if (!in_block_) return true;
  report(Code::not_at_top_level, here(), what);
  return false;
}

// ---- Names and patterns

void Parser::collect_names(const Pattern& pattern, std::vector<Name>* out) {
  if (pattern.kind == Pattern::Kind::name) out->push_back(pattern.name);
  for (const Pattern& item : pattern.items) collect_names(item, out);
}

bool Parser::name(Name* out) {
  if (at(TokenKind::Identifier)) {
    *out = {std::string(text_of(token())), span_of(token())};
    advance();
    return true;
  }
  if (is_keyword(kind())) {
    Diagnostic* mistake =
        report(Code::keyword_as_name, here(), text_of(token()));
    const bool surplus =
        index_ > 0 && tokens_[index_ - 1].kind == TokenKind::Comma;
    if (mistake && surplus && at(TokenKind::In))
      mistake->set_help("leave out the comma, or write `_` behind it");
  } else {
    expected_name();
  }
  return false;
}

/// `let [a, b] = ...` of Python and JavaScript.
void Parser::expected_name() {
  if (!at(TokenKind::LeftBracket)) return expected("a name");
  Diagnostic* mistake =
      report(Code::unexpected_token, here(), "a name", found());
  if (mistake) mistake->set_help("put several names in parentheses: `(a, b)`");
}

bool Parser::pattern(Pattern* out) {
  const Level level(*this);
  if (!level.fits()) return false;
  const Token first = token();
  if (at(TokenKind::LeftParen)) {
    const LineEnds inside(*this, false);
    advance();
    ++open_brackets_;
    out->kind = Pattern::Kind::tuple;
    while (!at(TokenKind::RightParen)) {
      if (!pattern(&out->items.emplace_back())) return false;
      if (!eat(TokenKind::Comma)) break;
    }
    if (at(TokenKind::Assign)) {
      report(Code::unclosed_bracket, here(), ")", "(", found());
      return false;
    }
    if (!close(TokenKind::RightParen, first)) return false;
  } else if (at_word("_")) {
    out->kind = Pattern::Kind::wildcard;
    advance();
  } else {
    if (!name(&out->name)) return false;
    out->kind = Pattern::Kind::name;
  }
  out->span = span_from(first.begin);
  return true;
}

bool Parser::binding(Pattern* out) {
  const uint32_t begin = token().begin;
  if (!pattern(out)) return false;
  if (at(TokenKind::Comma)) {
    Pattern all;
    all.kind = Pattern::Kind::tuple;
    all.bare = true;
    all.items.push_back(std::move(*out));
    while (eat(TokenKind::Comma))
      if (!pattern(&all.items.emplace_back())) return false;
    all.span = span_from(begin);
    *out = std::move(all);
  }
  std::vector<Name> names;
  collect_names(*out, &names);
  return !duplicate(names, "pattern");
}

ExprPtr Parser::several(ExprPtr first, uint32_t begin) {
  if (!at(TokenKind::Comma)) return first;
  auto tuple = std::make_unique<Tuple>();
  tuple->bare = true;
  tuple->items.push_back(std::move(first));
  while (eat(TokenKind::Comma)) {
    ExprPtr item = expression();
    if (!item) return nullptr;
    tuple->items.push_back(std::move(item));
  }
  return finish(std::move(tuple), begin);
}

bool Parser::targets_follow() const {
  int open = 0;
  for (size_t at = index_; at < tokens_.size(); ++at) {
    switch (tokens_[at].kind) {
      case TokenKind::LeftParen:
      case TokenKind::LeftBracket: ++open; break;
      case TokenKind::RightParen:
      case TokenKind::RightBracket:
        if (--open < 0) return false;
        break;
      case TokenKind::Assign:
      case TokenKind::CompoundAssign:
        if (open == 0) return true;
        break;
      case TokenKind::LeftBrace:
      case TokenKind::RightBrace:
      case TokenKind::Semicolon:
      case TokenKind::Newline:
      case TokenKind::EndOfPart:
      case TokenKind::EndOfFile: return false;
      default: break;
    }
  }
  return false;
}

bool Parser::type_params(std::vector<TypeParam>* out) {
  const Token opener = token();
  if (!at(TokenKind::LeftBracket)) return true;
  const LineEnds inside(*this, false);
  advance();
  ++open_brackets_;
  std::vector<Name> names;
  while (!at(TokenKind::RightBracket)) {
    TypeParam& param = out->emplace_back();
    if (!name(&param.name)) return false;
    names.push_back(param.name);
    if (eat(TokenKind::Colon)) {
      param.restriction = expression();
      if (!param.restriction) return false;
    }
    if (!eat(TokenKind::Comma)) break;
  }
  return close(TokenKind::RightBracket, opener) &&
         !duplicate(names, "list of type parameters");
}

// ---- Declarations

StmtPtr Parser::let_statement() {
  const uint32_t begin = token().begin;
  auto node = std::make_unique<LetStmt>();
  node->is_var = at(TokenKind::Var);
  advance();
  if (!binding(&node->pattern)) return nullptr;
  if (eat(TokenKind::Colon)) {
    node->type = expression();
    if (!node->type) return nullptr;
  }
  if (!at(TokenKind::Assign)) return no_value(*node);
  advance();
  const uint32_t value = token().begin;
  node->value = expression();
  if (node->value && node->pattern.kind == Pattern::Kind::tuple)
    node->value = several(std::move(node->value), value);
  if (!node->value) return nullptr;
  return finish(std::move(node), begin);
}

/// `let x`, `let mut x = 3`, `let f(x) = x + 1`
StmtPtr Parser::no_value(const LetStmt& let) {
  const size_t before = state_.diagnostics.size();
  expected(description(TokenKind::Assign));
  if (state_.diagnostics.size() == before) return nullptr;
  const std::string_view name = let.pattern.span.text();
  std::string help;
  if (at(TokenKind::Identifier) && name == "mut") {
    help = fmt::format("write `var {} = ...`", text_of(token()));
  } else if (at(TokenKind::Identifier) || at(TokenKind::LeftParen)) {
    help = fmt::format("a function is defined by `def {}(x) = ...`", name);
  } else if (at(TokenKind::As)) {
    help = fmt::format("a type follows a `:`: `{}: f32`", name);
  } else if (at_statement_end()) {
    help = fmt::format("a name is bound to a value: `{} {} = ...`",
                       let.is_var ? "var" : "let", name);
  }
  if (!help.empty()) state_.diagnostics.last().set_help(std::move(help));
  return nullptr;
}

/// The `##` lines that end on the line above `offset`, without gaps.
std::string Parser::documentation_before(uint32_t offset) const {
  const SourceFile& file = state_.file;
  const auto end = std::partition_point(
      comments_.begin(), comments_.end(),
      [&](const Comment& c) { return c.span.begin < offset; });
  auto begin = end;
  int line = file.place(offset).line;
  const auto is_documentation = [&](const Comment& c) {
    return c.own_line && c.span.text().starts_with("##") &&
           file.place(c.span.begin).line == line - 1;
  };
  while (begin != comments_.begin() && is_documentation(*(begin - 1))) {
    --begin;
    --line;
  }
  std::string out;
  for (const Comment& comment : std::span(begin, end)) {
    std::string_view text = comment.span.text().substr(2);
    if (text.starts_with(' ')) text.remove_prefix(1);
    out += text;
    out += '\n';
  }
  return out;
}

StmtPtr Parser::decorated() {
  const uint32_t begin = token().begin;
  const Span first = here();
  const bool starts_line = token().line_start;
  std::vector<ExprPtr> decorators;
  while (eat(TokenKind::At)) {
    ExprPtr decorator = expression();
    if (!decorator) return nullptr;
    decorators.push_back(std::move(decorator));
    if (at(TokenKind::Newline)) line_end_taken_ = index_;
  }
  if (!at(TokenKind::Def)) {
    if (at_end()) {
      expected("`def`");
    } else if (Diagnostic* mistake =
                   report(Code::bad_decorator, first, found());
               mistake && starts_line) {
      mistake->set_help("to go on with the line above, move `@` to its end");
    }
    return nullptr;
  }
  StmtPtr node = def_statement();
  if (!node) return nullptr;
  auto def = std::unique_ptr<DefStmt>(static_cast<DefStmt*>(node.release()));
  def->documentation = documentation_before(begin);
  def->decorators = std::move(decorators);
  return finish(std::move(def), begin);
}

StmtPtr Parser::def_statement() {
  const uint32_t begin = token().begin;
  advance();
  auto node = std::make_unique<DefStmt>();
  node->documentation = documentation_before(begin);
  if (!name(&node->name)) return nullptr;
  Function& function = node->function;
  if (!type_params(&function.type_params)) return nullptr;
  const Token opener = token();
  if (!expect(TokenKind::LeftParen)) return nullptr;
  if (!parameters(opener, &function.params)) return nullptr;
  function.params_span = span_from(opener.begin);
  if (eat(TokenKind::Arrow)) {
    function.result = expression();
    if (!function.result) return nullptr;
  }
  if (state_.declaration && at(TokenKind::EndOfFile))
    return finish(std::move(node), begin);
  if (at(TokenKind::LeftBrace))
    function.body = block();
  else if (expect(TokenKind::Assign, "`=` or `{`"))
    function.body = expression();
  if (!function.body) return nullptr;
  return finish(std::move(node), begin);
}

StmtPtr Parser::type_statement() {
  const uint32_t begin = token().begin;
  advance();
  auto node = std::make_unique<TypeStmt>();
  if (!name(&node->name) || !type_params(&node->type_params)) return nullptr;
  if (!expect(TokenKind::Assign)) return nullptr;
  node->type = expression();
  if (!node->type) return nullptr;
  return finish(std::move(node), begin);
}

StmtPtr Parser::axis_statement() {
  const uint32_t begin = token().begin;
  advance();
  auto node = std::make_unique<AxisStmt>();
  do {
    if (!name(&node->names.emplace_back())) return nullptr;
  } while (eat(TokenKind::Comma));
  if (duplicate(node->names, "declaration")) return nullptr;
  if (eat(TokenKind::Assign)) {
    node->value = expression();
    if (!node->value) return nullptr;
  }
  return finish(std::move(node), begin);
}

StmtPtr Parser::import_statement() {
  const uint32_t begin = token().begin;
  if (!at_top_level("`import`")) return nullptr;
  advance();
  auto node = std::make_unique<ImportStmt>();
  node->is_file = at(TokenKind::String);
  if (node->is_file) {
    if (!plain_string(&node->module, "the path of an import")) return nullptr;
  } else if (!name(&node->module)) {
    return nullptr;
  }
  if (at(TokenKind::Dot) || at(TokenKind::Comma)) {
    const bool dot = at(TokenKind::Dot);
    const size_t before = state_.diagnostics.size();
    expected("the end of the statement");
    if (state_.diagnostics.size() > before)
      state_.diagnostics.last().set_help(
          dot ? "a module is a name, `import nn`, or the path of a file in "
                "quotes; functions of arrays are in scope without import"
              : "import one module a line");
    return nullptr;
  }
  if (eat(TokenKind::As) && !name(&node->alias.emplace())) return nullptr;
  return finish(std::move(node), begin);
}

StmtPtr Parser::tool_statement(ToolStmt::Tool tool) {
  const uint32_t begin = token().begin;
  if (!at_top_level(fmt::format("`{}`", word(tool)))) return nullptr;
  advance();
  auto node = std::make_unique<ToolStmt>();
  node->tool = tool;
  Name title;
  if (!plain_string(&title, fmt::format("the name of a {}", word(tool))))
    return nullptr;
  node->name = std::move(title.text);
  node->name_span = title.span;
  node->body = block();
  if (!node->body) return nullptr;
  return finish(std::move(node), begin);
}

// ---- Loops and assignments

StmtPtr Parser::for_statement() {
  const uint32_t begin = token().begin;
  advance();
  auto node = std::make_unique<ForStmt>();
  if (foreign_for()) return nullptr;
  if (!binding(&node->pattern)) return nullptr;
  if (!expect(TokenKind::In)) return nullptr;
  node->iterable = expression();
  if (!node->iterable || range_of_colons()) return nullptr;
  node->body = block();
  if (!node->body) return nullptr;
  return finish(std::move(node), begin);
}

StmtPtr Parser::while_statement() {
  const uint32_t begin = token().begin;
  advance();
  auto node = std::make_unique<WhileStmt>();
  node->condition = expression();
  if (!node->condition) return nullptr;
  if (eat(TokenKind::Comma)) {
    if (!at_word("max")) {
      expected("`max=`");
      return nullptr;
    }
    advance();
    if (!expect(TokenKind::Assign, "`=` after `max`")) return nullptr;
    node->most = expression();
    if (!node->most) return nullptr;
  }
  node->body = block();
  if (!node->body) return nullptr;
  return finish(std::move(node), begin);
}

StmtPtr Parser::jump_statement() {
  using Jump = JumpStmt::Jump;
  const uint32_t begin = token().begin;
  auto node = std::make_unique<JumpStmt>();
  node->jump = at(TokenKind::Break)      ? Jump::leave_loop
               : at(TokenKind::Continue) ? Jump::next_turn
                                         : Jump::give;
  advance();
  const bool ends = at_statement_end() || at(TokenKind::RightBrace);
  if (node->jump == Jump::give && !ends) {
    const uint32_t value = token().begin;
    node->value = expression();
    if (node->value) node->value = several(std::move(node->value), value);
    if (!node->value) return nullptr;
  }
  return finish(std::move(node), begin);
}

StmtPtr Parser::expression_statement() {
  const uint32_t begin = token().begin;
  ExprPtr expr = expression();
  if (expr && at(TokenKind::Comma) && targets_follow())
    expr = several(std::move(expr), begin);
  if (!expr) return nullptr;
  if (at(TokenKind::Assign) || at(TokenKind::CompoundAssign))
    return assignment(std::move(expr), begin);
  auto node = std::make_unique<ExprStmt>();
  node->expr = std::move(expr);
  return finish(std::move(node), begin);
}

bool Parser::check_target(const Expr& target) {
  const auto* parts = as<Tuple>(target);
  if (parts && !parts->items.empty() && at(TokenKind::Assign))
    return std::all_of(
        parts->items.begin(), parts->items.end(), [&](const ExprPtr& part) {
          return part->kind == ExprKind::Wildcard || check_target(*part);
        });
  const Expr* root = &target;
  while (true)
    if (const auto* item = as<Index>(*root))
      root = item->object.get();
    else if (const auto* part = as<Field>(*root))
      root = part->object.get();
    else
      break;
  if (root->kind == ExprKind::NameExpr) return true;
  if (Diagnostic* mistake =
          report(Code::bad_target, target.span, kind_of(*root))) {
    mistake->set_help(
        parts ? "change one variable in each statement"
        : target.kind == ExprKind::Call
            ? fmt::format("a function is defined by `def {} = ...`",
                          target.span.text())
            : "assign to a `var`, or to `x[i]` or `x.field` of one");
  }
  return false;
}

StmtPtr Parser::assignment(ExprPtr target, uint32_t begin) {
  if (!check_target(*target)) return nullptr;
  auto node = std::make_unique<AssignStmt>();
  node->target = std::move(target);
  node->op_span = here();
  std::string_view op = text_of(token());
  op.remove_suffix(1);
  for (const BinaryRule& rule : binary_rules)
    if (spelling(rule.op) == op) node->op = rule.op;
  advance();
  const uint32_t value = token().begin;
  node->value = expression();
  if (node->value && node->target->kind == ExprKind::Tuple)
    node->value = several(std::move(node->value), value);
  if (!node->value) return nullptr;
  return finish(std::move(node), begin);
}

}  // namespace unisono::lang
