#include "lang/source/foreign_names.h"

#include <algorithm>
#include <span>

namespace unisono::lang {
namespace {

struct ForeignName {
  std::string_view name, help;
};
constexpr ForeignName names[] = {
#define FOREIGN_NAME(name, help) {#name, help},
#include "lang/source/foreign_names.def"
};
constexpr ForeignName modules[] = {
#define FOREIGN_MODULE(name, ours) {#name, ours},
#include "lang/source/foreign_names.def"
};
constexpr std::string_view later[] = {
#define LATER_NAME(name) #name,
#include "lang/source/foreign_names.def"
};
constexpr ForeignName fields[] = {
#define FOREIGN_FIELD(name, help) {#name, help},
#include "lang/source/foreign_names.def"
};
constexpr ForeignName array_fields[] = {
#define ARRAY_FIELD(name, function) {#name, #function},
#include "lang/source/foreign_names.def"
};
constexpr ForeignArgument arguments[] = {
#define FOREIGN_ARGUMENT(name, ours, help) {#name, #ours, help},
#include "lang/source/foreign_names.def"
};

std::string_view help_in(std::span<const ForeignName> rows,
                         std::string_view name) {
  for (const ForeignName& row : rows)
    if (row.name == name) return row.help;
  return {};
}

}  // namespace

std::string_view foreign_name_help(std::string_view name) {
  return help_in(names, name);
}

bool is_foreign_module(std::string_view name) {
  return std::ranges::any_of(
      modules, [&](const ForeignName& row) { return row.name == name; });
}

std::string_view module_for(std::string_view name) {
  return help_in(modules, name);
}

bool is_later_name(std::string_view name) {
  return std::ranges::find(later, name) != std::end(later);
}

std::string_view foreign_field_help(std::string_view name) {
  return help_in(fields, name);
}

std::string_view array_field(std::string_view name) {
  return help_in(array_fields, name);
}

const ForeignArgument* foreign_argument(
    std::string_view name,
    const std::function<bool(std::string_view)>& has_parameter) {
  for (const ForeignArgument& row : arguments)
    if (row.name == name && has_parameter(row.ours)) return &row;
  return nullptr;
}

}  // namespace unisono::lang
