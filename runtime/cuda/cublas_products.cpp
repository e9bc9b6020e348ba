// cuBLASLt's matrices are stored column after column, ours row after row. So
// its A is our b, its B our a, and what it computes is our c transposed, which
// lies in memory as c does.
#include "runtime/cuda/cublas_products.h"

#include <algorithm>
#include <bit>
#include <optional>

namespace unisono::cublas {
namespace {

DataType type_of(DType dtype) {
  return dtype == DType::F16    ? DataType::f16
         : dtype == DType::BF16 ? DataType::bf16
         : dtype == DType::F64  ? DataType::f64
                                : DataType::f32;
}

/// An operand as the library sees it: `rows` neighbours in memory, columns
/// `leading` apart; to be transposed or not.
struct Operand {
  int64_t rows = 0, columns = 0, leading = 0;
  Operation operation = Operation::none;
};

/// A matrix of `inner` x `outer` elements to multiply along one of these axes;
/// strides count elements.
std::optional<Operand> operand(int64_t inner, int64_t inner_stride,
                               int64_t outer, int64_t outer_stride) {
  if (inner_stride == 1 && outer_stride >= inner)
    return Operand{inner, outer, outer_stride, Operation::none};
  if (outer_stride == 1 && inner_stride >= outer)
    return Operand{outer, inner, inner_stride, Operation::transpose};
  return std::nullopt;
}

/// Bytes to which `offset` elements after an aligned place are aligned.
uint32_t alignment(int64_t offset, int64_t stride, DType dtype) {
  const auto bytes =
      static_cast<uint64_t>((offset | stride) * byte_size(dtype)) | 16;
  return uint32_t{1} << std::countr_zero(bytes);
}

}  // namespace

struct Products::Plan {
  explicit Plan(const Library& library) : library(library) {}
  ~Plan() {
    if (desc) library.matmul_desc_destroy(desc);
    for (MatrixLayout layout : {a, b, c})
      if (layout) library.layout_destroy(layout);
  }
  const Library& library;
  MatmulDesc desc = nullptr;
  MatrixLayout a = nullptr, b = nullptr, c = nullptr;
  Algorithm algorithm{};
};

std::shared_ptr<const Library> Source::library() {
  std::call_once(opened_, [&] {
    if (auto opened = Library::open(path_, driver_version_))
      library_ = std::move(*opened);
  });
  return library_;
}

std::unique_ptr<Products> Products::open(
    std::shared_ptr<const Library> library) {
  Handle handle = nullptr;
  if (library->create(&handle) != Status::success || !handle) return nullptr;
  return std::unique_ptr<Products>(new Products(std::move(library), handle));
}

Products::Products(std::shared_ptr<const Library> library, Handle handle)
    : library_(std::move(library)), handle_(handle) {}

Products::~Products() {
  plans_.clear();
  library_->destroy(handle_);
}

std::unique_ptr<Products::Plan> Products::make(const MatrixProduct& p) const {
  const DotCall& s = p.sizes;
  constexpr int64_t most = INT32_MAX;
  if (std::max({s.batch, s.m, s.n, s.k}) > most) return nullptr;
  // Rows of the library's A are our columns.
  const auto left = operand(s.n, s.b_column, s.k, s.b_row);
  const auto right = operand(s.k, s.a_column, s.m, s.a_row);
  if (!left || !right) return nullptr;
  auto plan = std::make_unique<Plan>(*library_);
  bool fine = true;
  auto need = [&](Status status) { fine = fine && status == Status::success; };
  const DataType type = type_of(p.dtype);
  const bool wide = p.dtype == DType::F64;
  need(library_->matmul_desc_create(&plan->desc,
                                    wide     ? ComputeType::f64
                                    : p.tf32 ? ComputeType::fast_tf32
                                             : ComputeType::f32,
                                    wide ? DataType::f64 : DataType::f32));
  if (!fine) return nullptr;
  auto transpose = [&](MatmulAttribute attribute, Operation operation) {
    need(library_->matmul_desc_set_attribute(plan->desc, attribute, &operation,
                                             sizeof operation));
  };
  transpose(MatmulAttribute::transpose_a, left->operation);
  transpose(MatmulAttribute::transpose_b, right->operation);
  auto layout = [&](MatrixLayout& to, const Operand& o, int64_t stride) {
    need(library_->layout_create(&to, type, static_cast<uint64_t>(o.rows),
                                 static_cast<uint64_t>(o.columns), o.leading));
    if (!fine || s.batch == 1) return;
    const auto count = static_cast<int32_t>(s.batch);
    need(library_->layout_set_attribute(to, LayoutAttribute::batch_count,
                                        &count, sizeof count));
    need(library_->layout_set_attribute(to, LayoutAttribute::batch_stride,
                                        &stride, sizeof stride));
  };
  layout(plan->a, *left, s.b_batch);
  layout(plan->b, *right, s.a_batch);
  layout(plan->c, {s.n, s.m, s.n}, s.m * s.n);
  Preference preference = nullptr;
  if (fine) need(library_->preference_create(&preference));
  if (!fine) return nullptr;
  auto prefer = [&](PreferenceAttribute attribute, auto value) {
    need(library_->preference_set_attribute(preference, attribute, &value,
                                            sizeof value));
  };
  const uint64_t workspace = workspace_bytes;
  prefer(PreferenceAttribute::workspace_bytes, workspace);
  prefer(PreferenceAttribute::reduction_schemes, separate_reduction);
  prefer(PreferenceAttribute::alignment_a,
         alignment(s.b_offset, s.b_batch, p.dtype));
  prefer(PreferenceAttribute::alignment_b,
         alignment(s.a_offset, s.a_batch, p.dtype));
  prefer(PreferenceAttribute::alignment_c, alignment(0, s.m * s.n, p.dtype));
  prefer(PreferenceAttribute::alignment_d, alignment(0, s.m * s.n, p.dtype));
  HeuristicResult result{};
  int found = 0;
  if (fine)
    need(library_->get_heuristic(handle_, plan->desc, plan->a, plan->b, plan->c,
                                 plan->c, preference, 1, &result, &found));
  library_->preference_destroy(preference);
  if (!fine || found < 1 || result.state != Status::success ||
      result.workspace_bytes > workspace_bytes)
    return nullptr;
  plan->algorithm = result.algorithm;
  return plan;
}

bool Products::prepare(const MatrixProduct& product) {
  std::lock_guard lock(mutex_);
  auto found = plans_.find(product);
  if (found == plans_.end())
    found = plans_.emplace(product, make(product)).first;
  return found->second != nullptr;
}

bool Products::launch(const MatrixProduct& p, std::span<void* const> arguments,
                      void* workspace, cuda::Stream stream) {
  std::lock_guard lock(mutex_);
  const auto found = plans_.find(p);
  if (found == plans_.end() || !found->second) return false;
  const Plan& plan = *found->second;
  const float one32 = 1, zero32 = 0;
  const double one64 = 1, zero64 = 0;
  const bool wide = p.dtype == DType::F64;
  auto at = [&](void* array, int64_t offset) {
    return static_cast<uint8_t*>(array) + offset * byte_size(p.dtype);
  };
  void* c = arguments[2];
  const Status done = library_->matmul(
      handle_, plan.desc, wide ? static_cast<const void*>(&one64) : &one32,
      at(arguments[1], p.sizes.b_offset), plan.a,
      at(arguments[0], p.sizes.a_offset), plan.b,
      wide ? static_cast<const void*>(&zero64) : &zero32, c, plan.c, c, plan.c,
      &plan.algorithm, workspace, workspace_bytes, stream);
  if (done == Status::success) return true;
  found->second = nullptr;  // nor will it the next time
  return false;
}

}  // namespace unisono::cublas
