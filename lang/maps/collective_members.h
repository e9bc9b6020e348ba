#pragma once
// Who meets in a collective, and who sends to whom: its arguments read and
// checked. Mistakes are found when the program is checked.
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lang/context/builtin.h"
#include "lang/context/walk.h"

namespace unisono::lang {

/// The members of some axes together, the first axis outermost; `groups` of
/// them, which meet by themselves, or none.
struct Members {
  struct Axis {
    std::shared_ptr<const AxisInfo> info;
    ir::AxisId id = 0;  // in the graph
    ir::Dim size;
  };
  std::vector<Axis> axes;
  std::vector<std::vector<int>> groups;

  /// How many there are.
  ir::Dim size() const;
  /// How many meet: all, or those of the first group.
  ir::Dim team() const;
  /// "axis rows", "axes (rows, cols)"
  std::string label() const;
  /// "axis i has size 4", "its groups have 2 members"
  std::string team_fact() const;
  /// The axes, as values vary over them.
  AxisSet ids() const;
  ir::CollectiveAttrs attrs() const;
};

/// `over`: an axis, or a tuple of axes; the innermost map's if it is left out.
Members members_of(Argument over);
/// The same, for a call in which the members meet: all get there alike.
Members meeting_members(Argument over);
void forbid_divergence(BuiltinCall& call, const AxisInfo& axis);

/// `groups`, a tuple of tuples that holds every member once.
enum class GroupSizes { any, equal };
void read_groups(Argument groups, Members& members, GroupSizes sizes);

/// (source, destination), each at most once on either side.
using Pairs = std::vector<std::pair<int, int>>;
/// `perm` of ppermute.
Pairs read_pairs(Argument perm, const Members& members);
/// `shift`: from each p to p + shift, around the end if `wrap`.
Pairs shifted_pairs(BuiltinCall& call, const Members& members, int64_t shift,
                    bool wrap);
/// `perm` of pshuffle: member p gets the value of perm[p].
Pairs read_shuffle(Argument perm, const Members& members);
/// `source` of pbroadcast: to all.
Pairs read_source(Argument source, const Members& members);
Pairs broadcast_pairs(const Members& members, int64_t source);
/// An error about `perm` or `shift`.
[[noreturn]] void bad_permutation(BuiltinCall& call, Span where,
                                  std::string text, std::string help);

}  // namespace unisono::lang
