#include "lang/format/format.h"

#include <fmt/format.h>

#include "lang/format/format_impl.h"

namespace unisono::lang {

Formatter::Formatter(const Program& program)
    : program_(program), text_(program.file->text()) {}

// ---- Comments, and the line ends of the user

const Comment* Formatter::next_comment(uint32_t before) const {
  if (next_ >= program_.comments.size()) return nullptr;
  const Comment& comment = program_.comments[next_];
  return comment.span.begin < before ? &comment : nullptr;
}

DocPtr Formatter::take_comment() {
  const Comment& taken = program_.comments[next_++];
  std::string content(taken.span.text());
  return taken.own_line ? text(std::move(content))
                        : comment(std::move(content));
}

/// The last resort for a comment at an unusual place: it ends its line, which
/// is allowed there, because it did so in the source.
DocPtr Formatter::comments_before(uint32_t position, DocPtr then) {
  if (!next_comment(position)) return then;
  std::vector<DocPtr> out;
  while (const Comment* next = next_comment(position)) {
    if (next->own_line) out.push_back(fresh_line());
    out.push_back(take_comment());
    out.push_back(hard_line());
  }
  out.push_back(std::move(then));
  return concat(std::move(out));
}

bool Formatter::line_ends_between(uint32_t begin, uint32_t end) const {
  if (begin >= end) return false;
  return text_.substr(begin, end - begin).find('\n') != text_.npos;
}

bool Formatter::line_ends_after(uint32_t position) const {
  const size_t next = text_.find_first_not_of(" \t\r", position);
  return next != text_.npos && (text_[next] == '\n' || text_[next] == '#');
}

int Formatter::line_of(uint32_t position) const {
  return program_.file->place(position).line;
}

/// The end of what stands before `position`, white space apart.
uint32_t Formatter::end_before(uint32_t position) const {
  const size_t last = text_.find_last_not_of(" \t\r\n", position - 1);
  return static_cast<uint32_t>(last + 1);
}

DocPtr Formatter::after_sign(const Expr& value) {
  const uint32_t begin = value.span.begin;
  const Comment* comment = next_comment(begin);
  if (!comment && !line_ends_between(end_before(begin), begin))
    return Row().add(" ").add(expr(value)).done();
  Row row;
  if (comment && !comment->own_line) row.add(take_comment());
  row.add(hard_line());
  while (next_comment(begin)) row.add(take_comment()).add(hard_line());
  return nest(row.add(expr(value)).done());
}

// ---- Lists in brackets

/// Comments and the line end before the part that starts at `begin`.
void Formatter::before_part(Parts& parts, uint32_t begin) {
  bool ends = line_ends_between(parts.end, begin);
  bool line_is_taken = false;  // by a comment; another one needs a line
  while (const Comment* next = next_comment(begin)) {
    ends = true;
    if (parts.docs.empty()) parts.spread = true;
    if (next->own_line || line_is_taken) {
      if (!parts.docs.empty()) parts.breaks.push_back(true);
      parts.docs.push_back(take_comment());
    } else if (parts.docs.empty()) {
      parts.head_comment = take_comment();
    } else {
      DocPtr last = std::move(parts.docs.back());
      parts.docs.back() = Row().add(std::move(last)).add(take_comment()).done();
    }
    line_is_taken = true;
  }
  if (!parts.docs.empty()) parts.breaks.push_back(ends);
}

void Formatter::add_part(Parts& parts, DocPtr doc, bool comma, uint32_t end) {
  if (comma) doc = Row().add(std::move(doc)).add(",").done();
  parts.docs.push_back(std::move(doc));
  parts.end = end;
}

DocPtr Formatter::close_list(Parts parts, std::string open, std::string close,
                             uint32_t close_at, bool spread) {
  if (next_comment(close_at)) {
    spread = true;
    before_part(parts, close_at);
    if (!parts.breaks.empty()) parts.breaks.pop_back();
  }
  if (parts.docs.empty() && !parts.head_comment) return text(open + close);
  DocPtr content = fill(std::move(parts.docs), std::move(parts.breaks), 0);
  if (!parts.head_comment) {
    return bracket(std::move(open), std::move(content), std::move(close),
                   spread || parts.spread);
  }
  Row row;
  row.add(std::move(open)).add(std::move(parts.head_comment));
  if (!content->children.empty())
    row.add(nest(Row().add(hard_line()).add(std::move(content)).done()));
  return at_line_indent(row.add(hard_line()).add(std::move(close)).done());
}

// ---- Names and patterns

DocPtr Formatter::name(const Name& n) { return leaf(n.span.begin, n.text); }

DocPtr Formatter::pattern(const Pattern& p) {
  switch (p.kind) {
    case Pattern::Kind::name: return name(p.name);
    case Pattern::Kind::wildcard: return leaf(p.span.begin, "_");
    case Pattern::Kind::tuple: break;
  }
  const uint32_t begin = p.bare ? p.span.begin : p.span.begin + 1;
  const uint32_t close = p.bare ? p.span.end : p.span.end - 1;
  Parts parts(begin);
  for (const Pattern& item : p.items) {
    before_part(parts, item.span.begin);
    DocPtr doc = pattern(item);
    const bool comma = &item != &p.items.back() || p.items.size() == 1;
    add_part(parts, std::move(doc), comma, item.span.end);
  }
  return close_list(std::move(parts), "(", ")", close, line_ends_after(begin));
}

DocPtr Formatter::type_params(const std::vector<TypeParam>& params,
                              uint32_t begin) {
  if (params.empty()) return text("");
  Parts parts(begin);
  for (const TypeParam& param : params) {
    before_part(parts, param.name.span.begin);
    Row row;
    row.add(name(param.name));
    uint32_t end = param.name.span.end;
    if (param.restriction) {
      end = param.restriction->span.end;
      row.add(": ").add(expr(*param.restriction));
    }
    add_part(parts, row.done(), &param != &params.back(), end);
  }
  const auto close = static_cast<uint32_t>(text_.find(']', parts.end));
  const bool spread = line_ends_between(begin, params[0].name.span.begin);
  return close_list(std::move(parts), "[", "]", close, spread);
}

DocPtr Formatter::param(const Param& p) {
  Row row;
  row.add(pattern(p.pattern));
  if (p.type) row.add(": ").add(expr(*p.type));
  if (p.default_value)
    row.add(p.type ? " = " : "=").add(expr(*p.default_value));
  return row.done();
}

DocPtr Formatter::params(const Function& function) {
  const Span span = function.params_span;
  Parts parts(span.begin + 1);
  bool starred = false;
  for (const Param& p : function.params) {
    before_part(parts, p.span.begin);
    Row row;
    if (p.keyword_only && !starred) row.add("*, ");
    starred = starred || p.keyword_only;
    row.add(param(p));
    add_part(parts, row.done(), &p != &function.params.back(), p.span.end);
  }
  return close_list(std::move(parts), "(", ")", span.end - 1,
                    line_ends_after(span.begin + 1));
}

// ---- Statements

DocPtr Formatter::let_statement(const LetStmt& s) {
  Row row;
  row.add(s.is_var ? "var " : "let ").add(pattern(s.pattern));
  if (s.type) row.add(": ").add(expr(*s.type));
  return row.add(" =").add(after_sign(*s.value)).done();
}

DocPtr Formatter::def_statement(const DefStmt& s) {
  Row row;
  for (const ExprPtr& decorator : s.decorators) {
    row.add(comments_before(decorator->span.begin, text("@")));
    row.add(expr(*decorator));
    const Comment* next = next_comment(s.name.span.begin);
    if (next && !next->own_line &&
        line_of(next->span.begin) == line_of(decorator->span.end)) {
      row.add(take_comment());
    }
    row.add(hard_line());
  }
  row.add(comments_before(s.name.span.begin, text("def ")));
  return row.add(definition(s)).done();
}

/// What follows `def`.
DocPtr Formatter::definition(const DefStmt& s) {
  Row row;
  row.add(name(s.name));
  row.add(type_params(s.function.type_params, s.name.span.end));
  DocPtr parameters = params(s.function);
  DocPtr result = text("");
  if (s.function.result)
    result = Row().add(" -> ").add(expr(*s.function.result)).done();
  // Rather the parameters are spread than the result.
  parameters->reserve = result->width;
  row.add(std::move(parameters)).add(std::move(result));
  const Expr& body = *s.function.body;
  const uint32_t sign_end = end_before(body.span.begin);
  if (body.kind == ExprKind::Block && !body.parenthesized &&
      text_[sign_end - 1] != '=') {
    return row.add(" ").add(expr(body)).done();
  }
  row.add(" =");
  if (line_ends_between(sign_end, body.span.begin) ||
      next_comment(body.span.begin)) {
    return row.add(after_sign(body)).done();
  }
  std::vector<DocPtr> parts;
  parts.push_back(row.done());
  parts.push_back(expr(body));
  return fill(std::move(parts), {false}, 2);
}

DocPtr Formatter::axis_statement(const AxisStmt& s) {
  Row row;
  row.add("axis ");
  for (const Name& axis : s.names) {
    if (&axis != &s.names.front()) row.add(", ");
    row.add(name(axis));
  }
  if (s.value) row.add(" =").add(after_sign(*s.value));
  return row.done();
}

DocPtr Formatter::statement(const Stmt& s) {
  if (const auto* n = as<LetStmt>(s)) return let_statement(*n);
  if (const auto* n = as<DefStmt>(s)) return def_statement(*n);
  if (const auto* n = as<AxisStmt>(s)) return axis_statement(*n);
  if (const auto* n = as<ExprStmt>(s)) return expr(*n->expr);
  Row row;
  if (const auto* n = as<AssignStmt>(s)) {
    row.add(expr(*n->target));
    row.add(fmt::format(" {}=", n->op ? spelling(*n->op) : ""));
    row.add(after_sign(*n->value));
  } else if (const auto* n = as<TypeStmt>(s)) {
    row.add("type ").add(name(n->name));
    row.add(type_params(n->type_params, n->name.span.end));
    row.add(" =").add(after_sign(*n->type));
  } else if (const auto* n = as<ImportStmt>(s)) {
    row.add(fmt::format("import {}", n->module.span.text()));
    if (n->alias) row.add(" as ").add(name(*n->alias));
  } else if (const auto* n = as<ForStmt>(s)) {
    row.add("for ").add(pattern(n->pattern)).add(" in ");
    row.add(expr(*n->iterable)).add(" ").add(expr(*n->body));
  } else if (const auto* n = as<WhileStmt>(s)) {
    row.add("while ").add(expr(*n->condition));
    if (n->most) row.add(", max=").add(expr(*n->most));
    row.add(" ").add(expr(*n->body));
  } else if (const auto* n = as<JumpStmt>(s)) {
    row.add(std::string(word(n->jump)));
    if (n->value) row.add(" ").add(expr(*n->value));
  } else if (const auto* n = as<ToolStmt>(s)) {
    row.add(fmt::format("{} {} ", word(n->tool), n->name_span.text()));
    row.add(expr(*n->body));
  }
  return row.done();
}

namespace {

/// The line end, and an empty line if the user had any, between two units.
DocPtr separator(int from_line, int to_line) {
  return to_line - from_line > 1 ? blank_line() : hard_line();
}

}  // namespace

void Formatter::own_line_comments(uint32_t before, int* last_line,
                                  const DocSink& out) {
  while (const Comment* next = next_comment(before)) {
    const int line = line_of(next->span.begin);
    if (*last_line > 0) out(separator(*last_line, line));
    *last_line = line;
    out(text(std::string(next->span.text())));
    ++next_;
  }
}

/// Statements and the comments on lines of their own, up to `end`.
void Formatter::units(const std::vector<StmtPtr>& statements, uint32_t end,
                      const DocSink& out) {
  int last_line = 0;
  for (size_t i = 0; i < statements.size(); ++i) {
    const Stmt& s = *statements[i];
    own_line_comments(s.span.begin, &last_line, out);
    if (last_line > 0) out(separator(last_line, line_of(s.span.begin)));
    out(statement(s));
    last_line = line_of(s.span.end);
    const bool last = i + 1 == statements.size();
    const Comment* next =
        next_comment(last ? end : statements[i + 1]->span.begin);
    if (next && !next->own_line && line_of(next->span.begin) == last_line)
      out(take_comment());
  }
  own_line_comments(end, &last_line, out);
}

void Formatter::program(const DocSink& out) {
  units(program_.statements, static_cast<uint32_t>(text_.size() + 1), out);
}

std::string format(const Program& program) {
  return print([&](const DocSink& out) { Formatter(program).program(out); },
               100);
}

}  // namespace unisono::lang
