// Every operation that takes whole lines, at sizes beside each limit of its
// path, with everything that may be done with its result: compiled code against
// the reference evaluator, bit for bit. So that the test ends soon each case is
// taken of one type, some on three devices or a simulated GPU, and of rows but
// `sum` a quarter; UNISONO_USES=full takes all, and larger arrays,
// UNISONO_USES=sum one row.
#include <cstdlib>
#include <iterator>

#include "jit/ir/kinds.h"
#include "tests/unit/jit/gpu/simulated.h"
#include "tests/unit/jit/uses/uses.h"

using namespace unisono;
using namespace unisono::jit;
using namespace unisono::jit::testing;

namespace {

constexpr DType dtypes[] = {DType::F32, DType::F64, DType::I32, DType::BF16};
constexpr int64_t most_elements_in_full = int64_t{1} << 21;

/// `full`, the name of the one row that is taken, or nothing.
std::string_view setting() {
  const char* text = std::getenv("UNISONO_USES");
  return text ? text : "";
}

class Matrix {
 public:
  explicit Matrix(Limits limits) : limits_(std::move(limits)) {
    if (full_) limits_.most_elements = most_elements_in_full;
  }

  void run(const Operation& operation) {
    const bool all = full_ || operation.op == ir::Op::sum;
    for (const Along along : {Along::first, Along::last, Along::all})
      for (const Sizes& sizes :
           shapes_at_limits(operation.path, along, limits_))
        for (int use = 0; use < use_count; ++use)
          if (all || random_() % 4 == 0)
            run({operation, static_cast<Use>(use), DType::F32, along, sizes});
  }
  int count() const { return count_; }

 private:
  /// In all types and on all machines, or in one of each.
  void run(Case c) {
    const size_t one_type = random_() % std::size(dtypes);
    const auto machine = random_() % 8;
    for (size_t d = 0; d < std::size(dtypes); ++d) {
      if (!full_ && d != one_type) continue;
      c.dtype = dtypes[d];
      c.devices = 1;
      compare(one_, c);
      if (full_ || machine == 1) compare(gpu_, c);
      c.devices = 3;
      if (full_ || machine == 0) compare(three_, c);
    }
  }

  void compare(Bench& bench, const Case& c) {
    if (failures_ > 20) return;
    const auto graph = graph_of(c);
    if (!graph) return;
    ++count_;
    std::vector<Arrays> inputs;
    for (int d = 0; d < c.devices; ++d)
      inputs.push_back(numbers_for(c.operation, *graph, random_));
    auto want = evaluate_members(*graph, 1, inputs);
    auto have = bench.run_all(*graph, inputs);
    const std::string where = &bench == &gpu_ ? ", a GPU" : "";
    INFO(c.to_string(), where);
    if (!want || !have) {
      CHECK_MESSAGE(want, want.error().message);
      CHECK_MESSAGE(have, have.error().message);
      ++failures_;
      return;
    }
    for (size_t d = 0; d < inputs.size(); ++d)
      for (size_t i = 0; i < (*want)[d].size(); ++i) {
        if (same_values((*want)[d][i], (*have)[d][i])) continue;
        ++failures_;
        FAIL_CHECK(first_difference((*want)[d][i], (*have)[d][i]));
      }
  }

  const bool full_ = setting() == "full";
  Limits limits_;
  Bench one_, three_{0, 3}, gpu_{simulated_gpus(1)};
  std::mt19937 random_{17};
  int count_ = 0, failures_ = 0;
};

}  // namespace

TEST_CASE("uses of results at the limits of sizes") {
  Matrix matrix{Limits{}};
  for (const Operation& operation : operations())
    if (setting().empty() || setting() == "full" ||
        setting() == ir::name(operation.op))
      matrix.run(operation);
  MESSAGE(matrix.count() << " cases");
}
