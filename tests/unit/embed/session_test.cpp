// Sessions: programs, names, messages, callbacks, grants.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "embed/unisono.hpp"

using unisono::Kind;
using unisono::Value;

namespace {

unisono::Error error_of(unisono::Session& session, std::string_view program) {
  auto result = session.eval(program);
  REQUIRE(!result);
  return result.error();
}

}  // namespace

TEST_CASE("a program's value") {
  unisono::Engine engine;
  unisono::Session session = engine.session();
  const auto value = session.eval("let a = 3\na + 4").value();
  CHECK(value.as<int>().value() == 7);
  CHECK(session.eval("let b = 1").value().kind() == UNISONO_VALUE_NONE);
  CHECK(session.eval("").value().kind() == UNISONO_VALUE_NONE);
  CHECK(session.get("a").value().as<int>().value() == 3);
  CHECK(session.eval("a * b").value().as<long>().value() == 3);
  CHECK(session.eval("\"x\" + \"y\"").value().as<std::string>().value() ==
        "xy");
  CHECK(session.eval("ones(3)").value().type() == "f32[3]");
}

TEST_CASE("errors are values") {
  unisono::Engine engine;
  unisono::Session session = engine.session();
  SUBCASE("syntax") {
    const auto error = error_of(session, "let = 3");
    CHECK(error.kind() == Kind::syntax);
    CHECK(error.messages()[0].where.line == 1);
    CHECK(std::string(error.messages()[0].where.file) == "<eval>");
  }
  SUBCASE("types, with places, labels and notes") {
    auto result = session.eval("let x = ones(3)\nx + ones(4)", "sum.uni");
    REQUIRE(!result);
    const auto messages = result.error().messages();
    REQUIRE(!messages.empty());
    CHECK(result.error().kind() == Kind::check);
    CHECK(messages[0].where.line == 2);
    CHECK(std::string(messages[0].code).starts_with("U03"));
    CHECK(result.error().text().find("sum.uni:2") != std::string::npos);
    CHECK(result.error().text(true).find("\x1b[") != std::string::npos);
    CHECK(result.error().json().starts_with("{"));
  }
  SUBCASE("while running") {
    CHECK(error_of(session, "assert(sum(ones(2)) == 3.0)").kind() ==
          Kind::runtime);
    CHECK(error_of(session, "let a = [1, 2]\na[argmax([1, 2]) + 1]").kind() ==
          Kind::runtime);
  }
  SUBCASE("a program that fails changes no name") {
    session.eval("var a = 1").value();
    error_of(session, "a = 2\nlet b = [1, 2]\nassert(sum(b) == 4)");
    CHECK(session.get("a").value().as<int>().value() == 1);
    CHECK(session.get("b").error().kind() == Kind::check);
  }
  // The session goes on.
  CHECK(session.eval("1 + 1").value().as<int>().value() == 2);
}

TEST_CASE("warnings") {
  unisono::Engine engine;
  unisono::Session session = engine.session();
  CHECK(!session.warnings());
  session
      .eval(
          "def f(x: f32[3]) -> f32[3] { x }\n"
          "def g() -> f32[3] { f(ones(3)) }")
      .value();
  session.eval("def f(x: f32[4]) -> f32[4] { x }").value();
  REQUIRE(session.warnings());
  CHECK(session.warnings()->kind() == Kind::none);
  CHECK(session.warnings()->messages()[0].severity == UNISONO_SEVERITY_WARNING);
  session.eval("1").value();
  CHECK(!session.warnings());
}

TEST_CASE("whether an input is complete") {
  using unisono::completeness;
  using unisono::Completeness;
  CHECK(completeness("1 + 1") == Completeness::complete);
  CHECK(completeness("") == Completeness::complete);
  CHECK(completeness("def f(x) {") == Completeness::incomplete);
  CHECK(completeness("1 + )") == Completeness::invalid);
  CHECK(completeness(std::string(100'000, '(')) != Completeness::complete);
  CHECK(completeness("\xff\xfe") == Completeness::invalid);
}

TEST_CASE("names") {
  unisono::Engine engine;
  unisono::Session session = engine.session();
  REQUIRE(session.set("x", Value::of(std::vector<float>{1, 2, 3})));
  CHECK(session.eval("sum(x)").value().as<float>().value() == 6);
  REQUIRE(session.set("n", 4));
  CHECK(session.eval("zeros(n)").value().type() == "f32[4]");
  REQUIRE(session.set("k", 0.1));
  CHECK(session.eval("ones(2, f16) * k").value().type() == "f16[2]");
  for (const char* wrong : {"", "a b", "1x", "let", "x.y", "\xff", "x\n"})
    CHECK(session.set(wrong, 1).error().kind() == Kind::misuse);
  CHECK(session.get("nothing").error().kind() == Kind::check);
  CHECK(session.function("sum").value().signature().starts_with("sum("));
  CHECK(session.function("n").error().kind() == Kind::misuse);
  UnisonoValue* names = nullptr;
  REQUIRE(unisono_session_names(session.handle(), &names) == nullptr);
  CHECK(Value(names).type() == "(str, str, str)");
  CHECK(session.format(session.eval("[1.5, 2.0]").value()).value() ==
        "[1.5 2. ]");
}

TEST_CASE("the text of an array says where it lies if it is split") {
  unisono::Engine engine({.devices = "cpu:2"});
  unisono::Session session = engine.session();
  const auto text = [&](const char* program) {
    return session.format(session.eval(program).value()).value();
  };
  CHECK(text("pmap(fn(x) => x + 1)(arange(4))") ==
        "i32[4] split(0) over cpu:0, cpu:1\n[1 2 3 4]");
  CHECK(text("arange(4) + 1") == "[1 2 3 4]");
  CHECK(text("sum(pmap(fn(x) => x + 1)(arange(4)))") == "10");
}

TEST_CASE("print is a callback") {
  unisono::Engine engine;
  std::string printed;
  unisono::Session session = engine.session(
      {.print = [&](std::string_view lines) { printed += lines; }});
  session.eval("print(1)\nprint(\"two\")").value();
  CHECK(printed == "1\ntwo\n");
  SUBCASE("in compiled code") {
    session.eval("@jit\ndef f(x: f32) -> f32 { print(x)\nx }\nf(3f32)").value();
    CHECK(printed.find('3') != std::string::npos);
  }
  SUBCASE("without one nothing is printed") {
    unisono::Session silent = engine.session();
    silent.eval("print(1)").value();
  }
}

TEST_CASE("a callback that throws ends the program") {
  unisono::Engine engine;
  unisono::Session session = engine.session({.print = [](std::string_view) {
    throw std::runtime_error("the printer burns");
  }});
  for (const char* program :
       {"print(1)", "@jit\ndef f(x: f32) -> f32 { print(x)\nx }\nf(3f32)",
        "axis d = devices()\ndef f(x: f32) -> f32 { print(x)\nx }\n"
        "pmap(f, over=d)(ones(1))"}) {
    auto result = session.eval(program);
    REQUIRE(!result);
    CHECK(result.error().kind() == Kind::host);
    CHECK(result.error().summary() == "`print` failed: the printer burns");
  }
  CHECK(session.eval("1").value().as<int>().value() == 1);
}

TEST_CASE("a callback must not use its session") {
  unisono::Engine engine;
  std::vector<Kind> kinds;
  unisono::Session* own = nullptr;
  unisono::Session other = engine.session();
  unisono::Session session = engine.session({.print = [&](std::string_view) {
    kinds.push_back(own->eval("1").error().kind());
    kinds.push_back(own->get("sum").error().kind());
    CHECK(other.eval("2").value().as<int>().value() == 2);
  }});
  own = &session;
  session.eval("print(1)").value();
  session.eval("@jit\ndef f(x: f32) -> f32 { print(x)\nx }\nf(3f32)").value();
  CHECK(kinds == std::vector<Kind>(4, Kind::busy));
}

TEST_CASE("import is a callback") {
  unisono::Engine engine;
  std::vector<std::string> asked;
  unisono::Session session =
      engine.session({.import = [&](const std::string& path) -> std::string {
        asked.push_back(path);
        if (path == "lib/a.uni") return "let two = 2";
        throw std::runtime_error("no such thing");
      }});
  CHECK(session.eval("import \"a.uni\" as a\na.two", "lib/main.uni")
            .value()
            .as<int>()
            .value() == 2);
  CHECK(asked == std::vector<std::string>{"lib/a.uni"});
  auto result = session.eval("import \"b.uni\" as b");
  REQUIRE(!result);
  CHECK(result.error().text().find("no such thing") != std::string::npos);
}

TEST_CASE("no files unless they are granted") {
  unisono::Engine engine;
  unisono::Session session = engine.session();
  const char* path = "/tmp/unisono_embed_test.npy";
  std::remove(path);
  for (const std::string& program :
       {std::string("save(\"") + path + "\", ones(3))",
        std::string("load(\"") + path + "\")",
        std::string("load(\"") + path + "\") as f32[3]",
        std::string("exists(\"") + path + "\")",
        std::string("load(\"") + path + "\", like=ones(3))",
        std::string("read_csv(\"/tmp/unisono_embed_test.csv\")"),
        std::string("read_csv(\"/tmp/x.csv\") as (a: f32[n])"),
        std::string(
            "write_csv(\"/tmp/unisono_embed_test.csv\", (a = ones(3),))"),
        std::string("for x in batches(\"") + path + "\", 2) { print(x) }",
        std::string("visualize(ones(3), \"/tmp/unisono_embed_test.svg\")"),
        std::string("import \"/tmp/x.uni\" as x")}) {
    auto result = session.eval(program);
    REQUIRE(!result);
    CHECK(result.error().kind() == Kind::file);
    CHECK(result.error().text().starts_with("error[U0655]: "));
  }
  CHECK(!std::ifstream(path));
  unisono::Session granted = engine.session({.files = true});
  granted.eval(std::string("save(\"") + path + "\", ones(3))").value();
  CHECK(granted.eval(std::string("sum(load(\"") + path + "\"))")
            .value()
            .as<float>()
            .value() == 3);
  std::remove(path);
}

TEST_CASE("misuse is an error, too") {
  UnisonoValue* value = nullptr;
  UnisonoError* error = unisono_eval(nullptr, "1", 1, nullptr, nullptr, &value);
  CHECK(unisono_error_kind(error) == UNISONO_MISUSE);
  CHECK(std::string(unisono_error_text(error, 0))
            .starts_with("error[U0704]: the session is null\n"));
  unisono_error_release(error);
  error =
      unisono_call(nullptr, nullptr, 0, nullptr, nullptr, 0, nullptr, &value);
  CHECK(unisono_error_kind(error) == UNISONO_MISUSE);
  unisono_error_release(error);
  UnisonoEngineOptions options = UNISONO_ENGINE_OPTIONS_INIT;
  UnisonoEngine* engine = nullptr;
  for (const char* devices : {"", "cpu:0", "cpu:65", "gpu", "cpu:x"}) {
    options.devices = devices;
    error = unisono_engine_create(&options, &engine);
    CHECK(unisono_error_kind(error) == UNISONO_MISUSE);
    unisono_error_release(error);
  }
  unisono_error_release(nullptr);
  unisono_value_release(nullptr);
  unisono_engine_release(nullptr);
  unisono_session_release(nullptr);
  CHECK(unisono_error_kind(nullptr) == UNISONO_NO_ERROR);
  CHECK(unisono_abi_version() == UNISONO_ABI_VERSION);
  error = unisono_error_create(UNISONO_HOST, "mine", 4);
  CHECK(unisono_error_kind(error) == UNISONO_HOST);
  CHECK(std::string(unisono_error_summary(error)) == "mine");
  unisono_error_release(error);
}

TEST_CASE("structures of an older header") {
  struct {
    size_t struct_size;
    const char* devices;
  } old{sizeof old, "cpu:3"};
  UnisonoEngine* engine = nullptr;
  REQUIRE(unisono_engine_create(
              reinterpret_cast<const UnisonoEngineOptions*>(&old), &engine) ==
          nullptr);
  CHECK(unisono_engine_device_count(engine) == 3);
  unisono_engine_release(engine);
}

TEST_CASE("functions of the language are called where they were got") {
  for (const char* devices : {"cpu:1", "cpu:2"}) {
    CAPTURE(devices);
    unisono::Engine engine({.devices = devices});
    auto session = engine.session();
    const auto sine = session.function("sin").value();
    CHECK(sine.call({0.0}).value().as<float>().value() == 0);
    CHECK(sine.call({Value::scalar(0.5)}).value().as<double>().value() ==
          std::sin(0.5));
    CHECK(session.function("sum")
              .value()
              .call({Value::of(std::vector<float>{1, 2})})
              .value()
              .as<float>()
              .value() == 3);
    // Of the library that is written in the language, too.
    CHECK(session.function("linspace")
              .value()
              .call({0, 1, 3})
              .value()
              .as<std::vector<float>>()
              .value() == std::vector<float>{0, 0.5, 1});
    const auto pair = session.eval("(sin, (f = cos))").value();
    const auto inner = pair[1].value()["f"].value();
    for (const Value& item : {pair[0].value(), inner}) {
      UnisonoValue* result = nullptr;
      const Value x = 0.0;
      const UnisonoValue* arguments[] = {x.handle()};
      REQUIRE(unisono_call(item.handle(), arguments, 1, nullptr, nullptr, 0,
                           nullptr, &result) == nullptr);
      CHECK(Value(result).type() == "f32");
    }
    const auto typed = sine.typed<double(double)>();
    REQUIRE(typed);
    CHECK((*typed)(0.5).value() == std::sin(0.5));
    // Another session may have it.
    auto other = engine.session();
    REQUIRE(other.set("g", session.get("sin").value()));
    CHECK(other.eval("g(0f64)").value().as<double>().value() == 0);
    const auto y = other.eval("f64([0.5])").value();
    CHECK(sine.call({y}).value().as<std::vector<double>>().value() ==
          std::vector<double>{std::sin(0.5)});
  }
  // It keeps its session.
  std::optional<unisono::Function> sine;
  {
    unisono::Engine engine;
    sine = engine.session().function("sin").value();
  }
  CHECK(sine->call({0.0}).value().as<float>().value() == 0);
}

TEST_CASE("the derivative of a function of the host") {
  unisono::Engine engine({.devices = "cpu:2"});
  auto session = engine.session();
  const auto square = [](double x) { return x * x; };
  REQUIRE(session.define("def sq(x: f64) -> f64", square));
  auto result = session.eval("let f = grad(fn(x) => sq(x))\nf(3f64)");
  REQUIRE(!result);
  CHECK(result.error().kind() == Kind::check);
  const auto messages = result.error().messages();
  CHECK(std::string(messages[0].code) == "U0609");
  CHECK(std::string(messages[0].text) == "`sq` has no derivative");
  CHECK((messages[0].where.line == 1 && messages[0].where.column == 23));
  CHECK(std::string(messages[0].help).find("`@custom_jvp(rule) def sq(") !=
        std::string::npos);
  // Defined anew, with a rule.
  REQUIRE(session.define("def slope(x: f64) -> f64",
                         [](double x) { return 2 * x; }));
  REQUIRE(
      session.define("@custom_jvp(fn(x, t) => (sq(x), slope(x) * t))\n"
                     "def sq(x: f64) -> f64",
                     square));
  CHECK(session.eval("grad(fn(x) => 5.0 * sq(x))(3f64)")
            .value()
            .as<double>()
            .value() == 30);
  CHECK(session.eval("vmap(grad(sq))(f64([1, 2]))")
            .value()
            .as<std::vector<double>>()
            .value() == std::vector<double>{2, 4});
  CHECK(session.function("sq")
            .value()
            .typed<double(double)>()
            .value()(3.0)
            .value() == 9);
  // Mistakes of the rule are told where it is given.
  CHECK(session.define("@custom_jvp(nowhere) def f(x: f64) -> f64", square)
            .error()
            .kind() == Kind::check);
  CHECK(
      session
          .define("@custom_jvp(fn(x, t) => x) def f(x: f64) -> f64 = x", square)
          .error()
          .kind() == Kind::check);
  // In C.
  UnisonoError* error = unisono_define_function(
      session.handle(),
      "@custom_jvp(fn(x, t) => (cube(x), 3.0 * sq(x) * t)) "
      "def cube(x: f64) -> f64",
      0,
      [](void*, const UnisonoTensor* x, const UnisonoTensor* y, UnisonoReply*) {
        const double v = *static_cast<const double*>(x[0].data);
        *static_cast<double*>(y[0].data) = v * v * v;
      },
      nullptr, nullptr);
  REQUIRE(error == nullptr);
  CHECK(session.eval("(grad(cube)(2f64), grad(grad(cube))(2f64))")
            .value()
            .type() == "(f64, f64)");
  CHECK(session.eval("grad(grad(cube))(2f64)").value().as<double>().value() ==
        12);
}

TEST_CASE("functions of the host") {
  using unisono::View;
  unisono::Engine engine({.devices = "cpu:2"});
  auto session = engine.session();
  REQUIRE(session.define("def root(x: f32) -> f32", [](float x) {
    if (x < 0) throw std::runtime_error("a negative number");
    return std::sqrt(x);
  }));
  REQUIRE(session.define("def running(x: f32[n]) -> f32[n]",
                         [](View<const float, 1> x, View<float, 1> out) {
                           float sum = 0;
                           for (int64_t i = 0; i < x.size(); ++i)
                             out(i) = sum += x(i);
                         }));
  CHECK(session.eval("root(9f32)").value().as<float>().value() == 3);
  CHECK(session.eval("jit(fn(x) => root(x) + 1.0)(16f32)")
            .value()
            .as<float>()
            .value() == 5);
  CHECK(session.eval("vmap(root)([1.0, 4.0])")
            .value()
            .as<std::vector<float>>()
            .value() == std::vector<float>{1, 2});
  CHECK(session.eval("running(ones(3))")
            .value()
            .as<std::vector<float>>()
            .value() == std::vector<float>{1, 2, 3});
  CHECK(session
            .eval("axis d = devices()\nlet g = pmap(root, over=d)\n"
                  "g([4.0, 9.0])")
            .value()
            .as<std::vector<float>>()
            .value() == std::vector<float>{2, 3});
  SUBCASE("that throw") {
    for (const char* program : {"root(-1f32)", "jit(root)(-1f32)"}) {
      auto result = session.eval(program);
      REQUIRE(!result);
      CHECK(result.error().kind() == Kind::host);
      CHECK(result.error().text().find("a negative number") !=
            std::string::npos);
    }
    CHECK(session.eval("root(4f32)").value().as<float>().value() == 2);
  }
  SUBCASE("with effects are called once for each call") {
    int calls = 0;
    REQUIRE(session.define(
        "def tick(x: i32) -> i32",
        [&](int32_t x) {
          ++calls;
          return x;
        },
        unisono::Effect::io));
    session.eval("let a = jit(fn(x) => tick(x) + tick(x))(1i32)").value();
    CHECK(calls == 2);
  }
  SUBCASE("of other types than declared") {
    REQUIRE(session.define("def f(x: f64) -> f32", [](float x) { return x; }));
    CHECK(session.eval("f(1f64)").error().kind() == Kind::host);
    CHECK(session.define("def f(x) -> f32", [](float x) { return x; })
              .error()
              .kind() == Kind::check);
    CHECK(!session.define("let = 3", [](float x) { return x; }));
  }
  SUBCASE("that use their session") {
    Kind kind = Kind::none;
    REQUIRE(session.define("def again(x: f32) -> f32", [&](float x) {
      kind = session.eval("1").error().kind();
      return x;
    }));
    session.eval("again(1f32)").value();
    CHECK(kind == Kind::busy);
  }
}
