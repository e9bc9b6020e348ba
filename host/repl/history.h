#pragma once
// What was typed in sessions before, in a file that they share.
#include <string>
#include <string_view>
#include <vector>

#include "runtime/result.h"

namespace unisono::host {

/// Where it is: $UNISONO_HISTORY ("off", or empty: nowhere), else
/// unisono/history in the user's state folder (XDG). "" is nowhere.
std::string history_path();

/// A file of one input in each line. Several sessions may add to it at once.
/// Not thread-safe.
class HistoryFile {
 public:
  /// "" is no file.
  explicit HistoryFile(std::string path) : path_(std::move(path)) {}
  /// The inputs in it, the newest last, each once. What is no input, whatever
  /// the reason, is left out; no file has none. A file that has grown too large
  /// is made smaller.
  std::vector<std::string> load() const;
  /// At its end. Long inputs, and those that begin with a space, are not kept.
  Status add(std::string_view input) const;

 private:
  std::string path_;
};

}  // namespace unisono::host
