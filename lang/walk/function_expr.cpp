// Conversions, expressions and conditions of functions that become code.
#include <bit>
#include <cmath>
#include <cstring>

#include "jit/ir/kinds.h"
#include "jit/ir/table.h"
#include "jit/scalar/element.h"
#include "lang/context/literals.h"
#include "lang/ops/operators.h"
#include "lang/walk/function_code.h"

namespace unisono::lang {
namespace {

using Form = HostKind::Form;
using Literal = HostKind::Literal;
using jit::bytecode::Compare;
using jit::bytecode::IntOp;

std::optional<IntOp> int_op(BinaryOp op) {
  switch (op) {
    case BinaryOp::add: return IntOp::add;
    case BinaryOp::sub: return IntOp::sub;
    case BinaryOp::mul: return IntOp::mul;
    case BinaryOp::floor_div: return IntOp::floor_div;
    case BinaryOp::mod: return IntOp::mod;
    case BinaryOp::bit_and: return IntOp::bit_and;
    case BinaryOp::bit_or: return IntOp::bit_or;
    case BinaryOp::bit_xor: return IntOp::bit_xor;
    case BinaryOp::shift_left: return IntOp::shift_left;
    case BinaryOp::shift_right: return IntOp::shift_right;
    case BinaryOp::logical_or:
    case BinaryOp::logical_and:
    case BinaryOp::eq:
    case BinaryOp::ne:
    case BinaryOp::lt:
    case BinaryOp::le:
    case BinaryOp::gt:
    case BinaryOp::ge:
    case BinaryOp::in:
    case BinaryOp::not_in:
    case BinaryOp::div:
    case BinaryOp::matmul:
    case BinaryOp::pow: return std::nullopt;
  }
  __builtin_unreachable();
}

/// Whether an f32 has the value.
bool is_float(double value) { return static_cast<float>(value) == value; }

/// Comparisons of names and literals: nothing in it can fail, or be seen.
bool is_plain(const Expr& e) {
  if (const auto* two = as<Binary>(e))
    return (comparison(two->op) || class_of(two->op) == OpClass::logic) &&
           is_plain(*two->left) && is_plain(*two->right);
  return e.kind == ExprKind::NameExpr || e.kind == ExprKind::IntLiteral ||
         e.kind == ExprKind::FloatLiteral || e.kind == ExprKind::BoolLiteral;
}

Literal both(Literal a, Literal b) {
  if (a == Literal::no || b == Literal::no) return Literal::no;
  return a == b ? a : Literal::unknown;
}

}  // namespace

std::optional<Compare> comparison(BinaryOp op) {
  if (op == BinaryOp::eq) return Compare::eq;
  if (op == BinaryOp::ne) return Compare::ne;
  if (op == BinaryOp::lt) return Compare::lt;
  if (op == BinaryOp::le) return Compare::le;
  if (op == BinaryOp::gt) return Compare::gt;
  if (op == BinaryOp::ge) return Compare::ge;
  return std::nullopt;
}

// ---- conversions -----------------------------------------------------------

std::optional<HostKind> FunctionCompiler::annotated(const Expr* type) const {
  if (!type) return std::nullopt;
  const auto& plain = walker_.state().plain_types;
  const auto found = plain.find(type);
  if (type->kind != ExprKind::NameExpr || found == plain.end())
    give_up(type->span, "this type is none of a number");
  if (found->second.kind == PlainType::Kind::integer)
    return HostKind::integer();
  if (found->second.kind == PlainType::Kind::text) return HostKind::text();
  return HostKind::scalar(found->second.dtype);
}

/// As `to_dtype`.
HostOperand FunctionCompiler::Body::to_scalar(const Operand& value, DType dtype,
                                              uint32_t place, Span where,
                                              const Site* failure) {
  const HostKind kind = HostKind::scalar(dtype);
  if (value.kind.is(Form::scalar) && value.kind.dtype == dtype) {
    Operand same = value;
    same.kind = kind;
    return same;
  }
  const bool weak = value.kind.is(Form::integer) || value.kind.is(Form::number);
  const bool whole = is_whole(value.kind);
  if (!weak || !(is_floating(dtype) || (is_integer(dtype) && whole)))
    give_up(where, "this conversion is not known in code");
  const bool says =
      value.kind.is(Form::integer) || value.kind.literal == Literal::yes;
  if (value.known) {
    Walk& walk = all_.walk_;
    std::vector<uint8_t> bytes;
    if (whole && says)
      bytes = *walk.constant_int(static_cast<int64_t>(value.bits), dtype, false,
                                 where)
                   ->constant;
    else if (whole)
      bytes = jit::element_bytes(dtype, static_cast<int64_t>(value.bits));
    else if (says)
      bytes =
          *walk.constant(std::bit_cast<double>(value.bits), dtype, false, where)
               ->constant;
    else
      bytes = jit::element_bytes(dtype, std::bit_cast<double>(value.bits));
    uint64_t bits = 0;
    std::memcpy(&bits, bytes.data(), bytes.size());
    return known(kind, bits);
  }
  const DType from = whole ? DType::I64 : DType::F64;
  // Only what the program says has to fit (`adopt_dtype`).
  const bool has_to_fit = says || value.kind.literal != Literal::no;
  const bool may_fail =
      has_to_fit && (!whole || is_integer(dtype) || dtype == DType::F16);
  if (may_fail && dtype != from) {
    const size_t step =
        emit(jit::bytecode::require_fit_step(dtype, !whole), 0, value.place);
    // Of a number that may be a literal or none only the walk knows.
    if (failure && value.kind.literal != Literal::unknown)
      unit_.sites[step] = *failure;
    else
      all_.begins_again_ = where;
  }
  if (dtype == from) {
    Operand same = value;
    same.kind = kind;
    return same;
  }
  emit(jit::cast_step(from, dtype), place, value.place);
  return in(kind, place);
}

/// As `to_dtype` to a weak type.
HostOperand FunctionCompiler::Body::to_number(const Operand& value, DType dtype,
                                              uint32_t place) {
  const Literal literal =
      value.kind.is(Form::integer) ? Literal::yes : value.kind.literal;
  const HostKind kind = HostKind::number(dtype, literal);
  if (is_whole(value.kind) == is_integer(dtype)) {
    Operand same = value;
    same.kind = kind;
    return same;
  }
  if (value.known)
    return known(kind, std::bit_cast<uint64_t>(static_cast<double>(
                           static_cast<int64_t>(value.bits))));
  emit(jit::cast_step(DType::I64, DType::F64), place, value.place);
  return in(kind, place);
}

HostOperand FunctionCompiler::Body::match(const Operand& value,
                                          const Expr* type, uint32_t place,
                                          Span where) {
  const auto wanted = all_.annotated(type);
  if (!wanted) return value;
  if (*wanted == value.kind) return value;
  if (wanted->is(Form::integer)) give_up(where, "this is no `int`");
  if (wanted->is_held() || value.kind.is_held())
    give_up(where, "this conversion is not known in code");
  if (wanted->dtype == DType::Bool && value.kind.is(Form::boolean))
    return value;
  return to_scalar(value, wanted->dtype, place, where);
}

// ---- names and constants ---------------------------------------------------

HostOperand FunctionCompiler::Body::constant(const Expr& e) {
  const Value value = all_.walker_.walk_expr(e, env_);
  const auto kind = host_kind(value);
  if (!kind) give_up(e.span, "this constant is not known in code");
  return known(*kind, *host_bits(value, *kind));
}

HostOperand FunctionCompiler::Body::name(const NameExpr& e) {
  if (const Operand* found = local(e.text)) return *found;
  const Value value = all_.outer_value(env_, e);
  const auto kind = array_kind(value);
  if (!kind) give_up(e.span, "this is no number");
  if (kind->is_held()) return held_constant(*kind, held_of(value));
  if (!kind->is(Form::array)) return known(*kind, *host_bits(value, *kind));
  const auto outer =
      std::ranges::find_if(all_.outer_, [&](const FunctionCode::Outer& each) {
        return each.name == e.text && each.environment.lock() == env_;
      });
  const jit::bytecode::ElementView* array = outer->array.get();
  return known(*kind, std::bit_cast<uint64_t>(array));
}

// ---- expressions -----------------------------------------------------------

void FunctionCompiler::Body::site(size_t step, Site::What what, const Expr* e,
                                  Span where, const Operand& a,
                                  const Operand& b, HostKind result) {
  Site& out = unit_.sites[step];
  out.what = what;
  out.expr = e;
  out.where = where;
  out.a = a;
  out.b = b;
  out.result = result;
}

HostOperand FunctionCompiler::Body::expr(const Expr& e, uint32_t place) {
  const Operand out = value(e, place);
  if (out.kind.is_held()) give_up(e.span, "this is no number");
  return out;
}

HostOperand FunctionCompiler::Body::value(const Expr& e, uint32_t place) {
  const Operand out = any(e, place);
  if (out.kind.is(Form::array))
    give_up(e.span, "an array of which no element is read");
  return out;
}

HostOperand FunctionCompiler::Body::any(const Expr& e, uint32_t place) {
  switch (e.kind) {
    case ExprKind::IntLiteral:
    case ExprKind::FloatLiteral:
    case ExprKind::BoolLiteral: return constant(e);
    case ExprKind::NameExpr: return name(static_cast<const NameExpr&>(e));
    case ExprKind::Unary: return unary(static_cast<const Unary&>(e), place);
    case ExprKind::Binary: return binary(static_cast<const Binary&>(e), place);
    case ExprKind::If: {
      const auto& branches_of = static_cast<const If&>(e);
      return branches(branches_of, Use::value, place);
    }
    case ExprKind::Block: return block(e, Use::value, place);
    case ExprKind::Call: {
      const auto& made = static_cast<const Call&>(e);
      if (const auto array = new_array(made, place)) return *array;
      std::vector<const Expr*> arguments;
      for (const ArgumentExpr& argument : made.arguments) {
        if (argument.name) give_up(argument.name->span, "an argument by name");
        arguments.push_back(argument.value.get());
      }
      const auto* method = as<Field>(*made.callee);
      if (!method || method->index)
        return call(e, *made.callee, arguments, place);
      // What has fields is no number, and no text.
      NameExpr name;
      name.text = method->name.text;
      name.span = method->name.span;
      arguments.insert(arguments.begin(), method->object.get());
      return call(e, name, arguments, place);
    }
    case ExprKind::Pipe: {
      const auto& pipe = static_cast<const Pipe&>(e);
      return call(e, *pipe.function, {pipe.value.get()}, place);
    }
    case ExprKind::Index: return element(static_cast<const Index&>(e), place);
    case ExprKind::StringLiteral:
      return text_literal(static_cast<const StringLiteral&>(e), place);
    case ExprKind::Tuple:
    case ExprKind::Array:
      if (const auto items = items_constant(e)) return *items;
      if (const auto* items = as<Tuple>(e)) return tuple(*items, place);
      break;
    case ExprKind::Comprehension:
      return texts(static_cast<const Comprehension&>(e), place);
    case ExprKind::NoneLiteral:
    case ExprKind::Record:
    case ExprKind::Field:
    case ExprKind::Cast:
    case ExprKind::With:
    case ExprKind::FnExpr:
    case ExprKind::Wildcard:
    case ExprKind::UnknownSize:
    case ExprKind::Rest:
    case ExprKind::RecordType:
    case ExprKind::FunctionType:
    case ExprKind::Slice: break;
  }
  give_up(e.span, "this is no operation on numbers");
}

HostOperand FunctionCompiler::Body::unary(const Unary& e, uint32_t place) {
  if (as<IntLiteral>(*e.operand)) return constant(e);
  const uint32_t before = top_;
  const Operand x = expr(*e.operand, reserve());
  if (x.kind.may_be_number() || x.kind.is(Form::whole))
    give_up(e.span, "a number that may have no type yet");
  top_ = before;
  if (x.kind.dtype == DType::Bool && e.op != UnaryOp::negate) {
    if (x.known) return known(x.kind, x.bits == 0);
    emit(jit::bytecode::not_step, place, x.place);
    return in(x.kind, place);
  }
  const uint32_t at = placed(x, place);
  if (x.kind.is(Form::integer)) {
    if (e.op == UnaryOp::negate)
      site(emit(jit::bytecode::int_negate_step, place, at), Site::What::unary,
           &e, e.span, x, {}, x.kind);
    else
      emit(jit::bytecode::int_step(IntOp::bit_xor, true), place, at, 0, 0, -1);
    return in(x.kind, place);
  }
  const ir::Op op = operation_of(e.op);
  const jit::StepFunction step = ir::admits(op, x.kind.dtype)
                                     ? jit::element_step(op, x.kind.dtype)
                                     : nullptr;
  if (!step || e.op == UnaryOp::logical_not)
    give_up(e.span, "this operator is not known in code");
  emit(step, place, at);
  return in(x.kind, place);
}

HostOperand FunctionCompiler::Body::ints(BinaryOp op, const Operand& a,
                                         const Operand& b, uint32_t place,
                                         const Expr* e, Span where) {
  const uint32_t before = top_;
  Operand left = a, right = b;
  // A constant on the left takes a register, and so does a divisor: another
  // one.
  left = in(a.kind, placed(a, a.known ? reserve() : 0));
  const uint32_t divisor = op == BinaryOp::div && right.known
                               ? placed(right, reserve())
                               : right.place;
  top_ = before;
  const uint32_t at = right.known ? 0 : right.place;
  const auto number = static_cast<int64_t>(right.bits);
  if (const auto compare = comparison(op)) {
    emit(jit::bytecode::int_compare_step(*compare, right.known), place,
         left.place, at, 0, number);
    return in(HostKind::boolean(), place);
  }
  if (op == BinaryOp::div) {
    const HostKind kind = HostKind::number(DType::F64, Literal::yes);
    site(emit(jit::bytecode::int_divide_step, place, left.place, divisor),
         Site::What::binary, e, where, a, b, kind);
    return in(kind, place);
  }
  const auto operation = int_op(op);
  if (!operation || !e) give_up(where, "this operator is not known in code");
  site(emit(jit::bytecode::int_step(*operation, right.known), place, left.place,
            at, 0, number),
       Site::What::binary, e, where, a, b, HostKind::integer());
  return in(HostKind::integer(), place);
}

/// As `array_binary`, of numbers and scalars.
HostOperand FunctionCompiler::Body::elements(ir::Op op, bool comparison,
                                             const Operand& a, const Operand& b,
                                             uint32_t place, Span where,
                                             const Expr* e) {
  const uint32_t before = top_;
  const uint32_t at[2] = {reserve(), reserve()};
  const Operand* given[2] = {&a, &b};
  Operand x[2];
  HostKind result;
  const bool scalars = a.kind.is(Form::scalar) || b.kind.is(Form::scalar);
  bool either = false;
  for (int i = 0; i < 2; ++i) {
    if (!given[i]->kind.may_be_number()) continue;
    const Operand& other = *given[1 - i];
    // Beside a scalar it is one; numbers are compared as scalars are.
    const bool is_one = other.kind == HostKind::scalar(given[i]->kind.dtype);
    const bool whole = is_whole(other.kind);
    const double number =
        whole ? static_cast<double>(static_cast<int64_t>(other.bits))
              : std::bit_cast<double>(other.bits);
    const bool is_exact =
        other.known &&
        ((whole && is_integer(given[i]->kind.dtype)) || is_float(number));
    either = comparison && is_exact && !other.kind.is(Form::scalar);
    if (!is_one && !either)
      give_up(where, "a number that may have no type yet");
  }
  if (!scalars) {
    const bool whole = is_whole(a.kind) && is_whole(b.kind) && !floats_only(op);
    const DType dtype = whole ? DType::I64 : DType::F64;
    for (int i = 0; i < 2; ++i) x[i] = to_number(*given[i], dtype, at[i]);
    result =
        HostKind::number(dtype, both(x[0].kind.literal, x[1].kind.literal));
  } else {
    const DType dtype = (a.kind.is(Form::scalar) ? a : b).kind.dtype;
    if (floats_only(op) && !is_floating(dtype))
      give_up(where, "this promotion is not known in code");
    Site failure;
    failure.what = Site::What::binary;
    failure.where = where;
    failure.only_fails = true;
    failure.expr = e;
    failure.a = a;
    failure.b = b;
    for (int i = 0; i < 2; ++i)
      x[i] = to_scalar(*given[i], dtype, at[i], where, e ? &failure : nullptr);
    result = HostKind::scalar(dtype);
  }
  const DType dtype = result.dtype;
  const ir::Check check = ir::row(op).check;
  const bool certain =
      check == ir::Check::none || is_floating(dtype) ||
      (check == ir::Check::divisor && x[1].known && x[1].bits != 0);
  if (check == ir::Check::exponent || check == ir::Check::index ||
      !ir::admits(op, dtype))
    give_up(where, "this operator is not known in code");
  if (!certain) all_.begins_again_ = where;
  const uint32_t left = placed(x[0], at[0]), right = placed(x[1], at[1]);
  emit(jit::element_step(op, dtype), place, left, right);
  top_ = before;
  if (either) return in({Form::either, DType::Bool}, place);
  return in(comparison ? HostKind::scalar(DType::Bool) : result, place);
}

HostOperand FunctionCompiler::Body::operation(BinaryOp op, const Operand& a,
                                              const Operand& b, uint32_t place,
                                              const Expr* e, Span where) {
  if (a.kind.is_held() || b.kind.is_held())
    return text_operation(op, a, b, place, e, where);
  if (a.kind.is(Form::either) || b.kind.is(Form::either))
    give_up(where, "one of two kinds of booleans");
  if (a.kind.is(Form::whole) || b.kind.is(Form::whole)) {
    // Beside a weak number both are one.
    const HostKind number = HostKind::number(DType::I64, Literal::no);
    if (a.kind != number && b.kind != number)
      give_up(where, "one of two kinds of values");
    return operation(op, to_number(a, DType::I64, place),
                     to_number(b, DType::I64, place), place, e, where);
  }
  if (a.kind.is(Form::boolean) && b.kind.is(Form::boolean)) {
    const uint32_t before = top_;
    const uint32_t left = placed(a, a.known ? reserve() : 0);
    const uint32_t right = placed(b, b.known ? reserve() : 0);
    top_ = before;
    const bool equality = op == BinaryOp::eq || op == BinaryOp::ne;
    if (!equality && class_of(op) != OpClass::bits &&
        class_of(op) != OpClass::logic)
      give_up(where, "this operator is not known in code");
    if (op == BinaryOp::shift_left || op == BinaryOp::shift_right)
      give_up(where, "this operator is not known in code");
    if (equality || op == BinaryOp::bit_xor)
      emit(jit::bytecode::differ_step, place, left, right);
    else
      emit(jit::element_step(*operation_of(op), DType::Bool), place, left,
           right);
    if (op == BinaryOp::eq) emit(jit::bytecode::not_step, place, place);
    return in(HostKind::boolean(), place);
  }
  const auto operation = operation_of(op);
  if (!operation || op == BinaryOp::matmul || op == BinaryOp::pow)
    give_up(where, "this operator is not known in code");
  if (a.kind.is(Form::integer) && b.kind.is(Form::integer))
    return ints(op, a, b, place, e, where);
  if (a.kind.is(Form::boolean) || b.kind.is(Form::boolean) ||
      ((a.kind.dtype == DType::Bool || b.kind.dtype == DType::Bool) &&
       a.kind != b.kind))
    give_up(where, "a boolean beside a number");
  return elements(*operation, class_of(op) == OpClass::comparison, a, b, place,
                  where, e);
}

HostOperand FunctionCompiler::Body::binary(const Binary& e, uint32_t place) {
  if (class_of(e.op) == OpClass::logic) return logic(e, place);
  const uint32_t before = top_;
  Operand a = value(*e.left, reserve());
  if (a.changes && assigns(*e.right)) a = move(a, top_ - 1);
  const Operand b = value(*e.right, reserve());
  const Operand out = operation(e.op, a, b, place, &e, e.span);
  top_ = before;
  return out;
}

/// `and`, `or` as a value. The left side may decide, if the right one is not
/// plain.
HostOperand FunctionCompiler::Body::logic(const Binary& e, uint32_t place) {
  const uint32_t before = top_;
  const Operand left = expr(*e.left, reserve());
  const bool scalar = left.kind.is(Form::scalar);
  const auto check_scalar = [&](const Operand& right) {
    if (right.kind.dtype != DType::Bool || right.kind.is(Form::either))
      give_up(e.span, "one of two kinds of booleans");
  };
  if (scalar && (left.kind.dtype != DType::Bool || is_plain(*e.right))) {
    const Operand a = assigns(*e.right) ? kept(left, top_ - 1) : left;
    const Operand b = expr(*e.right, reserve());
    check_scalar(b);
    const uint32_t x = placed(a, before), y = placed(b, top_ - 1);
    emit(jit::element_step(*operation_of(e.op), DType::Bool), place, x, y);
    top_ = before;
    return in(HostKind::scalar(DType::Bool), place);
  }
  if (!scalar && !left.kind.is(Form::boolean))
    give_up(e.left->span, "this is no boolean of the host");
  // Into a register of its own: the right side may still read `place`.
  const uint32_t out = before;
  move(left, out);
  Target end;
  const Operand decides = in(HostKind::boolean(), out);
  if (e.op == BinaryOp::logical_or)
    jump_if(decides, end, e.left->span);
  else
    jump_unless(decides, end, e.left->span);
  const Operand right = expr(*e.right, reserve());
  std::optional<HostKind> kind = HostKind::scalar(DType::Bool);
  if (scalar)
    check_scalar(right);
  else if (kind = common_kind(HostKind::boolean(), right.kind); !kind)
    give_up(e.right->span, "this is no boolean");
  move(right, out);
  bind(end);
  top_ = before;
  return move(in(*kind, out), place);
}

// ---- calls -----------------------------------------------------------------

HostOperand FunctionCompiler::Body::call(
    const Expr& e, const Expr& callee,
    const std::vector<const Expr*>& arguments, uint32_t place) {
  const auto* name = as<NameExpr>(callee);
  if (!name) give_up(callee.span, "this function has no name");
  if (local(name->text)) give_up(callee.span, "this is no function");
  const Value value = all_.outer_value(env_, *name);
  if (const auto* type = value.get_if<TypeValue>()) {
    if (arguments.size() != 1 || !type->type.shape.empty())
      give_up(e.span, "this conversion is not known in code");
    const uint32_t before = top_;
    const Operand x = expr(*arguments[0], reserve());
    if (x.kind.is(Form::whole)) give_up(e.span, "one of two kinds of values");
    const DType to = type->type.dtype;
    Operand out;
    if (x.kind.is(Form::scalar) && !x.known) {
      if (x.kind.dtype == to) {
        out = to_scalar(x, to, place, e.span);
      } else {
        if (x.kind.may_be_number() && !is_floating(to))
          give_up(e.span, "a number that may have no type yet");
        emit(jit::cast_step(x.kind.dtype, to), place, x.place);
        out = in(HostKind::scalar(to), place);
      }
    } else {
      Site failure;
      failure.what = Site::What::convert;
      failure.where = e.span;
      failure.only_fails = true;
      failure.a = x;
      failure.result = HostKind::scalar(to);
      failure.arguments = {arguments[0]->span};
      out = to_scalar(x, to, place, e.span, &failure);
    }
    top_ = before;
    return out;
  }
  const auto* function = value.get_if<FunctionPtr>();
  if (!function) give_up(callee.span, "this is no function");
  if (const auto* builtin = std::get_if<const Builtin*>(&(*function)->what))
    return call_builtin(**builtin, arguments, place, e);
  return call_function(*function, arguments, place, e.span);
}

HostOperand FunctionCompiler::Body::call_function(
    const FunctionPtr& function, const std::vector<const Expr*>& arguments,
    uint32_t place, Span where) {
  const auto* closure = std::get_if<Closure>(&function->what);
  if (!closure || closure->host >= 0)
    give_up(where, "it calls `" + function->name + "`, which is not code");
  const Function& syntax = *syntax_of(*closure).function;
  if (syntax.params.size() != arguments.size())
    give_up(where, "it leaves arguments out");
  const uint32_t window = top_;
  std::vector<HostKind> kinds;
  Site site_of;
  site_of.what = Site::What::call;
  site_of.where = where;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const uint32_t at = reserve();
    const Expr& argument = *arguments[i];
    const Operand value = match(any(argument, at), syntax.params[i].type.get(),
                                at, argument.span);
    move(value, at);
    kinds.push_back(value.kind);
    site_of.arguments.push_back(argument.span);
  }
  if (arguments.empty()) reserve();  // the result
  site_of.callee = all_.unit_of(function, kinds, where);
  site_of.result = all_.result_of(site_of.callee);
  if (all_.units_[site_of.callee]->is_recursive)
    recursive_ = unit_.is_recursive = true;
  const size_t step = emit(jit::bytecode::call_step, window);
  const HostKind kind = site_of.result;
  if (kind.is_held()) hold();
  unit_.sites[step] = std::move(site_of);
  top_ = window;
  return take(in(kind, window), place);
}

HostOperand FunctionCompiler::Body::call_builtin(
    const Builtin& builtin, const std::vector<const Expr*>& arguments,
    uint32_t place, const Expr& whole) {
  const auto not_code = [&] {
    give_up(whole.span, "it calls `" + std::string(builtin.name) + "`");
  };
  if (builtin.name == "len" && arguments.size() == 1) {
    const uint32_t base = reserve();
    const Operand array = any(*arguments[0], base);
    top_ = base;
    if (!array.kind.has_elements()) {
      if (array.kind.is_held()) return length(array, place);
      give_up(whole.span, "this is no array");
    }
    emit(jit::bytecode::size_step, place, placed(array, place));
    return in(HostKind::integer(), place);
  }
  if (const auto out = text_function(builtin, arguments, place, whole))
    return *out;
  if (const auto out = reduction(builtin, arguments, place, whole)) return *out;
  const auto op = ir::op_from_name(builtin.name);
  const bool one = builtin.signature == "x" ||
                   (builtin.name == "round" && arguments.size() == 1);
  const bool two = builtin.signature == "x, y";
  const bool is_map =
      op && ir::kind(*op) == ir::Kind::map && *op != ir::Op::cast;
  if (!is_map || !(one || two) || arguments.size() != (one ? 1u : 2u))
    not_code();
  const uint32_t before = top_;
  Operand x = expr(*arguments[0], reserve());
  if (two) {
    if (x.changes && assigns(*arguments[1])) x = move(x, top_ - 1);
    const Operand y = expr(*arguments[1], reserve());
    const bool extreme = *op == ir::Op::maximum || *op == ir::Op::minimum;
    if (x.kind.dtype == DType::Bool || y.kind.dtype == DType::Bool ||
        x.kind.is(Form::whole) || y.kind.is(Form::whole) ||
        binary_operator_of(*op))
      not_code();
    Operand out;
    if (x.kind.is(Form::integer) && y.kind.is(Form::integer)) {
      if (!extreme) not_code();
      const uint32_t left = placed(x, before);
      emit(jit::bytecode::int_step(
               *op == ir::Op::maximum ? IntOp::maximum : IntOp::minimum,
               y.known),
           place, left, y.known ? 0 : y.place, 0, static_cast<int64_t>(y.bits));
      out = in(HostKind::integer(), place);
    } else {
      out = elements(*op, false, x, y, place, whole.span);
      const ir::Type type{out.kind.dtype, {}};
      const auto result =
          ir::infer_type(*op, std::vector{type, type}, ir::NoAttrs{});
      if (!result || !(*result == type)) not_code();
    }
    top_ = before;
    return out;
  }
  if (x.kind.is(Form::either) || x.kind.is(Form::whole) ||
      x.kind.dtype == DType::Bool || x.kind.may_be_number() ||
      unary_operator_of(*op))
    not_code();
  const bool floats = floats_only(*op);
  if (x.kind.is(Form::integer) && *op == ir::Op::abs) {
    const uint32_t at = placed(x, before);
    top_ = before;
    site(emit(jit::bytecode::int_abs_step, place, at), Site::What::abs, &whole,
         whole.span, x, {}, x.kind);
    return in(x.kind, place);
  }
  if ((x.kind.is(Form::integer) && !floats) ||
      (x.kind.is(Form::scalar) && floats && !is_floating(x.kind.dtype)))
    give_up(whole.span, "this promotion is not known in code");
  if (floats && !x.kind.is(Form::scalar)) x = to_number(x, DType::F64, before);
  const DType dtype = x.kind.dtype;
  const jit::StepFunction step =
      ir::admits(*op, dtype) ? jit::element_step(*op, dtype) : nullptr;
  const ir::Type type{dtype, {}};
  const auto result = ir::infer_type(*op, std::vector{type}, ir::NoAttrs{});
  if (!step || !result || ir::row(*op).check != ir::Check::none) not_code();
  emit(step, place, placed(x, before));
  top_ = before;
  if (is_bool(result->dtype)) return in(HostKind::scalar(DType::Bool), place);
  if (result->dtype != dtype) not_code();
  return in(x.kind, place);
}

// ---- conditions ------------------------------------------------------------

void FunctionCompiler::Body::jump_unless(const Operand& condition, Target& exit,
                                         Span where) {
  if (condition.kind.dtype != DType::Bool)
    give_up(where, "this is no condition");
  if (condition.known) {
    if (condition.bits == 0) jump(exit);
    return;
  }
  exit.jumps.push_back(
      emit(jit::bytecode::jump_unless_step, 0, 0, condition.place));
}

void FunctionCompiler::Body::jump_if(const Operand& condition, Target& there,
                                     Span where) {
  if (condition.kind.dtype != DType::Bool)
    give_up(where, "this is no condition");
  if (condition.known) {
    if (condition.bits != 0) jump(there);
    return;
  }
  there.jumps.push_back(
      emit(jit::bytecode::jump_if_step, 0, 0, condition.place));
}

/// Whether it is certainly an int of the host, before it is compiled.
bool FunctionCompiler::Body::is_int(const Expr& e) const {
  if (const auto* literal = as<IntLiteral>(e)) return !literal->suffix;
  if (const auto* name = as<NameExpr>(e)) {
    const Operand* found = local(name->text);
    return found && found->kind.is(Form::integer);
  }
  const auto* two = as<Binary>(e);
  return two && int_op(two->op) && is_int(*two->left) && is_int(*two->right);
}

/// Whether it is certainly a boolean of the host, which may decide alone.
bool FunctionCompiler::Body::is_host_condition(const Expr& e) const {
  const auto* two = as<Binary>(e);
  if (!two) return false;
  if (class_of(two->op) == OpClass::logic)
    return is_host_condition(*two->left) && is_host_condition(*two->right);
  return comparison(two->op) && is_int(*two->left) && is_int(*two->right);
}

/// Goes to `exit` unless it holds.
void FunctionCompiler::Body::condition(const Expr& e, Target& exit) {
  const uint32_t before = top_;
  const auto* two = as<Binary>(e);
  const auto compare = two ? comparison(two->op) : std::nullopt;
  if (two && class_of(two->op) == OpClass::logic) {
    if (two->op == BinaryOp::logical_and && is_host_condition(*two->left)) {
      condition(*two->left, exit);
      condition(*two->right, exit);
      return;
    }
    const uint32_t at = reserve();
    const Operand left = expr(*two->left, at);
    const bool scalar = left.kind.is(Form::scalar) &&
                        left.kind.dtype == DType::Bool &&
                        !is_plain(*two->right);
    if (left.kind.is(Form::boolean) || scalar) {
      Target holds;
      const Operand decides =
          scalar ? in(HostKind::boolean(), placed(left, at)) : left;
      if (two->op == BinaryOp::logical_or)
        jump_if(decides, holds, two->left->span);
      else
        jump_unless(decides, exit, two->left->span);
      top_ = before;
      condition(*two->right, exit);
      bind(holds);
      return;
    }
    // Of the host it would decide alone: nobody can tell if nothing happens on
    // the right.
    const bool decides = left.kind.is(Form::either) && !is_plain(*two->right);
    if (decides || left.kind.dtype != DType::Bool)
      give_up(e.span, "one of two kinds of booleans");
    const Operand a = assigns(*two->right) ? kept(left, at) : left;
    const Operand b = expr(*two->right, reserve());
    if (b.kind.dtype != DType::Bool) give_up(e.span, "this is no condition");
    const uint32_t x = placed(a, at), y = placed(b, top_ - 1);
    emit(jit::element_step(*operation_of(two->op), DType::Bool), at, x, y);
    jump_unless(in(HostKind::boolean(), at), exit, e.span);
    top_ = before;
    return;
  }
  if (compare) {
    Operand a = value(*two->left, reserve());
    if (a.changes && assigns(*two->right)) a = move(a, top_ - 1);
    const uint32_t free = reserve();
    const Operand b = value(*two->right, free);
    if (a.kind.is(Form::integer) && b.kind.is(Form::integer)) {
      const uint32_t left = placed(a, before);
      exit.jumps.push_back(
          emit(jit::bytecode::jump_unless_compare_step(*compare, b.known), 0, 0,
               left, b.known ? 0 : b.place, static_cast<int64_t>(b.bits)));
      top_ = before;
      return;
    }
    jump_unless(operation(two->op, a, b, before, two, e.span), exit, e.span);
    top_ = before;
    return;
  }
  jump_unless(expr(e, reserve()), exit, e.span);
  top_ = before;
}

}  // namespace unisono::lang
