#include "host/session/source_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "lang/source/utf8.h"

namespace unisono::host {
namespace {

namespace fs = std::filesystem;
using Endings = std::initializer_list<std::string_view>;

bool fits(const fs::path& path, Endings endings) {
  return std::ranges::find(endings, path.extension().string()) != endings.end();
}

}  // namespace

Result<std::vector<std::string>> source_files(
    const std::vector<std::string>& paths, Endings endings) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (!fs::exists(status))
      return Error{.message =
                       fmt::format("`{}` is not there", lang::visible(path))};
    if (!fs::is_directory(status)) {
      if (!fits(path, endings))
        return Error{.message =
                         fmt::format("`{}` is no {} file", lang::visible(path),
                                     fmt::join(endings, " and no "))};
      files.push_back(path);
      continue;
    }
    std::vector<std::string> found;
    fs::recursive_directory_iterator at(
        path, fs::directory_options::skip_permission_denied, error);
    for (; !error && at != fs::recursive_directory_iterator();
         at.increment(error)) {
      const std::string name = at->path().filename().string();
      if (name.starts_with('.') && name != "." && at->is_directory(error))
        at.disable_recursion_pending();
      else if (fits(at->path(), endings) && at->is_regular_file(error))
        found.push_back(at->path().lexically_normal().string());
    }
    if (error)
      return Error{.message =
                       fmt::format("cannot read `{}`: {}", lang::visible(path),
                                   error.message())};
    std::ranges::sort(found);
    files.insert(files.end(), found.begin(), found.end());
  }
  return files;
}

}  // namespace unisono::host
