#include "runtime/execute/executor.h"

#include "runtime/execute/queue_executor.h"
#include "runtime/execute/thread_executor.h"

namespace unisono {

std::unique_ptr<Executor> make_executor(const RunState& run, Device& device) {
  if (device.kind() == DeviceKind::gpu)
    return std::make_unique<QueueExecutor>(run);
  return std::make_unique<ThreadExecutor>(run);
}

}  // namespace unisono
