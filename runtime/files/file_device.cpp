#include "runtime/files/file_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "runtime/check.h"
#include "runtime/files/zip.h"
#include "runtime/stop.h"

namespace unisono {
namespace {

/// Rows are read together, with what is between them, up to so many bytes.
constexpr int64_t most_together = int64_t{1} << 20;

/// In this order: a buffer gives its place back to its device.
struct KeptBuffer {
  std::shared_ptr<FileDevice> device;
  std::shared_ptr<Buffer> buffer;
};

}  // namespace

Array FileDevice::array(Elements elements) {
  const NpyHeader header = elements.header;
  CHECK(is_direct(header));
  const std::lock_guard lock(mutex_);
  const uintptr_t at = next_;
  constexpr uintptr_t line = 64;
  next_ += (static_cast<uintptr_t>(header.data_bytes) / line + 1) * line;
  elements_.emplace(at, std::move(elements));
  void* const data = reinterpret_cast<void*>(at);  // NOLINT: an address alone
  return Array(header.dtype, header.shape, Sharding{-1, {this}},
               {std::make_shared<Buffer>(this, data, header.data_bytes)});
}

Array array_in_file(FileDevice::Elements elements) {
  auto device = std::make_shared<FileDevice>();
  const Array array = device->array(std::move(elements));
  Buffer* const buffer = array.blocks()[0].get();
  auto kept = std::make_shared<KeptBuffer>(
      KeptBuffer{std::move(device), array.blocks()[0]});
  return Array(array.dtype(), array.shape(), array.sharding(),
               {std::shared_ptr<Buffer>(std::move(kept), buffer)});
}

Result<Buffer> FileDevice::allocate(int64_t) {
  CHECK(false);
  __builtin_unreachable();
}

void FileDevice::free(void* data, int64_t) {
  const std::lock_guard lock(mutex_);
  elements_.erase(reinterpret_cast<uintptr_t>(data));
}

Status FileDevice::copy_from_host(void*, const void*, const CopyExtent&) {
  CHECK(false);
  __builtin_unreachable();
}

Status FileDevice::copy_from_peer(void*, const Device&, const void*,
                                  const CopyExtent&) {
  CHECK(false);
  __builtin_unreachable();
}

Status FileDevice::copy_to_host(void* to, const void* from,
                                const CopyExtent& extent) {
  const auto address = reinterpret_cast<uintptr_t>(from);
  Elements found;
  int64_t offset = 0;
  {
    const std::lock_guard lock(mutex_);
    auto at = elements_.upper_bound(address);
    CHECK(at != elements_.begin());
    --at;
    found = at->second;
    offset = static_cast<int64_t>(address - at->first);
  }
  const bool all = extent.rows == 1 && extent.bytes == found.header.data_bytes;
  const auto read = [&](int64_t first, std::span<uint8_t> bytes) -> Status {
    Status done =
        found.file->read(found.header.data_offset + offset + first, bytes);
    if (!done && done.error().kind != Error::Kind::cancelled) {
      Error error = done.error();
      error.message =
          fmt::format("cannot read {:?}: {}", found.path, error.message);
      return error;
    }
    TRY(done);
    return unless_stopped([&]() -> Status {
      if (all && found.checksum && crc_of_bytes(bytes) != *found.checksum)
        return Error{.kind = Error::Kind::invalid_file,
                     .message = fmt::format(
                         "cannot read {:?}: array `{}`: its checksum is "
                         "wrong",
                         found.path, found.name)};
      make_native(found.header, bytes);
      return Unit{};
    });
  };
  auto* const out = static_cast<uint8_t*>(to);
  const auto bytes = static_cast<size_t>(extent.bytes);
  if (extent.rows == 1) return read(0, {out, bytes});
  const int64_t together = std::clamp<int64_t>(
      most_together / std::max<int64_t>(extent.from_step, 1), 1, extent.rows);
  std::vector<uint8_t> rows(
      static_cast<size_t>((together - 1) * extent.from_step + extent.bytes));
  for (int64_t row = 0; row < extent.rows; row += together) {
    const int64_t count = std::min(together, extent.rows - row);
    TRY(read(row * extent.from_step,
             std::span(rows).first(static_cast<size_t>(
                 (count - 1) * extent.from_step + extent.bytes))));
    for (int64_t i = 0; i < count; ++i)
      std::memcpy(out + (row + i) * extent.to_step,
                  rows.data() + i * extent.from_step, bytes);
  }
  return Unit{};
}

}  // namespace unisono
