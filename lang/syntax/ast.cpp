#include "lang/syntax/ast.h"

namespace unisono::lang {
namespace {

struct BinaryRow {
  std::string_view text;
  OpClass cls;
};
constexpr BinaryRow binary_rows[] = {
#define BINARY(enumerator, text, token, precedence, associates, cls, ...) \
  {text, OpClass::cls},
#include "lang/syntax/precedence.def"
};
constexpr std::string_view unary_texts[] = {
#define UNARY(enumerator, text, ...) text,
#include "lang/syntax/precedence.def"
};

void visit(const ExprPtr& e, const ExprVisitor& f) {
  if (e) f(*e);
}
void visit(const std::vector<ExprPtr>& list, const ExprVisitor& f) {
  for (const ExprPtr& e : list) visit(e, f);
}
void visit(const std::vector<ArgumentExpr>& list, const ExprVisitor& f) {
  for (const ArgumentExpr& argument : list) visit(argument.value, f);
}
void visit(const std::vector<TypeParam>& list, const ExprVisitor& f) {
  for (const TypeParam& param : list) visit(param.restriction, f);
}
void visit(const Function& function, const ExprVisitor& f) {
  visit(function.type_params, f);
  for (const Param& param : function.params) {
    visit(param.type, f);
    visit(param.default_value, f);
  }
  visit(function.result, f);
  visit(function.body, f);
}

template <class T>
const T& node(const Expr& e) {
  return static_cast<const T&>(e);
}
template <class T>
const T& node(const Stmt& s) {
  return static_cast<const T&>(s);
}

/// Children of a node whose children are all expressions.
void for_each_part(const Expr& e, const ExprVisitor& f) {
  switch (e.kind) {
    case ExprKind::IntLiteral:
    case ExprKind::FloatLiteral:
    case ExprKind::BoolLiteral:
    case ExprKind::NoneLiteral:
    case ExprKind::NameExpr:
    case ExprKind::Wildcard:
    case ExprKind::UnknownSize:
    case ExprKind::Rest:
    case ExprKind::Block: return;
    case ExprKind::StringLiteral:
      for (const StringPiece& piece : node<StringLiteral>(e).pieces)
        visit(piece.value, f);
      return;
    case ExprKind::Tuple: return visit(node<Tuple>(e).items, f);
    case ExprKind::Record: return visit(node<Record>(e).fields, f);
    case ExprKind::RecordType:
      for (const TypedName& field : node<RecordType>(e).fields)
        visit(field.type, f);
      return;
    case ExprKind::FunctionType:
      visit(node<FunctionType>(e).params, f);
      return visit(node<FunctionType>(e).result, f);
    case ExprKind::Array: return visit(node<Array>(e).items, f);
    case ExprKind::Comprehension:
      visit(node<Comprehension>(e).element, f);
      for (const Generator& g : node<Comprehension>(e).generators)
        visit(g.iterable, f);
      return visit(node<Comprehension>(e).condition, f);
    case ExprKind::Call:
      visit(node<Call>(e).callee, f);
      return visit(node<Call>(e).arguments, f);
    case ExprKind::Index:
      visit(node<Index>(e).object, f);
      return visit(node<Index>(e).items, f);
    case ExprKind::Slice:
      visit(node<Slice>(e).start, f);
      visit(node<Slice>(e).stop, f);
      return visit(node<Slice>(e).step, f);
    case ExprKind::Field: return visit(node<Field>(e).object, f);
    case ExprKind::Unary: return visit(node<Unary>(e).operand, f);
    case ExprKind::Binary:
      visit(node<Binary>(e).left, f);
      return visit(node<Binary>(e).right, f);
    case ExprKind::Cast:
      visit(node<Cast>(e).value, f);
      return visit(node<Cast>(e).type, f);
    case ExprKind::With:
      visit(node<With>(e).base, f);
      return visit(node<With>(e).fields, f);
    case ExprKind::Pipe:
      visit(node<Pipe>(e).value, f);
      return visit(node<Pipe>(e).function, f);
    case ExprKind::If:
      visit(node<If>(e).condition, f);
      visit(node<If>(e).then, f);
      return visit(node<If>(e).otherwise, f);
    case ExprKind::FnExpr: return visit(node<FnExpr>(e).function, f);
  }
}

}  // namespace

std::string_view spelling(BinaryOp op) {
  return binary_rows[static_cast<size_t>(op)].text;
}
std::string_view spelling(UnaryOp op) {
  return unary_texts[static_cast<size_t>(op)];
}
OpClass class_of(BinaryOp op) {
  return binary_rows[static_cast<size_t>(op)].cls;
}

std::optional<std::string> StringLiteral::plain_text() const {
  std::string text;
  for (const StringPiece& piece : pieces) {
    if (piece.value) return std::nullopt;
    text += piece.text;
  }
  return text;
}

std::string_view word(ToolStmt::Tool tool) {
  switch (tool) {
    case ToolStmt::Tool::test: return "test";
    case ToolStmt::Tool::bench: return "bench";
  }
  __builtin_unreachable();
}

std::string_view word(JumpStmt::Jump jump) {
  switch (jump) {
    case JumpStmt::Jump::leave_loop: return "break";
    case JumpStmt::Jump::next_turn: return "continue";
    case JumpStmt::Jump::give: return "return";
  }
  __builtin_unreachable();
}

const Expr* Block::value() const {
  if (statements.empty()) return nullptr;
  const auto* last = as<ExprStmt>(*statements.back());
  return last ? last->expr.get() : nullptr;
}

void for_each_child(const Expr& e, const ExprVisitor& f, const StmtVisitor& g) {
  for_each_part(e, f);
  if (const auto* block = as<Block>(e))
    for (const StmtPtr& statement : block->statements) g(*statement);
}

void for_each_child(const Stmt& s, const ExprVisitor& f) {
  switch (s.kind) {
    case StmtKind::LetStmt:
      visit(node<LetStmt>(s).type, f);
      return visit(node<LetStmt>(s).value, f);
    case StmtKind::AssignStmt:
      visit(node<AssignStmt>(s).target, f);
      return visit(node<AssignStmt>(s).value, f);
    case StmtKind::ExprStmt: return visit(node<ExprStmt>(s).expr, f);
    case StmtKind::DefStmt:
      visit(node<DefStmt>(s).decorators, f);
      return visit(node<DefStmt>(s).function, f);
    case StmtKind::TypeStmt:
      visit(node<TypeStmt>(s).type_params, f);
      return visit(node<TypeStmt>(s).type, f);
    case StmtKind::AxisStmt: return visit(node<AxisStmt>(s).value, f);
    case StmtKind::ImportStmt: return;
    case StmtKind::ForStmt:
      visit(node<ForStmt>(s).iterable, f);
      return visit(node<ForStmt>(s).body, f);
    case StmtKind::WhileStmt:
      visit(node<WhileStmt>(s).condition, f);
      visit(node<WhileStmt>(s).most, f);
      return visit(node<WhileStmt>(s).body, f);
    case StmtKind::JumpStmt: return visit(node<JumpStmt>(s).value, f);
    case StmtKind::ToolStmt: return visit(node<ToolStmt>(s).body, f);
  }
}

}  // namespace unisono::lang
