#include "lang/visualize.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace unisono::lang {
namespace {

constexpr size_t max_columns = 78, max_rows = 24;

/// Blocks to draw: all, or the first and last few with an "…" between.
std::vector<std::string> shortened(std::vector<std::string> names,
                                   size_t limit) {
  if (names.size() <= limit) return names;
  const size_t kept = std::max<size_t>(1, (limit - 1) / 2);
  std::vector<std::string> result(names.begin(), names.begin() + kept);
  result.push_back("…");
  result.insert(result.end(), names.end() - kept, names.end());
  return result;
}

size_t columns(const std::string& text) {
  return text == "…" ? 1 : text.size();
}

std::string centred(const std::string& text, size_t width) {
  const size_t left = (width - columns(text)) / 2;
  return std::string(left, ' ') + text +
         std::string(width - columns(text) - left, ' ');
}

/// A horizontal rule with the given ends and joints: `┌────┬────┐`.
std::string rule(std::string_view left, std::string_view joint,
                 std::string_view right, size_t cells, size_t width) {
  std::string text(left);
  for (size_t i = 0; i < cells; ++i) {
    if (i > 0) text += joint;
    for (size_t j = 0; j < width; ++j) text += "─";
  }
  return text.append(right) + "\n";
}

}  // namespace

namespace {

/// A matrix whose rows are cut along one axis of a grid of devices and whose
/// columns along the other.
std::string draw_grid(const Sharding& sharding) {
  const int64_t rows = sharding.grid[0].size, cols = sharding.grid[1].size;
  const bool turned = sharding.grid[0].axis > sharding.grid[1].axis;
  const int64_t down = turned ? cols : rows, across = turned ? rows : cols;
  size_t width = 0;
  for (const Device* device : sharding.devices)
    width = std::max(width, device->name().size() + 2);
  const auto cells = static_cast<size_t>(across);
  std::string text = rule("┌", "┬", "┐", cells, width);
  for (int64_t i = 0; i < down; ++i) {
    if (i > 0) text += rule("├", "┼", "┤", cells, width);
    text += "│";
    for (int64_t j = 0; j < across; ++j)
      text +=
          centred(
              sharding.devices[turned ? j * cols + i : i * cols + j]->name(),
              width) +
          "│";
    text += "\n";
  }
  return text + rule("└", "┴", "┘", cells, width);
}

}  // namespace

std::string draw_sharding(const unisono::Array& array) {
  const Sharding& sharding = array.sharding();
  const auto& grid = sharding.grid;
  if (grid.size() == 2 && grid[0].axis >= 0 && grid[1].axis >= 0 &&
      array.rank() == 2) {
    return draw_grid(sharding);
  }
  std::vector<std::string> names;
  for (const Device* device : sharding.devices) names.push_back(device->name());
  if (!sharding.is_split()) {
    names = {fmt::format("{}", fmt::join(names, ", "))};
    if (names[0].size() > max_columns - 4) {
      names = {fmt::format("{} devices", sharding.devices.size())};
    }
  }
  size_t width = 0;
  for (const std::string& name : names) width = std::max(width, name.size());
  width += 2;
  // A vector, or a matrix split along its columns, lies side by side.
  const bool side_by_side = sharding.axis == array.rank() - 1;
  std::string text;
  if (side_by_side) {
    names = shortened(names, (max_columns - 1) / (width + 1));
    text = rule("┌", "┬", "┐", names.size(), width) + "│";
    for (const std::string& name : names) text += centred(name, width) + "│";
    return text + "\n" + rule("└", "┴", "┘", names.size(), width);
  }
  width = std::max<size_t>(width, 12);
  names = shortened(names, max_rows);
  text = rule("┌", "", "┐", 1, width);
  for (size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += rule("├", "", "┤", 1, width);
    text += "│" + centred(names[i], width) + "│\n";
  }
  return text + rule("└", "", "┘", 1, width);
}

}  // namespace unisono::lang
