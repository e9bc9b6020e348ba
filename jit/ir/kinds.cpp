#include "jit/ir/kinds.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "jit/ir/routines.h"
#include "runtime/check.h"

namespace unisono::ir {
namespace {

template <DType D>
typename ComputeOf<D>::type extreme(bool highest) {
  using T = typename ComputeOf<D>::type;
  if constexpr (std::is_floating_point_v<T>) {
    const T infinity = std::numeric_limits<T>::infinity();
    return highest ? infinity : -infinity;
  } else {
    return highest ? std::numeric_limits<T>::max()
                   : std::numeric_limits<T>::min();
  }
}

}  // namespace

Op combine_op(Op op) {
  CHECK(row(op).combine);
  return *row(op).combine;
}

Op reduction_by(Op combine, DType dtype) {
  for (const Row& r : all_rows())
    if (r.kind == Kind::reduce && r.combine == combine &&
        admits(r.types, dtype))
      return r.op;
  check_failed("an operation that a reduction combines by", __FILE__, __LINE__);
}

std::vector<uint8_t> identity_element(Op op, DType dtype) {
  CHECK(row(op).identity);
  const Identity identity = *row(op).identity;
  return with_dtype(dtype, [&]<DType D>() {
    using T = typename ComputeOf<D>::type;
    T value{};
    switch (identity) {
      case Identity::zero: value = T(0); break;
      case Identity::one: value = T(1); break;
      case Identity::lowest: value = extreme<D>(false); break;
      case Identity::highest: value = extreme<D>(true); break;
    }
    const auto stored = static_cast<typename StorageOf<D>::type>(value);
    const auto* bytes = reinterpret_cast<const uint8_t*>(&stored);
    return std::vector<uint8_t>(bytes, bytes + sizeof stored);
  });
}

bool admits(Op op, DType dtype) { return admits(row(op).types, dtype); }

int result_count(const Node& node) {
  if (const auto* a = std::get_if<IfAttrs>(&node.attrs))
    return static_cast<int>(a->then_graph->outputs.size());
  if (const auto* a = std::get_if<LoopAttrs>(&node.attrs))
    return static_cast<int>(a->body->outputs.size());
  if (const auto* a = std::get_if<CallAttrs>(&node.attrs))
    return static_cast<int>(a->graph->outputs.size());
  if (const auto* a = std::get_if<HostCallAttrs>(&node.attrs))
    return static_cast<int>(a->results.size());
  return 1;
}

Type result_type(const Node& node, int index) {
  CHECK(index >= 0 && index < result_count(node));
  if (const auto* a = std::get_if<IfAttrs>(&node.attrs))
    return a->then_graph->type(a->then_graph->outputs[index]);
  if (const auto* a = std::get_if<LoopAttrs>(&node.attrs)) {
    const Type& given = a->body->type(a->body->outputs[index]);
    return index < a->carries ? given : stack_type(*a, given);
  }
  if (const auto* a = std::get_if<CallAttrs>(&node.attrs))
    return a->graph->type(a->graph->outputs[index]);
  if (const auto* a = std::get_if<HostCallAttrs>(&node.attrs))
    return result_type(*a, index);
  return node.type;
}

Type stack_type(const LoopAttrs& loop, Type part) {
  part.shape.insert(part.shape.begin(), Dim(loop.turns));
  return part;
}

Type result_type(const HostCallAttrs& call, int index) {
  Type type = call.results[index];
  if (call.members > 0)
    type.shape.insert(type.shape.begin(), Dim(call.members));
  return type;
}

bool has_results(const Node& node) {
  return node.op == Op::if_else || node.op == Op::loop || node.op == Op::call ||
         node.op == Op::host_call;
}

namespace {

/// The elements of a constant as integers, at most `limit`; nothing otherwise.
/// One element that stands for all is given once.
std::optional<std::vector<int64_t>> small_integers(const Node& node,
                                                   size_t limit) {
  if (node.op != Op::constant || !is_integer(node.type.dtype))
    return std::nullopt;
  const auto& bytes = attrs<ConstantAttrs>(node).bytes;
  return with_dtype(
      node.type.dtype, [&]<DType D>() -> std::optional<std::vector<int64_t>> {
        using T = typename StorageOf<D>::type;
        if constexpr (!std::is_integral_v<T>) {
          return std::nullopt;
        } else {
          const size_t n = bytes.size() / sizeof(T);
          if (n == 0 || n > limit) return std::nullopt;
          std::vector<int64_t> out(n);
          for (size_t i = 0; i < n; ++i) {
            T value;
            std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
            if (sizeof(T) == 8 && std::is_unsigned_v<T> &&
                value > static_cast<T>(INT64_MAX))
              return std::nullopt;
            out[i] = static_cast<int64_t>(value);
          }
          return out;
        }
      });
}

/// Whether all elements are proved to lie in low ... high: of a constant, or of
/// what is cut off by one from below.
bool proved_within(const Graph& graph, NodeId id, int64_t low, int64_t high) {
  const Node* node = &graph[id];
  while (node->op == Op::broadcast || node->op == Op::reshape)
    node = &graph[node->inputs[0]];
  if (node->op == Op::maximum && high == INT64_MAX)
    return proved_within(graph, node->inputs[0], low, high) ||
           proved_within(graph, node->inputs[1], low, high);
  const auto values = small_integers(*node, 64);
  if (!values) return false;
  for (int64_t v : *values)
    if (v < low || v > high) return false;
  return true;
}

bool may_fail(const Graph& graph, const Node& node) {
  switch (row(node.op).check) {
    case Check::none: return false;
    case Check::divisor:
      return is_integer(node.type.dtype) &&
             !proved_within(graph, node.inputs[1], 1, INT64_MAX) &&
             !proved_within(graph, node.inputs[1], INT64_MIN, -1);
    case Check::exponent:
      return is_signed(node.type.dtype) &&
             !proved_within(graph, node.inputs[1], 0, INT64_MAX);
    case Check::index: {
      const auto& a = attrs<IndexAttrs>(node);
      if (!a.checked) return false;
      const Type& x = graph.type(node.inputs[0]);
      const size_t first = node.inputs.size() - a.axes.size();
      for (size_t i = 0; i < a.axes.size(); ++i) {
        const Dim& size = x.shape[a.axes[i]];
        if (!size.is_constant() ||
            !proved_within(graph, node.inputs[first + i], -size.value(),
                           size.value() - 1))
          return true;
      }
      return false;
    }
  }
  __builtin_unreachable();
}

bool any_must_stay(const Graph& graph) {
  for (const Node& node : graph.nodes)
    if (must_stay(graph, node)) return true;
  return false;
}

/// Whether a condition of `loop` (a node of its graph) becomes false: each turn
/// brings a carry nearer by one to a bound that turns do not change.
bool becomes_false(const LoopAttrs& loop, NodeId id) {
  const Graph &condition = *loop.condition, &body = *loop.body;
  const Node& test = condition[id];
  if (test.op == Op::bit_and)
    return becomes_false(loop, test.inputs[0]) ||
           becomes_false(loop, test.inputs[1]);
  if (test.op != Op::lt && test.op != Op::gt) return false;
  const auto parameter_of = [](const Graph& graph, NodeId at) {
    return std::ranges::find(graph.inputs, at) - graph.inputs.begin();
  };
  const auto carries = static_cast<ptrdiff_t>(loop.carries);
  const auto changes = [&](ptrdiff_t parameter) {
    return parameter < carries &&
           body.outputs[parameter] != body.inputs[parameter];
  };
  for (const int side : {0, 1}) {
    const ptrdiff_t carry = parameter_of(condition, test.inputs[side]);
    const NodeId bound = test.inputs[1 - side];
    const ptrdiff_t given = parameter_of(condition, bound);
    const bool is_fixed = given < std::ssize(condition.inputs)
                              ? !changes(given)
                              : condition[bound].op == Op::constant;
    if (!is_fixed || carry >= carries) continue;
    const Node& next = body[body.outputs[carry]];
    const int64_t step = (test.op == Op::lt) == (side == 0) ? 1 : -1;
    for (const int own : {0, 1})
      if (next.op == Op::add && parameter_of(body, next.inputs[own]) == carry &&
          proved_within(body, next.inputs[1 - own], step, step))
        return true;
  }
  return false;
}

bool surely_ends(const LoopAttrs& loop) {
  return loop.is_counted() || loop.most >= 0 ||
         becomes_false(loop, loop.condition->outputs[0]);
}

}  // namespace

bool must_stay(const Graph& graph, const Node& node) {
  if (node.op == Op::host_call) return !is_routine(node);
  if (const auto* a = std::get_if<IfAttrs>(&node.attrs))
    return any_must_stay(*a->then_graph) || any_must_stay(*a->else_graph);
  if (const auto* a = std::get_if<LoopAttrs>(&node.attrs))
    return !surely_ends(*a) || (a->condition && any_must_stay(*a->condition)) ||
           any_must_stay(*a->body);
  if (const auto* a = std::get_if<CallAttrs>(&node.attrs))
    return any_must_stay(*a->graph);
  return may_fail(graph, node);
}

Dim member_count(const CollectiveAttrs& a) {
  Dim count = 1;
  for (const Dim& size : a.sizes) count = count * size;
  return count;
}

Dim team_size(const CollectiveAttrs& a) {
  if (a.groups.empty()) return member_count(a);
  return static_cast<int64_t>(a.groups[0].size());
}

bool same_for_all(const Node& collective) {
  const auto& a = attrs<CollectiveAttrs>(collective);
  if (collective.op == Op::all_reduce || collective.op == Op::all_gather)
    return a.groups.empty();
  if (collective.op != Op::permute || a.pairs.empty()) return false;
  for (const auto& [source, destination] : a.pairs)
    if (source != a.pairs[0].first) return false;
  return member_count(a) == Dim(static_cast<int64_t>(a.pairs.size()));
}

}  // namespace unisono::ir
