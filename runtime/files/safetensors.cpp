#include "runtime/files/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "runtime/check.h"
#include "runtime/files/array_file.h"
#include "runtime/files/file.h"
#include "runtime/stop.h"

namespace unisono {
namespace {

static_assert(std::endian::native == std::endian::little,
              "elements are written as they lie in memory");

constexpr int64_t length_bytes = 8;
/// As in the package.
constexpr int64_t longest_header = 100'000'000;
constexpr size_t most_axes = 32;
constexpr std::string_view metadata = "__metadata__";

Error invalid(std::string message) {
  return {.kind = Error::Kind::invalid_file, .message = std::move(message)};
}

std::string_view type_text(DType dtype) {
  switch (dtype) {
    case DType::Bool: return "BOOL";
    case DType::I8: return "I8";
    case DType::I16: return "I16";
    case DType::I32: return "I32";
    case DType::I64: return "I64";
    case DType::U8: return "U8";
    case DType::U16: return "U16";
    case DType::U32: return "U32";
    case DType::U64: return "U64";
    case DType::F16: return "F16";
    case DType::BF16: return "BF16";
    case DType::F32: return "F32";
    case DType::F64: return "F64";
  }
  __builtin_unreachable();
}

std::optional<DType> type_of(std::string_view text) {
  for (const DType dtype : all_dtypes)
    if (type_text(dtype) == text) return dtype;
  return std::nullopt;
}

/// For messages: what a terminal cannot be hurt by, and not too long.
std::string printable(std::string_view text) {
  std::string shown;
  for (const char c : text.substr(0, 40))
    shown += c >= ' ' && c <= '~' ? c : '?';
  return text.size() > 40 ? shown + "..." : shown;
}

/// Reads the header: an object of arrays' types, shapes and places, and of
/// texts under `__metadata__`. That is all of JSON that is understood.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, std::vector<NpzEntry>& entries)
      : text_(text), entries_(entries) {}

  Status parse() {
    StopPoll poll(10'000);
    TRY(expect('{'));
    for (bool first = true; !take('}'); first = false) {
      poll.did(100);
      if (!first) TRY(expect(','));
      const std::string name = TRY(string());
      TRY(expect(':'));
      if (!names_.insert(name).second)
        return invalid(
            fmt::format("there are two arrays `{}`", printable(name)));
      if (name == metadata)
        TRY(skip_metadata());
      else
        TRY(entry(name));
    }
    skip_space();
    if (at_ != text_.size()) return fail("nothing more");
    return Unit{};
  }

 private:
  Status entry(const std::string& name) {
    const auto is_control = [](char c) {
      return static_cast<unsigned char>(c) < ' ' || c == '\x7f';
    };
    if (name.empty() || std::ranges::any_of(name, is_control))
      return invalid("an array's name is empty or has control characters");
    if (entries_.size() == most_safetensors)
      return invalid(fmt::format("more than {} arrays", most_safetensors));
    NpzEntry entry{name, {}};
    std::optional<DType> dtype;
    std::optional<std::vector<int64_t>> shape, place;
    TRY(expect('{'));
    for (bool first = true; !take('}'); first = false) {
      if (!first) TRY(expect(','));
      const std::string key = TRY(string());
      TRY(expect(':'));
      if (key == "dtype" && !dtype) {
        const std::string type = TRY(string());
        dtype = type_of(type);
        if (!dtype)
          return invalid(
              fmt::format("array `{}`: the element type `{}` is not offered",
                          printable(name), printable(type)));
      } else if (key == "shape" && !shape) {
        shape = TRY(sizes());
      } else if (key == "data_offsets" && !place) {
        place = TRY(sizes());
      } else {
        return fail("`dtype`, `shape` and `data_offsets`, each once");
      }
    }
    if (!dtype || !shape || !place || place->size() != 2)
      return invalid(fmt::format(
          "array `{}` lacks its `dtype`, `shape` or two `data_offsets`",
          printable(name)));
    entry.header.dtype = *dtype;
    entry.header.shape = std::move(*shape);
    entry.header.data_offset = (*place)[0];
    if (__builtin_sub_overflow((*place)[1], (*place)[0],
                               &entry.header.data_bytes))
      return fail("offsets in ascending order");
    entries_.push_back(std::move(entry));
    return Unit{};
  }

  Status skip_metadata() {
    TRY(expect('{'));
    for (bool first = true; !take('}'); first = false) {
      if (!first) TRY(expect(','));
      TRY(string());
      TRY(expect(':'));
      TRY(string());
    }
    return Unit{};
  }

  Result<std::vector<int64_t>> sizes() {
    std::vector<int64_t> out;
    TRY(expect('['));
    for (bool first = true; !take(']'); first = false) {
      if (!first) TRY(expect(','));
      if (out.size() == most_axes)
        return invalid(fmt::format("more than {} axes", most_axes));
      out.push_back(TRY(number()));
    }
    return out;
  }

  Result<int64_t> number() {
    skip_space();
    const size_t start = at_;
    int64_t value = 0;
    for (; is_digit(peek()); ++at_)
      if (__builtin_mul_overflow(value, 10, &value) ||
          __builtin_add_overflow(value, peek() - '0', &value))
        return invalid("a size is too large");
    if (at_ == start) return fail("a whole number");
    return value;
  }

  Result<std::string> string() {
    TRY(expect('"'));
    std::string out;
    while (true) {
      if (at_ == text_.size()) return fail("the end of a string");
      const char c = text_[at_++];
      if (c == '"') return out;
      if (static_cast<unsigned char>(c) < ' ')
        return fail("a string without control characters");
      if (c != '\\') {
        out += c;
        continue;
      }
      const char escape = peek();
      ++at_;
      constexpr std::string_view marks = "\"\\/bfnrt",
                                 meant = "\"\\/\b\f\n\r\t";
      if (const size_t i = marks.find(escape); i != marks.npos)
        out += meant[i];
      else if (escape == 'u')
        append_utf8(out, TRY(code_point()));
      else
        return fail("an escape of JSON");
    }
  }

  Result<uint32_t> code_point() {
    uint32_t high = TRY(hexadecimal());
    if (high < 0xd800 || high > 0xdfff) return high;
    if (high > 0xdbff || text_.substr(at_, 2) != "\\u")
      return fail("the other half of a character");
    at_ += 2;
    const uint32_t low = TRY(hexadecimal());
    if (low < 0xdc00 || low > 0xdfff)
      return fail("the other half of a character");
    return 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
  }

  Result<uint32_t> hexadecimal() {
    uint32_t value = 0;
    for (int i = 0; i < 4; ++i, ++at_) {
      const char c = peek();
      const int digit = is_digit(c)            ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
      if (digit < 0) return fail("four hexadecimal digits");
      value = 16 * value + static_cast<uint32_t>(digit);
    }
    return value;
  }

  static void append_utf8(std::string& out, uint32_t c) {
    const auto put = [&](uint32_t byte) { out += static_cast<char>(byte); };
    if (c < 0x80) return put(c);
    const auto rest = [&](int shift) { put(0x80 | ((c >> shift) & 0x3f)); };
    if (c < 0x800) {
      put(0xc0 | c >> 6);
    } else if (c < 0x10000) {
      put(0xe0 | c >> 12);
      rest(6);
    } else {
      put(0xf0 | c >> 18);
      rest(12);
      rest(6);
    }
    rest(0);
  }

  static bool is_digit(char c) { return c >= '0' && c <= '9'; }
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void skip_space() {
    while (peek() == ' ' || peek() == '\n' || peek() == '\t' || peek() == '\r')
      ++at_;
  }
  bool take(char c) {
    skip_space();
    if (peek() != c || at_ == text_.size()) return false;
    ++at_;
    return true;
  }
  Status expect(char c) {
    if (take(c)) return Unit{};
    return fail(fmt::format("`{}`", c));
  }
  Error fail(std::string_view expected) const {
    return invalid(fmt::format(
        "the header is malformed at byte {}: expected {}", at_, expected));
  }

  std::string_view text_;
  size_t at_ = 0;
  std::set<std::string> names_;
  std::vector<NpzEntry>& entries_;
};

/// The size of the array is that of its place, and the places follow each other
/// from 0 to `size`.
Status check_places(const std::vector<NpzEntry>& entries, int64_t size) {
  std::vector<size_t> order(entries.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [&](size_t i) {
    const NpyHeader& header = entries[i].header;
    return std::pair(header.data_offset, header.data_bytes);
  });
  int64_t end = 0;
  for (const size_t i : order) {
    const auto& [name, header] = entries[i];
    int64_t bytes = byte_size(header.dtype);
    bool fits = true;
    for (const int64_t extent : header.shape)
      fits = fits && !__builtin_mul_overflow(bytes, extent, &bytes);
    if (std::ranges::count(header.shape, 0) > 0) {
      bytes = 0;
      fits = true;
    }
    if (!fits || bytes != header.data_bytes)
      return invalid(fmt::format(
          "array `{}`: its shape and its {} bytes do not fit together",
          printable(name), header.data_bytes));
    if (header.data_offset != end)
      return invalid(fmt::format(
          "array `{}` begins at byte {}, but the one before it ends at {}",
          printable(name), header.data_offset, end));
    end += bytes;
    if (end > size) break;
  }
  if (end != size)
    return invalid(fmt::format(
        "the header declares {} bytes of elements, but the file has {}", end,
        size));
  return Unit{};
}

struct OpenFile {
  InputFile file;
  std::vector<NpzEntry> entries;  // data_offset is from the file's beginning
};

Result<OpenFile> open_file(const std::string& path) {
  InputFile file = TRY(InputFile::open(path));
  uint8_t start[length_bytes];
  if (file.size() < length_bytes)
    return invalid("the file is too short to be a .safetensors file");
  TRY(file.read(0, start));
  uint64_t length = 0;
  std::memcpy(&length, start, sizeof length);
  if (length > static_cast<uint64_t>(longest_header) ||
      static_cast<int64_t>(length) > file.size() - length_bytes)
    return invalid(fmt::format(
        "the header declares {} bytes, but the file has {}: it is cut off, or "
        "no .safetensors file",
        length, file.size()));
  const auto header_bytes = static_cast<int64_t>(length);
  std::vector<uint8_t> header =
      TRY(allocate_bytes(header_bytes, longest_header));
  TRY(file.read(length_bytes, header));
  OpenFile out{std::move(file), {}};
  TRY(unless_stopped([&] {
    return HeaderParser(
               {reinterpret_cast<const char*>(header.data()), header.size()},
               out.entries)
        .parse();
  }));
  const int64_t data = length_bytes + header_bytes;
  TRY(check_places(out.entries, out.file.size() - data));
  for (NpzEntry& entry : out.entries) entry.header.data_offset += data;
  return out;
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < ' ')
      out += fmt::format("\\u{:04x}", static_cast<int>(c));
    else
      out += c;
  }
  return out + '"';
}

}  // namespace

Result<std::vector<NpzEntry>> read_safetensors_index(const std::string& path) {
  OpenFile file = TRY(open_file(path));
  return std::move(file.entries);
}

Result<NamedArrays> read_safetensors(const std::string& path,
                                     int64_t most_bytes) {
  const OpenFile open = TRY(open_file(path));
  NamedArrays arrays;
  for (const auto& [name, header] : open.entries) {
    HostData data{header.dtype, header.shape, {}};
    data.bytes = TRY(allocate_bytes(header.data_bytes, most_bytes));
    most_bytes -= header.data_bytes;
    TRY(open.file.read(header.data_offset, data.bytes));
    // What is no 0 is true; only 0 and 1 are bools.
    if (data.dtype == DType::Bool)
      for (uint8_t& element : data.bytes) element = element != 0;
    arrays.emplace_back(name, std::move(data));
  }
  return arrays;
}

namespace {

/// Where arrays stand in a file, and the bytes before them.
struct Placed {
  std::vector<uint8_t> head;
  std::vector<size_t> order;     // in the file
  std::vector<int64_t> offsets;  // from the end of the head, as given
  int64_t bytes = 0;
};

Placed place(std::span<const ArrayType> types, std::span<const int64_t> bytes) {
  CHECK(types.size() <= most_safetensors);
  Placed out{.head = {},
             .order = std::vector<size_t>(types.size()),
             .offsets = std::vector<int64_t>(types.size())};
  std::iota(out.order.begin(), out.order.end(), 0);
  std::ranges::sort(out.order, {}, [&](size_t i) {
    return std::pair(-byte_size(types[i].dtype), i);
  });
  for (const size_t i : out.order) {
    out.offsets[i] = out.bytes;
    out.bytes += bytes[i];
  }
  std::set<std::string> names;
  std::string header = "{";
  for (size_t i = 0; i < types.size(); ++i) {
    const auto& [name, dtype, shape] = types[i];
    CHECK(!name.empty() && names.insert(name).second);
    header += fmt::format(
        R"({}{}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
        i > 0 ? "," : "", quoted(name), type_text(dtype), fmt::join(shape, ","),
        out.offsets[i], out.offsets[i] + bytes[i]);
  }
  header += '}';
  header.resize((header.size() + 7) / 8 * 8, ' ');
  const uint64_t length = header.size();
  out.head.resize(length_bytes);
  std::memcpy(out.head.data(), &length, sizeof length);
  out.head.insert(out.head.end(), header.begin(), header.end());
  return out;
}

}  // namespace

Status write_safetensors(const std::string& path, const NamedArrays& arrays) {
  std::vector<ArrayType> types;
  std::vector<int64_t> bytes;
  for (const auto& [name, data] : arrays) {
    types.push_back({name, data.dtype, data.shape});
    bytes.push_back(static_cast<int64_t>(data.bytes.size()));
  }
  const Placed placed = place(types, bytes);
  OutputFile file = TRY(OutputFile::create(path));
  TRY(file.write(placed.head));
  for (const size_t i : placed.order) TRY(file.write(arrays[i].second.bytes));
  return file.commit();
}

Result<OpenArrays> open_safetensors(const std::string& path) {
  OpenFile file = TRY(open_file(path));
  std::vector<bool> stored(file.entries.size(), true);
  std::vector<std::optional<uint32_t>> checksums(file.entries.size());
  return OpenArrays{std::move(file.file), std::move(file.entries),
                    std::move(stored), std::move(checksums)};
}

FileLayout safetensors_layout(std::span<const ArrayType> types) {
  FileLayout out;
  for (const ArrayType& type : types) {
    out.bytes.push_back(byte_size(type.dtype));
    for (const int64_t size : type.shape) out.bytes.back() *= size;
  }
  Placed placed = place(types, out.bytes);
  const auto head = static_cast<int64_t>(placed.head.size());
  out.size = head + placed.bytes;
  for (const int64_t offset : placed.offsets)
    out.offsets.push_back(head + offset);
  out.heads = [bytes = std::move(placed.head)](std::span<const uint32_t>) {
    return std::vector<std::pair<int64_t, std::vector<uint8_t>>>{{0, bytes}};
  };
  return out;
}

}  // namespace unisono
