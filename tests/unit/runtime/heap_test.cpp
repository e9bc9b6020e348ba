#include "runtime/heap.h"

#include <doctest/doctest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstring>
#include <thread>
#include <vector>

#include "runtime/execute/program.h"

namespace unisono {
namespace {

constexpr int64_t MiB = int64_t{1} << 20;

int64_t page_faults() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

TEST_CASE("heap: blocks are aligned, apart from each other, and writable") {
  MemoryBudget budget(512 * MiB);
  Heap heap(budget);
  struct Block {
    char* data;
    int64_t bytes;
    char mark;
  };
  std::vector<Block> blocks;
  auto allocate = [&](int64_t bytes, char mark) {
    auto* data = static_cast<char*>(heap.allocate(bytes));
    REQUIRE(data);
    REQUIRE(reinterpret_cast<uintptr_t>(data) % 64 == 0);
    std::memset(data, mark, bytes);
    blocks.push_back({data, bytes, mark});
  };
  auto release = [&](size_t i) {
    const Block& block = blocks[i];
    REQUIRE(std::all_of(block.data, block.data + block.bytes,
                        [&](char c) { return c == block.mark; }));
    heap.free(block.data, block.bytes);
    blocks.erase(blocks.begin() + static_cast<int64_t>(i));
  };
  // Around every size class's edges, and then at random.
  for (int64_t size = 64; size <= 256 << 10; size += size < 512 ? 64 : size / 4)
    for (int64_t bytes : {size - 1, size, size + 1})
      allocate(bytes, static_cast<char>(bytes));
  allocate(0, 0);
  uint32_t state = 1;
  for (int turn = 0; turn < 3000; ++turn) {
    state = state * 1664525 + 1013904223;
    if (state >> 31 || blocks.size() < 10) {
      int64_t bytes = (state >> 8 & 0xffff) << (state >> 4 & 3);
      allocate(bytes, static_cast<char>(turn));
    } else {
      release((state >> 8) % blocks.size());
    }
  }
  int64_t sum = 0;
  for (const Block& block : blocks) sum += block.bytes;
  CHECK(heap.bytes_in_use() == sum);
  CHECK(heap.peak_bytes() >= sum);
  CHECK(budget.mapped() == heap.bytes_mapped());
  while (!blocks.empty()) release(blocks.size() - 1);
  CHECK(heap.bytes_in_use() == 0);
  CHECK(heap.bytes_mapped() < 300 * MiB);
}

TEST_CASE("heap: a freed block is given again without page faults") {
  MemoryBudget budget(1024 * MiB);
  Heap heap(budget);
  auto touch = [&] {
    void* data = heap.allocate(64 * MiB);
    REQUIRE(data);
    std::memset(data, 1, 64 * MiB);
    heap.free(data, 64 * MiB);
  };
  touch();
  int64_t mapped = heap.bytes_mapped(), before = page_faults();
  // Blocks may begin at other offsets of their first page: all pages are met
  // once in the first rounds.
  for (int turn = 0; turn < 20; ++turn) touch();
  CHECK(page_faults() - before < 1000);  // of 16,384 a turn
  CHECK(heap.bytes_mapped() == mapped);
}

TEST_CASE("heap: neighbours join, so that a larger block fits") {
  MemoryBudget budget(1024 * MiB);
  Heap heap(budget);
  std::vector<void*> blocks;
  for (int i = 0; i < 64; ++i) blocks.push_back(heap.allocate(MiB));
  int64_t mapped = heap.bytes_mapped();
  for (int i = 0; i < 64; i += 2) heap.free(blocks[i], MiB);
  for (int i = 1; i < 64; i += 2) heap.free(blocks[i], MiB);
  void* large = heap.allocate(24 * MiB);
  REQUIRE(large);
  CHECK(heap.bytes_mapped() == mapped);
  heap.free(large, 24 * MiB);
  heap.trim();
  CHECK(heap.bytes_mapped() < MiB);
}

TEST_CASE("heap: the budget holds for all heaps together") {
  MemoryBudget budget(100 * MiB);
  Heap a(budget), b(budget);
  CHECK(a.allocate(200 * MiB) == nullptr);
  CHECK(a.allocate(int64_t{1} << 62) == nullptr);
  CHECK(a.bytes_in_use() == 0);
  void* block = a.allocate(60 * MiB);
  REQUIRE(block);
  CHECK(b.allocate(60 * MiB) == nullptr);
  // Another device's free pages are taken back when they are needed.
  a.free(block, 60 * MiB);
  void* other = b.allocate(60 * MiB);
  REQUIRE(other);
  CHECK(budget.mapped() <= 100 * MiB);
  b.free(other, 60 * MiB);
  // Its own, too, in pieces that are too small for the request.
  std::vector<void*> pieces;
  for (int i = 0; i < 7; ++i) pieces.push_back(a.allocate(10 * MiB));
  for (void* piece : pieces) {
    REQUIRE(piece);
    a.free(piece, 10 * MiB);
  }
  block = a.allocate(90 * MiB);
  REQUIRE(block);
  a.free(block, 90 * MiB);
}

TEST_CASE("heap: threads allocate and free at once, on two heaps") {
  MemoryBudget budget(64 * MiB);
  Heap heaps[2] = {Heap(budget), Heap(budget)};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      Heap& heap = heaps[t % 2];
      uint32_t state = static_cast<uint32_t>(t);
      for (int turn = 0; turn < 2000; ++turn) {
        state = state * 1664525 + 1013904223;
        int64_t bytes = state >> 9;  // up to 8 MiB
        if (auto* data = static_cast<char*>(heap.allocate(bytes))) {
          data[0] = data[bytes - 1] = 1;
          heap.free(data, bytes);
        }
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(heaps[0].bytes_in_use() + heaps[1].bytes_in_use() == 0);
  CHECK(budget.mapped() <= 64 * MiB);
}

TEST_CASE("device: an array that no machine can hold is an error at once") {
  Runtime runtime(2);
  Device& device = *runtime.devices()[1];
  CHECK(device.name() == "cpu:1");
  Result<Buffer> buffer = device.allocate(int64_t{4'000'000'000'000});
  REQUIRE(!buffer);
  CHECK(buffer.error().kind == Error::Kind::out_of_memory);
  CHECK(buffer.error().message.find("4000000000000 bytes") !=
        std::string::npos);
  CHECK(device.bytes_in_use() == 0);
  {
    Result<Buffer> small = device.allocate(100);
    REQUIRE(small);
    CHECK(device.bytes_in_use() == 100);
    CHECK(runtime.devices()[0]->bytes_in_use() == 0);
  }
  CHECK(device.bytes_in_use() == 0);
  CHECK(device.peak_bytes() == 100);
}

}  // namespace
}  // namespace unisono
