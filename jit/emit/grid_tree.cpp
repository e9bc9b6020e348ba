// The members tree over many leaves, done by a block. Blocks of 2^n leaves that
// start at a multiple of their size are subtrees of it, whatever follows them;
// so leaves are combined tile by tile, and the tiles' results are the leaves of
// the next level.
#include <algorithm>
#include <bit>

#include "jit/emit/grid_nest.h"
#include "runtime/check.h"

namespace unisono::jit {

using llvm::Value;

std::vector<llvm::Type*> GridEmitter::part_types(const Loop& loop) {
  EmitContext c = context(0);
  std::vector<llvm::Type*> types;
  for (int r : loop.reductions) {
    const Reduction& reduction = nest_.reductions[r];
    types.push_back(register_type(c, reduction.dtype));
    if (reduction.second >= 0)
      types.push_back(register_type(c, nest_.exprs[reduction.second].dtype));
  }
  return types;
}

NestEmitter::Accumulators GridEmitter::block_tree(const Loop& loop,
                                                  int64_t count,
                                                  const Leaves& leaves) {
  Tree tree{loop, part_types(loop), leaves};
  while (tree.tile > warp_threads && tree.tile / 2 >= count) tree.tile /= 2;
  // 8 bytes are the most that an element takes; 16 are lost to alignment.
  auto bytes = [&](int64_t tile) {
    int64_t levels = 1;
    for (int64_t n = tile; n < count; n *= tile) ++levels;
    return static_cast<int64_t>(tree.types.size()) *
           (levels * (8 * tile + 16) + 8 * block_warps + 16);
  };
  while (tree.tile > warp_threads &&
         row_bytes_ + bytes(tree.tile) > grid_shared_bytes)
    tree.tile /= 2;
  int64_t used = row_bytes_;
  auto places = [&](int64_t size) {
    std::vector<Value*> out;
    for (llvm::Type* type : tree.types)
      out.push_back(shared_array(type, size, used));
    return out;
  };
  tree.levels.push_back(places(tree.tile));
  for (int64_t n = tree.tile; n < count; n *= tree.tile)
    tree.levels.push_back(places(tree.tile));
  if (count <= warp_threads) return unflatten(loop, warp_tree(tree, count));
  tree.warps = places(block_warps);
  return unflatten(loop, tree_level(tree, tree.levels.size() - 1,
                                    index_constant(0), index_constant(count)));
}

/// The tree over so few leaves that each warp does it for itself.
std::vector<Value*> GridEmitter::warp_tree(Tree& tree, int64_t count) {
  const auto& places = tree.levels[0];
  synchronise();  // nobody reads what was there before
  tree.leaves(index_constant(0), index_constant(count), places);
  synchronise();
  // Reading beyond `count` is harmless: what is read is not combined.
  std::vector<Value*> parts;
  for (size_t i = 0; i < places.size(); ++i)
    parts.push_back(get_shared(places[i], tree.types[i], wide(grid_.lane)));
  const auto most =
      static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(count)));
  parts = count == most
              ? whole_tree_steps(tree.loop, parts, most)
              : tree_steps(tree.loop, parts, grid_.lane, i32(count), most);
  return shuffle_all(Shuffle::index, parts, 0);
}

/// The tree over leaves start ... start + present - 1, at most tile^(level+1)
/// of them; all threads get the result.
std::vector<Value*> GridEmitter::tree_level(Tree& tree, size_t level,
                                            Value* start, Value* present) {
  const auto& places = tree.levels[level];
  if (level == 0) {
    synchronise();  // nobody reads what was there before
    tree.leaves(start, present, places);
    synchronise();
    return tree_tile(tree, places, present);
  }
  int64_t below = tree.tile;
  for (size_t i = 1; i < level; ++i) below *= tree.tile;
  Value* size = index_constant(below);
  Value* tiles =
      b_.CreateUDiv(b_.CreateAdd(present, index_constant(below - 1)), size);
  this->loop(index_constant(0), tiles, 1, [&](Value* number) {
    Value* done = b_.CreateMul(number, size);
    std::vector<Value*> result =
        tree_level(tree, level - 1, b_.CreateAdd(start, done),
                   b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, size,
                                            b_.CreateSub(present, done)));
    when(is_leader(), [&] {
      for (size_t i = 0; i < result.size(); ++i)
        put_shared(places[i], number, result[i]);
    });
  });
  synchronise();
  return tree_tile(tree, places, tiles);
}

/// The tree over the first `present` elements of the arrays.
std::vector<Value*> GridEmitter::tree_tile(Tree& tree,
                                           const std::vector<Value*>& arrays,
                                           Value* present) {
  // Reading beyond `present` is harmless: what is read is not combined.
  Value* own = b_.CreateBinaryIntrinsic(
      llvm::Intrinsic::umin, wide(grid_.thread), index_constant(tree.tile - 1));
  auto read = [&](const std::vector<Value*>& from, Value* index) {
    std::vector<Value*> out;
    for (size_t i = 0; i < from.size(); ++i)
      out.push_back(get_shared(from[i], tree.types[i], index));
    return out;
  };
  auto* number = llvm::dyn_cast<llvm::ConstantInt>(present);
  const bool is_whole = number && number->equalsInt(tree.tile);
  std::vector<Value*> parts = read(arrays, own);
  parts = is_whole ? whole_tree_steps(tree.loop, parts, warp_threads)
                   : tree_steps(tree.loop, parts, grid_.thread, narrow(present),
                                warp_threads);
  when(b_.CreateICmpEQ(grid_.lane, i32(0)), [&] {
    for (size_t i = 0; i < parts.size(); ++i)
      put_shared(tree.warps[i], wide(grid_.warp), parts[i]);
  });
  synchronise();
  // Every warp does the rest, so that all have the result.
  Value* warp = b_.CreateAnd(grid_.lane, i32(block_warps - 1));
  Value* warps = b_.CreateUDiv(
      b_.CreateAdd(narrow(present), i32(warp_threads - 1)), i32(warp_threads));
  parts = read(tree.warps, wide(warp));
  parts = is_whole
              ? whole_tree_steps(tree.loop, parts, tree.tile / warp_threads)
              : tree_steps(tree.loop, parts, grid_.lane, warps, block_warps);
  parts = shuffle_all(Shuffle::index, parts, 0);
  synchronise();  // before the arrays are written again
  return parts;
}

/// The same where none is absent. What a thread has that is no left neighbour
/// does not matter, so that all do the same and nothing is chosen.
std::vector<Value*> GridEmitter::whole_tree_steps(const Loop& loop,
                                                  std::vector<Value*> parts,
                                                  int64_t most) {
  for (int64_t step = 1; step < most; step *= 2)
    parts = flatten(
        combined(loop, parts, shuffle_all(Shuffle::down, parts, step), false));
  return parts;
}

/// Neighbours of a warp combine: `number` is the element that a thread has.
std::vector<Value*> GridEmitter::tree_steps(const Loop& loop,
                                            std::vector<Value*> parts,
                                            Value* number, Value* present,
                                            int64_t most) {
  for (int64_t step = 1; step < most; step *= 2) {
    std::vector<Value*> other = shuffle_all(Shuffle::down, parts, step);
    Value* is_left =
        b_.CreateICmpEQ(b_.CreateAnd(number, i32(2 * step - 1)), i32(0));
    Value* has_right =
        b_.CreateICmpULT(b_.CreateAdd(number, i32(step)), present);
    Value* joins = b_.CreateAnd(is_left, has_right);
    std::vector<Value*> sum = flatten(combined(loop, parts, other, false));
    for (size_t i = 0; i < parts.size(); ++i)
      parts[i] = b_.CreateSelect(joins, sum[i], parts[i]);
  }
  return parts;
}

}  // namespace unisono::jit
