#pragma once
// The names of a file as they stand in its text, and what each means.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lang/resolve/resolution.h"
#include "lang/syntax/ast.h"

namespace unisono::host::lsp {

using Definition = lang::Resolution::Definition;

/// A name where it stands.
struct Occurrence {
  enum class Kind : uint8_t {
    local,     // means `definition`
    library,   // the prelude, or a name that means nothing
    member,    // of the module `definition`
    argument,  // by name, of a function that is not known here
    field      // of a record
  };
  enum class Use : uint8_t { definition, read, write };
  lang::Span where;
  Kind kind = Kind::library;
  Use use = Use::read;
  bool is_called = false;
  /// A function's use of a name around it: it means what that is bound to when
  /// the function is called.
  bool is_later = false;
  int definition = -1;
  /// Of a member: "f"; and "k" where this is its argument `f(k = 2)`.
  std::string member, argument;
  /// Of a field `x.name`: the expression `x`. If it is called and `x` has no
  /// such field, it is a function of that name, `definition` if not -1.
  const lang::Expr* object = nullptr;
};

/// The names of one program, which outlives this.
class Names {
 public:
  explicit Names(const lang::Program& program);

  const lang::Resolution& resolution() const { return resolution_; }
  const std::vector<Definition>& definitions() const {
    return resolution_.definitions;
  }
  /// In the order of the text; none lie inside one another.
  const std::vector<Occurrence>& occurrences() const { return occurrences_; }
  /// The one at a byte, or that ends there; null if there is none.
  const Occurrence* at(uint32_t offset) const;
  /// What it may mean, nearest first: several where a function means a name
  /// that is bound more than once.
  std::vector<const Definition*> targets(const Occurrence& occurrence) const;
  /// Definitions of one variable that a function may mean, which is called now
  /// before, now after the second, are one thing: the number of the first.
  int group(const Definition& definition) const;
  bool is_top_level(const Definition& definition) const {
    return resolution_.variables[definition.variable].scope == 0;
  }
  /// The parameter of that name of the definition's function; null if there is
  /// none.
  const Definition* parameter(const Definition& definition,
                              std::string_view name) const;
  /// Where a word that is a name elsewhere (`axis`, `type`, `test`) begins a
  /// declaration, in the order of the text.
  const std::vector<uint32_t>& declaring_words() const { return words_; }
  const std::vector<const lang::ImportStmt*>& imports() const {
    return imports_;
  }

 private:
  friend class Indexer;
  lang::Resolution resolution_;
  std::vector<Occurrence> occurrences_;
  std::vector<uint32_t> words_;
  std::vector<const lang::ImportStmt*> imports_;
};

}  // namespace unisono::host::lsp
