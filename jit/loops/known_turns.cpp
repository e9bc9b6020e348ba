#include "jit/loops/known_turns.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "runtime/check.h"

namespace unisono::jit {
namespace {

using ir::Graph;
using ir::Node;
using ir::NodeId;
using ir::Op;

/// A parameter's number, or -1.
int parameter_of(const Graph& graph, NodeId id) {
  const auto at = std::find(graph.inputs.begin(), graph.inputs.end(), id);
  return at == graph.inputs.end() ? -1
                                  : static_cast<int>(at - graph.inputs.begin());
}

class Loop {
 public:
  Loop(const Graph& outer, const Node& node)
      : outer_(outer), node_(node), attrs_(ir::attrs<ir::LoopAttrs>(node)) {}

  std::optional<KnownTurns> turns() const {
    CHECK(attrs_.condition);
    const Graph& condition = *attrs_.condition;
    const Node& test = condition[condition.outputs[0]];
    if (test.op != Op::lt && test.op != Op::gt) return std::nullopt;
    const int carry = parameter_of(condition, test.inputs[0]);
    if (carry < 0 || carry >= attrs_.carries) return std::nullopt;
    const auto stop = value(condition, test.inputs[1]);
    const auto start = constant_of(outer_, node_.inputs[carry]);
    const auto step = step_of(carry);
    if (!stop || !start || !step) return std::nullopt;
    const auto turns = count(*start, *stop, *step, test.op == Op::gt,
                             condition.type(test.inputs[0]).dtype);
    if (!turns) return std::nullopt;
    const int64_t last = *turns > 0 ? *start + (*turns - 1) * *step : *start;
    return KnownTurns{*turns, carry, std::min(*start, last),
                      std::max(*start, last)};
  }

 private:
  /// A constant of a subgraph, or a captured one.
  std::optional<int64_t> value(const Graph& graph, NodeId id) const {
    const int parameter = parameter_of(graph, id);
    if (parameter < 0) return constant_of(graph, id);
    if (parameter < attrs_.carries) return std::nullopt;
    return constant_of(outer_, node_.inputs[parameter]);
  }

  /// What a turn adds to a carry.
  std::optional<int64_t> step_of(int carry) const {
    const Graph& body = *attrs_.body;
    const Node& next = body[body.outputs[carry]];
    if (next.op != Op::add) return std::nullopt;
    for (int i = 0; i < 2; ++i)
      if (parameter_of(body, next.inputs[i]) == carry)
        return value(body, next.inputs[1 - i]);
    return std::nullopt;
  }

  static std::optional<int64_t> count(int64_t start, int64_t stop, int64_t step,
                                      bool down, DType dtype) {
    __int128 from = start, to = stop, by = step;
    if (down) from = -from, to = -to, by = -by;
    if (from >= to) return 0;
    if (by <= 0) return std::nullopt;
    const __int128 turns = (to - from + by - 1) / by;
    const __int128 last = start + turns * step;
    const __int128 top = __int128{1} << (8 * byte_size(dtype) - 1);
    if (last < -top || last >= top ||
        turns > std::numeric_limits<int64_t>::max())
      return std::nullopt;
    return static_cast<int64_t>(turns);
  }

  const Graph& outer_;
  const Node& node_;
  const ir::LoopAttrs& attrs_;
};

}  // namespace

std::optional<int64_t> constant_of(const Graph& graph, NodeId id) {
  const Node& node = graph[id];
  if (node.op != Op::constant || !node.type.shape.empty()) return std::nullopt;
  const auto& bytes = ir::attrs<ir::ConstantAttrs>(node).bytes;
  const DType dtype = node.type.dtype;
  if (!is_signed(dtype)) return std::nullopt;
  const auto size = static_cast<size_t>(byte_size(dtype));
  int64_t value = 0;
  std::memcpy(&value, bytes.data(), size);  // little endian
  const int unused = static_cast<int>(64 - 8 * size);
  return static_cast<int64_t>(static_cast<uint64_t>(value) << unused) >> unused;
}

std::optional<KnownTurns> known_turns(const Graph& graph, const Node& loop) {
  return Loop(graph, loop).turns();
}

std::optional<IntegerRange> range_of_result(Op op, DType dtype,
                                            std::span<const IntegerRange> x) {
  if (!is_integer(dtype)) return std::nullopt;
  using Wide = __int128;
  Wide low = 0, high = 0;
  if (op == Op::add) {
    low = Wide{x[0].first} + x[1].first;
    high = Wide{x[0].second} + x[1].second;
  } else if (op == Op::sub) {
    low = Wide{x[0].first} - x[1].second;
    high = Wide{x[0].second} - x[1].first;
  } else if (op == Op::mul) {
    const Wide ends[] = {
        Wide{x[0].first} * x[1].first, Wide{x[0].first} * x[1].second,
        Wide{x[0].second} * x[1].first, Wide{x[0].second} * x[1].second};
    low = *std::min_element(std::begin(ends), std::end(ends));
    high = *std::max_element(std::begin(ends), std::end(ends));
  } else if (op == Op::cast) {
    low = x[0].first, high = x[0].second;
  } else {
    return std::nullopt;
  }
  const int bits = static_cast<int>(8 * byte_size(dtype));
  const Wide top = Wide{1} << (bits - 1);
  const bool has_sign = is_signed(dtype);
  if (low < (has_sign ? -top : 0) || high >= (has_sign ? top : 2 * top) ||
      high > INT64_MAX)
    return std::nullopt;
  return IntegerRange(static_cast<int64_t>(low), static_cast<int64_t>(high));
}

}  // namespace unisono::jit
