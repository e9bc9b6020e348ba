#include "runtime/files/csv.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>

#include "tests/unit/runtime/files.h"

namespace unisono {
namespace {

void put_text(const std::string& path, const std::string& text) {
  put_file(path, Bytes(text.begin(), text.end()));
}

struct Table {
  std::vector<std::string> names;
  int64_t rows = 0;
  std::vector<CsvColumn> columns;
  std::string error;
};

/// All columns of a text, each with the request that is given for it.
Table table_of(const std::string& text, CsvOptions options = {},
               const std::vector<CsvRequest>& given = {}) {
  const TemporaryFolder folder;
  put_text(folder / "a.csv", text);
  auto file = CsvFile::open(folder / "a.csv", std::move(options));
  if (!file) return {{}, 0, {}, file.error().message};
  std::vector<CsvRequest> requests = given;
  for (size_t i = requests.size(); i < file->names().size(); ++i)
    requests.push_back({.column = i});
  auto types = file->columns(requests, false);
  const int64_t rows = file->rows();
  auto columns = file->columns(requests, true);
  if (!columns) return {{}, 0, {}, columns.error().message};
  // What is known without the elements.
  REQUIRE(types);
  for (size_t i = 0; i < types->size(); ++i) {
    CHECK((*types)[i].dtype == (*columns)[i].dtype);
    CHECK((*types)[i].categories == (*columns)[i].categories);
    CHECK((*types)[i].elements.empty());
  }
  CHECK(rows == file->rows());
  return {file->names(), file->rows(), std::move(*columns), ""};
}

template <class T>
std::vector<T> elements(const CsvColumn& column) {
  std::vector<T> out(column.elements.size() / sizeof(T));
  std::memcpy(out.data(), column.elements.data(), column.elements.size());
  return out;
}

TEST_CASE("csv: types follow from what stands in a column") {
  const Table t = table_of(
      "i,l,f,d,b,s,m,e,big\n"
      "1,3000000000,1.5,1e300,true,x,1,,20000000\n"
      "-2,-1, 2 ,0.1,FALSE,\"a, \"\"b\"\"\",,NA,\n"
      "+3,0,inf,-7,True,x,3,nan,1\n");
  REQUIRE(t.error.empty());
  CHECK(t.rows == 3);
  CHECK(t.names.back() == "big");
  const DType types[] = {DType::I32, DType::I64,  DType::F32,
                         DType::F64, DType::Bool, DType::I32,
                         DType::F32, DType::F32,  DType::F64};
  for (size_t i = 0; i < std::size(types); ++i) {
    CAPTURE(i);
    CHECK(t.columns[i].dtype == types[i]);
    CHECK(t.columns[i].is_text == (i == 5));
  }
  CHECK(elements<int32_t>(t.columns[0]) == std::vector<int32_t>{1, -2, 3});
  CHECK(elements<int64_t>(t.columns[1]) ==
        std::vector<int64_t>{3'000'000'000, -1, 0});
  CHECK(elements<float>(t.columns[2]) ==
        std::vector<float>{1.5f, 2.0f, INFINITY});
  CHECK(elements<double>(t.columns[3]) == std::vector<double>{1e300, 0.1, -7});
  CHECK(elements<uint8_t>(t.columns[4]) == std::vector<uint8_t>{1, 0, 1});
  CHECK(t.columns[5].categories == std::vector<std::string>{"a, \"b\"", "x"});
  CHECK(elements<int32_t>(t.columns[5]) == std::vector<int32_t>{1, 0, 1});
  CHECK(std::isnan(elements<float>(t.columns[6])[1]));
  CHECK(std::isnan(elements<float>(t.columns[7])[2]));
  CHECK(elements<double>(t.columns[8])[0] == 20'000'000);
}

TEST_CASE("csv: a column's type does not depend on the order of its rows") {
  struct Case {
    std::vector<std::string> fields;  // "" is a gap
    DType dtype;                      // of all orders
    bool text = false;
  };
  const Case cases[] = {
      {{"1", "2.5"}, DType::F32},
      {{"1.5", "20000001"}, DType::F64},
      {{"1.5", "16777216"}, DType::F32},
      {{"1.5", "16777217", ""}, DType::F64},
      {{"1", "", "16777217"}, DType::F64},
      {{"1e300", "1", "0.5"}, DType::F64},
      {{"1e-400", "0.5"}, DType::F32},
      {{"inf", "2", "-0.25"}, DType::F32},
      // Never fewer digits than the file has.
      {{"0.1", "0.123456789"}, DType::F64},
      {{"0.12345679", "3.1415927", "1"}, DType::F32},  // of f32s
      {{"3.14159265", "1"}, DType::F64},
      {{"0.10000000149011612", "1"}, DType::F32},  // an f32 as f64 shows it
      {{"3.14159265358979323846", "1"}, DType::F64},
      {{"0.10000000000000001", "1"}, DType::F64},
      {{"1.000000000000000056e-01", "2"}, DType::F64},
      {{"0.10", "00.2500000000000000000", "5e3"}, DType::F32},
      {{"8.589973e9", "1.5"}, DType::F64},
      {{"8.589974e9", "1.5"}, DType::F32},
      {{"1.25e+05", "125000.0"}, DType::F32},
      // Whole numbers have all their digits, or are text.
      {{"2147483647", "-1"}, DType::I32},
      {{"2147483648", "-1"}, DType::I64},
      {{"9223372036854775807", "-1"}, DType::I64},
      {{"9223372036854775808", "1"}, DType::U64},
      {{"18446744073709551615", "18446744073709551614"}, DType::U64},
      {{"18446744073709551615", "-1"}, DType::I32, true},
      {{"10000000000000000000", "-1"}, DType::F64},
      {{"18446744073709551616", "18446744073709551617"}, DType::I32, true},
      {{"100000000000000000000", "1"}, DType::F64},
      {{"9007199254740993", ""}, DType::I32, true},
      {{"9007199254740992", ""}, DType::F64},
      {{"9007199254740993", "0.5"}, DType::I32, true},
      {{"9007199254740993", "1"}, DType::I64},
      {{"12345678901234567000", "0.5"}, DType::F64},  // as JavaScript writes it
      {{"12345678901234567168", "0.5"}, DType::F64},  // and C
      {{"123456792.0", "0.5"}, DType::F32},
      {{"123456789.0", "0.5"}, DType::F64},
      {{"true", "1"}, DType::I32, true},
      {{"true", "", "false"}, DType::F32},
  };
  for (const Case& one : cases) {
    std::vector<std::string> fields = one.fields;
    std::ranges::sort(fields);
    do {
      std::string text = "a,b\n";
      for (const std::string& field : fields) text += field + ",0\n";
      CAPTURE(text);
      const Table t = table_of(text);
      REQUIRE(t.error.empty());
      CHECK(t.columns[0].dtype == one.dtype);
      CHECK(t.columns[0].is_text == one.text);
    } while (std::ranges::next_permutation(fields).found);
  }
  const Table t = table_of(
      "a,b\n18446744073709551615,18446744073709551617\n"
      "18446744073709551614,18446744073709551616\n");
  CHECK(elements<uint64_t>(t.columns[0]) ==
        std::vector<uint64_t>{UINT64_MAX, UINT64_MAX - 1});
  CHECK(elements<int32_t>(t.columns[1]) == std::vector<int32_t>{1, 0});
}

TEST_CASE("csv: floats are read as what they were written as") {
  std::mt19937_64 random(1);
  std::vector<float> singles;
  std::vector<double> doubles;
  for (int i = 0; i < 20'000; ++i) {
    const auto bits = random();
    const auto single = std::bit_cast<float>(static_cast<uint32_t>(bits));
    const auto twice = std::bit_cast<double>(bits);
    if (std::isnormal(single)) singles.push_back(single);
    if (std::isnormal(twice)) doubles.push_back(twice);
    singles.push_back(static_cast<float>(bits % 1'000'000) / 1000.0f);
  }
  const TemporaryFolder folder;
  const auto bytes = [](const auto& all) {
    const auto* from = reinterpret_cast<const uint8_t*>(all.data());
    return Bytes(from, from + all.size() * sizeof all[0]);
  };
  const auto again = [&](DType dtype, const auto& all) {
    REQUIRE(write_csv(
        folder / "a.csv",
        {{"x", {dtype, {static_cast<int64_t>(all.size())}, bytes(all)}}}, ',',
        true));
    auto file = CsvFile::open(folder / "a.csv", {});
    REQUIRE(file);
    return std::move(file->columns({{.column = 0}}, true)->at(0));
  };
  const CsvColumn narrow = again(DType::F32, singles);
  CHECK(narrow.dtype == DType::F32);
  CHECK(narrow.elements == bytes(singles));
  const CsvColumn wide = again(DType::F64, doubles);
  CHECK(wide.dtype == DType::F64);
  CHECK(wide.elements == bytes(doubles));
}

TEST_CASE("csv: lines, quotes, marks") {
  const std::string same[] = {"a,b\n1,2\n3,4\n",
                              "a,b\r\n1,2\r\n3,4",
                              "a,b\r1,2\r3,4\r",
                              "\xef\xbb\xbf"
                              "a,b\n1,2\n3,4\n",
                              "\n\na,b\n\n1,2\n\n3,4\n\n\n",
                              "\"a\",\"b\"\n\"1\",2\n3,\"4\"",
                              "a,b\n 1,2\t\n+3,4\n"};
  for (const std::string& text : same) {
    CAPTURE(text);
    const Table t = table_of(text);
    REQUIRE(t.error.empty());
    CHECK(t.names == std::vector<std::string>{"a", "b"});
    CHECK(elements<int32_t>(t.columns[0]) == std::vector<int32_t>{1, 3});
    CHECK(elements<int32_t>(t.columns[1]) == std::vector<int32_t>{2, 4});
  }
  const Table lines = table_of("a,b\n\"x\ny\",1\n\"\",2\n");
  CHECK(lines.columns[0].categories == std::vector<std::string>{"x\ny"});
  CHECK(elements<int32_t>(lines.columns[0]) == std::vector<int32_t>{0, -1});
  CHECK(table_of("a;b\n1;2\n", {.delimiter = ';'}).columns.size() == 2);
  const Table skipped = table_of(
      "about\nthis\n1 2\n", {.delimiter = ' ', .header = false, .skip = 2});
  CHECK(skipped.names == std::vector<std::string>{"", ""});
  CHECK(skipped.rows == 1);
  CHECK(table_of("a,b\n").rows == 0);
  CHECK(table_of("a,b\n").columns[0].dtype == DType::F32);
  const Table marked = table_of("a\n?\n2\n", {.missing = {"?"}});
  CHECK(marked.columns[0].dtype == DType::F32);
}

TEST_CASE("csv: what a column shall be") {
  const Table t = table_of("a,b,c\n1,y,0\n2,x,1\n", {},
                           {{.column = 0, .dtype = DType::F64},
                            {.column = 1, .categories = {{"x", "y", "z"}}},
                            {.column = 2, .dtype = DType::Bool}});
  REQUIRE(t.error.empty());
  CHECK(elements<double>(t.columns[0]) == std::vector<double>{1, 2});
  CHECK(t.columns[1].categories == std::vector<std::string>{"x", "y", "z"});
  CHECK(elements<int32_t>(t.columns[1]) == std::vector<int32_t>{1, 0});
  CHECK(elements<uint8_t>(t.columns[2]) == std::vector<uint8_t>{0, 1});
  const auto error = [](const std::string& text, CsvRequest request) {
    return table_of(text, {}, {std::move(request)}).error;
  };
  CHECK(error("a\n1\nx\n", {.dtype = DType::F32}) ==
        "line 3, column \"a\": \"x\" is no f32");
  CHECK(error("a\n300\n", {.dtype = DType::U8}) ==
        "line 2, column \"a\": \"300\" is no u8");
  CHECK(error("a\n1.5\n", {.dtype = DType::I32}) ==
        "line 2, column \"a\": \"1.5\" is no i32");
  CHECK(error("a\nNA\n", {.dtype = DType::I32}) ==
        "line 2, column \"a\": nothing stands here, and i32 has no value for "
        "that; floats have");
  CHECK(error("a\ny\n", {.categories = {{"x"}}}) ==
        "line 2, column \"a\": \"y\" is none of the categories that `types` "
        "gives");
}

TEST_CASE("csv: what is no table") {
  CHECK(table_of("").error == "there is no row in it");
  CHECK(table_of("\n\n").error == "there is no row in it");
  CHECK(table_of("a,b\n1,2\n3\n").error ==
        "line 3 has 1 field, but the first row has 2");
  CHECK(table_of("a\n\"x\ny").error ==
        "the quoted field that begins in line 2 does not end");
  CHECK(table_of("a,b\n\"x\"y,2\n").error ==
        "line 2: expected `,` or the end of the line behind the closing quote, "
        "not \"y\"");
  CHECK(table_of(std::string("a\0b", 3)).error ==
        "it holds bytes of 0, so it is no text, or UTF-16: save it as UTF-8");
  CHECK(!table_of(std::string(100'000, ',')).error.empty());
  std::string texts = "a\n";
  for (int i = 0; i < 10'001; ++i) texts += "t" + std::to_string(i) + "\n";
  CHECK(table_of(texts).error.find("more than 10000 different texts") !=
        std::string::npos);
  const TemporaryFolder folder;
  put_text(folder / "a.csv", "a\n1\n");
  CHECK(CsvFile::open(folder / "a.csv", {}, 3).error().kind ==
        Error::Kind::out_of_memory);
  CHECK(CsvFile::open(folder / "b.csv", {}).error().kind == Error::Kind::io);
}

TEST_CASE("csv: what is written is read") {
  const TemporaryFolder folder;
  const float f[] = {0.1f, NAN, 1e20f};
  const int32_t codes[] = {1, -1, 0};
  Bytes floats(12), positions(12);
  std::memcpy(floats.data(), f, 12);
  std::memcpy(positions.data(), codes, 12);
  const std::vector<CsvSource> columns = {
      {"a,\"b\"", {DType::F32, {3}, floats}},
      {"t", {DType::I32, {3}, positions}, {{"x\ny", "z,"}}},
      {"b", {DType::Bool, {3}, {1, 0, 1}}},
      {"u", {DType::U8, {3}, {0, 255, 7}}}};
  REQUIRE(write_csv(folder / "a.csv", columns, ',', true));
  const Bytes bytes = get_file(folder / "a.csv");
  const std::string text(bytes.begin(), bytes.end());
  CHECK(text ==
        "\"a,\"\"b\"\"\",t,b,u\n0.1,\"z,\",true,0\n,,false,255\n"
        "1e+20,\"x\ny\",true,7\n");
  const Table t = table_of(text);
  REQUIRE(t.error.empty());
  CHECK(t.names[0] == "a,\"b\"");
  CHECK(elements<float>(t.columns[0])[0] == 0.1f);
  CHECK(t.columns[1].categories == std::vector<std::string>{"x\ny", "z,"});
  CHECK(t.columns[1].elements == positions);
  CHECK(t.columns[2].elements == Bytes{1, 0, 1});
  // One column with nothing in it is a row all the same.
  REQUIRE(write_csv(folder / "b.csv", {columns[0]}, ';', false));
  const Bytes one = get_file(folder / "b.csv");
  CHECK(std::string(one.begin(), one.end()) == "0.1\n\"\"\n1e+20\n");
  CHECK(!write_csv(folder / "c.csv",
                   {{"t", {DType::I32, {3}, positions}, {{"x"}}}}, ',', true));
  CHECK(folder.files() == 2);
}

TEST_CASE("csv: damaged files are read or refused") {
  const std::string good =
      "id,name,score\n1,\"a \"\"b\"\"\",0.5\n2,\"x\ny\",\n3,z,1e5\n";
  std::mt19937 random(7);
  const char marks[] = "\"\n\r,;\t\0 e-+.9\xff";
  for (int i = 0; i < 3'000; ++i) {
    std::string text = good;
    for (uint32_t n = 1 + random() % 4; n > 0; --n) {
      const size_t at = random() % text.size();
      const char mark = marks[random() % (sizeof marks - 1)];
      if (random() % 2)
        text[at] = mark;
      else
        text.insert(at, 1, mark);
    }
    if (i % 5 == 0) text.resize(random() % text.size());
    table_of(text);
  }
}

}  // namespace
}  // namespace unisono
