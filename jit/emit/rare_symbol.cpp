#include "jit/emit/rare_symbol.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdint>

namespace unisono::jit {
namespace {

constexpr std::string_view prefix = "unisono.at.";

/// Where distances are counted from: a function of the same library.
uintptr_t origin() { return reinterpret_cast<uintptr_t>(&symbol_of); }

}  // namespace

std::string symbol_of(const void* function) {
  return fmt::format("{}{}", prefix,
                     reinterpret_cast<uintptr_t>(function) - origin());
}

void* function_of(std::string_view symbol) {
  if (!symbol.starts_with(prefix)) return nullptr;
  symbol.remove_prefix(prefix.size());
  uintptr_t distance = 0;
  const char* end = symbol.data() + symbol.size();
  const auto [rest, error] = std::from_chars(symbol.data(), end, distance);
  if (error != std::errc() || rest != end) return nullptr;
  return reinterpret_cast<void*>(origin() + distance);
}

}  // namespace unisono::jit
