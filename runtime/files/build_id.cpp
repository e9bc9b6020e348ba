#include "runtime/files/build_id.h"

#include <fmt/format.h>
#include <link.h>

#include <cstdint>
#include <cstring>
#include <string_view>

namespace unisono {
namespace {

/// The descriptor of the note NT_GNU_BUILD_ID among the notes at `notes`.
std::string find_note(const char* notes, size_t bytes) {
  const auto padded = [](size_t size) { return (size + 3) & ~size_t{3}; };
  constexpr std::string_view gnu("GNU\0", 4);
  ElfW(Nhdr) note;
  while (bytes >= sizeof note) {
    std::memcpy(&note, notes, sizeof note);
    const size_t size =
        sizeof note + padded(note.n_namesz) + padded(note.n_descsz);
    if (size > bytes) break;
    const char* name = notes + sizeof note;
    if (note.n_type == NT_GNU_BUILD_ID &&
        std::string_view(name, note.n_namesz) == gnu) {
      std::string out;
      for (size_t i = 0; i < note.n_descsz; ++i)
        out += fmt::format(
            "{:02x}", static_cast<uint8_t>(name[padded(note.n_namesz) + i]));
      return out;
    }
    notes += size;
    bytes -= size;
  }
  return "";
}

int look_at(dl_phdr_info* info, size_t, void* found) {
  const auto here = reinterpret_cast<uintptr_t>(&build_id);
  const auto at = [&](const ElfW(Phdr) & part) {
    return static_cast<uintptr_t>(info->dlpi_addr + part.p_vaddr);
  };
  bool ours = false;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = info->dlpi_phdr[i];
    ours |= part.p_type == PT_LOAD && at(part) <= here &&
            here < at(part) + part.p_memsz;
  }
  if (!ours) return 0;
  auto& out = *static_cast<std::string*>(found);
  for (int i = 0; i < info->dlpi_phnum && out.empty(); ++i) {
    const ElfW(Phdr)& part = info->dlpi_phdr[i];
    if (part.p_type == PT_NOTE)
      out = find_note(reinterpret_cast<const char*>(at(part)),  // NOLINT
                      part.p_memsz);
  }
  return 1;
}

}  // namespace

std::string build_id() {
  static const std::string id = [] {
    std::string found;
    dl_iterate_phdr(look_at, &found);
    return found;
  }();
  return id;
}

}  // namespace unisono
