#include "simcuda/machine/topology.h"

#include <algorithm>
#include <charconv>
#include <numeric>

namespace simcuda {

using namespace unisono::cuda;

namespace {

struct CodeRow {
  Code code;
  const char* name;
  std::string driver_name;
  const char* text;
  bool sticky;
};
const std::vector<CodeRow>& code_rows() {
  static const std::vector<CodeRow> rows = [] {
    std::vector<CodeRow> list;
    // The driver's names are ours in capitals.
    auto add = [&](Code code, const char* name, const char* text, bool sticky) {
      std::string full = code == success ? "CUDA_" : "CUDA_ERROR_";
      for (const char* c = name; *c; ++c)
        full += *c >= 'a' && *c <= 'z' ? static_cast<char>(*c - 32) : *c;
      if (code == device_assert) full = "CUDA_ERROR_ASSERT";
      list.push_back({code, name, full, text, sticky});
    };
#define CUDA_ERROR(name, value, text) add(name, #name, text, false);
#define CUDA_STICKY_ERROR(name, value, text) add(name, #name, text, true);
#include "runtime/cuda/errors.def"
    return list;
  }();
  return rows;
}
const CodeRow* row_of(Code code) {
  for (const CodeRow& row : code_rows())
    if (row.code == code) return &row;
  return nullptr;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}
std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t' ||
                           text.front() == '\r')) {
    text.remove_prefix(1);
  }
  while (!text.empty() &&
         (text.back() == ' ' || text.back() == '\t' || text.back() == '\r')) {
    text.remove_suffix(1);
  }
  return text;
}

/// A number, with a unit of bytes (K, M, G, T) when `units`.
bool number(std::string_view text, uint64_t& value, bool units = false) {
  uint64_t scale = 1;
  if (units && !text.empty()) {
    switch (text.back()) {
      case 'K': scale = uint64_t{1} << 10; break;
      case 'M': scale = uint64_t{1} << 20; break;
      case 'G': scale = uint64_t{1} << 30; break;
      case 'T': scale = uint64_t{1} << 40; break;
      default: break;
    }
    if (scale > 1) text.remove_suffix(1);
  }
  auto [end, status] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc() || end != text.data() + text.size()) return false;
  if (value > (uint64_t{1} << 50) / scale) return false;
  value *= scale;
  return true;
}

/// `9.0` is 90.
bool version(std::string_view text, uint64_t& value) {
  uint64_t major = 0, minor = 0;
  size_t dot = text.find('.');
  if (dot == std::string_view::npos || !number(text.substr(0, dot), major) ||
      !number(text.substr(dot + 1), minor) || minor > 9) {
    return false;
  }
  value = major * 10 + minor;
  return true;
}

/// Reads a list, one value for each device from the first.
template <class Read, class Set>
bool each(Configuration& c, std::string_view text, Read&& read, Set&& set) {
  auto parts = split(text, ',');
  if (parts.size() > 64) return false;
  c.models.resize(64);
  uint64_t value = 0;
  for (size_t d = 0; d < c.models.size(); ++d) {
    if (d < parts.size() && !read(trim(parts[d]), value)) return false;
    set(c.models[d], value);
  }
  return true;
}

bool read_peers(Configuration& c, std::string_view text) {
  constexpr int n = 64;
  c.peers.assign(n, std::vector<bool>(n, false));
  auto link = [&](auto&& linked) {
    for (int i = 0; i < n; ++i)
      for (int j = 0; j < n; ++j) c.peers[i][j] = i != j && linked(i, j);
  };
  if (text == "all") return link([](int, int) { return true; }), true;
  if (text == "none") return true;
  if (text == "ring") {
    // Closed when the number of devices is known; see complete().
    link([](int i, int j) { return i - j == 1 || j - i == 1; });
    c.peers[0][0] = true;  // the mark of a ring
    return true;
  }
  if (text.starts_with("islands:")) {
    uint64_t size = 0;
    if (!number(text.substr(8), size) || size == 0 || size > 64) return false;
    link([=](int i, int j) {
      return i / static_cast<int>(size) == j / static_cast<int>(size);
    });
    return true;
  }
  // Rows of 0 and 1.
  auto rows = split(text, '/');
  if (rows.size() > n) return false;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].size() != rows.size()) return false;
    for (size_t j = 0; j < rows.size(); ++j) {
      if (rows[i][j] != '0' && rows[i][j] != '1') return false;
      c.peers[i][j] = i != j && rows[i][j] == '1';
    }
  }
  return true;
}

/// `fail=FUNCTION:K:CODE[:sticky]`, `fault=DEVICE:K:CODE[:sticky]`,
/// `oom=DEVICE:BYTES`; `*` for any function or device.
bool read_fault(Configuration& c, FaultRule::Kind kind, std::string_view text) {
  auto parts = split(text, ':');
  FaultRule rule;
  rule.kind = kind;
  const bool bytes = kind == FaultRule::Kind::bytes;
  if (parts.size() < (bytes ? 2u : 3u) || parts.size() > (bytes ? 2u : 4u))
    return false;
  if (kind == FaultRule::Kind::call) {
    if (parts[0] != "*") rule.function = parts[0];
  } else if (parts[0] != "*") {
    uint64_t device = 0;
    if (!number(parts[0], device) || device >= 64) return false;
    rule.device = static_cast<int>(device);
  }
  if (!number(parts[1], rule.count, bytes)) return false;
  rule.code = out_of_memory;
  rule.sticky = bytes;
  if (!bytes && !code_named(parts[2], rule.code)) return false;
  if (parts.size() == 4) {
    if (parts[3] != "sticky") return false;
    rule.sticky = true;
  }
  c.faults.push_back(std::move(rule));
  return true;
}

bool read_schedule(Configuration& c, std::string_view text) {
  constexpr std::string_view names[] = {"fifo", "random", "newest", "starve",
                                        "lazy"};
  for (size_t i = 0; i < std::size(names); ++i) {
    if (text == names[i]) {
      c.schedule = static_cast<Configuration::Schedule>(i);
      return true;
    }
  }
  return false;
}

bool read_key(Configuration& c, std::string_view key, std::string_view value) {
  uint64_t n = 0;
  auto plain = [](std::string_view t, uint64_t& v) { return number(t, v); };
  auto size = [](std::string_view t, uint64_t& v) {
    return number(t, v, true);
  };
  if (key == "devices") {
    if (!number(value, n) || n > 64) return false;
    c.devices = static_cast<int>(n);
  } else if (key == "cc") {
    return each(c, value, version, [](DeviceModel& m, uint64_t v) {
      m.capability = static_cast<int>(v);
    });
  } else if (key == "memory") {
    return each(c, value, size,
                [](DeviceModel& m, uint64_t v) { m.memory = v; });
  } else if (key == "multiprocessors") {
    return each(c, value, plain, [](DeviceModel& m, uint64_t v) {
      m.multiprocessors = static_cast<int>(std::clamp<uint64_t>(v, 1, 1024));
    });
  } else if (key == "slow") {
    return each(c, value, plain, [](DeviceModel& m, uint64_t v) {
      m.slow = static_cast<int>(std::clamp<uint64_t>(v, 1, 1000));
    });
  } else if (key == "peers") {
    return read_peers(c, value);
  } else if (key == "seed") {
    if (!number(value, c.seed)) return false;
    // Seed 0 does all in order; the others go through the ways to reorder.
    c.schedule =
        c.seed == 0
            ? Configuration::Schedule::fifo
            : static_cast<Configuration::Schedule>(1 + (c.seed - 1) % 4);
  } else if (key == "schedule") {
    return read_schedule(c, value);
  } else if (key == "goes_on") {
    if (value != "0" && value != "1") return false;
    c.goes_on = value == "1";
  } else if (key == "threads") {
    if (!number(value, n) || n > 256) return false;
    c.threads = static_cast<int>(n);
  } else if (key == "fuel") {
    if (!number(value, n, true)) return false;
    c.fuel = static_cast<int64_t>(n);
  } else if (key == "driver") {
    if (!version(value, n)) return false;
    c.driver_version = static_cast<int>(n / 10 * 1000 + n % 10 * 10);
  } else if (key == "ptx") {
    if (!version(value, n)) return false;
    c.ptx_version = static_cast<int>(n);
  } else if (key == "unwritten") {
    if (value != "off" && value != "report" && value != "fault") return false;
    c.unwritten = value == "off"      ? Configuration::Unwritten::off
                  : value == "report" ? Configuration::Unwritten::report
                                      : Configuration::Unwritten::fault;
  } else if (key == "races") {
    using Races = LaunchShape::Races;
    if (value != "off" && value != "report" && value != "fault") return false;
    c.races = value == "off"      ? Races::off
              : value == "report" ? Races::report
                                  : Races::fault;
  } else if (key == "unwritten_shared") {
    if (value != "off" && value != "report") return false;
    c.unwritten_shared = value == "report";
  } else if (key == "reuse") {
    if (value != "0" && value != "1") return false;
    c.reuse = value == "1";
  } else if (key == "leaks") {
    if (value != "off" && value != "report") return false;
    c.leaks = value == "report";
  } else if (key == "log") {
    if (value != "on" && value != "off") return false;
    c.log = value == "on";
  } else if (key == "report") {
    c.report = value;
  } else if (key == "keep") {
    c.keep = value;
  } else if (key == "fail") {
    return read_fault(c, FaultRule::Kind::call, value);
  } else if (key == "fault") {
    return read_fault(c, FaultRule::Kind::operation, value);
  } else if (key == "oom") {
    return read_fault(c, FaultRule::Kind::bytes, value);
  } else {
    return false;
  }
  return true;
}

}  // namespace

int DeviceModel::shared_per_block_optin() const {
  if (capability >= 90) return 227 << 10;
  if (capability == 80 || capability == 87) return 163 << 10;
  if (capability >= 86) return 99 << 10;
  return 64 << 10;
}
int DeviceModel::shared_per_multiprocessor() const {
  return capability >= 80 ? shared_per_block_optin() + 1024 : 64 << 10;
}
int DeviceModel::threads_per_multiprocessor() const {
  if (capability == 75) return 1024;
  return capability == 86 || capability == 89 ? 1536 : 2048;
}
int DeviceModel::blocks_per_multiprocessor() const {
  if (capability == 75 || capability == 86) return 16;
  return capability == 89 ? 24 : 32;
}

bool configure(std::string_view text, Configuration& configuration,
               std::string& error) {
  for (std::string_view line : split(text, '\n')) {
    line = line.substr(0, line.find('#'));
    for (std::string_view pair : split(line, ';')) {
      pair = trim(pair);
      if (pair.empty()) continue;
      size_t equal = pair.find('=');
      std::string_view key = trim(pair.substr(0, equal));
      std::string_view value =
          equal == std::string_view::npos ? "" : trim(pair.substr(equal + 1));
      if (!read_key(configuration, key, value)) {
        error = "simcuda: cannot read `" + std::string(pair) + "`";
        return false;
      }
    }
  }
  return true;
}

void complete(Configuration& c) {
  c.models.resize(64);
  if (c.peers.empty()) read_peers(c, "all");
  if (c.peers[0][0]) {
    c.peers[0][0] = false;
    if (c.devices > 1)
      c.peers[0][c.devices - 1] = c.peers[c.devices - 1][0] = true;
  }
}

bool code_named(std::string_view text, Code& code) {
  for (const CodeRow& row : code_rows())
    if (text == row.name) return code = row.code, true;
  uint64_t value = 0;
  if (!number(text, value) || value == 0 || value > 999) return false;
  code = static_cast<Code>(value);
  return true;
}
const char* code_name(Code code) {
  const CodeRow* row = row_of(code);
  return row ? row->driver_name.c_str() : nullptr;
}
const char* code_text(Code code) {
  const CodeRow* row = row_of(code);
  return row ? row->text : nullptr;
}
bool is_sticky(Code code) {
  const CodeRow* row = row_of(code);
  return row && row->sticky;
}

}  // namespace simcuda
