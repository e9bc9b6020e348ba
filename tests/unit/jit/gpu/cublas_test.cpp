// Products that are given to cuBLASLt: which ones, what they give, and what
// happens when the library fails. It is the simulated one.
#include "runtime/cuda/cublas_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <random>

#include "jit/ir/text.h"
#include "runtime/kernel_library/kernel_library.h"
#include "runtime/queue.h"
#include "simcuda/cublaslt/simcublaslt.h"
#include "tests/unit/jit/compiled.h"
#include "tests/unit/jit/gpu/simulated.h"
#include "tests/unit/jit/op_table/op_table.h"

using namespace unisono;
using namespace unisono::jit;
using namespace unisono::jit::testing;
using ir::Graph;
using ir::NodeId;
using ir::Op;
using ir::Precision;
using ir::Shape;

namespace {

/// The simulated library, to be asked and told.
class Simulated {
 public:
  Simulated() : library_(dlopen(SIMCUBLASLT_LIBRARY, RTLD_NOW | RTLD_LOCAL)) {
    if (!library_) FAIL(dlerror());
    fail("");
  }
  ~Simulated() {
    fail("");
    dlclose(library_);
  }
  void fail(const char* what) {
    reinterpret_cast<decltype(&simcublaslt_fail)>(
        dlsym(library_, "simcublaslt_fail"))(what);
  }
  uint64_t count(const char* what) {
    return reinterpret_cast<uint64_t (*)()>(dlsym(library_, what))();
  }
  /// Products since the last call of it.
  uint64_t products() {
    const uint64_t before = std::exchange(seen_, count("simcublaslt_products"));
    return seen_ - before;
  }

 private:
  void* library_;
  uint64_t seen_ = 0;
};

std::vector<std::unique_ptr<Device>> gpus(int count, bool cublas) {
  CudaOptions options;
  options.driver = SIMCUDA_LIBRARY;
  options.kind = "sim";
  options.configuration = "devices=" + std::to_string(count);
  options.cublas = cublas;
  options.cublas_library = SIMCUBLASLT_LIBRARY;
  auto devices = open_cuda_devices(options);
  if (!devices) FAIL(devices.error().message);
  return std::move(*devices);
}

struct Sizes {
  int64_t batch = 1, m = 512, k = 512, n = 512;
};

/// c[b, i, j], of b transposed and of rows of a that lie apart if asked for.
Graph product(DType dtype, const Sizes& s, Precision precision,
              bool turned = false, bool cut = false) {
  Graph g;
  const int64_t border = cut ? 8 : 0;
  NodeId a = g.add_input({dtype, Shape{s.batch, s.m, s.k + border}});
  const NodeId b = g.add_input(
      {dtype, turned ? Shape{s.batch, s.n, s.k} : Shape{s.batch, s.k, s.n}});
  if (cut)
    a = g.add(Op::slice, {a},
              ir::SliceAttrs{{0, 0, 8}, {1, 1, 1}, {s.batch, s.m, s.k}});
  g.outputs = {g.add(Op::dot, {a, b},
                     ir::DotAttrs{{0}, {0}, {2}, {turned ? 2 : 1}, precision})};
  return g;
}

/// Small integers, whose sums are exact in any order.
Arrays operands(const Graph& g) {
  std::mt19937 random(5);
  Arrays out;
  for (NodeId input : g.inputs)
    out.push_back(filled(g.type(input), Fill::coarse, random));
  for (HostArray& x : out) {
    std::vector<double> values = values_of(x);
    for (double& value : values) value = static_cast<int>(random() % 5) - 2;
    x = array(x.type.dtype, x.type.sizes(), values);
  }
  return out;
}

}  // namespace

TEST_CASE("large products are the library's") {
  Simulated library;
  Bench bench(gpus(1, true));
  library.products();
  for (DType dtype : {DType::F32, DType::F64, DType::F16, DType::BF16}) {
    const Graph g = product(dtype, {}, Precision::usual);
    CHECK(difference(bench, g, operands(g)) == "");
    CHECK(library.products() == 1);
  }
  const Graph tf32 = product(DType::F32, {}, Precision::tf32);
  CHECK(difference(bench, tf32, operands(tf32)) == "");
  CHECK(library.products() == 1);
  CHECK(library.count("simcublaslt_tf32_products") == 1);
  // Layouts.
  for (bool turned : {false, true})
    for (bool cut : {false, true}) {
      const Graph g = product(DType::F32, {2, 520, 513, 512}, Precision::usual,
                              turned, cut);
      CHECK(difference(bench, g, operands(g)) == "");
      CHECK(library.products() == 1);
    }
}

TEST_CASE("other products are not the library's") {
  Simulated library;
  Bench bench(gpus(1, true));
  library.products();
  for (const Sizes& sizes : {Sizes{1, 511, 512, 512}, Sizes{1, 512, 100, 512},
                             Sizes{2, 512, 512, 256}}) {
    const Graph g = product(DType::F32, sizes, Precision::usual);
    CHECK(difference(bench, g, operands(g)) == "");
  }
  const Graph exact = product(DType::F32, {}, Precision::exact);
  CHECK(difference(bench, exact, operands(exact)) == "");
  CHECK(library.products() == 0);
  Bench without(gpus(1, false));
  const Graph g = product(DType::F32, {}, Precision::usual);
  CHECK(difference(without, g, operands(g)) == "");
  CHECK(library.products() == 0);
}

TEST_CASE("the library on several devices") {
  Simulated library;
  Bench bench(gpus(2, true));
  library.products();
  const Graph g = product(DType::F32, {}, Precision::usual);
  const Arrays inputs = operands(g);
  auto got = bench.run_all(g, {inputs, inputs});
  if (!got) FAIL(got.error().message);
  CHECK(library.products() == 2);
  const Arrays want = outputs_of(g, inputs);
  for (const Arrays& own : *got) CHECK(same_values(own[0], want[0]));
}

TEST_CASE("when the library fails our kernels do the work") {
  Simulated library;
  for (const char* what : {"create", "heuristic", "matmul"}) {
    INFO(what);
    library.fail(what);
    Bench bench(gpus(1, true));
    library.products();
    const Graph g = product(DType::F32, {}, Precision::usual);
    for (int again = 0; again < 2; ++again)
      CHECK(difference(bench, g, operands(g)) == "");
    CHECK(library.products() == 0);
  }
}

TEST_CASE("the library's products are captured") {
  Simulated library;
  constexpr int64_t n = 64;
  const DotCall sizes{.m = n, .n = n, .k = n, .a_row = n, .b_row = n};
  GridLaunch launch{.code = kernel_library("dot_f32"),
                    .entry = "dot_f32_64",
                    .reports = false};
  launch.constants.resize(sizeof sizes);
  std::memcpy(launch.constants.data(), &sizes, sizeof sizes);
  launch.product = std::make_shared<const MatrixProduct>(
      MatrixProduct{DType::F32, false, sizes});
  for (const char* failing : {"", "matmul"}) {
    INFO(failing);
    auto devices = gpus(2, true);
    library.fail(failing);
    library.products();
    // c is a b, then a c: a adds the next row to each.
    std::vector<float> ones(n * n, 1), next(n * n, 0);
    for (int64_t i = 0; i < n; ++i)
      next[i * n + i] = next[i * n + (i + 1) % n] = 1;
    std::vector<Buffer> buffers[2];
    std::vector<std::unique_ptr<Queue>> capturing;
    for (int d = 0; d < 2; ++d) {
      for (const auto* values : {&next, &ones, &ones}) {
        auto buffer = devices[d]->allocate(4 * n * n);
        REQUIRE(buffer);
        REQUIRE(devices[d]->queue()->write(buffer->data(), values->data(),
                                           4 * n * n));
        buffers[d].push_back(std::move(*buffer));
      }
      REQUIRE(devices[d]->queue()->prepare(launch));
      auto queue = devices[d]->queue()->capturing();
      REQUIRE(queue);
      capturing.push_back(std::move(*queue));
    }
    const uint64_t allocated = simulated_calls("mem_alloc_from_pool_async") +
                               simulated_calls("mem_alloc");
    Queue &first = *capturing[0], &second = *capturing[1];
    REQUIRE(first.begin_capture());
    REQUIRE(first.mark());
    REQUIRE(second.wait_for(first));
    for (int d = 0; d < 2; ++d)
      for (const auto& [from, to] : {std::pair{1, 2}, std::pair{2, 1}}) {
        void* const arguments[] = {buffers[d][0].data(),
                                   buffers[d][from].data(),
                                   buffers[d][to].data()};
        CHECK(capturing[d]->launch(launch, {.arguments = arguments}));
      }
    REQUIRE(second.mark());
    REQUIRE(first.wait_for(second));
    auto work = first.end_capture();
    REQUIRE(work);
    CHECK(simulated_calls("mem_alloc_from_pool_async") +
              simulated_calls("mem_alloc") ==
          allocated);
    for (int i = 0; i < 3; ++i) REQUIRE(devices[0]->queue()->replay(**work));
    CHECK(library.products() == (*failing ? 0 : 4));
    REQUIRE(devices[0]->queue()->mark());
    REQUIRE(devices[1]->queue()->wait_for(*devices[0]->queue()));
    for (int d = 0; d < 2; ++d) {
      std::vector<float> got(n * n);
      const Queue::Read read{got.data(), buffers[d][1].data(), 4 * n * n};
      REQUIRE(devices[d]->queue()->read({&read, 1}));
      CHECK(got == std::vector<float>(n * n, 64));
    }
    work->reset();
    CHECK(simulated_findings() == "");
  }
}

TEST_CASE("a counted loop with a product of the library is captured") {
  Simulated library;
  Bench bench(gpus(1, true));
  library.products();
  std::string sorts;
  for (int i = 0; i < 8; ++i)
    sorts += fmt::format(
        "    %{0}: f32[64] = sub %{2}, %{1}\n"
        "    %{3}: f32[64] = sort %{0}\n",
        6 + 2 * i, i == 0 ? 2 : 5 + 2 * i, 5, 7 + 2 * i);
  auto graph = ir::parse(R"(%0: f32[512, 512] = input
%1: f32[512, 512] = input
%2: f32[64] = input
%3: i32 = constant 0
%4: i32 = loop %3, %1, %2, %0 carries=3 condition={
  %0: i32 = input
  %1: f32[512, 512] = input
  %2: f32[64] = input
  %3: f32[512, 512] = input
  %4: i32 = constant 2
  %5: bool = lt %0, %4
  return %5
} body={
  %0: i32 = input
  %1: f32[512, 512] = input
  %2: f32[64] = input
  %3: f32[512, 512] = input
  %4: i32 = constant 0
  %5: i32 = loop %4, %1, %2, %3 carries=3 condition={
    %0: i32 = input
    %1: f32[512, 512] = input
    %2: f32[64] = input
    %3: f32[512, 512] = input
    %4: i32 = constant 17
    %5: bool = lt %0, %4
    return %5
  } body={
    %0: i32 = input
    %1: f32[512, 512] = input
    %2: f32[64] = input
    %3: f32[512, 512] = input
    %4: f32[512, 512] = dot %3, %1 batch_a=[] batch_b=[] contract_a=[1] contract_b=[0] precision=usual
    %5: f32[64] = constant 0.5
)" + sorts + R"(    %22: i32 = constant 1
    %23: i32 = add %0, %22
    return %23, %4, %21
  }
  %6: f32[512, 512] = project %5 index=1
  %7: f32[64] = project %5 index=2
  %8: i32 = constant 1
  %9: i32 = add %0, %8
  return %9, %6, %7
}
%5: f32[512, 512] = project %4 index=1
%6: f32[64] = project %4 index=2
return %5, %6
)");
  if (!graph) FAIL(graph.error().message);
  Arrays inputs = operands(*graph);
  // A product by this one turns rows around, exactly.
  std::vector<double> turn(512 * 512, 0);
  for (int i = 0; i < 512; ++i) turn[i * 512 + (i + 5) % 512] = i % 2 ? 1 : -1;
  inputs[0] = array(DType::F32, {512, 512}, turn);
  CHECK(difference(bench, *graph, inputs) == "");
  CHECK(simulated_calls("graph_launch") > 0);
  // Fewer than turns: those that were captured are done again and again.
  const uint64_t products = library.products();
  CHECK(products >= 18);
  CHECK(products < 34);
  CHECK(simulated_findings() == "");
}

TEST_CASE("why there is no cuBLASLt is said in one line") {
  auto why = [](const std::string& path) {
    auto library = cublas::Library::open(path, 13000);
    if (library) return std::string("nothing");
    CHECK(library.error().message.find('\n') == std::string::npos);
    return library.error().message;
  };
  CHECK(why("/nowhere/libcublasLt.so").find("there is no cuBLASLt") == 0);
  CHECK(why("libm.so.6").find("is no cuBLASLt") != std::string::npos);
  CHECK(why(SIMCUBLASLT_LIBRARY) == "nothing");
}
