#pragma once
// Machine code of kernels that was made when we were packed (bundle/cubins.py),
// so that the driver need not translate them: a folder with a file for each PTX
// text and compute capability. A file that is damaged, or not there, only costs
// the translation.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace unisono::cuda {

/// The file's name, "0123456789abcdef-sm_90.cubin": the text's hash (FNV-1a, 64
/// bits).
std::string cubin_name(std::string_view ptx, int capability);
/// The code in `folder` for this text and this very capability; nothing if
/// there is none, or its checksum is wrong.
std::optional<std::vector<uint8_t>> find_cubin(const std::string& folder,
                                               std::string_view ptx,
                                               int capability);
/// A file's bytes: "UNICUBIN", the hash of the code, the code.
std::vector<uint8_t> cubin_file(const std::vector<uint8_t>& code);

}  // namespace unisono::cuda
