#include "lang/source/diagnostics.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "lang/source/explain.h"

using namespace unisono::lang;

TEST_CASE("a diagnostic as a terminal shows it") {
  std::string text;
  for (int i = 0; i < 11; ++i) text += "\n";
  const SourceFile file("train.uni", text + "step(p, x, y)\n");
  Diagnostic d = diagnostic(Code::bad_parameters, {&file, 19, 20}, "two axes");
  d.set_label("f32[6, 3]")
      .add_fact("in_axes=0 maps axis 0 of `x` (declared at train.uni:9:20)")
      .set_help("use a multiple of 4 rows, or map over `devices(3)`");
  CHECK(render(d) ==
        "error[U0125]: malformed parameters: two axes\n"
        "  --> train.uni:12:9\n"
        "   |\n"
        "12 | step(p, x, y)\n"
        "   |         ^ f32[6, 3]\n"
        "   |\n"
        "   = in_axes=0 maps axis 0 of `x` (declared at train.uni:9:20)\n"
        "   = help: use a multiple of 4 rows, or map over `devices(3)`\n");
}

TEST_CASE("notes have their own line, colours are optional") {
  const SourceFile file("a.uni", "let x = 1\n\tlet é = \x1b[31m\n");
  Diagnostic d = diagnostic(Code::unexpected_end, {&file, 11, 17}, "`)`");
  d.add_note({&file, 4, 5}, "it is opened here");
  CHECK(render(d) ==
        "error[U0102]: expected `)`, but the input ends here\n"
        " --> a.uni:2:2\n"
        "  |\n"
        "2 |     let é = \\u{1b}[31m\n"
        "  |     ^^^^^\n"
        "note: it is opened here\n"
        " --> a.uni:1:5\n"
        "  |\n"
        "1 | let x = 1\n"
        "  |     ^\n");
  const std::string coloured = render(d, {.colour = true});
  CHECK(coloured.find("\x1b[1;31merror[U0102]") != coloured.npos);
  CHECK(coloured.find("\x1b[31m") == coloured.npos);
}

TEST_CASE("what a user wrote cannot control the terminal") {
  const SourceFile file("\x1b]0;a\x07", "\x9b \xff x");
  Diagnostic d = diagnostic(Code::unexpected_token, {&file, 4, 5}, "\x1b[2J",
                            "\xE2\x80\xAE");
  d.set_label("\x1b").add_fact("\x07").set_help("\n");
  for (const char c : render(d))
    CHECK((c == '\n' || static_cast<unsigned char>(c) >= 0x20));
  CHECK(render(d).find("\\u{1b}]0;a\\u{7}:1:4") != std::string::npos);
}

TEST_CASE("of a long line the part around the mistake is shown") {
  const SourceFile file("a.uni",
                        std::string(500, 'a') + "b" + std::string(500, 'c'));
  const std::string out =
      render(diagnostic(Code::unexpected_end, {&file, 500, 501}, "x"));
  const size_t line = out.find("1 | ...");
  REQUIRE(line != out.npos);
  const size_t caret_line = out.find("  | ", line);
  const size_t b = out.find('b', line);
  CHECK(b - line == out.find('^') - caret_line);
  CHECK(out.find("ccc...\n") != out.npos);
}

TEST_CASE("a diagnostic without a place is one line and its facts") {
  CHECK(render(diagnostic(Code::bad_target, {}, "a tuple").set_help("x")) ==
        "error[U0123]: cannot assign to a tuple\n  = help: x\n");
}

TEST_CASE("an attempt can be given up") {
  Diagnostics all;
  all.report(Code::bad_target, {}, "a");
  const size_t mark = all.size();
  all.report(Code::bad_target, {}, "b");
  all.report(Code::not_a_continuation, {});
  CHECK(all.error_count() == 2);
  all.truncate(mark);
  CHECK(all.error_count() == 1);
  CHECK(all.size() == 1);
}

TEST_CASE("the table is sorted, and every code has its page") {
  std::set<std::string_view> pages;
  for (const ErrorPage& page : error_pages()) {
    pages.insert(page.code);
    const bool known = std::any_of(
        std::begin(all_codes), std::end(all_codes),
        [&](const CodeInfo& row) { return row.number == page.code; });
    CHECK_MESSAGE(known, "no row for page ", std::string(page.code));
  }
  std::string_view before;
  for (const CodeInfo& row : all_codes) {
    const std::string number(row.number);
    CHECK_MESSAGE(before < row.number, number);
    before = row.number;
    CHECK_MESSAGE(pages.contains(row.number), "no page for row ", number);
    const auto page = explain(row.number);
    if (!page) continue;
    const std::string head = "# " + number + ": " + std::string(row.title);
    CHECK_MESSAGE(page->starts_with(head + "\n"), number);
    CHECK_MESSAGE(page->find("\nWrong:\n\n```\n") != page->npos, number);
    CHECK_MESSAGE(page->find("\nRight:\n\n```\n") != page->npos, number);
    CHECK_MESSAGE(!row.text.ends_with('.'), number);
  }
}

TEST_CASE("explain takes a code as people type it") {
  CHECK(explain("U0101").has_value());
  CHECK(explain("u0101").has_value());
  CHECK(explain("101").has_value());
  CHECK(explain("0101").has_value());
  CHECK(!explain("U9999"));
  CHECK(!explain(""));
}
