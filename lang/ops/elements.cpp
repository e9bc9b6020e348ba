#include "lang/ops/elements.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <optional>
#include <utility>

#include "jit/reference/kernels.h"
#include "lang/context/line_times.h"
#include "lang/context/literals.h"
#include "lang/context/processes.h"
#include "lang/ops/index_plan.h"
#include "runtime/array_blocks.h"
#include "runtime/cluster/cluster_device.h"
#include "runtime/recorder.h"

namespace unisono::lang {
namespace {

/// The block that holds all elements, if the host can read it; else null.
const std::shared_ptr<Buffer>* whole_block(const ArrayCell& cell) {
  if (!cell.array) return nullptr;
  const Sharding& sharding = cell.array->sharding();
  if (sharding.is_split() || !is_host_memory(*sharding.devices[0]))
    return nullptr;
  const std::shared_ptr<Buffer>& block = cell.array->blocks()[0];
  return block ? &block : nullptr;  // null with Machine::compile_only
}

/// Whether the caller's reference is the only way to the array's elements.
bool is_sole_owner(const ArrayValue& variable,
                   const std::shared_ptr<Buffer>& block, const Device& first) {
  if (variable.use_count() != 1 || block.use_count() != 1) return false;
  const Sharding& sharding = variable->array->sharding();
  if (sharding.devices.size() != 1 || block->device() != &first) return false;
  // Another thread may have held it last: what it read there, it has read.
  std::atomic_thread_fence(std::memory_order_acquire);
  return true;
}

/// The one element of a cell of integers, as i64; nothing for other cells, if
/// it is not there, or u64 beyond that.
std::optional<int64_t> integer_of(const ArrayCell& cell) {
  const uint8_t* element = readable_elements(cell);
  if (!element || !is_integer(cell.type.dtype)) return std::nullopt;
  return with_dtype(cell.type.dtype, [&]<DType D>() -> std::optional<int64_t> {
    using T = typename StorageOf<D>::type;
    if constexpr (std::is_integral_v<T>) {
      T value;
      std::memcpy(&value, element, sizeof value);
      if (std::in_range<int64_t>(value)) return static_cast<int64_t>(value);
    }
    return std::nullopt;
  });
}

std::optional<int64_t> from_start(std::optional<int64_t> at,
                                  const ir::Dim& size) {
  if (!at || *at < -size.value() || *at >= size.value()) return std::nullopt;
  return *at < 0 ? *at + size.value() : *at;
}

/// The position in an axis that an item names alone, if it is in range.
std::optional<int64_t> position_of(const IndexItem& item, const ir::Dim& size) {
  if (item.kind != IndexItem::Kind::value) return std::nullopt;
  std::optional<int64_t> at;
  if (const auto* i = item.value.get_if<IntValue>())
    at = i->value.value();
  else if (const ArrayCell* array = item.value.array();
           array && array->type.rank() == 0)
    at = integer_of(*array);
  return from_start(at, size);
}

/// The number of the element that the items select, row-major.
std::optional<int64_t> element_number(const ir::Shape& shape,
                                      const std::vector<IndexItem>& items) {
  if (items.size() != shape.size() || items.empty()) return std::nullopt;
  int64_t number = 0;
  for (size_t i = 0; i < items.size(); ++i) {
    const auto at = position_of(items[i], shape[i]);
    if (!at) return std::nullopt;
    number = number * shape[i].value() + *at;
  }
  return number;
}

/// One element, as it is stored.
struct Element {
  std::array<uint8_t, 8> bytes = {};
};

/// A scalar as an element of `dtype`, as an assignment converts it; nothing if
/// it does not, or the scalar is still to be computed.
std::optional<Element> element_of(Walk& walk, const CallArgument& scalar,
                                  DType dtype) {
  const auto stored = [&](const uint8_t* from) {
    Element element;
    std::memcpy(element.bytes.data(), from, byte_size(dtype));
    return element;
  };
  if (const auto* i = scalar.value.get_if<IntValue>()) {
    if (is_bool(dtype)) return std::nullopt;
    const ArrayValue number =
        walk.constant_int(i->value.value(), dtype, false, scalar.where);
    return stored(number->constant->data());
  }
  if (const auto* b = scalar.value.get_if<BoolValue>()) {
    if (!is_bool(dtype)) return std::nullopt;
    const uint8_t element = *b->value;
    return stored(&element);
  }
  const ArrayCell* cell = scalar.value.array();
  if (!cell || cell->type.rank() != 0) return std::nullopt;
  if (!cell->weak) {
    const uint8_t* element = readable_elements(*cell);
    if (cell->type.dtype != dtype || !element) return std::nullopt;
    return stored(element);
  }
  const bool adopts =
      is_floating(dtype) || (is_integer(dtype) && is_integer(cell->type.dtype));
  if (!cell->constant || !adopts) return std::nullopt;
  return stored(
      adopt_dtype(walk, *cell, dtype, scalar.where)->constant->data());
}

/// What a constant holds, again and again up to so many bytes.
void repeat(const std::vector<uint8_t>& held, uint8_t* data, int64_t bytes) {
  if (bytes == 0) return;
  const auto own = static_cast<int64_t>(held.size());
  std::memcpy(data, held.data(), std::min(own, bytes));
  for (int64_t filled = own; filled < bytes; filled *= 2)
    std::memcpy(data + filled, data, std::min(filled, bytes - filled));
}

/// All elements of an operand, which may be a constant that holds one of them.
const uint8_t* dense_elements(const ArrayCell& cell,
                              std::vector<uint8_t>& expanded) {
  if (!cell.constant) return readable_elements(cell);
  const std::vector<uint8_t>& held = *cell.constant;
  const auto bytes = static_cast<size_t>(cell.type.bytes());
  if (held.size() == bytes) return held.data();
  expanded.resize(bytes);
  repeat(held, expanded.data(), cell.type.bytes());
  return expanded.data();
}

/// Of indices of i32 or i64.
bool all_in_range(jit::reference::View index, int64_t size) {
  const auto holds = [&]<class T>(T) {
    const T* at = reinterpret_cast<const T*>(index.data);
    return std::all_of(at, at + index.type.elements(),
                       [&](T i) { return i >= -size && i < size; });
  };
  return index.type.dtype == DType::I32 ? holds(int32_t{}) : holds(int64_t{});
}

/// A constant that will change. False if there is no memory, as below.
bool make_array(Walk& walk, ArrayValue& variable) {
  auto [own, data] = unset_array(walk, variable->type);
  if (!own) return false;
  repeat(*variable->constant, data, variable->type.bytes());
  variable = std::move(own);
  return true;
}

bool copy_array(Walk& walk, ArrayValue& variable,
                const std::shared_ptr<Buffer>& from, Device& first) {
  auto [own, data] = unset_array(walk, variable->type);
  if (!own) return false;
  const Device& peer = *variable->array->sharding().devices[0];
  LineTimes* times = line_times(walk);
  if (times)
    times->note(0,
                "the update copies the array: another name, or a value that is "
                "still to be computed, holds it");
  const LineTime time(times, LineTimes::Part::copies, 0);
  Recording recording(walk.machine().recorder, Recorder::Kind::copy,
                      first.index());
  const int64_t bytes = variable->type.bytes();
  if (!first.copy_from_peer(data, peer, from->data(), bytes)) return false;
  if (recording) {
    recording.event().from = peer.index();
    recording.event().bytes = bytes;
  }
  variable = std::move(own);
  return true;
}

/// Before elements change: copies of what they were go first, as they may hold
/// the array's blocks.
void drop_copies(const ArrayValue& variable) {
  if (variable.use_count() == 1) variable->copies.reset();
}

/// All elements of `variable`, dense and row-major, for writing, by the rules
/// in elements.h; null where a graph has to do it. The pointer serves until
/// somebody else may hold the array: it is asked for again for each write,
/// which costs a few loads.
uint8_t* own_elements(Walk& walk, ArrayValue& variable) {
  if (variable->constant && !make_array(walk, variable)) return nullptr;
  drop_copies(variable);
  const std::shared_ptr<Buffer>* block = whole_block(*variable);
  if (!block) return nullptr;
  Device& first = home_device(walk.machine().runtime->devices());
  if (!is_sole_owner(variable, *block, first) &&
      !copy_array(walk, variable, *block, first))
    return nullptr;
  return static_cast<uint8_t*>(variable->array->blocks()[0]->data());
}

}  // namespace

bool is_computed_here(Walk& walk) {
  const Machine& machine = walk.machine();
  return walk.mode() == Mode::run && !machine.compile_only &&
         home_device(machine.runtime->devices()).kind() == DeviceKind::cpu;
}

const uint8_t* readable_elements(const ArrayCell& cell) {
  if (cell.constant)
    return static_cast<int64_t>(cell.constant->size()) == cell.type.bytes()
               ? cell.constant->data()
               : nullptr;
  const std::shared_ptr<Buffer>* block = whole_block(cell);
  return block ? static_cast<const uint8_t*>((*block)->data()) : nullptr;
}

std::optional<int64_t> position_there(const ArrayCell& scalar,
                                      const ir::Dim& size) {
  return from_start(integer_of(scalar), size);
}

UnsetArray unset_array(Walk& walk, DType dtype, const ir::Shape& shape) {
  Device& first = home_device(walk.machine().runtime->devices());
  std::shared_ptr<const ArrayLayout> layout =
      walk.whole_layout(dtype, shape, first);
  int64_t bytes = byte_size(dtype);
  for (const int64_t size : layout->shape) bytes *= size;
  auto buffer = first.allocate(bytes);
  if (!buffer) return {};
  auto* elements = static_cast<uint8_t*>(buffer->data());
  DeviceBlocks blocks;
  blocks.push_back(make_recycled<Buffer>(std::move(*buffer)));
  return {walk.from_array(unisono::Array(std::move(layout), std::move(blocks))),
          elements};
}

ArrayValue element_at(Walk& walk, const ArrayCell& array,
                      const std::vector<IndexItem>& items) {
  if (!is_computed_here(walk)) return nullptr;
  const auto number = element_number(array.type.shape, items);
  const uint8_t* elements = number ? readable_elements(array) : nullptr;
  if (!elements) return nullptr;
  const DType dtype = array.type.dtype;
  auto [out, data] = unset_array(walk, dtype, {});
  if (out)
    std::memcpy(data, elements + *number * byte_size(dtype), byte_size(dtype));
  return out;
}

bool set_element(Walk& walk, ArrayValue& variable,
                 const std::vector<IndexItem>& items,
                 const CallArgument& value) {
  if (!is_computed_here(walk)) return false;
  const DType dtype = variable->type.dtype;
  const auto number = element_number(variable->type.shape, items);
  if (!number) return false;
  const auto element = element_of(walk, value, dtype);
  if (!element) return false;
  uint8_t* data = own_elements(walk, variable);
  if (!data) return false;
  std::memcpy(data + *number * byte_size(dtype), element->bytes.data(),
              byte_size(dtype));
  return true;
}

namespace {
/// By compiled code, which writes to the array. No index is out of range. False
/// while the evaluator's loop is worth more than that code.
bool scatter_over(Walk& walk, ir::Op scatter, ArrayValue& variable,
                  const ArrayValue& updates,
                  const std::vector<ArrayValue>& indices, ir::IndexAttrs attrs,
                  Span where) {
  ir::Graph graph;
  std::vector<ir::NodeId> operands = {graph.add_input(variable->type),
                                      graph.add_input(updates->type)};
  for (const ArrayValue& index : indices)
    operands.push_back(graph.add_input(index->type));
  attrs.checked = false;
  graph.outputs = {graph.add(scatter, std::move(operands), std::move(attrs),
                             walk.source_id(where))};
  if (is_evaluated(walk, graph)) return false;
  std::vector<unisono::Array> others = {walk.force(updates, where)};
  for (const ArrayValue& index : indices)
    others.push_back(walk.force(index, where));
  overwrite(walk, std::move(graph), *variable, std::move(others), where);
  return true;
}
}  // namespace

bool scatter_in_place(Walk& walk, ir::Op scatter, ArrayValue& variable,
                      const ArrayValue& updates,
                      const std::vector<ArrayValue>& indices,
                      const ir::IndexAttrs& attrs, Span where) {
  if (!is_computed_here(walk)) return false;
  const Machine& machine = walk.machine();
  int64_t bytes = updates->type.bytes();
  for (const ArrayValue& index : indices) bytes += index->type.bytes();
  const bool many = bytes >= machine.compile_threshold;
  const bool compiled = many && !machine.reference_only;
  // Of the array the loop only needs the type.
  const ir::Type type = variable->type;
  std::vector<jit::reference::View> views = {{type, nullptr}};
  std::vector<std::vector<uint8_t>> expanded(1 + indices.size());
  const auto add = [&](const ArrayCell& cell) {
    views.push_back(
        {cell.type, dense_elements(cell, expanded[views.size() - 1])});
    return views.back().data != nullptr;
  };
  if (compiled && updates->constant)
    views.push_back({updates->type, nullptr});  // filled if it is read here
  else if (!add(*updates))
    return false;
  for (size_t i = 0; i < indices.size(); ++i) {
    const int64_t size = type.shape[attrs.axes[i]].value();
    if (!add(*indices[i]) || !all_in_range(views.back(), size)) return false;
  }
  if (many) {
    drop_copies(variable);
    const std::shared_ptr<Buffer>* block = whole_block(*variable);
    Device& first = home_device(machine.runtime->devices());
    if (!block || !is_sole_owner(variable, *block, first)) return false;
    if (compiled &&
        scatter_over(walk, scatter, variable, updates, indices, attrs, where))
      return true;
  }
  uint8_t* data = own_elements(walk, variable);
  if (!data) return false;
  if (!views[1].data) views[1].data = dense_elements(*updates, expanded[0]);
  const ir::Node node{scatter, {}, attrs, type, 0};
  // Without checks there is no error.
  (void)jit::reference::scatter(node, views, /*checked=*/false, data);
  return true;
}

// ---- boxes -----------------------------------------------------------------

namespace {

using Kind = Selection::Kind;

/// Whether it is not there yet, or was given away.
bool is_pending(const ArrayValue& value) {
  return !value->array && !value->constant;
}

/// Whether an axis that is cut over devices is selected only in part.
bool cuts_a_split_axis(const IndexPlan& plan, const Sharding& sharding) {
  return std::ranges::any_of(plan.selections, [&](const Selection& s) {
    if (s.kind == Kind::full || s.kind == Kind::newaxis) return false;
    return s.axis == sharding.axis ||
           std::ranges::any_of(sharding.mesh, [&](const MeshCut& cut) {
             return cut.axis == s.axis;
           });
  });
}

int64_t count_of(const Elements& box) {
  int64_t count = 1;
  for (const int64_t size : box.extent) count *= size;
  return count;
}

/// Where a box is read at once: see read_box.
bool is_read_at_once(Walk& walk, const unisono::Array& array,
                     const IndexPlan& plan, const Elements& box) {
  if (array.sharding().is_split())
    return cuts_a_split_axis(plan, array.sharding());
  const bool has_slices = std::ranges::any_of(
      plan.selections,
      [](const Selection& s) { return s.kind == Kind::slice; });
  return has_slices || count_of(box) * byte_size(array.dtype()) <
                           walk.machine().compile_threshold;
}

/// Copies that leave a device are counted; moves in one device's memory are
/// work like any other.
CopyCounter* counter_of(const unisono::Array& array, const Device& device,
                        CopyCounter& counter) {
  const bool stays = std::ranges::all_of(
      array.sharding().devices, [&](Device* each) { return each == &device; });
  return stays ? nullptr : &counter;
}

/// A value with the rank of an array of which it is to become the box: along
/// each axis it has one element or all.
unisono::Array along_axes(const unisono::Array& value, const IndexPlan& plan,
                          size_t rank) {
  std::vector<int> axes;  // of the array; -1: a new one, of size 1
  for (const Selection* s : plan.layout())
    if (s) axes.push_back(s->kind == Kind::newaxis ? -1 : s->axis);
  const size_t more = axes.size() - value.shape().size();
  std::vector<int64_t> shape(rank, 1);
  for (size_t i = 0; i < value.shape().size(); ++i)
    if (axes[i + more] >= 0) shape[axes[i + more]] = value.shape()[i];
  Sharding sharding = value.sharding();
  const auto moved = [&](int axis) {
    return axis < 0 ? axis : axes[static_cast<size_t>(axis) + more];
  };
  sharding.axis = moved(sharding.axis);
  for (MeshCut& cut : sharding.mesh) cut.axis = moved(cut.axis);
  return {value.dtype(), std::move(shape), std::move(sharding), value.blocks()};
}

/// What is written, as an array: a constant becomes one, of one element if it
/// has no other.
std::optional<unisono::Array> written_array(Walk& walk,
                                            const ArrayValue& value) {
  if (value->array) return *value->array;
  const std::vector<uint8_t>& bytes = *value->constant;
  const bool all = static_cast<int64_t>(bytes.size()) == value->type.bytes();
  const UnsetArray out = unset_array(walk, value->type.dtype,
                                     all ? value->type.shape : ir::Shape());
  if (!out.array) return std::nullopt;
  std::memcpy(out.elements, bytes.data(), bytes.size());
  return *out.array->array;
}

/// Makes the block its array's own: of what something else holds, a copy.
void make_own(Walk& walk, std::shared_ptr<Buffer>& block, Device& device,
              Span where) {
  if (block.use_count() == 1) return;
  LineTimes* times = line_times(walk);
  if (times)
    times->note(0,
                "the update copies a block of the array: another name, or a "
                "value that is still to be computed, holds it");
  const LineTime time(times, LineTimes::Part::copies, 0);
  Result<Buffer> copy = device.allocate(block->bytes());
  if (!copy) walk.fail(copy.error(), where);
  Recording recording(walk.machine().recorder, Recorder::Kind::copy,
                      device.index());
  const Status copied = device.copy_from_peer(copy->data(), device,
                                              block->data(), block->bytes());
  if (!copied) walk.fail(copied.error(), where);
  if (recording) {
    recording.event().from = device.index();
    recording.event().bytes = block->bytes();
  }
  block = make_recycled<Buffer>(std::move(*copy));
}

/// Writes the box to the blocks of a split array.
void store_in_blocks(Walk& walk, ArrayValue& variable, const Elements& box,
                     const unisono::Array& from, Span where) {
  CopyCounter counter{.recorder = walk.machine().recorder};
  const ArrayLayout layout = variable->array->layout();
  DeviceBlocks blocks = variable->array->blocks();
  drop_copies(variable);
  // The array's own hold on its blocks ends meanwhile, unless others have it.
  if (variable.use_count() == 1) variable->array.reset();
  const auto put_back = [&] {
    unisono::Array array(layout.dtype, layout.shape, layout.sharding,
                         std::move(blocks));
    if (variable.use_count() == 1)
      variable->array.emplace(std::move(array));
    else
      variable = walk.from_array(std::move(array));
  };
  tell_place(walk, where);
  try {
    for (const size_t b : blocks_with(layout, box))
      make_own(walk, blocks[b], *layout.sharding.devices[b], where);
    const Status written = write_elements(layout, blocks, box, from, &counter);
    if (!written) walk.fail(written.error(), where);
  } catch (...) {
    put_back();
    throw;
  }
  put_back();
}

}  // namespace

std::optional<Elements> box_of(const IndexPlan& plan) {
  size_t rank = 0;
  for (const Selection& s : plan.selections) rank += s.axis >= 0;
  Elements box{std::vector<int64_t>(rank, 0), std::vector<int64_t>(rank, 1),
               std::vector<int64_t>(rank, 1)};
  for (const Selection& s : plan.selections) {
    if (s.axis < 0) continue;
    const auto axis = static_cast<size_t>(s.axis);
    if (s.kind == Kind::computed) {
      if (!s.place) return std::nullopt;
      box.start[axis] = *s.place;
      continue;
    }
    box.extent[axis] = s.size.value();
    if (s.kind == Kind::full) continue;
    box.start[axis] = s.start.value();
    box.step[axis] = s.step.value();
  }
  return box;
}

ArrayValue read_box(Walk& walk, const ArrayValue& base, const IndexPlan& plan,
                    Span where) {
  if (!base->array || !is_computed_here(walk) ||
      std::ranges::none_of(plan.selections,
                           [](const Selection& s) { return s.moves; }))
    return nullptr;
  const unisono::Array& array = *base->array;
  const auto box = box_of(plan);
  if (!box || is_in_file(array) || !is_read_at_once(walk, array, plan, *box))
    return nullptr;
  auto [out, data] = unset_array(walk, base->type.dtype, plan.shape());
  if (!out) return nullptr;
  Device& home = home_device(walk.machine().runtime->devices());
  CopyCounter counter{.recorder = walk.machine().recorder};
  if (array.sharding().is_split()) tell_place(walk, where);
  const Status read = read_elements(data, home, own_copy(walk, array), *box,
                                    counter_of(array, home, counter));
  if (!read) walk.fail(read.error(), where);
  return out;
}

void release(Walk& walk, const ArrayValue& variable,
             std::span<const ArrayValue> operands, Span where) {
  if (!is_computed_here(walk) || is_pending(variable)) return;
  if (variable.use_count() > 1 || std::ranges::any_of(operands, is_pending))
    walk.flush(where);
}

bool store_box(Walk& walk, ArrayValue& variable, const IndexPlan& plan,
               const ArrayValue& value, bool is_joined, Span where) {
  if (!is_computed_here(walk) || is_pending(variable)) return false;
  const bool spread = variable->array && variable->array->sharding().is_split();
  if (variable->array && is_in_file(*variable->array)) return false;
  if (is_pending(value) && is_joined && !spread) return false;
  const auto box = box_of(plan);
  if (!box) return false;
  release(walk, variable, {&value, 1}, where);
  if (is_pending(value) || (value->array && is_in_file(*value->array)))
    return false;
  const auto written = written_array(walk, value);
  if (!written) return false;
  const unisono::Array from =
      along_axes(own_copy(walk, *written), plan, box->start.size());
  if (spread) {
    store_in_blocks(walk, variable, *box, from, where);
    return true;
  }
  if (!own_elements(walk, variable)) return false;
  const unisono::Array& array = *variable->array;
  CopyCounter counter{.recorder = walk.machine().recorder};
  const Status stored =
      write_elements(array.layout(), array.blocks(), *box, from,
                     counter_of(from, *array.sharding().devices[0], counter));
  if (!stored) walk.fail(stored.error(), where);
  return true;
}

}  // namespace unisono::lang
