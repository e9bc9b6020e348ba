#pragma once
// What each name of a file means: definitions, and the places that mean them.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lang/syntax/ast.h"

namespace unisono::host::lsp {

/// A name that the file binds, at the place that binds it.
struct Definition {
  enum class Kind : uint8_t {
    variable,
    parameter,
    size,            // `n` in the types of parameters
    type_parameter,  // `T`
    function,
    type,
    axis,
    module
  };
  Kind kind = Kind::variable;
  bool is_var = false;
  std::string name = {};
  lang::Span where = {};  // of the name
  lang::Span whole = {};  // of the statement or parameter
  int scope = 0;          // among Names::scopes
  /// Definitions of one name in one scope that a function may mean, which is
  /// called now before, now after the second, are one thing: they have the
  /// number of one of them.
  int group = 0;
  /// What binds it, where it is one of these; null else.
  const lang::DefStmt* def = nullptr;
  const lang::LetStmt* let = nullptr;
  const lang::TypeStmt* type = nullptr;
  const lang::AxisStmt* axis = nullptr;
  const lang::ImportStmt* import = nullptr;
  const lang::Param* param = nullptr;
  /// Of `def`, of `let f = fn(x) => ...` and of `let g = pmap(f)`.
  const lang::Function* function = nullptr;
};

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

struct Scope {
  int parent = -1;
  uint32_t begin = 0, end = 0;  // bytes
  /// A block's names are visible behind where they are bound, the others' in
  /// all of the scope.
  enum class Kind : uint8_t { block, comprehension, function };
  Kind kind = Kind::block;
  std::map<std::string, std::vector<int>, std::less<>> names;
};

/// The names of one program, which outlives this.
class Names {
 public:
  explicit Names(const lang::Program& program);

  const std::vector<Definition>& definitions() const { return definitions_; }
  /// In the order of the text; none lie inside one another.
  const std::vector<Occurrence>& occurrences() const { return occurrences_; }
  /// The one at a byte, or that ends there; null if there is none.
  const Occurrence* at(uint32_t offset) const;
  /// What it may mean, nearest first: several where a function means a name
  /// that is bound more than once.
  std::vector<const Definition*> targets(const Occurrence& occurrence) const;
  /// The definitions that a name written at `offset` could mean; inner ones
  /// hide outer ones.
  std::vector<const Definition*> visible(uint32_t offset) const;
  /// The last definition of a name at top level: what an import finds.
  const Definition* exported(std::string_view name) const;
  /// The parameter of that name, whose function is `definition`; null if there
  /// is none.
  const Definition* parameter(const Definition& definition,
                              std::string_view name) const;
  const std::vector<Scope>& scopes() const { return scopes_; }
  /// Where a word that is a name elsewhere (`axis`, `type`, `test`) begins a
  /// declaration, in the order of the text.
  const std::vector<uint32_t>& declaring_words() const { return words_; }
  const std::vector<const lang::ImportStmt*>& imports() const {
    return imports_;
  }

 private:
  friend class Indexer;
  std::vector<Definition> definitions_;
  std::vector<Occurrence> occurrences_;
  std::vector<Scope> scopes_;
  std::vector<uint32_t> words_;
  std::vector<const lang::ImportStmt*> imports_;
  std::map<const lang::Function*, std::map<std::string, int, std::less<>>>
      parameters_;
};

/// The name that an import binds, and where that stands.
lang::Name module_name(const lang::ImportStmt& import);

}  // namespace unisono::host::lsp
