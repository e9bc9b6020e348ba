// Any bytes: the parser answers with a program or with located errors, its
// messages can be shown, and what parses survives the formatter.
//
//   cmake --build build --target fuzz_parser
//   build/fuzz_parser -dict=tests/fuzz/parser.dict NEW tests/fuzz/corpus
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/unit/lang/format_check.h"

using namespace unisono::lang;

namespace {

void require(bool condition, const std::string& what) {
  if (condition) return;
  std::fprintf(stderr, "%s\n", what.c_str());
  std::abort();
}

bool is_inert(const std::string& text) {
  for (const char c : text)
    if (static_cast<uint8_t>(c) < 0x20 && c != '\n') return false;
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const SourceFile file("fuzz.uni", text);
  Diagnostics diagnostics;
  const ParseResult result = parse(file, diagnostics);
  require(result.program != nullptr, "no program");
  require(result.ok == !diagnostics.has_errors(), "ok is wrong");
  require(!result.incomplete || diagnostics.has_errors(),
          "silently incomplete");
  require(diagnostics.error_count() <= 42, "too many errors");
  for (const Diagnostic& d : diagnostics.all()) {
    require(d.where.file == &file && d.where.begin <= d.where.end &&
                d.where.end <= size,
            "a message is nowhere");
  }
  require(is_inert(render(diagnostics)), "a message is not inert");
  dump_tokens(file);
  dump_ast(*result.program);
  const std::string fault = testing::format_fault(text);
  require(fault.empty(), fault);
  return 0;
}
