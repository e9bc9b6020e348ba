#include "runtime/cuda/gpu.h"

#include <fmt/format.h>

#include <array>

#include "runtime/cuda/ready_cubins.h"
#include "runtime/tuning/tuning.h"

namespace unisono::cuda {
namespace {

/// What its `.version` says.
std::string_view ptx_version(std::string_view ptx) {
  constexpr std::string_view directive = ".version ";
  const size_t at = ptx.find(directive);
  if (at == std::string_view::npos) return "of no version";
  const std::string_view rest = ptx.substr(at + directive.size());
  return rest.substr(0, rest.find_first_not_of("0123456789."));
}

}  // namespace

Result<std::shared_ptr<Gpu>> Gpu::open(std::shared_ptr<const Driver> driver,
                                       int ordinal, std::string name,
                                       std::shared_ptr<DiskCache> cache,
                                       std::string cubins) {
  std::shared_ptr<Gpu> gpu(new Gpu(std::move(driver)));
  gpu->cache_ = std::move(cache);
  gpu->cubins_ = std::move(cubins);
  gpu->name_ = std::move(name);
  const Driver& cuda = gpu->driver();
  const std::string doing = fmt::format("opening {}", gpu->name_);
  auto attribute = [&](DeviceAttribute what, int& value) {
    return gpu->check(cuda.device_get_attribute(&value, what, gpu->device_),
                      doing);
  };
  Status done = gpu->check(cuda.device_get(&gpu->device_, ordinal), doing);
  if (!done) return done.error();
  int major = 0, minor = 0, pools = 0;
  done = attribute(DeviceAttribute::compute_capability_major, major);
  if (done) done = attribute(DeviceAttribute::compute_capability_minor, minor);
  if (done) done = attribute(DeviceAttribute::memory_pools_supported, pools);
  if (!done) return done.error();
  gpu->capability_ = 10 * major + minor;
  std::array<char, 256> model{};
  if (cuda.device_get_name(model.data(), model.size() - 1, gpu->device_) ==
      success)
    gpu->model_ = model.data();
  if (gpu->capability_ < 75 || pools == 0)
    return Error{
        .kind = Error::Kind::device_lost,
        .message = fmt::format(
            "{} ({}) has compute capability {}.{}{}; 7.5 or newer is needed",
            gpu->name_, gpu->model_, major, minor,
            pools ? "" : " and no memory pools")};
  done =
      gpu->check(cuda.primary_ctx_retain(&gpu->context_, gpu->device_), doing);
  if (!done) return done.error();
  return gpu;
}

Gpu::~Gpu() {
  if (!context_) return;
  {
    CurrentContext current(*this);
    for (auto& [code, loaded] : loaded_)
      if (loaded.module) driver_->module_unload(loaded.module);
  }
  driver_->primary_ctx_release(device_);
}

Status Gpu::check(Code code, std::string_view doing) {
  if (code == success) return Unit{};
  Error error = driver_->error(code, doing);
  if (is_sticky(code)) {
    std::lock_guard lock(mutex_);
    if (!lost_) {
      why_lost_ = error;
      lost_ = true;
    }
  }
  return error;
}

Error Gpu::lost_error() const {
  Error error = why_lost_;
  error.message = fmt::format("{} was lost earlier: {}", name_, error.message);
  return error;
}

Result<Gpu::Kernel> Gpu::kernel(
    const std::shared_ptr<const GridCode>& grid_code,
    const std::string& entry) {
  if (lost()) return lost_error();
  std::unique_lock lock(mutex_);
  auto at = loaded_.find(grid_code.get());
  CurrentContext current(*this);
  if (at == loaded_.end()) {
    if (loaded_.size() >= tuning().gpu_most_modules) unload_unknown();
    Loaded loaded{.code = grid_code};
    lock.unlock();
    TRY(load(loaded));
    lock.lock();
    auto [place, added] =
        loaded_.try_emplace(grid_code.get(), std::move(loaded));
    if (!added) driver_->module_unload(loaded.module);  // another thread's
    at = place;
  }
  Loaded& loaded = at->second;
  Kernel kernel{.shared_bytes = loaded.shared_bytes};
  if (auto known = loaded.functions.find(entry);
      known != loaded.functions.end()) {
    kernel.function = known->second;
    return kernel;
  }
  Code code = driver_->module_get_function(&kernel.function, loaded.module,
                                           entry.c_str());
  if (code == success && kernel.shared_bytes)
    code = driver_->func_set_attribute(
        kernel.function, FunctionAttribute::max_dynamic_shared_size_bytes,
        static_cast<int>(kernel.shared_bytes));
  lock.unlock();
  TRY(check(code,
            fmt::format("looking for the kernel `{}` on {}", entry, name_)));
  lock.lock();
  loaded.functions.emplace(entry, kernel.function);
  return kernel;
}

Status Gpu::load(Loaded& loaded) {
  const GridCode::Image* image = loaded.code->image_for(capability_);
  if (!image)
    return Error{
        .kind = Error::Kind::compile_failed,
        .message = fmt::format("a program was not compiled for {} (sm_{})",
                               name_, capability_)};
  loaded.shared_bytes = image->shared_bytes;
  if (const auto ready = find_cubin(cubins_, image->ptx, capability_)) {
    const Code code = driver_->module_load_data(&loaded.module, ready->data());
    if (code == success) return Unit{};
    if (is_sticky(code)) return check(code, "loading kernels on " + name_);
  }
  const std::string key = cache_ ? cache_key(*image) : std::string();
  if (cache_) {
    if (auto cubin = cache_->find(key)) {
      const Code code =
          driver_->module_load_data(&loaded.module, cubin->data());
      if (code == success) return Unit{};
      if (is_sticky(code)) return check(code, "loading kernels on " + name_);
      cache_->remove(key);
    }
  }
  return assemble(*image, key, loaded.module);
}

/// All that a cubin depends on.
std::string Gpu::cache_key(const GridCode::Image& image) const {
  return fmt::format("cubin, unisono {}, sm_{}, {}driver {}, {}\n{}",
                     UNISONO_VERSION, capability_,
                     driver_->simulated() ? "simulated " : "",
                     driver_->version(), driver_->build(), image.ptx);
}

/// By way of a cubin, which is kept.
Code Gpu::link(const GridCode::Image& image, const std::string& key,
               unsigned count, JitOption* options, void** values,
               Module& module) {
  LinkState link = nullptr;
  void* cubin = nullptr;
  size_t size = 0;
  Code code = driver_->link_create(count, options, values, &link);
  if (code == success)
    code = driver_->link_add_data(
        link, JitInput::ptx, const_cast<char*>(image.ptx.c_str()),
        image.ptx.size() + 1, "kernels", 0, nullptr, nullptr);
  if (code == success) code = driver_->link_complete(link, &cubin, &size);
  if (code == success) code = driver_->module_load_data(&module, cubin);
  if (code == success)
    cache_->keep(key, {static_cast<const uint8_t*>(cubin), size});
  if (link) driver_->link_destroy(link);
  return code;
}

Status Gpu::assemble(const GridCode::Image& image, const std::string& key,
                     Module& module) {
  std::array<char, 4096> log{};
  std::array options = {JitOption::error_log_buffer,
                        JitOption::error_log_buffer_size_bytes,
                        JitOption::generate_line_info};
  std::array<void*, 3> values = {log.data(),
                                 reinterpret_cast<void*>(log.size() - 1),
                                 reinterpret_cast<void*>(size_t{1})};
  const bool names_lines = image.ptx.find("\t.loc\t") != std::string::npos;
  const unsigned count = names_lines ? 3 : 2;
  Code code = not_supported;
  if (cache_)
    code = link(image, key, count, options.data(), values.data(), module);
  // Some installations have no linker, or one that fails: then nothing is kept.
  if (code != success && code != out_of_memory && !is_sticky(code))
    code = driver_->module_load_data_ex(&module, image.ptx.c_str(), count,
                                        options.data(), values.data());
  if (code == success) return Unit{};
  Error error =
      check(code, fmt::format("loading kernels for sm_{} on {} (PTX {}, "
                              "driver {})",
                              image.capability, name_, ptx_version(image.ptx),
                              version_text(driver_->version())))
          .error();
  if (log[0]) error.message += fmt::format("\n{}", log.data());
  return error;
}

void Gpu::unload_unused() {
  std::lock_guard lock(mutex_);
  CurrentContext current(*this);
  unload_unknown();
}

/// With the lock held and the context current: modules that nobody else knows
/// any more.
void Gpu::unload_unknown() {
  for (auto at = loaded_.begin(); at != loaded_.end();) {
    if (at->second.code.use_count() > 1) {
      ++at;
      continue;
    }
    driver_->module_unload(at->second.module);
    at = loaded_.erase(at);
  }
}

}  // namespace unisono::cuda
