#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "lang/resolve/resolution.h"
#include "tests/unit/lang/parse_helpers.h"

using namespace unisono::lang;

namespace {

using Place = Resolution::Place;

/// A program and what its names mean, as text.
struct Resolved {
  explicit Resolved(std::string text)
      : parsed(std::move(text)), names(resolve(parsed.program())) {
    REQUIRE(parsed.result.ok);
  }

  /// Of the use of a name that is the nth in the text: "capture 0?, module 1".
  /// The mark is of a place that may not be set.
  std::string places(std::string_view name, size_t nth = 0) const {
    std::string out;
    for (const Place& place : names.places(use(name, nth)))
      out += (out.empty() ? "" : ", ") + text_of(place);
    return out;
  }

  const Resolution::Use& use(std::string_view name, size_t nth = 0) const {
    std::vector<const Resolution::Use*> found;
    for (const auto& each : names.uses)
      if (each.where().text() == name) found.push_back(&each);
    std::ranges::sort(found, {},
                      [](const auto* each) { return each->where().begin; });
    REQUIRE(nth < found.size());
    return *found[nth];
  }

  /// Of the nth definition of a name in the text: "slot 1" or "cell 1".
  std::string slot(std::string_view name, size_t nth = 0) const {
    const auto& v = names.variables[definition(name, nth).variable];
    return fmt::format("{} {}", v.captured ? "cell" : "slot", v.slot);
  }
  const Resolution::Definition& definition(std::string_view name,
                                           size_t nth = 0) const {
    std::vector<const Resolution::Definition*> found;
    for (const auto& each : names.definitions)
      if (each.name == name) found.push_back(&each);
    std::ranges::sort(found, {},
                      [](const auto* each) { return each->where.begin; });
    REQUIRE(nth < found.size());
    return *found[nth];
  }

  /// Of a function that has a parameter of that name.
  const Resolution::Frame& frame(std::string_view parameter) const {
    const int variable = definition(parameter).variable;
    return names.frames[names.scopes[names.variables[variable].scope].frame];
  }
  /// "capture 0, slot 1"
  static std::string captures(const Resolution::Frame& frame) {
    std::string out;
    for (const Place& place : frame.captures)
      out += (out.empty() ? "" : ", ") + text_of(place);
    return out;
  }

  /// Names of variables: "i n".
  std::string list(const std::vector<int>& variables) const {
    std::string out;
    for (const int v : variables)
      out += fmt::format("{}{}", out.empty() ? "" : " ",
                         v < 0 ? "_" : names.variables[v].name);
    return out;
  }
  /// Of the loops in the order of the text: "total; i", and their jumps.
  std::string assigned() const {
    std::string out;
    for (const auto& loop : names.loops)
      out += (out.empty() ? "" : "; ") + list(loop.assigned);
    return out;
  }
  std::string jumps() const {
    std::string out;
    for (const auto& loop : names.loops) {
      out += out.empty() ? "" : ";";
      for (const JumpStmt* jump : loop.jumps)
        out += fmt::format(" {}", word(jump->jump));
    }
    return out;
  }

  static std::string text_of(const Place& place) {
    const char* kind = place.kind == Place::Kind::slot      ? "slot"
                       : place.kind == Place::Kind::capture ? "capture"
                                                            : "module";
    return fmt::format("{} {}{}", kind, place.number, place.is_set ? "" : "?");
  }

  testing::Parsed parsed;
  Resolution names;
};

}  // namespace

TEST_CASE("resolve: one name in one scope is one slot") {
  const Resolved r("let x = 1; var y = x; let x = y + 1; print(x)");
  CHECK(r.slot("x") == "slot 0");
  CHECK(r.slot("x", 1) == "slot 0");
  CHECK(r.slot("y") == "slot 1");
  CHECK(r.definition("y").is_var);
  CHECK(r.names.variables.size() == 2);
  CHECK(&r.names.definitions[r.use("x").definition] == &r.definition("x", 0));
  CHECK(&r.names.definitions[r.use("x", 1).definition] ==
        &r.definition("x", 1));
  // The library's, and what means nothing.
  CHECK(r.places("print").empty());
  CHECK(r.use("print").definition == -1);
}

TEST_CASE("resolve: scopes side by side have the same slots") {
  const Resolved r(
      "def f(a, b) { let c = a; if c { let d = 1; d } else { let e = 2; let "
      "c = e; c } }");
  CHECK(r.slot("a") == "slot 0");
  CHECK(r.slot("b") == "slot 1");
  CHECK(r.slot("c") == "slot 2");
  CHECK(r.slot("d") == "slot 3");
  CHECK(r.slot("e") == "slot 3");
  CHECK(r.slot("c", 1) == "slot 4");
  CHECK(r.places("c", 0) == "slot 2");
  CHECK(r.places("c", 1) == "slot 4");
  CHECK(r.frame("a").slot_count == 5);
  CHECK(r.names.frames[0].slot_count == 1);
  // Where a scope ends, its slots do.
  const auto& branch =
      r.names.scopes[r.names.variables[r.definition("e").variable].scope];
  CHECK(branch.first_slot == 3);
  CHECK(branch.slot_count == 2);
  // What a name hides is meant up to where it is bound.
  const Resolved hidden(
      "let x = 1; if true { let y = x; let x = 2; print(x) }");
  CHECK(hidden.places("x", 0) == "slot 0");
  CHECK(hidden.places("x", 1) == "slot 2");
}

TEST_CASE("resolve: a slot that a function captured is not used again") {
  const Resolved r(
      "def f(a) { let g = fn() => c; if a { let b = 1 }; let c = 2; g() }");
  CHECK(r.slot("g") == "slot 1");
  CHECK(r.slot("c") == "cell 2");
  CHECK(r.slot("b") == "slot 3");
}

TEST_CASE("resolve: functions read names when they are called") {
  const Resolved r("let y = 1; def f() { let g = fn() => y; let y = 2; g() }");
  CHECK(r.places("y") == "capture 0?, module 0");
  CHECK(r.slot("y") == "cell 0");
  CHECK(r.slot("y", 1) == "cell 1");
  CHECK(r.use("y").definition ==
        &r.definition("y", 1) - r.names.definitions.data());
  // Set before the function is made.
  CHECK(Resolved("def f(a) { let y = a; fn() => y }").places("y") ==
        "capture 0");
  // Of a function around the function around: when that was made.
  CHECK(Resolved("def f() { let g = fn() => fn() => y; let y = 1; g }")
            .places("y") == "capture 0?");
  CHECK(Resolved("let y = 1; def f() = fn() => y").places("y") == "module 0");
  // A definition sees itself; a `let` binds after its value.
  CHECK(Resolved("def f(x) = f(x)").places("f") == "module 0");
  CHECK(Resolved("let f = fn(x) => f(x)").places("f") == "module 0?");
  const Resolved both("def a() = b(); def b() = a()");
  CHECK(both.places("b") == "module 1?");
  CHECK(both.places("a") == "module 0");
}

TEST_CASE("resolve: functions between capture, too") {
  const Resolved r("def f(a) = fn(b) => fn(c) => b + a + c + a");
  CHECK(r.places("b") == "capture 0");
  CHECK(r.places("a") == "capture 1");
  CHECK(r.places("a", 1) == "capture 1");
  CHECK(r.places("c") == "slot 0");
  CHECK(r.captures(r.frame("c")) == "slot 0, capture 0");
  CHECK(r.captures(r.frame("b")) == "slot 0");
  CHECK(r.captures(r.frame("a")).empty());
  CHECK(r.frame("c").around == r.names.frame_of.at(r.frame("b").function));
}

TEST_CASE("resolve: each turn has its own names") {
  const Resolved r(
      "var fs = ()\nfor (i, x) in pairs {\n  let k = i\n  fs = fs + (fn() => "
      "i + k,)\n}\nlet n = 2");
  CHECK(r.slot("fs") == "slot 0");
  CHECK(r.slot("n") == "slot 1");
  CHECK(r.slot("i") == "cell 2");
  CHECK(r.slot("x") == "slot 3");
  CHECK(r.slot("k") == "cell 4");
  CHECK(r.places("i", 1) == "capture 0");
  CHECK(r.places("k") == "capture 1");
  const Resolved turns(
      "def f(n) = [i * j + n for i in range(n), j in range(i)]");
  CHECK(turns.slot("i") == "slot 1");
  CHECK(turns.slot("j") == "slot 2");
  CHECK(turns.places("i", 1) == "slot 1");
  CHECK(turns.places("n", 1) == "slot 0");
  CHECK(turns.frame("n").slot_count == 3);
  // The first generator is outside.
  CHECK(Resolved("let i = 3; [i for i in range(i)]").places("i", 1) ==
        "slot 0");
}

TEST_CASE("resolve: parameters") {
  const Resolved r("let k = 1; def f(a, (b, c), *, d = a + b + k) = d + c");
  CHECK(r.slot("a") == "slot 0");
  CHECK(r.slot("d") == "slot 2");
  CHECK(r.slot("b") == "slot 3");
  CHECK(r.slot("c") == "slot 4");
  CHECK(r.places("a") == "slot 0");
  CHECK(r.places("b") == "slot 3");
  CHECK(r.places("k") == "module 0");
  CHECK(r.list(r.frame("a").parameters) == "a _ d");
  // The names of a body are in a scope of their own.
  const Resolved body("def f(x) { let x = x + 1; x }");
  CHECK(body.slot("x", 1) == "slot 1");
  CHECK(body.places("x", 0) == "slot 0");
  CHECK(body.places("x", 1) == "slot 1");
  // A default does not see what follows it.
  CHECK(Resolved("def f(a = b, b = 1) = a").places("b").empty());
}

TEST_CASE("resolve: sizes and element types of signatures") {
  const Resolved r("let n = 3; def f(x: f32[n, m], y: T[n * 2]) -> T[m] = n");
  CHECK(r.list(r.frame("x").sizes) == "n m T");
  CHECK(r.slot("n", 1) == "slot 2");
  // They are bound as arguments are met, so a default may mean another one.
  CHECK(r.places("n", 0) == "slot 2?, module 0");
  CHECK(r.places("n", 1) == "slot 2?, module 0");
  CHECK(r.places("T") == "slot 4?");
  CHECK(r.places("m") == "slot 3?");
  CHECK(r.use("f32").kind == Resolution::Use::Kind::type);
  // One that is a parameter, too, is one variable.
  const Resolved both("def f(x: f32[n], n: int) = n");
  CHECK(both.slot("n") == "slot 1");
  CHECK(both.frame("x").slot_count == 2);
  // An axis around is meant, and so are sizes of other types.
  CHECK(Resolved("axis n = devices(); def f(x: f32[n]) = x").places("n") ==
        "module 0");
  CHECK(Resolved("let n = 3; let x: f32[n] = y").places("n") == "slot 0");
  const Resolved generic("def f[T: float, d](x: T[d]) = x");
  CHECK(generic.list(generic.frame("x").sizes) == "T d");
  CHECK(generic.places("d") == "slot 2?");
  const Resolved cast("def f(x) { let y = x as f32[k]; k }");
  CHECK(cast.places("k") == "slot 1?");
  CHECK(Resolved("type P[d] = (w: f32[d])").places("d") == "slot 1?");
}

TEST_CASE("resolve: members and methods") {
  const Resolved r(
      "import nn\nimport \"sub/layers.uni\"\nimport stats as st\ndef f(x) = "
      "x\nnn.relu(layers.g(1)).f(2).h(st.c)\n(f = 1).f");
  using Kind = Resolution::Use::Kind;
  CHECK(r.use("relu").kind == Kind::member);
  CHECK(r.use("relu").definition ==
        &r.definition("nn") - r.names.definitions.data());
  CHECK(r.use("g").definition ==
        &r.definition("layers") - r.names.definitions.data());
  CHECK(r.use("c").definition ==
        &r.definition("st") - r.names.definitions.data());
  CHECK(r.use("f").kind == Kind::method);
  CHECK(r.places("f") == "slot 3");
  CHECK(r.use("h").kind == Kind::method);
  CHECK(r.places("h").empty());
  CHECK(std::ranges::count(r.names.uses, std::string_view("f"),
                           [](const auto& u) { return u.where().text(); }) ==
        1);
}

TEST_CASE("resolve: what loops assign") {
  const Resolved r(
      "var a = 0; var b = 0; var x = zeros(3)\n"
      "for i in range(3) {\n"
      "  var t = i\n"
      "  while t > 0 { t -= 1; a += t; let b = 2 }\n"
      "  (x[i], _) = (a, 1)\n"
      "  let f = fn() => { var b = 1; b = 2; b }\n"
      "}\n"
      "def g(v) { for i in v { var w = i; w = 1; a = 2; v.f = w } }");
  CHECK(r.assigned() == "a x; t a; v");
  CHECK(r.use("x").kind == Resolution::Use::Kind::write);
  CHECK(r.use("t").kind == Resolution::Use::Kind::read);
}

TEST_CASE("resolve: jumps out of loops") {
  CHECK(Resolved("def f(x) { for i in x { while i { if i { break } else { "
                 "return 1 } }; if i { continue }; if i { break } }; return 2 "
                 "}")
            .jumps() == " return break; break return");
  CHECK(Resolved("for i in x { let f = fn(y) => { return y }; f(i) }")
            .jumps()
            .empty());
}

TEST_CASE("resolve: lowered jumps are names like others") {
  const SourceFile file(
      "t.uni", "def f(x) { for i in x { if i { if x { return i } }; x }; x }");
  Diagnostics diagnostics;
  const ParseResult parsed = parse(file, diagnostics);
  REQUIRE(parsed.ok);
  const Resolution names = resolve(*parsed.program);
  for (const auto& use : names.uses) CHECK(use.place_count == 1);
  CHECK(std::ranges::count(names.variables, "return value",
                           &Resolution::Variable::name) == 1);
}

TEST_CASE("resolve: what tools ask") {
  const std::string text =
      "let a = 1\ndef f(k) { let b = k; let c = b; c }\nlet g = "
      "jit(f)\nlet a = 2\n";
  const Resolved r(text);
  CHECK(r.names.exported("a") == &r.definition("a", 1));
  CHECK(r.names.exported("b") == nullptr);
  REQUIRE(r.definition("g").function);
  CHECK(r.names.parameter(*r.definition("g").function, "k") ==
        &r.definition("k"));
  CHECK(r.names.parameter(*r.definition("g").function, "b") == nullptr);
  const auto visible = [&](std::string_view mark) {
    std::string out;
    for (const auto* d :
         r.names.visible(static_cast<uint32_t>(text.find(mark))))
      out += fmt::format(" {}", d->name);
    return out;
  };
  CHECK(visible("let c") == " b k a f g");
  CHECK(visible("let g") == " a f");
  CHECK(visible("let a").empty());
  CHECK(r.names.use(*r.use("k").node) == &r.use("k"));
  const Resolved typed("let x: f32[3] = y; let (p, q): Pair = z");
  CHECK(typed.definition("x").type->span.text() == "f32[3]");
  CHECK(typed.definition("p").type == nullptr);
}
