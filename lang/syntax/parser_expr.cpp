// The Pratt loop: an operand, then operators for as long as they bind tighter
// than what is on the left. Types are expressions.
#include "lang/syntax/parser_impl.h"

namespace unisono::lang {
namespace {

Precedence below(Precedence p) {
  return static_cast<Precedence>(static_cast<uint8_t>(p) - 1);
}

bool is_bits(const Expr& e) {
  const auto* op = as<Binary>(e);
  return op && !e.parenthesized && class_of(op->op) == OpClass::bits;
}

}  // namespace

ExprPtr Parser::expression(Precedence above, bool negated) {
  poll();
  const uint32_t begin = token().begin;
  ExprPtr left = primary(negated);
  while (left && infix_precedence(kind()) > above)
    left = infix(std::move(left), begin);
  return left;
}

ExprPtr Parser::infix(ExprPtr left, uint32_t begin) {
  const TokenKind now = kind();
  if (now == TokenKind::LeftParen) return call(std::move(left), begin);
  if (now == TokenKind::LeftBracket) return index(std::move(left), begin);
  if (now == TokenKind::Dot) return field(std::move(left), begin);
  if (now == TokenKind::With) return with(std::move(left), begin);
  if (const BinaryRule* rule = binary_rule(now))
    return binary(std::move(left), begin, *rule);
  advance();
  if (now == TokenKind::As) {
    auto node = std::make_unique<Cast>();
    node->value = std::move(left);
    node->type = expression(Precedence::As);
    if (!node->type) return nullptr;
    return finish(std::move(node), begin);
  }
  auto node = std::make_unique<Pipe>();
  node->value = std::move(left);
  node->function = expression(Precedence::Pipe);
  if (!node->function) return nullptr;
  return finish(std::move(node), begin);
}

ExprPtr Parser::binary(ExprPtr left, uint32_t begin, const BinaryRule& rule) {
  const Level level(*this);
  if (!level.fits()) return nullptr;
  auto node = std::make_unique<Binary>();
  node->op = rule.op;
  node->op_span = here();
  node->left = std::move(left);
  advance();
  if (rule.op == BinaryOp::not_in && !expect(TokenKind::In, "`in` after `not`"))
    return nullptr;
  const bool right_first = rule.associates == Associates::right;
  node->right =
      expression(right_first ? below(rule.precedence) : rule.precedence);
  if (!node->right) return nullptr;
  if (rule.associates == Associates::none && !comparison_is_last(*node))
    return nullptr;
  warn_if_repetition(*node);
  warn_if_meant_as_power(*node);
  return finish(std::move(node), begin);
}

/// `[0] * n` of Python, which there repeats: a product that hardly anyone
/// means, as it is `[n * 0]`.
void Parser::warn_if_repetition(const Binary& product) {
  const auto* row = as<Array>(*product.left);
  if (product.op != BinaryOp::mul || !row || row->items.size() != 1) return;
  const Expr& item = *row->items[0];
  const std::string_view text = item.span.text();
  // Whoever writes a suffix means an array.
  const bool counted = product.right->kind == ExprKind::IntLiteral &&
                       text.find_first_not_of("0123456789._") == text.npos;
  const bool literal = item.kind == ExprKind::IntLiteral ||
                       item.kind == ExprKind::FloatLiteral ||
                       item.kind == ExprKind::BoolLiteral;
  const bool usual = item.kind == ExprKind::BoolLiteral || text == "0" ||
                     text == "1" || text == "0.0" || text == "1.0";
  if (!literal || !(counted || usual)) return;
  if (Diagnostic* warning =
          report(Code::repetition, span_from(product.left->span.begin),
                 product.left->span.text(), product.right->span.text()))
    warning->set_help(fmt::format("n times the same is `full(n, {})`", text));
}

/// `2 ^ 10` of Julia, R and MATLAB. Whoever computes with bits of numbers that
/// are known writes them in another base.
void Parser::warn_if_meant_as_power(const Binary& bits) {
  const auto* left = as<IntLiteral>(*bits.left);
  const auto* right = as<IntLiteral>(*bits.right);
  if (bits.op != BinaryOp::bit_xor || !left || !right) return;
  const std::string_view base = left->span.text(),
                         exponent = right->span.text();
  const auto is_decimal = [](std::string_view text) {
    return text.find_first_not_of("0123456789_") == text.npos;
  };
  if (!is_decimal(base) || !is_decimal(exponent)) return;
  if (Diagnostic* warning = report(Code::no_power, span_from(left->span.begin),
                                   base, exponent, left->value ^ right->value))
    warning->set_help(fmt::format("a power is `{} ** {}`", base, exponent));
}

/// `a < b < c` has no meaning; often it comes from `a > 0 & b > 0`.
bool Parser::comparison_is_last(const Binary& comparison) {
  const BinaryRule* next = binary_rule(kind());
  if (!next || next->associates != Associates::none) return true;
  const Expr& right = *comparison.right;
  if (is_bits(right)) {
    const BinaryOp op = as<Binary>(right)->op;
    const Span where = as<Binary>(right)->op_span;
    if (Diagnostic* mistake =
            report(Code::bitwise_of_comparison, where, spelling(op))) {
      mistake->set_help(op == BinaryOp::bit_xor
                            ? "for booleans write `!=`, and put each "
                              "comparison in parentheses"
                            : fmt::format("write `{}`", op == BinaryOp::bit_or
                                                            ? "or"
                                                            : "and"));
    }
  } else if (Diagnostic* mistake =
                 report(Code::comparison_chain, here(), text_of(token()))) {
    mistake->set_help(fmt::format("write `{} {} {} and {} {} ...`",
                                  comparison.left->span.text(),
                                  spelling(comparison.op), right.span.text(),
                                  right.span.text(), spelling(next->op)));
  }
  return false;
}

// ---- Postfix

bool Parser::arguments(const Token& opener, std::vector<ArgumentExpr>* out) {
  const Level level(*this);
  if (!level.fits()) return false;
  const LineEnds inside(*this, false);
  ++open_brackets_;
  std::vector<Name> names;
  while (!at(TokenKind::RightParen)) {
    ArgumentExpr& argument = out->emplace_back();
    const bool can_be_name =
        at(TokenKind::Identifier) || is_keyword(token().kind);
    if (can_be_name && token_after().kind == TokenKind::Assign) {
      argument.name = {std::string(text_of(token())), span_of(token())};
      names.push_back(*argument.name);
      advance();
      advance();
    } else if (!names.empty() && !at_end()) {
      if (Diagnostic* mistake = report(Code::positional_after_named, here())) {
        mistake->add_note(names.back().span, "the named one");
        mistake->set_help("put positional arguments first");
      }
      return false;
    }
    argument.value = expression();
    if (!argument.value) return false;
    if (!eat(TokenKind::Comma)) break;
  }
  return close(TokenKind::RightParen, opener) && !duplicate(names, "call");
}

ExprPtr Parser::call(ExprPtr callee, uint32_t begin) {
  const Token opener = token();
  advance();
  auto node = std::make_unique<Call>();
  node->callee = std::move(callee);
  if (!arguments(opener, &node->arguments)) return nullptr;
  return finish(std::move(node), begin);
}

ExprPtr Parser::with(ExprPtr base, uint32_t begin) {
  advance();
  const Token opener = token();
  if (!expect(TokenKind::LeftParen)) return nullptr;
  auto node = std::make_unique<With>();
  node->base = std::move(base);
  if (!arguments(opener, &node->fields)) return nullptr;
  for (const ArgumentExpr& field : node->fields) {
    if (field.name) continue;
    if (Diagnostic* mistake =
            report(Code::unexpected_token, field.value->span,
                   "`field = value` after `with`", "a value without a name")) {
      mistake->set_help("write `record with (field = value)`");
    }
    return nullptr;
  }
  return finish(std::move(node), begin);
}

ExprPtr Parser::index(ExprPtr object, uint32_t begin) {
  const Level level(*this);
  if (!level.fits()) return nullptr;
  const LineEnds inside(*this, false);
  const Token opener = token();
  advance();
  ++open_brackets_;
  auto node = std::make_unique<Index>();
  node->object = std::move(object);
  while (!at(TokenKind::RightBracket)) {
    ExprPtr item = index_item();
    if (!item) return nullptr;
    node->items.push_back(std::move(item));
    if (!eat(TokenKind::Comma)) break;
  }
  if (!close(TokenKind::RightBracket, opener)) return nullptr;
  return finish(std::move(node), begin);
}

ExprPtr Parser::index_item() {
  const uint32_t begin = token().begin;
  const auto part_follows = [&] {
    return !at(TokenKind::Colon) && !at(TokenKind::Comma) &&
           !at(TokenKind::RightBracket);
  };
  ExprPtr start;
  if (!at(TokenKind::Colon)) {
    start = expression();
    if (!start || !at(TokenKind::Colon)) return start;
  }
  advance();
  auto node = std::make_unique<Slice>();
  node->start = std::move(start);
  if (part_follows()) {
    node->stop = expression();
    if (!node->stop) return nullptr;
  }
  if (eat(TokenKind::Colon) && part_follows()) {
    node->step = expression();
    if (!node->step) return nullptr;
  }
  return finish(std::move(node), begin);
}

ExprPtr Parser::field(ExprPtr object, uint32_t begin) {
  advance();
  auto node = std::make_unique<Field>();
  node->object = std::move(object);
  const std::string_view text = text_of(token());
  if (at(TokenKind::Integer)) {
    int value = 0;
    for (const char c : text) {
      if (c < '0' || c > '9') return bad_number("after `.`, write digits");
      value = value * 10 + (c - '0');
      if (value > 1'000'000) {
        report(Code::number_too_large, here(), text, "an index of a tuple");
        return nullptr;
      }
    }
    node->index = value;
  } else if (!at(TokenKind::Identifier) && !is_keyword(kind())) {
    const bool dots = at(TokenKind::Dot);
    const bool touching = token().begin == tokens_[index_ - 1].end;
    const std::string sign(at(TokenKind::Caret) ? "**" : text);
    const bool operation = touching && binary_rule(kind()) != nullptr;
    const size_t before = state_.diagnostics.size();
    expected("the name of a field");
    const bool reported = state_.diagnostics.size() > before;
    if (reported && dots)
      state_.diagnostics.last().set_help(
          "numbers in a row are `range(a, b)` in a loop, `arange(a, b)` as an "
          "array, `x[a:b]` in an index");
    if (reported && operation)
      state_.diagnostics.last().set_help(
          fmt::format("operators work element by element: write `{}`", sign));
    if (reported && at(TokenKind::LeftParen))
      state_.diagnostics.last().set_help(
          fmt::format("functions work element by element: write `{}({})`",
                      name_before(index_ - 1), enclosed(index_)));
    return nullptr;
  }
  node->name = {std::string(text), span_of(token())};
  advance();
  return finish(std::move(node), begin);
}

}  // namespace unisono::lang
