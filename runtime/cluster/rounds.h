#pragma once
// Who talks to whom when something of all processes comes to all, to one, or
// from one, in rounds of which there are as many as N has binary digits.
// Processes are places 0 ... N - 1 here.
#include <span>
#include <vector>

namespace unisono {

/// One round of an all-gather: parts `sends` ... `sends` + `count` - 1 (modulo
/// N) go to `to`, and as many from `receives` on come from `from`. After the
/// rounds each place has the parts of all (Bruck, 1997).
struct GatherRound {
  int to = 0, from = 0;
  int sends = 0, receives = 0;
  int count = 0;
};
std::vector<GatherRound> gather_rounds(int places, int own);

/// A binomial tree with root 0. Places below one are the `size` - 1 that
/// follow it.
struct TreePlace {
  int parent = -1;            // -1: it is the root
  int size = 1;               // of the part of the tree that begins here
  std::vector<int> children;  // the largest part first
};
TreePlace tree_place(int places, int own);

/// How many rounds it takes until each of `places` knows of all.
int count_rounds(int places);

}  // namespace unisono
