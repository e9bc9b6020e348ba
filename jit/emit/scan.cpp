// Scans, in the orders of reduce_order.h. Along the array's last axis, groups
// of 16 neighbours are one vector each; along another axis, lanes are
// neighbours along the last kept axis and every lane scans in order.
#include "jit/emit/nest.h"
#include "jit/ir/reduce_order.h"

namespace unisono::jit {

using llvm::Value;

Value* NestEmitter::scan_combine(Value* a, Value* b) {
  auto* type = llvm::dyn_cast<llvm::FixedVectorType>(b->getType());
  EmitContext c = context(type ? type->getNumElements() : 0);
  return emit_element(c, nest_.scan->op, nest_.scan->dtype, {a, b});
}

void NestEmitter::put_scanned(Value* value, Point& point) {
  const Scan& scan = *nest_.scan;
  auto* type = llvm::dyn_cast<llvm::FixedVectorType>(value->getType());
  EmitContext c = context(type ? type->getNumElements() : 0);
  value = scan.dtype == scan.result
              ? value
              : emit_cast(c, scan.dtype, scan.result, value);
  store(scan.at, side_part_, scan.argument, scan.result, value, point, false);
}

namespace {

std::vector<bool> everything(const Nest& nest) {
  return std::vector<bool>(nest.exprs.size(), true);
}

}  // namespace

void NestEmitter::emit_scan(Point& point, Value*) {
  point.vector_axis = -1;
  fix_unit_parts(point);
  Values fixed(nest_.exprs.size());
  outer_values(point, fixed, 0);
  const int64_t count = reduced_points();
  const int64_t chunks = (count + reduce_chunk - 1) / reduce_chunk;
  const int64_t rest = count % reduce_chunk;
  EmitContext c = context(0);
  llvm::Type* type = register_type(c, nest_.scan->dtype);
  auto chunk = [&](Value* number, Value* carry, int64_t length) {
    poll();
    return scan_chunk(point, fixed, number, carry, length);
  };
  std::vector<Value*> carry = {llvm::Constant::getNullValue(type)};
  const int64_t full = rest ? chunks - 1 : chunks;
  carry = carried_loop(
      index_constant(full), carry,
      [&](Value* number, llvm::ArrayRef<Value*> state) {
        return std::vector<Value*>{chunk(number, state[0], reduce_chunk)};
      });
  if (rest) chunk(index_constant(chunks - 1), carry[0], rest);
}

/// Scans chunk `number`; gives the fold of this and all chunks before it.
Value* NestEmitter::scan_chunk(Point& point, const Values& fixed, Value* number,
                               Value* carry, int64_t length) {
  Value* first_chunk = b_.CreateICmpEQ(number, index_constant(0));
  Value* start = b_.CreateMul(number, index_constant(reduce_chunk));
  auto group = [&](Value* index, Value* total, Value* is_first, int64_t used) {
    Point at = point;
    at.lanes = scan_lanes;
    if (used < scan_lanes) at.mask = constant_mask(used, scan_lanes);
    set_reduced_index(at, b_.CreateAdd(start, index), scan_lanes);
    Values values = fixed;
    compute(everything(nest_), at, values);
    Value* lanes = widened(values[nest_.scan->operand], at);
    for (int step = 1; step < scan_lanes; step *= 2) {
      llvm::SmallVector<int> shifted;
      llvm::SmallVector<llvm::Constant*> takes_part;
      for (int i = 0; i < scan_lanes; ++i) {
        shifted.push_back(i < step ? i : i - step);
        takes_part.push_back(b_.getInt1(i >= step));
      }
      Value* earlier = b_.CreateShuffleVector(lanes, shifted);
      lanes = b_.CreateSelect(llvm::ConstantVector::get(takes_part),
                              scan_combine(earlier, lanes), lanes);
    }
    const auto last = static_cast<uint64_t>(used - 1);
    Value* own = b_.CreateExtractElement(lanes, last);
    Value* within = b_.CreateSelect(is_first, lanes,
                                    scan_combine(widened(total, at), lanes));
    Value* next = b_.CreateSelect(is_first, own, scan_combine(total, own));
    put_scanned(b_.CreateSelect(first_chunk, within,
                                scan_combine(widened(carry, at), within)),
                at);
    return next;
  };
  const int64_t groups = length / scan_lanes, left = length % scan_lanes;
  std::vector<Value*> total = {llvm::Constant::getNullValue(carry->getType())};
  total =
      carried_loop(index_constant(groups), total,
                   [&](Value* i, llvm::ArrayRef<Value*> state) {
                     Value* index = b_.CreateMul(i, index_constant(scan_lanes));
                     return std::vector<Value*>{group(
                         index, state[0], b_.CreateICmpEQ(i, index_constant(0)),
                         scan_lanes)};
                   });
  if (left)
    total[0] = group(index_constant(groups * scan_lanes), total[0],
                     b_.getInt1(groups == 0), left);
  return b_.CreateSelect(first_chunk, total[0], scan_combine(carry, total[0]));
}

void NestEmitter::emit_scan_in_order(Point& point) {
  Values fixed(nest_.exprs.size());
  outer_values(point, fixed, 0);
  EmitContext c = context(point.lanes);
  std::vector<Value*> total = {
      llvm::Constant::getNullValue(register_type(c, nest_.scan->dtype))};
  carried_in_order(
      reduced_points(), total, [&](Value* i, llvm::ArrayRef<Value*> state) {
        Point at = point;
        set_reduced_index(at, i, 0);
        at.vector_axis = point.vector_axis;
        Values values = fixed;
        compute(everything(nest_), at, values);
        Value* value = widened(values[nest_.scan->operand], at);
        value = b_.CreateSelect(b_.CreateICmpEQ(i, index_constant(0)), value,
                                scan_combine(state[0], value));
        put_scanned(value, at);
        return std::vector<Value*>{value};
      });
}

}  // namespace unisono::jit
