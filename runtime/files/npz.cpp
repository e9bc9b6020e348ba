#include "runtime/files/npz.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "runtime/check.h"
#include "runtime/files/array_file.h"
#include "runtime/files/file.h"
#include "runtime/files/zip.h"
#include "runtime/stop.h"

namespace unisono {
namespace {

constexpr std::string_view suffix = ".npy";

Error in_entry(const std::string& name, Error error) {
  if (error.kind == Error::Kind::cancelled) return error;
  error.message = fmt::format("array `{}`: {}", name, error.message);
  return error;
}

/// Erases the first `count` bytes.
Status drop_start(std::vector<uint8_t>& bytes, int64_t count) {
  const int64_t rest = static_cast<int64_t>(bytes.size()) - count;
  return unless_stopped([&]() -> Status {
    in_pieces(rest, int64_t{1} << 20, [&](int64_t begin, int64_t end) {
      std::memmove(bytes.data() + begin, bytes.data() + count + begin,
                   static_cast<size_t>(end - begin));
    });
    bytes.resize(static_cast<size_t>(rest));
    return Unit{};
  });
}

struct Archive {
  InputFile file;
  std::vector<ZipEntry> zip;      // [entry]
  std::vector<NpzEntry> entries;  // [entry]
};

/// An entry's name without `.npy`. Only printable text is a name, so that it
/// may be shown.
Result<std::string> array_name(const std::string& entry) {
  Error error{.kind = Error::Kind::invalid_file, .message = {}};
  bool shown = std::all_of(entry.begin(), entry.end(), [](char c) {
    return static_cast<unsigned char>(c) >= ' ' && c != '\x7f';
  });
  if (!shown) {
    error.message = "an entry's name has control characters";
    return error;
  }
  if (!entry.ends_with(suffix) || entry.size() == suffix.size()) {
    error.message =
        fmt::format("the entry `{}` is not an array (NAME.npy)", entry);
    return error;
  }
  return entry.substr(0, entry.size() - suffix.size());
}

Result<Archive> open_archive(const std::string& path) {
  InputFile file = TRY(InputFile::open(path));
  auto zip = TRY(read_zip_directory(file));
  Archive archive{std::move(file), std::move(zip), {}};
  std::set<std::string> names;
  for (const ZipEntry& entry : archive.zip) {
    std::string name = TRY(array_name(entry.name));
    if (!names.insert(name).second)
      return Error{.kind = Error::Kind::invalid_file,
                   .message = fmt::format("there are two arrays `{}`", name)};
    std::vector<uint8_t> start(
        static_cast<size_t>(std::min(entry.size, npy_longest_start)));
    if (Status read = unpack(archive.file, entry, start); !read)
      return in_entry(name, read.error());
    auto header = parse_npy_header(start, entry.size);
    if (!header) return in_entry(name, header.error());
    archive.entries.push_back({std::move(name), std::move(*header)});
  }
  return archive;
}

}  // namespace

Result<std::vector<NpzEntry>> read_npz_index(const std::string& path) {
  Archive archive = TRY(open_archive(path));
  return std::move(archive.entries);
}

Result<NamedArrays> read_npz(const std::string& path, int64_t most_bytes) {
  Archive archive = TRY(open_archive(path));
  NamedArrays arrays;
  for (size_t i = 0; i < archive.entries.size(); ++i) {
    const auto& [name, header] = archive.entries[i];
    auto bytes = allocate_bytes(archive.zip[i].size, most_bytes);
    if (!bytes) return in_entry(name, bytes.error());
    most_bytes -= archive.zip[i].size;
    if (Status read = unpack(archive.file, archive.zip[i], *bytes); !read)
      return in_entry(name, read.error());
    TRY(drop_start(*bytes, header.data_offset));
    auto data = decode_npy(header, std::move(*bytes), header.data_bytes);
    if (!data) return in_entry(name, data.error());
    arrays.emplace_back(name, std::move(*data));
  }
  return arrays;
}

Result<OpenArrays> open_npz(const std::string& path) {
  Archive archive = TRY(open_archive(path));
  OpenArrays out{std::move(archive.file), std::move(archive.entries), {}, {}};
  for (size_t i = 0; i < out.entries.size(); ++i) {
    const ZipEntry& zip = archive.zip[i];
    NpyHeader& header = out.entries[i].header;
    out.stored.push_back(!zip.deflated);
    std::optional<uint32_t> checksum;
    if (!zip.deflated) {
      std::vector<uint8_t> head(static_cast<size_t>(header.data_offset));
      TRY(out.file.read(zip.data_offset, head));
      checksum = crc_behind(head, zip.crc, header.data_bytes);
    }
    out.checksums.push_back(checksum);
    header.data_offset += zip.data_offset;
  }
  return out;
}

Result<FileLayout> npz_layout(std::span<const ArrayType> types) {
  FileLayout out;
  out.has_checksums = true;
  std::vector<ZipEntry> entries;
  std::vector<std::vector<uint8_t>> heads;
  for (const ArrayType& type : types) {
    CHECK(!type.name.empty());
    std::vector<uint8_t> head = encode_npy_header(type.dtype, type.shape);
    int64_t bytes = byte_size(type.dtype);
    for (const int64_t size : type.shape) bytes *= size;
    ZipEntry entry{.name = type.name + std::string(suffix)};
    entry.size = entry.packed = static_cast<int64_t>(head.size()) + bytes;
    entries.push_back(std::move(entry));
    heads.push_back(std::move(head));
    out.bytes.push_back(bytes);
  }
  const ZipPlaces places = TRY(place_stored(entries));
  out.size = places.size;
  for (size_t i = 0; i < entries.size(); ++i)
    out.offsets.push_back(places.data[i] +
                          static_cast<int64_t>(heads[i].size()));
  out.heads = [entries, heads,
               bytes = out.bytes](std::span<const uint32_t> checksums) {
    std::vector<ZipEntry> known = entries;
    for (size_t i = 0; i < known.size(); ++i)
      known[i].crc = crc_of_both(heads[i], checksums[i], bytes[i]);
    auto out = stored_heads(known);
    for (size_t i = 0; i < known.size(); ++i)
      out[i].second.insert(out[i].second.end(), heads[i].begin(),
                           heads[i].end());
    return out;
  };
  return out;
}

Status write_npz(const std::string& path, const NamedArrays& arrays,
                 bool deflate) {
  OutputFile file = TRY(OutputFile::create(path));
  ZipWriter writer(std::move(file));
  std::set<std::string> names;
  for (const auto& [name, data] : arrays) {
    CHECK(!name.empty() && names.insert(name).second);
    TRY(writer.add(name + std::string(suffix),
                   encode_npy_header(data.dtype, data.shape), data.bytes,
                   deflate));
  }
  return writer.commit();
}

}  // namespace unisono
