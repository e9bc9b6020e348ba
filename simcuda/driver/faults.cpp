// The fault plan: which call, which operation, which allocation shall fail.
#include "simcuda/driver/simulator.h"

namespace simcuda {
namespace {

bool strikes(const FaultRule& rule, uint64_t now) {
  return rule.sticky ? now >= rule.count : now == rule.count;
}

}  // namespace

Code Simulator::planned_call_fault(Entry entry) {
  const uint64_t of_this = ++calls_[static_cast<size_t>(entry)];
  ++all_calls_;
  const EntryRow& row = entry_row(entry);
  if (configuration.log) log_.push_back(entry);
  for (const FaultRule& rule : faults_) {
    if (rule.kind != FaultRule::Kind::call) continue;
    const bool any = rule.function.empty();
    if (!any && rule.function != row.name && rule.function != row.symbol)
      continue;
    if (strikes(rule, any ? all_calls_ : of_this)) {
      failed_ = row.symbol;
      context_refused_ |=
          entry == Entry::ctx_push_current || entry == Entry::ctx_set_current;
      return rule.code;
    }
  }
  return success;
}

Code Simulator::planned_operation_fault(DeviceState& device) {
  const uint64_t now = ++device.operations;
  for (const FaultRule& rule : faults_) {
    if (rule.kind != FaultRule::Kind::operation) continue;
    if (rule.device >= 0 && rule.device != device.number) continue;
    if (strikes(rule, now)) return rule.code;
  }
  return success;
}

bool Simulator::planned_out_of_memory(DeviceState& device, uint64_t bytes) {
  device.allocated += bytes;
  for (const FaultRule& rule : faults_) {
    if (rule.kind == FaultRule::Kind::bytes &&
        (rule.device < 0 || rule.device == device.number) &&
        device.allocated > rule.count) {
      device.allocated -= bytes;
      return true;
    }
  }
  return false;
}

void Simulator::plan(std::vector<FaultRule> rules) {
  faults_ = std::move(rules);
  failed_ = nullptr;
  log_.clear();
  for (FaultRule& rule : faults_) {
    switch (rule.kind) {
      case FaultRule::Kind::call:
        if (rule.function.empty()) rule.count += all_calls_;
        for (size_t e = 0; e < calls_.size(); ++e) {
          const EntryRow& row = entry_row(static_cast<Entry>(e));
          if (rule.function == row.name || rule.function == row.symbol)
            rule.count += calls_[e];
        }
        break;
      case FaultRule::Kind::operation:
      case FaultRule::Kind::bytes: {
        // Of any device: of the one that has done most.
        uint64_t most = 0;
        for (const auto& device : devices) {
          if (rule.device >= 0 && rule.device != device->number) continue;
          most = std::max(most, rule.kind == FaultRule::Kind::bytes
                                    ? device->allocated
                                    : device->operations);
        }
        rule.count += most;
      }
    }
  }
}

}  // namespace simcuda
