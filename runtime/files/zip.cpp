#include "runtime/files/zip.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <string_view>

#include "runtime/stop.h"

namespace unisono {
namespace {

constexpr uint32_t local_signature = 0x04034b50;
constexpr uint32_t central_signature = 0x02014b50;
constexpr uint32_t end_signature = 0x06054b50;
constexpr uint32_t end64_signature = 0x06064b50;
constexpr uint32_t locator64_signature = 0x07064b50;
constexpr int64_t local_bytes = 30, central_bytes = 46, end_bytes = 22,
                  end64_bytes = 56, locator64_bytes = 20;
constexpr int64_t longest_comment = 65535;
constexpr int64_t largest_directory = int64_t{16} << 20;
constexpr uint16_t stored = 0, deflated = 8;
constexpr uint16_t flag_encrypted = 1, flag_utf8 = 1 << 11;
// Deflate packs 258 bytes into 2 bits at best, so no honest ratio is higher.
constexpr int64_t highest_ratio = 1032;
constexpr size_t chunk = size_t{256} << 10;
// What zlib is given at once: some milliseconds.
constexpr int64_t largest_piece = int64_t{1} << 20;
constexpr size_t largest_deflated = size_t{128} << 10;

Error invalid(std::string message) {
  return {.kind = Error::Kind::invalid_file, .message = std::move(message)};
}

template <class T>
T get(std::span<const uint8_t> bytes, int64_t offset) {
  T value = 0;
  for (size_t i = 0; i < sizeof(T); ++i)
    value |= static_cast<T>(T{bytes[offset + i]} << (8 * i));
  return value;
}

template <class T>
void put(std::vector<uint8_t>& bytes, T value) {
  for (size_t i = 0; i < sizeof(T); ++i)
    bytes.push_back(static_cast<uint8_t>(value >> (8 * i)));
}

struct Directory {
  uint64_t offset, bytes, entries;
};

/// The extended end record, if `offset` has a locator of one before it.
Result<std::optional<Directory>> find_end64(const InputFile& file,
                                            int64_t end_offset) {
  std::vector<uint8_t> locator(locator64_bytes);
  int64_t at = end_offset - locator64_bytes;
  if (at < 0) return std::optional<Directory>();
  TRY(file.read(at, locator));
  if (get<uint32_t>(locator, 0) != locator64_signature)
    return std::optional<Directory>();
  auto offset = get<uint64_t>(locator, 8);
  if (offset > static_cast<uint64_t>(at) ||
      static_cast<uint64_t>(at) - offset < static_cast<uint64_t>(end64_bytes))
    return invalid("the zip64 end record lies outside of the file");
  std::vector<uint8_t> end(end64_bytes);
  TRY(file.read(static_cast<int64_t>(offset), end));
  if (get<uint32_t>(end, 0) != end64_signature)
    return invalid("the zip64 end record is missing");
  return std::optional<Directory>(
      {get<uint64_t>(end, 48), get<uint64_t>(end, 40), get<uint64_t>(end, 32)});
}

Result<Directory> find_directory(const InputFile& file) {
  int64_t tail = std::min(file.size(), end_bytes + longest_comment);
  std::vector<uint8_t> bytes(static_cast<size_t>(tail));
  TRY(file.read(file.size() - tail, bytes));
  for (int64_t at = tail - end_bytes; at >= 0; --at) {
    if (get<uint32_t>(bytes, at) != end_signature ||
        at + end_bytes + get<uint16_t>(bytes, at + 20) != tail)
      continue;
    int64_t end_offset = file.size() - tail + at;
    auto end64 = TRY(find_end64(file, end_offset));
    if (get<uint16_t>(bytes, at + 4) != 0 || get<uint16_t>(bytes, at + 6) != 0)
      return invalid("the archive has several parts");
    Directory directory = end64 ? *end64
                                : Directory{get<uint32_t>(bytes, at + 16),
                                            get<uint32_t>(bytes, at + 12),
                                            get<uint16_t>(bytes, at + 10)};
    auto end = static_cast<uint64_t>(end_offset);
    if (directory.offset > end || directory.bytes > end - directory.offset)
      return invalid("the zip directory lies outside of the file");
    if (directory.bytes > static_cast<uint64_t>(largest_directory) ||
        directory.entries > directory.bytes / central_bytes)
      return invalid("the zip directory has an impossible size");
    return directory;
  }
  return invalid("not a zip archive: it has no end record");
}

/// Sizes and offset from the zip64 field, where the short ones are all ones.
bool read_zip64(std::span<const uint8_t> extra, uint64_t* values[3]) {
  bool needed = false;
  for (int i = 0; i < 3; ++i) needed |= *values[i] == 0xffffffff;
  while (needed && extra.size() >= 4) {
    auto id = get<uint16_t>(extra, 0);
    size_t length = get<uint16_t>(extra, 2);
    if (length > extra.size() - 4) return false;
    if (id == 1) {
      std::span<const uint8_t> field = extra.subspan(4, length);
      for (int i = 0; i < 3; ++i) {
        if (*values[i] != 0xffffffff) continue;
        if (field.size() < 8) return false;
        *values[i] = get<uint64_t>(field, 0);
        field = field.subspan(8);
      }
      return true;
    }
    extra = extra.subspan(4 + length);
  }
  return true;
}

std::string shown(std::string_view name) {
  std::string text;
  for (char c : name.substr(0, 60)) text += c >= ' ' && c <= '~' ? c : '?';
  return text;
}

/// Reads the entry at the start of `bytes` and drops it from there; its
/// data_offset is that of the local header yet.
Result<ZipEntry> parse_central(std::span<const uint8_t>& bytes) {
  auto size = static_cast<int64_t>(bytes.size());
  if (size < central_bytes || get<uint32_t>(bytes, 0) != central_signature)
    return invalid("the zip directory is malformed");
  auto flags = get<uint16_t>(bytes, 8), method = get<uint16_t>(bytes, 10);
  int64_t name = get<uint16_t>(bytes, 28), extra = get<uint16_t>(bytes, 30),
          comment = get<uint16_t>(bytes, 32);
  if (central_bytes + name + extra + comment > size)
    return invalid("the zip directory is malformed");
  uint64_t packed = get<uint32_t>(bytes, 20), full = get<uint32_t>(bytes, 24),
           offset = get<uint32_t>(bytes, 42);
  uint64_t* values[3] = {&full, &packed, &offset};
  if (!read_zip64(bytes.subspan(central_bytes + name, extra), values))
    return invalid("the zip directory is malformed");

  ZipEntry entry;
  auto* start = reinterpret_cast<const char*>(bytes.data()) + central_bytes;
  entry.name.assign(start, static_cast<size_t>(name));
  if (flags & flag_encrypted)
    return invalid(fmt::format("`{}` is encrypted", shown(entry.name)));
  if (method != stored && method != deflated)
    return invalid(
        fmt::format("`{}` is packed by method {}; stored (0) and "
                    "deflated (8) can be read",
                    shown(entry.name), method));
  constexpr uint64_t largest = std::numeric_limits<int64_t>::max() / 2;
  if (std::max({full, packed, offset}) > largest)
    return invalid(
        fmt::format("`{}` has an impossible size", shown(entry.name)));
  entry.deflated = method == deflated;
  entry.crc = get<uint32_t>(bytes, 16);
  entry.packed = static_cast<int64_t>(packed);
  entry.size = static_cast<int64_t>(full);
  entry.data_offset = static_cast<int64_t>(offset);
  bytes = bytes.subspan(central_bytes + name + extra + comment);
  return entry;
}

/// Moves data_offset from the local header to the data behind it, after
/// checking that both headers tell of one entry.
Status skip_local_header(const InputFile& file, int64_t directory_offset,
                         ZipEntry& entry) {
  std::string name = shown(entry.name);
  auto outside = [&] {
    return invalid(fmt::format("`{}` lies outside of the file", name));
  };
  int64_t offset = entry.data_offset;
  if (offset > directory_offset - local_bytes) return outside();
  std::vector<uint8_t> header(local_bytes);
  TRY(file.read(offset, header));
  int64_t name_bytes = get<uint16_t>(header, 26);
  int64_t data = offset + local_bytes + name_bytes + get<uint16_t>(header, 28);
  if (data > directory_offset || entry.packed > directory_offset - data)
    return outside();
  std::vector<uint8_t> local_name(static_cast<size_t>(name_bytes));
  TRY(file.read(offset + local_bytes, local_name));
  if (get<uint32_t>(header, 0) != local_signature ||
      (get<uint16_t>(header, 8) == deflated) != entry.deflated ||
      !std::equal(local_name.begin(), local_name.end(), entry.name.begin(),
                  entry.name.end(), [](uint8_t a, char b) {
                    return a == static_cast<uint8_t>(b);
                  }))
    return invalid(
        fmt::format("`{}` is not what the zip directory says", name));
  bool possible = entry.deflated ? entry.size / highest_ratio <= entry.packed
                                 : entry.size == entry.packed;
  if (!possible)
    return invalid(
        fmt::format("`{}` declares {} bytes, but only {} packed "
                    "bytes are there",
                    name, entry.size, entry.packed));
  entry.data_offset = data;
  return Unit{};
}

Status check_apart(const std::vector<ZipEntry>& entries) {
  std::vector<std::pair<int64_t, int64_t>> ranges;
  for (const ZipEntry& entry : entries)
    ranges.emplace_back(entry.data_offset, entry.data_offset + entry.packed);
  std::sort(ranges.begin(), ranges.end());
  for (size_t i = 1; i < ranges.size(); ++i)
    if (ranges[i].first < ranges[i - 1].second)
      return invalid("entries of the archive overlap");
  return Unit{};
}

/// Polls. To zlib, no bytes at all would mean: start anew.
uint32_t crc_of(uint32_t crc, std::span<const uint8_t> bytes) {
  in_pieces(static_cast<int64_t>(bytes.size()), largest_piece,
            [&](int64_t begin, int64_t end) {
              crc = static_cast<uint32_t>(crc32_z(
                  crc, bytes.data() + begin, static_cast<size_t>(end - begin)));
            });
  return crc;
}

/// zlib's inflate over a part of a file.
class Inflater {
 public:
  Inflater(const InputFile& file, const ZipEntry& entry)
      : file_(file),
        offset_(entry.data_offset),
        left_(entry.packed),
        input_(std::min(chunk, static_cast<size_t>(entry.packed))) {
    ready_ = inflateInit2(&stream_, -MAX_WBITS) == Z_OK;
  }
  ~Inflater() {
    if (ready_) inflateEnd(&stream_);
  }
  Inflater(const Inflater&) = delete;

  /// Fills `to` as far as the data goes: the number of bytes.
  Result<int64_t> read(std::span<uint8_t> to) {
    if (!ready_)
      return Error{.kind = Error::Kind::out_of_memory,
                   .message = "out of memory: cannot unpack"};
    int64_t filled = 0;
    while (!to.empty() && !ended_) {
      if (stop_requested()) return stopped_error();
      if (stream_.avail_in == 0 && left_ > 0) {
        auto count = static_cast<size_t>(
            std::min<int64_t>(left_, static_cast<int64_t>(input_.size())));
        TRY(file_.read(offset_, {input_.data(), count}));
        offset_ += static_cast<int64_t>(count);
        left_ -= static_cast<int64_t>(count);
        stream_.next_in = input_.data();
        stream_.avail_in = static_cast<uInt>(count);
      }
      auto room = std::min<size_t>(to.size(), 4 * largest_piece);
      stream_.next_out = to.data();
      stream_.avail_out = static_cast<uInt>(room);
      int status = inflate(&stream_, Z_NO_FLUSH);
      size_t made = room - stream_.avail_out;
      filled += static_cast<int64_t>(made);
      to = to.subspan(made);
      if (status == Z_STREAM_END)
        ended_ = true;
      else if (status != Z_OK)
        return invalid("the packed data is damaged");
    }
    return filled;
  }

 private:
  const InputFile& file_;
  int64_t offset_, left_;
  std::vector<uint8_t> input_;
  z_stream stream_ = {};
  bool ready_ = false;
  bool ended_ = false;
};

Status inflate_entry(const InputFile& file, const ZipEntry& entry,
                     std::span<uint8_t> to) {
  Inflater inflater(file, entry);
  int64_t filled = TRY(inflater.read(to));
  bool all = static_cast<int64_t>(to.size()) == entry.size;
  uint8_t more;
  if (all && filled == entry.size) {
    int64_t after = TRY(inflater.read({&more, 1}));
    filled += after;
  }
  if (filled != static_cast<int64_t>(to.size()))
    return invalid("its data is not as long as declared");
  return Unit{};
}

/// Both parts as one stream, or nothing if zlib fails. Polls.
std::optional<std::vector<uint8_t>> deflate_all(std::span<const uint8_t> head,
                                                std::span<const uint8_t> body) {
  z_stream stream = {};
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 8,
                   Z_DEFAULT_STRATEGY) != Z_OK)
    return std::nullopt;
  const std::unique_ptr<z_stream, int (*)(z_stream*)> end(&stream, deflateEnd);
  std::vector<uint8_t> packed;
  resize_in_pieces(packed,
                   static_cast<int64_t>(
                       deflateBound(&stream, head.size() + body.size()) + 64));
  stream.next_out = packed.data();
  stream.avail_out = static_cast<uInt>(packed.size());
  int status = Z_OK;
  std::span<const uint8_t> rest[] = {head, body};
  for (auto& part : rest) {
    const bool last = &part == &rest[1];
    do {
      poll_stop();
      const size_t count = std::min(part.size(), largest_deflated);
      // zlib does not write through next_in.
      stream.next_in = const_cast<uint8_t*>(part.data());
      stream.avail_in = static_cast<uInt>(count);
      part = part.subspan(count);
      status = deflate(&stream, last && part.empty() ? Z_FINISH : Z_NO_FLUSH);
    } while (!part.empty());
  }
  if (status != Z_STREAM_END) return std::nullopt;
  packed.resize(packed.size() - stream.avail_out);
  return packed;
}

/// The fields that local header and directory share, from version to extra.
void put_common(std::vector<uint8_t>& bytes, const ZipEntry& entry) {
  put<uint16_t>(bytes, 20);
  put<uint16_t>(bytes, flag_utf8);
  put<uint16_t>(bytes, entry.deflated ? deflated : stored);
  put<uint16_t>(bytes, 0);
  put<uint16_t>(bytes, 0x21);  // 1 January 1980: the same bytes in every run
  put<uint32_t>(bytes, entry.crc);
  put<uint32_t>(bytes, static_cast<uint32_t>(entry.packed));
  put<uint32_t>(bytes, static_cast<uint32_t>(entry.size));
  put<uint16_t>(bytes, static_cast<uint16_t>(entry.name.size()));
  put<uint16_t>(bytes, 0);
}

/// No archive that is written is as large as this.
constexpr int64_t too_large = 0xffff0000;

bool fits(const ZipEntry& entry, int64_t offset, size_t before) {
  return offset + entry.size <= too_large && before < 0xfffe &&
         entry.name.size() <= 0xffff;
}

Error too_big() {
  return {.kind = Error::Kind::io,
          .message =
              "an .npz of 4 GiB or more cannot be written; save it as "
              ".safetensors"};
}

std::vector<uint8_t> local_header(const ZipEntry& entry) {
  std::vector<uint8_t> bytes;
  put<uint32_t>(bytes, local_signature);
  put_common(bytes, entry);
  bytes.insert(bytes.end(), entry.name.begin(), entry.name.end());
  return bytes;
}

/// Adds what the directory says of an entry whose local header is at `offset`.
void put_central(std::vector<uint8_t>& bytes, const ZipEntry& entry,
                 int64_t offset) {
  put<uint32_t>(bytes, central_signature);
  put<uint16_t>(bytes, 20);
  put_common(bytes, entry);
  put<uint16_t>(bytes, 0);  // comment
  put<uint16_t>(bytes, 0);  // disk
  put<uint16_t>(bytes, 0);  // attributes
  put<uint32_t>(bytes, 0);
  put<uint32_t>(bytes, static_cast<uint32_t>(offset));
  bytes.insert(bytes.end(), entry.name.begin(), entry.name.end());
}

/// Behind a directory, which begins at `offset`.
void put_end(std::vector<uint8_t>& bytes, size_t directory, size_t entries,
             int64_t offset) {
  put<uint32_t>(bytes, end_signature);
  put<uint16_t>(bytes, 0);
  put<uint16_t>(bytes, 0);
  put<uint16_t>(bytes, static_cast<uint16_t>(entries));
  put<uint16_t>(bytes, static_cast<uint16_t>(entries));
  put<uint32_t>(bytes, static_cast<uint32_t>(directory));
  put<uint32_t>(bytes, static_cast<uint32_t>(offset));
  put<uint16_t>(bytes, 0);
}

}  // namespace

Result<std::vector<ZipEntry>> read_zip_directory(const InputFile& file) {
  Directory directory = TRY(find_directory(file));
  std::vector<uint8_t> bytes(directory.bytes);
  auto offset = static_cast<int64_t>(directory.offset);
  TRY(file.read(offset, bytes));
  std::vector<ZipEntry> entries;
  std::span<const uint8_t> rest = bytes;
  for (uint64_t i = 0; i < directory.entries; ++i) {
    ZipEntry entry = TRY(parse_central(rest));
    TRY(skip_local_header(file, offset, entry));
    entries.push_back(std::move(entry));
  }
  if (!rest.empty()) return invalid("the zip directory is malformed");
  TRY(check_apart(entries));
  return entries;
}

Status unpack(const InputFile& file, const ZipEntry& entry,
              std::span<uint8_t> to) {
  TRY(entry.deflated ? inflate_entry(file, entry, to)
                     : file.read(entry.data_offset, to));
  bool all = static_cast<int64_t>(to.size()) == entry.size;
  return unless_stopped([&]() -> Status {
    if (all && crc_of(0, to) != entry.crc)
      return invalid("its checksum is wrong");
    return Unit{};
  });
}

Result<ZipPlaces> place_stored(std::span<const ZipEntry> entries) {
  ZipPlaces out;
  int64_t directory = end_bytes;
  for (const ZipEntry& entry : entries) {
    if (!fits(entry, out.size, out.data.size())) return too_big();
    const auto name = static_cast<int64_t>(entry.name.size());
    out.data.push_back(out.size + local_bytes + name);
    out.size = out.data.back() + entry.size;
    directory += central_bytes + name;
  }
  out.size += directory;
  return out;
}

std::vector<std::pair<int64_t, std::vector<uint8_t>>> stored_heads(
    std::span<const ZipEntry> entries) {
  std::vector<std::pair<int64_t, std::vector<uint8_t>>> out;
  std::vector<uint8_t> directory;
  int64_t offset = 0;
  for (const ZipEntry& entry : entries) {
    put_central(directory, entry, offset);
    out.emplace_back(offset, local_header(entry));
    offset += static_cast<int64_t>(out.back().second.size()) + entry.size;
  }
  put_end(directory, directory.size(), entries.size(), offset);
  out.emplace_back(offset, std::move(directory));
  return out;
}

uint32_t crc_of_both(std::span<const uint8_t> head, uint32_t checksum,
                     int64_t bytes) {
  const auto first = crc32_z(0, head.data(), head.size());
  return static_cast<uint32_t>(crc32_combine(first, checksum, bytes));
}

uint32_t crc_behind(std::span<const uint8_t> head, uint32_t both,
                    int64_t bytes) {
  return both ^ crc_of_both(head, 0, bytes);
}

uint32_t crc_of_bytes(std::span<const uint8_t> bytes) {
  return crc_of(0, bytes);
}

Status ZipWriter::add(const std::string& name, std::span<const uint8_t> head,
                      std::span<const uint8_t> body, bool deflate) {
  return unless_stopped([&] { return add_entry(name, head, body, deflate); });
}

Status ZipWriter::add_entry(const std::string& name,
                            std::span<const uint8_t> head,
                            std::span<const uint8_t> body, bool deflate) {
  ZipEntry entry;
  entry.name = name;
  entry.size = static_cast<int64_t>(head.size() + body.size());
  entry.packed = entry.size;
  if (!fits(entry, offset_, static_cast<size_t>(entries_))) return too_big();
  entry.crc = crc_of(crc_of(0, head), body);
  std::vector<uint8_t> packed;
  if (deflate) {
    auto result = deflate_all(head, body);
    entry.deflated = result && result->size() < head.size() + body.size();
    if (entry.deflated) {
      packed = std::move(*result);
      entry.packed = static_cast<int64_t>(packed.size());
      head = packed;
      body = {};
    }
  }
  const std::vector<uint8_t> local = local_header(entry);
  for (auto part : {std::span<const uint8_t>(local), head, body})
    TRY(file_.write(part));

  put_central(directory_, entry, offset_);
  offset_ += static_cast<int64_t>(local.size()) + entry.packed;
  ++entries_;
  return Unit{};
}

Status ZipWriter::commit() {
  std::vector<uint8_t> end = directory_;
  put_end(end, directory_.size(), static_cast<size_t>(entries_), offset_);
  TRY(file_.write(end));
  return file_.commit();
}

}  // namespace unisono
