#pragma once
// Signatures of builtins: read by the compiler, so that what they say is known
// before the program starts.
#include <string_view>
#include <vector>

namespace unisono::lang {

/// One parameter of a function; its name lives as long as the signature.
struct Parameter {
  std::string_view name;
  bool has_default = false;
  bool keyword_only = false;
  bool is_rest = false;  // `*name`: all further positional arguments
};

/// The parameters of "x, axis=none, *, keepdims=false". A default may hold
/// commas in brackets or quotes, and is not looked at.
constexpr std::vector<Parameter> parse_signature(std::string_view signature) {
  std::vector<Parameter> out;
  bool keyword_only = false;
  const auto add = [&](std::string_view piece) {
    while (piece.starts_with(' ')) piece.remove_prefix(1);
    if (piece.empty()) return;
    Parameter p;
    p.keyword_only = keyword_only;
    if (piece.starts_with('*')) {
      keyword_only = true;
      piece.remove_prefix(1);
      if (piece.empty()) return;
      p.is_rest = true;
    }
    const size_t end = piece.find('=');
    p.has_default = end != std::string_view::npos;
    p.name = piece.substr(0, end);
    out.push_back(p);
  };
  int depth = 0;
  bool quoted = false;
  size_t begin = 0;
  for (size_t i = 0; i < signature.size(); ++i) {
    if (signature[i] == '"') quoted = !quoted;
    if (signature[i] == '(') ++depth;
    if (signature[i] == ')') --depth;
    if (signature[i] != ',' || depth > 0 || quoted) continue;
    add(signature.substr(begin, i - begin));
    begin = i + 1;
  }
  add(signature.substr(begin));
  return out;
}

}  // namespace unisono::lang
