#include "host/inspect.h"

#include <fmt/format.h>

#include <charconv>
#include <utility>

#include "jit/ir/text.h"
#include "jit/target_nvptx.h"
#include "lang/dump.h"
#include "lang/parser.h"

namespace unisono::host {
namespace {

using Output = std::function<void(std::string_view)>;

/// One line of printed IR with the place that its `@source` stands for: `@7:3`
/// in the program, `@<stdlib>/array.uni:12:5` elsewhere.
std::string with_place(std::string_view line, Session& session,
                       const lang::SourceFile* program) {
  const size_t at = line.rfind(" @");
  uint32_t id = 0;
  if (at == std::string_view::npos) return std::string(line);
  const char* end = line.data() + line.size();
  const auto [stop, problem] = std::from_chars(line.data() + at + 2, end, id);
  const lang::Span where = problem == std::errc() && stop == end
                               ? session.sources().span(id)
                               : lang::Span();
  if (!where) return std::string(line);
  const auto place = where.file->place(where.begin);
  const std::string text = where.file == program
                               ? fmt::format("{}:{}", place.line, place.column)
                               : lang::to_string(where);
  return fmt::format("{} @{}", line.substr(0, at), text);
}

std::string print_ir(const ir::Graph& graph, Session& session,
                     const lang::SourceFile* program) {
  const std::string text = ir::print(graph);
  std::string out;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    out += with_place(std::string_view(text).substr(begin, end - begin),
                      session, program) +
           "\n";
    begin = end + 1;
  }
  return out;
}

}  // namespace

bool inspect(Session& session, std::string path, std::string text,
             std::string_view emit, std::string_view after, int capability,
             const Output& output) {
  if (emit == "tokens" || emit == "ast") {
    const lang::SourceFile& file =
        session.sources().add(std::move(path), std::move(text));
    const lang::ParseResult parsed = lang::parse(file, session.diagnostics());
    output(emit == "tokens" ? lang::dump_tokens(file)
                            : lang::dump_ast(*parsed.program));
    return parsed.ok;
  }
  session.evaluator().keep_types = emit == "types";
  const lang::Program* program =
      session.check(std::move(path), std::move(text));
  if (emit == "types") {
    output(session.evaluator().dump_types());
    return program != nullptr;
  }
  if (!program) return false;
  session.mute();
  int graphs = 0;
  const auto show = [&](std::string_view stage) {
    output(fmt::format("{}# graph {}\n{}", graphs == 0 ? "" : "\n", graphs + 1,
                       stage));
    ++graphs;
  };
  jit::CompileObserver observer;
  if (emit == "ir") {
    observer.after_pass = [&](std::string_view pass, const ir::Graph& graph) {
      if (pass == after) show(print_ir(graph, session, program->file));
    };
  } else {
    if (capability == 0 && (emit == "nvvm" || emit == "ptx"))
      capability = jit::newest_capability;
    if (capability) observer.capability = jit::code_capability(capability);
    observer.dump = [&](const jit::CompileDump& dump) {
      show(emit == "kernels"                  ? dump.kernels
           : emit == "llvm" || emit == "nvvm" ? dump.llvm
                                              : dump.assembly);
    };
  }
  session.compiler().observe(std::move(observer));
  const bool ok = session.run(*program);
  session.compiler().observe({});
  if (ok && graphs == 0)
    output(
        "# nothing was compiled: small work at the top level needs no "
        "compiler\n");
  return ok;
}

}  // namespace unisono::host
