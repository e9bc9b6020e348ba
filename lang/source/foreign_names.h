#pragma once
// Names of NumPy and JAX and what stands for them here, for messages
// (foreign_names.def).
#include <functional>
#include <string_view>

namespace unisono::lang {

/// A suggestion for an unknown name, which may be a path such as `lax.cond`;
/// empty if it is no name of theirs.
std::string_view foreign_name_help(std::string_view name);
/// Whether the name is one such as `np` or `jax`, a module of theirs.
bool is_foreign_module(std::string_view name);
/// Our module with the functions of theirs: `optim` of `optax`; empty if they
/// are in scope, or none has them.
std::string_view module_for(std::string_view name);
/// Whether the language will have it.
bool is_later_name(std::string_view name);
/// A suggestion for a field or method of an array.
std::string_view foreign_field_help(std::string_view name);

/// The function that a field of NumPy's arrays stands for: `transpose` for the
/// `T` of `x.T`; empty if they have no such field.
std::string_view array_field(std::string_view name);

/// Their name of a parameter, our name, and what to write.
struct ForeignArgument {
  std::string_view name, ours, help;
};
/// Of a function with some parameters; null if it is no parameter of theirs
/// that one of these stands for. In the help `%f` stands for the function,
/// `%x` for its first argument, `%v` for the argument itself.
const ForeignArgument* foreign_argument(
    std::string_view name,
    const std::function<bool(std::string_view)>& has_parameter);

}  // namespace unisono::lang
