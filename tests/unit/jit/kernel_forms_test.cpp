// Every form that a kernel can have, at the sizes where its loops change.
#include <fmt/format.h>

#include <cstdlib>
#include <functional>

#include "jit/ir/kinds.h"
#include "jit/plan/fuse.h"
#include "jit/plan/gpu_lowering.h"
#include "jit/target/generate_cpu.h"
#include "tests/unit/jit/compiled.h"
#include "tests/unit/jit/gpu/simulated.h"

using namespace unisono;
using namespace unisono::jit;
using namespace unisono::jit::testing;
using ir::Graph;
using ir::NodeId;
using ir::Op;
using ir::Shape;
using ir::Type;

namespace {

/// Numbers of which some are special; few repeat, so that orders show.
HostArray numbers(const Type& type, uint32_t seed) {
  HostArray out{type, std::vector<uint8_t>(type.bytes())};
  std::mt19937 random(seed);
  with_dtype(type.dtype, [&]<DType D>() {
    using Stored = typename StorageOf<D>::type;
    for (size_t at = 0; at < out.bytes.size(); at += sizeof(Stored)) {
      Stored value;
      const auto draw = static_cast<uint32_t>(random());
      if constexpr (D == DType::Bool) {
        value = draw % 2;
      } else if constexpr (std::is_integral_v<Stored>) {
        value = static_cast<Stored>(draw);
      } else {
        float number = static_cast<float>(draw % 20011) / 1000.0F - 10;
        if (draw % 977 == 0) number = -0.0F;
        value = static_cast<Stored>(number);
      }
      std::memcpy(&out.bytes[at], &value, sizeof value);
    }
  });
  return out;
}

/// What each form is compiled for: CPUs by the bytes of their vectors (0: of
/// this machine), and a simulated GPU.
constexpr int gpu = -1;
constexpr int machines[] = {64, 0, 32, 16, gpu};

/// Two of the machines in turn, so that each meets forms of all kinds and
/// sizes; all of them with UNISONO_FORMS=full.
std::vector<int> next_machines() {
  const char* wanted = std::getenv("UNISONO_FORMS");
  if (wanted && std::string_view(wanted) == "full")
    return {std::begin(machines), std::end(machines)};
  static size_t turn = 0;
  const size_t first = turn++;
  return {machines[2 * first % 5], machines[(2 * first + 1) % 5]};
}

/// The graph agrees with the evaluator.
void compare(const Graph& graph, uint32_t seed = 1) {
  Arrays inputs;
  for (const NodeId input : graph.inputs)
    inputs.push_back(numbers(graph.type(input), seed++));
  for (const int machine : next_machines()) {
    INFO("vectors of " << machine << " bytes (-1: a simulated GPU)");
    Bench bench = machine == gpu ? Bench(simulated_gpus(1)) : Bench(machine);
    CHECK(difference(bench, graph, inputs) == "");
  }
}

/// The same of one input and one output.
void compare(const Type& input, const std::function<NodeId(Graph&, NodeId)>& f,
             uint32_t seed = 1) {
  Graph graph;
  NodeId x = graph.add_input(input);
  graph.outputs = {f(graph, x)};
  compare(graph, seed);
}

/// The same of a printed graph, in which `T` is the element type.
void compare(std::string text, DType dtype) {
  for (size_t at; (at = text.find('T')) != text.npos;)
    text.replace(at, 1, name(dtype));
  const auto graph = ir::parse(text);
  if (!graph) FAIL(graph.error().message);
  INFO(text);
  compare(*graph);
}

constexpr int64_t lengths[] = {2,    9,    63,   64,   65,    127,
                               1000, 4095, 4096, 4097, 12345, 70001};

}  // namespace

TEST_CASE("reductions along the last axis") {
  for (int64_t n : lengths)
    for (Op op : {Op::sum, Op::max}) {
      auto reduce = [&](Graph& g, NodeId x) {
        return g.add(op, {x}, ir::ReduceAttrs{{g.type(x).rank() - 1}});
      };
      compare({DType::F32, {n}}, reduce);
      compare({DType::F32, {3, n}}, reduce);
      if (n < 5000) compare({DType::F64, {70, n}}, reduce);
      if (n < 5000) compare({DType::F16, {2, n}}, reduce);
      if (n < 5000) compare({DType::I8, {2, n}}, reduce);
    }
}

TEST_CASE("reductions along the first axis") {
  for (int64_t n : lengths)
    for (auto order : {ir::ReduceOrder::elements, ir::ReduceOrder::members}) {
      auto reduce = [&](Graph& g, NodeId x) {
        return g.add(Op::sum, {x}, ir::ReduceAttrs{{0}, order});
      };
      compare({DType::F32, {n}}, reduce);
      compare({DType::F32, {n, 1}}, reduce);
      compare({DType::F32, {n, 3}}, reduce);
      compare({DType::F64, {n, 37}}, reduce);
      if (n < 5000) compare({DType::BF16, {n, 130}}, reduce);
    }
}

TEST_CASE("sums of whole rows") {
  // Of one run at most, and wider than registers are many.
  for (int64_t rows : {3, 8, 63, 64})
    for (DType dtype : {DType::F32, DType::F16, DType::I64})
      for (Op op : {Op::sum, Op::max})
        compare({dtype, {rows, 33'003 / rows}}, [&](Graph& g, NodeId x) {
          return g.add(op, {x}, ir::ReduceAttrs{{0}});
        });
  // Several at once, with what rows share, stores on the way and something
  // behind.
  for (DType dtype : {DType::F32, DType::F64})
    compare(R"(%0: T[40, 1027] = input
%1: T[40] = input
%2: T[1027] = input
%3: T[40, 1027] = broadcast %1 axes=[0]
%4: T[40, 1027] = sub %0, %3
%5: T[40, 1027] = broadcast %2 axes=[1]
%6: T[40, 1027] = mul %4, %5
%7: T[1027] = sum %6 axes=[0]
%8: T[1027] = sum %0 axes=[0]
%9: T[1027] = max %4 axes=[0]
%10: T[1027] = mul %7, %2
%11: T[1027] = sub %10, %8
return %11, %9, %6
)",
            dtype);
}

TEST_CASE("rows that are reduced, and added, in one kernel") {
  // The last is no multiple of a run: those are two kernels.
  for (int64_t rows : {2048, 2050}) {
    std::string text = R"(%0: T[R, 530] = input
%1: T[R, 530] = input
%2: T[R] = sum %0 axes=[1]
%3: T[R, 530] = broadcast %2 axes=[0]
%4: T[R, 530] = sub %0, %3
%5: T[R, 530] = mul %1, %4
%6: T[R] = max %5 axes=[1]
%7: T[R, 530] = broadcast %6 axes=[0]
%8: T[R, 530] = mul %5, %7
%9: T[530] = sum %8 axes=[0]
%10: T[530] = sum %1 axes=[0]
return %8, %9, %10, %2
)";
    for (size_t at; (at = text.find('R')) != text.npos;)
      text.replace(at, 1, std::to_string(rows));
    compare(text, DType::F32);
  }
}

TEST_CASE("reductions along several axes") {
  auto reduce = [](const std::vector<int>& axes) {
    return [axes](Graph& g, NodeId x) {
      return g.add(Op::sum, {x}, ir::ReduceAttrs{axes});
    };
  };
  for (int64_t n : {3, 17, 64, 128, 500}) {
    compare({DType::F32, {9, 5, n}}, reduce({0, 2}));
    compare({DType::F32, {90, 3, n}}, reduce({0, 2}));
    compare({DType::F32, {n, 5, 9}}, reduce({0, 1}));
    compare({DType::F32, {n, 5, 9, 4}}, reduce({0, 2}));
    compare({DType::F32, {4, n, 9, 4}}, reduce({1, 3}));
    compare({DType::I32, {n, 5, 9}}, reduce({0, 1, 2}));
  }
}

TEST_CASE("what feeds and follows a reduction") {
  auto softmax = [](int axis, Op op) {
    return [axis, op](Graph& g, NodeId x) {
      const Shape shape = g.type(x).shape;
      std::vector<int> kept;
      for (int i = 0; i < g.type(x).rank(); ++i)
        if (i != axis) kept.push_back(i);
      auto spread = [&](NodeId y) {
        return g.add(Op::broadcast, {y}, ir::BroadcastAttrs{shape, kept});
      };
      NodeId top = g.add(Op::max, {x}, ir::ReduceAttrs{{axis}});
      NodeId e = g.add(op, {g.add(Op::sub, {x, spread(top)})});
      NodeId total = g.add(Op::sum, {e}, ir::ReduceAttrs{{axis}});
      return g.add(Op::div, {e, spread(total)});
    };
  };
  for (int64_t n : {5, 64, 100, 5000}) {
    // The loops after the first compute abs again, and read exp.
    for (Op op : {Op::abs, Op::exp}) {
      compare({DType::F32, {100, n}}, softmax(1, op));
      compare({DType::F32, {2, n}}, softmax(1, op));
      compare({DType::F32, {n, 100}}, softmax(0, op));
    }
  }
  // Mean and variance read the array once.
  Graph g;
  NodeId x = g.add_input({DType::F32, {1 << 16}});
  NodeId squares = g.add(Op::mul, {x, x});
  g.outputs = {g.add(Op::sum, {x}, ir::ReduceAttrs{{0}}),
               g.add(Op::sum, {squares}, ir::ReduceAttrs{{0}})};
  Bench bench;
  CHECK(difference(bench, g, {numbers(g.type(x), 2)}) == "");
  CompileStats stats;
  CHECK(bench.run(g, {numbers(g.type(x), 2)}, true, &stats));
  CHECK(stats.kernels == 2);  // the chunks, and their tree
}

TEST_CASE("positions of extrema") {
  auto with_ties = [](uint32_t seed, bool nan) {
    return [=](Graph& g, NodeId x) {
      // Coarse numbers repeat.
      NodeId coarse = g.add(Op::floor, {x});
      if (nan) {
        NodeId zero = g.add_constant(g.type(x), {0, 0, 0, 0});
        NodeId is =
            g.add(Op::gt, {x, g.add_constant(g.type(x), {0, 0, 0x1f, 0x41})});
        coarse = g.add(Op::select, {is, g.add(Op::div, {zero, zero}), coarse});
      }
      Op op = seed % 2 ? Op::argmax : Op::argmin;
      return g.add(op, {coarse},
                   ir::ReduceAttrs{{seed % 3 == 0 ? 0 : g.type(x).rank() - 1}});
    };
  };
  uint32_t seed = 0;
  for (int64_t n : lengths)
    for (bool nan : {false, true}) {
      for (const Shape& shape : {Shape{n}, Shape{n, 5}, Shape{5, n}}) {
        ++seed;
        compare({DType::F32, shape}, with_ties(seed, nan), seed);
      }
    }
}

TEST_CASE("scans") {
  for (int64_t n : lengths)
    for (bool reverse : {false, true})
      for (int axis : {0, 1}) {
        auto scan = [&](Graph& g, NodeId x) {
          return g.add(Op::cumsum, {x}, ir::ScanAttrs{axis, reverse});
        };
        compare({DType::F32, {3, n}}, scan);
        compare({DType::F32, {n, 3}}, scan);
        if (n < 5000) compare({DType::F16, {2, n}}, scan);
        if (n < 5000) compare({DType::I64, {n, 40}}, scan);
      }
}

TEST_CASE("moves") {
  using Dims = std::vector<ir::Dim>;
  for (DType dtype : {DType::U8, DType::F16, DType::F32, DType::F64})
    for (int64_t n : {1, 7, 64, 100}) {
      compare({dtype, {n, 33}}, [](Graph& g, NodeId x) {
        return g.add(Op::transpose, {x}, ir::AxesAttrs{{1, 0}});
      });
      compare({dtype, {3, n, 33}}, [](Graph& g, NodeId x) {
        return g.add(Op::transpose, {x}, ir::AxesAttrs{{1, 2, 0}});
      });
      compare({dtype, {3, n, 33}}, [](Graph& g, NodeId x) {
        return g.add(Op::transpose, {x}, ir::AxesAttrs{{0, 2, 1}});
      });
      compare({dtype, {70, 70}}, [n](Graph& g, NodeId x) {
        NodeId y = g.add(Op::transpose, {x}, ir::AxesAttrs{{1, 0}});
        for (int64_t i = 0; i < n / 8; ++i) y = g.add(Op::add, {y, x});
        return g.add(Op::le, {x, y});
      });
      compare({dtype, {70, 70}}, [](Graph& g, NodeId x) {
        NodeId y = g.add(Op::lt, {x, g.add(Op::flip, {x}, ir::AxesAttrs{{0}})});
        return g.add(Op::transpose, {y}, ir::AxesAttrs{{1, 0}});
      });
      compare({dtype, {n, 33}}, [](Graph& g, NodeId x) {
        return g.add(Op::flip, {x}, ir::AxesAttrs{{1}});
      });
      compare({dtype, {n, 33}}, [n](Graph& g, NodeId x) {
        return g.add(Op::slice, {x},
                     ir::SliceAttrs{Dims{0, 2}, Dims{1, 3}, Dims{n, 10}});
      });
      compare({dtype, {n, 33}}, [dtype](Graph& g, NodeId x) {
        NodeId one = g.add_constant({dtype, {}},
                                    std::vector<uint8_t>(byte_size(dtype), 1));
        return g.add(Op::pad, {x, one}, ir::PadAttrs{Dims{1, 0}, Dims{2, 3}});
      });
      compare({dtype, {n, 33}}, [n](Graph& g, NodeId x) {
        NodeId y = g.add(Op::concat, {x, x, x}, ir::AxisAttrs{1});
        return g.add(Op::reshape, {y}, ir::ShapeAttrs{{n * 11, 9}});
      });
      compare({dtype, {n, 32}}, [n](Graph& g, NodeId x) {
        NodeId y = g.add(Op::transpose, {x}, ir::AxesAttrs{{1, 0}});
        return g.add(Op::reshape, {y}, ir::ShapeAttrs{{8, 4 * n}});
      });
    }
}

TEST_CASE("dot") {
  constexpr auto exact = ir::Precision::exact;
  for (DType dtype : {DType::F32, DType::F64, DType::F16, DType::I16})
    for (int64_t n : {1, 3, 17, 64}) {
      compare({dtype, {n, 33}}, [](Graph& g, NodeId x) {
        return g.add(Op::dot, {x, x}, ir::DotAttrs{{}, {}, {1}, {1}, exact});
      });
      compare({dtype, {n, 33}}, [](Graph& g, NodeId x) {
        return g.add(Op::dot, {x, x}, ir::DotAttrs{{}, {}, {0}, {0}, exact});
      });
      compare({dtype, {3, n, 20}}, [](Graph& g, NodeId x) {
        NodeId y = g.add(Op::transpose, {x}, ir::AxesAttrs{{0, 2, 1}});
        return g.add(Op::dot, {x, y}, ir::DotAttrs{{0}, {0}, {2}, {1}, exact});
      });
    }
}

TEST_CASE("sorts") {
  for (Op op : {Op::sort, Op::argsort})
    for (int64_t n : {1, 2, 100, 1000})
      for (DType dtype : {DType::F32, DType::I8, DType::F16, DType::Bool})
        compare({dtype, {3, n}},
                [op](Graph& g, NodeId x) { return g.add(op, {x}); });
}

TEST_CASE("stencils of what is padded, joined and rolled") {
  for (DType dtype : {DType::U8, DType::F16, DType::F32, DType::F64})
    for (int64_t n : {2, 5, 33, 64, 100, 5000}) {
      if (dtype != DType::F32 && n == 5000) continue;
      // A line: what is beside an element, zeros beyond the ends.
      compare(fmt::format("%0: T[{0}] = input\n"
                          "%1: T = constant 3\n"
                          "%2: T[{1}] = pad %0, %1 low=[1] high=[2]\n"
                          "%3: T[{0}] = slice %2 start=[2]\n"
                          "%4: T[{0}] = slice %2 start=[0]\n"
                          "%5: T[{0}] = add %3, %4\n"
                          "%6: T[{0}] = slice %2 start=[3]\n"
                          "%7: T[{0}] = add %5, %6\n"
                          "return %7\n",
                          n, n + 3),
              dtype);
      // Every second element of it, backwards.
      compare(fmt::format("%0: T[{0}] = input\n"
                          "%1: T = constant 3\n"
                          "%2: T[{1}] = pad %0, %1 low=[3] high=[4]\n"
                          "%3: T[{1}] = flip %2 axes=[0]\n"
                          "%4: T[{2}] = slice %3 start=[1] step=[2]\n"
                          "%5: T[{2}] = slice %2 start=[0] step=[2]\n"
                          "%6: T[{2}] = add %4, %5\n"
                          "return %6\n",
                          n, n + 7, (n + 6) / 2),
              dtype);
      // Rows of neighbours around the array's, zeros left and right.
      compare(fmt::format("%0: T[{0}, {1}] = input\n"
                          "%1: T[1, {1}] = input\n"
                          "%2: T[1, {1}] = input\n"
                          "%3: T[{2}, {1}] = concat %1, %0, %2 axis=0\n"
                          "%4: T = constant 0\n"
                          "%5: T[{2}, {3}] = pad %3, %4 low=[0, 1] "
                          "high=[0, 1]\n"
                          "%6: T[{0}, {1}] = slice %5 start=[0, 1]\n"
                          "%7: T[{0}, {1}] = slice %5 start=[2, 1]\n"
                          "%8: T[{0}, {1}] = add %6, %7\n"
                          "%9: T[{0}, {1}] = slice %5 start=[1, 0]\n"
                          "%10: T[{0}, {1}] = add %8, %9\n"
                          "%11: T[{0}, {1}] = slice %5 start=[1, 2]\n"
                          "%12: T[{0}, {1}] = mul %10, %11\n"
                          "return %12\n",
                          n == 5000 ? 7 : 9, n, n == 5000 ? 9 : 11, n + 2),
              dtype);
      // Rolled both ways, with a part that is computed here.
      compare(fmt::format("%0: T[6, {0}] = input\n"
                          "%1: T[6, 1] = slice %0 start=[0, {1}]\n"
                          "%2: T[6, {1}] = slice %0 start=[0, 0]\n"
                          "%3: T[6, {0}] = concat %1, %2 axis=1\n"
                          "%4: T[1, {0}] = slice %0 start=[5, 0]\n"
                          "%5: T[1, {0}] = add %4, %4\n"
                          "%6: T[5, {0}] = slice %0 start=[0, 0]\n"
                          "%7: T[6, {0}] = concat %5, %6 axis=0\n"
                          "%8: T[6, {0}] = mul %3, %7\n"
                          "%9: T[6, {0}] = sub %8, %0\n"
                          "return %9\n",
                          n, n - 1),
              dtype);
    }
}

TEST_CASE(
    "stores of devices that meet bypass a cache that is too small for all") {
  const int64_t cache = make_cpu_target()->machine().last_level_cache;
  Graph g;
  const auto x = g.add_input({DType::F32, {cache / 4 / 4}});
  const auto part = g.add(
      Op::slice, {x}, ir::SliceAttrs{{ir::Dim(0)}, {ir::Dim(1)}, {ir::Dim(8)}});
  const auto sum = g.add(Op::all_reduce, {part}, ir::CollectiveAttrs{});
  g.outputs = {g.add(Op::add, {x, x}), sum};
  CpuGenerator generator({});
  on_deep_stacks(1, [&](size_t) {
    const Plan plan = fuse(g, true, generator.lowering());
    for (const int devices : {1, 2, 8}) {
      CodeText text{.wants_assembly = false};
      REQUIRE(generator.generate(plan, devices, {}, &text));
      INFO(devices);
      const bool bypasses = text.llvm.find("!nontemporal") != text.llvm.npos;
      CHECK(bypasses == (devices > 1));
    }
  });
  g.outputs = {g.outputs[0]};  // they do not meet: what is stored may stay
  on_deep_stacks(1, [&](size_t) {
    const Plan plan = fuse(g, true, generator.lowering());
    CodeText text{.wants_assembly = false};
    REQUIRE(generator.generate(plan, 8, {}, &text));
    CHECK(text.llvm.find("!nontemporal") == text.llvm.npos);
  });
}

TEST_CASE("of a long sum on a GPU a thread adds several runs of a column") {
  // Rows, columns, and elements of a column that a thread adds.
  struct Case {
    Shape shape;
    int64_t each;
  };
  for (const Case& c :
       {Case{{1 << 25, 8}, 256}, Case{{1 << 24, 8}, 128},
        Case{{1 << 23, 8}, 64}, Case{{1 << 12, 1 << 10}, 64},
        Case{{1 << 20, 1 << 12}, 1024}, Case{{(1 << 25) + 100, 8}, 256},
        // A short run in the midst is none of a longer one's.
        Case{{1 << 18, 64 * 3, 8}, 64}, Case{{1 << 18, 128 * 3, 8}, 128}}) {
    Graph g;
    const auto x = g.add_input({DType::F32, c.shape});
    std::vector<int> axes;
    for (size_t a = 0; a + 1 < c.shape.size(); ++a)
      axes.push_back(static_cast<int>(a));
    g.outputs = {g.add(Op::sum, {x}, ir::ReduceAttrs{axes})};
    on_deep_stacks(1, [&](size_t) {
      const Plan plan = fuse(g, true, GpuLowering());
      REQUIRE(!plan.steps.empty());
      const auto* kernel = std::get_if<Kernel>(&plan.steps[0].what);
      REQUIRE(kernel != nullptr);
      const Nest& nest = kernel->nests[0];
      int64_t each = 1;
      for (size_t a = 0; a < nest.extents.size(); ++a)
        if (nest.reduced[a]) each *= nest.extents[a];
      CHECK(each == c.each);
    });
  }
}
