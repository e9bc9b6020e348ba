#pragma once
// What each process tells all others before they begin something together, and
// the problems that some of them have with it.
#include <algorithm>
#include <array>
#include <string_view>
#include <type_traits>
#include <vector>

#include "runtime/cluster/cluster.h"
#include "runtime/result.h"

namespace unisono {

/// The text, as much of it as there is room for, and zeros behind it.
template <size_t n>
void set_text(std::array<char, n>& to, std::string_view text) {
  to.fill(0);
  std::ranges::copy(text.substr(0, n - 1), to.begin());
}

/// What each process has given, by process. All call it; errors are those of
/// an exchange.
template <class T>
Result<std::vector<T>> tell_all(Cluster& cluster, const T& own) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::vector<T> all(static_cast<size_t>(cluster.processes()));
  all[static_cast<size_t>(cluster.process())] = own;
  TRY(cluster.all_gather(all.data(), sizeof(T)));
  return all;
}

/// The first process that has set a `problem`, an array of characters; -1 if
/// none has.
template <class T>
int first_problem(const std::vector<T>& all) {
  const auto found =
      std::ranges::find_if(all, [](const T& told) { return told.problem[0]; });
  return found == all.end() ? -1 : static_cast<int>(found - all.begin());
}

}  // namespace unisono
