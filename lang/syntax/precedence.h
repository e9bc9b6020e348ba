#pragma once
// Operators: how tightly they bind, and which way.
#include <cstdint>
#include <optional>

#include "lang/syntax/ast.h"
#include "lang/syntax/token.h"

namespace unisono::lang {

/// How tightly an operator binds, loosest first.
enum class Precedence : uint8_t {
  Lowest,
  With,
  Pipe,
  Or,
  And,
  Not,
  Comparison,
  BitOr,
  BitXor,
  BitAnd,
  Shift,
  Sum,
  Product,
  As,
  Unary,
  Power,
  Postfix,
};

enum class Associates : uint8_t { left, right, none };

struct BinaryRule {
  TokenKind token;
  BinaryOp op;
  Precedence precedence;
  Associates associates;
};

inline constexpr BinaryRule binary_rules[] = {
#define BINARY(enumerator, text, token, precedence, associates, ...) \
  {TokenKind::token, BinaryOp::enumerator, Precedence::precedence,   \
   Associates::associates},
#include "lang/syntax/precedence.def"
};

/// The row of a token, or null if it is no binary operator.
constexpr const BinaryRule* binary_rule(TokenKind kind) {
  for (const BinaryRule& rule : binary_rules)
    if (rule.token == kind) return &rule;
  return nullptr;
}

struct UnaryRule {
  TokenKind token;
  UnaryOp op;
  Precedence operand;
};

inline constexpr UnaryRule unary_rules[] = {
#define UNARY(enumerator, text, token, operand, operation) \
  {TokenKind::token, UnaryOp::enumerator, Precedence::operand},
#include "lang/syntax/precedence.def"
};

/// The row of a token, or null if it is no unary operator.
constexpr const UnaryRule* unary_rule(TokenKind kind) {
  for (const UnaryRule& rule : unary_rules)
    if (rule.token == kind) return &rule;
  return nullptr;
}

/// The precedence of a token that goes on with an expression; Lowest if it
/// does not.
constexpr Precedence infix_precedence(TokenKind kind) {
  if (const BinaryRule* rule = binary_rule(kind)) return rule->precedence;
  if (kind == TokenKind::With) return Precedence::With;
  if (kind == TokenKind::PipeGreater) return Precedence::Pipe;
  if (kind == TokenKind::As) return Precedence::As;
  const bool postfix = kind == TokenKind::LeftParen ||
                       kind == TokenKind::LeftBracket || kind == TokenKind::Dot;
  return postfix ? Precedence::Postfix : Precedence::Lowest;
}

}  // namespace unisono::lang
