#pragma once
// The tests that stand in files: what documentation shows, and what it says
// that it gives.
#include <string>
#include <string_view>
#include <vector>

namespace unisono::host {

/// One input after `>>>` with the lines that are expected below it, or a whole
/// program of a page.
struct Example {
  std::string code;
  std::string expected;  // without indentation and the last line end
  /// Where `code` begins in the file: a line from 1, and so many bytes of it
  /// that stand before.
  int line = 1;
  int column = 0;
  /// The bytes of the file, whole lines, that hold what is expected; where it
  /// is nothing, the place for it.
  size_t expected_begin = 0, expected_end = 0;
  /// What each line of it begins with there: "##     ".
  std::string margin;
  /// What stands around it if it was nothing and becomes something.
  std::string opening, closing;
};

/// Examples that share names: those of one comment, or of a page.
struct ExampleGroup {
  std::string name;  // of the function that the comment is for, or of the page
  int line = 1;
  std::vector<Example> examples;
};

/// A program in a page, ```uni or ```uni N (devices), and what the block
/// ```output after it shows.
struct PageProgram {
  Example example;
  int devices = 0;  // 0: as many as the command line says
};

struct PageTests {
  std::vector<PageProgram> programs;
  std::vector<ExampleGroup> groups;  // blocks of `>>>`
};

/// The examples in `##` comments of a program, in order. They begin with `>>>`,
/// go on with `...`, and end at an empty line or the next one.
std::vector<ExampleGroup> examples_of_program(std::string_view text);
/// What a Markdown page shows. A fenced block whose first line begins with
/// `>>>` is a group, other blocks of `uni` are programs.
PageTests tests_of_page(std::string_view text);

/// `text` with `got` in place of what each of these examples expects.
struct Replacement {
  const Example* example;
  std::string got;
};
std::string with_results(std::string_view text,
                         const std::vector<Replacement>& replacements);

}  // namespace unisono::host
