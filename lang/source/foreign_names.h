#pragma once
// Names of NumPy and JAX and what stands for them here, for messages
// (foreign_names.def).
#include <string_view>

namespace unisono::lang {

/// A suggestion for an unknown name; empty if it is no name of theirs.
std::string_view foreign_name_help(std::string_view name);
/// The same for a field or method of an array.
std::string_view foreign_field_help(std::string_view name);

/// The function that a field of NumPy's arrays stands for: `transpose` for the
/// `T` of `x.T`; empty if they have no such field.
std::string_view array_field(std::string_view name);

/// Their name of a parameter, our name, and what to write.
struct ForeignArgument {
  std::string_view name, ours, help;
};
/// Null if it is no parameter of theirs.
const ForeignArgument* foreign_argument(std::string_view name);

}  // namespace unisono::lang
