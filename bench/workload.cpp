#include "bench/workload.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>

namespace bench {

void* huge_pages(size_t bytes) {
  constexpr size_t page = size_t{2} << 20;
  const size_t whole = (bytes + page - 1) / page * page;
  void* memory = std::aligned_alloc(bytes < page ? 64 : page, whole);
  if (bytes >= page) madvise(memory, whole, MADV_HUGEPAGE);
  return std::memset(memory, 0, whole);
}

Aligned<float> copy_of(Script& script, const std::string& name) {
  const std::vector<float> values = script.floats(script[name]);
  Aligned<float> result(values.size());
  std::copy(values.begin(), values.end(), result.get());
  return result;
}

void expect_close(const std::string& what, double got, double want,
                  double relative) {
  if (!(std::fabs(got - want) <= relative * std::max(1.0, std::fabs(want))))
    fail(fmt::format("{}: got {}, the peer {}", what, got, want));
}

void expect_same(const std::string& what, const std::vector<float>& got,
                 const float* want, double relative) {
  for (size_t i = 0; i < got.size(); i += 4099)
    expect_close(fmt::format("{}[{}]", what, i), got[i], want[i], relative);
}

void add_pair(Table& table, Script& script, const std::string& group,
              const std::string& name, const std::function<void()>& ours,
              const Peer& peer, double target) {
  if (!table.wanted(group, name)) return;
  Paired t;
  script.on_stack([&] { t = time_pair(ours, peer.work, peer.team); });
  table.add({group, name, t.ours, t.peer, t.ratio, t.best_ratio, target, false,
             peer.note});
}

}  // namespace bench
