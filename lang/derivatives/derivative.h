#pragma once
// A function that is walked for its derivative, and what becomes of its graph.
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "jit/derivative/derivative.h"
#include "lang/context/context.h"
#include "lang/context/value.h"
#include "lang/context/walk.h"

namespace unisono::lang {

/// An array by which is derived.
struct DerivativeLeaf {
  ArrayValue value;  // of a float type, no weak number
  Span where;
  size_t argument = 0;           // its place in Derivative::arguments
  ArrayValue tangent = nullptr;  // forward: of the value's type
};

/// A function, walked with parameters in place of the leaves by which is
/// derived.
struct WalkedFunction {
  /// Its result, a tree without weak numbers, and the arrays among its leaves.
  Value result;
  std::vector<ArrayValue> outputs;
  std::vector<DerivativeLeaf> leaves;
  /// What the walk noted; it is around the code no more.
  std::shared_ptr<Derivative> derivative;

  // Trace mode:
  std::shared_ptr<GraphScope> scope;
  ir::Graph graph;  // inputs are the leaves, then what it captures
  /// The arrays that the inputs stand for.
  std::vector<ArrayValue> arguments;
};

/// Walks `body`, which gets the parameters. `derivative` has its name, place
/// and direction.
WalkedFunction walk_function(
    Walk& walk, Derivative derivative, std::vector<DerivativeLeaf> leaves,
    const std::function<Value(const std::vector<ArrayValue>& parameters)>&
        body);

/// What jit/derivative is to know of the walked function: all leaves are
/// flagged, and of the outputs all floats.
jit::DerivativeSpec spec_of(Walk& walk, const WalkedFunction& walked);

/// The transformed graph; an error of the program if there is none.
ir::Graph graph_of(Walk& walk,
                   std::variant<jit::Graph, jit::NoDerivative> derivative,
                   const WalkedFunction& walked);

/// The arrays among the walked function's leaves that are floats, in order.
std::vector<ArrayValue> float_outputs(const WalkedFunction& walked);

/// `arrays` (trace: outputs of the graph) as what the walked function gives,
/// for the code around it.
void set_value_facts(const WalkedFunction& walked,
                     const std::vector<ArrayValue>& arrays);
/// What is known of a tangent of an output, of a cotangent of a leaf and of a
/// derivative of an output by a leaf.
void set_tangent_facts(Walk& walk, const WalkedFunction& walked,
                       const ArrayCell& output, ArrayCell& tangent);
/// `given`: the cotangents that were given.
void set_cotangent_facts(Walk& walk, const WalkedFunction& walked,
                         const DerivativeLeaf& leaf,
                         const std::vector<ArrayValue>& given,
                         ArrayCell& cotangent);

}  // namespace unisono::lang
