#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lang/source/source.h"
#include "runtime/dtype.h"

/// The syntax tree. Types are expressions: one parser and one set of nodes for
/// both. A Program owns its tree, and refers to a SourceFile; whoever holds a
/// pointer to a node (a closure does) keeps the Program alive. No pointer is
/// null where the comment does not say so.
namespace unisono::lang {

enum class ExprKind : uint8_t {
#define EXPR(name) name,
#include "lang/syntax/ast.def"
};
enum class StmtKind : uint8_t {
#define STMT(name) name,
#include "lang/syntax/ast.def"
};

/// The operators of precedence.def, and what precedence.def says of them.
enum class BinaryOp : uint8_t {
#define BINARY(enumerator, ...) enumerator,
#include "lang/syntax/precedence.def"
};
enum class OpClass : uint8_t { logic, comparison, bits, arithmetic };
enum class UnaryOp : uint8_t {
#define UNARY(enumerator, ...) enumerator,
#include "lang/syntax/precedence.def"
};

std::string_view spelling(BinaryOp op);  ///< "+", "and"
std::string_view spelling(UnaryOp op);   ///< "-", "~", "not"
OpClass class_of(BinaryOp op);

struct Expr {
  const ExprKind kind;
  /// The user put it in parentheses, which are part of the span.
  bool parenthesized = false;
  /// Levels of the tree below and with this node; at most max_tree_height.
  uint16_t height = 1;
  Span span;
  Span inner;  ///< without the parentheses

  virtual ~Expr() = default;
  Expr(const Expr&) = delete;
  Expr& operator=(const Expr&) = delete;

 protected:
  explicit Expr(ExprKind k) : kind(k) {}
};
using ExprPtr = std::unique_ptr<Expr>;

struct Stmt {
  const StmtKind kind;
  uint16_t height = 1;
  Span span;

  virtual ~Stmt() = default;
  Stmt(const Stmt&) = delete;
  Stmt& operator=(const Stmt&) = delete;

 protected:
  explicit Stmt(StmtKind k) : kind(k) {}
};
using StmtPtr = std::unique_ptr<Stmt>;

/// A tree is never higher than this, so a walk may recurse.
inline constexpr int max_tree_height = 1000;

template <ExprKind k>
struct ExprBase : Expr {
  static constexpr ExprKind node_kind = k;
  ExprBase() : Expr(k) {}
};
template <StmtKind k>
struct StmtBase : Stmt {
  static constexpr StmtKind node_kind = k;
  StmtBase() : Stmt(k) {}
};

/// as<Call>(e): `e` as that node, or null if it is another.
template <class T>
const T* as(const Expr& e) {
  return e.kind == T::node_kind ? static_cast<const T*>(&e) : nullptr;
}
template <class T>
const T* as(const Stmt& s) {
  return s.kind == T::node_kind ? static_cast<const T*>(&s) : nullptr;
}

/// A name where it stands.
struct Name {
  std::string text;
  Span span;
};

/// What is bound: `x`, `_`, `(a, (b, _))`.
struct Pattern {
  enum class Kind : uint8_t { name, wildcard, tuple };
  Kind kind = Kind::name;
  Name name;                   ///< of a name
  std::vector<Pattern> items;  ///< of a tuple
  bool bare = false;           ///< a tuple without parentheses: `for i, x in`
  Span span;
};

/// `value` or `name = value`: an argument, a field of a record.
struct ArgumentExpr {
  std::optional<Name> name;
  ExprPtr value;
};

/// `name: type`, as in a record type.
struct TypedName {
  Name name;
  ExprPtr type;
};

/// A parameter. Those after `*` are keyword-only.
struct Param {
  Pattern pattern;
  ExprPtr type;           ///< or null
  ExprPtr default_value;  ///< or null
  bool keyword_only = false;
  Span span;
};

/// `T` or `T: float` between the brackets after a name.
struct TypeParam {
  Name name;
  ExprPtr restriction;  ///< or null
};

/// What `def` and `fn` share.
struct Function {
  std::vector<TypeParam> type_params;  ///< none for fn
  std::vector<Param> params;
  ExprPtr result;  ///< the declared type, or null
  ExprPtr body;    ///< a Block, or the expression after `=` or `=>`
  /// From the bracket that opens the parameters to their end.
  Span params_span;
};

// ---- Literals

/// `12`, `0x1f`, `2u8`. A minus sign is a Unary. A number with the suffix of a
/// floating type is a FloatLiteral, with or without a point.
struct IntLiteral final : ExprBase<ExprKind::IntLiteral> {
  uint64_t value = 0;
  std::optional<DType> suffix;
};

/// `1.5`, `1e-3`, `1f64`, `0.5bf16`: the nearest double.
struct FloatLiteral final : ExprBase<ExprKind::FloatLiteral> {
  double value = 0;
  std::optional<DType> suffix;
};

/// Text, or `{value:spec}`.
struct StringPiece {
  std::string text;  ///< escapes resolved; empty if there is a value
  ExprPtr value;     ///< or null
  std::string spec;  ///< after the colon, unread: `.4f`
  Span span;
};
struct StringLiteral final : ExprBase<ExprKind::StringLiteral> {
  std::vector<StringPiece> pieces;
  /// The text of a string without values, else nothing.
  std::optional<std::string> plain_text() const;
};

struct BoolLiteral final : ExprBase<ExprKind::BoolLiteral> {
  bool value = false;
};
struct NoneLiteral final : ExprBase<ExprKind::NoneLiteral> {};

// ---- Names and sizes

/// A variable, a type (`f32`, `int`, `str`), a size, an axis.
struct NameExpr final : ExprBase<ExprKind::NameExpr> {
  std::string text;
};
/// `_` in a type: a size without a name.
struct Wildcard final : ExprBase<ExprKind::Wildcard> {};
/// `?k` in a type: a size known only at run time.
struct UnknownSize final : ExprBase<ExprKind::UnknownSize> {
  Name name;
};
/// `...`: any leading axes, in a type and in an index.
struct Rest final : ExprBase<ExprKind::Rest> {};

// ---- Trees. A tuple of no items is the unit `()`.

struct Tuple final : ExprBase<ExprKind::Tuple> {
  std::vector<ExprPtr> items;
  bool bare = false;  ///< without parentheses: `a, b = b, a`
};
/// `(w = a, b = c)`; every argument has a name.
struct Record final : ExprBase<ExprKind::Record> {
  std::vector<ArgumentExpr> fields;
};
/// `(w: f32[d], b: f32)`.
struct RecordType final : ExprBase<ExprKind::RecordType> {
  std::vector<TypedName> fields;
};
/// `(A, B) -> C`.
struct FunctionType final : ExprBase<ExprKind::FunctionType> {
  std::vector<ExprPtr> params;
  ExprPtr result;
};

// ---- Arrays

struct Array final : ExprBase<ExprKind::Array> {
  std::vector<ExprPtr> items;
};
struct Generator {
  Pattern pattern;
  ExprPtr iterable;
};
/// `[element for i in range(n), j in range(m)]`; at least one generator.
/// `[element for x in xs if condition]`, with one, else null.
struct Comprehension final : ExprBase<ExprKind::Comprehension> {
  ExprPtr element;
  std::vector<Generator> generators;
  ExprPtr condition;
};

// ---- Postfix

/// Positional arguments first.
struct Call final : ExprBase<ExprKind::Call> {
  ExprPtr callee;
  std::vector<ArgumentExpr> arguments;
};
/// `x[1, ::2]`, `f32[n, d]`, `Params[64]`. Items are expressions, or one of
/// Slice, Rest, NoneLiteral; there may be none.
struct Index final : ExprBase<ExprKind::Index> {
  ExprPtr object;
  std::vector<ExprPtr> items;
};
/// `start:stop:step`; each may be null. Only inside an Index.
struct Slice final : ExprBase<ExprKind::Slice> {
  ExprPtr start;
  ExprPtr stop;
  ExprPtr step;
};
/// `x.name` or `x.0`. A method call is a Call whose callee is a Field.
struct Field final : ExprBase<ExprKind::Field> {
  ExprPtr object;
  Name name;                 ///< the digits, for an index
  std::optional<int> index;  ///< of `x.0`
};

// ---- Operators

struct Unary final : ExprBase<ExprKind::Unary> {
  UnaryOp op = UnaryOp::negate;
  Span op_span;
  ExprPtr operand;
};
/// Arithmetic, bits, comparisons, `and`, `or`.
struct Binary final : ExprBase<ExprKind::Binary> {
  BinaryOp op = BinaryOp::add;
  Span op_span;
  ExprPtr left;
  ExprPtr right;
};
/// `value as type`.
struct Cast final : ExprBase<ExprKind::Cast> {
  ExprPtr value;
  ExprPtr type;
};
/// `base with (b = 2.0)`; every argument has a name.
struct With final : ExprBase<ExprKind::With> {
  ExprPtr base;
  std::vector<ArgumentExpr> fields;
};
/// `value |> function` is `function(value)`.
struct Pipe final : ExprBase<ExprKind::Pipe> {
  ExprPtr value;
  ExprPtr function;
};

// ---- Control

struct Block final : ExprBase<ExprKind::Block> {
  std::vector<StmtPtr> statements;
  /// The value of the block: its last statement, if that is an expression;
  /// else null, and the block's value is `()`.
  const Expr* value() const;
};
struct If final : ExprBase<ExprKind::If> {
  ExprPtr condition;
  ExprPtr then;       ///< a Block
  ExprPtr otherwise;  ///< a Block, an If, or null
  /// lower_jumps made it of a `return` and what follows: its branches are the
  /// ways out of the function.
  bool gives = false;
};
/// `fn(x) => body`.
struct FnExpr final : ExprBase<ExprKind::FnExpr> {
  Function function;
};

// ---- Statements

/// `let pattern: type = value`, `var ...`.
struct LetStmt final : StmtBase<StmtKind::LetStmt> {
  bool is_var = false;
  Pattern pattern;
  ExprPtr type;   ///< or null
  ExprPtr value;  ///< null where lower_jumps declares what `return` gives
};
/// `target = value`, `target += value`. The target is a NameExpr, a chain of
/// Index and Field that ends in one, or, without an operator, a Tuple of
/// targets and Wildcards.
struct AssignStmt final : StmtBase<StmtKind::AssignStmt> {
  ExprPtr target;
  std::optional<BinaryOp> op;  ///< of `+=` and the like
  Span op_span;
  ExprPtr value;
};
struct ExprStmt final : StmtBase<StmtKind::ExprStmt> {
  ExprPtr expr;
};
struct DefStmt final : StmtBase<StmtKind::DefStmt> {
  /// The `##` lines straight before it, without the marks; line ends kept.
  std::string documentation;
  std::vector<ExprPtr> decorators;  ///< from top to bottom, without `@`
  Name name;
  Function function;  ///< without a body if it is the host's
};
/// `type Params[d] = (w: f32[d], b: f32)`.
struct TypeStmt final : StmtBase<StmtKind::TypeStmt> {
  Name name;
  std::vector<TypeParam> type_params;
  ExprPtr type;
};
/// `axis rows, cols = mesh(2, 2)`, `axis batch`.
struct AxisStmt final : StmtBase<StmtKind::AxisStmt> {
  std::vector<Name> names;
  ExprPtr value;  ///< or null
};
/// `import nn`, `import "layers.uni" as layers`.
struct ImportStmt final : StmtBase<StmtKind::ImportStmt> {
  bool is_file = false;
  Name module;  ///< the path or the name, and where it stands
  std::optional<Name> alias;
};
struct ForStmt final : StmtBase<StmtKind::ForStmt> {
  Pattern pattern;
  ExprPtr iterable;
  ExprPtr body;  ///< a Block
  /// The flag that says that the loop was left (jumps.h); empty if no jump
  /// leaves it.
  std::string left;
};
/// `while x > 1 { ... }`, `while x > 1, max=100 { ... }`
struct WhileStmt final : StmtBase<StmtKind::WhileStmt> {
  ExprPtr condition;  ///< with a flag `left`: `not left and condition`
  ExprPtr most;       ///< how many turns it may take, or null
  ExprPtr body;       ///< a Block
  std::string left;   ///< as of a ForStmt
};
/// `break`, `continue`, `return`, `return value`.
struct JumpStmt final : StmtBase<StmtKind::JumpStmt> {
  enum class Jump : uint8_t { leave_loop, next_turn, give };
  Jump jump = Jump::leave_loop;
  ExprPtr value;  ///< of a `return`, or null
  /// The flags that are set (jumps.h).
  std::vector<std::string> sets;
};
/// `test "name" { ... }`, `bench "name" { ... }`: what a tool runs, and a run
/// of the program leaves out.
struct ToolStmt final : StmtBase<StmtKind::ToolStmt> {
  enum class Tool : uint8_t { test, bench };
  Tool tool = Tool::test;
  std::string name;
  Span name_span;
  ExprPtr body;  ///< a Block
};

/// The word that such a block, or a jump, begins with.
std::string_view word(ToolStmt::Tool tool);
std::string_view word(JumpStmt::Jump jump);

/// A comment, from `#` to the end of its line. A DefStmt has the text of those
/// that document it.
struct Comment {
  Span span;
  bool own_line = false;  ///< nothing but white space stands before it
};

/// A parsed file.
struct Program {
  const SourceFile* file = nullptr;
  std::vector<StmtPtr> statements;
  std::vector<Comment> comments;  ///< in the order of the file
};

/// Calls `f` for each direct child, in the order of the source. A child of a
/// Block is a statement, and goes to `g`.
using ExprVisitor = std::function<void(const Expr&)>;
using StmtVisitor = std::function<void(const Stmt&)>;
void for_each_child(const Expr& e, const ExprVisitor& f, const StmtVisitor& g);
void for_each_child(const Stmt& s, const ExprVisitor& f);

}  // namespace unisono::lang
