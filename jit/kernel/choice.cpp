#include "jit/kernel/choice.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "runtime/check.h"

namespace unisono::jit {
namespace {

/// The number of the operand that a choice is at `index`.
size_t outcome(const Expr& choice, int64_t index) {
  const auto& bounds = choice.bounds;
  return static_cast<size_t>(
      std::upper_bound(bounds.begin(), bounds.end(), index) - bounds.begin());
}

/// The operand that a choice is everywhere in the nest, if it is one.
std::optional<ExprId> only_outcome(const Expr& choice,
                                   const std::vector<int64_t>& extents) {
  const AffineRange reach = range(choice.at, extents);
  const size_t first = outcome(choice, reach.low);
  if (first != outcome(choice, reach.high)) return std::nullopt;
  return choice.operands[first];
}

/// Puts operands in place of the choices that are made, and removes what nobody
/// reads then. Says whether a choice is left.
bool make_choices(Nest& nest) {
  std::vector<ExprId> made(nest.exprs.size());
  bool changed = false;
  for (size_t e = 0; e < nest.exprs.size(); ++e) {
    Expr& expr = nest.exprs[e];
    for (ExprId& operand : expr.operands) operand = made[operand];
    made[e] = static_cast<ExprId>(e);
    if (expr.kind != Expr::Kind::choice) continue;
    const auto only = only_outcome(expr, nest.extents);
    if (!only) continue;
    made[e] = *only;
    changed = true;
  }
  for (Store& store : nest.stores) store.value = made[store.value];
  if (changed) prune(nest, std::vector<bool>(nest.exprs.size(), true));
  return has_choices(nest);
}

}  // namespace

AxisCuts cuts_of(const Expr& choice, const std::vector<int64_t>& extents) {
  AxisCuts cuts;
  int crossed = 0;
  for (size_t a = 0; a < extents.size(); ++a)
    if (choice.at.factors[a] && extents[a] > 1) cuts.axis = a, ++crossed;
  CHECK(crossed <= 1);
  if (crossed == 0) return cuts;
  const int64_t factor = choice.at.factors[cuts.axis];
  for (const int64_t bound : choice.bounds) {
    // The first index at which `at` is no longer on the side of index 0.
    const int64_t left = bound - choice.at.constant;
    const int64_t cut =
        factor > 0 ? (left + factor - 1) / factor : -left / -factor + 1;
    const bool crosses = factor > 0 ? left > 0 : left <= 0;
    if (crosses && cut < extents[cuts.axis]) cuts.at.push_back(cut);
  }
  std::sort(cuts.at.begin(), cuts.at.end());
  cuts.at.erase(std::unique(cuts.at.begin(), cuts.at.end()), cuts.at.end());
  return cuts;
}

std::vector<Nest> cut_choices(Nest nest, int last) {
  if (!has_choices(nest)) return {std::move(nest)};
  std::vector<Nest> out, pending = {std::move(nest)};
  while (!pending.empty()) {
    Nest part = std::move(pending.back());
    pending.pop_back();
    AxisCuts cuts;
    // Users first: what lies in an operand of a choice that is to be made may
    // not be asked for any more.
    if (make_choices(part))
      for (size_t e = part.exprs.size(); e-- > 0 && cuts.at.empty();) {
        if (part.exprs[e].kind != Expr::Kind::choice) continue;
        cuts = cuts_of(part.exprs[e], part.extents);
        if (static_cast<int>(cuts.axis) == last) cuts = {};
      }
    if (cuts.at.empty()) {
      out.push_back(std::move(part));
      continue;
    }
    int64_t end = part.extents[cuts.axis];
    cuts.at.insert(cuts.at.begin(), 0);
    for (; !cuts.at.empty(); cuts.at.pop_back()) {  // the first part on top
      const int64_t begin = cuts.at.back();
      pending.push_back(part_of(part, cuts.axis, begin, end - begin));
      end = begin;
    }
  }
  return out;
}

std::vector<Segment> segments(const Nest& nest, int axis) {
  const int64_t extent = nest.extents[axis];
  std::vector<int64_t> ends = {extent};
  for (const Expr& expr : nest.exprs) {
    if (expr.kind != Expr::Kind::choice) continue;
    const AxisCuts cuts = cuts_of(expr, nest.extents);
    CHECK(cuts.at.empty() || static_cast<int>(cuts.axis) == axis);
    ends.insert(ends.end(), cuts.at.begin(), cuts.at.end());
  }
  std::sort(ends.begin(), ends.end());
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
  std::vector<Segment> out;
  int64_t begin = 0;
  for (const int64_t end : ends) {
    Segment part{begin, end, std::vector<ExprId>(nest.exprs.size(), -1),
                 std::vector<bool>(nest.exprs.size())};
    for (const Store& store : nest.stores) part.needed[store.value] = true;
    for (size_t e = nest.exprs.size(); e-- > 0;) {
      const Expr& expr = nest.exprs[e];
      part.needed[e] = part.needed[e] || expr.checked;
      if (!part.needed[e]) continue;
      if (expr.kind != Expr::Kind::choice) {
        for (const ExprId operand : expr.operands) part.needed[operand] = true;
        continue;
      }
      const int64_t index = expr.at.constant + expr.at.factors[axis] * begin;
      part.chosen[e] = expr.operands[outcome(expr, index)];
      part.needed[part.chosen[e]] = true;
    }
    begin = end;
    // A choice that nobody asks for here cuts nothing.
    if (!out.empty() && out.back().chosen == part.chosen)
      out.back().end = end;
    else
      out.push_back(std::move(part));
  }
  return out;
}

}  // namespace unisono::jit
