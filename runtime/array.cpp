#include "runtime/array.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "runtime/array_blocks.h"
#include "runtime/check.h"
#include "runtime/recorder.h"
#include "runtime/stop.h"

namespace unisono {
namespace {

using Shape = std::vector<int64_t>;

int64_t product(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1},
                         std::multiplies<>());
}

/// The sharding as cuts of a mesh; a line of devices is one axis of it.
std::vector<MeshCut> cuts_of(const Sharding& sharding) {
  if (!sharding.mesh.empty()) return sharding.mesh;
  return {{static_cast<int64_t>(sharding.devices.size()), sharding.axis}};
}

Shape block_shape_of(const Shape& shape, const Sharding& sharding) {
  Shape block = shape;
  for (const MeshCut& cut : cuts_of(sharding)) {
    if (cut.axis < 0) continue;
    CHECK(static_cast<size_t>(cut.axis) < shape.size());
    CHECK(cut.size > 0 && block[cut.axis] % cut.size == 0);
    block[cut.axis] /= cut.size;
  }
  return block;
}

/// Where the device of a block stands along each of the mesh's axes.
Shape place_of(const std::vector<MeshCut>& cuts, size_t block) {
  Shape place(cuts.size());
  auto rest = static_cast<int64_t>(block);
  for (size_t i = cuts.size(); i-- > 0; rest /= cuts[i].size)
    place[i] = rest % cuts[i].size;
  return place;
}

/// The part of an array that one block holds.
struct Box {
  Shape origin, extent;
  bool operator==(const Box&) const = default;
  bool empty() const { return product(extent) == 0; }
};

Box box_of(const Shape& shape, const Sharding& sharding, size_t block) {
  const std::vector<MeshCut> cuts = cuts_of(sharding);
  const Shape place = place_of(cuts, block);
  Box box{Shape(shape.size(), 0), shape};
  for (size_t i = 0; i < cuts.size(); ++i) {
    const int axis = cuts[i].axis;
    if (axis < 0) continue;
    box.extent[axis] /= cuts[i].size;
    box.origin[axis] += place[i] * box.extent[axis];
  }
  return box;
}

/// Blocks that hold each element once: of copies, those that stand nearest to
/// the device, or else the first.
std::vector<size_t> one_of_each(const Sharding& sharding,
                                const Device* device) {
  const std::vector<MeshCut> cuts = cuts_of(sharding);
  const auto own =
      std::find(sharding.devices.begin(), sharding.devices.end(), device);
  const Shape near = place_of(
      cuts, own == sharding.devices.end() ? 0 : own - sharding.devices.begin());
  std::vector<size_t> blocks;
  for (size_t b = 0; b < sharding.devices.size(); ++b) {
    const Shape place = place_of(cuts, b);
    bool chosen = true;
    for (size_t i = 0; i < cuts.size(); ++i)
      chosen &= cuts[i].axis >= 0 || place[i] == near[i];
    if (chosen) blocks.push_back(b);
  }
  return blocks;
}

Box intersect(const Box& a, const Box& b) {
  Box both = a;
  for (size_t i = 0; i < a.origin.size(); ++i) {
    int64_t begin = std::max(a.origin[i], b.origin[i]);
    int64_t end =
        std::min(a.origin[i] + a.extent[i], b.origin[i] + b.extent[i]);
    both.origin[i] = begin;
    both.extent[i] = std::max<int64_t>(end - begin, 0);
  }
  return both;
}

/// One side of a copy: bytes to its first element, and along each axis from one
/// element to the next.
struct Side {
  int64_t offset = 0;
  Shape steps;
};

/// `elements` of the dense block that holds `box`.
Side side_of(const Box& box, const Elements& elements, int64_t element_bytes) {
  Side side{0, Shape(box.extent.size())};
  int64_t bytes = element_bytes;
  for (size_t i = box.extent.size(); i-- > 0; bytes *= box.extent[i]) {
    side.offset += (elements.start[i] - box.origin[i]) * bytes;
    side.steps[i] = elements.step[i] * bytes;
  }
  return side;
}

/// The same of a part that lies dense.
Side side_of(const Box& box, const Box& part, int64_t element_bytes) {
  const Shape ones(part.extent.size(), 1);
  return side_of(box, Elements{part.origin, ones, part.extent}, element_bytes);
}

/// Calls copy(to offset, from offset, extent) until `extent` elements along
/// each axis are covered, or a copy fails.
template <class Copy>
Status for_each_copy(Shape extent, Side to, Side from, int64_t element_bytes,
                     Copy&& copy) {
  // What neighbours on both sides makes one axis with the one before.
  size_t axes = 0;
  for (size_t i = 0; i < extent.size(); ++i) {
    if (extent[i] == 0) return Unit{};
    if (extent[i] == 1) continue;
    const bool joins = axes > 0 &&
                       to.steps[axes - 1] == extent[i] * to.steps[i] &&
                       from.steps[axes - 1] == extent[i] * from.steps[i];
    const size_t at = joins ? axes - 1 : axes++;
    extent[at] = joins ? extent[at] * extent[i] : extent[i];
    to.steps[at] = to.steps[i];
    from.steps[at] = from.steps[i];
  }
  // The last one is a run, if it is dense, and the one before its rows.
  CopyExtent rows(element_bytes);
  if (axes > 0 && to.steps[axes - 1] == rows.bytes &&
      from.steps[axes - 1] == rows.bytes)
    rows = CopyExtent(extent[--axes] * element_bytes);
  if (axes > 0) {
    --axes;
    rows =
        CopyExtent(rows.bytes, extent[axes], to.steps[axes], from.steps[axes]);
  }
  Shape index(axes, 0);
  for (;;) {
    int64_t to_offset = to.offset, from_offset = from.offset;
    for (size_t i = 0; i < axes; ++i) {
      to_offset += index[i] * to.steps[i];
      from_offset += index[i] * from.steps[i];
    }
    TRY(copy(to_offset, from_offset, rows));
    size_t axis = axes;
    for (; axis > 0; --axis) {
      if (++index[axis - 1] < extent[axis - 1]) break;
      index[axis - 1] = 0;
    }
    if (axis == 0) return Unit{};
  }
}

/// Those of `elements` that a block has, by their numbers along each axis.
Box numbers_in(const Elements& elements, const Box& block) {
  Box numbers{elements.start, elements.extent};
  for (size_t i = 0; i < block.origin.size(); ++i) {
    const int64_t step = elements.step[i], by = std::abs(step);
    const int64_t first = block.origin[i], last = first + block.extent[i] - 1;
    // From the start to the nearer and to the farther end of the block.
    const int64_t near =
        step > 0 ? first - elements.start[i] : elements.start[i] - last;
    const int64_t far =
        step > 0 ? last - elements.start[i] : elements.start[i] - first;
    const int64_t begin = near <= 0 ? 0 : (near + by - 1) / by;
    const int64_t end =
        far < 0 ? 0 : std::min(far / by + 1, elements.extent[i]);
    numbers.origin[i] = begin;
    numbers.extent[i] = std::max<int64_t>(end - begin, 0);
  }
  return numbers;
}

/// Those with these numbers.
Elements some_of(const Elements& elements, const Box& numbers) {
  Elements some{elements.start, elements.step, numbers.extent};
  for (size_t i = 0; i < some.start.size(); ++i)
    some.start[i] += numbers.origin[i] * elements.step[i];
  return some;
}

void check_inside(const Elements& elements, const Shape& shape) {
  CHECK(elements.start.size() == shape.size() &&
        elements.step.size() == shape.size() &&
        elements.extent.size() == shape.size());
  for (size_t i = 0; i < shape.size(); ++i) {
    if (elements.extent[i] == 0) continue;
    const int64_t first = elements.start[i],
                  last = first + (elements.extent[i] - 1) * elements.step[i];
    CHECK(elements.step[i] != 0 && elements.extent[i] > 0);
    CHECK(std::min(first, last) >= 0 && std::max(first, last) < shape[i]);
  }
}

/// Copies as for_each_copy says between memory of two devices, and counts it.
Status copy_between(Device& device, char* to, const Side& to_side,
                    const Device& peer, const char* from, const Side& from_side,
                    const Shape& extent, int64_t element_bytes,
                    CopyCounter& counter) {
  Recording recording(counter.recorder, Recorder::Kind::copy, device.index());
  TRY(for_each_copy(
      extent, to_side, from_side, element_bytes,
      [&](int64_t to_offset, int64_t from_offset, const CopyExtent& rows) {
        return device.copy_from_peer(to + to_offset, peer, from + from_offset,
                                     rows);
      }));
  const int64_t bytes = product(extent) * element_bytes;
  ++counter.copies;
  counter.bytes += bytes;
  if (recording) {
    recording.event().from = peer.index();
    recording.event().bytes = bytes;
  }
  return Unit{};
}

/// Fills `to` (which holds `box` on `device`) from the array's blocks.
Status fill_block(Buffer& to, const Box& box, Device& device,
                  const Array& array, CopyCounter& counter) {
  const Elements elements{box.origin, Shape(box.origin.size(), 1), box.extent};
  return read_elements(to.data(), device, array, elements, &counter);
}

/// The array's block that holds exactly `box` on `device`, or null.
std::shared_ptr<Buffer> find_block(const Array& array, const Box& box,
                                   const Device* device) {
  const Sharding& sharding = array.sharding();
  for (size_t b = 0; b < array.blocks().size(); ++b)
    if (sharding.devices[b] == device &&
        box_of(array.shape(), sharding, b) == box)
      return array.blocks()[b];
  return nullptr;
}

}  // namespace

Status read_elements(void* to, Device& device, const Array& array,
                     const Elements& elements, CopyCounter* counter) {
  check_inside(elements, array.shape());
  const Sharding& sharding = array.sharding();
  const int64_t element_bytes = byte_size(array.dtype());
  const Box all{Shape(elements.extent.size(), 0), elements.extent};
  CopyCounter uncounted;
  for (const size_t b : one_of_each(sharding, &device)) {
    const Box block = box_of(array.shape(), sharding, b);
    const Box numbers = numbers_in(elements, block);
    if (numbers.empty()) continue;
    TRY(copy_between(device, static_cast<char*>(to),
                     side_of(all, numbers, element_bytes), *sharding.devices[b],
                     static_cast<const char*>(array.blocks()[b]->data()),
                     side_of(block, some_of(elements, numbers), element_bytes),
                     numbers.extent, element_bytes,
                     counter ? *counter : uncounted));
  }
  return Unit{};
}

std::vector<size_t> blocks_with(const ArrayLayout& layout,
                                const Elements& elements) {
  std::vector<size_t> found;
  for (size_t b = 0; b < layout.sharding.devices.size(); ++b)
    if (!numbers_in(elements, box_of(layout.shape, layout.sharding, b)).empty())
      found.push_back(b);
  return found;
}

Status write_elements(const ArrayLayout& layout, const DeviceBlocks& blocks,
                      const Elements& elements, const Array& from,
                      CopyCounter* counter) {
  check_inside(elements, layout.shape);
  CHECK(from.shape().size() == layout.shape.size());
  const Sharding& sharding = layout.sharding;
  const int64_t element_bytes = byte_size(layout.dtype);
  CopyCounter uncounted;
  for (const size_t b : blocks_with(layout, elements)) {
    Device& device = *sharding.devices[b];
    const Box block = box_of(layout.shape, sharding, b);
    const Box wanted = numbers_in(elements, block);
    for (const size_t f : one_of_each(from.sharding(), &device)) {
      const Box given = box_of(from.shape(), from.sharding(), f);
      // An axis of one element has it for all numbers.
      Box of_all = given;
      for (size_t i = 0; i < of_all.extent.size(); ++i)
        if (from.shape()[i] == 1) of_all.extent[i] = elements.extent[i];
      const Box numbers = intersect(wanted, of_all);
      if (numbers.empty()) continue;
      Elements read{numbers.origin, Shape(numbers.origin.size(), 1),
                    numbers.extent};
      for (size_t i = 0; i < read.start.size(); ++i)
        if (from.shape()[i] == 1) read.start[i] = read.step[i] = 0;
      TRY(copy_between(
          device, static_cast<char*>(blocks[b]->data()),
          side_of(block, some_of(elements, numbers), element_bytes),
          *from.sharding().devices[f],
          static_cast<const char*>(from.blocks()[f]->data()),
          side_of(given, read, element_bytes), numbers.extent, element_bytes,
          counter && from.sharding().devices[f] != &device ? *counter
                                                           : uncounted));
    }
  }
  return Unit{};
}

Sharding Sharding::on_mesh(std::vector<MeshCut> mesh,
                           std::vector<Device*> devices) {
  std::erase_if(mesh, [](const MeshCut& cut) { return cut.size == 1; });
  // Neighbours that share one axis, or nothing, are one line of devices.
  for (size_t i = 1; i < mesh.size();) {
    if (mesh[i].axis != mesh[i - 1].axis) {
      ++i;
      continue;
    }
    mesh[i - 1].size *= mesh[i].size;
    mesh.erase(mesh.begin() + static_cast<std::ptrdiff_t>(i));
  }
  if (mesh.empty()) return {-1, std::move(devices), {}};
  if (mesh.size() == 1) return {mesh[0].axis, std::move(devices), {}};
  return {-1, std::move(devices), std::move(mesh)};
}

bool Sharding::is_split() const {
  return axis >= 0 ||
         std::any_of(mesh.begin(), mesh.end(),
                     [](const MeshCut& cut) { return cut.axis >= 0; });
}

std::string Sharding::to_string() const {
  std::string text = is_split() ? fmt::format("split({}) over ", axis)
                     : devices.size() == 1 ? "on "
                                           : "copied to ";
  if (!mesh.empty()) {
    std::string axes, sizes;
    for (const MeshCut& cut : mesh) {
      axes += axes.empty() ? "" : ", ";
      axes += cut.axis < 0 ? "none" : std::to_string(cut.axis);
      sizes += fmt::format("{}{}", sizes.empty() ? "" : " x ", cut.size);
    }
    text = fmt::format("split({}) over {} devices: ", axes, sizes);
  }
  for (size_t i = 0; i < devices.size(); ++i) {
    if (i > 0) text += ", ";
    text += devices[i]->name();
  }
  return text;
}

const ArrayLayout Array::no_layout;

Array::Array(DType dtype, std::vector<int64_t> shape, Sharding sharding,
             DeviceBlocks blocks)
    : Array(make_recycled<ArrayLayout>(dtype, std::move(shape),
                                       std::move(sharding)),
            std::move(blocks)) {}

int64_t Array::elements() const { return product(shape()); }

std::vector<int64_t> Array::block_shape() const {
  return block_shape_of(shape(), sharding());
}

namespace {

/// Memory for an array; where there is none, the error says for which.
Result<Buffer> allocate_for(Device& device, DType dtype, const Shape& shape) {
  Result<Buffer> buffer = device.allocate(product(shape) * byte_size(dtype));
  if (buffer || buffer.error().kind != Error::Kind::out_of_memory)
    return buffer;
  Error error = buffer.error();
  error.message +=
      fmt::format("; it is for {}[{}]", name(dtype), fmt::join(shape, ", "));
  return error;
}

}  // namespace

Result<Array> array_from_host(Device& device, DType dtype,
                              std::vector<int64_t> shape, const void* bytes) {
  Buffer buffer = TRY(allocate_for(device, dtype, shape));
  TRY(device.copy_from_host(buffer.data(), bytes,
                            product(shape) * byte_size(dtype)));
  return Array(dtype, std::move(shape), Sharding{-1, {&device}},
               {std::make_shared<Buffer>(std::move(buffer))});
}

Result<std::vector<uint8_t>> array_to_host(const Array& array,
                                           CopyCounter* counter) {
  std::vector<uint8_t> bytes;
  TRY(unless_stopped([&]() -> Status {
    resize_in_pieces(bytes, array.bytes());
    return Unit{};
  }));
  if (bytes.empty()) return bytes;
  Box whole{Shape(array.shape().size(), 0), array.shape()};
  const Sharding& sharding = array.sharding();
  for (size_t b : one_of_each(sharding, nullptr)) {
    Box box = box_of(array.shape(), sharding, b);
    const int64_t block_bytes = product(box.extent) * byte_size(array.dtype());
    Recording recording(counter ? counter->recorder : nullptr,
                        Recorder::Kind::copy, Recorder::host);
    if (recording) {
      recording.event().from = sharding.devices[b]->index();
      recording.event().bytes = block_bytes;
    }
    if (counter) {
      ++counter->copies;
      counter->bytes += block_bytes;
    }
    const auto* from = static_cast<const char*>(array.blocks()[b]->data());
    const int64_t element_bytes = byte_size(array.dtype());
    TRY(for_each_copy(
        box.extent, side_of(whole, box, element_bytes),
        side_of(box, box, element_bytes), element_bytes,
        [&](int64_t to, int64_t offset, const CopyExtent& extent) {
          return sharding.devices[b]->copy_to_host(bytes.data() + to,
                                                   from + offset, extent);
        }));
  }
  return bytes;
}

std::vector<size_t> distinct_blocks(const Sharding& sharding) {
  return one_of_each(sharding, nullptr);
}

Status for_each_run(const Array& array, size_t block, const RunVisitor& visit) {
  if (array.bytes() == 0) return Unit{};
  const Box whole{Shape(array.shape().size(), 0), array.shape()};
  const Box box = box_of(array.shape(), array.sharding(), block);
  const int64_t element_bytes = byte_size(array.dtype());
  return for_each_copy(box.extent, side_of(whole, box, element_bytes),
                       side_of(box, box, element_bytes), element_bytes, visit);
}

Result<BegunReshard> begin_reshard(const Array& array, const Sharding& to,
                                   CopyCounter& counter) {
  CHECK(!to.devices.empty());
  struct Block {
    std::shared_ptr<Buffer> buffer;
    Box box;
    Device* device;
  };
  std::vector<Block> missing;
  DeviceBlocks blocks;
  BegunReshard begun;
  for (size_t b = 0; b < to.devices.size(); ++b) {
    Device& device = *to.devices[b];
    Box box = box_of(array.shape(), to, b);
    if (auto shared = find_block(array, box, &device)) {
      blocks.push_back(std::move(shared));
      continue;
    }
    blocks.push_back(std::make_shared<Buffer>(
        TRY(allocate_for(device, array.dtype(), box.extent))));
    begun.places.push_back(blocks.back()->data());
    for (size_t from : one_of_each(array.sharding(), &device)) {
      const Box part =
          intersect(box, box_of(array.shape(), array.sharding(), from));
      if (part.empty()) continue;
      ++counter.copies;
      counter.bytes += product(part.extent) * byte_size(array.dtype());
    }
    missing.push_back({blocks.back(), std::move(box), &device});
  }
  begun.array = Array(array.dtype(), array.shape(), to, std::move(blocks));
  begun.fill = [array, missing = std::move(missing),
                recorder = counter.recorder]() -> Status {
    CopyCounter counted{.recorder = recorder};
    for (const Block& block : missing)
      TRY(fill_block(*block.buffer, block.box, *block.device, array, counted));
    return Unit{};
  };
  return begun;
}

Result<Array> reshard(const Array& array, const Sharding& to,
                      CopyCounter* counter) {
  CopyCounter moved;
  if (counter) moved.recorder = counter->recorder;
  BegunReshard begun = TRY(begin_reshard(array, to, moved));
  TRY(begun.fill());
  if (counter) {
    counter->copies += moved.copies;
    counter->bytes += moved.bytes;
  }
  return std::move(begun.array);
}

Result<Array> copy_part(const Array& array, const Shape& start,
                        const Shape& extent, Device& device,
                        CopyCounter* counter) {
  const Box box{start, extent};
  const Sharding to{-1, {&device}};
  CHECK(start.size() == array.shape().size() && start.size() == extent.size());
  for (size_t i = 0; i < start.size(); ++i)
    CHECK(start[i] >= 0 && start[i] + extent[i] <= array.shape()[i]);
  if (auto shared = find_block(array, box, &device))
    return Array(array.dtype(), extent, to, {std::move(shared)});
  Buffer buffer = TRY(allocate_for(device, array.dtype(), extent));
  CopyCounter moved;
  TRY(fill_block(buffer, box, device, array, counter ? *counter : moved));
  return Array(array.dtype(), extent, to,
               {std::make_shared<Buffer>(std::move(buffer))});
}

}  // namespace unisono
