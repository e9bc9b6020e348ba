// A simulated cuBLASLt for the simulated driver: the functions of
// runtime/cuda/cublas.def with their rules, whose products are kernels put to
// the caller's stream. It looks at every argument as the real one does not, and
// writes over the workspace it was given.
#include "simcuda/cublaslt/simcublaslt.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <string>

#include "runtime/cuda/cublas_library.h"
#include "runtime/kernel_library/kernel_library.h"

using namespace unisono::cublas;
namespace cuda = unisono::cuda;
using unisono::DotCall;
using unisono::KernelModule;

// The simulated driver's.
namespace unisono::cuda {
extern "C" {
#define CUDA_FUNCTION(name, symbol, since, parameters) Code symbol parameters;
#include "runtime/cuda/driver.def"
}
}  // namespace unisono::cuda

namespace {

constexpr Status not_initialized{1}, invalid_value{7}, execution_failed{13},
    not_supported{15};

std::string failing;
std::atomic<uint64_t> products{0}, tf32_products{0};

struct Context {
  cuda::Context context = nullptr;
  int capability = 0;
  std::map<std::string, cuda::Module> modules = {};
};

struct Desc {
  ComputeType compute;
  DataType scale;
  Operation a = Operation::none, b = Operation::none;
};
struct Layout {
  DataType type;
  uint64_t rows, columns;
  int64_t leading;
  int32_t batch = 1;
  int64_t stride = 0;
};
struct Wishes {
  uint64_t workspace = 0;
  uint32_t reductions = 7;
};

template <class T, class Opaque>
T& as(Opaque* handle) {
  return *reinterpret_cast<T*>(handle);
}
template <class T>
Status take(T& to, const void* value, size_t bytes) {
  if (bytes != sizeof to) return invalid_value;
  std::memcpy(&to, value, bytes);
  return Status::success;
}

/// The library of kernels has one for each type; the newest one for the device.
const KernelModule* module_for(const std::string& name, int capability) {
  const KernelModule* best = nullptr;
  for (const KernelModule& module : unisono::kernel_modules()) {
    const std::string file = module.name;
    if (!file.starts_with(name + "-")) continue;
    const int needed = std::stoi(file.substr(name.size() + 1));
    if (needed <= capability && (!best || file > best->name)) best = &module;
  }
  return best;
}

cuda::Function kernel(Context& context, const std::string& name) {
  const std::string entry = name + "_64";
  auto found = context.modules.find(name);
  if (found == context.modules.end()) {
    const KernelModule* image = module_for(name, context.capability);
    cuda::Module module = nullptr;
    if (!image || cuda::cuModuleLoadData(&module, image->ptx) != cuda::success)
      return nullptr;
    found = context.modules.emplace(name, module).first;
  }
  cuda::Function function = nullptr;
  cuda::cuModuleGetFunction(&function, found->second, entry.c_str());
  return function;
}

/// The kernel and its constants for a product, of row-major operands; false if
/// the parts do not fit one another.
bool plan(const Desc& desc, const Layout& a, const Layout& b, const Layout& c,
          std::string& name, DotCall& call) {
  const bool ta = desc.a == Operation::transpose,
             tb = desc.b == Operation::transpose;
  const uint64_t m = ta ? a.columns : a.rows, k = ta ? a.rows : a.columns,
                 n = tb ? b.rows : b.columns;
  if ((tb ? b.columns : b.rows) != k || c.rows != m || c.columns != n ||
      a.type != b.type || a.type != c.type || a.batch != c.batch ||
      b.batch != c.batch || c.leading != static_cast<int64_t>(m))
    return false;
  for (const Layout* x : {&a, &b, &c})
    if (x->leading < static_cast<int64_t>(x->rows)) return false;
  const bool wide = a.type == DataType::f64;
  if ((desc.compute == ComputeType::f64) != wide ||
      desc.scale != (wide ? DataType::f64 : DataType::f32) ||
      (desc.compute == ComputeType::fast_tf32 && a.type != DataType::f32))
    return false;
  const bool tf32 = desc.compute == ComputeType::fast_tf32;
  name = wide                       ? "dot_f64"
         : a.type == DataType::f16  ? "dot_f16"
         : a.type == DataType::bf16 ? "dot_bf16"
         : tf32                     ? "dot_tf32"
                                    : "dot_f32";
  // The transposed product, row after row.
  call.batch = c.batch;
  call.m = static_cast<int64_t>(n);
  call.n = static_cast<int64_t>(m);
  call.k = static_cast<int64_t>(k);
  call.a_batch = b.stride;
  call.a_row = tb ? 1 : b.leading;
  call.a_column = tb ? b.leading : 1;
  call.b_batch = a.stride;
  call.b_row = ta ? 1 : a.leading;
  call.b_column = ta ? a.leading : 1;
  return c.batch == 1 || c.stride == call.m * call.n;
}

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT void simcublaslt_fail(const char* fail) { failing = fail; }
EXPORT uint64_t simcublaslt_products() { return products; }
EXPORT uint64_t simcublaslt_tf32_products() { return tf32_products; }

EXPORT size_t cublasLtGetVersion() { return 130100; }

EXPORT Status cublasLtCreate(Handle* handle) {
  auto context = std::make_unique<Context>();
  cuda::Device device = 0;
  if (failing == "create" ||
      cuda::cuCtxGetCurrent(&context->context) != cuda::success ||
      !context->context || cuda::cuCtxGetDevice(&device) != cuda::success)
    return not_initialized;
  int major = 0, minor = 0;
  cuda::cuDeviceGetAttribute(
      &major, cuda::DeviceAttribute::compute_capability_major, device);
  cuda::cuDeviceGetAttribute(
      &minor, cuda::DeviceAttribute::compute_capability_minor, device);
  context->capability = 10 * major + minor;
  *handle = reinterpret_cast<Handle>(context.release());
  return Status::success;
}
EXPORT Status cublasLtDestroy(Handle handle) {
  auto* context = &as<Context>(handle);
  for (auto& [name, module] : context->modules) cuda::cuModuleUnload(module);
  delete context;
  return Status::success;
}

EXPORT Status cublasLtMatmulDescCreate(MatmulDesc* desc, ComputeType compute,
                                       DataType scale) {
  *desc = reinterpret_cast<MatmulDesc>(new Desc{compute, scale});
  return Status::success;
}
EXPORT Status cublasLtMatmulDescDestroy(MatmulDesc desc) {
  delete &as<Desc>(desc);
  return Status::success;
}
EXPORT Status cublasLtMatmulDescSetAttribute(MatmulDesc desc,
                                             MatmulAttribute attribute,
                                             const void* value, size_t bytes) {
  switch (attribute) {
    case MatmulAttribute::transpose_a:
      return take(as<Desc>(desc).a, value, bytes);
    case MatmulAttribute::transpose_b:
      return take(as<Desc>(desc).b, value, bytes);
  }
  return not_supported;
}

EXPORT Status cublasLtMatrixLayoutCreate(MatrixLayout* layout, DataType type,
                                         uint64_t rows, uint64_t columns,
                                         int64_t leading) {
  *layout =
      reinterpret_cast<MatrixLayout>(new Layout{type, rows, columns, leading});
  return Status::success;
}
EXPORT Status cublasLtMatrixLayoutDestroy(MatrixLayout layout) {
  delete &as<Layout>(layout);
  return Status::success;
}
EXPORT Status cublasLtMatrixLayoutSetAttribute(MatrixLayout layout,
                                               LayoutAttribute attribute,
                                               const void* value,
                                               size_t bytes) {
  switch (attribute) {
    case LayoutAttribute::batch_count:
      return take(as<Layout>(layout).batch, value, bytes);
    case LayoutAttribute::batch_stride:
      return take(as<Layout>(layout).stride, value, bytes);
  }
  return not_supported;
}

EXPORT Status cublasLtMatmulPreferenceCreate(Preference* preference) {
  *preference = reinterpret_cast<Preference>(new Wishes);
  return Status::success;
}
EXPORT Status cublasLtMatmulPreferenceDestroy(Preference preference) {
  delete &as<Wishes>(preference);
  return Status::success;
}
EXPORT Status cublasLtMatmulPreferenceSetAttribute(
    Preference preference, PreferenceAttribute attribute, const void* value,
    size_t bytes) {
  uint32_t alignment = 0;
  switch (attribute) {
    case PreferenceAttribute::workspace_bytes:
      return take(as<Wishes>(preference).workspace, value, bytes);
    case PreferenceAttribute::reduction_schemes:
      return take(as<Wishes>(preference).reductions, value, bytes);
    case PreferenceAttribute::alignment_a:
    case PreferenceAttribute::alignment_b:
    case PreferenceAttribute::alignment_c:
    case PreferenceAttribute::alignment_d: return take(alignment, value, bytes);
  }
  return not_supported;
}

EXPORT Status cublasLtMatmulAlgoGetHeuristic(Handle, MatmulDesc desc,
                                             MatrixLayout a, MatrixLayout b,
                                             MatrixLayout c, MatrixLayout d,
                                             Preference preference, int wanted,
                                             HeuristicResult* results,
                                             int* found) {
  std::string name;
  DotCall call;
  *found = 0;
  if (failing == "heuristic" || wanted < 1 || c != d ||
      as<Wishes>(preference).reductions != separate_reduction ||
      !plan(as<Desc>(desc), as<Layout>(a), as<Layout>(b), as<Layout>(c), name,
            call))
    return not_supported;
  *found = 1;
  results[0] = {};
  results[0].algorithm.data[0] = 1;
  results[0].workspace_bytes =
      std::min<uint64_t>(as<Wishes>(preference).workspace, 4096);
  return Status::success;
}

EXPORT Status cublasLtMatmul(Handle handle, MatmulDesc desc, const void*,
                             const void* a, MatrixLayout a_layout,
                             const void* b, MatrixLayout b_layout, const void*,
                             const void* c, MatrixLayout c_layout, void* d,
                             MatrixLayout d_layout, const Algorithm* algorithm,
                             void* workspace, size_t workspace_bytes,
                             cuda::Stream stream) {
  Context& context = as<Context>(handle);
  cuda::Context current = nullptr;
  cuda::cuCtxGetCurrent(&current);
  std::string name;
  DotCall call;
  if (failing == "matmul") return execution_failed;
  if (current != context.context || c != d || c_layout != d_layout ||
      algorithm->data[0] != 1 || workspace_bytes < 4096 ||
      !plan(as<Desc>(desc), as<Layout>(a_layout), as<Layout>(b_layout),
            as<Layout>(c_layout), name, call))
    return invalid_value;
  cuda::Function function = kernel(context, name);
  if (!function) return execution_failed;
  const int64_t blocks =
      call.batch * ((call.m + 63) / 64) * ((call.n + 63) / 64);
  void* values[] = {&b, &a, &d, &call};
  if (cuda::cuMemsetD8Async(reinterpret_cast<cuda::DevicePointer>(workspace),
                            0xff, 4096, stream) != cuda::success ||
      cuda::cuLaunchKernel(function, static_cast<unsigned>(blocks), 1, 1, 256,
                           1, 1, 0, stream, values, nullptr) != cuda::success)
    return execution_failed;
  ++products;
  if (name == "dot_tf32") ++tf32_products;
  return Status::success;
}
