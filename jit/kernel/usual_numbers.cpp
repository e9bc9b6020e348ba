#include "jit/kernel/usual_numbers.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>

namespace unisono::jit {
namespace {

using Known = std::optional<NumberRange>;

/// Exponents that no step of a quotient or root may leave.
constexpr int safe = 100;

bool lies_in(const NumberRange& x, int low, int high) {
  return x.low >= low && x.high <= high;
}

/// What the operations that read a value would have of it.
struct Wanted {
  bool size = false, positive = false;
  std::optional<int> high;
};

class Finder {
 public:
  Finder(const Nest& nest, const std::vector<bool>& fixed)
      : nest_(nest),
        fixed_(fixed),
        wanted_(nest.exprs.size()),
        known_(nest.exprs.size()) {
    out_.quick.resize(nest.exprs.size());
    out_.checks.resize(nest.exprs.size());
  }

  UsualNumbers find() {
    for (size_t e = nest_.exprs.size(); e-- > 0;)
      if (is_single(nest_.exprs[e]) && !fixed_[e]) want(nest_.exprs[e], e);
    for (size_t e = 0; e < nest_.exprs.size(); ++e) {
      const Expr& expr = nest_.exprs[e];
      if (expr.dtype != DType::F32) continue;
      if (expr.kind == Expr::Kind::constant) known_[e] = range_of(expr);
      if (is_single(expr)) {
        if (!fixed_[e]) make_quick(expr, e);
        known_[e] = result(expr);
      }
      if (wanted_[e].size) look_at(e);
    }
    return out_;
  }

 private:
  static bool is_single(const Expr& expr) {
    return expr.kind == Expr::Kind::operation && expr.dtype == DType::F32 &&
           expr.operand_dtype == DType::F32;
  }

  static Known range_of(const Expr& constant) {
    const float x = std::bit_cast<float>(static_cast<uint32_t>(constant.bits));
    if (!std::isnormal(x)) return {};
    const int exponent = std::ilogb(x);
    return NumberRange{exponent, exponent + 1, x > 0};
  }
  /// Of an operand of f32.
  Known constant(ExprId id) const {
    const Expr& expr = nest_.exprs[id];
    if (expr.kind != Expr::Kind::constant) return {};
    return range_of(expr);
  }

  /// What `expr` would have of its operands, so that it is quick, or so that
  /// what is wanted of it follows.
  void want(const Expr& expr, size_t e) {
    const auto of = [&](size_t i) -> Wanted& {
      return wanted_[expr.operands[i]];
    };
    switch (expr.op) {
      case ir::Op::div:
        for (size_t i : {0, 1}) {
          of(i).size = true;
          of(i).positive = of(i).positive || wanted_[e].positive;
        }
        break;
      case ir::Op::sqrt:
      case ir::Op::log: of(0).size = of(0).positive = true; break;
      case ir::Op::exp: of(0).high = usual_exponent_bits; break;
      case ir::Op::neg: of(0).high = wanted_[e].high; break;
      case ir::Op::mul:
        for (size_t i : {0, 1})
          if (Known factor = constant(expr.operands[i]))
            if (wanted_[e].high)
              of(1 - i).high = *wanted_[e].high - factor->high;
        break;
      default: break;  // others have no quicker way
    }
  }

  /// Sees to it that something is known of a value.
  void look_at(size_t e) {
    const Wanted& wanted = wanted_[e];
    Known& known = known_[e];
    if (nest_.exprs[e].kind == Expr::Kind::constant) return;
    if (known && (known->positive || !wanted.positive)) return;
    UsualChecks& checks = out_.checks[e];
    checks.size = true;
    checks.positive = wanted.positive;
    if (wanted.high) {
      const int low = *wanted.high - usual_exponents;
      if (low >= -safe && *wanted.high <= safe) checks.low = low;
    }
    out_.saved -= checks.positive ? 1 : 2;
    known =
        NumberRange{checks.low, checks.low + usual_exponents, checks.positive};
  }

  void make_quick(const Expr& expr, size_t e) {
    const auto of = [&](size_t i) { return known_[expr.operands[i]]; };
    const auto take = [&](int saved) {
      out_.quick[e] = true;
      out_.saved += saved;
    };
    const auto is_positive = [](const Known& x) {
      return x && x->positive && lies_in(*x, -safe, safe);
    };
    switch (expr.op) {
      case ir::Op::div: {
        const Known a = of(0), b = of(1);
        // The sign of -0 would be lost.
        if (a && b && !a->minus_zero && !b->zero && lies_in(*a, -safe, safe) &&
            lies_in(*b, -safe, safe) && a->low - b->high > -safe &&
            a->high - b->low < safe)
          take(4);
        break;
      }
      case ir::Op::sqrt:
        if (is_positive(of(0))) take(5);
        break;
      case ir::Op::log:
        if (is_positive(of(0))) take(9);
        break;
      case ir::Op::exp: {
        bool& check = out_.checks[expr.operands[0]].exponent;
        const Known x = of(0);
        if (!(x && x->high <= usual_exponent_bits) && !check) {
          check = true;
          out_.saved -= 1;
        }
        take(6);
        break;
      }
      default: break;  // the rows of the table that have no quicker way
    }
  }

  /// What follows for an operation from what is known of its operands.
  Known result(const Expr& expr) const {
    const auto of = [&](size_t i) { return known_[expr.operands[i]]; };
    const Known x = of(0), y = expr.operands.size() > 1 ? of(1) : Known{};
    if (!x) return {};
    const bool zero = x->zero || (y && y->zero);
    const bool positive = x->positive && y && y->positive;
    switch (expr.op) {
      case ir::Op::neg: return NumberRange{x->low, x->high, false, zero, zero};
      case ir::Op::abs: return NumberRange{x->low, x->high, !zero, zero};
      case ir::Op::sqrt:
        if (x->positive)
          return NumberRange{(x->low >> 1) - 1, (x->high >> 1) + 1, true};
        break;
      case ir::Op::log:
        // |log| of the floats beside 1 is 2^-24 and a little more, and of 1 it
        // is +0.
        if (x->positive && lies_in(*x, -safe, safe))
          return NumberRange{-25, 7, false, true};
        break;
      case ir::Op::exp:
        if (x->high <= usual_exponent_bits) return NumberRange{-94, 94, true};
        break;
      case ir::Op::mul:
        if (y)
          return inside(
              {x->low + y->low, x->high + y->high, positive, zero, zero});
        break;
      case ir::Op::div:
        if (y && !y->zero)
          return inside({x->low - y->high - 1, x->high - y->low + 1, positive,
                         zero, zero});
        break;
      case ir::Op::add:
      case ir::Op::sub: {
        if (!y) break;
        const int high = std::max(x->high, y->high) + 1;
        if (positive && expr.op == ir::Op::add)
          return inside({std::max(x->low, y->low), high, true});
        // A sum is a multiple of what both are, or 0; -0 only of two zeros.
        return inside({std::min(x->low, y->low) - 23, high, false, true,
                       x->zero && y->zero});
      }
      default: break;  // nothing follows
    }
    return {};
  }

  /// Of what may leave the normal range nothing is known.
  static Known inside(NumberRange x) {
    if (!lies_in(x, -safe, safe)) return {};
    return x;
  }

  const Nest& nest_;
  const std::vector<bool>& fixed_;
  std::vector<Wanted> wanted_;
  std::vector<Known> known_;
  UsualNumbers out_;
};

}  // namespace

UsualNumbers usual_numbers(const Nest& nest, const std::vector<bool>& fixed) {
  return Finder(nest, fixed).find();
}

}  // namespace unisono::jit
