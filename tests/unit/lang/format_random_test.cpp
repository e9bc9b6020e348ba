// Random programs in random layouts: what the formatter makes of them has the
// same tree and the same comments, and stays as it is.
#include <doctest/doctest.h>

#include <initializer_list>
#include <random>
#include <string>

#include "lang/syntax/lexer.h"
#include "tests/unit/lang/format_check.h"
#include "tests/unit/lang/parse_helpers.h"

using namespace unisono::lang;
using namespace unisono::lang::testing;

namespace {

class RandomProgram {
 public:
  explicit RandomProgram(uint32_t seed) : random_(seed) {}

  std::string text() {
    statements(1 + below(3), 0);
    return layout();
  }

 private:
  int below(int n) {
    return static_cast<int>(random_() % static_cast<uint32_t>(n));
  }
  void put(std::string token) { tokens_.push_back(std::move(token)); }
  void put_all(std::initializer_list<const char*> tokens) {
    for (const char* token : tokens) put(token);
  }
  std::string word() {
    static const char* const words[] = {
        "a",  "bb", "x", "params", "axis", "a_rather_long_name_for_a_value",
        "f32"};
    return words[below(7)];
  }
  void statement_end() { put("\n"); }

  void statements(int count, int depth) {
    for (int i = 0; i < count; ++i) {
      statement(depth);
      statement_end();
    }
  }

  void block(int depth) {
    put("{");
    statements(below(3), depth + 1);
    put("}");
  }

  void pattern(int depth) {
    if (depth > 1 || below(3) > 0) return put(fresh());
    put("(");
    pattern(depth + 1);
    put(",");
    if (below(2)) pattern(depth + 1);
    put(")");
  }
  std::string fresh() { return "v" + std::to_string(next_name_++); }

  void params(int depth) {
    put("(");
    const int count = below(4);
    for (int i = 0; i < count; ++i) {
      if (i == 1 && below(3) == 0) put_all({"*", ","});
      put(fresh());
      if (below(2)) put(":"), expr(depth + 2);
      put("="), expr(depth + 2);
      if (i + 1 < count || below(3) == 0) put(",");
    }
    put(")");
  }

  void statement(int depth) {
    switch (depth > 2 ? 4 : below(11)) {
      case 0:
        put(below(2) ? "let" : "var"), pattern(0);
        if (below(3) == 0) put(":"), expr(depth + 1);
        put("="), expr(depth);
        return;
      case 1:
        if (below(3) == 0) put("@"), expr(depth + 2), statement_end();
        put("def"), put(fresh());
        if (below(3) == 0) put_all({"[", "T", ":", "float", ",", "n", "]"});
        params(depth);
        if (below(2)) put("->"), expr(depth + 1);
        if (below(2)) return block(depth);
        put("="), expr(depth);
        return;
      case 2:
        put("for"), pattern(0), put("in"), expr(depth + 1), block(depth);
        return;
      case 3:
        put("while"), expr(depth + 1);
        if (below(3) == 0) put_all({",", "max", "="}), expr(depth + 1);
        block(depth);
        return;
      case 5: put("x"), put(below(2) ? "+=" : "="), expr(depth); return;
      case 6:
        put_all({"x", "[", "1", ",", "...", "]", ".", "w", "**="}), expr(depth);
        return;
      case 7:
        put_all({"type", "P", "[", "d", "]", "="}), expr(depth + 1);
        return;
      case 8: put_all({"axis", "i", ",", "j", "="}), expr(depth + 1); return;
      default: expr(depth);
    }
  }

  void list(const char* open, const char* close, int depth, int least) {
    put(open);
    const int count = least + below(4);
    for (int i = 0; i < count; ++i) {
      expr(depth + 1);
      if (i + 1 < count || (count == 1 && *open == '(') || below(4) == 0)
        put(",");
    }
    put(close);
  }

  void arguments(const char* kind, int depth) {
    put("(");
    const int count = 1 + below(3);
    bool named = *kind == 'r';
    for (int i = 0; i < count; ++i) {
      named = named || (*kind == 'c' && below(2));
      if (named || *kind == 't') put(fresh()), put(*kind == 't' ? ":" : "=");
      expr(depth + 1);
      if (i + 1 < count) put(",");
    }
    put(")");
  }

  void index(int depth) {
    put("[");
    const int count = 1 + below(3);
    for (int i = 0; i < count; ++i) {
      switch (below(5)) {
        case 0: put("..."); break;
        case 1:
          if (below(2)) atom();
          put(":");
          if (below(2)) atom();
          if (below(2)) put(":"), atom();
          break;
        default: expr(depth + 1);
      }
      if (i + 1 < count) put(",");
    }
    put("]");
  }

  void atom() {
    static const char* const atoms[] = {
        "1",    "2u8",  "1.5", "1.",
        "none", "true", "_",   "\"a {x + 1:.2f} # b\"",
        "0x1f", "?k"};
    put(below(2) ? word() : atoms[below(10)]);
  }

  void operand(int depth) {
    if (depth > 3 || tokens_.size() > 150 || below(3) == 0) return atom();
    switch (below(16)) {
      case 0: return put("("), expr(depth + 1), put(")");
      case 1: return list("(", ")", depth, 0);
      case 2: return list("[", "]", depth, 0);
      case 3: return arguments(below(2) ? "record" : "type", depth);
      case 4: return atom(), arguments("call", depth);
      case 5: return put(word()), index(depth);
      case 6: return put(word()), put("."), put(below(2) ? "0" : "size");
      case 7: return put(below(2) ? "-" : "~"), operand(depth + 1);
      case 8:
        put("if"), expr(depth + 2), block(depth);
        if (below(2)) put("else"), block(depth);
        return;
      case 9:
        put("("), put("fn"), params(depth);
        return put("=>"), expr(depth + 1), put(")");
      case 10:
        put("["), expr(depth + 1), put("for"), pattern(0), put("in");
        return expr(depth + 1), put("]");
      default: return atom();
    }
  }

  void expr(int depth) {
    static const char* const operators[] = {"+",   "-",  "*",  "/", "**", "@",
                                            "and", "or", "|>", "&", "<<", "as"};
    if (below(12) == 0) put("not");
    operand(depth);
    for (int i = below(depth > 2 ? 2 : 4); i > 0; --i)
      put(operators[below(12)]), operand(depth + 1);
    if (below(12) == 0) put("=="), operand(depth + 1);
    if (below(16) == 0) put("with"), arguments("record", depth);
  }

  /// Tokens with white space, line ends and comments wherever they may stand.
  std::string layout() {
    std::string out;
    std::string inside;  // the brackets that are open
    bool line_end_allowed = true;
    for (const std::string& token : tokens_) {
      if (token == "\n") {
        const bool comment = below(6) == 0;
        out += comment ? comment_text() : below(5) == 0 ? ";" : "\n";
        if (below(8) == 0) out += "\n\n";
        if (below(12) == 0) out += comment_text();
        line_end_allowed = true;
        continue;
      }
      const char first = token[0];
      if (first == ')' || first == ']' || first == '}') inside.pop_back();
      const bool closes_block = first == '}';
      if (line_end_allowed || closes_block || inside.ends_with('(') ||
          inside.ends_with('[')) {
        if (below(line_density_) == 0) out += "\n";
        if (below(comment_density_) == 0) out += comment_text();
      }
      if (!out.empty()) out += below(3) ? " " : "  ";
      out += token;
      if (first == '(' || first == '[' || first == '{') inside += first;
      line_end_allowed = continues(token);
    }
    return out;
  }

  static bool continues(const std::string& token) {
    if (token.ends_with('=') && token != "==") return true;
    const SourceFile file("t", token);
    Diagnostics none;
    return continues_line(lex(file, none).tokens[0].kind);
  }

  std::string comment_text() {
    return (below(2) ? "\n# c" : " # c") + std::to_string(next_comment_++) +
           "\n";
  }

  std::mt19937 random_;
  std::vector<std::string> tokens_;
  int next_name_ = 0;
  int next_comment_ = 0;
  int line_density_ = 2 + below(30);
  int comment_density_ = 5 + below(60);
};

}  // namespace

TEST_CASE("random programs survive the formatter") {
  int parsed = 0;
  const int programs = 3000;
  for (int seed = 0; seed < programs; ++seed) {
    const std::string text = RandomProgram(static_cast<uint32_t>(seed)).text();
    if (status(text).find("U01") == std::string::npos ||
        status(text) == "U0130")
      ++parsed;
    const std::string fault = format_fault(text);
    CHECK_MESSAGE(fault == "", "seed ", seed, ":\n", text);
    if (!fault.empty()) break;
  }
  // The generator and the parser agree on the grammar, nearly always.
  CHECK(parsed > programs * 9 / 10);
}
