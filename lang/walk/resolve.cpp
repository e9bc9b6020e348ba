// Names in functions that nothing calls: each must mean something, whatever the
// arguments are. Runs after the walk of check mode, which has all names of the
// file; what that reported is not reported again. No value is computed.
// tests/errors/uncalled_names.uni
#include <set>
#include <string_view>
#include <utility>

#include "lang/resolve/resolution.h"
#include "lang/source/stdlib.h"
#include "lang/syntax/jumps.h"
#include "lang/walk/types.h"
#include "lang/walk/walker.h"

namespace unisono::lang {
namespace {

class UnknownNames {
 public:
  UnknownNames(Walker& walker, const Program& program, const Env& env)
      : in_(walker), env_(env), names_(resolve(program)) {}

  void report() {
    for (const Use& use : names_.uses) {
      // What stands outside of functions and blocks was walked.
      const auto* name = as<NameExpr>(*use.node);
      if (use.scope > 0 && name && is_unknown(use, *name)) report(use, *name);
    }
  }

 private:
  using Use = Resolution::Use;
  using Scope = Resolution::Scope;
  using Place = Resolution::Place;

  bool is_unknown(const Use& use, const NameExpr& name) {
    for (const Place& place : names_.places(use))
      if (place.kind != Place::Kind::module) return false;
    if (use.kind == Use::Kind::type && is_host_type(name.text)) return false;
    return !is_hidden(name.text) && !env_->find(name.text).first &&
           !is_of_type(use) && !is_said(use, name.text);
  }

  /// In a `type` statement, which has errors of its own.
  bool is_of_type(const Use& use) const {
    for (int s = use.scope; s >= 0; s = names_.scopes[s].parent)
      if (names_.scopes[s].kind == Scope::Kind::type) return true;
    return false;
  }

  /// `x = 3` where nothing is bound is said once.
  bool is_said(const Use& use, std::string_view name) const {
    for (int s = use.scope; s >= 0; s = names_.scopes[s].parent)
      if (said_.contains({s, name})) return true;
    return false;
  }

  void report(const Use& use, const NameExpr& name) {
    try {
      if (use.kind == Use::Kind::write) {
        said_.insert({use.scope, name.text});
        in_.unbound_variable(name, around(use));
      } else {
        in_.lookup(name, around(use));
      }
    } catch (const Failure& failure) {
      if (!failure.reported) in_.report(failure.diagnostic);
    }
  }

  /// The names that may have been meant.
  Env around(const Use& use) const {
    const Env out = Walker::inner(env_);
    for (const auto* definition : names_.visible(use.where().begin))
      if (names_.variables[definition->variable].scope > 0)
        out->names[definition->name].where = definition->where;
    return out;
  }

  Walker& in_;
  const Env& env_;
  const Resolution names_;
  std::set<std::pair<int, std::string_view>> said_;
};

}  // namespace

void Walker::resolve_names(const Program& program, const Env& env) {
  if (s_.gave_up) return;
  for (const auto& [key, module] : s_.modules)
    if (module.program && module.checked && !module.failed &&
        !module.program->statements.empty() &&
        !is_in_stdlib(module.program->statements[0]->span))
      UnknownNames(*this, *module.program, module.checked).report();
  UnknownNames(*this, program, env).report();
}

}  // namespace unisono::lang
