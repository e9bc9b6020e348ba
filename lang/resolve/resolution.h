#pragma once
// What each name of a program means, found before anything runs.
//
// Scopes are blocks, turns of loops, generators of comprehensions, and calls.
// A name is one variable in a scope, however often it is bound there, and a
// variable has one slot in the frame of its function. Statements see what
// stands before them. A function sees all names around it, as it is called
// later: a name that may not be set then has several places, of which the
// first one counts that is set.
#include <cstdint>
#include <map>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lang/syntax/ast.h"

namespace unisono::lang {

/// Tables, which hold numbers of rows of one another; -1 is none. They point
/// into the program, which outlives them.
struct Resolution {
  /// Where the value of a name lies, for the function that uses it.
  struct Place {
    enum class Kind : uint8_t {
      slot,     // of its own frame
      capture,  // among its captures
      module    // a slot of the file's frame
    };
    Kind kind = Kind::slot;
    /// Whenever the use is reached. If not, the next place counts while it is
    /// not; after the last one, what is outside of the file.
    bool is_set = true;
    int number = 0;  // the slot, or the capture
    int variable = 0;
  };

  /// A name in its scope.
  struct Variable {
    std::string_view name;
    int scope = 0;
    int slot = -1;  // of the scope's frame
    /// Functions inside mean it, and read it when they are called.
    bool captured = false;
    std::vector<int> definitions = {};  // in the order of the text
  };

  /// A place that binds a variable.
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
    std::string_view name = {};
    Span where = {};  // of the name
    Span whole = {};  // of the statement or parameter
    int variable = 0;
    /// The declared type of a variable or parameter, or null.
    const Expr* type = nullptr;
    /// What binds it, where it is one of these; null else.
    const DefStmt* def = nullptr;
    const LetStmt* let = nullptr;
    const TypeStmt* alias = nullptr;
    const AxisStmt* axis = nullptr;
    const ImportStmt* import = nullptr;
    const Param* param = nullptr;
    /// Of `def`, of `let f = fn(x) => ...` and of `let g = pmap(f)`.
    const Function* function = nullptr;
  };

  /// A name that stands for a value or a type.
  struct Use {
    enum class Kind : uint8_t {
      read,
      write,   // all of it, or a part
      type,    // in the place of a type
      method,  // `f` of `x.f(y)`, which is a function if x has no such field
      member   // `f` of `m.f`, of the module that `definition` imports
    };
    Kind kind = Kind::read;
    const Expr* node = nullptr;  // a NameExpr, or a Field
    int scope = 0;
    /// The one that it means: of several the last before it, or the first.
    int definition = -1;
    uint32_t first_place = 0, place_count = 0;

    Span where() const;  // of the name
  };

  struct Scope {
    enum class Kind : uint8_t { block, generator, function, type };
    Kind kind = Kind::block;
    int parent = -1;
    int frame = 0;
    uint32_t begin = 0, end = 0;  // bytes
    /// The slots that end with it. Scopes side by side have the same ones.
    int first_slot = 0, slot_count = 0;
    std::map<std::string_view, int> variables;
  };

  /// Of a call of a function; the first one is the file's.
  struct Frame {
    const Function* function = nullptr;  // null: the file
    int around = -1;                     // the frame of which it captures
    int scope = 0;
    int slot_count = 0;
    /// By position, which is also the slot; -1 for `_` and for a pattern, whose
    /// names have slots of their own.
    std::vector<int> parameters;
    /// Sizes and element types that its signature binds.
    std::vector<int> sizes;
    /// Where each lies for the function around.
    std::vector<Place> captures;
  };

  struct Loop {
    const Stmt* statement = nullptr;
    /// Variables around it that its turns assign.
    std::vector<int> assigned = {};
    /// Those that end it.
    std::vector<const JumpStmt*> jumps = {};
  };

  std::vector<Definition> definitions;  // in the order in which they bind
  std::vector<Variable> variables;
  std::vector<Use> uses;
  std::vector<Scope> scopes;  // the first one is the file's
  std::vector<Frame> frames;
  std::vector<Loop> loops;

  std::span<const Place> places(const Use& use) const {
    return std::span(all_places).subspan(use.first_place, use.place_count);
  }
  /// The use that a name or field is, or null.
  const Use* use(const Expr& node) const;
  /// The parameter of that name; null if there is none.
  const Definition* parameter(const Function& function,
                              std::string_view name) const;
  /// The last definition of a name at top level: what an import finds.
  const Definition* exported(std::string_view name) const;
  /// The definitions that a name written at a byte could mean; inner ones hide
  /// outer ones.
  std::vector<const Definition*> visible(uint32_t offset) const;

  std::vector<Place> all_places;
  std::unordered_map<const Expr*, int> use_of;
  std::unordered_map<const Function*, int> frame_of;
};

/// Never fails: what means nothing has no places.
Resolution resolve(const Program& program);

/// The name that an import binds, and where that stands.
Name module_name(const ImportStmt& import);

/// The name of the function whose parameters a value has: the value itself, if
/// that is a name, and `f` of `pmap(f)`; null if there is none.
const NameExpr* function_name(const Expr& value);

}  // namespace unisono::lang
