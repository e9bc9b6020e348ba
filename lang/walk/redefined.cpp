// Inputs of a session: what one that fails must not have changed, and whom one
// that defines a name again leaves behind.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "lang/context/function.h"
#include "lang/walk/walker.h"

namespace unisono::lang {

// ---- what failed -----------------------------------------------------------

namespace {

/// The arrays that names hold, also those that only functions can reach.
class Holdings {
 public:
  void add(const Environment& env) {
    if (!seen_.insert(&env).second) return;
    for (const auto& [name, binding] : env.names) add(binding.value);
  }
  std::unordered_set<ArrayCell*> take() { return std::move(arrays_); }

 private:
  void add(const Value& value) {
    for_each_leaf(value, [&](const Value& leaf) {
      if (ArrayCell* array = leaf.array()) arrays_.insert(array);
      const auto* function =
          leaf.get_if<std::shared_ptr<const FunctionValue>>();
      if (function) add(**function);
      const auto* module = leaf.get_if<ModuleValue>();
      if (module && module->environment) add(*module->environment);
    });
  }
  void add(const FunctionValue& function) {
    if (const auto* map = std::get_if<Transformed>(&function.what))
      return add(*map->inner);
    if (const auto* made = std::get_if<Differentiated>(&function.what)) {
      if (made->rule) add(*made->rule);
      return add(*made->inner);
    }
    const auto* closure = std::get_if<Closure>(&function.what);
    // Around a call's names are others; at top level there are no more arrays.
    for (const Environment* env = closure ? closure->environment.get()
                                          : nullptr;
         env && env->call != 0; env = env->parent.get())
      add(*env);
  }

  std::set<const Environment*> seen_;
  std::unordered_set<ArrayCell*> arrays_;
};

}  // namespace

void Undo::keep(const ArrayValue& value) {
  if (!held_) {
    Holdings holdings;
    Environment before;
    before.names = names_;
    holdings.add(before);
    for (const Environment* env = globals_->parent.get(); env;
         env = env->parent.get())
      holdings.add(*env);
    held_ = holdings.take();
  }
  if (held_->contains(value.get()))
    kept_.push_back({value, value->array, value->constant});
}

void Walk::forget_absent() {
  Holdings holdings;
  for (const Environment* env = state_->globals.get(); env;
       env = env->parent.get())
    holdings.add(*env);
  for (ArrayCell* array : holdings.take())
    if (array->array && is_absent(*array->array)) array->array.reset();
}

void Undo::take_back() {
  globals_->names = std::move(names_);
  ++globals_->version;
  for (Kept& kept : kept_) {
    kept.value->donated = nullptr;
    kept.value->array = std::move(kept.array);
    kept.value->constant = std::move(kept.constant);
  }
}

void Walker::forget_modules(bool failed) {
  for (auto at = s_.modules.begin(); at != s_.modules.end();) {
    const bool gone =
        failed ? at->second.failed : at->first.starts_with("file:");
    if (gone && at->second.program)
      s_.programs_kept.push_back(std::move(at->second.program));
    at = gone ? s_.modules.erase(at) : std::next(at);
  }
}

// ---- what was defined again ------------------------------------------------

namespace {

/// The definition behind a function, through maps of it; null if it has none.
const Closure* definition_of(const Value& value) {
  const auto* held = value.get_if<std::shared_ptr<const FunctionValue>>();
  const FunctionValue* function = held ? held->get() : nullptr;
  while (function)
    if (const auto* map = std::get_if<Transformed>(&function->what))
      function = map->inner.get();
    else if (const auto* made = std::get_if<Differentiated>(&function->what))
      function = made->inner.get();
    else
      break;
  const auto* closure =
      function ? std::get_if<Closure>(&function->what) : nullptr;
  return closure && closure->definition ? closure : nullptr;
}

bool mentions(const Expr& e, const std::set<std::string>& names) {
  if (const auto* name = as<NameExpr>(e)) return names.contains(name->text);
  bool found = false;
  std::function<void(const Expr&)> in = [&](const Expr& child) {
    found = found || mentions(child, names);
  };
  if (const auto* fn = as<FnExpr>(e)) in(*fn->function.body);
  for_each_child(e, in, [&](const Stmt& stmt) {
    if (const auto* def = as<DefStmt>(stmt)) in(*def->function.body);
    for_each_child(stmt, in);
  });
  return found;
}

bool mentions(const Function& function, const std::set<std::string>& names) {
  for (const Param& param : function.params) {
    if (param.type && mentions(*param.type, names)) return true;
    if (param.default_value && mentions(*param.default_value, names))
      return true;
  }
  return (function.result && mentions(*function.result, names)) ||
         (function.body && mentions(*function.body, names));
}

}  // namespace

void Walker::check_users(const Program& program, const Environment& before) {
  // Who uses a user may be left behind, too.
  std::set<std::string> changed;
  std::map<std::string, Span> redefined;
  for (const auto& [name, binding] : s_.globals->names) {
    const auto known = before.names.find(name);
    const bool again = known != before.names.end() &&
                       binding.where.file == program.file &&
                       !(known->second.where == binding.where);
    if (again) redefined[name] = binding.where;
    if (again) changed.insert(name);
  }
  if (changed.empty()) return;
  std::map<std::string, const Closure*> users;
  for (bool more = true; more;) {
    more = false;
    for (const auto& [name, binding] : s_.globals->names) {
      const Closure* closure = definition_of(binding.value);
      if (!closure || closure->environment != s_.globals ||
          binding.where.file == program.file || users.contains(name) ||
          !mentions(closure->definition->function, changed))
        continue;
      users[name] = closure;
      changed.insert(name);
      more = true;
    }
  }
  for (const auto& [name, closure] : users) {
    const Function& syntax = closure->definition->function;
    if (!can_be_checked(syntax)) continue;
    const auto key =
        std::make_pair(static_cast<const void*>(&syntax),
                       static_cast<const Environment*>(s_.globals.get()));
    const size_t found = s_.found.size();
    s_.definitions[key] = {
        std::make_shared<const FunctionValue>(FunctionValue{name, *closure})};
    const bool fits = check_definition(key);
    std::vector<Diagnostic> mistakes(
        s_.found.begin() + static_cast<std::ptrdiff_t>(found), s_.found.end());
    s_.found.resize(found, diagnostic(Code::cancelled, Span()));
    if (fits) s_.broken.erase(&syntax);
    if (fits || mistakes.empty() || !s_.broken.insert(&syntax).second) continue;
    // Where it is used, or else the first of what was defined again.
    Span by = redefined.begin()->second;
    std::string what = redefined.begin()->first;
    for (const auto& [again, where] : redefined)
      if (mentions(syntax, {again})) {
        by = where;
        what = again;
        break;
      }
    Diagnostic broken =
        diagnostic(Code::user_broken, by, name, what)
            .add_note(mistakes[0].where, mistakes[0].message)
            .set_help(fmt::format("define `{}` again, too", name));
    s_.found.push_back(std::move(broken));
  }
}

}  // namespace unisono::lang
