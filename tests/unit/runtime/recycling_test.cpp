#include "runtime/recycling.h"

#include <doctest/doctest.h>

#include <set>
#include <thread>
#include <vector>

namespace unisono {
namespace {

struct Counted {
  explicit Counted(int& alive) : alive(alive) { ++alive; }
  ~Counted() { --alive; }
  int& alive;
  char bytes[100] = {};
};

TEST_CASE("recycling: a thread uses again what it freed") {
  int alive = 0;
  std::vector<std::shared_ptr<Counted>> objects;
  const auto make = [&] {
    objects.clear();
    std::set<const void*> places;
    for (int i = 0; i < 300; ++i) {
      objects.push_back(make_recycled<Counted>(alive));
      places.insert(objects.back().get());
    }
    CHECK(places.size() == 300);  // apart
    CHECK(alive == 300);
    return places;
  };
  const auto first = make();
  if (!poisons) CHECK(make() == first);
  objects.clear();
  CHECK(alive == 0);
}

TEST_CASE("recycling: objects are freed by other threads, and outlive them") {
  int alive = 0;
  std::vector<std::shared_ptr<Counted>> objects;
  for (int round = 0; round < 3; ++round) {
    std::thread([&] {
      objects.clear();  // the last thread's
      for (int i = 0; i < 2000; ++i)
        objects.push_back(make_recycled<Counted>(alive));
    }).join();
    CHECK(alive == 2000);
  }
  objects.clear();  // more than are kept
  CHECK(alive == 0);
}

}  // namespace
}  // namespace unisono
