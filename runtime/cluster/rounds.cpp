#include "runtime/cluster/rounds.h"

#include <algorithm>
#include <bit>

namespace unisono {

std::vector<GatherRound> gather_rounds(int places, int own) {
  const auto modulo = [&](int place) { return (place + places) % places; };
  std::vector<GatherRound> out;
  for (int have = 1; have < places; have *= 2) {
    // Each has the own part and the have - 1 before it.
    const int count = std::min(have, places - have);
    out.push_back({.to = modulo(own + have),
                   .from = modulo(own - have),
                   .sends = modulo(own - count + 1),
                   .receives = modulo(own - have - count + 1),
                   .count = count});
  }
  return out;
}

TreePlace tree_place(int places, int own) {
  // A place's parent lacks its lowest one bit.
  const int step =
      own == 0 ? static_cast<int>(std::bit_ceil(static_cast<unsigned>(places)))
               : own & -own;
  TreePlace out{.parent = own == 0 ? -1 : own - step,
                .size = std::min(step, places - own),
                .children = {}};
  for (int child = step / 2; child > 0; child /= 2)
    if (own + child < places) out.children.push_back(own + child);
  return out;
}

int count_rounds(int places) {
  return static_cast<int>(std::bit_width(static_cast<unsigned>(places - 1)));
}

}  // namespace unisono
