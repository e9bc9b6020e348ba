#include "host/inspect.h"

#include <fmt/format.h>

#include <utility>

#include "jit/ir/text.h"
#include "lang/dump.h"
#include "lang/parser.h"

namespace unisono::host {
namespace {

using Output = std::function<void(std::string_view)>;

/// Prints each compiled graph as it is after one pass.
jit::AfterPass print_pass(std::string_view after, const Output& output) {
  return [after = std::string(after), &output](std::string_view pass,
                                               const ir::Graph& graph) {
    if (pass == after) output(ir::print(graph) + "\n");
  };
}

}  // namespace

bool inspect(Session& session, std::string path, std::string text,
             std::string_view emit, std::string_view after,
             const Output& output) {
  if (emit == "tokens" || emit == "ast") {
    const lang::SourceFile& file =
        session.sources().add(std::move(path), std::move(text));
    const lang::ParseResult parsed = lang::parse(file, session.diagnostics());
    output(emit == "tokens" ? lang::dump_tokens(file)
                            : lang::dump_ast(*parsed.program));
    return parsed.ok;
  }
  const lang::Program* program =
      session.check(std::move(path), std::move(text));
  if (emit == "types") {
    output(session.evaluator().dump_types());
    return program != nullptr;
  }
  if (!program) return false;
  session.mute();
  jit::CompileObserver observer;
  if (emit == "ir") {
    observer.after_pass = print_pass(after.empty() ? "last" : after, output);
  } else {
    observer.dump = [&](const jit::CompileDump& dump) {
      output(emit == "kernels" ? dump.kernels
             : emit == "llvm"  ? dump.llvm
                               : dump.assembly);
    };
  }
  session.compiler().observe(std::move(observer));
  return session.run(*program);
}

}  // namespace unisono::host
