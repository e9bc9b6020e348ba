#pragma once
// The files that tools look into.
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/result.h"

namespace unisono::host {

/// These files, and those with one of the endings (".uni") in these folders, in
/// order; hidden folders are left out. Errors: a path that is not there, or
/// that has another ending.
Result<std::vector<std::string>> source_files(
    const std::vector<std::string>& paths,
    std::initializer_list<std::string_view> endings);

}  // namespace unisono::host
