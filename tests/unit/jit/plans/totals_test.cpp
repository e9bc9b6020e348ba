// What the plans of many graphs take in all, without code for them: a decision
// that is lost, and changes no result, is seen in one of these sums.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "jit/arrange/join_kernels.h"
#include "jit/arrange/memory_plan.h"
#include "jit/kernel/choice.h"
#include "jit/kernel/group.h"
#include "jit/kernel/row_sums.h"
#include "jit/kernel/work.h"
#include "jit/pipeline.h"
#include "jit/plan/cpu_lowering.h"
#include "jit/plan/gpu_lowering.h"
#include "tests/unit/jit/plans/graphs.h"
#include "tests/unit/jit/random_graph.h"
#include "tests/unit/jit/uses/uses.h"

using namespace unisono;
using namespace unisono::jit;
using namespace unisono::jit::testing;

namespace {

/// Of all plans. What is less is better.
struct Totals {
  int64_t kernels = 0, launches = 0, copies = 0;
  int64_t copied = 0;  // bytes
  int64_t nests = 0, expressions = 0;
  int64_t traffic = 0;     // bytes that kernels load and store, each array once
  int64_t loaded = 0;      // at all points
  int64_t flops = 0;       // at all points
  int64_t arenas = 0;      // bytes
  int64_t vectors = 0;     // that CPUs compute
  int64_t strided = 0;     // elements that they load one by one
  int64_t blocks = 0;      // that rows are cut into
  int64_t loops = 0;       // and tails without masks
  int64_t idle = 0;        // of 64 workers, for each nest
  int64_t cached = 0;      // nests whose stores do not bypass the caches
  int64_t crossed = 0;     // nests that are not done in squares
  int64_t one_by_one = 0;  // rows that are not added with others, of 16
};

void add_schedule(const Nest& nest, const Kernel& kernel,
                  const Machine& machine, Totals& totals) {
  const Schedule plan = schedule(nest, kernel, machine);
  const int64_t vectors = nest.points() / plan.lanes;
  totals.vectors += vectors;
  for (const Expr& expr : nest.exprs) {
    if (expr.kind != Expr::Kind::load) continue;
    const int axis = plan.vector_axis >= 0
                         ? plan.vector_axis
                         : static_cast<int>(nest.extents.size()) - 1;
    const int64_t along = axis < 0 ? 0 : expr.at.factors[axis];
    if (along > 1 || along < -1) totals.strided += nest.points();
  }
  totals.blocks += plan.blocks;
  totals.loops += plan.all_masked ? 1 : 2;
  totals.cached += !plan.streaming;
  totals.crossed += plan.square == 0;
  totals.one_by_one += 16 - plan.rows_at_once;
  totals.idle +=
      64 - std::min<int64_t>((plan.units + plan.grain - 1) / plan.grain, 64);
}

void add_kernel(const Plan& plan, const Kernel& kernel, const Machine& machine,
                bool on_cpus, Totals& totals) {
  std::vector<int64_t> bytes;
  for (const Argument& argument : kernel.arguments)
    bytes.push_back(plan.buffers[argument.buffer].bytes);
  totals.traffic += work_of(kernel, bytes).bytes;
  ++totals.kernels;
  for (const Nest& nest : kernel.nests) {
    ++totals.nests;
    const std::vector<bool> inner = inner_expressions(nest);
    for (size_t e = 0; e < nest.exprs.size(); ++e) {
      const Expr& expr = nest.exprs[e];
      const int64_t points = nest.reductions.empty() || inner[e]
                                 ? nest.points()
                                 : nest.kept_points();
      ++totals.expressions;
      if (expr.kind == Expr::Kind::load) totals.loaded += points;
      if (expr.kind == Expr::Kind::operation)
        totals.flops += flops(expr.op) * points;
    }
  }
  if (!on_cpus) return;
  if (const auto both = rows_and_sums(kernel, machine)) {
    totals.one_by_one += 16 - both->sums_plan.rows_at_once;
    totals.blocks += both->sums_plan.blocks;
    return;
  }
  for (const Nest& nest : kernel.nests) {
    Nest merged = nest;
    merge_axes(merged);
    choose_vector_axis(merged, kernel, machine);
    const int last = static_cast<int>(merged.extents.size()) - 1;
    for (Nest& chosen : cut_choices(std::move(merged), last)) {
      merge_axes(chosen);
      for (Nest& part : cut_tiles(std::move(chosen), kernel, machine))
        add_schedule(part, kernel, machine, totals);
    }
  }
}

void add_steps(const Plan& plan, const PlanSteps& steps, const Machine& machine,
               bool on_cpus, Totals& totals) {
  const auto inside = [&](const PlanSteps& own) {
    add_steps(plan, own, machine, on_cpus, totals);
  };
  for (const PlanStep& step : steps) {
    if (const auto* kernel = std::get_if<Kernel>(&step.what))
      add_kernel(plan, *kernel, machine, on_cpus, totals);
    totals.launches += std::holds_alternative<LaunchStep>(step.what);
    if (const auto* copy = std::get_if<CopyStep>(&step.what)) {
      totals.copies += copy->bytes > 0;
      totals.copied += copy->bytes;
    }
    if (const auto* loop = std::get_if<LoopTask>(&step.what)) {
      inside(*loop->condition);
      inside(*loop->body);
    }
    if (const auto* branch = std::get_if<IfTask>(&step.what)) {
      inside(*branch->then_steps);
      inside(*branch->else_steps);
    }
  }
}

void add_optimised(const ir::Graph& graph, const Lowering& lowering,
                   bool on_cpus, Totals& totals) {
  Plan plan = fuse(graph, true, lowering);
  if (on_cpus) join_row_sums(plan.steps, lowering.machine());
  if (!on_cpus) join_reductions(plan.steps);
  join_kernels(plan.steps, !on_cpus);
  totals.arenas += plan_memory(plan, {}, on_cpus).arena_bytes;
  add_steps(plan, plan.steps, lowering.machine(), on_cpus, totals);
}

struct Field {
  std::string name;
  int64_t Totals::* value;
};
const Field fields[] = {
    {"kernels", &Totals::kernels}, {"launches", &Totals::launches},
    {"copies", &Totals::copies},   {"copied", &Totals::copied},
    {"nests", &Totals::nests},     {"expressions", &Totals::expressions},
    {"traffic", &Totals::traffic}, {"loaded", &Totals::loaded},
    {"flops", &Totals::flops},     {"arenas", &Totals::arenas},
    {"vectors", &Totals::vectors}, {"strided", &Totals::strided},
    {"blocks", &Totals::blocks},   {"loops", &Totals::loops},
    {"idle", &Totals::idle},       {"cached", &Totals::cached},
    {"crossed", &Totals::crossed}, {"one by one", &Totals::one_by_one}};
/// `most` is what was measured. Where plans become better in one and worse in
/// another, and shall, their numbers come here.
void compare(const std::string& what, const Totals& have, const Totals& most) {
  std::string all;
  for (const Field& field : fields)
    all += fmt::format("{}, ", have.*field.value);
  INFO(what, ": ", all);
  for (const Field& field : fields) {
    INFO(field.name);
    CHECK(have.*field.value <= most.*field.value);
  }
}

using Add = std::function<void(const ir::Graph&)>;

void add_random(RandomOptions options, uint32_t count, const Add& add) {
  for (uint32_t seed = 0; seed < count; ++seed)
    add(RandomGraph(seed, options).make());
}

Totals totals_of(bool on_cpus, const std::function<void(const Add&)>& graphs) {
  Totals totals;
  const CpuLowering cpu{Machine{.vector_bytes = 32, .masked_bytes = true}};
  const GpuLowering gpu;
  const Lowering& lowering = on_cpus ? static_cast<const Lowering&>(cpu) : gpu;
  graphs([&](const ir::Graph& graph) {
    add_optimised(optimise(graph), lowering, on_cpus, totals);
  });
  return totals;
}

void uses(const Add& add) {
  int n = 0;
  for (const Operation& operation : operations())
    for (const Along along : {Along::first, Along::last, Along::all})
      for (const Sizes& sizes :
           shapes_at_limits(operation.path, along, Limits{}))
        for (int use = 0; use < use_count; ++use)
          if (n++ % 29 == 0)
            if (const auto graph = graph_of({operation, static_cast<Use>(use),
                                             DType::F32, along, sizes}))
              add(*graph);
}

}  // namespace

TEST_CASE("sums over the plans of many graphs") {
  const auto small = [](const Add& add) {
    add_random({.nodes = 25}, 250, add);
  };
  const auto large = [](const Add& add) {
    add_random({.nodes = 15, .elements = 30'000}, 200, add);
  };
  const auto nested = [](const Add& add) {
    add_random({.nodes = 20, .control_depth = 2, .host_calls = true}, 150, add);
  };
  const auto rows = [](const Add& add) {
    for (uint32_t seed = 0; seed < 600; ++seed) add(rows_graph(seed));
  };
  const auto products = [](const Add& add) {
    for (uint32_t seed = 0; seed < 400; ++seed) add(product_graph(seed));
  };
  compare("small, CPU", totals_of(true, small),
          {1091, 13, 147, 1276, 1131, 2939, 23525, 3055, 6741, 22976, 1331, 57,
           1153, 1137, 71631, 1137, 1137, 18192});
  compare("large, CPU", totals_of(true, large),
          {727, 11, 116, 463804, 745, 1893, 6912164, 901667, 1466450, 1993088,
           244906, 69673, 6905, 751, 47300, 751, 749, 12016});
  compare("nested, CPU", totals_of(true, nested),
          {839, 10, 101, 1013, 918, 2203, 21032, 2510, 5151, 40896, 1066, 102,
           922, 921, 58023, 921, 921, 14736});
  compare(
      "rows, CPU", totals_of(true, rows),
      {1382, 0, 57, 278123500, 1473, 9003, 15129817736, 2382471778, 16681169789,
       1740841856, 174545177, 9010, 98164, 1549, 80132, 1388, 1413, 22622});
  compare("products, CPU", totals_of(true, products),
          {665, 0, 41, 658324, 683, 1740, 104501314, 99256257, 180459209,
           13698816, 6114817, 2151815, 73111, 703, 41235, 683, 632, 10650});
  compare("uses, CPU", totals_of(true, uses),
          {1187, 27, 109, 5824884, 1451, 5246, 168856088, 33119234, 22652209,
           16025024, 3274656, 1799578, 6931, 1517, 94896, 1517, 1513, 24080});
  compare("small, GPU", totals_of(false, small),
          {1138, 13, 175, 1481, 1185, 2972, 23869, 3103, 6716, 23232, 0, 0, 0,
           0, 0, 0, 0, 0});
  compare("large, GPU", totals_of(false, large),
          {762, 21, 130, 457221, 789, 1956, 6964034, 906636, 1466450, 1150400,
           0, 0, 0, 0, 0, 0, 0, 0});
  compare("nested, GPU", totals_of(false, nested),
          {868, 10, 123, 1129, 953, 2237, 21420, 2560, 5155, 40768, 0, 0, 0, 0,
           0, 0, 0, 0});
  compare("rows, GPU", totals_of(false, rows),
          {1368, 0, 57, 278123500, 1437, 8804, 14796016692, 2365305616,
           16680689789, 1666800384, 0, 0, 0, 0, 0, 0, 0, 0});
  compare("products, GPU", totals_of(false, products),
          {700, 90, 41, 658324, 718, 1885, 107115150, 109405153, 180459209,
           12529088, 0, 0, 0, 0, 0, 0, 0, 0});
  compare("uses, GPU", totals_of(false, uses),
          {1286, 79, 109, 5824884, 1592, 5448, 171581399, 33457762, 22440210,
           18718272, 0, 0, 0, 0, 0, 0, 0, 0});
}
