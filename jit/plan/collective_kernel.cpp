#include "jit/plan/collective_kernel.h"

#include <algorithm>

#include "jit/kernel/group.h"
#include "runtime/member_tree.h"
#include "runtime/tuning/tuning.h"

namespace unisono::jit {
namespace {

ir::Op combining(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum: return ir::Op::add;
    case ReduceOp::max: return ir::Op::maximum;
    case ReduceOp::min: return ir::Op::minimum;
  }
  __builtin_unreachable();
}

}  // namespace

int64_t all_reduce_part(int64_t elements, DType dtype, int devices) {
  if (elements <= tuning().gpu_few_reduced_elements) return elements;
  const int64_t part = (elements + devices - 1) / devices;
  const int64_t whole = std::min(elements, (part + 63) / 64 * 64);
  return std::min(whole, tuning().gpu_most_reduced_bytes / byte_size(dtype));
}

Kernel all_reduce_kernel(ReduceOp op, DType dtype, int64_t elements,
                         int sources, int targets) {
  const Affine at{0, {1}};
  Kernel kernel;
  Nest nest{.extents = {elements}, .reduced = {false}, .exprs = {}};
  const DType inside = accumulator(dtype);  // rounded once, at the end
  auto push = [&](Expr expr) {
    nest.exprs.push_back(std::move(expr));
    return static_cast<ExprId>(nest.exprs.size()) - 1;
  };
  auto operation = [&](ir::Op what, DType from, DType to,
                       std::vector<ExprId> operands) {
    return push({.kind = Expr::Kind::operation,
                 .op = what,
                 .dtype = to,
                 .operand_dtype = from,
                 .at = constant_affine(0, 1),
                 .operands = std::move(operands)});
  };
  auto load = [&](int64_t source) {
    const ExprId element = push({.kind = Expr::Kind::load,
                                 .dtype = dtype,
                                 .argument = static_cast<int>(source),
                                 .at = at});
    return inside == dtype ? element
                           : operation(ir::Op::cast, dtype, inside, {element});
  };
  ExprId total = member_tree(0, sources, load, [&](ExprId a, ExprId b) {
    return operation(combining(op), inside, inside, {a, b});
  });
  if (inside != dtype) total = operation(ir::Op::cast, inside, dtype, {total});
  kernel.arguments.assign(sources, {-1, dtype, false});
  for (int target = 0; target < targets; ++target) {
    nest.stores.push_back({sources + target, at, total});
    kernel.arguments.push_back({-1, dtype, true});
  }
  kernel.nests.push_back(std::move(nest));
  return kernel;
}

}  // namespace unisono::jit
