#pragma once
// What a loop of compiled code carries from turn to turn: trees of values, of
// whose arrays only the types are known inside the loop. A leaf that the loop
// computes, an array of which nothing but the type is there, is called open.
#include <functional>
#include <optional>
#include <vector>

#include "lang/context/walk.h"

namespace unisono::lang {

/// Both are one host value (a function, an int, a device).
bool same_host_value(const Value& a, const Value& b);

/// A new value for what held `before`: literals take its element type, where
/// it has one and that fits; where it has none, a float stays a float.
Value adopt(Walk& walk, const Value& value, const Value& before, Span where);
/// What a `var` holds, and what a loop starts from: numbers that change, and so
/// are no literals and no sizes.
Value as_variable(Walk& walk, const Value& value, Span where);

/// What the tree is inside the loop: its arrays are open leaves, which vary
/// over `varies`, too.
Value carry_shape(Walk& walk, const Value& value, const AxisSet& varies);
/// `after` with the sizes that the leaves of `before` have, where they may be
/// those: while checking, of open sizes.
Value with_sizes_of(Walk& walk, const Value& before, const Value& after);
/// Whether `after` has the type of `before`, as far as that is known; grows the
/// axes over which the leaves of `before` vary by those of `after` and `extra`,
/// and gives its numbers the types that they become. `grown` is set if it did
/// either: the loop has to be walked once more.
bool same_carry(Walk& walk, Value& before, const Value& after,
                const AxisSet& extra, bool& grown);

/// The arrays that `value` gives for the open leaves of `shape`, cast to their
/// types, appended to `out`. What is not set yet gives zeros, which nobody
/// reads.
void gather_leaves(Walk& walk, const Value& value, const Value& shape,
                   std::vector<ArrayValue>& out, Span where);
/// `shape` with each open leaf replaced by a new parameter of the graph that is
/// traced.
Value leaf_parameters(Walk& walk, const Value& shape);
/// `shapes` with each open leaf replaced by the next of `arrays`, which varies
/// as the leaf said.
std::vector<Value> fill_leaves(const std::vector<Value>& shapes,
                               const std::vector<ArrayValue>& arrays);

/// Whether a leaf is a number without an element type.
bool is_weak_anywhere(const Value& value);
/// The type that the items of both tuples have, which may be of any length
/// (ManyValue), as an item of such a tuple; `meet` gives that of two. Nothing
/// if there is none, or if one of them is no tuple.
std::optional<Value> common_item(
    Walk& walk, const Value& a, const Value& b,
    const std::function<std::optional<Value>(const Value&, const Value&)>&
        meet);
/// An item of it, whose ints need not be those of another item.
Value item_of(Walk& walk, const ManyValue& many);

/// The first `count` results of a control node or a call of the host.
std::vector<ArrayValue> project_all(Walk& walk, const ArrayValue& node,
                                    size_t count, Span where);

}  // namespace unisono::lang
