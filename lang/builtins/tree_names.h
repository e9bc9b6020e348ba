#pragma once
// Names of a tree's leaves, as array files have them: the way from the root,
// "params.w", "layers[0].b".
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lang/context/value.h"

namespace unisono::lang {

enum class PathStyle : uint8_t {
  brackets,  // layers[0].b: an .npz file
  points,    // layers.0.b, as PyTorch names them: a .safetensors file
};

using NamedLeaves = std::vector<std::pair<std::string, Value>>;

/// All leaves in order. A value that is no tree has the name "".
NamedLeaves named_leaves(const Value& tree, PathStyle style);

/// A name in the other style, too, is the same: "layers.0.b". A name that is no
/// way is left as it is.
std::string path_key(std::string_view name);

/// The tree whose leaves have these names. Where they are no ways, or their
/// ways form no tree, a record with each name as a field.
Value tree_of(const NamedLeaves& leaves);

}  // namespace unisono::lang
