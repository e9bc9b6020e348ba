// The two meanings of a map agree: member by member, and as the graph that
// every device runs on its own blocks.
#include "jit/partition/map_graph.h"

#include <doctest/doctest.h>

#include <cstring>

#include "jit/ir/verify.h"

namespace unisono::jit {
namespace {

using ir::Dim;
using ir::Graph;
using ir::Type;

HostArray counting(std::vector<int64_t> sizes) {
  HostArray out{{DType::F32, {sizes.begin(), sizes.end()}}, {}};
  std::vector<float> values(static_cast<size_t>(out.type.elements()));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(i % 97) * 0.37f - 11;
  out.bytes.resize(values.size() * sizeof(float));
  std::memcpy(out.bytes.data(), values.data(), out.bytes.size());
  return out;
}

/// The block of device `d`: `array` cut along an axis.
HostArray block(const HostArray& array, const AxisEntry& entry, int64_t d,
                int64_t devices) {
  if (entry.is_none()) return array;
  HostArray out{array.type, {}};
  const int axis = entry.axis;
  const int64_t size = array.type.shape[axis].value() / devices;
  out.type.shape[axis] = size;
  int64_t outer = 1, inner = byte_size(array.type.dtype);
  for (int i = 0; i < axis; ++i) outer *= array.type.shape[i].value();
  for (int i = axis + 1; i < array.type.rank(); ++i)
    inner *= array.type.shape[i].value();
  for (int64_t o = 0; o < outer; ++o) {
    const auto* from =
        array.bytes.data() + (o * size * devices + d * size) * inner;
    out.bytes.insert(out.bytes.end(), from, from + size * inner);
  }
  return out;
}

/// Runs both forms, and compares each device's blocks bit for bit.
void check_agreement(const MemberGraph& map,
                     const std::vector<HostArray>& inputs,
                     const std::vector<Type>& outputs) {
  const auto whole = evaluate_map(map, inputs, {});
  REQUIRE(whole);
  const Graph device = device_graph(map);
  const auto verified = ir::verify(device);
  REQUIRE_MESSAGE(verified, (verified ? "" : verified.error().message));
  const MapAxis& along = map.axes[0];
  std::vector<std::vector<HostArray>> blocks(along.devices);
  for (int d = 0; d < along.devices; ++d)
    for (size_t i = 0; i < inputs.size(); ++i)
      blocks[d].push_back(block(inputs[i], along.inputs[i], d, along.devices));
  const auto parts = jit::evaluate_members(device, along.id, blocks);
  REQUIRE_MESSAGE(parts, (parts ? "" : parts.error().message));
  for (int d = 0; d < along.devices; ++d) {
    for (size_t i = 0; i < outputs.size(); ++i) {
      CAPTURE(d);
      CAPTURE(i);
      const HostArray wanted =
          block((*whole)[i], along.outputs[i], d, along.devices);
      CHECK((*parts)[d][i].type == wanted.type);
      CHECK((*parts)[d][i].bytes == wanted.bytes);
    }
  }
}

constexpr ir::AxisId axis = 7;
AxisEntry mapped(int k) { return {AxisEntry::Kind::mapped, k}; }
AxisEntry split(int k) { return {AxisEntry::Kind::split, k}; }

ir::CollectiveAttrs over_members(int64_t members) {
  ir::CollectiveAttrs attrs;
  attrs.axes = {axis};
  attrs.sizes = {members};
  return attrs;
}

}  // namespace

TEST_CASE("integer axes: any number of members on any number of devices") {
  for (const auto& [devices, per_device] : std::vector<std::pair<int, int64_t>>{
           {1, 1}, {1, 5}, {2, 3}, {3, 1}, {3, 2}, {4, 3}, {5, 4}}) {
    CAPTURE(devices);
    CAPTURE(per_device);
    const int64_t members = devices * per_device;
    MemberGraph map;
    map.axes = {{axis,
                 devices,
                 per_device,
                 {mapped(1), AxisEntry{}},
                 {mapped(2), AxisEntry{}, mapped(0), split(1)}}};
    Graph& g = map.graph;
    const auto x = g.add_input({DType::F32, {2, 3}});
    const auto y = g.add_input({DType::F32, {2, 3}});
    const auto sum = g.add(ir::Op::add, {x, y});
    const auto total = g.add(ir::Op::all_reduce, {sum}, over_members(members));
    const auto index = g.add(ir::Op::axis_index, {}, over_members(members));
    g.outputs = {sum, total, index, x};
    check_agreement(map, {counting({2, members, 3}), counting({2, 3})},
                    {{DType::F32, {2, 3, members}},
                     {DType::F32, {2, 3}},
                     {DType::I32, {members}},
                     {DType::F32, {2, 3 * members}}});
  }
}

TEST_CASE("split axes: members are devices") {
  for (const int devices : {1, 3, 4}) {
    CAPTURE(devices);
    MemberGraph map;
    map.axes = {{axis,
                 devices,
                 1,
                 {split(0), split(1)},
                 {split(0), mapped(0), AxisEntry{}, split(1)}}};
    Graph& g = map.graph;
    const auto x = g.add_input({DType::F32, {2, 3}});
    const auto y = g.add_input({DType::F32, {3, 4}});
    ir::CollectiveAttrs ring = over_members(devices);
    for (int p = 0; p + 1 < devices; ++p) ring.pairs.emplace_back(p, p + 1);
    const auto shifted = g.add(ir::Op::permute, {x}, ring);
    const auto all = g.add(ir::Op::all_gather, {y}, over_members(devices));
    g.outputs = {shifted, x, all, y};
    check_agreement(map,
                    {counting({2 * devices, 3}), counting({3, 4 * devices})},
                    {{DType::F32, {2 * devices, 3}},
                     {DType::F32, {devices, 2, 3}},
                     {DType::F32, {devices, 3, 4}},
                     {DType::F32, {3, 4 * devices}}});
  }
}

}  // namespace unisono::jit
