// Names in functions that nothing calls: each must mean something, whatever the
// arguments are. Runs after the walk of check mode, which has all names of the
// file; what that reported is not reported again. No value is computed: an
// environment here holds names alone, in the order of the text, but for the
// body of an inner function, which sees all names around it, as it is called
// later. tests/errors/uncalled_names.uni
#include <cctype>
#include <utility>
#include <vector>

#include "lang/source/stdlib.h"
#include "lang/walk/types.h"
#include "lang/walk/walker.h"

namespace unisono::lang {
namespace {

class Resolver {
 public:
  explicit Resolver(Walker& walker) : in_(walker) {}

  void file(const std::vector<StmtPtr>& statements, const Env& env) {
    // Its statements were walked; what is inside functions perhaps not.
    for (const StmtPtr& s : statements) outside(*s, env);
    finish_bodies(0);
  }

 private:
  struct Body {
    const Function* function;
    Env around;
  };

  // ---- outside functions: only functions are looked for
  void outside(const Stmt& s, const Env& env) {
    if (const auto* def = as<DefStmt>(s)) {
      bodies_.push_back({&def->function, env});
      for (const ExprPtr& decorator : def->decorators) outside(*decorator, env);
      return;
    }
    // Names that a block of the file binds are not in `env`: it is resolved as
    // if it stood in a function.
    const bool has_block = s.kind == StmtKind::ForStmt ||
                           s.kind == StmtKind::WhileStmt ||
                           s.kind == StmtKind::ToolStmt;
    if (has_block) return statement(s, Walker::inner(env));
    if (s.kind == StmtKind::TypeStmt) return;
    for_each_child(s, [&](const Expr& e) { outside(e, env); });
  }

  void outside(const Expr& e, const Env& env) {
    if (const auto* fn = as<FnExpr>(e)) {
      bodies_.push_back({&fn->function, env});
    } else if (e.kind == ExprKind::Block || e.kind == ExprKind::Comprehension) {
      expression(e, env);
    } else {
      for_each_child(
          e, [&](const Expr& child) { outside(child, env); },
          [](const Stmt&) {});
    }
  }

  // ---- bodies
  void finish_bodies(size_t from) {
    while (bodies_.size() > from) {
      const Body body = bodies_.back();
      bodies_.pop_back();
      function(*body.function, body.around);
    }
  }

  void function(const Function& f, const Env& around) {
    const Env env = Walker::inner(around);
    for (const TypeParam& p : f.type_params) define(env, p.name);
    // A size may be named before the parameter that says what it is.
    for (const Param& p : f.params)
      if (p.type) type(*p.type, env, true);
    for (const Param& p : f.params) {
      if (p.default_value) expression(*p.default_value, env);
      define(env, p.pattern);
    }
    // Of a size that nothing determines tells the call: U0313.
    if (f.result) type(*f.result, env, true);
    const size_t inner = bodies_.size();
    if (f.body) expression(*f.body, env);
    finish_bodies(inner);
  }

  void define(const Env& env, const Name& name) {
    Binding& binding = env->names[name.text];
    binding.where = name.span;
    binding.is_var = true;
  }
  void define(const Env& env, const Pattern& pattern) {
    if (pattern.kind == Pattern::Kind::name) define(env, pattern.name);
    for (const Pattern& item : pattern.items) define(env, item);
  }

  /// Reports the error that `question` gives.
  template <class F>
  void ask(F question) {
    try {
      question();
    } catch (const Failure& failure) {
      if (!failure.reported) in_.report(failure.diagnostic);
    }
  }

  void use(const NameExpr& name, const Env& env) {
    ask([&] { in_.lookup(name, env); });
  }

  /// What stands on the left of an assignment.
  void target(const Expr& e, const Env& env) {
    if (const auto* name = as<NameExpr>(e)) return assign(*name, env);
    if (const auto* all = as<Tuple>(e))
      for (const ExprPtr& each : all->items) target(*each, env);
    else if (e.kind != ExprKind::Wildcard)
      expression(e, env);
  }

  /// `x = 3`: what is not bound is said once.
  void assign(const NameExpr& name, const Env& env) {
    if (env->find(name.text).first) return use(name, env);
    ask([&] { in_.unbound_variable(name, env); });
    define(env, {name.text, name.span});
  }

  // ---- types
  /// With `binds`, names of sizes and element types that mean nothing yet are
  /// what the signature, or the `as`, binds.
  void type(const Expr& e, const Env& env, bool binds) {
    if (const auto* name = as<NameExpr>(e)) {
      if (is_host_type(name->text) || env->find(name->text).first) return;
      if (binds && std::isupper(static_cast<unsigned char>(name->text[0])))
        return define(env, {name->text, name->span});
      return use(*name, env);
    }
    if (const auto* index = as<Index>(e)) {
      type(*index->object, env, binds);
      for (const ExprPtr& item : index->items) size(*item, env, binds);
      return;
    }
    if (const auto* tuple = as<Tuple>(e)) {
      for (const ExprPtr& item : tuple->items) type(*item, env, binds);
    } else if (const auto* record = as<RecordType>(e)) {
      for (const TypedName& field : record->fields)
        type(*field.type, env, binds);
    } else if (const auto* function = as<FunctionType>(e)) {
      // Sizes that it names may be its own.
      for (const ExprPtr& p : function->params) type(*p, env, true);
      type(*function->result, env, true);
    } else if (const auto* field = as<Field>(e)) {
      expression(*field->object, env);
    } else if (e.kind != ExprKind::Wildcard &&
               e.kind != ExprKind::NoneLiteral) {
      expression(e, env);
    }
  }

  void size(const Expr& e, const Env& env, bool binds) {
    if (const auto* unknown = as<UnknownSize>(e)) {
      if (binds) define(env, unknown->name);
      return;
    }
    if (const auto* name = as<NameExpr>(e)) {
      if (binds && !env->find(name->text).first)
        return define(env, {name->text, name->span});
      return use(*name, env);
    }
    if (const auto* op = as<Binary>(e)) {
      size(*op->left, env, binds);
      size(*op->right, env, binds);
    } else if (e.kind == ExprKind::Index) {
      type(e, env, binds);  // an argument of a named type
    } else if (e.kind != ExprKind::Wildcard && e.kind != ExprKind::Rest) {
      expression(e, env);
    }
  }

  // ---- expressions
  void expression(const Expr& e, const Env& env) {
    if (const auto* name = as<NameExpr>(e)) return use(*name, env);
    if (const auto* fn = as<FnExpr>(e)) {
      bodies_.push_back({&fn->function, env});
      return;
    }
    if (const auto* block = as<Block>(e)) {
      const Env inside = Walker::inner(env);
      const size_t inner = bodies_.size();
      for (const StmtPtr& s : block->statements) statement(*s, inside);
      finish_bodies(inner);  // all names around them are there now
      return;
    }
    if (const auto* cast = as<Cast>(e)) {
      expression(*cast->value, env);
      return type(*cast->type, env, true);
    }
    if (const auto* comprehension = as<Comprehension>(e)) {
      Env inside = env;
      for (const Generator& g : comprehension->generators) {
        expression(*g.iterable, inside);
        inside = Walker::inner(inside);
        define(inside, g.pattern);
      }
      if (comprehension->condition)
        expression(*comprehension->condition, inside);
      return expression(*comprehension->element, inside);
    }
    const bool only_type =
        e.kind == ExprKind::RecordType || e.kind == ExprKind::FunctionType;
    if (only_type) return type(e, env, false);
    for_each_child(
        e, [&](const Expr& child) { expression(child, env); },
        [](const Stmt&) {});
  }

  void statement(const Stmt& s, const Env& env) {
    switch (s.kind) {
      case StmtKind::LetStmt: {
        const auto& let = static_cast<const LetStmt&>(s);
        if (let.value) expression(*let.value, env);
        if (let.type) type(*let.type, env, true);
        return define(env, let.pattern);
      }
      case StmtKind::DefStmt: {
        const auto& def = static_cast<const DefStmt&>(s);
        define(env, def.name);
        for (const ExprPtr& decorator : def.decorators)
          expression(*decorator, env);
        bodies_.push_back({&def.function, env});
        return;
      }
      case StmtKind::TypeStmt:
        return define(env, static_cast<const TypeStmt&>(s).name);
      case StmtKind::AxisStmt: {
        const auto& axis = static_cast<const AxisStmt&>(s);
        if (axis.value) expression(*axis.value, env);
        for (const Name& name : axis.names) define(env, name);
        return;
      }
      case StmtKind::ImportStmt:
        return define(env,
                      Walker::module_name(static_cast<const ImportStmt&>(s)));
      case StmtKind::ForStmt: {
        const auto& loop = static_cast<const ForStmt&>(s);
        expression(*loop.iterable, env);
        const Env turn = Walker::inner(env);
        define(turn, loop.pattern);
        if (!loop.left.empty()) define(turn, {loop.left, loop.span});
        return expression(*loop.body, turn);
      }
      case StmtKind::WhileStmt: {
        const Env turn = Walker::inner(env);
        const std::string& left = static_cast<const WhileStmt&>(s).left;
        if (!left.empty()) define(turn, {left, s.span});
        return for_each_child(s, [&](const Expr& e) { expression(e, turn); });
      }
      case StmtKind::AssignStmt: {
        const auto& change = static_cast<const AssignStmt&>(s);
        target(*change.target, env);
        return expression(*change.value, env);
      }
      case StmtKind::ExprStmt:
      case StmtKind::JumpStmt:
      case StmtKind::ToolStmt:
        return for_each_child(s, [&](const Expr& e) { expression(e, env); });
    }
  }

  Walker& in_;
  std::vector<Body> bodies_;
};

}  // namespace

void Walker::resolve_names(const Program& program, const Env& env) {
  if (s_.gave_up) return;
  for (const auto& [key, module] : s_.modules)
    if (module.program && module.checked && !module.failed &&
        !module.program->statements.empty() &&
        !is_in_stdlib(module.program->statements[0]->span))
      Resolver(*this).file(module.program->statements, module.checked);
  Resolver(*this).file(program.statements, env);
}

}  // namespace unisono::lang
