#pragma once
// Bytes of a terminal as keys.
#include <string>

#include "host/editor/terminal.h"

namespace unisono::host {

struct KeyPress {
  enum class Kind {
    text,     // characters that were typed, one or more
    key,      // any other key
    paste,    // what was pasted, as a terminal that says so marks it
    resized,  // Event::resized
    ended,    // the terminal is gone
  };
  Kind kind = Kind::ended;
  /// Of a key: "enter", "C-a", "M-f", "left", "C-left", ... as bindings.def
  /// names them.
  std::string name = {};
  /// UTF-8, as far as the terminal sends it. Of a paste lines end with \n.
  std::string text = {};
};

/// Not thread-safe.
class KeyReader {
 public:
  explicit KeyReader(Terminal& terminal) : terminal_(terminal) {}
  /// Waits for the next key.
  KeyPress next();
  /// Whether more has come already.
  bool has_more();

 private:
  bool fill(int milliseconds);
  bool have(size_t bytes, int milliseconds);
  KeyPress text();
  KeyPress escape();
  KeyPress control_sequence();
  KeyPress paste();

  Terminal& terminal_;
  std::string bytes_;
  size_t at_ = 0;
  bool ended_ = false, resized_ = false;
};

}  // namespace unisono::host
