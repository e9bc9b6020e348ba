#include "host/session/inspect.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <system_error>
#include <utility>

#include "jit/ir/text.h"
#include "jit/pipeline.h"
#include "jit/target/nvptx.h"
#include "lang/syntax/dump.h"
#include "lang/syntax/parser.h"
#include "runtime/check.h"
#include "runtime/files/file.h"
#include "runtime/stop.h"

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

/// How the text of a stage is shown.
struct Stage {
  std::string_view name, comment, extension;
  /// Several graphs are no module of the language.
  bool is_code;
};
constexpr Stage stages[] = {
    {"tokens", "#", "txt", false},  {"ast", "#", "txt", false},
    {"types", "#", "txt", false},   {"ir", "#", "ir", false},
    {"kernels", "#", "txt", false}, {"llvm", ";", "ll", true},
    {"asm", "#", "s", true},        {"nvvm", ";", "ll", true},
    {"ptx", "//", "ptx", true},
};

const Stage& stage_of(std::string_view name) {
  const auto* found = std::ranges::find(stages, name, &Stage::name);
  CHECK(found != std::end(stages));
  return *found;
}

struct ShownGraph {
  std::string function;  // that it comes from, if it is a definition's
  lang::Span where;      // else the statement
  std::string text;
};

/// The graphs that are compiled, in order.
class Graphs {
 public:
  Graphs(Session& session, const lang::Program& program, const Stage& stage)
      : session_(session), program_(program), stage_(stage) {}

  /// Watches compilations as the options say.
  void observe(const InspectOptions& options) {
    jit::CompileObserver observer;
    observer.after_pass = [this, after = options.after, ir = is_ir()](
                              std::string_view pass, const ir::Graph& graph) {
      if (pass == jit::pass_names().back()) name(graph);
      if (ir && pass == after) add(print_ir(graph, session_, program_.file));
      if (ir && pass == jit::pass_names().back()) close();
    };
    int capability = options.capability;
    const bool gpu = stage_.name == "nvvm" || stage_.name == "ptx";
    if (gpu && capability == 0) capability = jit::newest_capability;
    if (capability) observer.capability = jit::code_capability(capability);
    // What has ready-made kernels alone is an empty module, which is one, too.
    const std::string empty =
        stage_.name == "ptx"
            ? fmt::format(".version 7.0\n.target sm_{}\n.address_size 64\n",
                          jit::code_capability(capability))
            : "";
    observer.wants_llvm = stage_.name == "llvm" || stage_.name == "nvvm";
    observer.wants_assembly = stage_.name == "asm" || stage_.name == "ptx";
    if (!is_ir())
      observer.dump = [this, empty](const jit::CodeText& dump) {
        add(stage_.name == "kernels" ? dump.kernels
            : !dump.llvm.empty()     ? dump.llvm
            : dump.assembly.empty()  ? empty
                                     : dump.assembly);
        close();
      };
    session_.compiler().observe(std::move(observer));
  }

  /// The definition that is compiled from now on; null: statements are.
  void set_definition(const lang::DefStmt* definition) {
    definition_ = definition;
  }
  void leave_out(const lang::DefStmt& definition, const std::string& why) {
    left_out_.push_back(fmt::format("{}: `{}` is not shown: {}",
                                    lang::to_string(definition.name.span),
                                    definition.name.text, why));
  }

  /// Gives them out as the options say; an error if that is not possible.
  /// Not `given_well`: a mistake in the options is reported, which says enough.
  Status show(const InspectOptions& options, bool given_well,
              const Output& output) const {
    if (options.folder) return write(*options.folder);
    std::vector<size_t> chosen;
    for (size_t i = 0; i < graphs_.size(); ++i)
      if (!options.graph || *options.graph == std::to_string(i + 1) ||
          *options.graph == graphs_[i].function)
        chosen.push_back(i);
    if (options.graph && chosen.empty())
      return Error{Error::Kind::io,
                   fmt::format("there is no graph `{}` of {}", *options.graph,
                               graphs_.size())};
    const bool cut = stage_.is_code && chosen.size() > 1;
    if (cut) {
      for (size_t i : chosen) line(title(i), output);
      line(
          "a file is one module: this is the first of these; `--graph N` "
          "shows another, `--out FOLDER` writes each to a file",
          output);
      chosen.resize(1);
    }
    for (size_t i : chosen) {
      if (i != chosen[0]) output("\n");
      line(title(i), output);
      output(graphs_[i].text);
    }
    if (chosen.empty() && given_well)
      line("nothing is compiled: small work at the top level needs no compiler",
           output);
    for (const std::string& text : left_out_) line(text, output);
    return Unit{};
  }

 private:
  bool is_ir() const { return stage_.name == "ir"; }

  std::string title(size_t i) const {
    const ShownGraph& graph = graphs_[i];
    std::string out = fmt::format("graph {}", i + 1);
    if (!graph.function.empty()) out += fmt::format(" of `{}`", graph.function);
    if (graph.where) {
      const auto place = graph.where.file->place(graph.where.begin);
      out += fmt::format(" at {}:{}", place.line, place.column);
    }
    return out;
  }
  void line(std::string_view text, const Output& output) const {
    output(fmt::format("{} {}\n", stage_.comment, text));
  }

  /// What the graph of the next text is called: where its first operation
  /// stands in the program.
  void name(const ir::Graph& graph) {
    next_ = {};
    if (definition_) next_.where = definition_->name.span;
    for (const ir::Node& node : graph.nodes) {
      const lang::Span where = session_.sources().span(node.source);
      if (next_.where || node.op == ir::Op::input) continue;
      if (where && where.file == program_.file) next_.where = where;
    }
    for (const lang::StmtPtr& stmt : program_.statements) {
      if (!next_.where || stmt->kind != lang::StmtKind::DefStmt ||
          next_.where.begin < stmt->span.begin ||
          next_.where.begin >= stmt->span.end)
        continue;
      const auto& def = static_cast<const lang::DefStmt&>(*stmt);
      next_.function = def.name.text;
      next_.where = def.name.span;
    }
  }
  void add(std::string text) { text_ = std::move(text); }
  /// The name is known after the last pass alone, the text maybe before.
  void close() {
    next_.text = std::move(text_);
    graphs_.push_back(std::move(next_));
    next_ = {};
  }

  Status write(const std::string& folder) const {
    std::error_code failed;
    std::filesystem::create_directories(folder, failed);
    if (failed)
      return Error{Error::Kind::io,
                   fmt::format("`{}`: {}", folder, failed.message())};
    for (size_t i = 0; i < graphs_.size(); ++i) {
      const std::string path =
          fmt::format("{}/graph{}.{}", folder, i + 1, stage_.extension);
      const std::string text =
          fmt::format("{} {}\n{}", stage_.comment, title(i), graphs_[i].text);
      if (Status done = write_text(path, text); !done) {
        Error error = done.error();
        error.message = fmt::format("`{}`: {}", path, error.message);
        return error;
      }
    }
    return Unit{};
  }

  Session& session_;
  const lang::Program& program_;
  const Stage& stage_;
  const lang::DefStmt* definition_ = nullptr;
  std::string text_;
  ShownGraph next_;
  std::vector<ShownGraph> graphs_;
  std::vector<std::string> left_out_;
};

bool show_syntax(Session& session, std::string path, std::string text,
                 bool tokens, const Output& output) {
  const lang::SourceFile& file =
      session.sources().add(std::move(path), std::move(text));
  const lang::ParseResult parsed =
      lang::parse_as_written(file, session.diagnostics());
  try {
    output(tokens ? lang::dump_tokens(file) : lang::dump_ast(*parsed.program));
  } catch (const Stopped&) {
    // Else the parser has said so.
    if (parsed.ok)
      session.diagnostics().report(lang::Code::cancelled, {&file, 0, 1});
    return false;
  }
  return parsed.ok;
}

}  // namespace

std::vector<std::string_view> stage_names() {
  std::vector<std::string_view> out;
  for (const Stage& stage : stages) out.push_back(stage.name);
  return out;
}

bool is_stage(std::string_view emit) {
  return std::ranges::find(stages, emit, &Stage::name) != std::end(stages);
}

bool inspect(Session& session, std::string path, std::string text,
             const InspectOptions& options, const Output& output) {
  if (options.emit == "tokens" || options.emit == "ast")
    return show_syntax(session, std::move(path), std::move(text),
                       options.emit == "tokens", output);
  session.walk().keep_types = options.emit == "types";
  const lang::Program* program =
      session.check(std::move(path), std::move(text));
  if (options.emit == "types") {
    output(session.walk().dump_types());
    return program != nullptr;
  }
  if (!program) return false;
  session.mute();
  return inspect_program(session, *program, options, output);
}

bool inspect_program(Session& session, const lang::Program& program,
                     const InspectOptions& options, const Output& output) {
  Graphs graphs(session, program, stage_of(options.emit));
  graphs.observe(options);
  std::optional<lang::Value> last;
  const bool ran = session.run(program, options.keep_value ? &last : nullptr);
  const bool given_well =
      !session.runs_nothing() ||
      session.walk().compile_definitions(
          program, options.types,
          [&](const lang::DefStmt& def) { graphs.set_definition(&def); },
          [&](const lang::DefStmt& def, const std::string& why) {
            graphs.leave_out(def, why);
          });
  session.compiler().observe({});
  if (const Status shown = graphs.show(options, given_well, output); !shown) {
    session.diagnostics().report(lang::Code::cannot_write, {}, "what is shown",
                                 shown.error().message);
    return false;
  }
  return ran && given_well;
}

}  // namespace unisono::host
