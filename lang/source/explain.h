#pragma once
// The pages that `unisono explain` shows.
#include <optional>
#include <string_view>
#include <vector>

namespace unisono::lang {

/// One page of docs/errors: what a code means, a wrong example, a right one.
struct ErrorPage {
  std::string_view code;
  std::string_view text;
};

/// All pages, sorted by code; embedded at build time.
const std::vector<ErrorPage>& error_pages();

/// The page of `code`, as `U0412`, `u0412` or `412`; nothing if there is none.
std::optional<std::string_view> explain(std::string_view code);

}  // namespace unisono::lang
