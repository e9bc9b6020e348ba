#pragma once
// Files for the tests, in a folder of their own that goes with the test.
#include <doctest/doctest.h>
#include <stdlib.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace unisono {

using Bytes = std::vector<uint8_t>;

struct TemporaryFolder {
  TemporaryFolder() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "unisono-XXXXXX").string();
    REQUIRE(mkdtemp(pattern.data()) != nullptr);
    path = pattern;
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path); }
  std::string operator/(const std::string& name) const {
    return (path / name).string();
  }
  size_t files() const {
    return static_cast<size_t>(
        std::distance(std::filesystem::directory_iterator(path), {}));
  }
  std::filesystem::path path;
};

inline void put_file(const std::string& path, const Bytes& bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}
inline Bytes get_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// An `.npy` with this dictionary, format version and data.
inline Bytes npy_file(const std::string& dictionary, const Bytes& data,
                      int version = 1) {
  std::string start = "\x93NUMPY";
  Bytes bytes(start.begin(), start.end());
  bytes.push_back(static_cast<uint8_t>(version));
  bytes.push_back(0);
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i)
    bytes.push_back(static_cast<uint8_t>(dictionary.size() >> (8 * i)));
  bytes.insert(bytes.end(), dictionary.begin(), dictionary.end());
  bytes.insert(bytes.end(), data.begin(), data.end());
  return bytes;
}

inline std::string dictionary(const std::string& descr,
                              const std::string& shape,
                              const std::string& fortran = "False") {
  return "{'descr': '" + descr + "', 'fortran_order': " + fortran +
         ", 'shape': " + shape + ", }\n";
}

}  // namespace unisono
