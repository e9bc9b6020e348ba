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

class Finder {
 public:
  Finder(const Nest& nest, const std::vector<bool>& fixed)
      : nest_(nest), fixed_(fixed), known_(nest.exprs.size()) {
    out_.quick.resize(nest.exprs.size());
    out_.checks.resize(nest.exprs.size());
  }

  UsualNumbers find() {
    for (size_t e = 0; e < nest_.exprs.size(); ++e) {
      const Expr& expr = nest_.exprs[e];
      if (expr.dtype != DType::F32) continue;
      if (expr.kind == Expr::Kind::constant) known_[e] = range_of(expr);
      if (expr.kind != Expr::Kind::operation ||
          expr.operand_dtype != DType::F32)
        continue;
      if (!fixed_[e]) make_quick(expr, e);
      known_[e] = result(expr);
    }
    return out_;
  }

 private:
  static Known range_of(const Expr& constant) {
    const float x = std::bit_cast<float>(static_cast<uint32_t>(constant.bits));
    if (!std::isnormal(x)) return {};
    const int exponent = std::ilogb(x);
    return NumberRange{exponent, exponent + 1, x > 0};
  }

  /// What is known of a value once it has been looked at.
  const NumberRange& look_at(ExprId id, bool positive) {
    Known& known = known_[id];
    if (known && (known->positive || !positive)) return *known;
    UsualChecks& checks = out_.checks[id];
    out_.saved -= checks.size ? 0 : 2;
    checks.size = true;
    checks.positive = positive;
    if (!known) known = usual_range;
    known->low = std::max(known->low, usual_range.low);
    known->high = std::min(known->high, usual_range.high);
    known->positive = positive;
    return *known;
  }

  void make_quick(const Expr& expr, size_t e) {
    const auto take = [&](int saved) {
      out_.quick[e] = true;
      out_.saved += saved;
    };
    switch (expr.op) {
      case ir::Op::div: {
        const NumberRange a = look_at(expr.operands[0], false),
                          b = look_at(expr.operands[1], false);
        if (lies_in(a, -safe, safe) && lies_in(b, -safe, safe) &&
            a.low - b.high > -safe && a.high - b.low < safe)
          take(4);
        break;
      }
      case ir::Op::sqrt:
        if (lies_in(look_at(expr.operands[0], true), -safe, safe)) take(5);
        break;
      case ir::Op::log:
        if (lies_in(look_at(expr.operands[0], true), -safe, safe)) take(9);
        break;
      case ir::Op::exp: {
        const Known& x = known_[expr.operands[0]];
        bool& check = out_.checks[expr.operands[0]].exponent;
        if (!(x && x->high <= 6) && !check) {
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
    const auto both = [&] { return of(0) && of(1); };
    switch (expr.op) {
      case ir::Op::neg:
        if (Known x = of(0)) return NumberRange{x->low, x->high, false};
        break;
      case ir::Op::abs:
        if (Known x = of(0)) return NumberRange{x->low, x->high, true};
        break;
      case ir::Op::sqrt:
        if (Known x = of(0); x && x->positive)
          return NumberRange{(x->low >> 1) - 1, (x->high >> 1) + 1, true};
        break;
      case ir::Op::exp:
        if (Known x = of(0); x && x->high <= 6)
          return NumberRange{-94, 94, true};
        break;
      case ir::Op::mul:
        if (both())
          return inside({of(0)->low + of(1)->low, of(0)->high + of(1)->high,
                         of(0)->positive && of(1)->positive});
        break;
      case ir::Op::div:
        if (both())
          return inside({of(0)->low - of(1)->high - 1,
                         of(0)->high - of(1)->low + 1,
                         of(0)->positive && of(1)->positive});
        break;
      case ir::Op::add:
        if (both() && of(0)->positive && of(1)->positive)
          return inside({std::max(of(0)->low, of(1)->low),
                         std::max(of(0)->high, of(1)->high) + 1, true});
        break;
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
  std::vector<Known> known_;
  UsualNumbers out_;
};

}  // namespace

UsualNumbers usual_numbers(const Nest& nest, const std::vector<bool>& fixed) {
  return Finder(nest, fixed).find();
}

}  // namespace unisono::jit
