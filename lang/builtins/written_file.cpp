#include "lang/builtins/written_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "lang/context/processes.h"
#include "lang/context/walk.h"
#include "runtime/files/file.h"
#include "runtime/files/unfinished_file.h"

namespace unisono::lang {

void require_files(Walk& walk, std::string_view function, Span where) {
  if (!walk.machine().files)
    walk.fail(diagnostic(Code::no_file_access, where, function));
}

std::optional<std::string> any_path_argument(Walk& walk,
                                             const CallArgument& path,
                                             std::string_view parameter,
                                             std::string_view function) {
  const auto* text = path.value.get_if<StrValue>();
  if (!text)
    walk.fail(diagnostic(Code::wrong_argument, path.where,
                         fmt::format("`{}` of `{}`", parameter, function),
                         "a `str`", type_name(path.value)));
  return text->value;
}

std::optional<std::string> path_argument(
    Walk& walk, const CallArgument& path, std::string_view parameter,
    std::string_view function,
    std::initializer_list<std::string_view> endings) {
  const auto text = any_path_argument(walk, path, parameter, function);
  if (!text) return std::nullopt;
  const bool fits = std::ranges::any_of(endings, [&](std::string_view ending) {
    return text->ends_with(ending);
  });
  if (fits) return text;
  std::string expected;
  size_t left = endings.size();
  for (const std::string_view ending : endings) {
    const bool last = --left == 0;
    expected += fmt::format("{}`{}`",
                            expected.empty() ? ""
                            : last           ? " or "
                                             : ", ",
                            ending);
  }
  Diagnostic d = diagnostic(Code::file_kind, path.where, function, expected,
                            fmt::format("{:?}", *text));
  if (function == "load")
    d.set_help("text is `read_text(path)`, a table `read_csv(path)`");
  if (function == "save")
    d.set_help(
        "text is written by `write_text(path, text)`, a table by "
        "`write_csv(path, columns)`");
  walk.fail(std::move(d));
}

void refuse_in_compiled_code(const BuiltinCall& call, std::string_view help) {
  if (!call.walk.in_compiled_code()) return;
  call.walk.fail(
      diagnostic(Code::not_in_compiled_code, call.where, call.builtin.name)
          .set_help(std::string(help)));
}

void fail_unknown_file(const BuiltinCall& call, const CallArgument& path,
                       std::string_view type) {
  Walk& walk = call.walk;
  const auto& text = path.value.get_if<StrValue>()->value;
  const std::string form = fmt::format("{} as {}", call.where.text(), type);
  if (text && !walk.written_files.contains(*text))
    walk.fail(diagnostic(Code::cannot_read, path.where,
                         fmt::format("{:?}", *text), "there is no such file")
                  .add_fact("a path is relative to the current directory")
                  .set_help(fmt::format(
                      "correct the path; for a file that is written before "
                      "this runs, say what it will hold: `{}`",
                      form)));
  const std::string file = text ? fmt::format("{:?}", *text)
                                : std::string("a file whose path is computed");
  walk.fail(diagnostic(Code::file_type_unknown, path.where, file)
                .set_help(fmt::format("say what it will hold: `{}`", form)));
}

void cannot_read(Walk& walk, const std::string& path, const Error& error,
                 Span where) {
  if (error.kind == Error::Kind::cancelled) walk.fail(error, where);
  walk.fail(diagnostic(Code::cannot_read, where, fmt::format("{:?}", path),
                       error.message));
}

void cannot_write(Walk& walk, const std::string& path, const Error& error,
                  Span where) {
  if (error.kind == Error::Kind::cancelled) walk.fail(error, where);
  walk.fail(diagnostic(Code::cannot_write, where, fmt::format("{:?}", path),
                       error.message));
}

void write_file(Walk& walk, const std::string& path, std::string_view bytes,
                Span where) {
  sweep_beside(walk, path);
  const Status written =
      write_once(walk, where, [&] { return write_text(path, bytes); });
  if (!written) cannot_write(walk, path, written.error(), where);
}

void sweep_beside(Walk& walk, const std::string& path) {
  const Cluster* cluster = cluster_of(walk);
  if (cluster && cluster->process() > 0) return;
  const std::string folder = std::filesystem::path(path).parent_path().string();
  const std::string name = folder.empty() ? "." : folder;
  if (walk.swept_folders.insert(name).second) remove_abandoned(name);
}

}  // namespace unisono::lang
