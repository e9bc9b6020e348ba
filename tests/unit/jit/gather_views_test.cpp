// Gathers of views: what a turn of a loop does for them, and random ones of all
// layouts against the reference evaluator, to the bit and to the message, also
// mapped, derived, in loops, and of arrays that are updated in place.
#include <fmt/format.h>

#include <functional>
#include <numeric>

#include "jit/derivative/derivative.h"
#include "jit/ir/affine_view.h"
#include "jit/kernel/strided.h"
#include "jit/pipeline.h"
#include "jit/plan/fuse.h"
#include "jit/plan/stored.h"
#include "jit/target/generate_cpu.h"
#include "jit/vmap/vmap.h"
#include "tests/unit/jit/gpu/simulated.h"
#include "tests/unit/jit/parsed.h"
#include "tests/unit/jit/random_compare.h"

using namespace unisono;
using namespace unisono::jit;
using namespace unisono::jit::testing;
using ir::Graph;
using ir::NodeId;
using ir::Op;
using ir::Shape;
using ir::Type;

namespace {

// ---- plans -----------------------------------------------------------------

/// What the steps of loops' bodies do with arrays: scalars are left out.
struct Turn {
  int loops = 0;
  int kernels = 0;     // that store or read more than one element
  int64_t stored = 0;  // bytes of the largest array that is written
  int64_t copied = 0;  // bytes of the largest array that is copied
  size_t kept = 0;     // stored_arrays of the plan
  bool operator==(const Turn&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Turn& t) {
  return out << fmt::format("{} loops, {} kernels, {} B, copies {} B, {} kept",
                            t.loops, t.kernels, t.stored, t.copied, t.kept);
}

void look(const Plan& plan, const PlanSteps& steps, bool inside, Turn& turn) {
  for (const PlanStep& step : steps) {
    if (const auto* loop = std::get_if<LoopTask>(&step.what)) {
      ++turn.loops;
      look(plan, *loop->body, true, turn);
    }
    if (!inside) continue;
    if (const auto* copy = std::get_if<CopyStep>(&step.what))
      if (copy->bytes > 8) turn.copied = std::max(turn.copied, copy->bytes);
    const auto* kernel = std::get_if<Kernel>(&step.what);
    if (!kernel) continue;
    bool large = false;
    for (const Argument& argument : kernel->arguments) {
      const int64_t bytes = plan.buffers[argument.buffer].bytes;
      large = large || bytes > 8;
      if (argument.written) turn.stored = std::max(turn.stored, bytes);
    }
    turn.kernels += large ? 1 : 0;
  }
}

Turn turn_of(const Graph& graph, bool checked = true) {
  CpuGenerator generator({});
  Turn turn;
  on_deep_stacks(1, [&](size_t) {
    const Plan plan = fuse(optimise(graph), checked, generator.lowering());
    look(plan, plan.steps, false, turn);
    turn.kept = stored_arrays(plan).size();
  });
  return turn;
}

/// The number of the node that the last line of a body's `part` makes, whose
/// first line makes %3.
int last_of(const std::string& part) {
  return 2 + static_cast<int>(std::ranges::count(part, '\n'));
}

/// A loop of 50 turns over q: f64[400, 300], whose state is a number, to which
/// each turn adds the sum of what `part` makes of %2, which is q, and of the
/// turn's number, %0.
Graph adding(const std::string& part) {
  const int last = last_of(part);
  return parsed(fmt::format(R"(%0: f64 = input
%1: f64[400, 300] = input
%2: f64 = loop %0, %1 carries=1 turns=50 body={{
  %0: i64 = input
  %1: f64 = input
  %2: f64[400, 300] = input
{}  %{}: f64 = sum %{} axes=[0]
  %{}: f64 = add %1, %{}
  return %{}
}}
%3: f64 = project %2
return %3
)",
                            part, last + 1, last, last + 2, last + 1,
                            last + 2));
}

/// One over q, of which each turn writes row %0: twice what `part` makes of q,
/// which is %1, and of places, %2.
Graph updating(const std::string& part) {
  const int last = last_of(part);
  return parsed(fmt::format(R"(%0: f64[400, 300] = input
%1: i32[300] = input
%2: f64[400, 300] = loop %0, %1 carries=1 turns=50 body={{
  %0: i64 = input
  %1: f64[400, 300] = input
  %2: i32[300] = input
{}  %{}: f64[300] = add %{}, %{}
  %{}: f64[400, 300] = scatter %1, %{}, %0 axes=[0] @8
  return %{}
}}
%3: f64[400, 300] = project %2
return %3
)",
                            part, last + 1, last, last, last + 2, last + 1,
                            last + 2));
}

}  // namespace

TEST_CASE(
    "gathers of views: a turn of a loop is one kernel, and stores no "
    "array") {
  const Turn one{1, 1, 8, 0, 0};
  const auto check = [&](const std::string& part) {
    INFO(part);
    const Graph graph = adding(part);
    for (const bool checked : {true, false})
      CHECK(turn_of(graph, checked) == one);
    for (const int bytes : {0, 16}) {
      Bench bench(bytes);
      CHECK(difference(bench, graph, RandomGraph(1, {}).random_inputs(graph)) ==
            "");
    }
  };
  check(R"(  %3: f64[400, 299] = slice %2 start=[0, 1]
  %4: f64[299] = gather %3, %0 axes=[0] @7
)");
  check(R"(  %3: f64[133, 148] = slice %2 start=[1, 5] step=[3, 2]
  %4: f64[148] = gather %3, %0 axes=[0] @7
)");
  check(R"(  %3: f64[300, 400] = transpose %2 axes=[1, 0]
  %4: f64[400] = gather %3, %0 axes=[0] @7
)");
  check(R"(  %3: f64[400, 300] = flip %2 axes=[0, 1]
  %4: f64[300] = gather %3, %0 axes=[0] @7
)");
  // Views of views, with reshapes that split, join and drop axes.
  check(R"(  %3: f64[300, 300] = slice %2 start=[100, 0]
  %4: f64[300, 10, 30] = reshape %3
  %5: f64[30, 10, 300] = transpose %4 axes=[2, 1, 0]
  %6: f64[30, 10, 100] = slice %5 start=[0, 0, 2] step=[1, 1, 3]
  %7: f64[30, 1, 10, 100] = reshape %6
  %8: f64[1, 10, 100] = gather %7, %0 axes=[0] @7
  %9: f64[1000] = reshape %8
)");
  check(R"(  %3: f64[100, 300] = slice %2 start=[7, 0] size=[100, 300]
  %4: f64[30000] = reshape %3
  %5: f64[200, 150] = reshape %4
  %6: f64[150] = gather %5, %0 axes=[0] @7
)");
  check(R"(  %3: f64[100, 400, 300] = broadcast %2 axes=[1, 2]
  %4: f64[400, 300] = gather %3, %0 axes=[0] @7
  %5: f64[120000] = reshape %4
)");
  // Two axes are indexed.
  check(R"(  %3: f64[300, 20, 20] = reshape %2
  %4: f64[20, 20, 300] = transpose %3 axes=[2, 1, 0]
  %5: f64[300] = gather %4, %0, %0 axes=[0, 1] @7
)");
}

TEST_CASE("gathers of views: what maps compute is computed where it is read") {
  const auto check = [](const std::string& part, const Turn& expected) {
    INFO(part);
    const Graph graph = adding(part);
    for (const bool checked : {true, false}) {
      CHECK(turn_of(graph, checked) == expected);
      Bench bench;
      CHECK(difference(bench, graph, RandomGraph(1, {}).random_inputs(graph),
                       checked) == "");
    }
  };
  const Turn one{1, 1, 8, 0, 0};
  check(R"(  %3: f64[400, 300] = constant 2
  %4: f64[400, 300] = mul %2, %3
  %5: f64[300] = gather %4, %0 axes=[0] @7
)",
        one);
  check(R"(  %3: f64[400, 300] = exp %2
  %4: f64[300, 400] = transpose %3 axes=[1, 0]
  %5: f64[300, 400] = flip %4 axes=[1]
  %6: f64[300, 400] = transpose %2 axes=[1, 0]
  %7: f64[300, 400] = sub %5, %6
  %8: f64[100, 400] = slice %7 start=[1, 0] step=[2, 1] size=[100, 400]
  %9: f64[400] = gather %8, %0 axes=[0] @7
)",
        one);
  check(R"(  %3: f64[400, 300] = cast %2
  %4: bool[400, 300] = gt %3, %2
  %5: f64[400, 300] = select %4, %3, %2
  %6: f32[400, 300] = cast %5
  %7: f32[300] = gather %6, %0 axes=[0] @7
  %8: f64[300] = cast %7
)",
        one);
  // A row's sum is stored, once for all rows, and so is what others read.
  check(R"(  %3: f64[400] = sum %2 axes=[1]
  %4: f64[400, 300] = broadcast %3 axes=[0]
  %5: f64[400, 300] = div %2, %4
  %6: f64[300] = gather %5, %0 axes=[0] @7
)",
        Turn{1, 2, 3200, 0, 0});
  const std::string twice = R"(  %3: f64[400, 300] = add %2, %2
  %4: f64[300] = gather %3, %0 axes=[0] @7
  %5: f64[300] = sum %3 axes=[0]
  %6: f64[300] = add %4, %5
)";
  CHECK(turn_of(adding(twice)).stored == 120000 * 8);
}

TEST_CASE("gathers of views: what is no view is stored, the smaller of both") {
  const auto stored = [](const std::string& part) {
    return turn_of(adding(part)).stored;
  };
  // A reshape of a slice whose rows do not lie side by side: that slice.
  CHECK(stored(R"(  %3: f64[400, 100] = slice %2 size=[400, 100]
  %4: f64[200, 200] = reshape %3
  %5: f64[200] = gather %4, %0 axes=[0] @7
)") == 40000 * 8);
  // Of what is computed: the slice, or what the view is larger than.
  CHECK(stored(R"(  %3: f64[400, 300] = iota axis=1
  %4: f64[400, 300] = add %2, %3
  %5: f64[400, 100] = slice %4 start=[0, 200]
  %6: f64[100] = gather %5, %0 axes=[0] @7
)") == 40000 * 8);
  CHECK(stored(R"(  %3: f64[400] = sum %2 axes=[1]
  %4: f64[60, 400] = broadcast %3 axes=[1]
  %5: f64[400] = gather %4, %0 axes=[0] @7
)") == 400 * 8);
}

TEST_CASE("gathers of views: an array that is updated is read before") {
  // What is read of q, which each turn updates, is a row or a number; no turn
  // copies q.
  const auto check = [&](const std::string& part) {
    INFO(part);
    const Graph graph = updating(part);
    for (const bool checked : {true, false}) {
      CHECK(turn_of(graph, checked).copied == 0);
      Bench bench;
      CHECK(difference(bench, graph, RandomGraph(1, {}).random_inputs(graph),
                       checked) == "");
    }
  };
  check(R"(  %3: f64[300] = gather %1, %0 axes=[0] @7
)");
  check(R"(  %3: f64[400, 300] = flip %1 axes=[1]
  %4: f64[300] = gather %3, %0 axes=[0] @7
)");
  check(R"(  %3: f64[1, 300] = slice %1 start=[2, 0] size=[1, 300]
  %4: f64[300] = reshape %3
  %5: f64[300] = gather %4, %2 axes=[0] @7
)");
  // A number whose reader is read at other points.
  check(R"(  %3: f64[400, 300] = flip %1 axes=[0]
  %4: f64 = gather %3, %0, %0 axes=[0, 1] @7
  %5: f64[300] = cast %2
  %6: f64[300] = broadcast %4
  %7: f64[300] = add %5, %6
)");
}

TEST_CASE("gathers of views: loops in registers read through them") {
  const auto check = [](const std::string& text) {
    const Graph graph = parsed(text);
    INFO(text);
    CHECK(turn_of(graph, false) == Turn{});  // no loop is a step
    for (const bool checked : {true, false})
      for (const int bytes : {0, 16}) {
        Bench bench(bytes);
        CHECK(difference(bench, graph, RandomGraph(1, {}).random_inputs(graph),
                         checked) == "");
      }
  };
  // Elements at computed places, and known ones.
  check(R"(%0: i64 = input
%1: i64[40, 30] = input
%2: i64 = loop %0, %1 carries=1 turns=19 body={
  %0: i64 = input
  %1: i64 = input
  %2: i64[40, 30] = input
  %3: i64[30, 40] = transpose %2 axes=[1, 0]
  %4: i64[30, 19] = slice %3 start=[0, 1] step=[1, 2] size=[30, 19]
  %5: i64[30, 19] = flip %4 axes=[1]
  %6: i64 = gather %5, %0, %0 axes=[1, 0] @7
  %7: i64[2, 1] = slice %5 start=[3, 2] step=[9, 1] size=[2, 1]
  %8: i64[2] = reshape %7
  %9: i64 = sum %8 axes=[0]
  %10: i64 = mul %9, %1
  %11: i64 = add %10, %6
  return %11
}
%3: i64 = project %2
return %3
)");
  // Rows of a view are those of a loop inside.
  check(R"(%0: i64 = input
%1: i64[40, 100] = input
%2: i64 = loop %0, %1 carries=1 turns=38 body={
  %0: i64 = input
  %1: i64 = input
  %2: i64[40, 100] = input
  %3: i64[100, 40] = transpose %2 axes=[1, 0]
  %4: i64[99, 38] = slice %3 start=[1, 2]
  %5: i64 = loop %1, %4, %0 carries=1 turns=99 rows=1 body={
    %0: i64 = input
    %1: i64 = input
    %2: i64[38] = input
    %3: i64 = input
    %4: i64 = gather %2, %3 axes=[0] @7
    %5: i64 = constant 3
    %6: i64 = mul %1, %5
    %7: i64 = add %6, %4
    return %7
  }
  %6: i64 = project %5
  return %6
}
%3: i64 = project %2
return %3
)");
}

// ---- how views lie ---------------------------------------------------------

namespace {

class Random {
 public:
  explicit Random(uint32_t seed) : random_(seed) {}
  int64_t below(int64_t n) {
    return static_cast<int64_t>(random_() % static_cast<uint64_t>(n));
  }
  bool chance(int percent) { return below(100) < percent; }
  template <class List>
  auto& one_of(List& list) {
    return list[static_cast<size_t>(below(std::ssize(list)))];
  }
  std::vector<int> some_axes(size_t rank, int percent) {
    std::vector<int> out;
    for (size_t a = 0; a < rank; ++a)
      if (chance(percent)) out.push_back(static_cast<int>(a));
    return out;
  }
  std::vector<int> order(size_t rank) {
    std::vector<int> out(rank);
    std::iota(out.begin(), out.end(), 0);
    std::shuffle(out.begin(), out.end(), random_);
    return out;
  }

 private:
  std::mt19937 random_;
};

/// A move of an array of this shape: a view, in most cases.
struct Move {
  Op op = Op::transpose;
  ir::Attrs attrs;
};

ir::SliceAttrs random_slice(Random& random, const std::vector<int64_t>& shape) {
  ir::SliceAttrs a;
  const bool empty = random.chance(2);
  for (const int64_t size : shape) {
    const int64_t start = size ? random.below(std::min<int64_t>(size, 4)) : 0;
    const int64_t step = 1 + random.below(3);
    const int64_t most = (size - start + step - 1) / step;
    a.start.push_back(start);
    a.step.push_back(step);
    a.size.push_back(empty || most == 0 ? 0
                                        : most - random.below((most + 2) / 3));
  }
  return a;
}

/// A shape of as many elements: axes of size 1 come and go, neighbours are
/// joined, an axis is cut.
ir::ShapeAttrs random_reshape(Random& random, std::vector<int64_t> shape) {
  for (int64_t times = 1 + random.below(2); times-- > 0;) {
    const auto at = static_cast<size_t>(
        random.below(static_cast<int64_t>(shape.size()) + 1));
    const auto place = shape.begin() + static_cast<ptrdiff_t>(at);
    switch (random.below(4)) {
      case 0: shape.insert(place, 1); break;
      case 1:
        if (at < shape.size() && shape[at] == 1) shape.erase(place);
        break;
      case 2:
        if (at + 1 < shape.size()) {
          shape[at + 1] *= shape[at];
          shape.erase(place);
        }
        break;
      default:
        for (const int64_t part : {2, 3, 5})
          if (at < shape.size() && shape[at] > part && shape[at] % part == 0) {
            shape[at] /= part;
            shape.insert(place + 1, part);
            break;
          }
    }
  }
  return {{shape.begin(), shape.end()}};
}

Move random_move(Random& random, const std::vector<int64_t>& shape) {
  const size_t rank = shape.size();
  switch (random.below(rank > 4 ? 4 : 5)) {
    case 0: return {Op::transpose, ir::AxesAttrs{random.order(rank)}};
    case 1: return {Op::flip, ir::AxesAttrs{random.some_axes(rank, 50)}};
    case 2: return {Op::slice, random_slice(random, shape)};
    case 3: return {Op::reshape, random_reshape(random, shape)};
    default: {
      ir::BroadcastAttrs a{{shape.begin(), shape.end()}, {}};
      const int64_t at = random.below(static_cast<int64_t>(rank) + 1);
      a.shape.insert(a.shape.begin() + at, 1 + random.below(3));
      for (size_t i = 0; i < rank; ++i)
        a.axes.push_back(static_cast<int>(i) +
                         (static_cast<int64_t>(i) >= at ? 1 : 0));
      // An axis of size 1 becomes longer.
      for (size_t i = 0; i < rank; ++i)
        if (shape[i] == 1 && random.chance(50))
          a.shape[static_cast<size_t>(a.axes[i])] = 1 + random.below(4);
      return {Op::broadcast, a};
    }
  }
}

std::vector<int64_t> random_shape(Random& random) {
  const std::vector<int64_t> lengths = {1, 2, 3, 4, 5, 6, 8, 9, 12, 40, 70};
  std::vector<int64_t> out;
  for (int64_t rank = 1 + random.below(3); rank-- > 0;)
    out.push_back(lengths[static_cast<size_t>(random.below(9))]);
  if (random.chance(40)) out.back() = random.one_of(lengths);
  return out;
}

}  // namespace

TEST_CASE("gathers of views: a view lies where its elements are") {
  int views = 0, copies = 0;
  for (const uint32_t seed : seeds(3000)) {
    Random random(seed);
    const std::vector<int64_t> base = random_shape(random);
    Graph graph;
    NodeId node = graph.add_input({DType::I64, {base.begin(), base.end()}});
    Strided lies = dense(base);
    bool is_view = true;
    for (int64_t moves = 1 + random.below(4); moves-- > 0 && is_view;) {
      const auto from = graph.type(node).sizes();
      const Move move = random_move(random, from);
      node = graph.add(move.op, {node}, move.attrs);
      CHECK(ir::may_be_view(graph[node]));
      auto next = moved(graph[node], lies, from);
      is_view = next.has_value();
      if (next) lies = *std::move(next);
    }
    (is_view ? views : copies) += 1;
    if (!is_view) {
      CHECK(graph[node].op == Op::reshape);
      continue;
    }
    graph.outputs = {node};
    std::vector<double> numbers(
        static_cast<size_t>(graph.type(graph.inputs[0]).elements()));
    std::iota(numbers.begin(), numbers.end(), 0.0);
    const auto out = evaluate(graph, {array(DType::I64, base, numbers)});
    REQUIRE(out);
    const auto values = values_of((*out)[0]);
    const auto shape = graph.type(node).sizes();
    INFO("seed " << seed << "\n" << ir::print(graph));
    REQUIRE(lies.strides.size() == shape.size());
    bool right = true;
    for (size_t i = 0; i < values.size(); ++i) {
      int64_t at = lies.start, rest = static_cast<int64_t>(i);
      for (size_t a = shape.size(); a-- > 0; rest /= shape[a])
        at += rest % shape[a] * lies.strides[a];
      right = right && values[i] == static_cast<double>(at);
    }
    CHECK(right);
  }
  CHECK(views > 4 * copies);
  CHECK(copies > 0);
}

// ---- random programs -------------------------------------------------------

namespace {

/// Gathers of views of x, input 0; other inputs are places.
class Program {
 public:
  Program(uint32_t seed, DType dtype) : random_(seed), dtype_(dtype) {}

  Graph graph;
  /// By input: the size of the axis that it indexes; 0: of numbers.
  std::vector<int64_t> sizes = {0};
  /// Gathers of no elements look at no place in compiled code.
  bool is_empty = false;

  void make() {
    const auto base = random_shape(random_);
    const Type type{dtype_, {base.begin(), base.end()}};
    graph.add_input(type);
    choose_moves(type);
    if (random_.chance(35)) return make_loop(type);
    const std::vector<NodeId> at = places(graph);
    const NodeId x = origin(graph, 0);
    finish(x, gathered(graph, x, at));
  }

  /// `outside`: of the places one may lie outside.
  Arrays inputs(const Graph& of, bool outside) {
    RandomGraph numbers(static_cast<uint32_t>(random_.below(1 << 30)), {});
    Arrays out = numbers.random_inputs(of);
    std::vector<std::pair<size_t, size_t>> all;  // input, element
    std::vector<std::vector<double>> values(sizes.size());
    for (size_t i = 0; i < sizes.size(); ++i) {
      if (sizes[i] == 0) continue;
      for (int64_t e = of.type(of.inputs[i]).elements(); e-- > 0;) {
        all.emplace_back(i, values[i].size());
        values[i].push_back(
            static_cast<double>(random_.below(2 * sizes[i]) - sizes[i]));
      }
    }
    if (outside && !all.empty()) {
      const auto [i, e] = random_.one_of(all);
      const int64_t beyond = sizes[i] + random_.below(3);
      values[i][e] =
          static_cast<double>(random_.chance(50) ? beyond : -beyond - 1);
    }
    for (size_t i = 0; i < sizes.size(); ++i)
      if (sizes[i] > 0)
        out[i] = array(of.type(of.inputs[i]).dtype,
                       of.type(of.inputs[i]).sizes(), values[i]);
    return out;
  }

 private:
  /// The moves, in which order axes are indexed, and what the places are.
  void choose_moves(const Type& type) {
    Graph trial;
    NodeId x = trial.add_input(type);
    for (int64_t n = 1 + random_.below(4); n-- > 0;) {
      const Move move = random_move(random_, trial.type(x).sizes());
      x = trial.add(move.op, {x}, move.attrs);
      moves_.push_back(move);
    }
    if (trial.type(x).rank() == 0) {
      moves_.push_back({Op::reshape, ir::ShapeAttrs{{1}}});
      x = trial.add(Op::reshape, {x}, moves_.back().attrs);
    }
    stacked_ = random_.chance(10);
    if (stacked_) x = stack(trial, x);
    view_ = trial.type(x);
    const auto rank = static_cast<size_t>(view_.rank());
    at_.axes = random_.order(rank);
    at_.axes.resize(1 + static_cast<size_t>(
                            random_.below(std::min<int64_t>(3, view_.rank()))));
    at_.checked = random_.chance(75);
    for (int64_t n = random_.below(3); n-- > 0;)
      positions_.push_back(1 + random_.below(n == 0 ? 9 : 3));
    index_ = random_.chance(50) ? DType::I32 : DType::I64;
    is_empty = part_type().elements() == 0;
  }

  Type part_type() const {
    Type part{dtype_, positions_};
    for (int a = 0; a < view_.rank(); ++a)
      if (std::ranges::find(at_.axes, a) == at_.axes.end())
        part.shape.push_back(view_.shape[a]);
    return part;
  }

  /// What the view is of: x, what a map makes of it, or what has to be stored.
  NodeId origin(Graph& g, NodeId x) {
    switch (random_.below(7)) {
      case 0: return g.add(dtype_ == DType::Bool ? Op::bit_not : Op::neg, {x});
      case 1: {  // of several arrays, at other places, and of constants
        const NodeId flipped =
            g.add(Op::flip, {x},
                  ir::AxesAttrs{random_.some_axes(
                      static_cast<size_t>(g.type(x).rank()), 60)});
        const NodeId more = g.add(Op::minimum, {flipped, x});
        const NodeId wide = g.add(Op::cast, {more}, ir::CastAttrs{DType::F64});
        const NodeId scaled =
            g.add(Op::mul, {wide, constant(g, g.type(wide), 0.75)});
        return g.add(Op::select,
                     {g.add(Op::lt, {x, flipped}), x,
                      g.add(Op::cast, {scaled}, ir::CastAttrs{dtype_})});
      }
      case 2: {  // what may fail
        if (!is_integer(dtype_)) return g.add(Op::abs, {x});
        const NodeId odd = g.add(Op::bit_or, {x, constant(g, g.type(x), 1)});
        return g.add(Op::floor_div, {x, odd});
      }
      case 3:
        return g.add(Op::cummax, {x},
                     ir::ScanAttrs{g.type(x).rank() - 1, false});
      default: return x;
    }
  }

  NodeId stack(Graph& g, NodeId x) {
    ir::ShapeAttrs one{g.type(x).shape};
    one.shape.insert(one.shape.begin(), 1);
    const NodeId part = g.add(Op::reshape, {x}, one);
    return g.add(Op::concat, {part, part}, ir::AxisAttrs{0});
  }

  NodeId moved_view(Graph& g, NodeId x) {
    for (const Move& move : moves_) x = g.add(move.op, {x}, move.attrs);
    return stacked_ ? stack(g, x) : x;
  }

  /// A place along each axis that is indexed, as inputs.
  std::vector<NodeId> places(Graph& g) {
    std::vector<NodeId> out;
    for (const int axis : at_.axes) {
      out.push_back(g.add_input({index_, positions_}));
      sizes.push_back(std::max<int64_t>(view_.shape[axis].value(), 1));
    }
    return out;
  }

  NodeId gathered(Graph& g, NodeId x, const std::vector<NodeId>& at) {
    std::vector<NodeId> operands = {moved_view(g, x)};
    operands.insert(operands.end(), at.begin(), at.end());
    return g.add(Op::gather, operands, at_, 7);
  }

  NodeId constant(Graph& g, const Type& type, double value) {
    return g.add_constant(type, element_bytes(type.dtype, value));
  }

  /// x with another part `at`, along axis 0.
  NodeId updated(Graph& g, NodeId x, NodeId at) {
    Type part = g.type(x);
    part.shape.erase(part.shape.begin());
    return g.add(Op::scatter, {x, constant(g, part, 3), at},
                 ir::IndexAttrs{{0}, false}, 8);
  }

  NodeId twice(Graph& g, NodeId r) {
    return dtype_ == DType::Bool ? g.add(Op::bit_not, {r})
                                 : g.add(Op::add, {r, r});
  }

  void finish(NodeId x, NodeId r) {
    Graph& g = graph;
    const Type type = g.type(r);
    switch (random_.below(6)) {
      case 0: g.outputs = {r}; return;
      case 1: g.outputs = {twice(g, r)}; return;
      case 2: {
        const NodeId mask = g.add(Op::eq, {r, r});
        g.outputs = {g.add(Op::select, {mask, r, constant(g, type, 0)}), r};
        return;
      }
      case 3:
        g.outputs = {r};
        if (type.rank() > 0 && dtype_ != DType::Bool)
          g.outputs = {g.add(Op::sum, {r}, ir::ReduceAttrs{{type.rank() - 1}})};
        return;
      case 4: {  // before and after an update
        const NodeId first = constant(g, {DType::I64, {}}, 0);
        const NodeId y = updated(g, x, first);
        const std::vector<NodeId> at(g.inputs.begin() + 1, g.inputs.end());
        const NodeId later = gathered(g, y, at);
        g.outputs = {twice(g, r), y, later};
        return;
      }
      default:  // a gather of what was gathered
        g.outputs = {r};
        if (type.rank() > 0) {
          const NodeId at = constant(
              g, {DType::I32, {}},
              static_cast<double>(random_.below(type.shape[0].value() + 1)));
          if (type.shape[0].value() > 0)
            g.outputs.push_back(g.add(
                Op::gather, {g.add(Op::flip, {r}, ir::AxesAttrs{{0}}), at},
                ir::IndexAttrs{{0}, false}, 9));
        }
        return;
    }
  }

  /// Four turns, which add what they gather of x, carried and updated or not,
  /// at places that their number moves.
  void make_loop(const Type& type) {
    const std::vector<NodeId> at = places(graph);
    const bool carried = random_.chance(60), first = random_.chance(50);
    auto body = std::make_shared<Graph>();
    const NodeId number = body->add_input({DType::I64, {}});
    const Type part = part_type();
    const NodeId sum = body->add_input(part);
    NodeId x = body->add_input(type);
    std::vector<NodeId> inside;
    for (size_t i = 0; i < at.size(); ++i)
      inside.push_back(body->add_input({index_, positions_}));
    for (NodeId& place : inside) {
      if (random_.chance(50)) continue;
      NodeId turn = number;
      if (index_ == DType::I32)
        turn = body->add(Op::cast, {turn}, ir::CastAttrs{DType::I32});
      turn =
          body->add(Op::broadcast, {turn}, ir::BroadcastAttrs{positions_, {}});
      place = body->add(Op::minimum, {place, turn});
    }
    const NodeId old = x;
    if (carried && !first) x = updated(*body, x, number);
    const NodeId r = gathered(*body, origin(*body, x), inside);
    if (carried && first) x = updated(*body, old, number);
    const NodeId total =
        body->add(dtype_ == DType::Bool ? Op::bit_xor : Op::add, {sum, r});
    body->outputs = {total};
    if (carried) body->outputs.push_back(x);
    ir::LoopAttrs loop;
    loop.carries = carried ? 2 : 1;
    loop.turns = 4;
    loop.body = body;
    std::vector<NodeId> operands = {constant(graph, part, 0), origin(graph, 0)};
    operands.insert(operands.end(), at.begin(), at.end());
    const NodeId id = graph.add(Op::loop, operands, loop);
    for (int i = 0; i < loop.carries; ++i)
      graph.outputs.push_back(
          graph.add(Op::project, {id}, ir::ProjectAttrs{i}));
  }

  Random random_;
  DType dtype_;
  std::vector<Move> moves_;
  bool stacked_ = false;
  Type view_;
  ir::IndexAttrs at_;
  Shape positions_;
  DType index_ = DType::I32;
};

/// As `difference`, and errors are the same to the place and the message.
std::string unlike(Bench& bench, const Graph& graph, const Arrays& inputs,
                   bool checked) {
  ReferenceOptions options;
  options.checked = checked;
  const auto want = evaluate(graph, inputs, options);
  if (want) return difference(bench, graph, inputs, checked);
  const auto have = bench.run(graph, inputs, checked);
  if (have || have.error().message != want.error().message ||
      have.error().source != want.error().source)
    return "want: " + want.error().message +
           ", have: " + (have ? "fine" : have.error().message) + "\n" +
           ir::print(graph);
  return "";
}

constexpr DType dtypes[] = {DType::F32, DType::F64, DType::I32, DType::BF16,
                            DType::I8};

/// `derive`: what is to be compared of a program, or nothing.
void compare_programs(
    Bench& bench, uint32_t count,
    const std::function<std::optional<Graph>(const Graph&)>& derive) {
  int failures = 0;
  for (const uint32_t seed : seeds(count)) {
    Program program(seed, dtypes[seed % std::size(dtypes)]);
    program.make();
    const auto graph = derive(program.graph);
    if (!graph) continue;
    for (const bool checked : {true, false}) {
      if (checked && program.is_empty) continue;
      const Arrays inputs = program.inputs(*graph, seed % 4 == 0);
      const std::string wrong = unlike(bench, *graph, inputs, checked);
      INFO("seed " << seed << (checked ? "" : ", unchecked"));
      CHECK(wrong == "");
      if (!wrong.empty() && ++failures == 5) return;
    }
  }
}

std::optional<Graph> itself(const Graph& graph) { return graph; }

std::optional<Graph> mapped(const Graph& graph) {
  VmapSpec spec;
  spec.size = 3;
  for (size_t i = 0; i < graph.inputs.size(); ++i)
    spec.mapped.push_back(i != graph.nodes.size() % 3);
  if (std::ranges::count(spec.mapped, true) == 0) return std::nullopt;
  return vmap(graph, spec);
}

std::optional<Graph> derived(const Graph& graph) {
  const Type& type = graph.type(graph.inputs[0]);
  if (!is_floating(type.dtype)) return std::nullopt;
  DerivativeSpec spec;
  spec.inputs.assign(graph.inputs.size(), false);
  spec.inputs[0] = true;
  auto out = vjp(graph, spec);
  if (!std::holds_alternative<Graph>(out)) return std::nullopt;
  return std::get<Graph>(std::move(out));
}

std::optional<Graph> derived_members(const Graph& graph) {
  const auto out = derived(graph);
  if (!out) return std::nullopt;
  return mapped(*out);
}

}  // namespace

TEST_CASE("gathers of views: random programs") {
  for (const int bytes : {0, 16, 32}) {
    Bench bench(bytes);
    INFO(bytes);
    compare_programs(bench, bytes == 0 ? 300 : 60, itself);
  }
}

TEST_CASE("gathers of views: random programs, mapped and derived") {
  Bench bench;
  compare_programs(bench, 120, mapped);
  compare_programs(bench, 120, derived);
  compare_programs(bench, 40, derived_members);
}

TEST_CASE("gathers of views: random programs on a simulated GPU") {
  for (const char* model : {"cc=7.5", "cc=9.0"}) {
    Bench bench(simulated_gpus(1, model));
    INFO(model);
    compare_programs(bench, 80, itself);
    compare_programs(bench, 20, mapped);
    compare_programs(bench, 20, derived);
  }
}
