#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lang/syntax/lexer.h"
#include "lang/syntax/parser.h"
#include "lang/syntax/precedence.h"

/// The parser's inside. parser.cpp: tokens, mistakes, recovery;
/// parser_habits.cpp: what other languages write; parser_statement.cpp;
/// parser_expr.cpp: the Pratt loop; parser_primary.cpp: what an expression
/// starts with; parser_literal.cpp.
namespace unisono::lang {

/// How deep brackets, blocks and operands may be nested.
inline constexpr int max_nesting = 256;
/// How deep strings may be nested: in interpolations of strings.
inline constexpr int max_string_nesting = 8;

/// What all parsers of one file share: the parser of the file, and one for each
/// interpolation.
struct ParseState {
  const SourceFile& file;
  Diagnostics& diagnostics;
  size_t errors_before;
  int nesting = 0;
  int string_nesting = 0;
  bool incomplete = false;
  bool gave_up = false;  ///< too many mistakes
  /// One `def` without a body.
  bool declaration = false;
};

/// Recursive descent. A function that fails has reported why, and returns null
/// or false; the statement that it is part of is given up, and the parser goes
/// on at the next one.
class Parser {
 public:
  Parser(ParseState& state, Tokens tokens);

  std::vector<StmtPtr> program();
  /// The expression of an interpolation, up to the end of the part.
  ExprPtr interpolation();

  std::vector<Comment> take_comments() { return std::move(comments_); }

 private:
  // ---- tokens
  const Token& token() const { return tokens_[index_]; }
  const Token& token_after(size_t ahead = 1) const;
  std::string_view text_of(const Token& t) const;
  /// The kind of the current token; Newline if a line end that ends the
  /// statement stands before the token.
  TokenKind kind() const;
  bool at(TokenKind wanted) const { return kind() == wanted; }
  bool at_word(std::string_view word) const;
  bool at_end() const;
  bool at_statement_end() const;
  bool eat(TokenKind wanted);
  void advance() {
    if (index_ + 1 < tokens_.size()) ++index_;
  }
  Span span_of(const Token& t) const;
  Span here() const;
  /// From a token to the end of the last one consumed.
  Span span_from(uint32_t begin) const;

  // ---- mistakes
  /// Throws Stopped, after a report, if nobody wants the tree any more.
  void poll() const;
  std::string found() const;
  /// Reports a mistake, unless this place is already known to be wrong: then
  /// null.
  template <class... Args>
  Diagnostic* report(std::type_identity_t<detail::CheckedCode<Args...>> code,
                     Span where, const Args&... args) {
    return add(diagnostic(code, where, args...));
  }
  Diagnostic* add(Diagnostic diagnostic);
  void expected(std::string_view what);
  void expected_name();
  bool expect(TokenKind wanted, std::string_view purpose = {});
  bool close(TokenKind closer, const Token& opener);
  void not_ended();
  bool duplicate(const std::vector<Name>& names, std::string_view where);
  void equals_in_expression();

  // ---- habits of other languages, and recovery: parser_habits.cpp
  bool after_foreign_word();
  bool arrow_assignment();
  bool foreign_for();
  bool range_of_colons();
  bool same_line_has(TokenKind kind) const;  // from the next token on
  std::string habit_help();
  std::string operand_help() const;
  std::string enclosed(size_t open) const;
  std::string index_in_parentheses() const;
  std::string grouped_digits(size_t at) const;
  std::string juxtaposed_help(const Token& before) const;
  std::string colon_help(const Token& before);
  std::string rest_of_line() const;
  std::string_view name_before(size_t token) const;
  bool after_comment_sign() const;
  static bool starts_statement(TokenKind kind);
  void skip_to_next_statement(size_t start);

  // ---- statements: parser_statement.cpp
  std::vector<StmtPtr> statements(TokenKind closer);
  void warn_if_continuation(const Stmt& statement, const Stmt& before);
  StmtPtr statement();
  StmtPtr let_statement();
  StmtPtr no_value(const LetStmt& let);
  StmtPtr def_statement();
  StmtPtr decorated();
  StmtPtr type_statement();
  StmtPtr axis_statement();
  StmtPtr import_statement();
  StmtPtr for_statement();
  StmtPtr while_statement();
  StmtPtr jump_statement();
  StmtPtr tool_statement(ToolStmt::Tool tool);
  StmtPtr expression_statement();
  StmtPtr assignment(ExprPtr target, uint32_t begin);
  bool check_target(const Expr& target);
  std::string documentation_before(uint32_t offset) const;
  bool type_params(std::vector<TypeParam>* out);
  bool pattern(Pattern* out);
  /// A pattern whose names differ; several are a tuple, `for i, x in ...`.
  bool binding(Pattern* out);
  /// `first` and what follows it after commas, `a, b = b, a`: a tuple, or
  /// `first` itself.
  ExprPtr several(ExprPtr first, uint32_t begin);
  /// Whether the statement from here on has a `=`, so that commas join targets.
  bool targets_follow() const;
  bool at_top_level(std::string_view what);
  bool name(Name* out);
  ExprPtr block();

  // ---- expressions: parser_expr.cpp
  ExprPtr expression(Precedence above = Precedence::Lowest,
                     bool negated = false);
  ExprPtr infix(ExprPtr left, uint32_t begin);
  ExprPtr binary(ExprPtr left, uint32_t begin, const BinaryRule& rule);
  bool comparison_is_last(const Binary& comparison);
  void warn_if_repetition(const Binary& product);
  void warn_if_meant_as_power(const Binary& bits);
  ExprPtr call(ExprPtr callee, uint32_t begin);
  ExprPtr index(ExprPtr object, uint32_t begin);
  ExprPtr index_item();
  ExprPtr field(ExprPtr object, uint32_t begin);
  ExprPtr with(ExprPtr base, uint32_t begin);
  bool arguments(const Token& opener, std::vector<ArgumentExpr>* out);

  // ---- what an expression starts with: parser_primary.cpp
  ExprPtr primary(bool negated);
  bool at_variance() const;
  ExprPtr name_expression();
  ExprPtr unknown_size();
  ExprPtr unary(const UnaryRule& rule);
  ExprPtr parentheses();
  ExprPtr parenthesized_items(const Token& opener);
  ExprPtr mixed_parts(std::string_view part, std::string_view before);
  ExprPtr function_type(uint32_t begin, std::vector<ExprPtr> params);
  ExprPtr brackets();
  ExprPtr comprehension(ExprPtr element, const Token& opener);
  ExprPtr if_expression();
  ExprPtr fn_expression();
  ExprPtr named_fn();
  bool parameters(const Token& opener, std::vector<Param>* out);
  bool parameter(Param* out);
  bool no_packed_parameters();
  bool check_parameters(const std::vector<Param>& params);
  ExprPtr not_an_expression();

  // ---- literals: parser_literal.cpp
  ExprPtr number(bool negated);
  ExprPtr integer(std::string_view digits, int base, std::optional<DType> dtype,
                  bool negated);
  ExprPtr floating(std::string_view digits, std::optional<DType> dtype);
  ExprPtr bad_number(std::string_view help);
  ExprPtr string();
  bool plain_string(Name* out, std::string_view what);
  bool string_text(uint32_t* at, uint32_t end, std::string* out);
  bool escape(uint32_t* at, uint32_t end, std::string* out);
  std::string without_value_help(InterpolationEnd end) const;
  bool string_piece(uint32_t begin, InterpolationEnd end, StringPiece* out);

  /// Gives a new node its span and height; null if the tree is too high.
  template <class T>
  std::unique_ptr<T> finish(std::unique_ptr<T> node, uint32_t begin);
  bool too_high(int height, Span where);
  template <class T>
  ExprPtr leaf() {
    const uint32_t begin = token().begin;
    advance();
    return finish(std::make_unique<T>(), begin);
  }

  /// Counts a level of nesting while this object lives.
  class Level {
   public:
    explicit Level(Parser& parser) : parser_(parser) {
      ++parser_.state_.nesting;
    }
    ~Level() { --parser_.state_.nesting; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;
    /// False, and reported, if there are too many levels.
    bool fits() const;

   private:
    Parser& parser_;
  };

  /// Inside `( )` and `[ ]` a line end is white space; in a block it is not.
  class LineEnds {
   public:
    LineEnds(Parser& parser, bool matter)
        : parser_(parser), before_(parser.line_ends_matter_) {
      parser_.line_ends_matter_ = matter;
    }
    ~LineEnds() { parser_.line_ends_matter_ = before_; }
    LineEnds(const LineEnds&) = delete;
    LineEnds& operator=(const LineEnds&) = delete;

   private:
    Parser& parser_;
    bool before_;
  };

  static void collect_names(const Pattern& pattern, std::vector<Name>* out);

  ParseState& state_;
  std::vector<Token> tokens_;
  std::vector<Comment> comments_;
  size_t index_ = 0;
  size_t statement_start_ = 0;
  bool line_ends_matter_ = true;
  bool in_block_ = false;
  int open_brackets_ = 0;                 ///< `( [` of this statement
  int brackets_at_error_ = 0;             ///< those when the statement failed
  bool skip_indented_ = false;            ///< give up the statement's block
  bool skip_to_brace_ = false;            ///< and all of the block around it
  std::optional<size_t> error_index_;     ///< the token of the last mistake
  std::optional<size_t> line_end_taken_;  ///< the line end before this token
};

template <class T>
std::unique_ptr<T> Parser::finish(std::unique_ptr<T> node, uint32_t begin) {
  int below = 0;
  const auto expr = [&](const Expr& e) {
    below = below > e.height ? below : e.height;
  };
  const auto stmt = [&](const Stmt& s) {
    below = below > s.height ? below : s.height;
  };
  if constexpr (std::is_base_of_v<Expr, T>)
    for_each_child(*node, expr, stmt);
  else
    for_each_child(*node, expr);
  node->span = span_from(begin);
  if constexpr (std::is_base_of_v<Expr, T>) node->inner = node->span;
  node->height = static_cast<uint16_t>(below + 1);
  if (too_high(below + 1, node->span)) return nullptr;
  return node;
}

}  // namespace unisono::lang
