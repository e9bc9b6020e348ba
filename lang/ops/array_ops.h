#pragma once
// Operations on array values that builtins, operators and indexing share: each
// a lowering to operations of the IR, in every mode. Those that take plain
// arrays expect operands that fit; messages are the caller's.
#include <vector>

#include "lang/context/builtin.h"
#include "lang/context/evaluator.h"

namespace unisono::lang {

/// `a ** b`: host ints stay ints, a small constant exponent becomes a product.
Value power(Evaluator& evaluator, const CallArgument& a, const CallArgument& b,
            Span where);
/// `a @ b`, by numpy.matmul's rules.
Value matmul(Evaluator& evaluator, const CallArgument& a, const CallArgument& b,
             Span where, ir::Precision precision = ir::Precision::usual);
/// `f32(x)`, `cast(x, f32)`; of a type with a shape, that shape is expected.
Value convert(Evaluator& evaluator, const CallArgument& x, const ir::Type& type,
              Span where);

/// `split(x, parts, axis)` of an array: a tuple of its parts.
Value split_array(BuiltinCall& call);

/// The same elements at another shape of the same number of elements.
ArrayValue reshape(Evaluator& evaluator, const ArrayValue& x, ir::Shape shape,
                   Span where);
/// Result axis i is operand axis axes[i].
ArrayValue transpose(Evaluator& evaluator, const ArrayValue& x,
                     const std::vector<int>& axes, Span where);
/// Reversed along some axes.
ArrayValue flip(Evaluator& evaluator, const ArrayValue& x,
                std::vector<int> axes, Span where);
/// Elements start ... start + size - 1 along one axis, everything along others.
ArrayValue slice_axis(Evaluator& evaluator, const ArrayValue& x, int axis,
                      ir::Dim start, ir::Dim size, Span where);
/// Joined along one axis; element types and other sizes agree.
ArrayValue concat(Evaluator& evaluator, const std::vector<ArrayValue>& parts,
                  int axis, Span where);
/// A scalar before and after each axis.
ArrayValue pad(Evaluator& evaluator, const ArrayValue& x,
               const ArrayValue& value, ir::Shape low, ir::Shape high,
               Span where);
/// 0, 1, 2, ... along one axis of the type.
ArrayValue iota(Evaluator& evaluator, ir::Type type, int axis, Span where);
/// A reduction over some axes (ascending), which stay with size 1 if
/// `keepdims`.
ArrayValue reduce(Evaluator& evaluator, ir::Op op, const ArrayValue& x,
                  const std::vector<int>& axes, bool keepdims, Span where);
/// x without axes of size 1, or with new ones: the axes count in the longer.
ArrayValue remove_axes(Evaluator& evaluator, const ArrayValue& x,
                       const std::vector<int>& axes, Span where);
ArrayValue insert_axis(Evaluator& evaluator, const ArrayValue& x, int axis,
                       Span where);
/// gather(x, indices) along `axes`: see ir::IndexAttrs.
ArrayValue gather(Evaluator& evaluator, const ArrayValue& x,
                  const std::vector<ArrayValue>& indices, std::vector<int> axes,
                  bool checked, Span where);
/// An operation of two arrays of one type, or of an array and a number.
ArrayValue apply(Evaluator& evaluator, ir::Op op, const ArrayValue& a,
                 const ArrayValue& b, Span where);
ArrayValue apply(Evaluator& evaluator, ir::Op op, const ArrayValue& a, double b,
                 Span where);
/// start + step * (0, 1, ..., size - 1) as an index array: i32, or i64 for
/// sizes beyond it.
ArrayValue index_range(Evaluator& evaluator, const ir::Dim& start,
                       const ir::Dim& step, const ir::Dim& size, Span where);
/// An integer array as i32 or i64, as gather wants it.
ArrayValue as_index(Evaluator& evaluator, const ArrayValue& x, Span where);

}  // namespace unisono::lang
