// Copies of arrays that are kept while there is memory.
#include <doctest/doctest.h>

#include <array>
#include <optional>
#include <thread>

#include "runtime/array.h"
#include "runtime/execute/program.h"
#include "runtime/kept_copies.h"
#include "tests/unit/moved.h"

using namespace unisono;

namespace {

struct Kept {
  Array on(int device) {
    const std::array<float, 16> elements{};
    return *array_from_host(*runtime.devices()[device], DType::F32, {16},
                            elements.data());
  }
  Sharding place(int device) { return {-1, {runtime.devices()[device]}}; }
  int64_t in_use() {
    int64_t bytes = 0;
    for (const Device* device : runtime.devices())
      bytes += device->bytes_in_use();
    return bytes;
  }

  Runtime runtime{4, 1};
};

}  // namespace

TEST_CASE("copies are found by their placement") {
  Kept kept;
  KeptCopies copies(kept.runtime.copies(), true);
  CHECK_FALSE(copies.find(kept.place(1)));
  copies.keep(kept.on(1));
  copies.keep(kept.on(2));
  CHECK(copies.find(kept.place(1))->sharding() == kept.place(1));
  CHECK(copies.find(kept.place(2))->sharding() == kept.place(2));
  CHECK_FALSE(copies.find(kept.place(0)));
}

TEST_CASE("of many placements the oldest goes") {
  const Moved moved([](Tuning& own) { own.most_kept_placements = 2; });
  Kept kept;
  KeptCopies copies(kept.runtime.copies(), true);
  for (int device = 0; device < 3; ++device) copies.keep(kept.on(device));
  CHECK_FALSE(copies.find(kept.place(0)));
  CHECK(copies.find(kept.place(1)));
  CHECK(copies.find(kept.place(2)));
  CHECK(kept.in_use() == 2 * 64);
}

TEST_CASE("a shortage takes all that nobody uses, and that may go") {
  Kept kept;
  CopyShelf& shelf = kept.runtime.copies();
  KeptCopies copies(shelf, true), stays(shelf, false);
  std::optional<KeptCopies> gone(std::in_place, shelf, true);
  copies.keep(kept.on(1));
  copies.keep(kept.on(2));
  stays.keep(kept.on(3));
  gone->keep(kept.on(0));
  gone.reset();
  CHECK(kept.in_use() == 3 * 64);
  const std::optional<Array> used = copies.find(kept.place(2));
  CHECK_FALSE(shelf.was_short());
  shelf.give_back();
  CHECK(shelf.was_short());
  CHECK(kept.in_use() == 2 * 64);
  CHECK_FALSE(copies.find(kept.place(1)));
  CHECK_FALSE(copies.find(kept.place(2)));
  CHECK(stays.find(kept.place(3)));
  CHECK(used->blocks()[0]->bytes() == 64);
  copies.keep(*used);
  CHECK(copies.find(kept.place(2)));
}

TEST_CASE("a shortage may come from any thread at any time") {
  Kept kept;
  CopyShelf& shelf = kept.runtime.copies();
  std::thread other([&] {
    for (int i = 0; i < 1000; ++i) shelf.give_back();
  });
  for (int i = 0; i < 1000; ++i) {
    KeptCopies copies(shelf, true);
    copies.keep(kept.on(1));
    const std::optional<Array> found = copies.find(kept.place(1));
    CHECK((!found || found->bytes() == 64));
  }
  other.join();
  CHECK(kept.in_use() == 0);
}
