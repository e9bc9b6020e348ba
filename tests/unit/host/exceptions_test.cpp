// What becomes of a session when something in it throws what nobody expects:
// in the walk, at every place where it looks around, and in what the host
// gives it to call.
#include <doctest/doctest.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "host/session/session.h"
#include "runtime/check.h"
#include "tests/unit/host/simulation.h"

namespace unisono::host {
namespace {

/// A session whose walk is disturbed at a step, and whose output throws.
struct Host {
  explicit Host(bool reference = false,
                std::vector<std::unique_ptr<Device>> devices = {}) {
    SessionOptions options;
    options.cpu_devices = 3;
    options.devices = std::move(devices);
    options.reference_only = reference;
    options.disturb = &disturb;
    options.output = [this](std::string_view text) {
      if (output_throws && text.find(refused) != text.npos)
        throw std::length_error("no more lines");
      printed += text;
    };
    session.emplace(std::move(options));
  }

  bool run(const std::string& text) {
    printed.clear();
    const lang::Program* program = session->check("test.uni", text);
    return program && session->run(*program);
  }
  std::string messages() {
    const std::string text = lang::render(session->diagnostics());
    session->diagnostics().truncate(0);
    return text;
  }

  std::string printed;
  bool output_throws = false;
  std::string refused;  // then: texts that have this in them
  int steps = 0, throws_at = -1;
  std::function<void()> thrower;
  std::function<void()> disturb = [this] {
    if (steps++ == throws_at) thrower();
  };
  std::optional<Session> session;
};

const char* definitions = R"(
axis dev = devices()
type Pair[n] = (a: f32[n], b: f32)
def twice(p: Pair[n]) -> f32[n] {
  def inner(y: f32[n]) -> f32[n] = y * 2.0
  inner(p.a) + p.b
}
def count(n) {
  var s = 0
  for i in range(n) { if i > 2 { s += i } else { s -= 1 } }
  while s > 100 { s -= 7 }
  s
}
)";
const char* body = R"(
import stats
let x = arange(6, f32)
print(twice((a = x, b = 1.0)), count(5), jit(count)(40))
print([sum(x[:k + 1]) for k in unrolled(3)])
let y = pmap(fn(v) => { print("member {v}")
  psum(v, dev) }, over=dev)(reshape(x, (3, 2)))
print(y[0], stats.median(x), "{count(9):.2f}")
)";

}  // namespace

TEST_CASE(
    "exceptions in the walk are internal errors, and the session goes on") {
  struct Boom {};
  const std::function<void()> throwers[] = {
      [] { throw std::length_error("basic_string::_M_create"); },
      [] { throw std::out_of_range("map::at"); },
      [] {
        throw std::filesystem::filesystem_error(
            "cannot ask", std::make_error_code(std::errc::io_error));
      },
      [] { throw Boom{}; },
      [] { UNISONO_CHECK(1 + 1 == 3); },
      [] { throw std::bad_alloc(); },
  };
  Host host;
  REQUIRE(host.run(definitions));
  REQUIRE(host.run(body));
  const std::string expected = host.printed;
  host.steps = 0;
  REQUIRE(host.run(body));
  const int all = host.steps;
  REQUIRE(all > 200);
  int k = 0;
  for (int at = 0; at < all; at += 1 + at % 3, ++k) {
    host.steps = 0;
    host.throws_at = at;
    host.thrower = throwers[k % std::size(throwers)];
    INFO("step ", at);
    CHECK(!host.run(body));
    const std::string messages = host.messages();
    INFO(messages);
    CHECK(messages.find(k % 6 == 5 ? "error[U0504]" : "error[U0702]") !=
          std::string::npos);
    CHECK(messages.find("-->") != std::string::npos);
    CHECK(messages.find("error[", 1) == std::string::npos);  // only one
    host.throws_at = -1;
    CHECK(host.run(body));
    CHECK(host.messages() == "");
    CHECK(host.printed == expected);
  }
}

TEST_CASE("a session of which the first step throws") {
  for (int at : {0, 1, 7, 100, 1000}) {
    Host host;
    host.throws_at = at;
    host.thrower = [] { throw std::out_of_range("vector"); };
    if (!host.run(definitions))
      CHECK(host.messages().find("U0702") != std::string::npos);
    host.throws_at = -1;
    CHECK(host.run(definitions));
    CHECK(host.run(body));
    CHECK(host.messages() == "");
  }
}

TEST_CASE("a module during whose import something throws is imported later") {
  const std::string text = "import stats\nprint(stats.median(arange(5)))";
  Host whole;
  REQUIRE(whole.run("print(1)"));
  whole.steps = 0;
  REQUIRE(whole.run(text));
  const int all = whole.steps;
  for (int at = 0; at < all; at += all / 12) {
    Host host;
    REQUIRE(host.run("print(1)"));
    host.steps = 0;
    host.throws_at = at;
    host.thrower = [] { throw std::out_of_range("deque"); };
    INFO("step ", at, " of ", all);
    CHECK(!host.run(text));
    CHECK(host.messages().find("U0702") != std::string::npos);
    host.throws_at = -1;
    CHECK(host.run(text));
    CHECK(host.messages() == "");
    CHECK(host.printed == whole.printed);
  }
}

TEST_CASE("output that throws is an error where it is printed") {
  for (const bool reference : {false, true})
    for (const char* text :
         {"print(1)", "jit(fn(x) => { print(x)\n  x + 1.0 })(2.0)",
          "pmap(fn(x) => { print(x)\n  psum(x) })(arange(3))",
          "[{ print(i)\n  i } for i in range(3)]"}) {
      INFO(text);
      Host host(reference);
      host.output_throws = true;
      CHECK(!host.run(text));
      const std::string messages = host.messages();
      INFO(messages);
      CHECK(messages.find("error[U0702]: a mistake in unisono itself: "
                          "no more lines\n --> test.uni:1:") !=
            std::string::npos);
      host.output_throws = false;
      CHECK(host.run(text));
    }
}

TEST_CASE("output that throws is an error, whichever device it is of") {
  for (const bool gpus : {false, true}) {
    std::vector<std::unique_ptr<Device>> devices;
    if (gpus) devices = *testing::simulated_gpus("devices=3");
    Host host(false, std::move(devices));
    REQUIRE(host.run("axis dev = devices()"));
    host.output_throws = true;
    for (const int member : {0, 1, 2}) {
      INFO("member ", member, gpus ? " on GPUs" : " on CPUs");
      host.refused = "member " + std::to_string(member);
      CHECK(
          !host.run("pmap(fn(x) => { print(\"member {x}\")\n"
                    "psum(x) }, over=dev)(arange(3))"));
      CHECK(host.messages().find("no more lines\n --> test.uni:1:") !=
            std::string::npos);
    }
    host.output_throws = false;
    CHECK(host.run("print(pmap(fn(x) => psum(x), over=dev)(arange(3)))"));
    CHECK(host.printed == "[3 3 3]\n");
  }
}

TEST_CASE("what the host calls throws nothing") {
  Host host;
  REQUIRE(host.run(definitions));
  lang::Walk& walk = host.session->walk();
  const lang::Value count = *walk.global("count");
  const std::vector<lang::Value> arguments{lang::IntValue{5}};
  REQUIRE(walk.call_from_host(count, arguments));
  host.thrower = [] { throw std::length_error("x"); };
  host.steps = 0;
  host.throws_at = 2;
  CHECK(!walk.call_from_host(count, arguments));
  CHECK(host.messages().find("U0702") != std::string::npos);
  host.output_throws = true;
  CHECK(!walk.print(lang::IntValue{5}));
  CHECK(host.messages().find("U0702") != std::string::npos);
  walk.on_stack([] { throw std::out_of_range("of the host's own"); });
  CHECK(host.messages().find("of the host's own") != std::string::npos);
  host.output_throws = false;
  CHECK(walk.print(lang::IntValue{5}));
  CHECK(walk.call_from_host(count, arguments));
}

}  // namespace unisono::host
