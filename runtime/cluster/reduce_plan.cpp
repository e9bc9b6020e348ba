#include "runtime/cluster/reduce_plan.h"

#include <algorithm>
#include <bit>
#include <map>
#include <utility>

#include "runtime/check.h"
#include "runtime/cluster/rounds.h"
#include "runtime/member_tree.h"

namespace unisono {
namespace {

using Node = ReducePlan::Node;

std::vector<int> prime_factors(int number) {
  std::vector<int> out;
  for (int p = 2; number > 1; ++p)
    for (; number % p == 0; number /= p) out.push_back(p);
  return out;
}

class Planner {
 public:
  Planner(std::span<const int> owners, int own)
      : processes_(owners.begin(), owners.end()) {
    std::ranges::sort(processes_);
    processes_.erase(std::ranges::unique(processes_).begin(), processes_.end());
    const auto at = std::ranges::lower_bound(processes_, own);
    CHECK(at != processes_.end() && *at == own);
    own_ = static_cast<int>(at - processes_.begin());
    for (const int owner : owners)
      index_.push_back(static_cast<int>(
          std::ranges::lower_bound(processes_, owner) - processes_.begin()));
    known_.assign(processes_.size(), false);
    known_[own_] = true;
    for (const Node& node : nodes_of(known_)) available(node);
    plan_.own_nodes = static_cast<int>(plan_.nodes.size());
  }

  ReducePlan whole() {
    const int n = count();
    // In powers of two each knows of an aligned block, which is a part of the
    // tree more often.
    const bool pairs = std::has_single_bit(static_cast<unsigned>(n));
    for (int d = 1; d < n; d *= 2) {
      const auto knows = [&](int index) {
        Set set(static_cast<size_t>(n), false);
        for (int i = 0; i < d; ++i)
          set[pairs ? (index & ~(d - 1)) + i : (index - i + n) % n] = true;
        return set;
      };
      const int to = pairs ? own_ ^ d : (own_ + d) % n;
      const int from = pairs ? own_ ^ d : (own_ - d + n) % n;
      ReducePlan::Round round;
      round.sends.push_back({processes_[to], 0, ids(knows(own_))});
      learn(round, from, 0, knows(from));
      finish(std::move(round));
    }
    return take();
  }

  ReducePlan cut() {
    int step = 1;  // of the digit
    for (const int base : prime_factors(count())) {
      const auto knows = [&](int index) {
        Set set(processes_.size(), false);
        const int first = index / step * step;
        for (int i = 0; i < step; ++i) set[first + i] = true;
        return set;
      };
      ReducePlan::Round round{.parts = base,
                              .own = own_ / step % base,
                              .sends = {},
                              .receives = {},
                              .merges = {},
                              .passing = false};
      const std::vector<int> own = ids(knows(own_));
      for (int digit = 0; digit < base; ++digit) {
        if (digit == round.own) continue;
        const int other = own_ + (digit - round.own) * step;
        round.sends.push_back({processes_[other], digit, own});
        learn(round, other, round.own, knows(other));
      }
      finish(std::move(round));
      step *= base;
    }
    return take();
  }

 private:
  using Set = std::vector<bool>;  // of processes, by index

  int count() const { return static_cast<int>(processes_.size()); }

  /// The largest parts of the tree all of whose places these have, in order.
  std::vector<Node> nodes_of(const Set& set) const {
    std::vector<Node> out;
    const auto add = [&](auto& self, int64_t begin, int64_t end) -> bool {
      if (end - begin == 1) {
        if (!set[index_[begin]]) return false;
        out.push_back({begin, end});
        return true;
      }
      const size_t before = out.size();
      const int64_t middle = begin + member_tree_left(end - begin);
      const bool left = self(self, begin, middle);
      const bool right = self(self, middle, end);
      if (!left || !right) return false;
      out.resize(before);
      out.push_back({begin, end});
      return true;
    };
    add(add, 0, static_cast<int64_t>(index_.size()));
    return out;
  }

  int add_node(const Node& node) {
    plan_.nodes.push_back(node);
    return static_cast<int>(plan_.nodes.size()) - 1;
  }
  /// A node that this process has from now on.
  int available(const Node& node) {
    const int id = add_node(node);
    known_nodes_.emplace(std::pair(node.begin, node.end), id);
    return id;
  }
  const int* find(const Node& node) const {
    const auto at = known_nodes_.find({node.begin, node.end});
    return at == known_nodes_.end() ? nullptr : &at->second;
  }
  std::vector<int> ids(const Set& set) const {
    std::vector<int> out;
    for (const Node& node : nodes_of(set)) {
      const int* id = find(node);
      CHECK(id);
      out.push_back(*id);
    }
    return out;
  }

  /// What process `from` has of `set` comes to this one. It may be there
  /// already, and comes again then.
  void learn(ReducePlan::Round& round, int from, int part, const Set& set) {
    ReducePlan::Transfer transfer{processes_[from], part, {}};
    for (const Node& node : nodes_of(set))
      transfer.nodes.push_back(find(node) ? add_node(node) : available(node));
    round.receives.push_back(std::move(transfer));
    for (size_t i = 0; i < set.size(); ++i)
      if (set[i]) known_[i] = true;
  }

  void finish(ReducePlan::Round round) {
    for (const Node& node : nodes_of(known_)) {
      if (find(node)) continue;
      ReducePlan::Merge merge;
      const auto add = [&](auto& self, const Node& part) -> void {
        if (const int* id = find(part)) {
          merge.from.push_back(*id);
          return;
        }
        CHECK(part.end - part.begin > 1);
        const int64_t middle =
            part.begin + member_tree_left(part.end - part.begin);
        self(self, {part.begin, middle});
        self(self, {middle, part.end});
      };
      add(add, node);
      merge.node = available(node);
      round.merges.push_back(std::move(merge));
    }
    plan_.rounds.push_back(std::move(round));
  }

  ReducePlan take() {
    const int* whole = find({0, static_cast<int64_t>(index_.size())});
    CHECK(whole);
    plan_.result = *whole;
    for (size_t k = 0; k < plan_.rounds.size(); ++k)
      plan_.rounds[k].passing = is_passing(k);
    return std::move(plan_);
  }

  bool is_passing(size_t round) const {
    const auto merged = [&](size_t k, int node) {
      return std::ranges::any_of(
          plan_.rounds[k].merges, [&](const ReducePlan::Merge& merge) {
            return std::ranges::find(merge.from, node) != merge.from.end();
          });
    };
    const auto sent = [&](size_t k, int node) {
      return std::ranges::any_of(
          plan_.rounds[k].sends, [&](const ReducePlan::Transfer& transfer) {
            return std::ranges::find(transfer.nodes, node) !=
                   transfer.nodes.end();
          });
    };
    for (const ReducePlan::Transfer& transfer : plan_.rounds[round].receives)
      for (const int node : transfer.nodes) {
        if (!merged(round, node)) return false;
        for (size_t later = round + 1; later < plan_.rounds.size(); ++later)
          if (merged(later, node) || sent(later, node)) return false;
      }
    return true;
  }

  std::vector<int> processes_;  // ascending
  std::vector<int> index_;      // by place: of its process among these
  int own_ = 0;
  Set known_;
  std::map<std::pair<int64_t, int64_t>, int> known_nodes_;
  ReducePlan plan_;
};

}  // namespace

ReducePlan plan_reduction(std::span<const int> owners, int own, bool cut) {
  Planner planner(owners, own);
  return cut ? planner.cut() : planner.whole();
}

int count_reduce_rounds(int processes, bool cut) {
  return cut ? static_cast<int>(prime_factors(processes).size())
             : count_rounds(processes);
}

ElementRange part_of(ElementRange range, int part, int parts) {
  // A cache line is one process's.
  constexpr int64_t grain = 64;
  const auto at = [&](int64_t k) {
    if (k == parts) return range.last;
    const int64_t count = range.last - range.first;
    return range.first + count / parts * k / grain * grain;
  };
  return {at(part), at(part + 1)};
}

}  // namespace unisono
