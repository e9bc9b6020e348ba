// Expressions and types. The tokens come out in the order in which they came
// in, so no parentheses are ever needed that the user did not write.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lang/format/format_impl.h"
#include "lang/source/utf8.h"
#include "lang/syntax/precedence.h"
#include "runtime/stop.h"

namespace unisono::lang {

DocPtr Formatter::leaf(uint32_t begin, std::string content) {
  return comments_before(begin, text(std::move(content)));
}

DocPtr Formatter::number(Span literal) {
  std::string digits(literal.text());
  if (digits.ends_with('.')) digits += '0';
  return leaf(literal.begin, std::move(digits));
}

DocPtr Formatter::expr(const Expr& e) {
  poll_stop();
  if (!next_comment(e.span.begin))
    return e.parenthesized ? parentheses(e) : bare(e);
  DocPtr comments = comments_before(e.span.begin, text(""));
  return Row().add(std::move(comments)).add(expr(e)).done();
}

DocPtr Formatter::parentheses(const Expr& e) {
  Parts parts(e.span.begin + 1);
  before_part(parts, e.inner.begin);
  in_parentheses_ = true;
  DocPtr inside = bare(e);
  in_parentheses_ = false;
  add_part(parts, std::move(inside), false, e.inner.end);
  return close_list(std::move(parts), "(", ")", e.span.end - 1,
                    line_ends_after(e.span.begin + 1));
}

DocPtr Formatter::bare(const Expr& e) {
  const bool fills_parentheses = std::exchange(in_parentheses_, false);
  const uint32_t begin = e.inner.begin;
  const uint32_t close = e.inner.end - 1;
  switch (e.kind) {
    case ExprKind::IntLiteral: return number(e.inner);
    case ExprKind::FloatLiteral: return number(e.inner);
    case ExprKind::StringLiteral:
      return leaf(begin, std::string(e.inner.text()));
    case ExprKind::BoolLiteral:
      return leaf(begin, as<BoolLiteral>(e)->value ? "true" : "false");
    case ExprKind::NoneLiteral: return leaf(begin, "none");
    case ExprKind::NameExpr: return leaf(begin, as<NameExpr>(e)->text);
    case ExprKind::Wildcard: return leaf(begin, "_");
    case ExprKind::UnknownSize:
      return leaf(begin, "?" + as<UnknownSize>(e)->name.text);
    case ExprKind::Rest: return leaf(begin, "...");
    case ExprKind::Tuple: {
      const auto& tuple = *as<Tuple>(e);
      if (tuple.bare) return list(tuple.items, "(", ")", begin, e.inner.end);
      return list(tuple.items, "(", ")", begin + 1, close,
                  tuple.items.size() == 1);
    }
    case ExprKind::Record: return record(*as<Record>(e));
    case ExprKind::RecordType: return record_type(*as<RecordType>(e));
    case ExprKind::FunctionType: return function_type(*as<FunctionType>(e));
    case ExprKind::Array:
      return list(as<Array>(e)->items, "[", "]", begin + 1, close);
    case ExprKind::Comprehension: return comprehension(*as<Comprehension>(e));
    case ExprKind::Call: {
      const auto& call = *as<Call>(e);
      Row row;
      row.add(expr(*call.callee));
      row.add(arguments(call.arguments, "=", call.callee->span.end, close));
      return row.done();
    }
    case ExprKind::Index: {
      const auto& index = *as<Index>(e);
      Row row;
      row.add(expr(*index.object));
      row.add(list(index.items, "[", "]", index.object->span.end, close));
      return row.done();
    }
    case ExprKind::Slice: return slice(*as<Slice>(e));
    case ExprKind::Field: return field(*as<Field>(e));
    case ExprKind::Unary: return unary(*as<Unary>(e));
    case ExprKind::Binary: return binary(*as<Binary>(e), fills_parentheses);
    case ExprKind::Cast: {
      Row row;
      row.add(expr(*as<Cast>(e)->value)).add(" as ");
      return row.add(expr(*as<Cast>(e)->type)).done();
    }
    case ExprKind::With: {
      const auto& with = *as<With>(e);
      Row row;
      row.add(expr(*with.base)).add(" with ");
      return row.add(arguments(with.fields, " = ", with.base->span.end, close))
          .done();
    }
    case ExprKind::Pipe: return pipe(*as<Pipe>(e), fills_parentheses);
    case ExprKind::If: return if_expression(*as<If>(e));
    case ExprKind::Block: return group(block(*as<Block>(e)));
    case ExprKind::FnExpr: return fn(*as<FnExpr>(e));
  }
  return text("");
}

// ---- Lists

/// `begin`: not after the first item, and not before what precedes the opening
/// bracket.
DocPtr Formatter::list(const std::vector<ExprPtr>& items, std::string open,
                       std::string close, uint32_t begin, uint32_t end,
                       bool last_comma) {
  Parts parts(begin);
  const bool spread =
      !items.empty() && line_ends_between(begin, items[0]->span.begin);
  for (const ExprPtr& item : items) {
    before_part(parts, item->span.begin);
    DocPtr doc = expr(*item);
    add_part(parts, std::move(doc), last_comma || item != items.back(),
             item->span.end);
  }
  return close_list(std::move(parts), std::move(open), std::move(close), end,
                    spread);
}

DocPtr Formatter::arguments(const std::vector<ArgumentExpr>& items,
                            std::string_view sign, uint32_t begin,
                            uint32_t end) {
  Parts parts(begin);
  const auto start = [](const ArgumentExpr& a) {
    return a.name ? a.name->span.begin : a.value->span.begin;
  };
  const bool spread =
      !items.empty() && line_ends_between(begin, start(items[0]));
  for (const ArgumentExpr& item : items) {
    before_part(parts, start(item));
    Row row;
    if (item.name) row.add(name(*item.name)).add(std::string(sign));
    row.add(expr(*item.value));
    add_part(parts, row.done(), &item != &items.back(), item.value->span.end);
  }
  return close_list(std::move(parts), "(", ")", end, spread);
}

/// The signs stand below one another if the user had them so, each field on a
/// line of its own.
bool Formatter::signs_are_aligned(const Record& e) const {
  int column = 0;
  uint32_t end = 0;
  for (const ArgumentExpr& field : e.fields) {
    const Span name = field.name->span;
    const size_t sign = text_.find_first_not_of(' ', name.end);
    const int here = program_.file->place(static_cast<uint32_t>(sign)).column;
    if (text_[sign] != '=') return false;
    if (end > 0 && (here != column || !line_ends_between(end, name.begin)))
      return false;
    column = here;
    end = field.value->span.end;
  }
  return true;
}

DocPtr Formatter::record(const Record& e) {
  Parts parts(e.inner.begin + 1);
  const bool aligned = signs_are_aligned(e);
  int widest = 0;
  for (const ArgumentExpr& field : e.fields)
    widest = std::max(widest, display_width(field.name->text));
  for (const ArgumentExpr& field : e.fields) {
    before_part(parts, field.name->span.begin);
    const int pad = aligned ? widest - display_width(field.name->text) : 0;
    Row row;
    row.add(name(*field.name));
    row.add(std::string(static_cast<size_t>(pad), ' ') + " = ");
    row.add(expr(*field.value));
    add_part(parts, row.done(), &field != &e.fields.back(),
             field.value->span.end);
  }
  return close_list(std::move(parts), "(", ")", e.inner.end - 1,
                    line_ends_after(e.inner.begin + 1));
}

DocPtr Formatter::record_type(const RecordType& e) {
  Parts parts(e.inner.begin + 1);
  for (const TypedName& field : e.fields) {
    before_part(parts, field.name.span.begin);
    Row row;
    row.add(name(field.name)).add(": ").add(expr(*field.type));
    add_part(parts, row.done(), &field != &e.fields.back(),
             field.type->span.end);
  }
  return close_list(std::move(parts), "(", ")", e.inner.end - 1,
                    line_ends_after(e.inner.begin + 1));
}

DocPtr Formatter::function_type(const FunctionType& e) {
  const uint32_t end =
      e.params.empty() ? e.inner.begin + 1 : e.params.back()->span.end;
  Row row;
  row.add(list(e.params, "(", ")", e.inner.begin + 1, end));
  return row.add(" -> ").add(expr(*e.result)).done();
}

DocPtr Formatter::comprehension(const Comprehension& e) {
  Parts parts(e.inner.begin + 1);
  before_part(parts, e.element->span.begin);
  DocPtr element = expr(*e.element);
  add_part(parts, std::move(element), false, e.element->span.end);
  for (const Generator& g : e.generators) {
    before_part(parts, g.pattern.span.begin);
    Row row;
    if (&g == &e.generators.front()) row.add("for ");
    row.add(pattern(g.pattern)).add(" in ").add(expr(*g.iterable));
    const bool last = &g == &e.generators.back();
    add_part(parts, row.done(), !last, g.iterable->span.end);
    if (last && e.condition) {
      before_part(parts, e.condition->span.begin);
      Row choice;
      choice.add("if ").add(expr(*e.condition));
      add_part(parts, choice.done(), false, e.condition->span.end);
    }
  }
  return close_list(std::move(parts), "[", "]", e.inner.end - 1,
                    line_ends_after(e.inner.begin + 1));
}

DocPtr Formatter::slice(const Slice& e) {
  Row row;
  if (e.start) row.add(expr(*e.start));
  row.add(":");
  if (e.stop) row.add(expr(*e.stop));
  if (e.step) row.add(":").add(expr(*e.step));
  return row.done();
}

DocPtr Formatter::field(const Field& e) {
  Row row;
  row.add(expr(*e.object));
  // `1.0` is a number, `1 .0` a part of one.
  const bool after_number = e.index && e.object->kind == ExprKind::IntLiteral &&
                            !e.object->parenthesized;
  return row.add(after_number ? " ." : ".").add(name(e.name)).done();
}

// ---- Operators

DocPtr Formatter::unary(const Unary& e) {
  Row row;
  row.add(leaf(e.op_span.begin, std::string(spelling(e.op))));
  if (e.op == UnaryOp::logical_not) row.add(" ");
  return row.add(expr(*e.operand)).done();
}

/// Operands of one precedence, a line ending after an operator where it must.
DocPtr Formatter::chain(const std::vector<Operand>& operands,
                        bool fills_parentheses) {
  Parts parts(operands[0].expr->span.begin);
  for (const Operand& operand : operands) {
    // The first one's comments belong to what contains the chain.
    if (!parts.docs.empty()) before_part(parts, operand.expr->span.begin);
    Row row;
    row.add(expr(*operand.expr));
    if (!operand.op.empty()) row.add(" ").add(std::string(operand.op));
    add_part(parts, row.done(), false, operand.expr->span.end);
  }
  return fill(std::move(parts.docs), std::move(parts.breaks),
              fills_parentheses ? 0 : 2);
}

DocPtr Formatter::binary(const Binary& e, bool fills_parentheses) {
  const auto precedence_of = [](BinaryOp op) {
    return binary_rules[static_cast<size_t>(op)].precedence;
  };
  std::vector<Operand> operands = {{e.right.get(), ""}};
  const Binary* node = &e;
  while (true) {
    operands.push_back({node->left.get(), spelling(node->op)});
    const auto* left = as<Binary>(*node->left);
    const bool same = left && !left->parenthesized &&
                      precedence_of(left->op) == precedence_of(e.op) &&
                      precedence_of(e.op) != Precedence::Power;
    if (!same) break;
    operands.back().expr = left->right.get();
    node = left;
  }
  std::reverse(operands.begin(), operands.end());
  return chain(operands, fills_parentheses);
}

DocPtr Formatter::pipe(const Pipe& e, bool fills_parentheses) {
  std::vector<Operand> operands = {{e.function.get(), ""}};
  const Pipe* node = &e;
  while (true) {
    operands.push_back({node->value.get(), "|>"});
    const auto* left = as<Pipe>(*node->value);
    if (!left || left->parenthesized) break;
    operands.back().expr = left->function.get();
    node = left;
  }
  std::reverse(operands.begin(), operands.end());
  return chain(operands, fills_parentheses);
}

// ---- Blocks, if, fn

/// No line ends in its blocks, so it may stay on one line.
bool Formatter::on_one_line(const Expr& e) const {
  return !line_ends_between(e.inner.begin, e.inner.end);
}

DocPtr Formatter::block(const Block& e) {
  const uint32_t close = e.inner.end - 1;
  if (e.statements.empty() && !next_comment(close)) return text("{ }");
  if (on_one_line(e) && !next_comment(close)) {
    Row row;
    row.add(group_line(" "));
    for (const StmtPtr& s : e.statements) {
      if (s != e.statements.front()) row.add(group_line("; "));
      row.add(statement(*s));
    }
    DocPtr body = nest(row.done());
    return at_line_indent(Row()
                              .add("{")
                              .add(std::move(body))
                              .add(group_line(" "))
                              .add("}")
                              .done());
  }
  // The brace may stand beyond the last column.
  DocPtr opener = text("{");
  opener->width = opener->head = 0;
  Row outside;
  outside.add(std::move(opener));
  const uint32_t first =
      e.statements.empty() ? close : e.statements[0]->span.begin;
  const Comment* comment = next_comment(first);
  if (comment && !comment->own_line) outside.add(take_comment());
  Row inside;
  inside.add(hard_line());
  units(e.statements, close, [&](DocPtr unit) { inside.add(std::move(unit)); });
  outside.add(nest(inside.done())).add(hard_line()).add("}");
  return at_line_indent(outside.done());
}

DocPtr Formatter::if_expression(const If& e) {
  Row row;
  const If* node = &e;
  while (true) {
    row.add("if ").add(expr(*node->condition)).add(" ");
    row.add(block(*as<Block>(*node->then)));
    if (!node->otherwise) break;
    row.add(" else ");
    if (const auto* last = as<Block>(*node->otherwise)) {
      row.add(block(*last));
      break;
    }
    node = as<If>(*node->otherwise);
  }
  return group(row.done());
}

DocPtr Formatter::fn(const FnExpr& e) {
  Row row;
  row.add("fn").add(params(e.function));
  if (e.function.result) row.add(" -> ").add(expr(*e.function.result));
  return row.add(" =>").add(after_sign(*e.function.body)).done();
}

}  // namespace unisono::lang
