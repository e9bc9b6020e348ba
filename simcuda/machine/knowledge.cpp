#include "simcuda/machine/knowledge.h"

#include <algorithm>

namespace simcuda {

namespace {

BlockTimes joined(const BlockTimes& a, const BlockTimes& b) {
  BlockTimes both{.everyone = std::max(a.everyone, b.everyone), .threads = {}};
  both.threads.reserve(a.threads.size() + b.threads.size());
  auto add = [&](uint32_t thread, uint32_t time) {
    if (time > both.everyone) both.threads.emplace_back(thread, time);
  };
  auto x = a.threads.begin();
  auto y = b.threads.begin();
  while (x != a.threads.end() && y != b.threads.end()) {
    const uint32_t thread = std::min(x->first, y->first);
    uint32_t time = 0;
    if (x->first == thread) time = (x++)->second;
    if (y->first == thread) time = std::max(time, (y++)->second);
    add(thread, time);
  }
  for (; x != a.threads.end(); ++x) add(x->first, x->second);
  for (; y != b.threads.end(); ++y) add(y->first, y->second);
  return both;
}

}  // namespace

bool BlockTimes::covers(uint32_t thread, uint32_t time) const {
  if (time <= everyone) return true;
  auto it = std::lower_bound(threads.begin(), threads.end(),
                             std::pair{thread, uint32_t{0}});
  return it != threads.end() && it->first == thread && it->second >= time;
}

bool BlockTimes::includes(const BlockTimes& other) const {
  if (everyone < other.everyone) return false;
  return std::all_of(
      other.threads.begin(), other.threads.end(),
      [&](const auto& known) { return covers(known.first, known.second); });
}

Knowledge::Knowledge(uint32_t block, BlockTimes times)
    : blocks_(std::make_shared<Blocks>(
          1, Entry{block, std::make_shared<BlockTimes>(std::move(times))})) {}

const Knowledge::Entry* Knowledge::find(uint32_t block) const {
  if (blocks_ == nullptr) return nullptr;
  auto it = std::lower_bound(
      blocks_->begin(), blocks_->end(), block,
      [](const Entry& entry, uint32_t number) { return entry.block < number; });
  return it == blocks_->end() || it->block != block ? nullptr : &*it;
}

bool Knowledge::covers(uint32_t block, uint32_t thread, uint32_t time) const {
  const Entry* entry = find(block);
  return entry != nullptr && entry->times->covers(thread, time);
}

bool Knowledge::includes(const Blocks& all, const Blocks& some) {
  if (all.size() < some.size()) return false;
  auto at = all.begin();
  for (const Entry& entry : some) {
    while (at != all.end() && at->block < entry.block) ++at;
    if (at == all.end() || at->block != entry.block) return false;
    if (at->times != entry.times && !at->times->includes(*entry.times))
      return false;
  }
  return true;
}

void Knowledge::join(const Knowledge& other) {
  if (other.empty() || same(other)) return;
  if (empty() || includes(*other.blocks_, *blocks_)) {
    blocks_ = other.blocks_;
    return;
  }
  if (includes(*blocks_, *other.blocks_)) return;
  auto both = std::make_shared<Blocks>();
  both->reserve(blocks_->size() + other.blocks_->size());
  auto x = blocks_->begin();
  auto y = other.blocks_->begin();
  while (x != blocks_->end() && y != other.blocks_->end()) {
    if (x->block != y->block) {
      both->push_back(x->block < y->block ? *x++ : *y++);
      continue;
    }
    if (x->times == y->times || x->times->includes(*y->times))
      both->push_back(*x);
    else if (y->times->includes(*x->times))
      both->push_back(*y);
    else
      both->push_back({x->block, std::make_shared<BlockTimes>(
                                     joined(*x->times, *y->times))});
    ++x, ++y;
  }
  both->insert(both->end(), x, blocks_->end());
  both->insert(both->end(), y, other.blocks_->end());
  blocks_ = std::move(both);
}

Knowledge Knowledge::only(uint32_t block) const {
  Knowledge some;
  if (const Entry* entry = find(block))
    some.blocks_ = std::make_shared<Blocks>(1, *entry);
  return some;
}

}  // namespace simcuda
