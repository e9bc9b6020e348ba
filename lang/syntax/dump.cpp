#include "lang/syntax/dump.h"

#include <fmt/format.h>

#include "lang/syntax/lexer.h"
#include "runtime/stop.h"

namespace unisono::lang {
namespace {

constexpr std::string_view expr_names[] = {
#define EXPR(name) #name,
#include "lang/syntax/ast.def"
};
constexpr std::string_view stmt_names[] = {
#define STMT(name) #name,
#include "lang/syntax/ast.def"
};

/// One line, control characters escaped.
std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '\n') {
      out += "\\n";
    } else if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string to_text(const Pattern& pattern) {
  switch (pattern.kind) {
    case Pattern::Kind::name: return pattern.name.text;
    case Pattern::Kind::wildcard: return "_";
    case Pattern::Kind::tuple: break;
  }
  std::string out = "(";
  for (const Pattern& item : pattern.items) out += to_text(item) + ",";
  return out + ")";
}

std::string to_text(const std::optional<DType>& suffix) {
  return suffix ? fmt::format(" suffix={}", unisono::name(*suffix)) : "";
}

std::string to_text(const Function& function) {
  std::string out;
  for (const TypeParam& param : function.type_params) {
    out += fmt::format(" [{}{}]", param.name.text,
                       param.restriction ? ": ..." : "");
  }
  for (const Param& param : function.params) {
    out += fmt::format(" ({}{}{}{})", param.keyword_only ? "* " : "",
                       to_text(param.pattern), param.type ? ": ..." : "",
                       param.default_value ? " = ..." : "");
  }
  return out + (function.result ? " ->" : "");
}

std::string to_text(const std::vector<ArgumentExpr>& arguments) {
  std::string out;
  for (const ArgumentExpr& argument : arguments)
    out += argument.name ? fmt::format(" {}=", argument.name->text) : " .";
  return out;
}

std::string details_of_string(const StringLiteral& literal) {
  std::string out;
  for (const StringPiece& piece : literal.pieces) {
    out += piece.value ? fmt::format(" {{:{}}}", piece.spec)
                       : " " + quoted(piece.text);
  }
  return out;
}

/// What a node has besides its children.
std::string details(const Expr& e) {
  if (const auto* n = as<IntLiteral>(e))
    return fmt::format(" {}{}", n->value, to_text(n->suffix));
  if (const auto* n = as<FloatLiteral>(e))
    return fmt::format(" {:a}{}", n->value, to_text(n->suffix));
  if (const auto* n = as<StringLiteral>(e)) return details_of_string(*n);
  if (const auto* n = as<BoolLiteral>(e)) return n->value ? " true" : " false";
  if (const auto* n = as<NameExpr>(e)) return " " + n->text;
  if (const auto* n = as<UnknownSize>(e)) return " ?" + n->name.text;
  if (const auto* n = as<Field>(e))
    return fmt::format(" {}{}", n->name.text, n->index ? " (index)" : "");
  if (const auto* n = as<Unary>(e)) return fmt::format(" {}", spelling(n->op));
  if (const auto* n = as<Binary>(e)) return fmt::format(" {}", spelling(n->op));
  if (const auto* n = as<Call>(e)) return to_text(n->arguments);
  if (const auto* n = as<Record>(e)) return to_text(n->fields);
  if (const auto* n = as<With>(e)) return to_text(n->fields);
  if (const auto* n = as<FnExpr>(e)) return to_text(n->function);
  std::string out;
  if (const auto* n = as<RecordType>(e))
    for (const TypedName& field : n->fields) out += " " + field.name.text + ":";
  if (const auto* n = as<Comprehension>(e))
    for (const Generator& g : n->generators) out += " " + to_text(g.pattern);
  if (const auto* n = as<Slice>(e)) {
    out = fmt::format(" {}:{}:{}", n->start ? "a" : "", n->stop ? "b" : "",
                      n->step ? "c" : "");
  }
  return out;
}

std::string details(const Stmt& s) {
  if (const auto* n = as<LetStmt>(s)) {
    return fmt::format(" {} {}{}", n->is_var ? "var" : "let",
                       to_text(n->pattern), n->type ? ": ..." : "");
  }
  if (const auto* n = as<AssignStmt>(s))
    return fmt::format(" {}=", n->op ? spelling(*n->op) : "");
  if (const auto* n = as<DefStmt>(s)) {
    return fmt::format(
        " {}{}{}{}", n->name.text, to_text(n->function),
        n->decorators.empty() ? "" : fmt::format(" @{}", n->decorators.size()),
        n->documentation.empty() ? "" : " " + quoted(n->documentation));
  }
  std::string out;
  if (const auto* n = as<TypeStmt>(s)) {
    out = " " + n->name.text;
    for (const TypeParam& param : n->type_params)
      out += " [" + param.name.text + "]";
  }
  if (const auto* n = as<AxisStmt>(s))
    for (const Name& name : n->names) out += " " + name.text;
  if (const auto* n = as<ImportStmt>(s)) {
    out = " " + (n->is_file ? quoted(n->module.text) : n->module.text);
    if (n->alias) out += " as " + n->alias->text;
  }
  if (const auto* n = as<ForStmt>(s)) out = " " + to_text(n->pattern);
  if (const auto* n = as<JumpStmt>(s)) return fmt::format(" {}", word(n->jump));
  if (const auto* n = as<ToolStmt>(s))
    out = fmt::format(" {} {}", word(n->tool), quoted(n->name));
  return out;
}

/// What jumps.cpp keeps of statements that are never reached, for their names:
/// a choice whose condition stands where all of it does.
bool is_unreached(const Stmt& s) {
  const auto* whole = as<ExprStmt>(s);
  const auto* choice = whole ? as<If>(*whole->expr) : nullptr;
  return choice && choice->condition->span.begin == choice->span.begin &&
         choice->condition->span.end == choice->span.end;
}

class Dumper {
 public:
  void stmt(const Stmt& s, int depth) {
    if (is_unreached(s)) return;
    line(stmt_names[static_cast<size_t>(s.kind)], s.span, details(s), depth);
    for_each_child(s, [&](const Expr& e) { expr(e, depth + 1); });
  }
  void expr(const Expr& e, int depth) {
    line(expr_names[static_cast<size_t>(e.kind)], e.span, details(e), depth);
    for_each_child(
        e, [&](const Expr& child) { expr(child, depth + 1); },
        [&](const Stmt& child) { stmt(child, depth + 1); });
  }
  std::string take() { return std::move(out_); }

 private:
  void line(std::string_view name, Span where, const std::string& details,
            int depth) {
    poll_stop();
    const SourceFile::Place place = where.file->place(where.begin);
    out_ += fmt::format("{:{}}{}{} @{}:{}\n", "", depth * 2, name, details,
                        place.line, place.column);
  }
  std::string out_;
};

std::string joined(const std::vector<ExprPtr>& items) {
  std::string out;
  for (const ExprPtr& item : items)
    out += (out.empty() ? "" : ", ") + dump_expression(*item);
  return out;
}

std::string joined(const std::vector<ArgumentExpr>& items) {
  std::string out;
  for (const ArgumentExpr& item : items) {
    if (!out.empty()) out += ", ";
    if (item.name) out += item.name->text + "=";
    out += dump_expression(*item.value);
  }
  return out;
}

}  // namespace

std::string dump_tokens(const SourceFile& file) {
  Diagnostics ignored;
  std::string out;
  for (const Token& token : lex(file, ignored).tokens) {
    poll_stop();
    const SourceFile::Place place = file.place(token.begin);
    const Span span = {&file, token.begin, token.end};
    out += fmt::format("{}:{} {} {}\n", place.line, place.column,
                       name(token.kind), quoted(span.text()));
  }
  return out;
}

std::string dump_ast(const Program& program) {
  Dumper dumper;
  for (const StmtPtr& s : program.statements) dumper.stmt(*s, 0);
  return dumper.take();
}

std::string dump_expression(const Expr& e) {
  if (const auto* n = as<Unary>(e)) {
    return fmt::format("({}{}{})", spelling(n->op),
                       n->op == UnaryOp::logical_not ? " " : "",
                       dump_expression(*n->operand));
  }
  if (const auto* n = as<Binary>(e)) {
    return fmt::format("({} {} {})", dump_expression(*n->left), spelling(n->op),
                       dump_expression(*n->right));
  }
  if (const auto* n = as<Cast>(e)) {
    return fmt::format("({} as {})", dump_expression(*n->value),
                       dump_expression(*n->type));
  }
  if (const auto* n = as<Pipe>(e)) {
    return fmt::format("({} |> {})", dump_expression(*n->value),
                       dump_expression(*n->function));
  }
  if (const auto* n = as<With>(e)) {
    return fmt::format("({} with ({}))", dump_expression(*n->base),
                       joined(n->fields));
  }
  if (const auto* n = as<Call>(e)) {
    return fmt::format("{}({})", dump_expression(*n->callee),
                       joined(n->arguments));
  }
  if (const auto* n = as<Index>(e))
    return fmt::format("{}[{}]", dump_expression(*n->object), joined(n->items));
  if (const auto* n = as<Field>(e))
    return dump_expression(*n->object) + "." + n->name.text;
  if (const auto* n = as<Tuple>(e)) {
    return fmt::format("({}{})", joined(n->items),
                       n->items.size() == 1 ? "," : "");
  }
  if (const auto* n = as<Array>(e))
    return fmt::format("[{}]", joined(n->items));
  if (const auto* n = as<FunctionType>(e)) {
    return fmt::format("(({}) -> {})", joined(n->params),
                       dump_expression(*n->result));
  }
  if (const auto* n = as<FnExpr>(e))
    return fmt::format("(fn => {})", dump_expression(*n->function.body));
  if (const auto* n = as<NameExpr>(e)) return n->text;
  return std::string(e.span.text());
}

}  // namespace unisono::lang
