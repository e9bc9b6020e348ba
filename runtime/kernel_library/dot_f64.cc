// Products of f64, each element one fma chain in the order of k.
#include "runtime/kernel_library/product.h"

namespace unisono::grid {

GRID_KERNEL dot_f64_64(const double* a, const double* b, double* c,
                       DotCall call) {
  product<F64, 64, Chains<F64, double, 64>>(a, b, c, call);
}

}  // namespace unisono::grid
