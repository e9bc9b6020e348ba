#pragma once
// Named arrays as the `safetensors` package keeps them: eight bytes with the
// length of a header, a header in JSON, and the elements. Of it is believed
// what is checked: the header's grammar is our own, the parts of all arrays
// fill the file without holes, and each has the size that its shape says,
// before memory is allocated.
//
// Errors are those of npy.h; messages name the array.
#include <string>
#include <vector>

#include "runtime/files/npz.h"

namespace unisono {

/// No file has more arrays.
inline constexpr size_t most_safetensors = 65'536;

/// Names and types in the order of the header, without elements.
Result<std::vector<NpzEntry>> read_safetensors_index(const std::string& path);
/// `most_bytes` bounds the sum of all arrays.
Result<NamedArrays> read_safetensors(
    const std::string& path,
    int64_t most_bytes = MemoryBudget::default_limit());
/// Replaces `path` in one step. Names are UTF-8, not empty, and no two are
/// equal (CHECK); there are at most most_safetensors (CHECK). The header has
/// the order given, the elements are sorted by the size of their type, the
/// widest first, so that each array is aligned.
Status write_safetensors(const std::string& path, const NamedArrays& arrays);

}  // namespace unisono
