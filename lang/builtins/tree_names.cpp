#include "lang/builtins/tree_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <optional>

namespace unisono::lang {
namespace {

/// Trees of the language nest less.
constexpr size_t most_steps = 200;

void add_leaves(const Value& tree, PathStyle style, const std::string& name,
                NamedLeaves& out) {
  if (const TupleValue* tuple = tree.tuple()) {
    for (size_t i = 0; i < tuple->items.size(); ++i) {
      const std::string step =
          style == PathStyle::brackets
              ? fmt::format("[{}]", i)
              : fmt::format("{}{}", name.empty() ? "" : ".", i);
      add_leaves(tuple->items[i], style, name + step, out);
    }
  } else if (const RecordValue* record = tree.record()) {
    for (const auto& [field, value] : record->fields)
      add_leaves(value, style, name.empty() ? field : name + "." + field, out);
  } else {
    out.emplace_back(name, tree);
  }
}

bool is_number(std::string_view step) {
  return !step.empty() && step.size() <= 6 &&
         std::ranges::all_of(step,
                             [](char c) { return c >= '0' && c <= '9'; }) &&
         (step == "0" || step[0] != '0');
}

/// The steps of a way: names of fields, and numbers. Nothing if it is none.
std::optional<std::vector<std::string>> steps_of(std::string_view name) {
  std::vector<std::string> steps;
  bool first = true;
  while (!name.empty() || first) {
    if (steps.size() == most_steps) return std::nullopt;
    std::string_view step;
    if (name.starts_with('[')) {
      const size_t end = name.find(']');
      if (end == name.npos) return std::nullopt;
      step = name.substr(1, end - 1);
      if (!is_number(step)) return std::nullopt;
      name.remove_prefix(end + 1);
      if (!name.empty() && name[0] != '.' && name[0] != '[')
        return std::nullopt;
    } else {
      if (!first) {
        if (name[0] != '.') return std::nullopt;
        name.remove_prefix(1);
      }
      const size_t end = std::min(name.find_first_of(".[]"), name.size());
      step = name.substr(0, end);
      name.remove_prefix(end);
    }
    if (step.empty()) return std::nullopt;
    steps.emplace_back(step);
    first = false;
  }
  return steps;
}

/// A tree while it is made: a leaf, or parts by name.
struct Node {
  std::optional<Value> leaf;
  std::vector<std::pair<std::string, std::unique_ptr<Node>>> parts;

  Node* part(const std::string& name) {
    for (auto& [known, node] : parts)
      if (known == name) return node.get();
    return parts.emplace_back(name, std::make_unique<Node>()).second.get();
  }

  /// Nothing if a leaf has parts, or numbers do not count them.
  std::optional<Value> value() const {
    if (leaf) return parts.empty() ? leaf : std::nullopt;
    const auto numbers = std::ranges::count_if(
        parts, [](const auto& part) { return is_number(part.first); });
    if (numbers == 0) {
      std::vector<std::pair<std::string, Value>> fields;
      for (const auto& [name, node] : parts) {
        auto part = node->value();
        if (!part) return std::nullopt;
        fields.emplace_back(name, std::move(*part));
      }
      return make_record(std::move(fields));
    }
    if (numbers != static_cast<ptrdiff_t>(parts.size())) return std::nullopt;
    std::vector<Value> items(parts.size());
    for (const auto& [name, node] : parts) {
      size_t i = 0;
      std::from_chars(name.data(), name.data() + name.size(), i);
      auto part = node->value();
      if (!part || i >= items.size()) return std::nullopt;
      items[i] = std::move(*part);  // names differ, so each has one
    }
    return make_tuple(std::move(items));
  }
};

}  // namespace

NamedLeaves named_leaves(const Value& tree, PathStyle style) {
  NamedLeaves out;
  add_leaves(tree, style, "", out);
  return out;
}

std::string path_key(std::string_view name) {
  const auto steps = steps_of(name);
  return steps ? fmt::format("{}", fmt::join(*steps, ".")) : std::string(name);
}

Value tree_of(const NamedLeaves& leaves) {
  Node root;
  bool fits = !leaves.empty();
  for (const auto& [name, value] : leaves) {
    const auto steps = steps_of(name);
    fits = fits && steps;
    if (!fits) break;
    Node* node = &root;
    for (const std::string& step : *steps) node = node->part(step);
    fits = !node->leaf && node->parts.empty();
    node->leaf = value;
  }
  if (fits)
    if (auto tree = root.value()) return *tree;
  std::vector<std::pair<std::string, Value>> fields(leaves.begin(),
                                                    leaves.end());
  return make_record(std::move(fields));
}

}  // namespace unisono::lang
