#include "runtime/array.h"

#include <doctest/doctest.h>

#include <cstring>
#include <numeric>
#include <random>

#include "runtime/array_blocks.h"
#include "runtime/execute/program.h"

namespace unisono {
namespace {

using Shape = std::vector<int64_t>;

std::vector<uint8_t> counted(int64_t bytes) {
  std::vector<uint8_t> data(static_cast<size_t>(bytes));
  for (size_t i = 0; i < data.size(); ++i)
    data[i] = static_cast<uint8_t>(i * 7 + i / 251);
  return data;
}

/// All ways in which an array of this shape can lie on four devices.
std::vector<Sharding> placements(const Runtime& runtime, const Shape& shape) {
  const auto& d = runtime.devices();
  std::vector<std::vector<Device*>> lists = {
      {d[0]}, {d[3]}, {d[0], d[1]}, {d[1], d[0]}, {d[2], d[0], d[3]}, d};
  std::vector<Sharding> all;
  for (const auto& devices : lists) {
    all.push_back({-1, devices});
    for (int axis = 0; axis < static_cast<int>(shape.size()); ++axis)
      if (shape[axis] % static_cast<int64_t>(devices.size()) == 0)
        all.push_back({axis, devices});
  }
  // A mesh of two by two: each axis cut, or copied along.
  const auto axes = static_cast<int>(shape.size());
  for (const auto& devices : {d, {d[3], d[0], d[2], d[1]}})
    for (int rows = -1; rows < axes; ++rows)
      for (int cols = -1; cols < axes; ++cols) {
        const bool fits =
            (rows < 0 || shape[rows] % (rows == cols ? 4 : 2) == 0) &&
            (cols < 0 || shape[cols] % 2 == 0);
        if (fits)
          all.push_back(Sharding::on_mesh({{2, rows}, {2, cols}}, devices));
      }
  return all;
}

TEST_CASE("sharding: how it is named") {
  Runtime runtime(4);
  const auto& d = runtime.devices();
  CHECK(Sharding{0, {d[0], d[1]}}.to_string() == "split(0) over cpu:0, cpu:1");
  CHECK(Sharding{-1, {d[2], d[1]}}.to_string() == "copied to cpu:2, cpu:1");
  CHECK(Sharding{-1, {d[3]}}.to_string() == "on cpu:3");
  CHECK(Sharding::on_mesh({{2, 1}, {2, 0}}, d).to_string() ==
        "split(1, 0) over 2 x 2 devices: cpu:0, cpu:1, cpu:2, cpu:3");
  CHECK(Sharding::on_mesh({{2, 0}, {2, -1}}, d).to_string() ==
        "split(0, none) over 2 x 2 devices: cpu:0, cpu:1, cpu:2, cpu:3");
}

TEST_CASE("sharding: meshes that are lines are lines") {
  Runtime runtime(4);
  const auto& d = runtime.devices();
  CHECK(Sharding::on_mesh({{4, 1}}, d) == Sharding{1, d});
  CHECK(Sharding::on_mesh({{1, 0}, {4, 1}, {1, -1}}, d) == Sharding{1, d});
  CHECK(Sharding::on_mesh({{2, 0}, {2, 0}}, d) == Sharding{0, d});
  CHECK(Sharding::on_mesh({{2, -1}, {2, -1}}, d) == Sharding{-1, d});
  CHECK(Sharding::on_mesh({{1, 0}}, {d[2]}) == Sharding{-1, {d[2]}});
  CHECK_FALSE(Sharding::on_mesh({{2, 0}, {2, 1}}, d) ==
              Sharding::on_mesh({{2, 1}, {2, 0}}, d));
}

TEST_CASE("reshard: from every placement to every other") {
  Runtime runtime(4);
  for (const Shape& shape :
       {Shape{12, 5}, Shape{5, 12}, Shape{12, 12}, Shape{3, 4, 12}, Shape{12},
        Shape{}, Shape{0, 12}, Shape{12, 0}, Shape{2, 12, 1}}) {
    for (DType dtype : {DType::I8, DType::F32}) {
      int64_t bytes = std::accumulate(shape.begin(), shape.end(),
                                      byte_size(dtype), std::multiplies<>());
      auto data = counted(bytes);
      auto placed =
          array_from_host(*runtime.devices()[1], dtype, shape, data.data());
      REQUIRE(placed);
      CHECK(*array_to_host(*placed) == data);
      for (const Sharding& from : placements(runtime, shape)) {
        auto array = reshard(*placed, from);
        REQUIRE(array);
        CHECK(*array_to_host(*array) == data);
        for (const Sharding& to : placements(runtime, shape)) {
          CopyCounter counter;
          auto moved = reshard(*array, to, &counter);
          REQUIRE(moved);
          REQUIRE(moved->sharding() == to);
          REQUIRE(*array_to_host(*moved) == data);
          for (size_t b = 0; b < to.devices.size(); ++b) {
            REQUIRE(moved->blocks()[b]->device() == to.devices[b]);
            // Whole copies are all the same.
            if (!to.is_split() && bytes)
              REQUIRE(std::memcmp(moved->blocks()[b]->data(), data.data(),
                                  data.size()) == 0);
          }
          if (to == from) {
            CHECK(counter.copies == 0);
            CHECK(moved->blocks() == array->blocks());
          }
        }
      }
    }
  }
  for (Device* device : runtime.devices()) CHECK(device->bytes_in_use() == 0);
}

TEST_CASE("reshard: moves exactly what is needed") {
  Runtime runtime(4);
  const auto& d = runtime.devices();
  auto data = counted(64 * 4);
  auto on_0 = *array_from_host(*d[0], DType::F32, {8, 8}, data.data());
  auto cost = [](const Array& array, const Sharding& to) {
    CopyCounter counter;
    REQUIRE(reshard(array, to, &counter));
    return std::pair(counter.copies, counter.bytes);
  };
  using Cost = std::pair<int64_t, int64_t>;
  CHECK(cost(on_0, {0, d}) == Cost{4, 256});
  CHECK(cost(on_0, {-1, d}) == Cost{3, 3 * 256});
  auto rows = *reshard(on_0, {0, d});
  CHECK(rows.block_shape() == Shape{2, 8});
  CHECK(cost(rows, {-1, {d[0]}}) == Cost{4, 256});
  CHECK(cost(rows, {1, d}) == Cost{16, 256});
  // Device 1 keeps its block; devices 0 and 2 change places.
  CHECK(cost(rows, {0, {d[2], d[1], d[0], d[3]}}) == Cost{2, 128});
  auto copies = *reshard(on_0, {-1, d});
  CHECK(cost(copies, {-1, {d[2]}}) == Cost{0, 0});
  CHECK(cost(copies, {-1, {d[3], d[1]}}) == Cost{0, 0});
  // Each device cuts its block out of its own copy.
  CHECK(cost(copies, {0, d}) == Cost{4, 256});
  // On a mesh: each block is half of each of two rows' blocks.
  const auto mesh = Sharding::on_mesh({{2, 0}, {2, 1}}, d);
  CHECK(cost(rows, mesh) == Cost{8, 256});
  CHECK(reshard(rows, mesh)->block_shape() == Shape{4, 4});
  // Copies along an axis of the mesh: one of them is enough.
  auto halves = *reshard(on_0, Sharding::on_mesh({{2, 0}, {2, -1}}, d));
  CHECK(cost(halves, {-1, {d[1]}}) == Cost{2, 256});
  CHECK(cost(halves, mesh) == Cost{4, 256});
}

/// Bytes of element `at` of a dense row-major array.
uint8_t* element(std::vector<uint8_t>& data, const Shape& shape,
                 const Shape& at) {
  int64_t number = 0;
  for (size_t i = 0; i < shape.size(); ++i) number = number * shape[i] + at[i];
  return data.data() + 4 * number;
}

/// Calls visit(place in the array, number along each axis) for all of them.
void for_each(const Elements& elements,
              const std::function<void(const Shape&, const Shape&)>& visit) {
  Shape number(elements.extent.size(), 0);
  for (const int64_t size : elements.extent)
    if (size == 0) return;
  for (;;) {
    Shape place = elements.start;
    for (size_t i = 0; i < place.size(); ++i)
      place[i] += number[i] * elements.step[i];
    visit(place, number);
    size_t axis = number.size();
    for (; axis > 0 && ++number[axis - 1] == elements.extent[axis - 1]; --axis)
      number[axis - 1] = 0;
    if (axis == 0) return;
  }
}

TEST_CASE("elements that lie evenly: read and written in every placement") {
  Runtime runtime(4);
  const auto& d = runtime.devices();
  std::mt19937 random(7);
  const auto below = [&](int64_t n) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(n));
  };
  for (const Shape& shape : {Shape{12, 4}, Shape{4, 12, 8}, Shape{12}, Shape{},
                             Shape{12, 0}, Shape{1, 12, 1}}) {
    Shape ones(shape.size(), 1);
    std::vector<uint8_t> data =
        counted(4 * std::accumulate(shape.begin(), shape.end(), int64_t{1},
                                    std::multiplies<>()));
    const Array whole = *array_from_host(*d[0], DType::F32, shape, data.data());
    for (const Sharding& placed : placements(runtime, shape))
      for (int round = 0; round < 12; ++round) {
        Elements some{ones, ones, ones};
        Shape given = ones;
        for (size_t i = 0; i < shape.size(); ++i) {
          some.step[i] = below(4) == 0 ? -1 - below(3) : 1 + below(3);
          const int64_t step = std::abs(some.step[i]);
          some.extent[i] = below((shape[i] + step - 1) / step + 1);
          const int64_t span =
              std::max<int64_t>((some.extent[i] - 1) * step, 0);
          some.start[i] = below(std::max<int64_t>(shape[i] - span, 1));
          if (some.step[i] < 0) some.start[i] += span;
          given[i] = below(4) == 0 ? 1 : some.extent[i];
        }
        const Array array = *reshard(whole, placed);
        const int64_t bytes =
            4 * std::accumulate(some.extent.begin(), some.extent.end(),
                                int64_t{1}, std::multiplies<>());
        std::vector<uint8_t> read(static_cast<size_t>(bytes)), expected = read;
        for_each(some, [&](const Shape& place, const Shape& number) {
          std::memcpy(element(expected, some.extent, number),
                      element(data, shape, place), 4);
        });
        CopyCounter counter;
        REQUIRE(read_elements(read.data(), *d[1], array, some, &counter));
        REQUIRE(read == expected);
        CHECK(counter.bytes == bytes);

        // One element along an axis is that of all.
        std::vector<uint8_t> values =
            counted(4 * std::accumulate(given.begin(), given.end(), int64_t{1},
                                        std::multiplies<>()));
        std::vector<uint8_t> after = data;
        for_each(some, [&](const Shape& place, Shape number) {
          for (size_t i = 0; i < number.size(); ++i)
            if (given[i] == 1) number[i] = 0;
          std::memcpy(element(after, shape, place),
                      element(values, given, number), 4);
        });
        const Array from =
            *array_from_host(*d[2], DType::F32, given, values.data());
        // Blocks of their own, as some are those of `whole`.
        DeviceBlocks blocks;
        for (size_t b = 0; b < array.blocks().size(); ++b) {
          Device& device = *placed.devices[b];
          Buffer own = *device.allocate(array.blocks()[b]->bytes());
          REQUIRE(device.copy_from_peer(own.data(), device,
                                        array.blocks()[b]->data(),
                                        array.blocks()[b]->bytes()));
          blocks.push_back(std::make_shared<Buffer>(std::move(own)));
        }
        const Array target(DType::F32, shape, placed, blocks);
        for (const Sharding& source : placements(runtime, given)) {
          const Array spread = *reshard(from, source);
          REQUIRE(
              write_elements(target.layout(), blocks, some, spread, nullptr));
          REQUIRE(*array_to_host(target) == after);
        }
        // Each copy of the whole has them.
        if (!placed.is_split() && !after.empty())
          for (const auto& block : blocks)
            CHECK(std::memcmp(block->data(), after.data(), after.size()) == 0);
        const auto touched = blocks_with(target.layout(), some);
        CHECK(touched.empty() == (bytes == 0));
      }
  }
}

TEST_CASE("arrays: memory that is not there is an error") {
  Runtime runtime(2, 1, int64_t{8} << 20);
  auto data = counted(4 << 20);
  auto array =
      array_from_host(*runtime.devices()[0], DType::I8, {4 << 20}, data.data());
  REQUIRE(array);
  auto copied = reshard(*array, {-1, runtime.devices()});
  REQUIRE(!copied);
  CHECK(copied.error().kind == Error::Kind::out_of_memory);
  CHECK(*array_to_host(*array) == data);
}

}  // namespace
}  // namespace unisono
