#include "host/session/devices.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "host/session/library.h"
#include "runtime/cuda/device.h"
#include "runtime/files/disk_cache.h"

namespace unisono::host {

std::optional<int> number_in(std::string_view text) {
  int number = 0;
  const char *begin = text.data(), *end = begin + text.size();
  const auto [stop, problem] = std::from_chars(begin, end, number);
  if (text.empty() || problem != std::errc() || stop != end || number < 0)
    return std::nullopt;
  return number;
}

namespace {

std::optional<int> count_in(std::string_view text) {
  const std::optional<int> count = number_in(text);
  return count && *count >= 1 && *count <= max_devices ? count : std::nullopt;
}

bool take_prefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

/// "cuda:0,cuda:1"
std::optional<std::vector<int>> gpus_in(std::string_view text) {
  std::vector<int> gpus;
  for (;;) {
    const size_t comma = text.find(',');
    std::string_view item = text.substr(0, comma);
    if (!take_prefix(item, "cuda:")) return std::nullopt;
    const std::optional<int> gpu = number_in(item);
    if (!gpu || gpus.size() == max_devices) return std::nullopt;
    gpus.push_back(*gpu);
    if (comma == std::string_view::npos) return gpus;
    text.remove_prefix(comma + 1);
  }
}

/// Of machine code on disk.
constexpr int64_t most_cache_bytes = int64_t{256} << 20;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

/// The simulated driver's library.
Result<std::string> simulator_path() {
  constexpr std::string_view name = "libsimcuda.so";
  auto found = find_library_beside(name);
  if (found) return found;
  return Error{
      .kind = Error::Kind::device_lost,
      .message = fmt::format(
          "simulated GPUs need the library {0}, {1}\n"
          "it comes with the program in a bundle; from the sources, `./dev "
          "build simcuda` makes build/{0}: copy it there, or say where it is, "
          "UNISONO_CUDA_DRIVER=PATH/{0}",
          name, found.error().message)};
}

}  // namespace

Result<std::string> find_library_beside(std::string_view name) {
  std::array<char, 4096> path{};
  const ssize_t length = readlink("/proc/self/exe", path.data(), path.size());
  const std::filesystem::path folder =
      std::filesystem::path(
          std::string(path.data(),
                      length > 0 ? static_cast<size_t>(length) : 0))
          .parent_path();
  std::vector<std::string> searched;
  for (const char* place : {"", "../lib", "../lib64", "../lib/unisono", "lib",
                            "build", "../build"}) {
    const std::filesystem::path there = (folder / place).lexically_normal();
    std::error_code error;
    if (std::filesystem::exists(there / name, error))
      return (there / name).string();
    searched.push_back(there.string());
  }
  // Inside another program, this is a library that the simulator lies beside.
  Dl_info own{};
  if (dladdr(reinterpret_cast<const void*>(&parse_devices), &own) &&
      own.dli_fname) {
    const auto there = std::filesystem::path(own.dli_fname).parent_path();
    std::error_code error;
    if (std::filesystem::exists(there / name, error))
      return (there / name).string();
  }
  const std::string plain(name);
  if (void* library = dlopen(plain.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    dlclose(library);
    return plain;
  }
  return Error{.kind = Error::Kind::io,
               .message = fmt::format(
                   "which is not beside the program ({}), in its lib folder, "
                   "or on the library path",
                   searched[0])};
}

Result<DeviceRequest> parse_devices(std::string_view text) {
  using Kind = DeviceRequest::Kind;
  std::string_view rest = text;
  if (text == "cuda") return DeviceRequest{.kind = Kind::cuda, .gpus = {}};
  if (take_prefix(rest, "cpu:")) {
    if (auto count = count_in(rest))
      return DeviceRequest{.count = *count, .gpus = {}};
  } else if (take_prefix(rest, "sim:")) {
    if (auto count = count_in(rest))
      return DeviceRequest{.kind = Kind::sim, .count = *count, .gpus = {}};
  } else if (auto gpus = gpus_in(text)) {
    return DeviceRequest{.kind = Kind::cuda, .gpus = std::move(*gpus)};
  }
  return Error{.message = fmt::format(
                   "--devices expects cpu:N with N from 1 to {}, such as "
                   "cpu:8, or cuda, cuda:0,cuda:1, sim:N; got `{}`",
                   max_devices, text)};
}

Status parse_memory_limit(std::string_view text, DeviceRequest& request) {
  double number = 0;
  const char *begin = text.data(), *end = begin + text.size();
  const auto [unit, problem] = std::from_chars(begin, end, number);
  const std::string_view rest(unit, static_cast<size_t>(end - unit));
  constexpr std::string_view units = "KMGT";
  const size_t which = rest.empty() ? units.npos : units.find(rest[0]);
  const bool is_share = rest == "%";
  double bytes = number;
  if (which != units.npos)
    bytes *= std::pow(1024.0, static_cast<double>(which + 1));
  const bool known =
      is_share
          ? number <= 100
          : bytes >= 1 && bytes < 9e18 &&
                (rest.empty() || (which != units.npos &&
                                  (rest.size() == 1 || rest.substr(1) == "iB" ||
                                   rest.substr(1) == "B")));
  if (problem != std::errc() || !(number > 0) || !known)
    return Error{.message = fmt::format(
                     "--memory-limit expects bytes, such as 20G or 512M, or a "
                     "share, such as 75%; got `{}`",
                     text)};
  if (is_share)
    request.memory_share = number / 100;
  else
    request.memory_limit = static_cast<int64_t>(bytes);
  return Unit{};
}

std::string kernel_cache_folder(DeviceRequest::Kind kind) {
  if (const char* folder = std::getenv("UNISONO_CACHE"))
    return std::string_view(folder) == "off" ? "" : folder;
  if (kind == DeviceRequest::Kind::sim) return "";
  // Relative paths are not meant, says the XDG base directory specification.
  const std::string caches = environment("XDG_CACHE_HOME");
  if (caches.starts_with('/')) return caches + "/unisono";
  const std::string home = environment("HOME");
  return home.starts_with('/') ? home + "/.cache/unisono" : "";
}

std::shared_ptr<DiskCache> open_kernel_cache(const std::string& folder,
                                             std::string* why_not) {
  if (folder.empty()) return nullptr;
  auto cache = DiskCache::open(folder, most_cache_bytes);
  if (cache) return std::move(*cache);
  if (why_not) *why_not = cache.error().message;
  return nullptr;
}

namespace {

/// The folder of a bundle or wheel with code for GPUs; simulated ones have one
/// only if $UNISONO_CUBINS names it.
std::string ready_cubins(DeviceRequest::Kind kind) {
  if (const char* folder = std::getenv("UNISONO_CUBINS")) return folder;
  if (kind == DeviceRequest::Kind::sim) return "";
  const auto folder = find_library_beside("cubins");
  std::error_code error;
  return folder && std::filesystem::is_directory(*folder, error) ? *folder : "";
}

}  // namespace

Result<std::vector<std::unique_ptr<Device>>> open_devices(
    const DeviceRequest& request, std::shared_ptr<DiskCache> cache,
    std::vector<std::string> names) {
  using Kind = DeviceRequest::Kind;
  if (request.kind == Kind::cpu) return std::vector<std::unique_ptr<Device>>();
  CudaOptions options;
  options.driver = environment("UNISONO_CUDA_DRIVER");
  options.gpus = request.gpus;
  options.names = std::move(names);
  options.memory_limit = request.memory_limit;
  options.memory_share = request.memory_share;
  options.cublas = request.cublas;
  options.cublas_library = environment("UNISONO_CUBLASLT");
  if (request.kind == Kind::sim) {
    options.kind = "sim";
    if (options.driver.empty()) {
      Result<std::string> found = simulator_path();
      if (!found) return found.error();
      options.driver = std::move(*found);
    }
    options.configuration = fmt::format("devices = {}", request.count);
    if (!request.report_leaks &&
        environment("SIMCUDA").find("leaks") == std::string::npos)
      options.configuration += "; leaks = off";
  }
  options.cache = std::move(cache);
  options.cubins = ready_cubins(request.kind);
  return open_cuda_devices(options);
}

Result<int> count_gpus() {
  return count_cuda_devices(environment("UNISONO_CUDA_DRIVER"));
}

std::string describe_gpus() {
  auto lines = describe_cuda(environment("UNISONO_CUDA_DRIVER"),
                             environment("UNISONO_CUBLASLT"),
                             environment("UNISONO_NCCL"));
  if (!lines) return lines.error().message + "\n";
  const std::string folder = kernel_cache_folder(DeviceRequest::Kind::cuda);
  if (folder.empty()) {
    lines->push_back("compiled kernels are not kept");
  } else {
    const auto cache = DiskCache::open(folder, most_cache_bytes);
    lines->push_back(
        cache ? fmt::format("compiled kernels are kept in {}", folder)
              : fmt::format("compiled kernels are not kept: {}",
                            cache.error().message));
  }
  return fmt::format("{}\n", fmt::join(*lines, "\n"));
}

}  // namespace unisono::host
