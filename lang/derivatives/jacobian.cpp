// jacobian and hessian: the derivative along each direction of a basis, all at
// once by `vmap` of the graph. Forwards, directions are the elements of the
// arguments; in reverse, those of the results.

#include <algorithm>
#include <numeric>

#include "jit/ir/kinds.h"
#include "jit/ir/renaming.h"
#include "jit/transform/transforms.h"
#include "jit/vmap/vmap.h"
#include "lang/derivatives/call.h"
#include "lang/ops/array_ops.h"
#include "lang/ops/operators.h"

namespace unisono::lang {
namespace {

/// The number of elements; nothing if it is not known.
std::optional<int64_t> elements(const ir::Type& type) {
  int64_t count = 1;
  for (const ir::Dim& size : type.shape) {
    if (!size.is_constant()) return std::nullopt;
    count *= size.value();
  }
  return count;
}

std::optional<int64_t> all_elements(const std::vector<ArrayValue>& arrays) {
  int64_t count = 0;
  for (const ArrayValue& array : arrays) {
    const auto own = elements(array->type);
    if (!own) return std::nullopt;
    count += *own;
  }
  return count;
}

/// A graph that computes the same, but makes no effects: what it prints is
/// printed by the function's own graph, once.
ir::Graph without_effects(const ir::Graph& graph);

std::shared_ptr<const ir::Graph> without_effects(
    const std::shared_ptr<const ir::Graph>& graph) {
  return graph ? std::make_shared<const ir::Graph>(without_effects(*graph))
               : nullptr;
}

ir::Graph without_effects(const ir::Graph& graph) {
  ir::Graph out;
  ir::Renaming placed(graph);
  for (const ir::NodeId id : ir::node_ids(graph)) {
    const ir::Node& node = graph[id];
    if (node.op == ir::Op::input) {
      placed.set(id, out.add_input(node.type, node.source));
      continue;
    }
    if (node.op == ir::Op::host_call && ir::result_count(node) == 0) continue;
    ir::Node copy = placed.renamed(id);
    if (auto* a = std::get_if<ir::IfAttrs>(&copy.attrs)) {
      a->then_graph = without_effects(a->then_graph);
      a->else_graph = without_effects(a->else_graph);
    }
    if (auto* a = std::get_if<ir::LoopAttrs>(&copy.attrs)) {
      a->condition = without_effects(a->condition);
      a->body = without_effects(a->body);
    }
    if (auto* a = std::get_if<ir::CallAttrs>(&copy.attrs)) {
      a->graph = without_effects(a->graph);
      a->rule = without_effects(a->rule);
    }
    placed.set(id, out.append(std::move(copy)));
  }
  out.outputs = placed.renamed(graph.outputs);
  return out;
}

/// One in each of the array's elements, zeros else: [elements, shape...].
ArrayValue basis(Walk& walk, const ir::Type& type, int64_t count, Span where) {
  const ir::Type square{DType::I64, {count, count}};
  const ArrayValue same = walk.add(
      ir::Op::eq, {iota(walk, square, 0, where), iota(walk, square, 1, where)},
      ir::NoAttrs{}, where);
  ir::Shape shape = type.shape;
  shape.insert(shape.begin(), ir::Dim(count));
  return reshape(walk, cast_to(walk, same, type.dtype, where), std::move(shape),
                 where);
}

/// Whether members of maps around the graph meet in it.
bool has_collective(const ir::Graph& graph) {
  const auto inner = [](const std::shared_ptr<const ir::Graph>& part) {
    return part && has_collective(*part);
  };
  return std::ranges::any_of(graph.nodes, [&](const ir::Node& node) {
    if (const auto* a = std::get_if<ir::IfAttrs>(&node.attrs))
      return inner(a->then_graph) || inner(a->else_graph);
    if (const auto* a = std::get_if<ir::LoopAttrs>(&node.attrs))
      return inner(a->condition) || inner(a->body);
    if (const auto* a = std::get_if<ir::CallAttrs>(&node.attrs))
      return inner(a->graph) || inner(a->rule);
    return ir::kind(node.op) == ir::Kind::collective;
  });
}

/// Derivatives by output (of those that are floats) and leaf.
using Parts = std::vector<std::vector<ArrayValue>>;

class Jacobian {
 public:
  Jacobian(Walk& walk, const DerivativeCall& call, bool always_forward)
      : walk_(walk),
        call_(call),
        selection_(select_wrt(walk, call.function, call.made, call.arguments)) {
    walk_function_once(/*reverse=*/false);
    forward_ = goes_forward(always_forward);
    if (!forward_ && checking()) walk_function_once(/*reverse=*/true);
    walked_.derivative->reverse = !forward_;
    outputs_ = float_outputs(walked_);
  }

  Value compute() {
    Parts parts = checking() ? types() : forward_ ? forward() : backwards();
    size_t next = 0;
    return map_leaves(walked_.result, [&](const Value& leaf) -> Value {
      if (!is_float_leaf(leaf)) return NoneValue{};
      const ArrayCell& output = *outputs_[next];
      for (size_t i = 0; i < walked_.leaves.size(); ++i) {
        ArrayCell& part = *parts[next][i];
        set_cotangent_facts(walk_, walked_, walked_.leaves[i], {}, part);
        part.varies = join(part.varies, output.varies);
        if (!part.varies_from) part.varies_from = output.varies_from;
      }
      std::vector<Value> trees = selection_.trees(parts[next++]);
      return call_.made.wrt_is_tuple ? make_tuple(std::move(trees))
                                     : std::move(trees[0]);
    });
  }

 private:
  bool checking() const { return walk_.mode() == Mode::check; }

  void walk_function_once(bool reverse) {
    walked_ = walk_function(
        walk_, call_.derivative(reverse), selection_.leaves,
        [&](const std::vector<ArrayValue>& parameters) {
          CallArguments arguments = selection_.with(parameters);
          return walk_.call(call_.made.inner, std::move(arguments.positional),
                            std::move(arguments.named), call_.where);
        });
  }

  /// If the arguments have at most as many elements as the results. A member of
  /// a map derives by its own copy of them, while all copies move together
  /// forwards: where members meet, only reverse will do.
  bool goes_forward(bool always) const {
    if (has_collective(walked_.graph)) return false;
    std::vector<ArrayValue> arguments;
    for (const DerivativeLeaf& leaf : walked_.leaves)
      arguments.push_back(leaf.value);
    const auto by = all_elements(arguments);
    const auto of = all_elements(float_outputs(walked_));
    return always || !by || !of || *by <= *of;
  }

  ir::Type part_type(const ArrayValue& output, size_t leaf) const {
    ir::Type type = output->type;
    const ir::Shape& by = walked_.leaves[leaf].value->type.shape;
    type.shape.insert(type.shape.end(), by.begin(), by.end());
    walk_.check_size(type, call_.where);
    return type;
  }

  Parts types() const {
    Parts parts;
    for (const ArrayValue& output : outputs_) {
      parts.emplace_back();
      for (size_t i = 0; i < walked_.leaves.size(); ++i)
        parts.back().push_back(walk_.unknown_array(part_type(output, i)));
    }
    return parts;
  }

  /// The last outputs of `graph` for each element of its last input, which is
  /// of type `along`: [elements, shape...].
  std::vector<ArrayValue> along_basis(ir::Graph graph, const ir::Type& along,
                                      size_t outputs) {
    graph.outputs.erase(graph.outputs.begin(),
                        graph.outputs.end() - static_cast<ptrdiff_t>(outputs));
    jit::VmapSpec spec;
    spec.axis = walk_.new_axis_id();
    spec.size = *elements(along);
    spec.mapped.assign(graph.inputs.size(), false);
    spec.mapped.back() = true;
    std::vector<ArrayValue> arguments = walked_.arguments;
    arguments.push_back(basis(walk_, along, spec.size, call_.where));
    return walk_.scope()->append(jit::vmap(without_effects(graph), spec),
                                 arguments);
  }

  Parts forward() {
    print_once();
    Parts parts(outputs_.size());
    for (size_t i = 0; i < walked_.leaves.size(); ++i) {
      jit::DerivativeSpec spec = spec_of(walk_, walked_);
      spec.inputs.assign(spec.inputs.size(), false);
      spec.inputs[i] = true;
      const ir::Type& by = walked_.leaves[i].value->type;
      const std::vector<ArrayValue> tangents =
          along_basis(graph_of(walk_, jit::jvp(walked_.graph, spec), walked_),
                      by, outputs_.size());
      for (size_t r = 0; r < outputs_.size(); ++r)
        parts[r].push_back(reshape(walk_, basis_last(tangents[r]),
                                   part_type(outputs_[r], i).shape,
                                   call_.where));
    }
    return parts;
  }

  ArrayValue basis_last(const ArrayValue& stacked) {
    std::vector<int> axes(stacked->type.rank());
    std::iota(axes.begin(), axes.end(), 1);
    axes.back() = 0;
    return transpose(walk_, stacked, axes, call_.where);
  }

  Parts backwards() {
    print_once();
    Parts parts(outputs_.size());
    size_t next = 0;  // among the floats
    for (size_t k = 0; k < walked_.outputs.size(); ++k) {
      if (!is_floating(walked_.outputs[k]->type.dtype)) continue;
      const size_t r = next++;
      jit::DerivativeSpec spec = spec_of(walk_, walked_);
      spec.outputs.assign(walked_.outputs.size(), false);
      spec.outputs[k] = true;
      const ir::Type& of = outputs_[r]->type;
      const std::vector<ArrayValue> cotangents =
          along_basis(graph_of(walk_, jit::vjp(walked_.graph, spec), walked_),
                      of, walked_.leaves.size());
      for (size_t i = 0; i < walked_.leaves.size(); ++i) {
        const ir::Type type = part_type(outputs_[r], i);
        parts[r].push_back(cast_to(
            walk_, reshape(walk_, cotangents[i], type.shape, call_.where),
            type.dtype, call_.where));
      }
    }
    return parts;
  }

  /// What the function prints and asserts. What is computed with it is computed
  /// once, too.
  void print_once() {
    (void)walk_.scope()->append(jit::without_calls(walked_.graph),
                                walked_.arguments);
  }

  Walk& walk_;
  const DerivativeCall& call_;
  bool forward_ = true;
  WrtSelection selection_;
  WalkedFunction walked_;
  std::vector<ArrayValue> outputs_;  // the floats
};

}  // namespace

Value call_jacobian(Walk& walk, DerivativeCall call) {
  if (call.made.kind == Differentiated::Kind::jacobian)
    return Jacobian(walk, call, /*always_forward=*/false).compute();
  // The gradient, forwards: its derivative has the same number of directions
  // either way, and keeps nothing.
  Differentiated gradient = call.made;
  gradient.kind = Differentiated::Kind::grad;
  const FunctionValue function{call.function.name, gradient};
  Differentiated of_gradient = call.made;
  of_gradient.inner = std::make_shared<FunctionValue>(function);
  const DerivativeCall second{call.function, of_gradient,
                              std::move(call.arguments), call.where};
  return Jacobian(walk, second, /*always_forward=*/true).compute();
}

}  // namespace unisono::lang
