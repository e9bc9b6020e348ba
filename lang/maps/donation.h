#pragma once
// `donate=` of a pmap: arguments whose memory the call may use for its results.
#include <vector>

#include "lang/context/builtin.h"
#include "lang/maps/map_spec.h"

namespace unisono::lang {

/// Reads `donate` of a pmap: positions or names of parameters of `inner`.
std::vector<DonatedParameter> read_donate(Argument donate,
                                          const FunctionValue& inner);

/// By input of a call: whether it is given away.
std::vector<bool> donated_inputs(const MapCallee& callee,
                                 const BoundCall& call);

/// One array of a call, and the place of its argument.
struct PassedArray {
  ArrayValue value;
  Span where;
  std::string path;  // "state.w"; "" if it has no name
};
/// Gives away those arrays that are `donated`, so that a later use of them is
/// an error (Walk::donate). An error if one of them is passed twice.
void give_away(Walk& walk, const FunctionValue& function,
               const std::vector<PassedArray>& passed,
               const std::vector<bool>& donated);

}  // namespace unisono::lang
