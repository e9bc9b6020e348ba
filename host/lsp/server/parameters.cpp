#include "host/lsp/server/parameters.h"

#include <fmt/format.h>

#include <algorithm>

#include "host/lsp/server/connection.h"

namespace unisono::host::lsp {

const Json& field(const Json& in, const char* name) {
  const auto found = in.is_object() ? in.find(name) : in.end();
  if (!in.is_object() || found == in.end())
    throw Refusal{ErrorCode::invalid_params,
                  fmt::format("`{}` is missing", name)};
  return *found;
}

std::string text_field(const Json& in, const char* name) {
  const Json& value = field(in, name);
  if (!value.is_string())
    throw Refusal{ErrorCode::invalid_params,
                  fmt::format("`{}` is no string", name)};
  return value.get<std::string>();
}

namespace {

uint32_t count_field(const Json& in, const char* name) {
  const Json& value = field(in, name);
  if (!value.is_number())
    throw Refusal{ErrorCode::invalid_params,
                  fmt::format("`{}` is no number", name)};
  const double number = value.get<double>();
  return static_cast<uint32_t>(std::clamp(number, 0.0, 4e9));
}

}  // namespace

Position position_of(const Json& json) {
  return {count_field(json, "line"), count_field(json, "character")};
}

Range range_of(const Json& json) {
  return {position_of(field(json, "start")), position_of(field(json, "end"))};
}

bool lists(const Json& list, const char* word) {
  return list.is_array() && std::ranges::find(list, Json(word)) != list.end();
}

}  // namespace unisono::host::lsp
