#pragma once
// What must hold of the derivatives of a graph, on some numbers.
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "jit/derivative/derivative.h"
#include "jit/reference/reference.h"

namespace unisono::jit::testing {

/// A graph of f64 floats (and integers, which are not differentiated), and its
/// arguments: one list for each member of axis 1, or one list alone.
struct DerivativeCase {
  ir::Graph graph;
  std::vector<std::vector<HostArray>> inputs;
  /// By input: whether all members have the same.
  std::vector<bool> shared = {};
  /// Whether it is smooth around the arguments, so that differences tell.
  bool smooth = true;
  /// How exactly the products agree, relative to the sum of their parts. If
  /// that is not 1e-12, numbers may also be too large to compare.
  double exact = 1e-12;
};

/// What is wrong with the derivatives; nothing if all holds:
///   the tangents of jvp are central differences of the values (1e-6)
///   <c, J t> = <J' c, t>, with J' of vjp (1e-12)
///   jvp and vjp give the values of the graph, to the bit
///   with `second`, the same of the graph of vjp
std::optional<std::string> wrong_derivative(const DerivativeCase& c,
                                            std::mt19937& random,
                                            bool second = true);

/// What is wrong with the derivatives of the same graph of another float type,
/// `dtype`, at the arguments rounded to it; nothing if all holds:
///   the tangents of jvp are those of f64, but for rounding
///   <c, J t> = <J' c, t>, but for rounding
///   compiled, jvp and vjp have the bits of the evaluator, where `compiled`
std::optional<std::string> wrong_in_type(const DerivativeCase& c, DType dtype,
                                         std::mt19937& random, bool compiled);

/// An array of f64 numbers in an interval.
HostArray numbers(const ir::Shape& shape, double low, double high,
                  std::mt19937& random);
HostArray integers(DType dtype, const ir::Shape& shape,
                   const std::vector<int64_t>& values);

}  // namespace unisono::jit::testing
