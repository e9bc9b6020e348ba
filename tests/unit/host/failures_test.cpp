// A session whose programs are stopped, lose a device or make an error: after
// each it computes as before.
#include <doctest/doctest.h>

#include <atomic>
#include <random>
#include <string>
#include <thread>

#include "host/session/session.h"
#include "runtime/recorder.h"

namespace unisono::host {
namespace {

/// A session of CPU devices that collects what it prints.
struct Host {
  explicit Host(int devices, int workers = 0) {
    SessionOptions options;
    options.cpu_devices = devices;
    options.workers = workers;
    options.output = [this](std::string_view text) { printed += text; };
    options.stop = &stop;
    options.lose_device = &lose;
    options.recorder = &recorder;
    options.performance_notes = false;
    session.emplace(std::move(options));
  }

  bool run(std::string text) {
    printed.clear();
    const lang::Program* program = session->check("test.uni", std::move(text));
    return program && session->run(*program);
  }
  /// The latest message.
  std::string message() { return lang::render(session->diagnostics().last()); }

  std::string printed;
  std::atomic<bool> stop{false};
  /// Asked before each instruction of a device, if it is set.
  std::function<bool(int)> fault;
  std::function<bool(int)> lose = [this](int device) {
    return fault && fault(device);
  };
  Recorder recorder{true};
  std::optional<Session> session;
};

const char* definitions = R"(
axis dev = devices()
def f(x, k) {
  var y = x
  for i in range(20) { y = y + 0.001 * psum(sum(y), dev) - k // (k - 7) }
  y
}
let g = pmap(f, over=dev, in_axes=(0, none))
let x = reshape(arange(40, f32), (10, 4))
)";

}  // namespace

TEST_CASE("200 sessions' statements that fail, each with one that computes") {
  std::mt19937 random(3);
  Host host(5, 3);
  REQUIRE(host.run(definitions));
  REQUIRE(host.run("print(sum(g(x, 1i32), axis=0))"));
  const std::string expected = host.printed;
  int failed = 0;
  for (int i = 0; i < 200; ++i) {
    const int moment = static_cast<int>(random() % 300);
    const int lost = static_cast<int>(random() % 5);
    std::atomic<int> asked{0};
    std::string text = "print(sum(g(x, 1i32), axis=0))";
    std::string code;
    switch (random() % 3) {
      case 0:
        host.fault = [&](int device) {
          return ++asked > moment && device == lost;
        };
        code = "U0506";
        break;
      case 1:
        host.fault = [&](int) {
          if (++asked > moment) host.stop = true;
          return false;
        };
        code = "U0505";
        break;
      default: text = "print(sum(g(x, 7i32), axis=0))"; code = "U0501";
    }
    const bool ok = host.run(text);
    host.fault = nullptr;
    host.stop = false;
    if (!ok) {
      ++failed;
      const std::string message = host.message();
      CHECK_MESSAGE(message.find("[" + code + "]") != std::string::npos,
                    message);
      if (code == "U0506")
        CHECK(message.find("cpu:" + std::to_string(lost)) != std::string::npos);
      if (code == "U0501")
        CHECK(message.find("on cpu:0, member 0") != std::string::npos);
      CHECK(host.printed.empty());
    }
    REQUIRE(host.run("print(sum(g(x, 1i32), axis=0))"));
    REQUIRE(host.printed == expected);
  }
  CHECK(failed > 120);
}

TEST_CASE("a stop from another thread ends any statement") {
  std::mt19937 random(4);
  Host host(3);
  REQUIRE(host.run(R"(
axis dev = devices()
def f(x) {
  var y = x
  while psum(y, dev) > 0.0 { y = y + 1.0 }
  y
}
let g = pmap(f, over=dev)
def endless(x) {
  var y = x
  while y > 0.0 { y = y + 1.0 }
  y
}
)"));
  for (const char* text :
       {"g(ones(f32[3]))", "g(ones(f32[6]))", "pmap(endless)(ones(f32[6]))",
        "jit(endless)(1.0)", "var i = 1\nwhile i > 0 { i += 1 - 1 }"}) {
    for (int turn = 0; turn < 5; ++turn) {
      std::thread stopper([&, wait = random() % 20] {
        std::this_thread::sleep_for(std::chrono::milliseconds(wait));
        host.stop = true;
      });
      const bool ok = host.run(text);
      stopper.join();
      CHECK(!ok);
      CHECK(host.message().find("U0505") != std::string::npos);
      host.stop = false;
      REQUIRE(host.run("print(sum(pmap(fn(x) => x + 1.0)(ones(f32[6]))))"));
      REQUIRE(host.printed == "12.0\n");
    }
  }
}

TEST_CASE("a donated array's memory holds the result") {
  constexpr int64_t block = int64_t{1} << 22;  // bytes of each of 4 blocks
  auto peak = [](const char* donate) {
    Host host(4);
    // Made and used twice, so that what is kept between calls is there.
    const std::string text = std::string(R"(
let make = pmap(fn(i) => zeros(f32[1024, 1024]) + i, out_axes=0)
let step = pmap(fn(x) => 0.5 * x + 1.0)") +
                             donate + R"()
var x = make(arange(4, f32))
for i in range(4) { x = step(x) }
print(x[3, 0, 0])
)";
    REQUIRE(host.run(text));
    CHECK(host.printed == "2.0625\n");
    int64_t most = 0;
    for (const Device* device : host.session->runtime().devices())
      most = std::max(most, device->peak_bytes());
    return most;
  };
  const int64_t kept = peak("");
  const int64_t donated = peak(", donate=(0,)");
  CHECK(kept >= 2 * block);
  CHECK(donated < 2 * block);
  CHECK(donated >= block);
}

TEST_CASE("an array that something else holds is not overwritten") {
  Host host(4);
  REQUIRE(host.run(R"(
let place = pmap(fn(x) => x, out_axes=0)
let step = pmap(fn(x) => 0.5 * x + 1.0, donate=(0,))
let x = place(arange(8, f32))
let same = place(x)
let y = step(x)
print(same)
print(y)
)"));
  CHECK(host.printed ==
        "[0. 1. 2. 3. 4. 5. 6. 7.]\n"
        "[1.  1.5 2.  2.5 3.  3.5 4.  4.5]\n");
}

TEST_CASE("placement moves what differs, and nothing else") {
  Host host(4);
  REQUIRE(host.run(R"(
axis dev = devices()
let rows = pmap(fn(x) => x * 2.0, in_axes=split(0), out_axes=split(0))
let columns = pmap(fn(x) => x * 2.0, in_axes=split(1), out_axes=split(1))
var x = rows(ones(f32[8, 16]))
)"));
  using Kind = Recorder::Kind;
  auto copied = [&] {
    int64_t bytes = 0;
    for (const auto& [pair, total] : host.recorder.copies())
      bytes += total.bytes;
    return bytes;
  };
  int64_t before = copied();
  REQUIRE(host.run("for i in range(5) { x = rows(x) }"));
  CHECK(copied() == before);
  // Elements of arrays outside maps, where they lie: compiled and small ones.
  REQUIRE(host.run("let y = (x + 1.0) * 2.0\nlet z = sum(y, axis=1)"));
  CHECK(host.session->walk().global("z"));
  CHECK(host.recorder.total(Kind::collective, 0).count == 0);
  // A reduction over the split axis: of each device its partial results.
  REQUIRE(host.run("let w = rows(ones(f32[4096, 16]))"));
  before = copied();
  REQUIRE(host.run("let total = sum(w)\nprint(total == 131072.0)"));
  CHECK(host.printed == "true\n");
  CHECK(copied() - before < 100);
  // From rows to columns each device gets three blocks of 2 x 4 from others,
  // and takes one of its own.
  before = copied();
  const auto pairs_before = host.recorder.copies();
  REQUIRE(host.run("let c = columns(x)"));
  CHECK(copied() - before == 8 * 16 * 4);
  auto pairs = host.recorder.copies();
  for (int from = 0; from < 4; ++from)
    for (int to = 0; to < 4; ++to) {
      auto old = pairs_before.find({from, to});
      CHECK(pairs[{from, to}].bytes -
                (old == pairs_before.end() ? 0 : old->second.bytes) ==
            2 * 4 * 4);
    }
  // A row is one copy, of its own bytes.
  auto rows_before = host.recorder.copies();
  REQUIRE(host.run("let row = x[5]"));
  pairs = host.recorder.copies();
  CHECK(pairs[{2, 0}].count - rows_before[{2, 0}].count == 1);
  CHECK(pairs[{2, 0}].bytes - rows_before[{2, 0}].bytes == 64);
}

}  // namespace unisono::host
