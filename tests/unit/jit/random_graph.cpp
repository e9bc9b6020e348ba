#include "tests/unit/jit/random_graph.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "jit/ir/kinds.h"
#include "jit/scalar/element.h"
#include "tests/unit/jit/arrays.h"

namespace unisono::jit {

using ir::Attrs;
using ir::Dim;
using ir::Graph;
using ir::NodeId;
using ir::Op;
using ir::Shape;
using ir::Type;

namespace {

int64_t size_of(const Dim& d) { return d.value(); }

}  // namespace

/// Small ones, and those about the sizes of blocks, chunks and tiles.
int64_t RandomGraph::random_size(int64_t most) {
  constexpr int64_t large[] = {5,    16,   31,   32,   33,   64,    65,
                               127,  128,  256,  257,  1000, 1024,  1025,
                               4095, 4096, 4097, 8192, 9999, 16385, 40'000};
  if (chance(3)) return 0;
  if (most < 5 || chance(40)) return 1 + below(4);
  const auto end = std::upper_bound(std::begin(large), std::end(large), most);
  return large[below(static_cast<int>(end - std::begin(large)))];
}

Shape RandomGraph::random_shape(int rank) {
  Shape shape;
  int64_t left = options_.elements;
  for (int i = 0; i < rank; ++i) {
    const int64_t size = random_size(left);
    shape.push_back(size);
    left /= std::max<int64_t>(size, 1);
  }
  std::shuffle(shape.begin(), shape.end(), random_);
  return shape;
}

Type RandomGraph::random_type() {
  constexpr DType dtypes[] = {DType::F32, DType::F32,  DType::F64, DType::I32,
                              DType::I32, DType::I8,   DType::I16, DType::I64,
                              DType::U8,  DType::U16,  DType::U32, DType::U64,
                              DType::F16, DType::BF16, DType::Bool};
  const DType dtype = dtypes[below(std::size(dtypes))];
  return {dtype, random_shape(below(options_.most_rank + 1))};
}

NodeId RandomGraph::any_node(const Graph& g) {
  while (true) {
    // Late nodes more often, so that chains grow.
    const int n = static_cast<int>(g.nodes.size());
    const NodeId id = std::max(below(n), below(n));
    const Op op = g[id].op;
    if (op != Op::host_call && op != Op::if_else && op != Op::loop) return id;
  }
}

NodeId RandomGraph::splat(Graph& g, const Type& type, double value) {
  return g.add_constant(type, jit::element_bytes(type.dtype, value));
}

NodeId RandomGraph::cast_to(Graph& g, NodeId x, DType dtype) {
  if (g.type(x).dtype == dtype) return x;
  return g.add(Op::cast, {x}, ir::CastAttrs{dtype});
}

NodeId RandomGraph::node_of_type(Graph& g, const Type& type) {
  std::vector<NodeId> found;
  for (size_t i = 0; i < g.nodes.size(); ++i) {
    const Op op = g.nodes[i].op;
    if (g.nodes[i].type == type && op != Op::host_call && op != Op::loop &&
        op != Op::if_else)
      found.push_back(static_cast<NodeId>(i));
  }
  if (!found.empty() && chance(80)) return found[below(found.size())];
  return splat(g, type, below(7) - 3);
}

NodeId RandomGraph::small_index(Graph& g, const Shape& shape, int64_t size) {
  const Type type{DType::I32, shape};
  const NodeId raw = node_of_type(g, type);
  return g.add(Op::mod, {raw, splat(g, type, static_cast<double>(size))});
}

std::vector<int> RandomGraph::random_axes(int rank) {
  std::vector<int> axes;
  for (int i = 0; i < rank; ++i)
    if (chance(50)) axes.push_back(i);
  return axes;
}

NodeId RandomGraph::random_map(Graph& g, NodeId x) {
  constexpr Op unary[] = {Op::neg,  Op::abs,   Op::sign,  Op::bit_not,
                          Op::sqrt, Op::floor, Op::round, Op::is_nan};
  constexpr Op binary[] = {Op::add,     Op::sub,     Op::mul,     Op::div,
                           Op::maximum, Op::minimum, Op::bit_and, Op::bit_xor,
                           Op::eq,      Op::lt,      Op::ge};
  const Type type = g.type(x);
  if (chance(15)) {
    constexpr DType to[] = {DType::F32, DType::I32, DType::Bool, DType::F64,
                            DType::I8};
    return cast_to(g, x, to[below(5)]);
  }
  if (chance(15)) {
    const NodeId c = node_of_type(g, {DType::Bool, type.shape});
    return g.add(Op::select, {c, x, node_of_type(g, type)});
  }
  if (is_integer(type.dtype) && chance(20)) {
    // An odd divisor is not 0.
    const NodeId y =
        g.add(Op::bit_or, {node_of_type(g, type), splat(g, type, 1)});
    return g.add(chance(50) ? Op::mod : Op::floor_div, {x, y});
  }
  if (chance(15)) return random_row(g, x);
  while (true) {
    const Op op = chance(30) ? unary[below(8)] : binary[below(11)];
    if (!ir::admits(op, type.dtype)) continue;
    const bool one = op == Op::neg || op == Op::abs || op == Op::sign ||
                     op == Op::bit_not || op == Op::sqrt || op == Op::floor ||
                     op == Op::round || op == Op::is_nan;
    if (one) return g.add(op, {x});
    return g.add(op, {x, node_of_type(g, type)});
  }
}

/// Any row of the table of one or two operands that cannot fail.
NodeId RandomGraph::random_row(Graph& g, NodeId x) {
  constexpr std::pair<Op, int> rows[] = {
#define UNARY(name, ...) {Op::name, 1},
#define PREDICATE(name, ...) {Op::name, 1},
#define BINARY(name, ...) {Op::name, 2},
#define COMPARE(name, ...) {Op::name, 2},
#include "jit/ir/ops.def"
  };
  const Type type = g.type(x);
  while (true) {
    const auto [op, operands] = rows[below(std::size(rows))];
    if (!ir::admits(op, type.dtype)) continue;
    if (ir::row(op).check != ir::Check::none && !is_floating(type.dtype))
      continue;
    if (operands == 1) return g.add(op, {x});
    return g.add(op, {x, node_of_type(g, type)});
  }
}

NodeId RandomGraph::random_line(Graph& g, NodeId x) {
  const Type type = g.type(x);
  const int rank = type.rank();
  if (rank > 0 && chance(40)) {
    const int axis = below(rank);
    const Op scans[] = {Op::cumsum, Op::cumprod, Op::cummax, Op::cummin};
    const Op op = scans[below(4)];
    if (ir::admits(op, type.dtype) && chance(60))
      return g.add(op, {x}, ir::ScanAttrs{axis, chance(50)});
    if (chance(50)) return g.add(chance(50) ? Op::sort : Op::argsort, {x});
    if (size_of(type.shape[axis]) > 0)
      return g.add(chance(50) ? Op::argmax : Op::argmin, {x},
                   ir::ReduceAttrs{{axis}, ir::ReduceOrder::elements});
  }
  const Op reductions[] = {Op::sum, Op::prod, Op::max,
                           Op::min, Op::any,  Op::all};
  while (true) {
    const Op op = reductions[below(6)];
    if (!ir::admits(op, type.dtype)) continue;
    const auto order =
        chance(80) ? ir::ReduceOrder::elements : ir::ReduceOrder::members;
    return g.add(op, {x}, ir::ReduceAttrs{random_axes(rank), order});
  }
}

NodeId RandomGraph::random_move(Graph& g, NodeId x) {
  const Type type = g.type(x);
  const int rank = type.rank();
  switch (below(7)) {
    case 0: {
      std::vector<int> axes(rank);
      for (int i = 0; i < rank; ++i) axes[i] = i;
      std::shuffle(axes.begin(), axes.end(), random_);
      return g.add(Op::transpose, {x}, ir::AxesAttrs{axes});
    }
    case 1: return g.add(Op::flip, {x}, ir::AxesAttrs{random_axes(rank)});
    case 2: {
      ir::SliceAttrs a;
      for (const Dim& d : type.shape) {
        const int64_t n = size_of(d), start = n ? below(n) : 0;
        const int64_t step = 1 + below(2);
        a.start.push_back(start);
        a.step.push_back(step);
        a.size.push_back(n ? below((n - start + step - 1) / step + 1) : 0);
      }
      return g.add(Op::slice, {x}, a);
    }
    case 3: {
      ir::PadAttrs a;
      for (int i = 0; i < rank; ++i) {
        a.low.push_back(below(2));
        a.high.push_back(below(2));
      }
      return g.add(Op::pad, {x, node_of_type(g, {type.dtype, {}})}, a);
    }
    case 4: {
      const Dim count = element_count(type.shape);
      if (chance(50)) return g.add(Op::reshape, {x}, ir::ShapeAttrs{{count}});
      Shape shape = type.shape;
      shape.insert(shape.begin() + below(rank + 1), Dim(1));
      return g.add(Op::reshape, {x}, ir::ShapeAttrs{shape});
    }
    case 5: {
      if (rank > 3) return x;
      ir::BroadcastAttrs a{type.shape, {}};
      const int place = below(rank + 1);
      a.shape.insert(a.shape.begin() + place, Dim(1 + below(3)));
      for (int i = 0; i < rank; ++i) a.axes.push_back(i < place ? i : i + 1);
      return g.add(Op::broadcast, {x}, a);
    }
    default:
      if (rank == 0) return x;
      return g.add(Op::concat, {x, node_of_type(g, type)},
                   ir::AxisAttrs{below(rank)});
  }
}

NodeId RandomGraph::random_index(Graph& g, NodeId x) {
  const Type type = g.type(x);
  if (type.rank() == 0) return x;
  const std::vector<int> all = {0, 1, 2, 3};
  std::vector<int> axes(all.begin(), all.begin() + std::min(4, type.rank()));
  std::shuffle(axes.begin(), axes.end(), random_);
  axes.resize(1 + below(std::min<int>(2, axes.size())));
  Shape positions;
  if (options_.elements && chance(60))
    positions = random_shape(1 + below(2));
  else
    for (int i = below(3); i > 0; --i) positions.push_back(1 + below(3));
  std::vector<NodeId> operands = {x};
  for (int axis : axes) {
    const int64_t size = size_of(type.shape[axis]);
    if (size == 0) return x;
    operands.push_back(small_index(g, positions, size));
  }
  Type part{type.dtype, positions};
  for (int i = 0; i < type.rank(); ++i)
    if (std::find(axes.begin(), axes.end(), i) == axes.end())
      part.shape.push_back(type.shape[i]);
  if (element_count(part.shape).value() > most_elements()) return x;
  const ir::IndexAttrs attrs{axes, chance(80)};
  if (chance(50)) return g.add(Op::gather, operands, attrs);
  operands.insert(operands.begin() + 1, node_of_type(g, part));
  const bool add = chance(50) && !is_bool(type.dtype);
  return g.add(add ? Op::scatter_add : Op::scatter, operands, attrs);
}

NodeId RandomGraph::random_dot(Graph& g, NodeId x) {
  const Type type = g.type(x);
  if (is_bool(type.dtype) || type.rank() > 2) return x;
  ir::DotAttrs a;
  for (int i = 0; i < type.rank(); ++i) {
    if (chance(40)) {
      a.contract_a.push_back(i);
      a.contract_b.push_back(i);
    } else if (chance(40)) {
      a.batch_a.push_back(i);
      a.batch_b.push_back(i);
    }
  }
  // Halves are only the same bits where that is asked for (accuracy.md).
  const bool half = type.dtype == DType::F16 || type.dtype == DType::BF16;
  if (half || chance(50)) a.precision = ir::Precision::exact;
  int64_t work = 1;  // free axes twice
  for (int i = 0; i < type.rank(); ++i) {
    const int64_t size = size_of(type.shape[i]);
    const bool contracted =
        std::count(a.contract_a.begin(), a.contract_a.end(), i) > 0;
    const bool batch = std::count(a.batch_a.begin(), a.batch_a.end(), i) > 0;
    work *= contracted || batch ? size : size * size;
  }
  if (options_.elements && work > 64 * options_.elements) return x;
  return g.add(Op::dot, {x, node_of_type(g, type)}, a);
}

void RandomGraph::random_groups(ir::CollectiveAttrs& a, bool equal) {
  const auto members = static_cast<int>(options_.members);
  if (chance(30)) return;
  std::vector<int> order(members);
  std::iota(order.begin(), order.end(), 0);
  if (chance(70)) std::shuffle(order.begin(), order.end(), random_);
  std::vector<int> sizes;
  for (int size = 1; size <= members; ++size)
    if (members % size == 0) sizes.push_back(size);
  const int each = sizes[below(static_cast<int>(sizes.size()))];
  for (size_t i = 0; i < order.size();) {
    const size_t size = equal ? each : 1 + below(members);
    a.groups.emplace_back();
    for (size_t j = 0; j < size && i < order.size(); ++j)
      a.groups.back().push_back(order[i++]);
  }
}

NodeId RandomGraph::random_collective(Graph& g, NodeId x) {
  ir::CollectiveAttrs a;
  a.axes = {1};
  a.sizes = {options_.members};
  const Type type = g.type(x);
  const auto members = static_cast<int>(options_.members);
  switch (below(8)) {
    case 0: {
      a.reduce = is_bool(type.dtype) || chance(40) ? ir::ReduceOp::max
                                                   : ir::ReduceOp::sum;
      return g.add(Op::all_reduce, {x}, a);
    }
    case 1:
      if (type.rank() > 2) return x;
      random_groups(a, true);
      a.tiled = type.rank() > 0 && chance(30);
      a.dim = below(type.rank() + (a.tiled ? 0 : 1));
      return g.add(Op::all_gather, {x}, a);
    case 3: {  // in groups, of any sizes
      random_groups(a, false);
      a.reduce = is_bool(type.dtype) || chance(40) ? ir::ReduceOp::max
                                                   : ir::ReduceOp::sum;
      return g.add(Op::all_reduce, {x}, a);
    }
    case 4:
    case 5: {
      if (type.rank() > 2) return x;
      random_groups(a, true);
      a.reduce = is_bool(type.dtype) || chance(40) ? ir::ReduceOp::max
                                                   : ir::ReduceOp::sum;
      // Something that differs along the leading axis, from all members.
      ir::CollectiveAttrs all = a;
      const NodeId parts = g.add(Op::all_gather, {x}, all);
      return g.add(chance(50) ? Op::reduce_scatter : Op::all_to_all, {parts},
                   a);
    }
    case 6: {
      ir::CollectiveAttrs all = a;
      if (type.rank() > 2) return x;
      all.tiled = type.rank() > 0 && chance(30);
      all.dim = below(type.rank() + (all.tiled ? 0 : 1));
      const NodeId whole = g.add(Op::all_gather, {x}, all);
      all.reduce = ir::ReduceOp::sum;
      return g.add(Op::own_part, {whole}, all);
    }
    case 7: {  // one member's value on all
      const int source = below(members);
      for (int i = 0; i < members; ++i) a.pairs.push_back({source, i});
      return g.add(Op::permute, {x}, a);
    }
    case 2: {
      const int n = static_cast<int>(options_.members);
      const int shift = below(n);
      for (int i = 0; i < n; ++i)
        if (chance(80)) a.pairs.push_back({i, (i + shift) % n});
      return g.add(Op::permute, {x}, a);
    }
    default: return g.add(Op::axis_index, {}, a);
  }
}

NodeId RandomGraph::grow(Graph& g, int steps, const Type& type) {
  for (int i = 0; i < steps; ++i) step(g);
  for (size_t i = g.nodes.size(); i-- > 0;) {
    const Op op = g.nodes[i].op;
    if (g.nodes[i].type == type && op != Op::host_call && op != Op::loop &&
        op != Op::if_else)
      return static_cast<NodeId>(i);
  }
  return node_of_type(g, type);
}

NodeId RandomGraph::random_if(Graph& g, NodeId x) {
  const NodeId y = any_node(g);
  const NodeId c = node_of_type(g, {DType::Bool, {}});
  // Collectives only where all members go the same way.
  const bool collectives = options_.collectives;
  options_.collectives = false;
  ++depth_;
  std::shared_ptr<Graph> branch[2];
  for (auto& b : branch) {
    b = std::make_shared<Graph>();
    b->add_input(g.type(x));
    b->add_input(g.type(y));
    b->outputs = {grow(*b, 1 + below(4), g.type(x)),
                  grow(*b, below(3), g.type(y))};
  }
  --depth_;
  options_.collectives = collectives;
  const NodeId id =
      g.add(Op::if_else, {c, x, y}, ir::IfAttrs{branch[0], branch[1]});
  return g.add(Op::project, {id}, ir::ProjectAttrs{below(2)});
}

/// Some turns over x, the rows of another array and a capture; gives a carry,
/// or a stack.
NodeId RandomGraph::random_counted_loop(Graph& g, NodeId x) {
  const NodeId y = any_node(g), z = any_node(g);
  const Type of_y = g.type(y);
  const bool has_rows = of_y.rank() > 0 && of_y.shape[0].value() <= 6;
  ir::LoopAttrs loop;
  loop.carries = 1;
  loop.rows = has_rows ? 1 : 0;
  loop.turns = has_rows ? of_y.shape[0].value() : below(4);
  loop.backwards = chance(50);
  Type row = of_y;
  if (has_rows) row.shape.erase(row.shape.begin());
  auto body = std::make_shared<Graph>();
  const Type number{DType::I64, {}};
  for (const Type& type : {number, g.type(x), row, g.type(z)})
    body->add_input(type);
  ++depth_;
  const NodeId state = grow(*body, 1 + below(4), g.type(x));
  const NodeId part = chance(50) ? NodeId{2} : any_node(*body);
  body->outputs = {state, part};
  --depth_;
  loop.body = body;
  const NodeId id = g.add(Op::loop, {x, y, z}, loop);
  return g.add(Op::project, {id}, ir::ProjectAttrs{below(2)});
}

NodeId RandomGraph::random_loop(Graph& g, NodeId x) {
  if (chance(50)) return random_counted_loop(g, x);
  const Type count{DType::I32, {}};
  const bool fixed = options_.collectives || chance(50);
  const NodeId turns =
      fixed ? splat(g, count, below(4)) : small_index(g, {}, 4);
  const NodeId zero = splat(g, count, 0), y = any_node(g);
  auto condition = std::make_shared<Graph>(), body = std::make_shared<Graph>();
  for (auto& part : {condition, body}) {
    part->add_input(count);
    part->add_input(g.type(x));
    part->add_input(count);
    part->add_input(g.type(y));
  }
  condition->outputs = {condition->add(Op::lt, {0, 2})};
  ++depth_;
  const NodeId one = splat(*body, count, 1);
  const NodeId next = body->add(Op::add, {0, one});
  const NodeId state = grow(*body, 1 + below(4), g.type(x));
  body->outputs = {next, state};
  --depth_;
  const NodeId id =
      g.add(Op::loop, {zero, x, turns, y}, ir::LoopAttrs{condition, body, 2});
  return g.add(Op::project, {id}, ir::ProjectAttrs{1});
}

NodeId RandomGraph::random_host_call(Graph& g, NodeId x) {
  if (chance(40)) {
    g.add(Op::host_call, {x}, ir::HostCallAttrs{{"x ", "\n"}, {".3f"}},
          1 + below(9));
    return x;
  }
  ir::HostCallAttrs a;
  a.number = below(3);
  a.function = "f" + std::to_string(a.number);
  a.pure = chance(50);
  const NodeId y = any_node(g);
  a.results = {g.type(y), {DType::I32, {}}, g.type(x)};
  if (chance(30)) a.results.resize(1);
  const NodeId id = g.add(Op::host_call, {x, y}, a, 1 + below(9));
  NodeId last = id;
  for (size_t i = 0; i < a.results.size(); ++i)
    last = g.add(Op::project, {id}, ir::ProjectAttrs{static_cast<int>(i)});
  return last;
}

void answer(const std::vector<HostArray>& operands,
            std::vector<HostArray>& results) {
  for (size_t i = 0; i < results.size(); ++i)
    for (const HostArray& x : operands) {
      if (!(x.type == results[i].type)) continue;
      const auto size = static_cast<size_t>(byte_size(x.type.dtype));
      for (size_t at = 0; at < x.bytes.size(); at += size)
        std::copy_n(x.bytes.end() - static_cast<std::ptrdiff_t>(at + size),
                    size,
                    results[i].bytes.begin() + static_cast<std::ptrdiff_t>(at));
    }
}

NodeId RandomGraph::step(Graph& g) {
  const NodeId x = any_node(g);
  if (element_count(g.type(x).shape).value() > most_elements()) return x;
  if (options_.collectives && chance(15)) return random_collective(g, x);
  const int kind = below(100);
  if (kind < 35) return random_map(g, x);
  if (kind < 50) return random_line(g, x);
  if (kind < 68) return random_move(g, x);
  if (kind < 76) return random_index(g, x);
  if (kind < 82) return random_dot(g, x);
  if (kind < 90 && options_.host_calls) return random_host_call(g, x);
  if (depth_ < options_.control_depth)
    return chance(50) ? random_if(g, x) : random_loop(g, x);
  const Type type = random_type();
  if (chance(50) || type.rank() == 0 || is_bool(type.dtype))
    return g.add_constant(type, random_array(type).bytes);
  return g.add(Op::iota, {}, ir::IotaAttrs{type, below(type.rank())});
}

Graph RandomGraph::make() {
  Graph g;
  for (int i = 1 + below(3); i > 0; --i) g.add_input(random_type());
  for (int i = 0; i < options_.nodes; ++i) step(g);
  for (int i = 1 + below(6); i > 0; --i) g.outputs.push_back(any_node(g));
  return g;
}

HostArray RandomGraph::random_array(const Type& type) {
  HostArray out{type, {}};
  const int64_t n = type.elements();
  for (int64_t i = 0; i < n; ++i) {
    double v = below(19) - 9;
    if (is_floating(type.dtype)) {
      v += below(1000) / 997.0;
      if (chance(2)) v = std::nan("");
      if (chance(2)) v = -0.0;
      if (chance(1)) v = HUGE_VAL;
    }
    for (uint8_t b : jit::element_bytes(type.dtype, v)) out.bytes.push_back(b);
  }
  return out;
}

std::vector<HostArray> RandomGraph::random_inputs(const Graph& graph) {
  std::vector<HostArray> out;
  for (const Type& t : graph.input_types()) out.push_back(random_array(t));
  return out;
}

bool same_values(const HostArray& a, const HostArray& b) {
  if (!(a.type == b.type) || a.bytes.size() != b.bytes.size()) return false;
  if (a.bytes == b.bytes) return true;
  const auto size = static_cast<size_t>(byte_size(a.type.dtype));
  const auto x = values_of(a), y = values_of(b);
  for (size_t i = 0; i < x.size(); ++i) {
    const bool same = std::memcmp(a.bytes.data() + i * size,
                                  b.bytes.data() + i * size, size) == 0;
    if (!same && !(std::isnan(x[i]) && std::isnan(y[i]))) return false;
  }
  return true;
}

}  // namespace unisono::jit
