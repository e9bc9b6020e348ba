#pragma once
// The names that programs find without binding them, and the modules of the
// standard library.
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "host/lsp/syntax.h"

namespace unisono::host::lsp {

struct LibraryName {
  enum class Kind : uint8_t { function, constant, type };
  Kind kind = Kind::function;
  std::string name;
  std::optional<Signature> signature;  // of functions
  std::string documentation;
  std::string module;  // of the standard library; empty for builtins
};

/// Made once, from the tables and modules that are part of the executable.
class Library {
 public:
  Library();
  using Members = std::map<std::string, LibraryName, std::less<>>;

  /// What is in scope without import.
  const Members& prelude() const { return prelude_; }
  /// A module that is imported; null if there is none of that name.
  const Members* module(std::string_view name) const;
  std::vector<std::string_view> modules() const;
  /// The first comment of a module.
  std::string_view about(std::string_view module) const;

 private:
  struct Module {
    std::unique_ptr<Syntax> syntax;
    Members members;
    std::string about;
  };
  Members prelude_;
  std::map<std::string, Module, std::less<>> modules_;
};

}  // namespace unisono::host::lsp
