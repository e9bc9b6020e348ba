#include "jit/scalar/element.h"

#include "jit/scalar/element_instructions.h"
#include "runtime/execute/program.h"

namespace unisono::jit {

static_assert(static_cast<int>(Fault::integer_division_by_zero) ==
              ErrorWord::integer_division_by_zero);
static_assert(static_cast<int>(Fault::negative_exponent) ==
              ErrorWord::negative_exponent);

static const ElementLoops& loops_for_this_processor() {
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
      __builtin_cpu_supports("f16c")) {
    return avx2_loops;
  }
#endif
  return baseline_loops;
}

ElementLoop element_loop(ir::Op op, DType dtype) {
  return loops_for_this_processor().row(op, dtype);
}

ElementLoop cast_loop(DType from, DType to) {
  return loops_for_this_processor().cast(from, to);
}

StepFunction element_step(ir::Op op, DType dtype) {
  return loops_for_this_processor().row_step(op, dtype);
}

StepFunction cast_step(DType from, DType to) {
  return loops_for_this_processor().cast_step(from, to);
}

static std::vector<uint8_t> cast_to_bytes(DType from, const void* value,
                                          DType to) {
  std::vector<uint8_t> bytes(static_cast<size_t>(byte_size(to)));
  const int64_t stride = 0;
  cast_loop(from, to)(bytes.data(), &value, &stride, 1, nullptr);
  return bytes;
}

std::vector<uint8_t> element_bytes(DType dtype, int64_t value) {
  return cast_to_bytes(DType::I64, &value, dtype);
}

std::vector<uint8_t> element_bytes(DType dtype, double value) {
  return cast_to_bytes(DType::F64, &value, dtype);
}

}  // namespace unisono::jit
