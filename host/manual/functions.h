#pragma once
// What the tables say of the functions that are written in C++ besides their
// rows.
#include <string_view>
#include <vector>

namespace unisono::host::manual {

/// Other names of a builtin: "absolute" of abs.
std::vector<std::string_view> other_names(std::string_view builtin);

/// What others call a thing, and what to write here.
struct ElsewhereName {
  std::string_view name, help;
};
const std::vector<ElsewhereName>& elsewhere_names();

}  // namespace unisono::host::manual
