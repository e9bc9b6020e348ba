// One walk in the order in which a program runs: what stands in a scope when a
// name is met is bound there. The body of a function is walked when all else of
// the file was, as it sees all names around it. Slots are numbered at the end,
// when all names of a scope are known. tests/unit/lang/resolve_test.cpp
#include <algorithm>
#include <cctype>
#include <utility>

#include "lang/resolve/resolution.h"

namespace unisono::lang {
namespace {

using Definition = Resolution::Definition;
using Frame = Resolution::Frame;
using Place = Resolution::Place;
using Scope = Resolution::Scope;
using Use = Resolution::Use;
using Variable = Resolution::Variable;
using Kind = Definition::Kind;

class Resolver {
 public:
  Resolution run(const Program& program) {
    add_frame(nullptr, -1, 0);
    const auto end = static_cast<uint32_t>(program.file->text().size());
    const int file = add_scope(-1, {program.file, 0, end}, Scope::Kind::block);
    for (const StmtPtr& s : program.statements) statement(*s, file);
    while (!bodies_.empty()) {
      const Body body = bodies_.back();
      bodies_.pop_back();
      function(body);
    }
    number_slots();
    return std::move(out_);
  }

 private:
  /// A function whose body waits.
  struct Body {
    const Function* function;
    Span whole;
    int around;  // the scope
    int made;    // how many definitions there were when it was made
  };
  struct OpenLoop {
    int number;
    int first_scope;  // of those inside
  };

  // ---- scopes and definitions
  void add_frame(const Function* function, int around, int made) {
    Frame frame;
    frame.function = function;
    frame.around = around;
    frame.scope = count(out_.scopes);
    frame_ = count(out_.frames);
    if (function) out_.frame_of[function] = frame_;
    out_.frames.push_back(std::move(frame));
    made_.push_back(made);
  }

  int add_scope(int parent, Span span, Scope::Kind kind) {
    Scope scope;
    scope.kind = kind;
    scope.parent = parent;
    scope.frame = frame_;
    scope.begin = span.begin;
    scope.end = span.end;
    out_.scopes.push_back(std::move(scope));
    return count(out_.scopes) - 1;
  }

  template <class T>
  static int count(const std::vector<T>& table) {
    return static_cast<int>(table.size());
  }
  int frame_of(const Variable& v) const { return out_.scopes[v.scope].frame; }

  int find_here(int in, std::string_view name) const {
    const auto& variables = out_.scopes[in].variables;
    const auto found = variables.find(name);
    return found == variables.end() ? -1 : found->second;
  }
  /// The variable that a name means, from a scope outwards.
  int find(int from, std::string_view name) const {
    for (int s = from; s >= 0; s = out_.scopes[s].parent)
      if (const int found = find_here(s, name); found >= 0) return found;
    return -1;
  }

  int define(int in, std::string_view name, Span where, Definition definition) {
    const auto [place, fresh] =
        out_.scopes[in].variables.try_emplace(name, count(out_.variables));
    if (fresh) out_.variables.push_back({.name = name, .scope = in});
    definition.name = name;
    definition.where = where;
    if (!definition.whole) definition.whole = where;
    definition.variable = place->second;
    out_.variables[place->second].definitions.push_back(
        count(out_.definitions));
    out_.definitions.push_back(definition);
    return place->second;
  }
  int define(int in, const Name& name, const Definition& definition) {
    return define(in, name.text, name.span, definition);
  }
  void define(int in, const Pattern& pattern, Definition definition) {
    if (pattern.kind == Pattern::Kind::name)
      define(in, pattern.name, definition);
    definition.type = nullptr;  // which is that of the whole
    for (const Pattern& item : pattern.items) define(in, item, definition);
  }

  // ---- uses
  Use& add_use(Use::Kind kind, const Expr& node, int in) {
    out_.use_of[&node] = count(out_.uses);
    Use& use = out_.uses.emplace_back();
    use.kind = kind;
    use.node = &node;
    use.scope = in;
    use.first_place = static_cast<uint32_t>(out_.all_places.size());
    return use;
  }

  void use(Use::Kind kind, const Expr& node, std::string_view name, int in) {
    Use& use = add_use(kind, node, in);
    int inner = -1;  // the frame just inside that of the scope, if there is one
    for (int s = in, frame = frame_; s >= 0; s = out_.scopes[s].parent) {
      if (out_.scopes[s].frame != frame) {
        inner = frame;
        frame = out_.scopes[s].frame;
      }
      const int found = find_here(s, name);
      if (found < 0) continue;
      const bool is_set = is_set_before(found, inner);
      if (use.definition < 0)
        use.definition = nearest(found, use.where().begin);
      out_.all_places.push_back(place_of(found, is_set));
      ++use.place_count;
      if (is_set) break;
    }
    if (kind == Use::Kind::write && use.place_count > 0)
      assigned(out_.all_places[use.first_place].variable);
  }

  /// Whether it is, wherever the function at `inner`, if that is one, is made.
  /// Sizes are bound as arguments and casts are met.
  bool is_set_before(int variable, int inner) const {
    const int first = out_.variables[variable].definitions.front();
    const Kind kind = out_.definitions[first].kind;
    return kind != Kind::size && kind != Kind::type_parameter &&
           (inner < 0 || first < made_[inner]);
  }

  /// The last definition before a use, or the first.
  int nearest(int variable, uint32_t at) const {
    const std::vector<int>& all = out_.variables[variable].definitions;
    if (frame_of(out_.variables[variable]) == frame_) return all.back();
    const auto after = std::ranges::lower_bound(
        all, at, {}, [&](int d) { return out_.definitions[d].where.begin; });
    return after == all.begin() ? all.front() : *std::prev(after);
  }

  /// For the function that is walked. Slots are numbered later.
  Place place_of(int variable, bool is_set) {
    Variable& v = out_.variables[variable];
    if (frame_of(v) == frame_) return {Place::Kind::slot, is_set, 0, variable};
    v.captured = true;
    if (v.scope == 0) return {Place::Kind::module, is_set, 0, variable};
    return {Place::Kind::capture, is_set, capture(frame_, variable), variable};
  }

  /// Its number among the captures of a function, which all functions between
  /// the two capture, too.
  int capture(int frame, int variable) {
    const auto next = captures_.try_emplace({frame, variable},
                                            count(out_.frames[frame].captures));
    const int number = next.first->second;
    if (!next.second) return number;
    const int around = out_.frames[frame].around;
    out_.frames[frame].captures.push_back({.variable = variable});
    if (frame_of(out_.variables[variable]) != around) {
      Place& place = out_.frames[frame].captures[number];
      place.kind = Place::Kind::capture;
      place.number = capture(around, variable);
    }
    return number;
  }

  /// A variable changes in the turns of the loops that it lies around.
  void assigned(int variable) {
    if (frame_of(out_.variables[variable]) != frame_) return;
    for (const OpenLoop& loop : loops_) {
      auto& list = out_.loops[loop.number].assigned;
      if (out_.variables[variable].scope < loop.first_scope &&
          std::ranges::find(list, variable) == list.end())
        list.push_back(variable);
    }
  }

  // ---- functions
  void later(const Function& f, Span whole, int around) {
    bodies_.push_back({&f, whole, around, count(out_.definitions)});
  }

  void function(const Body& body) {
    const Function& f = *body.function;
    add_frame(&f, out_.scopes[body.around].frame, body.made);
    const int in = add_scope(body.around, body.whole, Scope::Kind::function);
    const int first = count(out_.variables);
    for (const TypeParam& p : f.type_params) {
      const bool size = !p.restriction && !is_upper(p.name.text);
      define(in, p.name, {.kind = size ? Kind::size : Kind::type_parameter});
    }
    for (const Param& p : f.params)
      if (p.type) type(*p.type, in, Sizes::own);
    for (int v = first; v < count(out_.variables); ++v)
      if (out_.variables[v].scope == in) out_.frames[frame_].sizes.push_back(v);
    for (const Param& p : f.params) {
      if (p.default_value) expression(*p.default_value, in);
      parameter(p, in);
    }
    if (f.result) type(*f.result, in, Sizes::bound);
    if (f.body) expression(*f.body, in);
  }

  void parameter(const Param& p, int in) {
    Definition definition{.kind = Kind::parameter, .whole = p.span};
    definition.type = p.type.get();
    definition.param = &p;
    define(in, p.pattern, definition);
    std::vector<int>& all = out_.frames[frame_].parameters;
    all.push_back(p.pattern.kind == Pattern::Kind::name
                      ? find_here(in, p.pattern.name.text)
                      : -1);
    if (all.back() >= 0) out_.variables[all.back()].slot = count(all) - 1;
  }

  // ---- types: names of sizes and element types that mean nothing yet are
  // bound there; `own` ones hide those outside, but for axes.
  enum class Sizes : uint8_t { known, bound, own };

  static bool is_upper(std::string_view name) {
    return std::isupper(static_cast<unsigned char>(name[0])) != 0;
  }

  void type(const Expr& e, int in, Sizes sizes) {
    if (const auto* name = as<NameExpr>(e)) {
      if (sizes != Sizes::known && is_upper(name->text) &&
          find(in, name->text) < 0)
        define(in, name->text, name->inner, {.kind = Kind::type_parameter});
      else
        use(Use::Kind::type, e, name->text, in);
    } else if (const auto* index = as<Index>(e)) {
      type(*index->object, in, sizes);
      for (const ExprPtr& item : index->items) size(*item, in, sizes);
    } else if (const auto* tuple = as<Tuple>(e)) {
      for (const ExprPtr& item : tuple->items) type(*item, in, sizes);
    } else if (const auto* record = as<RecordType>(e)) {
      for (const TypedName& field : record->fields)
        type(*field.type, in, sizes);
    } else if (const auto* function = as<FunctionType>(e)) {
      const int inside = add_scope(in, e.span, Scope::Kind::block);
      for (const ExprPtr& p : function->params) type(*p, inside, Sizes::bound);
      type(*function->result, inside, Sizes::bound);
    } else {
      expression(e, in);
    }
  }

  void size(const Expr& e, int in, Sizes sizes) {
    if (const auto* unknown = as<UnknownSize>(e)) {
      if (sizes != Sizes::known)
        define(in, unknown->name, {.kind = Kind::size});
    } else if (const auto* name = as<NameExpr>(e)) {
      if (sizes != Sizes::known && is_new_size(name->text, in, sizes))
        define(in, name->text, name->inner, {.kind = Kind::size});
      else
        use(Use::Kind::read, e, name->text, in);
    } else if (const auto* op = as<Binary>(e)) {
      size(*op->left, in, sizes);
      size(*op->right, in, sizes);
    } else if (e.kind == ExprKind::Index) {
      type(e, in, sizes);  // an argument of a named type
    } else {
      expression(e, in);
    }
  }

  bool is_new_size(std::string_view name, int in, Sizes sizes) const {
    const int found = find(in, name);
    if (found < 0 || sizes != Sizes::own) return found < 0;
    const int last = out_.variables[found].definitions.back();
    return out_.variables[found].scope != in &&
           out_.definitions[last].kind != Kind::axis;
  }

  // ---- expressions
  void expression(const Expr& e, int in) {
    if (const auto* name = as<NameExpr>(e)) {
      use(Use::Kind::read, e, name->text, in);
    } else if (const auto* fn = as<FnExpr>(e)) {
      later(fn->function, e.span, in);
    } else if (const auto* block = as<Block>(e)) {
      const int inside = add_scope(in, e.span, Scope::Kind::block);
      for (const StmtPtr& s : block->statements) statement(*s, inside);
    } else if (const auto* cast = as<Cast>(e)) {
      expression(*cast->value, in);
      type(*cast->type, in, Sizes::bound);
    } else if (const auto* all = as<Comprehension>(e)) {
      comprehension(*all, in);
    } else if (e.kind == ExprKind::RecordType ||
               e.kind == ExprKind::FunctionType) {
      type(e, in, Sizes::known);
    } else if (const auto* part = as<Field>(e)) {
      expression(*part->object, in);
      member(*part, in);
    } else if (const auto* called = as<Call>(e)) {
      call(*called, in);
    } else {
      for_each_child(
          e, [&](const Expr& child) { expression(child, in); },
          [](const Stmt&) {});
    }
  }

  void comprehension(const Comprehension& e, int in) {
    int inside = in;
    for (const Generator& g : e.generators) {
      expression(*g.iterable, inside);
      inside = add_scope(inside, e.span, Scope::Kind::generator);
      define(inside, g.pattern, {});
    }
    if (e.condition) expression(*e.condition, inside);
    expression(*e.element, inside);
  }

  /// `m.f` of a module. False if it is another field.
  bool member(const Field& e, int in) {
    const Use* object = e.index ? nullptr : out_.use(*e.object);
    const int module = object ? object->definition : -1;
    if (module < 0 || object->kind == Use::Kind::member ||
        out_.definitions[module].kind != Kind::module)
      return false;
    add_use(Use::Kind::member, e, in).definition = module;
    return true;
  }

  void call(const Call& e, int in) {
    const auto* part = as<Field>(*e.callee);
    if (!part) {
      expression(*e.callee, in);
    } else {
      expression(*part->object, in);
      if (!member(*part, in) && !part->index)
        use(Use::Kind::method, *part, part->name.text, in);
    }
    for (const ArgumentExpr& argument : e.arguments)
      expression(*argument.value, in);
  }

  /// What stands on the left of an assignment, or the variable of such a part.
  void target(const Expr& e, int in) {
    if (const auto* all = as<Tuple>(e)) {
      for (const ExprPtr& each : all->items) target(*each, in);
    } else if (const auto* name = as<NameExpr>(e)) {
      use(Use::Kind::write, e, name->text, in);
    } else if (const auto* part = as<Field>(e)) {
      target(*part->object, in);
      member(*part, in);
    } else if (const auto* index = as<Index>(e)) {
      target(*index->object, in);
      for (const ExprPtr& item : index->items) expression(*item, in);
    } else {
      expression(e, in);
    }
  }

  // ---- statements
  void let(const LetStmt& s, int in) {
    if (s.value) expression(*s.value, in);
    if (s.type) type(*s.type, in, Sizes::bound);
    Definition definition{.is_var = s.is_var, .whole = s.span};
    definition.type = s.type.get();
    definition.let = &s;
    if (const auto* fn = s.value ? as<FnExpr>(*s.value) : nullptr) {
      definition.kind = Kind::function;
      definition.function = &fn->function;
    }
    if (const NameExpr* name = s.value ? function_name(*s.value) : nullptr)
      if (const Use* use = out_.use(*name); use && use->definition >= 0)
        definition.function = out_.definitions[use->definition].function;
    define(in, s.pattern, definition);
  }

  void def(const DefStmt& s, int in) {
    Definition definition{.kind = Kind::function, .whole = s.span};
    definition.def = &s;
    definition.function = &s.function;
    define(in, s.name, definition);
    for (const ExprPtr& decorator : s.decorators) expression(*decorator, in);
    later(s.function, s.span, in);
  }

  void type_stmt(const TypeStmt& s, int in) {
    Definition definition{.kind = Kind::type, .whole = s.span};
    definition.alias = &s;
    define(in, s.name, definition);
    const int inside = add_scope(in, s.span, Scope::Kind::type);
    for (const TypeParam& p : s.type_params)
      define(inside, p.name, {.kind = Kind::size});
    type(*s.type, inside, Sizes::known);
  }

  void axis(const AxisStmt& s, int in) {
    if (s.value) expression(*s.value, in);
    Definition definition{.kind = Kind::axis, .whole = s.span};
    definition.axis = &s;
    for (const Name& name : s.names) define(in, name, definition);
  }

  void import(const ImportStmt& s, int in) {
    Definition definition{.kind = Kind::module, .whole = s.span};
    definition.import = &s;
    const Name name = module_name(s);
    const std::string_view all = s.alias ? s.alias->text : s.module.text;
    define(in, all.substr(all.rfind(name.text), name.text.size()), name.span,
           definition);
  }

  void body(const Stmt& loop, const Expr& body, int in, int first_scope) {
    loops_.push_back({count(out_.loops), first_scope});
    out_.loops.push_back({.statement = &loop});
    expression(body, in);
    loops_.pop_back();
  }

  void jump(const JumpStmt& s, int in) {
    if (s.value) expression(*s.value, in);
    if (s.jump == JumpStmt::Jump::next_turn) return;
    for (const OpenLoop& loop : loops_)
      if (s.jump == JumpStmt::Jump::give || &loop == &loops_.back())
        out_.loops[loop.number].jumps.push_back(&s);
  }

  void statement(const Stmt& s, int in) {
    switch (s.kind) {
      case StmtKind::LetStmt: return let(static_cast<const LetStmt&>(s), in);
      case StmtKind::DefStmt: return def(static_cast<const DefStmt&>(s), in);
      case StmtKind::TypeStmt:
        return type_stmt(static_cast<const TypeStmt&>(s), in);
      case StmtKind::AxisStmt: return axis(static_cast<const AxisStmt&>(s), in);
      case StmtKind::ImportStmt:
        return import(static_cast<const ImportStmt&>(s), in);
      case StmtKind::ForStmt: {
        const auto& loop = static_cast<const ForStmt&>(s);
        expression(*loop.iterable, in);
        const int turn = add_scope(in, s.span, Scope::Kind::block);
        define(turn, loop.pattern, {.whole = loop.pattern.span});
        return body(s, *loop.body, turn, turn);
      }
      case StmtKind::WhileStmt: {
        const auto& loop = static_cast<const WhileStmt&>(s);
        expression(*loop.condition, in);
        if (loop.most) expression(*loop.most, in);
        return body(s, *loop.body, in, count(out_.scopes));
      }
      case StmtKind::AssignStmt: {
        const auto& change = static_cast<const AssignStmt&>(s);
        target(*change.target, in);
        return expression(*change.value, in);
      }
      case StmtKind::JumpStmt: return jump(static_cast<const JumpStmt&>(s), in);
      case StmtKind::ExprStmt:
      case StmtKind::ToolStmt:
        return for_each_child(s, [&](const Expr& e) { expression(e, in); });
    }
  }

  // ---- slots
  void number_slots() {
    for (const Frame& frame : out_.frames)
      out_.scopes[frame.scope].slot_count = count(frame.parameters);
    for (Variable& v : out_.variables)
      if (v.slot < 0) v.slot = out_.scopes[v.scope].slot_count++;
    for (Scope& s : out_.scopes) {
      const Scope* around = s.parent < 0 ? nullptr : &out_.scopes[s.parent];
      if (around && around->frame == s.frame)
        s.first_slot = around->first_slot + around->slot_count;
      int& all = out_.frames[s.frame].slot_count;
      all = std::max(all, s.first_slot + s.slot_count);
    }
    for (Variable& v : out_.variables)
      v.slot += out_.scopes[v.scope].first_slot;
    for (Place& place : out_.all_places) number(place);
    for (Frame& frame : out_.frames)
      for (Place& place : frame.captures) number(place);
  }
  void number(Place& place) const {
    if (place.kind != Place::Kind::capture)
      place.number = out_.variables[place.variable].slot;
  }

  Resolution out_;
  std::vector<Body> bodies_;
  int frame_ = 0;  // that is walked
  /// Of frames: how many definitions there were when the function was made.
  std::vector<int> made_;
  std::vector<OpenLoop> loops_;
  /// By frame and variable, its number among the captures.
  std::map<std::pair<int, int>, int> captures_;
};

}  // namespace

Resolution resolve(const Program& program) { return Resolver().run(program); }

}  // namespace unisono::lang
