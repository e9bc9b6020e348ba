#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "lang/format/doc.h"
#include "lang/syntax/ast.h"

/// The formatter's inside: format.cpp (statements, comments), format_expr.cpp.
namespace unisono::lang {

/// Parts of a list, with the line ends and comments between them.
struct Parts {
  explicit Parts(uint32_t begin) : end(begin) {}

  std::vector<DocPtr> docs;
  std::vector<bool> breaks;
  uint32_t end;         ///< of the last part, or of the opening bracket
  bool spread = false;  ///< a comment at the start needs lines of its own
  DocPtr head_comment;  ///< on the line of the opening bracket, or null
};

/// Makes the document of a tree. Comments are not in the tree: each is put out
/// before the first node that starts after it.
class Formatter {
 public:
  explicit Formatter(const Program& program);
  void program(const DocSink& out);

 private:
  // ---- statements: format.cpp
  DocPtr statement(const Stmt& s);
  DocPtr let_statement(const LetStmt& s);
  DocPtr def_statement(const DefStmt& s);
  DocPtr definition(const DefStmt& s);
  DocPtr axis_statement(const AxisStmt& s);
  void units(const std::vector<StmtPtr>& statements, uint32_t end,
             const DocSink& out);
  void own_line_comments(uint32_t before, int* last_line, const DocSink& out);
  DocPtr name(const Name& n);
  DocPtr pattern(const Pattern& p);
  DocPtr type_params(const std::vector<TypeParam>& params, uint32_t begin);
  DocPtr params(const Function& function);
  DocPtr param(const Param& p);

  // ---- comments and the user's line ends: format.cpp
  const Comment* next_comment(uint32_t before) const;
  DocPtr take_comment();
  DocPtr comments_before(uint32_t position, DocPtr then);
  bool line_ends_between(uint32_t begin, uint32_t end) const;
  bool line_ends_after(uint32_t position) const;
  uint32_t end_before(uint32_t position) const;
  int line_of(uint32_t position) const;
  /// ` value` after `=` or `=>`, on a line of its own if the user had it so.
  DocPtr after_sign(const Expr& value);

  // ---- lists: format.cpp
  void before_part(Parts& parts, uint32_t begin);
  void add_part(Parts& parts, DocPtr doc, bool comma, uint32_t end);
  DocPtr close_list(Parts parts, std::string open, std::string close,
                    uint32_t close_at, bool spread);

  // ---- expressions: format_expr.cpp
  DocPtr expr(const Expr& e);
  DocPtr bare(const Expr& e);
  DocPtr leaf(uint32_t begin, std::string text);
  DocPtr number(Span literal);
  DocPtr unary(const Unary& e);
  DocPtr function_type(const FunctionType& e);
  DocPtr parentheses(const Expr& e);
  DocPtr list(const std::vector<ExprPtr>& items, std::string open,
              std::string close, uint32_t begin, uint32_t end,
              bool last_comma = false);
  DocPtr arguments(const std::vector<ArgumentExpr>& items,
                   std::string_view sign, uint32_t begin, uint32_t end);
  bool signs_are_aligned(const Record& e) const;
  DocPtr record(const Record& e);
  DocPtr record_type(const RecordType& e);
  DocPtr comprehension(const Comprehension& e);
  DocPtr slice(const Slice& e);
  DocPtr field(const Field& e);
  DocPtr binary(const Binary& e, bool fills_parentheses);
  DocPtr pipe(const Pipe& e, bool fills_parentheses);
  struct Operand {
    const Expr* expr;
    std::string_view op;  ///< that follows
  };
  DocPtr chain(const std::vector<Operand>& operands, bool fills_parentheses);
  DocPtr if_expression(const If& e);
  DocPtr fn(const FnExpr& e);
  DocPtr block(const Block& e);
  bool on_one_line(const Expr& e) const;

  const Program& program_;
  std::string_view text_;
  size_t next_ = 0;              ///< of program_.comments
  bool in_parentheses_ = false;  ///< a chain fills a pair of parentheses
};

}  // namespace unisono::lang
