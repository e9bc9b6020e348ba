// Elements of a held array that a turn leaves to the next one stay in a
// register (unroll.h). A place is a sum of factors of expressions; where the
// place that a read means in the next turn is one that this turn writes, the
// read becomes a carry. Its first value is what memory has before the turns.
#include <algorithm>
#include <map>

#include "jit/plan/unroll.h"
#include "runtime/tuning/tuning.h"

namespace unisono::jit {

using ir::Op;

/// A place: the sum of factor * expression and a constant, as numbers of 64
/// bits add and multiply.
struct Unroller::LinearPlace {
  std::map<ExprId, uint64_t> factors;
  uint64_t constant = 0;

  void add(const LinearPlace& other, uint64_t factor) {
    constant += factor * other.constant;
    for (const auto& [expr, by] : other.factors)
      if ((factors[expr] += factor * by) == 0) factors.erase(expr);
  }
};

/// The integer `id`, a place in an array, taken apart. Nothing in it wraps: a
/// place is a sum of what has a range, or of bounded indices, which stay whole.
Unroller::LinearPlace Unroller::linear(ExprId id) const {
  LinearPlace out;
  if (const auto value = known(id)) {
    out.constant = static_cast<uint64_t>(*value);
    return out;
  }
  const Expr& expr = nest_.exprs[id];
  const bool is_operation = expr.kind == Expr::Kind::operation;
  if (is_operation && (expr.op == Op::add || expr.op == Op::sub)) {
    out.add(linear(expr.operands[0]), 1);
    out.add(linear(expr.operands[1]), expr.op == Op::add ? 1 : ~uint64_t{0});
    return out;
  }
  if (is_operation && expr.op == Op::mul)
    for (const int i : {0, 1})
      if (const auto factor = known(expr.operands[i])) {
        out.add(linear(expr.operands[1 - i]), static_cast<uint64_t>(*factor));
        return out;
      }
  if (is_operation && expr.op == Op::cast) return linear(expr.operands[0]);
  out.factors[id] = 1;
  return out;
}

/// Whether turns are those that are being placed, or inside them.
bool Unroller::is_in_turns(int loop) const {
  while (loop != loop_ && loop >= 0)
    loop = nest_.inner[static_cast<size_t>(loop)].parent;
  return loop == loop_;
}

bool Unroller::changes_in_turns(ExprId id, std::span<const int> written) const {
  const Expr& expr = nest_.exprs[id];
  const bool is_own =
      expr.kind == Expr::Kind::carried || expr.kind == Expr::Kind::turned ||
      expr.checked || versions_.contains(expr.argument) ||
      std::ranges::find(written, expr.argument) != written.end();
  return (is_own && is_in_turns(expr.loop)) ||
         std::ranges::any_of(expr.operands, [&](ExprId operand) {
           return changes_in_turns(operand, written);
         });
}

/// The sum as an expression.
ExprId Unroller::place_of(const LinearPlace& place) {
  ExprId sum = integer(DType::I64, static_cast<int64_t>(place.constant));
  for (const auto& [expr, factor] : place.factors) {
    const ExprId term =
        operation(Op::mul, DType::I64, DType::I64,
                  {cast(expr, DType::I64),
                   integer(DType::I64, static_cast<int64_t>(factor))});
    sum = operation(Op::add, DType::I64, DType::I64, {sum, term});
  }
  return sum;
}

/// What a turn leaves at `place`; -1 if it is not certain that it writes there.
/// A write under a condition stays one: that is a branch, which is guessed, and
/// a choice would make each turn wait for the one before.
ExprId Unroller::left_at(const LinearPlace& place,
                         std::span<const HeldWrite> writes) const {
  ExprId value = -1;
  for (const HeldWrite& write : writes) {
    LinearPlace apart = linear(write.place);
    apart.add(place, ~uint64_t{0});
    if (!apart.factors.empty()) return -1;
    if (apart.constant != 0) continue;
    if (write.condition >= 0) return -1;
    value = write.value;
  }
  return value;
}

/// Whether it is what memory has at one place of the array (held_element),
/// without a check.
bool Unroller::is_read_of(const Array& held, ExprId id) const {
  const Expr& expr = nest_.exprs[id];
  return expr.kind == Expr::Kind::gather && !expr.checked &&
         expr.loop == loop_ && expr.argument == held.memory->argument;
}

void Unroller::carry_reads(const Array& held, std::span<const HeldWrite> writes,
                           const TurnNumber& number,
                           std::span<const int> written, int before) {
  // Loops inside have not written it: what a turn has read was there.
  if (version_in(versions_, held) != held.version) return;
  const auto last = static_cast<ExprId>(nest_.exprs.size());
  int64_t reads = 0;
  for (ExprId id = 0; id < last; ++id) reads += is_read_of(held, id) ? 1 : 0;
  if (reads > tuning().most_carried_reads) return;
  for (ExprId id = 0; id < last; ++id) {
    if (!is_read_of(held, id)) continue;
    LinearPlace place = linear(nest_.exprs[id].operands[0]);
    const auto own = place.factors.find(number.id);
    const uint64_t factor = own == place.factors.end() ? 0 : own->second;
    const bool moves_alone =
        std::ranges::all_of(place.factors, [&](const auto& part) {
          return part.first == number.id ||
                 !changes_in_turns(part.first, written);
        });
    if (!moves_alone) continue;
    LinearPlace following = place;
    following.constant += factor * static_cast<uint64_t>(number.step);
    const ExprId next = left_at(following, writes);
    if (next < 0) continue;
    place.constant += factor * static_cast<uint64_t>(number.first);
    place.factors.erase(number.id);
    Expr first = nest_.exprs[id];
    first.argument = before;
    first.operands = {place_of(place)};
    if (loop_ >= 0) first.loop = nest_.inner[static_cast<size_t>(loop_)].parent;
    std::vector<Turns::Carry>& carries = nest_.turns_of(loop_).carries;
    carries.push_back({append(std::move(first)), next, held.dtype});
    nest_.exprs[id] = {.kind = Expr::Kind::carried,
                       .dtype = held.dtype,
                       .carry = static_cast<int>(carries.size()) - 1,
                       .loop = loop_,
                       .source = nest_.exprs[id].source,
                       .at = constant_affine(0, nest_.extents.size())};
  }
}

}  // namespace unisono::jit
