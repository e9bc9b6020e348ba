#pragma once
// cuBLASLt, NVIDIA's library of matrix products, opened at run time: nothing of
// it is needed to build, and without it kernels of ours do the work.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "runtime/cuda/shared_library.h"
#include "runtime/cuda/types.h"
#include "runtime/result.h"

namespace unisono::cublas {

enum class Status : int { success = 0 };
using Handle = struct HandleOpaque*;
using MatmulDesc = struct MatmulDescOpaque*;
using MatrixLayout = struct MatrixLayoutOpaque*;
using Preference = struct PreferenceOpaque*;

// Values and layouts are those of cublasLt.h, which promises to keep them.
enum class DataType : int { f32 = 0, f64 = 1, f16 = 2, bf16 = 14 };
enum class ComputeType : int { f32 = 68, f64 = 70, fast_tf32 = 77 };
enum class Operation : int32_t { none = 0, transpose = 1 };
enum class MatmulAttribute : int { transpose_a = 3, transpose_b = 4 };
enum class LayoutAttribute : int { batch_count = 5, batch_stride = 6 };
enum class PreferenceAttribute : int {
  workspace_bytes = 1,
  reduction_schemes = 3,
  alignment_a = 5,
  alignment_b = 6,
  alignment_c = 7,
  alignment_d = 8,
};
/// The reduction scheme that is allowed: partial sums in f32, added by a kernel
/// of their own, so that the bits are the same each time.
inline constexpr uint32_t separate_reduction = 2;

struct Algorithm {
  uint64_t data[8];
};
struct HeuristicResult {
  Algorithm algorithm;
  size_t workspace_bytes;
  Status state;
  float waves;
  int reserved[4];
};

/// The functions of cublas.def, by their names there. Immutable.
class Library final : public SharedLibrary {
 public:
  /// The library at `path`; "" is the system's that fits the driver's version
  /// (12020 is 12.2). An error (device_lost) says in one line why there is
  /// none.
  static Result<std::shared_ptr<const Library>> open(const std::string& path,
                                                     int driver_version);
  ~Library() override = default;

#define CUBLASLT_FUNCTION(name, symbol, parameters) \
  Status(*name) parameters = nullptr;
#include "runtime/cuda/cublas.def"

  /// 130100 is 13.1.
  size_t version() const { return version_; }

 private:
  Library() = default;
  unisono::Status bind() override;

  size_t version_ = 0;
};

}  // namespace unisono::cublas
