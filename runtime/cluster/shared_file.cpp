#include "runtime/cluster/shared_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "runtime/array_blocks.h"
#include "runtime/cluster/cluster_device.h"
#include "runtime/files/file.h"

namespace unisono {
namespace {

Error system_error(const Cluster& cluster) {
  return {
      .kind = Error::Kind::io,
      .message = fmt::format("{} ({})", std::generic_category().message(errno),
                             cluster.label_with_host(cluster.process()))};
}

/// The file that process 0 has begun.
class OpenedFile {
 public:
  static Result<OpenedFile> open(const std::string& name,
                                 const Cluster& cluster) {
    const int descriptor =
        ::open(name.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
    if (descriptor >= 0) return OpenedFile(descriptor);
    if (errno != ENOENT) return system_error(cluster);
    return Error{
        .kind = Error::Kind::io,
        .message = fmt::format(
            "{} does not see there what {} has begun to write: the folder must "
            "be the same one for all processes",
            cluster.label_with_host(cluster.process()),
            cluster.label_with_host(0))};
  }
  OpenedFile(OpenedFile&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, -1)) {}
  ~OpenedFile() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  int descriptor() const { return descriptor_; }

 private:
  explicit OpenedFile(int descriptor) : descriptor_(descriptor) {}
  int descriptor_;
};

using Write = std::function<Status(int64_t, std::span<const uint8_t>)>;

/// The rows of one block, to where the array begins in the file.
Status write_block(const Array& array, size_t block, int64_t offset,
                   PartialChecksum& checksum, bool sums, const Write& write) {
  const Buffer& buffer = *array.blocks()[block];
  const auto* data = static_cast<const uint8_t*>(buffer.data());
  std::vector<uint8_t> copied;
  if (const Device& device = *array.sharding().devices[block];
      device.kind() == DeviceKind::gpu && buffer.bytes() > 0) {
    copied.resize(static_cast<size_t>(buffer.bytes()));
    auto& own = const_cast<ClusterDevice&>(*cluster_device(device));
    TRY(own.from_own(copied.data(), data, buffer.bytes()));
    data = copied.data();
  }
  return for_each_run(
      array, block,
      [&](int64_t whole, int64_t from, const CopyExtent& extent) -> Status {
        for (int64_t row = 0; row < extent.rows; ++row) {
          const int64_t to = whole + row * extent.to_step;
          const std::span<const uint8_t> bytes(
              data + from + row * extent.from_step,
              static_cast<size_t>(extent.bytes));
          if (sums) checksum.add(to, bytes);
          TRY(write(offset + to, bytes));
        }
        return Unit{};
      });
}

/// What this process has of the arrays; of what every process has, process 0's.
/// Gives the arrays' checksums as far as these are known here.
Result<std::vector<uint32_t>> write_own(const Cluster& cluster,
                                        const FileLayout& layout,
                                        std::span<const Array> arrays,
                                        const Write& write) {
  std::vector<uint32_t> checksums(layout.has_checksums ? arrays.size() : 0);
  for (size_t i = 0; i < arrays.size(); ++i) {
    const Sharding& sharding = arrays[i].sharding();
    for (const size_t block : distinct_blocks(sharding)) {
      const ClusterDevice* device = cluster_device(*sharding.devices[block]);
      const int owner = device ? std::max(device->process(), 0) : 0;
      if (owner != cluster.process()) continue;
      PartialChecksum checksum(layout.bytes[i]);
      TRY(write_block(arrays[i], block, layout.offsets[i], checksum,
                      layout.has_checksums, write));
      if (layout.has_checksums) checksums[i] ^= checksum.get();
    }
  }
  return checksums;
}

}  // namespace

Status write_together(Cluster& cluster, const std::string& path,
                      const FileLayout& layout, std::span<const Array> arrays) {
  TRY(cluster.barrier());
  std::optional<OutputFile> first;
  std::string name;
  if (cluster.process() == 0) {
    first.emplace(TRY(OutputFile::create(path)));
    TRY(first->resize(layout.size));
    name = first->temporary();
  }
  auto length = static_cast<int64_t>(name.size());
  TRY(cluster.broadcast(0, &length, sizeof length));
  name.resize(static_cast<size_t>(length));
  TRY(cluster.broadcast(0, name.data(), length));

  std::vector<uint32_t> checksums;
  if (first) {
    checksums =
        TRY(write_own(cluster, layout, arrays,
                      [&](int64_t offset, std::span<const uint8_t> bytes) {
                        return first->write(offset, bytes);
                      }));
  } else {
    const OpenedFile file = TRY(OpenedFile::open(name, cluster));
    bool wrote = false;
    checksums =
        TRY(write_own(cluster, layout, arrays,
                      [&](int64_t offset, std::span<const uint8_t> bytes) {
                        wrote = true;
                        return write_all(file.descriptor(), offset, bytes);
                      }));
    if (wrote && fdatasync(file.descriptor()) != 0)
      return system_error(cluster);
  }
  // When these have come to process 0, all have written.
  TRY(cluster.combine_xor(checksums));
  if (first) {
    for (size_t i = 0; i < checksums.size(); ++i)
      checksums[i] ^= crc_of_zeros(layout.bytes[i]);
    for (const auto& [offset, bytes] : layout.heads(checksums))
      TRY(first->write(offset, bytes));
    TRY(first->commit());
  }
  return cluster.barrier();
}

}  // namespace unisono
