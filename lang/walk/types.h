#pragma once
// Matches values with type expressions, and binds the sizes and element types
// that these name.
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "lang/walk/walker.h"

namespace unisono::lang {

/// Whether this is the type of values that only the host has: `int`, `str`,
/// `type`.
bool is_host_type(const std::string& name);

/// The type expressions of one signature, annotation or coercion.
class TypeMatcher {
 public:
  enum class Names : uint8_t {
    bind,    // parameters: an unknown name is a size or element type, bound
    known,   // results, `let`: every name must have a value
    extend,  // as known, but an unknown name is bound
    coerce,  // `as`: as bind, and what is not proved is believed or tested
  };
  /// Names are looked up and bound in `env`.
  TypeMatcher(Walker& walker, Env env, Names names)
      : in_(walker), walk_(walker.walk()), names_(names), env_(std::move(env)) {
    frames_.push_back({});
  }

  /// Declares `[T: float, n]` after a function's name; `params` outlive this.
  void declare(const std::vector<TypeParam>& params);
  /// Sets a generic element type while a definition is checked.
  void choose(const std::string& generic, DType dtype);

  /// The value with the type, whose element type literals adopt; an error if
  /// it does not fit. `what` names the value in messages: "argument `x`".
  Value match(const Expr& type, const Value& value, Span where,
              const std::string& what);
  /// An error for a parameter whose name is a size of the types before it.
  void check_parameter(const Param& param);
  /// Matches the sizes that waited for names in other ones, such as `n + 1`.
  void finish();

  /// A size in which every name has a value.
  ir::Dim size(const Expr& size);

  /// A value of which nothing is known but that it has this type (check mode);
  /// unknown names get symbols.
  Value any_value(const Expr& type);

  /// An error for a size that a named type neither declares nor finds around
  /// it.
  void check_sizes(const TypeStmt& alias);

  /// Adds the generic element types in `type`, with the restrictions declared
  /// for them, to `restrictions`.
  void collect_generics(const Expr& type,
                        std::map<std::string, std::string>& restrictions);
  /// The element type that the expression says, if it says one.
  std::optional<DType> element_of(const Expr& type);

 private:
  /// The parameters of a named type, and where its arguments were written.
  struct Frame {
    const Frame* outer = nullptr;
    Env env;
    const TypeStmt* alias = nullptr;
    std::map<std::string, const Expr*> arguments;
    /// Sizes that were left open, as in `Params` for `Params[d]`: each use of
    /// the type has its own.
    mutable std::map<std::string, ir::Dim> open = {};
  };
  /// A size that is bound here: by the signature, or in a frame where it was
  /// left open.
  struct OwnName {
    const NameExpr* name = nullptr;
    const Frame* open = nullptr;
    bool operator==(const OwnName& other) const {
      return name->text == other.name->text && open == other.open;
    }
  };
  struct Waiting {
    const Expr* size;
    const Frame* frame;
    ir::Dim seen;
    int axis;
    Span where;
    std::string what;
    std::string seen_type;
    std::string declared;  // the whole type, as written
  };
  /// What a name in the place of an element type or a type means.
  struct Meaning {
    enum class Kind : uint8_t {
      array,
      generic,
      alias,
      host,
      unknown
    } kind = Kind::unknown;
    ir::Type type;     // array
    std::string name;  // generic, host
    const TypeStmt* alias = nullptr;
    Env alias_env;
  };
  struct Subject {  // what is matched, for messages
    const Value& value;
    Span where;
    const std::string& what;
    const Expr& whole;  // the type expression as the user sees it
  };

  static std::string quoted(const Expr& e);
  const Frame* root() const { return &frames_.front(); }
  Env env_of(const Frame* frame) const {
    return frame->env ? frame->env : env_;
  }
  Meaning meaning(const Expr& name, const Frame*& frame);
  static Meaning meaning_of(const Value& value);
  const Binding* member_binding(const Field& e, const Frame* frame);
  /// The error for a name, or a module's field, that is no type.
  [[noreturn]] void not_a_type(const Expr& type, const Frame* frame);
  const Frame* alias_frame(const Meaning& alias,
                           const std::vector<ExprPtr>* arguments,
                           const Frame* frame, Span where);

  /// Keeps for Walker::is_plainly what the check finds.
  void note_plain(const Expr& type, const Meaning& what);
  Value match_in(const Expr& type, const Frame* frame, const Subject& subject);
  Value match_name(const Expr& type, const std::vector<ExprPtr>* items,
                   const Frame* frame, const Subject& subject);
  /// With `items`, sizes as they say; else exactly `shape`.
  Value match_array(const ir::Type& type, const std::vector<ExprPtr>* items,
                    const Frame* frame, const Subject& subject);
  Value match_shape(ArrayValue array, const std::vector<ExprPtr>* items,
                    const Frame* frame, const Subject& subject);
  Value match_generic(const std::string& name,
                      const std::vector<ExprPtr>* items, const Frame* frame,
                      const Subject& subject);
  Value match_tree(const Expr& type, const Frame* frame,
                   const Subject& subject);
  /// Matches one axis; the size that the value has there from now on.
  ir::Dim match_size(const Expr& size, const Frame* frame, const ir::Dim& seen,
                     int axis, const Subject& subject);
  void require_size(const ir::Dim& expected, const Waiting& found);
  bool solve(const Waiting& waiting);
  /// The names in a size that have no value yet.
  void collect_unknown(const Expr& size, const Frame* frame,
                       std::vector<OwnName>& out);
  /// Whether the size names one that was left open in a named type.
  bool mentions_open(const Expr& size, const Frame* frame);

  Value any_in(const Expr& type, const Frame* frame);
  Value any_value_in(const Expr& type, const Frame* frame);
  ir::Shape any_shape(const std::vector<ExprPtr>& items, const Frame* frame);
  Value any_name(const Expr& type, const std::vector<ExprPtr>* items,
                 const Frame* frame);

  /// The size's value; nothing if a name in it has none yet. With `create`,
  /// names without a value become symbols.
  std::optional<ir::Dim> size_value(const Expr& size, const Frame* frame,
                                    bool create);
  std::optional<ir::Dim> name_value(const NameExpr& name, const Frame* frame,
                                    bool create);
  std::optional<ir::Dim> new_quotient(const Binary& op, const Frame* frame);
  /// A lone name that is bound here, if `size` is one.
  std::optional<OwnName> own_name(const Expr& size, const Frame* frame);
  void bind_size(const OwnName& own, ir::Dim value);
  void check_sizes(const Expr& type, const TypeStmt& alias, bool in_size);
  [[noreturn]] void fail_undeclared(const NameExpr& name,
                                    const TypeStmt& alias);
  void bind_size(const NameExpr& name, ir::Dim value);

  void check_rest(const std::vector<ExprPtr>& items);
  void check_parameters(const Closure& closure, size_t given,
                        const Subject& subject);
  [[noreturn]] void mismatch(const Subject& subject, std::string help = "");

  Walker& in_;
  Walk& walk_;
  Names names_;
  Env env_;
  std::deque<Frame> frames_;
  std::map<std::string, const Expr*> declared_;  // to its restriction, or null
  std::map<std::string, DType> chosen_;
  std::set<std::string> own_;         // names that are bound here
  std::set<std::string> by_literal_;  // those bound by literals alone so far
  std::vector<Waiting> waiting_;
};

}  // namespace unisono::lang
