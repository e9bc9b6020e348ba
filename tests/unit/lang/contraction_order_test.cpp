#include "lang/ops/einsum.h"

#include <doctest/doctest.h>

#include <string>

using namespace unisono::lang;

namespace {

using Pairs = std::vector<std::pair<int, int>>;

/// The order for operands such as "ij", all sizes being 10 but those given.
Pairs order(const std::vector<std::string>& operands, const std::string& output,
            std::map<int, double> sizes = {}) {
  std::vector<std::vector<int>> labels;
  for (const std::string& operand : operands) {
    labels.emplace_back(operand.begin(), operand.end());
    for (const char label : operand) sizes.try_emplace(label, 10);
  }
  return contraction_order(labels, {output.begin(), output.end()}, sizes);
}

}  // namespace

TEST_CASE("the cheapest order of products") {
  CHECK(order({"ij"}, "i") == Pairs{});
  CHECK(order({"ij", "jk"}, "ik") == Pairs{{0, 1}});
  // All the same: as they stand.
  CHECK(order({"ij", "jk", "kl"}, "il") == Pairs{{0, 1}, {3, 2}});
  CHECK(order({"ij", "kj", "k"}, "i") == Pairs{{1, 2}, {0, 3}});
  CHECK(order({"ij", "jk", "kl"}, "il", {{'l', 1}}) == Pairs{{1, 2}, {0, 3}});
  // An index that the result has stays.
  CHECK(order({"bi", "bj", "ij"}, "b", {{'b', 1000}}) == Pairs{{0, 2}, {3, 1}});
  // The chain of Cormen et al., Introduction to Algorithms: ((A (B C)) ((D E)
  // F)).
  CHECK(order({"ab", "bc", "cd", "de", "ef", "fg"}, "ag",
              {{'a', 30},
               {'b', 35},
               {'c', 15},
               {'d', 5},
               {'e', 10},
               {'f', 20},
               {'g', 25}}) == Pairs{{1, 2}, {0, 6}, {3, 4}, {8, 5}, {7, 9}});
  // Beyond ten, one by one.
  const Pairs many =
      order({"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"}, "",
            {{'a', 1}});
  REQUIRE(many.size() == 11);
  CHECK(many[9] == std::pair{20, 10});
  CHECK(many[10] == std::pair{21, 11});
}
