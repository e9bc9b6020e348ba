#include "host/notebook/history.h"

#include <fnmatch.h>

#include <algorithm>
#include <set>

namespace unisono::host {
namespace {

using Json = nlohmann::json;

/// One input as the protocol has it, of this session, which is number 0.
Json entry(int number, const std::string& text, bool output) {
  if (output) return {0, number, {text, nullptr}};
  return {0, number, text};
}

Json reply(Json entries) {
  return {{"status", "ok"}, {"history", std::move(entries)}};
}

/// The last `count` entries.
Json last_of(const Json& entries, int count) {
  const auto all = static_cast<int>(entries.size());
  const int from = all - std::clamp(count, 0, all);
  Json out = Json::array();
  for (int i = from; i < all; ++i)
    out.push_back(entries[static_cast<size_t>(i)]);
  return out;
}

}  // namespace

void KernelHistory::add(int number, const std::string& input) {
  inputs_.push_back({number, input});
}

Json KernelHistory::get_tail_impl(int count, bool, bool output) const {
  Json all = Json::array();
  for (const Input& input : inputs_)
    all.push_back(entry(input.number, input.text, output));
  return reply(last_of(all, count));
}

Json KernelHistory::get_range_impl(int session, int start, int stop, bool,
                                   bool output) const {
  Json found = Json::array();
  for (const Input& input : inputs_)
    if (session == 0 && input.number >= start && input.number < stop)
      found.push_back(entry(input.number, input.text, output));
  return reply(std::move(found));
}

Json KernelHistory::search_impl(const std::string& pattern, bool, bool output,
                                int count, bool unique) const {
  Json found = Json::array();
  std::set<std::string> seen;
  // The newest of those that are alike.
  for (auto input = inputs_.rbegin(); input != inputs_.rend(); ++input) {
    if (fnmatch(pattern.c_str(), input->text.c_str(), 0) != 0) continue;
    if (unique && !seen.insert(input->text).second) continue;
    found.push_back(entry(input->number, input->text, output));
  }
  std::reverse(found.begin(), found.end());
  return reply(last_of(found, count));
}

}  // namespace unisono::host
