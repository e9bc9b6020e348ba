#pragma once
// `unisono doc`: the manual, as HTML.
#include <string>
#include <string_view>
#include <vector>

#include "lang/source/diagnostics.h"
#include "lang/source/source.h"
#include "runtime/result.h"

namespace unisono::host {

struct ManualOptions {
  /// Programs (.uni), pages (.md), folders of them, and modules of the standard
  /// library. None: the manual of Unisono.
  std::vector<std::string> names;
  std::string folder = "manual";
  /// The manual of Unisono, too.
  bool all = false;
};

struct ManualWritten {
  std::string index;  // the path of the page to begin with
  size_t pages = 0, names = 0;
  /// Links in files that lead to nothing, each with its place: a line.
  std::vector<std::string> dead_links;
};

/// Makes the manual and writes it. Mistakes in files are reported, with a span
/// of a file in `sources`, and then nothing is written. Errors are of the
/// options, one line each, and of files.
Result<ManualWritten> write_manual(const ManualOptions& options,
                                   std::string_view version,
                                   lang::SourceMap& sources,
                                   lang::Diagnostics& diagnostics);

}  // namespace unisono::host
