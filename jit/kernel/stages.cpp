// A large reduction with few results as two kernels: chunks, then the members
// tree over their results. The order of combination is that of one loop.
#include <algorithm>

#include "jit/kernel/group.h"
#include "jit/kernel/schedule.h"
#include "runtime/check.h"
#include "runtime/tuning/tuning.h"

namespace unisono::jit {

bool needs_two_stages(int64_t kept, int64_t reduced, CombineOrder order,
                      const Machine& machine) {
  const auto pays = [&](const Machine::TwoStages& from) {
    return kept < from.kept && reduced >= from.reduced &&
           kept * reduced >= from.elements;
  };
  switch (order) {
    case CombineOrder::lanes: return pays(machine.lanes);
    case CombineOrder::runs: return pays(machine.runs);
    case CombineOrder::members: return pays(machine.members);
    case CombineOrder::chain: return pays(machine.chains);
  }
  __builtin_unreachable();
}

namespace {

struct Chunks {
  size_t axis;         // the innermost reduced axis, which is cut
  int64_t size;        // elements of a chunk
  int64_t full, rest;  // full chunks along it, elements of a last short one
  int64_t count;       // chunks in all
};

/// Runs, a power of 2 of them, so that they are a subtree of the members tree;
/// cut from an axis of that extent, by itself or behind `others`.
int64_t runs_of(const Nest& nest, int64_t extent, bool others,
                const Machine& machine) {
  int64_t size = orders().reduce_run;
  if (machine.enough_runs == 0) return size;
  while (size < tuning().most_runs_a_thread * orders().reduce_run &&
         nest.points() / (2 * size) >= machine.enough_runs &&
         2 * size <= extent && (!others || extent % (2 * size) == 0))
    size *= 2;
  return size;
}

/// Elements that are one leaf of the second stage's members tree.
int64_t leaf_size(const Nest& nest, int64_t extent, bool others,
                  const Machine& machine) {
  switch (nest.reductions[0].order) {
    case CombineOrder::lanes: return orders().reduce_chunk;
    case CombineOrder::chain: return orders().dot_chain;
    case CombineOrder::runs: return runs_of(nest, extent, others, machine);
    case CombineOrder::members: return machine.members_leaf;  // a power of 2
  }
  __builtin_unreachable();
}

/// Of a nest with a reduced axis; nothing where chunks would not be alike.
std::optional<Chunks> chunks_of(const Nest& nest, const Machine& machine) {
  Chunks chunks{};
  int64_t outer = 1;
  int axes = 0;
  for (size_t a = 0; a < nest.extents.size(); ++a) {
    if (!nest.reduced[a]) continue;
    if (axes++) outer *= nest.extents[chunks.axis];
    chunks.axis = a;
  }
  chunks.size = leaf_size(nest, nest.extents[chunks.axis], axes > 1, machine);
  chunks.full = nest.extents[chunks.axis] / chunks.size;
  chunks.rest = nest.extents[chunks.axis] % chunks.size;
  if (axes > 1 && chunks.rest) return std::nullopt;
  chunks.count = outer * chunks.full + (chunks.rest ? 1 : 0);
  return chunks;
}

/// Row-major number of the kept point, or of the chunk.
Affine number_of(const Nest& nest, const std::vector<bool>& axes) {
  Affine result = constant_affine(0, nest.extents.size());
  int64_t stride = 1;
  for (size_t a = nest.extents.size(); a-- > 0;) {
    if (!axes[a]) continue;
    result.factors[a] = stride;
    stride *= nest.extents[a];
  }
  return result;
}

/// Where the result of a chunk is in a buffer for all: chunks of a point side
/// by side; where lanes are points, points of a chunk.
struct Places {
  int64_t of_point = 0, of_chunk = 0;
};
Places places_of(const Nest& nest, const Chunks& chunks) {
  if (nest.reductions[0].order == CombineOrder::runs)
    return {1, nest.kept_points()};
  return {chunks.count, 1};
}

/// Results of reduction r that stage one stores: its value, and for argmax the
/// index too.
struct Partial {
  int reduction;
  bool best;
  DType dtype;
};
std::vector<Partial> partials_of(const Nest& nest) {
  std::vector<Partial> out;
  for (size_t r = 0; r < nest.reductions.size(); ++r) {
    const bool arg = finds_position(nest.reductions[r]);
    out.push_back({static_cast<int>(r), arg, nest.reductions[r].dtype});
    if (arg) out.push_back({static_cast<int>(r), false, DType::I32});
  }
  return out;
}

/// The nest over full chunks, or over the short one; partial p goes to argument
/// first_argument + p.
Nest first_stage(const Nest& nest, const Chunks& chunks, bool short_one,
                 int first_argument) {
  Nest stage = nest;
  std::vector<bool> inner = inner_expressions(nest);
  std::erase_if(stage.stores, [&](const Store& store) {
    return !is_inner_store(nest, inner, store);
  });
  std::vector<bool> kept(nest.extents.size());
  for (size_t a = 0; a < kept.size(); ++a) kept[a] = !nest.reduced[a];
  if (short_one) {
    for_each_affine(stage, [&](Affine& at) {
      at.constant += at.factors[chunks.axis] * chunks.full * chunks.size;
    });
    stage.extents[chunks.axis] = chunks.rest;
  } else {
    AxisSplit wish{chunks.axis, chunks.size};
    for_each_affine(stage, [&](Affine& at) { at = split(at, wish); });
    auto at = static_cast<ptrdiff_t>(chunks.axis);
    stage.extents[chunks.axis] = chunks.full;
    stage.extents.insert(stage.extents.begin() + at + 1, chunks.size);
    kept.insert(kept.begin() + at + 1, false);
    stage.reduced.assign(stage.extents.size(), false);
    stage.reduced[chunks.axis + 1] = true;
  }
  std::vector<bool> chunk_axes(stage.extents.size());
  for (size_t a = 0; a < kept.size(); ++a)
    chunk_axes[a] = !kept[a] && !stage.reduced[a];
  const Places places = places_of(nest, chunks);
  Affine where = scaled(number_of(stage, kept), places.of_point, 0) +
                 scaled(number_of(stage, chunk_axes), places.of_chunk, 0);
  if (short_one) where.constant += (chunks.count - 1) * places.of_chunk;
  for (const Partial& partial : partials_of(nest)) {
    Expr result{.kind = Expr::Kind::reduced, .dtype = partial.dtype};
    result.reduction = partial.reduction;
    result.best = partial.best;
    result.phase = 1;
    result.at = constant_affine(0, stage.extents.size());
    stage.exprs.push_back(result);
    inner.push_back(true);
    stage.stores.push_back(
        {first_argument++, where, static_cast<ExprId>(stage.exprs.size()) - 1});
  }
  prune(stage, inner);
  return stage;
}

Nest second_stage(const Nest& nest, const Chunks& chunks, int first_argument) {
  Nest stage;
  std::vector<bool> kept(nest.extents.size());
  for (size_t a = 0; a < kept.size(); ++a) {
    kept[a] = !nest.reduced[a];
    if (kept[a]) stage.extents.push_back(nest.extents[a]);
  }
  auto project = [&](const Affine& from) {
    Affine out{from.constant, {}};
    for (size_t a = 0; a < kept.size(); ++a)
      if (kept[a]) out.factors.push_back(from.factors[a]);
    out.factors.push_back(0);
    return out;
  };
  const Places places = places_of(nest, chunks);
  Affine where = project(scaled(number_of(nest, kept), places.of_point, 0));
  where.factors.back() = places.of_chunk;
  stage.extents.push_back(chunks.count);
  stage.reduced.assign(stage.extents.size(), false);
  stage.reduced.back() = true;
  for (const Partial& partial : partials_of(nest)) {
    Expr load{.kind = Expr::Kind::load, .dtype = partial.dtype};
    load.argument = first_argument++;
    load.at = where;
    stage.exprs.push_back(load);
    const auto id = static_cast<ExprId>(stage.exprs.size()) - 1;
    if (stage.reductions.size() > static_cast<size_t>(partial.reduction)) {
      stage.reductions.back().second = id;
      continue;
    }
    Reduction reduction = nest.reductions[partial.reduction];
    reduction.order = CombineOrder::members;
    reduction.operand = id;
    if (reduction.kind == Reduction::Kind::dot) {
      reduction.kind = Reduction::Kind::combine;
      reduction.op = ir::Op::add;
      reduction.second = -1;
    }
    stage.reductions.push_back(reduction);
  }
  // What follows: everything that does not change along reduced axes.
  std::vector<bool> inner = inner_expressions(nest);
  std::vector<ExprId> renamed(nest.exprs.size(), -1);
  std::vector<bool> keep(stage.exprs.size(), true);
  for (size_t e = 0; e < nest.exprs.size(); ++e) {
    if (inner[e]) continue;
    Expr expr = nest.exprs[e];
    expr.at = project(expr.at);
    if (expr.member.per_member)
      expr.member.element = project(expr.member.element);
    for (ExprId& operand : expr.operands) operand = renamed[operand];
    renamed[e] = static_cast<ExprId>(stage.exprs.size());
    stage.exprs.push_back(std::move(expr));
    keep.push_back(true);
  }
  for (const Store& store : nest.stores)
    if (!is_inner_store(nest, inner, store))
      stage.stores.push_back(
          {store.argument, project(store.at), renamed[store.value]});
  prune(stage, keep);
  return stage;
}

}  // namespace

std::optional<Kernel> split_stages(
    Kernel& kernel, const Machine& machine,
    const std::function<int32_t(DType, int64_t elements)>& add_buffer) {
  if (kernel.nests.size() != 1) return std::nullopt;
  const Nest nest = kernel.nests[0];
  if (nest.reductions.empty() ||
      !needs_two_stages(nest.kept_points(), nest.points() / nest.kept_points(),
                        nest.reductions[0].order, machine))
    return std::nullopt;
  auto chunks = chunks_of(nest, machine);
  if (!chunks || chunks->count < 2) return std::nullopt;
  CHECK(!goes_again(nest));  // Group::phases_fit
  const int first_argument = static_cast<int>(kernel.arguments.size());
  for (const Partial& partial : partials_of(nest))
    kernel.arguments.push_back(
        {add_buffer(partial.dtype, chunks->count * nest.kept_points()),
         partial.dtype, false});
  Kernel second{.nests = {second_stage(nest, *chunks, first_argument)},
                .arguments = kernel.arguments};
  kernel.nests = {first_stage(nest, *chunks, false, first_argument)};
  if (chunks->rest)
    kernel.nests.push_back(first_stage(nest, *chunks, true, first_argument));
  drop_arguments(kernel);
  drop_arguments(second);
  return second;
}

}  // namespace unisono::jit
