#pragma once
// What an error says of a name that is not bound.
#include <string>
#include <string_view>

#include "lang/context/environment.h"

namespace unisono::lang {

struct Program;  // ast.h

/// Of the names considered, the one most like a name, if any is like it: short
/// names must have the same letters, so that `inv` is not taken for `inf`,
/// unless the names considered are few, as a module's.
class SimilarName {
 public:
  explicit SimilarName(std::string_view name, bool of_few = false);
  void consider(const std::string& other);
  void consider(const Environment& env);
  /// Empty if no name was like it.
  std::string best() const { return best_; }

 private:
  std::string_view name_;
  size_t limit_, distance_;
  std::string best_;
};

/// The start of the sentence about a name or module that a later version brings
/// ("`eig` is"); empty for any other.
std::string later_text(std::string_view name);

/// The module of the standard library that has to be imported for `name`;
/// empty if none has such a name.
std::string_view module_with(std::string_view name);
/// Whether a module of the standard library has such a name.
bool module_has(std::string_view module, std::string_view name);

/// The place below `use` at which the program defines `name` so that `use`
/// could see it; nowhere if there is none.
Span defined_below(const Program& program, std::string_view name, Span use);

}  // namespace unisono::lang
