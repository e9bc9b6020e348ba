#pragma once
// Kernels for devices that run grids of threads by themselves (GPUs).
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace unisono {

struct MatrixProduct;

/// What a kernel's check says when it fails, beside the value at fault.
struct GridCheck {
  int32_t code = 0;  // an ErrorWord::Code
  uint32_t source = 0;
  int64_t bound = 0;
  bool operator==(const GridCheck&) const = default;
};

/// Where kernels of one run on one device report failed checks. The first
/// launch that fails takes the word. Of its failures the least key wins, which
/// is made of (member, check, element): the check in grid_check_bits, the
/// element in GridLaunch::element_bits. Each of `parts` holds the key and below
/// it 8 bits of the value at fault, so that a minimum of 64-bit integers keeps
/// them together. Layout is known to the emitter.
struct GridError {
  uint64_t launch = 0;  // number of the launch; 0: nothing failed
  uint64_t parts[8] = {~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0},
                       ~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0}};
  /// Stretches of work that devices put again and again together, done before
  /// the failure. After one in which a launch failed its number has the bit
  /// `grid_sealed` (kernel_library/seal.cc).
  uint64_t stretches = 0;
};
inline constexpr int grid_check_bits = 11;
inline constexpr uint64_t grid_sealed = uint64_t{1} << 63;

/// Kernels as text: the same ones for each compute capability (90 is sm_90)
/// that they were compiled for.
struct GridCode {
  struct Image {
    int capability = 0;
    std::string ptx;
    /// For this capability alone, such as sm_90a.
    bool exact = false;
    /// Of shared memory, that a block of its kernels needs beside what the code
    /// declares.
    unsigned shared_bytes = 0;
  };
  std::vector<Image> images;
  /// The one for a device: the newest that is not newer, of two the exact one;
  /// null if there is none.
  const Image* image_for(int capability) const;
};

/// How a kernel is launched: with the addresses of its arrays, then, if
/// `reports`, the address of a GridError (64 bits), the launch's number (64)
/// and the device's position (32), then `constants` as one structure, if there
/// are any.
struct GridLaunch {
  std::shared_ptr<const GridCode> code;
  std::string entry;
  int64_t blocks = 1;  // 1 ... 2^31 - 1
  int threads = 256;   // of each block
  bool reports = true;
  std::vector<GridCheck> checks = {};
  int element_bits = 0;  // of keys (GridError)
  std::vector<uint8_t> constants = {};
  /// What it computes, where a library may do it instead: arguments are a, b
  /// and c.
  std::shared_ptr<const MatrixProduct> product = nullptr;
};

}  // namespace unisono
