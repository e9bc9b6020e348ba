// Names are what lang/resolve says; fields and arguments, of which it knows
// nothing, are found by a walk of their own.
#include "host/lsp/names.h"

#include <algorithm>
#include <utility>

namespace unisono::host::lsp {

using lang::as;
using lang::StmtKind;

class Indexer {
 public:
  Indexer(Names& out, const lang::Program& program)
      : out_(out), names_(out.resolution_), program_(program) {}

  void run() {
    // The first ones have the numbers of uses.
    for (const Use& use : names_.uses) add(use);
    for (size_t d = 0; d < names_.definitions.size(); ++d) {
      Occurrence& o =
          occur(names_.definitions[d].where, Occurrence::Kind::local);
      o.use = Occurrence::Use::definition;
      o.definition = static_cast<int>(d);
    }
    for (const lang::StmtPtr& s : program_.statements) statement(*s);
    for (const Argument& argument : arguments_) finish(argument);
    std::ranges::sort(out_.occurrences_, {},
                      [](const Occurrence& o) { return o.where.begin; });
  }

 private:
  using Use = lang::Resolution::Use;
  struct Argument {  // `name=` of a call whose callee is this use, or null
    lang::Name name;
    const Use* callee;
  };

  Occurrence& occur(lang::Span where, Occurrence::Kind kind) {
    Occurrence& o = out_.occurrences_.emplace_back();
    o.where = where;
    o.kind = kind;
    return o;
  }
  Occurrence& occurrence(const Use& use) {
    return out_.occurrences_[&use - names_.uses.data()];
  }

  void add(const Use& use) {
    Occurrence& o =
        occur(use.where(), use.definition < 0 ? Occurrence::Kind::library
                                              : Occurrence::Kind::local);
    o.definition = use.definition;
    if (use.kind == Use::Kind::write) o.use = Occurrence::Use::write;
    o.is_later = use.place_count > 0 && names_.places(use)[0].kind !=
                                            lang::Resolution::Place::Kind::slot;
    const auto* field = as<lang::Field>(*use.node);
    if (!field) return;
    o.object = field->object.get();
    if (use.kind == Use::Kind::method) {
      o.kind = Occurrence::Kind::field;
    } else {
      o.kind = Occurrence::Kind::member;
      o.member = field->name.text;
    }
  }

  void fields(const std::vector<lang::ArgumentExpr>& list) {
    for (const lang::ArgumentExpr& field : list)
      if (field.name) occur(field.name->span, Occurrence::Kind::field);
  }

  void call(const lang::Call& e) {
    const lang::Expr* function = lang::function_name(*e.callee);
    const Use* callee = names_.use(function ? *function : *e.callee);
    if (callee) occurrence(*callee).is_called = true;
    for (const lang::ArgumentExpr& argument : e.arguments)
      if (argument.name) arguments_.push_back({*argument.name, callee});
  }

  void expression(const lang::Expr& e) {
    if (const auto* record = as<lang::Record>(e)) fields(record->fields);
    if (const auto* with = as<lang::With>(e)) fields(with->fields);
    if (const auto* type = as<lang::RecordType>(e))
      for (const lang::TypedName& field : type->fields)
        occur(field.name.span, Occurrence::Kind::field);
    const auto* part = as<lang::Field>(e);
    if (part && !part->index && !names_.use(e))
      occur(part->name.span, Occurrence::Kind::field).object =
          part->object.get();
    if (const auto* called = as<lang::Call>(e)) call(*called);
    lang::for_each_child(
        e, [&](const lang::Expr& child) { expression(child); },
        [&](const lang::Stmt& child) { statement(child); });
  }

  void statement(const lang::Stmt& s) {
    if (const auto* import = as<lang::ImportStmt>(s))
      out_.imports_.push_back(import);
    if (s.kind == StmtKind::TypeStmt || s.kind == StmtKind::AxisStmt ||
        s.kind == StmtKind::ToolStmt)
      out_.words_.push_back(s.span.begin);
    lang::for_each_child(s, [&](const lang::Expr& e) { expression(e); });
  }

  /// `f(k = 2)` means the parameter `k` of `f`.
  void finish(const Argument& argument) {
    Occurrence o;
    o.where = argument.name.span;
    o.kind = Occurrence::Kind::argument;
    o.argument = argument.name.text;
    const Use* callee = argument.callee;
    if (callee && callee->kind == Use::Kind::member) {
      o.kind = Occurrence::Kind::member;
      o.definition = callee->definition;
      o.member = occurrence(*callee).member;
    } else if (callee && callee->definition >= 0) {
      const Definition* parameter = out_.parameter(
          names_.definitions[callee->definition], argument.name.text);
      if (parameter) {
        o.kind = Occurrence::Kind::local;
        o.definition = static_cast<int>(parameter - names_.definitions.data());
      }
    }
    out_.occurrences_.push_back(std::move(o));
  }

  Names& out_;
  const lang::Resolution& names_;
  const lang::Program& program_;
  std::vector<Argument> arguments_;
};

Names::Names(const lang::Program& program)
    : resolution_(lang::resolve(program)) {
  Indexer(*this, program).run();
}

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
  const Definition& nearest = definitions()[o.definition];
  std::vector<const Definition*> out = {&nearest};
  if (!o.is_later) return out;
  for (const int other : resolution_.variables[nearest.variable].definitions)
    if (&definitions()[other] != &nearest) out.push_back(&definitions()[other]);
  return out;
}

int Names::group(const Definition& definition) const {
  const auto& variable = resolution_.variables[definition.variable];
  return variable.captured
             ? variable.definitions.front()
             : static_cast<int>(&definition - definitions().data());
}

const Definition* Names::parameter(const Definition& definition,
                                   std::string_view name) const {
  if (!definition.function) return nullptr;
  return resolution_.parameter(*definition.function, name);
}

}  // namespace unisono::host::lsp
