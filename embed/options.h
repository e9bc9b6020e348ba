#pragma once
// Structures of the C interface that may grow: the caller's may be older, and
// shorter, or newer, and longer, than ours.
#include <algorithm>
#include <cstddef>
#include <cstring>

namespace unisono::embed {

/// What the caller's structure says; what it does not have is 0. `from` may be
/// null.
template <class Options>
Options read_options(const Options* from) {
  Options all{};
  if (!from) return all;
  std::memcpy(&all, from, std::min(from->struct_size, sizeof(Options)));
  return all;
}

/// Writes as much as the caller's structure has room for.
template <class Options>
void write_options(const Options& all, Options* to) {
  const size_t size = std::min(to->struct_size, sizeof(Options));
  std::memcpy(reinterpret_cast<char*>(to) + sizeof(size_t),
              reinterpret_cast<const char*>(&all) + sizeof(size_t),
              size < sizeof(size_t) ? 0 : size - sizeof(size_t));
}

}  // namespace unisono::embed
