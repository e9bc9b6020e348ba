#include "lang/format/format.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/unit/lang/format_check.h"
#include "tests/unit/lang/parse_helpers.h"

using namespace unisono::lang;
using namespace unisono::lang::testing;

namespace {

std::string formatted(const std::string& text) {
  const Parsed parsed(text);
  return parsed.result.ok ? format(parsed.program()) : parsed.codes();
}

void stays(const std::string& text) {
  CHECK(formatted(text) == text);
  CHECK(format_fault(text) == "");
}

void becomes(const std::string& before, const std::string& after) {
  CHECK(formatted(before) == after);
  CHECK(format_fault(before) == "");
}

std::string read(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream out;
  out << in.rdbuf();
  return out.str();
}

}  // namespace

TEST_CASE("spaces") {
  becomes("let   x=1+2*-y**2", "let x = 1 + 2 * -y ** 2\n");
  becomes("f( a,axis = 0 , b= [1,2 ,] )", "f(a, axis=0, b=[1, 2])\n");
  becomes("(w=1,b : f32)", "U0122");
  becomes("let p=(w=1,b=2)", "let p = (w = 1, b = 2)\n");
  becomes("x[ 1 : n-1 ,: :2,...]", "x[1:n - 1, ::2, ...]\n");
  becomes("def f[T:float,n](x:T[n],*,k = 2,l:f32=1)->T[n]=x",
          "def f[T: float, n](x: T[n], *, k=2, l: f32 = 1) -> T[n] = x\n");
  becomes("fn(x)=>x|>f", "fn(x) => x |> f\n");
  becomes("r  with(b=1)", "r with (b = 1)\n");
  becomes("not  a and(b)", "not a and (b)\n");
  becomes("(a,)", "(a,)\n");
  becomes("while a{break;}", "while a { break }\n");
  becomes("def f(x){if x{return  x+1};for i in x{continue}; return}",
          "def f(x) { if x { return x + 1 }; for i in x { continue }; return "
          "}\n");
  becomes("(a,b,)", "(a, b)\n");
  becomes("let ((a)) = b", "let ((a,),) = b\n");
}

TEST_CASE("tuples get their parentheses") {
  becomes("for i, x in xs { a, b = b, a }  # a swap",
          "for (i, x) in xs { (a, b) = (b, a) }  # a swap\n");
  becomes("let a, (b, c) = f(x)", "let (a, (b, c)) = f(x)\n");
  becomes("def f(x) { return x, [y for x, y in x] }",
          "def f(x) { return (x, [y for (x, y) in x]) }\n");
}

TEST_CASE("text of literals is kept, a point gets its zero") {
  stays("let x = 0x1F + 1_000 + 1e-3f64 + \"a {b+c:.2f} \\n\"\n");
  becomes("1.", "1.0\n");
  becomes("1 .0", "1 .0\n");
  becomes("1. .x", "1.0.x\n");
}

TEST_CASE("statements and empty lines") {
  becomes("a;b\n\n\n\nc\n\n", "a\nb\n\nc\n");
  becomes("\n\n# x\n\n\ny", "# x\n\ny\n");
  becomes("", "");
  becomes("import \"a.uni\"  as b;axis i,j=mesh( 2,2 )",
          "import \"a.uni\" as b\naxis i, j = mesh(2, 2)\n");
  becomes("x+=1;x.w[0]  **=  2", "x += 1\nx.w[0] **= 2\n");
  becomes("@jit\n@pmap( in_axes=0 )\ndef f(x)=x",
          "@jit\n@pmap(in_axes=0)\ndef f(x) = x\n");
}

TEST_CASE("blocks: one line if the user had one") {
  stays("if a { b } else { c }\n");
  stays("for i in x { a; b }\n");
  becomes("while a{b\n}", "while a {\n  b\n}\n");
  becomes("while a ,max = 3{ b }", "while a, max=3 { b }\n");
  becomes("if a{b}else if c{d\n}else{e}",
          "if a {\n  b\n} else if c {\n  d\n} else {\n  e\n}\n");
  becomes("for i in x{}", "for i in x { }\n");
  becomes("def f(x){\n\n let y=x\n\n\n y\n\n}",
          "def f(x) {\n  let y = x\n\n  y\n}\n");
  stays("let g = pmap(fn(x) => {\n  let y = x\n  y\n}, over=dev)\n");
  becomes("test \"a\"{b}", "test \"a\" { b }\n");
  const std::string word(60, 'a');
  becomes("if a { " + word + "; " + word + " }",
          "if a {\n  " + word + "\n  " + word + "\n}\n");
}

TEST_CASE("line ends in brackets are the user's") {
  stays("f(a,\n  b)\n");
  stays("let m = [[1, 2],\n         [3, 4]]\n");
  becomes("let m = [[1, 2],\n  [3, 4]]",
          "let m = [[1, 2],\n         [3, 4]]\n");
  becomes("f(\n a,\n b)", "f(\n  a,\n  b\n)\n");
  becomes("f(\n a, b,\n c,\n)", "f(\n  a, b,\n  c\n)\n");
  stays("(call = a,\n put  = b)\n");
  becomes("(call  = a,\n put   = b)", "(call = a,\n put  = b)\n");
  becomes("(call = a,\n  put =  b)", "(call = a,\n put  = b)\n");
  becomes("(call = a,\n put =  b)", "(call = a,\n put = b)\n");
  becomes("let x = (a\n + b)", "let x = (a +\n         b)\n");
  becomes("let x = a +\n b", "let x = a +\n  b\n");
  becomes("let x =\n   y", "let x =\n  y\n");
  becomes("x |>\nf |> g", "x |>\n  f |> g\n");
}

TEST_CASE("long lines are wrapped at 100 columns, brackets first") {
  const std::string a(40, 'a');
  const std::string b(40, 'b');
  const std::string c(40, 'c');
  becomes("fun(" + a + ", " + b + ", " + c + ")",
          "fun(\n  " + a + ", " + b + ",\n  " + c + "\n)\n");
  becomes("let x = " + a + " + " + b + " * " + c,
          "let x = " + a + " +\n  " + b + " * " + c + "\n");
  becomes("def f(" + a + ") = g(" + b + ", " + c + ")",
          "def f(" + a + ") =\n  g(" + b + ", " + c + ")\n");
  becomes(
      "def f(" + a + ", " + b + ") -> (x: f32, y: f32) { " + c + " }",
      "def f(\n  " + a + ", " + b + "\n) -> (x: f32, y: f32) { " + c + " }\n");
  // Nothing can be done about one word.
  const std::string word(200, 'w');
  stays("let x = " + word + "\n");
}

TEST_CASE("no comment is lost") {
  stays("# a\nlet x = 1  # b\n\n## c\ndef f(x) = x\n# d\n");
  becomes("a # 1\nbbb # 2", "a    # 1\nbbb  # 2\n");
  stays("f(a,  # one\n  b)  # two\n");
  becomes("f( # head\n a, # one\n # own\n b # last\n # end\n)",
          "f(    # head\n  a,  # one\n  # own\n  b  # last\n  # end\n)\n");
  stays("if a {  # why\n  b\n  # end\n}  # after\n");
  becomes("if a {\n # nothing\n}", "if a {\n  # nothing\n}\n");
  becomes("let x = a + # one\n # two\n b",
          "let x = a +  # one\n  # two\n  b\n");
  becomes("let x = # one\n # two\n b", "let x =  # one\n  # two\n  b\n");
  becomes("a; b # c", "a\nb  # c\n");
  for (
      const char* text : {
          "[x # a\n for # b\n i # c\n in # d\n y # e\n]",
          "( # a\n x # b\n) # c\n",
          "[if # a\n x # b\n { 1 } # c\n else # d\n { 2 } # e\n]",
          "[fn # a\n ( # b\n x # c\n : # d\n f32 # e\n = # f\n 1 # g\n ) # h\n "
          "-> # i\n f32 # j\n => # k\n x # l\n]",
          "(a # 1\n . # 2\n b # 3\n [ # 4\n 1 # 5\n : # 6\n 2 # 7\n ] # 8\n)",
          "(a # 1\n as # 2\n f32 # 3\n with # 4\n ( # 5\n a # 6\n = # 7\n 1))",
          "(- # 1\n a # 2\n ** # 3\n not # 4\n b)",
          "(a # 1\n , # 2\n b # 3\n , # 4\n)",
          "(a # 1\n : # 2\n b # 3\n , # 4\n)",
          "@ # 1\n f # 2\n # 3\n @g # 4\n\n # 5\n def h() = # 6\n 1 # 7",
          "def f[ # 1\n T # 2\n : # 3\n float # 4\n ]( # 5\n * # 6\n , # 7\n x "
          "# 8\n ) -> # 9\n f32 { # 10\n # 11\n }",
          "(A # 1\n , B # 2\n ) -> # 3\n C",
          "axis a, # 1\n b = # 2\n # 3\n c",
          "{ # 1\n # 2\n a # 3\n ; # 4\n b } # 5",
          "let (a, # 1\n (b # 2\n )) = # 3\n c",
          "# only",
          "x |> # 1\n f |> # 2\n # 3\n g",
          "((( # 1\n a # 2\n ) # 3\n ) # 4\n )",
      }) {
    CHECK_MESSAGE(status(text) == "complete", std::string(text));
    CHECK_MESSAGE(format_fault(text) == "", std::string(text));
  }
}

TEST_CASE("every program of the repository is laid out as the formatter says") {
  namespace fs = std::filesystem;
  const fs::path root = UNISONO_SOURCE_DIR;
  int programs = 0;
  for (const char* folder : {"examples", "stdlib", "tests"}) {
    if (!fs::exists(root / folder)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      if (entry.path().extension() != ".uni") continue;
      ++programs;
      const std::string text = read(entry.path());
      CHECK_MESSAGE(format_fault(text) == "", entry.path().string());
      // Cut at any line end, a program is complete or incomplete.
      const std::string whole = status(text);
      if (whole != "complete") continue;
      for (size_t at = 0; at != text.npos; at = text.find('\n', at + 1)) {
        const std::string now = status(text.substr(0, at));
        const bool fine = now == "complete" || now == "incomplete";
        CHECK_MESSAGE(fine, entry.path().string(), " up to ", at, ": ", now);
      }
    }
  }
  CHECK(programs > 10);
}
