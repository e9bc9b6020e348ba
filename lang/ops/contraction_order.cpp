// The cheapest tree over each set of operands is two cheapest trees over its
// parts: 3^n pairs of parts for n operands, the smaller sets first.
#include "lang/ops/einsum.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <iterator>
#include <set>

#include "runtime/tuning/tuning.h"

namespace unisono::lang {
namespace {

using Operands = uint32_t;  // a set of them, as bits
using Indices = std::set<int>;

class Search {
 public:
  /// Indices that are in `kept` are wanted, whatever is multiplied.
  Search(const std::vector<Indices>& operands, const Indices& kept,
         const std::map<int, double>& sizes)
      : operands_(operands), kept_(kept), sizes_(sizes) {
    const Operands all = (Operands{1} << operands.size()) - 1;
    best_.resize(all + 1);
    for (Operands set = 1; set <= all; ++set) find(set);
  }

  /// Appends the pairs of the cheapest tree; gives the number of its result.
  int pairs(Operands set, std::vector<std::pair<int, int>>& out) const {
    const Operands left = best_[set].left;
    if (left == set) return std::countr_zero(set);
    const int a = pairs(left, out), b = pairs(set & ~left, out);
    out.emplace_back(a, b);
    return static_cast<int>(operands_.size() + out.size()) - 1;
  }

 private:
  struct Best {
    double cost = 0;
    Operands left = 0;  // the set itself, if it is one operand
    Indices indices = {};
  };

  /// Indices of a set that are wanted outside it.
  Indices wanted(Operands set) const {
    Indices inside, outside = kept_, out;
    for (size_t i = 0; i < operands_.size(); ++i)
      (set >> i & 1 ? inside : outside)
          .insert(operands_[i].begin(), operands_[i].end());
    std::set_intersection(inside.begin(), inside.end(), outside.begin(),
                          outside.end(), std::inserter(out, out.end()));
    return out;
  }

  double multiplications(const Indices& a, const Indices& b) const {
    double count = 1;
    for (int label : a) count *= sizes_.at(label);
    for (int label : b)
      if (!a.contains(label)) count *= sizes_.at(label);
    return count;
  }

  /// The parts of a set have their sets before it.
  void find(Operands set) {
    Best& best = best_[set];
    best.left = set;
    best.indices = wanted(set);
    if (std::has_single_bit(set)) return;
    const auto consider = [&](Operands left) {
      const Best &a = best_[left], &b = best_[set & ~left];
      const double cost =
          a.cost + b.cost + multiplications(a.indices, b.indices);
      if (best.left != set && cost >= best.cost) return;
      best.cost = cost;
      best.left = left;
    };
    // The order of the operands is considered first: their last one alone.
    consider(set & ~std::bit_floor(set));
    const Operands first = set & -set;
    for (Operands left = (set - 1) & set; left; left = (left - 1) & set)
      if (left & first) consider(left);
  }

  const std::vector<Indices>& operands_;
  const Indices& kept_;
  const std::map<int, double>& sizes_;
  std::vector<Best> best_;  // by set
};

}  // namespace

std::vector<std::pair<int, int>> contraction_order(
    const std::vector<std::vector<int>>& labels, const std::vector<int>& output,
    const std::map<int, double>& sizes) {
  const size_t searched =
      std::min<size_t>(labels.size(), Orders::most_searched_operands);
  std::vector<Indices> operands;
  Indices kept(output.begin(), output.end());
  for (size_t i = 0; i < labels.size(); ++i)
    if (i < searched)
      operands.emplace_back(labels[i].begin(), labels[i].end());
    else
      kept.insert(labels[i].begin(), labels[i].end());
  std::vector<std::pair<int, int>> out;
  const Search search(operands, kept, sizes);
  search.pairs((Operands{1} << searched) - 1, out);
  // Results are numbered after all operands.
  const int others = static_cast<int>(labels.size() - searched);
  for (auto& [a, b] : out) {
    if (a >= static_cast<int>(searched)) a += others;
    if (b >= static_cast<int>(searched)) b += others;
  }
  for (size_t i = searched; i < labels.size(); ++i)
    out.emplace_back(static_cast<int>(labels.size() + out.size()) - 1,
                     static_cast<int>(i));
  return out;
}

}  // namespace unisono::lang
