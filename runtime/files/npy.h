#pragma once
// NumPy's array files. `.npy`: versions 1 to 3, both byte orders, C and Fortran
// order, all element types of dtype.def. bf16, which NumPy itself has not, is
// written as the ml_dtypes package does, descr '<V2' (two bytes of which NumPy
// knows nothing), and read as '<V2', '|V2' or 'bfloat16'. A file is trusted in
// nothing: the header's grammar is our own (nothing is evaluated), and the
// bytes that it declares must be the bytes there before memory is allocated.
//
// Errors: invalid_file with the reason, io with the system's, out_of_memory,
// cancelled. Messages do not repeat the path.
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/dtype.h"
#include "runtime/heap.h"
#include "runtime/result.h"

namespace unisono {

/// An array in the host's memory: dense, row-major, native byte order.
struct HostData {
  DType dtype = DType::F32;
  std::vector<int64_t> shape;
  std::vector<uint8_t> bytes;
};

struct NpyHeader {
  DType dtype = DType::F32;
  std::vector<int64_t> shape;
  bool fortran_order = false;
  bool swapped = false;     // the other byte order than this machine's
  int64_t data_offset = 0;  // in the file
  int64_t data_bytes = 0;
};

/// The header in `start`, which holds the first npy_longest_start bytes of a
/// file of `size` bytes, or all if there are fewer. An error if the size that
/// the header declares is not the real one.
Result<NpyHeader> parse_npy_header(std::span<const uint8_t> start,
                                   int64_t size);
inline constexpr int64_t npy_longest_header = 64 << 10;
inline constexpr int64_t npy_longest_start = npy_longest_header + 12;

/// The elements `data` as stored after `header`, header.data_bytes of them
/// (CHECK), made dense, row-major and native. `most_bytes` bounds what is
/// allocated besides.
Result<HostData> decode_npy(const NpyHeader& header, std::vector<uint8_t> data,
                            int64_t most_bytes);
/// The bytes before the elements of a row-major `.npy`.
std::vector<uint8_t> encode_npy_header(DType dtype,
                                       std::span<const int64_t> shape);

Result<NpyHeader> read_npy_header(const std::string& path);
/// `most_bytes` bounds what is allocated.
Result<HostData> read_npy(const std::string& path,
                          int64_t most_bytes = MemoryBudget::default_limit());
/// Replaces `path` in one step. `bytes` are dense, row-major and native.
Status write_npy(const std::string& path, DType dtype,
                 std::span<const int64_t> shape,
                 std::span<const uint8_t> bytes);

}  // namespace unisono
