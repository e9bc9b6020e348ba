// The scopes are the language's (lang/walk/resolve.cpp): statements of a block
// see what stands before them; the body of a function is looked at when all
// else of the file was, as it sees all names around it.
#include "host/lsp/names.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <set>
#include <utility>

namespace unisono::host::lsp {

using lang::as;
using lang::ExprKind;
using lang::StmtKind;

lang::Name module_name(const lang::ImportStmt& import) {
  if (import.alias) return *import.alias;
  if (!import.is_file) return import.module;
  return {std::filesystem::path(import.module.text).stem().string(),
          import.module.span};
}

class Indexer {
 public:
  Indexer(Names& out, const lang::Program& program)
      : out_(out), program_(program) {}

  void run() {
    const auto end = static_cast<uint32_t>(program_.file->text().size());
    const int file = add_scope(-1, {program_.file, 0, end}, Scope::Kind::block);
    for (const lang::StmtPtr& s : program_.statements) statement(*s, file);
    while (!bodies_.empty()) {
      const Body body = bodies_.back();
      bodies_.pop_back();
      function(body);
    }
    finish_arguments();
    finish_groups();
    std::ranges::sort(out_.occurrences_, {},
                      [](const Occurrence& o) { return o.where.begin; });
    std::ranges::sort(out_.words_);
  }

 private:
  struct Body {
    const lang::Function* function;
    lang::Span whole;
    int around;
  };
  struct Argument {  // `name=` of a call whose callee is this occurrence
    lang::Name name;
    size_t callee;
  };
  using Kind = Definition::Kind;

  // ---- scopes
  int add_scope(int parent, lang::Span span, Scope::Kind kind) {
    Scope scope;
    scope.parent = parent;
    scope.begin = span.begin;
    scope.end = span.end;
    scope.kind = kind;
    out_.scopes_.push_back(std::move(scope));
    body_of_.push_back(body_);
    return static_cast<int>(out_.scopes_.size() - 1);
  }
  Scope& scope(int number) { return out_.scopes_[number]; }

  int define(int in, const lang::Name& name, Definition definition) {
    const int number = static_cast<int>(out_.definitions_.size());
    definition.name = name.text;
    definition.where = name.span;
    if (!definition.whole) definition.whole = name.span;
    definition.scope = in;
    definition.group = number;
    out_.definitions_.push_back(std::move(definition));
    scope(in).names[name.text].push_back(number);
    Occurrence& here = occur(name.span, Occurrence::Kind::local);
    here.use = Occurrence::Use::definition;
    here.definition = number;
    return number;
  }
  void define(int in, const lang::Pattern& pattern,
              const Definition& definition) {
    if (pattern.kind == lang::Pattern::Kind::name)
      define(in, pattern.name, definition);
    for (const lang::Pattern& item : pattern.items)
      define(in, item, definition);
  }

  Occurrence& occur(lang::Span where, Occurrence::Kind kind) {
    Occurrence& o = out_.occurrences_.emplace_back();
    o.where = where;
    o.kind = kind;
    return o;
  }

  /// The scope that binds a name, from one outwards; -1 if none does.
  int holder(int from, const std::string& name) {
    int s = from;
    while (s >= 0 && !scope(s).names.contains(name)) s = scope(s).parent;
    return s;
  }
  /// The definition that a name means; -1 if the file has none.
  int find(int from, const std::string& name, uint32_t use) {
    const int in = holder(from, name);
    if (in < 0) return -1;
    const std::vector<int>& all = scope(in).names.find(name)->second;
    if (body_of_[in] == body_) return all.back();
    // The last one before the use, or the first; they are in the text's order.
    const auto after = std::ranges::lower_bound(
        all, use, {}, [&](int d) { return out_.definitions_[d].where.begin; });
    return after == all.begin() ? all.front() : *std::prev(after);
  }
  int find_here(int in, const std::string& name) {
    const auto found = scope(in).names.find(name);
    return found == scope(in).names.end() ? -1 : found->second.back();
  }
  void merge(int a, int b) {
    a = root(a);
    b = root(b);
    if (a != b) out_.definitions_[std::max(a, b)].group = std::min(a, b);
  }
  int root(int number) {
    while (out_.definitions_[number].group != number)
      number = out_.definitions_[number].group;
    return number;
  }
  void finish_groups() {
    for (Definition& d : out_.definitions_)
      d.group = root(static_cast<int>(&d - out_.definitions_.data()));
  }

  Occurrence& use(const std::string& name, lang::Span where, int in) {
    const int found = find(in, name, where.begin);
    Occurrence& o = occur(
        where, found < 0 ? Occurrence::Kind::library : Occurrence::Kind::local);
    mean(o, found);
    return o;
  }
  void mean(Occurrence& o, int found) {
    o.definition = found;
    if (found < 0) return;
    // Around the function it means what is bound when that is called.
    const Definition& definition = out_.definitions_[found];
    o.is_later = body_of_[definition.scope] != body_;
    const std::vector<int>& all =
        scope(definition.scope).names.find(definition.name)->second;
    if (o.is_later && merged_.insert(&all).second)
      for (const int other : all) merge(found, other);
  }

  // ---- functions
  void function(const Body& body) {
    const lang::Function& f = *body.function;
    body_ = ++bodies_seen_;
    const int in = add_scope(body.around, body.whole, Scope::Kind::function);
    for (const lang::TypeParam& p : f.type_params) {
      const bool size =
          !p.restriction &&
          !std::isupper(static_cast<unsigned char>(p.name.text[0]));
      define(in, p.name, {.kind = size ? Kind::size : Kind::type_parameter});
    }
    for (const lang::Param& p : f.params)
      if (p.type) type(*p.type, in, Sizes::own);
    for (const lang::Param& p : f.params) {
      if (p.default_value) expression(*p.default_value, in);
      define(in, p.pattern,
             {.kind = Kind::parameter, .whole = p.span, .param = &p});
      if (p.pattern.kind == lang::Pattern::Kind::name)
        out_.parameters_[&f][p.pattern.name.text] =
            static_cast<int>(out_.definitions_.size() - 1);
    }
    if (f.result) type(*f.result, in, Sizes::bound);
    expression(*f.body, in);
  }

  void later(const lang::Function& f, lang::Span whole, int around) {
    bodies_.push_back({&f, whole, around});
  }

  // ---- types: names of sizes and element types that mean nothing yet are
  // bound there; `own` ones hide those outside, but for axes.
  enum class Sizes : uint8_t { known, bound, own };

  void type(const lang::Expr& e, int in, Sizes sizes) {
    if (const auto* name = as<lang::NameExpr>(e)) {
      if (holder(in, name->text) < 0 && sizes != Sizes::known &&
          std::isupper(static_cast<unsigned char>(name->text[0])))
        define(in, {name->text, name->inner}, {.kind = Kind::type_parameter});
      else
        use(name->text, name->inner, in);
    } else if (const auto* index = as<lang::Index>(e)) {
      type(*index->object, in, sizes);
      for (const lang::ExprPtr& item : index->items) size(*item, in, sizes);
    } else if (const auto* tuple = as<lang::Tuple>(e)) {
      for (const lang::ExprPtr& item : tuple->items) type(*item, in, sizes);
    } else if (const auto* record = as<lang::RecordType>(e)) {
      for (const lang::TypedName& field : record->fields) {
        occur(field.name.span, Occurrence::Kind::field);
        type(*field.type, in, sizes);
      }
    } else if (const auto* function = as<lang::FunctionType>(e)) {
      const int inside = add_scope(in, e.span, Scope::Kind::block);
      for (const lang::ExprPtr& p : function->params)
        type(*p, inside, Sizes::bound);
      type(*function->result, inside, Sizes::bound);
    } else {
      expression(e, in);
    }
  }

  void size(const lang::Expr& e, int in, Sizes sizes) {
    if (const auto* unknown = as<lang::UnknownSize>(e)) {
      if (sizes == Sizes::known) return;
      define(in, unknown->name, {.kind = Kind::size});
    } else if (const auto* name = as<lang::NameExpr>(e)) {
      const int found = find(in, name->text, e.span.begin);
      const bool outer = sizes == Sizes::own && found >= 0 &&
                         find_here(in, name->text) < 0 &&
                         out_.definitions_[found].kind != Kind::axis;
      if ((found < 0 && sizes != Sizes::known) || outer)
        define(in, {name->text, name->inner}, {.kind = Kind::size});
      else
        use(name->text, name->inner, in);
    } else if (const auto* op = as<lang::Binary>(e)) {
      size(*op->left, in, sizes);
      size(*op->right, in, sizes);
    } else if (e.kind == ExprKind::Index) {
      type(e, in, sizes);  // an argument of a named type
    } else {
      expression(e, in);
    }
  }

  // ---- expressions
  void fields(const std::vector<lang::ArgumentExpr>& list, int in) {
    for (const lang::ArgumentExpr& field : list) {
      if (field.name) occur(field.name->span, Occurrence::Kind::field);
      expression(*field.value, in);
    }
  }

  /// `x.name`, of which `x` may be a module.
  void field(const lang::Field& e, int in) {
    const auto* root = as<lang::NameExpr>(*e.object);
    const int module = root ? find(in, root->text, root->span.begin) : -1;
    expression(*e.object, in);
    if (e.index) return;
    Occurrence& o = occur(e.name.span, Occurrence::Kind::field);
    o.object = e.object.get();
    if (module < 0 || out_.definitions_[module].kind != Kind::module) return;
    o.kind = Occurrence::Kind::member;
    o.definition = module;
    o.member = e.name.text;
  }

  /// The name of the function that `pmap(f, ...)` takes the parameters of: the
  /// expression itself, if that is a name; null if there is none.
  const lang::NameExpr* function_name(const lang::Expr& e) {
    if (const auto* name = as<lang::NameExpr>(e)) return name;
    const auto* call = as<lang::Call>(e);
    const auto* callee = call ? as<lang::NameExpr>(*call->callee) : nullptr;
    const bool transforms = callee && !call->arguments.empty() &&
                            !call->arguments[0].name &&
                            (callee->text == "pmap" || callee->text == "vmap" ||
                             callee->text == "jit");
    return transforms ? function_name(*call->arguments[0].value) : nullptr;
  }

  void call(const lang::Call& e, int in) {
    expression(*e.callee, in);
    const auto* part = as<lang::Field>(*e.callee);
    const lang::NameExpr* function = function_name(*e.callee);
    const bool named = function || (part && !part->index);
    size_t callee = out_.occurrences_.size() - 1;
    while (function && out_.occurrences_[callee].where != function->inner)
      --callee;
    if (named) {
      Occurrence& o = out_.occurrences_[callee];
      o.is_called = true;
      if (o.kind == Occurrence::Kind::field)
        mean(o, find(in, part->name.text, o.where.begin));
    }
    for (const lang::ArgumentExpr& argument : e.arguments) {
      if (argument.name)
        arguments_.push_back({*argument.name, named ? callee : SIZE_MAX});
      expression(*argument.value, in);
    }
  }

  /// What stands on the left of an assignment.
  void target(const lang::Expr& e, int in) {
    if (const auto* all = as<lang::Tuple>(e)) {
      for (const lang::ExprPtr& each : all->items) target(*each, in);
      return;
    }
    const size_t first = out_.occurrences_.size();
    expression(e, in);
    // The variable stands first, whatever part of it is assigned.
    if (out_.occurrences_.size() > first)
      out_.occurrences_[first].use = Occurrence::Use::write;
  }

  void expression(const lang::Expr& e, int in) {
    if (const auto* name = as<lang::NameExpr>(e)) {
      use(name->text, name->inner, in);
    } else if (const auto* fn = as<lang::FnExpr>(e)) {
      later(fn->function, e.span, in);
    } else if (const auto* block = as<lang::Block>(e)) {
      const int inside = add_scope(in, e.span, Scope::Kind::block);
      for (const lang::StmtPtr& s : block->statements) statement(*s, inside);
    } else if (const auto* cast = as<lang::Cast>(e)) {
      expression(*cast->value, in);
      type(*cast->type, in, Sizes::bound);
    } else if (const auto* comprehension = as<lang::Comprehension>(e)) {
      int inside = in;
      for (const lang::Generator& g : comprehension->generators) {
        expression(*g.iterable, inside);
        inside = add_scope(inside, e.span, Scope::Kind::comprehension);
        define(inside, g.pattern, {.kind = Kind::variable});
      }
      if (comprehension->condition)
        expression(*comprehension->condition, inside);
      expression(*comprehension->element, inside);
    } else if (e.kind == ExprKind::RecordType ||
               e.kind == ExprKind::FunctionType) {
      type(e, in, Sizes::known);
    } else if (const auto* record = as<lang::Record>(e)) {
      fields(record->fields, in);
    } else if (const auto* with = as<lang::With>(e)) {
      expression(*with->base, in);
      fields(with->fields, in);
    } else if (const auto* part = as<lang::Field>(e)) {
      field(*part, in);
    } else if (const auto* called = as<lang::Call>(e)) {
      call(*called, in);
    } else {
      lang::for_each_child(
          e, [&](const lang::Expr& child) { expression(child, in); },
          [](const lang::Stmt&) {});
    }
  }

  // ---- statements
  void let(const lang::LetStmt& s, int in) {
    expression(*s.value, in);
    if (s.type) type(*s.type, in, Sizes::bound);
    const auto* fn = as<lang::FnExpr>(*s.value);
    const lang::Function* function = fn ? &fn->function : nullptr;
    if (const lang::NameExpr* name = function_name(*s.value)) {
      const int found = find(in, name->text, name->span.begin);
      if (found >= 0) function = out_.definitions_[found].function;
    }
    define(in, s.pattern,
           {.kind = fn ? Kind::function : Kind::variable,
            .is_var = s.is_var,
            .whole = s.span,
            .let = &s,
            .function = function});
  }

  void def(const lang::DefStmt& s, int in) {
    define(in, s.name,
           {.kind = Kind::function,
            .whole = s.span,
            .def = &s,
            .function = &s.function});
    for (const lang::ExprPtr& decorator : s.decorators)
      expression(*decorator, in);
    later(s.function, s.span, in);
  }

  void type_stmt(const lang::TypeStmt& s, int in) {
    out_.words_.push_back(s.span.begin);
    define(in, s.name, {.kind = Kind::type, .whole = s.span, .type = &s});
    const int inside = add_scope(in, s.span, Scope::Kind::block);
    for (const lang::TypeParam& p : s.type_params)
      define(inside, p.name, {.kind = Kind::size});
    type(*s.type, inside, Sizes::known);
  }

  void statement(const lang::Stmt& s, int in) {
    switch (s.kind) {
      case StmtKind::LetStmt:
        return let(static_cast<const lang::LetStmt&>(s), in);
      case StmtKind::DefStmt:
        return def(static_cast<const lang::DefStmt&>(s), in);
      case StmtKind::TypeStmt:
        return type_stmt(static_cast<const lang::TypeStmt&>(s), in);
      case StmtKind::AxisStmt: {
        const auto& axis = static_cast<const lang::AxisStmt&>(s);
        out_.words_.push_back(s.span.begin);
        if (axis.value) expression(*axis.value, in);
        for (const lang::Name& name : axis.names)
          define(in, name,
                 {.kind = Kind::axis, .whole = s.span, .axis = &axis});
        return;
      }
      case StmtKind::ImportStmt: {
        const auto& import = static_cast<const lang::ImportStmt&>(s);
        out_.imports_.push_back(&import);
        define(in, module_name(import),
               {.kind = Kind::module, .whole = s.span, .import = &import});
        return;
      }
      case StmtKind::ForStmt: {
        const auto& loop = static_cast<const lang::ForStmt&>(s);
        expression(*loop.iterable, in);
        const int turn = add_scope(in, s.span, Scope::Kind::block);
        define(turn, loop.pattern,
               {.kind = Kind::variable, .whole = loop.pattern.span});
        return expression(*loop.body, turn);
      }
      case StmtKind::AssignStmt: {
        const auto& change = static_cast<const lang::AssignStmt&>(s);
        target(*change.target, in);
        return expression(*change.value, in);
      }
      case StmtKind::ToolStmt:
        out_.words_.push_back(s.span.begin);
        [[fallthrough]];
      case StmtKind::ExprStmt:
      case StmtKind::JumpStmt:
      case StmtKind::WhileStmt:
        return lang::for_each_child(
            s, [&](const lang::Expr& e) { expression(e, in); });
    }
  }

  /// `f(k = 2)` means the parameter `k` of `f`, now that all are known.
  void finish_arguments() {
    for (const Argument& argument : arguments_) {
      Occurrence o;
      o.where = argument.name.span;
      o.kind = Occurrence::Kind::argument;
      o.argument = argument.name.text;
      if (argument.callee != SIZE_MAX) {
        const Occurrence& callee = out_.occurrences_[argument.callee];
        if (callee.kind == Occurrence::Kind::member) {
          o.kind = Occurrence::Kind::member;
          o.definition = callee.definition;
          o.member = callee.member;
        } else if (callee.definition >= 0) {
          const Definition* parameter = out_.parameter(
              out_.definitions_[callee.definition], argument.name.text);
          if (parameter) {
            o.kind = Occurrence::Kind::local;
            o.definition =
                static_cast<int>(parameter - out_.definitions_.data());
          }
        }
      }
      out_.occurrences_.push_back(std::move(o));
    }
  }

  Names& out_;
  const lang::Program& program_;
  std::vector<Body> bodies_;
  std::vector<int> body_of_;  // by scope: the function that it belongs to
  int body_ = 0, bodies_seen_ = 0;
  std::vector<Argument> arguments_;
  /// Definitions that are one thing already.
  std::set<const std::vector<int>*> merged_;
};

Names::Names(const lang::Program& program) { Indexer(*this, program).run(); }

const Occurrence* Names::at(uint32_t offset) const {
  auto after = std::ranges::upper_bound(
      occurrences_, offset, {},
      [](const Occurrence& o) { return o.where.begin; });
  if (after == occurrences_.begin()) return nullptr;
  const Occurrence& before = *std::prev(after);
  return offset <= before.where.end ? &before : nullptr;
}

std::vector<const Definition*> Names::targets(const Occurrence& o) const {
  if (o.kind != Occurrence::Kind::local) return {};
  const Definition& nearest = definitions_[o.definition];
  std::vector<const Definition*> out = {&nearest};
  if (!o.is_later) return out;
  for (const int other : scopes_[nearest.scope].names.at(nearest.name))
    if (&definitions_[other] != &nearest) out.push_back(&definitions_[other]);
  return out;
}

std::vector<const Definition*> Names::visible(uint32_t offset) const {
  int inner = -1;
  for (int s = 0; s < static_cast<int>(scopes_.size()); ++s) {
    const Scope& one = scopes_[s];
    const bool holds = one.begin <= offset && offset <= one.end;
    if (holds && (inner < 0 || one.begin >= scopes_[inner].begin)) inner = s;
  }
  std::vector<const Definition*> out;
  std::set<std::string_view> seen;
  bool later = false;  // outside of the function around `offset`
  for (int s = inner; s >= 0; s = scopes_[s].parent) {
    const bool whole = later || scopes_[s].kind != Scope::Kind::block;
    for (const auto& [name, all] : scopes_[s].names) {
      const Definition* best = whole ? &definitions_[all.front()] : nullptr;
      for (const int number : all) {
        const Definition& d = definitions_[number];
        const uint32_t bound = d.let ? d.whole.end : d.where.end;
        if (bound <= offset) best = &d;
      }
      if (best && seen.insert(name).second) out.push_back(best);
    }
    later |= scopes_[s].kind == Scope::Kind::function;
  }
  return out;
}

const Definition* Names::exported(std::string_view name) const {
  if (scopes_.empty()) return nullptr;
  const auto found = scopes_[0].names.find(name);
  if (found == scopes_[0].names.end()) return nullptr;
  return &definitions_[found->second.back()];
}

const Definition* Names::parameter(const Definition& definition,
                                   std::string_view name) const {
  const auto function = parameters_.find(definition.function);
  if (!definition.function || function == parameters_.end()) return nullptr;
  const auto found = function->second.find(name);
  return found == function->second.end() ? nullptr
                                         : &definitions_[found->second];
}

}  // namespace unisono::host::lsp
