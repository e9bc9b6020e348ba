#pragma once
// From PTX text to tokens. A word is anything that PTX glues together: names,
// opcodes with all their suffixes (`ld.global.v4.f32`), directives, special
// registers (`%tid.x`).
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace simcuda {

struct Token {
  enum class Kind : uint8_t { word, integer, real, string, punctuation, end };
  Kind kind = Kind::end;
  std::string_view text;   // within the source
  uint64_t bits = 0;       // integer: its value; real: its bits
  uint8_t real_bytes = 0;  // real: 4 or 8
  int line = 0;

  bool is(char c) const {
    return kind == Kind::punctuation && text.size() == 1 && text[0] == c;
  }
  bool is(std::string_view word) const {
    return kind == Kind::word && text == word;
  }
};

/// Splits the text, which outlives the tokens; the last token is an end. False:
/// `error` says what is wrong in which line.
bool tokenise(std::string_view source, std::vector<Token>& tokens,
              std::string& error);

}  // namespace simcuda
