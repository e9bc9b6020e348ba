#pragma once
// How processes combine what their devices have in the members tree
// (runtime/member_tree.h), so that the bits are those of one process, with few
// messages. Whatever comes between, a process has results of whole parts of the
// tree; who has two parts that are one above combines them.
//
// Small operands: each process tells another one all that it knows, in
// ⌈log2 N⌉ rounds. Of large ones each process combines a range: the processes
// of one digit of their number, in a system of mixed base, share a range out
// among each other, neighbours first, as the tree does. N is a product of
// primes, and a process sends r - 1 messages in the round of each prime r, and
// in all less than the operand.
#include <cstdint>
#include <span>
#include <vector>

namespace unisono {

struct ReducePlan {
  /// A part of the tree: places begin ... end - 1 of the team.
  struct Node {
    int64_t begin = 0, end = 0;
  };
  /// Nodes that go to, or come from, another process. Of those that are cut,
  /// part `part` of the range that has not been given away.
  struct Transfer {
    int process = 0;
    int part = 0;
    std::vector<int> nodes;
  };
  /// `node` is what `from`, which follow one another, make together.
  struct Merge {
    int node = 0;
    std::vector<int> from;
  };
  struct Round {
    int parts = 1;  // the range is cut into so many
    int own = 0;    // the part that stays
    std::vector<Transfer> sends, receives;
    std::vector<Merge> merges;
    /// What comes is of use in these merges alone.
    bool passing = false;
  };
  std::vector<Node> nodes;
  int own_nodes = 0;  // the first ones: of own places alone
  std::vector<Round> rounds;
  int result = 0;  // the node of the whole tree
};

/// `owners`: by place of the team, the process. `own` has some.
ReducePlan plan_reduction(std::span<const int> owners, int own, bool cut);

/// The plan's rounds, of a team of so many processes.
int count_reduce_rounds(int processes, bool cut);

/// Range `part` of `parts` of elements first ... last - 1.
struct ElementRange {
  int64_t first = 0, last = 0;
};
ElementRange part_of(ElementRange range, int part, int parts);

}  // namespace unisono
