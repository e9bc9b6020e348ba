// What LLVM's code generator does badly (it ends the process, gives garbage,
// other values on other processors, or takes for ever), and what answers it.
#include <doctest/doctest.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bit>
#include <cmath>
#include <cstdio>
#include <functional>
#include <regex>
#include <sstream>

#include "jit/scalar/element.h"
#include "jit/target/target.h"
#include "tests/unit/jit/op_table/op_table.h"

using namespace unisono;
using namespace unisono::jit;
using namespace unisono::jit::testing;
using ir::Graph;
using ir::NodeId;
using ir::Op;
using ir::Shape;
using ir::Type;

namespace {

/// The LLVM text of a compilation.
std::string llvm_of(const Graph& graph, int vector_bytes, bool checked = true) {
  Compiler compiler({.vector_bytes = vector_bytes});
  std::string text;
  CompileObserver observer;
  observer.dump = [&](const CodeText& dump) { text = dump.llvm; };
  compiler.observe(std::move(observer));
  CompileOptions options;
  options.checked = checked;
  auto program = compiler.compile(graph, options);
  REQUIRE(program);
  return text;
}

/// All operations that are code for elements of the type, on f32[200] and the
/// like.
Graph everything(DType dtype) {
  Trial trial(1);
  const Type type{dtype, {4, 50}};
  const auto x = trial.operands({{type},
                                 {type},
                                 {type},
                                 {{DType::Bool, type.shape}},
                                 {{DType::I32, {50}}},
                                 {{dtype, {50, 4}}}});
  for (Op op : all_ops) {
    if (!ir::admits(op, dtype)) continue;
    switch (ir::kind(op)) {
      case ir::Kind::map: {
        if (op == Op::select) {
          trial.add(op, dtype, 2, {x[3], x[0], x[1]});
        } else if (op == Op::fma) {
          trial.add(op, dtype, 2, {x[0], x[1], x[2]});
        } else if (op == Op::cast) {
          for (DType to : all_dtypes)
            trial.add(op, dtype, 2, {x[0]}, ir::CastAttrs{to});
        } else {
          const Type both[] = {type, type};
          const bool one = static_cast<bool>(
              ir::infer_type(op, std::span(both, 1), ir::NoAttrs{}));
          trial.add(op, dtype, 2,
                    one ? std::vector{x[0]} : std::vector{x[0], x[1]});
        }
        break;
      }
      case ir::Kind::reduce:
      case ir::Kind::argreduce:
        for (int axis : {0, 1})
          trial.add(op, dtype, 2, {x[0]}, ir::ReduceAttrs{{axis}});
        break;
      case ir::Kind::scan:
        for (int axis : {0, 1})
          trial.add(op, dtype, 2, {x[0]}, ir::ScanAttrs{axis});
        break;
      case ir::Kind::dot:
        trial.add(op, dtype, 2, {x[0], x[1]}, ir::DotAttrs{{}, {}, {1}, {1}});
        break;
      case ir::Kind::index:
        if (op == Op::gather)
          trial.add(op, dtype, 2, {x[0], x[4]}, ir::IndexAttrs{{1}});
        else
          trial.add(op, dtype, 2, {x[0], x[5], x[4]}, ir::IndexAttrs{{1}});
        break;
      case ir::Kind::sort:  // no generated code
      case ir::Kind::move:  // no code of their own
      case ir::Kind::source:
      case ir::Kind::control:
      case ir::Kind::collective:
      case ir::Kind::host: break;
    }
  }
  return trial.graph;
}

}  // namespace

TEST_CASE("hazards: code calls and rounds nothing but what it says") {
  // Anything else may become a call of a library that is not there, garbage on
  // another target, or other bits. `unisono.at` is a rare function of ours.
  const std::regex known(
      "llvm\\.(ceil|floor|trunc|roundeven|sqrt|fma|fabs|copysign)\\..*|"
      "llvm\\.(masked\\.(load|store|gather|scatter)|vector\\.reduce\\.or)\\..*|"
      "llvm\\.(cttz|smin|smax|memcpy|memset|prefetch)\\..*|"
      "llvm\\.x86\\.(avx512\\.mask\\.(getexp|getmant|scalef)\\..*|sse\\."
      "sfence|avx2\\.permps|avx512\\.permvar\\.sf\\.512)|"
      "llvm\\.aarch64\\.neon\\.tbl2\\..*|unisono\\.at\\.[0-9]+");
  const std::regex declared("declare [^@]*@\"?([^(\"]*)");
  const std::regex inexact(
      "= (frem|f[a-z]+ (fast|reassoc|nnan|ninf|nsz|arcp|contract|afn)) ");
  int width = 0;
  for (DType dtype : all_dtypes) {
    constexpr int widths[] = {0, 32, 16};
    std::istringstream text(
        llvm_of(everything(dtype), widths[width++ % 3], dtype != DType::I8));
    INFO(name(dtype));
    int functions = 0;
    for (std::string line; std::getline(text, line);) {
      std::smatch found;
      if (line.starts_with("define")) ++functions;
      if (line.starts_with("declare")) {
        REQUIRE(std::regex_search(line, found, declared));
        CHECK_MESSAGE(std::regex_match(found[1].str(), known), line);
      }
      if (std::regex_search(line, inexact)) FAIL_CHECK(line);
    }
    CHECK(functions > 0);
  }
}

namespace {

/// A function `f` that `build` fills, in a module for this machine.
Result<std::shared_ptr<LoadedCode>> load(
    const std::function<void(llvm::IRBuilder<>&)>& build) {
  auto target = make_cpu_target();
  llvm::LLVMContext context;
  llvm::Module module("hazard", context);
  target->prepare(module);
  llvm::IRBuilder<> b(context);
  auto* type =
      llvm::FunctionType::get(b.getDoubleTy(), {b.getDoubleTy()}, false);
  auto* function = llvm::Function::Create(type, llvm::Function::ExternalLinkage,
                                          "f", module);
  b.SetInsertPoint(llvm::BasicBlock::Create(context, "entry", function));
  build(b);
  auto object = TRY(target->object(module));
  return target->load(object, {"f"});
}

using OneDouble = double (*)(double);

__attribute__((no_sanitize("function"))) double call(const LoadedCode& code,
                                                     double x) {
  return reinterpret_cast<OneDouble>(code.symbol("f"))(x);
}

llvm::Value* argument(llvm::IRBuilder<>& b) {
  return b.GetInsertBlock()->getParent()->getArg(0);
}

}  // namespace

TEST_CASE("hazards: what LLVM rejects is an error, and the process goes on") {
  auto good = load([](llvm::IRBuilder<>& b) {
    b.CreateRet(b.CreateFAdd(argument(b), argument(b)));
  });
  REQUIRE(good);
  CHECK(call(**good, 3) == 6);
  // An error diagnostic: with no handler LLVM calls exit(1).
  auto diagnosed = load([](llvm::IRBuilder<>& b) {
    auto* function = b.GetInsertBlock()->getParent();
    function->addFnAttr("target-features", "-sse,-sse2,-avx,-avx512f");
    b.CreateRet(argument(b));  // in a register that is not there
  });
  REQUIRE(!diagnosed);
  CHECK(diagnosed.error().kind == Error::Kind::compile_failed);
  CHECK(diagnosed.error().message != "");
  // A function of libm that the processor has no instruction for.
  auto unknown = load([](llvm::IRBuilder<>& b) {
    b.CreateRet(b.CreateUnaryIntrinsic(llvm::Intrinsic::sin, argument(b)));
  });
  REQUIRE(!unknown);
  CHECK(unknown.error().message.find("sin") != std::string::npos);
  // What the verifier sees never reaches the code generator.
  auto wrong = load([](llvm::IRBuilder<>&) {});
  REQUIRE(!wrong);
  CHECK(wrong.error().kind == Error::Kind::compile_failed);
  CHECK(call(**good, 4) == 8);
}

#if defined(__has_feature)
#if __has_feature(address_sanitizer)

namespace {

/// What a process of its own says that reads the element at `at` of 12 in a
/// block of a device's heap, in generated code.
int status_of_reading(int at) {
  const pid_t child = fork();
  if (child == 0) {
    std::fclose(stderr);
    auto code = load([at](llvm::IRBuilder<>& b) {
      llvm::Value* bits = b.CreateBitCast(argument(b), b.getInt64Ty());
      llvm::Value* base = b.CreateIntToPtr(bits, b.getPtrTy());
      b.CreateRet(b.CreateLoad(
          b.getDoubleTy(), b.CreateConstGEP1_64(b.getDoubleTy(), base,
                                                static_cast<uint64_t>(at))));
    });
    Runtime runtime(1);
    auto block = runtime.devices()[0]->allocate(12 * sizeof(double));
    std::memset(block->data(), 0, 12 * sizeof(double));
    _exit(call(**code, std::bit_cast<double>(block->data())) == 0 ? 0 : 2);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

}  // namespace

TEST_CASE("hazards: generated code is watched like all other code") {
  CHECK(status_of_reading(0) == 0);
  CHECK(status_of_reading(11) == 0);
  CHECK(status_of_reading(12) != 0);  // its block is of 128 bytes
}

#endif
#endif

TEST_CASE("hazards: multiplication and addition are not contracted") {
  Bench bench;
  Graph g;
  const Type type{DType::F32, {37}};
  const NodeId x = g.add_input(type), y = g.add_input(type),
               z = g.add_input(type);
  const NodeId product = g.add(Op::mul, {x, y});
  g.outputs = {g.add(Op::add, {product, z}), g.add(Op::sub, {product, z}),
               g.add(Op::fma, {x, y, z})};
  const auto all = [](double v) {
    return array(DType::F32, {37}, std::vector<double>(37, v));
  };
  // 0.1f * 10 is 1 rounded, and 1 + 2^-26 exactly.
  auto out = bench.run(g, {all(0.1F), all(10), all(-1)});
  REQUIRE(out);
  for (int i = 0; i < 37; ++i) {
    CHECK(values_of((*out)[0])[i] == 0);
    CHECK(values_of((*out)[1])[i] == 2);
    CHECK(values_of((*out)[2])[i] == 0x1p-26);
  }
}

namespace {

/// op(x, y) of `count` equal elements of integers.
Result<std::vector<double>> repeated(Bench& bench, Op op, DType dtype,
                                     int64_t count, int64_t x, int64_t y,
                                     bool checked) {
  Graph g;
  const Type type{dtype, {count}};
  const NodeId a = g.add_input(type), b = g.add_input(type);
  g.outputs = {g.add(op, {a, b})};
  Arrays inputs;
  for (int64_t v : {x, y}) {
    HostArray& input = inputs.emplace_back(HostArray{type, {}});
    for (int64_t i = 0; i < count; ++i)
      for (uint8_t byte : jit::element_bytes(dtype, v))
        input.bytes.push_back(byte);
  }
  auto out = bench.run(g, inputs, checked);
  if (!out) return out.error();
  return values_of((*out)[0]);
}

}  // namespace

TEST_CASE("hazards: integer division traps nowhere") {
  Bench bench;
  for (DType dtype : all_dtypes) {
    if (!is_integer(dtype)) continue;
    const int width = static_cast<int>(byte_size(dtype)) * 8;
    const int64_t least = is_signed(dtype) ? INT64_MIN >> (64 - width) : 0;
    for (Op op : {Op::floor_div, Op::mod})
      // One by one, in whole vectors, with a tail.
      for (int64_t count : {1, 64, 67}) {
        INFO(ir::name(op), " of ", count, " ", name(dtype));
        auto checked = repeated(bench, op, dtype, count, 7, 0, true);
        REQUIRE(!checked);
        CHECK(checked.error().kind == Error::Kind::integer_division);
        auto unchecked = repeated(bench, op, dtype, count, 7, 0, false);
        REQUIRE(unchecked);
        for (double v : *unchecked) CHECK(v == 0);
        if (!is_signed(dtype)) continue;
        for (bool check : {true, false}) {
          auto least_by = repeated(bench, op, dtype, count, least, -1, check);
          REQUIRE(least_by);
          for (double v : *least_by)
            CHECK(v == (op == Op::mod ? 0 : static_cast<double>(least)));
        }
      }
  }
}

TEST_CASE("hazards: shifts by the width or more, and by less than nothing") {
  Bench bench;
  for (DType dtype : all_dtypes) {
    if (!is_integer(dtype)) continue;
    const int64_t width = byte_size(dtype) * 8;
    for (int64_t by : {width, width + 1, int64_t{120}, int64_t{-1}}) {
      INFO(name(dtype), " by ", by);
      auto left = repeated(bench, Op::shift_left, dtype, 67, 5, by, true);
      auto right = repeated(bench, Op::shift_right, dtype, 67, -5, by, true);
      REQUIRE(left);
      REQUIRE(right);
      for (double v : *left) CHECK(v == 0);
      for (double v : *right) CHECK(v == (is_signed(dtype) ? -1 : 0));
    }
  }
}

TEST_CASE("hazards: floats that no integer holds") {
  Bench bench;
  const std::vector<double> values = {1e30, -1e30, INFINITY, -INFINITY, NAN};
  for (DType from : {DType::F32, DType::F64, DType::BF16})
    for (DType to : all_dtypes) {
      if (!is_integer(to)) continue;
      Graph g;
      const NodeId x = g.add_input({from, {5}});
      g.outputs = {g.add(Op::cast, {x}, ir::CastAttrs{to})};
      auto out = bench.run(g, {array(from, {5}, values)});
      REQUIRE(out);
      const int width = static_cast<int>(byte_size(to)) * 8;
      const bool has_sign = is_signed(to);
      const double most = std::ldexp(1, width - has_sign) - (width < 64);
      const double least = has_sign ? -std::ldexp(1, width - 1) : 0;
      INFO(name(from), " to ", name(to));
      CHECK(values_of((*out)[0]) ==
            std::vector<double>{most, least, most, least, 0});
    }
}

namespace {

/// A chain of operations that all become one value.
Graph chain(int length) {
  Graph g;
  NodeId x = g.add_input({DType::F32, {100}});
  const NodeId first = x;
  for (int i = 0; i < length; ++i)
    x = g.add(i % 2 ? Op::mul : Op::add, {x, first});
  g.outputs = {x};
  return g;
}

}  // namespace

TEST_CASE("hazards: long programs are cut, and compile on little stack") {
  const Graph graph = chain(20000);
  std::istringstream text(llvm_of(chain(5000), 0));
  int lines = 0, longest = 0;
  for (std::string line; std::getline(text, line);) {
    lines = line.starts_with("define") ? 0 : lines + 1;
    longest = std::max(longest, lines);
  }
  // Code generation takes time in the square of a function's length.
  CHECK(longest < 3000);

  struct Work {
    const Graph& graph;
    bool done, for_gpus;
  } work{graph, false, false};
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, size_t{256} << 10);
  pthread_t thread;
  const auto run = [](void* argument) -> void* {
    auto& work = *static_cast<Work*>(argument);
    Compiler compiler;
    work.done = static_cast<bool>(compiler.compile(work.graph, {}));
    // Code generation for NVPTX recurses along chains.
    CompileOptions options;
    options.target = {DeviceKind::gpu, {90}};
    work.for_gpus = static_cast<bool>(compiler.compile(chain(10000), options));
    return nullptr;
  };
  REQUIRE(pthread_create(&thread, &attributes, run, &work) == 0);
  pthread_attr_destroy(&attributes);
  pthread_join(thread, nullptr);
  CHECK(work.done);
  CHECK(work.for_gpus);
}
