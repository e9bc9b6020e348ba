// Operations that a GPU does in fewer instructions where what they read is in
// the usual range: which those are, and that what is looked for is enough.
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <functional>
#include <random>
#include <utility>

#include "jit/kernel/usual_numbers.h"

using namespace unisono;
using namespace unisono::jit;
using ir::Op;

namespace {

/// Expressions of f32, one after another.
struct Expressions {
  Nest nest{.extents = {1000}, .reduced = {false}, .exprs = {}};

  ExprId add(Expr expr) {
    expr.operand_dtype = DType::F32;
    expr.at.factors.resize(1);
    nest.exprs.push_back(std::move(expr));
    return static_cast<ExprId>(nest.exprs.size()) - 1;
  }
  ExprId load() { return add({.kind = Expr::Kind::load, .argument = 0}); }
  ExprId number(float x) { return add({.bits = std::bit_cast<uint32_t>(x)}); }
  ExprId of(Op op, std::vector<ExprId> operands) {
    return add({.kind = Expr::Kind::operation,
                .op = op,
                .operands = std::move(operands)});
  }
};

/// What is known of the last expression, and which checks are made.
struct Found {
  bool quick = false;
  int saved = 0;
  std::vector<UsualChecks> checks;
};
Found found(const std::function<void(Expressions&)>& make) {
  Expressions some;
  make(some);
  const size_t count = some.nest.exprs.size();
  const UsualNumbers numbers =
      usual_numbers(some.nest, std::vector<bool>(count));
  REQUIRE(numbers.quick.size() == count);
  return {numbers.quick.back(), numbers.saved, numbers.checks};
}

/// Whether a / b is quick.
bool divides(const std::function<ExprId(Expressions&)>& a,
             const std::function<ExprId(Expressions&)>& b) {
  return found([&](Expressions& e) {
           const ExprId x = a(e), y = b(e);
           e.of(Op::div, {x, y});
         })
      .quick;
}
/// Whether the operation is quick of this number.
bool is_quick(Op op, float x) {
  return found([&](Expressions& e) { e.of(op, {e.number(x)}); }).quick;
}

float computed(const Expr& expr, const std::vector<float>& values) {
  const auto of = [&](size_t i) { return values[expr.operands[i]]; };
  switch (expr.op) {
    case Op::add: return of(0) + of(1);
    case Op::sub: return of(0) - of(1);
    case Op::mul: return of(0) * of(1);
    case Op::div: return of(0) / of(1);
    case Op::max: return std::fmax(of(0), of(1));
    case Op::neg: return -of(0);
    case Op::abs: return std::fabs(of(0));
    case Op::sqrt: return std::sqrt(of(0));
    case Op::log: return std::log(of(0));
    default: return std::exp(of(0));
  }
}

/// Exponents that the steps of a quotient, root or logarithm may have.
bool is_usual(float x) {
  return std::isnormal(x) && std::ilogb(x) >= -100 && std::ilogb(x) < 100;
}

class Values {
 public:
  explicit Values(uint32_t seed) : random_(seed) {}

  uint32_t below(uint32_t n) { return random_() % n; }
  /// A number with an exponent from `low` on.
  float number(int low, int exponents, bool positive) {
    const int exponent =
        low + static_cast<int>(below(static_cast<uint32_t>(exponents)));
    const float x =
        std::ldexp(1 + static_cast<float>(below(1 << 20)) * 0x1p-20f, exponent);
    return !positive && below(2) ? -x : x;
  }
  float any() {
    switch (below(12)) {
      case 0: return 0.0f;
      case 1: return -0.0f;
      case 2: return 1.0f;
      default: return number(-126, 253, false);
    }
  }

 private:
  std::mt19937 random_;
};

Nest random_nest(Values& random) {
  Expressions e;
  for (int i = 0; i < 3; ++i) e.load();
  for (int i = 0; i < 2; ++i)
    e.number(random.below(2) ? random.any() : random.number(-8, 16, false));
  constexpr Op ops[] = {Op::add, Op::sub, Op::mul,  Op::div, Op::div, Op::max,
                        Op::neg, Op::abs, Op::sqrt, Op::log, Op::exp};
  for (int i = 0; i < 8; ++i) {
    const Op op = ops[random.below(std::size(ops))];
    const auto operand = [&] {
      return static_cast<ExprId>(
          random.below(static_cast<uint32_t>(e.nest.exprs.size())));
    };
    const bool two = op == Op::add || op == Op::sub || op == Op::mul ||
                     op == Op::div || op == Op::max;
    std::vector<ExprId> operands = {operand()};
    if (two) operands.push_back(operand());
    e.of(op, std::move(operands));
  }
  return e.nest;
}

/// The values of all expressions at a point where all that is looked for holds;
/// none if some does not.
std::vector<float> usual_values(const Nest& nest, const UsualNumbers& numbers,
                                Values& random) {
  std::vector<float> values;
  for (size_t e = 0; e < nest.exprs.size(); ++e) {
    const Expr& expr = nest.exprs[e];
    const UsualChecks& checks = numbers.checks[e];
    float x = 0;
    if (expr.kind == Expr::Kind::constant)
      x = std::bit_cast<float>(static_cast<uint32_t>(expr.bits));
    else if (expr.kind == Expr::Kind::operation)
      x = computed(expr, values);
    else if (checks.size && checks.exponent)
      x = random.number(checks.low, 6 - checks.low, checks.positive);
    else if (checks.size)
      x = random.number(checks.low, usual_exponents, checks.positive);
    else
      x = checks.exponent ? random.number(-20, 26, false) : random.any();
    if (checks.size && !(std::isnormal(x) && std::ilogb(x) >= checks.low &&
                         std::ilogb(x) < checks.low + usual_exponents))
      return {};
    if ((checks.positive && !(x > 0)) ||
        (checks.exponent && !(std::fabs(x) <= usual_exponent)))
      return {};
    values.push_back(x);
  }
  return values;
}

/// Whether all steps of a quick operation are as they have to be.
bool is_fit(const Expr& expr, const std::vector<float>& values) {
  const float x = values[expr.operands[0]];
  if (expr.op == Op::exp) return std::fabs(x) <= usual_exponent;
  if (expr.op != Op::div) return x > 0 && is_usual(x);
  const float y = values[expr.operands[1]];
  if (!is_usual(y)) return false;
  if (x == 0) return !std::signbit(x);
  return is_usual(x) && is_usual(x / y);
}

}  // namespace

TEST_CASE("what is looked for, so that operations are quick") {
  const Found quotient = found([](Expressions& e) {
    const ExprId x = e.load(), y = e.load();
    e.of(Op::div, {x, y});
  });
  CHECK(quotient.quick);
  CHECK(quotient.saved == 4 - 2 - 2);
  for (const int operand : {0, 1}) {
    CHECK(quotient.checks[operand].size);
    CHECK_FALSE(quotient.checks[operand].positive);
    CHECK(quotient.checks[operand].low == usual_low);
  }
  for (const auto& [op, saved] : {std::pair{Op::sqrt, 5}, {Op::log, 9}}) {
    const Found root = found([&](Expressions& e) { e.of(op, {e.load()}); });
    CHECK(root.quick);
    CHECK(root.saved == saved - 1);
    CHECK(root.checks[0].positive);
  }
  // Two look for the same once.
  const Found twice = found([](Expressions& e) {
    const ExprId x = e.load();
    e.of(Op::exp, {x});
    e.of(Op::exp, {x});
  });
  CHECK(twice.quick);
  CHECK(twice.saved == 6 + 6 - 1);
  CHECK(twice.checks[0].exponent);
  CHECK_FALSE(twice.checks[0].size);
  // Operations that have no quicker way ask for nothing.
  CHECK(found([](Expressions& e) { e.of(Op::abs, {e.load()}); }).saved == 0);
}

TEST_CASE("numbers of which operations are not quick") {
  for (const Op op : {Op::sqrt, Op::log}) {
    CHECK(is_quick(op, 4));
    CHECK(is_quick(op, 0x1p99f));
    CHECK(is_quick(op, 0x1p-100f));
    for (const float x : {0.0f, -4.0f, 0x1p100f, 0x1p-101f, 0x1p-130f})
      CHECK_FALSE(is_quick(op, x));
  }
  const auto number = [](float x) {
    return [x](Expressions& e) { return e.number(x); };
  };
  const auto load = [](Expressions& e) { return e.load(); };
  CHECK(divides(number(3), load));
  CHECK(divides(load, number(3)));
  for (const float x : {0.0f, 0x1p120f, 0x1p-120f}) {
    CHECK_FALSE(divides(number(x), load));
    CHECK_FALSE(divides(load, number(x)));
  }
  // The quotient is too large or too small.
  CHECK_FALSE(divides(load, number(0x1p-90f)));
  CHECK_FALSE(divides(load, number(0x1p90f)));
  // A divisor that may be 0, and a dividend that may be -0.
  const auto log = [](Expressions& e) { return e.of(Op::log, {e.load()}); };
  CHECK_FALSE(divides(load, log));
  CHECK(divides(log, load));
  CHECK_FALSE(
      divides([&](Expressions& e) { return e.of(Op::neg, {log(e)}); }, load));
  CHECK_FALSE(divides(
      [&](Expressions& e) {
        const ExprId x = log(e), y = log(e);
        return e.of(Op::add, {x, y});
      },
      load));
}

TEST_CASE("what follows of what is looked for") {
  // y is known by x / y; -0 comes of two zeros, and by a sign.
  const auto divided = [](const std::function<ExprId(Expressions&, ExprId known,
                                                     ExprId log)>& make) {
    return found([&](Expressions& e) {
             const ExprId y = e.load(), log = e.of(Op::log, {e.load()});
             e.of(Op::div, {y, y});
             const ExprId x = make(e, y, log);
             e.of(Op::div, {x, e.number(3)});
           })
        .quick;
  };
  using E = Expressions;
  CHECK(divided(
      [](E& e, ExprId y, ExprId log) { return e.of(Op::add, {log, y}); }));
  CHECK(divided(
      [](E& e, ExprId y, ExprId log) { return e.of(Op::sub, {y, log}); }));
  CHECK_FALSE(divided(
      [](E& e, ExprId y, ExprId log) { return e.of(Op::mul, {y, log}); }));
  CHECK_FALSE(divided(
      [](E& e, ExprId y, ExprId log) { return e.of(Op::mul, {log, y}); }));
  CHECK(divided([](E& e, ExprId y, ExprId) { return e.of(Op::neg, {y}); }));

  // Of a root nothing more is asked where the operand is positive anyway.
  const auto rooted =
      [](const std::function<ExprId(Expressions&, ExprId, ExprId)>& make) {
        const Found root = found([&](Expressions& e) {
          const ExprId x = e.of(Op::sqrt, {e.load()});
          const ExprId y = e.of(Op::sqrt, {e.load()});
          e.of(Op::sqrt, {make(e, x, y)});
        });
        CHECK(root.quick);
        return !root.checks[root.checks.size() - 2].size;
      };
  CHECK(rooted([](E& e, ExprId x, ExprId y) { return e.of(Op::add, {x, y}); }));
  CHECK(rooted([](E& e, ExprId x, ExprId y) { return e.of(Op::mul, {x, y}); }));
  CHECK(rooted([](E& e, ExprId x, ExprId y) { return e.of(Op::div, {x, y}); }));
  CHECK(rooted([](E& e, ExprId x, ExprId) {
    return e.of(Op::abs, {e.of(Op::neg, {x})});
  }));
  CHECK_FALSE(
      rooted([](E& e, ExprId x, ExprId y) { return e.of(Op::sub, {x, y}); }));
  CHECK_FALSE(rooted([](E& e, ExprId x, ExprId) {
    return e.of(Op::neg, {e.of(Op::neg, {x})});
  }));

  // Of an exponential the argument's size tells enough, if it may be chosen.
  const auto scaled = [](float factor) {
    return found([&](Expressions& e) {
      const ExprId x = e.load();
      e.of(Op::div, {x, x});
      const ExprId power =
          e.of(Op::exp, {e.of(Op::mul, {x, e.number(factor)})});
      const ExprId one = e.number(1);
      e.of(Op::div, {one, power});
    });
  };
  const Found by_four = scaled(4);  // |x| < 2^3
  CHECK(by_four.quick);
  CHECK(by_four.checks[0].low == 3 - usual_exponents);
  CHECK_FALSE(by_four.checks[3].exponent);
  CHECK_FALSE(by_four.checks[4].size);
  for (const float factor : {0x1p50f, 0x1p-110f}) {
    const Found other = scaled(factor);
    CHECK(other.checks[0].low == usual_low);
    CHECK(other.checks[3].exponent);
    CHECK(other.checks[4].size);
  }
}

TEST_CASE("where all that is looked for holds, quick operations are right") {
  int quick = 0, known = 0;
  for (uint32_t seed = 0; seed < 3000; ++seed) {
    Values random(seed);
    const Nest nest = random_nest(random);
    const UsualNumbers numbers =
        usual_numbers(nest, std::vector<bool>(nest.exprs.size()));
    for (int point = 0; point < 40; ++point) {
      const std::vector<float> values = usual_values(nest, numbers, random);
      for (size_t e = 0; e < values.size(); ++e) {
        if (!numbers.quick[e]) continue;
        CAPTURE(seed);
        CAPTURE(e);
        REQUIRE(is_fit(nest.exprs[e], values));
        ++quick;
        for (const ExprId operand : nest.exprs[e].operands)
          known += !numbers.checks[operand].size &&
                   nest.exprs[operand].kind == Expr::Kind::operation;
      }
    }
  }
  CHECK(quick > 30'000);
  CHECK(known > 3'000);
}
