// Arrays in files: .npy, .npz.
#include <fmt/format.h>

#include <filesystem>

#include "lang/builtins/load.h"
#include "lang/builtins/written_file.h"
#include "lang/context/call_of.h"
#include "lang/ops/builtin_arguments.h"
#include "lang/ops/operators.h"
#include "runtime/files/npz.h"

namespace unisono::lang {
namespace {

bool is_archive(std::string_view path) { return path.ends_with(".npz"); }

/// A path that ends in .npy or .npz; nothing where it is not known yet.
std::optional<std::string> array_path(Walk& walk, const CallArgument& path,
                                      std::string_view function) {
  return path_argument(walk, path, "path", function, {".npy", ".npz"});
}

[[noreturn]] void cannot_read(Walk& walk, const std::string& path,
                              const Error& error, Span where) {
  if (error.kind == Error::Kind::cancelled) walk.fail(error, where);
  walk.fail(diagnostic(Code::cannot_read, where, fmt::format("{:?}", path),
                       error.message));
}

ArrayValue array_of(Walk& walk, const NpyHeader& header) {
  ir::Type type{header.dtype, {}};
  for (int64_t size : header.shape) type.shape.emplace_back(size);
  return walk.unknown_array(std::move(type));
}

ArrayValue array_of(Walk& walk, const HostData& data, Span where) {
  Device& device = *walk.machine().runtime->devices()[0];
  auto array =
      array_from_host(device, data.dtype, data.shape, data.bytes.data());
  if (!array) walk.fail(array.error(), where);
  return walk.from_array(std::move(*array));
}

constexpr std::string_view files_outside =
    "read before the map and pass the array as an argument; save what it "
    "returns";

}  // namespace

std::optional<Value> loaded_type(Walk& walk, const CallArgument& path) {
  require_files(walk, "load", path.where);
  const auto known = array_path(walk, path, "load");
  if (!known) return std::nullopt;
  if (const auto written = walk.written_files.find(*known);
      written != walk.written_files.end())
    return written->second;
  std::error_code ignored;
  if (!std::filesystem::exists(*known, ignored)) return std::nullopt;
  if (!is_archive(*known)) {
    auto header = read_npy_header(*known);
    if (!header) cannot_read(walk, *known, header.error(), path.where);
    return array_of(walk, *header);
  }
  auto entries = read_npz_index(*known);
  if (!entries) cannot_read(walk, *known, entries.error(), path.where);
  std::vector<std::pair<std::string, Value>> fields;
  for (const NpzEntry& entry : *entries)
    fields.emplace_back(entry.name, array_of(walk, entry.header));
  return make_record(std::move(fields));
}

Value builtin_load(CallOf<"load">& call) {
  Walk& walk = call.walk;
  const Span where = call["path"].where();
  require_files(walk, call.builtin.name, call.where);
  refuse_in_compiled_code(call, files_outside);
  if (walk.mode() == Mode::check) {
    if (auto type = loaded_type(walk, call["path"])) return *type;
    const auto& text = call["path"].value().get_if<StrValue>()->value;
    if (text)
      walk.fail(
          diagnostic(Code::cannot_read, where, fmt::format("{:?}", *text),
                     "there is no such file")
              .add_fact("a path is relative to the current directory")
              .set_help(fmt::format(
                  "correct the path; for a file that is written before this "
                  "runs, say what it will hold: `{} as f32[n, 3]`",
                  call.where.text())));
    const std::string path = "a file whose path is computed";
    walk.fail(
        diagnostic(Code::file_type_unknown, where, path)
            .set_help(fmt::format("say what it will hold: `{} as f32[n, 3]`",
                                  call.where.text())));
  }
  if (walk.machine().compile_only) {
    if (auto type = loaded_type(walk, call["path"]))
      return walk.with_absent(*type);
    walk.fail_needs_run(call.where);
  }
  const std::string path = *array_path(walk, call["path"], "load");
  if (!is_archive(path)) {
    auto data = read_npy(path);
    if (!data) cannot_read(walk, path, data.error(), where);
    return array_of(walk, *data, call.where);
  }
  auto arrays = read_npz(path);
  if (!arrays) cannot_read(walk, path, arrays.error(), where);
  std::vector<std::pair<std::string, Value>> fields;
  for (const auto& [name, data] : *arrays)
    fields.emplace_back(name, array_of(walk, data, call.where));
  return make_record(std::move(fields));
}

namespace {

/// What a file that is written holds when it is read, if all sizes are known.
std::optional<Value> written_type(Walk& walk, const Value& value) {
  bool concrete = true;
  Value type = map_leaves(value, [&](const Value& leaf) -> Value {
    const ArrayValue array = walk.to_array(leaf, {}, "a saved value");
    concrete &= array->type.is_concrete();
    return walk.unknown_array(array->type);
  });
  if (!concrete) return std::nullopt;
  return type;
}

HostData host_data(Walk& walk, const ArrayValue& array, Span where) {
  return {array->type.dtype, array->type.sizes(),
          walk.host_bytes(array, where)};
}

}  // namespace

Value builtin_save(CallOf<"save">& call) {
  Walk& walk = call.walk;
  require_files(walk, call.builtin.name, call.where);
  refuse_in_compiled_code(call, files_outside);
  const auto path = array_path(walk, call["path"], "save");
  const RecordValue* record = call["value"].value().record();
  if (path && is_archive(*path) != (record != nullptr))
    wrong_argument(call["value"],
                   record ? "an array; a record goes to an `.npz` file"
                          : "a record of arrays for an `.npz` file");
  std::vector<std::pair<std::string, ArrayValue>> arrays;
  if (record)
    for (const auto& [name, value] : record->fields)
      arrays.emplace_back(name, walk.to_array(value, call["value"].where(),
                                              fmt::format("field `{}`", name)));
  else
    arrays.emplace_back("", array_argument(call["value"]));
  if (walk.mode() == Mode::check || walk.machine().compile_only) {
    if (path)
      walk.written_files[*path] = written_type(walk, call["value"].value());
    return NoneValue{};
  }
  sweep_beside(walk, *path);
  if (!record) {
    const HostData data =
        host_data(walk, arrays[0].second, call["value"].where());
    auto written = write_npy(*path, data.dtype, data.shape, data.bytes);
    if (!written)
      cannot_write(walk, *path, written.error(), call["path"].where());
    return NoneValue{};
  }
  NamedArrays named;
  for (const auto& [name, array] : arrays)
    named.emplace_back(name, host_data(walk, array, call["value"].where()));
  auto written = write_npz(*path, named);
  if (!written)
    cannot_write(walk, *path, written.error(), call["path"].where());
  return NoneValue{};
}

}  // namespace unisono::lang
