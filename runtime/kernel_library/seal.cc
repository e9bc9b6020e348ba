// Ends a stretch of work that is put again and again: launches have the same
// numbers in each, so a word that was taken by one of them (runtime/grid.h) is
// sealed, and no later launch takes itself for that one. A word that is not
// counts the stretches, if that is asked for.
#include "runtime/kernel_library/grid.h"

namespace unisono::grid {
namespace {

constexpr uint64_t sealed = uint64_t{1} << 63;
constexpr int stretches = 9;  // place in the word

}  // namespace

GRID_KERNEL seal(uint64_t* word, int64_t count) {
  if (thread() != 0 || block() != 0) return;
  if (word[0] != 0)
    word[0] |= sealed;
  else
    word[stretches] += count;
}

}  // namespace unisono::grid
