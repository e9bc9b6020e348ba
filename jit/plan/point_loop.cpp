#include "jit/plan/point_loop.h"

#include <algorithm>
#include <map>

#include "jit/ir/kinds.h"

namespace unisono::jit {
namespace {

using ir::Graph;
using ir::Node;
using ir::NodeId;
using ir::Op;

/// A thread takes all turns in a row, and nobody stops it.
constexpr int64_t most_turns = 1 << 16;
constexpr int64_t most_operations = int64_t{1} << 22;
/// Spaces of points of one kernel.
constexpr size_t most_spaces = 8;

}  // namespace

bool may_be_point_loop(const Graph& body, int64_t turns) {
  if (turns < 1 || turns > most_turns ||
      turns * static_cast<int64_t>(body.nodes.size()) > most_operations)
    return false;
  return std::all_of(body.nodes.begin(), body.nodes.end(),
                     [](const Node& node) {
                       switch (ir::kind(node.op)) {
                         case ir::Kind::map:
                         case ir::Kind::move:
                         case ir::Kind::source: return true;
                         case ir::Kind::index: return node.op == Op::gather;
                         case ir::Kind::reduce:
                         case ir::Kind::argreduce:
                         case ir::Kind::scan:
                         case ir::Kind::dot:
                         case ir::Kind::sort:
                         case ir::Kind::control:
                         case ir::Kind::collective:
                         case ir::Kind::host: return false;
                       }
                       __builtin_unreachable();
                     });
}

namespace {

/// Row after row, all elements once.
bool is_identity(const Affine& at, const std::vector<int64_t>& extents) {
  if (at.constant != 0) return false;
  const std::vector<int64_t> strides = dense_strides(extents);
  for (size_t a = 0; a < extents.size(); ++a)
    if (extents[a] > 1 && at.factors[a] != strides[a]) return false;
  return true;
}

/// One nest of the body, and what it is named by its kernel.
struct Part {
  const Nest* nest = nullptr;
  const std::vector<Argument>* arguments = nullptr;
};

/// The kernel in the making.
class PointLoopMaker {
 public:
  explicit PointLoopMaker(const PointLoop& loop) : loop_(loop) {
    for (size_t i = 0; i < loop.carries.size(); ++i) {
      by_place_[loop.carries[i].place] = static_cast<int>(i);
      by_next_[loop.carries[i].next] = static_cast<int>(i);
    }
  }

  std::optional<Kernel> make(const PlanSteps& body);

 private:
  /// Points with the same extents; its scalars are everybody's.
  struct Space {
    std::vector<int64_t> extents;
    bool scalar = false;
  };
  bool collect(const PlanSteps& body);
  bool collect(const Part& part);
  bool make_nest(const Space& space);
  bool append(const Part& part, const Space& space);
  bool is_inside(const Expr& expr, const std::vector<ExprId>& renamed) const;
  std::optional<ExprId> known(const Expr& expr, const Part& part,
                              const Space& space);
  int argument(BufferId buffer, DType dtype);
  ExprId push(Expr expr) {
    nest_.exprs.push_back(std::move(expr));
    return static_cast<ExprId>(nest_.exprs.size()) - 1;
  }
  bool is_scalar(int carry) const {
    return loop_.carries[static_cast<size_t>(carry)].elements == 1;
  }

  const PointLoop& loop_;
  std::map<BufferId, int> by_place_, by_next_;
  std::vector<Part> parts_;
  std::vector<Space> spaces_;
  std::map<int, size_t> space_of_;  // of carries
  Kernel kernel_;
  // Of the nest in the making.
  Nest nest_;
  std::map<int, ExprId> carried_, next_;
};

std::optional<Kernel> PointLoopMaker::make(const PlanSteps& body) {
  // Each carry's next value has a place of its own.
  if (by_next_.size() != loop_.carries.size() || !collect(body))
    return std::nullopt;
  for (const Space& space : spaces_)
    if (!make_nest(space)) return std::nullopt;
  drop_arguments(kernel_);
  return std::move(kernel_);
}

bool PointLoopMaker::collect(const PlanSteps& body) {
  for (const PlanStep& step : body) {
    const auto* kernel = std::get_if<Kernel>(&step.what);
    if (!kernel) return false;
    for (const Nest& nest : kernel->nests)
      if (!collect(Part{&nest, &kernel->arguments})) return false;
  }
  return space_of_.size() == loop_.carries.size() &&
         spaces_.size() <= most_spaces;
}

bool PointLoopMaker::collect(const Part& part) {
  const Nest& nest = *part.nest;
  if (!nest.reductions.empty() || nest.scan || nest.scatter || nest.turns)
    return false;
  const bool scalar = nest.points() == 1;
  auto same = [&](const Space& space) {
    return space.scalar ? scalar : !scalar && space.extents == nest.extents;
  };
  auto found = std::find_if(spaces_.begin(), spaces_.end(), same);
  if (found == spaces_.end()) {
    spaces_.push_back({scalar ? std::vector<int64_t>() : nest.extents, scalar});
    found = spaces_.end() - 1;
  }
  for (const Store& store : nest.stores) {
    const auto next = by_next_.find((*part.arguments)[store.argument].buffer);
    if (next == by_next_.end() || !is_identity(store.at, nest.extents) ||
        loop_.carries[static_cast<size_t>(next->second)].elements !=
            nest.points())
      return false;
    const auto number = static_cast<size_t>(found - spaces_.begin());
    if (!space_of_.emplace(next->second, number).second) return false;
  }
  parts_.push_back(part);
  return true;
}

bool PointLoopMaker::make_nest(const Space& space) {
  const auto number = static_cast<size_t>(&space - spaces_.data());
  nest_ = Nest{.extents = space.extents,
               .reduced = std::vector<bool>(space.extents.size(), false),
               .exprs = {}};
  carried_.clear();
  next_.clear();
  Affine own = constant_affine(0, space.extents.size());
  own.factors = dense_strides(space.extents);
  Turns turns{.count = loop_.turns.count, .carries = {}};
  std::vector<int> members;
  for (const auto& [carry, at] : space_of_)
    if (at == number || is_scalar(carry)) members.push_back(carry);
  for (int carry : members) {
    const PointLoop::Carry& c = loop_.carries[static_cast<size_t>(carry)];
    Expr first{.kind = Expr::Kind::load, .dtype = c.dtype};
    first.argument = argument(c.first, c.dtype);
    first.at =
        is_scalar(carry) ? constant_affine(0, space.extents.size()) : own;
    turns.carries.push_back({push(std::move(first)), -1, c.dtype});
  }
  for (size_t i = 0; i < members.size(); ++i) {
    Expr value{.kind = Expr::Kind::carried,
               .dtype = turns.carries[i].dtype,
               .carry = static_cast<int>(i)};
    value.at = constant_affine(0, space.extents.size());
    carried_[members[i]] = push(std::move(value));
  }
  for (const Part& part : parts_) {
    const bool scalar = part.nest->points() == 1;
    if (!scalar && part.nest->extents != space.extents) continue;
    if (!append(part, space)) return false;
  }
  for (size_t i = 0; i < members.size(); ++i) {
    const auto next = next_.find(members[i]);
    if (next == next_.end()) return false;
    turns.carries[i].next = next->second;
    if (is_scalar(members[i]) != space.scalar) continue;
    const PointLoop::Carry& c = loop_.carries[static_cast<size_t>(members[i])];
    nest_.stores.push_back(
        {argument(c.place, c.dtype), own, carried_.at(members[i])});
  }
  nest_.turns = std::move(turns);
  kernel_.nests.push_back(std::move(nest_));
  return true;
}

/// What a load of a carry gives; -1: it is none. Nothing: another point's.
std::optional<ExprId> PointLoopMaker::known(const Expr& expr, const Part& part,
                                            const Space& space) {
  const BufferId buffer = (*part.arguments)[expr.argument].buffer;
  const auto place = by_place_.find(buffer), next = by_next_.find(buffer);
  if (place == by_place_.end() && next == by_next_.end()) return -1;
  if (expr.kind != Expr::Kind::load) return std::nullopt;
  const bool is_next = place == by_place_.end();
  const int carry = is_next ? next->second : place->second;
  const auto& values = is_next ? next_ : carried_;
  const auto value = values.find(carry);
  const bool own =
      is_scalar(carry) || (part.nest->extents == space.extents &&
                           is_identity(expr.at, part.nest->extents));
  if (!own || value == values.end()) return std::nullopt;
  return value->second;
}

/// Whether a gather's checks cannot fail: its indices are the counter.
bool PointLoopMaker::is_inside(const Expr& expr,
                               const std::vector<ExprId>& renamed) const {
  if (expr.kind != Expr::Kind::gather) return false;
  const ExprId counter = carried_.at(loop_.turns.counter);
  for (size_t i = 0; i < expr.indexed.size(); ++i)
    if (renamed[expr.operands[i]] != counter || loop_.turns.first < 0 ||
        loop_.turns.last >= expr.indexed[i].size)
      return false;
  return true;
}

bool PointLoopMaker::append(const Part& part, const Space& space) {
  const Nest& nest = *part.nest;
  const size_t axes = space.extents.size();
  const bool same = nest.extents == space.extents;
  std::vector<ExprId> renamed;
  for (const Expr& from : nest.exprs) {
    if (from.checked && !is_inside(from, renamed)) return false;
    if (from.argument >= 0) {
      const std::optional<ExprId> value = known(from, part, space);
      if (!value) return false;
      if (*value >= 0) {
        renamed.push_back(*value);
        continue;
      }
    }
    Expr expr = from;
    expr.checked = false;
    // At its one point, a scalar's index is a constant.
    if (!same) expr.at = constant_affine(from.at.constant, axes);
    for (ExprId& operand : expr.operands) operand = renamed[operand];
    if (expr.argument >= 0) {
      const Argument& named = (*part.arguments)[expr.argument];
      expr.argument = argument(named.buffer, named.dtype);
    }
    renamed.push_back(push(std::move(expr)));
  }
  for (const Store& store : nest.stores)
    next_[by_next_.at((*part.arguments)[store.argument].buffer)] =
        renamed[store.value];
  return true;
}

int PointLoopMaker::argument(BufferId buffer, DType dtype) {
  auto& all = kernel_.arguments;
  for (size_t i = 0; i < all.size(); ++i)
    if (all[i].buffer == buffer) return static_cast<int>(i);
  all.push_back({buffer, dtype, false});
  return static_cast<int>(all.size()) - 1;
}

}  // namespace

std::optional<Kernel> point_loop(const PlanSteps& body, const PointLoop& loop) {
  return PointLoopMaker(loop).make(body);
}

}  // namespace unisono::jit
