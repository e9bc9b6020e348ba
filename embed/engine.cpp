#include "embed/engine.h"

#include <utility>
#include <vector>

#include "embed/options.h"
#include "host/session/devices.h"

namespace unisono::embed {

Engine::Engine(const UnisonoEngineOptions& options)
    : device_bytes_(options.device_bytes),
      reference_only_(options.reference_only != 0) {
  if (options.workers < 0 || options.workers > 1024)
    refuse("an engine has 0 to 1024 workers, and 0 is one per processor");
  if (options.device_bytes < 0) refuse("`device_bytes` is negative");
  pool_ = std::make_shared<Pool>(options.workers);
  auto request =
      host::parse_devices(options.devices ? options.devices : "cpu:1");
  if (!request) refuse(request.error().message);
  // A program around this library may end with all that it has: Python does.
  request->report_leaks = false;
  cpu_devices_ = request->count;
  const auto cache =
      host::open_kernel_cache(options.cache_folder ? options.cache_folder : "");
  compiler_ =
      std::make_shared<jit::Compiler>(jit::CompilerOptions{.cache = cache});
  if (request->kind == host::DeviceRequest::Kind::cpu) return;
  auto devices = host::open_devices(*request, cache);
  if (!devices) refuse(devices.error().message, UNISONO_DEVICE);
  gpus_ = std::make_shared<Runtime>(std::move(*devices), options.workers);
}

std::shared_ptr<Runtime> Engine::machine(int64_t device_bytes) const {
  if (gpus_) return gpus_;
  return std::make_shared<Runtime>(
      cpu_devices_, pool_, device_bytes > 0 ? device_bytes : device_bytes_);
}

size_t Engine::device_count() const {
  return gpus_ ? gpus_->devices().size() : static_cast<size_t>(cpu_devices_);
}

}  // namespace unisono::embed

using namespace unisono::embed;

uint32_t unisono_abi_version(void) { return UNISONO_ABI_VERSION; }
const char* unisono_version(void) { return UNISONO_VERSION; }

UnisonoError* unisono_engine_create(const UnisonoEngineOptions* options,
                                    UnisonoEngine** engine) {
  return guarded([&] {
    if (!engine) refuse("unisono_engine_create: `engine` is null");
    auto made = std::make_unique<UnisonoEngine>();
    made->engine = std::make_shared<Engine>(read_options(options));
    *engine = made.release();
  });
}

UnisonoEngine* unisono_engine_retain(UnisonoEngine* engine) {
  return retain(engine);
}
void unisono_engine_release(UnisonoEngine* engine) { release(engine); }

size_t unisono_engine_device_count(const UnisonoEngine* engine) {
  return engine ? engine->engine->device_count() : 0;
}
