// `batches`, which a `for` takes parts of arrays or files from, and `progress`.
// While the loop's body computes, a thread makes the next batch: it gathers its
// rows and brings them to the devices.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <future>
#include <new>
#include <optional>
#include <system_error>

#include "lang/builtins/load.h"
#include "lang/builtins/written_file.h"
#include "lang/context/call_of.h"
#include "lang/context/iterable.h"
#include "lang/maps/maps.h"
#include "lang/ops/array_ops.h"
#include "lang/ops/builtin_arguments.h"
#include "lang/ops/sizes.h"
#include "lang/ops/text.h"
#include "runtime/cluster/cluster_device.h"
#include "runtime/files/file.h"
#include "runtime/files/file_device.h"
#include "runtime/files/npy.h"
#include "runtime/stop.h"
#include "runtime/tuning/tuning.h"

namespace unisono::lang {
namespace {

/// An open .npy file.
struct RowFile {
  InputFile file;
  NpyHeader header;
  std::string path;
};

/// A leaf of the tree from which batches are taken.
struct Leaf {
  ir::Type type;  // of the whole
  ArrayValue array = nullptr;
  std::shared_ptr<const RowFile> file = nullptr;
};

/// What the batches are; sizes may be symbols while checking.
struct Plan {
  Value tree;  // its leaves are not looked at
  std::vector<Leaf> leaves;
  ir::Dim rows;      // of the whole
  ir::Shape sizes;   // how the rows of a batch are laid out
  ArrayValue order;  // i32[rows], or null: as they are
  bool drop_last = false;
  int64_t start = 0;
  std::vector<Device*> devices;
  bool numbered = false;

  ir::Dim batch_rows() const { return ir::element_count(sizes); }
};

class BatchItems : public Items {
 public:
  BatchItems(Walk& walk, const Plan& plan, int64_t length, Span where)
      : plan_(plan),
        length_(length),
        batch_(plan.start),
        per_(plan.batch_rows().value()),
        rows_(plan.rows.value()),
        stop_(stop_flag()) {
    if (length == 0) return;
    for (const Leaf& leaf : plan.leaves)
      sources_.push_back(source(walk, leaf, where));
    if (plan.order) {
      const std::vector<uint8_t> bytes = walk.host_bytes(plan.order, where);
      order_.resize(bytes.size() / sizeof(int32_t));
      std::memcpy(order_.data(), bytes.data(), bytes.size());
    }
  }

  Value next(Walk& walk, Span where) override {
    Made made = coming_.valid() ? coming_.get() : make(batch_);
    if (!made.arrays) fail(walk, made, where);
    const int64_t number = batch_++ - plan_.start;
    if (number + 1 < length_) begin_next();
    int64_t bytes = 0;
    for (const unisono::Array& array : *made.arrays) bytes += array.bytes();
    walk.count_host_bytes(bytes, where);
    size_t leaf = 0;
    Value item = map_leaves(plan_.tree, [&](const Value&) -> Value {
      const Source& source = sources_[leaf];
      unisono::Array& array = (*made.arrays)[leaf++];
      return source.on_gpu ? gathered(walk, source, number + plan_.start, where)
                           : walk.from_array(std::move(array));
    });
    if (!plan_.numbered) return item;
    const auto place = static_cast<int32_t>(number + plan_.start);
    return make_tuple(
        {walk.on_first_device(DType::I32, &place, where), std::move(item)});
  }

 private:
  /// Where a leaf's rows are: in memory of the host, in a file, or on a GPU,
  /// which gathers them itself.
  struct Source {
    DType dtype;
    std::vector<int64_t> row_shape;
    int64_t row_bytes;
    const uint8_t* data = nullptr;
    unisono::Array array = {};  // holds `data`
    std::vector<uint8_t> copy = {};
    std::shared_ptr<const RowFile> file = nullptr;
    bool in_file = false;  // `array` is; no header is to be minded
    ArrayValue on_gpu = nullptr;
    bool is_read() const { return file || in_file; }
  };
  /// A batch (without the arrays that a GPU gathers), or why there is none, and
  /// of which file.
  struct Made {
    Result<std::vector<unisono::Array>> arrays;
    const RowFile* file = nullptr;
  };

  static Source source(Walk& walk, const Leaf& leaf, Span where) {
    const std::vector<int64_t> shape = leaf.type.sizes();
    Source out{leaf.type.dtype, {shape.begin() + 1, shape.end()}, 0};
    out.row_bytes = byte_size(out.dtype);
    for (const int64_t size : out.row_shape) out.row_bytes *= size;
    if (leaf.file) {
      out.file = leaf.file;
      return out;
    }
    // What there was no room for stays in its file, and gives its rows.
    if (leaf.array->array && is_in_file(*leaf.array->array)) {
      out.array = *leaf.array->array;
      out.in_file = true;
      return out;
    }
    const unisono::Array& array = walk.force(leaf.array, where);
    const Sharding& place = array.sharding();
    const bool split = place.is_split() && place.devices.size() > 1;
    // Memory of a CPU is the host's.
    if (!split && is_host_memory(*place.devices[0])) {
      out.array = array;
      out.data = static_cast<const uint8_t*>(array.blocks()[0]->data());
    } else if (!split && place.devices[0]->kind() != DeviceKind::cpu) {
      out.on_gpu = leaf.array;
    } else {
      out.copy = walk.host_bytes(leaf.array, where);
      out.data = out.copy.data();
    }
    return out;
  }

  void begin_next() {
    int64_t bytes = 0;
    bool reads = false;
    for (const Source& source : sources_) {
      if (source.on_gpu) continue;
      bytes += source.row_bytes * per_;
      reads |= source.is_read();
    }
    if (bytes < tuning().least_batch_bytes && !reads) return;
    try {
      coming_ = std::async(std::launch::async, [this, batch = batch_] {
        const StopScope stop(stop_);
        return make(batch);
      });
    } catch (const std::system_error&) {
      // There is no thread to be had: it is made when it is wanted.
    }
  }

  [[noreturn]] static void fail(Walk& walk, const Made& made, Span where) {
    const Error& error = made.arrays.error();
    if (made.file) cannot_read(walk, made.file->path, error, where);
    walk.fail(error, where);
  }

  /// Batch `i`, counted from the first of all. On any thread.
  Made make(int64_t i) const {
    Made made{std::vector<unisono::Array>(), nullptr};
    try {
      for (const Source& source : sources_) {
        if (source.on_gpu) {
          made.arrays->emplace_back();
          continue;
        }
        made.file = source.file.get();
        auto array = unless_stopped([&] { return part(source, i); });
        if (!array) {
          made.arrays = std::move(array).error();
          return made;
        }
        made.arrays->push_back(std::move(*array));
      }
    } catch (const std::bad_alloc&) {
      made.arrays = Error{.kind = Error::Kind::out_of_memory,
                          .message = "out of memory for the next batch"};
    }
    return made;
  }

  Result<unisono::Array> part(const Source& source, int64_t i) const {
    const int64_t first = i * per_;
    const int64_t count = std::min(per_, rows_ - first);
    const std::vector<int64_t> shape = batch_shape(source, count);
    const bool in_order = order_.empty();
    if (in_order && source.data)
      return place(source.dtype, shape, source.data + first * source.row_bytes);

    std::vector<uint8_t> bytes =
        TRY(allocate_bytes(count * source.row_bytes, INT64_MAX));
    const std::span<uint8_t> rows(bytes);
    if (source.is_read() && in_order) {
      TRY(read(source, first, rows));
    } else {
      const auto size = static_cast<size_t>(source.row_bytes);
      StopPoll poll(int64_t{4} << 20);
      for (int64_t k = 0; k < count; ++k) {
        const int64_t row = order_[static_cast<size_t>(first + k)];
        const auto to = rows.subspan(static_cast<size_t>(k) * size, size);
        if (source.is_read())
          TRY(read(source, row, to));
        else if (size > 0)
          std::memcpy(to.data(), source.data + row * source.row_bytes, size);
        poll.did(source.row_bytes + 1);
      }
    }
    if (!source.file) return place(source.dtype, shape, bytes.data());
    NpyHeader header = source.file->header;
    header.shape = shape;
    header.fortran_order = false;
    header.data_bytes = static_cast<int64_t>(bytes.size());
    const int64_t most = header.data_bytes;
    const HostData data = TRY(decode_npy(header, std::move(bytes), most));
    return place(data.dtype, shape, data.bytes.data());
  }

  /// The rows from `first` on, as the file has them.
  static Status read(const Source& source, int64_t first,
                     std::span<uint8_t> to) {
    if (source.file)
      return read_rows(*source.file, first, to, source.row_bytes);
    if (to.empty()) return Unit{};
    const auto* start =
        static_cast<const char*>(source.array.blocks()[0]->data());
    return source.array.sharding().devices[0]->copy_to_host(
        to.data(), start + first * source.row_bytes,
        static_cast<int64_t>(to.size()));
  }

  /// The shape of a leaf of a batch of `count` rows.
  std::vector<int64_t> batch_shape(const Source& source, int64_t count) const {
    std::vector<int64_t> shape = {count};
    if (count == per_) {
      shape.clear();
      for (const ir::Dim& size : plan_.sizes) shape.push_back(size.value());
    }
    shape.insert(shape.end(), source.row_shape.begin(), source.row_shape.end());
    return shape;
  }

  /// A leaf of batch `i` by an operation of the program: the positions are an
  /// array, so that all batches are the same code.
  ArrayValue gathered(Walk& walk, const Source& source, int64_t i,
                      Span where) const {
    const int64_t first = i * per_;
    const int64_t count = std::min(per_, rows_ - first);
    std::vector<int64_t> positions(static_cast<size_t>(count));
    for (int64_t k = 0; k < count; ++k)
      positions[k] = order_.empty() ? first + k : order_[first + k];
    auto at = array_from_host(*plan_.devices[0], DType::I64, {count},
                              positions.data());
    if (!at) walk.fail(at.error(), where);
    ir::Shape shape;
    for (const int64_t size : batch_shape(source, count))
      shape.emplace_back(size);
    const ArrayValue rows =
        reshape(walk,
                gather(walk, source.on_gpu, {walk.from_array(std::move(*at))},
                       {0}, false, where),
                shape, where);
    const auto devices = static_cast<int64_t>(plan_.devices.size());
    if (devices == 1 || shape[0].value() % devices != 0) return rows;
    return walk.from_array(
        walk.moved(walk.force(rows, where), Sharding{0, plan_.devices}, where));
  }

  static Status read_rows(const RowFile& file, int64_t row,
                          std::span<uint8_t> to, int64_t row_bytes) {
    return file.file.read(file.header.data_offset + row * row_bytes, to);
  }

  /// On the first device, or shared by all if they can.
  Result<unisono::Array> place(DType dtype, const std::vector<int64_t>& shape,
                               const uint8_t* bytes) const {
    const auto devices = static_cast<int64_t>(plan_.devices.size());
    if (devices == 1 || shape[0] % devices != 0)
      return array_from_host(*plan_.devices[0], dtype, shape, bytes);
    int64_t block_bytes = byte_size(dtype);
    for (const int64_t size : shape) block_bytes *= size;
    block_bytes /= devices;
    DeviceBlocks blocks;
    for (int64_t d = 0; d < devices; ++d) {
      Device& device = *plan_.devices[static_cast<size_t>(d)];
      Buffer block = TRY(device.allocate(block_bytes));
      TRY(device.copy_from_host(block.data(), bytes + d * block_bytes,
                                block_bytes));
      blocks.push_back(std::make_shared<Buffer>(std::move(block)));
    }
    return unisono::Array(dtype, shape, Sharding{0, plan_.devices},
                          std::move(blocks));
  }

  const Plan plan_;
  int64_t length_, batch_, per_, rows_;
  const std::atomic<bool>* stop_;
  std::vector<Source> sources_;
  std::vector<int32_t> order_;
  std::future<Made> coming_;  // the last: it is waited for first
};

class Batches : public Sequence {
 public:
  Batches(Walk& walk, Plan plan, ir::Dim length)
      : plan_(std::move(plan)), length_(std::move(length)) {
    add_kinds(walk);
  }

  std::string type_name() const override {
    return "batches of " + lang::type_name(kinds_[0]);
  }
  ir::Dim length() const override { return length_; }
  const std::vector<Value>& kinds() const override { return kinds_; }
  std::string last_kind() const override {
    return "in the last batch, which is smaller: `drop_last=true` leaves it "
           "out";
  }
  std::unique_ptr<Items> items(Walk& walk, Span where) const override {
    return std::make_unique<BatchItems>(walk, plan_, length_.value(), where);
  }
  Value enumerated(Walk& walk) const override {
    Plan plan = plan_;
    plan.numbered = true;
    return IterableValue{
        std::make_shared<const Batches>(walk, std::move(plan), length_)};
  }

 private:
  void add_kinds(Walk& walk) {
    const ir::Dim per = plan_.batch_rows();
    const ir::Dim rest = floor_mod(plan_.rows, per);
    const bool known = rest.is_constant() && plan_.rows.is_constant();
    const bool some = !known || !per.is_constant() || plan_.rows.value() == 0 ||
                      plan_.rows.value() >= per.value() || plan_.drop_last;
    if (some) add_kind(walk, plan_.sizes);
    if (plan_.drop_last || rest == ir::Dim(0)) return;
    add_kind(walk, {rest.is_constant() ? rest : walk.open_size()});
  }

  void add_kind(Walk& walk, const ir::Shape& sizes) {
    size_t leaf = 0;
    Value kind = map_leaves(plan_.tree, [&](const Value&) -> Value {
      ir::Type type = plan_.leaves[leaf++].type;
      type.shape.erase(type.shape.begin());
      type.shape.insert(type.shape.begin(), sizes.begin(), sizes.end());
      return walk.unknown_array(std::move(type));
    });
    if (plan_.numbered)
      kind =
          make_tuple({walk.unknown_array({DType::I32, {}}), std::move(kind)});
    kinds_.push_back(std::move(kind));
  }

  Plan plan_;
  ir::Dim length_;
  std::vector<Value> kinds_;
};

// ---- arguments -------------------------------------------------------------

Result<RowFile> open_rows(const std::string& path) {
  InputFile file = TRY(InputFile::open(path));
  std::vector<uint8_t> start(
      static_cast<size_t>(std::min(file.size(), npy_longest_start)));
  TRY(file.read(0, start));
  NpyHeader header = TRY(parse_npy_header(start, file.size()));
  if (header.fortran_order && header.shape.size() > 1)
    return Error{.kind = Error::Kind::invalid_file,
                 .message =
                     "its elements are in Fortran order, so that no row "
                     "lies together: `load` it, or save it in C order"};
  return RowFile{std::move(file), std::move(header), path};
}

/// The file that a text names.
Leaf file_leaf(CallOf<"batches">& call, const Value& text) {
  Walk& walk = call.walk;
  const CallArgument path{text, call["x"].where()};
  require_files(walk, "batches", call.where);
  const auto known = path_argument(walk, path, "x", "batches", {".npy"});
  if (walk.mode() == Mode::check || walk.machine().compile_only) {
    const auto type = loaded_type(walk, path);
    if (type) return {type->array()->type};
    if (known && !walk.written_files.contains(*known))
      walk.fail(diagnostic(Code::cannot_read, path.where,
                           fmt::format("{:?}", *known), "there is no such file")
                    .add_fact("a path is relative to the current directory"));
    walk.fail(
        diagnostic(Code::file_type_unknown, path.where,
                   known ? fmt::format("{:?}", *known)
                         : std::string("a file whose path is computed"))
            .set_help("its header is read when the program is checked: write "
                      "the path of a file that is there"));
  }
  auto file = open_rows(*known);
  if (!file) cannot_read(walk, *known, file.error(), path.where);
  ir::Type type{file->header.dtype, {}};
  for (const int64_t size : file->header.shape) type.shape.emplace_back(size);
  return {std::move(type), nullptr,
          std::make_shared<const RowFile>(std::move(*file))};
}

void read_leaves(CallOf<"batches">& call, Plan& plan) {
  Walk& walk = call.walk;
  const Argument x = call["x"];
  std::string first;
  plan.tree = map_leaves(x.value(), [&](const Value& value) -> Value {
    Leaf leaf;
    if (value.is<StrValue>()) {
      leaf = file_leaf(call, value);
    } else {
      leaf.array = value.array() ? *value.get_if<ArrayValue>() : nullptr;
      if (!leaf.array || (leaf.array->weak && leaf.array->type.rank() == 0))
        wrong_argument(x, value, "arrays with rows, or paths of `.npy` files");
      walk.forbid_donated(leaf.array, x.where());
      leaf.type = leaf.array->type;
    }
    if (leaf.type.rank() == 0)
      wrong_argument(x, value, "arrays with rows, or paths of `.npy` files");
    const ir::Dim& rows = leaf.type.shape[0];
    const std::string name = leaf.type.to_string();
    if (plan.leaves.empty()) {
      plan.rows = rows;
      first = name;
    } else if (const auto both = same_size(plan.rows, rows)) {
      plan.rows = *both;
    } else if ((plan.rows - rows).is_constant()) {
      walk.fail(diagnostic(Code::scan_lengths_differ, x.where(), "batches",
                           first, plan.rows.to_string(), name, rows.to_string())
                    .about(plan.rows - rows));
    }
    plan.leaves.push_back(std::move(leaf));
    return NoneValue{};
  });
  if (plan.leaves.empty())
    wrong_argument(x, "arrays with rows, or paths of `.npy` files");
}

void read_sizes(CallOf<"batches">& call, Plan& plan) {
  const Argument n = call["n"];
  plan.sizes = shape_argument(n);
  const ir::Dim per = plan.batch_rows();
  const bool none = per.is_constant() && per.value() < 1;
  if (plan.sizes.empty() || none || per.overflowed())
    call.walk.fail(diagnostic(
        Code::wrong_argument, n.where(), "`n` of `batches`",
        "how many rows a batch has, 1 or more, or a tuple of sizes",
        plan.sizes.size() == 1 ? per.to_string() : shape_text(plan.sizes)));
  plan.drop_last = bool_argument_or(call["drop_last"], false);
  const ir::Dim rest = floor_mod(plan.rows, per);
  if (plan.drop_last || plan.sizes.size() == 1 || !rest.is_constant() ||
      rest == ir::Dim(0))
    return;
  call.walk.fail(
      diagnostic(Code::wrong_argument, n.where(), "`drop_last` of `batches`",
                 fmt::format("`true` here, as {} of {} rows remain, which do "
                             "not form {}",
                             rest.to_string(), plan.rows.to_string(),
                             shape_text(plan.sizes)),
                 "`false`"));
}

/// The number of batches.
ir::Dim read_length(CallOf<"batches">& call, Plan& plan) {
  const ir::Dim per = plan.batch_rows();
  const ir::Dim all = plan.drop_last
                          ? floor_div(plan.rows, per)
                          : ir::Dim(0) - floor_div(ir::Dim(0) - plan.rows, per);
  const Argument start = call["start"];
  if (!start.given()) return all;
  const auto first = host_number(call.walk, start, "`start` of `batches`");
  if (!first) return unknown_int(call.walk).value;
  if (*first < 0)
    call.walk.fail(diagnostic(
        Code::wrong_argument, start.where(), "`start` of `batches`",
        "how many batches to leave out, 0 or more", fmt::format("{}", *first)));
  plan.start = *first;
  if (*first == 0 || !all.is_constant()) return all - ir::Dim(*first);
  return std::max<int64_t>(0, all.value() - *first);
}

void read_devices(CallOf<"batches">& call, Plan& plan) {
  Walk& walk = call.walk;
  const Runtime& runtime = *walk.machine().runtime;
  const auto& all = runtime.devices();
  plan.devices = {&home_device(runtime.devices())};
  const Argument over = call["over"];
  if (!over.given()) return;
  std::optional<std::vector<int>> devices;
  if (const auto* axis = over.value().get_if<AxisValue>())
    devices = axis->axis->devices;
  else
    devices = device_list(walk, over);
  if (!devices || devices->empty())
    walk.fail(diagnostic(Code::bad_over, over.where(), "batches",
                         "an axis over devices, or a tuple of devices",
                         type_name(over.value())));
  const auto count = static_cast<int64_t>(devices->size());
  if (plan.sizes[0].is_constant() && plan.sizes[0].value() % count != 0)
    walk.fail(
        diagnostic(Code::uneven_batch, over.where(), count,
                   plan.sizes[0].to_string())
            .set_help(fmt::format(
                "use a multiple of {} rows, or leave `over` out", count)));
  plan.devices.clear();
  for (const int device : *devices) plan.devices.push_back(all[device]);
}

}  // namespace

Value builtin_batches(CallOf<"batches">& call) {
  Walk& walk = call.walk;
  refuse_in_compiled_code(
      call,
      "loop outside of it, and call the compiled function in the loop; in it, "
      "take the rows of `reshape(x[permutation(k, len(x))], (steps, n, ...))`");
  Plan plan;
  read_leaves(call, plan);
  read_sizes(call, plan);
  read_devices(call, plan);
  ir::Dim length = read_length(call, plan);
  if (const Argument key = call["key"]; key.given()) {
    const ArrayCell* words = key.value().array();
    if (!words || words->type.dtype != DType::U32 ||
        !same_sizes(words->type.shape, {ir::Dim(2)}))
      wrong_argument(key, "a key, which is a `u32[2]`, as `key(3)`");
    plan.order = *call_builtin(walk, *find_builtin("permutation"),
                               {key, {IntValue{plan.rows}, key.where()}}, {},
                               key.where())
                      .get_if<ArrayValue>();
  }
  return IterableValue{std::make_shared<const Batches>(walk, std::move(plan),
                                                       std::move(length))};
}

Value builtin_progress(CallOf<"progress">& call) {
  const Value& items = call["items"].value();
  const ArrayCell* array = items.array();
  const bool runs = items.is<RangeValue>() || items.tuple() ||
                    items.is<ManyValue>() || items.is<IterableValue>() ||
                    items.is<ProgressValue>() || items.is<StrValue>() ||
                    (array && array->type.rank() > 0);
  if (!runs)
    wrong_argument(call["items"],
                   "what a `for` runs over: `batches`, a range, an array or a "
                   "tuple");
  std::vector<std::string> show = {"loss"};
  if (const Argument names = call["show"]; names.written()) {
    show.clear();
    std::vector<Value> texts = {names.value()};
    if (const TupleValue* tuple = names.value().tuple()) texts = tuple->items;
    for (const Value& text : texts) {
      const auto* name = text.get_if<StrValue>();
      if (text.is<NoneValue>()) continue;
      if (!name || !name->value)
        wrong_argument(names, text,
                       "the name of a variable, or a tuple of names");
      show.push_back(*name->value);
    }
  }
  return ProgressValue{
      std::make_shared<const Value>(items),
      std::make_shared<const std::vector<std::string>>(std::move(show))};
}

}  // namespace unisono::lang
