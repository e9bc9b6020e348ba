// scatter and scatter_add: the positions of the index arrays in order, at each
// the part of the array that lies there, in vectors along its last axis.
#include "jit/emit/nest.h"
#include "runtime/tuning/tuning.h"

namespace unisono::jit {

using llvm::Value;

/// Calls body(0) ... body(count - 1), and polls from time to time.
void NestEmitter::in_order(int64_t count, const Body& body) {
  Value* end = index_constant(count);
  if (count <= tuning().scattered_between_looks)
    return loop(index_constant(0), end, 1, body);
  loop(index_constant(0), end, tuning().scattered_between_looks,
       [&](Value* begin) {
         poll();
         Value* next = b_.CreateAdd(
             begin, index_constant(tuning().scattered_between_looks));
         loop(begin, b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, next, end),
              1, body);
       });
}

void NestEmitter::emit_scatter_at(Point& point) {
  const Scatter& scatter = *nest_.scatter;
  Values fixed(nest_.exprs.size());
  outer_values(point, fixed, 0);
  const std::vector<bool> all(nest_.exprs.size(), true);
  in_order(reduced_points(), [&](Value* position) {
    Point at = point;
    set_reduced_index(at, position, 0);
    at.vector_axis = point.vector_axis;
    Values values = fixed;
    compute(all, at, values);
    Value* offset = offset_at(scatter.at, side_part_, at);
    check_number_ = 0;
    offset = indexed_offset(
        offset, scatter.indexed, scatter.indices, bounds_of(scatter.checked),
        {scatter.source, scatter.member, nest_.exprs.size()}, at, values);
    if (!offset) return;
    Value* value = values[scatter.value];
    if (scatter.add) {
      const bool vector = varies(scatter.at, at);
      if (vector) value = widened(value, at);
      EmitContext c = context(vector ? at.lanes : 0);
      Point scalar;
      Value* old = load_at(scatter.argument, scatter.dtype, offset,
                           vector ? scatter.at.factors[at.vector_axis] : 0,
                           vector ? at : scalar);
      value = emit_element(c, ir::Op::add, scatter.dtype, {old, value});
    }
    store_at(scatter.argument, scatter.dtype, offset, scatter.at, value, at,
             false);
  });
}

}  // namespace unisono::jit
