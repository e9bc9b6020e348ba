#include "lang/syntax/jumps.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

namespace unisono::lang {
namespace {

using Jump = JumpStmt::Jump;
using Statements = std::vector<StmtPtr>;

// ---- where jumps may stand -------------------------------------------------

/// What is around a statement, in its function.
struct Around {
  bool function = false, loop = false;
  /// Between it and that a value is computed.
  bool value_in_function = false, value_in_loop = false;
};

class JumpChecker {
 public:
  explicit JumpChecker(Diagnostics& diagnostics) : diagnostics_(diagnostics) {}

  void statement(const Stmt& s, const Around& around) {
    if (const auto* jump = as<JumpStmt>(s)) return check(*jump, around);
    if (const auto* whole = as<ExprStmt>(s))
      return branch(*whole->expr, around);
    if (const auto* loop = as<ForStmt>(s)) {
      value(*loop->iterable, around);
      return branch(*loop->body, in_loop(around));
    }
    if (const auto* loop = as<WhileStmt>(s)) {
      value(*loop->condition, around);
      if (loop->most) value(*loop->most, around);
      return branch(*loop->body, in_loop(around));
    }
    if (const auto* tool = as<ToolStmt>(s)) return branch(*tool->body, {});
    const ExprVisitor part = [&](const Expr& e) { value(e, around); };
    if (const auto* def = as<DefStmt>(s)) return function(def->function, part);
    for_each_child(s, part);
  }

 private:
  static Around in_loop(Around around) {
    around.loop = true;
    around.value_in_loop = false;
    return around;
  }

  void check(const JumpStmt& jump, const Around& around) {
    const std::string_view word = lang::word(jump.jump);
    const bool gives = jump.jump == Jump::give;
    const Span where = {jump.span.file, jump.span.begin,
                        jump.span.begin + static_cast<uint32_t>(word.size())};
    if (!(gives ? around.function : around.loop)) {
      diagnostics_.add(
          diagnostic(Code::jump_outside, where, word,
                     gives ? std::string_view("function") : "loop")
              .set_help(gives ? "a script ends with its last line: put what "
                                "follows into an `if`, or all of it into a "
                                "`def`"
                              : "`break` and `continue` belong in the body of "
                                "a `for` or `while` of the same function"));
    } else if (gives ? around.value_in_function : around.value_in_loop) {
      diagnostics_.add(
          diagnostic(Code::jump_in_value, where, word)
              .set_help("make the `if` a statement of its own: `var x = ...`, "
                        "and in its branches `x = ...` or the jump"));
    }
    if (jump.value) value(*jump.value, around);
  }

  /// The branches of an `if` that is a statement, and a block.
  void branch(const Expr& e, const Around& around) {
    if (const auto* choice = as<If>(e)) {
      value(*choice->condition, around);
      branch(*choice->then, around);
      if (choice->otherwise) branch(*choice->otherwise, around);
    } else if (const auto* block = as<Block>(e)) {
      for (const StmtPtr& each : block->statements) statement(*each, around);
    } else {
      value(e, around);
    }
  }

  void value(const Expr& e, Around around) {
    around.value_in_function = around.value_in_loop = true;
    const ExprVisitor part = [&](const Expr& child) { value(child, around); };
    if (const auto* fn = as<FnExpr>(e)) return function(fn->function, part);
    for_each_child(e, part,
                   [&](const Stmt& child) { statement(child, around); });
  }

  /// `part`: what stands in its parameters.
  void function(const Function& f, const ExprVisitor& part) {
    for (const Param& param : f.params) {
      if (param.type) part(*param.type);
      if (param.default_value) part(*param.default_value);
    }
    if (f.result) part(*f.result);
    if (f.body) branch(*f.body, {.function = true});
  }

  Diagnostics& diagnostics_;
};

// ---- what jumps do to the statements around them ----------------------------

/// The blocks of an `if` and those that follow it by `else if`; the last is
/// null if there is no `else`.
std::vector<Block*> branches_of(If& choice) {
  std::vector<Block*> out;
  for (If* each = &choice; each;) {
    out.push_back(static_cast<Block*>(each->then.get()));
    Expr* other = each->otherwise.get();
    if (other && other->kind == ExprKind::If) {
      each = static_cast<If*>(other);
    } else {
      out.push_back(static_cast<Block*>(other));
      break;
    }
  }
  return out;
}

If* as_choice(Stmt& s) {
  if (s.kind != StmtKind::ExprStmt) return nullptr;
  Expr& e = *static_cast<ExprStmt&>(s).expr;
  return e.kind == ExprKind::If ? static_cast<If*>(&e) : nullptr;
}

/// The body of a loop, or null.
Block* body_of(Stmt& s) {
  if (s.kind == StmtKind::ForStmt)
    return static_cast<Block*>(static_cast<ForStmt&>(s).body.get());
  if (s.kind == StmtKind::WhileStmt)
    return static_cast<Block*>(static_cast<WhileStmt&>(s).body.get());
  return nullptr;
}

/// Whether a jump in the statement leaves it; `in_loop`: only a `return` does.
bool may_leave(Stmt& s, bool in_loop = false) {
  if (const auto* jump = as<JumpStmt>(s))
    return !in_loop || jump->jump == Jump::give;
  const auto any = [](const Block* block, bool in_loop) {
    return block && std::ranges::any_of(block->statements, [&](const auto& s) {
             return may_leave(*s, in_loop);
           });
  };
  if (If* choice = as_choice(s))
    return std::ranges::any_of(branches_of(*choice), [&](Block* block) {
      return any(block, in_loop);
    });
  return any(body_of(s), true);
}

/// Whether a `break` in the statement leaves the loop that it is in.
bool may_break(Stmt& s) {
  if (const auto* jump = as<JumpStmt>(s)) return jump->jump == Jump::leave_loop;
  If* choice = as_choice(s);
  return choice && std::ranges::any_of(branches_of(*choice), [](Block* block) {
           return block &&
                  std::ranges::any_of(block->statements, [](const auto& each) {
                    return may_break(*each);
                  });
         });
}

/// Whether it is `while true` without a `break`.
bool is_endless(Stmt& s) {
  const auto* loop = as<WhileStmt>(s);
  const auto* holds = loop ? as<BoolLiteral>(*loop->condition) : nullptr;
  return holds && holds->value && !loop->most &&
         std::ranges::none_of(body_of(s)->statements, [](const auto& each) {
           return may_break(*each);
         });
}

/// Whether what follows the statements, or the statement, is never reached.
bool always_leaves(const Statements& list);
bool always_leaves(Stmt& s) {
  if (s.kind == StmtKind::JumpStmt || is_endless(s)) return true;
  If* choice = as_choice(s);
  return choice && std::ranges::all_of(branches_of(*choice), [](Block* block) {
           return block && always_leaves(block->statements);
         });
}
bool always_leaves(const Statements& list) {
  return std::ranges::any_of(list,
                             [](const auto& s) { return always_leaves(*s); });
}

// ---- nodes -----------------------------------------------------------------

template <class Node>
std::unique_ptr<Node> made(Span where) {
  auto node = std::make_unique<Node>();
  node->span = where;
  if constexpr (std::is_base_of_v<Expr, Node>) node->inner = where;
  return node;
}

ExprPtr name_of(const std::string& name, Span where) {
  auto node = made<NameExpr>(where);
  node->text = name;
  return node;
}

ExprPtr negated(ExprPtr operand) {
  auto node = made<Unary>(operand->span);
  node->op = UnaryOp::logical_not;
  node->op_span = operand->span;
  node->operand = std::move(operand);
  return node;
}

ExprPtr block_of(Statements statements, Span where) {
  auto node = made<Block>(where);
  node->statements = std::move(statements);
  return node;
}

StmtPtr statement_of(ExprPtr expr) {
  auto node = made<ExprStmt>(expr->span);
  node->expr = std::move(expr);
  return node;
}

StmtPtr choice_of(ExprPtr condition, ExprPtr then, ExprPtr otherwise,
                  Span where) {
  auto node = made<If>(where);
  node->gives = otherwise != nullptr;
  node->condition = std::move(condition);
  node->then = std::move(then);
  node->otherwise = std::move(otherwise);
  return statement_of(std::move(node));
}

/// `var name`, which holds false, or nothing yet.
StmtPtr hidden_variable(std::string name, Span where) {
  auto node = made<LetStmt>(where);
  node->is_var = true;
  node->pattern.name = {std::move(name), where};
  node->pattern.span = where;
  return node;
}

Span whole_of(const Statements& list) {
  const Span first = list.front()->span, last = list.back()->span;
  return {first.file, first.begin, last.end};
}

// ---- what is never reached -------------------------------------------------

/// Leaves of each jump the value that it gives.
void drop_jumps(Statements& list) {
  for (StmtPtr& each : list) {
    if (each->kind == StmtKind::JumpStmt) {
      ExprPtr value = std::move(static_cast<JumpStmt&>(*each).value);
      if (!value) value = made<NoneLiteral>(each->span);
      each = statement_of(std::move(value));
    } else if (If* choice = as_choice(*each)) {
      for (Block* block : branches_of(*choice))
        if (block) drop_jumps(block->statements);
    } else if (Block* body = body_of(*each)) {
      drop_jumps(body->statements);
    }
  }
}

/// What stands behind a jump is never reached: it goes before it, as `if false
/// { ... }`, so that its names are checked as all others are. It is no part of
/// what dump_ast shows.
void keep_unreached(Statements& list) {
  for (size_t i = 0; i < list.size(); ++i) {
    if (If* choice = as_choice(*list[i])) {
      for (Block* block : branches_of(*choice))
        if (block) keep_unreached(block->statements);
    } else if (Block* body = body_of(*list[i])) {
      keep_unreached(body->statements);
    }
    if (i + 1 == list.size() || !may_leave(*list[i]) ||
        !always_leaves(*list[i]))
      continue;
    const auto at = list.begin() + static_cast<ptrdiff_t>(i);
    Statements unreached(std::make_move_iterator(at + 1),
                         std::make_move_iterator(list.end()));
    list.erase(at + 1, list.end());
    const Span where = whole_of(unreached);
    drop_jumps(unreached);
    list.insert(
        at, choice_of(made<BoolLiteral>(where),
                      block_of(std::move(unreached), where), nullptr, where));
    return;
  }
}

// ---- the pass --------------------------------------------------------------

/// Where a list of statements stands.
enum class Place : uint8_t {
  end_of_function,  // its value is the function's
  end_of_turn,      // nothing follows it in this turn of the loop
  before_others,    // or nothing jumps out of it
};

class JumpLowering {
 public:
  /// A list that is no part of one that was lowered.
  void whole(Statements& list, Place place) {
    keep_unreached(list);
    statements(list, place);
  }

 private:
  void statements(Statements& list, Place place) {
    for (size_t i = 0; i < list.size(); ++i) {
      if (!may_leave(*list[i])) {
        inside(*list[i]);
        continue;
      }
      Statements rest(std::make_move_iterator(list.begin() + i + 1),
                      std::make_move_iterator(list.end()));
      list.resize(i + 1);
      if (list[i]->kind == StmtKind::JumpStmt) return end_by_jump(list, place);
      If* choice = as_choice(*list[i]);
      if (choice && place != Place::before_others &&
          (rest.empty() || takes_rest(*choice)))
        return end_by_choice(*choice, std::move(rest), place);
      const bool ends = always_leaves(*list[i]);
      inside(*list[i]);
      if (ends) rest.clear();
      return guard(list, std::move(rest), place, ends);
    }
  }

  struct Loop {
    size_t number = 1;
    bool skips = false;  // statements in it look at its `continue` flag
    std::vector<JumpStmt*> jumps;
  };

  /// A statement's parts.
  void inside(Stmt& s) {
    if (s.kind == StmtKind::DefStmt)
      return function(static_cast<DefStmt&>(s).function);
    if (Block* body = body_of(s)) loop(s, *body);
    for_each_child(s, [&](const Expr& e) {
      if (&e != body_of(s)) inside(mutable_node(e));
    });
  }
  void inside(Expr& e) {
    if (e.kind == ExprKind::FnExpr)
      return function(static_cast<FnExpr&>(e).function);
    if (e.kind == ExprKind::Block)
      return whole(static_cast<Block&>(e).statements, Place::before_others);
    for_each_child(
        e, [&](const Expr& child) { inside(mutable_node(child)); },
        [](const Stmt&) {});
  }
  /// The tree is changed as a whole, and has one way to visit its nodes.
  static Expr& mutable_node(const Expr& e) {
    return const_cast<Expr&>(
        e);  // NOLINT(cppcoreguidelines-pro-type-const-cast)
  }

  /// A list that ends with a jump.
  void end_by_jump(Statements& list, Place place) {
    auto& jump = static_cast<JumpStmt&>(*list.back());
    if (jump.value) inside(*jump.value);
    if (place == Place::end_of_function) {
      ExprPtr value = std::move(jump.value);
      if (!value) value = made<NoneLiteral>(jump.span);
      list.back() = statement_of(std::move(value));
    } else if (place == Place::end_of_turn && jump.jump == Jump::next_turn) {
      list.pop_back();
    } else {
      const bool gives = jump.jump == Jump::give;
      if (gives) jump.sets.push_back(return_flag);
      keeps_result_ |= gives;
      for (Loop& loop : loops_)
        if (gives || &loop == &loops_.back()) loop.jumps.push_back(&jump);
    }
  }

  /// Whether what follows the `if` can stand in one of its branches.
  static bool takes_rest(If& choice) {
    int goes_on = 0;
    for (Block* block : branches_of(choice)) {
      if (block && always_leaves(block->statements)) continue;
      ++goes_on;
      if (block && std::ranges::any_of(block->statements, [](const auto& s) {
            return may_leave(*s);
          }))
        return false;
    }
    return goes_on <= 1;
  }

  /// A list that ends with an `if`, `rest` in the branch that goes on.
  void end_by_choice(If& choice, Statements rest, Place place) {
    If* last = &choice;
    for (If* each = &choice; each;) {
      each->gives = place == Place::end_of_function;
      inside(*each->condition);
      last = each;
      Expr* other = each->otherwise.get();
      each = other && other->kind == ExprKind::If ? static_cast<If*>(other)
                                                  : nullptr;
    }
    const bool wants_else = !rest.empty() || place == Place::end_of_function;
    if (!last->otherwise && wants_else)
      last->otherwise =
          block_of({}, {choice.span.file, choice.span.end, choice.span.end});
    for (Block* block : branches_of(choice)) {
      if (!block) continue;
      if (!rest.empty() && !always_leaves(block->statements)) {
        // Names of the branch are not those of what follows.
        if (!block->statements.empty()) {
          StmtPtr own =
              statement_of(block_of(std::move(block->statements), block->span));
          block->statements.clear();
          block->statements.push_back(std::move(own));
        }
        const Span where = whole_of(rest);
        if (block->statements.empty()) block->span = block->inner = where;
        std::ranges::move(rest, std::back_inserter(block->statements));
        rest.clear();
      }
      statements(block->statements, place);
    }
  }

  /// What follows a statement that may have jumped, under a flag; it `always`
  /// has.
  void guard(Statements& list, Statements rest, Place place, bool always) {
    const Span where = list.back()->span;
    if (place == Place::end_of_function && always) {
      list.push_back(statement_of(name_of(return_value, where)));
      return;
    }
    if (place == Place::end_of_function) {
      const Span whole = rest.empty() ? where : whole_of(rest);
      statements(rest, place);
      Statements given;
      given.push_back(statement_of(name_of(return_value, where)));
      list.push_back(choice_of(name_of(return_flag, where),
                               block_of(std::move(given), where),
                               block_of(std::move(rest), whole),
                               {where.file, where.begin, whole.end}));
      return;
    }
    if (rest.empty()) return;
    std::string flag = return_flag;
    if (!loops_.empty()) {
      loops_.back().skips = true;
      flag = continue_flag(loops_.back());
    }
    const Span whole = whole_of(rest);
    statements(rest, place);
    list.push_back(choice_of(negated(name_of(flag, where)),
                             block_of(std::move(rest), whole), nullptr, whole));
  }

  void loop(Stmt& s, Block& body) {
    loops_.push_back({.number = loops_.size() + 1, .jumps = {}});
    statements(body.statements, Place::end_of_turn);
    const Loop loop = std::move(loops_.back());
    loops_.pop_back();
    std::string left;
    for (JumpStmt* jump : loop.jumps) {
      if (loop.skips) jump->sets.push_back(continue_flag(loop));
      if (jump->jump == Jump::next_turn) continue;
      left = fmt::format("break {}", loop.number);
      jump->sets.push_back(left);
    }
    if (loop.skips)
      body.statements.insert(body.statements.begin(),
                             hidden_variable(continue_flag(loop), body.span));
    if (left.empty()) return;
    if (s.kind == StmtKind::ForStmt) {
      static_cast<ForStmt&>(s).left = std::move(left);
      return;
    }
    auto& turns = static_cast<WhileStmt&>(s);
    const Span where = turns.condition->span;
    auto both = made<Binary>(where);
    both->op = BinaryOp::logical_and;
    both->op_span = where;
    both->left = negated(name_of(left, where));
    both->right = std::move(turns.condition);
    turns.condition = std::move(both);
    turns.left = std::move(left);
  }

  void function(Function& f) {
    const auto outer = std::exchange(loops_, {});
    const bool outer_keeps = std::exchange(keeps_result_, false);
    for (const Param& param : f.params)
      if (param.default_value) inside(*param.default_value);
    if (f.body && f.body->kind == ExprKind::If) {
      const Span where = f.body->span;
      Statements whole;
      whole.push_back(statement_of(std::move(f.body)));
      const bool jumps = may_leave(*whole.front());
      f.body = jumps ? block_of(std::move(whole), where)
                     : std::move(static_cast<ExprStmt&>(*whole.front()).expr);
    }
    if (f.body && f.body->kind == ExprKind::Block) {
      auto& body = static_cast<Block&>(*f.body);
      whole(body.statements, Place::end_of_function);
      if (keeps_result_)
        for (const std::string& name : {return_value, return_flag})
          body.statements.insert(body.statements.begin(),
                                 hidden_variable(name, body.span));
    } else if (f.body) {
      inside(*f.body);
    }
    loops_ = outer;
    keeps_result_ = outer_keeps;
  }

  static std::string continue_flag(const Loop& loop) {
    return fmt::format("continue {}", loop.number);
  }

  std::vector<Loop> loops_;    // of the function, around the statement
  bool keeps_result_ = false;  // a `return` of it is left in the tree
};

}  // namespace

void check_jumps(const Program& program, Diagnostics& diagnostics) {
  JumpChecker checker(diagnostics);
  for (const StmtPtr& each : program.statements) checker.statement(*each, {});
}

void lower_jumps(Program& program) {
  JumpLowering().whole(program.statements, Place::before_others);
}

}  // namespace unisono::lang
