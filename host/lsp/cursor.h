#pragma once
// What stands around a place where somebody types: by tokens, as the text
// there seldom parses.
#include <optional>
#include <string>
#include <vector>

#include "host/lsp/syntax.h"

namespace unisono::host::lsp {

/// The names of `a.b.c`, as far as they are names.
struct Chain {
  std::vector<std::string> names;  // "a", "b", "c"
  /// Something stands before the first: `f(x).c`.
  bool continues = false;
};

/// A call whose parentheses are around the place.
struct OpenCall {
  Chain callee;
  uint32_t at = 0;   // the first byte of the callee's last name
  int argument = 0;  // commas before the place
  /// `name=` stands before the place, in the same argument.
  std::optional<std::string> name;
  /// All names given in the call, but for the argument at the place.
  std::vector<std::string> given;
  /// The place is where an argument begins.
  bool at_start = false;
};

struct Cursor {
  enum class Where : uint8_t {
    nowhere,  // in a comment, in text, where a new name is bound
    module,   // behind `import`
    member,   // behind a dot
    name      // anywhere else
  };
  Where where = Where::nowhere;
  Chain object;  // of a member: what stands before the dot
  std::optional<OpenCall> call;
};

Cursor cursor_at(const Syntax& syntax, uint32_t offset);

}  // namespace unisono::host::lsp
