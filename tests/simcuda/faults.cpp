// The fault plan: which call, which operation, which allocation shall fail.
#include "simulator.h"

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
  for (const FaultRule& rule : configuration.faults) {
    if (rule.kind != FaultRule::Kind::call) continue;
    if (rule.function.empty()) {
      if (strikes(rule, all_calls_)) return rule.code;
    } else if (rule.function == row.name || rule.function == row.symbol) {
      if (strikes(rule, of_this)) return rule.code;
    }
  }
  return success;
}

Code Simulator::planned_operation_fault(DeviceState& device) {
  const uint64_t now = ++device.operations;
  for (const FaultRule& rule : configuration.faults) {
    if (rule.kind != FaultRule::Kind::operation) continue;
    if (rule.device >= 0 && rule.device != device.number) continue;
    if (strikes(rule, now)) return rule.code;
  }
  return success;
}

bool Simulator::planned_out_of_memory(DeviceState& device, uint64_t bytes) {
  device.allocated += bytes;
  for (const FaultRule& rule : configuration.faults) {
    if (rule.kind == FaultRule::Kind::bytes &&
        (rule.device < 0 || rule.device == device.number) &&
        device.allocated > rule.count) {
      device.allocated -= bytes;
      return true;
    }
  }
  return false;
}

}  // namespace simcuda
