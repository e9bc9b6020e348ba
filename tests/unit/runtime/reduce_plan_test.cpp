// Plans of reductions among processes, followed for all processes at once with
// texts in place of numbers: what comes out is the members tree.
#include "runtime/cluster/reduce_plan.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>

#include "runtime/cluster/rounds.h"
#include "runtime/files/array_file.h"
#include "runtime/member_tree.h"

using namespace unisono;

namespace {

std::string tree(int64_t begin, int64_t end) {
  return member_tree(
      begin, end, [](int64_t i) { return std::to_string(i); },
      [](const std::string& a, const std::string& b) {
        return fmt::format("({} {})", a, b);
      });
}

/// What nodes make together, in the members tree over places begin ... end - 1.
std::string together(const ReducePlan& plan,
                     const std::vector<std::string>& values,
                     const std::vector<int>& from, int64_t begin, int64_t end) {
  for (const int node : from)
    if (plan.nodes[node].begin == begin && plan.nodes[node].end == end)
      return values[node];
  REQUIRE(end - begin > 1);
  const int64_t middle = begin + member_tree_left(end - begin);
  return fmt::format("({} {})", together(plan, values, from, begin, middle),
                     together(plan, values, from, middle, end));
}

struct Process {
  ReducePlan plan;
  std::vector<std::string> values;  // by node
  ElementRange range{0, 0};
};

void follow(const std::vector<int>& owners, bool cut) {
  CAPTURE(fmt::format("{}", fmt::join(owners, " ")));
  CAPTURE(cut);
  constexpr int64_t elements = 100'000;
  std::map<int, Process> processes;
  for (const int owner : owners) processes[owner];
  for (auto& [number, process] : processes) {
    process.plan = plan_reduction(owners, number, cut);
    process.values.resize(process.plan.nodes.size());
    process.range = {0, elements};
    for (int i = 0; i < process.plan.own_nodes; ++i) {
      const auto [begin, end] = process.plan.nodes[i];
      for (int64_t place = begin; place < end; ++place)
        REQUIRE(owners[place] == number);
      process.values[i] = tree(begin, end);
    }
  }
  const int rounds =
      count_reduce_rounds(static_cast<int>(processes.size()), cut);
  for (int k = 0; k < rounds; ++k) {
    // By sender and receiver: what goes there, and of which range.
    std::map<std::pair<int, int>, std::vector<std::string>> messages;
    std::map<std::pair<int, int>, std::pair<int64_t, int64_t>> ranges;
    for (auto& [number, process] : processes) {
      REQUIRE(process.plan.rounds.size() == static_cast<size_t>(rounds));
      const ReducePlan::Round& round = process.plan.rounds[k];
      for (const auto& transfer : round.sends) {
        const ElementRange part =
            part_of(process.range, transfer.part, round.parts);
        ranges[{number, transfer.process}] = {part.first, part.last};
        for (const int node : transfer.nodes) {
          REQUIRE(!process.values[node].empty());
          messages[{number, transfer.process}].push_back(process.values[node]);
        }
      }
    }
    for (auto& [number, process] : processes) {
      const ReducePlan::Round& round = process.plan.rounds[k];
      process.range = part_of(process.range, round.own, round.parts);
      for (const auto& transfer : round.receives) {
        const std::pair<int, int> key(transfer.process, number);
        const auto& message = messages[key];
        CHECK(ranges[key] ==
              std::pair(process.range.first, process.range.last));
        REQUIRE(message.size() == transfer.nodes.size());
        for (size_t i = 0; i < message.size(); ++i)
          process.values[transfer.nodes[i]] = message[i];
        messages.erase(key);
      }
      for (const ReducePlan::Merge& merge : round.merges) {
        const auto [begin, end] = process.plan.nodes[merge.node];
        process.values[merge.node] =
            together(process.plan, process.values, merge.from, begin, end);
      }
    }
    for (const auto& [key, message] : messages) CHECK(message.empty());
  }
  const std::string whole = tree(0, static_cast<int64_t>(owners.size()));
  int64_t covered = 0;
  std::set<int64_t> begins;
  for (const auto& [number, process] : processes) {
    CHECK(process.values[process.plan.result] == whole);
    if (!cut) continue;
    covered += process.range.last - process.range.first;
    begins.insert(process.range.first);
  }
  if (cut) CHECK(covered == elements);
  if (cut) CHECK(begins.size() == processes.size());
}

}  // namespace

TEST_CASE("whatever a process tells another, all come to the members tree") {
  std::mt19937_64 random(7);
  for (const int count : {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 15, 16, 21, 32}) {
    for (const int each : {1, 2, 3}) {
      std::vector<int> owners;
      for (int p = 0; p < count; ++p) owners.insert(owners.end(), each, 3 * p);
      for (const bool cut : {false, true}) follow(owners, cut);
      std::vector<int> turned = owners;
      for (size_t i = 0; i < turned.size(); ++i)
        turned[i] = 3 * static_cast<int>(i % static_cast<size_t>(count));
      for (const bool cut : {false, true}) follow(turned, cut);
      std::shuffle(owners.begin(), owners.end(), random);
      for (const bool cut : {false, true}) follow(owners, cut);
    }
  }
}

TEST_CASE("a process sends about log2 N messages") {
  std::vector<int> owners(4096);
  for (int p = 0; p < 4096; ++p) owners[p] = p;
  for (const bool cut : {false, true}) {
    const ReducePlan plan = plan_reduction(owners, 1234, cut);
    CHECK(plan.rounds.size() == 12);
    for (const auto& round : plan.rounds) {
      CHECK(round.sends.size() == 1);
      CHECK(round.sends[0].nodes.size() == 1);
    }
  }
  owners.resize(4095);  // 3 · 3 · 5 · 7 · 13
  const ReducePlan whole = plan_reduction(owners, 1234, false);
  CHECK(whole.rounds.size() == 12);
  for (const auto& round : whole.rounds) {
    CHECK(round.sends.size() == 1);
    CHECK(round.sends[0].nodes.size() <= 24);
  }
  const ReducePlan cut = plan_reduction(owners, 1234, true);
  size_t messages = 0;
  for (const auto& round : cut.rounds) messages += round.sends.size();
  CHECK(messages == 2 + 2 + 4 + 6 + 12);
}

TEST_CASE("rounds bring every part to everybody, trees have every place") {
  for (const int n : {1, 2, 3, 5, 8, 13, 16, 100}) {
    CAPTURE(n);
    std::vector<std::set<int>> parts(static_cast<size_t>(n));
    for (int p = 0; p < n; ++p) parts[p] = {p};
    for (int k = 0; k < count_rounds(n); ++k) {
      auto after = parts;
      for (int p = 0; p < n; ++p) {
        const GatherRound round = gather_rounds(n, p)[k];
        const GatherRound sender = gather_rounds(n, round.from)[k];
        CHECK(sender.to == p);
        CHECK(sender.sends == round.receives);
        CHECK(sender.count == round.count);
        for (int i = 0; i < round.count; ++i) {
          CHECK(parts[round.from].contains((round.receives + i) % n));
          // Nothing comes twice.
          CHECK(after[p].insert((round.receives + i) % n).second);
        }
      }
      parts = after;
    }
    for (const auto& all : parts) CHECK(all.size() == static_cast<size_t>(n));
    int below = 0;
    for (int p = 0; p < n; ++p) {
      const TreePlace place = tree_place(n, p);
      int size = 1;
      for (const int child : place.children) {
        CHECK(tree_place(n, child).parent == p);
        size += tree_place(n, child).size;
        ++below;
      }
      CHECK(size == place.size);
    }
    CHECK(below == n - 1);
  }
}

TEST_CASE("checksums of parts are the checksum of all") {
  std::mt19937_64 random(3);
  for (const int64_t size : {1, 7, 64, 4096, 100'003}) {
    std::vector<uint8_t> bytes(static_cast<size_t>(size));
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
    PartialChecksum whole(size);
    whole.add(0, bytes);
    const uint32_t expected = whole.get() ^ crc_of_zeros(size);
    // Rows that two have in turn.
    PartialChecksum parts[] = {PartialChecksum(size), PartialChecksum(size)};
    const int64_t row = std::max<int64_t>(size / 9, 1);
    for (int64_t at = 0; at < size; at += row)
      parts[at / row % 2].add(
          at, std::span(bytes).subspan(
                  static_cast<size_t>(at),
                  static_cast<size_t>(std::min(row, size - at))));
    CHECK((parts[0].get() ^ parts[1].get() ^ crc_of_zeros(size)) == expected);
  }
  // As zlib's crc32 of "123456789".
  PartialChecksum known(9);
  const std::string_view digits = "123456789";
  known.add(0, {reinterpret_cast<const uint8_t*>(digits.data()), 9});
  CHECK((known.get() ^ crc_of_zeros(9)) == 0xcbf43926);
}
