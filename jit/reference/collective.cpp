#include "jit/reference/collective.h"

#include <numeric>

#include "jit/ir/kinds.h"
#include "jit/reference/kernels.h"
#include "jit/reference/nodes.h"
#include "runtime/check.h"

namespace unisono::jit::reference {
namespace {

using ir::Op;
using Group = std::vector<int>;

/// An array cut along one axis: `outer` runs, `inner` bytes for each of the
/// axis's elements.
struct Cut {
  int64_t outer = 1, inner = 1;

  Cut(const ir::Type& type, int dim) : inner(byte_size(type.dtype)) {
    for (int i = 0; i < type.rank(); ++i)
      (i < dim ? outer : inner) *= type.shape[i].value();
  }
};

std::vector<Group> groups_of(const ir::CollectiveAttrs& a, size_t members) {
  if (!a.groups.empty()) return a.groups;
  Group all(members);
  std::iota(all.begin(), all.end(), 0);
  return {all};
}

/// One group's meeting: operands in its order, the result of the one at `rank`.
struct Meeting {
  const ir::Node& node;
  const ir::Type& type;  // of an operand
  std::vector<const uint8_t*> operands;

  const ir::CollectiveAttrs& attrs() const {
    return ir::attrs<ir::CollectiveAttrs>(node);
  }

  void all_gather(uint8_t* out) const {
    const Cut cut(type, attrs().dim);
    for (int64_t o = 0; o < cut.outer; ++o)
      for (const uint8_t* operand : operands) {
        copy_bytes(out, operand + o * cut.inner, cut.inner);
        out += cut.inner;
      }
  }
  void reduce_scatter(size_t rank, uint8_t* out) const {
    std::vector<const uint8_t*> parts = operands;
    for (const uint8_t*& part : parts)
      part += static_cast<int64_t>(rank) * node.type.bytes();
    combine_members(attrs().reduce, node.type, parts, out);
  }
  void all_to_all(size_t rank, uint8_t* out) const {
    const int64_t part = type.bytes() / static_cast<int64_t>(operands.size());
    for (size_t j = 0; j < operands.size(); ++j)
      copy_bytes(out + static_cast<int64_t>(j) * part,
                 operands[j] + static_cast<int64_t>(rank) * part, part);
  }
  void run(size_t rank, uint8_t* out) const {
    switch (ir::collective_of(node.op)) {
      case ir::Collective::all_gather: return all_gather(out);
      case ir::Collective::reduce_scatter: return reduce_scatter(rank, out);
      case ir::Collective::all_to_all: return all_to_all(rank, out);
      case ir::Collective::all_reduce:
        return combine_members(attrs().reduce, type, operands, out);
      case ir::Collective::permute:   // has no groups
      case ir::Collective::own_part:  // nobody meets
      case ir::Collective::axis_index: break;
    }
    check_failed("a collective at which groups meet", __FILE__, __LINE__);
  }
};

std::vector<Value> permute(const ir::Node& node,
                           const std::vector<Value>& operands) {
  const int64_t bytes = node.type.bytes();
  Value zeros = Value::allocate(bytes);
  const uint8_t zero[8] = {};
  Value one = Value::view(zero, sizeof zero);
  one.set_repeated(true);
  if (zeros.ok()) copy_dense(one, node.type, zeros.mutable_data());
  std::vector<Value> results(operands.size(), zeros);
  for (const auto [from, to] : ir::attrs<ir::CollectiveAttrs>(node).pairs)
    results[to] = operands[from];
  return results;
}

}  // namespace

std::vector<Value> meet(const ir::Node& node, const ir::Type& type,
                        const std::vector<Value>& operands) {
  if (node.op == Op::permute) return permute(node, operands);
  std::vector<Value> results(operands.size());
  const bool alike = node.op == Op::all_gather || node.op == Op::all_reduce;
  const auto& attrs = ir::attrs<ir::CollectiveAttrs>(node);
  for (const Group& group : groups_of(attrs, operands.size())) {
    Meeting meeting{node, type, {}};
    for (const int m : group) meeting.operands.push_back(operands[m].data());
    for (size_t rank = 0; rank < group.size(); ++rank) {
      Value& result = results[group[rank]];
      if (alike && rank > 0) {
        result = results[group[0]];
        continue;
      }
      result = Value::allocate(node.type.bytes());
      if (result.ok()) meeting.run(rank, result.mutable_data());
    }
  }
  return results;
}

Value own_part(const ir::Node& node, const ir::Type& type, const Value& operand,
               int64_t position) {
  Value result = Value::allocate(node.type.bytes());
  if (!result.ok()) return result;
  const auto& a = ir::attrs<ir::CollectiveAttrs>(node);
  const Cut cut(type, a.dim);
  const int64_t members = ir::member_count(a).value();
  const int64_t part = cut.inner / members;
  for (int64_t o = 0; o < cut.outer; ++o)
    copy_bytes(result.mutable_data() + o * part,
               operand.data() + o * cut.inner + position * part, part);
  return result;
}

}  // namespace unisono::jit::reference
