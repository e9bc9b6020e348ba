#pragma once
// What is known of a name: `?name` and `??name`.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "host/session/session.h"

namespace unisono::host {

/// The value of `name`, `record.field`, `module.name`, `tuple.0`; nothing if
/// there is none.
std::optional<lang::Value> find_value(Session& session, std::string_view name);

/// "scale(x, k)", "sum(x, axis=none, *, keepdims=false)"
std::string signature_of(const lang::FunctionValue& function);
/// Its parameters by name, those that a call can name.
std::vector<std::string> parameters_of(Session& session,
                                       const lang::FunctionValue& function);

/// What `describe` says of a name that means something; else nothing.
std::optional<std::string> description_of(Session& session,
                                          std::string_view name);
/// Documentation, signature, examples of a function; type and place of a value;
/// what a module has; the page of a code. Of a name that is unknown those that
/// are like it. Lines, each with its end.
std::string describe(Session& session, std::string_view name);
/// The text of its definition, and where that stands.
std::string source_of(Session& session, std::string_view name);

}  // namespace unisono::host
