#pragma once
// NumPy's archives of arrays: a zip file with one `.npy` for each, stored or
// deflated. Nothing in it is trusted: entries must lie within the file, apart
// from each other, and hold the bytes they declare, with the right checksum;
// an entry's header is read, and its size believed, before the rest of it is
// unpacked. Zip64 is read; entries of 4 GiB and more are not written.
//
// Errors are those of npy.h; messages name the entry.
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/files/npy.h"

namespace unisono {

struct NpzEntry {
  std::string name;  // without `.npy`
  NpyHeader header;
};

using NamedArrays = std::vector<std::pair<std::string, HostData>>;

/// Names and types of the arrays in file order, without their elements.
Result<std::vector<NpzEntry>> read_npz_index(const std::string& path);
/// `most_bytes` bounds the sum of all arrays.
Result<NamedArrays> read_npz(
    const std::string& path,
    int64_t most_bytes = MemoryBudget::default_limit());
/// Replaces `path` in one step. Names are not empty, and no two are equal
/// (CHECK). An archive of 4 GiB or more is an error (io).
Status write_npz(const std::string& path, const NamedArrays& arrays,
                 bool deflate = false);

}  // namespace unisono
