// Habits of other languages: what a reader of Python, C, Julia, MATLAB, R or
// Rust types first, known by its tokens, and what to write instead.
#include <algorithm>

#include "lang/syntax/parser_impl.h"

namespace unisono::lang {
namespace {

struct ForeignWord {
  std::string_view word;
  std::string_view help;
};
/// Words of other languages, where the next token does not fit.
constexpr ForeignWord foreign_words[] = {
#define FOREIGN_WORD(word, help) {word, help},
#include "lang/source/foreign_names.def"
};

const ForeignWord* foreign_word(std::string_view word) {
  for (const ForeignWord& row : foreign_words)
    if (row.word == word) return &row;
  return nullptr;
}

bool is_one_of(std::string_view word,
               std::initializer_list<std::string_view> words) {
  return std::ranges::find(words, word) != words.end();
}

/// Words that stand before the name of what they declare: `int x = 3`.
bool is_foreign_type(std::string_view word) {
  return dtype_from_name(word).has_value() ||
         is_one_of(word, {"int", "long", "short", "unsigned", "char", "float",
                          "double", "bool", "string", "str", "void", "size_t",
                          "vector", "list", "array"});
}

/// A token that begins an operand, whatever stands before it.
bool starts_operand(TokenKind kind) {
  return kind == TokenKind::Identifier || kind == TokenKind::Integer ||
         kind == TokenKind::Float || kind == TokenKind::String ||
         kind == TokenKind::True || kind == TokenKind::False ||
         kind == TokenKind::None || kind == TokenKind::Not ||
         kind == TokenKind::Fn;
}

/// A line that goes on with the block of another language above it.
bool continues_block(std::string_view word) {
  return is_one_of(word, {"else", "elif", "except", "finally", "catch", "end",
                          "endif", "endwhile", "endfor", "case", "default"});
}

}  // namespace

std::string_view foreign_word_help(std::string_view word) {
  const ForeignWord* found = foreign_word(word);
  return found ? found->help : std::string_view();
}

/// The token before is a word of another language: that is what is wrong.
bool Parser::after_foreign_word() {
  if (index_ == 0) return false;
  // `switch (x) {`, `function(x) x + 1`: the word before what it takes.
  size_t at_word = index_ - 1;
  int depth = 0;
  do {
    const TokenKind kind = tokens_[at_word].kind;
    if (kind == TokenKind::RightParen) ++depth;
    if (kind == TokenKind::LeftParen) --depth;
  } while ((depth > 0 || tokens_[at_word].kind == TokenKind::LeftParen) &&
           at_word-- > statement_start_);
  // What belongs to the statement before is not what is wrong with this one.
  if (at_word < statement_start_ || at_word >= tokens_.size()) return false;
  const Token& before = tokens_[at_word];
  const ForeignWord* foreign = before.kind == TokenKind::Identifier
                                   ? foreign_word(text_of(before))
                                   : nullptr;
  if (!foreign) return false;
  skip_indented_ = true;
  if (Diagnostic* mistake =
          report(Code::no_such_statement, span_of(before), foreign->word))
    mistake->set_help(std::string(foreign->help));
  return true;
}

/// The rest of the line from the current token on, if it is short.
std::string Parser::rest_of_line() const {
  size_t last = index_;
  const auto ends = [&](const Token& t) {
    return t.line_start || t.kind == TokenKind::Semicolon ||
           t.kind == TokenKind::RightBrace || t.kind == TokenKind::EndOfFile ||
           t.kind == TokenKind::EndOfPart || t.kind == TokenKind::Invalid;
  };
  while (last + 1 < tokens_.size() && !ends(tokens_[last + 1])) ++last;
  const std::string_view text = state_.file.text().substr(
      token().begin, tokens_[last].end - token().begin);
  return text.size() <= 32 ? std::string(text) : "...";
}

/// A comment of C, MATLAB or Lua is taken for operators and names.
bool Parser::after_comment_sign() const {
  const auto touches = [&](size_t i) {
    return tokens_[i].kind == TokenKind::Minus &&
           tokens_[i + 1].kind == TokenKind::Minus &&
           tokens_[i].end == tokens_[i + 1].begin;
  };
  for (size_t i = index_; i > statement_start_; --i) {
    if (tokens_[i].line_start) return false;
    const TokenKind kind = tokens_[i - 1].kind;
    if (kind == TokenKind::SlashSlash || kind == TokenKind::Percent ||
        touches(i - 1))
      return true;
  }
  return false;
}

/// Two operands side by side.
std::string Parser::juxtaposed_help(const Token& before) const {
  const std::string_view word = text_of(before), now = text_of(token());
  const Token& next = token_after();
  if (after_comment_sign()) return "a comment starts with `#`";
  if (now == "mod") return "write `%`";
  if (now == "div") return "write `//`";
  if (now == "xor") return "write `!=` for booleans, `^` for integers";
  if (now == "is") return "to compare, write `==`";
  if (open_brackets_ == 0 &&
      (before.kind == TokenKind::Integer || before.kind == TokenKind::Float))
    return "write the sign between two numbers, as in `2 * x`";
  if (before.kind != TokenKind::Identifier) return {};
  if (now == "do" || now == "then")
    return "a block stands in braces: `{ ... }`";
  if (at(TokenKind::Not) && next.kind == TokenKind::In)
    return "write `not (x in y)`";
  if (index_ != statement_start_ + 1) return {};
  const bool declares = at(TokenKind::Identifier) && is_foreign_type(word);
  if (declares && next.kind == TokenKind::LeftParen)
    return fmt::format("a function is defined by `def {}(...) = ...`", now);
  if (declares || (at(TokenKind::Identifier) && next.kind == TokenKind::Assign))
    return fmt::format(
        "write `let {0} = ...`, or `var {0} = ...` if it "
        "changes later; a type follows the name: `{0}: f32`",
        now);
  return fmt::format("a call has parentheses: `{}({})`", word, rest_of_line());
}

/// What a `:` was meant to be that stands where none can.
std::string Parser::colon_help(const Token& before) {
  const Token& next = token_after();
  const bool touches_next = next.begin == token().end;
  const bool first = index_ == statement_start_ + 1;
  const bool opens_block =
      statement_start_ > 0 &&
      tokens_[statement_start_ - 1].kind == TokenKind::LeftBrace;
  if (touches_next && next.kind == TokenKind::Colon)
    return "a name in a module is `module.name`";
  if (touches_next && next.kind == TokenKind::Assign)
    return fmt::format("write `let {} = ...`", text_of(before));
  if (first && (before.kind == TokenKind::String || opens_block)) {
    skip_to_brace_ = opens_block;
    return "`{ }` holds statements; a record is `(a = 1, b = 2)`, its type "
           "`(a: i32, b: i32)`";
  }
  if (first && before.kind == TokenKind::Identifier)
    return fmt::format(
        "write `let {0} = ...`, with a type `let {0}: f32 = "
        "...`",
        text_of(before));
  if (before.kind == TokenKind::Integer || before.kind == TokenKind::RightParen)
    return "numbers in a row are `arange(1, 10)`, and a loop runs over "
           "`range(1, 10)`: 1 to 9";
  return {};
}

/// What to write where the current token does not follow the one before;
/// empty where nothing is known.
std::string Parser::habit_help() {
  if (index_ == 0) return {};
  const Token& before = tokens_[index_ - 1];
  const Token& next = token_after();
  const std::string_view word = text_of(before);
  const bool touching = before.end == token().begin;
  const bool first = index_ == statement_start_ + 1;
  if (at(TokenKind::String) && before.kind == TokenKind::Identifier &&
      touching && word.size() <= 2)
    return word == "f" || word == "F"
               ? "every string shows values in braces: leave out the `f`"
               : fmt::format("leave out the `{}`: a string has no prefix",
                             word);
  if (at(TokenKind::If)) return "`if` stands first: `if c { a } else { b }`";
  if (at(TokenKind::For))
    return "a comprehension stands in brackets: `[f(x) for x in xs]`";
  if (at(TokenKind::Question)) return "write `if c { a } else { b }`";
  if (at(TokenKind::FatArrow) || at(TokenKind::Arrow))
    return "a function without a name is `fn(x) => ...`";
  if (at(TokenKind::Tilde) && next.kind == TokenKind::Assign)
    return "unequal is `!=`";
  if (at(TokenKind::Colon)) return colon_help(before);
  if (at(TokenKind::Comma) && open_brackets_ == 0) {
    if (const std::string whole = grouped_digits(index_ - 1); !whole.empty())
      return fmt::format("digits are grouped by `_`: `{}`", whole);
    const bool braces =
        first && statement_start_ > 0 &&
        tokens_[statement_start_ - 1].kind == TokenKind::LeftBrace;
    if (braces)
      return "`{ }` holds statements; an array is `[1, 2]`, a tuple `(1, 2)`";
    return "a tuple stands in parentheses: `(a, b)`";
  }
  if (!token().line_start && starts_operand(token().kind))
    return juxtaposed_help(before);
  return {};
}

/// What stands between an opening bracket and the one that closes it, if it is
/// short.
std::string Parser::enclosed(size_t open) const {
  int depth = 0;
  size_t close = open;
  do {
    const TokenKind kind = tokens_[close].kind;
    if (kind == TokenKind::LeftParen || kind == TokenKind::LeftBracket) ++depth;
    if (kind == TokenKind::RightParen || kind == TokenKind::RightBracket)
      --depth;
  } while (depth > 0 && ++close < tokens_.size());
  if (depth > 0 || tokens_[close].begin - tokens_[open].end > 32) return "...";
  return std::string(state_.file.text().substr(
      tokens_[open].end, tokens_[close].begin - tokens_[open].end));
}

/// `A(:, 1)` of MATLAB and Fortran, at the colon.
std::string Parser::index_in_parentheses() const {
  const TokenKind next = token_after().kind;
  size_t open = index_;
  while (open > statement_start_ && tokens_[open].kind != TokenKind::LeftParen)
    --open;
  const bool indexed =
      open > 0 && tokens_[open].kind == TokenKind::LeftParen &&
      tokens_[open - 1].kind == TokenKind::Identifier &&
      (next == TokenKind::Comma || next == TokenKind::RightParen);
  if (!indexed) return {};
  return fmt::format("an index stands in brackets: `{}[{}]`",
                     text_of(tokens_[open - 1]), enclosed(open));
}

/// `1,000`, of which one group of digits is `at`, as it is written here; empty
/// for other numbers.
std::string Parser::grouped_digits(size_t at) const {
  const auto follows = [&](size_t i) {  // a comma and three digits
    return i > 0 && i + 1 < tokens_.size() &&
           tokens_[i].kind == TokenKind::Comma &&
           tokens_[i - 1].kind == TokenKind::Integer &&
           tokens_[i + 1].kind == TokenKind::Integer &&
           tokens_[i - 1].end == tokens_[i].begin &&
           tokens_[i].end == tokens_[i + 1].begin &&
           text_of(tokens_[i + 1]).size() == 3;
  };
  while (at > 1 && follows(at - 1)) at -= 2;
  if (!follows(at + 1)) return {};
  std::string out(text_of(tokens_[at]));
  for (; follows(at + 1); at += 2)
    out += fmt::format("_{}", text_of(tokens_[at + 2]));
  return out;
}

/// The name before a token, or `i`.
std::string_view Parser::name_before(size_t token) const {
  const bool named =
      token > 0 && tokens_[token - 1].kind == TokenKind::Identifier;
  return named ? text_of(tokens_[token - 1]) : "i";
}

/// What to write where an operand is missing.
std::string Parser::operand_help() const {
  const TokenKind now = kind();
  const Token none{TokenKind::Invalid, false, 0, 0};
  const Token& before = index_ > 0 ? tokens_[index_ - 1] : none;
  const bool touching = before.end == token().begin;
  const bool doubled = before.kind == now && touching;
  const auto after = [&](TokenKind kind) {
    return before.kind == kind && touching;
  };
  if (now == TokenKind::Colon) return index_in_parentheses();
  if (doubled && now == TokenKind::Ampersand) return "write `and`";
  if (doubled && now == TokenKind::Pipe) return "write `or`";
  if (now == TokenKind::Plus)
    return doubled ? fmt::format("write `{} += 1`", name_before(index_ - 1))
                   : "there is no sign `+`; leave it out";
  const bool decremented = index_ > 1 && before.kind == TokenKind::Minus &&
                           tokens_[index_ - 2].kind == TokenKind::Minus &&
                           tokens_[index_ - 2].end == before.begin;
  if (decremented)
    return fmt::format("write `{} -= 1`", name_before(index_ - 2));
  if (now == TokenKind::Dot && token_after().kind == TokenKind::Integer)
    return fmt::format("write `0.{}`", text_of(token_after()));
  if (now == TokenKind::Assign && before.kind == TokenKind::Comma)
    return "leave out the comma before `=`";
  if (now == TokenKind::Assign && after(TokenKind::EqualEqual))
    return "to compare, write `==`";
  if (now == TokenKind::Assign && after(TokenKind::NotEqual))
    return "unequal is `!=`";
  if (now == TokenKind::Greater && after(TokenKind::Less))
    return "unequal is `!=`";
  if (now == TokenKind::Star && after(TokenKind::Percent))
    return "the product of matrices is `@`";
  const bool begins_item =
      before.kind == TokenKind::LeftParen || before.kind == TokenKind::Comma;
  if (begins_item && (now == TokenKind::Star || now == TokenKind::StarStar))
    return "arguments are not spread: name them one by one";
  if (now == TokenKind::Ampersand)
    return "there are no references; leave out the `&`";
  if (now == TokenKind::Pipe || now == TokenKind::At || now == TokenKind::Def)
    return "a function without a name is `fn(x) => ...`";
  if (now == TokenKind::For)
    return "an array is made by `[f(i) for i in range(n)]`";
  return {};
}

/// `x <- 3`, which would be a comparison with a negative number.
bool Parser::arrow_assignment() {
  const Token& less = token_after(1);
  const Token& minus = token_after(2);
  const bool shift = less.kind == TokenKind::LessLess;
  const bool arrow = at(TokenKind::Identifier) && !less.line_start &&
                     (less.kind == TokenKind::Less || shift) &&
                     minus.kind == TokenKind::Minus &&
                     minus.begin == less.end &&
                     token_after(3).begin != minus.end;
  if (!arrow) return false;
  const Span where = {&state_.file, less.begin, minus.end};
  const std::string name(text_of(token()));
  if (Diagnostic* mistake =
          report(Code::no_such_statement, where, where.text()))
    mistake->set_help(fmt::format(
        "write `let {0} = ...`, or `var {0} = ...` if it changes later", name));
  return true;
}

/// `for (int i = 0; i < n; i++)`, `for (x in xs)`, `for i = 1:n`: at the token
/// after `for`.
bool Parser::foreign_for() {
  const Token& next = token_after();
  const bool assigned =
      at(TokenKind::Identifier) &&
      (next.kind == TokenKind::Assign || next.kind == TokenKind::Colon);
  bool bracketed = false;
  if (at(TokenKind::LeftParen)) {
    int depth = 0;
    for (size_t i = index_; i < tokens_.size(); ++i) {
      const TokenKind kind = tokens_[i].kind;
      if (kind == TokenKind::LeftParen) ++depth;
      if (kind == TokenKind::RightParen) --depth;
      if (depth == 0 || kind == TokenKind::LeftBrace) break;
      bracketed |= kind == TokenKind::Semicolon || kind == TokenKind::In;
    }
  }
  const bool of = next.kind == TokenKind::Identifier && text_of(next) == "of";
  if (!assigned && !bracketed && !of) return false;
  skip_indented_ = true;
  const std::string name(text_of(token()));
  if (Diagnostic* mistake = report(Code::unexpected_token, here(),
                                   "`name in ...` after `for`", found()))
    mistake->set_help(
        of ? fmt::format("write `for {} in ... {{ ... }}`", name)
           : "write `for i in range(n) { ... }`: i is 0, 1, ..., n - 1");
  return true;
}

void Parser::skip_to_next_statement(size_t start) {
  const bool whole = std::exchange(skip_indented_, false);
  const bool to_brace = std::exchange(skip_to_brace_, false);
  const int column = state_.file.place(tokens_[start].begin).column;
  // The rest of a block that was not opened by a brace belongs to it.
  const auto in_block = [&](const Token& t) {
    const int own = state_.file.place(t.begin).column;
    return own > column || (own == column && continues_block(text_of(t)));
  };
  int parens = brackets_at_error_;
  int braces = 0;
  while (!at_end()) {
    const Token& t = token();
    const bool line = t.line_start && braces == 0 && index_ > start;
    if (line && !to_brace && !(whole && in_block(t)) &&
        (parens == 0 || starts_statement(t.kind)))
      return;
    if (t.kind == TokenKind::Semicolon && braces == 0 && parens == 0 && !whole)
      return;
    if (t.kind == TokenKind::RightBrace && braces == 0) return;
    if (t.kind == TokenKind::LeftBrace) ++braces;
    if (t.kind == TokenKind::RightBrace) --braces;
    const bool opens =
        t.kind == TokenKind::LeftParen || t.kind == TokenKind::LeftBracket;
    const bool closes =
        t.kind == TokenKind::RightParen || t.kind == TokenKind::RightBracket;
    if (opens && braces == 0) ++parens;
    if (closes && braces == 0 && parens > 0) --parens;
    advance();
  }
}

bool Parser::same_line_has(TokenKind kind) const {
  for (size_t i = index_ + 1; i < tokens_.size() && !tokens_[i].line_start; ++i)
    if (tokens_[i].kind == kind) return true;
  return false;
}

/// `for i in 1:n {`: after the first bound.
bool Parser::range_of_colons() {
  if (!at(TokenKind::Colon)) return false;
  const Token& next = token_after();
  if (next.line_start || !starts_operand(next.kind)) return false;
  // With a space, `for x in xs: print(x)`, it would begin the body.
  if (next.begin != token().end && !same_line_has(TokenKind::LeftBrace))
    return false;
  Diagnostic* mistake = report(Code::unexpected_token, here(), "`{`", found());
  skip_indented_ = true;
  if (mistake)
    mistake->set_help("a loop runs over `range(a, b)`: a, a + 1, ..., b - 1");
  return true;
}

/// A line that starts so is a new statement, whatever is still open.
bool Parser::starts_statement(TokenKind kind) {
  return kind == TokenKind::Let || kind == TokenKind::Var ||
         kind == TokenKind::Def || kind == TokenKind::Import ||
         kind == TokenKind::While || kind == TokenKind::At;
}

}  // namespace unisono::lang
