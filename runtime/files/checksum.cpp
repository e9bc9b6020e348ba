// CRC-32 is linear: the checksum of a ^ b is that of a ^ that of b ^ that of
// zeros, and bytes that follow multiply the state by a power of x.
#include <zlib.h>

#include "runtime/check.h"
#include "runtime/files/array_file.h"

namespace unisono {

uint32_t crc_of_zeros(int64_t bytes) {
  return static_cast<uint32_t>(crc32_combine(0xffffffff, 0, bytes)) ^
         0xffffffff;
}

void PartialChecksum::advance(int64_t bytes) {
  if (bytes == 0) return;
  if (bytes != distance_) {
    distance_ = bytes;
    operator_ = static_cast<uint32_t>(crc32_combine_gen(bytes));
  }
  state_ = static_cast<uint32_t>(crc32_combine_op(state_, 0, operator_));
}

void PartialChecksum::add(int64_t offset, std::span<const uint8_t> bytes) {
  const auto length = static_cast<int64_t>(bytes.size());
  CHECK(offset >= end_ && offset + length <= size_);
  if (length != length_) {
    length_ = length;
    zeros_ = crc_of_zeros(length);
  }
  advance(offset + length - end_);
  state_ ^=
      static_cast<uint32_t>(crc32_z(0, bytes.data(), bytes.size())) ^ zeros_;
  end_ = offset + length;
}

uint32_t PartialChecksum::get() {
  advance(size_ - end_);
  end_ = size_;
  return state_;
}

}  // namespace unisono
