#include "jit/plan/native_loop.h"

#include <algorithm>
#include <cstring>
#include <tuple>
#include <utility>

#include "jit/ir/kinds.h"
#include "jit/plan/unroll.h"
#include "runtime/tuning/tuning.h"

namespace unisono::jit {
namespace {

using ir::Graph;
using ir::LoopAttrs;
using ir::Node;
using ir::NodeId;
using ir::Op;
using Extents = std::vector<int64_t>;

int64_t points_of(const Extents& extents) {
  int64_t out = 1;
  for (int64_t extent : extents) out *= extent;
  return out;
}

bool begins_with(const ir::Type& type, const Extents& extents) {
  const Extents sizes = type.sizes();
  return sizes.size() >= extents.size() &&
         std::equal(extents.begin(), extents.end(), sizes.begin());
}

/// `any_loop`: there may be others than short counted ones.
bool is_plain(const Graph& graph, bool any_loop, size_t& nodes) {
  nodes += graph.nodes.size();
  if (nodes > tuning().most_native_nodes) return false;
  return std::ranges::all_of(graph.nodes, [&](const Node& node) {
    switch (ir::kind(node.op)) {
      case ir::Kind::map:
      case ir::Kind::move:
      case ir::Kind::source:
      case ir::Kind::index:
      case ir::Kind::reduce:
      case ir::Kind::dot: return true;
      case ir::Kind::control:
        if (const auto* a = std::get_if<ir::IfAttrs>(&node.attrs))
          return is_plain(*a->then_graph, any_loop, nodes) &&
                 is_plain(*a->else_graph, any_loop, nodes);
        if (const auto* a = std::get_if<LoopAttrs>(&node.attrs))
          return is_plain(*a->body, any_loop, nodes) &&
                 (a->is_counted() ||
                  (any_loop && is_plain(*a->condition, any_loop, nodes)));
        return true;
      case ir::Kind::argreduce:
      case ir::Kind::scan:
      case ir::Kind::sort:
      case ir::Kind::collective:
      case ir::Kind::host: return false;
    }
    __builtin_unreachable();
  });
}

/// The kernel in the making.
class LoopMaker {
 public:
  LoopMaker(const Graph& graph, const Node& loop, const LoopPlaces& places,
            bool checked, const Machine& machine)
      : graph_(graph),
        loop_(loop),
        a_(ir::attrs<LoopAttrs>(loop)),
        places_(places),
        checked_(checked),
        carries_(static_cast<size_t>(a_.carries)),
        has_others_(machine.stops_kernels && has_long_loop(*a_.body)) {
    if (!a_.is_counted()) known_ = known_turns(graph, loop);
  }

  std::optional<NativeLoop> make();

 private:
  std::vector<Extents> spaces(const std::vector<size_t>& results) const;
  bool add_nest(const Extents& space, const std::vector<size_t>& results,
                bool with_checks);
  bool try_nest(const Extents& space, const std::vector<size_t>& results,
                bool with_checks, int64_t most_in_registers);
  bool add_held_result(Unroller& at, size_t carry, PointArray value);
  std::vector<bool> needed_nodes(const std::vector<size_t>& results,
                                 bool with_checks) const;
  bool add_carries(Unroller& at, std::vector<PointArray>& arguments);
  void add_operands(std::vector<PointArray>& arguments);
  bool add_condition(Unroller& at, const std::vector<PointArray>& arguments);
  bool add_results(Unroller& at, const std::vector<size_t>& results,
                   std::vector<PointArray> given);
  ExprId first_value(Unroller& at, size_t carry, const PointArray& array,
                     int64_t element);
  int argument(BufferId buffer, DType dtype);
  bool touches_much() const;
  bool fails_anywhere() const;
  bool is_held(size_t result) const {
    return std::ranges::find(held_, result) != held_.end();
  }
  int64_t turns() const {
    return a_.is_counted() ? a_.turns : known_ ? known_->count : -1;
  }
  /// Of a result, or of a turn's part of it.
  const ir::Type& part_type(size_t i) const {
    return a_.body->type(a_.body->outputs[i]);
  }

  const Graph& graph_;
  const Node& loop_;
  const LoopAttrs& a_;
  const LoopPlaces& places_;
  const bool checked_;
  const size_t carries_;
  const bool has_others_;  // loops inside that are not written out
  std::optional<KnownTurns> known_;
  Kernel kernel_;
  // Of the nest in the making.
  Nest nest_;
  std::vector<bool> needed_;  // nodes of the body
  std::vector<std::pair<size_t, size_t>>
      own_;  // by carry: the nest's, how many
  ExprId number_ = -1;
  std::vector<PointArray> carried_;
  int64_t most_in_registers_ = 0;  // elements of a carry
  std::vector<size_t> held_;       // carries
};

std::optional<NativeLoop> LoopMaker::make() {
  std::vector<size_t> left;
  for (size_t i = 0; i < places_.results.size(); ++i)
    if (places_.wanted[i]) left.push_back(i);
  bool first = true;
  while (first || !left.empty()) {
    bool placed = false;
    for (const Extents& space : spaces(left)) {
      std::vector<size_t> fitting, others;
      for (size_t i : left)
        (begins_with(part_type(i), space) ? fitting : others).push_back(i);
      if (!add_nest(space, fitting, first)) continue;
      if (!held_.empty() && !(first && others.empty())) {
        // Others would see what it has written.
        kernel_ = {};
        if (!first) return std::nullopt;
        continue;
      }
      left = std::move(others);
      placed = true;
      break;
    }
    if (!placed) return std::nullopt;
    first = false;
  }
  drop_arguments(kernel_);
  return NativeLoop{std::move(kernel_), std::move(held_)};
}

/// The spaces to try: what the results begin with, those first that are most
/// results', and the empty one.
std::vector<Extents> LoopMaker::spaces(
    const std::vector<size_t>& results) const {
  std::vector<Extents> out;
  for (size_t i : results) {
    for (Extents space = part_type(i).sizes(); !space.empty(); space.pop_back())
      if (points_of(space) > 1 && std::ranges::find(out, space) == out.end())
        out.push_back(space);
  }
  auto covered = [&](const Extents& space) {
    return std::ranges::count_if(
        results, [&](size_t i) { return begins_with(part_type(i), space); });
  };
  std::ranges::sort(out, [&](const Extents& p, const Extents& q) {
    return std::tuple(covered(p), points_of(p), p) >
           std::tuple(covered(q), points_of(q), q);
  });
  const bool tiny =
      !out.empty() && points_of(out[0]) < tuning().few_native_points;
  out.insert(tiny ? out.begin() : out.end(), Extents());
  return out;
}

/// The nodes of the body that these results need, of carries in all turns.
std::vector<bool> LoopMaker::needed_nodes(const std::vector<size_t>& results,
                                          bool with_checks) const {
  const Graph& body = *a_.body;
  std::vector<bool> needed(body.nodes.size());
  for (size_t i : results) needed[body.outputs[i]] = true;
  if (with_checks && checked_)
    for (size_t i = 0; i < body.nodes.size(); ++i)
      if (ir::must_stay(body, body.nodes[i])) needed[i] = true;
  if (turns() < 0) {
    // All carries that the condition reads; it has the same parameters.
    for (const Node& node : a_.condition->nodes)
      for (NodeId operand : node.inputs)
        if (operand < static_cast<NodeId>(carries_)) needed[operand] = true;
    for (NodeId output : a_.condition->outputs)
      if (output < static_cast<NodeId>(carries_)) needed[output] = true;
  }
  for (size_t i : results)
    if (i < carries_) needed[body.inputs[a_.parameter(i)]] = true;
  for (bool grows = true; grows;) {
    grows = false;
    for (size_t i = body.nodes.size(); i-- > 0;)
      if (needed[i])
        for (NodeId operand : body.nodes[i].inputs) needed[operand] = true;
    for (size_t c = 0; c < carries_; ++c) {
      if (!needed[body.inputs[a_.parameter(c)]] || needed[body.outputs[c]])
        continue;
      needed[body.outputs[c]] = true;
      grows = true;
    }
  }
  return needed;
}

/// The argument of a buffer, which has one type.
int LoopMaker::argument(BufferId buffer, DType dtype) {
  auto& all = kernel_.arguments;
  for (size_t i = 0; i < all.size(); ++i)
    if (all[i].buffer == buffer) return static_cast<int>(i);
  all.push_back({buffer, dtype, false});
  return static_cast<int>(all.size()) - 1;
}

/// A carry's element before the loop.
ExprId LoopMaker::first_value(Unroller& at, size_t carry,
                              const PointArray& array, int64_t element) {
  const Node& operand = graph_[loop_.inputs[carry]];
  if (operand.op == Op::constant) {
    const auto& bytes = ir::attrs<ir::ConstantAttrs>(operand).bytes;
    const auto size = static_cast<size_t>(byte_size(array.dtype));
    if (bytes.size() == size) {
      uint64_t bits = 0;
      std::memcpy(&bits, bytes.data(), size);  // little endian
      return at.constant(array.dtype, bits);
    }
  }
  return at.fresh({.kind = Expr::Kind::load,
                   .dtype = array.dtype,
                   .argument = argument(places_.operands[carry], array.dtype),
                   .at = at.offset(array, element)});
}

bool LoopMaker::add_carries(Unroller& at, std::vector<PointArray>& arguments) {
  Turns& turns = *nest_.turns;
  auto carry = [&](ExprId first, DType dtype) {
    turns.carries.push_back({first, -1, dtype});
    return at.fresh({.kind = Expr::Kind::carried,
                     .dtype = dtype,
                     .carry = static_cast<int>(turns.carries.size()) - 1});
  };
  own_.assign(carries_, {0, 0});
  for (size_t c = 0; c < carries_; ++c) {
    const NodeId parameter = a_.body->inputs[a_.parameter(c)];
    PointArray array = at.shaped(a_.body->type(parameter));
    if (needed_[parameter]) {
      if (at.count(array) == 0) return false;
      if (at.count(array) > most_in_registers_) {
        array.memory = MemoryPlace{argument(places_.results[c], array.dtype)};
        array.held = true;
        held_.push_back(c);
        arguments.push_back(std::move(array));
        continue;
      }
      std::vector<ExprId> first;
      for (int64_t e = 0; e < at.count(array); ++e)
        first.push_back(first_value(at, c, array, e));
      own_[c] = {turns.carries.size(), first.size()};
      for (ExprId value : first)
        array.elements.push_back(carry(value, array.dtype));
      if (known_ && static_cast<size_t>(known_->counter) == c)
        at.set_range(array.elements[0], known_->first, known_->last);
    }
    arguments.push_back(std::move(array));
  }
  return true;
}

/// Rows and captures, which stay in memory until they are read.
void LoopMaker::add_operands(std::vector<PointArray>& arguments) {
  for (size_t i = carries_; i < loop_.inputs.size(); ++i) {
    const ir::Type& type = a_.body->type(a_.body->inputs[a_.parameter(i)]);
    PointArray array{type.dtype, type.sizes()};
    MemoryPlace place{argument(places_.operands[i], type.dtype)};
    place.range = places_.ranges[i];
    if (i < carries_ + static_cast<size_t>(a_.rows)) {
      place.base = {number_};
      place.base_axes = {{a_.turns, type.elements(), true}};
    }
    array.memory = std::move(place);
    arguments.push_back(std::move(array));
  }
}

bool LoopMaker::add_condition(Unroller& at,
                              const std::vector<PointArray>& arguments) {
  auto goes_on = at.place(*a_.condition, arguments);
  if (!goes_on || !nest_.inner.empty()) return false;
  at.settle((*goes_on)[0]);  // a bool alone, which can be
  nest_.turns->condition = (*goes_on)[0].elements[0];
  return true;
}

bool LoopMaker::add_results(Unroller& at, const std::vector<size_t>& results,
                            std::vector<PointArray> given) {
  Turns& turns = *nest_.turns;
  for (size_t i = 0; i < given.size(); ++i) {
    const bool wanted = std::ranges::find(results, i) != results.end();
    const bool is_carry = i < carries_;
    if (!wanted && !is_held(i) && !(is_carry && own_[i].second > 0)) continue;
    if (is_held(i)) continue;
    PointArray& value = given[i];
    const PointArray place = at.shaped(part_type(i));
    if (!at.settle(value) || value.space != place.space) return false;
    const int to = wanted ? argument(places_.results[i], value.dtype) : -1;
    const int64_t stride = part_type(i).elements();
    for (size_t e = 0; e < value.elements.size(); ++e) {
      const Affine offset = at.offset(place, static_cast<int64_t>(e));
      if (is_carry) {
        turns.carries[own_[i].first + e].next = value.elements[e];
        if (wanted)
          nest_.stores.push_back({to, offset, carried_[i].elements[e]});
      } else {
        turns.puts.push_back(
            {{to, offset, value.elements[e]}, number_, stride});
      }
    }
  }
  // What is in memory changes when all else has been read.
  given.resize(carries_);
  if (has_others_ && !at.replace_held(carried_, given)) return false;
  for (const size_t i : held_)
    if (!add_held_result(at, i, std::move(given[i]))) return false;
  return true;
}

/// What a turn writes of a carry in memory.
bool LoopMaker::add_held_result(Unroller& at, size_t carry, PointArray value) {
  const PointArray& array = carried_[carry];
  auto writes = at.writes_to(array, std::move(value));
  if (!writes) return false;
  if (a_.is_counted()) {
    std::vector<int> written;
    for (const PointArray& other : carried_)
      if (other.held) written.push_back(other.memory->argument);
    // The same memory, but for what it has before the turns.
    const auto before = static_cast<int>(kernel_.arguments.size());
    kernel_.arguments.push_back(
        {places_.results[carry], array.dtype, /*written=*/false});
    at.carry_reads(
        array, *writes,
        {number_, a_.backwards ? a_.turns - 1 : 0, a_.backwards ? -1 : 1},
        written, before);
  }
  for (const HeldWrite& write : *writes)
    nest_.turns->puts.push_back(
        {.store = {array.memory->argument, at.offset(array, 0), write.value},
         .index = write.place,
         .stride = 1,
         .condition = write.condition,
         .held = true});
  return true;
}

/// Whether turns read or write elements of each of many points.
bool LoopMaker::touches_much() const {
  if (nest_.points() < tuning().many_native_points) return false;
  auto is_spread = [](const Affine& at) {
    return std::ranges::any_of(at.factors, [](int64_t f) { return f != 0; });
  };
  const std::vector<bool> inside = carried_expressions(nest_);
  for (size_t e = 0; e < nest_.exprs.size(); ++e)
    if (inside[e] && nest_.exprs[e].argument >= 0 &&
        is_spread(nest_.exprs[e].at))
      return true;
  return std::ranges::any_of(nest_.turns->puts, [&](const Turns::Put& put) {
    return is_spread(put.store.at);
  });
}

/// Whether elements may fail that are no members: of these the first turn's
/// error counts, which points that take their turns apart do not find.
bool LoopMaker::fails_anywhere() const {
  for (size_t axis = 0; axis < nest_.extents.size(); ++axis) {
    const std::vector<bool> varying =
        varying_expressions(nest_, static_cast<int>(axis));
    for (size_t e = 0; e < nest_.exprs.size(); ++e)
      if (varying[e] && nest_.exprs[e].checked &&
          nest_.exprs[e].member.per_member == 0)
        return true;
  }
  return false;
}

bool LoopMaker::add_nest(const Extents& space,
                         const std::vector<size_t>& results, bool with_checks) {
  // An array of which an index picks elements is better off in memory.
  return try_nest(space, results, with_checks, tuning().most_native_carried) ||
         try_nest(space, results, with_checks, 1);
}

bool LoopMaker::try_nest(const Extents& space,
                         const std::vector<size_t>& results, bool with_checks,
                         int64_t most_in_registers) {
  most_in_registers_ = most_in_registers;
  held_.clear();
  needed_ = needed_nodes(results, with_checks);
  nest_ = Nest{.extents = space,
               .reduced = std::vector<bool>(space.size(), false),
               .exprs = {}};
  nest_.turns = Turns{.count = turns(), .carries = {}};
  Unroller::Scratch scratch;
  if (has_others_)
    scratch = [&](DType dtype, int64_t elements) {
      const BufferId buffer = places_.scratch(elements * byte_size(dtype));
      return argument(buffer, dtype);
    };
  Unroller at(nest_, checked_, std::move(scratch));
  std::vector<PointArray> arguments;
  if (a_.is_counted()) {
    const ExprId first =
        at.integer(DType::I64, a_.backwards ? a_.turns - 1 : 0);
    nest_.turns->carries.push_back({first, -1, DType::I64});
    number_ = at.fresh(
        {.kind = Expr::Kind::carried, .dtype = DType::I64, .carry = 0});
    at.set_range(number_, 0, std::max<int64_t>(a_.turns - 1, 0));
    nest_.turns->carries[0].next =
        at.operation(Op::add, DType::I64, DType::I64,
                     {number_, at.integer(DType::I64, a_.backwards ? -1 : 1)});
    PointArray number{DType::I64, {}};
    number.elements = {number_};
    arguments.push_back(std::move(number));
  }
  if (!add_carries(at, arguments)) return false;
  carried_.assign(arguments.end() - static_cast<ptrdiff_t>(carries_),
                  arguments.end());
  add_operands(arguments);
  if (turns() < 0 && !add_condition(at, arguments)) return false;
  auto given = at.place(*a_.body, std::move(arguments), &needed_);
  if (!given || !add_results(at, results, *std::move(given))) return false;
  prune(nest_, std::vector<bool>(nest_.exprs.size(), true));
  if (touches_much() || fails_anywhere()) return false;
  kernel_.nests.push_back(std::move(nest_));
  return true;
}

}  // namespace

bool may_be_native(const Graph& graph, const Node& loop,
                   const Machine& machine) {
  const auto& a = ir::attrs<LoopAttrs>(loop);
  size_t nodes = 0;
  const bool any_loop = machine.stops_kernels;
  if (!is_plain(*a.body, any_loop, nodes)) return false;
  if (!a.is_counted() && !is_plain(*a.condition, any_loop, nodes)) return false;
  if (machine.stops_kernels) return true;
  int64_t turns = a.turns;
  if (!a.is_counted()) {
    const auto known = known_turns(graph, loop);
    turns = known ? known->count : -1;
  }
  return turns >= 1 && turns <= tuning().most_native_turns &&
         turns * static_cast<int64_t>(nodes) <= tuning().most_native_operations;
}

std::optional<NativeLoop> native_loop(const Graph& graph, const Node& loop,
                                      const LoopPlaces& places, bool checked,
                                      const Machine& machine) {
  auto made = LoopMaker(graph, loop, places, checked, machine).make();
  if (!made || machine.stops_kernels) return made;
  // A check that fails ends all turns, which a thread alone cannot.
  for (const Nest& nest : made->kernel.nests)
    for (const Expr& expr : nest.exprs)
      if (expr.checked) return std::nullopt;
  return made;
}

}  // namespace unisono::jit
