// Functions and statements that become code.
#include "lang/walk/function_code.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "jit/scalar/element.h"
#include "lang/context/literals.h"
#include "lang/syntax/jumps.h"

namespace unisono::lang {
namespace {

using Form = HostKind::Form;
using Literal = HostKind::Literal;

constexpr size_t most_functions = 64;

}  // namespace

std::optional<HostKind> common_kind(const HostKind& a, const HostKind& b) {
  if (a == b) return a;
  const auto is_bool_kind = [](const HostKind& kind) {
    return kind.dtype == DType::Bool;
  };
  if (is_bool_kind(a) && is_bool_kind(b))
    return HostKind{Form::either, DType::Bool};
  const auto is_int = [](const HostKind& kind) {
    return kind.is(Form::integer) || kind.is(Form::whole) ||
           kind == HostKind::number(DType::I64, Literal::no);
  };
  if (is_int(a) && is_int(b)) return HostKind::whole();
  if (a.form == b.form && (a.is(Form::number) || a.is(Form::scalar)) &&
      a.dtype == b.dtype) {
    HostKind either = a;
    either.literal = Literal::unknown;
    return either;
  }
  return std::nullopt;
}

bool is_whole(const HostKind& kind) {
  return kind.is(Form::integer) || (!kind.is_held() && is_integer(kind.dtype));
}

bool assigns(const Expr& e) {
  if (e.kind == ExprKind::FnExpr) return false;
  bool found = false;
  for_each_child(
      e, [&](const Expr& child) { found |= assigns(child); },
      [&](const Stmt& child) {
        found |= child.kind == StmtKind::AssignStmt;
        for_each_child(child,
                       [&](const Expr& inner) { found |= assigns(inner); });
      });
  return found;
}

namespace {

bool mentions(const Expr& e, const std::string& name) {
  if (const auto* found = as<NameExpr>(e)) return found->text == name;
  bool found = false;
  const ExprVisitor visit = [&](const Expr& child) {
    found = found || mentions(child, name);
  };
  for_each_child(e, visit,
                 [&](const Stmt& child) { for_each_child(child, visit); });
  return found;
}

/// Whether it is a variable that lower_jumps has made.
bool is_flag(const Expr& e) {
  const auto* name = as<NameExpr>(e);
  return name && is_hidden(name->text);
}

/// Whether a call of `print` shows the name's value, and does nothing else with
/// it.
bool only_shows(const Call& print, const std::string& name) {
  return std::ranges::all_of(print.arguments, [&](const ArgumentExpr& each) {
    if (each.value->kind == ExprKind::NameExpr) return true;
    const auto* text = as<StringLiteral>(*each.value);
    if (!text) return !mentions(*each.value, name);
    return std::ranges::all_of(text->pieces, [&](const StringPiece& piece) {
      return !piece.value || piece.value->kind == ExprKind::NameExpr ||
             !mentions(*piece.value, name);
    });
  });
}

}  // namespace

// ---- variables -----------------------------------------------------------

HostOperand FunctionCompiler::Body::as_variable(const Operand& value,
                                                uint32_t place) {
  if (value.kind.is(Form::ints))  // they would become numbers
    give_up(unit_.where, "a variable that is a tuple of ints");
  Operand out = move(value, place);
  if (out.kind.is(Form::boolean)) out.kind = HostKind::scalar(DType::Bool);
  if (out.kind.is(Form::integer) || out.kind.is(Form::whole))
    out.kind = HostKind::number(DType::I64, Literal::no);
  if (out.kind.is(Form::number)) out.kind.literal = Literal::no;
  return out;
}

/// A `var` that begins as a number and is a scalar of this type later. What is
/// done with it is the same for both, if the number is that scalar exactly.
HostOperand FunctionCompiler::Body::as_scalar_variable(const LetStmt& s,
                                                       const Operand& value,
                                                       DType dtype,
                                                       uint32_t place) {
  const Span where = s.value->span;
  const bool number = value.known && (value.kind.is(Form::integer) ||
                                      value.kind.is(Form::number));
  if (!number) give_up(where, "the variable's type changes");
  const double given =
      is_whole(value.kind)
          ? static_cast<double>(static_cast<int64_t>(value.bits))
          : std::bit_cast<double>(value.bits);
  // Of these each is exact in all types of 32 bits, and more.
  const bool exact = byte_size(dtype) >= 4 &&
                     static_cast<float>(given) == given &&
                     std::abs(given) <= 1e6;
  if (!exact) give_up(where, "the variable's type changes");
  Operand out = move(to_scalar(value, dtype, place, where), place);
  out.kind.literal = Literal::unknown;
  return out;
}

// ---- blocks ----------------------------------------------------------------

/// A result of the function.
void FunctionCompiler::Body::give(const Operand& value, Span where) {
  const uint32_t before = top_;
  const Function* syntax = unit_.compiled.syntax;  // null of an expression
  const Operand result =
      match(value, syntax ? syntax->result.get() : nullptr, reserve(), where);
  top_ = before;
  if (result.kind.may_be_number())
    give_up(where, "its result is of one of two types");
  if (result.kind.is(Form::whole)) give_up(where, "one of two kinds of values");
  auto& kind = unit_.compiled.result;
  auto& whole = all_.guesses_.whole;
  if (!kind) {
    kind = result.kind;
  } else {
    const auto common = common_kind(*kind, result.kind);
    if (!common) give_up(where, "its results are of different types");
    if (common->is(Form::whole) && !syntax)
      give_up(where, "one of two kinds of values");
    if (common->is(Form::whole) && whole.insert(syntax).second)
      throw WrongGuess{};
    kind = *common;
  }
  if (kind->is(Form::whole))
    emit(jit::bytecode::constant_step,
         static_cast<uint32_t>(unit_.compiled.params.size()), 0, 0, 0,
         result.kind.is(Form::integer) ? 0 : 1);
  if (result.kind.is_held()) {
    take(result, 0);
    emit(jit::bytecode::return_step, 0, 0);
  } else if (result.known)
    emit(jit::bytecode::return_constant_step, 0, 0, 0, 0,
         static_cast<int64_t>(result.bits));
  else
    emit(jit::bytecode::return_step, 0, result.place);
}

HostOperand FunctionCompiler::Body::finish(const Expr& e, Use use,
                                           uint32_t place) {
  if (is_flag(e)) {  // after a loop that ends with a `return` alone
    emit(jit::bytecode::return_constant_step);
    return {};
  }
  if (const auto* branches_of = as<If>(e))
    return branches(*branches_of, use, place);
  if (e.kind == ExprKind::Block) return block(e, use, place);
  const Operand out = value(e, place);
  if (use == Use::result) give(out, e.span);
  return out;
}

HostOperand FunctionCompiler::Body::branches(const If& e, Use use,
                                             uint32_t place) {
  // Where code goes on no jump was taken.
  if (is_flag(*e.condition)) return block(*e.otherwise, use, place);
  if (const auto* negated = as<Unary>(*e.condition);
      negated && is_flag(*negated->operand))
    return block(*e.then, use, place);
  if (use != Use::nothing && !e.otherwise)
    give_up(e.span, "an `if` without `else`");
  const uint32_t before = top_;
  const uint32_t own = reserve();  // the condition may read `place`
  Target otherwise, end;
  condition(*e.condition, otherwise);
  Operand value = block(*e.then, use, own);
  if (use == Use::value) move(value, own);
  if (use != Use::result && e.otherwise) jump(end);
  bind(otherwise);
  if (e.otherwise) {
    const Operand other = block(*e.otherwise, use, own);
    if (use == Use::value) {
      move(other, own);
      const auto kind = common_kind(value.kind, other.kind);
      if (!kind) give_up(e.span, "its branches are of different types");
      value.kind = *kind;
    }
  }
  bind(end);
  top_ = before;
  if (use != Use::value) return {};
  return move(in(value.kind, own), place);
}

HostOperand FunctionCompiler::Body::block(const Expr& e, Use use,
                                          uint32_t place) {
  const auto* body = as<Block>(e);
  if (!body) return finish(e, use, place);
  const uint32_t before = top_;
  const size_t names = locals_.size();
  Operand value;
  const Expr* last = body->value();
  if (use != Use::nothing && !last) give_up(e.span, "a block without a value");
  for (const StmtPtr& each : body->statements) {
    const bool is_last = &each == &body->statements.back();
    if (is_last && use != Use::nothing)
      value = finish(*last, use, place);
    else
      statement(*each);
  }
  // The registers of its names may be used for others.
  if (use == Use::value && !value.known && value.place >= before)
    value = move(value, place);
  else if (use == Use::value)
    value = kept(value, place);
  locals_.resize(names);
  top_ = before;
  return value;
}

void FunctionCompiler::Body::statement(const Stmt& s) {
  switch (s.kind) {
    case StmtKind::LetStmt: return let(static_cast<const LetStmt&>(s));
    case StmtKind::AssignStmt: return assign(static_cast<const AssignStmt&>(s));
    case StmtKind::ExprStmt: {
      const Expr& e = *static_cast<const ExprStmt&>(s).expr;
      const uint32_t before = top_;
      if (const auto* made = as<Call>(e); made && assertion(s, *made)) return;
      if (e.kind == ExprKind::If || e.kind == ExprKind::Block)
        finish(e, Use::nothing, reserve());
      else
        value(e, reserve());
      top_ = before;
      return;
    }
    case StmtKind::ForStmt:
      return for_loop(static_cast<const ForStmt&>(s), nullptr);
    case StmtKind::WhileStmt:
      return while_loop(static_cast<const WhileStmt&>(s));
    case StmtKind::JumpStmt: return jump(static_cast<const JumpStmt&>(s));
    case StmtKind::DefStmt:
    case StmtKind::TypeStmt:
    case StmtKind::AxisStmt:
    case StmtKind::ImportStmt:
    case StmtKind::ToolStmt: break;
  }
  give_up(s.span, "this statement is not known in code");
}

void FunctionCompiler::Body::let(const LetStmt& s) {
  if (!s.value) return;  // a flag, or what a `return` gives
  const auto* items = as<Tuple>(*s.value);
  if (s.pattern.kind == Pattern::Kind::tuple && items && !s.type &&
      items->items.size() == s.pattern.items.size())
    return let_each(s, *items);
  const uint32_t place = reserve();
  Operand value = any(*s.value, place);
  if (value.kind.is(Form::array) && s.is_var) value = own_copy(value, place);
  value = match(value, s.type.get(), place, s.value->span);
  if (s.pattern.kind == Pattern::Kind::tuple) return let_items(s, value);
  if (s.is_var) {
    const auto found = all_.guesses_.variables.find(&s);
    value = found == all_.guesses_.variables.end()
                ? as_variable(value, place)
                : as_scalar_variable(s, value, found->second, place);
    value.changes = true;
  } else {
    value = kept(value, place);
  }
  if (s.pattern.kind == Pattern::Kind::wildcard) return;
  locals_.push_back({s.pattern.name.text, value, s.pattern.span,
                     s.is_var ? s.type.get() : nullptr,
                     s.is_var ? &s : nullptr});
}

/// `let (a, b) = (x, y)`: each by itself, after all of the right side.
void FunctionCompiler::Body::let_each(const LetStmt& s, const Tuple& values) {
  std::vector<Local> names;
  for (size_t i = 0; i < values.items.size(); ++i) {
    const Pattern& pattern = s.pattern.items[i];
    if (pattern.kind == Pattern::Kind::tuple)
      give_up(pattern.span, "a pattern");
    const Expr& e = *values.items[i];
    if (assigns(e)) give_up(e.span, "it assigns in a tuple");
    const uint32_t place = reserve();
    Operand value = this->value(e, place);
    value = s.is_var ? as_variable(value, place) : kept(value, place);
    value.changes = s.is_var;
    if (pattern.kind == Pattern::Kind::name)
      names.push_back(
          {pattern.name.text, value, pattern.span, nullptr, nullptr});
  }
  locals_.insert(locals_.end(), names.begin(), names.end());
}

const FunctionCode::Local& FunctionCompiler::Body::variable(
    const NameExpr& name, Span where) const {
  size_t i = locals_.size();
  while (i-- > 0)
    if (locals_[i].name == name.text) break;
  if (i >= locals_.size() || !locals_[i].value.changes)
    give_up(where, "this assignment is not known in code");
  return locals_[i];
}

void FunctionCompiler::Body::assign(const AssignStmt& s) {
  const auto* targets = as<Tuple>(*s.target);
  const auto* values = as<Tuple>(*s.value);
  if (!targets) return assign_to(*s.target, s, nullptr);
  if (!values || s.op || targets->items.size() != values->items.size())
    give_up(s.span, "this assignment is not known in code");
  // All of the right side first.
  const uint32_t before = top_;
  std::vector<Operand> parts;
  for (const ExprPtr& each : values->items) {
    if (assigns(*each)) give_up(each->span, "it assigns in a tuple");
    const uint32_t place = reserve();
    parts.push_back(kept(value(*each, place), place));
  }
  for (size_t i = 0; i < parts.size(); ++i)
    if (targets->items[i]->kind != ExprKind::Wildcard)
      assign_to(*targets->items[i], s, &parts[i]);
  top_ = before;
}

/// What the target becomes is `given`, or the statement's value.
void FunctionCompiler::Body::assign_to(const Expr& target, const AssignStmt& s,
                                       const Operand* given) {
  if (const auto* name = as<NameExpr>(target))
    return assign_name(variable(*name, s.span), s, given);
  if (const auto* index = as<Index>(target))
    return assign_element(*index, s, given);
  give_up(s.span, "this assignment is not known in code");
}

void FunctionCompiler::Body::assign_name(const Local& local,
                                         const AssignStmt& s,
                                         const Operand* given) {
  const Operand variable = local.value;
  if (!given && variable.kind.is_held() && append(s, variable)) return;
  const uint32_t before = top_;
  const uint32_t place = reserve();
  Operand value;
  if (given) {
    value = *given;
  } else if (s.op) {
    Operand old = variable;
    if (assigns(*s.value)) old = move(variable, reserve());
    value = this->value(*s.value, reserve());
    value = operation(*s.op, old, value, place, nullptr, s.span);
  } else if (variable.kind.is(Form::own)) {
    value = any(*s.value, place);
    if (value.kind.is(Form::array)) value = own_copy(value, place);
  } else {
    value = this->value(*s.value, place);
  }
  // As `adopt`: a number takes the type of what it replaces.
  const bool weak = value.kind.is(Form::integer) || value.kind.is(Form::number);
  if (weak && variable.kind.is(Form::number) &&
      (is_floating(variable.kind.dtype) || is_whole(value.kind)))
    value = to_number(value, variable.kind.dtype, place);
  else if (weak && variable.kind.is(Form::scalar))
    value = to_scalar(value, variable.kind.dtype, place, s.value->span);
  // What was computed for it alone is not shared.
  const bool alone = given || value.place >= before;
  if (!alone || !value.kind.is_held()) value = as_variable(value, place);
  value = match(value, local.type, place, s.value->span);
  const bool same = value.kind == variable.kind ||
                    (variable.kind.may_be_number() &&
                     value.kind == HostKind::scalar(variable.kind.dtype));
  if (!same) {
    const LetStmt* declared = local.declared;
    if (declared && variable.kind.is(Form::number) &&
        value.kind == HostKind::scalar(value.kind.dtype) &&
        all_.guesses_.variables.emplace(declared, value.kind.dtype).second)
      throw WrongGuess{};
    give_up(s.span, "the variable's type changes");
  }
  take(value, variable.place);
  top_ = before;
}

// ---- what the walk does ----------------------------------------------------

void FunctionCompiler::Body::walk_statement(const Stmt& statement,
                                            bool prints) {
  all_.prints_ |= prints;
  Site site_of;
  site_of.where = statement.span;
  site_of.statement = &statement;
  site_of.locals = locals_;
  for (const Local& each : locals_)
    if (is_unknown(each.value.kind))
      give_up(each.where, "one of two kinds of values");
  unit_.sites[emit(jit::bytecode::walk_step)] = std::move(site_of);
}

/// `assert(...)` and `print(...)`; false if it is anything else.
bool FunctionCompiler::Body::assertion(const Stmt& statement,
                                       const Call& made) {
  const auto* callee = as<NameExpr>(*made.callee);
  if (!callee || local(callee->text)) return false;
  const Binding* binding = env_->find(callee->text).first;
  const auto* function =
      binding ? binding->value.get_if<FunctionPtr>() : nullptr;
  const auto* builtin =
      function ? std::get_if<const Builtin*>(&(*function)->what) : nullptr;
  if (!builtin) return false;
  const bool prints = (*builtin)->name == "print";
  if (!prints && (*builtin)->name != "assert") return false;
  for (const ArgumentExpr& argument : made.arguments)
    if (assigns(*argument.value)) give_up(made.span, "it assigns in a call");
  all_.outer_value(env_, *callee);
  for (const Local& each : locals_)
    if (prints && each.value.kind.may_be_number() &&
        !only_shows(made, each.name))
      give_up(made.span, "a number that may have no type yet");
  if (prints) {
    walk_statement(statement, true);
    return true;
  }
  // The walk says what is wrong; what it says must not fail by itself.
  for (size_t i = 1; i < made.arguments.size(); ++i) {
    const auto* text = as<StringLiteral>(*made.arguments[i].value);
    const bool plain =
        text && std::ranges::all_of(text->pieces, [](const StringPiece& piece) {
          return !piece.value || piece.value->kind == ExprKind::NameExpr;
        });
    if (!plain) give_up(made.span, "an assertion that computes what it says");
  }
  if (made.arguments.empty() || made.arguments[0].name)
    give_up(made.span, "an argument by name");
  const uint32_t before = top_;
  Target holds;
  jump_if(expr(*made.arguments[0].value, reserve()), holds, made.span);
  top_ = before;
  walk_statement(statement, false);
  bind(holds);
  return true;
}

// ---- functions -------------------------------------------------------------

Value FunctionCompiler::outer_value(const Env& env, const NameExpr& name) {
  const Binding* binding = env->find(name.text).first;
  if (!binding || binding->poisoned)
    give_up(name.span, "this name has no value");
  const Value& value = binding->value;
  const bool noted = std::ranges::any_of(outer_, [&](const auto& each) {
    return each.name == name.text && each.environment.lock() == env;
  });
  if (noted) return value;
  FunctionCode::Outer outer{env, name.text};
  if (const auto* function = value.get_if<FunctionPtr>()) {
    outer.function = *function;
  } else if (const auto* type = value.get_if<TypeValue>();
             type && type->type.shape.empty()) {
    outer.type = type->type.dtype;
  } else if (const auto kind = host_kind(value)) {
    outer.number = {*kind, *host_bits(value, *kind)};
  } else if (const auto array = array_kind(value); array && array->is_held()) {
    outer.kind = *array;
    outer.held = held_of(value);
  } else if (array) {
    outer.kind = *array;
    outer.array = std::make_shared<FunctionArray>();
    if (!outer.array->look_at(walk_, value, *array, name.span))
      give_up(name.span, "the host cannot read `" + name.text + "`");
  } else {
    give_up(name.span,
            "it uses `" + name.text + "`, which is no number or text");
  }
  outer_.push_back(std::move(outer));
  return value;
}

void FunctionCompiler::Body::compile() {
  const Function& syntax = *unit_.compiled.syntax;
  for (size_t i = 0; i < syntax.params.size(); ++i) {
    const Param& param = syntax.params[i];
    const uint32_t place = reserve();
    if (param.pattern.kind == Pattern::Kind::tuple)
      give_up(param.span, "a pattern");
    if (param.pattern.kind == Pattern::Kind::wildcard) continue;
    if (unit_.compiled.params[i].is_held()) hold();
    locals_.push_back({param.pattern.name.text,
                       in(unit_.compiled.params[i], place),
                       param.pattern.span});
  }
  if (all_.guesses_.whole.contains(&syntax)) {
    unit_.compiled.result = HostKind::whole();
    reserve();  // which of two it is
  }
  block(*syntax.body, Use::result, reserve());
  end_unit();
}

void FunctionCompiler::Body::end_unit() {
  unit_.compiled.registers = most_ + 1;
  if (!unit_.holds) return;
  // What is held has its places before the first step.
  unit_.steps.insert(unit_.steps.begin(),
                     {text_step(TextStep::begin), 0, {}, most_ + 1});
  std::unordered_map<size_t, Site> sites;
  for (auto& [step, site_of] : unit_.sites)
    sites.emplace(step + 1, std::move(site_of));
  unit_.sites = std::move(sites);
}

std::pair<std::vector<FunctionCode::Local>, uint32_t>
FunctionCompiler::Body::compile(const LoopStart& start) {
  reserve();  // for what a function would give
  for (const Carry& each : start.variables) {
    const Binding& binding = each.environment->names.at(each.name);
    const auto kind = array_kind(each.value);
    const bool fits =
        kind && (kind->is(Form::scalar) || kind->is(Form::text) ||
                 (kind->is(Form::number) && kind->literal == Literal::no));
    if (!fits) give_up(unit_.where, "`" + each.name + "` is no number or text");
    if (kind->is_held()) hold();
    Operand variable = in(*kind, reserve());
    variable.changes = true;
    locals_.push_back({each.name, variable, binding.where, binding.type});
  }
  const std::vector<Local> variables = locals_;
  turns_ = reserve();
  emit(jit::bytecode::constant_step, turns_);
  if (start.range) {
    const DType dtype = start.range->dtype;
    if (dtype != DType::I32 && dtype != DType::I64)
      give_up(unit_.where, "a counter of this type");
    for_loop(static_cast<const ForStmt&>(*start.loop), &*start.range);
  } else {
    while_loop(static_cast<const WhileStmt&>(*start.loop));
  }
  emit(jit::bytecode::return_constant_step);
  unit_.compiled.result = HostKind::integer();
  end_unit();
  return {variables, turns_};
}

void FunctionCompiler::Body::compile(const MemberStart& start) {
  for (const MemberStart::Name& each : start.names) {
    if (each.kind.is_held()) hold();
    locals_.push_back({each.pattern->name.text, in(each.kind, reserve()),
                       each.pattern->span});
  }
  finish(*start.expr, Use::result, reserve());
  end_unit();
}

size_t FunctionCompiler::unit_of(const FunctionPtr& function,
                                 const std::vector<HostKind>& params,
                                 Span where) {
  for (size_t i = 0; i < units_.size(); ++i)
    if (units_[i]->compiled.function.lock() == function &&
        units_[i]->compiled.params == params)
      return i;
  const Function& syntax =
      *syntax_of(std::get<Closure>(function->what)).function;
  if (units_.size() == most_functions) give_up(where, "it is too large");
  if (!syntax.type_params.empty() || !syntax.body)
    give_up(syntax.params_span, "it has parameters of types");
  for (const Param& param : syntax.params)
    if (param.keyword_only || param.default_value)
      give_up(param.span, "a parameter with a default");
  for (const HostKind& kind : params)
    if (kind.is(Form::either) || kind.is(Form::whole) ||
        kind.literal == Literal::unknown)
      give_up(where, "one of two kinds of values");
  const size_t at = units_.size();
  Unit& unit = *units_.emplace_back(std::make_unique<Unit>());
  unit.compiled.function = function;
  unit.compiled.syntax = &syntax;
  unit.compiled.params = params;
  unit.where = syntax.params_span;
  Body(*this, unit, std::get<Closure>(function->what).environment).compile();
  unit.done = true;
  if (!unit.compiled.result) give_up(where, "it gives nothing");
  const auto guess = guesses_.results.find(&syntax);
  if (guess != guesses_.results.end() &&
      guess->second != *unit.compiled.result) {
    guess->second = *unit.compiled.result;
    throw WrongGuess{};
  }
  return at;
}

HostKind FunctionCompiler::result_of(size_t at) {
  const Unit& unit = *units_[at];
  if (unit.done) return *unit.compiled.result;
  for (const auto& each : units_) each->is_recursive |= !each->done;
  const auto wanted = annotated(unit.compiled.syntax->result.get());
  if (wanted && wanted->dtype != DType::Bool) return *wanted;
  // A boolean of the host, or a scalar; without a type what the branches before
  // gave: it will be seen.
  const HostKind guess =
      wanted ? HostKind::boolean()
             : unit.compiled.result.value_or(HostKind::integer());
  return guesses_.results.emplace(unit.compiled.syntax, guess).first->second;
}

std::shared_ptr<FunctionCode> FunctionCompiler::link() {
  auto code = std::make_shared<FunctionCode>();
  code->steps = {{jit::bytecode::call_step, 0, {2}}, {jit::bytecode::end_step}};
  for (const auto& unit : units_) {
    unit->compiled.start = code->steps.size();
    code->steps.insert(code->steps.end(), unit->steps.begin(),
                       unit->steps.end());
    for (auto& [step, site] : unit->sites)
      code->sites.emplace(unit->compiled.start + step, std::move(site));
    code->most_registers =
        std::max(code->most_registers, unit->compiled.registers);
    code->functions.push_back(unit->compiled);
    code->holds |= unit->holds;
  }
  for (const auto& [step, site] : code->sites)
    if (site.what == FunctionCode::Site::What::call)
      code->steps[step].in[0] = static_cast<uint32_t>(
          static_cast<int32_t>(code->functions[site.callee].start) -
          static_cast<int32_t>(step));
  code->outer = std::move(outer_);
  code->constants = std::move(constants_);
  return code;
}

std::shared_ptr<const FunctionCode> FunctionCompiler::compile(
    const FunctionPtr& function, const std::vector<HostKind>& params) {
  const Span where = syntax_of(std::get<Closure>(function->what)).name;
  unit_of(function, params, where);
  const HostKind& result = *units_[0]->compiled.result;
  if (result.is(Form::either) || result.literal == Literal::unknown)
    give_up(where, "its result is of one of two types");
  if (prints_ && begins_again_)
    give_up(*begins_again_, "an element may be at fault after a `print`");
  return link();
}

std::shared_ptr<const FunctionCode> FunctionCompiler::compile(
    const LoopStart& start) {
  Unit& unit = *units_.emplace_back(std::make_unique<Unit>());
  unit.loop = start.loop;
  unit.where = start.loop->span;
  auto [variables, turns] = Body(*this, unit, start.environment).compile(start);
  unit.done = true;
  if (prints_ && begins_again_)
    give_up(*begins_again_, "an element may be at fault after a `print`");
  for (const FunctionCode::Outer& each : outer_) {
    const Environment* holder = each.environment.lock()->find(each.name).second;
    for (const Carry& variable : start.variables)
      if (each.name == variable.name && holder == variable.environment.get())
        give_up(unit.where,
                "a function reads `" + each.name + "`, which the loop changes");
  }
  std::shared_ptr<FunctionCode> code = link();
  code->environment = start.environment;
  code->variables = std::move(variables);
  code->turns = turns;
  return code;
}

std::shared_ptr<const FunctionCode> FunctionCompiler::compile(
    const MemberStart& start) {
  Unit& unit = *units_.emplace_back(std::make_unique<Unit>());
  unit.where = start.expr->span;
  for (const MemberStart::Name& each : start.names)
    unit.compiled.params.push_back(each.kind);
  Body(*this, unit, start.environment).compile(start);
  unit.done = true;
  const auto& result = unit.compiled.result;
  if (!result || is_unknown(*result) || result->may_be_number() || prints_)
    give_up(unit.where, "it gives one of two types, or prints");
  std::shared_ptr<FunctionCode> code = link();
  code->environment = start.environment;
  return code;
}

namespace {

/// `compile`s until no guess is wrong.
template <class Compile>
std::shared_ptr<const FunctionCode> compile_code(Walker& walker, Span where,
                                                 NotCode& why,
                                                 Compile&& compile) {
  FunctionCompiler::Guesses guesses;
  constexpr int most_tries = 16;
  for (int i = 0; i < most_tries; ++i) {
    try {
      FunctionCompiler compiler(walker, guesses);
      return compile(compiler);
    } catch (const FunctionCompiler::WrongGuess&) {
      continue;
    } catch (const NotCode& reason) {
      why = reason;
      return nullptr;
    } catch (const Failure& failure) {  // a constant that is no good
      why = {failure.diagnostic.where, failure.diagnostic.message};
      return nullptr;
    }
  }
  why = {where, "its result is of one of two types"};
  return nullptr;
}

}  // namespace

std::shared_ptr<const FunctionCode> compile_function(
    Walker& walker, const FunctionPtr& function,
    const std::vector<HostKind>& params, NotCode& why) {
  const Span where = syntax_of(std::get<Closure>(function->what)).name;
  return compile_code(walker, where, why, [&](FunctionCompiler& compiler) {
    return compiler.compile(function, params);
  });
}

std::shared_ptr<const FunctionCode> compile_member(Walker& walker,
                                                   const MemberStart& start) {
  NotCode why;
  return compile_code(
      walker, start.expr->span, why,
      [&](FunctionCompiler& compiler) { return compiler.compile(start); });
}

std::shared_ptr<const FunctionCode> compile_loop(Walker& walker,
                                                 const LoopStart& start,
                                                 NotCode& why) {
  return compile_code(
      walker, start.loop->span, why,
      [&](FunctionCompiler& compiler) { return compiler.compile(start); });
}

}  // namespace unisono::lang
