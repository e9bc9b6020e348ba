#pragma once
// The names of the library that are written in the language: a definition is
// read when its name is first looked up, as most programs use a few of them.
#include <functional>
#include <string>

#include "lang/context/environment.h"

namespace unisono::lang {

class Walk;

struct LibraryEnvironment : Environment {
  /// Defines a name that is unread.
  std::function<void(const std::string& name)> read;

  /// The name is the library's, and its definition is not read yet.
  void add_unread(const std::string& name) {
    names[name].type_record = unread_mark;
  }
  /// Only a LibraryEnvironment holds such a binding.
  static bool is_unread(const Binding& binding) {
    return binding.type_record == unread_mark;
  }

 private:
  static constexpr int64_t unread_mark = -2;
};

/// A function that is in scope without import: what a builtin leaves to
/// stdlib/. There must be one. Names that begin with `_` are for this alone.
Value library_function(Walk& walk, const std::string& name);

}  // namespace unisono::lang
