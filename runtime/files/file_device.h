#pragma once
// Arrays that lie in a file until they are needed somewhere. To who moves
// arrays (runtime/array.h) a file is a device: what is copied from it is read,
// and nothing else of it. So of an array that is given to a map each process
// reads the blocks of its own devices.
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "runtime/array.h"
#include "runtime/device.h"
#include "runtime/files/array_file.h"
#include "runtime/result.h"

namespace unisono {

/// Stands for all files. In no list of devices; nothing runs on it, and nothing
/// is copied to it.
class FileDevice final : public Device {
 public:
  static constexpr int no_index = -1;

  struct Elements {
    std::shared_ptr<const InputFile> file;
    std::string path, name;            // for messages; no name in an .npy
    NpyHeader header;                  // is direct (is_direct): where they are
    std::optional<uint32_t> checksum;  // CRC-32 of all
  };
  /// The file stays open as long as the array is there. The checksum is looked
  /// at where all elements are read at once.
  Array array(Elements elements);

  const std::string& name() const override { return name_; }
  int index() const override { return no_index; }
  DeviceKind kind() const override { return DeviceKind::cpu; }
  Result<Buffer> allocate(int64_t bytes) override;
  void free(void* data, int64_t bytes) override;
  Status copy_from_host(void* to, const void* from,
                        const CopyExtent& extent) override;
  /// Reads. Errors: io, invalid_file, cancelled; messages name the file.
  Status copy_to_host(void* to, const void* from,
                      const CopyExtent& extent) override;
  Status copy_from_peer(void* to, const Device& peer, const void* from,
                        const CopyExtent& extent) override;
  int64_t bytes_in_use() const override { return 0; }
  int64_t peak_bytes() const override { return 0; }

 private:
  const std::string name_ = "a file";
  std::mutex mutex_;
  /// By where they would be if they were in memory. Nothing is there.
  std::map<uintptr_t, Elements> elements_;
  uintptr_t next_ = uintptr_t{1} << 40;
};

/// The same of a device that lives as long as the array.
Array array_in_file(FileDevice::Elements elements);

/// Whether an array's elements are still in a file.
inline bool is_in_file(const Array& array) {
  return array.sharding().devices.size() == 1 &&
         array.sharding().devices[0]->index() == FileDevice::no_index;
}

}  // namespace unisono
