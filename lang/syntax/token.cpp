#include "lang/syntax/token.h"

namespace unisono::lang {
namespace {

enum class Class : uint8_t { special, punctuation, keyword };
enum class LineEnd : uint8_t { ends, continues };

struct Row {
  std::string_view name;
  std::string_view text;
  std::string_view description;
  Class cls;
  LineEnd line_end;
};

constexpr Row rows[] = {
#define SPECIAL(name, description, line_end) \
  {#name, "", description, Class::special, LineEnd::line_end},
#define PUNCTUATION(name, text, line_end) \
  {#name, text, "`" text "`", Class::punctuation, LineEnd::line_end},
#define KEYWORD(name, text, line_end) \
  {#name, text, "`" text "`", Class::keyword, LineEnd::line_end},
#include "lang/syntax/token.def"
};

constexpr const Row& row(TokenKind kind) {
  return rows[static_cast<size_t>(kind)];
}

}  // namespace

std::string_view name(TokenKind kind) { return row(kind).name; }
std::string_view spelling(TokenKind kind) { return row(kind).text; }
std::string_view description(TokenKind kind) { return row(kind).description; }
bool is_keyword(TokenKind kind) { return row(kind).cls == Class::keyword; }
bool continues_line(TokenKind kind) {
  return row(kind).line_end == LineEnd::continues;
}

}  // namespace unisono::lang
