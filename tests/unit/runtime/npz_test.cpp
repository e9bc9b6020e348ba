#include "runtime/files/npz.h"

#include <cstring>

#include "tests/unit/runtime/files.h"

namespace unisono {
namespace {

NamedArrays examples() {
  Bytes zeros(400'000), noise(3'000);
  uint32_t state = 1;
  for (uint8_t& byte : noise) {
    state = state * 1664525 + 1013904223;
    byte = static_cast<uint8_t>(state >> 24);
  }
  return {{"x", {DType::F32, {2, 1}, {1, 2, 3, 4, 5, 6, 7, 8}}},
          {"zeros", {DType::F64, {50, 1000}, zeros}},
          {"noise", {DType::U8, {3000}, noise}},
          {"scalar", {DType::Bool, {}, {1}}},
          {"nothing", {DType::I16, {3, 0}, {}}}};
}

void check_same(const NamedArrays& a, const NamedArrays& b) {
  REQUIRE(a.size() == b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    CHECK(a[i].first == b[i].first);
    CHECK(a[i].second.dtype == b[i].second.dtype);
    CHECK(a[i].second.shape == b[i].second.shape);
    CHECK(a[i].second.bytes == b[i].second.bytes);
  }
}

TEST_CASE("npz: what is written is read, stored and deflated") {
  TemporaryFolder folder;
  std::string path = folder / "a.npz";
  for (bool deflate : {false, true}) {
    REQUIRE(write_npz(path, examples(), deflate));
    CHECK((get_file(path).size() < 10'000) == deflate);
    auto read = read_npz(path);
    REQUIRE_MESSAGE(read, (read ? "" : read.error().message));
    check_same(*read, examples());
    auto index = read_npz_index(path);
    REQUIRE(index);
    CHECK((*index)[1].name == "zeros");
    CHECK((*index)[1].header.shape == std::vector<int64_t>{50, 1000});
  }
  REQUIRE(write_npz(path, {}));
  CHECK(read_npz(path)->empty());
  CHECK(folder.files() == 1);
}

TEST_CASE("npz: the sum of the arrays is bounded") {
  TemporaryFolder folder;
  std::string path = folder / "a.npz";
  REQUIRE(write_npz(path, examples(), true));
  CHECK(read_npz(path, 500'000));
  CHECK(read_npz(path, 400'200).error().kind == Error::Kind::out_of_memory);
  CHECK(read_npz(path, 100).error().kind == Error::Kind::out_of_memory);
}

/// One array `a` of 3 bytes, whose parts are where these say.
struct OneArray {
  explicit OneArray(bool deflate) {
    TemporaryFolder folder;
    Bytes data(300, 7);
    REQUIRE(write_npz(folder / "a.npz", {{"a", {DType::U8, {300}, data}}},
                      deflate));
    bytes = get_file(folder / "a.npz");
    end = bytes.size() - 22;
    central = end - 46 - 5;
  }
  template <class T>
  void set(size_t at, T value) {
    std::memcpy(&bytes[at], &value, sizeof(T));
  }
  Bytes bytes;
  size_t central, end;
};

std::string reason(const Bytes& file) {
  TemporaryFolder folder;
  put_file(folder / "a.npz", file);
  auto read = read_npz(folder / "a.npz");
  if (read) return "";
  CHECK(read.error().kind == Error::Kind::invalid_file);
  return read.error().message;
}

TEST_CASE("npz: archives that are not what they say they are") {
  for (bool deflate : {false, true}) {
    const OneArray good(deflate);
    CHECK(reason(good.bytes) == "");
    auto with = [&](auto&& change) {
      OneArray bad = good;
      change(bad);
      return reason(bad.bytes);
    };
    auto has = [](const std::string& text, const char* part) {
      CHECK_MESSAGE(text.find(part) != std::string::npos, text);
    };
    has(reason({}), "no end record");
    has(reason({'P', 'K', 3, 4}), "no end record");
    has(with([](OneArray& a) { a.bytes.pop_back(); }), "no end record");
    has(with([](OneArray& a) { a.bytes.push_back(0); }), "no end record");
    has(with([](OneArray& a) { a.set<uint16_t>(a.end + 4, 1); }),
        "several parts");
    has(with([](OneArray& a) { a.set<uint16_t>(a.end + 10, 2); }),
        "impossible size");
    has(with([](OneArray& a) { a.set<uint16_t>(a.end + 10, 0); }), "malformed");
    has(with([](OneArray& a) { a.set<uint32_t>(a.end + 12, 1 << 30); }),
        "outside of the file");
    has(with([](OneArray& a) { a.set<uint32_t>(a.end + 16, 1 << 30); }),
        "outside of the file");
    has(with([](OneArray& a) { a.set<uint32_t>(a.end + 16, 0); }), "malformed");
    has(with([](OneArray& a) { a.set<uint32_t>(a.central, 0); }), "malformed");
    has(with([](OneArray& a) { a.set<uint16_t>(a.central + 28, 60000); }),
        "malformed");
    has(with([](OneArray& a) { a.set<uint16_t>(a.central + 8, 1); }),
        "encrypted");
    has(with([](OneArray& a) { a.set<uint16_t>(a.central + 10, 12); }),
        "method 12");
    has(with([](OneArray& a) { a.set<uint32_t>(a.central + 16, 1); }),
        "checksum is wrong");
    has(with([](OneArray& a) { a.set<uint32_t>(a.central + 20, 1 << 20); }),
        "outside of the file");
    has(with([](OneArray& a) { a.set<uint32_t>(a.central + 24, 1 << 30); }),
        "declares 1073741824 bytes, but only");
    has(with([](OneArray& a) { a.set<uint32_t>(a.central + 42, 10); }),
        "outside of the file");
    has(with([](OneArray& a) { a.set<uint32_t>(a.central + 42, 1 << 20); }),
        "outside of the file");
    has(with([](OneArray& a) { a.bytes[30] = 'b'; }),
        "not what the zip directory says");
    has(with([](OneArray& a) { a.bytes[a.central + 46] = a.bytes[30] = '\n'; }),
        "control characters");
    has(with([](OneArray& a) { a.bytes[a.central + 49] = 'x'; }),
        "not what the zip directory says");
    has(with([](OneArray& a) { a.bytes[a.central + 48] = a.bytes[32] = 'x'; }),
        "is not an array");
    has(with([](OneArray& a) { a.set<uint32_t>(a.central + 24, 0xffffffff); }),
        "declares 4294967295 bytes");
    // A byte of the data.
    std::string damaged = with([](OneArray& a) { a.bytes[60] ^= 0x55; });
    CHECK(damaged != "");
  }
  OneArray longer(true);
  longer.set<uint32_t>(longer.central + 24, 429);  // of 428
  CHECK(reason(longer.bytes).find("array `a`") != std::string::npos);
  OneArray shorter(true);
  shorter.set<uint32_t>(shorter.central + 24, 427);
  CHECK(reason(shorter.bytes).find("array `a`") != std::string::npos);
}

TEST_CASE("npz: two arrays of one name, entries in one place") {
  TemporaryFolder folder;
  std::string path = folder / "a.npz";
  Bytes data(64, 1);
  REQUIRE(write_npz(
      path, {{"a", {DType::U8, {64}, data}}, {"b", {DType::U8, {64}, data}}}));
  Bytes file = get_file(path);
  size_t end = file.size() - 22, first = end - 102, second = end - 51;
  Bytes twice = file;
  size_t second_local = 30 + 5 + 128 + 64;
  twice[second + 46] = twice[second_local + 30] = 'a';
  CHECK(reason(twice) == "there are two arrays `a`");
  // Both of the directory's entries tell of the first place.
  Bytes overlap = file;
  std::memcpy(&overlap[second], &overlap[first], 51);
  CHECK(reason(overlap) == "entries of the archive overlap");
}

TEST_CASE("npz: zip64 sizes, as NumPy writes them for large archives") {
  TemporaryFolder folder;
  OneArray plain(false);
  // The directory again, with its numbers in a zip64 field.
  Bytes field = {1, 0, 24, 0};
  auto put64 = [](Bytes& to, uint64_t value) {
    for (int i = 0; i < 8; ++i)
      to.push_back(static_cast<uint8_t>(value >> (8 * i)));
  };
  auto put32 = [](Bytes& to, uint32_t value) {
    for (int i = 0; i < 4; ++i)
      to.push_back(static_cast<uint8_t>(value >> (8 * i)));
  };
  put64(field, 428);
  put64(field, 428);
  put64(field, 0);
  OneArray big = plain;
  big.set<uint32_t>(big.central + 20, 0xffffffff);
  big.set<uint32_t>(big.central + 24, 0xffffffff);
  big.set<uint32_t>(big.central + 42, 0xffffffff);
  big.set<uint16_t>(big.central + 30, static_cast<uint16_t>(field.size()));
  Bytes file(big.bytes.begin(), big.bytes.end() - 22);
  file.insert(file.end(), field.begin(), field.end());
  size_t end64 = file.size();
  put32(file, 0x06064b50);
  put64(file, 44);
  put32(file, 45 | 45 << 16);
  put64(file, 0);
  put64(file, 1);
  put64(file, 1);
  put64(file, end64 - big.central);
  put64(file, big.central);
  put32(file, 0x07064b50);
  put32(file, 0);
  put64(file, end64);
  put32(file, 1);
  put32(file, 0x06054b50);
  put32(file, 0);
  put32(file, 0xffffffff);
  put32(file, 0xffffffff);
  put32(file, 0xffffffff);
  file.insert(file.end(), {0, 0});
  CHECK(reason(file) == "");
  file[end64 + 48] ^= 1;
  CHECK(reason(file) != "");
  file[end64 + 48] ^= 1;
  file[end64] = 0;
  CHECK(reason(file) == "the zip64 end record is missing");
}

TEST_CASE("npz: every prefix of a file and every changed byte is survived") {
  TemporaryFolder folder;
  std::string path = folder / "a.npz";
  const OneArray good(true);
  for (size_t length = 0; length < good.bytes.size(); ++length) {
    put_file(path, Bytes(good.bytes.begin(),
                         good.bytes.begin() + static_cast<int64_t>(length)));
    CHECK(!read_npz(path));
  }
  for (size_t at = 0; at < good.bytes.size(); ++at) {
    for (int value : {0, 0x7f, 0xff}) {
      Bytes file = good.bytes;
      file[at] = static_cast<uint8_t>(value);
      put_file(path, file);
      auto read = read_npz(path);
      if (read) CHECK((read->empty() || (*read)[0].second.bytes.size() == 300));
    }
  }
}

}  // namespace
}  // namespace unisono
