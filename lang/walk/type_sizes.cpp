// Sizes in type expressions: what they are worth, which of them a value binds,
// and those that wait, such as `n + 1`, until the names in them are known.
#include <fmt/format.h>

#include <algorithm>

#include "lang/maps/maps.h"
#include "lang/ops/operators.h"
#include "lang/ops/sizes.h"
#include "lang/ops/text.h"
#include "lang/walk/types.h"

namespace unisono::lang {

// ---- of named types --------------------------------------------------------

void TypeMatcher::fail_undeclared(const NameExpr& name, const TypeStmt& alias) {
  std::string params;
  for (const TypeParam& param : alias.type_params)
    params += param.name.text + ", ";
  walk_.fail(
      diagnostic(Code::undeclared_size, name.span, name.text, alias.name.text)
          .set_help(fmt::format("declare it: `type {}[{}{}] = ...`",
                                alias.name.text, params, name.text)));
}

void TypeMatcher::check_sizes(const TypeStmt& alias) {
  check_sizes(*alias.type, alias, false);
}

void TypeMatcher::check_sizes(const Expr& type, const TypeStmt& alias,
                              bool in_size) {
  switch (type.kind) {
    case ExprKind::NameExpr: {
      const auto& name = static_cast<const NameExpr&>(type);
      const auto is_this = [&](const TypeParam& param) {
        return param.name.text == name.text;
      };
      if (in_size && std::ranges::none_of(alias.type_params, is_this) &&
          !env_->find(name.text).first && !is_host_type(name.text))
        fail_undeclared(name, alias);
      return;
    }
    case ExprKind::Index: {
      const auto& index = static_cast<const Index&>(type);
      check_sizes(*index.object, alias, in_size);
      for (const ExprPtr& item : index.items) check_sizes(*item, alias, true);
      return;
    }
    // The sizes of a function's type are those of each call; other things have
    // names of their own.
    case ExprKind::FunctionType:
    case ExprKind::FnExpr:
    case ExprKind::Block:
    case ExprKind::Comprehension: return;
    default:
      for_each_child(
          type, [&](const Expr& child) { check_sizes(child, alias, in_size); },
          [](const Stmt&) {});
  }
}

// ---- their values ---------------------------------------------------------

void TypeMatcher::bind_size(const NameExpr& name, ir::Dim value) {
  own_.insert(name.text);
  in_.define(env_, name.text, IntValue{std::move(value)}, false, name.span);
}

void TypeMatcher::check_parameter(const Param& param) {
  const Name& name = param.pattern.name;
  if (param.pattern.kind != Pattern::Kind::name || !own_.contains(name.text))
    return;
  walk_.fail(
      diagnostic(Code::duplicate_name, param.span, name.text, "parameter list")
          .set_help(fmt::format("a type before it binds the size `{0}`: put "
                                "`{0}` first, and the size is what it says",
                                name.text)));
}

std::optional<ir::Dim> TypeMatcher::name_value(const NameExpr& name,
                                               const Frame* frame,
                                               bool create) {
  if (auto argument = frame->arguments.find(name.text);
      argument != frame->arguments.end()) {
    if (!argument->second) {
      const auto known = frame->open.find(name.text);
      if (known != frame->open.end()) return known->second;
      if (!create) return std::nullopt;
      return frame->open[name.text] =
                 ir::Dim::symbol(walk_.new_symbol_id(), name.text);
    }
    return size_value(*argument->second, frame->outer, create);
  }
  auto [binding, holder] = env_of(frame)->find(name.text);
  // The size of a parameter before this one, or that parameter itself.
  const bool mine =
      binding && (holder == env_.get() || names_ != Names::bind || frame->env);
  if (binding) in_.note_read(*binding, *holder, env_of(frame), name.text);
  if (binding && binding->poisoned)
    Walker::use_poisoned(*binding, name.text, name.span);
  if (binding && !declared_.contains(name.text))
    if (const auto* axis = binding->value.get_if<AxisValue>()) {
      if (auto size = axis_size_here(walk_, *axis->axis)) return *size;
      walk_.fail(diagnostic(Code::bad_size, name.span,
                            fmt::format("the axis `{}`", name.text))
                     .set_help("it is not mapped here"));
    }
  if (mine) {
    if (const auto size = int_of(walk_, binding->value, name.span)) return size;
    walk_.fail(diagnostic(Code::bad_size, name.span,
                          fmt::format("`{}` ({})", name.text,
                                      type_name(binding->value)))
                   .set_help("a size is an int, known when the program is "
                             "compiled"));
  }
  if (frame->alias) fail_undeclared(name, *frame->alias);
  if (!create || names_ == Names::known) return std::nullopt;
  bind_size(name, ir::Dim::symbol(walk_.new_symbol_id(), name.text));
  return env_->names.at(name.text).value.get_if<IntValue>()->value;
}

std::optional<ir::Dim> TypeMatcher::size_value(const Expr& size,
                                               const Frame* frame,
                                               bool create) {
  if (const auto* name = as<NameExpr>(size))
    return name_value(*name, frame, create);
  if (const auto* literal = as<IntLiteral>(size))
    if (literal->value <= INT64_MAX && !literal->suffix)
      return ir::Dim(static_cast<int64_t>(literal->value));
  if (const auto* op = as<Binary>(size)) {
    if (create)
      if (auto quotient = new_quotient(*op, frame)) return quotient;
    const auto a = size_value(*op->left, frame, create);
    const auto b = size_value(*op->right, frame, create);
    if (!a || !b) return std::nullopt;
    const bool by_zero = b->is_constant() && b->value() == 0;
    if (op->op == BinaryOp::div && !by_zero) {
      if (auto quotient = exact_div(*a, *b)) return quotient;
      if (a->is_constant() && b->is_constant())
        walk_.fail(diagnostic(Code::bad_size, size.span,
                              fmt::format("{} / {}", a->value(), b->value()))
                       .set_help("it does not divide evenly; write `//` to "
                                 "round down"));
      return floor_div(*a, *b);
    }
    const auto value = int_arithmetic(walk_, op->op, *a, *b, size.span);
    if (const auto* i = value ? value->get_if<IntValue>() : nullptr)
      return i->value;
  }
  // Anything else that is an int: `shape(x)[0]`, `2 ** k`.
  const Value value = in_.expr(size, env_of(frame));
  if (const auto i = int_of(walk_, value, size.span)) return i;
  walk_.fail(diagnostic(Code::bad_size, size.span,
                        fmt::format("{} ({})", quoted(size), type_name(value)))
                 .set_help("a size is an int, known when the program is "
                           "compiled"));
}

/// `n / dev`, where n is bound by this: a new symbol, and n is dev times it, so
/// that it divides evenly.
std::optional<ir::Dim> TypeMatcher::new_quotient(const Binary& op,
                                                 const Frame* frame) {
  if (op.op != BinaryOp::div) return std::nullopt;
  const auto own = own_name(*op.left, frame);
  if (!own || name_value(*own->name, own->open ? own->open : root(), false))
    return std::nullopt;
  const auto divisor = size_value(*op.right, frame, true);
  if (!divisor) return std::nullopt;
  ir::Dim quotient = ir::Dim::symbol(
      walk_.new_symbol_id(),
      fmt::format("{}/{}", op.left->span.text(), op.right->span.text()));
  bind_size(*own, quotient * *divisor);
  return quotient;
}

std::optional<TypeMatcher::OwnName> TypeMatcher::own_name(const Expr& size,
                                                          const Frame* frame) {
  const auto* name = as<NameExpr>(size);
  if (!name) return std::nullopt;
  if (auto argument = frame->arguments.find(name->text);
      argument != frame->arguments.end()) {
    if (!argument->second) return OwnName{name, frame};
    return own_name(*argument->second, frame->outer);
  }
  if (frame->env || names_ == Names::known) return std::nullopt;
  return OwnName{name, nullptr};
}

void TypeMatcher::bind_size(const OwnName& own, ir::Dim value) {
  if (own.open)
    own.open->open[own.name->text] = std::move(value);
  else
    bind_size(*own.name, std::move(value));
}

void TypeMatcher::require_size(const ir::Dim& expected, const Waiting& found) {
  const ir::Dim& seen = found.seen;
  if (same_size(expected, seen)) return;
  const ir::Dim difference = expected - seen;
  if (difference.is_constant())
    walk_.fail(diagnostic(Code::size_mismatch, found.where, found.what,
                          seen.to_string(), found.axis, expected.to_string())
                   .about(difference)
                   .set_label(found.seen_type));
  if (names_ == Names::coerce) return;  // tested when it runs
  // Sizes of parameters alone are what they are, for all arguments.
  const std::string sizes = expected.to_string() + seen.to_string();
  const bool result = found.what.starts_with("the result of") &&
                      sizes.find_first_of("/%_") == sizes.npos;
  walk_.fail(diagnostic(Code::size_unproved, found.where, found.what,
                        seen.to_string(), found.axis, expected.to_string())
                 .about(difference)
                 .set_label(found.seen_type)
                 .set_help(result ? fmt::format("it is {}: declare that, or "
                                                "compute along another axis",
                                                found.seen_type)
                                  : fmt::format("state it with `... as {}`, "
                                                "which is checked when it runs",
                                                found.declared)));
}

ir::Dim TypeMatcher::match_size(const Expr& size, const Frame* frame,
                                const ir::Dim& seen, int axis,
                                const Subject& subject) {
  if (size.kind == ExprKind::Wildcard || size.kind == ExprKind::UnknownSize)
    return seen;
  Waiting found{&size,
                frame,
                seen,
                axis,
                subject.where,
                subject.what,
                type_name(subject.value),
                std::string(subject.whole.span.text())};
  if (const auto value = size_value(size, frame, false)) {
    require_size(*value, found);
    return same_size(*value, seen).value_or(*value);
  }
  if (const auto own = own_name(size, frame)) {
    bind_size(*own, seen);
    return seen;
  }
  if (names_ == Names::known && !mentions_open(size, frame)) {
    if (const auto* name = as<NameExpr>(size); name && env_->call == 0)
      in_.lookup(*name, env_of(frame));  // the error
    walk_.fail(diagnostic(Code::unbound_size, size.span, size.span.text(),
                          "the parameters")
                   .set_help("a size that only running tells is written `?k`"));
  }
  waiting_.push_back(std::move(found));
  return seen;
}

void TypeMatcher::collect_unknown(const Expr& size, const Frame* frame,
                                  std::vector<OwnName>& out) {
  const auto* name = as<NameExpr>(size);
  if (!name) {
    for_each_child(
        size, [&](const Expr& child) { collect_unknown(child, frame, out); },
        [](const Stmt&) {});
    return;
  }
  const auto argument = frame->arguments.find(name->text);
  const bool is_parameter = argument != frame->arguments.end();
  if (is_parameter && argument->second)
    collect_unknown(*argument->second, frame->outer, out);
  else if (!name_value(*name, frame, false))
    out.push_back({name, is_parameter ? frame : nullptr});
}

bool TypeMatcher::mentions_open(const Expr& size, const Frame* frame) {
  std::vector<OwnName> unknown;
  collect_unknown(size, frame, unknown);
  return std::ranges::any_of(unknown,
                             [](const OwnName& own) { return own.open; });
}

/// Finds the one name in a linear size that has no value yet.
bool TypeMatcher::solve(const Waiting& waiting) {
  std::vector<OwnName> unknown;
  collect_unknown(*waiting.size, waiting.frame, unknown);
  for (const OwnName& own : unknown)
    if (!(own == unknown[0])) return false;
  if (unknown.empty()) return true;
  // `n / dev` divides evenly, so n is dev times what is seen.
  const Expr* size = waiting.size;
  ir::Dim seen = waiting.seen;
  while (const auto* op = as<Binary>(*size)) {
    if (op->op != BinaryOp::div) break;
    const auto divisor = size_value(*op->right, waiting.frame, false);
    if (!divisor) break;
    seen = seen * *divisor;
    size = op->left.get();
  }
  const OwnName own = unknown[0];
  const uint32_t id = walk_.new_symbol_id();
  bind_size(own, ir::Dim::symbol(id, own.name->text));
  const auto form = size_value(*size, waiting.frame, false);
  auto at = [&](int64_t x) {
    return form->substitute([&](uint32_t symbol) -> std::optional<ir::Dim> {
      if (symbol == id) return ir::Dim(x);
      return std::nullopt;
    });
  };
  const ir::Dim factor = at(1) - at(0);
  std::optional<ir::Dim> solution;
  const bool linear = at(2) - at(1) == factor;
  const bool zero = factor.is_constant() && factor.value() == 0;
  if (!linear || zero)
    walk_.fail(diagnostic(Code::unbound_size, own.name->span, own.name->text,
                          fmt::format("`{}`", waiting.size->span.text())));
  solution = equal_parts(seen - at(0), factor);
  if (!solution)
    walk_.fail(diagnostic(Code::size_mismatch, waiting.where, waiting.what,
                          waiting.seen.to_string(), waiting.axis,
                          std::string(waiting.size->span.text()))
                   .about(waiting.seen)
                   .set_label(waiting.seen_type));
  bind_size(own, *solution);
  return true;
}

void TypeMatcher::finish() {
  // Each solution may be what another one waits for.
  bool progress = true;
  std::vector<Waiting> open = std::move(waiting_);
  waiting_.clear();
  while (progress && !open.empty()) {
    progress = false;
    std::vector<Waiting> left;
    for (Waiting& waiting : open) {
      if (!solve(waiting)) {
        left.push_back(std::move(waiting));
        continue;
      }
      progress = true;
      require_size(*size_value(*waiting.size, waiting.frame, false), waiting);
    }
    open = std::move(left);
  }
  if (!open.empty())
    walk_.fail(diagnostic(Code::unbound_size, open[0].size->span,
                          open[0].size->span.text(), "the arguments"));
}

// ---- of whole types --------------------------------------------------------

ir::Dim TypeMatcher::size(const Expr& size) {
  if (auto value = size_value(size, root(), false)) return *value;
  walk_.fail(diagnostic(Code::bad_size, size.span, quoted(size)));
}

/// `f32[..., ..., d]` says nothing about where its axes are.
void TypeMatcher::check_rest(const std::vector<ExprPtr>& items) {
  const Expr* first = nullptr;
  for (const ExprPtr& item : items) {
    if (item->kind != ExprKind::Rest) continue;
    if (first)
      walk_.fail(diagnostic(Code::two_ellipses, item->span)
                     .add_note(first->span, "the first one"));
    first = item.get();
  }
}

ir::Shape TypeMatcher::any_shape(const std::vector<ExprPtr>& items,
                                 const Frame* frame) {
  check_rest(items);
  ir::Shape shape;
  for (const ExprPtr& item : items) {
    if (item->kind == ExprKind::Wildcard || item->kind == ExprKind::Rest) {
      // Of a parameter it stands for all sizes.
      shape.push_back(names_ == Names::bind
                          ? ir::Dim::symbol(walk_.new_symbol_id(), "_")
                          : walk_.open_size());
    } else if (const auto* unknown = as<UnknownSize>(*item)) {
      shape.push_back(ir::Dim::symbol(walk_.new_symbol_id(),
                                      "?" + unknown->name.text,
                                      /*open=*/true));
    } else if (auto size = size_value(*item, frame, true)) {
      shape.push_back(*size);
    } else {
      walk_.fail(
          diagnostic(Code::unbound_size, item->span, item->span.text(),
                     "the parameters")
              .set_help("a size that only running tells is written `?k`"));
    }
  }
  return shape;
}

}  // namespace unisono::lang
