// Loops inside a loop that runs in registers (unroll.h): short ones are written
// out, turn by turn; others become turns inside the turns. What they carry in
// memory, they change there: so a state of an array is one that memory has now,
// or nobody may read it any more.
#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "jit/ir/kinds.h"
#include "jit/plan/unroll.h"
#include "runtime/tuning/tuning.h"

namespace unisono::jit {

using ir::Graph;
using ir::LoopAttrs;
using ir::Node;
using ir::NodeId;
using ir::Op;

namespace {

int64_t product(const std::vector<int64_t>& sizes) {
  int64_t out = 1;
  for (int64_t size : sizes) out *= size;
  return out;
}

int64_t nodes_of(const Graph& graph) {
  auto count = static_cast<int64_t>(graph.nodes.size());
  for (const Node& node : graph.nodes) {
    if (const auto* loop = std::get_if<LoopAttrs>(&node.attrs))
      count += nodes_of(*loop->body) * std::max<int64_t>(loop->turns, 1);
    if (const auto* branch = std::get_if<ir::IfAttrs>(&node.attrs))
      count += nodes_of(*branch->then_graph) + nodes_of(*branch->else_graph);
  }
  return count;
}

/// Which parameter a node is, or -1.
int parameter_of(const Graph& graph, NodeId id) {
  const auto at = std::ranges::find(graph.inputs, id);
  return at == graph.inputs.end() ? -1
                                  : static_cast<int>(at - graph.inputs.begin());
}

/// What a turn adds to a carry, a constant; 0 if it does something else.
int64_t step_of(const Graph& body, size_t carry) {
  const Node& next = body[body.outputs[carry]];
  if (next.op != Op::add && next.op != Op::sub) return 0;
  for (const int i : {0, 1}) {
    if (parameter_of(body, next.inputs[i]) != static_cast<int>(carry)) continue;
    const auto step = constant_of(body, next.inputs[1 - i]);
    if (!step || *step == std::numeric_limits<int64_t>::min()) return 0;
    if (next.op == Op::add) return *step;
    return i == 0 ? -*step : 0;
  }
  return 0;
}

}  // namespace

bool is_long_loop(const Node& node) {
  const auto* loop = std::get_if<LoopAttrs>(&node.attrs);
  return loop &&
         (!loop->is_counted() || loop->turns > tuning().most_unrolled_turns ||
          loop->turns * nodes_of(*loop->body) > tuning().most_unrolled_nodes);
}

bool has_long_loop(const Graph& graph) {
  return std::ranges::any_of(graph.nodes, [](const Node& node) {
    if (const auto* branch = std::get_if<ir::IfAttrs>(&node.attrs))
      return has_long_loop(*branch->then_graph) ||
             has_long_loop(*branch->else_graph);
    const auto* loop = std::get_if<LoopAttrs>(&node.attrs);
    return is_long_loop(node) || (loop && has_long_loop(*loop->body));
  });
}

/// A loop inside the loop: its turns one after the other where they are few.
std::optional<Unroller::Arrays> Unroller::turns(const Node& node, Arrays x) {
  const auto& a = ir::attrs<LoopAttrs>(node);
  if (!scratch_)  // all are counted
    return a.turns <= tuning().most_unrolled_turns
               ? written_out(node, std::move(x))
               : std::nullopt;
  if (is_long_loop(node)) return inner_turns(node, std::move(x));
  const Unroller before = *this;
  const Nest nest = nest_;
  if (auto out = written_out(node, x)) return out;
  nest_ = nest;
  known_ = before.known_;
  ranges_ = before.ranges_;
  checked_reads_ = before.checked_reads_;
  versions_ = before.versions_;
  guard_ = before.guard_;
  loop_ = before.loop_;
  return inner_turns(node, std::move(x));
}

std::optional<Unroller::Arrays> Unroller::written_out(const Node& node,
                                                      Arrays x) {
  const auto& a = ir::attrs<ir::LoopAttrs>(node);
  const auto carries = static_cast<size_t>(a.carries);
  const auto rows = static_cast<size_t>(a.rows);
  Arrays out(a.body->outputs.size());
  for (size_t i = carries; i < out.size(); ++i) {
    const ir::Type type = ir::result_type(node, static_cast<int>(i));
    out[i] = {type.dtype, type.sizes()};
  }
  std::vector<Arrays> parts(static_cast<size_t>(a.turns));
  Arrays now(x.begin(), x.begin() + a.carries);
  for (int64_t turn = 0; turn < a.turns; ++turn) {
    const int64_t number = a.backwards ? a.turns - 1 - turn : turn;
    Array counter{DType::I64, {}};
    counter.elements = {integer(DType::I64, number)};
    Arrays arguments = {counter};
    arguments.insert(arguments.end(), now.begin(), now.end());
    for (size_t i = carries; i < carries + rows; ++i) {
      const auto row = row_of(x[i], number);
      if (!row) return std::nullopt;
      arguments.push_back(*row);
    }
    arguments.insert(arguments.end(),
                     x.begin() + static_cast<ptrdiff_t>(carries + rows),
                     x.end());
    auto next = place(*a.body, std::move(arguments));
    if (!next) return std::nullopt;
    for (size_t i = 0; i < carries; ++i) now[i] = (*next)[i];
    parts[static_cast<size_t>(number)] = *std::move(next);
  }
  for (size_t i = 0; i < out.size(); ++i) {
    if (i < carries) {
      out[i] = now[i];
      continue;
    }
    for (Arrays& turn : parts) {
      Array& part = turn[i];
      if (!load(part) || part.space != parts[0][i].space) return std::nullopt;
      out[i].elements.insert(out[i].elements.end(), part.elements.begin(),
                             part.elements.end());
    }
    for (int axis : parts[0][i].space) out[i].space.push_back(axis + 1);
    if (!is_small(out[i])) return std::nullopt;
  }
  return out;
}

/// One row of an array.
Unroller::Found Unroller::row_of(Array array, int64_t number) {
  if (!load(array)) return std::nullopt;
  Array out{array.dtype, {array.shape.begin() + 1, array.shape.end()}};
  for (int axis : array.space) {
    if (axis == 0) return std::nullopt;
    out.space.push_back(axis - 1);
  }
  const int64_t n = count(out);
  const auto first = array.elements.begin() + number * n;
  out.elements.assign(first, first + n);
  return out;
}

// ---- memory ----------------------------------------------------------------

int64_t Unroller::version_in(const Versions& versions, const Array& array) {
  const auto found = versions.find(array.memory->argument);
  return found == versions.end() ? 0 : found->second;
}

/// Whether memory has this state of a held array, but for its writes.
bool Unroller::is_current(const Array& array) const {
  return !array.held || array.version == version_in(versions_, array);
}

/// Memory gets another state, which the array is.
void Unroller::renew(Array& array) {
  array.version = ++versions_[array.memory->argument];
}

Turns::Put Unroller::put_of(const Array& array, const HeldWrite& write) const {
  return {.store = {array.memory->argument, own_part(array), write.value},
          .index = write.place,
          .stride = 1,
          .condition = write.condition,
          .held = true};
}

/// Appends turns to those that are being placed.
int Unroller::add_turns(Turns turns) {
  turns.parent = loop_;
  turns.guard = guard_;
  nest_.inner.push_back(std::move(turns));
  return static_cast<int>(nest_.inner.size()) - 1;
}

ExprId Unroller::take_turns(int loop) {
  return fresh({.kind = Expr::Kind::turns, .dtype = DType::I64, .loop = loop});
}

/// Puts what is still to be written where it belongs.
bool Unroller::flush(Array& array) {
  if (!is_current(array)) return false;
  if (array.writes.empty()) return true;
  Turns once{.count = 1, .carries = {}};
  for (const HeldWrite& write : array.writes)
    once.puts.push_back(put_of(array, write));
  take_turns(add_turns(std::move(once)));
  array.writes.clear();
  renew(array);
  return true;
}

/// Copies an array without axes of the space into a held one without writes,
/// from element `first` on.
bool Unroller::put_at(Array& to, int64_t first, Array from) {
  const int64_t n = product(from.shape);
  if (!from.space.empty() || !nest_.extents.empty() ||
      n > tuning().most_copied_elements || (from.memory && from.memory->view) ||
      (from.held && !flush(from)))
    return false;
  const bool is_in_registers = !from.uniform && !from.memory;
  const int64_t turns = is_in_registers ? 0 : n / tuning().copied_at_once;
  // Places `number` + 0, 1, ... of what is copied.
  auto put = [&](int loop, ExprId number, int64_t count) {
    for (int64_t e = 0; e < count; ++e) {
      const ExprId place = operation(Op::add, DType::I64, DType::I64,
                                     {number, integer(DType::I64, e)});
      const ExprId value = is_in_registers
                               ? from.elements[static_cast<size_t>(e)]
                           : from.uniform ? from.elements[0]
                                          : element_of(from, place, n);
      std::vector<Turns::Put>& puts = nest_.turns_of(loop).puts;
      puts.push_back(put_of(to, {place, value}));
      puts.back().store.at.constant += first;
    }
  };
  const ExprId start = integer(DType::I64, 0);
  if (turns > 0) {
    const int loop = add_turns({.count = turns, .carries = {}});
    const int outer = std::exchange(loop_, loop);
    const ExprId number = add_carry(start, DType::I64);
    set_range(number, 0, (turns - 1) * tuning().copied_at_once);
    nest_.turns_of(loop).carries[0].next =
        operation(Op::add, DType::I64, DType::I64,
                  {number, integer(DType::I64, tuning().copied_at_once)});
    put(loop, number, tuning().copied_at_once);
    loop_ = outer;
    take_turns(loop);
  }
  const int64_t done = turns * tuning().copied_at_once;
  if (done < n) {
    const int loop = add_turns({.count = 1, .carries = {}});
    put(loop, integer(DType::I64, done), n - done);
    take_turns(loop);
  }
  renew(to);
  return true;
}

/// Element `place` of `n` of an array in memory.
ExprId Unroller::element_of(const Array& array, ExprId place, int64_t n) {
  if (array.held) return held_element(array, place);
  Expr expr{.kind = Expr::Kind::gather,
            .dtype = array.dtype,
            .argument = array.memory->argument,
            .at = constant_affine(0, 0),
            .operands = array.memory->base,
            .indexed = array.memory->base_axes};
  expr.operands.push_back(place);
  expr.indexed.push_back({n, 1, true});
  return intern(std::move(expr));
}

/// A held array of memory of its own, in a loop with others in it.
Unroller::Found Unroller::scratch(DType dtype, std::vector<int64_t> shape) {
  const int64_t n = product(shape);
  if (!scratch_ || !nest_.extents.empty() || n == 0 ||
      n > tuning().most_copied_elements)
    return std::nullopt;
  Array out{dtype, std::move(shape)};
  out.memory = MemoryPlace{scratch_(dtype, n)};
  out.held = true;
  return out;
}

/// Makes an array without axes of the space a held one, by a copy.
bool Unroller::to_memory(Array& array) {
  auto out = scratch(array.dtype, array.shape);
  if (!out || !put_at(*out, 0, array)) return false;
  array = *std::move(out);
  return true;
}

bool Unroller::replace_held(std::span<const Array> carried,
                            std::span<Array> given) {
  auto is_moved = [&](size_t i) {
    const Array &to = carried[i], &from = given[i];
    return to.held && (from.uniform || from.memory) &&
           !(from.held && from.memory->argument == to.memory->argument);
  };
  auto is_carried = [&](const Array& array) {
    return std::ranges::any_of(carried, [&](const Array& other) {
      return other.held && other.memory->argument == array.memory->argument;
    });
  };
  for (size_t i = 0; i < given.size(); ++i) {
    if (!is_moved(i) || is_small(given[i])) continue;
    if (given[i].held && is_carried(given[i]) && !to_memory(given[i]))
      return false;
  }
  for (size_t i = 0; i < given.size(); ++i) {
    if (!is_moved(i) || is_small(given[i])) continue;
    Array place = carried[i];
    place.version = version_in(versions_, place);
    if (!put_at(place, 0, given[i])) return false;
    given[i] = std::move(place);
  }
  return true;
}

// ---- turns inside turns ----------------------------------------------------

/// A carry of the turns that are being placed.
ExprId Unroller::add_carry(ExprId first, DType dtype) {
  std::vector<Turns::Carry>& carries = nest_.turns_of(loop_).carries;
  carries.push_back({first, -1, dtype});
  return fresh({.kind = Expr::Kind::carried,
                .dtype = dtype,
                .carry = static_cast<int>(carries.size()) - 1,
                .loop = loop_});
}

/// What a turn reads of an operand: its row.
Unroller::Found Unroller::row_at(Array array, ExprId number, int64_t turns) {
  Array out{array.dtype, {array.shape.begin() + 1, array.shape.end()}};
  const int64_t n = product(out.shape);
  if (array.memory && !array.held) {
    out.memory = array.memory;
    int64_t stride = n;
    if (auto& view = out.memory->view) {
      stride = view->strides[0];
      view->strides.erase(view->strides.begin());
    }
    out.memory->base.push_back(number);
    out.memory->base_axes.push_back({turns, stride, true});
    return out;
  }
  if (!array.held && !to_memory(array)) return std::nullopt;
  if (!array.space.empty() || !is_small(out) || !is_current(array))
    return std::nullopt;
  const ExprId start = operation(Op::mul, DType::I64, DType::I64,
                                 {number, integer(DType::I64, n)});
  for (int64_t e = 0; e < n; ++e)
    out.elements.push_back(
        held_element(array, operation(Op::add, DType::I64, DType::I64,
                                      {start, integer(DType::I64, e)})));
  return out;
}

/// What the condition says of the values that counters have in the body.
void Unroller::note_counters(const Graph& body, ExprId condition, int loop,
                             const std::vector<ExprId>& scalars) {
  const Expr test = nest_.exprs[condition];
  if (test.kind != Expr::Kind::operation) return;
  if (test.op == Op::bit_and) {
    for (const ExprId part : test.operands)
      note_counters(body, part, loop, scalars);
    return;
  }
  const bool less = test.op == Op::lt || test.op == Op::le,
             more = test.op == Op::gt || test.op == Op::ge;
  if (!(less || more) || !is_integer(test.operand_dtype)) return;
  const bool strict = test.op == Op::lt || test.op == Op::gt;
  for (const int i : {0, 1}) {
    const ExprId counter = test.operands[i];
    const auto at = std::ranges::find(scalars, counter);
    const auto bound = range_of(test.operands[1 - i]);
    if (at == scalars.end() || !bound) continue;
    const auto carry = static_cast<size_t>(at - scalars.begin());
    const int64_t step = step_of(body, carry);
    const bool rises = less == (i == 0);
    const Expr& expr = nest_.exprs[counter];
    const Turns& turns = nest_.inner[static_cast<size_t>(loop)];
    const auto first =
        range_of(turns.carries[static_cast<size_t>(expr.carry)].first);
    if (!first || step == 0 || (step > 0) != rises) continue;
    IntegerRange range = rises ? IntegerRange(first->first, bound->second)
                               : IntegerRange(bound->first, first->second);
    if (strict && range.first >= range.second) continue;
    if (strict && rises) --range.second;
    if (strict && !rises) ++range.first;
    // It does not wrap on its way.
    const IntegerRange steps(step, step);
    if (range.first > range.second ||
        !range_of_result(Op::add, expr.dtype, std::array{range, steps}))
      continue;
    ranges_[counter] = range;
  }
}

/// What a loop of `node` has of its own while it is placed.
struct Unroller::InnerLoop {
  const LoopAttrs& a;
  size_t carries, rows;
  int loop = -1;
  ExprId number = -1;
  std::vector<Array> carried = {};
  std::vector<Array> stacks = {};
  std::vector<std::pair<size_t, size_t>> own = {};  // by carry: first, count
};

/// Brings the carries' first values where they are to be.
bool Unroller::begin_carries(Arrays& x, size_t carries) {
  for (size_t i = 0; i < carries; ++i) {
    if (!x[i].held && !load(x[i]) && !to_memory(x[i])) return false;
    if (count(x[i]) == 0 || (x[i].held && !flush(x[i]))) return false;
  }
  // Other states of the same memory are none from here on.
  for (size_t i = 0; i < carries; ++i) {
    if (!x[i].held) continue;
    if (!is_current(x[i])) return false;
    renew(x[i]);
  }
  return true;
}

/// A loop of many turns, or of nobody knows how many.
std::optional<Unroller::Arrays> Unroller::inner_turns(const Node& node,
                                                      Arrays x) {
  const auto& a = ir::attrs<LoopAttrs>(node);
  InnerLoop inner{a, static_cast<size_t>(a.carries),
                  static_cast<size_t>(a.rows)};
  for (size_t i = inner.carries; i < a.body->outputs.size(); ++i) {
    const ir::Type type = ir::result_type(node, static_cast<int>(i));
    auto stack = scratch(type.dtype, type.sizes());
    if (!stack) return std::nullopt;
    inner.stacks.push_back(*std::move(stack));
  }
  if (!begin_carries(x, inner.carries)) return std::nullopt;
  const ExprId start =
      integer(DType::I64, a.is_counted() && a.backwards ? a.turns - 1 : 0);
  inner.loop = add_turns({.count = a.turns, .carries = {}});
  const int outer = std::exchange(loop_, inner.loop);
  const ExprId guard = std::exchange(guard_, -1);
  const bool placed = place_inner(inner, std::move(x), start);
  loop_ = outer;
  guard_ = guard;
  if (!placed) return std::nullopt;
  const ExprId taken = take_turns(inner.loop);
  Arrays out;
  for (size_t i = 0; i < inner.carries; ++i) {
    Array array = inner.carried[i];
    for (size_t e = 0; e < array.elements.size(); ++e)
      array.elements[e] =
          fresh({.kind = Expr::Kind::turned,
                 .dtype = array.dtype,
                 .carry = static_cast<int>(inner.own[i].first + e),
                 .loop = inner.loop,
                 .operands = {taken}});
    if (array.held) renew(array);
    out.push_back(std::move(array));
  }
  for (Array& stack : inner.stacks) {
    renew(stack);
    out.push_back(std::move(stack));
  }
  return out;
}

bool Unroller::place_inner(InnerLoop& inner, Arrays x, ExprId start) {
  const LoopAttrs& a = inner.a;
  Arrays arguments;
  ExprId following = -1;
  if (a.is_counted()) {
    inner.number = add_carry(start, DType::I64);
    set_range(inner.number, 0, a.turns - 1);
    following =
        operation(Op::add, DType::I64, DType::I64,
                  {inner.number, integer(DType::I64, a.backwards ? -1 : 1)});
    nest_.turns_of(inner.loop).carries[0].next = following;
    arguments.push_back({DType::I64, {}, {}, {inner.number}});
  }
  std::vector<ExprId> scalars(inner.carries, -1);
  for (size_t i = 0; i < inner.carries; ++i) {
    Array array = x[i];
    inner.own.emplace_back(nest_.turns_of(inner.loop).carries.size(),
                           array.elements.size());
    for (ExprId& element : array.elements)
      element = add_carry(element, array.dtype);
    if (array.elements.size() == 1) scalars[i] = array.elements[0];
    inner.carried.push_back(array);
    arguments.push_back(std::move(array));
  }
  for (size_t i = inner.carries; i < x.size(); ++i) {
    if (i >= inner.carries + inner.rows) {
      arguments.push_back(std::move(x[i]));
      continue;
    }
    auto row = row_at(std::move(x[i]), inner.number, a.turns);
    if (!row) return false;
    arguments.push_back(*std::move(row));
  }
  if (!a.is_counted()) {
    const size_t loops = nest_.inner.size();
    auto goes_on = place(*a.condition, arguments);
    if (!goes_on || nest_.inner.size() != loops) return false;
    load((*goes_on)[0]);  // a bool alone, which can be
    const ExprId condition = (*goes_on)[0].elements[0];
    nest_.turns_of(inner.loop).condition = condition;
    note_counters(*a.body, condition, inner.loop, scalars);
  }
  auto given = place(*a.body, std::move(arguments));
  return given && end_turn(inner, *std::move(given));
}

/// What a turn gives: the carries of the next one, and what it writes.
bool Unroller::end_turn(InnerLoop& inner, Arrays given) {
  for (size_t i = 0; i < inner.carries; ++i) {
    if (inner.carried[i].held) continue;
    if (!load(given[i]) || given[i].space != inner.carried[i].space)
      return false;
    for (size_t e = 0; e < given[i].elements.size(); ++e)
      nest_.turns_of(inner.loop).carries[inner.own[i].first + e].next =
          given[i].elements[e];
  }
  for (size_t k = 0; k < inner.stacks.size(); ++k)
    if (!add_stack(inner, inner.stacks[k], std::move(given[inner.carries + k])))
      return false;
  given.resize(inner.carries);
  if (!replace_held(inner.carried, given)) return false;
  std::vector<int> written;
  for (const Array& array : inner.carried)
    if (array.held) written.push_back(array.memory->argument);
  for (size_t i = 0; i < inner.carries; ++i) {
    const Array& array = inner.carried[i];
    if (!array.held) continue;
    const auto writes = writes_to(array, std::move(given[i]));
    if (!writes) return false;
    if (inner.a.is_counted())
      carry_reads(array, *writes,
                  {inner.number, inner.a.backwards ? inner.a.turns - 1 : 0,
                   inner.a.backwards ? -1 : 1},
                  written, array.memory->argument);
    for (const HeldWrite& write : *writes)
      nest_.turns_of(inner.loop).puts.push_back(put_of(array, write));
  }
  return true;
}

/// The part of a stack that a turn gives. There are no axes of the space where
/// there are stacks.
bool Unroller::add_stack(InnerLoop& inner, Array& stack, Array part) {
  if (!load(part)) return false;
  const auto n = static_cast<int64_t>(part.elements.size());
  const ExprId start = operation(Op::mul, DType::I64, DType::I64,
                                 {inner.number, integer(DType::I64, n)});
  for (int64_t e = 0; e < n; ++e)
    nest_.turns_of(inner.loop)
        .puts.push_back(
            put_of(stack, {operation(Op::add, DType::I64, DType::I64,
                                     {start, integer(DType::I64, e)}),
                           part.elements[static_cast<size_t>(e)]}));
  return true;
}

}  // namespace unisono::jit
