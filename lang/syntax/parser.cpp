// Tokens, mistakes and recovery; the statements are in parser_statement.cpp,
// what other languages write in parser_habits.cpp.
#include "lang/syntax/parser.h"

#include "lang/syntax/jumps.h"
#include "lang/syntax/parser_impl.h"
#include "runtime/stop.h"

namespace unisono::lang {
Parser::Parser(ParseState& state, Tokens tokens)
    : state_(state),
      tokens_(std::move(tokens.tokens)),
      comments_(std::move(tokens.comments)) {}

// ---- Tokens

const Token& Parser::token_after(size_t ahead) const {
  return tokens_[std::min(index_ + ahead, tokens_.size() - 1)];
}

std::string_view Parser::text_of(const Token& t) const {
  return span_of(t).text();
}

Span Parser::span_of(const Token& t) const {
  return {&state_.file, t.begin, t.end};
}

TokenKind Parser::kind() const {
  const Token& t = token();
  const bool ends = t.line_start && line_ends_matter_ && index_ > 0 &&
                    line_end_taken_ != index_ &&
                    !continues_line(tokens_[index_ - 1].kind);
  return ends ? TokenKind::Newline : t.kind;
}

bool Parser::at_word(std::string_view word) const {
  return at(TokenKind::Identifier) && text_of(token()) == word;
}

bool Parser::at_end() const {
  return token().kind == TokenKind::EndOfFile ||
         token().kind == TokenKind::EndOfPart;
}

bool Parser::at_statement_end() const {
  return at(TokenKind::Newline) || at(TokenKind::Semicolon) || at_end();
}

bool Parser::eat(TokenKind wanted) {
  if (!at(wanted)) return false;
  advance();
  return true;
}

Span Parser::here() const {
  const bool at_token = !at(TokenKind::Newline) && !at_end();
  if (at_token) return span_of(token());
  const uint32_t end = index_ > 0 ? tokens_[index_ - 1].end : token().begin;
  return {&state_.file, end, end};
}

Span Parser::span_from(uint32_t begin) const {
  const uint32_t end = index_ > 0 ? tokens_[index_ - 1].end : begin;
  return {&state_.file, begin, std::max(begin, end)};
}

// ---- Mistakes

std::string Parser::found() const {
  const TokenKind now = kind();
  const std::string_view text = text_of(token());
  if (now == TokenKind::Identifier) return fmt::format("the name `{}`", text);
  if (now == TokenKind::CompoundAssign) return fmt::format("`{}`", text);
  if (now == TokenKind::Integer || now == TokenKind::Float)
    return fmt::format("the number `{}`", text);
  return std::string(description(now));
}

void Parser::poll() const {
  if (!stop_requested()) return;
  state_.diagnostics.report(Code::cancelled, here());
  throw Stopped();
}

Diagnostic* Parser::add(Diagnostic mistake) {
  if (mistake.severity != Severity::error)
    return &state_.diagnostics.add(std::move(mistake));
  brackets_at_error_ = open_brackets_;
  const bool known =
      error_index_ == index_ || token().kind == TokenKind::Invalid;
  error_index_ = index_;
  if (known || state_.gave_up) return nullptr;
  const size_t errors = state_.diagnostics.error_count() - state_.errors_before;
  if (errors >= max_errors) {
    state_.diagnostics.report(Code::too_many_errors, mistake.where);
    state_.gave_up = true;
    return nullptr;
  }
  if (errors == 0) state_.incomplete = mistake.code == Code::unexpected_end;
  return &state_.diagnostics.add(std::move(mistake));
}

void Parser::expected(std::string_view what) {
  if (at(TokenKind::EndOfFile)) {
    report(Code::unexpected_end, here(), what);
    return;
  }
  Diagnostic* mistake = report(Code::unexpected_token, here(), what, found());
  const bool brace_below =
      at(TokenKind::Newline) && token().kind == TokenKind::LeftBrace;
  const bool block = what.find('{') != what.npos;
  if (mistake && brace_below) {
    mistake->set_help("put the `{` on the line above");
  } else if (block && at(TokenKind::FatArrow)) {
    if (mistake) mistake->set_help("write `=` for `=>` after the parameters");
  } else if (block) {
    skip_indented_ = true;
    const bool operation = at(TokenKind::Not) || at_word("is");
    std::string help = operation ? habit_help() : "";
    if (at(TokenKind::Tilde) && token_after().kind == TokenKind::Assign)
      help = "unequal is `!=`";
    if (help.empty())
      help = what == "`{`" ? "a block stands in braces: `{ ... }`"
                           : "write `= ...`, or a block in braces, whose last "
                             "expression is its value: `{ ... }`";
    if (mistake) mistake->set_help(std::move(help));
  }
}

bool Parser::expect(TokenKind wanted, std::string_view purpose) {
  if (eat(wanted)) return true;
  if (at(TokenKind::Assign) && wanted == TokenKind::LeftBrace)
    equals_in_expression();
  else
    expected(purpose.empty() ? description(wanted) : purpose);
  return false;
}

void Parser::equals_in_expression() {
  if (Diagnostic* mistake =
          report(Code::assignment_in_expression, here(), text_of(token()))) {
    mistake->set_help(at(TokenKind::Assign) ? "to compare, write `==`"
                                            : "an assignment is a statement of "
                                              "its own");
  }
}

bool Parser::close(TokenKind closer, const Token& opener) {
  if (eat(closer)) {
    --open_brackets_;
    return true;
  }
  const std::string_view open = spelling(opener.kind);
  const std::string_view shut = spelling(closer);
  if (at(TokenKind::Assign) || at(TokenKind::CompoundAssign)) {
    equals_in_expression();
    return false;
  }
  if (!at(TokenKind::EndOfFile) && after_foreign_word()) return false;
  if (at(TokenKind::Identifier) &&
      !foreign_word_help(text_of(token())).empty()) {
    advance();
    after_foreign_word();
    return false;
  }
  Diagnostic* mistake =
      at(TokenKind::EndOfFile)
          ? report(Code::unexpected_end, here(),
                   fmt::format("`{}` to close `{}`", shut, open))
          : report(Code::unclosed_bracket, here(), shut, open, found());
  const int line = state_.file.place(opener.begin).line;
  if (mistake && line != state_.file.place(mistake->where.begin).line) {
    mistake->add_note(span_of(opener),
                      fmt::format("`{}` is opened here", open));
  }
  const bool starts_item = at(TokenKind::Identifier) ||
                           at(TokenKind::Integer) || at(TokenKind::Float) ||
                           at(TokenKind::String);
  const bool named = at(TokenKind::Colon) && closer == TokenKind::RightParen &&
                     index_ > 0 &&
                     tokens_[index_ - 1].kind == TokenKind::Identifier;
  if (mistake && named) {
    mistake->set_help(fmt::format("an argument by name is `{}=...`",
                                  text_of(tokens_[index_ - 1])));
  } else if (mistake && at(TokenKind::Semicolon) &&
             closer == TokenKind::RightBracket) {
    mistake->set_help("the rows of a matrix are arrays: `[[1, 2], [3, 4]]`");
  } else if (std::string help = mistake ? habit_help() : ""; !help.empty()) {
    mistake->set_help(std::move(help));
  } else if (mistake && starts_item && closer == TokenKind::RightParen &&
             !at(TokenKind::Identifier) &&
             tokens_[index_ - 1].kind == TokenKind::Identifier) {
    mistake->set_help(
        fmt::format("a call has parentheses, `{}({})`; two items stand on "
                    "either side of a `,`",
                    text_of(tokens_[index_ - 1]), text_of(token())));
  } else if (mistake && starts_item) {
    mistake->set_help("two items stand on either side of a `,`");
  }
  // A line that starts here is taken for a new statement.
  if (token().line_start) brackets_at_error_ = 0;
  return false;
}

void Parser::not_ended() {
  const Token& previous = tokens_[index_ > 0 ? index_ - 1 : 0];
  if (after_foreign_word()) return;
  const bool foreign =
      at(TokenKind::Identifier) && !foreign_word_help(text_of(token())).empty();
  if (foreign) {
    advance();
    not_ended();
    return;
  }
  const bool closer = at(TokenKind::RightParen) ||
                      at(TokenKind::RightBracket) || at(TokenKind::RightBrace);
  if (closer) {
    report(Code::stray_bracket, here(), text_of(token()));
    return;
  }
  if (at(TokenKind::Assign)) {
    Diagnostic* mistake = report(Code::assignment_in_expression, here(), "=");
    if (mistake)
      mistake->set_help("bind one name in a statement; to compare, write `==`");
    return;
  }
  Diagnostic* mistake = report(Code::statement_not_ended, here(), found());
  if (!mistake) return;
  if (std::string help = habit_help(); !help.empty())
    mistake->set_help(std::move(help));
  else if (at(TokenKind::Colon))
    mistake->set_help("a type follows a name in `let name: type = value`");
  else if (previous.kind == TokenKind::RightBrace || at(TokenKind::Else))
    mistake->set_help("start a new line after `}`");
  else
    mistake->set_help("start a new line, or separate statements with `;`");
}

bool Parser::duplicate(const std::vector<Name>& names, std::string_view where) {
  std::map<std::string_view, const Name*> seen;
  for (const Name& name : names) {
    const auto [first, fresh] = seen.try_emplace(name.text, &name);
    if (fresh) continue;
    if (Diagnostic* mistake =
            report(Code::duplicate_name, name.span, name.text, where)) {
      mistake->add_note(first->second->span, "it stands here first");
    }
    return true;
  }
  return false;
}

bool Parser::too_high(int height, Span where) {
  if (height <= max_tree_height) return false;
  const Span start = {where.file, where.begin, where.begin + 1};
  if (Diagnostic* mistake = report(Code::too_long, start, "the expression",
                                   max_tree_height, "operations in a row")) {
    mistake->set_help("give a part of it a name with `let`");
  }
  return true;
}

bool Parser::Level::fits() const {
  if (parser_.state_.nesting <= max_nesting) return true;
  if (Diagnostic* mistake =
          parser_.report(Code::nesting_too_deep, parser_.here(), max_nesting)) {
    mistake->set_help("give a part of it a name with `let` or `def`");
  }
  // Where all this closes again is anyone's guess.
  parser_.state_.gave_up = true;
  return false;
}

// ---- Entry points

std::vector<StmtPtr> Parser::program() {
  return statements(TokenKind::EndOfFile);
}

ExprPtr Parser::interpolation() {
  const LineEnds inside(*this, false);
  ExprPtr value = expression();
  if (!value) return nullptr;
  if (at(TokenKind::EndOfPart)) return value;
  Diagnostic* mistake =
      report(Code::bad_interpolation, here(), "`:` or `}`", found());
  if (mistake && at(TokenKind::Assign))
    mistake->set_help(fmt::format("write `{0} = {{{0}}}`", value->span.text()));
  return nullptr;
}

namespace {
template <class Lex>
ParseResult parse(ParseState& state, Lex&& lex_all, bool lowers) {
  const SourceFile& file = state.file;
  Diagnostics& diagnostics = state.diagnostics;
  const size_t first = diagnostics.size();
  ParseResult result;
  result.program = std::make_unique<Program>();
  result.program->file = &file;
  try {
    Parser parser(state, lex_all());
    result.program->statements = parser.program();
    result.program->comments = parser.take_comments();
    check_jumps(*result.program, diagnostics);
    result.incomplete = state.incomplete;
  } catch (const Stopped&) {
    // It is among the diagnostics.
  }
  result.ok = diagnostics.error_count() == state.errors_before;
  diagnostics.sort_by_place(first);
  if (result.ok && lowers) lower_jumps(*result.program);
  return result;
}

ParseResult parse(ParseState& state, bool lowers) {
  return parse(
      state, [&] { return lex(state.file, state.diagnostics); }, lowers);
}
}  // namespace

ParseResult parse_lines(const SourceFile& file, uint32_t begin, uint32_t end,
                        Diagnostics& diagnostics) {
  ParseState state{file, diagnostics, diagnostics.error_count()};
  return parse(
      state, [&] { return lex_lines(file, begin, end, diagnostics); }, true);
}

ParseResult parse(const SourceFile& file, Diagnostics& diagnostics) {
  ParseState state{file, diagnostics, diagnostics.error_count()};
  return parse(state, true);
}

ParseResult parse_as_written(const SourceFile& file, Diagnostics& diagnostics) {
  ParseState state{file, diagnostics, diagnostics.error_count()};
  return parse(state, false);
}

ParseResult parse_declaration(const SourceFile& file,
                              Diagnostics& diagnostics) {
  ParseState state{file, diagnostics, diagnostics.error_count()};
  state.declaration = true;
  ParseResult result = parse(state, true);
  if (!result.ok) return result;
  const auto& statements = result.program->statements;
  const auto* def =
      statements.size() == 1 ? as<DefStmt>(*statements[0]) : nullptr;
  if (def && !def->function.body) return result;
  const Span where =
      statements.empty() ? Span{&file, 0, 0} : statements[0]->span;
  diagnostics.add(diagnostic(Code::host_declaration, where,
                             "it is one `def` without a body")
                      .set_help("for example `def clip(x: f32[n], most: f32) "
                                "-> f32[n]`"));
  result.ok = false;
  return result;
}

}  // namespace unisono::lang
