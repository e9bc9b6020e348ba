// Arrays in files: .npy, .npz, .safetensors; whether there is a file; text.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "lang/builtins/load.h"
#include "lang/builtins/sorted_texts.h"
#include "lang/builtins/tree_names.h"
#include "lang/builtins/written_file.h"
#include "lang/context/call_of.h"
#include "lang/context/processes.h"
#include "lang/ops/builtin_arguments.h"
#include "lang/ops/operators.h"
#include "lang/ops/text.h"
#include "lang/source/utf8.h"
#include "runtime/cluster/cluster_device.h"
#include "runtime/cluster/shared_file.h"
#include "runtime/files/array_file.h"
#include "runtime/files/file.h"
#include "runtime/files/file_device.h"
#include "runtime/files/npz.h"
#include "runtime/files/safetensors.h"
#include "runtime/tuning/tuning.h"

namespace unisono::lang {
namespace {

enum class ArrayFile : uint8_t { npy, npz, safetensors };

ArrayFile kind_of(std::string_view path) {
  return path.ends_with(".npy")   ? ArrayFile::npy
         : path.ends_with(".npz") ? ArrayFile::npz
                                  : ArrayFile::safetensors;
}
bool is_archive(std::string_view path) {
  return kind_of(path) != ArrayFile::npy;
}

/// A path that ends in .npy or its like; nothing where it is not known yet.
std::optional<std::string> array_path(Walk& walk, const CallArgument& path,
                                      std::string_view function) {
  return path_argument(walk, path, "path", function,
                       {".npy", ".npz", ".safetensors"});
}

ArrayValue array_of(Walk& walk, const NpyHeader& header) {
  ir::Type type{header.dtype, {}};
  for (int64_t size : header.shape) type.shape.emplace_back(size);
  return walk.unknown_array(std::move(type));
}

ArrayValue array_of(Walk& walk, const HostData& data, Span where) {
  Device& device = home_device(walk.machine().runtime->devices());
  auto array =
      array_from_host(device, data.dtype, data.shape, data.bytes.data());
  if (!array) walk.fail(array.error(), where);
  return walk.from_array(std::move(*array));
}

constexpr std::string_view files_outside =
    "read before the map and pass the array as an argument; save what it "
    "returns";

/// Names are shown to people, and are fields of records.
Status check_names(const std::vector<std::string>& names) {
  for (const std::string& name : names)
    if (visible(name) != name)
      return Error{.kind = Error::Kind::invalid_file,
                   .message = fmt::format(
                       "the name `{}` of an array is no text that can be shown",
                       visible(name))};
  return Unit{};
}

/// Names and types of the arrays in a file; the one of an .npy has the name "".
Result<std::vector<NpzEntry>> read_index(const std::string& path) {
  switch (kind_of(path)) {
    case ArrayFile::npy:
      return std::vector<NpzEntry>{{"", TRY(read_npy_header(path))}};
    case ArrayFile::npz: return read_npz_index(path);
    case ArrayFile::safetensors: return read_safetensors_index(path);
  }
  __builtin_unreachable();
}

Result<NamedArrays> read_arrays(const std::string& path) {
  switch (kind_of(path)) {
    case ArrayFile::npy: {
      NamedArrays one;
      one.emplace_back("", TRY(read_npy(path)));
      return one;
    }
    case ArrayFile::npz: return read_npz(path);
    case ArrayFile::safetensors: return read_safetensors(path);
  }
  __builtin_unreachable();
}

Result<OpenArrays> open_arrays(const std::string& path) {
  switch (kind_of(path)) {
    case ArrayFile::npy: return open_npy(path);
    case ArrayFile::npz: return open_npz(path);
    case ArrayFile::safetensors: return open_safetensors(path);
  }
  __builtin_unreachable();
}

/// The arrays of a file as the program gets them without `like`.
Value file_value(const std::string& path, const NamedLeaves& arrays) {
  return is_archive(path) ? tree_of(arrays) : arrays[0].second;
}

std::vector<NpzEntry> index_of(Walk& walk, const std::string& path,
                               Span where) {
  auto entries = read_index(path);
  if (!entries) cannot_read(walk, path, entries.error(), where);
  std::vector<std::string> names;
  for (const NpzEntry& entry : *entries) names.push_back(entry.name);
  if (const Status named = check_names(names); !named)
    cannot_read(walk, path, named.error(), where);
  return std::move(*entries);
}

/// Reads an array to where the host's part of the program has its arrays; one
/// for which there is no room stays in its file, of which is read what is used.
void bring_what_fits(Walk& walk, ArrayCell& cell, Span where) {
  Device& home = home_device(walk.machine().runtime->devices());
  auto read = reshard(*cell.array, Sharding{-1, {&home}});
  if (read)
    cell.array = std::move(*read);
  else if (read.error().kind != Error::Kind::out_of_memory)
    walk.fail(read.error(), where);
}

/// The arrays of a file as elements that are read where they are needed: where
/// several processes read it, in each what its devices need. Nothing if an
/// array is packed, or its order is another one.
std::optional<NamedLeaves> arrays_in_file(Walk& walk, const std::string& path,
                                          Span where) {
  auto opened = open_arrays(path);
  if (!opened) cannot_read(walk, path, opened.error(), where);
  for (size_t i = 0; i < opened->entries.size(); ++i)
    if (!opened->stored[i] || !is_direct(opened->entries[i].header))
      return std::nullopt;
  const ClusterDevice* shared =
      cluster_device(*walk.machine().runtime->devices()[0]);
  const auto file = std::make_shared<const InputFile>(std::move(opened->file));
  NamedLeaves leaves;
  for (size_t i = 0; i < opened->entries.size(); ++i) {
    const NpzEntry& entry = opened->entries[i];
    FileDevice::Elements elements{file, path, entry.name, entry.header,
                                  opened->checksums[i]};
    ArrayValue array =
        walk.from_array(shared ? shared->files().array(std::move(elements))
                               : array_in_file(std::move(elements)));
    if (!shared)
      bring_what_fits(walk, *array, where);
    else if (entry.header.data_bytes < tuning().least_file_array)
      bring_home(walk, *array, where);
    leaves.emplace_back(entry.name, std::move(array));
  }
  return leaves;
}

/// Whether the device has room for all arrays of the file at once; also if it
/// cannot be read.
bool has_room(Walk& walk, const std::string& path) {
  const auto opened = open_arrays(path);
  if (!opened) return true;
  int64_t bytes = 0;
  for (const NpzEntry& entry : opened->entries)
    bytes += entry.header.data_bytes;
  Device& home = home_device(walk.machine().runtime->devices());
  const auto tried = home.allocate(bytes);
  return tried || tried.error().kind != Error::Kind::out_of_memory;
}

NamedLeaves arrays_of(Walk& walk, const std::string& path, Span file,
                      Span where) {
  const auto check = [&](const auto& named) {
    std::vector<std::string> names;
    for (const auto& [name, array] : named) names.push_back(name);
    if (const Status shown = check_names(names); !shown)
      cannot_read(walk, path, shown.error(), file);
  };
  // The checksums of an archive are of whole arrays: it is read as a whole
  // where there is room for that.
  if (cluster_of(walk) || kind_of(path) != ArrayFile::npz ||
      !has_room(walk, path)) {
    if (auto leaves = arrays_in_file(walk, path, file)) {
      check(*leaves);
      return std::move(*leaves);
    }
  }
  auto arrays = read_arrays(path);
  if (!arrays) cannot_read(walk, path, arrays.error(), file);
  check(*arrays);
  NamedLeaves leaves;
  for (auto& [name, data] : *arrays) {
    leaves.emplace_back(name, array_of(walk, data, where));
    data = {};
  }
  return leaves;
}

bool is_there(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

}  // namespace

std::optional<Value> loaded_type(Walk& walk, const CallArgument& path) {
  require_files(walk, "load", path.where);
  const auto known = array_path(walk, path, "load");
  if (!known) return std::nullopt;
  if (const auto written = walk.written_files.find(*known);
      written != walk.written_files.end())
    return written->second;
  if (!is_there(*known)) return std::nullopt;
  NamedLeaves leaves;
  for (const NpzEntry& entry : index_of(walk, *known, path.where))
    leaves.emplace_back(entry.name, array_of(walk, entry.header));
  return file_value(*known, leaves);
}

bool is_awaited(Walk& walk, const Builtin& builtin, const CallArgument& path) {
  if (&builtin == find_builtin("load")) return !loaded_type(walk, path);
  require_files(walk, builtin.name, path.where);
  const auto known = any_path_argument(walk, path, "path", builtin.name);
  return !known || walk.written_files.contains(*known) || !is_there(*known);
}

// ---- a tree like another one -----------------------------------------------

namespace {

/// `like` of a call of `load`: its leaves, each with the type that the file
/// shall have.
class Like {
 public:
  Like(CallOf<"load">& call, const std::optional<std::string>& path)
      : walk_(call.walk),
        where_(call["like"].where()),
        tree_(call["like"].value()),
        path_(path) {
    const bool is_tree = tree_.tuple() || tree_.record();
    if (path && is_archive(*path) != is_tree)
      wrong_argument(call["like"], is_tree
                                       ? "an array, as an `.npy` file holds one"
                                       : "a record or a tuple, as the file "
                                         "holds arrays by name");
    for (const auto& [name, leaf] : named_leaves(tree_, PathStyle::brackets))
      leaves_.push_back(
          {name,
           leaf.is<NoneValue>()
               ? nullptr
               : walk_.to_array(leaf, where_,
                                name.empty()
                                    ? std::string("`like` of `load`")
                                    : fmt::format("`{}` of `like`", name))});
  }

  /// Fails unless the file has these arrays.
  void check(const std::vector<NpzEntry>& entries) const {
    std::map<std::string, const NpyHeader*> headers;
    for (const NpzEntry& entry : entries)
      headers.emplace(path_key(entry.name), &entry.header);
    for (const Leaf& leaf : leaves_) {
      if (!leaf.array) continue;
      const auto found = headers.find(path_key(leaf.name));
      if (found == headers.end())
        fail(fmt::format("it has no array `{}`", leaf.name), entries);
      check(leaf, found->second->dtype, found->second->shape);
    }
  }

  /// The tree with arrays of which only the type is known.
  Value types() const {
    return filled([&](const Leaf& leaf) {
      return walk_.unknown_array(leaf.array->type);
    });
  }

  /// The tree with the arrays of the file, placed as those of `like` are.
  Value value(const NamedLeaves& arrays, Span where) const {
    std::map<std::string, ArrayValue> found;
    std::vector<NpzEntry> entries;
    for (const auto& [name, leaf] : arrays) {
      const ArrayValue array = *leaf.get_if<ArrayValue>();
      found.emplace(path_key(name), array);
      entries.push_back({name, {array->type.dtype, array->type.sizes()}});
    }
    check(entries);
    return filled([&](const Leaf& leaf) -> Value {
      const ArrayValue& array = found.at(path_key(leaf.name));
      if (!leaf.array->array || is_in_file(*leaf.array->array)) return array;
      return walk_.from_array(
          walk_.moved(*array->array, leaf.array->array->sharding(), where));
    });
  }

 private:
  struct Leaf {
    std::string name;
    ArrayValue array;  // null of `none`
  };

  void check(const Leaf& leaf, DType dtype,
             const std::vector<int64_t>& shape) const {
    ir::Type type{dtype, {}};
    for (const int64_t size : shape) type.shape.emplace_back(size);
    const ir::Type& wanted = leaf.array->type;
    bool fits = wanted.dtype == dtype && wanted.shape.size() == shape.size();
    for (size_t i = 0; fits && i < shape.size(); ++i)
      fits = !wanted.shape[i].is_constant() || wanted.shape[i] == shape[i];
    if (fits) return;
    const std::string name =
        leaf.name.empty() ? "it" : fmt::format("`{}`", leaf.name);
    fail(fmt::format("{} is {} there, and {} in `like`", name, type.to_string(),
                     wanted.to_string()),
         {});
  }

  [[noreturn]] void fail(const std::string& why,
                         const std::vector<NpzEntry>& entries) const {
    Diagnostic error =
        diagnostic(Code::unlike_file, where_, fmt::format("{:?}", *path_), why);
    std::string names;
    for (size_t i = 0; i < entries.size() && i < 8; ++i)
      names += fmt::format("{}`{}`", i > 0 ? ", " : "", entries[i].name);
    if (entries.size() > 8) names += ", ...";
    if (!names.empty()) error.add_fact("it has " + names);
    walk_.fail(std::move(error));
  }

  Value filled(const std::function<Value(const Leaf&)>& f) const {
    size_t next = 0;
    return map_leaves(tree_, [&](const Value& leaf) -> Value {
      const Leaf& known = leaves_[next++];
      return known.array ? f(known) : leaf;
    });
  }

  Walk& walk_;
  Span where_;
  const Value& tree_;
  const std::optional<std::string>& path_;
  std::vector<Leaf> leaves_;
};

Value load_like(CallOf<"load">& call) {
  Walk& walk = call.walk;
  const Span where = call["path"].where();
  const auto path = array_path(walk, call["path"], "load");
  const Like like(call, path);
  const bool runs = walk.mode() != Mode::check && !walk.machine().compile_only;
  if (runs)
    return like.value(arrays_of(walk, *path, where, call.where), call.where);
  if (path && !walk.written_files.contains(*path) && is_there(*path))
    like.check(index_of(walk, *path, where));
  return walk.mode() == Mode::check ? like.types()
                                    : walk.with_absent(like.types());
}

}  // namespace

Value builtin_load(CallOf<"load">& call) {
  Walk& walk = call.walk;
  const Span where = call["path"].where();
  require_files(walk, call.builtin.name, call.where);
  refuse_in_compiled_code(call, files_outside);
  if (call["like"].given()) return load_like(call);
  if (walk.mode() == Mode::check) {
    if (auto type = loaded_type(walk, call["path"])) return *type;
    fail_unknown_file(call, call["path"], "f32[n, 3]");
  }
  if (walk.machine().compile_only) {
    if (auto type = loaded_type(walk, call["path"]))
      return walk.with_absent(*type);
    walk.fail_needs_run(call.where);
  }
  const std::string path = *array_path(walk, call["path"], "load");
  return file_value(path, arrays_of(walk, path, where, call.where));
}

namespace {

HostData host_data(Walk& walk, const ArrayValue& array, Span where) {
  return {array->type.dtype, array->type.sizes(),
          walk.host_bytes(array, where)};
}

/// The arrays of a value that is saved, by name; `none` is left out.
std::vector<std::pair<std::string, ArrayValue>> saved_arrays(
    Argument value, const std::optional<std::string>& path) {
  Walk& walk = value.call().walk;
  const Value& tree = value.value();
  const bool is_tree = tree.tuple() || tree.record();
  if (path && is_archive(*path) != is_tree)
    wrong_argument(value, is_tree ? "an array; a tree of arrays goes to an "
                                    "`.npz` or `.safetensors` file"
                                  : "a record or a tuple of arrays for this "
                                    "kind of file");
  if (!is_tree) return {{"", array_argument(value)}};
  const bool points = path && kind_of(*path) == ArrayFile::safetensors;
  std::vector<std::pair<std::string, ArrayValue>> arrays;
  std::set<std::string> names;
  for (const auto& [name, leaf] :
       named_leaves(tree, points ? PathStyle::points : PathStyle::brackets)) {
    if (leaf.is<NoneValue>()) continue;
    if (name.empty() || !names.insert(name).second)
      wrong_argument(value, fmt::format("a tree whose leaves have names of "
                                        "their own, and two are `{}`",
                                        name));
    arrays.emplace_back(name, walk.to_array(leaf, value.where(),
                                            fmt::format("field `{}`", name)));
  }
  return arrays;
}

FileLayout layout_of(Walk& walk, const std::string& path,
                     std::span<const ArrayType> types, Span where) {
  switch (kind_of(path)) {
    case ArrayFile::npy: return npy_layout(types[0]);
    case ArrayFile::npz: {
      auto layout = npz_layout(types);
      if (!layout) cannot_write(walk, path, layout.error(), where);
      return std::move(*layout);
    }
    case ArrayFile::safetensors: return safetensors_layout(types);
  }
  __builtin_unreachable();
}

/// Where several processes have the arrays: each writes what it has.
void save_together(
    const BuiltinCall& call, Cluster& cluster, const std::string& path,
    Span path_where,
    const std::vector<std::pair<std::string, ArrayValue>>& arrays) {
  Walk& walk = call.walk;
  std::vector<ArrayType> types;
  std::vector<unisono::Array> forced;
  for (const auto& [name, array] : arrays) {
    types.push_back({name, array->type.dtype, array->type.sizes()});
    forced.push_back(walk.force(array, call.where));
  }
  const FileLayout layout = layout_of(walk, path, types, path_where);
  tell_place(walk, call.where);
  const Status written = write_together(cluster, path, layout, forced);
  if (!written) cannot_write(walk, path, written.error(), path_where);
}

}  // namespace

Value builtin_save(CallOf<"save">& call) {
  Walk& walk = call.walk;
  require_files(walk, call.builtin.name, call.where);
  refuse_in_compiled_code(call, files_outside);
  const auto path = array_path(walk, call["path"], "save");
  const auto arrays = saved_arrays(call["value"], path);
  if (walk.mode() == Mode::check || walk.machine().compile_only) {
    if (!path) return NoneValue{};
    NamedLeaves types;
    for (const auto& [name, array] : arrays)
      types.emplace_back(name, walk.unknown_array(array->type));
    const bool concrete = std::ranges::all_of(arrays, [](const auto& named) {
      return named.second->type.is_concrete();
    });
    walk.written_files[*path] =
        concrete ? std::optional(file_value(*path, types)) : std::nullopt;
    return NoneValue{};
  }
  sweep_beside(walk, *path);
  if (Cluster* cluster = cluster_of(walk)) {
    save_together(call, *cluster, *path, call["path"].where(), arrays);
    return NoneValue{};
  }
  NamedArrays named;
  for (const auto& [name, array] : arrays)
    named.emplace_back(name, host_data(walk, array, call["value"].where()));
  const auto write = [&]() -> Status {
    switch (kind_of(*path)) {
      case ArrayFile::npy: {
        const HostData& one = named[0].second;
        return write_npy(*path, one.dtype, one.shape, one.bytes);
      }
      case ArrayFile::npz: return write_npz(*path, named);
      case ArrayFile::safetensors: return write_safetensors(*path, named);
    }
    __builtin_unreachable();
  };
  if (const Status written = write(); !written)
    cannot_write(walk, *path, written.error(), call["path"].where());
  return NoneValue{};
}

Value builtin_exists(CallOf<"exists">& call) {
  Walk& walk = call.walk;
  require_files(walk, call.builtin.name, call.where);
  refuse_in_compiled_code(call, "ask before, and pass the answer");
  const auto path = any_path_argument(walk, call["path"], "path", "exists");
  if (walk.mode() == Mode::check) return BoolValue{};
  bool there = is_there(*path);
  agree(walk, &there, sizeof there, call.where);
  return BoolValue{there};
}

// ---- text ------------------------------------------------------------------

namespace {

constexpr std::string_view text_outside =
    "read before the map, and pass what it needs; write what it returns";

/// Where text stops to be UTF-8, or nothing.
std::optional<size_t> end_of_utf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = decode_utf8(text, at);
    if (c.length == 0) return at;
    at += c.length;
  }
  return std::nullopt;
}

/// All of a text file, without the mark of its byte order.
Result<std::string> read_text_file(Walk& walk, const std::string& path,
                                   Span where) {
  const InputFile file = TRY(InputFile::open(path));
  check_text_size(walk, static_cast<size_t>(file.size()), where);
  std::string text(static_cast<size_t>(file.size()), 0);
  TRY(file.read(
      0, std::span(reinterpret_cast<uint8_t*>(text.data()), text.size())));
  if (const auto at = end_of_utf8(text))
    return Error{
        .kind = Error::Kind::invalid_file,
        .message = fmt::format(
            "line {} is no text in UTF-8: byte {} of the file is 0x{:02x}",
            std::count(text.begin(), text.begin() + static_cast<int64_t>(*at),
                       '\n') +
                1,
            *at, static_cast<uint8_t>(text[*at]))};
  if (text.starts_with("\xef\xbb\xbf")) text.erase(0, 3);
  return text;
}

}  // namespace

Value builtin_read_text(CallOf<"read_text">& call) {
  Walk& walk = call.walk;
  require_files(walk, call.builtin.name, call.where);
  refuse_in_compiled_code(call, text_outside);
  const Argument given = call["path"];
  const auto path = any_path_argument(walk, given, "path", call.builtin.name);
  const bool runs = walk.mode() != Mode::check && !walk.machine().compile_only;
  if (!path || (!runs && walk.written_files.contains(*path))) return StrValue{};
  if (!runs && !is_there(*path))
    cannot_read(walk, *path, Error{.message = "there is no such file"},
                given.where());
  if (walk.mode() == Mode::check) return StrValue{};
  // One process reads, so that the text is the same in all.
  const Cluster* cluster = cluster_of(walk);
  std::string text;
  if (!cluster || cluster->process() == 0) {
    auto read = read_text_file(walk, *path, given.where());
    if (!read) cannot_read(walk, *path, read.error(), given.where());
    text = std::move(*read);
  }
  auto bytes = static_cast<int64_t>(text.size());
  agree(walk, &bytes, sizeof bytes, call.where);
  text.resize(static_cast<size_t>(bytes));
  agree(walk, text.data(), bytes, call.where);
  return StrValue{std::move(text)};
}

Value builtin_write_text(CallOf<"write_text">& call) {
  Walk& walk = call.walk;
  require_files(walk, call.builtin.name, call.where);
  refuse_in_compiled_code(call, text_outside);
  const Argument given = call["path"];
  const auto path = any_path_argument(walk, given, "path", call.builtin.name);
  const Argument text = call["text"];
  const auto* value = text.value().get_if<StrValue>();
  if (!value)
    walk.fail(diagnostic(Code::wrong_argument, text.where(),
                         describe_argument(text), "a `str`",
                         type_name(text.value()))
                  .set_help(is_texts(text.value())
                                ? "lines are joined: `\"\\n\".join(lines)`"
                                : "as `print` shows it: `str(x)`"));
  if (walk.mode() == Mode::check || walk.machine().compile_only) {
    if (path) walk.written_files[*path] = std::nullopt;
    return NoneValue{};
  }
  const auto known = known_text(walk, *value, text.where());
  write_file(walk, *path, *known, given.where());
  return NoneValue{};
}

}  // namespace unisono::lang
