// What an expression starts with: names, brackets, prefix operators, `if`,
// `fn`, blocks.
#include <algorithm>

#include "lang/syntax/parser_impl.h"

namespace unisono::lang {

ExprPtr Parser::primary(bool negated) {
  const Level level(*this);
  if (!level.fits()) return nullptr;
  const TokenKind now = kind();
  if (now == TokenKind::Integer || now == TokenKind::Float)
    return number(negated);
  if (now == TokenKind::String) return string();
  if (now == TokenKind::Identifier || at_variance()) return name_expression();
  if (now == TokenKind::LeftParen) return parentheses();
  if (now == TokenKind::LeftBracket) return brackets();
  if (now == TokenKind::LeftBrace) return block();
  if (now == TokenKind::If) return if_expression();
  if (now == TokenKind::Fn) return fn_expression();
  if (now == TokenKind::None) return leaf<NoneLiteral>();
  if (now == TokenKind::Ellipsis) return leaf<Rest>();
  if (now == TokenKind::Question) return unknown_size();
  if (now == TokenKind::True || now == TokenKind::False) {
    auto node = std::make_unique<BoolLiteral>();
    node->value = now == TokenKind::True;
    const uint32_t begin = token().begin;
    advance();
    return finish(std::move(node), begin);
  }
  if (const UnaryRule* rule = unary_rule(now)) return unary(*rule);
  return not_an_expression();
}

ExprPtr Parser::not_an_expression() {
  const TokenKind now = kind();
  const bool infix =
      infix_precedence(now) > Precedence::Lowest || now == TokenKind::Assign;
  if (infix && statement_start_ == index_) {
    if (Diagnostic* mistake =
            report(Code::line_starts_with_operator, here(), text_of(token()))) {
      const bool statement =
          now == TokenKind::With && token_after().kind == TokenKind::Identifier;
      skip_indented_ = statement;
      mistake->set_help(
          statement
              ? std::string("`with` replaces fields of a record, `r with (b = "
                            "2.0)`; files need no opening: "
                            "`load(\"x.npy\")`")
          : now == TokenKind::Plus && token_after().kind == now
              ? std::string("write `i += 1`")
          : now == TokenKind::Dot && token_after().kind == TokenKind::Integer
              ? operand_help()
              : fmt::format("move `{}` to the end of the line above, or put "
                            "the expression in parentheses",
                            text_of(token())));
    }
    return nullptr;
  }
  const bool closer = now == TokenKind::RightParen ||
                      now == TokenKind::RightBracket ||
                      now == TokenKind::RightBrace;
  if (closer && statement_start_ == index_) {
    report(Code::stray_bracket, here(), text_of(token()));
    return nullptr;
  }
  std::string help = operand_help();
  const size_t before = state_.diagnostics.size();
  expected("an expression");
  if (!help.empty() && state_.diagnostics.size() > before)
    state_.diagnostics.last().set_help(std::move(help));
  return nullptr;
}

/// `var` starts a statement; within one, it is the function of that name.
bool Parser::at_variance() const {
  const TokenKind next = token_after().kind;
  const bool used = next == TokenKind::LeftParen ||
                    next == TokenKind::RightParen || next == TokenKind::Comma;
  return at(TokenKind::Var) && used && !token().line_start &&
         statement_start_ != index_;
}

ExprPtr Parser::name_expression() {
  if (at_word("_")) return leaf<Wildcard>();
  const uint32_t begin = token().begin;
  auto node = std::make_unique<NameExpr>();
  node->text = text_of(token());
  advance();
  return finish(std::move(node), begin);
}

ExprPtr Parser::unknown_size() {
  const uint32_t begin = token().begin;
  advance();
  auto node = std::make_unique<UnknownSize>();
  if (!name(&node->name)) return nullptr;
  return finish(std::move(node), begin);
}

ExprPtr Parser::unary(const UnaryRule& rule) {
  const Token sign = token();
  advance();
  auto node = std::make_unique<Unary>();
  node->op = rule.op;
  node->op_span = span_of(sign);
  node->operand = expression(rule.operand, rule.op == UnaryOp::negate);
  if (!node->operand) return nullptr;
  return finish(std::move(node), sign.begin);
}

// ---- Parentheses: a group, a tuple, a record, or a type of one of these

ExprPtr Parser::parentheses() {
  const Token opener = token();
  ++open_brackets_;
  advance();
  ExprPtr node;
  {
    const LineEnds inside(*this, false);
    node = parenthesized_items(opener);
  }
  if (!node || !at(TokenKind::Arrow)) return node;
  std::vector<ExprPtr> params;
  if (node->kind == ExprKind::Tuple && !node->parenthesized) {
    params = std::move(static_cast<Tuple&>(*node).items);
  } else if (node->kind == ExprKind::RecordType ||
             node->kind == ExprKind::Record) {
    if (Diagnostic* mistake = report(Code::unexpected_token, node->span,
                                     "the types of the parameters", "names")) {
      mistake->set_help("a function type has no names: `(f32, f32) -> f32`");
    }
    return nullptr;
  } else {
    node->parenthesized = false;
    params.push_back(std::move(node));
  }
  return function_type(opener.begin, std::move(params));
}

ExprPtr Parser::function_type(uint32_t begin, std::vector<ExprPtr> params) {
  advance();
  auto node = std::make_unique<FunctionType>();
  node->params = std::move(params);
  node->result = expression(Precedence::Pipe);
  if (!node->result) return nullptr;
  return finish(std::move(node), begin);
}

/// After the opening one, to the closing one and with it.
ExprPtr Parser::parenthesized_items(const Token& opener) {
  std::vector<ExprPtr> items;
  auto record = std::make_unique<Record>();
  auto type = std::make_unique<RecordType>();
  std::vector<Name> names;
  std::string_view before;
  bool comma = false;
  while (!at(TokenKind::RightParen)) {
    const TokenKind next = token_after().kind;
    const bool can_be_name =
        at(TokenKind::Identifier) || is_keyword(token().kind);
    const bool has_value = can_be_name && next == TokenKind::Assign;
    const bool has_type = can_be_name && next == TokenKind::Colon;
    const std::string_view part = has_value  ? "a field `name = value`"
                                  : has_type ? "a field `name: type`"
                                             : "an item without a name";
    const bool same = before.empty() || part == before || at_end();
    if (!same) return mixed_parts(part, before);
    before = part;
    if (has_value || has_type) {
      names.push_back({std::string(text_of(token())), span_of(token())});
      advance();
      advance();
    }
    ExprPtr value = expression();
    if (!value) return nullptr;
    if (has_value)
      record->fields.push_back({names.back(), std::move(value)});
    else if (has_type)
      type->fields.push_back({names.back(), std::move(value)});
    else
      items.push_back(std::move(value));
    comma = eat(TokenKind::Comma);
    if (!comma) break;
  }
  if (!close(TokenKind::RightParen, opener)) return nullptr;
  if (duplicate(names, "record")) return nullptr;
  if (!record->fields.empty()) return finish(std::move(record), opener.begin);
  if (!type->fields.empty()) return finish(std::move(type), opener.begin);
  if (items.size() == 1 && !comma) {
    items[0]->parenthesized = true;
    items[0]->span = span_from(opener.begin);
    return std::move(items[0]);
  }
  auto tuple = std::make_unique<Tuple>();
  tuple->items = std::move(items);
  return finish(std::move(tuple), opener.begin);
}

ExprPtr Parser::mixed_parts(std::string_view part, std::string_view before) {
  if (Diagnostic* mistake = report(Code::mixed_parts, here(), part, before)) {
    mistake->set_help(
        "a tuple is `(a, b)`, a record `(x = a, y = b)`, a record type "
        "`(x: f32, y: f32)`");
  }
  return nullptr;
}

// ---- Brackets: an array or a comprehension

ExprPtr Parser::brackets() {
  const LineEnds inside(*this, false);
  const Token opener = token();
  advance();
  ++open_brackets_;
  auto node = std::make_unique<Array>();
  while (!at(TokenKind::RightBracket)) {
    ExprPtr item = expression();
    if (!item) return nullptr;
    if (node->items.empty() && at(TokenKind::For))
      return comprehension(std::move(item), opener);
    node->items.push_back(std::move(item));
    if (!eat(TokenKind::Comma)) break;
  }
  if (!close(TokenKind::RightBracket, opener)) return nullptr;
  return finish(std::move(node), opener.begin);
}

ExprPtr Parser::comprehension(ExprPtr element, const Token& opener) {
  advance();
  auto node = std::make_unique<Comprehension>();
  node->element = std::move(element);
  do {
    Generator& generator = node->generators.emplace_back();
    if (!binding(&generator.pattern)) return nullptr;
    if (!expect(TokenKind::In)) return nullptr;
    generator.iterable = expression();
    if (!generator.iterable) return nullptr;
  } while (eat(TokenKind::Comma) && !at(TokenKind::RightBracket));
  if (node->generators.size() == 1 && eat(TokenKind::If)) {
    node->condition = expression();
    if (!node->condition) return nullptr;
  }
  if (at(TokenKind::If) || at(TokenKind::For)) {
    Diagnostic* mistake =
        report(Code::unexpected_token, here(), "`,` or `]`", found());
    if (mistake && at(TokenKind::If))
      mistake->set_help(node->condition
                            ? "join conditions with `and`"
                            : "several generators make a matrix, and an `if` "
                              "none: select from it, `y[y > 0]`");
    else if (mistake)
      mistake->set_help("separate generators with `,`");
    return nullptr;
  }
  if (!close(TokenKind::RightBracket, opener)) return nullptr;
  return finish(std::move(node), opener.begin);
}

// ---- if and fn

ExprPtr Parser::if_expression() {
  const uint32_t begin = token().begin;
  advance();
  auto node = std::make_unique<If>();
  node->condition = expression();
  if (!node->condition) return nullptr;
  node->then = block();
  if (!node->then) return nullptr;
  // No statement begins with `else`, so it may stand on a line of its own; but
  // not behind a comment, which has no place between the two.
  const auto comment_before = [&] {
    const uint32_t end = tokens_[index_ - 1].end;
    return std::ranges::any_of(comments_, [&](const Comment& c) {
      return c.span.begin >= end && c.span.begin < token().begin;
    });
  };
  if (at(TokenKind::Else) ||
      (token().kind == TokenKind::Else && !comment_before())) {
    advance();
    node->otherwise = at(TokenKind::If) ? primary(false) : block();
    if (!node->otherwise) return nullptr;
  }
  return finish(std::move(node), begin);
}

ExprPtr Parser::fn_expression() {
  const uint32_t begin = token().begin;
  advance();
  auto node = std::make_unique<FnExpr>();
  Function& function = node->function;
  const Token opener = token();
  if (at(TokenKind::Identifier)) return named_fn();
  if (!expect(TokenKind::LeftParen, "`(` after `fn`")) return nullptr;
  if (!parameters(opener, &function.params)) return nullptr;
  function.params_span = span_from(opener.begin);
  if (eat(TokenKind::Arrow)) {
    function.result = expression();
    if (!function.result) return nullptr;
  }
  if (!at(TokenKind::FatArrow)) {
    const bool block = at(TokenKind::LeftBrace);
    Diagnostic* mistake =
        report(Code::unexpected_token, here(), "`=>`", found());
    if (mistake)
      mistake->set_help(block ? "write `fn(x) => { ... }`"
                              : "write `fn(x) => ...`");
    return nullptr;
  }
  advance();
  function.body = expression();
  if (!function.body) return nullptr;
  return finish(std::move(node), begin);
}

/// `fn f(x) ...` and `fn x => ...`
ExprPtr Parser::named_fn() {
  const bool lambda = token_after().kind == TokenKind::FatArrow;
  const std::string_view name = text_of(token());
  skip_indented_ = true;
  if (Diagnostic* mistake =
          report(Code::unexpected_token, here(), "`(` after `fn`", found()))
    mistake->set_help(
        lambda
            ? fmt::format("write `fn({}) => ...`", name)
            : fmt::format("a function with a name is `def {}(x) = ...`", name));
  return nullptr;
}

/// After the opening parenthesis, to the closing one and with it.
bool Parser::parameters(const Token& opener, std::vector<Param>* out) {
  const LineEnds inside(*this, false);
  ++open_brackets_;
  std::optional<Span> star;
  while (!at(TokenKind::RightParen)) {
    if (at(TokenKind::Star)) {
      if (star) {
        report(Code::bad_parameters, here(), "`*` stands twice");
        return false;
      }
      star = here();
      advance();
      if (at(TokenKind::Identifier) || at(TokenKind::Star))
        return no_packed_parameters();
    } else if (at(TokenKind::StarStar)) {
      return no_packed_parameters();
    } else {
      Param& param = out->emplace_back();
      param.keyword_only = star.has_value();
      if (!parameter(&param)) return false;
    }
    if (!eat(TokenKind::Comma)) break;
  }
  if (!close(TokenKind::RightParen, opener)) return false;
  if (star && (out->empty() || !out->back().keyword_only)) {
    if (Diagnostic* mistake =
            report(Code::bad_parameters, *star, "nothing follows `*`")) {
      mistake->set_help(
          "`*` stands before the parameters that are given by "
          "name only");
    }
    return false;
  }
  return check_parameters(*out);
}

/// `*args`, `**options`
bool Parser::no_packed_parameters() {
  if (Diagnostic* mistake =
          report(Code::bad_parameters, here(),
                 "a function has a fixed number of parameters"))
    mistake->set_help("let one parameter take a tuple: `f((a, b, c))`");
  return false;
}

bool Parser::parameter(Param* out) {
  const uint32_t begin = token().begin;
  if (!pattern(&out->pattern)) return false;
  if (at(TokenKind::Identifier)) {
    if (Diagnostic* mistake =
            report(Code::unexpected_token, here(), "`:`, `,` or `)`", found()))
      mistake->set_help(
          fmt::format("a type follows the name: `{}: f32`", text_of(token())));
    return false;
  }
  if (eat(TokenKind::Colon)) {
    out->type = expression();
    if (!out->type) return false;
  }
  if (eat(TokenKind::Assign)) {
    out->default_value = expression();
    if (!out->default_value) return false;
  }
  out->span = span_from(begin);
  return true;
}

bool Parser::check_parameters(const std::vector<Param>& params) {
  std::vector<Name> names;
  const Param* with_default = nullptr;
  for (const Param& param : params) {
    collect_names(param.pattern, &names);
    if (param.keyword_only && param.pattern.kind != Pattern::Kind::name) {
      report(Code::bad_parameters, param.span,
             "a parameter after `*` needs a name");
      return false;
    }
    if (param.keyword_only) continue;
    if (with_default && !param.default_value) {
      if (Diagnostic* mistake =
              report(Code::bad_parameters, param.span,
                     "one without a default follows one with a default")) {
        mistake->add_note(with_default->span, "the one with a default");
      }
      return false;
    }
    if (param.default_value) with_default = &param;
  }
  return !duplicate(names, "list of parameters");
}

}  // namespace unisono::lang
