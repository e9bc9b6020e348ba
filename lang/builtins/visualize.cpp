#include "lang/builtins/visualize.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

namespace unisono::lang {
namespace {

constexpr size_t max_columns = 78, max_rows = 24;

/// One block of the array, with everybody who holds it.
struct DeviceBlock {
  std::vector<const Device*> devices;
  std::vector<int64_t> part;  // which one it is along each axis of the array

  bool is_shared() const { return devices.size() > 1; }
  std::string text() const {
    std::string names = devices[0]->name();
    for (size_t i = 1; i < devices.size(); ++i)
      names += ", " + devices[i]->name();
    return names.size() <= 24 || !is_shared()
               ? names
               : fmt::format("{} devices", devices.size());
  }
};

/// How an array is cut: `rows` x `columns` blocks in row-major order. The last
/// axis goes across, the others down, and so does a single one that is not the
/// last.
struct Picture {
  std::vector<int64_t> parts;  // along each axis of the array
  size_t rows = 1, columns = 1;
  std::vector<DeviceBlock> blocks;
};

Picture picture_of(const unisono::Array& array) {
  const Sharding& sharding = array.sharding();
  std::vector<MeshCut> mesh = sharding.mesh;
  if (mesh.empty())
    mesh.push_back(
        {static_cast<int64_t>(sharding.devices.size()), sharding.axis});
  Picture out;
  out.parts.resize(static_cast<size_t>(array.rank()), 1);
  for (const MeshCut& cut : mesh)
    if (cut.axis >= 0) out.parts[static_cast<size_t>(cut.axis)] *= cut.size;
  for (size_t i = 0; i < out.parts.size(); ++i)
    (i + 1 == out.parts.size() ? out.columns : out.rows) *=
        static_cast<size_t>(out.parts[i]);
  out.blocks.resize(out.rows * out.columns);
  for (size_t d = 0; d < sharding.devices.size(); ++d) {
    std::vector<int64_t> part(out.parts.size(), 0);
    auto rest = static_cast<int64_t>(d);
    auto below = static_cast<int64_t>(sharding.devices.size());
    for (const MeshCut& cut : mesh) {
      below /= cut.size;
      const int64_t at = rest / below;
      rest %= below;
      if (cut.axis < 0) continue;
      int64_t& of_axis = part[static_cast<size_t>(cut.axis)];
      of_axis = of_axis * cut.size + at;
    }
    int64_t place = 0;
    for (size_t i = 0; i < part.size(); ++i)
      place = place * out.parts[i] + part[i];
    DeviceBlock& block = out.blocks[static_cast<size_t>(place)];
    block.devices.push_back(sharding.devices[d]);
    block.part = std::move(part);
  }
  return out;
}

/// Which of `count` rows or columns to draw: all, or the first and last few
/// with a -1, for "…", between.
std::vector<int> shown(size_t count, size_t limit) {
  std::vector<int> out;
  const size_t kept =
      count <= limit ? count : std::max<size_t>(1, (limit - 1) / 2);
  for (size_t i = 0; i < kept; ++i) out.push_back(static_cast<int>(i));
  if (kept == count) return out;
  out.push_back(-1);
  for (size_t i = count - kept; i < count; ++i)
    out.push_back(static_cast<int>(i));
  return out;
}

/// A colour of its own for each of twelve devices, then again: light enough for
/// black text, and told apart by people who see no red or green.
constexpr std::array<uint32_t, 12> palette = {
    0x8dd3ff, 0xffc46b, 0x9be29b, 0xf7a8c9, 0xd9c2ff, 0xfff08a,
    0x7fe0d4, 0xffab91, 0xc5d86d, 0xb0bec5, 0xe6b3ff, 0xd7ccc8};

/// Of what several devices hold: none of theirs.
uint32_t colour_of(const DeviceBlock& block) {
  return block.is_shared()
             ? 0xeeeeee
             : palette[static_cast<size_t>(block.devices[0]->index()) %
                       palette.size()];
}

std::string painted(const std::string& text, const DeviceBlock& block,
                    bool colour) {
  if (!colour || block.is_shared()) return text;
  const uint32_t rgb = colour_of(block);
  return fmt::format("\x1b[30;48;2;{};{};{}m{}\x1b[0m", rgb >> 16,
                     rgb >> 8 & 255, rgb & 255, text);
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

std::string draw_sharding(const unisono::Array& array, bool colour) {
  const Picture picture = picture_of(array);
  size_t width = picture.columns > 1 ? 3 : 10;
  for (const DeviceBlock& block : picture.blocks)
    width = std::max(width, block.text().size());
  width += 2;
  const std::vector<int> rows = shown(picture.rows, max_rows);
  const std::vector<int> columns =
      shown(picture.columns, (max_columns - 1) / (width + 1));
  std::string text = rule("┌", "┬", "┐", columns.size(), width);
  for (size_t i = 0; i < rows.size(); ++i) {
    if (i > 0) text += rule("├", "┼", "┤", columns.size(), width);
    text += "│";
    for (int column : columns) {
      if (rows[i] < 0 || column < 0) {
        text += centred("…", width) + "│";
        continue;
      }
      const DeviceBlock& block =
          picture.blocks[static_cast<size_t>(rows[i]) * picture.columns +
                         static_cast<size_t>(column)];
      text += painted(centred(block.text(), width), block, colour) + "│";
    }
    text += "\n";
  }
  return text + rule("└", "┴", "┘", columns.size(), width);
}

namespace {

/// The elements of a block: "[0:2, :]".
std::string slice_text(const unisono::Array& array, const Picture& picture,
                       const DeviceBlock& block) {
  std::string text = "[";
  for (size_t i = 0; i < picture.parts.size(); ++i) {
    if (i > 0) text += ", ";
    if (picture.parts[i] == 1) {
      text += ":";
      continue;
    }
    const int64_t size = array.shape()[i] / picture.parts[i];
    text +=
        fmt::format("{}:{}", block.part[i] * size, (block.part[i] + 1) * size);
  }
  return text + "]";
}

/// Width and height of the whole array in the picture: its proportions, but
/// neither side much shorter than the other, so that labels fit.
std::pair<double, double> picture_size(const unisono::Array& array) {
  constexpr double longest = 640, shortest = 120;
  if (array.rank() < 2) return {longest, shortest};
  const auto rows = static_cast<double>(array.shape()[array.rank() - 2]);
  const auto columns = static_cast<double>(array.shape()[array.rank() - 1]);
  if (rows <= 0 || columns <= 0) return {longest, shortest};
  return rows > columns
             ? std::pair(std::max(shortest, longest * columns / rows), longest)
             : std::pair(longest, std::max(shortest, longest * rows / columns));
}

/// Text in the middle of a box, with a second line under it; small boxes get
/// smaller letters, or none.
std::string label(double x, double y, double width, double height,
                  const std::string& first, const std::string& second) {
  const auto letters =
      static_cast<double>(std::max(first.size(), second.size()));
  const double size = std::min({16.0, width / (0.62 * letters), height / 2.8});
  if (size < 5) return "";
  auto line = [&](double shift, const std::string& text) {
    return fmt::format(
        "  <text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"{:.1f}\" "
        "text-anchor=\"middle\">{}</text>\n",
        x + width / 2, y + height / 2 + shift * size, size, text);
  };
  return line(-0.2, first) + line(1.0, second);
}

/// Without the names of the devices, which stand in the blocks.
std::string place_text(const Sharding& sharding) {
  std::string text = sharding.to_string();
  if (!sharding.is_split()) return text;
  const size_t names =
      sharding.mesh.empty() ? text.find(" over ") : text.find(':');
  text.resize(names);
  return sharding.mesh.empty()
             ? fmt::format("{} over {} devices", text, sharding.devices.size())
             : text;
}

}  // namespace

std::string svg_of_sharding(const unisono::Array& array) {
  const Sharding& sharding = array.sharding();
  const auto [width, height] = picture_size(array);
  constexpr double margin = 20, title = 30;
  std::string sizes = fmt::format("{}", fmt::join(array.shape(), ", "));
  std::string text = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" "
      "height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} {1:.0f}\" "
      "font-family=\"monospace\">\n"
      "  <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
      "  <text x=\"{2:.0f}\" y=\"{3:.0f}\" font-size=\"14\">{4}[{5}] {6}"
      "</text>\n",
      std::max(width, 400.0) + 2 * margin, height + 2 * margin + title, margin,
      margin + 10, name(array.dtype()), sizes, place_text(sharding));
  const Picture picture = picture_of(array);
  const double w = width / static_cast<double>(picture.columns);
  const double h = height / static_cast<double>(picture.rows);
  for (size_t b = 0; b < picture.blocks.size(); ++b) {
    const DeviceBlock& block = picture.blocks[b];
    const double x = margin + static_cast<double>(b % picture.columns) * w;
    const double y =
        margin + title + static_cast<double>(b / picture.columns) * h;
    text += fmt::format(
        "  <rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" "
        "height=\"{:.1f}\" fill=\"#{:06x}\" stroke=\"#333\"/>\n",
        x, y, w, h, colour_of(block));
    text += label(x, y, w, h, block.text(), slice_text(array, picture, block));
  }
  return text + "</svg>\n";
}

}  // namespace unisono::lang
