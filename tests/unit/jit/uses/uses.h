#pragma once
// What is done with the result of a reduction, scan, sort, product, gather or
// scatter: graphs of one such operation and one use of it.
#include <optional>
#include <random>
#include <string>

#include "tests/unit/jit/compiled.h"
#include "tests/unit/jit/uses/limits.h"

namespace unisono::jit::testing {

/// Where the result goes.
enum class Use : uint8_t {
  itself,        // as it is
  one_place,     // to one place of an array of zeros
  all_places,    // to all the places that were reduced
  beside,        // there, with what the operand has there
  again,         // all that is reduced once more
  again_beside,  // what was `beside` is
  chained,       // beside, and beside what reduces that, of a temporary operand
  gradient,      // the derivative of its square, by the operand
  in_loop,       // to all places of what a loop carries
  in_concat,     // all places, beside the operand and the result
  to_several,    // itself, all places and beside are results
};
inline constexpr int use_count = static_cast<int>(Use::to_several) + 1;

struct Operation {
  ir::Op op = ir::Op::sum;
  ir::ReduceOrder order = ir::ReduceOrder::elements;
  Path path = Path::reduction;
};
/// Every row of the table that is a reduction, scan, sort, product, gather or
/// scatter.
std::vector<Operation> operations();

struct Case {
  Operation operation;
  Use use = Use::itself;
  DType dtype = DType::F32;
  Along along = Along::all;
  Sizes sizes = {};
  int devices = 1;  // more: the result is added up over them
  std::string to_string() const;
};

/// Its inputs are two arrays of the case's sizes, and in gradients a cotangent;
/// nothing where there is no such use.
std::optional<ir::Graph> graph_of(const Case& c);

/// Numbers whose sums tell in which order they were added; of those that are
/// multiplied long products are neither zero nor too large. Odd integers.
Arrays numbers_for(const Operation& operation, const ir::Graph& graph,
                   std::mt19937& random);

}  // namespace unisono::jit::testing
