// Copies between the host and GPUs, and between GPUs: large ones are staged
// and not waited for. The simulation executes what is put in its own order, so
// that a copy that begins too early gives wrong bytes under some seed.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "tests/unit/jit/gpu/simulated.h"

using namespace unisono;
using namespace unisono::jit::testing;

namespace {

using Bytes = std::vector<uint8_t>;

Bytes pattern(size_t size, uint32_t seed) {
  Bytes bytes(size);
  uint32_t state = seed * 2654435761u + 1;
  for (uint8_t& byte : bytes) {
    state = state * 1664525u + 1013904223u;
    byte = static_cast<uint8_t>(state >> 24);
  }
  return bytes;
}

Buffer allocated(Device& device, int64_t bytes) {
  auto buffer = device.allocate(bytes);
  if (!buffer) FAIL(buffer.error().message);
  return std::move(*buffer);
}

void must(const Status& status) {
  if (!status) FAIL(status.error().message);
}

/// Puts the bytes on a device; those of the host are spoilt at once.
Buffer upload(Device& device, Bytes bytes) {
  Buffer buffer = allocated(device, static_cast<int64_t>(bytes.size()));
  must(device.copy_from_host(buffer.data(), bytes.data(),
                             static_cast<int64_t>(bytes.size())));
  std::fill(bytes.begin(), bytes.end(), 0xee);
  return buffer;
}

Bytes download(Device& device, const Buffer& buffer) {
  Bytes bytes(static_cast<size_t>(buffer.bytes()), 0xdd);
  must(device.copy_to_host(bytes.data(), buffer.data(), buffer.bytes()));
  return bytes;
}

const char* const orders[] = {"seed=0", "seed=1", "seed=2", "seed=3",
                              "seed=4", "seed=5", "seed=6", "seed=7"};
constexpr size_t mib = size_t{1} << 20;

}  // namespace

TEST_CASE("bytes of any number go to a GPU and back") {
  for (const char* order : orders) {
    auto devices = simulated_gpus(1, order);
    Device& device = *devices[0];
    for (size_t size : {size_t{1}, 1000 * size_t{1}, mib - 1, mib, 4 * mib,
                        4 * mib + 1, 16 * mib, 21 * mib + 7}) {
      const Bytes bytes = pattern(size, static_cast<uint32_t>(size));
      const Buffer buffer = upload(device, bytes);
      INFO(order << ", " << size << " bytes");
      CHECK(download(device, buffer) == bytes);
    }
    CHECK(simulated_findings() == "");
  }
}

TEST_CASE("rows of any length are cut out and put in") {
  struct Case {
    int64_t bytes, rows, inside, outside;  // the two steps
  };
  for (const Case& c :
       {Case{1000, 1500, 1000, 1700}, Case{3, 400000, 3, 8},
        Case{5 << 20, 2, 5 << 20, 6 << 20}, Case{1000, 1500, 1200, 1700},
        Case{2000000, 3, 2000003, 2000000}, Case{100, 20, 128, 100}}) {
    auto devices = simulated_gpus(1, "seed=3");
    Device& device = *devices[0];
    const Bytes bytes = pattern(static_cast<size_t>(c.rows * c.outside), 5);
    const Bytes before = pattern(static_cast<size_t>(c.rows * c.inside), 6);
    Buffer buffer = upload(device, before);
    must(device.copy_from_host(buffer.data(), bytes.data(),
                               {c.bytes, c.rows, c.inside, c.outside}));
    Bytes expected = before;
    for (int64_t row = 0; row < c.rows; ++row)
      std::copy_n(bytes.begin() + row * c.outside, c.bytes,
                  expected.begin() + row * c.inside);
    INFO(c.rows << " rows of " << c.bytes);
    CHECK(download(device, buffer) == expected);
    Bytes rows(bytes.size(), 0);
    must(device.copy_to_host(rows.data(), buffer.data(),
                             {c.bytes, c.rows, c.outside, c.inside}));
    bool same = true;
    for (int64_t row = 0; row < c.rows; ++row)
      same &= std::equal(rows.begin() + row * c.outside,
                         rows.begin() + row * c.outside + c.bytes,
                         bytes.begin() + row * c.outside);
    CHECK(same);
    CHECK(simulated_findings() == "");
  }
}

TEST_CASE("copies between GPUs that nobody waits for come in order") {
  for (const char* peers : {"peers=all", "peers=none"})
    for (const char* order : orders)
      for (size_t size : {size_t{5000}, 2 * mib + 5}) {
        auto devices = simulated_gpus(3, std::string(peers) + ";" + order);
        const auto bytes = static_cast<int64_t>(size);
        const Bytes first = pattern(size, 1), second = pattern(size, 2);
        Buffer a = upload(*devices[0], first);
        Buffer b = allocated(*devices[1], bytes);
        Buffer c = allocated(*devices[2], bytes);
        Buffer d = allocated(*devices[0], bytes);
        must(
            devices[1]->copy_from_peer(b.data(), *devices[0], a.data(), bytes));
        must(
            devices[2]->copy_from_peer(c.data(), *devices[1], b.data(), bytes));
        must(
            devices[0]->copy_from_peer(d.data(), *devices[2], c.data(), bytes));
        // Gone, and its memory perhaps another's, before that is done.
        a = Buffer();
        b = Buffer();
        Buffer e = upload(*devices[1], second);
        must(
            devices[2]->copy_from_peer(c.data(), *devices[1], e.data(), bytes));
        e = Buffer();
        INFO(peers << ", " << order << ", " << size);
        CHECK(download(*devices[0], d) == first);
        CHECK(download(*devices[2], c) == second);
        CHECK(simulated_findings() == "");
      }
}

TEST_CASE("without pinned memory copies are made directly") {
  auto devices =
      simulated_gpus(1, "fail=cuMemHostAlloc:1:out_of_memory:sticky");
  const Bytes bytes = pattern(3 * mib, 1);
  const Buffer buffer = upload(*devices[0], bytes);
  CHECK(download(*devices[0], buffer) == bytes);
}
