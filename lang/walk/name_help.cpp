#include "lang/walk/name_help.h"
#include "lang/syntax/jumps.h"

#include <algorithm>
#include <cctype>
#include <vector>

#include "lang/source/foreign_names.h"
#include "lang/source/stdlib.h"
#include "lang/syntax/ast.h"

namespace unisono::lang {
namespace {

/// Insertions, deletions, replacements and swaps of neighbours that make one of
/// the other; above `limit`, anything above it.
size_t edit_distance(std::string_view a, std::string_view b, size_t limit) {
  if (a.size() > b.size()) std::swap(a, b);
  if (b.size() - a.size() > limit) return limit + 1;
  // Rows of the table of prefixes: two before, one before, this one.
  std::vector<size_t> older(a.size() + 1), old(a.size() + 1), row(a.size() + 1);
  for (size_t i = 0; i <= a.size(); ++i) row[i] = i;
  for (size_t j = 1; j <= b.size(); ++j) {
    std::swap(older, old);
    std::swap(old, row);
    row[0] = j;
    for (size_t i = 1; i <= a.size(); ++i) {
      const size_t replaced = old[i - 1] + (a[i - 1] != b[j - 1]);
      row[i] = std::min({old[i] + 1, row[i - 1] + 1, replaced});
      const bool swapped =
          i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[i] = std::min(row[i], older[i - 2] + 1);
    }
  }
  return row.back();
}

/// In small letters, without underscores: `isNaN` is `is_nan`.
std::string plain(std::string_view name) {
  std::string out;
  for (const char c : name)
    if (c != '_')
      out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

bool same_letters(std::string_view a, std::string_view b) {
  return a.size() == b.size() &&
         std::is_permutation(a.begin(), a.end(), b.begin());
}

/// Without digits: `f31` is almost `f32`.
std::string without_digits(std::string_view name) {
  std::string out;
  for (const char c : name)
    if (c < '0' || c > '9') out += c;
  return out;
}

/// Whether the text of a module defines a name at its top level.
bool defines(std::string_view text, std::string_view name) {
  for (const std::string_view word : {"def ", "let ", "type "}) {
    const std::string start = std::string(word) + std::string(name);
    for (size_t at = text.find(start); at != text.npos;
         at = text.find(start, at + 1)) {
      const bool begins = at == 0 || text[at - 1] == '\n';
      const char next =
          at + start.size() < text.size() ? text[at + start.size()] : '\0';
      if (begins && (next == '(' || next == '[' || next == ' ')) return true;
    }
  }
  return false;
}

bool defines(const Pattern& pattern, std::string_view name) {
  if (pattern.kind == Pattern::Kind::name) return pattern.name.text == name;
  return std::ranges::any_of(
      pattern.items, [&](const Pattern& item) { return defines(item, name); });
}

bool defines(const Stmt& stmt, std::string_view name) {
  if (const auto* let = as<LetStmt>(stmt)) return defines(let->pattern, name);
  if (const auto* def = as<DefStmt>(stmt)) return def->name.text == name;
  if (const auto* type = as<TypeStmt>(stmt)) return type->name.text == name;
  if (const auto* axis = as<AxisStmt>(stmt))
    return std::ranges::any_of(axis->names,
                               [&](const Name& n) { return n.text == name; });
  if (const auto* import = as<ImportStmt>(stmt))
    return (import->alias ? import->alias->text : import->module.text) == name;
  return false;
}

bool contains(Span outer, Span inner) {
  return outer.begin <= inner.begin && inner.end <= outer.end;
}

Span below(const std::vector<StmtPtr>& list, std::string_view name, Span use);

Span below(const Expr& e, std::string_view name, Span use) {
  if (!contains(e.span, use)) return {};
  if (const auto* block = as<Block>(e))
    return below(block->statements, name, use);
  Span found;
  for_each_child(
      e,
      [&](const Expr& child) {
        if (!found) found = below(child, name, use);
      },
      [](const Stmt&) {});
  return found;
}

Span below(const std::vector<StmtPtr>& list, std::string_view name, Span use) {
  Span found;
  for (const StmtPtr& stmt : list) {
    if (found) return found;
    if (stmt->span.begin > use.begin && defines(*stmt, name)) return stmt->span;
    if (contains(stmt->span, use))
      for_each_child(*stmt, [&](const Expr& child) {
        if (!found) found = below(child, name, use);
      });
  }
  return found;
}

}  // namespace

SimilarName::SimilarName(std::string_view name, bool of_few)
    : name_(name),
      limit_(name.size() <= (of_few ? 2 : 3) ? 0
             : name.size() <= 6              ? 1
                                             : 2),
      distance_(limit_ + 1) {}

void SimilarName::consider(const std::string& other) {
  const bool is_private = other.starts_with('_') && !name_.starts_with('_');
  if (other == name_ || is_hidden(other) || is_private) return;
  size_t d = edit_distance(name_, other, std::max<size_t>(limit_, 1));
  const bool prefix =
      name_.size() >= 2 && (other.starts_with(name_) ||
                            (other.size() >= 2 && name_.starts_with(other)));
  if (plain(name_) == plain(other) || (d == 1 && same_letters(name_, other)) ||
      (d == 1 && without_digits(name_) == without_digits(other) &&
       without_digits(other) != other) ||
      (name_.size() == 3 && d == 1 && prefix))
    d = 0;
  // A short name with another beginning is another name.
  const bool begins_alike =
      name_.size() > 6 || other[0] == name_[0] || same_letters(name_, other);
  if (d > 0 && !begins_alike) return;
  if (d > limit_ || d > distance_) return;
  if (d == distance_ && other >= best_) return;
  best_ = other;
  distance_ = d;
}

void SimilarName::consider(const Environment& env) {
  for (const auto& [other, binding] : env.names) consider(other);
}

std::string later_text(std::string_view name) {
  if (!is_later_name(name)) return {};
  return "`" + std::string(name) + "` is";
}

std::string_view module_with(std::string_view name) {
  for (const StdlibModule& module : stdlib_modules())
    if (!is_prelude_module(module.name) && defines(module.text, name))
      return module.name;
  return {};
}

bool module_has(std::string_view module, std::string_view name) {
  return std::ranges::any_of(stdlib_modules(), [&](const StdlibModule& m) {
    return m.name == module && defines(m.text, name);
  });
}

Span defined_below(const Program& program, std::string_view name, Span use) {
  return below(program.statements, name, use);
}

}  // namespace unisono::lang
