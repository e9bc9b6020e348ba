#include "runtime/cluster/host_mover.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

namespace unisono {
namespace {

std::unique_ptr<char[]> memory_of(const Transfer& transfer) {
  return std::make_unique_for_overwrite<char[]>(
      static_cast<size_t>(transfer.bytes));
}

class HostMover final : public Mover {
 public:
  explicit HostMover(Cluster& cluster) : cluster_(cluster) {}

  std::string name() const override { return "host memory"; }
  bool waits() const override { return true; }
  Status move(std::span<const Transfer> transfers, std::span<const int> others,
              uint64_t fingerprint) override;

 private:
  Status fetch(std::span<const Transfer> transfers);
  Status bring(std::span<const Transfer> transfers);
  bool is_sent(const Transfer& transfer) const {
    return transfer.from.process == cluster_.process();
  }

  Cluster& cluster_;
  /// Of bytes on their way out, each once, and of those that come, in order.
  std::vector<std::unique_ptr<char[]>> sent_, received_;
  std::vector<Piece> outgoing_, incoming_;  // by transfer
};

/// Bytes that go to several devices leave theirs once.
Status HostMover::fetch(std::span<const Transfer> transfers) {
  using Key = std::tuple<Queue*, void*, int64_t>;
  std::map<Key, void*> known;
  std::map<Queue*, std::vector<Queue::Read>> reads;
  outgoing_.assign(transfers.size(), {});
  sent_.clear();
  for (size_t i = 0; i < transfers.size(); ++i) {
    const Transfer& transfer = transfers[i];
    if (!is_sent(transfer)) continue;
    const Transfer::End& from = transfer.from;
    void*& copy = known[{from.queue, from.data, transfer.bytes}];
    if (!copy) {
      copy = sent_.emplace_back(memory_of(transfer)).get();
      reads[from.queue].push_back({copy, from.data, transfer.bytes});
    }
    outgoing_[i] = {copy, transfer.bytes};
  }
  for (const auto& [queue, list] : reads) TRY(queue->read(list, lane));
  return Unit{};
}

Status HostMover::bring(std::span<const Transfer> transfers) {
  for (size_t i = 0; i < transfers.size(); ++i)
    if (const Transfer& transfer = transfers[i]; !is_sent(transfer))
      TRY(transfer.to.queue->write(transfer.to.data, incoming_[i].data,
                                   transfer.bytes, lane));
  return Unit{};
}

Status HostMover::move(std::span<const Transfer> transfers,
                       std::span<const int> others, uint64_t fingerprint) {
  TRY(fetch(transfers));
  received_.clear();
  incoming_.assign(transfers.size(), {});
  std::vector<Message> sends, receives;
  for (const int process : others) {
    sends.push_back({process});
    receives.push_back({process});
  }
  const auto add = [](std::vector<Message>& messages, int process,
                      const Piece& piece) {
    std::ranges::find(messages, process, &Message::process)
        ->pieces.push_back(piece);
  };
  for (size_t i = 0; i < transfers.size(); ++i) {
    const Transfer& transfer = transfers[i];
    if (is_sent(transfer)) {
      add(sends, transfer.to.process, outgoing_[i]);
      continue;
    }
    incoming_[i] = {received_.emplace_back(memory_of(transfer)).get(),
                    transfer.bytes};
    add(receives, transfer.from.process, incoming_[i]);
  }
  TRY(cluster_.exchange(sends, receives, fingerprint));
  return bring(transfers);
}

}  // namespace

std::unique_ptr<Mover> make_host_mover(Cluster& cluster) {
  return std::make_unique<HostMover>(cluster);
}

}  // namespace unisono
