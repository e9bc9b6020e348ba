// Allocation and copies, on every kind of device.
#include <cstring>
#include <random>
#include <set>

#include "runtime/dtype.h"
#include "tests/conformance/devices/machine.h"

namespace unisono::device_test {
namespace {

using Bytes = std::vector<uint8_t>;

Bytes random_bytes(int64_t count, uint32_t seed) {
  std::mt19937 random(seed);
  Bytes bytes(static_cast<size_t>(count));
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
  return bytes;
}

uint8_t* at(const Buffer& buffer, int64_t offset) {
  return static_cast<uint8_t*>(buffer.data()) + offset;
}

Buffer filled(Device& device, const Bytes& bytes) {
  auto buffer = device.allocate(static_cast<int64_t>(bytes.size()));
  REQUIRE(buffer);
  REQUIRE(device.copy_from_host(buffer->data(), bytes.data(),
                                static_cast<int64_t>(bytes.size())));
  return std::move(*buffer);
}

Bytes contents(const Buffer& buffer) {
  Bytes bytes(static_cast<size_t>(buffer.bytes()), 0xee);
  REQUIRE(buffer.device()->copy_to_host(bytes.data(), buffer.data(),
                                        buffer.bytes()));
  return bytes;
}

TEST_CASE("devices have places and names") {
  on_each_kind(3, [](Runtime& machine) {
    std::set<std::string> names;
    for (int d = 0; d < 3; ++d) {
      Device& device = *machine.devices()[d];
      CHECK(device.index() == d);
      names.insert(device.name());
      CHECK((device.capability() > 0) == is_gpu(machine));
      CHECK((device.queue() != nullptr) == is_gpu(machine));
    }
    CHECK(names.size() == 3);
  });
}

TEST_CASE("memory is aligned, apart, and counted") {
  on_each_kind(2, [](Runtime& machine) {
    for (Device* device : machine.devices()) {
      const int64_t before = device->bytes_in_use();
      int64_t asked = 0;
      {
        std::vector<Buffer> all;
        for (int64_t bytes : {0, 1, 7, 63, 64, 65, 4095, 4097, 1 << 20}) {
          auto buffer = device->allocate(bytes);
          REQUIRE(buffer);
          CHECK(buffer->bytes() == bytes);
          CHECK(buffer->device() == device);
          CHECK(reinterpret_cast<uintptr_t>(buffer->data()) % 64 == 0);
          asked += bytes;
          all.push_back(std::move(*buffer));
        }
        std::vector<Bytes> wanted;
        for (size_t i = 0; i < all.size(); ++i) {
          wanted.push_back(
              random_bytes(all[i].bytes(), static_cast<uint32_t>(i)));
          REQUIRE(device->copy_from_host(all[i].data(), wanted[i].data(),
                                         all[i].bytes()));
        }
        for (size_t i = 0; i < all.size(); ++i)
          CHECK(contents(all[i]) == wanted[i]);
        CHECK(device->bytes_in_use() - before >= asked);
        CHECK(device->peak_bytes() >= device->bytes_in_use());
      }
      CHECK(device->bytes_in_use() == before);
    }
  });
}

TEST_CASE("too much memory is an error that names the bytes") {
  on_each_kind(1, [](Runtime& machine) {
    Device& device = *machine.devices()[0];
    const auto refused = device.allocate(int64_t{1} << 46);
    REQUIRE(!refused);
    CHECK(refused.error().kind == Error::Kind::out_of_memory);
    CHECK(refused.error().message.find(device.name()) != std::string::npos);
    const Bytes bytes = random_bytes(1000, 1);
    CHECK(contents(filled(device, bytes)) == bytes);
  });
}

TEST_CASE("copies of every element type, of odd sizes, at odd places") {
  on_each_kind(2, [](Runtime& machine) {
    Device &device = *machine.devices()[0], &peer = *machine.devices()[1];
    for (DType dtype : all_dtypes) {
      const int64_t size = byte_size(dtype);
      for (int64_t count : {0, 1, 3, 31, 257, 5000}) {
        for (int64_t skip : {0, 1, 5}) {
          const int64_t bytes = count * size, offset = skip * size;
          const Bytes data = random_bytes(bytes, 7);
          Bytes whole = random_bytes(bytes + 8 * size, 8), back(data.size());
          const Buffer buffer = filled(device, whole),
                       there = filled(peer, whole);
          REQUIRE(
              device.copy_from_host(at(buffer, offset), data.data(), bytes));
          REQUIRE(peer.copy_from_peer(at(there, 2 * size), device,
                                      at(buffer, offset), bytes));
          REQUIRE(peer.copy_to_host(back.data(), at(there, 2 * size), bytes));
          CHECK(back == data);
          // What lies beside is untouched.
          Bytes expected = whole;
          std::copy(data.begin(), data.end(), expected.begin() + offset);
          CHECK(contents(buffer) == expected);
          expected = whole;
          std::copy(data.begin(), data.end(), expected.begin() + 2 * size);
          CHECK(contents(there) == expected);
        }
      }
    }
  });
}

// Few bytes and many go different ways on a GPU.
TEST_CASE("much memory is read after small parts of it were written") {
  on_each_kind(2, [](Runtime& machine) {
    constexpr int64_t bytes = int64_t{3} << 20, part = bytes / 12;
    Device &device = *machine.devices()[0], &peer = *machine.devices()[1];
    Bytes expected = random_bytes(bytes, 21);
    const Buffer buffer = filled(device, expected);
    for (int turn = 0; turn < 4; ++turn) {
      const Bytes data = random_bytes(part, 22 + static_cast<uint32_t>(turn));
      const int64_t offset = (turn * 5 + 1) * part % bytes;
      REQUIRE(device.copy_from_host(at(buffer, offset), data.data(), part));
      std::copy(data.begin(), data.end(), expected.begin() + offset);
      CHECK(contents(buffer) == expected);
      const Buffer there = filled(peer, random_bytes(bytes, 31));
      REQUIRE(peer.copy_from_peer(there.data(), device, buffer.data(), bytes));
      CHECK(contents(there) == expected);
    }
  });
}

TEST_CASE("copies of rows") {
  on_each_kind(3, [](Runtime& machine) {
    constexpr int64_t rows = 37, bytes = 13, wide = 29, narrow = 17;
    Device &first = *machine.devices()[0], &last = *machine.devices()[2];
    const Bytes source = random_bytes(rows * wide, 3);
    const Bytes blank = random_bytes(rows * narrow, 4);
    Bytes expected = blank;
    for (int64_t row = 0; row < rows; ++row)
      std::copy_n(source.begin() + row * wide + 2, bytes,
                  expected.begin() + row * narrow + 1);
    const CopyExtent extent(bytes, rows, narrow, wide);
    const Buffer in = filled(first, blank);
    REQUIRE(first.copy_from_host(at(in, 1), source.data() + 2, extent));
    CHECK(contents(in) == expected);

    const Buffer whole = filled(first, source), other = filled(last, blank);
    REQUIRE(last.copy_from_peer(at(other, 1), first, at(whole, 2), extent));
    CHECK(contents(other) == expected);

    Bytes out = blank;
    REQUIRE(first.copy_to_host(out.data() + 1, at(whole, 2), extent));
    CHECK(out == expected);
  });
}

TEST_CASE("large copies") {
  on_each_kind(2, [](Runtime& machine) {
    const Bytes data = random_bytes((int64_t{9} << 20) + 3, 5);
    const Buffer here = filled(*machine.devices()[0], data);
    auto there = machine.devices()[1]->allocate(here.bytes());
    REQUIRE(there);
    REQUIRE(machine.devices()[1]->copy_from_peer(
        there->data(), *machine.devices()[0], here.data(), here.bytes()));
    CHECK(contents(*there) == data);
  });
}

}  // namespace
}  // namespace unisono::device_test
