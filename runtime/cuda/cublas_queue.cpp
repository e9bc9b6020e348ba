// Products of matrices that a stream's owner has the library do.
#include "runtime/cuda/queue.h"

namespace unisono::cuda {

void StreamQueue::use_library(std::shared_ptr<cublas::Source> source) {
  source_ = std::move(source);
}

/// Once, when the first product comes: the library, and memory for it from the
/// stream's pool.
void StreamQueue::open_products() {
  std::call_once(products_opened_, [&] {
    auto library = source_->library();
    if (!library || gpu_->lost()) return;
    auto workspace = allocate(cublas::Products::workspace_bytes);
    if (!workspace) return;
    workspace_ = *workspace;
    CurrentContext current(*gpu_);
    products_ = cublas::Products::open(std::move(library));
  });
}

void StreamQueue::close_products() {
  products_.reset();
  if (workspace_) free(workspace_);
}

bool StreamQueue::prepare_product(const GridLaunch& launch) {
  if (!launch.product || !source_) return false;
  open_products();
  if (!products_ || gpu_->lost()) return false;
  CurrentContext current(*gpu_);
  return products_->prepare(*launch.product);
}

bool StreamQueue::launch_product(const GridLaunch& launch, const Call& call) {
  const auto& products = home_->products_;
  if (!launch.product || !products || gpu_->lost()) return false;
  CurrentContext current(*gpu_);
  return products->launch(*launch.product, call.arguments,
                          reinterpret_cast<void*>(home_->workspace_),
                          kernels());
}

}  // namespace unisono::cuda
