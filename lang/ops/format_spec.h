#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace unisono::lang {

/// What stands after the colon in an interpolation, as Python has it:
/// [[fill]align][sign][0][width][.precision][type].
struct FormatSpec {
  std::string_view fill = " ";
  char align = '\0';  // '<', '>' or '^'; none: numbers to the right
  char sign = '-';    // '+', ' '
  bool zeros = false;
  int width = 0;
  std::optional<int> precision;
  char type = '\0';

  /// Whether it wants a number shown as a float.
  bool is_float() const;
};

/// Why `spec` cannot format a `what` value; empty if it can.
enum class SpecClass { integer, floating, boolean, text };
std::string check_spec(std::string_view spec, SpecClass what);

/// A spec that `check_spec` admits.
FormatSpec read_spec(std::string_view spec);

std::string format_integer(int64_t value, const FormatSpec& spec);
std::string format_integer(uint64_t value, const FormatSpec& spec);
/// `shortest` is what is shown without precision and type.
std::string format_float(double value, std::string shortest,
                         const FormatSpec& spec);
/// Texts and bools: to the left if not said otherwise, cut to the precision.
std::string format_text(std::string_view text, const FormatSpec& spec);

}  // namespace unisono::lang
