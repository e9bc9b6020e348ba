#include "host/jupyter_install.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>

#include "host/commands.h"
#include "host/session/devices.h"
#include "lang/source/utf8.h"
#include "runtime/files/file.h"

namespace unisono::host {
namespace {

namespace fs = std::filesystem;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

/// Where Jupyter looks for what is the user's, as `jupyter --data-dir` says.
std::string user_data_folder() {
  if (const std::string own = environment("JUPYTER_DATA_DIR"); !own.empty())
    return own;
  if (const std::string data = environment("XDG_DATA_HOME"); !data.empty())
    return data + "/jupyter";
  const std::string home = environment("HOME");
  return home.empty() ? "" : home + "/.local/share/jupyter";
}

/// What Jupyter takes for a kernel's name.
bool is_kernel_name(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  });
}

bool is_in_path(const char* program) {
  std::string path = environment("PATH");
  for (size_t at = 0; at <= path.size();) {
    const size_t end = std::min(path.find(':', at), path.size());
    const std::string file = path.substr(at, end - at) + "/" + program;
    if (access(file.c_str(), X_OK) == 0) return true;
    at = end + 1;
  }
  return false;
}

std::string kernel_json(const std::string& kernel,
                        const JupyterOptions& options) {
  using Json = nlohmann::ordered_json;
  Json argv = {kernel, "-f", "{connection_file}"};
  std::string shown = "Unisono";
  if (!options.devices.empty()) {
    argv.insert(argv.end(), {"--devices", options.devices});
    shown += fmt::format(" ({})", options.devices);
  }
  const Json all = {{"argv", argv},
                    {"display_name", shown},
                    {"language", "unisono"},
                    {"interrupt_mode", "signal"},
                    {"metadata", {{"debugger", false}}}};
  return all.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

int fails(const std::string& message) {
  tell(fmt::format("error: {}\n", lang::visible(message)));
  return 1;
}

}  // namespace

int install_kernel(const JupyterOptions& options) {
  if (options.user && options.prefix)
    return wrong_usage("--user and --prefix are two places: choose one");
  if (options.prefix && options.prefix->empty())
    return wrong_usage("--prefix expects a folder; got ``");
  if (!is_kernel_name(options.name))
    return wrong_usage(
        fmt::format("--name expects letters a to z, digits, `-`, `_` and `.`; "
                    "got `{}`",
                    options.name));
  if (!options.devices.empty())
    if (const auto request = parse_devices(options.devices); !request)
      return wrong_usage(request.error().message);
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  const fs::path kernel = self.parent_path() / "unisono-jupyter";
  if (error || access(kernel.c_str(), X_OK) != 0)
    return fails(
        fmt::format("the kernel is not there: {}; it is built where "
                    "xeus-dev (2.4) is installed, and belongs beside this "
                    "program",
                    kernel.string()));
  const std::string data =
      options.prefix ? *options.prefix + "/share/jupyter" : user_data_folder();
  if (data.empty()) return fails("there is no HOME; --prefix names a folder");
  const fs::path folder = fs::absolute(data, error) / "kernels" / options.name;
  fs::create_directories(folder, error);
  if (error)
    return fails(
        fmt::format("cannot make {}: {}", folder.string(), error.message()));
  const std::string file = folder / "kernel.json";
  const Status written = write_text(file, kernel_json(kernel, options));
  if (!written)
    return fails(
        fmt::format("cannot write {}: {}", file, written.error().message));
  write_output(fmt::format("the kernel `{}` is in {}\n", options.name,
                           lang::visible(folder.string())));
  if (!is_in_path("jupyter"))
    write_output(
        "Jupyter itself is not in PATH: `pip install jupyterlab`, or Debian's "
        "jupyter-notebook\n");
  return 0;
}

}  // namespace unisono::host
