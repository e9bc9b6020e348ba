#include "runtime/cuda/ready_cubins.h"

#include <fmt/format.h>

#include <cstring>
#include <span>

#include "runtime/files/file.h"

namespace unisono::cuda {
namespace {

constexpr std::string_view magic = "UNICUBIN";
constexpr size_t head_bytes = magic.size() + sizeof(uint64_t);
constexpr int64_t most_bytes = int64_t{64} << 20;

uint64_t hash(std::span<const uint8_t> bytes) {
  uint64_t h = 0xcbf29ce484222325;
  for (const uint8_t byte : bytes) h = (h ^ byte) * 0x100000001b3;
  return h;
}

}  // namespace

std::string cubin_name(std::string_view ptx, int capability) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(ptx.data());
  return fmt::format("{:016x}-sm_{}.cubin", hash({bytes, ptx.size()}),
                     capability);
}

std::vector<uint8_t> cubin_file(const std::vector<uint8_t>& code) {
  std::vector<uint8_t> out(head_bytes);
  const uint64_t h = hash(code);
  std::memcpy(out.data(), magic.data(), magic.size());
  std::memcpy(out.data() + magic.size(), &h, sizeof h);
  out.insert(out.end(), code.begin(), code.end());
  return out;
}

std::optional<std::vector<uint8_t>> find_cubin(const std::string& folder,
                                               std::string_view ptx,
                                               int capability) {
  if (folder.empty()) return std::nullopt;
  const auto file = InputFile::open(folder + "/" + cubin_name(ptx, capability));
  if (!file || file->size() <= static_cast<int64_t>(head_bytes) ||
      file->size() > most_bytes)
    return std::nullopt;
  std::vector<uint8_t> bytes(static_cast<size_t>(file->size()));
  if (!file->read(0, bytes)) return std::nullopt;
  std::vector<uint8_t> code(bytes.begin() + head_bytes, bytes.end());
  if (bytes != cubin_file(code)) return std::nullopt;
  return code;
}

}  // namespace unisono::cuda
