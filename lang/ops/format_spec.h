#pragma once
// Formats of interpolations.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace unisono::lang {

/// The format after the colon in an interpolation, as Python has it:
/// [[fill]align][sign][0][width][,][.precision][type].
struct FormatSpec {
  std::string_view fill = " ";  // points into the spec's text
  char align = '\0';            // '<', '>' or '^'; none: numbers to the right
  char sign = '-';              // '+', ' '
  bool zeros = false;
  int width = 0;
  bool grouped = false;  // `,` between thousands
  std::optional<int> precision;
  char type = '\0';

  /// Whether a number is to be shown as a float.
  bool is_float() const;
};

enum class SpecClass { integer, floating, boolean, text };
/// Why `spec` cannot format a value of class `what`; empty if it can.
std::string check_spec(std::string_view spec, SpecClass what);

/// A spec that `check_spec` admits.
FormatSpec read_spec(std::string_view spec);

std::string format_integer(int64_t value, const FormatSpec& spec);
std::string format_integer(uint64_t value, const FormatSpec& spec);
/// `shortest` is the text to show where there is neither precision nor type.
std::string format_float(double value, std::string shortest,
                         const FormatSpec& spec);
/// The digits of a number, without zeros at the end, and the power of ten of
/// the first.
struct Decimal {
  std::string digits;
  int exponent = 0;
};
/// Of "1.250e-05", a finite number that is not negative.
Decimal read_scientific(std::string_view text);

/// For texts and bools: to the left unless aligned otherwise, cut to the
/// precision.
std::string format_text(std::string_view text, const FormatSpec& spec);

}  // namespace unisono::lang
