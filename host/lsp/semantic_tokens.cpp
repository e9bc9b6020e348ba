#include <algorithm>
#include <array>
#include <iterator>

#include "host/lsp/answers.h"
#include "lang/source/diagnostics.h"

namespace unisono::host::lsp {
namespace {

using lang::TokenKind;

/// What is counted; the legend has their names in this order.
enum class Type : uint8_t {
  name_space,
  type,
  type_parameter,
  parameter,
  variable,
  property,
  function,
  method,
  keyword,
  comment,
  string,
  number,
  operator_sign
};
constexpr std::array type_names = {
    "namespace", "type",     "typeParameter", "parameter", "variable",
    "property",  "function", "method",        "keyword",   "comment",
    "string",    "number",   "operator"};
static_assert(type_names.size() ==
              static_cast<size_t>(Type::operator_sign) + 1);

/// Bits, in the order of the legend.
constexpr unsigned declaration = 1, read_only = 2, of_library = 4,
                   documents = 8;
constexpr std::array modifier_names = {"declaration", "readonly",
                                       "defaultLibrary", "documentation"};

struct Part {
  uint32_t begin, end;
  Type type;
  unsigned modifiers;
};

Type type_of(const Definition& d) {
  switch (d.kind) {
    case Definition::Kind::variable:
    case Definition::Kind::axis: return Type::variable;
    case Definition::Kind::parameter: return Type::parameter;
    case Definition::Kind::size:
    case Definition::Kind::type_parameter: return Type::type_parameter;
    case Definition::Kind::function: return Type::function;
    case Definition::Kind::type: return Type::type;
    case Definition::Kind::module: return Type::name_space;
  }
  return Type::variable;
}

Type type_of(const LibraryName& name) {
  switch (name.kind) {
    case LibraryName::Kind::function: return Type::function;
    case LibraryName::Kind::constant: return Type::variable;
    case LibraryName::Kind::type: return Type::type;
  }
  return Type::variable;
}

class Painter {
 public:
  explicit Painter(View& view) : view_(view) {}

  std::vector<Part> all() {
    tokens(view_.syntax().tokens());
    for (const lang::Comment& comment : view_.syntax().program().comments) {
      const bool about = comment.span.text().starts_with("##");
      add(comment.span.begin, comment.span.end, Type::comment,
          about ? documents : 0);
    }
    for (const Occurrence& o : view_.syntax().names().occurrences()) name(o);
    for (const uint32_t at : view_.syntax().names().declaring_words())
      add(at, at + 4, Type::keyword, 0);  // all of them have four letters
    std::ranges::sort(parts_, {}, &Part::begin);
    return std::move(parts_);
  }

 private:
  void add(uint32_t begin, uint32_t end, Type type, unsigned modifiers) {
    if (begin < end) parts_.push_back({begin, end, type, modifiers});
  }

  void tokens(const std::vector<lang::Token>& list) {
    for (const lang::Token& t : list)
      if (t.kind == TokenKind::String)
        string(t);
      else if (t.kind == TokenKind::Integer || t.kind == TokenKind::Float)
        add(t.begin, t.end, Type::number, 0);
      else if (lang::is_keyword(t.kind) && !is_name(t))
        add(t.begin, t.end, Type::keyword, 0);
      else if (is_operator(t.kind))
        add(t.begin, t.end, Type::operator_sign, 0);
  }

  /// A keyword before `=` or behind `.` is a name.
  bool is_name(const lang::Token& t) const {
    const Occurrence* o = view_.syntax().names().at(t.begin);
    return o && o->where.begin == t.begin;
  }

  static bool is_operator(TokenKind kind) {
    const std::string_view text = lang::spelling(kind);
    return kind == TokenKind::CompoundAssign ||
           (!text.empty() && !lang::is_keyword(kind) &&
            text.find_first_of("()[]{},;.:") == text.npos);
  }

  /// The text of a string, and in between the tokens of what it inserts.
  void string(const lang::Token& t) {
    const std::string_view text = view_.syntax().text().str();
    uint32_t from = t.begin;
    for (uint32_t i = t.begin + 1; i < t.end; ++i) {
      if (text[i] == '\\')
        ++i;
      else if (text[i] == '{') {
        const auto end = lang::find_interpolation_end(text, i + 1);
        if (!end || end->close >= t.end) break;
        add(from, i + 1, Type::string, 0);
        lang::Diagnostics diagnostics;
        tokens(lang::lex_part(*view_.syntax().program().file, i + 1, end->colon,
                              diagnostics)
                   .tokens);
        from = end->colon;
        i = end->close;
      }
    }
    add(from, t.end, Type::string, 0);
  }

  void name(const Occurrence& o) {
    // `import "layers.uni"` is text.
    if (o.where.text().starts_with('"')) return;
    const unsigned declares =
        o.use == Occurrence::Use::definition ? declaration : 0;
    const auto paint = [&](Type type, unsigned modifiers) {
      add(o.where.begin, o.where.end, type, modifiers | declares);
    };
    if (o.kind == Occurrence::Kind::argument) return paint(Type::parameter, 0);
    const Meaning meaning = view_.meaning(o);
    if (o.kind == Occurrence::Kind::field)
      return paint(
          meaning.definition || meaning.library ? Type::method : Type::property,
          meaning.library ? of_library : 0);
    if (meaning.library) return paint(type_of(*meaning.library), of_library);
    if (!meaning.definition) return paint(Type::variable, 0);
    const Definition& d = *meaning.definition;
    paint(type_of(d), d.let && !d.is_var ? read_only : 0);
  }

  View& view_;
  std::vector<Part> parts_;
};

}  // namespace

Json semantic_legend() {
  return {{"tokenTypes", type_names}, {"tokenModifiers", modifier_names}};
}

Json semantic_tokens(View& view) {
  Json data = Json::array();
  Position last;
  uint32_t end = 0;
  const Text& text = view.syntax().text();
  const Encoding encoding = view.client().encoding;
  for (const Part& part : Painter(view).all()) {
    if (part.begin < end) continue;  // inside of one that is there already
    end = part.end;
    const Position at = text.position(part.begin, encoding);
    const uint32_t from = at.line == last.line ? last.character : 0;
    data.push_back(at.line - last.line);
    data.push_back(at.character - from);
    data.push_back(units(
        std::string_view(text.str()).substr(part.begin, part.end - part.begin),
        encoding));
    data.push_back(static_cast<int>(part.type));
    data.push_back(part.modifiers);
    last = at;
  }
  return {{"data", std::move(data)}};
}

}  // namespace unisono::host::lsp
