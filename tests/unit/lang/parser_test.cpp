#include "lang/syntax/parser.h"

#include <doctest/doctest.h>

#include <sstream>
#include <utility>

#include "lang/syntax/dump.h"
#include "tests/unit/lang/parse_helpers.h"

using namespace unisono::lang;
using namespace unisono::lang::testing;

TEST_CASE("precedence, loosest first") {
  CHECK(shape("a or b and c") == "(a or (b and c))");
  CHECK(shape("not a and b") == "((not a) and b)");
  CHECK(shape("not a == b") == "(not (a == b))");
  CHECK(shape("a == b | c") == "(a == (b | c))");
  CHECK(shape("a | b ^ c & d << e") == "(a | (b ^ (c & (d << e))))");
  CHECK(shape("a << b + c * d") == "(a << (b + (c * d)))");
  CHECK(shape("a - b - c") == "((a - b) - c)");
  CHECK(shape("a / b // c % d @ e") == "((((a / b) // c) % d) @ e)");
  CHECK(shape("a * b as f32") == "(a * (b as f32))");
  CHECK(shape("-a as f32") == "((-a) as f32)");
  CHECK(shape("-x ** 2") == "(-(x ** 2))");
  CHECK(shape("a ** b ** c") == "(a ** (b ** c))");
  CHECK(shape("a ** -b ** c") == "(a ** (-(b ** c)))");
  CHECK(shape("-x.f(1)[2]") == "(-x.f(1)[2])");
  CHECK(shape("~a & b") == "((~a) & b)");
  CHECK(shape("x |> f |> g(1)") == "((x |> f) |> g(1))");
  CHECK(shape("x |> a or b") == "(x |> (a or b))");
  CHECK(shape("r with (b = 1) |> f") == "((r with (b=1)) |> f)");
  CHECK(shape("x |> f with (b = 1)") == "((x |> f) with (b=1))");
}

TEST_CASE("parentheses override") {
  CHECK(shape("(a + b) * c") == "((a + b) * c)");
  CHECK(shape("(-x) ** 2") == "((-x) ** 2)");
  CHECK(shape("(a < b) == c") == "((a < b) == c)");
}

TEST_CASE("trees and types come from one parser") {
  CHECK(shape("()") == "()");
  CHECK(shape("(a,)") == "(a,)");
  CHECK(shape("(a, b,)") == "(a, b)");
  CHECK(shape("(a)") == "a");
  CHECK(shape("(A, B) -> C") == "((A, B) -> C)");
  CHECK(shape("() -> (A) -> C") == "(() -> ((A) -> C))");
  CHECK(shape("(w = a, b = c)") == "(w = a, b = c)");
  CHECK(shape("(w: f32[d], b: f32)") == "(w: f32[d], b: f32)");
  CHECK(shape("f32[..., ?k, _, 2*n]") == "f32[..., ?k, _, (2 * n)]");
  CHECK(shape("x[1:-1, ::2, :, none]") == "x[1:-1, ::2, :, none]");
  CHECK(shape("t.0.1") == "t.0.1");
  CHECK(shape("f(a, axis=0)") == "f(a, axis=0)");
  CHECK(shape("f(in=1, type=2).with") == "f(in=1, type=2).with");
  CHECK(shape("f(var(x), var)") == "f(var(x), var)");
  CHECK(shape("type + axis * test") == "(type + (axis * test))");
  CHECK(shape("fn(x, *, k = 2) => x * k") == "(fn => (x * k))");
}

TEST_CASE("a comparison does not chain, and bits do not mix with it") {
  CHECK(shape("a < b < c") == "U0105");
  CHECK(shape("a > 0 & b > 0") == "U0106");
  CHECK(shape("a == 1 | b == 2") == "U0106");
  CHECK(shape("a & b == c") == "((a & b) == c)");
}

TEST_CASE("literals") {
  const auto value = [](const std::string& text) {
    const Parsed parsed(text);
    return parsed.result.ok ? dump_ast(parsed.program()) : parsed.codes();
  };
  CHECK(value("1_000") == "ExprStmt @1:1\n  IntLiteral 1000 @1:1\n");
  CHECK(value("0xff") == "ExprStmt @1:1\n  IntLiteral 255 @1:1\n");
  CHECK(value("2u8") == "ExprStmt @1:1\n  IntLiteral 2 suffix=u8 @1:1\n");
  CHECK(value("0xfu8") == "ExprStmt @1:1\n  IntLiteral 15 suffix=u8 @1:1\n");
  CHECK(value("1f64") ==
        "ExprStmt @1:1\n  FloatLiteral 0x1p+0 suffix=f64 @1:1\n");
  CHECK(value("1e-400") == "ExprStmt @1:1\n  FloatLiteral 0x0p+0 @1:1\n");
  CHECK(value("18446744073709551615") ==
        "ExprStmt @1:1\n  IntLiteral 18446744073709551615 @1:1\n");
  for (const char* text : {"18446744073709551616", "256u8", "128i8", "1e999",
                           "70000f16", "1e39f32", "1e400f64"}) {
    CHECK_MESSAGE(value(text) == "U0117", std::string(text));
  }
  for (const char* text : {"1__0", "1_", "0x", "0b2", "007", "1.5u8", "1abc",
                           "1bool", "1e5i32", "3.5e", "3.5e+", "2e"}) {
    CHECK_MESSAGE(value(text) == "U0116", std::string(text));
  }
  CHECK(shape("-128i8") == "(-128i8)");
  CHECK(shape("-128i8 ** 2") == "U0117");
  CHECK(shape("-9223372036854775808i64") == "(-9223372036854775808i64)");
}

TEST_CASE("strings: pieces, escapes, formats") {
  const auto pieces = [](const std::string& text) {
    const Parsed parsed(text);
    if (!parsed.result.ok) return parsed.codes();
    const auto* statement = as<ExprStmt>(*parsed.program().statements[0]);
    std::string out;
    for (const auto& piece : as<StringLiteral>(*statement->expr)->pieces) {
      out += piece.value
                 ? "<" + dump_expression(*piece.value) + "|" + piece.spec + ">"
                 : piece.text;
    }
    return out;
  };
  CHECK(pieces(R"("step {i}: loss {a + b:.4f}")") ==
        "step <i|>: loss <(a + b)|.4f>");
  CHECK(pieces(R"("\n\t\\\"\{\}\u{3b1}")") == "\n\t\\\"{}α");
  CHECK(pieces(R"("{x[1:2]:>8}{f("\}")}")") == "<x[1:2]|>8><f(\"\\}\")|>");
  CHECK(pieces(R"("")") == "");
  CHECK(pieces(R"("\q")") == "U0113");
  CHECK(pieces(R"("\u{110000}")") == "U0113");
  CHECK(pieces(R"("\u{}")") == "U0113");
  CHECK(pieces(R"("{}")") == "U0115");
  CHECK(pieces(R"("{{x}}")") == "U0115");
  CHECK(pieces(R"("}")") == "U0115");
  CHECK(pieces(R"("{a b}")") == "U0114");
  CHECK(pieces(R"("{a +}")") == "U0101");
  CHECK(pieces(R"("{"{"{"{"{"{"{"{"{"{x}"}"}"}"}"}"}"}"}"}")") == "U0118");
}

TEST_CASE("every statement") {
  CHECK(status("let x = 1; var (y, (_, z)): (f32, f32) = f(x)") == "complete");
  CHECK(status("x += 1\nx[i, j].w **= 2\nx = y") == "complete");
  CHECK(status("type P[d: any] = (w: f32[d], b: f32)") == "complete");
  CHECK(status("axis rows, cols = mesh(2, 2)\naxis batch") == "complete");
  CHECK(status("import \"layers.uni\" as layers\nimport nn") == "complete");
  CHECK(status("for (a, b) in x { }\nwhile a > 0 { a -= 1 }") == "complete");
  CHECK(status("while a > 0, max=n + 1 { a -= 1 }") == "complete");
  CHECK(status("test \"name\" { print(1) }") == "complete");
  CHECK(status("@pmap(in_axes=(0, none))\n@jit\ndef f(x) = x") == "complete");
  CHECK(status("def f[T: float, n](x: T[n], (a, b), *, k: f32 = 1) -> T {\n"
               "  def g() = 1\n  x\n}") == "complete");
  CHECK(status("type = 3\naxis = type\ntest(axis)\ntype") == "complete");
  CHECK(status("if a { 1 } else if b { 2 } else { 3 }") == "complete");
  CHECK(status("f(fn(x) => {\n  let y = x\n  y\n},\n 2)") == "complete");
}

TEST_CASE("several names and values need no parentheses") {
  // The same tree, but for its places.
  const auto tree = [](const std::string& text) {
    const Parsed parsed(text);
    if (!parsed.result.ok) return parsed.codes();
    std::string out;
    std::istringstream lines(dump_ast(parsed.program()));
    for (std::string line; std::getline(lines, line);)
      out += line.substr(0, line.find(" @")) + "\n";
    return out;
  };
  const std::pair<const char*, const char*> same[] = {
      {"let a, b = f(x)", "let (a, b) = f(x)"},
      {"var (a, b), _ = (1, 2), 3", "var ((a, b), _) = ((1, 2), 3)"},
      {"a, x[i, 0] = x[i, 0], a", "(a, x[i, 0]) = (x[i, 0], a)"},
      {"_, a = f(x, y=1)", "(_, a) = f(x, y=1)"},
      {"for i, x in enumerate(xs) { }", "for (i, x) in enumerate(xs) { }"},
      {"[a * b for a, b in z]", "[a * b for (a, b) in z]"},
      {"[a * b for a, b in y, c in z]", "[a * b for (a, b) in y, c in z]"},
      {"def f(x) { return x, 1 }", "def f(x) { return (x, 1) }"}};
  for (const auto& [bare, full] : same) {
    CAPTURE(bare);
    CHECK(tree(bare) == tree(full));
    CHECK_FALSE(tree(full).starts_with("U0"));
  }
  CHECK(tree("a, b") == "U0103");
  CHECK(tree("let t = 1, 2") == "U0103");
  CHECK(tree("t = 1, 2") == "U0103");
  CHECK(tree("a, b += 1, 2") == "U0123");
  CHECK(tree("let a, = t") == "U0101");
  CHECK(tree("let a, a = t") == "U0132");
  CHECK(tree("fn(a) => a, 2") == "U0103");
}

TEST_CASE("a line end ends a statement, but not after an operator") {
  CHECK(shape("a +\n b") == "(a + b)");
  CHECK(shape("(a\n + b)") == "(a + b)");
  CHECK(shape("a.\nb") == "a.b");
  CHECK(status("let x =\n  1") == "complete");
  CHECK(status("let\nx = 1") == "U0101");
  CHECK(status("x\n-y") == "complete");
  CHECK(status("let x = 1\n  + 2") == "U0104");
  CHECK(status("x\n.f()") == "U0104");
  CHECK(status("let x = 1\n  - 2") == "U0130");
  CHECK(status("{ let x = 1\n  -2 }") == "complete");
  CHECK(status("if a { 1 }\nelse { 2 }") == "complete");
  CHECK(status("let x = if a { 1 }\n\nelse if b { 2 }\nelse { 3 }") ==
        "complete");
  CHECK(status("x\nelse { 2 }") == "U0126");
  CHECK(status("if a { 1 }\n# why\nelse { 2 }") == "U0126");
  CHECK(status("def f(x)\n{ x }") == "U0101");
  CHECK(status("let x = 1\r\nlet y = x +\r\n  2\r\n") == "complete");
}

TEST_CASE("incomplete exactly when the parser ran out of input") {
  for (const char* text : {"let y =", "let", "def f(x: f32[n]) -> f32[n] {",
                           "f(1,", "x +", "[1", "@pmap", "@pmap\n", "if a {",
                           "if a { 1 } else", "fn(x) =>", "x[1:", "let x =\n\n",
                           "def f(", "import", "for i in", "x with", "(a ="}) {
    CHECK_MESSAGE(status(text) == "incomplete", std::string(text));
  }
  for (const char* text : {"", "x", "let y = 1", "if a { 1 }", "f(1)\n", "# x",
                           "## doc\n", "axis", "t.0", "1."}) {
    CHECK_MESSAGE(status(text) == "complete", std::string(text));
  }
  for (const char* text : {"let = ", "f(]", "\"abc", "let x 1 {", "x y (", ")",
                           "let\n", "def f(x)\n", "$ +", "0x + ("}) {
    const std::string now = status(text);
    CHECK_MESSAGE(now.starts_with("U"), std::string(text));
  }
}

TEST_CASE("a mistake is reported once, and the next one is found too") {
  CHECK(status("let = 1\nlet x = 2\nlet y = )\nlet z") == "U0101 U0101 U0102");
  CHECK(status("def f() {\n  let = 1\n  let x = +\n  3\n}\nlet = 2") ==
        "U0101 U0101 U0101");
  CHECK(status("print(f(1, 2)\nlet q = 3\nlet = 4") == "U0108 U0101");
  CHECK(status("f(1 +,\n  2,\n  3)\nx = ") == "U0101 U0102");
  std::string many;
  for (int i = 0; i < 100; ++i) many += "let = 1\n";
  const Parsed parsed(many);
  CHECK(parsed.diagnostics.size() == 21);
  CHECK(parsed.diagnostics.all().back().code == Code::too_many_errors);
}

TEST_CASE("each mistake has its message") {
  struct Case {
    const char* text;
    const char* code;
  };
  for (const Case& c : std::initializer_list<Case>{
           {"let for = 1", "U0107"},
           {"print(f(1, 2]", "U0108"},
           {"x)", "U0109"},
           {")", "U0109"},
           {"f(a = 1, 2)", "U0121"},
           {"(a, b = 1)", "U0122"},
           {"(a = 1, b: f32)", "U0122"},
           {"1 = 2", "U0123"},
           {"(a, f(1)) = c", "U0123"},
           {"f(x) += 1", "U0123"},
           {"if x = 3 { }", "U0124"},
           {"let y = (a + b = 3)", "U0124"},
           {"def f(*) = 1", "U0125"},
           {"def f(*, *, a) = 1", "U0125"},
           {"def f(a = 1, b) = 1", "U0125"},
           {"fn(*, (a, b)) => 1", "U0125"},
           {"@pmap\nlet x = 1", "U0127"},
           {"return x", "U0133"},
           {"if a { break }", "U0133"},
           {"for i in x { let f = fn(y) => { continue } }", "U0133"},
           {"def f(x) { let y = if x { return 1 } else { 2 } }", "U0134"},
           {"while x { g(if y { break } else { 1 }) }", "U0134"},
           {"let f = lambda x: x", "U0128"},
           {"def f(x) { import nn }", "U0131"},
           {"if a { test \"b\" { } }", "U0131"},
           {"def f(x, (y, x)) = 1", "U0132"},
           {"(a = 1, a = 2)", "U0132"},
           {"f(a=1, a=2)", "U0132"},
           {"let (a, a) = b", "U0132"},
           {"axis a, a", "U0132"},
           {"type P[d, d] = f32", "U0132"},
           {"let a, = c", "U0101"},
           {"[x for x in y if x > 0 if x < 5]", "U0101"},
           {"(a: f32) -> f32", "U0101"},
           {"import \"{x}\"", "U0101"},
           {"r with (1)", "U0101"},
           {"x: f32 = 3", "U0103"},
           {"1 2", "U0103"},
       }) {
    CHECK_MESSAGE(status(c.text) == c.code, std::string(c.text));
  }
}

TEST_CASE("depth is bounded: a located error, no overflow") {
  const auto repeat = [](std::string_view part, int times) {
    std::string out;
    for (int i = 0; i < times; ++i) out += part;
    return out;
  };
  for (const char* part : {"(", "[", "{", "-", "not ", "f(", "x[", "a ** ",
                           "if a { ", "fn() => ", "() -> ", "a |> (", "~"}) {
    CHECK_MESSAGE(status(repeat(part, 100'000)) == "U0118", std::string(part));
  }
  CHECK(status("let " + repeat("(", 100'000)) == "U0118");
  CHECK(status("a" + repeat(" + a", 100'000)) == "U0119");
  CHECK(status("a" + repeat(".b", 100'000)) == "U0119");
  CHECK(status("a" + repeat("()", 100'000)) == "U0119");
  CHECK(status("a" + repeat(" as f32", 100'000)) == "U0119");
  CHECK(status(repeat("(", 200) + "a" + repeat(")", 200)) == "complete");
  CHECK(status("a" + repeat(" + a", 900)) == "complete");
}

TEST_CASE("documentation is what stands on the lines before") {
  const Parsed parsed(
      "## far\n\n## one\n##  two\n@jit\ndef f(x) = x\n# no\ndef g() = 1\n");
  const auto& all = parsed.program().statements;
  REQUIRE(all.size() == 2);
  CHECK(as<DefStmt>(*all[0])->documentation == "one\n two\n");
  CHECK(as<DefStmt>(*all[0])->decorators.size() == 1);
  CHECK(as<DefStmt>(*all[1])->documentation.empty());
}

TEST_CASE("spans: a node's text is what it was written as") {
  const Parsed parsed("let x = f(a, (b + c)) * 2  # d");
  REQUIRE(parsed.result.ok);
  const auto* let = as<LetStmt>(*parsed.program().statements[0]);
  CHECK(let->span.text() == "let x = f(a, (b + c)) * 2");
  const auto* product = as<Binary>(*let->value);
  CHECK(product->op_span.text() == "*");
  const auto* call = as<Call>(*product->left);
  CHECK(call->span.text() == "f(a, (b + c))");
  CHECK(call->arguments[1].value->span.text() == "(b + c)");
  CHECK(call->arguments[1].value->parenthesized);
  const Parsed string("print(\"a {b + c:.2f}\")");
  const auto* print =
      as<Call>(*as<ExprStmt>(*string.program().statements[0])->expr);
  const auto* text = as<StringLiteral>(*print->arguments[0].value);
  CHECK(text->pieces[1].value->span.text() == "b + c");
}
