#include "lang/builtins/written_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "lang/context/walk.h"
#include "runtime/files/file.h"
#include "runtime/files/unfinished_file.h"

namespace unisono::lang {

void require_files(Walk& walk, std::string_view function, Span where) {
  if (!walk.machine().files)
    walk.fail(diagnostic(Code::no_file_access, where, function));
}

std::optional<std::string> path_argument(
    Walk& walk, const CallArgument& path, std::string_view parameter,
    std::string_view function,
    std::initializer_list<std::string_view> endings) {
  const auto* text = path.value.get_if<StrValue>();
  if (!text)
    walk.fail(diagnostic(Code::wrong_argument, path.where,
                         fmt::format("`{}` of `{}`", parameter, function),
                         "a `str`", type_name(path.value)));
  if (!text->value) return std::nullopt;
  const bool fits = std::ranges::any_of(endings, [&](std::string_view ending) {
    return text->value->ends_with(ending);
  });
  if (fits) return *text->value;
  std::string expected;
  for (const std::string_view ending : endings)
    expected += fmt::format("{}`{}`", expected.empty() ? "" : " or ", ending);
  walk.fail(diagnostic(Code::file_kind, path.where, function, expected,
                       fmt::format("{:?}", *text->value)));
}

void refuse_in_compiled_code(const BuiltinCall& call, std::string_view help) {
  if (!call.walk.in_compiled_code()) return;
  call.walk.fail(
      diagnostic(Code::not_in_compiled_code, call.where, call.builtin.name)
          .set_help(std::string(help)));
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
  if (const Status written = write_text(path, bytes); !written)
    cannot_write(walk, path, written.error(), where);
}

void sweep_beside(Walk& walk, const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  const std::string name = folder.empty() ? "." : folder;
  if (walk.swept_folders.insert(name).second) remove_abandoned(name);
}

}  // namespace unisono::lang
