#pragma once
// The members that meet in a collective, and which sends to which: reads and
// checks the collective's arguments. Mistakes end in Walk::fail, when the
// program is checked.
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lang/context/builtin.h"
#include "lang/context/walk.h"

namespace unisono::lang {

/// The members of some axes together, the first axis outermost. If there are
/// `groups`, the members of each meet by themselves.
struct Members {
  struct Axis {
    std::shared_ptr<const AxisInfo> info;
    ir::AxisId id = 0;  // in the graph
    ir::Dim size;
  };
  std::vector<Axis> axes;
  std::vector<std::vector<int>> groups;

  /// The number of members.
  ir::Dim size() const;
  /// The number of members that meet: all, or those of the first group.
  ir::Dim team() const;
  /// "axis rows", "axes (rows, cols)"
  std::string label() const;
  /// "axis i has size 4", "its groups have 2 members"
  std::string team_fact() const;
  /// The axes, as values vary over them.
  AxisSet ids() const;
  ir::CollectiveAttrs attrs() const;
};

/// The members of `over`, an axis or a tuple of axes; if that is left out, of
/// the innermost map's axis.
Members members_of(Argument over);
/// The same for a call in which members meet: an error if some of them may not
/// get there (forbid_divergence), or if there are none.
Members meeting_members(Argument over);
/// An error if the call stands under a condition that varies over the axis.
void forbid_divergence(BuiltinCall& call, const AxisInfo& axis);

enum class GroupSizes { any, equal };
/// Reads `groups`, a tuple of tuples that holds every member once, into
/// `members.groups`; does nothing if it is left out.
void read_groups(Argument groups, Members& members, GroupSizes sizes);

/// (source, destination) of what members send.
using Pairs = std::vector<std::pair<int, int>>;
/// `perm` of ppermute: each member is a source and a destination at most once.
Pairs read_pairs(Argument perm, const Members& members);
/// `shift` of ppermute: from each p to p + shift, around the end if `wrap`. No
/// pairs in check mode.
Pairs shifted_pairs(BuiltinCall& call, const Members& members, int64_t shift,
                    bool wrap);
/// `perm` of pshuffle: member p gets the value of perm[p].
Pairs read_shuffle(Argument perm, const Members& members);
/// `source` of pbroadcast: from that member to all.
Pairs read_source(Argument source, const Members& members);
/// From `source` to all; no pairs while the number of members is a symbol.
Pairs broadcast_pairs(const Members& members, int64_t source);
/// Fails with an error about a permutation.
[[noreturn]] void bad_permutation(BuiltinCall& call, Span where,
                                  const std::string& text, std::string help);

}  // namespace unisono::lang
