#include "runtime/files/safetensors.h"

#include <cstring>
#include <random>

#include "tests/unit/runtime/files.h"

namespace unisono {
namespace {

NamedArrays examples() {
  return {{"layers.0.w", {DType::F32, {2, 1}, {1, 2, 3, 4, 5, 6, 7, 8}}},
          {"half", {DType::BF16, {3}, {1, 2, 3, 4, 5, 6}}},
          {"flag", {DType::Bool, {}, {1}}},
          {"nothing", {DType::I16, {3, 0}, {}}},
          {"a \"quoted\" \\ name, \xc3\xa4", {DType::U64, {1}, Bytes(8, 9)}}};
}

Bytes file_with(const std::string& header, size_t data) {
  Bytes bytes(8);
  const uint64_t length = header.size();
  std::memcpy(bytes.data(), &length, sizeof length);
  bytes.insert(bytes.end(), header.begin(), header.end());
  bytes.resize(bytes.size() + data, 7);
  return bytes;
}

/// What is wrong with a file; empty if nothing is.
std::string message_of(const Bytes& bytes) {
  const TemporaryFolder folder;
  put_file(folder / "a.safetensors", bytes);
  const auto read = read_safetensors(folder / "a.safetensors");
  const auto index = read_safetensors_index(folder / "a.safetensors");
  REQUIRE(static_cast<bool>(read) == static_cast<bool>(index));
  return read ? "" : read.error().message;
}

TEST_CASE("safetensors: what is written is read") {
  const TemporaryFolder folder;
  const std::string path = folder / "a.safetensors";
  REQUIRE(write_safetensors(path, examples()));
  const auto read = read_safetensors(path);
  REQUIRE_MESSAGE(read, (read ? "" : read.error().message));
  REQUIRE(read->size() == examples().size());
  for (size_t i = 0; i < read->size(); ++i) {
    CHECK((*read)[i].first == examples()[i].first);
    CHECK((*read)[i].second.dtype == examples()[i].second.dtype);
    CHECK((*read)[i].second.shape == examples()[i].second.shape);
    CHECK((*read)[i].second.bytes == examples()[i].second.bytes);
  }
  // Wide elements first, each array aligned.
  const auto index = read_safetensors_index(path);
  REQUIRE(index);
  for (const NpzEntry& entry : *index)
    CHECK(entry.header.data_offset % byte_size(entry.header.dtype) == 0);
  REQUIRE(write_safetensors(path, {}));
  CHECK(read_safetensors(path)->empty());
  CHECK(folder.files() == 1);
}

TEST_CASE("safetensors: the sum of the arrays is bounded") {
  const TemporaryFolder folder;
  const std::string path = folder / "a.safetensors";
  REQUIRE(write_safetensors(path, examples()));
  CHECK(read_safetensors(path, 23));
  CHECK(read_safetensors(path, 22).error().kind == Error::Kind::out_of_memory);
}

TEST_CASE("safetensors: what others write") {
  CHECK(message_of(file_with(R"({})", 0)).empty());
  CHECK(message_of(file_with(" {\n} \t", 0)).empty());
  CHECK(message_of(file_with(R"({"__metadata__":{"format":"pt"},)"
                             R"("a":{"shape":[],"data_offsets":[0,1],)"
                             R"("dtype":"U8"}})",
                             1))
            .empty());
  // Elements in another order than the header has.
  CHECK(message_of(
            file_with(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[1,3]},)"
                      R"("\u00e4\ud83d\ude00":{"dtype":"U8","shape":[1],)"
                      R"("data_offsets":[0,1]}})",
                      3))
            .empty());
}

TEST_CASE("safetensors: headers that say what is not so") {
  const auto one = [](const std::string& dtype, const std::string& shape,
                      const std::string& offsets) {
    return R"({"a":{"dtype":")" + dtype + R"(","shape":)" + shape +
           R"(,"data_offsets":)" + offsets + "}}";
  };
  CHECK(message_of(file_with(one("U8", "[3]", "[0,3]"), 3)).empty());
  const std::string wrong[] = {
      one("U8", "[3]", "[0,4]"), one("U8", "[3]", "[1,4]"),
      one("U8", "[2]", "[0,2]"), one("F32", "[3]", "[0,3]"),
      one("F8_E4M3", "[3]", "[0,3]"), one("U8", "[-3]", "[0,3]"),
      one("U8", "[3]", "[3,0]"), one("U8", "[3]", "[0]"),
      one("U8", "[3]", "[0,3,3]"), one("U8", "3", "[0,3]"),
      one("U8", "[3,]", "[0,3]"), one("U8", "[3.0]", "[0,3]"),
      one("U8", "[9223372036854775807,9223372036854775807]", "[0,3]"),
      one("U8", "[99999999999999999999]", "[0,3]"),
      one("U8", "[3]", "[0,1000000000000000000]"),
      "{\"a\":{\"dtype\":\"U8\",\"shape\":[3]}}",
      "{\"a\":{\"dtype\":\"U8\",\"dtype\":\"U8\",\"shape\":[3],"
      "\"data_offsets\":[0,3]}}",
      "{\"a\":3}", "[]", "", "{", "{\"a", "{\"a\":{\"x\":[]}}", "{}}", "null",
      R"({"a\q":{"dtype":"U8","shape":[3],"data_offsets":[0,3]}})",
      R"({"\ud800":{"dtype":"U8","shape":[3],"data_offsets":[0,3]}})",
      R"({"\u000a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]}})",
      R"({"":{"dtype":"U8","shape":[3],"data_offsets":[0,3]}})",
      R"({"__metadata__":{"a":3}})",
      // Overlapping, and twice the same name.
      R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
      R"("b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
      R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
      R"("a":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})"};
  for (const std::string& header : wrong) {
    CAPTURE(header);
    CHECK(!message_of(file_with(header, 3)).empty());
  }
  CHECK(!message_of({}).empty());
  CHECK(!message_of({1, 0, 0, 0, 0, 0, 0}).empty());
  CHECK(!message_of(Bytes(64, 0xff)).empty());
}

TEST_CASE("safetensors: damaged files are read or refused") {
  const TemporaryFolder folder;
  REQUIRE(write_safetensors(folder / "a.safetensors", examples()));
  const Bytes good = get_file(folder / "a.safetensors");
  std::mt19937 random(7);
  for (int i = 0; i < 3'000; ++i) {
    Bytes bytes = good;
    if (i % 4 == 0) bytes.resize(random() % (bytes.size() + 1));
    for (uint32_t n = random() % 3; n > 0 && !bytes.empty(); --n)
      bytes[random() % bytes.size()] = static_cast<uint8_t>(random());
    message_of(bytes);
  }
}

}  // namespace
}  // namespace unisono
