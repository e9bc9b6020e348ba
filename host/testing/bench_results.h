#pragma once
// Results of `unisono bench`: as a table, as JSON, and beside earlier ones.
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "host/testing/measure.h"
#include "host/testing/peak.h"
#include "runtime/result.h"

namespace unisono::host {

struct BenchResult {
  std::string file, name;
  int line = 1;
  Measurement times;
  Traffic work;  // of one run
};

/// What an earlier run found, seconds of one run.
struct EarlierResult {
  double median = 0, low = 0, high = 0;
};
/// By "FILE: NAME".
using EarlierResults = std::map<std::string, EarlierResult>;

/// "FILE: NAME", by which blocks are chosen and compared.
std::string full_name(const std::string& file, const std::string& name);

/// How two results differ. Times of one program differ from process to process,
/// too, which no interval of one of them knows: it takes more than this part.
inline constexpr double noise_between_runs = 0.05;
enum class Change { none, faster, slower };
/// There is one if the intervals do not overlap, and the medians differ by more
/// than noise_between_runs.
Change change_of(const EarlierResult& before, const EarlierResult& now);

/// The line above the results, and one for each.
std::string table_head(const std::optional<Peak>& peak);
std::string table_row(const BenchResult& result,
                      const std::optional<Peak>& peak,
                      const EarlierResult* before);

/// docs/command-line.md says what is in it.
std::string to_json(const std::vector<BenchResult>& results,
                    const std::optional<Peak>& peak,
                    const std::vector<std::string>& devices);
/// Reads what to_json wrote; invalid_file if it is something else.
Result<EarlierResults> from_json(const std::string& text);

}  // namespace unisono::host
