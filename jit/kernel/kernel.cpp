#include "jit/kernel/kernel.h"

#include <fmt/format.h>

#include <algorithm>

namespace unisono::jit {

int64_t Nest::points() const {
  int64_t total = 1;
  for (int64_t extent : extents) total *= extent;
  return total;
}

int64_t Nest::kept_points() const {
  int64_t total = 1;
  for (size_t a = 0; a < extents.size(); ++a)
    if (!reduced[a]) total *= extents[a];
  return total;
}

std::vector<bool> inner_expressions(const Nest& nest) {
  std::vector<bool> inner(nest.exprs.size());
  for (size_t e = 0; e < nest.exprs.size(); ++e) {
    const Expr& expr = nest.exprs[e];
    for (size_t a = 0; a < nest.extents.size(); ++a)
      if (nest.reduced[a] && expr.at.factors[a]) inner[e] = true;
    for (ExprId operand : expr.operands)
      if (inner[operand]) inner[e] = true;
  }
  return inner;
}

std::vector<int> turns_of_expressions(const Nest& nest) {
  std::vector<int> out(nest.exprs.size(), before_turns);
  if (!nest.turns) return out;
  std::vector<int> depth(nest.inner.size());  // parents stand before
  for (size_t i = 0; i < depth.size(); ++i)
    depth[i] = nest.inner[i].parent < 0
                   ? 1
                   : depth[static_cast<size_t>(nest.inner[i].parent)] + 1;
  auto depth_of = [&](int loop) {
    return loop < 0 ? loop + 1 : depth[static_cast<size_t>(loop)];
  };
  std::vector<int> put;  // arguments
  for_each_turns(nest, [&](const Turns& turns) {
    for (const Turns::Put& each : turns.puts)
      put.push_back(each.store.argument);
  });
  for (size_t e = 0; e < out.size(); ++e) {
    const Expr& expr = nest.exprs[e];
    if (expr.kind == Expr::Kind::turns)
      out[e] = nest.inner[static_cast<size_t>(expr.loop)].parent;
    else if (expr.kind == Expr::Kind::carried || expr.checked ||
             (expr.argument >= 0 &&
              std::ranges::find(put, expr.argument) != put.end()))
      out[e] = expr.loop;
    for (ExprId operand : expr.operands)
      if (depth_of(out[operand]) > depth_of(out[e])) out[e] = out[operand];
  }
  return out;
}

std::vector<bool> carried_expressions(const Nest& nest) {
  std::vector<bool> carried;
  for (const int loop : turns_of_expressions(nest))
    carried.push_back(loop != before_turns);
  return carried;
}

double times_taken(const Nest& nest, int loop, double unknown) {
  if (loop == before_turns) return 1;
  const Turns& turns = nest.turns_of(loop);
  const double own =
      turns.count < 0 ? unknown
                      : static_cast<double>(std::max<int64_t>(turns.count, 1));
  return loop < 0 ? own : own * times_taken(nest, turns.parent, unknown);
}

std::vector<bool> varying_expressions(const Nest& nest, int axis) {
  std::vector<bool> varying(nest.exprs.size());
  bool grows = axis >= 0;
  while (grows) {
    grows = false;
    for (size_t e = 0; e < nest.exprs.size(); ++e) {
      const Expr& expr = nest.exprs[e];
      bool own = expr.at.factors[axis] != 0;
      for (ExprId operand : expr.operands) own = own || varying[operand];
      if (expr.kind == Expr::Kind::carried || expr.kind == Expr::Kind::turned) {
        const auto& carry = nest.turns_of(expr.loop).carries[expr.carry];
        own = varying[carry.first] || varying[carry.next];
      }
      grows = grows || (own && !varying[e] && nest.turns);
      varying[e] = own;
    }
  }
  return varying;
}

bool has_choices(const Nest& nest) {
  return std::any_of(
      nest.exprs.begin(), nest.exprs.end(),
      [](const Expr& expr) { return expr.kind == Expr::Kind::choice; });
}

Nest part_of(const Nest& nest, size_t axis, int64_t start, int64_t extent) {
  Nest part = nest;
  part.extents[axis] = extent;
  for_each_affine(part,
                  [&](Affine& at) { at.constant += at.factors[axis] * start; });
  return part;
}

bool is_inner_store(const Nest& nest, const std::vector<bool>& inner,
                    const Store& store) {
  for (size_t a = 0; a < nest.extents.size(); ++a)
    if (nest.reduced[a] && store.at.factors[a]) return true;
  return inner[store.value];
}

bool goes_again(const Nest& nest) {
  const std::vector<bool> inner = inner_expressions(nest);
  for (size_t e = 0; e < nest.exprs.size(); ++e)
    if (inner[e] && nest.exprs[e].phase > 0) return true;
  return std::ranges::any_of(
             nest.reductions,
             [](const Reduction& reduction) { return reduction.phase > 0; }) ||
         std::ranges::any_of(nest.stores, [&](const Store& store) {
           return nest.exprs[store.value].phase > 0 &&
                  is_inner_store(nest, inner, store);
         });
}

namespace {

/// Calls `f(ExprId&)` for every expression that the turns name.
template <class AnyTurns, class F>
void for_each_expression(AnyTurns& turns, F&& f) {
  for (auto& carry : turns.carries) {
    f(carry.first);
    f(carry.next);
  }
  for (auto& put : turns.puts) {
    f(put.store.value);
    f(put.index);
    if (put.condition >= 0) f(put.condition);
  }
  if (turns.condition >= 0) f(turns.condition);
  if (turns.guard >= 0) f(turns.guard);
}

}  // namespace

void prune(Nest& nest, const std::vector<bool>& keep_checked) {
  std::vector<bool> used(nest.exprs.size()), live(nest.reductions.size());
  for (const Store& store : nest.stores) used[store.value] = true;
  if (nest.scan) used[nest.scan->operand] = true;
  if (nest.scatter) {
    used[nest.scatter->value] = true;
    for (ExprId index : nest.scatter->indices) used[index] = true;
  }
  for_each_turns(nest, [&](const Turns& turns) {
    for_each_expression(turns, [&](ExprId id) { used[id] = true; });
  });
  for (size_t e = nest.exprs.size(); e-- > 0;) {
    const Expr& expr = nest.exprs[e];
    used[e] = used[e] || (expr.checked && keep_checked[e]) ||
              expr.kind == Expr::Kind::turns;
    if (!used[e]) continue;
    for (ExprId operand : expr.operands) used[operand] = true;
    if (expr.kind != Expr::Kind::reduced) continue;
    const Reduction& reduction = nest.reductions[expr.reduction];
    live[expr.reduction] = true;
    used[reduction.operand] = true;
    if (reduction.second >= 0) used[reduction.second] = true;
  }

  std::vector<int> number(nest.reductions.size(), -1);
  std::vector<ExprId> renamed(nest.exprs.size(), -1);
  std::vector<Expr> exprs;
  std::vector<Reduction> reductions;
  int next = 0;
  for (size_t r = 0; r < live.size(); ++r)
    if (live[r]) number[r] = next++;
  for (size_t e = 0; e < nest.exprs.size(); ++e) {
    if (!used[e]) continue;
    Expr& expr = nest.exprs[e];
    for (ExprId& operand : expr.operands) operand = renamed[operand];
    if (expr.reduction >= 0) expr.reduction = number[expr.reduction];
    renamed[e] = static_cast<ExprId>(exprs.size());
    exprs.push_back(std::move(expr));
  }
  for (size_t r = 0; r < live.size(); ++r) {
    if (!live[r]) continue;
    Reduction& reduction = nest.reductions[r];
    reduction.operand = renamed[reduction.operand];
    if (reduction.second >= 0) reduction.second = renamed[reduction.second];
    reductions.push_back(reduction);
  }
  for (Store& store : nest.stores) store.value = renamed[store.value];
  if (nest.scan) nest.scan->operand = renamed[nest.scan->operand];
  if (nest.scatter) {
    nest.scatter->value = renamed[nest.scatter->value];
    for (ExprId& index : nest.scatter->indices) index = renamed[index];
  }
  for_each_turns(nest, [&](Turns& turns) {
    for_each_expression(turns, [&](ExprId& id) { id = renamed[id]; });
  });
  nest.exprs = std::move(exprs);
  nest.reductions = std::move(reductions);
}

void drop_arguments(Kernel& kernel) {
  std::vector<int> number(kernel.arguments.size(), -1);
  std::vector<Argument> arguments;
  for (Nest& nest : kernel.nests) {
    for_each_argument(nest, [&](int& argument) {
      if (number[argument] < 0) {
        number[argument] = static_cast<int>(arguments.size());
        arguments.push_back(kernel.arguments[argument]);
        arguments.back().written = false;
      }
      argument = number[argument];
    });
    for (const Store& store : nest.stores)
      arguments[store.argument].written = true;
    for_each_turns(nest, [&](const Turns& turns) {
      for (const Turns::Put& put : turns.puts)
        arguments[put.store.argument].written = true;
    });
    if (nest.scan) {
      arguments[nest.scan->argument].written = true;
      for (int shared : {nest.scan->carries, nest.scan->flags})
        if (nest.scan->part == Scan::Part::linked)
          arguments[shared].written = true;
    }
    if (nest.scatter) arguments[nest.scatter->argument].written = true;
  }
  kernel.arguments = std::move(arguments);
}

namespace {

std::string text(const Affine& affine) {
  std::string out;
  for (size_t a = 0; a < affine.factors.size(); ++a)
    if (int64_t factor = affine.factors[a]; factor == 1)
      out += fmt::format("{}i{}", out.empty() ? "" : " + ", a);
    else if (factor)
      out += fmt::format("{}{}*i{}", out.empty() ? "" : " + ", factor, a);
  if (affine.constant || out.empty())
    out += fmt::format("{}{}", out.empty() ? "" : " + ", affine.constant);
  return out;
}

std::string indexed_text(const Affine& at, const std::vector<ExprId>& indices,
                         const std::vector<Expr::IndexedAxis>& axes) {
  std::string out = text(at);
  for (size_t i = 0; i < axes.size(); ++i)
    out += fmt::format(" + %{} {} {} by {}", indices[i],
                       axes[i].inside ? "inside" : "in", axes[i].size,
                       axes[i].stride);
  return out;
}

std::string checked_text(bool checked, uint32_t source,
                         const MemberPlace& member) {
  if (!checked) return "";
  std::string out = fmt::format(" checked@{}", source);
  if (member.per_member)
    out += fmt::format(" of member ({}) / {}", text(member.element),
                       member.per_member);
  return out;
}

std::string part_text(const Scan& scan) {
  switch (scan.part) {
    case Scan::Part::whole: return "";
    case Scan::Part::linked:
      return fmt::format(", linked by a{} and a{}", scan.carries, scan.flags);
    case Scan::Part::totals: return ", totals of runs";
    case Scan::Part::carries: return ", carries in place";
    case Scan::Part::rest: return fmt::format(", after a{}", scan.carries);
  }
  __builtin_unreachable();
}

std::string part_text(const Scatter& scatter) {
  switch (scatter.part) {
    case Scatter::Part::in_order: return "";
    case Scatter::Part::atomic: return ", atomic";
    case Scatter::Part::targets:
      return fmt::format(", targets at {}", text(scatter.at));
    case Scatter::Part::winners:
      return fmt::format(", winners of {}", text(scatter.position));
    case Scatter::Part::chosen:
      return fmt::format(", where {} won in a{}", text(scatter.position),
                         scatter.targets);
    case Scatter::Part::sorted:
      return fmt::format(", targets a{} in order a{}", scatter.targets,
                         scatter.order);
  }
  __builtin_unreachable();
}

std::string loop_text(const Expr& expr) {
  return expr.loop < 0 ? "" : fmt::format(" of turns {}", expr.loop);
}

std::string text(const Expr& expr) {
  switch (expr.kind) {
    case Expr::Kind::constant: return fmt::format("bits {:#x}", expr.bits);
    case Expr::Kind::position: return "position";
    case Expr::Kind::iota: return fmt::format("index {}", text(expr.at));
    case Expr::Kind::load:
      return fmt::format("load a{}[{}]{}", expr.argument, text(expr.at),
                         loop_text(expr));
    case Expr::Kind::gather:
      return fmt::format("gather a{}[{}]{}{}", expr.argument,
                         indexed_text(expr.at, expr.operands, expr.indexed),
                         checked_text(expr.checked, expr.source, expr.member),
                         loop_text(expr));
    case Expr::Kind::operation:
      return fmt::format("{}.{} %{}{}{}", ir::name(expr.op),
                         name(expr.operand_dtype),
                         fmt::join(expr.operands, ", %"),
                         checked_text(expr.checked, expr.source, expr.member),
                         expr.checked ? loop_text(expr) : "");
    case Expr::Kind::reduced:
      return fmt::format("reduction {}{}", expr.reduction,
                         expr.best ? " best" : "");
    case Expr::Kind::carried:
      return fmt::format("carry {}{}", expr.carry, loop_text(expr));
    case Expr::Kind::turns: return fmt::format("turns{}", loop_text(expr));
    case Expr::Kind::turned:
      return fmt::format("last carry {}{}", expr.carry, loop_text(expr));
    case Expr::Kind::choice:
      return fmt::format("choice %{} by {} from {}",
                         fmt::join(expr.operands, ", %"), text(expr.at),
                         fmt::join(expr.bounds, ", "));
  }
  __builtin_unreachable();
}

std::string_view order_name(CombineOrder order) {
  switch (order) {
    case CombineOrder::lanes: return "lanes";
    case CombineOrder::runs: return "runs";
    case CombineOrder::members: return "members";
    case CombineOrder::chain: return "chain";
  }
  __builtin_unreachable();
}

std::string text(const Reduction& reduction) {
  std::string out = fmt::format("{} ", name(reduction.dtype));
  switch (reduction.kind) {
    case Reduction::Kind::combine: out += ir::name(reduction.op); break;
    case Reduction::Kind::argmax: out += "argmax"; break;
    case Reduction::Kind::argmin: out += "argmin"; break;
    case Reduction::Kind::dot: out += "dot"; break;
  }
  out += fmt::format(" %{}", reduction.operand);
  if (reduction.second >= 0) out += fmt::format(", %{}", reduction.second);
  return out + fmt::format(" by {}", order_name(reduction.order));
}

void print(std::string& out, const Turns& turns) {
  out += turns.condition < 0
             ? fmt::format("    {} turns", turns.count)
             : fmt::format("    turns while %{}", turns.condition);
  for (size_t i = 0; i < turns.carries.size(); ++i)
    out += fmt::format("{} carry {}: {} %{} then %{}", i ? "," : ":", i,
                       name(turns.carries[i].dtype), turns.carries[i].first,
                       turns.carries[i].next);
  out += "\n";
  for (const Turns::Put& put : turns.puts)
    out += fmt::format(
        "    put a{}[{} + %{} by {}] = %{}{}{}\n", put.store.argument,
        text(put.store.at), put.index, put.stride, put.store.value,
        put.condition < 0 ? "" : fmt::format(" where %{}", put.condition),
        put.held ? " held" : "");
}

void print(std::string& out, const Nest& nest) {
  out += "  for";
  for (size_t a = 0; a < nest.extents.size(); ++a)
    out += fmt::format(" i{} < {}{}", a, nest.extents[a],
                       nest.reduced[a] ? " (reduced)" : "");
  out += nest.extents.empty() ? " one point\n" : "\n";
  for (size_t e = 0; e < nest.exprs.size(); ++e) {
    out += fmt::format("    %{}: {} = {}", e, name(nest.exprs[e].dtype),
                       text(nest.exprs[e]));
    if (nest.exprs[e].phase)
      out += fmt::format(" after {}", nest.exprs[e].phase);
    out += "\n";
  }
  for (size_t r = 0; r < nest.reductions.size(); ++r)
    out += fmt::format("    reduction {}: {}\n", r, text(nest.reductions[r]));
  if (nest.turns) print(out, *nest.turns);
  for (size_t i = 0; i < nest.inner.size(); ++i) {
    const Turns& turns = nest.inner[i];
    out += fmt::format("    turns {}", i);
    if (turns.parent >= 0) out += fmt::format(" in {}", turns.parent);
    if (turns.guard >= 0) out += fmt::format(" if %{}", turns.guard);
    out += "\n";
    print(out, turns);
  }
  for (const Store& store : nest.stores)
    out += fmt::format("    store a{}[{}] = %{}\n", store.argument,
                       text(store.at), store.value);
  if (const auto& scan = nest.scan)
    out += fmt::format("    scan a{}[{}] = {}.{} %{}{}{}{}\n", scan->argument,
                       text(scan->at), ir::name(scan->op), name(scan->dtype),
                       scan->operand, scan->reverse ? " reverse" : "",
                       scan->contiguous ? " in groups" : "", part_text(*scan));
  if (const auto& scatter = nest.scatter)
    out += fmt::format(
        "    scatter a{}[{}] {} %{}{}{}\n", scatter->argument,
        indexed_text(scatter->at, scatter->indices, scatter->indexed),
        scatter->add ? "+=" : "=", scatter->value,
        checked_text(scatter->checked, scatter->source, scatter->member),
        part_text(*scatter));
}

}  // namespace

std::string print(const Kernel& kernel) {
  std::string out = "kernel(";
  for (size_t i = 0; i < kernel.arguments.size(); ++i)
    out += fmt::format("{}{}a{}: {}", i ? ", " : "",
                       kernel.arguments[i].written ? "out " : "", i,
                       name(kernel.arguments[i].dtype));
  out += ")\n";
  for (const Nest& nest : kernel.nests) print(out, nest);
  return out;
}

}  // namespace unisono::jit
