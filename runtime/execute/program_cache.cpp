#include "runtime/execute/program_cache.h"

#include "runtime/tuning/tuning.h"

namespace unisono {
std::unique_ptr<Execution> ProgramCache::take_execution(Runtime& runtime,
                                                        const Program& program,
                                                        Device& device) {
  std::lock_guard lock(mutex_);
  if (!idle_.empty()) {
    std::unique_ptr<Execution> execution = std::move(idle_.back());
    idle_.pop_back();
    return execution;
  }
  if (!flat_) flat_ = std::make_unique<FlatProgram>(flatten(program));
  auto execution = std::make_unique<Execution>(program, *flat_, device);
  if (execution->keeps_device_memory()) runtime.keep(shared_from_this());
  return execution;
}

void ProgramCache::give_back(std::unique_ptr<Execution> execution) {
  std::lock_guard lock(mutex_);
  if (idle_.size() < tuning().most_idle_executions)
    idle_.push_back(std::move(execution));
}

Result<ProgramCache::Constants> ProgramCache::constants(Runtime& runtime,
                                                        const Program& program,
                                                        Device& device) {
  {
    std::lock_guard lock(mutex_);
    if (const Constants& cached = constants_[&device]) return cached;
  }
  // Without the lock: where memory is short, caches are asked to give back.
  std::vector<std::shared_ptr<Buffer>> buffers;
  for (const std::vector<uint8_t>& bytes : program.constants) {
    auto size = static_cast<int64_t>(bytes.size());
    Buffer buffer = TRY(device.allocate(size));
    TRY(device.copy_from_host(buffer.data(), bytes.data(), size));
    buffers.push_back(std::make_shared<Buffer>(std::move(buffer)));
  }
  auto made = std::make_shared<const std::vector<std::shared_ptr<Buffer>>>(
      std::move(buffers));
  std::lock_guard lock(mutex_);
  Constants& cached = constants_[&device];
  if (!cached) cached = std::move(made);  // else another thread's
  runtime.keep(shared_from_this());
  return cached;
}

void ProgramCache::forget(const Device& device) {
  std::lock_guard lock(mutex_);
  constants_.erase(&device);
  std::erase_if(idle_, [](const auto& execution) {
    return execution->keeps_device_memory();
  });
}

ProgramCacheHandle::ProgramCacheHandle()
    : cache_(std::make_shared<ProgramCache>()) {}
ProgramCacheHandle::~ProgramCacheHandle() = default;
ProgramCacheHandle& ProgramCacheHandle::operator=(const ProgramCacheHandle&) {
  cache_ = std::make_shared<ProgramCache>();
  return *this;
}

}  // namespace unisono
