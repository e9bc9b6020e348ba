#include "host/session/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lang/source/stdlib.h"
#include "runtime/cluster/cluster_device.h"
#include "runtime/files/file.h"
#include "runtime/files/unfinished_file.h"

namespace unisono::host {
namespace {

using Kind = Recorder::Kind;

std::string megabytes(int64_t bytes) {
  return fmt::format("{:.3f}", static_cast<double>(bytes) / 1e6);
}

std::string device_name(Session& session, int device) {
  if (device == Recorder::host) return "host";
  return session.runtime().devices()[device]->name();
}

double microseconds(Recorder::Clock::duration time) {
  return std::chrono::duration<double, std::micro>(time).count();
}

std::string quoted(const std::string& text) {
  using nlohmann::json;
  return json(text).dump(-1, ' ', true, json::error_handler_t::replace);
}

const char* kind_name(Kind kind) {
  switch (kind) {
    case Kind::kernel: return "kernel";
    case Kind::copy: return "copy";
    case Kind::collective: return "collective";
    case Kind::wait: return "wait";
    case Kind::host: return "host call";
    case Kind::compile: return "compile";
    case Kind::loop: return "loop";
  }
  __builtin_unreachable();
}

/// The places of what a kernel computes, "train.uni:12:5", the first in the
/// program before those in the library.
std::vector<std::string> places_of(Session& session,
                                   const std::vector<uint32_t>& sources) {
  std::vector<std::string> own, library;
  for (uint32_t source : sources) {
    const lang::Span span = session.walk().source_span(source);
    if (!span) continue;
    (lang::is_in_stdlib(span) ? library : own).push_back(lang::to_string(span));
  }
  own.insert(own.end(), library.begin(), library.end());
  return own;
}

/// What an event is called: a collective as in the source, `psum(x, dev)`.
std::string event_name(Session& session, const Recorder::Event& event) {
  std::string name = event.name;
  if (event.source) {
    const lang::Span span = session.walk().source_span(event.source);
    if (span) name = span.text();
  }
  if (event.kind == Kind::copy) {
    return fmt::format("copy {} → {}", device_name(session, event.from),
                       device_name(session, event.device));
  }
  if (event.kind == Kind::wait) return "wait for " + name;
  if (event.kind == Kind::loop) return name.substr(0, name.find('\n'));
  return name.empty() ? kind_name(event.kind) : name;
}

/// The numbers of threads in a trace: devices, then the host, then what devices
/// do beside something else.
int row_of(Session& session, int device) {
  return device == Recorder::host
             ? static_cast<int>(session.runtime().devices().size())
             : device;
}

/// The row of each event. A GPU copies while it computes: what begins before
/// the one before it in its row has ended is in the next row of its device.
/// Exchanges of processes, which travel while CPU devices compute, have one.
std::vector<int> rows_of(Session& session,
                         const std::vector<Recorder::Event>& events,
                         std::map<int, std::string>& beside) {
  std::vector<size_t> order(events.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, {},
                    [&](size_t i) { return std::pair(events[i].start, i); });
  struct Row {
    int number;
    Recorder::Clock::time_point until;
  };
  std::map<int, std::vector<Row>> rows;  // by device
  std::map<int, int> exchanges;
  int next = row_of(session, Recorder::host) + 1;
  std::vector<int> out(events.size());
  for (const size_t i : order) {
    const Recorder::Event& event = events[i];
    out[i] = row_of(session, event.device);
    if (event.device == Recorder::host) continue;
    Device& device = *session.runtime().devices()[event.device];
    if (!device.queue()) {
      if (event.kind != Kind::collective || !cluster_device(device)) continue;
      const auto [row, is_new] = exchanges.try_emplace(event.device, next);
      if (is_new) beside[next++] = device.name() + ", exchanges";
      out[i] = row->second;
      continue;
    }
    auto& of_device = rows[event.device];
    auto row = std::ranges::find_if(
        of_device, [&](const Row& each) { return each.until <= event.start; });
    if (row == of_device.end()) {
      const bool is_first = of_device.empty();
      of_device.push_back({is_first ? out[i] : next, {}});
      row = of_device.end() - 1;
      if (!is_first)
        beside[next++] = device_name(session, event.device) + ", beside";
    }
    row->until = event.end;
    out[i] = row->number;
  }
  return out;
}

/// Programs that read traces number processes from 1 on.
int pid_of(const TracedProcess& process) { return process.number + 1; }

std::string event_json(Session& session, const TracedProcess& process,
                       const Recorder::Event& event, int row) {
  std::string text = fmt::format(
      R"({{"name":{},"cat":"{}","ph":"X","pid":{},"tid":{},"ts":{:.3f},)"
      R"("dur":{:.3f})",
      quoted(event_name(session, event)), kind_name(event.kind),
      pid_of(process), row, microseconds(event.start - process.start),
      microseconds(event.end - event.start));
  if (event.kind == Kind::copy || event.kind == Kind::collective)
    text += fmt::format(R"(,"args":{{"bytes":{}}})", event.bytes);
  if (event.kind == Kind::loop)
    text += fmt::format(R"(,"args":{{"turns":{}}})", event.turns);
  if (event.kind == Kind::kernel) {
    std::string places;
    for (const std::string& place : places_of(session, event.sources))
      places += (places.empty() ? "" : ",") + quoted(place);
    text += fmt::format(R"(,"args":{{"source":{},"places":[{}]}})",
                        quoted(session.kernel_line(event.sources)), places);
  }
  return text + "}";
}

using Row = std::pair<std::string, Recorder::Total>;

double milliseconds_of(const Recorder::Total& total) {
  return std::chrono::duration<double, std::milli>(total.time).count();
}

/// The rows that took longest, each as `line` has it, below a heading.
std::string longest(std::vector<Row> rows, const std::string& heading,
                    const std::function<std::string(const Row&)>& line) {
  constexpr size_t most = 20;
  if (rows.empty()) return "";
  std::ranges::sort(rows, [](const Row& a, const Row& b) {
    return a.second.time > b.second.time;
  });
  std::string text = heading;
  for (const Row& row : std::span(rows).first(std::min(rows.size(), most)))
    text += line(row);
  if (rows.size() > most)
    text += fmt::format("and {} more\n", rows.size() - most);
  return text;
}

using ByLine = std::map<std::string, Recorder::Total>;

ByLine kernels_by_line(Session& session, const Recorder& recorder) {
  ByLine by_line;
  for (const auto& [sources, total] : recorder.kernels()) {
    Recorder::Total& all = by_line[session.kernel_line(sources)];
    all.count += total.count;
    all.time += total.time;
  }
  return by_line;
}

/// What took longest, by the line that it computes.
std::string kernel_table(const ByLine& by_line) {
  return longest({by_line.begin(), by_line.end()},
                 fmt::format("{:>10} {:>12}  {}\n", "launches", "kernel ms",
                             "computes, last of all"),
                 [](const Row& row) {
                   return fmt::format("{:>10} {:>12.3f}  {}\n",
                                      row.second.count,
                                      milliseconds_of(row.second), row.first);
                 });
}

/// The loops of the host that went on as code.
std::string loop_table(Session& session, const Recorder& recorder) {
  std::vector<Row> rows;
  for (const auto& [source, total] : recorder.loops())
    rows.emplace_back(session.kernel_line({source}), total);
  return longest(std::move(rows),
                 fmt::format("{:>10} {:>12}  {}\n", "turns", "loop ms",
                             "loop that went on as code"),
                 [](const Row& row) {
                   return fmt::format("{:>10} {:>12.3f}  {}\n",
                                      row.second.turns,
                                      milliseconds_of(row.second), row.first);
                 });
}

std::string row_json(int pid, int row, const std::string& name) {
  return fmt::format(
      R"({{"name":"thread_name","ph":"M","pid":{},"tid":{},)"
      R"("args":{{"name":{}}}}},)"
      "\n"
      R"({{"name":"thread_sort_index","ph":"M","pid":{},"tid":{},)"
      R"("args":{{"sort_index":{}}}}})",
      pid, row, quoted(name), pid, row, row);
}

/// The devices whose work this process does.
std::vector<const Device*> own_devices(Session& session) {
  std::vector<const Device*> out;
  for (const Device* device : session.runtime().devices())
    if (is_here(*device)) out.push_back(device);
  return out;
}

/// What a GPU's pool has, and the limit, where there is one or the other.
std::string memory_line(const Device& device) {
  if (device.bytes_held() == device.bytes_in_use() &&
      device.memory_limit() == 0)
    return "";
  std::string line = fmt::format(
      "memory of {}: {} MB in use, {} MB held", device.name(),
      megabytes(device.bytes_in_use()), megabytes(device.bytes_held()));
  if (device.memory_limit() > 0)
    line += fmt::format(", limit {} MB", megabytes(device.memory_limit()));
  return line + "\n";
}

}  // namespace

std::string statistics(Session& session, const Recorder& recorder) {
  std::string devices, memory, rest;
  auto milliseconds = [](const Recorder::Total& total) {
    return fmt::format("{:.3f}", milliseconds_of(total));
  };
  for (const Device* device : own_devices(session)) {
    auto total = [&](Kind kind) {
      return recorder.total(kind, device->index());
    };
    devices += fmt::format(
        "{:<8} {:>10} {:>12} {:>12} {:>12} {:>12} {:>12}\n", device->name(),
        total(Kind::kernel).count, milliseconds(total(Kind::kernel)),
        total(Kind::collective).count, megabytes(total(Kind::collective).bytes),
        milliseconds(total(Kind::wait)), megabytes(device->peak_bytes()));
    memory += memory_line(*device);
  }
  for (const auto& [pair, total] : recorder.copies()) {
    rest += fmt::format("copied {} → {}: {} bytes in {} {}\n",
                        device_name(session, pair.first),
                        device_name(session, pair.second), total.bytes,
                        total.count, total.count == 1 ? "copy" : "copies");
  }
  const int64_t on_disk = session.compiler().kernels_found();
  auto counted = [](int64_t count, const char* noun) {
    return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
  };
  rest +=
      fmt::format("compiled {}, {}{}, in {} ms; {} found theirs\n",
                  counted(session.compiler().programs_compiled(), "program"),
                  counted(session.compiler().kernels_generated(), "kernel"),
                  on_disk > 0 ? fmt::format(" ({} more on disk)", on_disk) : "",
                  milliseconds(recorder.total(Kind::compile, Recorder::host)),
                  counted(recorder.cache_hits(), "call"));
  nlohmann::json kernels = nlohmann::json::array();
  for (const auto& [line, total] : kernels_by_line(session, recorder))
    kernels.push_back({line, total.count, total.time.count()});
  const nlohmann::json out = {{"devices", devices},
                              {"memory", memory},
                              {"kernels", std::move(kernels)},
                              {"loops", loop_table(session, recorder)},
                              {"rest", rest}};
  return out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// Loops of the host, copies and compilations are the same in all processes.
std::string stats_table(std::span<const std::string> processes) {
  std::string devices, memory, loops, rest;
  ByLine kernels;
  for (const std::string& process : processes) {
    const auto read = nlohmann::json::parse(process);
    devices += read["devices"];
    memory += read["memory"];
    for (const auto& kernel : read["kernels"]) {
      Recorder::Total& total = kernels[kernel[0]];
      total.count += kernel[1].get<int64_t>();
      total.time += std::chrono::nanoseconds(kernel[2].get<int64_t>());
    }
    if (!rest.empty()) continue;
    loops = read["loops"];
    rest = read["rest"];
  }
  return fmt::format("{:<8} {:>10} {:>12} {:>12} {:>12} {:>12} {:>12}\n",
                     "device", "launches", "kernels ms", "collectives",
                     "their MB", "waits ms", "peak MB") +
         devices + memory + kernel_table(kernels) + loops + rest;
}

/// In its first line is how many events were not kept.
std::string traced_events(Session& session, const Recorder& recorder,
                          const TracedProcess& process) {
  std::string text = fmt::format(
      "{}\n"
      R"({{"name":"process_name","ph":"M","pid":{},"tid":0,)"
      R"("args":{{"name":{}}}}})",
      recorder.dropped(), pid_of(process), quoted(process.name));
  const std::vector<Recorder::Event> events = recorder.events();
  std::map<int, std::string> names;
  for (const Device* device : own_devices(session))
    names[row_of(session, device->index())] = device->name();
  names[row_of(session, Recorder::host)] = "host";
  const std::vector<int> rows = rows_of(session, events, names);
  for (const auto& [row, name] : names)
    text += ",\n" + row_json(pid_of(process), row, name);
  // Every process knows of each copy; it is shown where it ends.
  for (size_t i = 0; i < events.size(); ++i)
    if (names.contains(rows[i]))
      text += ",\n" + event_json(session, process, events[i], rows[i]);
  return text;
}

Status write_trace(const std::string& path,
                   std::span<const std::string> parts) {
  std::string text = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
  int64_t dropped = 0;
  for (const std::string& part : parts) {
    const size_t line = part.find('\n');
    dropped += std::stoll(part.substr(0, line));
    if (&part != parts.data()) text += ",\n";
    text += std::string_view(part).substr(line + 1);
  }
  text += fmt::format("\n],\"otherData\":{{\"dropped\":{}}}}}\n", dropped);
  const std::string folder = std::filesystem::path(path).parent_path().string();
  remove_abandoned(folder.empty() ? "." : folder);
  return write_text(path, text);
}

}  // namespace unisono::host
