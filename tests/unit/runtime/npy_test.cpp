#include "runtime/files/npy.h"

#include <sys/stat.h>

#include <cstring>
#include <numeric>

#include "tests/unit/runtime/files.h"

namespace unisono {
namespace {

Bytes counted(size_t bytes) {
  Bytes data(bytes);
  std::iota(data.begin(), data.end(), uint8_t{1});
  return data;
}

TEST_CASE("npy: what is written is read, for every element type and rank") {
  TemporaryFolder folder;
  std::string path = folder / "a.npy";
  std::vector<std::vector<int64_t>> shapes = {{},     {0},       {5},
                                              {2, 3}, {4, 0, 2}, {2, 1, 3, 2}};
  for (DType dtype : all_dtypes) {
    for (const auto& shape : shapes) {
      int64_t elements = std::accumulate(shape.begin(), shape.end(), int64_t{1},
                                         std::multiplies<>());
      Bytes data = counted(static_cast<size_t>(elements * byte_size(dtype)));
      if (is_bool(dtype))
        for (uint8_t& byte : data) byte &= 1;
      REQUIRE(write_npy(path, dtype, shape, data));
      CHECK(get_file(path).size() % 64 == data.size() % 64);
      auto header = read_npy_header(path);
      REQUIRE(header);
      CHECK(header->dtype == dtype);
      CHECK(header->shape == shape);
      auto read = read_npy(path);
      REQUIRE(read);
      CHECK(read->dtype == dtype);
      CHECK(read->shape == shape);
      CHECK(read->bytes == data);
    }
  }
  CHECK(folder.files() == 1);
}

TEST_CASE("npy: the header is the one that NumPy writes") {
  TemporaryFolder folder;
  std::string path = folder / "a.npy";
  auto text = [&](DType dtype, std::vector<int64_t> shape, size_t bytes) {
    REQUIRE(write_npy(path, dtype, shape, Bytes(bytes)));
    Bytes file = get_file(path);
    std::string header(file.begin() + 10, file.end() - bytes);
    CHECK(header.back() == '\n');
    return header.substr(0, header.find('}') + 1);
  };
  CHECK(text(DType::F32, {3, 4}, 48) ==
        "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }");
  CHECK(text(DType::I64, {7}, 56) ==
        "{'descr': '<i8', 'fortran_order': False, 'shape': (7,), }");
  CHECK(text(DType::Bool, {}, 1) ==
        "{'descr': '|b1', 'fortran_order': False, 'shape': (), }");
  CHECK(text(DType::U8, {0}, 0) ==
        "{'descr': '|u1', 'fortran_order': False, 'shape': (0,), }");
  CHECK(text(DType::BF16, {1}, 2) ==
        "{'descr': '<V2', 'fortran_order': False, 'shape': (1,), }");
}

TEST_CASE("npy: byte orders, names of types, versions, spellings") {
  TemporaryFolder folder;
  std::string path = folder / "a.npy";
  auto read = [&](const std::string& header, const Bytes& data,
                  int version = 1) {
    put_file(path, npy_file(header, data, version));
    auto result = read_npy(path);
    REQUIRE_MESSAGE(result, (result ? "" : result.error().message));
    return std::move(*result);
  };
  CHECK(read(dictionary(">i2", "(2,)"), {1, 2, 3, 4}).bytes ==
        Bytes{2, 1, 4, 3});
  CHECK(read(dictionary("<i2", "(2,)"), {1, 2, 3, 4}).bytes ==
        Bytes{1, 2, 3, 4});
  CHECK(read(dictionary("=u2", "(1,)"), {1, 2}).dtype == DType::U16);
  CHECK(read(dictionary(">f4", "()"), {1, 2, 3, 4}).bytes == Bytes{4, 3, 2, 1});
  CHECK(read(dictionary(">f8", "(1,)"), {1, 2, 3, 4, 5, 6, 7, 8}).bytes ==
        Bytes{8, 7, 6, 5, 4, 3, 2, 1});
  CHECK(read(dictionary(">u1", "(1,)"), {9}).bytes == Bytes{9});
  CHECK(read(dictionary("<f2", "(1,)"), {1, 2}).dtype == DType::F16);
  for (const char* name : {"<V2", "|V2", "bfloat16"})
    CHECK(read(dictionary(name, "(1,)"), {1, 2}).dtype == DType::BF16);
  CHECK(read(dictionary("?", "(3,)"), {0, 1, 7}).bytes == Bytes{0, 1, 1});
  for (int version : {1, 2, 3})
    CHECK(read(dictionary("|i1", "(1,)"), {5}, version).bytes == Bytes{5});
  CHECK(read("{\"shape\":(1 , 2),'fortran_order':False,\"descr\":\"|i1\"}",
             {5, 6})
            .shape == std::vector<int64_t>{1, 2});
}

TEST_CASE("npy: Fortran order becomes row-major") {
  TemporaryFolder folder;
  std::string path = folder / "a.npy";
  put_file(path,
           npy_file(dictionary("|i1", "(2, 3)", "True"), {0, 3, 1, 4, 2, 5}));
  CHECK(read_npy(path)->bytes == Bytes{0, 1, 2, 3, 4, 5});
  // Element (i, j, k) of a (2, 3, 4) array at i + 2 j + 6 k.
  Bytes data(48), expected;
  for (size_t i = 0; i < 24; ++i) data[2 * i] = static_cast<uint8_t>(i);
  for (size_t i = 0; i < 2; ++i)
    for (size_t j = 0; j < 3; ++j)
      for (size_t k = 0; k < 4; ++k) {
        expected.push_back(0);
        expected.push_back(static_cast<uint8_t>(i + 2 * j + 6 * k));
      }
  put_file(path, npy_file(dictionary(">u2", "(2, 3, 4)", "True"), data));
  CHECK(read_npy(path)->bytes == expected);
}

struct Bad {
  const char* what;
  Bytes file;
  const char* reason;
};

std::vector<Bad> bad_headers() {
  auto with = [](const std::string& header) { return npy_file(header, {}); };
  auto type = [](const std::string& descr) {
    return npy_file(dictionary(descr, "(1,)"), {1, 2, 3, 4});
  };
  return {
      {"no dictionary", with(""), "expected `{`"},
      {"a list", with("[1]"), "expected `{`"},
      {"empty", with("{}"), "lacks 'descr'"},
      {"no order", with("{'descr': '<f4', 'shape': ()}"),
       "lacks 'fortran_order'"},
      {"no shape", with("{'descr': '<f4', 'fortran_order': False}"),
       "lacks 'shape'"},
      {"unknown key", with("{'descr': '<f4', 'extra': 1}"), "`extra`"},
      {"twice", with("{'descr': '<f4', 'descr': '<f4'}"), "twice"},
      {"open", with("{'descr': '<f4', 'fortran_order': False, 'shape': ()"),
       "expected `,` or `}`"},
      {"after", with("{'descr':'<f4','fortran_order':False,'shape':()} x"),
       "after the `}`"},
      {"code", with("{'descr': __import__('os')}"), "expected a string"},
      {"open string", with("{'descr"), "does not end"},
      {"escape", with("{'\\x64escr': 1}"), "escapes"},
      {"order", with("{'fortran_order': 1}"), "expected `True` or `False`"},
      {"no colon", with("{'descr' '<f4'}"), "expected `:`"},
      {"negative", with(dictionary("<f4", "(-1,)")), "negative"},
      {"no comma", with(dictionary("<f4", "(3)")), "expected `,`"},
      {"only a comma", with(dictionary("<f4", "(,)")), "expected a size"},
      {"not a number", with(dictionary("<f4", "(x,)")), "expected a size"},
      {"a float", with(dictionary("<f4", "(1.5,)")), "expected `,` or `)`"},
      {"no tuple", with(dictionary("<f4", "[1]")), "expected `(`"},
      {"64 bits", with(dictionary("<f4", "(99999999999999999999,)")),
       "too large"},
      {"product", with(dictionary("<f4", "(4294967296, 4294967296)")),
       "too large for any memory"},
      {"product and 0", with(dictionary("<f4", "(4294967296, 4294967296, 0)")),
       "too large for any memory"},
      {"axes",
       with(dictionary("<f4",
                       "(1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,"
                       "1,1,1,1,1,1,1,1,1,1,1,1,1,1)")),
       "more than 32 axes"},
      {"control", with(dictionary("\x1b[31m", "()")), "`?[31m` is not known"},
      {"objects", type("|O"), "Python objects"},
      {"complex", type("<c8"), "complex"},
      {"text", type("<U1"), "strings"},
      {"bytes", type("|S4"), "strings"},
      {"dates", type("<M8[ns]"), "dates"},
      {"no type", type(""), "is not known"},
      {"an odd width", type("<f3"), "is not known"},
      {"f16 bytes", type("<f16"), "is not known"},
      {"no byte order", type("|f4"), "is not known"},
      {"records", with("{'descr': [('a', '<f4')]}"), "records"},
  };
}

std::vector<Bad> bad_files() {
  Bytes good = npy_file(dictionary("<f4", "(2,)"), counted(8));
  auto changed = [&](size_t at, uint8_t byte) {
    Bytes file = good;
    file[at] = byte;
    return file;
  };
  auto cut = [&](size_t bytes) {
    return Bytes(good.begin(), good.begin() + static_cast<int64_t>(bytes));
  };
  Bytes longer = good, wide = npy_file("", {}, 2);
  longer.push_back(0);
  wide[8] = wide[9] = wide[10] = wide[11] = 0xff;
  return {
      {"nothing", {}, "not an .npy file"},
      {"text",
       {'h', 'e', 'l', 'l', 'o', ' ', 'y', 'o', 'u', '!'},
       "not an .npy file"},
      {"magic", changed(0, 0x92), "not an .npy file"},
      {"version 0", changed(6, 0), "version 0.0"},
      {"version 4", changed(6, 4), "version 4.0"},
      {"version 1.1", changed(7, 1), "version 1.1"},
      {"cut in the magic", cut(4), "not an .npy file"},
      {"cut in the length", cut(9), "ends within its header"},
      {"cut in the header", cut(40), "ends within its header"},
      {"cut in the data", cut(good.size() - 1),
       "declares 8 bytes of elements, but 7"},
      {"no data", cut(good.size() - 8), "declares 8 bytes of elements, but 0"},
      {"more data", longer, "declares 8 bytes of elements, but 9"},
      {"length 0", changed(8, 0), "expected `{`"},
      {"a long length", changed(9, 0xff), "ends within its header"},
      {"a very long length", wide, "at most 65536"},
      {"terabytes", npy_file(dictionary("<f8", "(1000000, 1000000)"), {}),
       "declares 8000000000000 bytes of elements, but 0"},
  };
}

TEST_CASE("npy: files that are not what they say they are") {
  TemporaryFolder folder;
  std::string path = folder / "bad.npy";
  auto all = bad_files();
  for (Bad& bad : bad_headers()) all.push_back(std::move(bad));
  for (const Bad& bad : all) {
    put_file(path, bad.file);
    auto read = read_npy(path);
    REQUIRE_MESSAGE(!read, bad.what);
    CHECK_MESSAGE(read.error().kind == Error::Kind::invalid_file, bad.what);
    CHECK_MESSAGE(read.error().message.find(bad.reason) != std::string::npos,
                  bad.what << ": " << read.error().message);
  }
}

TEST_CASE("npy: every prefix of a file and every changed byte is survived") {
  TemporaryFolder folder;
  std::string path = folder / "a.npy";
  Bytes good = npy_file(dictionary("<f4", "(2, 2)", "True"), counted(16));
  for (size_t length = 0; length < good.size(); ++length) {
    put_file(path,
             Bytes(good.begin(), good.begin() + static_cast<int64_t>(length)));
    CHECK(!read_npy(path));
  }
  for (size_t at = 0; at < good.size(); ++at) {
    for (int value : {0, 0x28, 0x39, 0xff}) {
      Bytes file = good;
      file[at] = static_cast<uint8_t>(value);
      put_file(path, file);
      auto read = read_npy(path);
      if (read) CHECK(read->bytes.size() == 16);
    }
  }
}

TEST_CASE("npy: what the system refuses") {
  TemporaryFolder folder;
  CHECK(read_npy(folder / "none.npy").error().kind == Error::Kind::io);
  CHECK(read_npy(folder / "none.npy").error().message ==
        "No such file or directory");
  CHECK(read_npy(folder.path.string()).error().message == "not a regular file");
  CHECK(read_npy("/dev/zero").error().message == "not a regular file");
  // Nobody writes to this pipe; that must not be waited for.
  REQUIRE(mkfifo((folder / "pipe").c_str(), 0600) == 0);
  CHECK(read_npy(folder / "pipe").error().message == "not a regular file");
  CHECK(read_npy(std::string("a\0b", 3)).error().kind == Error::Kind::io);

  std::vector<int64_t> shape = {1};
  Bytes byte(1);
  CHECK(write_npy(folder / "none/a.npy", DType::U8, shape, byte).error().kind ==
        Error::Kind::io);
  std::filesystem::create_directory(folder.path / "folder");
  CHECK(write_npy(folder / "folder", DType::U8, shape, byte).error().kind ==
        Error::Kind::io);
  CHECK(folder.files() == 2);  // no temporary file is left

  REQUIRE(write_npy(folder / "a.npy", DType::U8, shape, byte));
  CHECK(read_npy(folder / "a.npy", 0).error().kind ==
        Error::Kind::out_of_memory);
}

TEST_CASE("npy: a file that is replaced keeps its permissions") {
  TemporaryFolder folder;
  std::string path = folder / "a.npy";
  std::vector<int64_t> shape = {1};
  REQUIRE(write_npy(path, DType::U8, shape, Bytes{1}));
  REQUIRE(chmod(path.c_str(), 0640) == 0);
  REQUIRE(write_npy(path, DType::U8, shape, Bytes{2}));
  struct stat status;
  REQUIRE(stat(path.c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0640);
  CHECK(read_npy(path)->bytes == Bytes{2});
}

}  // namespace
}  // namespace unisono
