// The second stage of a product whose k is longer than one fma chain.
#include "jit/kernel/chain_sums.h"

namespace unisono::jit {

Kernel sum_chains(int from, int to, DType dtype, int64_t elements,
                  int64_t chains) {
  const auto expr = [&](Expr::Kind kind) {
    Expr out{.kind = kind, .dtype = dtype};
    out.at = constant_affine(0, 2);
    return out;
  };
  Kernel kernel;
  kernel.arguments = {{from, dtype, false}, {to, dtype, true}};
  Expr load = expr(Expr::Kind::load);
  load.argument = 0;
  load.at.factors = {1, elements};
  Expr sum = expr(Expr::Kind::reduced);
  sum.reduction = 0;
  sum.phase = 1;
  Nest nest{.extents = {elements, chains},
            .reduced = {false, true},
            .exprs = {load, sum}};
  nest.reductions = {{.op = ir::Op::add,
                      .dtype = dtype,
                      .order = CombineOrder::members,
                      .operand = 0}};
  Affine at = constant_affine(0, 2);
  at.factors[0] = 1;
  nest.stores = {{1, at, 1}};
  kernel.nests.push_back(std::move(nest));
  return kernel;
}

}  // namespace unisono::jit
