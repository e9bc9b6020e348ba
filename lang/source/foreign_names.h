#pragma once
// What a name of NumPy or JAX is called here, for messages (foreign_names.def).
#include <string_view>

namespace unisono::lang {

/// A suggestion for an unknown name; empty for one that is not theirs.
std::string_view foreign_name_help(std::string_view name);
/// The same for a field or method of an array.
std::string_view foreign_field_help(std::string_view name);

/// What they call a parameter: ours, and what to write.
struct ForeignArgument {
  std::string_view name, ours, help;
};
/// Null for one that is not theirs.
const ForeignArgument* foreign_argument(std::string_view name);

}  // namespace unisono::lang
