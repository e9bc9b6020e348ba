#pragma once
// Texts of the manual that are part of the executable.
#include <string_view>
#include <vector>

namespace unisono::host::manual {

/// A page of docs/, by its name without `.md`, and README.md as "README".
struct GuidePage {
  std::string_view name;
  std::string_view text;
};
const std::vector<GuidePage>& guide_pages();

/// "style", the style sheet, and "search", the script.
struct Asset {
  std::string_view name;
  std::string_view text;
};
const std::vector<Asset>& assets();

}  // namespace unisono::host::manual
