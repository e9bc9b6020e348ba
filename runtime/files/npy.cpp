#include "runtime/files/npy.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>

#include "runtime/check.h"
#include "runtime/files/array_file.h"
#include "runtime/files/file.h"
#include "runtime/stop.h"

namespace unisono {
namespace {

constexpr std::string_view magic = "\x93NUMPY";
constexpr size_t most_axes = 32;
// Between two looks at the stop flag.
constexpr int64_t poll_bytes = int64_t{1} << 20;
constexpr bool little_endian = std::endian::native == std::endian::little;

Error invalid(std::string message) {
  return {.kind = Error::Kind::invalid_file, .message = std::move(message)};
}

/// For messages: what a terminal cannot be hurt by, and not too long.
std::string printable(std::string_view text) {
  std::string shown;
  for (char c : text.substr(0, 40)) shown += c >= ' ' && c <= '~' ? c : '?';
  return text.size() > 40 ? shown + "..." : shown;
}

char npy_kind(DType dtype) {
  switch (dtype) {
#define DTYPE(enumerator, text, storage, cls, bits, compute, npy) \
  case DType::enumerator: return npy;
#include "runtime/dtype.def"
  }
  __builtin_unreachable();
}

/// Why a descr that is well-formed cannot be read.
std::string refusal(std::string_view descr) {
  std::string shown = printable(descr);
  size_t kind = descr.find_first_not_of("<>|=");
  switch (kind == descr.npos ? '\0' : descr[kind]) {
    case 'O':
      return fmt::format(
          "the elements are Python objects (`{}`), which cannot be loaded "
          "without running code",
          shown);
    case 'c': return fmt::format("the element type `{}` is complex", shown);
    case 'S':
    case 'U': return fmt::format("the elements are strings (`{}`)", shown);
    case 'M':
    case 'm':
      return fmt::format("the elements are dates or times (`{}`)", shown);
    default: return fmt::format("the element type `{}` is not known", shown);
  }
}

struct Descr {
  DType dtype;
  bool swapped;
};

std::optional<Descr> parse_descr(std::string_view text) {
  if (text == "bfloat16") return Descr{DType::BF16, false};
  if (text.empty()) return std::nullopt;
  char order = '=';
  if (std::string_view("<>|=").find(text[0]) != text.npos) {
    order = text[0];
    text.remove_prefix(1);
  }
  if (text == "?") text = "b1";
  for (DType dtype : all_dtypes) {
    if (text != fmt::format("{}{}", npy_kind(dtype), byte_size(dtype)))
      continue;
    bool swapped = byte_size(dtype) > 1 && order == (little_endian ? '>' : '<');
    // '|' says that order does not matter, which is so for bytes (and for V,
    // where NumPy does not know better).
    if (order == '|' && byte_size(dtype) > 1 && dtype != DType::BF16)
      return std::nullopt;
    return Descr{dtype, swapped};
  }
  return std::nullopt;
}

/// Reads the header's dictionary: the keys 'descr', 'fortran_order' and 'shape'
/// in any order, each once, with a string, True or False, and a tuple of
/// integers. That is all of Python that is understood.
class HeaderParser {
 public:
  explicit HeaderParser(std::string_view text) : text_(text) {}

  /// An error's message, or empty.
  std::string parse(NpyHeader& header) {
    if (!take('{')) return fail("expected `{`");
    while (!take('}')) {
      if (!parse_entry(header)) return message_;
      if (take(',')) continue;
      if (!take('}')) return fail("expected `,` or `}`");
      break;
    }
    skip_space();
    if (at_ != text_.size()) return fail("there is something after the `}`");
    if (!descr_) return "the header lacks 'descr'";
    if (!order_) return "the header lacks 'fortran_order'";
    if (!shape_) return "the header lacks 'shape'";
    return {};
  }

 private:
  bool parse_entry(NpyHeader& header) {
    std::string_view key;
    if (!take_string(key)) return false;
    if (!take(':')) return refuse("expected `:`");
    bool* seen = key == "descr"           ? &descr_
                 : key == "fortran_order" ? &order_
                 : key == "shape"         ? &shape_
                                          : nullptr;
    if (!seen)
      return refuse(fmt::format("`{}` is not a key of it", printable(key)));
    if (std::exchange(*seen, true))
      return refuse(fmt::format("the key `{}` stands twice", key));
    if (seen == &descr_) return parse_type(header);
    if (seen == &shape_) return parse_shape(header.shape);
    if (take_word("True")) return header.fortran_order = true;
    if (!take_word("False")) return refuse("expected `True` or `False`");
    header.fortran_order = false;
    return true;
  }

  bool parse_type(NpyHeader& header) {
    skip_space();
    if (peek() == '[' || peek() == '(' || peek() == '{') {
      message_ = "the elements are records, which are not offered";
      return false;
    }
    std::string_view text;
    if (!take_string(text)) return false;
    std::optional<Descr> descr = parse_descr(text);
    if (!descr) {
      message_ = refusal(text);
      return false;
    }
    header.dtype = descr->dtype;
    header.swapped = descr->swapped;
    return true;
  }

  bool parse_shape(std::vector<int64_t>& shape) {
    if (!take('(')) return refuse("expected `(`");
    bool comma = true;
    while (!take(')')) {
      int64_t size;
      if (!comma) return refuse("expected `,` or `)`");
      if (!take_integer(size)) return false;
      if (shape.size() == most_axes)
        return refuse(fmt::format("more than {} axes", most_axes));
      shape.push_back(size);
      comma = take(',');
    }
    // (3) is a number in brackets, and no tuple; () is one, (,) is nothing.
    if (shape.size() == 1 && !comma) return refuse("expected `,`");
    return true;
  }

  bool take_integer(int64_t& value) {
    skip_space();
    size_t start = at_;
    value = 0;
    while (peek() >= '0' && peek() <= '9') {
      int digit = text_[at_++] - '0';
      if (__builtin_mul_overflow(value, 10, &value) ||
          __builtin_add_overflow(value, digit, &value))
        return refuse("a size is too large");
    }
    if (at_ == start)
      return refuse(peek() == '-' ? "a size is negative"
                                  : "expected a size or `)`");
    return true;
  }

  bool take_string(std::string_view& value) {
    skip_space();
    char quote = peek();
    if (quote != '\'' && quote != '"') return refuse("expected a string");
    size_t end = text_.find(quote, at_ + 1);
    if (end == text_.npos) return refuse("a string does not end");
    value = text_.substr(at_ + 1, end - at_ - 1);
    if (value.find('\\') != value.npos) return refuse("a string has escapes");
    at_ = end + 1;
    return true;
  }

  bool take_word(std::string_view word) {
    skip_space();
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }
  bool take(char c) {
    skip_space();
    if (peek() != c || at_ == text_.size()) return false;
    ++at_;
    return true;
  }
  void skip_space() {
    while (peek() == ' ' || peek() == '\n' || peek() == '\t') ++at_;
  }
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  std::string fail(std::string_view what) {
    refuse(what);
    return message_;
  }
  bool refuse(std::string_view what) {
    message_ = fmt::format("the header is malformed at byte {}: {}", at_, what);
    return false;
  }

  std::string_view text_;
  size_t at_ = 0;
  bool descr_ = false, order_ = false, shape_ = false;
  std::string message_;
};

/// Bytes of all elements; empty if no memory could hold them. Sizes of 0 do
/// not excuse others that are too large: strides are computed from these.
std::optional<int64_t> bytes_of(DType dtype, std::span<const int64_t> shape) {
  int64_t bytes = byte_size(dtype);
  bool empty = false;
  for (int64_t size : shape)
    if (size == 0)
      empty = true;
    else if (__builtin_mul_overflow(bytes, size, &bytes))
      return std::nullopt;
  return empty ? 0 : bytes;
}

void swap_bytes(std::span<uint8_t> data, int64_t element_bytes) {
  auto swap_all = [&]<class T>(T) {
    StopPoll poll(poll_bytes);
    for (size_t i = 0; i + sizeof(T) <= data.size(); i += sizeof(T)) {
      poll.did(sizeof(T));
      T value;
      std::memcpy(&value, &data[i], sizeof(T));
      if constexpr (sizeof(T) == 2) value = __builtin_bswap16(value);
      if constexpr (sizeof(T) == 4) value = __builtin_bswap32(value);
      if constexpr (sizeof(T) == 8) value = __builtin_bswap64(value);
      std::memcpy(&data[i], &value, sizeof(T));
    }
  };
  if (element_bytes == 2) swap_all(uint16_t{});
  if (element_bytes == 4) swap_all(uint32_t{});
  if (element_bytes == 8) swap_all(uint64_t{});
}

template <class T>
void to_row_major(const std::vector<int64_t>& shape, const uint8_t* from,
                  uint8_t* to) {
  size_t rank = shape.size();
  std::vector<int64_t> stride(rank), index(rank, 0);
  int64_t elements = 1;
  for (size_t i = 0; i < rank; ++i) {
    stride[i] = elements;
    elements *= shape[i];
  }
  int64_t source = 0;
  StopPoll poll(poll_bytes / 16);  // elements come from anywhere
  for (int64_t i = 0; i < elements; ++i) {
    poll.did(1);
    std::memcpy(to + i * sizeof(T), from + source * sizeof(T), sizeof(T));
    for (size_t axis = rank; axis-- > 0;) {
      source += stride[axis];
      if (++index[axis] < shape[axis]) break;
      source -= stride[axis] * shape[axis];
      index[axis] = 0;
    }
  }
}

}  // namespace

Result<NpyHeader> parse_npy_header(std::span<const uint8_t> start,
                                   int64_t size) {
  auto is_magic = [&](size_t count) {
    return std::equal(
        magic.begin(), magic.begin() + count, start.begin(),
        [](char a, uint8_t b) { return static_cast<uint8_t>(a) == b; });
  };
  if (start.size() < magic.size() || !is_magic(magic.size()))
    return invalid("not an .npy file: it does not begin with \\x93NUMPY");
  if (start.size() < 10) return invalid("the file ends within its header");
  int major = start[6], minor = start[7];
  if (major < 1 || major > 3 || minor != 0)
    return invalid(
        fmt::format("format version {}.{} is not known (1.0, 2.0 "
                    "and 3.0 are)",
                    major, minor));
  size_t length_bytes = major == 1 ? 2 : 4;
  if (start.size() < 8 + length_bytes)
    return invalid("the file ends within its header");
  int64_t length = 0;
  for (size_t i = 0; i < length_bytes; ++i)
    length |= int64_t{start[8 + i]} << (8 * i);
  if (length > npy_longest_header)
    return invalid(fmt::format("the header has {} bytes; at most {} are read",
                               length, npy_longest_header));
  NpyHeader header;
  header.data_offset = 8 + static_cast<int64_t>(length_bytes) + length;
  if (header.data_offset > static_cast<int64_t>(start.size()))
    return invalid("the file ends within its header");
  std::string_view text(
      reinterpret_cast<const char*>(start.data()) + 8 + length_bytes,
      static_cast<size_t>(length));
  std::string problem = HeaderParser(text).parse(header);
  if (!problem.empty()) return invalid(std::move(problem));
  std::optional<int64_t> bytes = bytes_of(header.dtype, header.shape);
  if (!bytes) return invalid("the shape is too large for any memory");
  if (*bytes != size - header.data_offset)
    return invalid(fmt::format(
        "the header declares {} bytes of elements, but {} are there", *bytes,
        size - header.data_offset));
  header.data_bytes = *bytes;
  return header;
}

bool is_direct(const NpyHeader& header) {
  return !header.fortran_order ||
         std::ranges::count_if(header.shape,
                               [](int64_t size) { return size > 1; }) <= 1;
}

void make_native(const NpyHeader& header, std::span<uint8_t> bytes) {
  if (header.swapped) swap_bytes(bytes, byte_size(header.dtype));
  // A bool is 0 or 1 everywhere else; any other byte is true in NumPy.
  if (is_bool(header.dtype))
    in_pieces(static_cast<int64_t>(bytes.size()), poll_bytes,
              [&](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) bytes[i] = bytes[i] != 0;
              });
}

namespace {

Result<HostData> decode(const NpyHeader& header, std::vector<uint8_t> data,
                        int64_t most_bytes) {
  make_native(header, data);
  if (!is_direct(header) && !data.empty()) {
    auto ordered = TRY(allocate_bytes(header.data_bytes, most_bytes));
    with_dtype(header.dtype, [&]<DType D>() {
      to_row_major<typename StorageOf<D>::type>(header.shape, data.data(),
                                                ordered.data());
    });
    data = std::move(ordered);
  }
  return HostData{header.dtype, header.shape, std::move(data)};
}

}  // namespace

Result<HostData> decode_npy(const NpyHeader& header, std::vector<uint8_t> data,
                            int64_t most_bytes) {
  CHECK(static_cast<int64_t>(data.size()) == header.data_bytes);
  return unless_stopped(
      [&] { return decode(header, std::move(data), most_bytes); });
}

std::vector<uint8_t> encode_npy_header(DType dtype,
                                       std::span<const int64_t> shape) {
  char order = byte_size(dtype) == 1 ? '|' : little_endian ? '<' : '>';
  std::string sizes;
  for (int64_t size : shape) sizes += fmt::format("{}, ", size);
  // NumPy writes (), (3,) and (3, 4).
  if (shape.size() > 1) sizes.resize(sizes.size() - 2);
  if (shape.size() == 1) sizes.resize(sizes.size() - 1);
  std::string text = fmt::format(
      "{{'descr': '{}{}{}', 'fortran_order': False, 'shape': ({}), }}", order,
      npy_kind(dtype), byte_size(dtype), sizes);
  // The elements begin at a multiple of 64.
  size_t total = (10 + text.size() + 1 + 63) / 64 * 64;
  text.resize(total - 11, ' ');
  text += '\n';
  std::vector<uint8_t> bytes(magic.begin(), magic.end());
  bytes.insert(bytes.end(), {1, 0, static_cast<uint8_t>(text.size() & 0xff),
                             static_cast<uint8_t>(text.size() >> 8)});
  bytes.insert(bytes.end(), text.begin(), text.end());
  return bytes;
}

namespace {

Result<NpyHeader> read_header(const InputFile& file) {
  std::vector<uint8_t> start(
      static_cast<size_t>(std::min(file.size(), npy_longest_start)));
  TRY(file.read(0, start));
  return parse_npy_header(start, file.size());
}

}  // namespace

Result<NpyHeader> read_npy_header(const std::string& path) {
  InputFile file = TRY(InputFile::open(path));
  return read_header(file);
}

Result<HostData> read_npy(const std::string& path, int64_t most_bytes) {
  InputFile file = TRY(InputFile::open(path));
  NpyHeader header = TRY(read_header(file));
  auto data = TRY(allocate_bytes(header.data_bytes, most_bytes));
  TRY(file.read(header.data_offset, data));
  return decode_npy(header, std::move(data), most_bytes);
}

Result<OpenArrays> open_npy(const std::string& path) {
  InputFile file = TRY(InputFile::open(path));
  NpyHeader header = TRY(read_header(file));
  return OpenArrays{
      std::move(file), {{"", std::move(header)}}, {true}, {std::nullopt}};
}

FileLayout npy_layout(const ArrayType& type) {
  std::vector<uint8_t> head = encode_npy_header(type.dtype, type.shape);
  const auto offset = static_cast<int64_t>(head.size());
  const int64_t bytes = bytes_of(type.dtype, type.shape).value();
  FileLayout out{.size = offset + bytes,
                 .offsets = {offset},
                 .bytes = {bytes},
                 .heads = {}};
  out.heads = [head = std::move(head)](std::span<const uint32_t>) {
    return std::vector<std::pair<int64_t, std::vector<uint8_t>>>{{0, head}};
  };
  return out;
}

Status write_npy(const std::string& path, DType dtype,
                 std::span<const int64_t> shape,
                 std::span<const uint8_t> bytes) {
  CHECK(static_cast<int64_t>(bytes.size()) == bytes_of(dtype, shape));
  OutputFile file = TRY(OutputFile::create(path));
  TRY(file.write(encode_npy_header(dtype, shape)));
  TRY(file.write(bytes));
  return file.commit();
}

}  // namespace unisono
