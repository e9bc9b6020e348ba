#include "lang/syntax/jumps.h"

#include <doctest/doctest.h>

#include <string>

#include "lang/syntax/dump.h"
#include "lang/syntax/parser.h"

using namespace unisono::lang;

namespace {

/// The lowered tree, without places and what is in expressions.
std::string lowered(const std::string& text) {
  const SourceFile file("t.uni", text);
  Diagnostics diagnostics;
  const ParseResult parsed = parse(file, diagnostics);
  if (!parsed.ok) return "wrong";
  std::string out;
  const std::string dump = dump_ast(*parsed.program);
  for (size_t at = 0; at < dump.size();) {
    const size_t end = dump.find('\n', at);
    out += dump.substr(at, dump.find(" @", at) - at) + "\n";
    at = end + 1;
  }
  return out;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a guard is an if with the rest in its else") {
  CHECK(lowered("def f(x) { if x { return 1 }; 2 }") ==
        lowered("def f(x) { if x { 1 } else { 2 } }"));
  CHECK(lowered("def f(x) { if x { return 1 } else if y { g(x) }; 2 }") !=
        lowered("def f(x) { if x { 1 } else { 2 } }"));
  CHECK(lowered("for i in x { if i { continue }; f(i) }") ==
        lowered("for i in x { if i { } else { f(i) } }"));
}

TEST_CASE("flags are there where a branch alone does not do") {
  const std::string loop = lowered("for i in x { if i { break }; f(i) }");
  CHECK(has(loop, "JumpStmt break"));
  CHECK(!has(loop, "LetStmt"));
  const std::string nested =
      lowered("for i in x { if i { if j { continue } else { g(i) } }; f(i) }");
  CHECK(has(nested, "LetStmt var continue 1"));
  CHECK(has(nested, "NameExpr continue 1"));
  const std::string given = lowered("def f(x) { for i in x { return i }; 2 }");
  CHECK(has(given, "LetStmt var return flag"));
  CHECK(has(given, "LetStmt var return value"));
}

TEST_CASE("what is never reached is left out, and its jumps are none") {
  CHECK(lowered("def f(x) { for i in x { break; return i }; 2 }") ==
        lowered("def f(x) { for i in x { break }; 2 }"));
  CHECK(lowered("def f(x) { return 1; g(x) }") == lowered("def f(x) { 1 }"));
  CHECK(!has(lowered("def f(x) { while true { if x { return 1 } }; g(x) }"),
             "NameExpr g"));
}
