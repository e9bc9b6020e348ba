#include "lang/source/source.h"

#include <doctest/doctest.h>

using namespace unisono::lang;

TEST_CASE("places count lines and code points from 1") {
  const SourceFile file("a.uni", "ab\nçé x\r\n\nend");
  CHECK(file.line_count() == 4);
  CHECK(file.line(2) == "çé x");
  CHECK(file.line(3).empty());
  CHECK(file.line(4) == "end");
  CHECK(file.line(5).empty());
  const auto x = static_cast<uint32_t>(file.text().find('x'));
  CHECK(file.place(x).line == 2);
  CHECK(file.place(x).column == 4);
  CHECK(file.place(0).column == 1);
  CHECK(file.place(1000).line == 4);
  CHECK(file.place(1000).column == 4);
  CHECK(to_string(Span{&file, x, x + 1}) == "a.uni:2:4");
  CHECK(to_string(Span{}).empty());
}

TEST_CASE("spans are numbered, nowhere is 0") {
  SourceMap sources;
  const SourceFile& a = sources.add("a", "one two");
  const SourceFile& b = sources.add("b", "one two");
  const Span first = {&a, 0, 3};
  const uint32_t number = sources.number(first);
  CHECK(number != 0);
  CHECK(sources.number({&a, 0, 3}) == number);
  CHECK(sources.number({&b, 0, 3}) != number);
  CHECK(sources.span(number) == first);
  CHECK(sources.number(Span{}) == 0);
  CHECK(!sources.span(0));
  CHECK(!sources.span(99));
  CHECK(cover(first, {&a, 4, 7}).text() == "one two");
}
