#pragma once
// Small operations outside compiled code are computed where they stand: a graph
// of them would cost more than they do.
#include <span>

#include "lang/context/builtin.h"
#include "lang/context/value.h"
#include "lang/context/walk.h"
#include "lang/syntax/ast.h"

namespace unisono::lang {

/// The result, of `type`, of an operation of arrays that are there or constant,
/// computed by the reference evaluator's loop for it (run mode): the bits that
/// a graph with the operation gives. Null where a graph has to do it: for
/// control, collectives and calls of the host, where an operand is still to be
/// computed or the host cannot read it, where there is so much work that
/// compiled code may be better, and where an element is at fault or there is
/// no memory, since an error comes when the statement ends.
ArrayValue compute_small(Walk& walk, ir::Op op,
                         std::span<const ArrayValue> operands,
                         const ir::Attrs& attrs, const ir::Type& type);

/// `a op b` of two small arrays, or of one and a number, at once: what
/// `binary` gives, without the promotions and broadcasts in between. Null where
/// it is anything else, where `compute_small` would be, and where the operator
/// has to say what is wrong.
ArrayValue small_binary(Walk& walk, BinaryOp op, const CallArgument& a,
                        const CallArgument& b);

/// `a op b` of two numbers without an element type, of which one is no int, in
/// run mode: what `binary` gives. Null where it is anything else.
ArrayValue number_binary(Walk& walk, BinaryOp op, const CallArgument& a,
                         const CallArgument& b);

/// `a @ b` of two small matrices of one type, f32 or f64, at once; null where
/// it is anything else.
ArrayValue small_product(Walk& walk, const Value& a, const Value& b);

}  // namespace unisono::lang
