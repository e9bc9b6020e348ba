// What went wrong without failing, and what was never given back.
#include <algorithm>
#include <cstdio>

#include "simcuda/driver/simulator.h"

namespace simcuda {
namespace {
constexpr size_t max_findings = 1000;
}  // namespace

DeviceMemory& DeviceState::memory() { return simulator->memory; }
void DeviceState::report(const std::string& finding) {
  simulator->report(finding);
}
bool DeviceState::strict_reads() const {
  return simulator->configuration.unwritten == Configuration::Unwritten::fault;
}

bool DeviceState::may_read(const Allocation& a) const {
  switch (a.kind) {
    case Allocation::Kind::host:
    case Allocation::Kind::registered: return true;
    case Allocation::Kind::device:
    case Allocation::Kind::module:
      return a.device == number || peers.has(a.device);
    case Allocation::Kind::pool:
      return a.device == number ||
             static_cast<const PoolObject*>(a.pool)->readers.has(number);
  }
  return false;
}
bool DeviceState::may_write(const Allocation& a) const {
  if (a.kind != Allocation::Kind::pool || a.device == number)
    return may_read(a);
  return static_cast<const PoolObject*>(a.pool)->writers.has(number);
}

bool Simulator::interrupted() const {
  return std::any_of(devices.begin(), devices.end(), [](const auto& device) {
    const bool* flag = device->interrupt.load();
    return flag && __atomic_load_n(flag, __ATOMIC_RELAXED);
  });
}

void Simulator::report(const std::string& finding) {
  if ((configuration.unwritten == Configuration::Unwritten::off ||
       interrupted()) &&
      (finding.find("was never written") != std::string::npos ||
       finding.find("no thread wrote") != std::string::npos)) {
    return;
  }
  std::lock_guard lock(findings_mutex_);
  if (findings_.size() < max_findings || findings_.count(finding))
    ++findings_[finding];
}

std::string Simulator::findings() const {
  std::lock_guard lock(findings_mutex_);
  std::string text;
  for (const auto& [finding, times] : findings_) {
    text += finding;
    if (times > 1) text += " (" + std::to_string(times) + " times)";
    text += "\n";
  }
  return text;
}

uint64_t Simulator::finding_count() const {
  std::lock_guard lock(findings_mutex_);
  return findings_.size();
}

void Simulator::left_behind(DeviceState& device) {
  auto note = [&](const char* what, size_t n) {
    if (n == 0) return;
    left_behind_ += "leak: " + std::to_string(n) + " " + what + " of device " +
                    std::to_string(device.number) +
                    " when its context was released\n";
  };
  auto count = [&](const auto& objects) {
    return static_cast<size_t>(
        std::count_if(objects.begin(), objects.end(), [&](const auto& entry) {
          return entry.second->device == &device && !entry.second->given_back;
        }));
  };
  note("streams", count(streams));
  note("events", count(events));
  note("modules", count(modules));
  note("memory pools", count(pools));
  note("executable graphs", count(execs));
  note("link states", count(links));
  size_t allocations = 0, pinned = 0;
  for (const auto& allocation : memory.all()) {
    if (is_given_back(*allocation)) continue;
    allocations += allocation->device == device.number;
    pinned += allocation->context == device.number;
  }
  note("allocations", allocations);
  note("allocations of pinned memory", pinned);
}

void Simulator::refuse_back(const Returned& returned) {
  if (returned.context_of >= 0 && returned.context_of < configuration.devices)
    ++devices[static_cast<size_t>(returned.context_of)]->releases_refused;
  if (returned.handle == nullptr) return;
  void* const key = const_cast<void*>(returned.handle);
  const auto look = [&](auto&... maps) {
    const auto note = [&](auto& objects) {
      auto at = objects.find(key);
      if (at != objects.end()) at->second->given_back = true;
    };
    (note(maps), ...);
  };
  look(streams, events, modules, pools, graphs, execs, links);
  const auto address = reinterpret_cast<uint64_t>(key);
  const auto allocation = memory.find(address);
  if (allocation && allocation->begin == address) allocation->given_back = true;
}

std::string Simulator::leaks() {
  std::string text = left_behind_;
  for (const auto& allocation : memory.all()) {
    if (is_given_back(*allocation)) continue;
    text += "leak: " + memory.describe(allocation->begin) + "\n";
  }
  auto count = [&](const char* what, const auto& objects) {
    const auto n = std::count_if(
        objects.begin(), objects.end(),
        [](const auto& entry) { return !entry.second->given_back; });
    if (n != 0) text += "leak: " + std::to_string(n) + " " + what + "\n";
  };
  count("streams", streams);
  count("events", events);
  count("modules", modules);
  count("memory pools", pools);
  count("graphs", graphs);
  count("executable graphs", execs);
  count("link states", links);
  for (const auto& device : devices) {
    const int kept = device->retained - device->releases_refused;
    if (kept > 0) {
      text += "leak: the primary context of device " +
              std::to_string(device->number) + " is retained " +
              std::to_string(kept) + " times\n";
    }
  }
  return text;
}

void Simulator::print_report() {
  std::string text = findings();
  if (configuration.leaks) text += leaks();
  if (text.empty()) return;
  FILE* to = stderr;
  if (!configuration.report.empty()) {
    to = std::fopen(configuration.report.c_str(), "a");
    if (to == nullptr) return;
  }
  size_t begin = 0;
  while (begin < text.size()) {
    size_t end = text.find('\n', begin);
    std::fprintf(to, "simcuda: %.*s\n", static_cast<int>(end - begin),
                 text.data() + begin);
    begin = end + 1;
  }
  if (to != stderr) std::fclose(to);
}

}  // namespace simcuda
