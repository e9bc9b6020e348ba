// What is known of two sizes, beside the numbers that they may be.
#include "lang/ops/sizes.h"

#include <doctest/doctest.h>

#include <array>
#include <memory>
#include <optional>
#include <random>
#include <string>

#include "lang/context/walk.h"
#include "lang/syntax/parser.h"

namespace unisono::lang {
namespace {

using ir::Comparison;
using ir::Dim;

const Dim n = Dim::symbol(1, "n"), m = Dim::symbol(2, "m");
const Dim k = Dim::symbol(3, "?k3", /*open=*/true);
const Dim j = Dim::symbol(4, "?k4", /*open=*/true);

TEST_CASE("a size is open if a symbol in it is") {
  CHECK_FALSE(Dim(3).is_open());
  CHECK_FALSE((2 * n + m).is_open());
  CHECK(k.is_open());
  CHECK((n * k - 1).is_open());
  CHECK(floor_div(n + k, 2).is_open());
  CHECK(floor_div(n, k + 1).is_open());
  CHECK_FALSE((n + k - k).is_open());
}

TEST_CASE("what differs by a number is different, what is open may be equal") {
  CHECK(compare(Dim(3), Dim(3)) == Comparison::equal);
  CHECK(compare(Dim(3), Dim(4)) == Comparison::different);
  CHECK(compare(n, m) == Comparison::different);  // not for all values
  CHECK(compare(n, n - 1) == Comparison::different);
  CHECK(compare(k, k - 1) == Comparison::different);
  CHECK(compare(k, Dim(3)) == Comparison::open);
  CHECK(compare(k, n) == Comparison::open);
  CHECK(compare(k, j) == Comparison::open);
  CHECK(compare(n + k, m + k) == Comparison::different);
  CHECK(compare(floor_div(k, 2) * 2, k) == Comparison::open);
}

TEST_CASE("the answer is the size that is known better") {
  CHECK(*same_size(k, Dim(3)) == Dim(3));
  CHECK(*same_size(n, k) == n);
  CHECK(*same_size(k, j) == j);
  CHECK_FALSE(same_size(k, k + 1));
  CHECK(*equal_parts(k, 2) == floor_div(k, 2));
  CHECK(*equal_parts(2 * n, 2) == n);
  CHECK_FALSE(equal_parts(n, 2));
  CHECK_FALSE(equal_parts(Dim(5), 2));
  CHECK(is_one(k));
  CHECK_FALSE(is_one(n));
}

TEST_CASE("random sizes beside numbers") {
  std::mt19937 random(7);
  const auto pick = [&](int count) {
    return static_cast<int>(random() % static_cast<unsigned>(count));
  };
  const auto size = [&](bool given) {
    const std::array<Dim, 5> atoms = {Dim(1), k, j, floor_div(k + j, 2), n};
    Dim sum;
    for (int terms = 1 + pick(3); terms > 0; --terms)
      sum = sum + (pick(5) - 2) * atoms[pick(given ? 5 : 4)] * atoms[pick(4)];
    return sum;
  };
  int open = 0;
  for (int round = 0; round < 2000; ++round) {
    const Dim a = size(false), b = pick(2) ? size(false) : a + pick(2);
    const Comparison found = compare(a, b);
    for (int64_t x = 0; x < 6; ++x)
      for (int64_t y = 0; y < 6; ++y) {
        const auto at = [&](const Dim& d) {
          return d
              .substitute([&](uint32_t id) {
                return std::optional<Dim>(id == 3 ? x : y);
              })
              .value();
        };
        // What is equal, or different, is so for all numbers.
        if (found == Comparison::equal) CHECK(at(a) == at(b));
        if (found == Comparison::different) CHECK(at(a) != at(b));
      }
    open += found == Comparison::open;
  }
  CHECK(open > 500);
}

/// What the check knows of the last expression of a program, a boolean of the
/// host.
std::optional<bool> checked(const std::string& text) {
  Runtime runtime(2, 1);
  Machine machine;
  machine.runtime = &runtime;
  machine.reference_only = true;
  machine.output = [](std::string_view) {};
  SourceMap sources;
  Diagnostics diagnostics;
  Walk walk(machine, sources, diagnostics);
  const SourceFile& file = sources.add("test.uni", R"(
    let x = arange(100)
    let y = arange(100) * 2
    let z = arange(90)
    let i = argmax(x)
    let j = argmin(x)
    def after(k) = k + 2
  )" + text);
  const auto program = parse(file, diagnostics).program;
  std::optional<Value> last;
  REQUIRE_MESSAGE(walk.check(*program, &last), render(diagnostics));
  REQUIRE(last);
  const auto* known = last->get_if<BoolValue>();
  REQUIRE(known);
  return known->value;
}
std::optional<bool> same_length(const std::string& a, const std::string& b) {
  return checked("len(" + a + ") == len(" + b + ")");
}

TEST_CASE("equal expressions have one size, others may be equal") {
  const std::optional<bool> open;
  CHECK(same_length("x[i:i + 64]", "y[i:i + 64]") == true);
  CHECK(same_length("x[i:i + 64]", "x[i:64 + i]") == true);
  CHECK(same_length("x[2 * i:i * 2 + 4]", "y[i + i:i + 4 + i]") == true);
  CHECK(same_length("x[i // 2:i % 3]", "y[i // 2:i % 3]") == true);
  CHECK(same_length("x[:minimum(i, j)]", "y[:minimum(i, j)]") == true);
  CHECK(same_length("x[-i:j - 1:2]", "y[0 - i:-1 + j:2]") == true);
  CHECK(same_length("x[x[i]:]", "y[x[i]:]") == true);
  CHECK(same_length("x[cast(i, i64):]", "x[i:]") == true);
  CHECK(same_length("zeros(f32[i])", "zeros(f32[i])") == true);
  CHECK(same_length("x[x > 3]", "y[x > 3]") == true);
  CHECK(same_length("x[(x > 3) & (y < i)]", "y[(x > 3) & (y < i)]") == true);

  CHECK(same_length("x[i:i + 64]", "z[i:i + 64]") == open);
  CHECK(same_length("x[i:i + 64]", "x[j:j + 64]") == open);
  CHECK(same_length("x[i:i + 64]", "x[i:i + 63]") == open);
  CHECK(same_length("x[i:j]", "x[i:j:2]") == open);
  CHECK(same_length("x[x[i]:]", "y[y[i]:]") == open);
  CHECK(same_length("x[x > 3]", "x[x > 4]") == open);
  CHECK(same_length("x[x > 3]", "x[y > 3]") == open);
}

TEST_CASE("what a function gives again is another number") {
  const std::optional<bool> open;
  CHECK(same_length("x[i:after(i)]", "x[i:i + 2]") == true);
  CHECK(same_length("x[:after(i)]", "x[:after(j)]") == open);
}

TEST_CASE("a help names no open size") {
  Diagnostic d;
  CHECK(d.set_help("cut it: `x[:?k12]`").help.empty());
  CHECK(d.set_help("a size is written `?k`").help == "a size is written `?k`");
}

}  // namespace
}  // namespace unisono::lang
