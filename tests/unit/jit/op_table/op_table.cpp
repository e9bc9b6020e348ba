#include "tests/unit/jit/op_table/op_table.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <sstream>

#include "jit/pipeline.h"
#include "jit/transform/transforms.h"
#include "tests/unit/jit/arrays.h"
#include "tests/unit/jit/gpu/simulated.h"

namespace unisono::jit::testing {

using ir::Attrs;
using ir::Dim;
using ir::Graph;
using ir::NodeId;
using ir::Op;
using ir::Shape;
using ir::Type;

// ---- comparing -------------------------------------------------------------

std::string Trial::Output::to_string() const {
  return std::string(ir::name(op)) + " of " +
         std::string(unisono::name(dtype)) + ", rank " + std::to_string(rank);
}

OpTable::OpTable(bool with_gpu) {
  for (int vector_bytes : {64, 0, 32, 16})
    benches_.push_back(std::make_unique<Bench>(vector_bytes));
  if (with_gpu) benches_.push_back(std::make_unique<Bench>(simulated_gpus(1)));
}

namespace {

/// What one output is made of; long constants are cut.
std::string print_output(const Graph& graph, size_t output) {
  Graph one = graph;
  one.outputs = {graph.outputs[output]};
  std::string text;
  std::istringstream lines(ir::print(optimise(one)));
  for (std::string line; std::getline(lines, line);)
    text += line.substr(0, 160) + "\n";
  return text;
}

/// UNISONO_TRACE=1 says what runs, to find what crashes.
void trace(const Trial& trial) {
  static const bool wanted = std::getenv("UNISONO_TRACE") != nullptr;
  if (wanted) std::fprintf(stderr, "%s\n", trial.name.c_str());
}

}  // namespace

void OpTable::check_outputs(const Trial& trial, const Arrays& want,
                            const Arrays& have) {
  for (size_t i = 0; i < want.size(); ++i) {
    const Trial::Output& output = trial.outputs[i];
    const bool same = output.exact ? want[i].bytes == have[i].bytes
                                   : same_values(want[i], have[i]);
    if (same) continue;
    if (++failures_ > 30) return;
    FAIL_CHECK(output.to_string(), " (", trial.name,
               "): ", first_difference(want[i], have[i]), "\n",
               print_output(trial.graph, i));
  }
}

void OpTable::met(const Trial& trial) {
  for (const Trial::Output& output : trial.outputs)
    met_.insert({output.op, output.dtype, output.rank});
}

void OpTable::compare(Trial& trial, bool checked) {
  if (trial.outputs.empty()) return;
  const size_t machine = next_++ % benches_.size();
  trial.name += " on machine " + std::to_string(machine);
  trace(trial);
  ReferenceOptions options;
  options.checked = checked;
  auto want = evaluate(trial.graph, trial.inputs, options);
  auto have = benches_[machine]->run(trial.graph, trial.inputs, checked);
  INFO(trial.name);
  if (!want || !have) {
    CHECK_MESSAGE(want, want.error().message);
    CHECK_MESSAGE(have, have.error().message);
    return;
  }
  check_outputs(trial, *want, *have);
  met(trial);
}

void OpTable::compare_members(const Trial& trial,
                              const std::vector<Arrays>& inputs) {
  trace(trial);
  Bench bench(0, static_cast<int>(inputs.size()));
  auto want = evaluate_members(trial.graph, 1, inputs);
  auto have = bench.run_all(trial.graph, inputs);
  INFO(trial.name);
  if (!want || !have) {
    CHECK_MESSAGE(want, want.error().message);
    CHECK_MESSAGE(have, have.error().message);
    return;
  }
  for (size_t d = 0; d < inputs.size(); ++d)
    check_outputs(trial, (*want)[d], (*have)[d]);
  met(trial);
}

void OpTable::check_covered(Op op, DType dtype, int rank) {
  INFO(Trial::Output{op, dtype, rank, true}.to_string());
  CHECK(met_.contains({op, dtype, rank}));
}

void OpTable::check_covered(Op op, int least_rank, int largest_rank) {
  for (DType dtype : all_dtypes) {
    if (!ir::admits(op, dtype)) continue;
    for (int rank = least_rank; rank <= largest_rank; ++rank)
      check_covered(op, dtype, rank);
  }
}

// ---- trials ----------------------------------------------------------------

NodeId Trial::add(Op op, DType dtype, int rank, std::vector<NodeId> inputs,
                  Attrs attrs) {
  const NodeId result = graph.add(op, std::move(inputs), std::move(attrs), 7);
  const ir::Kind kind = ir::kind(op);
  const bool moves = kind == ir::Kind::move || kind == ir::Kind::source ||
                     kind == ir::Kind::control || kind == ir::Kind::sort ||
                     op == Op::select || op == Op::gather || op == Op::scatter;
  output(op, dtype, rank, result, moves);
  return result;
}

void Trial::output(Op op, DType dtype, int rank, NodeId result, bool exact) {
  graph.outputs.push_back(result);
  outputs.push_back({op, dtype, rank, exact});
}

Shape shape_of(int rank, int turn, int64_t most_elements) {
  constexpr int64_t longer[] = {65,   3,   1,    64, 17,   0,  63, 130,
                                4097, 100, 4095, 7,  4096, 33, 1,  5};
  constexpr int64_t shorter[] = {3, 1, 2, 5, 1, 4};
  if (rank == 0) return {};
  Shape shape;
  const int place = turn % rank;
  int64_t rest = most_elements;
  int64_t size = longer[static_cast<size_t>(turn) % std::size(longer)];
  if (size > most_elements) size = std::min<int64_t>(63 + turn % 3, rest);
  if (size > 0) rest /= size;
  for (int i = 0; i < rank; ++i) {
    int64_t other = shorter[static_cast<size_t>(turn + 7 * i) % 6];
    if (other > rest) other = 1;
    if (i != place) rest /= other;
    shape.push_back(i == place ? size : other);
  }
  return shape;
}

}  // namespace unisono::jit::testing
