// Whose GPUs are whose in several processes.
#include <doctest/doctest.h>

#include <vector>

#include "host/cluster/shared_gpus.h"

using namespace unisono;
using namespace unisono::host;

namespace {

std::vector<int> of(const std::vector<HostGpus>& all, int process) {
  const auto shared = share_gpus(all, process);
  REQUIRE(shared);
  return *shared;
}

std::string problem(const std::vector<HostGpus>& all) {
  const auto shared = share_gpus(all, 0);
  REQUIRE(!shared);
  return shared.error().message;
}

bool says(const std::string& text, const char* part) {
  return text.find(part) != text.npos;
}

}  // namespace

TEST_CASE("processes of a host share its GPUs in order") {
  const std::vector<HostGpus> one(4, {"alpha", 8, "all"});
  CHECK(of(one, 0) == std::vector{0, 1});
  CHECK(of(one, 3) == std::vector{6, 7});
  // Launchers deal processes out by host, or in turn.
  const std::vector<HostGpus> turns = {{"alpha", 2, "all"},
                                       {"beta", 2, "all"},
                                       {"alpha", 2, "all"},
                                       {"beta", 2, "all"}};
  CHECK(of(turns, 0) == std::vector{0});
  CHECK(of(turns, 1) == std::vector{0});
  CHECK(of(turns, 2) == std::vector{1});
  CHECK(of(turns, 3) == std::vector{1});
  // A host of its own for each.
  CHECK(of({{"alpha", 2, "all"}, {"beta", 2, "all"}}, 1) == std::vector{0, 1});
}

TEST_CASE("processes that see other GPUs of a host take what they see") {
  CHECK(of({{"alpha", 1, "0"}, {"alpha", 1, "1"}}, 1) == std::vector{0});
  CHECK(of({{"alpha", 2, "0,1"}, {"alpha", 2, "2,3"}}, 0) == std::vector{0, 1});
}

TEST_CASE("GPUs that cannot be shared evenly") {
  const std::string three =
      problem(std::vector<HostGpus>(3, {"alpha", 8, "all"}));
  CHECK(says(three, "alpha has 8 GPUs, which 3 processes there"));
  CHECK(says(three, "start 1 or 2 or 4 or 8 there"));
  CHECK(says(problem(std::vector<HostGpus>(2, {"alpha", 1, "all"})),
             "alpha has 1 GPU, which 2 processes there"));
  CHECK(says(problem({{"alpha", 2, "all"}, {"beta", 4, "all"}}),
             "process 0 on alpha would have 2 GPUs, and process 1 on beta 4"));
  CHECK(says(problem({{"alpha", 0, "all"}}), "alpha found no GPU"));
}
