// What all processes do together, in trees and rounds of messages.
#include <algorithm>
#include <utility>

#include "runtime/cluster/cluster.h"
#include "runtime/cluster/rounds.h"
#include "runtime/tuning/tuning.h"

namespace unisono {
namespace {

/// Adjacent pieces are one.
void add_piece(std::vector<Piece>& pieces, char* data, int64_t bytes) {
  if (bytes == 0) return;
  if (!pieces.empty() &&
      static_cast<char*>(pieces.back().data) + pieces.back().bytes == data)
    pieces.back().bytes += bytes;
  else
    pieces.push_back({data, bytes});
}

}  // namespace

Status Cluster::broadcast(int from, void* data, int64_t bytes) {
  const int n = processes();
  const int own = (process() - from + n) % n;
  const auto process_at = [&](int place) { return (place + from) % n; };
  const bool in_parts = n > 2 && bytes >= tuning().least_cut_broadcast;
  // The part of place k begins here.
  const auto at = [&](int k) { return in_parts ? bytes / n * k : 0; };
  const auto end = [&](int k) { return in_parts && k < n ? at(k) : bytes; };
  const auto bytes_at = [&](int k, int count) -> Piece {
    return {static_cast<char*>(data) + at(k), end(k + count) - at(k)};
  };

  const TreePlace place = tree_place(n, own);
  TRY(finish_asides());
  count_exchange();
  waits_ = own;  // who is nearer to the root knows better
  if (place.parent >= 0) {
    const Message receive{process_at(place.parent),
                          {bytes_at(own, place.size)}};
    TRY(transfer({}, {&receive, 1}, 0));
  }
  std::vector<Message> sends;
  for (const int child : place.children)
    sends.push_back(
        {process_at(child), {bytes_at(child, tree_place(n, child).size)}});
  if (!sends.empty()) TRY(transfer(sends, {}, 0));
  waits_ = 0;
  if (!in_parts) return Unit{};

  for (const GatherRound& round : gather_rounds(n, own)) {
    const auto parts = [&](int first) {
      std::vector<Piece> pieces;
      for (int i = 0; i < round.count; ++i) {
        const Piece part = bytes_at((first + i) % n, 1);
        add_piece(pieces, static_cast<char*>(part.data), part.bytes);
      }
      return pieces;
    };
    const Message send{process_at(round.to), parts(round.sends)};
    const Message receive{process_at(round.from), parts(round.receives)};
    TRY(exchange({&send, 1}, {&receive, 1}, 0));
  }
  return Unit{};
}

Status Cluster::all_gather(void* all, int64_t bytes) {
  const int n = processes();
  for (const GatherRound& round : gather_rounds(n, process())) {
    const auto parts = [&](int first) {
      std::vector<Piece> pieces;
      for (int i = 0; i < round.count; ++i)
        add_piece(pieces, static_cast<char*>(all) + (first + i) % n * bytes,
                  bytes);
      return pieces;
    };
    const Message send{round.to, parts(round.sends)};
    const Message receive{round.from, parts(round.receives)};
    TRY(exchange({&send, 1}, {&receive, 1}, 0));
  }
  return Unit{};
}

Result<std::vector<std::string>> Cluster::gather_texts(std::string_view own) {
  const auto n = static_cast<size_t>(processes());
  std::vector<int64_t> sizes(n);
  sizes[static_cast<size_t>(process())] = static_cast<int64_t>(own.size());
  TRY(all_gather(sizes.data(), sizeof sizes[0]));
  const TreePlace place = tree_place(processes(), process());
  // Of the processes from this one on that are below it.
  std::vector<std::string> texts(static_cast<size_t>(place.size));
  texts[0] = own;
  const auto pieces = [&](size_t first, int count) {
    std::vector<Piece> out;
    for (size_t p = first; p < first + static_cast<size_t>(count); ++p)
      out.push_back({texts[p].data(), static_cast<int64_t>(texts[p].size())});
    return out;
  };
  std::vector<Message> receives;
  for (const int child : place.children) {
    const auto first = static_cast<size_t>(child - process());
    const int count = tree_place(processes(), child).size;
    for (int i = 0; i < count; ++i)
      texts[first + static_cast<size_t>(i)].resize(
          static_cast<size_t>(sizes[static_cast<size_t>(child + i)]));
    receives.push_back({child, pieces(first, count)});
  }
  count_exchange();
  waits_ = -process();
  if (!receives.empty()) TRY(transfer({}, receives, 0));
  if (place.parent >= 0) {
    const Message send{place.parent, pieces(0, place.size)};
    TRY(transfer({&send, 1}, {}, 0));
    texts.clear();
  }
  waits_ = 0;
  return texts;
}

Status Cluster::combine_xor(std::span<uint32_t> numbers) {
  TRY(finish_asides());
  const TreePlace place = tree_place(processes(), process());
  const auto bytes = static_cast<int64_t>(numbers.size_bytes());
  count_exchange();
  waits_ = -process();  // who is further from the root knows better
  std::vector<std::vector<uint32_t>> parts;
  std::vector<Message> receives;
  for (const int child : place.children) {
    parts.emplace_back(numbers.size());
    receives.push_back({child, {{parts.back().data(), bytes}}});
  }
  if (!receives.empty()) TRY(transfer({}, receives, 0));
  for (const auto& part : parts)
    for (size_t i = 0; i < numbers.size(); ++i) numbers[i] ^= part[i];
  if (place.parent >= 0) {
    const Message send{place.parent, {{numbers.data(), bytes}}};
    TRY(transfer({&send, 1}, {}, 0));
  }
  waits_ = 0;
  return Unit{};
}

Status Cluster::barrier(uint64_t fingerprint) {
  for (const GatherRound& round : gather_rounds(processes(), process())) {
    const Message send{round.to}, receive{round.from};
    TRY(exchange({&send, 1}, {&receive, 1}, fingerprint));
  }
  return Unit{};
}

/// Each place of the tree waits for those below it, and passes on what they
/// have printed.
Status Cluster::settle() {
  TRY(finish_asides());
  if (runs_settled_ == own_.runs) return process() > 0 ? glance() : Unit{};
  return settle_runs();
}

Status Cluster::settle_runs() {
  runs_settled_ = own_.runs;
  const TreePlace place = tree_place(processes(), process());
  count_exchange();
  waits_ = -process();
  if (!place.children.empty()) {
    std::vector<Message> receives;
    for (const int child : place.children) receives.push_back({child});
    TRY(transfer({}, receives, 0));
  }
  if (process() == 0) {
    waits_ = 0;
    print_lines(nullptr);
    return Unit{};
  }
  clear();
  std::string lines;
  Piece piece;
  if (!lines_.empty()) {
    lines = lines_text();
    piece = {lines.data(), static_cast<int64_t>(lines.size())};
    add_outgoing(place.parent, Kind::lines, {&piece, 1}, 0);
  }
  add_outgoing(place.parent, Kind::data, {}, 0);
  if (!pump()) return stopped();
  TRY(outcome());
  lines_.clear();
  waits_ = 0;
  // At the program's end process 0 may have seen all by now, and be gone.
  if (finished_) return Unit{};
  return glance();
}

}  // namespace unisono
