#pragma once
#include <string>
#include <vector>

#include "runtime/result.h"

namespace unisono::host {

/// The programs (.uni) and pages (.md) among files and in folders, in order:
/// those of a folder by name, without hidden ones. What is not there, or is a
/// file of another kind, is an error in one line.
Result<std::vector<std::string>> source_files(
    const std::vector<std::string>& paths);

}  // namespace unisono::host
