// Every row of the table of operations in a kernel of its own, for every
// element type and small and large arrays: kernels of little work are
// interleaved, so that their vectors are the longest there are. They run with
// vectors of 64 bytes on every processor, and are compiled for one that has
// them.
#include "jit/pipeline.h"
#include "jit/target/generate_cpu.h"
#include "jit/transform/transforms.h"
#include "tests/unit/jit/op_table/op_table.h"

using namespace unisono;
using namespace unisono::jit;
using namespace unisono::jit::testing;
using ir::Graph;
using ir::NodeId;
using ir::Op;
using ir::Type;

namespace {

/// The attributes of rows that are computed along axis 0, or have none.
std::vector<ir::Attrs> attributes_of(Op op) {
  switch (ir::kind(op)) {
    case ir::Kind::map: {
      std::vector<ir::Attrs> out;
      if (op != Op::cast) return {ir::NoAttrs{}};
      for (DType to : all_dtypes) out.emplace_back(ir::CastAttrs{to});
      return out;
    }
    case ir::Kind::reduce:
    case ir::Kind::argreduce: return {ir::ReduceAttrs{{0}}};
    case ir::Kind::scan: return {ir::ScanAttrs{0}};
    case ir::Kind::dot: return {ir::DotAttrs{{}, {}, {0}, {0}}};
    case ir::Kind::index: return {ir::IndexAttrs{{0}}};
    case ir::Kind::sort: return {ir::NoAttrs{}};
    case ir::Kind::move:
    case ir::Kind::source:
    case ir::Kind::control:
    case ir::Kind::collective:
    case ir::Kind::host: return {};  // no code for elements of their own
  }
  __builtin_unreachable();
}

/// A row's operands: as many of `x` as the type rule wants, or what its kind
/// wants in place of them.
std::vector<NodeId> operands_of(const Graph& graph, Op op,
                                const ir::Attrs& attrs,
                                const std::vector<NodeId>& x, NodeId condition,
                                NodeId indices) {
  if (op == Op::select) return {condition, x[0], x[1]};
  if (op == Op::gather) return {x[0], indices};
  if (ir::kind(op) == ir::Kind::index) return {x[0], x[1], indices};
  for (size_t count = 1; count <= x.size(); ++count) {
    const std::vector<NodeId> taken(x.begin(),
                                    x.begin() + static_cast<ptrdiff_t>(count));
    std::vector<Type> types;
    for (NodeId operand : taken) types.push_back(graph.type(operand));
    if (ir::infer_type(op, types, attrs)) return taken;
  }
  FAIL("a row that takes 1, 2 or 3 operands of a type");
  return {};
}

/// The row on arrays of so many elements: three of the type, a condition, and
/// indices; those that it does not take are inputs, too.
Graph alone(Op op, DType dtype, const ir::Attrs& attrs, int64_t elements) {
  Graph graph;
  const Type type{dtype, {elements}};
  std::vector<NodeId> same;
  for (int i = 0; i < 3; ++i) same.push_back(graph.add_input(type));
  const NodeId condition = graph.add_input({DType::Bool, {elements}});
  const NodeId indices = graph.add_input({DType::I32, {elements}});
  graph.outputs = {graph.add(
      op, operands_of(graph, op, attrs, same, condition, indices), attrs)};
  return graph;
}

/// Second operands divide, and where `exponents` they are exponents.
Arrays inputs_of(const Graph& graph, bool exponents) {
  std::mt19937 random(1);
  Arrays out;
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const Fill fill = i != 1      ? Fill::numbers
                      : exponents ? Fill::exponents
                                  : Fill::divisors;
    out.push_back(filled(graph.type(graph.inputs[i]), fill, random));
  }
  HostArray& indices = out.back();
  const int64_t elements = indices.type.elements();
  for (int64_t i = 0; i < elements; ++i) {
    const auto at = static_cast<int32_t>(random() % elements);
    std::memcpy(&indices.bytes[static_cast<size_t>(i) * 4], &at, 4);
  }
  return out;
}

/// Calls f with every row, element type and attributes.
template <class F>
void for_each_row(F&& f) {
  for (Op op : all_ops)
    for (DType dtype : all_dtypes)
      if (ir::admits(op, dtype))
        for (const ir::Attrs& attrs : attributes_of(op)) f(op, dtype, attrs);
}

constexpr int64_t interleaved = 32'771;  // from 2^15 on
constexpr int64_t large = 524'309;       // from 2^19 on without masks

}  // namespace

TEST_CASE("table of operations: alone, in vectors of 64 bytes") {
  Bench bench(64);
  for_each_row([&](Op op, DType dtype, const ir::Attrs& attrs) {
    INFO(ir::name(op) << " of " << name(dtype));
    const Graph graph = alone(op, dtype, attrs, interleaved);
    const Arrays inputs = inputs_of(graph, op == Op::pow || is_bool(dtype));
    CHECK(difference(bench, graph, inputs, false) == "");
  });
}

TEST_CASE("table of operations: alone, compiled for AVX-512") {
  CpuGenerator generator({.cpu = "x86-64-v4"});
  CHECK(generator.lowering().machine().vector_bytes == 64);
  auto compile = [&](const Graph& graph, CodeText* dump = nullptr) {
    bool done = false;
    on_deep_stacks(1, [&](size_t) {
      const Plan plan = fuse(optimise(graph), true, generator.lowering());
      std::vector<Request> requests;
      for (const PlanStep& step : plan.steps) {
        if (const auto* kernel = std::get_if<Kernel>(&step.what))
          requests.emplace_back(kernel);
        if (const auto* dot = std::get_if<DotTask>(&step.what))
          requests.emplace_back(dot);
      }
      done = static_cast<bool>(generator.generate(requests, dump));
    });
    return done;
  };
  int row = 0;
  for_each_row([&](Op op, DType dtype, const ir::Attrs& attrs) {
    INFO(ir::name(op) << " of " << name(dtype));
    for (int64_t elements : {++row % 2 ? int64_t{37} : large, interleaved})
      CHECK(compile(alone(op, dtype, attrs, elements)));
  });
  CodeText dump;
  CHECK(compile(alone(Op::mod, DType::F16, {}, interleaved), &dump));
  CHECK(dump.assembly.find("zmm") != std::string::npos);
}
