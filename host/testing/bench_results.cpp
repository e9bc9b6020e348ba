#include "host/testing/bench_results.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "lang/source/utf8.h"

namespace unisono::host {
namespace {

using Json = nlohmann::ordered_json;

/// Raised when a program that reads the results would have to change.
constexpr int schema_version = 1;

constexpr size_t name_width = 32;

/// "  13.6   81": a rate in billions, and percent of the peak.
std::string rate(double work, double seconds, double peak) {
  const double each_second = work / seconds;
  const std::string part =
      peak > 0 ? fmt::format("{:.0f}", 100 * each_second / peak) : "-";
  return fmt::format(" {:>9.3g} {:>4}", each_second / 1e9, part);
}

bool is_number(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number() &&
         found->get<double>() > 0;
}

bool is_text(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string();
}

}  // namespace

std::string full_name(const std::string& file, const std::string& name) {
  return fmt::format("{}: {}", file, name);
}

Change change_of(const EarlierResult& before, const EarlierResult& now) {
  const double ratio = now.median / before.median;
  if (ratio < 1 - noise_between_runs && now.high < before.low)
    return Change::faster;
  if (ratio > 1 + noise_between_runs && now.low > before.high)
    return Change::slower;
  return Change::none;
}

std::string table_head(const std::optional<Peak>& peak) {
  std::string out;
  if (peak)
    out = fmt::format("peak, measured: {:.3g} GB/s, {:.3g} Gflop/s of f32\n",
                      peak->bytes / 1e9, peak->flops / 1e9);
  return out + fmt::format("{:{}} {:>9} {:>21} {:>9} {:>4} {:>9} {:>4}\n", "",
                           name_width, "median", "95 % interval", "GB/s", "%",
                           "Gflop/s", "%");
}

std::string table_row(const BenchResult& result,
                      const std::optional<Peak>& peak,
                      const EarlierResult* before) {
  const Measurement& times = result.times;
  std::string out = fmt::format(
      "{:{}} {:>9} {:>21}", lang::visible(full_name(result.file, result.name)),
      name_width, time_text(times.median),
      time_text(times.low) + " … " + time_text(times.high));
  out += result.work.kernels
             ? rate(result.work.bytes, times.median, peak ? peak->bytes : 0) +
                   rate(result.work.flops, times.median, peak ? peak->flops : 0)
             : fmt::format(" {:>9} {:>4} {:>9} {:>4}", "-", "-", "-", "-");
  if (before) {
    out += fmt::format("  {:.2f} of {}", times.median / before->median,
                       time_text(before->median));
    switch (change_of(*before, {times.median, times.low, times.high})) {
      case Change::none: break;
      case Change::faster: out += ": faster"; break;
      case Change::slower: out += ": slower"; break;
    }
  }
  if (!times.stable) out += "  (not stable)";
  return out + "\n";
}

std::string to_json(const std::vector<BenchResult>& results,
                    const std::optional<Peak>& peak,
                    const std::vector<std::string>& devices) {
  Json all = Json::array();
  for (const BenchResult& result : results) {
    const Measurement& times = result.times;
    Json one = {{"file", result.file},
                {"name", result.name},
                {"line", result.line},
                {"median", times.median},
                {"low", times.low},
                {"high", times.high},
                {"mean", times.mean},
                {"least", times.samples.front()},
                {"samples", times.samples.size()},
                {"runs", times.runs},
                {"stable", times.stable},
                {"bytes", nullptr},
                {"flops", nullptr}};
    if (result.work.kernels) {
      one["bytes"] = result.work.bytes;
      one["flops"] = result.work.flops;
    }
    all.push_back(std::move(one));
  }
  Json out = {{"version", schema_version},
              {"devices", devices},
              {"peak", nullptr},
              {"benches", std::move(all)}};
  if (peak)
    out["peak"] = {{"bytes_per_second", peak->bytes},
                   {"flops_per_second", peak->flops}};
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<EarlierResults> from_json(const std::string& text) {
  const auto wrong = [](std::string message) {
    return Error{.kind = Error::Kind::invalid_file,
                 .message = std::move(message)};
  };
  const Json all = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (all.is_discarded() || !all.is_object() || !all.contains("version") ||
      !all.contains("benches") || !all["benches"].is_array())
    return wrong("it holds no results of `unisono bench --json`");
  if (all["version"] != schema_version)
    return wrong(fmt::format("its version is {}; {} is known",
                             all["version"].dump(), schema_version));
  EarlierResults out;
  for (const Json& one : all["benches"]) {
    const bool whole = one.is_object() && is_text(one, "file") &&
                       is_text(one, "name") && is_number(one, "median") &&
                       is_number(one, "low") && is_number(one, "high");
    if (!whole) return wrong("one of its results is not whole");
    out[full_name(one["file"], one["name"])] = {one["median"], one["low"],
                                                one["high"]};
  }
  return out;
}

}  // namespace unisono::host
