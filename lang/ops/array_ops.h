#pragma once
// Operations on array values that builtins, operators and indexing share, each
// lowered to operations of the IR, in every mode. Functions that take plain
// arrays expect operands that fit: their callers give the messages.
#include <string>
#include <vector>

#include "lang/context/builtin.h"
#include "lang/context/walk.h"

namespace unisono::lang {

/// `a ** b`: host ints stay ints, a small constant exponent becomes a product.
Value power(Walk& walk, const CallArgument& a, const CallArgument& b,
            Span where);
/// `a @ b`, by numpy.matmul's rules.
Value matmul(Walk& walk, const CallArgument& a, const CallArgument& b,
             Span where, ir::Precision precision = ir::Precision::usual);
/// `f32(x)`, `cast(x, f32)`; if the type has a shape, x must have it.
Value convert(Walk& walk, const CallArgument& x, const ir::Type& type,
              Span where);

/// The same elements at another shape of the same number of elements.
ArrayValue reshape(Walk& walk, const ArrayValue& x, ir::Shape shape,
                   Span where);
/// Result axis i is operand axis axes[i].
ArrayValue transpose(Walk& walk, const ArrayValue& x,
                     const std::vector<int>& axes, Span where);
/// The elements in reverse order along some axes.
ArrayValue flip(Walk& walk, const ArrayValue& x, std::vector<int> axes,
                Span where);
/// Elements start ... start + size - 1 along one axis, everything along others.
ArrayValue slice_axis(Walk& walk, const ArrayValue& x, int axis, ir::Dim start,
                      ir::Dim size, Span where);
/// The parts joined along one axis; element types and other sizes agree.
ArrayValue concat(Walk& walk, const std::vector<ArrayValue>& parts, int axis,
                  Span where);
/// x with low[i] times the scalar `value` before axis i, and high[i] times
/// after it.
ArrayValue pad(Walk& walk, const ArrayValue& x, const ArrayValue& value,
               ir::Shape low, ir::Shape high, Span where);
/// 0, 1, 2, ... along one axis of the type.
ArrayValue iota(Walk& walk, ir::Type type, int axis, Span where);
/// A reduction over some axes (ascending), which stay with size 1 if
/// `keepdims`.
ArrayValue reduce(Walk& walk, ir::Op op, const ArrayValue& x,
                  const std::vector<int>& axes, bool keepdims, Span where);
/// x without some axes of size 1, or with a new one; axes are counted in the
/// longer of the two shapes.
ArrayValue remove_axes(Walk& walk, const ArrayValue& x,
                       const std::vector<int>& axes, Span where);
ArrayValue insert_axis(Walk& walk, const ArrayValue& x, int axis, Span where);
/// gather(x, indices) along `axes`: see ir::IndexAttrs.
ArrayValue gather(Walk& walk, const ArrayValue& x,
                  const std::vector<ArrayValue>& indices, std::vector<int> axes,
                  bool checked, Span where);
/// An operation of two arrays of one type, or of an array and a number.
ArrayValue apply(Walk& walk, ir::Op op, const ArrayValue& a,
                 const ArrayValue& b, Span where);
ArrayValue apply(Walk& walk, ir::Op op, const ArrayValue& a, double b,
                 Span where);
/// Compiled code that fails at `where` when it runs unless a condition holds
/// everywhere: "assertion failed", and the message, which begins with ": ".
void assert_when_it_runs(Walk& walk, const ArrayValue& condition,
                         std::string message, Span where);
/// The same in every mode: outside compiled code the error comes now.
void require(Walk& walk, const ArrayValue& condition, std::string message,
             Span where);
/// start + step * (0, 1, ..., size - 1) as an index array: i32, or i64 for
/// sizes beyond it.
ArrayValue index_range(Walk& walk, const ir::Dim& start, const ir::Dim& step,
                       const ir::Dim& size, Span where);
/// An integer array as i32 or i64, which gather takes.
ArrayValue as_index(Walk& walk, const ArrayValue& x, Span where);

}  // namespace unisono::lang
