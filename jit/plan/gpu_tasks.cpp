#include "jit/plan/gpu_tasks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "jit/ir/reduce_order.h"
#include "jit/kernel/chain_sums.h"
#include "jit/kernel/work.h"
#include "runtime/kernel_library/kernel_library.h"
#include "runtime/tuning/tuning.h"

namespace unisono::jit {
namespace {

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

template <class Call>
std::shared_ptr<GridLaunch> launch_of(const char* module, std::string entry,
                                      int64_t blocks, const Call& call) {
  GridLaunch launch{.code = kernel_library(module), .entry = std::move(entry)};
  launch.blocks = blocks;
  launch.reports = false;
  launch.constants.resize(sizeof call);
  std::memcpy(launch.constants.data(), &call, sizeof call);
  return std::make_shared<GridLaunch>(std::move(launch));
}

SortCall sort_call(DType dtype, int64_t rows, int64_t length) {
  SortCall call{.rows = rows, .length = length};
  switch (class_of(dtype)) {
    case DTypeClass::boolean:
    case DTypeClass::unsigned_: break;
    case DTypeClass::signed_: call.kind = 1; break;
    case DTypeClass::floating: call.kind = 2; break;
  }
  if (dtype == DType::F16) call.infinity = 0x7c00;
  if (dtype == DType::BF16) call.infinity = 0x7f80;
  if (dtype == DType::F32) call.infinity = 0x7f800000;
  if (dtype == DType::F64) call.infinity = uint64_t{0x7ff} << 52;
  return call;
}

}  // namespace

namespace {

constexpr int radix_bits = 8;

/// Numbers of elements, of a line and of all, that the kernels' counters hold.
constexpr int64_t most_of_line = (int64_t{1} << 32) - (1 << 14);
constexpr int64_t most_for_radix = int64_t{1} << 36;

bool takes_radix(const SortTask& task) {
  return byte_size(task.dtype) <= 4 &&
         task.length >= tuning().gpu_least_radix_line &&
         task.length <= most_of_line &&
         task.rows * task.length <= most_for_radix;
}

/// From the least significant digit on; see radix.h.
std::vector<LaunchStep> radix_steps(const SortTask& task, Plan& plan) {
  SortCall call = sort_call(task.dtype, task.rows, task.length);
  const int64_t size = byte_size(task.dtype);
  const int64_t elements = task.rows * task.length;
  const int passes = static_cast<int>(size) * 8 / radix_bits;
  const int64_t tiles = ceil_div(task.length, radix_tile);
  // Words of counters: tickets and totals, and what the tiles of a pass tell.
  const int64_t totals = radix_tickets + ((task.rows * passes) << radix_bits);
  const int64_t nodes = (task.rows * tiles) << radix_bits;
  const BufferId counters = plan.add_buffer(
      (totals + (passes > 1 ? 2 : 1) * nodes) * int64_t{sizeof(uint32_t)});
  const auto scratch = [&](bool needed, int64_t element_bytes) -> BufferId {
    return needed ? plan.add_buffer(elements * element_bytes) : -1;
  };
  // The last pass writes to `to`, the one before it to `other`.
  const BufferId other = scratch(passes > 1, task.argsort ? 4 : size);
  const BufferId keys[2] = {scratch(task.argsort, size),
                            scratch(task.argsort && passes > 1, size)};
  BufferId here = task.from, here_at = -1;
  std::vector<LaunchStep> steps;
  const auto add = [&](std::string entry, int64_t blocks,
                       std::vector<BufferId> arguments) {
    LaunchStep launch{.name = entry, .arguments = std::move(arguments)};
    launch.grid = launch_of("radix", std::move(entry), blocks, call);
    steps.push_back(std::move(launch));
  };
  call.run = totals + nodes;
  add("radix_clear_32", std::min(ceil_div(call.run, 2048), int64_t{4096}),
      {counters});
  add(fmt::format("radix_totals_{}", 8 * size),
      task.rows * ceil_div(tiles, radix_counted), {here, counters});
  add("radix_starts_32", task.rows * passes, {counters});
  for (int pass = 0; pass < passes; ++pass) {
    call.run = pass * radix_bits;
    const BufferId result = (passes - pass) % 2 ? task.to : other;
    const BufferId next = task.argsort ? keys[pass % 2] : result;
    std::vector<BufferId> arguments = {here};
    if (here_at >= 0) arguments.push_back(here_at);
    arguments.insert(arguments.end(), {counters, next});
    if (task.argsort) arguments.push_back(result);
    const char* move = !task.argsort ? "sort_move"
                       : pass == 0   ? "argsort_first"
                                     : "argsort_move";
    add(fmt::format("{}_{}", move, 8 * size), task.rows * tiles,
        std::move(arguments));
    here = next;
    here_at = task.argsort ? result : -1;
  }
  return steps;
}

}  // namespace

std::vector<LaunchStep> sort_steps(const SortTask& task, Plan& plan) {
  if (takes_radix(task)) return radix_steps(task, plan);
  const bool argsort = task.argsort;
  SortCall call = sort_call(task.dtype, task.rows, task.length);
  const int64_t size = byte_size(task.dtype);
  const int64_t elements = task.rows * task.length;
  int passes = 0;
  for (int64_t run = sort_tile; run < task.length; run *= 2) ++passes;
  const auto scratch = [&](bool needed, int64_t element_bytes) -> BufferId {
    return needed ? plan.add_buffer(elements * element_bytes) : -1;
  };
  const BufferId elements0 = scratch(argsort || passes > 0, size);
  const BufferId elements1 = scratch(argsort && passes > 0, size);
  const BufferId positions = scratch(argsort && passes > 0, sizeof(int32_t));
  // Results go back and forth, and end in `to`.
  BufferId here = passes % 2 ? elements0 : task.to;
  BufferId there = passes % 2 ? task.to : elements0;
  BufferId here_at = passes % 2 ? positions : task.to;
  BufferId there_at = passes % 2 ? task.to : positions;
  if (argsort) here = elements0, there = elements1;
  std::vector<LaunchStep> steps;
  const auto add = [&](const char* step, int64_t blocks,
                       std::vector<BufferId> arguments) {
    std::string entry =
        fmt::format("{}_{}_{}", argsort ? "argsort" : "sort", step, 8 * size);
    LaunchStep launch{.name = entry, .arguments = std::move(arguments)};
    launch.grid = launch_of("sort", std::move(entry), blocks, call);
    steps.push_back(std::move(launch));
  };
  const int64_t tiles = task.rows * ceil_div(task.length, sort_tile);
  if (argsort)
    add("tile", tiles, {task.from, here, here_at});
  else
    add("tile", tiles, {task.from, here});
  for (call.run = sort_tile; call.run < task.length; call.run *= 2) {
    const int64_t blocks = ceil_div(elements, 256);
    if (argsort)
      add("merge", blocks, {here, here_at, there, there_at});
    else
      add("merge", blocks, {here, there});
    std::swap(here, there);
    std::swap(here_at, there_at);
  }
  return steps;
}

namespace {

/// Squares of which side, if there are enough of the larger ones to keep a GPU
/// busy.
constexpr int64_t large_tile = 128, small_tile = 64;

/// Rectangles of large_tile rows (kernel_library/wide.h).
constexpr int64_t wide_tile = 256;

int64_t tiles(const DotShape& s, int64_t high, int64_t wide) {
  return s.batch * ceil_div(s.m, high) * ceil_div(s.n, wide);
}
int64_t tiles(const DotShape& s, int64_t side) { return tiles(s, side, side); }

/// Whether rectangles are enough, and do not compute a quarter more beside the
/// result than squares would.
bool takes_wide(const DotShape& s) {
  return tiles(s, large_tile, wide_tile) >= tuning().gpu_enough_tiles &&
         8 * tiles(s, large_tile, wide_tile) <= 5 * tiles(s, large_tile);
}

/// The library's file for a product, whether it has large squares, whether it
/// computes fma chains, whether it has kernels for aligned operands apart, and
/// the file with rectangles for these; null if there is none.
struct DotModule {
  const char *name = nullptr, *entry = nullptr;
  bool large = true, chains = false, pipelined = true;
  const char* wide = nullptr;
};
DotModule dot_module(DType dtype, ir::Precision precision) {
  const bool exact = precision == ir::Precision::exact;
  switch (dtype) {
    case DType::F32:
      return precision == ir::Precision::tf32
                 ? DotModule{"dot_tf32"}
                 : DotModule{"dot_f32", nullptr, true,
                             true,      true,    "dot_wide_f32"};
    case DType::F64: return {"dot_f64", nullptr, false, true, false};
    case DType::F16:
      return exact ? DotModule{"dot_exact", "dot_exact_f16", false, true, false}
                   : DotModule{.name = "dot_f16", .wide = "dot_wide_f16"};
    case DType::BF16:
      return exact
                 ? DotModule{"dot_exact", "dot_exact_bf16", false, true, false}
                 : DotModule{.name = "dot_bf16", .wide = "dot_wide_bf16"};
    case DType::I8:
    case DType::I16:
    case DType::I32:
    case DType::I64:
    case DType::U8:
    case DType::U16:
    case DType::U32:
    case DType::U64:
    case DType::Bool: break;
  }
  return {};
}

/// Whether an operand lies as pipeline.h wants it: neighbours along one axis,
/// and pieces of 16 bytes; of 32-bit elements along k single ones do.
bool is_aligned(int64_t size, int64_t offset, int64_t batch, int64_t across,
                int64_t along_k) {
  const int64_t piece = 16 / size;
  const bool whole = offset % piece == 0 && batch % piece == 0;
  if (along_k == 1) return size == 4 || (whole && across % piece == 0);
  return across == 1 && whole && along_k % piece == 0;
}

bool is_aligned(const DotShape& s) {
  const int64_t size = byte_size(s.dtype);
  return is_aligned(size, s.a_offset, s.a_batch, s.a_row, s.a_column) &&
         is_aligned(size, s.b_offset, s.b_batch, s.b_column, s.b_row);
}

DotCall call_of(const DotShape& s) {
  return {s.batch, s.m,        s.n,        s.k,       s.a_offset, s.a_batch,
          s.a_row, s.a_column, s.b_offset, s.b_batch, s.b_row,    s.b_column};
}

/// Calls `f(part, c_offset)` for products that together are all chains: one
/// for each, or for all that are whole, as a batch, where there is no other.
template <class F>
void for_each_part(const DotShape& s, int64_t chains, const F& f) {
  if (chains == 1) return f(s, 0);
  for (int64_t chain = 0; chain < chains;) {
    DotShape part = s;
    const int64_t first = chain * orders().dot_chain;
    const int64_t whole = s.k / orders().dot_chain;
    part.k = std::min(s.k - first, orders().dot_chain);
    part.a_offset += first * s.a_column;
    part.b_offset += first * s.b_row;
    const int64_t offset = chain * s.batch * s.m * s.n;
    if (s.batch == 1 && chain < whole) {
      part.batch = whole;
      part.a_batch = orders().dot_chain * s.a_column;
      part.b_batch = orders().dot_chain * s.b_row;
      chain = whole;
    } else {
      ++chain;
    }
    f(part, offset);
  }
}

}  // namespace

PlanSteps product_steps(DotTask dot, ir::Precision precision, Plan& plan) {
  const DotShape& s = dot.shape;
  const DotModule module = dot_module(s.dtype, precision);
  if (!module.name || s.is_view()) return {};
  // Small ones have too few squares, or too little to do in each.
  if (std::min(s.m, s.n) < tuning().gpu_least_tiled_side ||
      s.k < tuning().gpu_least_tiled_depth ||
      s.m * s.n * s.k < tuning().gpu_least_tiled_product)
    return {};
  std::shared_ptr<const MatrixProduct> library;
  if (precision != ir::Precision::exact &&
      std::min({s.m, s.n, s.k}) >= tuning().gpu_least_library_side)
    library = std::make_shared<const MatrixProduct>(MatrixProduct{
        s.dtype, precision == ir::Precision::tf32 && s.dtype == DType::F32,
        call_of(s)});
  const int64_t elements = s.batch * s.m * s.n;
  const int64_t chains = module.chains && !library ? dot_chains(s) : 1;
  // Sums of chains are not rounded to 16 bits before the last.
  if (chains > 1 && s.dtype != DType::F32 && s.dtype != DType::F64) return {};
  const BufferId to = dot.to;
  if (chains > 1)
    dot.to = plan.add_buffer(chains * elements * byte_size(s.dtype));
  PlanSteps steps;
  const auto add = [&](const DotShape& part, int64_t c_offset) {
    const bool aligned = is_aligned(part);
    const bool large =
        module.large && tiles(part, large_tile) >= tuning().gpu_enough_tiles;
    const int64_t side = large ? large_tile : small_tile;
    DotCall call = call_of(part);
    call.c_offset = c_offset;
    auto launch =
        module.wide && aligned && takes_wide(part)
            ? launch_of(module.wide, module.wide,
                        tiles(part, large_tile, wide_tile), call)
            : launch_of(
                  module.name,
                  fmt::format("{}_{}{}",
                              module.entry ? module.entry : module.name,
                              module.pipelined && !aligned ? "any_" : "", side),
                  tiles(part, side), call);
    launch->product = library;
    LaunchStep step{.name = launch->entry, .arguments = {dot.a, dot.b, dot.to}};
    step.grid = std::move(launch);
    const Work work = work_of(part);
    step.flops = work.flops;
    step.bytes = work.bytes;
    steps.push_back({std::move(step)});
  };
  for_each_part(s, chains, add);
  if (chains > 1)
    steps.push_back({sum_chains(dot.to, to, s.dtype, elements, chains)});
  return steps;
}

}  // namespace unisono::jit
