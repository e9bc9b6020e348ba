#include "runtime/array.h"

#include <doctest/doctest.h>

#include <cstring>
#include <numeric>

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
