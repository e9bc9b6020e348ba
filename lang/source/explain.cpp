#include "lang/source/explain.h"

#include <cctype>
#include <string>

namespace unisono::lang {

std::optional<std::string_view> explain(std::string_view code) {
  std::string wanted(code);
  if (!wanted.empty()) {
    wanted[0] =
        static_cast<char>(std::toupper(static_cast<unsigned char>(wanted[0])));
  }
  if (!wanted.starts_with('U'))
    wanted.insert(0, wanted.size() < 4 ? "U0" : "U");
  for (const ErrorPage& page : error_pages())
    if (page.code == wanted) return page.text;
  return std::nullopt;
}

}  // namespace unisono::lang
