#include "host/session/source_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "lang/source/utf8.h"

namespace unisono::host {
namespace {

namespace fs = std::filesystem;

bool is_source(const fs::path& path) {
  return path.extension() == ".uni" || path.extension() == ".md";
}

}  // namespace

Result<std::vector<std::string>> source_files(
    const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (!fs::exists(status))
      return Error{.message =
                       fmt::format("`{}` is not there", lang::visible(path))};
    if (!fs::is_directory(status)) {
      if (!is_source(path))
        return Error{.message = fmt::format("`{}` is no .uni and no .md file",
                                            lang::visible(path))};
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
      else if (is_source(at->path()) && at->is_regular_file(error))
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
