// Errors of the machine that no program can bring about: what they become.
#include <doctest/doctest.h>

#include <string>

#include "lang/context/walk.h"

namespace unisono::lang {
namespace {

std::string message_of(const Error& error) {
  Runtime runtime(2, 1);
  Machine machine;
  machine.runtime = &runtime;
  SourceMap sources;
  Diagnostics diagnostics;
  Walk walk(machine, sources, diagnostics);
  const SourceFile& file = sources.add("lost.uni", "print(1)\n");
  try {
    walk.fail(error, {&file, 6, 7});
  } catch (const Failure& failure) {
    return render(failure.diagnostic);
  }
}

TEST_CASE("a lost device is named") {
  Error error{Error::Kind::device_lost, "cpu:1 does not answer"};
  error.device = 1;
  CHECK(message_of(error) ==
        "error[U0506]: cpu:1 does not answer\n"
        " --> lost.uni:1:7\n"
        "  |\n"
        "1 | print(1)\n"
        "  |       ^\n"
        "  |\n"
        "  = on cpu:1\n");
}

TEST_CASE("a compilation that fails says where") {
  const Error error{Error::Kind::compile_failed, "a kernel has no code"};
  CHECK(message_of(error) ==
        "error[U0507]: a kernel has no code\n"
        " --> lost.uni:1:7\n"
        "  |\n"
        "1 | print(1)\n"
        "  |       ^\n");
}

}  // namespace
}  // namespace unisono::lang
