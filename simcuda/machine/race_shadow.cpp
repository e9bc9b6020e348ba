#include "simcuda/machine/race_shadow.h"

#include <algorithm>

namespace simcuda {

void RaceShadow::Page::split() {
  if (shift == 0) return;
  std::vector<RaceCell> bytes(page_bytes);
  for (size_t b = 0; b < bytes.size(); ++b) bytes[b] = cells[b >> shift];
  cells.swap(bytes);
  shift = 0;
}

RaceShadow::Page* RaceShadow::find(uint64_t number, Recent& recent) {
  auto it = pages_.find(number);
  if (it == pages_.end()) {
    if (pages_.size() >= most_pages) return nullptr;
    it = pages_.emplace(number, std::make_unique<Page>()).first;
  }
  recent = {number, it->second.get()};
  return recent.page;
}

std::vector<std::pair<uint64_t, const RaceShadow::Page*>> RaceShadow::sorted()
    const {
  std::vector<std::pair<uint64_t, const Page*>> list;
  list.reserve(pages_.size());
  for (const auto& [number, page] : pages_)
    list.emplace_back(number, page.get());
  std::sort(list.begin(), list.end());
  return list;
}

void RaceShadow::clear() {
  for (auto& [number, page] : pages_)
    std::fill(page->cells.begin(), page->cells.end(), RaceCell());
}

}  // namespace simcuda
