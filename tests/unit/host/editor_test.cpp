// The editor's text without a terminal, and other texts of sessions.
#include <doctest/doctest.h>

#include <string>

#include "host/editor/line_buffer.h"
#include "host/interactive/inputs.h"
#include "host/session/progress.h"

using namespace unisono::host;

TEST_CASE("characters are passed whole, with their marks") {
  LineBuffer buffer;
  const std::string text =
      "ae\u0301\xff日";  // a, e with an accent, a byte, one that is wide
  buffer.insert(text);
  std::string places;
  for (size_t at = text.size(); at > 0; at = buffer.before(at))
    places += std::to_string(at) + " ";
  CHECK(places == "8 5 4 1 ");
  places.clear();
  for (size_t at = 0; at < text.size();)
    places += std::to_string(at = buffer.after(at)) + " ";
  CHECK(places == "1 4 5 8 ");
}

TEST_CASE("lines keep the column of the cursor") {
  LineBuffer buffer;
  buffer.insert("let x\n日本\nabcdef");
  const size_t third = buffer.line_start(buffer.cursor()) + 3;
  const size_t second = buffer.above(third);
  CHECK(second == 9);  // three columns are one wide character and a half
  CHECK(buffer.above(second) == 2);
  CHECK(buffer.above(2) == std::string::npos);
  CHECK(buffer.below(third) == std::string::npos);
}

TEST_CASE("what is cut in a row is one piece") {
  LineBuffer buffer;
  buffer.insert("one two three");
  buffer.cut(8, 13, false);
  buffer.cut(4, 8, true);
  CHECK(buffer.text() == "one ");
  buffer.paste_cut();
  CHECK(buffer.text() == "one two three");
  buffer.undo();
  buffer.undo();
  CHECK(buffer.text() == "one two ");
}

TEST_CASE("prompts that were copied along") {
  CHECK(without_prompts("x + 1") == "x + 1");
  CHECK(without_prompts("x[\n...,\n0]") == "x[\n...,\n0]");
  CHECK(without_prompts(">>> 1 + 2\n3\n>>> f(\n... 2)\n4") == "1 + 2\nf(\n2)");
  CHECK(without_prompts("unisono[2×cpu]> let x = 1") == "let x = 1");
  CHECK(without_prompts(">>> def f(x) {\nx\n}\n7") == "def f(x) {\nx\n}");
}

TEST_CASE("the parser decides what is complete") {
  for (const char* text : {"", "1", "let x = 3", "def f(x) {\nx\n}", "1 +* 2",
                           ":type (", "?sum", "\"open"})
    CHECK_MESSAGE(is_complete_input(text), text);
  for (const char* text : {"let x =", "f(", "def f(x) {", "[1,", "1 +",
                           "if c { 1 } else", "@pmap"})
    CHECK_MESSAGE(!is_complete_input(text), text);
  CHECK(hides_result("1; 2;"));
  CHECK(hides_result("1; # why"));
  CHECK_FALSE(hides_result("\";\""));
}

TEST_CASE("progress") {
  CHECK(progress_line(30, 100, 10.0, 80) ==
        "[=========                     ]  30% 30/100  3/s  0:23 left");
  CHECK(progress_line(5, -1, 2.5, 80) == "turn 6  2/s  0:02");
  CHECK(progress_line(5, 10, 5.0, 60, "loss 0.25") ==
        "[==========          ]  50% 5/10  1/s  0:05 left  loss 0.25");
  CHECK(progress_line(1, 4000, 3600.0, 80).find("3.6e+03 s each") !=
        std::string::npos);
  CHECK(progress_line(10, 10, 20.0, 80) ==
        "[==============================] 100% 10/10  2 s each  0:20");
  // No character is cut in two.
  for (int columns = 20; columns < 60; ++columns)
    CHECK(progress_line(5, 10, 5.0, columns, "λ 1").find("λ") ==
          progress_line(5, 10, 5.0, columns, "λ 1").find('\xce'));
  for (int columns = 1; columns < 60; ++columns)
    CHECK(progress_line(1'000'000, 2'000'000'000, 77.0, columns).size() <
          static_cast<size_t>(columns + (columns == 1)));
}
