#include "lang/syntax/lexer.h"

#include <doctest/doctest.h>

#include "lang/source/utf8.h"
#include "lang/syntax/dump.h"

using namespace unisono::lang;

namespace {

/// Kinds and texts: "Identifier:x Plus:+ Integer:1".
std::string tokens_of(const std::string& text) {
  const SourceFile file("t", text);
  Diagnostics diagnostics;
  std::string out;
  for (const Token& t : lex(file, diagnostics).tokens) {
    if (t.kind == TokenKind::EndOfFile) break;
    if (!out.empty()) out += ' ';
    out += name(t.kind);
    out += ':';
    out += file.text().substr(t.begin, t.end - t.begin);
  }
  for (const Diagnostic& d : diagnostics.all())
    out += " !" + std::string(info(d.code).number);
  return out;
}

}  // namespace

TEST_CASE("every punctuation and keyword is its own token") {
#define SPECIAL(name, description, line_end)
  // Behind a number: `//` alone is a comment of other languages, an error.
#define PUNCTUATION(name, text, line_end) \
  CHECK(tokens_of("1 " text).ends_with(" " #name ":" text));
#define KEYWORD(name, text, line_end) CHECK(tokens_of(text) == #name ":" text);
#include "lang/syntax/token.def"
}

TEST_CASE("the longest token wins") {
  CHECK(tokens_of("a**b") == "Identifier:a StarStar:** Identifier:b");
  CHECK(tokens_of("a**=b") == "Identifier:a CompoundAssign:**= Identifier:b");
  CHECK(tokens_of("a<<=1") == "Identifier:a CompoundAssign:<<= Integer:1");
  CHECK(tokens_of("a<=1") == "Identifier:a LessEqual:<= Integer:1");
  CHECK(tokens_of("a@=b") == "Identifier:a CompoundAssign:@= Identifier:b");
  CHECK(tokens_of("x=-1") == "Identifier:x Assign:= Minus:- Integer:1");
  CHECK(tokens_of("defx def") == "Identifier:defx Def:def");
}

TEST_CASE("numbers") {
  CHECK(tokens_of("1.5e-3f64") == "Float:1.5e-3f64");
  CHECK(tokens_of("1_000 0x1f 0b101") ==
        "Integer:1_000 Integer:0x1f Integer:0b101");
  CHECK(tokens_of("t.0.1") == "Identifier:t Dot:. Integer:0 Dot:. Integer:1");
  CHECK(tokens_of("1.") == "Float:1.");
  CHECK(tokens_of("1.sum") == "Integer:1 Dot:. Identifier:sum");
  CHECK(tokens_of("1...") == "Integer:1 Ellipsis:...");
  CHECK(tokens_of("2e5 2e x") == "Float:2e5 Integer:2e Identifier:x");
}

TEST_CASE("a string is one token, with the strings in its interpolations") {
  CHECK(tokens_of(R"("a\"b" c)") == R"(String:"a\"b" Identifier:c)");
  CHECK(tokens_of(R"("{f("x}")}" c)") == R"(String:"{f("x}")}" Identifier:c)");
  CHECK(tokens_of(R"("{x:>4}")") == R"(String:"{x:>4}")");
  CHECK(tokens_of("\"abc\nd") == "Invalid:\"abc Identifier:d !U0112");
  CHECK(tokens_of("\"{abc\"\nd") == "Invalid:\"{abc\" Identifier:d !U0112");
}

TEST_CASE("the end of an interpolation, and its format") {
  const std::string text = R"(x[1:2]:.4f} rest)";
  const auto end = find_interpolation_end(text, 0);
  REQUIRE(end);
  CHECK(end->colon == 6);
  CHECK(end->close == 10);
  CHECK(!find_interpolation_end("a\n}", 0));
  CHECK(find_interpolation_end("{}}", 0)->close == 2);
}

TEST_CASE("comments know whether they have their line") {
  const SourceFile file("t", "# one\nx # two  \r\n  ## three");
  Diagnostics diagnostics;
  const Tokens out = lex(file, diagnostics);
  REQUIRE(out.comments.size() == 3);
  CHECK(out.comments[0].own_line);
  CHECK(!out.comments[1].own_line);
  CHECK(out.comments[1].span.text() == "# two");
  CHECK(out.comments[2].own_line);
}

TEST_CASE("what is no token is reported once, where it stands") {
  CHECK(tokens_of("a $$ b") == "Identifier:a Invalid:$$ Identifier:b !U0110");
  CHECK(tokens_of("'a b'") == "Invalid:'a b' !U0110");
  CHECK(tokens_of("x\x01") == "Identifier:x Invalid:\x01 !U0110");
  CHECK(tokens_of("α + 1") == "Identifier:α Plus:+ Integer:1");
  CHECK(tokens_of("\"\xE2\x80\xAE\"") == "Invalid:\"\xE2\x80\xAE\" !U0110");
  CHECK(tokens_of("\xEF\xBB\xBFx") == "Identifier:x");
  CHECK(tokens_of("x \xFF") == " !U0111");
  CHECK(tokens_of("x \xC0\x80") == " !U0111");
}

TEST_CASE("UTF-8") {
  std::string text;
  for (const char32_t c : {0x41u, 0xE9u, 0x20ACu, 0x1F600u})
    append_utf8(text, c);
  CHECK(text == "Aé€😀");
  CHECK(decode_utf8(text, 6).value == 0x1F600);
  CHECK(decode_utf8("\xED\xA0\x80", 0).length == 0);      // a surrogate
  CHECK(decode_utf8("\xF4\x90\x80\x80", 0).length == 0);  // beyond Unicode
  CHECK(decode_utf8("\xE2\x82", 0).length == 0);          // cut short
  CHECK(display_width("a世é") == 4);
}

TEST_CASE("tokens print one a line") {
  const SourceFile file("t", "x +\n 1");
  CHECK(dump_tokens(file) ==
        "1:1 Identifier \"x\"\n1:3 Plus \"+\"\n2:2 Integer \"1\"\n"
        "2:3 EndOfFile \"\"\n");
}
