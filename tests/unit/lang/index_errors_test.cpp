// What is wrong between brackets and with what is stored there: what the check
// says, and what the run says of what only running tells; and reads and writes
// of elements without memory, of arrays that were given away, and that somebody
// stops.
#include <doctest/doctest.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lang/context/walk.h"
#include "lang/syntax/parser.h"

namespace unisono::lang {
namespace {

/// A session on the reference evaluator.
struct Host {
  explicit Host(int devices = 1, int64_t memory_limit = 0)
      : runtime(devices, 1, memory_limit) {
    machine.runtime = &runtime;
    machine.reference_only = true;
    machine.performance_notes = false;
    machine.output = [this](std::string_view text) { printed += text; };
    walk = std::make_unique<Walk>(machine, sources, diagnostics);
  }

  const Program& parsed(std::string text) {
    const SourceFile& file = sources.add("test.uni", std::move(text));
    programs.push_back(parse(file, diagnostics).program);
    return *programs.back();
  }
  /// The first error, "U0370 3: text", with its line; "" if there is none.
  std::string message() {
    if (diagnostics.empty()) return "";
    const Diagnostic& first = diagnostics.all().front();
    std::string text = render(first);
    const size_t code = text.find('U'), place = text.find("test.uni:");
    std::string out = text.substr(code, 5) + " ";
    out += text.substr(place + 9, text.find(':', place + 9) - place - 9);
    out += ": " + first.message;
    diagnostics.truncate(0);
    return out;
  }
  std::string check(const std::string& text) {
    walk->check(parsed(text));
    return message();
  }
  std::string run(const std::string& text) {
    const Program& program = parsed(text);
    if (walk->check(program)) walk->run(program);
    return message();
  }
  /// The same, where the check has nothing to say.
  std::string run_alone(const std::string& text) {
    const Program& program = parsed(text);
    REQUIRE_MESSAGE(walk->check(program), render(diagnostics));
    walk->run(program);
    return message();
  }
  std::string take_printed() { return std::exchange(printed, ""); }

  Runtime runtime;
  Machine machine;
  SourceMap sources;
  Diagnostics diagnostics;
  std::vector<std::unique_ptr<Program>> programs;
  std::unique_ptr<Walk> walk;
  std::string printed;
};

struct Case {
  const char* statement;
  const char* message;
};

const std::string names =
    "let k = argmax([3, 9, 4])\nvar x = [4, 1, 3, 5, 2]\n"
    "var y = zeros(f32[2, 2])\nlet mask = y > 1.0\n"
    "let words = split(\"{x[0]} b\", \" \")\nvar t = (1, 2); var two = (1, "
    "2.5)\n";

const Case checked[] = {
    {"x[\"a\":]",
     "U0371 7: the bounds of a slice are `int`s, known when the program is "
     "compiled, not str"},
    {"x[[1, 2]:]",
     "U0371 7: the bounds of a slice are `int`s, known when the program is "
     "compiled, not i32[2]"},
    {"jit(fn(x, i) => x[i:])(x, k)",
     "U0371 7: the bounds of a slice are `int`s, known when the program is "
     "compiled, not i32"},
    {"x[range(2)]", "U0370 7: i32[5] cannot be indexed with range"},
    {"y[(0, 1), 0]", "U0370 7: f32[2, 2] cannot be indexed with (int, int)"},
    {"x[x[0] > 1]", "U0370 7: i32[5] cannot be indexed with bool"},
    {"x[x[0] > 1] = 3", "U0370 7: i32[5] cannot be indexed with bool"},
    {"x[::0]", "U0365 7: the step of a slice is 0"},
    {"x[mask] = 3", "U0369 7: too many indices for i32[5], which has rank 1"},
    {"x[[true]] = 3", "U0373 7: the mask bool[1] does not fit i32[5]"},
    {"y[0] = [[1.0, 2.0], [3.0, 4.0]]",
     "U0376 7: cannot assign f32[2, 2] to a part of shape f32[2]"},
    {"x[9223372036854775808]",
     "U0368 7: index 9223372036854775807 is out of range for axis 0 of "
     "i32[5], whose size is 5"},
    {"x[[18446744073709551615u64, 0u64]]",
     "U0368 7: index 9223372036854775807 is out of range for axis 0 of "
     "i32[5], whose size is 5"},
    // tuples, and types
    {"(1, 2)[[0]]",
     "U0377 7: a tuple is indexed by an `int`, a slice or a tuple of `int`s, "
     "not by i32[1]"},
    {"(1, 2)[1.5]",
     "U0377 7: a tuple is indexed by an `int`, a slice or a tuple of `int`s, "
     "not by f32"},
    {"(1, 2)[\"a\"]",
     "U0377 7: a tuple is indexed by an `int`, a slice or a tuple of `int`s, "
     "not by str"},
    {"(1, 2)[0, 1]",
     "U0377 7: a tuple is indexed by an `int`, a slice or a tuple of `int`s, "
     "not by several indices"},
    {"(1, 2)[...]",
     "U0377 7: a tuple is indexed by an `int`, a slice or a tuple of `int`s, "
     "not by `...`"},
    {"t[0, 1] = 5",
     "U0377 7: a tuple is indexed by an `int`, a slice or a tuple of `int`s, "
     "not by several indices"},
    {"t[k] = [1]",
     "U0377 7: a tuple is indexed by an `int`, a slice or a tuple of `int`s, "
     "not by i32"},
    {"two[k] = 1",
     "U0377 7: a tuple is indexed by an `int`, a slice or a tuple of `int`s, "
     "not by i32"},
    {"((1, 2), (\"a\",))[k]",
     "U0377 7: a tuple is indexed by an `int`, a slice or a tuple of `int`s, "
     "not by i32"},
    {"((none, none), (none, none))[k]",
     "U0377 7: a tuple is indexed by an `int`, a slice or a tuple of `int`s, "
     "not by i32"},
    {"()[k]",
     "U0377 7: a tuple is indexed by an `int`, a slice or a tuple of `int`s, "
     "not by i32"},
    {"(print, len)[k]",
     "U0377 7: a tuple is indexed by an `int`, a slice or a tuple of `int`s, "
     "not by i32"},
    {"(none, none)[k]",
     "U0377 7: a tuple is indexed by an `int`, a slice or a tuple of `int`s, "
     "not by i32"},
    {"((x[x > 1], none), (x[x > 2], none))[k]",
     "U0377 7: a tuple is indexed by an `int`, a slice or a tuple of `int`s, "
     "not by i32"},
    {"words[\"a\"]",
     "U0377 7: a tuple is indexed by an `int`, a slice or a tuple of `int`s, "
     "not by str"},
    {"f32[2][3]", "U0380 7: f32[2] cannot be indexed"},
    {"f32[1:2]", "U0379 7: a size in a type must be an `int`, not 1:2"},
    {"f32[\"a\"]", "U0379 7: a size in a type must be an `int`, not str"},
    {"f32[[1]]", "U0379 7: a size in a type must be an `int`, not i32[1]"},
    // powers, and arguments of builtins
    {"2 ** -1", "U0367 7: an integer to the power -1 is no integer"},
    {"x ** -1", "U0367 7: an integer to the power -1 is no integer"},
    {"3 ** 200", "U0304 7: `3 ** 200` does not fit 64 bits"},
    {"(-3) ** 41", "U0304 7: `(-3) ** 41` does not fit 64 bits"},
    {"y @ 2.0",
     "U0358 7: `@` needs arrays of rank 1 or more, got f32[2, 2] and f32"},
    {"zeros(3, dtype=\"float32\")",
     "U0254 7: `dtype` of `zeros` must be an element type, not str"},
    {"zeros(3, dtype=\"f\")",
     "U0254 7: `dtype` of `zeros` must be an element type such as `f32`, not "
     "str"},
    {"zeros(3, dtype=words[0])",
     "U0254 7: `dtype` of `zeros` must be an element type such as `f32`, not "
     "str"},
    {"zeros(3, dtype=f32[2])",
     "U0254 7: `dtype` of `zeros` must be an element type such as `f32`, not "
     "type"},
    {"sum(x, keepdims=words[0] == \"4\")",
     "U0255 7: `keepdims` of `sum` must be known when the program is checked"},
};

/// `n` is 1, which the check does not know: of `(a, b)[n - 1]` it knows
/// nothing.
const std::string open_names =
    "var x = [4, 1, 3, 5, 2]\n"
    "let n = len(x[x > 4])\n"
    "var y = zeros(f32[3])\nvar i = [1, 2]\n"
    "var m = [true, false]\nlet s = x[0]\n"
    "let k = argmax([3, 9, 4])\n";

const Case open_cases[] = {
    {"print(x[(2.5, 1)[n - 1]])", "U0370 8: i32[5] cannot be indexed with f32"},
    {"print(x[(2.5f32 * y[0], 1)[n - 1]])",
     "U0370 8: i32[5] cannot be indexed with f32"},
    {"y[(2.5, 1)[n - 1]] = 3.0", "U0370 8: f32[3] cannot be indexed with f32"},
    {"print(s[(s > 1, none)[n - 1]])",
     "U0370 8: i32 cannot be indexed with bool"},
    {"m[0] = (2, true)[n - 1]",
     "U0375 8: cannot assign int to elements of bool[2]"},
    {"m[0] = (2.0, true)[n - 1]",
     "U0375 8: cannot assign f32 to elements of bool[2]"},
    {"i[0] = (2.5, 3)[n - 1]",
     "U0375 8: cannot assign f32 to elements of i32[2]"},
    {"y[0] = (\"a\", true)[n - 1]",
     "U0307 8: assignment takes arrays and numbers, not str"},
    {"y[0] = (i, 3.0)[n - 1]",
     "U0376 8: cannot assign f32[2] to a part of shape f32"},
    {"print((1, 2, 3)[n:][n + 1])",
     "U0378 8: index 2 is out of range for a tuple of 2 items"},
    {"print(zeros(f32[2, n]) @ zeros(f32[len(x[x > 3]), 2]))",
     "U0360 8: `@` of f32[2, 1] and f32[2, 2]: "},
    {"print(y @ (2, y)[n - 1])",
     "U0358 8: `@` needs arrays of rank 1 or more, got f32[3] and f32"},
    {"print(x[k - 7])", "U0502 8: index -6 is out of bounds for size 5"},
    {"y[k - 7] = 3.0", "U0502 8: index -6 is out of bounds for size 3"},
    {"y[[k - 7]] = 3.0", "U0502 8: index -6 is out of bounds for size 3"},
    {"y[[k + 7]] = 3.0", "U0502 8: index 8 is out of bounds for size 3"},
    {"print(x[(~zeros(u64[1]))[0]])",
     "U0502 8: index 9223372036854775807 is out of bounds for size 5"},
    {"y[(~zeros(u64[1]))[0]] = 1.0",
     "U0502 8: index 9223372036854775807 is out of bounds for size 3"},
};

}  // namespace

TEST_CASE("the check tells what is wrong between brackets") {
  Host host;
  for (const Case& each : checked) {
    INFO(std::string(each.statement));
    const bool stores =
        std::string(each.statement).find("] = ") != std::string::npos;
    const std::string statement =
        stores ? each.statement : fmt::format("print({})", each.statement);
    CHECK(host.check(names + statement) == std::string(each.message));
  }
}

TEST_CASE("the run tells what only running shows") {
  Host host;
  for (const Case& each : open_cases) {
    INFO(std::string(each.statement));
    const std::string message = host.run_alone(open_names + each.statement);
    const std::string expected = each.message;
    CHECK(message.substr(0, expected.size()) == expected);
  }
  CHECK(host.run_alone(open_names + "i[0] = (true, 3)[n - 1]\nprint(i)") == "");
  CHECK(host.take_printed() == "[1 2]\n");
}

TEST_CASE("what was given away is nobody's, whatever it held") {
  // In functions, of which the check does not know whether they are called.
  const std::string start =
      "let give = pmap(fn(x, k) => x * k, in_axes=(0, none), donate=(\"k\",))\n"
      "def f(k) {\n  let t = (k,)\n  var held = k\n  var z = ones(f32[3])\n"
      "  give(ones(f32[1, 3]), k)\n  ";
  for (const char* given : {"[1.0, 2.0, 3.0]", "2.0 * arange(3, f32)"})
    for (const char* use :
         {"t.0[1]", "t.0[1:]", "t.0 + z", "t.0 @ z", "t.0 * 2.0", "print(t)",
          "z[0:2] = t.0[0:2]", "z[[0, 1, 2]] = t.0", "t.0[t.0 > 1.0]",
          "held[1] = 2.0", "held[0:2] = 3.0", "held[[0, 1]] = 3.0",
          "z[nonzero(t.0 > 1.0)[0]]"}) {
      INFO(std::string(given));
      INFO(std::string(use));
      Host host;
      const std::string message =
          host.run_alone(start + use + "\n}\nf(" + given + ")\n");
      CHECK(message.substr(0, 44) ==
            std::string("U0442 7: this array was given away by `donat"));
    }
}

TEST_CASE("a session that fails has again what it gave away") {
  for (const char* given : {"[1.0, 2.0, 3.0]", "2.0 * arange(3, f32)"}) {
    Host host;
    host.walk->interactive = true;
    CHECK(host.run(std::string("let k = ") + given) == "");
    CHECK(host.run("let give = pmap(fn(x, k) => x * k, in_axes=(0, none), "
                   "donate=(\"k\",))\n"
                   "def f() = give(ones(f32[1, 3]), k)") == "");
    CHECK(host.run("f()\nassert(len(args()) > 0)").substr(0, 5) == "U0550");
    CHECK(host.run("print(sum(k))") == "");
    CHECK(host.take_printed() == "6.0\n");
  }
}

namespace {

/// All memory that the devices have left.
std::vector<Buffer> all_memory(Runtime& runtime) {
  std::vector<Buffer> taken;
  for (int64_t bytes = 1 << 20; bytes > 0; bytes /= 2)
    for (Device* device : runtime.devices())
      while (auto buffer = device->allocate(bytes))
        taken.push_back(std::move(*buffer));
  return taken;
}

}  // namespace

TEST_CASE("no memory for an element, a box, a copy or a small result") {
  const std::string start =
      "var x = 1.0 * arange(6, f32)\nlet held = x\nvar c = zeros(f32[6])\n"
      "let a = reshape(x, (2, 3)) * 1.0\nlet k = argmax([3, 9, 4])\n"
      "let mask = x > 2.0\nlet w = ones(f32[64, 200]) * 1.0\n"
      "let go = pmap(fn(v) => v * 1.0, in_axes=split(0), out_axes=split(0))\n"
      "var p = go(a)\nlet kept = p\nlet b = reshape(x, (3, 2)) * 1.0\n"
      "let pair = x[:2] * 1.0\nlet tail = x[1:] * 1.0\n";
  for (const char* statement :
       {"x[1:] = tail", "print(x[1])", "print(a[k, 1:])", "p[k, 0:2] = pair",
        "print(a @ b)", "x[0] = 2.0", "c[0] = 2.0", "c[1:] = 3.0",
        "x[1:] = 3.0", "x[[0, 1]] = 2.0", "p[k, 0:2] = 7.0", "print(x + x)",
        "print(x * 2.0)", "print(sqrt(x))", "print(a @ held.reshape((3, 2)))",
        "print(x[mask])", "print(nonzero(mask))", "print(w[:, k:150])"}) {
    INFO(std::string(statement));
    Host host(2, 1 << 20);
    host.walk->interactive = true;
    REQUIRE(host.run(start) == "");
    {
      const std::vector<Buffer> taken = all_memory(host.runtime);
      const std::string message = host.run_alone(statement);
      CHECK(message.substr(0, 22) == "U0504 1: out of memory");
    }
    CHECK(host.run_alone(statement) == "");
    CHECK(host.run_alone("print(held, kept[0, 0])") == "");
    CHECK(host.take_printed().ends_with("[0. 1. 2. 3. 4. 5.] 0.0\n"));
  }
}

TEST_CASE("what stays in its file is written and read from there") {
  const std::string path =
      (std::filesystem::temp_directory_path() / "unisono_index_errors.npy")
          .string();
  const std::string load = " = load(\"" + path + "\")\n";
  Host host(1, 1 << 20);
  host.walk->interactive = true;
  REQUIRE(host.run("save(\"" + path +
                   "\", arange(6, f32))\n"
                   "let k = argmax([3, 9, 4])\nvar y = zeros(f32[9])") == "");
  {
    const std::vector<Buffer> taken = all_memory(host.runtime);
    REQUIRE(host.run("var x" + load + "let v" + load) == "");
  }
  CHECK(host.run("print(v[k:3])\nx[k:3] = 7.0\ny[k:k + 6] = v\nprint(x, y)") ==
        "");
  CHECK(host.take_printed() ==
        "[1. 2.]\n[0. 7. 7. 3. 4. 5.] [0. 0. 1. 2. 3. 4. 5. 0. 0.]\n");
  std::filesystem::remove(path);
}

TEST_CASE("who stops the search for what is true waits for no more of it") {
  // Asked to stop at each place where the walk looks, just after it has.
  Host host;
  std::atomic<bool> stop = false;
  int looked = 0, wanted = 0;
  const std::function<void()> disturb = [&] { stop = ++looked == wanted; };
  host.machine.stop = &stop;
  REQUIRE(host.run("let mask = arange(300_000) > 7\nlet all = sum(mask)") ==
          "");
  host.machine.disturb = &disturb;
  bool done = false;
  for (wanted = 1; !done; ++wanted) {
    looked = 0;
    const std::string message = host.run("print(len(nonzero(mask)[0]))");
    done = message.empty();
    if (!done) CHECK(message.substr(0, 5) == "U0505");
    stop = false;
  }
  CHECK(host.take_printed() == "299992\n");
  CHECK(wanted > 2);
}

}  // namespace unisono::lang
