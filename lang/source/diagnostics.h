#pragma once
// Messages about programs: their table, diagnostics.def, and how they are
// collected and shown.
#include <fmt/format.h>

#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "lang/source/source.h"

namespace unisono::lang {

enum class Severity : uint8_t { error, warning, note, performance };

/// Every message there is: Code::unexpected_token. See diagnostics.def.
enum class Code : uint16_t {
#define DIAGNOSTIC(code, severity, enumerator, text, title) enumerator,
#define DIAGNOSTIC_OF_SIZES DIAGNOSTIC
#include "lang/source/diagnostics.def"
};

struct CodeInfo {
  Code code;
  Severity severity;
  std::string_view number;  ///< "U0101"
  std::string_view name;    ///< "unexpected_token"
  std::string_view text;    ///< of the message, with {} for arguments
  std::string_view title;   ///< of the page in docs/errors
  bool of_sizes = false;    ///< needs Diagnostic::about
};
/// All rows, in the order of the table.
inline constexpr CodeInfo all_codes[] = {
#define DIAGNOSTIC(code, severity, enumerator, text, title) \
  {Code::enumerator, Severity::severity, #code, #enumerator, text, title},
#define DIAGNOSTIC_OF_SIZES(code, severity, enumerator, text, title) \
  {Code::enumerator, Severity::severity, #code, #enumerator, text, title, true},
#include "lang/source/diagnostics.def"
};
constexpr const CodeInfo& info(Code code) {
  return all_codes[static_cast<size_t>(code)];
}

/// A second place that belongs to a diagnostic, shown with its own line.
struct Note {
  Span where;
  std::string text;
};

/// One message. Only code, message and where are always there.
struct Diagnostic {
  Code code;
  Severity severity;
  std::string message;
  Span where;
  std::string label;               ///< under the caret: `f32[6, 3]`
  std::vector<Note> notes;         ///< other places
  std::vector<std::string> facts;  ///< the `= ...` lines
  std::string help;                ///< one suggestion, without `help:`
  bool open = false;               ///< about a size that only running tells
  bool tells_sizes = false;        ///< `about` was called

  /// The sizes, or differences of sizes, that this is about. If one is open,
  /// there may be no mistake: while checking it is a question (Walk::fail).
  template <class... Size>
  Diagnostic& about(const Size&... sizes) {
    open |= (sizes.is_open() || ...);
    tells_sizes = true;
    return *this;
  }
  Diagnostic& set_label(std::string text);
  Diagnostic& add_note(Span where, std::string text);
  Diagnostic& add_fact(std::string text);
  Diagnostic& set_help(std::string text);
};

namespace detail {
consteval size_t count_placeholders(std::string_view text) {
  size_t count = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '{') continue;
    if (i + 1 < text.size() && text[i + 1] == '{')
      ++i;
    else
      ++count;
  }
  return count;
}

/// A Code whose text takes exactly these arguments, or it does not compile.
template <class... Args>
struct CheckedCode {
  Code code;
  consteval CheckedCode(Code c) : code(c) {  // NOLINT: implicit
    if (count_placeholders(info(c).text) != sizeof...(Args))
      throw "the number of arguments differs from the message's {}";
  }
};
}  // namespace detail

/// diagnostic(Code::unexpected_token, span, "a name", "`+`"): the message with
/// its arguments filled in. Arguments are anything fmt prints.
template <class... Args>
Diagnostic diagnostic(std::type_identity_t<detail::CheckedCode<Args...>> code,
                      Span where, const Args&... args) {
  const CodeInfo& row = info(code.code);
  return {row.code,
          row.severity,
          fmt::vformat(fmt::string_view(row.text.data(), row.text.size()),
                       fmt::make_format_args(args...)),
          where,
          {},
          {},
          {},
          {}};
}

/// Diagnostics in the order in which they were found. Not thread-safe.
class Diagnostics {
 public:
  /// Adds a message. The reference holds until the next message is added, for
  /// `diagnostics.report(code, where, args...).set_help("...")`.
  template <class... Args>
  Diagnostic& report(std::type_identity_t<detail::CheckedCode<Args...>> code,
                     Span where, const Args&... args) {
    return add(diagnostic(code, where, args...));
  }
  Diagnostic& add(Diagnostic diagnostic);

  const std::vector<Diagnostic>& all() const { return all_; }
  Diagnostic& last() { return all_.back(); }
  size_t size() const { return all_.size(); }
  bool empty() const { return all_.empty(); }
  size_t error_count() const { return error_count_; }
  bool has_errors() const { return error_count_ > 0; }
  /// Forgets everything after the first `size` messages: for an attempt that
  /// is given up.
  void truncate(size_t size);
  /// Puts the messages after the first `from`, all about one file, in the order
  /// of the file.
  void sort_by_place(size_t from);

 private:
  std::vector<Diagnostic> all_;
  size_t error_count_ = 0;
};

std::string_view name(Severity severity);

struct RenderOptions {
  bool colour = false;
};
/// The form of a diagnostic on a terminal: several lines, each with its line
/// end. Control characters of the source are shown as escapes.
std::string render(const Diagnostic& diagnostic, RenderOptions options = {});
/// All of them, with an empty line between two.
std::string render(const Diagnostics& diagnostics, RenderOptions options = {});

}  // namespace unisono::lang
