#include "tests/conformance/devices/machine.h"

#include <unistd.h>

namespace unisono::device_test {
namespace {

CudaOptions options_for(Kind kind, int count) {
  CudaOptions options;
  if (kind == Kind::sim) {
    options.kind = "sim";
    options.driver = simulator();
    options.configuration =
        "devices=" + std::to_string(count) + ";seed=1;races=fault";
  } else if (const char* path = std::getenv("UNISONO_CUDA_DRIVER")) {
    options.driver = path;
  }
  return options;
}

}  // namespace

std::string simulator() {
  std::array<char, 4096> path{};
  const ssize_t length = readlink("/proc/self/exe", path.data(), path.size());
  const std::string file(path.data(),
                         length > 0 ? static_cast<size_t>(length) : 0);
  return file.substr(0, file.rfind('/') + 1) + "libsimcuda.so";
}

std::vector<std::unique_ptr<Device>> open_gpus(Kind kind, int count) {
  CudaOptions options = options_for(kind, count);
  auto devices = open_cuda_devices(options);
  if (!devices) return {};
  const int gpus = static_cast<int>(devices->size());
  if (gpus == count) return std::move(*devices);
  devices->clear();
  for (int i = 0; i < count; ++i) options.gpus.push_back(gpus >= count ? i : 0);
  devices = open_cuda_devices(options);
  if (!devices) return {};
  return std::move(*devices);
}

std::unique_ptr<Runtime> open_machine(Kind kind, int count) {
  if (kind == Kind::host) return std::make_unique<Runtime>(count);
  auto devices = open_gpus(kind, count);
  if (devices.empty()) return nullptr;
  return std::make_unique<Runtime>(std::move(devices));
}

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> list = [] {
    std::vector<Kind> found;
    const char* wanted = std::getenv("UNISONO_TEST_DEVICES");
    const std::string choice = wanted ? wanted : "host,sim,cuda";
    for (Kind kind : {Kind::host, Kind::sim, Kind::cuda})
      if (choice.find(kind_name(kind)) != choice.npos && open_machine(kind, 1))
        found.push_back(kind);
    return found;
  }();
  return list;
}

}  // namespace unisono::device_test
