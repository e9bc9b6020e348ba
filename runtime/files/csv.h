#pragma once
// Tables as text (CSV, RFC 4180): rows are lines, fields stand between
// delimiters, and in quotes where they hold one. What pandas reads is read:
// either line end, a byte order mark, empty lines, its words for what is
// missing. A column's type follows from all that stands in it.
//
// Errors: invalid_file with the line, io with the system's, out_of_memory,
// cancelled. Messages do not repeat the path.
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/files/npy.h"

namespace unisono {

struct CsvSeen;    // csv.cpp
class CsvFilling;  // csv.cpp

struct CsvOptions {
  char delimiter = ',';
  /// The first row that is read has the columns' names.
  bool header = true;
  /// Lines at the beginning that are not read.
  int64_t skip = 0;
  /// Words for what is missing besides those that are always.
  std::vector<std::string> missing = {};
};

/// What a column shall be; unless something is said, what its fields say.
struct CsvRequest {
  size_t column = 0;  // of the file
  std::optional<DType> dtype = {};
  bool text = false;  // also where all fields are numbers
  std::optional<std::vector<std::string>> categories = {};
};

/// A column: numbers, or positions (i32, -1 for what is missing) in the texts
/// that stand in it. A file's own texts are sorted.
struct CsvColumn {
  DType dtype = DType::F32;
  bool is_text = false;
  std::vector<std::string> categories = {};
  std::vector<uint8_t> elements = {};
};

/// A file, read into memory.
class CsvFile {
 public:
  /// Reads it all, and looks at its first row. `most_bytes` bounds what is
  /// allocated.
  static Result<CsvFile> open(
      const std::string& path, CsvOptions options,
      int64_t most_bytes = MemoryBudget::default_limit());
  /// The names that the first row has, or as many empty ones as it has fields.
  const std::vector<std::string>& names() const { return names_; }
  /// Rows of elements, once `columns` has counted them.
  int64_t rows() const { return rows_; }
  /// Types and texts of columns, and their elements if they are wanted.
  Result<std::vector<CsvColumn>> columns(
      const std::vector<CsvRequest>& requests, bool with_elements);

 private:
  /// Counts rows, and looks at what stands in columns.
  Status look(const std::vector<CsvRequest>& requests,
              std::vector<CsvSeen>& seen);
  Status fill(const std::vector<CsvRequest>& requests,
              std::vector<CsvFilling>& columns) const;

  std::vector<uint8_t> bytes_;
  CsvOptions options_;
  std::vector<std::string> names_;
  int64_t rows_ = 0;
  int64_t most_bytes_ = 0;
};

/// A column to write: its elements, or, with categories, the texts that they
/// are positions of.
struct CsvSource {
  std::string name;
  HostData data;  // of rank 1
  std::optional<std::vector<std::string>> categories = {};
};
/// Replaces `path` in one step. Floats have the digits that say which they are,
/// and a point; what is missing, NaN or a negative position, is empty. All
/// columns have the same length (CHECK).
Status write_csv(const std::string& path, const std::vector<CsvSource>& columns,
                 char delimiter, bool header);

}  // namespace unisono
