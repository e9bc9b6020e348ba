#pragma once
// Random numbers are functions of a key, a type and a shape alone, so that no
// result depends on devices, maps, or on what was drawn before (docs/random.md,
// whose formulas are those of these functions). All work in every mode of the
// walk, on symbolic sizes too.
#include "jit/ir/graph.h"
#include "lang/context/builtin.h"
#include "lang/context/walk.h"

namespace unisono::lang {

/// The argument as a key: its two words as a scalar of u64, word 0 above. An
/// error that says how keys are made if it is none.
ArrayValue key_argument(Argument argument);
/// Keys number 0 and 1 of those that `split_key` makes of a key.
std::pair<ArrayValue, ArrayValue> split_in_two(Walk& walk,
                                               const ArrayValue& key,
                                               Span where);

/// 64 random bits for each element, u64.
ArrayValue random_words(Walk& walk, const ArrayValue& key,
                        const ir::Shape& shape, Span where);
/// Random bits of an unsigned type.
ArrayValue random_bits(Walk& walk, const ArrayValue& key, const ir::Type& type,
                       Span where);
/// Floats of a type from 0 to 1, without 1: whole multiples of its epsilon.
ArrayValue random_fractions(Walk& walk, const ArrayValue& key,
                            const ir::Type& type, Span where);
/// -log(-log(u)) with u uniform between 0 and 1.
ArrayValue random_gumbel(Walk& walk, const ArrayValue& key,
                         const ir::Type& type, Span where);
/// Integers of a type from 0 to `count`, without it. `count` is a size that the
/// type holds, and not 0.
ArrayValue random_positions(Walk& walk, const ArrayValue& key,
                            const ir::Type& type, const ir::Dim& count,
                            Span where);

}  // namespace unisono::lang
