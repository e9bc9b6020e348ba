#pragma once
// Operators on values, with promotion and broadcasting, which builtins use,
// too.
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "jit/ir/graph.h"
#include "lang/context/walk.h"
#include "lang/syntax/ast.h"

namespace unisono::lang {

/// `a op b`, where both are evaluated already (so `and`, `or` do not
/// short-circuit here). `op_span` is the operator's place.
Value binary(Walk& walk, BinaryOp op, const CallArgument& a,
             const CallArgument& b, Span op_span, Span where);
Value unary(Walk& walk, UnaryOp op, const CallArgument& a, Span where);

/// The operation that computes an operator on arrays; nothing for `in`, `not
/// in`.
std::optional<ir::Op> operation_of(BinaryOp op);
ir::Op operation_of(UnaryOp op);
/// The operator that an operation is on numbers, if it is one: `+` of `add`.
std::optional<BinaryOp> binary_operator_of(ir::Op op);
std::optional<UnaryOp> unary_operator_of(ir::Op op);
/// Whether it takes integers only as the floats that they are promoted to.
bool floats_only(ir::Op op);

/// An int that was computed: an error at `where` if 64 bits cannot hold it.
Value checked_int(Walk& walk, ir::Dim value, Span where);

/// `a op b` of two ints: an int, but for `/`; nothing where ints have no rule
/// of their own.
std::optional<Value> int_arithmetic(Walk& walk, BinaryOp op, const ir::Dim& a,
                                    const ir::Dim& b, Span where);

/// Whether two host values are equal: the inner optional is empty where that is
/// known only at run time, the outer one where they are no host values.
std::optional<std::optional<bool>> host_equal(const Value& a, const Value& b);

/// The lattice position of an array, an int or a host bool; nothing for
/// another value.
std::optional<WeakDType> element_type(const Value& value);
/// `value` as an array of this element type. Literals and ints adopt it (an
/// error if they do not fit), arrays are cast. `what` names the operation in
/// messages: "`where`", "`+`".
ArrayValue to_dtype(Walk& walk, const CallArgument& value, WeakDType dtype,
                    std::string_view what);
/// The array with this element type, not weak.
ArrayValue cast_to(Walk& walk, const ArrayValue& array, DType dtype,
                   Span where);
/// The least type above those of all operands; an error if one has none.
WeakDType promoted_type(Walk& walk, std::span<const CallArgument> operands,
                        std::string_view what);
/// All operands as arrays of the promoted type; shapes are left alone.
std::vector<ArrayValue> promote_operands(Walk& walk,
                                         std::span<const CallArgument> operands,
                                         std::string_view what);
/// The same for operators and elementwise functions: if all operands are
/// numbers without an element type, they stay so.
std::vector<ArrayValue> promote_numbers(Walk& walk,
                                        std::span<const CallArgument> operands,
                                        std::string_view what);
std::vector<ArrayValue> promote_numbers_to_float(
    Walk& walk, std::span<const CallArgument> operands, std::string_view what);
/// As promote_operands, for an operation on floats: integers and bools become
/// f32.
std::vector<ArrayValue> promote_to_float(Walk& walk,
                                         std::span<const CallArgument> operands,
                                         std::string_view what);

/// NumPy's rule: aligned at the last axis, sizes equal or one of them 1.
/// Nothing if they do not fit; open sizes are what they have to be (sizes.h).
std::optional<ir::Shape> broadcast_shape(Walk& walk, const ir::Shape& a,
                                         const ir::Shape& b);
/// The array, of which a question of sizes.h has told that this is its shape.
ArrayValue taken_for(Walk& walk, const ArrayValue& array, ir::Shape shape);
/// The array at this shape, which it must fit (an error otherwise).
ArrayValue broadcast_to(Walk& walk, const ArrayValue& array,
                        const ir::Shape& shape, Span where);
/// Broadcasts all arrays, which are the `operands`, to their common shape; the
/// error names the two that do not fit.
void broadcast_all(Walk& walk, std::span<ArrayValue> arrays,
                   std::span<const CallArgument> operands, Span where,
                   std::string_view what);

}  // namespace unisono::lang
