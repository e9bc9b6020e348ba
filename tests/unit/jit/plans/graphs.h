#pragma once
// Random graphs of what random_graph.h seldom makes: several loops over the
// rows of one array, and products of matrices that lie in all ways.
#include "jit/ir/graph.h"

namespace unisono::jit::testing {

/// Sums and maxima of rows (or columns, or all), what is computed of them with
/// the array, and sums of that again; some of it dear, some may fail. Inputs
/// are two arrays of floats and one of integers.
ir::Graph rows_graph(uint32_t seed);

/// A product, and what follows it. Operands are turned, cut, split, repeated,
/// computed, or windows of an array.
ir::Graph product_graph(uint32_t seed);

}  // namespace unisono::jit::testing
