#pragma once
// What a program documents: its names with the `##` comments above them.
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "host/lsp/syntax.h"

namespace unisono::host::manual {

/// `##` lines without their marks, and the line in the file, from 1, that is
/// their first one.
struct Comment {
  std::string text;
  int line = 1;
};

/// A name at the top level that others can use.
struct Entry {
  enum class Kind : uint8_t { function, type, constant, axis };
  Kind kind = Kind::function;
  std::string name;
  /// A function: "relu(x: f32[n]) -> f32[n]"; else its statement, on one line.
  std::string signature;
  std::vector<std::string> decorators;  // "@jit"
  Comment documentation;
  int line = 1;  // of its definition
};
std::string_view name(Entry::Kind kind);

struct Module {
  std::string name;         // "nn"; of a file "lib/geo"
  std::string import_line;  // what brings it; empty for the prelude's
  std::string place;        // of its page, from the folder of the manual
  std::string source_place;
  std::string key;  // a module of the library: its name; else lsp::file_key
  std::shared_ptr<const lsp::Syntax> syntax;
  Comment about;
  std::vector<Entry> entries;  // in the order of the file
};

/// Reads what stands in `module.syntax` into `about` and `entries`. Names that
/// begin with `_` are its own.
void read_entries(Module& module);

}  // namespace unisono::host::manual
