#pragma once
// What is said of a name that is not there.
#include <string>
#include <string_view>

#include "lang/context/environment.h"

namespace unisono::lang {

struct Program;  // ast.h

/// The candidate most like a name, if one is like it: short names must have
/// the same letters, so that `inv` is not taken for `inf`.
class SimilarName {
 public:
  explicit SimilarName(std::string_view name);
  void consider(const std::string& other);
  void consider(const Environment& env);
  /// Empty if none is.
  std::string best() const { return best_; }

 private:
  std::string_view name_;
  size_t limit_, distance_;
  std::string best_;
};

/// What is said of a name or module that a later version brings ("random
/// numbers are"); empty for any other.
std::string later_text(std::string_view name);

/// The module of the standard library that has to be imported for `name`;
/// empty if none has it.
std::string_view module_with(std::string_view name);
/// `np`, `jax`, ...: what stands before a name in other languages.
bool is_foreign_module(std::string_view name);

/// Where a program defines a name below `use`, where `use` could see it.
Span defined_below(const Program& program, std::string_view name, Span use);

}  // namespace unisono::lang
